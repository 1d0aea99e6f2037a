"""A program gone wild: whatever it writes, a session stays small, never fails, and reads it in any chunking."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentwrap import agents
from agentwrap.config import load
from agentwrap.core.probe import InputFilter
from agentwrap.core.session import Session

LARGEST = 2_000_000
"""Bytes that a session and its input filter may take at their peak, whatever comes. The largest found is a
quarter of it, 256 records with the longest texts apart."""

RECORDS = 6_000_000
"""The same with 256 records whose texts are the longest allowed."""

SIZE = 80_000

SETTINGS = load({}, None, strict=False)[0]


def session() -> Session:
    return Session(agents.recognise(["command"], None, SETTINGS), SETTINGS.policy, now=0.0)


class Player:
    """Does with a session what the pump's client does."""

    def __init__(self) -> None:
        self.session = session()
        self.filter = InputFilter()
        self.now = 0.0

    def output(self, data: bytes) -> None:
        self.now += 0.01
        one = self.session
        one.output(data, self.now)
        one.take_replies()
        for _ in range(one.take_queries()):
            self.filter.query_passed()
        for _ in range(one.take_position_queries()):
            self.filter.position_asked()
        one.take_actions()
        one.take_events()
        deadline = one.deadline
        if deadline is not None and deadline <= self.now:
            one.tick(self.now)
        one.undo()
        one.view()


def each(template: bytes):
    """The same again and again, with a number that differs."""
    return lambda i: template.replace(b"%", b"%d" % i)


def endless(start: bytes, more: bytes):
    return lambda i: (start if i == 0 else b"") + more


STATES = (b"working", b"done", b"blocked", b"error", b"idle", b"clear")

WILD = {
    "text": each(b"hello world"),
    "colours": each(b"\x1b[38;5;%mtext\x1b[m"),
    "private modes": each(b"\x1b[?%h"),
    "saved modes": each(b"\x1b[?%s\x1b[?%r"),
    "keyboard pushes": each(b"\x1b[>%u"),
    "key resources": each(b"\x1b[>%;2m"),
    "title pushes": each(b"\x1b[22;%t"),
    "pointer pushes": each(b"\x1b]22;>shape%\a"),
    "palette": each(b"\x1b]4;%;rgb:00/00/00\a"),
    "dynamic colours": each(b"\x1b]%;#102030\a"),
    "titles": each(b"\x1b]0;%\a"),
    "links": each(b"\x1b]8;;http://x/%\atext\x1b]8;;\a"),
    "ids": each(b"\x1b]7501;state=working:id=%:msg=QUJD\a"),
    "nested ids": each(b"\x1b]7501;state=working:id=%/%/%/%/%/%:msg=QUJD\a"),
    "states": lambda i: b"\x1b]7501;state=%b\a" % STATES[i % 6],
    "queries": each(b"\x1b]7501;?\a"),
    "position queries": each(b"\x1b[6n"),
    "open notices": each(b"\x1b]99;i=%:d=0;" + b"x" * 2000 + b"\x1b\\"),
    "notice queries": each(b"\x1b]99;i=%:p=?;\x1b\\"),
    "notices": each(b"\x1b]9;message %\a\x1b]777;notify;a;b%\a"),
    "prompts": each(b"\x1b]133;A\a"),
    "an endless OSC": endless(b"\x1b]7501;state=working:msg=", b"x" * 100),
    "an endless DCS": endless(b"\x1bP", b"x" * 100),
    "an endless passthrough": endless(b"\x1bPtmux;", b"x\x1b\x1b" * 30),
    "an endless CSI": endless(b"\x1b[", b"1;" * 50),
    "endless intermediates": endless(b"\x1b", b"(" * 100),
    "passthroughs": each(b"\x1bPtmux;\x1b\x1b]7501;state=working:id=%\a\x1b\\"),
    "ESC": each(b"\x1b" * 50),
    "ST": each(b"\x1b\\" * 50),
    "BEL": each(b"\a" * 50),
    "NUL": each(bytes(50)),
    "shifts": each(b"\x0e\x0f" * 50),
    "C1": each(bytes(range(0x80, 0xA0)) + "".join(map(chr, range(0x80, 0xA0))).encode()),
    "broken UTF-8": each(b"\xff\xfe\xc0\x80\xed\xa0\x80\xf5\xf0\x9f"),
    "resets": each(b"\x1bc\x1b[!p"),
    "huge numbers": lambda _: b"".join(b"\x1b[%b%b" % (b"9" * 250, end) for end in (b"h", b"r", b"t", b"n")),
    "huge private numbers": lambda _: b"\x1b[>%bu\x1b[?%bh\x1b[=%b;%bu" % ((b"9" * 120,) * 4),
    "huge progress": lambda _: b"\x1b]7501;state=working:progress=%b\a" % (b"9" * 3000),
}


@pytest.mark.parametrize("name", WILD)
def test_a_session_stays_small(name):
    player = Player()
    tracemalloc.start()
    try:
        chunk, total, i = bytearray(), 0, 0
        while total < SIZE:
            chunk += WILD[name](i)
            i += 1
            if len(chunk) >= 4000:
                total += len(chunk)
                player.output(bytes(chunk))
                chunk.clear()
        assert tracemalloc.get_traced_memory()[1] < LARGEST
    finally:
        tracemalloc.stop()


def test_records_of_the_longest_texts_stay_bounded():
    player = Player()
    message, title = (b"w6TDtsO8" * count for count in (341, 30))  # base64 of letters of two bytes each
    tracemalloc.start()
    try:
        for i in range(270):
            player.output(b"\x1b]7501;state=blocked:id=%d:msg=%b:title=%b\a" % (i, message, title))
        assert len(player.session.view().records) == 256
        assert tracemalloc.get_traced_memory()[1] < RECORDS
    finally:
        tracemalloc.stop()


PIECES = st.one_of(
    st.binary(max_size=6),
    st.sampled_from([make(3)[:300] for make in WILD.values()]),
    st.sampled_from(
        [
            *(b"\x1b]7501;state=%b:id=%b\a" % (state, ident) for state in STATES for ident in (b"", b"a", b"a/b")),
            b"\x1b]7501;state=blocked:kind=permission:msg=QUJD\x1b\\",
            b"\x1b]9;Approval requested: x\a",
            b"\x1b[?1049h", b"\x1b[?1049l", b"\x1b[?1004h", b"\x1b[?1004l", b"\x1b[?2026h", b"\x1b[?2026l",
            b"\x1b[>7u", b"\x1b[<u", b"\x1b7", b"\x1b8", b"\x1bc", b"\x18", b"\x1a", b"\x1b",
            b"\x1b]", b"\x1bP", b"\x1b[", b"\x1bPtmux;", b"\x1b\\", b"\a", "ü€😀".encode(),
        ]
    ),
)  # fmt: skip


@settings(deadline=None, max_examples=120)
@given(st.lists(PIECES, max_size=30), st.data())
def test_any_stream_in_any_chunking_is_read_alike_and_never_fails(pieces, data):
    stream = b"".join(pieces)
    whole, cut = session(), session()
    whole.output(stream, 1.0)
    pos = 0
    while pos < len(stream):
        size = data.draw(st.integers(1, 40))
        cut.output(stream[pos : pos + size], 1.0)
        pos += size
    assert cut.undo() == whole.undo()
    assert cut.ground == whole.ground
    one, other = cut.view(), whole.view()
    for name in ("state", "kind", "message", "title", "progress", "source", "app", "children", "seq"):
        assert getattr(one, name) == getattr(other, name), name
    assert [(ident, r.state, r.msg) for ident, r, _ in one.records] == [
        (ident, r.state, r.msg) for ident, r, _ in other.records
    ]
    assert cut.take_replies() == whole.take_replies()
    assert cut.take_queries() == whole.take_queries()
    for each_session in (cut, whole):
        each_session.exited(9.0, 9)
        each_session.take_actions()
