"""Terminal output grammar: bytes in, tokens out, no meaning assigned.

What lives here: where a control sequence begins and ends, in any chunking, with bounded memory. It must not
know what a sequence does, which number a status report has, or what a mode is.

Framing (ECMA-48 and the VT500 state machine, as UTF-8 terminals read them): C1 controls are recognised only
in their 7-bit form; CAN and SUB abort; ESC not followed by a backslash drops an open string and starts a new
sequence; BEL ends an OSC, and no other string. C0 controls inside a sequence are dropped from it.

Cursor movement, erasing and colours are the bulk of what a full-screen program writes and no concern of any
reader: they make no tokens. What makes one is listed at `Scanner`.
"""

from __future__ import annotations

OSC_LIMIT = 8192
"""Bytes of one OSC after its introducer, C0 dropped: twice the largest status report. A longer one is dropped."""

CSI_LIMIT = 256
"""Bytes of one CSI between introducer and final: no real sequence comes near; longer ones are dropped."""

ESC_LIMIT = 8
"""Intermediate bytes of one escape sequence; longer ones are dropped."""

PASSTHROUGH_LIMIT = 65536
"""Bytes of one tmux passthrough with its ESC still doubled; longer ones (images) are dropped."""

NUMBER_DIGITS = 5
"""Digits of the longest OSC number in use; a longer number makes no token."""

BEL = b"\a"
ST = b"\x1b\\"

_GROUND, _ESCAPE, _CSI, _OSC, _DCS, _STRING, _PASSTHROUGH = range(7)

_C0 = bytes(range(0x20))
_DIGITS = b"0123456789"
_PASSTHROUGH_HEAD = b"tmux;"
_PREFIXES = b"<=>?"
_PARAMETERS = b"0123456789:;"
_INTERMEDIATES = bytes(range(0x20, 0x30))

# Plain CSI (no prefix, no intermediate) that make a token: modes, scroll region, queries, window operations,
# saved cursor. All others move, erase, insert, delete or colour.
_CSI_FINALS = b"chlnpqrstu"
# ESC finals that make none: index, next line, tab stop, reverse index, single shifts, identify, a stray ST.
_ESC_IGNORED = b"DEHMNOZ\\"


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
    """A control sequence: `prefix` (one of `<=>?`, or empty), `params`, intermediates and the `final` byte."""

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

    Tokens: every OSC with a number; CSI with a prefix or an intermediate, or with one of the finals
    `c h l n p q r s t u`; ESC sequences except `D E H M N O Z` and a stray ST; SO and SI, each as an `Esc` of
    its one byte. The content of a tmux passthrough is scanned when it is complete, one level deep, its tokens
    marked `wrapped`.
    """

    __slots__ = ("_body", "_escaped", "_nested", "_overlong", "_sgr", "_state", "_tail")

    def __init__(self, *, nested: bool = False) -> None:
        self._nested = nested
        self._state = _GROUND
        self._body = bytearray()  # what an open sequence has collected
        self._escaped = False  # an open string ended its chunk in ESC
        self._overlong = False  # the open sequence is beyond its limit: find its end, drop it
        self._tail = b""  # up to three bytes at the end of ground text that may be a part of a character
        self._sgr = False

    @property
    def open(self) -> bool:
        """Whether an escape sequence or a control string has begun and not ended."""
        return self._state != _GROUND

    @property
    def ground(self) -> bool:
        """Whether something else may be written now: no sequence, string or UTF-8 character is open."""
        return self._state == _GROUND and not _partial(self._tail)

    def sgr_open(self) -> bool:
        """Whether the last SGR seen left an attribute on, or may have."""
        return self._sgr

    def feed(self, data: bytes) -> list[Osc | Csi | Esc]:
        """Take the next chunk and return the tokens that it completes."""
        tokens: list[Osc | Csi | Esc] = []
        pos = 0
        end = len(data)
        while pos < end:
            state = self._state
            if state == _GROUND:
                pos = self._in_ground(data, pos, tokens)
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
        return tokens

    def _begin(self, state: int) -> None:
        self._state = state
        self._body.clear()
        self._escaped = False
        self._overlong = False
        self._tail = b""

    def _in_ground(self, data: bytes, pos: int, tokens: list[Osc | Csi | Esc]) -> int:
        esc = data.find(b"\x1b", pos)
        end = len(data) if esc < 0 else esc
        shift = max(data.rfind(b"\x0e", pos, end), data.rfind(b"\x0f", pos, end))
        if shift >= 0:
            tokens.append(Esc(data[shift : shift + 1]))
        if esc < 0:
            self._tail = (self._tail + data[max(pos, end - 3) :])[-3:]
            return end
        self._begin(_ESCAPE)
        return esc + 1

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
                if len(body) < ESC_LIMIT:
                    body.append(byte)
                else:
                    self._overlong = True
            elif byte < 0x7F:
                self._end_escape(byte, tokens)
                return i + 1
            elif byte > 0x7F:
                self._begin(_GROUND)
                return i  # text again: no byte beyond ASCII belongs to a sequence
        return len(data)

    def _end_escape(self, byte: int, tokens: list[Osc | Csi | Esc]) -> None:
        state = _GROUND
        if not self._body:
            if byte == 0x5B:
                state = _CSI
            elif byte == 0x5D:
                state = _OSC
            elif byte == 0x50:
                state = _DCS
            elif byte in b"X^_":
                state = _STRING
        if state == _GROUND and not self._overlong and (self._body or byte not in _ESC_IGNORED):
            tokens.append(Esc(bytes(self._body) + bytes((byte,))))
        self._begin(state)

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
                if len(body) < CSI_LIMIT:
                    body.append(byte)
                else:
                    self._overlong = True
            elif byte < 0x7F:
                if not self._overlong:
                    self._end_csi(byte, tokens)
                self._begin(_GROUND)
                return i + 1
            elif byte > 0x7F:
                self._begin(_GROUND)
                return i
        return len(data)

    def _end_csi(self, byte: int, tokens: list[Osc | Csi | Esc]) -> None:
        body = bytes(self._body)
        rest = body.lstrip(_PREFIXES)
        prefix = body[: len(body) - len(rest)]
        inter = rest.lstrip(_PARAMETERS)
        params = rest[: len(rest) - len(inter)]
        if len(prefix) > 1 or inter.lstrip(_INTERMEDIATES):
            return  # not well-formed
        if byte == 0x6D and not prefix and not inter:
            self._sgr = _sets_attributes(params)
        if prefix or inter or byte in _CSI_FINALS:
            tokens.append(Csi(prefix, params, inter, bytes((byte,))))

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
        abort = _abort(data, pos, end)
        if abort >= 0:
            self._begin(_GROUND)
            return abort + 1
        if not self._overlong:
            self._body += data[pos:end].translate(None, _C0)
            if len(self._body) > OSC_LIMIT:
                self._body.clear()
                self._overlong = True
        if bel >= 0:
            self._end_osc(BEL, tokens)
        elif esc >= 0:
            self._escaped = True
        return end + 1

    def _end_osc(self, terminator: bytes, tokens: list[Osc | Csi | Esc]) -> None:
        if not self._overlong:
            number, _, body = bytes(self._body).partition(b";")
            if (
                number
                and len(number) <= NUMBER_DIGITS
                and not number.strip(_DIGITS)
                and (number[0] != 0x30 or len(number) == 1)
            ):
                tokens.append(Osc(int(number), body, terminator))
        self._begin(_GROUND)

    def _in_dcs(self, data: bytes, pos: int) -> int:
        """Tell a tmux passthrough from any other device control string by its first bytes."""
        body = self._body
        while not self._nested and pos < len(data) and data[pos] == _PASSTHROUGH_HEAD[len(body)]:
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
        abort = _abort(data, pos, end)
        if abort >= 0:
            self._begin(_GROUND)
            return abort + 1
        if esc >= 0:
            # ESC \ ends it and is no token; ESC and anything else starts a new sequence.
            self._begin(_ESCAPE)
        return end + 1

    def _in_passthrough(self, data: bytes, pos: int, tokens: list[Osc | Csi | Esc]) -> int:
        """Collect the content; a doubled ESC belongs to it, and CAN and SUB do, as tmux reads it."""
        end = len(data)
        while pos < end:
            if self._escaped:
                self._escaped = False
                if data[pos] == 0x5C:
                    self._end_passthrough(tokens)
                    return pos + 1
                if data[pos] != 0x1B:
                    self._begin(_ESCAPE)
                    return pos
                self._collect_passthrough(b"\x1b")
                pos += 1
                continue
            esc = data.find(b"\x1b", pos)
            stop = end if esc < 0 else esc
            self._collect_passthrough(data[pos:stop])
            self._escaped = esc >= 0
            pos = stop + 1
        return end

    def _collect_passthrough(self, part: bytes) -> None:
        if len(self._body) + len(part) > PASSTHROUGH_LIMIT:
            self._overlong = True
            self._body.clear()
        if not self._overlong:
            self._body += part

    def _end_passthrough(self, tokens: list[Osc | Csi | Esc]) -> None:
        if not self._overlong:
            # What it leaves open is dropped: what follows it was not written there.
            for token in Scanner(nested=True).feed(bytes(self._body)):
                token.wrapped = True
                tokens.append(token)
        self._begin(_GROUND)


def _abort(data: bytes, pos: int, end: int) -> int:
    """Index of the first CAN or SUB in `data[pos:end]`, or -1."""
    cancel = data.find(b"\x18", pos, end)
    substitute = data.find(b"\x1a", pos, end if cancel < 0 else cancel)
    return cancel if substitute < 0 else substitute


def _sets_attributes(params: bytes) -> bool:
    """Whether an SGR with these parameters leaves anything on; only a final 0 is known not to."""
    last = params.rpartition(b";")[2]
    return bool(last.strip(b"0"))


def _partial(tail: bytes) -> bool:
    """Whether `tail`, the last bytes of ground text, ends within a UTF-8 character."""
    for back in range(1, len(tail) + 1):
        byte = tail[-back]
        if byte < 0x80:
            return False
        if byte >= 0xC0:
            return back < (4 if byte >= 0xF0 else 3 if byte >= 0xE0 else 2) and byte < 0xF8
    return False
