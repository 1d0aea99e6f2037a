"""Terminal input grammar: what a person typed, told apart from what the terminal itself says.

What lives here: where a key, a paste, a mouse event or a reply begins and ends, in any chunking, with
bounded memory. It must not know what a key does or who asked for a reply, and keeps nothing of what is typed.

Sources: ECMA-48, xterm's ctlseqs (keys, mouse, replies), kitty's keyboard protocol, the win32 input mode.
"""

from __future__ import annotations

KEY, PASTE, FOCUS_IN, FOCUS_OUT, MOUSE, REPLY, ESCAPE = range(7)
"""Events. Characters that arrive together are one KEY; a paste is one PASTE, told at its beginning. The Esc
key by itself is an ESCAPE, since it takes back what other keys confirm."""

SEQUENCE_PATIENCE = 0.1
"""Seconds after which an unfinished sequence was typed as keys: Esc, Alt-[, Alt-O, Alt-]."""

STRING_PATIENCE = 1.0
"""Seconds after which a reply that began and stopped coming is given up; a slow line may pause in one."""

CSI_LIMIT = 128
"""Bytes of one control sequence: more than the longest in use, a kitty key with its text."""

POSITION_LIMIT = 64
"""Cursor position reports that are waited for."""

PASTE_END = b"\x1b[201~"

_CONTROLS = bytes(range(0x20))

_GROUND, _ESCAPE, _CSI, _SS3, _OSC, _STRING, _STRING_ESCAPE, _MOUSE, _CONSOLE, _PASTE = range(10)

# Kitty's key codes that are no typing: Caps, Scroll, Num Lock, Print Screen, Pause, Menu; and the modifiers.
_LOCKS = range(57358, 57364)
_MODIFIERS = range(57441, 57455)
# Win32 virtual keys that are none: Shift, Control, Alt, Caps Lock, Windows, Num and Scroll Lock.
_WIN32_MODIFIERS = frozenset((16, 17, 18, 20, 91, 92, 144, 145, 160, 161, 162, 163, 164, 165))
# Finals of replies without a prefix: attributes, status, window, parameters, modes, locator.
_REPLY_FINALS = b"cntxyw"
_RELEASE = b"3"
# A modifier parameter is 1 plus bits: Shift, Alt, Ctrl, Meta in xterm.
_MODIFIER_PARAMETERS = range(2, 17)


class InputScanner:
    """Reads the bytes a terminal sends, in chunks of any size, into events.

    `position_queries` is how many cursor position reports are awaited: one for row 1 is spelled like F3 with
    a modifier, and only who asked can tell.
    """

    __slots__ = ("_body", "_left", "_state", "_tail", "position_queries")

    def __init__(self) -> None:
        self._state = _GROUND
        self._body = bytearray()  # of a control sequence; of a string only whether anything came
        self._left = 0  # bytes to come of a UTF-8 character or a mouse event
        self._tail = b""  # the end of what was pasted so far, where the end of the paste may have begun
        self.position_queries = 0

    @property
    def ground(self) -> bool:
        """Whether nothing is unfinished: no sequence, no string, no character, no paste."""
        return self._state == _GROUND and not self._left

    @property
    def in_paste(self) -> bool:
        """Whether a bracketed paste has begun and not ended."""
        return self._state == _PASTE

    @property
    def patience(self) -> float | None:
        """Seconds without input after which `expire` is due; None where nothing waits for more."""
        state = self._state
        if state == _PASTE or (state == _GROUND and not self._left):
            return None
        if state in (_OSC, _STRING, _STRING_ESCAPE) and self._body:
            return STRING_PATIENCE
        return SEQUENCE_PATIENCE

    def expire(self) -> list[int]:
        """Give up what is unfinished: it was typed, or will never end. A paste may take its time."""
        state = self._state
        if state == _PASTE:
            return []
        typed = state in (_ESCAPE, _CSI, _SS3, _CONSOLE) or (state in (_OSC, _STRING) and not self._body)
        self._to(_GROUND)
        return [ESCAPE if state == _ESCAPE else KEY] if typed else []

    def feed(self, data: bytes) -> list[int]:
        """Take the next bytes; the events they complete, in order."""
        events: list[int] = []
        pos = 0
        end = len(data)
        while pos < end:
            state = self._state
            if state == _GROUND:
                pos = self._in_ground(data, pos, events)
            elif state == _ESCAPE:
                pos = self._in_escape(data, pos, events)
            elif state == _CSI:
                pos = self._in_csi(data, pos, events)
            elif state == _PASTE:
                pos = self._in_paste(data, pos)
            elif state in (_OSC, _STRING):
                pos = self._in_string(data, pos, events)
            elif state == _STRING_ESCAPE:
                pos = self._in_string_escape(data, pos, events)
            elif state == _MOUSE:
                pos = self._in_mouse(data, pos, events)
            else:
                pos = self._in_key(data, pos, events)
        return events

    def _to(self, state: int) -> None:
        self._state = state
        self._body.clear()
        self._left = 0
        self._tail = b""

    def _in_ground(self, data: bytes, pos: int, events: list[int]) -> int:
        esc = data.find(b"\x1b", pos)
        end = len(data) if esc < 0 else esc
        while self._left and pos < end and data[pos] & 0xC0 == 0x80:
            self._left -= 1
            pos += 1
        if pos < end:
            events.append(KEY)
            self._left = _missing(data[max(pos, end - 3) : end])
        if esc < 0:
            return end
        self._to(_ESCAPE)
        return esc + 1

    def _in_escape(self, data: bytes, pos: int, events: list[int]) -> int:
        byte = data[pos]
        if byte == 0x5B:
            self._to(_CSI)
        elif byte == 0x5D:
            self._to(_OSC)
        elif byte == 0x4F:
            self._to(_SS3)
        elif byte in b"PX^_":
            self._to(_STRING)
        else:
            events.append(KEY)  # Alt and a key; or Esc, and another
            if byte != 0x1B:
                self._to(_GROUND)
                self._left = _missing(data[pos : pos + 1])
        return pos + 1

    def _in_csi(self, data: bytes, pos: int, events: list[int]) -> int:
        body = self._body
        for i in range(pos, len(data)):
            byte = data[i]
            if 0x20 <= byte < 0x40:
                if len(body) < CSI_LIMIT:
                    body.append(byte)
                    continue
                self._to(_GROUND)
                return i
            if 0x40 <= byte < 0x7F:
                self._end_csi(byte, events)
                return i + 1
            # No sequence of a terminal: Alt-[ and another key.
            events.append(KEY)
            self._to(_ESCAPE if byte == 0x1B else _GROUND)
            return i + 1 if byte < 0x80 else i
        return len(data)

    def _end_csi(self, final: int, events: list[int]) -> None:
        body = bytes(self._body)
        self._to(_GROUND)
        if not body:
            if final == 0x4D:
                self._to(_MOUSE)
                self._left = 3
            elif final == 0x5B:
                self._to(_CONSOLE)
            else:
                events.append(FOCUS_IN if final == 0x49 else FOCUS_OUT if final == 0x4F else KEY)
        elif body[0] in b"<=>?":
            events.append(MOUSE if body[0] == 0x3C and final in b"Mm" else REPLY)
        elif final == 0x7E and body == b"200":
            events.append(PASTE)
            self._to(_PASTE)
        elif final == 0x7E and body == b"201":
            pass  # the end of a paste that never began
        elif final == 0x4D:
            events.append(MOUSE)
        elif final in _REPLY_FINALS or (final == 0x52 and self._is_position(body)):
            events.append(REPLY)
        elif _is_typed(body, final):
            events.append(ESCAPE if _is_escape(body, final) else KEY)

    def _is_position(self, body: bytes) -> bool:
        row, separator, column = body.partition(b";")
        if not separator or not column.isdigit():
            return False
        if self.position_queries:
            self.position_queries -= 1
            return True
        return row != b"1" or int(column[:4]) not in _MODIFIER_PARAMETERS

    def _in_key(self, data: bytes, pos: int, events: list[int]) -> int:
        """SS3 and a key, in some terminals with a modifier; or a function key of the Linux console."""
        byte = data[pos]
        if self._state == _SS3 and (0x30 <= byte < 0x3A or byte == 0x3B) and len(self._body) < 4:
            self._body.append(byte)
            return pos + 1
        events.append(KEY)
        self._to(_ESCAPE if byte == 0x1B else _GROUND)
        return pos + 1 if byte < 0x80 else pos

    def _in_mouse(self, data: bytes, pos: int, events: list[int]) -> int:
        if data[pos] == 0x1B:  # no coordinate is below 32
            self._to(_ESCAPE)
            return pos + 1
        taken = min(self._left, len(data) - pos)
        esc = data.find(b"\x1b", pos, pos + taken)
        if esc >= 0:
            self._to(_ESCAPE)
            return esc + 1
        self._left -= taken
        if not self._left:
            events.append(MOUSE)
            self._to(_GROUND)
        return pos + taken

    def _in_string(self, data: bytes, pos: int, events: list[int]) -> int:
        """OSC, DCS, APC, PM, SOS: a reply; a control character in it means that it was typed."""
        esc = data.find(b"\x1b", pos)
        end = len(data) if esc < 0 else esc
        if self._state == _OSC:
            bel = data.find(b"\a", pos, end)
            end = end if bel < 0 else bel
        content = data[pos:end]
        printable = content.translate(None, _CONTROLS)
        if len(printable) != len(content):
            end = next(i for i in range(pos, end) if data[i] < 0x20)
        if end > pos:
            self._body[:] = b"."
        if end == len(data):
            return end
        if end == esc:
            began = bytes(self._body)
            self._to(_STRING_ESCAPE)
            self._body[:] = began
        else:
            events.append(REPLY if data[end] == 0x07 and self._state == _OSC else KEY)
            self._to(_GROUND)
        return end + 1

    def _in_string_escape(self, data: bytes, pos: int, events: list[int]) -> int:
        if data[pos] == 0x5C:
            events.append(REPLY)
            self._to(_GROUND)
            return pos + 1
        if not self._body:
            events.append(KEY)  # Alt-] or the like, and Esc or a sequence
        self._to(_ESCAPE)
        return pos

    def _in_paste(self, data: bytes, pos: int) -> int:
        tail = self._tail
        if tail:
            window = tail + data[pos : pos + len(PASTE_END) - 1]
            at = window.find(PASTE_END)
            if at >= 0:
                self._to(_GROUND)
                return pos + at + len(PASTE_END) - len(tail)
        at = data.find(PASTE_END, pos)
        if at >= 0:
            self._to(_GROUND)
            return at + len(PASTE_END)
        self._tail = (tail + data[max(pos, len(data) - len(PASTE_END) + 1) :])[1 - len(PASTE_END) :]
        return len(data)


def _is_escape(body: bytes, final: int) -> bool:
    """Whether a key is Esc without a modifier, as kitty's protocol (27u) or xterm's (27;1;27~) spell it."""
    fields = body.split(b";")
    if final == 0x75:
        return fields[0].split(b":")[0] == b"27" and fields[1:2] in ([], [b""], [b"1"], [b"1:1"], [b"1:2"])
    return final == 0x7E and fields == [b"27", b"1", b"27"]


def _is_typed(body: bytes, final: int) -> bool:
    """Whether a key's sequence is a press of something other than a modifier or lock key."""
    fields = body.split(b";", 5)
    code = _number(fields[0].partition(b":")[0])
    if (
        final == 0x5F and len(fields) == 6
    ):  # win32: virtual key; scan code; character; down; modifiers; repeat
        return fields[3] == b"1" and code not in _WIN32_MODIFIERS
    if len(fields) > 1 and fields[1].partition(b":")[2] == _RELEASE:
        return False
    return not (final == 0x75 and (code in _LOCKS or code in _MODIFIERS))


def _number(digits: bytes) -> int:
    return int(digits) if digits.isdigit() and len(digits) <= 8 else -1


def _missing(tail: bytes) -> int:
    """How many bytes a UTF-8 character at the end of `tail`, at most three bytes, still lacks."""
    for back in range(1, len(tail) + 1):
        byte = tail[-back]
        if byte < 0x80:
            return 0
        if byte >= 0xC0:
            length = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4 if byte < 0xF8 else 0
            return max(0, length - back)
    return 0
