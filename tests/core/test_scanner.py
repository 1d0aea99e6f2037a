"""The scanner against a second reading of the same grammar, in any chunking, and at each of its bounds."""

from __future__ import annotations

import itertools
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentwrap.core import scanner as module
from agentwrap.core.scanner import (
    CSI_LIMIT,
    ESC_LIMIT,
    KNOWN_LIMIT,
    KNOWN_SIZE_LIMIT,
    LOOK_BACK_LIMIT,
    NUMBER_LIMIT,
    OSC_LIMIT,
    PASSTHROUGH_LIMIT,
    RECENT_LIMIT,
    UNREAD_LIMIT,
    WINDOW,
    Csi,
    Esc,
    Osc,
    Scanner,
)

MEMORY_LIMIT = (
    600_000  # bytes a scanner may hold, whatever was fed; a session's whole state is far below 15 MB
)


def plain():
    return Scanner()


def compiled():
    scanner = Scanner()
    scanner._finder = module._compiled()
    return scanner


both = pytest.mark.parametrize("make", [plain, compiled])


class Reference:
    """The same grammar, one byte at a time, in the plainest way and without bounds on its memory."""

    def __init__(self, wrapped=False):
        self.wrapped = wrapped
        self.state = "ground"
        self.text = b""
        self.run = b""  # the bytes beyond ASCII that the text so far ends with
        self.tokens = []
        self.seq = b""

    def feed(self, data):
        for byte in data:
            length = len(self.text)
            self.step(bytes((byte,)))
            self.run = self.run + bytes((byte,)) if len(self.text) > length and byte >= 0x80 else b""
        return self

    def enter(self, state):
        self.state, self.seq = state, b""

    def step(self, b):
        state = self.state
        if state in ("passthrough", "passthrough-esc"):
            self.passthrough(b)
        elif state in ("osc-esc", "string-esc"):
            if b == b"\\":
                if state == "osc-esc":
                    self.osc(b"\x1b\\")
                self.enter("ground")
            else:
                self.enter("escape")
                self.step(b)
        elif b == b"\x1b":
            if state in ("osc", "string", "dcs"):
                self.state = {"dcs": "string"}.get(state, state) + "-esc"
            else:
                self.enter("escape")
        elif b in b"\x18\x1a" and state != "ground":
            self.enter("ground")
        elif state == "ground":
            if b in b"\x0e\x0f":
                self.emit(Esc(b, self.wrapped))
            elif b >= b" ":
                self.text += b
        elif state == "escape":
            self.escape(b)
        elif state == "csi":
            self.csi(b)
        elif state == "osc":
            if b == b"\a":
                self.osc(b)
                self.enter("ground")
            elif b >= b" ":
                self.seq += b
        elif state == "dcs":
            self.seq += b
            if self.seq == b"tmux;":
                self.enter("passthrough")
            elif not b"tmux;".startswith(self.seq):
                self.state = "string"

    def passthrough(self, b):
        if self.state == "passthrough":
            if b == b"\x1b":
                self.state = "passthrough-esc"
            else:
                self.seq += b
        elif b == b"\x1b":
            self.seq += b
            self.state = "passthrough"
        elif b == b"\\":
            if len(self.seq) <= PASSTHROUGH_LIMIT:
                for token in Reference(wrapped=True).feed(self.seq).tokens:
                    self.emit(token)
            self.enter("ground")
        else:
            self.enter("escape")
            self.step(b)

    def escape(self, b):
        if b >= b"\x80":
            self.enter("ground")
            self.text += b
        elif b" " <= b < b"\x7f":
            self.seq += b
            if self.seq in (b"[", b"]", b"P", b"X", b"^", b"_"):
                self.enter({b"[": "csi", b"]": "osc", b"P": "dcs"}.get(self.seq, "string"))
            elif b >= b"0":
                if len(self.seq) <= ESC_LIMIT + 1 and self.seq not in (*(b"%c" % c for c in b"DEHMNOZ\\"),):
                    self.emit(Esc(self.seq, self.wrapped))
                self.enter("ground")

    def csi(self, b):
        if b >= b"\x80":
            self.enter("ground")
            self.text += b
        elif b" " <= b < b"@":
            self.seq += b
        elif b"@" <= b < b"\x7f":
            prefix = self.seq[:1] if self.seq[:1] in (b"<", b"=", b">", b"?") else b""
            rest = self.seq[len(prefix) :]
            count = 0
            while count < len(rest) and rest[count] in b"0123456789:;":
                count += 1
            params, inter = rest[:count], rest[count:]
            formed = all(0x20 <= each < 0x30 for each in inter) and len(self.seq) <= CSI_LIMIT
            if formed and (prefix or inter or b in b"chlnpqrstu"):
                self.emit(Csi(prefix, params, inter, b, self.wrapped))
            self.enter("ground")

    def osc(self, terminator):
        digits, _, body = self.seq.partition(b";")
        if (
            len(self.seq) <= OSC_LIMIT
            and 0 < len(digits) <= NUMBER_LIMIT
            and all(each in b"0123456789" for each in digits)
            and str(int(digits)).encode() == digits
            and int(digits) != 8
        ):
            self.emit(Osc(int(digits), body, terminator, self.wrapped))

    def emit(self, token):
        shifts = (Esc(b"\x0e"), Esc(b"\x0f"))
        if not (token in shifts and self.tokens and self.tokens[-1] == token):
            self.tokens.append(token)


# Weighted towards what makes a scanner go wrong: introducers, terminators, aborts, cuts, doubled ESC.
pieces = st.one_of(
    st.sampled_from(
        [
            b"\x1b",
            b"\x1b[",
            b"\x1b]",
            b"\x1bP",
            b"\x1bX",
            b"\x1b_",
            b"\x1b^",
            b"\x1b\\",
            b"\a",
            b"\x18",
            b"\x1a",
            b"\x0e",
            b"\x0f",
            b"\x00",
            b"\n",
            b"\x7f",
            b";",
            b"0",
            b"1;2",
            b"?",
            b">",
            b"<1",
            b" ",
            b"$",
            b"!",
            b"(",
            b"h",
            b"l",
            b"m",
            b"r",
            b"c",
            b"p",
            b"q",
            b"u",
            b"7",
            b"8",
            b"=",
            b"M",
            b"\x9b",
            b"\x9d",
            b"\x9c",
            b"\xc3\xa9",
            b"\xe2\x94\x80",
            b"\xf0\x9f\x9a\x80",
            b"\xc3",
            b"\xf0\x9f",
            b"text",
            b"\x1b[?2026h",
            b"\x1b[?25l",
            b"\x1b[31m",
            b"\x1b[0m",
            b"\x1b[H",
            b"\x1b[2 q",
            b"\x1b[>4;2m",
            b"\x1b[!p",
            b"\x1bc",
            b"\x1b(0",
            b"\x1b#8",
            b"\x1b]0;t\a",
            b"\x1b]2;\xe2\x9c\x93\x1b\\",
            b"\x1b]7501;?\a",
            b"\x1b]8;;u\x1b\\",
            b"\x1b]8;;\a",
            b"\x1b]8",
            b"\x1b]07;x\a",
            b"\x1b]110\a",
            b"\x1b]123456;x\a",
            b"\x1bPtmux;",
            b"\x1b\x1b]9;x\a",
            b"\x1b\x1b]9;x\x1b\x1b\\",
            b"\x1bPtmux;\x1b\x1bPtmux;",
            b"\x1bP1$r0m\x1b\\",
            b"tmux;",
        ]
    ),
    st.binary(max_size=6),
)
streams = st.lists(pieces, max_size=24).map(b"".join)


def cut(data, cuts):
    bounds = [0, *sorted({each % (len(data) + 1) for each in cuts}), len(data)]
    return [data[a:b] for a, b in itertools.pairwise(bounds)]


def scan(scanner, chunks):
    return [token for chunk in chunks for token in scanner.feed(chunk)]


@both
@settings(max_examples=400, deadline=None)
@given(data=streams)
def test_tokens_text_and_ground_are_those_of_the_reference(make, data):
    reference = Reference().feed(data)
    scanner = make()
    assert scanner.feed(data) == reference.tokens
    assert scanner.open == (reference.state != "ground")
    assert scanner.ground == (reference.state == "ground" and not unfinished(reference.run[-3:]))


DRAWN = {b"\x1b[?25h", b"\x1b[?25l", b"\x1b[?2026h", b"\x1b[?2026l"}

frames = st.one_of(
    st.sampled_from(
        [
            *DRAWN,
            b"\x1b]0;title\a",
            b"\x1b]2;\xe2\x9c\x93 other\x1b\\",
            b"\x1b]0;with\x18abort\a",
            b"\x1b]0;\n\a",
            b"\x1b]2;never ended",
            b"\x1b]8;;https://example.org\x1b\\link\x1b]8;;\x1b\\",
            b"\x1b]8;id=\xc3\xa9;u\a",
            b"\x1b[38;2;1;2;3mtext",
            b"\x1b[H\x1b[2J",
            b"\xe2\x94\x80 \xc3",
        ]
    ),
    pieces,
)


def is_drawn(token):
    if isinstance(token, Csi):
        sequence = b"\x1b[" + token.prefix + token.params + token.inter + token.final
        return not token.wrapped and sequence in DRAWN
    return isinstance(token, Osc) and not token.wrapped and token.number in (0, 2)


def effects(tokens, shown):
    """What was drawn with last, of each kind, wherever anything else comes, and at the end."""
    met = []
    for token in tokens:
        if is_drawn(token):
            shown[token.params if isinstance(token, Csi) else "title"] = token
        else:
            met.append((dict(shown), token))
    return [*met, dict(shown)]


@settings(max_examples=1500, deadline=None)
@given(
    data=st.lists(frames, max_size=12).map(b"".join),
    cuts=st.lists(st.integers(0, 10_000), max_size=4),
    more=st.integers(0, 31),
)
def test_the_latest_of_what_is_drawn_with_are_all_that_is_missing(data, cuts, more):
    every, latest = compiled(), Scanner(latest=True)
    latest._finder = module._compiled()
    shown, seen = {}, {}
    expected, tokens = [], []
    chunks = [*cut(data, cuts), b""]
    for number, chunk in enumerate(chunks):
        follows = chunk is not chunks[-1] and bool(more >> number & 1)
        expected += every.feed(chunk)
        tokens += latest.feed(chunk, more=follows)
        assert (latest.open, latest.ground) == (every.open, every.ground)
        assert (latest.sgr_open(), latest.link_open()) == (every.sgr_open(), every.link_open())
        if not follows:
            assert effects(tokens, seen) == effects(expected, shown)
            expected, tokens = [], []


def test_what_is_drawn_with_waits_only_for_a_bounded_number_of_chunks():
    scanner = Scanner(latest=True)
    scanner._finder = module._compiled()
    tokens = [scanner.feed(b"\x1b]0;%d\a" % number, more=True) for number in range(UNREAD_LIMIT + 1)]
    assert [len(each) for each in tokens] == [0] * (UNREAD_LIMIT - 1) + [1, 0]


def test_what_says_the_same_again_makes_no_token_unless_something_came_between():
    scanner = Scanner(latest=True)
    scanner._finder = module._compiled()
    frame = b"\x1b[?2026h\x1b[?25l\x1b]0;busy\a\x1b[1mtext\x1b[?25h\x1b[?2026l"
    shown = [Osc(0, b"busy", b"\a"), Csi(b"?", b"25", b"", b"h"), Csi(b"?", b"2026", b"", b"l")]
    assert scanner.feed(frame) == shown
    assert scanner.feed(frame) == []
    assert scanner.feed(b"\x1bc") == [Esc(b"c")]
    assert scanner.feed(frame) == shown


def test_of_a_hundred_frames_the_last_is_seen():
    scanner = Scanner(latest=True)
    scanner._finder = module._compiled()
    frame = b"\x1b[?2026h\x1b[?25l\x1b]0;%d\a\x1b[1mtext\x1b[?25h\x1b[?2026l"
    tokens = scanner.feed(b"".join(frame % number for number in range(100)))
    assert tokens == [
        Osc(0, b"99", b"\a"),
        Csi(b"?", b"25", b"", b"h"),
        Csi(b"?", b"2026", b"", b"l"),
    ]


def unfinished(tail):
    """Whether text ends within a character: whether there is a way to go on that makes one of its last bytes."""
    more = [
        b"".join(each) for n in (1, 2, 3) for each in itertools.product((b"\x80", b"\x90", b"\xbf"), repeat=n)
    ]
    return any(decodes(tail[start:] + each) for start in range(len(tail)) for each in more)


def decodes(data):
    try:
        return len(data.decode("utf-8", "surrogatepass")) == 1  # a surrogate is waited for as any character
    except UnicodeDecodeError:
        return False


@both
@settings(max_examples=400, deadline=None)
@given(data=streams, cuts=st.lists(st.integers(0, 10_000), max_size=6))
def test_any_chunking_gives_the_same(make, data, cuts):
    whole = make()
    tokens = whole.feed(data)
    pieces = make()
    assert scan(pieces, cut(data, cuts)) == tokens
    assert (pieces.open, pieces.ground) == (whole.open, whole.ground)
    single = make()
    assert scan(single, [data[i : i + 1] for i in range(len(data))]) == tokens
    assert (single.open, single.ground) == (whole.open, whole.ground)


@settings(max_examples=200, deadline=None)
@given(data=streams, cuts=st.lists(st.integers(0, 10_000), max_size=6))
def test_both_finders_find_the_same_however_the_work_is_shared(data, cuts):
    scanner = plain()
    tokens = []
    for count, chunk in enumerate(cut(data, cuts)):
        scanner._finder = module._compiled() if count % 2 else module._PLAIN
        tokens += scanner.feed(chunk)
    assert tokens == compiled().feed(data)


@settings(max_examples=60, deadline=None)
@given(data=st.lists(streams, min_size=1, max_size=4).map(b"".join), repeat=st.integers(1, 400))
def test_long_streams_are_read_as_short_ones(data, repeat):
    data = (data * repeat)[: 3 * WINDOW]
    assert (
        scan(plain(), [data[i : i + 4095] for i in range(0, len(data), 4095)])
        == Reference().feed(data).tokens
    )
    assert compiled().feed(data) == Reference().feed(data).tokens


def wrap(data):
    return b"\x1bPtmux;" + data.replace(b"\x1b", b"\x1b\x1b") + b"\x1b\\"


@both
@pytest.mark.parametrize(
    ("data", "tokens"),
    [
        (b"\x1b[?1049h", [Csi(b"?", b"1049", b"", b"h")]),
        (b"\x1b[>4;2m", [Csi(b">", b"4;2", b"", b"m")]),
        (
            b"\x1b[=1;1u\x1b[<u\x1b[>5u\x1b[?u",
            [
                Csi(b"=", b"1;1", b"", b"u"),
                Csi(b"<", b"", b"", b"u"),
                Csi(b">", b"5", b"", b"u"),
                Csi(b"?", b"", b"", b"u"),
            ],
        ),
        (b"\x1b[4h\x1b[20l", [Csi(b"", b"4", b"", b"h"), Csi(b"", b"20", b"", b"l")]),
        (b"\x1b[2;20r", [Csi(b"", b"2;20", b"", b"r")]),
        (b"\x1b[6 q", [Csi(b"", b"6", b" ", b"q")]),
        (b"\x1b[!p", [Csi(b"", b"", b"!", b"p")]),
        (b"\x1b[?2026$p", [Csi(b"?", b"2026", b"$", b"p")]),
        (b"\x1b[22;0t", [Csi(b"", b"22;0", b"", b"t")]),
        (b"\x1b[c\x1b[5n", [Csi(b"", b"", b"", b"c"), Csi(b"", b"5", b"", b"n")]),
        (b"\x1b=\x1b>\x1b7\x1b8\x1bc", [Esc(b"="), Esc(b">"), Esc(b"7"), Esc(b"8"), Esc(b"c")]),
        (b"\x1b(0\x1b)B\x1b#8\x1b%G", [Esc(b"(0"), Esc(b")B"), Esc(b"#8"), Esc(b"%G")]),
        (b"a\x0eb\x0eq\x0fc", [Esc(b"\x0e"), Esc(b"\x0f")]),
        (b"\x0e\x1bc\x0e", [Esc(b"\x0e"), Esc(b"c"), Esc(b"\x0e")]),
        (b"\x1b]0;title\a", [Osc(0, b"title", b"\a")]),
        (b"\x1b]104\x1b\\\x1b]110\a", [Osc(104, b"", b"\x1b\\"), Osc(110, b"", b"\a")]),
        (b"\x1b]0;a\x00b\nc\a", [Osc(0, b"abc", b"\a")]),
        (b"\x1b[?2\n5h", [Csi(b"?", b"25", b"", b"h")]),
        (b"\x1b[?25\xe2\x94\x80h", []),
        (b"\x1b[?1\x1ah\x1b[?1\x18h\x1b\x1ac\x1b(\x1a0\x1b(\x180", []),
        (b"\x1b]0;a\x1ab\a\x1b]0;a\x18b\a\x1b]0\a", [Osc(0, b"", b"\a")]),
        (
            b"\x1b]0;a%sb\x1b\\" % bytes(each for each in range(0x20) if each not in b"\a\x18\x1a\x1b"),
            [Osc(0, b"ab", b"\x1b\\")],
        ),
        (b"\x1b]80;x\a\x1b]8\a\x1b]9\a", [Osc(80, b"x", b"\a"), Osc(9, b"", b"\a")]),
        (b"\x1b[1?h\x1b[?1$2h\x1b[??1h", []),
        (b"\x1b[31m\x1b[1;1H\x1b[K\x1b[2J\x1b[3A\x1bM\x1b]8;;u\a", []),
        (b"\x1b]L;x\a\x1b];x\a\x1b]01;x\a", []),
        (b"\x1b_Gabc\a\x1b[?1h\x1b\\", [Csi(b"?", b"1", b"", b"h")]),
        (b"\x1bPtmux;\x1b\x1b]9;hi\a\x1b\\", [Osc(9, b"hi", b"\a", wrapped=True)]),
        (
            b"\x1bPtmux;\x1b\x1b[?1h\x1b\x1bc\x1b\\",
            [Csi(b"?", b"1", b"", b"h", wrapped=True), Esc(b"c", wrapped=True)],
        ),
        (b"\x1bPtmux;\x1b\x1b]9;a\x18b\x1b\x1b]9;c\a\x1b\\", [Osc(9, b"c", b"\a", wrapped=True)]),
        # An inner string that is not ended with the passthrough is dropped with it.
        (b"\x1bPtmux;\x1b\x1b]9;hi\x1b\\\a\x1b]9;x\a", [Osc(9, b"x", b"\a")]),
        # Nested, as by a tmux in a tmux.
        (
            wrap(wrap(b"\x1b]9;hi\x1b\\") + b"\x1b]9;ho\a"),
            [Osc(9, b"hi", b"\x1b\\", True), Osc(9, b"ho", b"\a", True)],
        ),
        # A lone ESC within it is not doubled: it starts a new sequence, and the content is dropped.
        (b"\x1bPtmux;\x1b\x1b]9;hi\a\x1b[?1h", [Csi(b"?", b"1", b"", b"h")]),
        (b"\x1bPtmuxy;\x1b\x1b]9;hi\a\x1b\\", [Osc(9, b"hi", b"\a")]),
    ],
)
def test_what_makes_a_token(make, data, tokens):
    assert make().feed(data) == tokens
    assert scan(make(), [data[i : i + 1] for i in range(len(data))]) == tokens
    for at in range(1, len(data)):
        assert scan(make(), [data[:at], data[at:]]) == tokens


@both
@pytest.mark.parametrize(
    "data",
    [
        b"\x1b",
        b"\x1b[",
        b"\x1b[3",
        b"\x1b(",
        b"\x1b]0;x",
        b"\x1b]0;x\x1b",
        b"\x1bP",
        b"\x1bPq",
        b"\x1bPq\x1b",
        b"\x1b_x",
        b"\x1bPtmux;x",
        b"\x1bPtmux;\x1b",
        b"\x1bPtmux;\x1b\x1b",
        b"\xc3",
        b"\xe2\x94",
        b"\xf0\x9f\x9a",
        b"x\xf0",
        b"\x1b\xc3",
        b"\x1b(\xc3",
        b"\x1b[1\xc3",
    ],
)
def test_not_ground_while_something_is_open(make, data):
    for prefix in (b"", b"text", b"\x1b[0m"):
        scanner = make()
        scanner.feed(prefix + data)
        assert not scanner.ground
    scanner = make()
    scan(scanner, [data[i : i + 1] for i in range(len(data))])
    assert not scanner.ground


@both
@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"text",
        b"\xc3\xa9",
        b"\xf0\x9f\x9a\x80",
        b"\x1b[0m",
        b"\x1bc",
        b"\x1b]0;x\a",
        b"\x1b]0;x\x1b\\",
        b"\x1bPq\x1b\\",
        b"\x1b[\x18",
        b"\x1b]0;x\x1a",
        b"\x1bPtmux;x\x1b\\",
        b"\x9b",
        b"\x80\x80",
        b"\xff",
        b"\xc3x",
        b"\x1b\\",
    ],
)
def test_ground_where_nothing_is_open(make, data):
    scanner = make()
    assert scanner.ground
    scanner.feed(data)
    assert scanner.ground
    scanner = make()
    scan(scanner, [data[i : i + 1] for i in range(len(data))])
    assert scanner.ground


@pytest.mark.parametrize(
    ("data", "is_open"),
    [
        (b"plain", False),
        (b"\x1b[31mred", True),
        (b"\x1b[1m\x1b[0m", False),
        (b"\x1b[1m\x1b[m", False),
        (b"\x1b[0;1m", True),
        (b"\x1b[1;0m", False),
        (b"\x1b[0m\x1b[>4;2m\x1b[?4m", False),
        (b"\x1b[38:2::1:2:0m", True),
        (b"\x1b[31m\x1b[H\x1b[K\x1b[?25h", True),
        (b"\x1b[31", False),
        (b"\x1b[00m", False),
    ],
)
def test_sgr_open_is_what_the_last_sgr_left(data, is_open):
    for chunks in ([data], [data[i : i + 1] for i in range(len(data))]):
        scanner = Scanner()
        scan(scanner, chunks)
        assert scanner.sgr_open() is is_open


def test_sgr_open_remembers_what_is_long_past():
    for sgr, is_open in ((b"\x1b[31m", True), (b"\x1b[0m", False)):
        scanner = Scanner()
        scanner.feed(b"\x1b[32m\x1b[0m" + sgr)
        for _ in range(3 * RECENT_LIMIT // 4000):
            scanner.feed(b"\x1b[1;1Hmoves and an m" * 200)
            scanner.feed(b"plain\r\n" * 1000)
        assert scanner.sgr_open() is is_open


def test_sgr_open_is_found_before_any_number_of_other_sequences():
    for sgr, is_open in ((b"\x1b[31m", True), (b"\x1b[0m", False)):
        for count in (LOOK_BACK_LIMIT - 1, LOOK_BACK_LIMIT, LOOK_BACK_LIMIT + 1, 9 * LOOK_BACK_LIMIT):
            scanner = Scanner()
            scanner.feed(b"\x1b[1m\x1b[0m" + sgr + b"\x1b[H" * count)
            assert scanner.sgr_open() is is_open


def test_an_sgr_cut_where_the_looking_back_ends_is_seen():
    for at in range(1, 5):
        scanner = Scanner()
        scanner.feed(b"\x1b[H" + b"x" * RECENT_LIMIT + b"\x1b[31m"[:at])
        scanner.feed(b"\x1b[31m"[at:])
        assert scanner.sgr_open(), at


@pytest.mark.parametrize(
    ("data", "is_open"),
    [
        (b"", False),
        (b"\x1b]8;;http://x\x1b\\link", True),
        (b"\x1b]8;id=1;u\alink\x1b]8;;\a", False),
        (b"\x1b]8;;u\alink\x1b]8;id=1;\x1b\\", False),
        (b"\x1b]8;;u\alink\x1b]8;;", True),
        (b"\x1b]8;;u\x1b[H", False),
    ],
)
def test_link_open(data, is_open):
    for chunks in ([data], [data[i : i + 1] for i in range(len(data))]):
        scanner = Scanner()
        scan(scanner, chunks)
        assert scanner.link_open() is is_open


def held(scanner):
    """Return the bytes of memory that a scanner keeps alive."""
    size = sum(
        sys.getsizeof(each)
        for each in (
            scanner._body,
            scanner._held,
            scanner._tail,
            scanner._recent,
            scanner._known,
        )
    )
    size += sum(sys.getsizeof(each) for each in scanner._recent)
    for key, token in scanner._known.items():
        size += sys.getsizeof(key) + sys.getsizeof(token)
        size += sum(sys.getsizeof(getattr(token, name)) for name in getattr(token, "__slots__", ()))
    return size


@both
@pytest.mark.parametrize(
    "beginning", [b"\x1b]0;", b"\x1b]8;", b"\x1b[", b"\x1b(", b"\x1bP", b"\x1bPtmux;", b"\x1b_", b"\x1bX"]
)
@pytest.mark.parametrize("filler", [b"(", b"1", b";", b"\x00", b"\x1b\x1b", b"\x1b]0;", b"\xff"])
def test_what_never_ends_takes_bounded_memory(make, beginning, filler):
    scanner = make()
    scanner.feed(beginning)
    chunk = filler * (4096 // len(filler))
    most = 0
    for _ in range(200):
        scanner.feed(chunk)
        most = max(most, held(scanner))
    assert most < MEMORY_LIMIT
    scanner.feed(b"\x18")
    scanner.feed(b"\x1b\\")  # a passthrough does not end at CAN
    assert scanner.ground
    assert scanner.feed(b"\x1b]7501;?\a") == [Osc(7501, b"?", b"\a")]


@both
def test_millions_of_different_sequences_take_bounded_memory(make):
    scanner = make()
    for each in range(20_000):
        scanner.feed(b"\x1b]0;%d%s\a\x1b[?%dh\x1b(%c" % (each, b"x" * (each % 200), each, 48 + each % 70))
    assert len(scanner._known) <= KNOWN_LIMIT
    assert max(map(len, scanner._known)) <= KNOWN_SIZE_LIMIT
    assert held(scanner) < MEMORY_LIMIT


@both
@pytest.mark.parametrize(
    ("before", "filler", "after", "room"),
    [
        (b"\x1b]0;", b"x", b"\a", OSC_LIMIT - 2),
        (b"\x1b]0;", b"x", b"\x1b\\", OSC_LIMIT - 2),
        (b"\x1b[?", b"1", b"h", CSI_LIMIT - 1),
        (b"\x1b", b"(", b"0", ESC_LIMIT),
        (b"\x1b]", b"1", b";x\a", NUMBER_LIMIT),
        (b"\x1bPtmux;\x1b\x1b]9;x\a", b"x", b"\x1b\\", PASSTHROUGH_LIMIT - 6),
    ],
)
def test_the_longest_is_read_and_a_longer_one_is_dropped(make, before, filler, after, room):
    for size, count in ((room, 1), (room + 1, 0), (3 * room, 0)):
        data = before + filler * size + after
        for chunks in ([data], [data[:7], data[7:]], [data[i : i + 100] for i in range(0, len(data), 100)]):
            scanner = make()
            assert len(scan(scanner, chunks)) == count
            assert scanner.ground
            assert scanner.feed(b"\x1b]7501;?\a") == [Osc(7501, b"?", b"\a")]


@both
def test_controls_do_not_count_against_the_limit(make):
    data = b"\x1b]7501;state=idle" + b"\x00" * 3 * OSC_LIMIT + b"\a"
    assert make().feed(data) == [Osc(7501, b"state=idle", b"\a")]
    assert scan(make(), [data[i : i + 50] for i in range(0, len(data), 50)]) == [
        Osc(7501, b"state=idle", b"\a")
    ]


def test_the_compiled_pattern_comes_only_when_a_program_draws():
    scanner = Scanner()
    scanner.feed(b"plain text\r\n" * RECENT_LIMIT)
    scanner.feed(b"\x1b[?2026h\x1b]7501;?\a")
    assert scanner._finder is module._PLAIN
    scanner.feed(b"\x1b[31mcolour\x1b[0m" * (RECENT_LIMIT // 10))
    assert scanner._finder is module._compiled()


def test_tokens_compare_and_show_what_they_are():
    assert Osc(0, b"a", b"\a") != Osc(0, b"a", b"\a", wrapped=True)
    assert Csi(b"", b"", b"", b"c") != Esc(b"c")
    for token in (Osc(9, b"x", b"\a", True), Csi(b"?", b"1", b"$", b"p", True), Esc(b"(0", True)):
        assert eval(repr(token)) == token


def test_passthroughs_are_nested_as_deeply_as_fits():
    data = b"\x1b]9;x\a"
    depth = 0
    while len(data) < PASSTHROUGH_LIMIT:
        assert len(Scanner().feed(data)) == 1
        data = wrap(data)
        depth += 1
    assert 10 < depth < 20
    assert Scanner().feed(wrap(data)) == []
