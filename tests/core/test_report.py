"""The body of a report: its syntax, its limits, each refusal's reason. The vectors hold the rest."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentwrap.core import report
from agentwrap.core.report import Ignored, Query, Report, parse, reply
from agentwrap.core.scanner import Scanner


def encode(text):
    return base64.b64encode(text.encode())


def fields(read):
    assert isinstance(read, Report), getattr(read, "reason", read)
    return {name: getattr(read, name) for name in Report.__slots__}


def test_every_field_is_read():
    body = (
        b"state=blocked:id=a/b:kind=question:progress=7:app=x:title=" + encode("T") + b":msg=" + encode("é ✓")
    )
    assert fields(parse(body)) == {
        "state": "blocked",
        "id": "a/b",
        "kind": "question",
        "progress": 7,
        "app": "x",
        "title": "T",
        "msg": "é ✓",
    }


@pytest.mark.parametrize("state", report.STATES)
def test_absent_fields_are_none_and_the_id_is_the_root(state):
    absent = dict.fromkeys(("kind", "progress", "app", "title", "msg"))
    assert fields(parse(b"state=" + state.encode())) == {"state": state, "id": "", **absent}


def test_clear_carries_nothing_but_its_id():
    read = fields(parse(b"state=clear:id=a:kind=auth:progress=5:app=x:msg=bQ=="))
    assert read.pop("state") == "clear"
    assert read.pop("id") == "a"
    assert not any(read.values())


@pytest.mark.parametrize("terminator", [b"\a", b"\x1b\\"])
def test_a_query_is_answered_with_its_own_terminator(terminator):
    (token,) = Scanner().feed(b"\x1b]7501;?" + terminator)
    assert isinstance(parse(token.body, token.terminator), Query)
    assert reply(token.terminator) == b"\x1b]7501;?" + terminator


@pytest.mark.parametrize("body", [b"??", b" ?", b"? ", b"?:states=idle", b"", b":"])
def test_nothing_else_is_a_query(body):
    assert isinstance(parse(body), Ignored)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"app=x", "no known state"),
        (b"state=sleeping", "no known state"),
        (b"state=idle:id=a b", "bad id"),
        (b"state=idle:id=a!:id=a", "bad id"),
        (b"state=idle:" + b"k" * 17 + b"=1", "key too long"),
        (b"state=idle:app=" + b"a" * 33, "app too long"),
        (b"state=idle:msg=" + b"A" * 2733, "text too long"),
        (b"state=idle:title=" + b"A" * 257, "text too long"),
        (b"state=idle:title=A", "bad title"),
        (b"state=clear:msg=A", "bad msg"),
        (b"state=idle:x=" + b"a" * 4096, "sequence too long"),
    ],
)
def test_a_refusal_says_why(body, reason):
    read = parse(body)
    assert isinstance(read, Ignored)
    assert read.reason == reason


@pytest.mark.parametrize("terminator", [b"\a", b"\x1b\\"])
def test_the_longest_sequence(terminator):
    room = report.SEQUENCE_LIMIT - len(b"\x1b]7501;state=idle:x=") - len(terminator)
    assert isinstance(parse(b"state=idle:x=" + b"a" * room, terminator), Report)
    assert isinstance(parse(b"state=idle:x=" + b"a" * (room + 1), terminator), Ignored)


@pytest.mark.parametrize(
    ("key", "good", "bad"),
    [
        (b"id", b"/".join([b"a"] * 8), b"/".join([b"a"] * 9)),
        (b"id", b"a" * 32, b"a" * 33),
        (b"id", b"/".join([b"a" * 32] * 3 + [b"a" * 29]), b"/".join([b"a" * 32] * 3 + [b"a" * 30])),
        (b"app", b"a" * 32, b"a" * 33),
        (b"msg", encode("m" * 2048), encode("m" * 2049)),
        (b"msg", encode("m" * 2048).rstrip(b"="), encode("m" * 2049).rstrip(b"=")),
        (b"msg", encode("é" * 1024), encode("é" * 1024 + "m")),
        (b"title", encode("t" * 192), encode("t" * 193)),
        (b"k" * 16, b"", b"=" * 4096),
    ],
)
def test_limits(key, good, bad):
    assert isinstance(parse(b"state=idle:" + key + b"=" + good), Report)
    assert isinstance(parse(b"state=idle:" + key + b"=" + bad), Ignored)
    if key != b"k" * 16:  # every occurrence counts, also one that a later one replaces
        assert isinstance(parse(b"state=idle:" + key + b"=" + bad + b":" + key + b"=" + good[:4]), Ignored)


@pytest.mark.parametrize(
    "last",
    [
        b"AB==",
        b"QE==",
        b"QI==",
        b"QUF=",
        b"AAB=",
        b"A/==",
        b"QQ=",
        b"QQQ==",
        b"QQ==QQ==",
        b"=",
        b"====",
        b"Q Q=",
    ],
)
def test_base64_has_one_encoding_for_one_text(last):
    read = parse(b"state=idle:msg=" + last)
    assert isinstance(read, Ignored) or read.msg is None  # a blank within makes the pair malformed


@given(st.text(st.characters(exclude_categories=("Cc", "Cs")), max_size=60))
def test_any_text_without_controls_comes_back(text):
    for encoded in (encode(text), encode(text).rstrip(b"=")):
        assert fields(parse(b"state=done:msg=" + encoded))["msg"] == (text or None)


@given(st.binary(max_size=80))
def test_any_bytes_are_read_or_refused(body):
    read = parse(body)
    assert isinstance(read, Report | Query | Ignored)
    read = parse(b"state=idle:" + body)
    if isinstance(read, Report):
        assert read.state in (*report.STATES, report.CLEAR)


@given(st.binary(max_size=40))
def test_a_message_is_printable_or_the_report_is_refused(data):
    read = parse(b"state=idle:msg=" + base64.b64encode(data))
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = "\0"
    if any(ord(char) < 0x20 or 0x7F <= ord(char) < 0xA0 for char in text):
        assert isinstance(read, Ignored)
    else:
        assert fields(read)["msg"] == (text or None)
