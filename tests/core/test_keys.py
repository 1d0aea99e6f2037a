"""The input grammar: what is a key typed, and what a terminal says by itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentwrap.core.keys import (
    CSI_LIMIT,
    ESCAPE,
    FOCUS_IN,
    FOCUS_OUT,
    KEY,
    MOUSE,
    PASTE,
    REPLY,
    SEQUENCE_PATIENCE,
    STRING_PATIENCE,
    InputScanner,
)

TIMELINES = Path(__file__).parent.parent / "timelines"

KEYS = [
    b"a",
    b"\r",
    b"\t",
    b"\x7f",
    b"\x00",
    b"\x03",
    b"\x1a",
    "é".encode(),
    "漢".encode(),
    "🙂".encode(),
    b"\x1b[A",
    b"\x1b[1;5A",
    b"\x1b[H",
    b"\x1b[Z",
    b"\x1b[3~",
    b"\x1b[15;2~",
    b"\x1b[1;2P",
    b"\x1b[1;2R",  # Shift-F3
    b"\x1b[1;5R",
    b"\x1b[1;16R",  # with Shift, Alt, Ctrl and Meta
    b"\x1b[R",
    b"\x1b[1;2S",
    b"\x1bOP",
    b"\x1bOA",
    b"\x1bO5P",
    b"\x1bO1;2P",
    b"\x1bOM",
    b"\x1b[[A",  # F1 on the Linux console
    b"\x1ba",
    b"\x1b\r",
    b"\x1b\x7f",
    "\x1bé".encode(),
    b"\x1b[27;5;13~",
    b"\x1b[27;2;65~",
    b"\x1b[97u",
    b"\x1b[97;5u",
    b"\x1b[97;1:1u",
    b"\x1b[97;1:2u",  # held down
    b"\x1b[97:65;2;65u",
    b"\x1b[57376u",  # F13
    b"\x1b[1;1:1A",
    b"\x1b[3;5:2~",
    b"\x1b[65;30;97;1;0;1_",
    b"\x1b[a",
]
NO_KEYS = [
    (b"\x1b[97;1:3u", []),  # released
    (b"\x1b[97;5:3u", []),
    (b"\x1b[1;1:3A", []),
    (b"\x1b[3;1:3~", []),
    (b"\x1b[57441;2u", []),  # left Shift
    (b"\x1b[57442;5u", []),
    (b"\x1b[57454u", []),
    (b"\x1b[57358u", []),  # Caps Lock
    (b"\x1b[57360;1:1u", []),
    (b"\x1b[65;30;97;0;0;1_", []),  # win32, released
    (b"\x1b[16;42;0;1;16;1_", []),  # win32, Shift
    (b"\x1b[I", [FOCUS_IN]),
    (b"\x1b[O", [FOCUS_OUT]),
    (b"\x1b[M !!", [MOUSE]),
    (b"\x1b[M\x20\xff\xff", [MOUSE]),
    (b"\x1b[<0;10;20M", [MOUSE]),
    (b"\x1b[<0;10;20m", [MOUSE]),
    (b"\x1b[<35;10;20M", [MOUSE]),
    (b"\x1b[32;10;20M", [MOUSE]),
    (b"\x1b[?62;22c", [REPLY]),
    (b"\x1b[>41;390;0c", [REPLY]),
    (b"\x1bP!|00000000\x1b\\", [REPLY]),
    (b"\x1bP>|XTerm(390)\x1b\\", [REPLY]),
    (b"\x1bP1$r0m\x1b\\", [REPLY]),
    (b"\x1bP1+r544e=787465726d\x1b\\", [REPLY]),
    (b"\x1b[3;1R", [REPLY]),
    (b"\x1b[24;80R", [REPLY]),
    (b"\x1b[1;80R", [REPLY]),
    (b"\x1b[1;17R", [REPLY]),
    (b"\x1b[?3;1R", [REPLY]),
    (b"\x1b[?2026;2$y", [REPLY]),
    (b"\x1b[4;2$y", [REPLY]),
    (b"\x1b[0n", [REPLY]),
    (b"\x1b[?0u", [REPLY]),
    (b"\x1b[?997;1n", [REPLY]),
    (b"\x1b[8;24;80t", [REPLY]),
    (b"\x1b[48;24;80;480;800t", [REPLY]),
    (b"\x1b[2;1;1;120;120;1;0x", [REPLY]),
    (b"\x1b[?2;0;800;480S", [REPLY]),
    (b"\x1b[>4;2m", [REPLY]),
    (b"\x1b]11;rgb:1111/1111/1111\x1b\\", [REPLY]),
    (b"\x1b]10;rgb:1111/1111/1111\a", [REPLY]),
    (b"\x1b]4;1;rgb:cdcd/0000/0000\x1b\\", [REPLY]),
    (b"\x1b]52;c;aGVsbG8=\a", [REPLY]),
    (b"\x1b]99;i=1:p=?;o=always\x1b\\", [REPLY]),
    (b"\x1b]7501;?\x1b\\", [REPLY]),
    (b"\x1b]lTitle\x1b\\", [REPLY]),
    (b"\x1b_Gi=31;OK\x1b\\", [REPLY]),
    (b"\x1b^pm\x1b\\", [REPLY]),
    (b"\x1bXsos\x1b\\", [REPLY]),
    (b"\x1b[200~some\rtext \x1b[A\x1b]0;x\a\x1b[20\x1b[201~", [PASTE]),
    (b"\x1b[200~\x1b[201~", [PASTE]),
    (b"\x1b[201~", []),
]
CASES = [(key, [KEY]) for key in KEYS] + NO_KEYS


def events_of(chunks: list[bytes]) -> list[int]:
    scanner = InputScanner()
    events = [event for chunk in chunks for event in scanner.feed(chunk)]
    assert scanner.ground
    assert scanner.patience is None
    return events


@pytest.mark.parametrize(("data", "expected"), CASES, ids=repr)
def test_whole(data, expected):
    assert events_of([data]) == expected


@pytest.mark.parametrize(("data", "expected"), CASES, ids=repr)
def test_byte_by_byte(data, expected):
    assert events_of([data[i : i + 1] for i in range(len(data))]) == expected


@pytest.mark.parametrize(("data", "expected"), CASES, ids=repr)
def test_split_at_each_offset_with_neighbours(data, expected):
    for before, first in ((b"", []), (b"\x1b[I", [FOCUS_IN])):
        for i in range(len(data) + 1):
            chunks = [before + data[:i], data[i:] + b"\x1b[O"]
            assert events_of(chunks) == [*first, *expected, FOCUS_OUT]


@pytest.mark.parametrize(("data", "expected"), CASES, ids=repr)
def test_nothing_is_ground_until_it_is_whole(data, expected):
    del expected
    scanner = InputScanner()
    for i in range(len(data) - 1):
        scanner.feed(data[i : i + 1])
        assert not scanner.ground
    scanner.feed(data[-1:])
    assert scanner.ground


def test_characters_that_arrive_together_are_one_key():
    assert events_of(["héllo wörld\r".encode()]) == [KEY]
    assert events_of([b"ab\x1b[Acd"]) == [KEY, KEY, KEY]


def test_a_lone_escape_is_a_key_once_nothing_follows():
    scanner = InputScanner()
    assert scanner.feed(b"\x1b") == []
    assert not scanner.ground
    assert scanner.patience == SEQUENCE_PATIENCE
    assert scanner.expire() == [ESCAPE]
    assert scanner.ground
    assert scanner.patience is None


@pytest.mark.parametrize(
    ("spelled", "event"),
    [
        (b"\x1b[27u", ESCAPE),
        (b"\x1b[27;1u", ESCAPE),
        (b"\x1b[27;1:1u", ESCAPE),
        (b"\x1b[27;1;27~", ESCAPE),
        (b"\x1b[27;5u", KEY),
        (b"\x1b[27;2;13~", KEY),
        (b"\x1b[97u", KEY),
    ],
)
def test_escape_by_itself_is_told_however_it_is_spelled(spelled, event):
    assert events_of([spelled]) == [event]


def test_escape_twice_is_escape_and_what_follows():
    assert events_of([b"\x1b\x1b[A"]) == [KEY, KEY]
    assert events_of([b"\x1b\x1b\x1bx"]) == [KEY, KEY, KEY]


@pytest.mark.parametrize(
    "typed", [b"\x1b[", b"\x1bO", b"\x1b]", b"\x1bP", b"\x1b_", b"\x1b^", b"\x1bX", b"\x1b[["]
)
def test_alt_and_a_key_that_looks_like_a_beginning(typed):
    scanner = InputScanner()
    assert scanner.feed(typed) == []
    assert scanner.patience == SEQUENCE_PATIENCE
    assert scanner.expire() == [KEY]
    assert scanner.feed(b"\x1b[I") == [FOCUS_IN]
    # followed at once by a key that no sequence or reply holds
    scanner = InputScanner()
    assert KEY in scanner.feed(typed + b"\r")
    assert scanner.ground


@pytest.mark.parametrize("begun", [b"\x1b]11;rgb:", b"\x1bP>|XT", b"\x1b_Gi=3", b"\x1b]52;c;aaaa\x1b"])
def test_a_reply_that_stops_coming_is_given_up_later_and_is_no_key(begun):
    scanner = InputScanner()
    assert scanner.feed(begun) == []
    assert scanner.patience == STRING_PATIENCE
    assert scanner.expire() == []
    assert scanner.ground
    assert scanner.feed(b"x") == [KEY]


def test_an_unfinished_character_is_given_up():
    scanner = InputScanner()
    assert scanner.feed(b"\xe6\xbc") == [KEY]
    assert scanner.patience == SEQUENCE_PATIENCE
    assert scanner.expire() == []
    assert scanner.ground
    assert scanner.feed(b"\xe6") == [KEY]
    assert scanner.feed(b"ab") == [KEY]
    assert scanner.ground


def test_a_paste_waits_for_its_end_alone():
    scanner = InputScanner()
    assert scanner.feed(b"\x1b[200~text\x1b") == [PASTE]
    assert scanner.in_paste
    assert not scanner.ground
    assert scanner.patience is None
    assert scanner.expire() == []
    assert scanner.in_paste
    assert scanner.feed(b"[201~\x1b[I") == [FOCUS_IN]
    assert not scanner.in_paste


def test_where_a_position_is_awaited_f3_is_one():
    scanner = InputScanner()
    scanner.position_queries = 1
    assert scanner.feed(b"\x1b[1;2R\x1b[1;2R") == [REPLY, KEY]
    assert scanner.position_queries == 0
    scanner.position_queries = 1
    assert scanner.feed(b"\x1b[24;80R") == [REPLY]
    assert scanner.position_queries == 0


def test_an_interrupted_sequence_gives_way():
    assert events_of([b"\x1b[1;\x1b[I"]) == [KEY, FOCUS_IN]
    assert events_of([b"\x1b[M \x1b[I"]) == [FOCUS_IN]
    assert events_of([b"\x1b]11;rgb\x1b[I"]) == [FOCUS_IN]
    assert events_of([b"\x1b]\x1b[I"]) == [KEY, FOCUS_IN]
    assert events_of([b"\x1b[1;\x03"]) == [KEY]
    assert events_of(["\x1b[1;é".encode()]) == [KEY, KEY]
    assert events_of([b"\x1bO\x1b[I"]) == [KEY, FOCUS_IN]


def test_hostile_input_is_bounded():
    scanner = InputScanner()
    for data in (
        b"\x1b[" + b"1;" * 500_000,
        b"\x1b]52;c;" + b"A" * 1_000_000,
        b"\x1b[200~" + b"\x1b[20" * 200_000,
    ):
        scanner.feed(data)
        assert len(scanner._body) <= CSI_LIMIT
        assert len(scanner._tail) <= 5
        scanner = InputScanner()
    assert len(scanner.feed(b"x" * 1_000_000)) == 1
    assert events_of([b"\x1b[" + b"9" * 200 + b"u", b"\x1b[I"]) == [KEY, FOCUS_IN]
    assert events_of([b"\x1b[1;" + b"9" * 60 + b"R"]) == [REPLY]


@settings(deadline=None, max_examples=300)
@given(st.lists(st.sampled_from([case for case in CASES if case[0][:1] == b"\x1b"]), max_size=12), st.data())
def test_any_chunking_gives_the_same_events(cases, data):
    stream = b"".join(case for case, _ in cases)
    expected = [event for _, events in cases for event in events]
    cuts = sorted(data.draw(st.sets(st.integers(0, len(stream)), max_size=12)))
    chunks = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert events_of(chunks) == expected


@settings(deadline=None, max_examples=300)
@given(st.lists(st.one_of(st.binary(max_size=20), st.sampled_from([case for case, _ in CASES])), max_size=10))
def test_anything_at_all_is_recovered_from(chunks):
    scanner = InputScanner()
    for chunk in chunks:
        scanner.feed(chunk)
    if scanner.in_paste:
        scanner.feed(b"\x1b[201~")
    scanner.expire()
    assert scanner.ground
    assert scanner.feed(b"\x1b[I") == [FOCUS_IN]


def test_what_terminals_sent_in_the_recordings_is_understood():
    typed, said = 0, 0
    for path in TIMELINES.glob("*.jsonl"):
        scanner = InputScanner()
        for line in path.read_text(encoding="utf-8").splitlines():
            data = json.loads(line).get("in")
            if not data:
                continue
            events = scanner.feed(data.encode()) + scanner.expire()
            # what was typed there are words, Enter, Esc, arrows; all else are replies and focus
            a_reply = data.startswith(
                ("\x1b[?", "\x1b]", "\x1bP", "\x1b_", "\x1b[I", "\x1b[O")
            ) or data.endswith("R")
            assert set(events) <= ({REPLY, FOCUS_IN, FOCUS_OUT} if a_reply else {KEY, ESCAPE}), data
            assert events
            said += a_reply
            typed += not a_reply
    assert typed > 50
    assert said > 50
