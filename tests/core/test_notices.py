from __future__ import annotations

import base64

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentwrap.core import notices


def read(notice):
    return None if notice is None else (notice.source, notice.title, notice.body)


def test_osc9_is_its_text():
    assert read(notices.osc9(b"All done.")) == ("osc9", "", "All done.")
    assert read(notices.osc9("grün".encode())) == ("osc9", "", "grün")
    assert notices.osc9(b"") is None
    assert notices.osc9(b"  ") is None


@pytest.mark.parametrize(
    "body", [b"4;1;50", b"9;C:\\dir", b"1;10", b"4", b"12", b"12;a", b"10;x", b"4;1;50 pong"]
)
def test_conemu_commands_are_told_apart_by_their_number(body):
    assert notices.is_conemu(body)


@pytest.mark.parametrize("body", [b"", b"0;x", b"13;x", b"42", b"4 items", b"04;1", b"All; 4;1", b"1x;"])
def test_other_texts_are_none(body):
    assert not notices.is_conemu(body)


@pytest.mark.parametrize(
    ("body", "progress"),
    [
        (b"4;1;50", (50,)),
        (b"4;2;7", (7,)),
        (b"4;4;100", (100,)),
        (b"4;1;900", (100,)),
        (b"4;1;0", (0,)),
        (b"4;0;50", (None,)),
        (b"4;0", (None,)),
        (b"4;3;", (None,)),
        (b"4;3", (None,)),
        (b"4;1", (None,)),
        (b"4;1;x", (None,)),
        (b"4;1;99999999999999999999", (None,)),
        (b"4", None),
        (b"4;5;1", None),
        (b"9;4;1", None),
    ],
)
def test_progress(body, progress):
    assert notices.progress(body) == progress


def test_osc777_has_a_title_and_a_body():
    assert read(notices.osc777(b"notify;Title;Body; more")) == ("osc777", "Title", "Body; more")
    assert read(notices.osc777(b"notify;Title")) == ("osc777", "Title", "")
    assert notices.osc777(b"notify;;") is None
    assert notices.osc777(b"notify") is None
    assert notices.osc777(b"preexec") is None


def test_osc99_whole_and_in_parts():
    kitty = notices.Kitty()
    assert read(kitty.feed(b";Hello world")) == ("osc99", "Hello world", "")
    assert kitty.feed(b"i=1:d=0;Hello") is None
    assert kitty.feed(b"i=2:d=0;Other") is None
    assert kitty.feed(b"i=1:d=0; world") is None
    assert read(kitty.feed(b"i=1:d=1:p=body;This is cool")) == ("osc99", "Hello world", "This is cool")
    assert read(kitty.feed(b"i=2;!")) == ("osc99", "Other!", "")


def test_osc99_in_base64():
    kitty = notices.Kitty()
    assert kitty.feed(b"i=a:e=1:d=0;" + base64.b64encode(b"Mock title")) is None
    done = kitty.feed(b"i=a:p=body:e=1:d=1;" + base64.b64encode(b"Session done").rstrip(b"="))
    assert read(done) == ("osc99", "Mock title", "Session done")
    assert kitty.feed(b"e=1;!") is None


def test_osc99_asks_for_support():
    kitty = notices.Kitty()
    assert kitty.feed(b"i=opentui-notifications:p=?;") == b"opentui-notifications"
    answer = notices.kitty_support(b"opentui-notifications", b"\x1b\\")
    assert answer.startswith(b"\x1b]99;i=opentui-notifications:p=?;")
    assert answer.endswith(b"\x1b\\")
    assert b"p=title,body" in answer


@pytest.mark.parametrize(
    "body", [b"", b"no semicolon", b"i=1:p=close;", b"i=a b;x", b"i=" + b"a" * 129 + b";x", b"p=icon;x"]
)
def test_osc99_that_is_no_notification(body):
    assert notices.Kitty().feed(body) is None


def test_open_notifications_are_bounded_in_number_and_length():
    kitty = notices.Kitty()
    for n in range(100):
        kitty.feed(b"i=%d:d=0;text" % n)
    assert len(kitty._open) == notices.OPEN_LIMIT
    for _ in range(100):
        kitty.feed(b"i=99:d=0;" + b"x" * 1000)
    notice = kitty.feed(b"i=99;y")
    assert len(notice.title) == notices.TEXT_LIMIT


@given(st.binary(max_size=60))
@settings(deadline=None, max_examples=200)
def test_no_body_raises(body):
    notices.osc9(body)
    notices.osc777(body)
    notices.osc777(b"notify;" + body)
    notices.progress(b"4;" + body)
    notices.Kitty().feed(body)
    notices.Kitty().feed(b"e=1;" + body)


def test_the_text_of_a_notice_is_both_parts():
    assert notices.Notice("osc777", "a", "b").text == "a: b"
    assert notices.Notice("osc777", "", "b").text == "b"
    assert notices.Notice("osc777", "a", "").text == "a"


@pytest.mark.parametrize(
    ("body", "ident"),
    [
        (b"i=me:p=?;o=always:p=title", b"me"),
        (b"p=?:i=me", b"me"),
        (b"p=?;", b""),
        (b" i = me : p = ? ;", b"me"),
        (b"i=me;p=?", None),
        (b"i=me:p=close;", None),
        (b"", None),
    ],
)
def test_the_answer_to_a_query_for_osc99(body, ident):
    assert notices.kitty_answer(body) == ident
