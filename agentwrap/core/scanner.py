"""Terminal output grammar: bytes in, tokens out, no meaning assigned.

What lives here: where a control sequence begins and ends, in any chunking, with bounded memory. It must not
know what a sequence does, which number a status report has, or what a mode is.

Framing (ECMA-48 and the VT500 state machine, as UTF-8 terminals read them): C1 controls are recognised only
in their 7-bit form; CAN and SUB abort; ESC not followed by a backslash drops an open string and starts a new
sequence; BEL ends an OSC, and no other string. C0 controls inside a sequence are dropped from it; a byte
beyond ASCII ends one that is no string.

Cursor movement, erasing, colours and hyperlinks are the bulk of what a full-screen program writes. They make
no tokens, and are stepped over without a look at each. What makes a token is listed at `Scanner`.

Two ways lead through a chunk. A finder steps from one whole, clean sequence to the next. There are two that
find the same: `_Plain`, and `_Compiled`, for which `re` must be imported, and which takes over when a program
has shown that it draws. What a finder does not take (cut off, with controls inside, not well-formed, strings
other than OSC) goes byte by byte through the state machine.

A program that draws repeats a few sequences with every frame. Where only the last of them is asked for, a
chunk with nothing else that makes a token takes a third, quicker way: `_is_drawn`.
"""

from __future__ import annotations

OSC_LIMIT = 8192
"""Bytes of one OSC after its introducer, C0 dropped: twice the largest report. A longer one is dropped."""

CSI_LIMIT = 256
"""Bytes of one CSI between introducer and final: no real sequence comes near. A longer one is dropped."""

ESC_LIMIT = 8
"""Intermediate bytes of one escape sequence. A longer one is dropped."""

PASSTHROUGH_LIMIT = 65536
"""Bytes of one tmux passthrough, unwrapped. A longer one (an image) is dropped."""

NUMBER_LIMIT = 5
"""Digits of an OSC's number: the longest in use has four. A longer one makes no token."""

HOLD_LIMIT = 256
"""Bytes of a sequence cut by the end of a chunk that are kept, to be looked at again with the next."""

KNOWN_LIMIT = 256
"""Sequences remembered with their token: programs repeat themselves. Full, it starts anew."""

KNOWN_SIZE_LIMIT = 128
"""Bytes of a sequence worth remembering."""

RECENT_LIMIT = 32768
"""Bytes of output with sequences kept, at the least, for `sgr_open` and `link_open` to look back at.

Also how much of it is scanned in plain Python before the compiled pattern is worth its import, which takes
several milliseconds, as long as this does.
"""

RECENT_PIECES = 64
"""Pieces they are kept in: a byte by itself takes fifty."""

LOOK_BACK_LIMIT = 64
"""Sequences looked at one by one, from the last backwards, for the last hyperlink or SGR."""

UNREAD_LIMIT = 16
"""Chunks with nothing but what frames are drawn with, kept until the last is known."""

WINDOW = OSC_LIMIT
"""Bytes a finder is given at once. What it does not take is copied: this bounds the copying. It also keeps an
OSC that a finder takes within its limit."""

BEL = b"\a"
ST = b"\x1b\\"

_GROUND, _ESCAPE, _CSI, _OSC, _DCS, _STRING, _PASSTHROUGH = range(7)

_C0 = bytes(range(0x20))
_PREFIXES = b"<=>?"
_PARAMETERS = b"0123456789:;"
_INTERMEDIATES = bytes(range(0x20, 0x30))
_ALL_BUT_C0 = bytes(range(0x20, 0x100))
_SHIFTS = b"\x0e\x0f"
_ALL_BUT_SHIFTS = bytes(byte for byte in range(256) if byte not in _SHIFTS)
_PASSTHROUGH_HEAD = b"tmux;"
_LINK = 8

# Plain CSI (no prefix, no intermediate) that make a token: modes, scroll region, queries, window operations,
# saved cursor. All others move, erase, insert, delete or colour.
_CSI_FINALS = b"chlnpqrstu"
_CSI_HARMLESS = bytes(byte for byte in range(0x40, 0x7F) if byte not in _CSI_FINALS)

# ESC finals that make none: index, next line, tab stop, reverse index, single shifts, identify, a stray ST.
_ESC_IGNORED = b"DEHMNOZ\\"

# What follows the ESC, as patterns: sequences without a token; whole, clean sequences; beginnings of such.
_HARMLESS = rb"\[[0-9:;]*+[@-bd-gijkmov-~]|\]8;[^\x00-\x1f]*+(?:\x07|\x1b\\)|[DEHMNOZ\\]"
_WHOLE = (
    rb"\[[<-?]?+[0-9:;]*+[ -/]*+[@-~]|\][^\x00-\x1f]*+(?:\x07|\x1b\\)"
    rb"|[0-OQ-WYZ`-~]|[ -/]{1,8}+[0-~]"
)
_CUT = rb"\[[<-?]?+[0-9:;]*+[ -/]*+|\][^\x00-\x1f]*+\x1b?+|[ -/]*+"

# What a frame is drawn with, of which only the last counts: cursor shown or hidden, synchronized update,
# window title. The pattern finds the ESC of all else that makes a token, and looks for the commonest first.
_CURSOR = b"\x1b[?25"
_SYNC = b"\x1b[?2026"
_TITLE = b"\x1b]"
_TITLES = (b"\x1b]0;", b"\x1b]2;")
_NOT_DRAWN = rb"\x1b(?!\[[0-9:;]*+[@-bd-gijkmov-~])(?!\\)(?!\][028];)(?!\[\?2(?:5|026)[hl])(?![DEHMNOZ])"


class Osc:
    """An operating system command: `number`, the `body` after its `;` without C0, and how it was ended."""

    __slots__ = ("body", "number", "terminator", "wrapped")

    def __init__(self, number: int, body: bytes, terminator: bytes, wrapped: bool = False) -> None:
        self.number = number
        self.body = body
        self.terminator = terminator
        self.wrapped = wrapped

    def __repr__(self) -> str:
        return f"Osc({self.number}, {self.body!r}, {self.terminator!r}, {self.wrapped})"

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Osc)
            and self.number == other.number
            and self.body == other.body
            and self.terminator == other.terminator
            and self.wrapped == other.wrapped
        )

    __hash__ = None  # type: ignore[assignment]


class Csi:
    """A control sequence: `prefix` (one of `<=>?`, or empty), `params`, `inter`mediates and `final` byte."""

    __slots__ = ("final", "inter", "params", "prefix", "wrapped")

    def __init__(
        self, prefix: bytes, params: bytes, inter: bytes, final: bytes, wrapped: bool = False
    ) -> None:
        self.prefix = prefix
        self.params = params
        self.inter = inter
        self.final = final
        self.wrapped = wrapped

    def __repr__(self) -> str:
        return f"Csi({self.prefix!r}, {self.params!r}, {self.inter!r}, {self.final!r}, {self.wrapped})"

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Csi)
            and self.final == other.final
            and self.params == other.params
            and self.prefix == other.prefix
            and self.inter == other.inter
            and self.wrapped == other.wrapped
        )

    __hash__ = None  # type: ignore[assignment]


class Esc:
    """An escape sequence by its `code`, intermediates and final: `c`, `=`, `(0`. Or a shift, SO or SI."""

    __slots__ = ("code", "wrapped")

    def __init__(self, code: bytes, wrapped: bool = False) -> None:
        self.code = code
        self.wrapped = wrapped

    def __repr__(self) -> str:
        return f"Esc({self.code!r}, {self.wrapped})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Esc) and self.code == other.code and self.wrapped == other.wrapped

    __hash__ = None  # type: ignore[assignment]


class Scanner:
    """Finds the control sequences in a program's output.

    Tokens: every OSC with a number, except hyperlinks (8); CSI with a prefix or an intermediate, or with one
    of the finals `c h l n p q r s t u`; ESC sequences except `D E H M N O Z` and a stray ST; SO and SI, each
    as an `Esc` of its one byte, but never the same twice in a row. The content of a tmux passthrough is
    scanned when it is complete, its tokens are marked `wrapped`. Tokens may be shared: treat them as frozen.

    With `latest`, of what a frame is drawn with (cursor shown or hidden, synchronized update, window title)
    only the last of each that follow one another makes a token, and none where the one before said the same.
    """

    __slots__ = (
        "_body",
        "_escaped",
        "_finder",
        "_held",
        "_known",
        "_latest",
        "_overlong",
        "_recent",
        "_recent_size",
        "_sgr",
        "_shift",
        "_shown",
        "_state",
        "_tail",
        "_unread",
        "_wrapped",
    )

    def __init__(self, *, wrapped: bool = False, latest: bool = False) -> None:
        self._wrapped = wrapped
        self._latest = latest
        self._state = _GROUND
        self._body = bytearray()  # what an open sequence has collected
        self._escaped = False  # the last byte of an open string was ESC
        self._overlong = False  # the open sequence is beyond its limit: its end is awaited, to drop it
        self._held = b""  # in ground state, a sequence cut by the end of the chunk
        self._tail = (
            b""  # the last bytes of ground text, at most three, where they may be part of a character
        )
        self._shift = b""  # the last token, where that was a shift
        self._shown: dict[bytes, bytes] = {}  # of what frames are drawn with, what made the last tokens
        self._unread: list[tuple[bytes, int]] = []  # chunks only drawn with, and where of each a cut begins
        self._finder: _Plain | _Compiled = _PLAIN
        self._known: dict[bytes, Osc | Csi | Esc | None] = {}
        self._recent: list[bytes] = []
        self._recent_size = 0
        self._sgr = False  # as the output before `_recent` left it

    @property
    def open(self) -> bool:
        """Whether an escape sequence or a control string has begun and not ended."""
        return self._state != _GROUND or self._held != b""

    @property
    def ground(self) -> bool:
        """Whether other output may come in between here: no sequence, string or UTF-8 character is open."""
        return self._state == _GROUND and not self._held and not _is_partial(self._tail)

    def sgr_open(self) -> bool:
        """Whether the last SGR (colours, bold) left anything on, or may have: one that ends in 0 did not."""
        found = _last_sgr(b"".join(self._recent))
        return self._sgr if found is None else found

    def link_open(self) -> bool:
        """Whether the last hyperlink was not closed, as far as the last `RECENT_LIMIT` bytes can tell."""
        return _last_link(b"".join(self._recent))

    def feed(self, data: bytes, *, more: bool = False) -> list[Osc | Csi | Esc]:
        """Take the next chunk and return the tokens that it completes.

        `more`: the next one, which may be empty, follows at once. With `latest`, what this one is drawn with
        may be left for it.
        """
        tokens: list[Osc | Csi | Esc] = []
        if not data:
            return self._read_drawn() if self._unread else tokens
        shifts = b"\x0e" in data or b"\x0f" in data
        if b"\x1b" not in data and not shifts and self._state == _GROUND and not self._held:
            self._end_text(data)
            return self._read_drawn() if self._unread and not more else tokens
        self._remember(data)
        if self._held:
            data = self._held + data
            self._held = b""
        if self._latest and not shifts and self._state == _GROUND and self._is_drawn(data):
            return tokens if more and len(self._unread) < UNREAD_LIMIT else self._read_drawn()
        if self._unread:
            tokens = self._read_drawn()
        pos = 0
        end = len(data)
        while pos < end:
            state = self._state
            if state == _GROUND:
                pos = self._in_ground(data, pos, tokens, shifts)
            elif state == _ESCAPE:
                pos = self._in_escape(data, pos, tokens)
            elif state == _CSI:
                pos = self._in_csi(data, pos, tokens)
            elif state == _OSC:
                pos = self._in_osc(data, pos, tokens)
            elif state == _DCS:
                pos = self._in_dcs(data, pos)
            elif state == _STRING:
                pos = self._in_string(data, pos)
            else:
                pos = self._in_passthrough(data, pos, tokens)
        if tokens:
            self._shown.clear()  # anything may have come between
            if shifts or self._shift:
                return self._without_repeated_shifts(tokens)
        return tokens

    def _remember(self, data: bytes) -> None:
        """Keep what `sgr_open` and `link_open` look back at, and see whether the program draws."""
        recent = self._recent
        if len(data) > 2 * RECENT_LIMIT:
            recent.append(data[:-RECENT_LIMIT])
            recent.append(data[-RECENT_LIMIT:])
        else:
            recent.append(data)
        self._recent_size += len(data)
        if len(recent) > RECENT_PIECES:
            recent[1:] = [b"".join(recent[1:])]
        if self._recent_size <= 2 * RECENT_LIMIT:
            if self._recent_size > RECENT_LIMIT:
                self._finder = _compiled()
            return
        self._finder = _compiled()
        count = 0
        while self._recent_size - len(recent[count]) >= RECENT_LIMIT:
            self._recent_size -= len(recent[count])
            count += 1
        following = b"".join(recent[count:])
        for dropped in reversed(recent[:count]):
            following = dropped + following[:CSI_LIMIT]  # its last sequence may go on in what follows
            found = _last_sgr(following)
            if found is not None:
                self._sgr = found
                break
        del recent[:count]

    def _without_repeated_shifts(self, tokens: list[Osc | Csi | Esc]) -> list[Osc | Csi | Esc]:
        kept: list[Osc | Csi | Esc] = []
        for token in tokens:
            shift = token.code if isinstance(token, Esc) and token.code in _SHIFTS else b""
            if not shift or shift != self._shift:
                kept.append(token)
            self._shift = shift
        return kept

    def _begin(self, state: int) -> None:
        self._state = state
        self._body.clear()
        self._escaped = False
        self._overlong = False
        self._tail = b""

    def _end_text(self, data: bytes) -> None:
        if data[-1] < 0x80:
            self._tail = b""
        else:
            self._tail = (self._tail + data[-3:])[-3:]

    def _in_ground(self, data: bytes, pos: int, tokens: list[Osc | Csi | Esc], shifts: bool) -> int:
        size = len(data)
        end = size if size - pos <= WINDOW else pos + WINDOW
        known = self._known
        found, rest = self._finder.find(data, pos, end, known, shifts)
        for sequence in found:
            token = known[sequence] if sequence in known else self._read(sequence)
            if token is not None:
                tokens.append(token)
        if rest < 0:
            self._end_text(data[pos:end] if end - pos < 3 else data[end - 3 : end])
            return end
        if size - rest <= HOLD_LIMIT and self._finder.is_cut(data[rest:]):
            self._held = data[rest:]
            return size
        self._begin(_ESCAPE)
        return rest + 1

    def _is_drawn(self, data: bytes) -> bool:
        """Take a whole chunk that makes tokens only of what is drawn with; leave those to `_read_drawn`."""
        end = self._finder.end_of_drawn(data)
        if end < 0:
            return False
        title = _last_title(data, end)
        if title >= 0 and not self._finder.whole(data, title, min(end, title + WINDOW)):
            return False
        self._unread.append((data, end))
        if end < len(data):
            self._held = data[end:]
        else:
            self._end_text(data[-3:])
        return True

    def _read_drawn(self) -> list[Osc | Csi | Esc]:
        """Return the tokens of what was drawn with last, where the last time it was not the same."""
        unread, self._unread = self._unread, []
        shown = self._shown
        news: list[tuple[int, int, bytes, bytes]] = []
        for kind in (_CURSOR, _SYNC, _TITLE):
            for number, (data, end) in enumerate(reversed(unread)):
                if kind == _TITLE:
                    at = _last_title(data, end)
                    sequence = self._finder.whole(data, at, end) if at >= 0 else b""
                elif b"?" in data:  # a byte by itself is found quickest
                    at = data.rfind(kind, 0, end)
                    sequence = data[at : at + len(kind) + 1]
                else:
                    continue
                if at >= 0:
                    if shown.get(kind) != sequence:
                        shown[kind] = sequence
                        news.append((-number, at, kind, sequence))
                    break
        tokens: list[Osc | Csi | Esc] = []
        if news:
            news.sort()
            for *_, sequence in news:
                token = self._known.get(sequence) or self._read(sequence)
                if token is not None:
                    tokens.append(token)
            self._shift = b""
        return tokens

    def _read(self, sequence: bytes) -> Osc | Csi | Esc | None:
        """Make the token of a whole, clean sequence, and remember it."""
        token: Osc | Csi | Esc | None
        kind = sequence[1:2]
        if not kind:
            token = Esc(sequence, self._wrapped)
        elif kind == b"[":
            token = self._csi(sequence[2:-1], sequence[-1:])
        elif kind == b"]":
            terminator = BEL if sequence[-1] == 0x07 else ST
            token = self._osc(sequence[2 : -len(terminator)], terminator)
        else:
            token = self._esc(sequence[1:])
        if len(sequence) <= KNOWN_SIZE_LIMIT:
            if len(self._known) >= KNOWN_LIMIT:
                self._known.clear()
            self._known[sequence] = token
        return token

    def _csi(self, body: bytes, final: bytes) -> Csi | None:
        rest = body.lstrip(_PREFIXES)
        prefix = body[: len(body) - len(rest)]
        inter = rest.lstrip(_PARAMETERS)
        if len(body) > CSI_LIMIT or len(prefix) > 1 or inter.strip(_INTERMEDIATES):
            return None
        if not prefix and not inter and final not in _CSI_FINALS:
            return None
        return Csi(prefix, rest[: len(rest) - len(inter)], inter, final, self._wrapped)

    def _osc(self, content: bytes, terminator: bytes) -> Osc | None:
        digits, _, body = content.partition(b";")
        if len(digits) > NUMBER_LIMIT or not digits.isdigit():
            return None
        number = int(digits)
        if number == _LINK or (digits[0] == 0x30 and len(digits) > 1):
            return None
        return Osc(number, body, terminator, self._wrapped)

    def _esc(self, code: bytes) -> Esc | None:
        if len(code) > ESC_LIMIT + 1 or (len(code) == 1 and code in _ESC_IGNORED):
            return None
        return Esc(code, self._wrapped)

    def _in_escape(self, data: bytes, pos: int, tokens: list[Osc | Csi | Esc]) -> int:
        body = self._body
        for i in range(pos, len(data)):
            byte = data[i]
            if byte < 0x20:
                if byte == 0x1B:
                    self._begin(_ESCAPE)
                elif byte in (0x18, 0x1A):
                    self._begin(_GROUND)
                    return i + 1
            elif byte < 0x30:
                if len(body) <= ESC_LIMIT:
                    body.append(byte)
            elif byte < 0x7F:
                self._end_escape(byte, tokens)
                return i + 1
            elif byte > 0x7F:
                self._begin(_GROUND)
                return i
        return len(data)

    def _end_escape(self, byte: int, tokens: list[Osc | Csi | Esc]) -> None:
        body = self._body
        if not body and byte == 0x5B:
            self._begin(_CSI)
        elif not body and byte == 0x5D:
            self._begin(_OSC)
        elif not body and byte == 0x50:
            self._begin(_DCS)
        elif not body and byte in b"X^_":
            self._begin(_STRING)
        else:
            body.append(byte)
            token = self._esc(bytes(body))
            if token:
                tokens.append(token)
            self._begin(_GROUND)

    def _in_csi(self, data: bytes, pos: int, tokens: list[Osc | Csi | Esc]) -> int:
        body = self._body
        for i in range(pos, len(data)):
            byte = data[i]
            if byte < 0x20:
                if byte == 0x1B:
                    self._begin(_ESCAPE)
                    return i + 1
                if byte in (0x18, 0x1A):
                    self._begin(_GROUND)
                    return i + 1
            elif byte < 0x40:
                if len(body) <= CSI_LIMIT:
                    body.append(byte)
            elif byte < 0x7F:
                token = self._csi(bytes(body), data[i : i + 1])
                if token:
                    tokens.append(token)
                self._begin(_GROUND)
                return i + 1
            elif byte > 0x7F:
                self._begin(_GROUND)
                return i
        return len(data)

    def _in_osc(self, data: bytes, pos: int, tokens: list[Osc | Csi | Esc]) -> int:
        if self._escaped:
            if data[pos] != 0x5C:
                self._begin(_ESCAPE)
                return pos
            self._end_osc(ST, tokens)
            return pos + 1
        esc = data.find(b"\x1b", pos)
        end = len(data) if esc < 0 else esc
        bel = data.find(b"\a", pos, end)
        if bel >= 0:
            end = bel
        abort = _find_abort(data, pos, end)
        if abort >= 0:
            self._begin(_GROUND)
            return abort + 1
        if not self._overlong:
            self._body += data[pos:end].translate(None, _C0)
            if len(self._body) > OSC_LIMIT:
                self._overlong = True
                self._body.clear()
        if bel >= 0:
            self._end_osc(BEL, tokens)
        elif esc >= 0:
            self._escaped = True
        return end + 1

    def _end_osc(self, terminator: bytes, tokens: list[Osc | Csi | Esc]) -> None:
        if not self._overlong:
            token = self._osc(bytes(self._body), terminator)
            if token:
                tokens.append(token)
        self._begin(_GROUND)

    def _in_dcs(self, data: bytes, pos: int) -> int:
        """Tell a tmux passthrough from any other device control string by its first bytes."""
        body = self._body
        while pos < len(data) and data[pos] == _PASSTHROUGH_HEAD[len(body)]:
            body.append(data[pos])
            pos += 1
            if len(body) == len(_PASSTHROUGH_HEAD):
                self._begin(_PASSTHROUGH)
                return pos
        if pos < len(data):
            self._begin(_STRING)
        return pos

    def _in_string(self, data: bytes, pos: int) -> int:
        esc = data.find(b"\x1b", pos)
        end = len(data) if esc < 0 else esc
        abort = _find_abort(data, pos, end)
        if abort >= 0:
            self._begin(_GROUND)
            return abort + 1
        if esc >= 0:
            self._begin(_ESCAPE)  # ST makes no token; any other ESC starts a new sequence
        return end + 1

    def _in_passthrough(self, data: bytes, pos: int, tokens: list[Osc | Csi | Esc]) -> int:
        """Collect the content: a doubled ESC belongs to it, and so do CAN and SUB, as tmux reads it."""
        end = len(data)
        while pos < end:
            if not self._escaped:
                esc = data.find(b"\x1b", pos)
                stop = end if esc < 0 else esc
                self._collect(data[pos:stop])
                self._escaped = esc >= 0
                pos = stop + 1
            elif data[pos] == 0x1B:
                self._collect(b"\x1b")
                self._escaped = False
                pos += 1
            elif data[pos] == 0x5C:
                self._end_passthrough(tokens)
                return pos + 1
            else:
                self._begin(_ESCAPE)
                return pos
        return end

    def _collect(self, part: bytes) -> None:
        if len(self._body) + len(part) > PASSTHROUGH_LIMIT:
            self._overlong = True
            self._body.clear()
        if not self._overlong:
            self._body += part

    def _end_passthrough(self, tokens: list[Osc | Csi | Esc]) -> None:
        if not self._overlong:
            # What it leaves open is dropped: what comes next was not written in it. Within, passthroughs can
            # be nested, but not deeply: each doubles the ESC of all within.
            inner = Scanner(wrapped=True)
            inner._finder = self._finder
            tokens += inner.feed(bytes(self._body))
        self._begin(_GROUND)


class _Plain:
    """Finds sequences with what bytes can do by themselves."""

    __slots__ = ()

    def find(
        self, data: bytes, pos: int, end: int, known: dict[bytes, Osc | Csi | Esc | None], shifts: bool
    ) -> tuple[list[bytes], int]:
        """Return the sequences and `shifts` in `data[pos:end]`, and where the first not taken is, or -1."""
        del known
        found: list[bytes] = []
        while True:
            esc = data.find(b"\x1b", pos, end)
            if shifts:
                text = data[pos : end if esc < 0 else esc]
                found.extend(bytes((shift,)) for shift in text.translate(None, _ALL_BUT_SHIFTS))
            if esc < 0:
                return found, -1
            start = esc + 2
            if data[esc + 1 : start] == b"[":
                stop = min(end, start + CSI_LIMIT + 1)
                tail = data[start:stop].lstrip(_PARAMETERS)
                if tail[:1] in _CSI_HARMLESS and tail:
                    pos = stop - len(tail) + 1
                    continue
                tail = tail.lstrip(_PREFIXES).lstrip(_PARAMETERS).lstrip(_INTERMEDIATES)
                pos = stop - len(tail) + 1 if tail and 0x40 <= tail[0] < 0x7F else -1
            else:
                pos = _end_of_osc(data, esc, end)
            if pos < 0:
                return found, esc
            found.append(data[esc:pos])

    def end_of_drawn(self, data: bytes) -> int:
        """Leave chunks to `find`."""
        del data
        return -1

    def whole(self, data: bytes, start: int, end: int) -> bytes:
        """Never asked."""
        del data, start, end
        return b""

    def is_cut(self, sequence: bytes) -> bool:
        """Leave beginnings to the state machine."""
        del sequence
        return False


class _Compiled:
    """Finds sequences with one compiled pattern, stepping over those without a token."""

    __slots__ = ("_all", "_all_and_shifts", "_begins", "_cut", "_not_drawn", "_whole")

    def __init__(self) -> None:
        import re

        # The last alternative takes all the rest: matches are texts without positions, which are quicker.
        pattern = rb"\x1b(?!" + _HARMLESS + rb")(?:" + _WHOLE + rb"|.*+)"
        self._all = re.compile(pattern, re.DOTALL).findall
        self._all_and_shifts = re.compile(rb"[\x0e\x0f]|" + pattern, re.DOTALL).findall
        self._whole = re.compile(rb"[\x0e\x0f]|\x1b(?:" + _WHOLE + rb")").fullmatch
        self._cut = re.compile(rb"\x1b(?:" + _CUT + rb")").fullmatch
        self._begins = re.compile(rb"\x1b(?:" + _WHOLE + rb"|\\)").match
        self._not_drawn = re.compile(_NOT_DRAWN).search

    def find(
        self, data: bytes, pos: int, end: int, known: dict[bytes, Osc | Csi | Esc | None], shifts: bool
    ) -> tuple[list[bytes], int]:
        """Return the sequences and `shifts` in `data[pos:end]`, and where the first not taken is, or -1."""
        search = self._all_and_shifts if shifts else self._all
        found: list[bytes] = search(data, pos, end)
        if found:
            last = found[-1]
            # Had the same bytes at the end not been this match, they would have made one of their own.
            if data.endswith(last, pos, end) and last not in known and not self._whole(last):
                found.pop()
                return found, end - len(last)
        return found, -1

    def end_of_drawn(self, data: bytes) -> int:
        """Return where a sequence that is cut begins, else where `data` ends.

        -1: something not drawn with makes a token, or it is not clean.
        """
        end = self._last_end(data)
        return -1 if end < 0 or self._not_drawn(data, 0, end) else end

    def whole(self, data: bytes, start: int, end: int) -> bytes:
        """Return the whole, clean sequence that begins at `start` and ends by `end`; empty if it is none."""
        found = self._begins(data, start)
        return found.group() if found and found.end() <= end else b""

    def _last_end(self, data: bytes) -> int:
        """Return where the last sequence begins if it is cut, else where `data` ends; -1 if neither."""
        last = data.rfind(b"\x1b")
        if last < 0 or self._begins(data, last):
            return len(data)
        if last == len(data) - 1:
            # perhaps the first half of the end of a string
            string = data.rfind(b"\x1b", 0, last)
            if data[string : string + 2] == b"\x1b]" and string >= 0 and b"\a" not in data[string:]:
                last = string
        if len(data) - last <= HOLD_LIMIT and self._cut(data[last:]):
            return last
        return -1

    def is_cut(self, sequence: bytes) -> bool:
        """Tell whether `sequence` is the clean beginning of one that a finder would take when it is whole."""
        return self._cut(sequence) is not None


_PLAIN = _Plain()
_compiled_once: list[_Compiled] = []


def _compiled() -> _Compiled:
    if not _compiled_once:
        _compiled_once.append(_Compiled())
    return _compiled_once[0]


def _end_of_osc(data: bytes, esc: int, end: int) -> int:
    """Return where the OSC at `esc` ends; -1 if it is none, or not whole and clean in `data[:end]`."""
    if data[esc + 1 : esc + 2] != b"]":
        return -1
    stop = data.find(b"\x1b", esc + 2, end)
    bel = data.find(b"\a", esc + 2, end if stop < 0 else stop)
    if bel >= 0:
        stop = bel
    if stop < 0 or data[esc + 2 : stop].translate(None, _ALL_BUT_C0):
        return -1
    if bel >= 0:
        return bel + 1
    return stop + 2 if data[stop + 1 : min(end, stop + 2)] == b"\\" else -1


def _find_abort(data: bytes, pos: int, end: int) -> int:
    """Return the index of the first CAN or SUB in `data[pos:end]`, or -1."""
    cancel = data.find(b"\x18", pos, end)
    substitute = data.find(b"\x1a", pos, end if cancel < 0 else cancel)
    return cancel if substitute < 0 else substitute


def _last_sgr(data: bytes) -> bool | None:
    """Tell whether the last SGR in `data` may have left something on; None if there is none."""
    pos = len(data)
    looked_at = 0
    while True:
        pos = data.rfind(b"\x1b[", 0, pos)
        if pos < 0:
            return None
        body = data[pos + 2 : pos + 3 + CSI_LIMIT]
        tail = body.lstrip(_PARAMETERS)
        # After another ESC it is the content of a tmux passthrough.
        if tail[:1] == b"m" and data[max(0, pos - 1) : pos] != b"\x1b":
            last = body[: len(body) - len(tail)].rpartition(b";")[2]
            return last.strip(b"0") != b""
        looked_at += 1
        # Without its parameters every SGR reads the same: where there is none, that is soon seen.
        if looked_at == LOOK_BACK_LIMIT and b"\x1b[m" not in data[:pos].translate(None, _PARAMETERS):
            return None


def _last_title(data: bytes, end: int) -> int:
    """Return where the last window title in `data[:end]` begins, or -1."""
    pos = end
    for _ in range(LOOK_BACK_LIMIT):
        pos = data.rfind(b"]", 0, pos)  # a byte by itself is found quickest
        if pos < 0:
            return -1
        if data[pos - 1 : pos + 3] in _TITLES:
            return pos - 1
    return max(data.rfind(_TITLES[0], 0, pos), data.rfind(_TITLES[1], 0, pos))


def _last_link(data: bytes) -> bool:
    """Tell whether the last whole OSC 8 in `data` opened a link."""
    pos = len(data)
    for _ in range(LOOK_BACK_LIMIT):
        pos = data.rfind(b"\x1b]8;", 0, pos)
        if pos < 0:
            return False
        esc = data.find(b"\x1b", pos + 4)
        end = data.find(b"\a", pos + 4, len(data) if esc < 0 else esc)
        if end < 0 and data[esc + 1 : esc + 2] == b"\\":
            end = esc
        if end >= 0:
            return data[pos + 4 : end].partition(b";")[2] != b""
    return False


def _is_partial(tail: bytes) -> bool:
    """Tell whether `tail`, the last bytes of ground text, ends within a UTF-8 character."""
    for back in range(1, len(tail) + 1):
        byte = tail[-back]
        if byte < 0x80:
            return False
        if byte >= 0xC0:
            from _codecs import utf_8_decode

            try:
                return utf_8_decode(tail[-back:], "strict", False)[1] == 0
            except UnicodeDecodeError:
                return False
    return False
