"""The ledger of terminal modes: what a program switched on, and the bytes that undo exactly that.

It reads the scanner's tokens and keeps only what differs from a terminal's default. It never sees text, keeps
no screen, and knows nothing of why or when its undo is written. Sources: xterm's ctlseqs, kitty's protocol
documents (keyboard, pointer shapes), ConEmu's OSC 9;4.
"""

from __future__ import annotations

from agentwrap.core.scanner import Csi, Esc

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agentwrap.core.scanner import Osc

    Token = Csi | Esc | Osc
    CursorState = tuple[bool, tuple[bytes, ...], bytes, bool]

# DEC private modes and their defaults. 1007 (the wheel sends arrow keys on the alternate screen) is on in
# most terminals, and agents switch it off; in xterm, where it is off, on makes the wheel scroll a pager.
PRIVATE = {
    b"1": False,  # application cursor keys
    b"5": False,  # reverse video
    b"7": True,  # autowrap
    b"8": True,  # key repeat
    b"9": False,  # X10 mouse
    b"12": False,  # blinking cursor
    b"25": True,  # cursor visible
    b"45": False,  # reverse wraparound
    b"66": False,  # application keypad
    b"69": False,  # left and right margins
    b"1000": False,  # mouse: clicks
    b"1001": False,  # mouse: highlight
    b"1002": False,  # mouse: drags
    b"1003": False,  # mouse: all motion
    b"1004": False,  # focus
    b"1005": False,  # mouse: UTF-8 coordinates
    b"1006": False,  # mouse: SGR coordinates
    b"1007": True,  # alternate scroll
    b"1015": False,  # mouse: urxvt coordinates
    b"1016": False,  # mouse: SGR pixels
    b"2004": False,  # bracketed paste
    b"2026": False,  # synchronized update
    b"2027": False,  # grapheme clusters
    b"2031": False,  # colour scheme reports
    b"2048": False,  # in-band resize
    b"5522": False,  # paste events
    b"9001": False,  # win32 input
}
# Modes without a prefix: keyboard locked, insert, no local echo, newline.
ANSI = {b"2": False, b"4": False, b"12": True, b"20": False}
_ALTERNATE = (b"1049", b"1047", b"47")
# Changed with every frame an agent paints, so their part of the undo is made apart from all the rest.
_PER_FRAME = (b"25", b"2026")
_CHARSETS: tuple[bytes, ...] = (b"(B", b")B", b"*B", b"+B")
_DESIGNATE = {b"(": 0, b")": 1, b"*": 2, b"+": 3, b"-": 1, b".": 2, b"/": 3}
_LOCKING_SHIFTS = (b"\x0e", b"n", b"o")

# Bounds against a program that only ever pushes. The largest keyboard stack of a terminal is WezTerm's, 128.
MAX_STACK = 256
MAX_COLOURS = 512
MAX_SPEC = 128
MAX_PARAMS = 32  # xterm reads 30 parameters of a sequence

# Ends whatever sequence or string is open: CAN aborts it, ST ends it where CAN does not. Alone, no effect.
ABORT = b"\x18\x1b\\"
# Where the cursor's place is lost: a fresh line at the bottom, so that what comes next overwrites nothing.
_BOTTOM = b"\x1b[9999;1H\n"


class _Screen:
    """What a terminal keeps for each of its two screens."""

    __slots__ = ("base", "keyboard", "pointer", "pointers", "region", "saved")

    def __init__(self) -> None:
        self.keyboard: list[int] = []  # kitty keyboard flags pushed
        self.base = 0  # kitty keyboard flags set below the first push
        self.region = b""  # parameters of the last DECSTBM, b"" for the whole screen
        self.pointers: list[bytes] = []  # pointer shapes pushed
        self.pointer = b""  # pointer shape set
        self.saved: CursorState | None = None  # DECSC: origin, charsets, shift, autowrap off

    @property
    def own(self) -> bool:
        """Whether something is left that only this screen being shown can undo."""
        return bool(self.keyboard or self.base or self.pointers)


class Ledger:
    """What the program behind the terminal has switched on and not yet off.

    `rows` is the terminal's height, 0 where not known: a scroll region of exactly that height is none.
    """

    __slots__ = (
        "_alternate",
        "_ansi",
        "_changed",
        "_charsets",
        "_cursor_style",
        "_head",
        "_keys",
        "_no_utf8",
        "_origin",
        "_osc",
        "_outer",
        "_screens",
        "_shift",
        "_tail",
        "_title",
        "_titles",
        "_xtsaved",
        "focus_reporting",
        "rows",
    )

    def __init__(self, rows: int = 0) -> None:
        self.rows = rows
        self.forget()

    def forget(self) -> None:
        """Hold everything for default again: after an undo that was not for a stop."""
        self.focus_reporting: bool | None = None
        self._xtsaved: dict[bytes, bool] = {}
        self._osc: dict[bytes, bytes] = {}  # body that undoes -> body that set
        self._outer: Ledger | None = None  # of the terminal around tmux, reached through it
        self._titles: list[bytes] = []
        self._title: tuple[int, bytes] | None = None
        self._screens = (_Screen(), _Screen())
        self._power_on()

    def _power_on(self) -> None:
        self._changed: dict[bytes, bool] = {}  # private modes off their default, last set last
        self._ansi: dict[bytes, bool] = {}
        self._keys: dict[bytes, bytes] = {}  # xterm key resources: final and resource -> value
        self._alternate = b""
        self._origin = False
        self._charsets = _CHARSETS
        self._shift = b""
        self._no_utf8 = False
        self._cursor_style = b""
        self._head: bytes | None = None
        self._tail = b""

    # What others ask

    @property
    def sync_open(self) -> bool:
        """Whether a synchronized update (2026) is open."""
        return b"2026" in self._changed

    def private_changed(self, mode: bytes) -> bool:
        """Whether a private mode, named by its digits, is off its default."""
        return mode in self._changed

    @property
    def alternate(self) -> bool:
        """Whether the alternate screen is shown."""
        return bool(self._alternate)

    # Reading

    def apply(self, token: Token) -> bool:
        """Take one token of the output; True where the undo may have changed by it."""
        if token.wrapped:
            return self._apply_outer(token)
        if isinstance(token, Csi):
            final = token.final
            if token.prefix == b"?":
                if final == b"h" or final == b"l":  # noqa: PLR1714 - twice as fast as a tuple, for every frame
                    if b";" not in token.params and not token.inter:
                        return self._set_private(token.params, final == b"h")
                elif final != b"s" and final != b"r":  # noqa: PLR1714
                    return False
            changed = self._csi(token)
        elif isinstance(token, Esc):
            changed = self._esc(token.code)
        else:
            changed = self._osc_token(token)
        if changed:
            self._head = None
        return changed

    def _apply_outer(self, token: Token) -> bool:
        if self._outer is None:
            self._outer = Ledger()
        token.wrapped = False
        changed = self._outer.apply(token)
        token.wrapped = True
        if changed:
            self._head = None
        return changed

    def _csi(self, token: Csi) -> bool:
        prefix, params, inter, final = token.prefix, token.params, token.inter, token.final
        if prefix == b"?":
            return not inter and self._private_list(params, final)
        if prefix == b">":
            if final == b"u":
                return self._keyboard_push(params)
            return final in (b"m", b"f", b"n") and not inter and self._key_resource(params, final)
        if prefix == b"<":
            return final == b"u" and self._keyboard_pop(params)
        if prefix == b"=":
            return final == b"u" and self._keyboard_set(params)
        if inter:
            if inter == b" " and final == b"q":
                style = b"" if not params.strip(b"0") else params
                changed, self._cursor_style = style != self._cursor_style, style
                return changed
            return inter == b"!" and final == b"p" and self._soft_reset()
        if final == b"r":
            return self._set_region(params)
        if final == b"h" or final == b"l":  # noqa: PLR1714
            return self._ansi_list(params, final == b"h")
        if final == b"t":
            return self._title_stack(params)
        if final == b"s" and not params and b"69" not in self._changed:
            return self._save_cursor()
        return final == b"u" and not params and self._restore_cursor()

    def _private_list(self, params: bytes, final: bytes) -> bool:
        changed = False
        for mode in params.split(b";", MAX_PARAMS)[:MAX_PARAMS]:
            if final == b"s":
                self._xtsave(mode.lstrip(b"0"))
            elif final == b"r":
                saved = self._xtsaved.get(mode.lstrip(b"0"))
                changed |= saved is not None and self._set_private(mode, saved)
            else:
                changed |= self._set_private(mode, final == b"h")
        return changed

    def _set_private(self, mode: bytes, on: bool) -> bool:
        default = PRIVATE.get(mode)
        if default is None:
            return self._set_other(mode, on)
        changed = self._changed
        if on is default:
            if mode not in changed:
                if mode == b"1004":
                    self.focus_reporting = False
                return False
            del changed[mode]
        else:
            again = changed.pop(mode, None) is not None
            changed[mode] = on  # set again it is the last: of the mouse modes the last one holds
            if again and mode in _PER_FRAME:
                return False
        if mode not in _PER_FRAME:
            self._head = None
            if mode == b"1004":
                self.focus_reporting = on
        return True

    def _set_other(self, mode: bytes, on: bool) -> bool:
        """Set a private mode that is no plain switch."""
        self._head = None
        if mode == b"6":
            changed, self._origin = self._origin != on, on
            return changed
        if mode == b"1048":
            return self._save_cursor() if on else self._restore_cursor()
        if mode in _ALTERNATE:
            if on == bool(self._alternate):
                return False
            if on:
                if mode == b"1049":
                    self._save_cursor()
                self._alternate = mode
            else:
                self._alternate = b""
                if mode == b"1049":
                    self._restore_cursor()
            return True
        plain = mode.lstrip(b"0")
        return plain != mode and self._set_private(plain, on)

    def _xtsave(self, mode: bytes) -> None:
        if mode in PRIVATE:
            self._xtsaved[mode] = (mode in self._changed) is not PRIVATE[mode]
        elif mode == b"6":
            self._xtsaved[mode] = self._origin
        elif mode in _ALTERNATE:
            self._xtsaved[mode] = bool(self._alternate)

    def _ansi_list(self, params: bytes, on: bool) -> bool:
        changed = False
        for mode in params.split(b";", MAX_PARAMS)[:MAX_PARAMS]:
            changed |= self._set_ansi(mode, on)
        return changed

    def _set_ansi(self, mode: bytes, on: bool) -> bool:
        mode = mode.lstrip(b"0")
        default = ANSI.get(mode)
        if default is None or (mode in self._ansi) is (on is not default):
            return False
        if on is default:
            del self._ansi[mode]
        else:
            self._ansi[mode] = on
        return True

    def _screen(self) -> _Screen:
        return self._screens[1 if self._alternate else 0]

    def _keyboard_push(self, params: bytes) -> bool:
        stack = self._screen().keyboard
        if len(stack) >= MAX_STACK:
            del stack[0]
        stack.append(_number(params, 0))
        return True

    def _keyboard_pop(self, params: bytes) -> bool:
        screen = self._screen()
        count = _number(params, 1) or 1
        had = screen.own
        if count > len(screen.keyboard):
            screen.base = 0  # a terminal whose stack is emptied resets all flags
        del screen.keyboard[max(0, len(screen.keyboard) - count) :]
        return had

    def _keyboard_set(self, params: bytes) -> bool:
        screen = self._screen()
        flags_text, _, how_text = params.partition(b";")
        flags, how = _number(flags_text, 0), _number(how_text, 1)
        before = screen.keyboard[-1] if screen.keyboard else screen.base
        after = flags if how == 1 else before | flags if how == 2 else before & ~flags if how == 3 else before
        if screen.keyboard:
            screen.keyboard[-1] = after
        else:
            screen.base = after
        return after != before

    def _key_resource(self, params: bytes, final: bytes) -> bool:
        """Take modifyOtherKeys and the like: `CSI > resource ; value m`, f for formats, n to disable."""
        if not params:
            if final == b"n":
                return False
            kept = {key: value for key, value in self._keys.items() if not key.startswith(final)}
            changed, self._keys = len(kept) != len(self._keys), kept
            return changed
        resource, _, value = params.partition(b";")
        resource = resource or b"0"
        if final == b"n":
            key, value = b"m" + resource, b"-"
        else:
            key = final + resource
        before = self._keys.get(key)
        # Without a value it is the terminal's own again. 0 is off: that undoes what was set, but is itself a
        # change where nothing was, since the terminal's own may be another.
        if not value or (value == b"0" and before not in (None, b"0")):
            return self._keys.pop(key, None) is not None
        if len(self._keys) < MAX_PARAMS and len(params) <= MAX_SPEC:
            self._keys[key] = value
        return before != value

    def _set_region(self, params: bytes) -> bool:
        top, _, bottom = params.partition(b";")
        whole = _number(top, 1) <= 1 and _number(bottom, 0) in (0, self.rows)
        region = b"" if whole else params[:MAX_SPEC]
        screen = self._screen()
        changed, screen.region = screen.region != region, region
        if whole and not self._alternate and self._screens[1].region:
            self._screens[1].region = b""  # most terminals have one region for both screens
            changed = True
        return changed

    def _title_stack(self, params: bytes) -> bool:
        operation, _, which = params.partition(b";")
        if operation == b"22":
            if len(self._titles) >= MAX_STACK:
                del self._titles[0]
            which = which.partition(b";")[0]
            self._titles.append(which if which in (b"1", b"2") else b"0")
            return True
        if operation == b"23" and self._titles:
            self._titles.pop()
            return True
        return False

    def _save_cursor(self) -> bool:
        state = (self._origin, self._charsets, self._shift, b"7" in self._changed)
        screen = self._screen()
        changed, screen.saved = screen.saved != state, state
        return changed

    def _restore_cursor(self) -> bool:
        saved = self._screen().saved
        origin, charsets, shift, no_wrap = saved or (False, _CHARSETS, b"", False)
        before = (self._origin, self._charsets, self._shift)
        self._origin, self._charsets, self._shift = origin, charsets, shift
        if no_wrap:  # restored by some terminals only: held for off
            self._changed[b"7"] = False
        return before != (origin, charsets, shift) or no_wrap

    def _soft_reset(self) -> bool:
        """DECSTR. Autowrap stays as it was: terminals differ."""
        for mode in (b"1", b"25", b"66"):
            self._changed.pop(mode, None)
        self._ansi.pop(b"4", None)
        self._origin, self._charsets, self._shift = False, _CHARSETS, b""
        for screen in self._screens:
            screen.region = b""
        self._screen().saved = None
        return True

    def _esc(self, code: bytes) -> bool:
        if code == b"=" or code == b">":  # noqa: PLR1714
            return self._set_private(b"66", code == b"=")
        if code == b"7":
            return self._save_cursor()
        if code == b"8":
            return self._restore_cursor()
        if code == b"c":
            return self._full_reset()
        if code in _LOCKING_SHIFTS or code == b"\x0f":
            shift = b"" if code == b"\x0f" else code
            changed, self._shift = self._shift != shift, shift
            return changed
        if code in (b"%@", b"%G"):
            changed, self._no_utf8 = self._no_utf8 != (code == b"%@"), code == b"%@"
            return changed
        slot = _DESIGNATE.get(code[:1])
        if slot is None or not 2 <= len(code) <= 4:
            return False
        changed = self._charsets[slot] != code
        self._charsets = (*self._charsets[:slot], code, *self._charsets[slot + 1 :])
        return changed

    def _full_reset(self) -> bool:
        """RIS: colours, pointer, progress and titles outlive it in some terminals, so they stay noted."""
        for screen in self._screens:
            screen.keyboard.clear()
            screen.base, screen.region, screen.saved = 0, b"", None
        if self.focus_reporting:
            self.focus_reporting = False
        self._power_on()
        return True

    def _osc_token(self, token: Osc) -> bool:
        number, body = token.number, token.body
        if number in (0, 2):
            if self._titles:
                self._title = (number, body)
            return False
        if number == 9:
            command = body.split(b";")
            if command[0] != b"4" or len(command) not in (2, 3) or command[1] not in _PROGRESS_STATES:
                return False
            if len(command) == 3 and command[2].strip(_DIGITS):
                return False
            return self._note(b"9;4;0", b"9;" + body, on=command[1] != b"0")
        if number == 22:
            return self._pointer(body)
        if number in (4, 5):
            return self._palette(number, body)
        if 10 <= number <= 19:
            changed = False
            for index, spec in enumerate(body.split(b";", MAX_PARAMS), number):
                if index > 19:
                    break
                if spec and spec != b"?":
                    changed |= self._note(b"%d" % (100 + index), b"%d;%b" % (index, spec), on=True)
            return changed
        if 110 <= number <= 119:
            return self._note(b"%d" % number, b"", on=False)
        if number in (104, 105):
            return self._palette_reset(number, body)
        return False

    def _note(self, undo: bytes, body: bytes, *, on: bool) -> bool:
        if not on:
            return self._osc.pop(undo, None) is not None
        new = undo not in self._osc
        if new and len(self._osc) >= MAX_COLOURS:
            return False
        # What is too long to be kept is undone all the same; only a redo goes without it.
        self._osc[undo] = body if len(body) <= MAX_SPEC else b""
        return new

    def _palette(self, number: int, body: bytes) -> bool:
        pairs = body.split(b";")
        changed = False
        for index, spec in zip(pairs[::2], pairs[1::2], strict=False):
            if index.isdigit() and len(index) <= 4 and spec and spec != b"?":
                undo = b"%d;%d" % (100 + number, int(index))
                changed |= self._note(undo, b"%d;%b;%b" % (number, index, spec), on=True)
        return changed

    def _palette_reset(self, number: int, body: bytes) -> bool:
        indices = [index for index in body.split(b";") if index.isdigit() and len(index) <= 4]
        if indices:
            gone = [b"%d;%d" % (number, int(index)) for index in indices]
            gone = [key for key in gone if key in self._osc]
        else:
            start = b"%d;" % number
            gone = [key for key in self._osc if key.startswith(start)]
        for key in gone:
            self._osc.pop(key, None)
        return bool(gone)

    def _pointer(self, body: bytes) -> bool:
        screen = self._screen()
        how, shape = body[:1], body[:MAX_SPEC]
        if how == b"?":
            return False
        if how == b">":
            if len(screen.pointers) >= MAX_STACK:
                del screen.pointers[0]
            screen.pointers.append(shape)
            return True
        if how == b"<":
            if not screen.pointers:
                return False
            screen.pointers.pop()
            return True
        shape = shape.removeprefix(b"=")
        changed = screen.pointer != shape
        screen.pointer = shape
        if not shape and not self._alternate:
            self._screens[1].pointer = b""  # most terminals have one shape for both screens
        return changed

    # Writing

    def undo(
        self, *, mid_sequence: bool = False, sgr: bool = False, link: bool = False, drawing: bool = False
    ) -> bytes:
        """Return what sets everything left on back to its default, b"" where nothing is.

        `mid_sequence`: the output ended inside a sequence or string, which is ended first. `sgr`, `link`:
        attributes or a hyperlink are left on (the scanner knows). `drawing`: a frame may have begun since.
        The ledger stays as it is, for `redo`; see `forget`.
        """
        changed = self._changed
        head = self._head
        if head is None:
            head, self._tail = self._undo_all()
            self._head = head
        out = ABORT if mid_sequence else b""
        if drawing or b"2026" in changed:
            out += b"\x1b[?2026l"
        out += head
        if sgr:
            out += b"\x1b[m"
        if link:
            out += b"\x1b]8;;\x1b\\"
        out += self._tail
        if drawing or b"25" in changed:
            out += b"\x1b[?25h"
        return out

    def _undo_all(self) -> tuple[bytes, bytes]:
        main, alternate = self._screens
        out: list[bytes] = []
        lost = False  # whether the cursor's place on the main screen is lost
        origin = self._origin
        left = b""  # as which screen the alternate one was left
        if self._alternate:
            left = self._alternate
            _undo_screen(out, alternate)
            if origin:
                out.append(b"\x1b[?6l")
            if alternate.region or b"69" in self._changed:
                out.append(b"\x1b[r")
            out.append(b"\x1b[?%bl" % left)
            origin = False
            if left == b"1049" or main.saved:
                origin = main.saved is not None and main.saved[0]
                if left != b"1049":
                    out.append(b"\x1b8")
            else:
                lost = True
        elif alternate.own:
            # A keyboard stack can be popped only on its own screen; 1049 brings cursor and content back.
            out.append(b"\x1b[?1049h")
            _undo_screen(out, alternate)
            out.append(b"\x1b[?1049l")
        _undo_screen(out, main)
        if alternate.pointer and not main.pointer:
            out.append(b"\x1b]22;\x1b\\")
        margins = b"69" in self._changed
        region = main.region or (alternate.region and not left)
        if origin:
            lost = True  # the reset homes the cursor, and a saved cursor would bring origin mode back
        if region or margins:
            reset = (b"\x1b[?69l" if margins else b"") + b"\x1b[r"
            out.append(reset if lost else b"\x1b7%b\x1b8" % reset)
        if origin:
            out.append(b"\x1b[?6l")
        self._undo_charsets(out, main.saved if left else None)
        for mode in self._changed:
            if mode == b"66":
                out.append(b"\x1b>")
            elif mode not in _PER_FRAME and mode != b"69":
                out.append(b"\x1b[?%b%b" % (mode, b"h" if PRIVATE[mode] else b"l"))
        out.extend(b"\x1b[%b%b" % (mode, b"h" if ANSI[mode] else b"l") for mode in self._ansi)
        out.extend(b"\x1b[>%b%b" % (key[1:], key[:1]) for key in self._keys)
        if self._cursor_style:
            out.append(b"\x1b[0 q")
        out.extend(b"\x1b]%b\x1b\\" % body for body in self._osc)
        out.extend(b"\x1b[23;%bt" % which for which in reversed(self._titles))
        if self._outer is not None:
            out.append(_through_tmux(self._outer.undo()))
        return b"".join(out), _BOTTOM if lost else b""

    def _undo_charsets(self, out: list[bytes], saved: CursorState | None) -> None:
        """Undo charsets; where leaving the alternate screen restored `saved`, undo those too."""
        other = saved[1] if saved else _CHARSETS
        for code, before, default in zip(self._charsets, other, _CHARSETS, strict=True):
            if code != default or before != default:
                out.append(b"\x1b" + default)
        if self._shift or (saved and saved[2]):
            out.append(b"\x0f")
        if saved and saved[3] and b"7" not in self._changed:
            out.append(b"\x1b[?7h")
        if self._no_utf8:
            out.append(b"\x1b%G")

    def redo(self) -> bytes:
        """Return what sets again, on a terminal at its defaults, all that `undo` undoes but attributes."""
        main, alternate = self._screens
        out: list[bytes] = []
        at: CursorState = (False, _CHARSETS, b"", False)
        _redo_screen(out, main)
        if main.region:
            out.append(b"\x1b7\x1b[%br\x1b8" % main.region)
        if self._alternate:
            if main.saved:
                _redo_cursor_state(out, at, main.saved)
                at = main.saved
                if self._alternate != b"1049":
                    out.append(b"\x1b7")
            out.append(b"\x1b[?%bh" % self._alternate)
            _redo_screen(out, alternate)
            if alternate.region:
                out.append(b"\x1b[%br" % alternate.region)
        elif alternate.own:
            out.append(b"\x1b[?1049h")
            _redo_screen(out, alternate)
            out.append(b"\x1b[?1049l")
        _redo_cursor_state(out, at, (self._origin, self._charsets, self._shift, False))
        if self._no_utf8:
            out.append(b"\x1b%@")
        out.extend(b"\x1b[%b%b" % (mode, b"h" if on else b"l") for mode, on in self._ansi.items())
        for key, value in self._keys.items():
            out.append(
                b"\x1b[>%bn" % key[1:] if value == b"-" else b"\x1b[>%b;%b%b" % (key[1:], value, key[:1])
            )
        if self._cursor_style:
            out.append(b"\x1b[%b q" % self._cursor_style)
        out.extend(b"\x1b[22;%bt" % which for which in self._titles)
        if self._titles and self._title is not None and len(self._title[1]) <= MAX_STACK:
            out.append(b"\x1b]%d;%b\x1b\\" % self._title)
        out.extend(b"\x1b]%b\x1b\\" % body for body in self._osc.values() if body)
        for mode, on in self._changed.items():
            if mode == b"66":
                out.append(b"\x1b=")
            elif mode != b"2026":
                out.append(b"\x1b[?%b%b" % (mode, b"h" if on else b"l"))
        if self._outer is not None:
            out.append(_through_tmux(self._outer.redo()))
        if b"2026" in self._changed:
            out.append(b"\x1b[?2026h")
        return b"".join(out)

    # Everything, by hand, clearing nothing. The cursor is saved before 1049, which restores one even on the
    # main screen. Leaving origin mode homes it, and no sequence that all terminals know brings it back
    # without that mode, so it ends on a fresh line at the bottom.
    FULL_RESET = (
        ABORT
        + b"\x1b[?2026l"
        + b"\x1b[<%du\x1b[=0u" % MAX_STACK
        + b"\x1b]22;<\x1b\\" * 16
        + b"\x1b7\x1b[?1049l\x1b[?1047l\x1b[?47l"
        + b"\x1b[<%du\x1b[=0u" % MAX_STACK
        + b"\x1b[?6l\x1b[?69l\x1b[r"
        + b"".join(
            b"\x1b[?%b%b" % (mode, b"h" if on else b"l")
            for mode, on in PRIVATE.items()
            if mode not in (b"25", b"66", b"69", b"2026")
        )
        + b"\x1b>\x1b[2l\x1b[4l\x1b[12h\x1b[20l"
        + b"\x1b[>4m\x1b[>4f"
        + b"\x1b(B\x1b)B\x0f\x1b%G"  # G2 and G3 are harmless, and some consoles would print the B
        + b"\x1b[0 q\x1b[m"
        + b"\x1b]22;<\x1b\\" * 16
        + b"\x1b]8;;\x1b\\\x1b]22;\x1b\\\x1b]104\x1b\\\x1b]105\x1b\\"
        + b"\x1b]110\x1b\\\x1b]111\x1b\\\x1b]112\x1b\\\x1b]117\x1b\\\x1b]119\x1b\\"
        + b"\x1b]9;4;0\x1b\\"
        + b"\x1b[23;0t" * 10  # as many as xterm keeps: the first one pushed is the user's
        + _BOTTOM
        + b"\x1b[?25h"
    )


_PROGRESS_STATES = (b"0", b"1", b"2", b"3", b"4")
_DIGITS = b"0123456789"


def _number(text: bytes, default: int) -> int:
    """Read a parameter: digits, or the default for none; what is no number, or too long for one, likewise."""
    return int(text) if text.isdigit() and len(text) <= 6 else default


def _undo_screen(out: list[bytes], screen: _Screen) -> None:
    if screen.keyboard:
        out.append(b"\x1b[<%du" % len(screen.keyboard))
    if screen.base:
        out.append(b"\x1b[=0u")
    out.extend(b"\x1b]22;<\x1b\\" for _ in screen.pointers)
    if screen.pointer:
        out.append(b"\x1b]22;\x1b\\")


def _redo_screen(out: list[bytes], screen: _Screen) -> None:
    if screen.base:
        out.append(b"\x1b[=%du" % screen.base)
    out.extend(b"\x1b[>%du" % flags for flags in screen.keyboard)
    if screen.pointer:
        out.append(b"\x1b]22;%b\x1b\\" % screen.pointer)
    out.extend(b"\x1b]22;%b\x1b\\" % shape for shape in screen.pointers)


def _redo_cursor_state(out: list[bytes], at: CursorState, wanted: CursorState) -> None:
    """Go from one state of origin, charsets and shift to another."""
    if at[0] is not wanted[0]:
        out.append(b"\x1b[?6h" if wanted[0] else b"\x1b[?6l")
    out.extend(b"\x1b" + code for code, old in zip(wanted[1], at[1], strict=True) if code != old)
    if at[2] != wanted[2]:
        shift = wanted[2] or b"\x0f"
        out.append(b"\x1b" + shift if shift in b"no" else shift)


def _through_tmux(data: bytes) -> bytes:
    """Address the terminal around tmux, as what is undone was."""
    return b"\x1bPtmux;%b\x1b\\" % data.replace(b"\x1b", b"\x1b\x1b") if data else b""
