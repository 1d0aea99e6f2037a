"""The ledger: what is left on is undone, nothing else is touched; judged by pyte and a separate tracker."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyte
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentwrap.core.modes import ABORT, MAX_STACK, Ledger
from agentwrap.core.scanner import Scanner

TIMELINES = Path(__file__).parent.parent / "timelines"


def ledger_of(stream: bytes, **kwargs) -> Ledger:
    ledger = Ledger(**kwargs)
    for token in Scanner().feed(stream):
        ledger.apply(token)
    return ledger


def undo_of(stream: bytes) -> bytes:
    return ledger_of(stream).undo()


def output_of(timeline: str) -> bytes:
    lines = (TIMELINES / timeline).read_text(encoding="utf-8").splitlines()
    return "".join(json.loads(line).get("out", "") for line in lines).encode()


SEQUENCE = re.compile(
    rb"\x1b\[(?P<csi>[0-?]*[ -/]*[@-~])|\x1b\](?P<osc>[^\x07\x1b]*)(?:\x07|\x1b\\)"
    rb"|\x1b(?P<esc>[ -/]*[0-~])|(?P<shift>[\x0e\x0f])"
)


class Tracker:
    """A terminal's modes, told by regular expressions and kept apart from the ledger's way of seeing them."""

    ON_BY_DEFAULT = frozenset({7, 8, 25, 1007})

    def __init__(self, stream: bytes = b"") -> None:
        self.modes: dict[int, bool] = {}
        self.alternate = False
        self.keyboard = {False: [0], True: [0]}
        self.other: dict[str, object] = {}
        self.titles = 0
        self.pointers = 0
        self.read(stream)

    def read(self, stream: bytes) -> None:
        for match in SEQUENCE.finditer(stream):
            kind = match.lastgroup
            getattr(self, f"on_{kind}")(match[kind].decode())

    def on_csi(self, csi: str) -> None:
        if csi[0] == "?" and csi[-1] in "hl":
            for mode in map(int, csi[1:-1].split(";")):
                if mode in (47, 1047, 1049):
                    self.alternate = csi[-1] == "h"
                else:
                    self.modes[mode] = csi[-1] == "h"
        elif csi[0] == ">" and csi[-1] == "u":
            self.keyboard[self.alternate].append(int(csi[1:-1] or 0))
        elif csi[0] == "<" and csi[-1] == "u":
            stack = self.keyboard[self.alternate]
            del stack[-min(int(csi[1:-1] or 1), len(stack)) :]
            if not stack:
                stack.append(0)
        elif csi[0] == "=" and csi[-1] == "u":
            self.keyboard[self.alternate][-1] = int(csi[1:-1].partition(";")[0])
        elif csi[0] == ">" and csi[-1] in "mf":
            resource, _, value = csi[1:-1].partition(";")
            key = csi[-1] + resource
            # off, where it was on, is what it was before; off at once may not be
            self.other[key] = "" if value == "0" and self.other.get(key, "") not in ("", "0") else value
        elif csi.endswith(" q"):
            self.other["style"] = csi[:-2].strip("0")
        elif csi[-1] == "r" and csi[:-1].strip("0123456789;") == "":
            self.other["region"] = csi[:-1]
        elif csi[-1] == "t" and csi[:2] in ("22", "23"):
            self.titles = max(0, self.titles + (1 if csi[:2] == "22" else -1))
        elif csi[-1] in "hl" and csi[:-1].isdigit():
            self.other[f"ansi{csi[:-1]}"] = "" if (csi[-1] == "h") is (csi == "12h") else "on"

    def on_osc(self, osc: str) -> None:
        number, _, body = osc.partition(";")
        if number == "4":
            index, _, spec = body.partition(";")
            if spec != "?":
                self.other[f"4;{index}"] = spec
        elif number == "104":
            for key in [key for key in self.other if key.startswith("4;") and body in ("", key[2:])]:
                self.other[key] = ""
        elif osc.startswith(("22;>", "22;<")):
            self.pointers = max(0, self.pointers + (1 if ">" in osc else -1))
        elif number in ("10", "11", "12", "17", "19", "22") and body != "?":
            self.other[number] = body.removeprefix(";")
        elif number in ("110", "111", "112", "117", "119"):
            self.other[number[1:]] = ""
        elif osc.startswith("9;4;"):
            self.other["progress"] = "" if osc == "9;4;0" else osc

    def on_esc(self, esc: str) -> None:
        if esc in "=>":
            self.modes[66] = esc == "="
        elif esc[0] in "()*+":
            self.other[f"charset{esc[0]}"] = esc[1:].replace("B", "")

    def on_shift(self, shift: str) -> None:
        self.other["shift"] = shift.replace("\x0f", "")

    def left_on(self) -> dict[str, object]:
        left: dict[str, object] = {
            f"?{m}": on for m, on in self.modes.items() if on != (m in self.ON_BY_DEFAULT)
        }
        left |= {key: value for key, value in self.other.items() if value}
        left |= {"alternate": True} if self.alternate else {}
        left |= {f"keyboard {screen}": stack for screen, stack in self.keyboard.items() if stack != [0]}
        left |= {"titles": self.titles} if self.titles else {}
        left |= {"pointers": self.pointers} if self.pointers else {}
        return left


# One program's doing, what must be in its undo, and what must undo it in the program's own way.
SWITCHES = [
    *[
        (b"\x1b[?%dh" % m, b"\x1b[?%dl" % m)
        for m in (1, 5, 9, 12, 45, 1000, 1001, 1002, 1003, 1004, 1005, 1006)
    ],
    *[(b"\x1b[?%dh" % m, b"\x1b[?%dl" % m) for m in (1015, 1016, 2004, 2026, 2027, 2031, 2048, 5522, 9001)],
    *[(b"\x1b[?%dl" % m, b"\x1b[?%dh" % m) for m in (7, 8, 25, 1007)],
    *[(b"\x1b[?%dh" % m, b"\x1b[?%dl" % m) for m in (47, 1047, 1049)],
    (b"\x1b=", b"\x1b>"),
    (b"\x1b[?66h", b"\x1b>"),
    (b"\x1b[4h", b"\x1b[4l"),
    (b"\x1b[2h", b"\x1b[2l"),
    (b"\x1b[20h", b"\x1b[20l"),
    (b"\x1b[12l", b"\x1b[12h"),
    (b"\x1b[?6h", b"\x1b[?6l"),
    (b"\x1b[5;10r", b"\x1b[r"),
    (b"\x1b(0", b"\x1b(B"),
    (b"\x1b)0", b"\x1b)B"),
    (b"\x0e", b"\x0f"),
    (b"\x1bn", b"\x0f"),
    (b"\x1b%@", b"\x1b%G"),
    (b"\x1b[4 q", b"\x1b[0 q"),
    (b"\x1b[>4;2m", b"\x1b[>4m"),
    (b"\x1b[>4;0m", b"\x1b[>4m"),
    (b"\x1b[>4;1f", b"\x1b[>4f"),
    (b"\x1b[>5u", b"\x1b[<1u"),
    (b"\x1b[=5u", b"\x1b[=0u"),
    (b"\x1b[22;0t", b"\x1b[23;0t"),
    (b"\x1b[22t", b"\x1b[23;0t"),
    (b"\x1b[22;2t", b"\x1b[23;2t"),
    (b"\x1b]22;wait\x1b\\", b"\x1b]22;\x1b\\"),
    (b"\x1b]22;>wait\x1b\\", b"\x1b]22;<\x1b\\"),
    (b"\x1b]4;1;red\x1b\\", b"\x1b]104;1\x1b\\"),
    (b"\x1b]5;0;red\x1b\\", b"\x1b]105;0\x1b\\"),
    *[(b"\x1b]%d;#123456\a" % n, b"\x1b]%d\x1b\\" % (100 + n)) for n in (10, 11, 12, 17, 19)],
    (b"\x1b]9;4;1;50\x1b\\", b"\x1b]9;4;0\x1b\\"),
    (b"\x1b]9;4;3\a", b"\x1b]9;4;0\x1b\\"),
]


@pytest.mark.parametrize("switch", SWITCHES, ids=lambda s: repr(s[0]))
def test_what_is_left_on_is_undone(switch):
    on, off = switch
    assert off in undo_of(on)
    assert Tracker(on + undo_of(on)).left_on() == {}
    assert ledger_of(on + undo_of(on)).undo() == b""


@pytest.mark.parametrize("switch", SWITCHES, ids=lambda s: repr(s[0]))
def test_what_the_program_undoes_itself_is_left_alone(switch):
    on, off = switch
    assert undo_of(on + off) == b""
    assert undo_of(off) == b""


@pytest.mark.parametrize("switch", SWITCHES, ids=lambda s: repr(s[0]))
def test_redo_sets_again_what_undo_undid(switch):
    ledger = ledger_of(switch[0])
    again = ledger_of(switch[0] + ledger.undo() + ledger.redo())
    assert again.undo() == ledger.undo()
    assert again.redo() == ledger.redo() != b""


def test_nothing_seen_nothing_undone():
    assert Ledger().undo() == b""
    assert Ledger().redo() == b""
    assert (
        undo_of(
            b"plain \x1b[1;31mtext\x1b[0m\x1b[2J\x1b[3;4H\x1b]0;title\a\x1b]11;?\a\x1b[c\x1b[?u\x1b[?2026$p"
        )
        == b""
    )


def test_mid_sequence_ends_what_is_open_first():
    assert Ledger().undo(mid_sequence=True) == ABORT
    assert ledger_of(b"\x1b[?25l").undo(mid_sequence=True) == ABORT + b"\x1b[?25h"
    assert ABORT.startswith(b"\x18")
    assert ABORT.endswith(b"\x1b\\")


@pytest.mark.parametrize(
    "unfinished", [b"\x1b", b"\x1b[?", b"\x1b]0;tit", b"\x1bPtmux;\x1b", b"\x1b_G", b"\xe2\x94"]
)
def test_mid_sequence_undo_is_read_as_written_after_anything_unfinished(unfinished):
    ledger = Ledger()
    scanner = Scanner()
    for token in scanner.feed(b"\x1b[?1000h" + unfinished):
        ledger.apply(token)
    for token in scanner.feed(ledger.undo(mid_sequence=True)):
        ledger.apply(token)
    assert scanner.ground
    assert ledger.undo() == b""


def test_attributes_are_reset_where_the_scanner_says_so():
    assert Ledger().undo(sgr=True) == b"\x1b[m"
    # 1049 restores the attributes from before: the reset comes after it
    undo = ledger_of(b"\x1b[?1049h").undo(sgr=True)
    assert undo.index(b"\x1b[?1049l") < undo.index(b"\x1b[m")


def test_a_hyperlink_is_closed_where_the_scanner_says_so():
    assert Ledger().undo(link=True) == b"\x1b]8;;\x1b\\"
    assert b"\x1b]8;;\x1b\\" in Ledger.FULL_RESET


def test_what_others_ask():
    ledger = ledger_of(b"\x1b[?1049;1004;2026h")
    assert (ledger.alternate, ledger.focus_reporting, ledger.sync_open) == (True, True, True)
    ledger = ledger_of(b"\x1b[?1049;1004;2026h\x1b[?1049;1004;2026l")
    assert (ledger.alternate, ledger.focus_reporting, ledger.sync_open) == (False, False, False)
    ledger = Ledger()
    assert (ledger.alternate, ledger.focus_reporting, ledger.sync_open) == (False, None, False)
    assert ledger_of(b"\x1b[?1004l").focus_reporting is False
    assert ledger_of(b"\x1b[?1004h\x1bc").focus_reporting is False


def test_apply_says_whether_the_undo_changed():
    ledger = Ledger()
    scanner = Scanner()

    def changed(data: bytes) -> bool:
        (token,) = scanner.feed(data)
        before = ledger.undo()
        told = ledger.apply(token)
        assert told or ledger.undo() == before
        return told

    assert changed(b"\x1b[?25l")
    assert not changed(b"\x1b[?25l")
    assert changed(b"\x1b[?25h")
    assert not changed(b"\x1b[?25h")
    assert changed(b"\x1b[?2026h")
    assert changed(b"\x1b[>1u")
    assert changed(b"\x1b[?1049h")
    assert not changed(b"\x1b]0;title\a")
    assert not changed(b"\x1b[6n")
    assert changed(b"\x1bPtmux;\x1b\x1b[?1000h\x1b\\")


def test_forget_holds_everything_for_default():
    ledger = ledger_of(b"".join(on for on, _ in SWITCHES))
    ledger.forget()
    assert ledger.undo() == b""
    assert ledger.focus_reporting is None


# Keyboard stacks


def test_each_screen_has_its_own_keyboard_stack():
    undo = undo_of(b"\x1b[>7u\x1b[?1049h\x1b[>7u")
    assert undo == b"\x1b[<1u\x1b[?1049l\x1b[<1u"


def test_pushes_are_popped_by_their_exact_number():
    assert undo_of(b"\x1b[>1u\x1b[>3u\x1b[>7u\x1b[<u") == b"\x1b[<2u"
    assert undo_of(b"\x1b[>1u\x1b[>3u\x1b[<9u") == b""
    assert undo_of(b"\x1b[<u\x1b[>5u") == b"\x1b[<1u"
    assert undo_of(b"\x1b[>u") == b"\x1b[<1u"


def test_endless_pushes_are_bounded():
    assert undo_of(b"\x1b[>1u" * 100_000) == b"\x1b[<%du" % MAX_STACK
    assert undo_of(b"\x1b[22;0t" * 100_000).count(b"t") == MAX_STACK
    assert undo_of(b"\x1b]22;>wait\a" * 10_000).count(b"<") == MAX_STACK
    assert len(undo_of(b"".join(b"\x1b]4;%d;red\a" % i for i in range(9999)))) < 10_000
    assert len(undo_of(b"".join(b"\x1b[>%d;1m" % i for i in range(9999)))) < 1000
    assert len(undo_of(b"\x1b[?" + b"1000;" * 40 + b"h")) < 50


def test_a_push_left_on_the_other_screen_is_popped_there():
    undo = undo_of(b"\x1b[?1049h\x1b[>5u\x1b[?1049l")
    assert undo == b"\x1b[?1049h\x1b[<1u\x1b[?1049l"


def test_flags_set_without_a_push_are_cleared():
    assert undo_of(b"\x1b[=5;1u") == b"\x1b[=0u"
    assert undo_of(b"\x1b[=5u\x1b[=1;2u\x1b[=7;3u") == b""
    assert undo_of(b"\x1b[>1u\x1b[=5u") == b"\x1b[<1u"
    ledger = ledger_of(b"\x1b[=1u\x1b[>3u\x1b[=4;2u")
    assert ledger.undo() == b"\x1b[<1u\x1b[=0u"
    assert ledger.redo() == b"\x1b[=1u\x1b[>7u"


def test_a_stack_that_is_emptied_takes_the_flags_below_with_it():
    assert undo_of(b"\x1b[=5u\x1b[<u") == b""
    assert undo_of(b"\x1b[=5u\x1b[>1u\x1b[<u") == b"\x1b[=0u"


def test_redo_pushes_the_right_flags_on_each_screen():
    assert ledger_of(b"\x1b[>7u\x1b[?1049h\x1b[>5u\x1b[>1u").redo() == b"\x1b[>7u\x1b[?1049h\x1b[>5u\x1b[>1u"


def test_the_last_mouse_mode_set_is_the_last_set_again():
    assert ledger_of(b"\x1b[?1003h\x1b[?1000h\x1b[?1003h").redo() == b"\x1b[?1000h\x1b[?1003h"


# Saved and restored, reset


def test_xterm_save_and_restore_of_modes():
    assert undo_of(b"\x1b[?1000;1006s\x1b[?1000;1006h\x1b[?1000;1006r") == b""
    assert undo_of(b"\x1b[?1049s\x1b[?1049h\x1b[?1049r") == b""
    assert undo_of(b"\x1b[?25l\x1b[?25s\x1b[?25h\x1b[?25r") == b"\x1b[?25h"
    assert undo_of(b"\x1b[?7r\x1b[?s\x1b[?r\x1b[?99999s") == b""


def test_charset_and_origin_follow_the_saved_cursor():
    assert undo_of(b"\x1b7\x1b(0\x1b8") == b""
    assert b"\x1b(B" in undo_of(b"\x1b(0\x1b7\x1b(B\x1b8")
    assert undo_of(b"\x1b7\x1b[?6h\x1b8") == b""
    assert undo_of(b"\x1b[?1048h\x1b(0\x1b[?1048l") == b""
    assert b"\x1b(B" in undo_of(b"\x1b(0\x1b[?1049h\x1b(B")


def test_soft_reset():
    assert undo_of(b"\x1b[?25l\x1b[4h\x1b[?6h\x1b[?1h\x1b=\x1b[2;5r\x1b(0\x0e\x1b[!p") == b""
    assert undo_of(b"\x1b[?1000h\x1b[!p") == b"\x1b[?1000l"


def test_full_reset_by_the_program():
    modes = [on for on, _ in SWITCHES if not on.startswith((b"\x1b]", b"\x1b[22"))]
    assert undo_of(b"".join(modes) + b"\x1bc") == b""


def test_window_operations_and_queries_are_no_modes():
    assert (
        undo_of(
            b"\x1b[14t\x1b[18t\x1b[8;24;80t\x1b[23t\x1b[5n\x1b[?996n\x1b[>q\x1b[0q\x1b[6 p\x1b[1;2;3;4;5$r"
        )
        == b""
    )
    assert (
        undo_of(b"\x1b]4;1;?\a\x1b]10;?\a\x1b]22;?__current__\a\x1b]9;hello\a\x1b]9;9;/tmp\a\x1b]9;4;x\a")
        == b""
    )
    assert undo_of(b"\x1b]9;4;1;50 pong\a") == b""


def test_several_colours_in_one_sequence():
    assert undo_of(b"\x1b]10;red;?;blue\a") == b"\x1b]110\x1b\\\x1b]112\x1b\\"
    assert undo_of(b"\x1b]4;1;red;2;?;3;blue\a") == b"\x1b]104;1\x1b\\\x1b]104;3\x1b\\"
    assert undo_of(b"\x1b]4;1;red;3;blue\a\x1b]104\a") == b""
    assert undo_of(b"\x1b]4;1;red;3;blue\a\x1b]104;3\a") == b"\x1b]104;1\x1b\\"


def test_several_modes_in_one_sequence():
    assert undo_of(b"\x1b[?1000;01006;25h") == b"\x1b[?1000l\x1b[?1006l"


def test_titles_are_popped_last_one_first():
    assert undo_of(b"\x1b[22;1t\x1b[22;2t") == b"\x1b[23;2t\x1b[23;1t"


def test_a_title_pushed_comes_back_and_is_set_again():
    ledger = ledger_of(b"\x1b[22;0t\x1b]0;work\a")
    assert ledger.undo() == b"\x1b[23;0t"
    assert ledger.redo() == b"\x1b[22;0t\x1b]0;work\x1b\\"


def test_a_token_is_given_back_as_it_was():
    (token,) = Scanner().feed(b"\x1bPtmux;\x1b\x1b[?1000h\x1b\\")
    Ledger().apply(token)
    assert token.wrapped


def test_what_went_through_tmux_is_undone_through_tmux():
    ledger = ledger_of(b"\x1bPtmux;\x1b\x1b]9;4;1;5\a\x1b\\")
    assert ledger.undo() == b"\x1bPtmux;\x1b\x1b]9;4;0\x1b\x1b\\\x1b\\"
    assert ledger_of(b"\x1bPtmux;\x1b\x1b[?1004h\x1b\\").focus_reporting is None
    assert ledger_of(b"\x1bPtmux;\x1b\x1b[?1049h\x1b\\").alternate is False


# The screen, judged by pyte


def screen_after(stream: bytes) -> pyte.Screen:
    screen = pyte.Screen(20, 6)
    pyte.ByteStream(screen).feed(stream)
    return screen


DEFAULTS = {pyte.modes.DECAWM, pyte.modes.DECTCEM}


@pytest.mark.parametrize(
    "stream", [b"\x1b[2;4r", b"\x1b[2;4r\x1b[?25l\x1b[?7l", b"\x1b[4h\x1b(0", b"\x1b)0\x0e", b"\x1b[?5h"]
)
def test_the_cursor_stays_where_the_program_left_it(stream):
    program = b"one\r\ntwo\r\nthree" + stream + b"\x1b[3;4H"
    screen = screen_after(program + undo_of(program))
    assert (screen.cursor.y, screen.cursor.x) == (2, 3)
    assert screen.mode == DEFAULTS
    assert screen.margins is None or screen.margins == (0, 5)
    assert screen.charset == 0
    assert screen.display[:3] == ["one".ljust(20), "two".ljust(20), "three".ljust(20)]


def test_after_origin_mode_the_next_line_overwrites_nothing():
    program = b"\r\n".join(b"line %d" % i for i in range(6)) + b"\x1b[2;4r\x1b[?6h"
    screen = screen_after(program + undo_of(program) + b"prompt")
    assert screen.mode == DEFAULTS
    assert screen.margins is None or screen.margins == (0, 5)
    assert [line.rstrip() for line in screen.display] == [*[f"line {i}" for i in range(1, 6)], "prompt"]


def test_an_alternate_screen_entered_without_saving_the_cursor_leaves_it_on_a_fresh_line():
    assert undo_of(b"\x1b[?47h").endswith(b"H\n")
    assert undo_of(b"\x1b7\x1b[?47h") == b"\x1b[?47l\x1b8"
    assert undo_of(b"\x1b[?1048h\x1b[?1047h") == b"\x1b[?1047l\x1b8"
    assert undo_of(b"\x1b[?1049h") == b"\x1b[?1049l"
    assert undo_of(b"\x1b[?47h\x1b[?6h") == b"\x1b[?6l\x1b[?47l\x1b[9999;1H\n"


def test_a_scroll_region_of_the_alternate_screen_is_reset_before_leaving_it():
    assert undo_of(b"\x1b[?1049h\x1b[2;5r\x1b[?6h") == b"\x1b[?6l\x1b[r\x1b[?1049l"


def test_a_scroll_region_taken_from_the_alternate_screen_is_reset_on_the_main_one():
    assert undo_of(b"\x1b[?1049h\x1b[2;5r\x1b[?1049l") == b"\x1b7\x1b[r\x1b8"


def test_a_scroll_region_of_the_whole_height_is_none():
    assert ledger_of(b"\x1b[1;24r", rows=24).undo() == b""
    assert ledger_of(b"\x1b[1;23r", rows=24).undo() != b""
    assert ledger_of(b"\x1b[1;24r").undo() != b""
    assert ledger_of(b"\x1b[;r\x1b[0;0r").undo() == b""


# Real agents


SIGKILL_LEAVES = {
    "claude-2.1.332-sigkill.jsonl": b"1004 2004 2031",
    "codex-0.163.0-sigkill.jsonl": b"1000 1002 1003 1004 1006 1049 2004",
    "codex-0.171.0-sigkill.jsonl": b"1000 1002 1003 1004 1006 1049 2004",
    "pi-1.6.0-sigkill.jsonl": b"1000 1002 1003 1004 1006 1049 2004 2031",
}


@pytest.mark.parametrize("timeline", sorted(SIGKILL_LEAVES))
def test_what_a_killed_agent_leaves_on_is_undone(timeline):
    output = output_of(timeline)
    undo = undo_of(output)
    for mode in SIGKILL_LEAVES[timeline].split():
        assert b"\x1b[?%bl" % mode in undo
    assert b"\x1b[>4m" in undo
    if timeline.startswith("codex"):
        assert b"\x1b[?1007h" in undo
        assert re.search(rb"\x1b\[<1u.*\x1b\[\?1049l.*\x1b\[<1u", undo)
    else:
        assert undo.count(b"\x1b[<1u") == 1
        assert undo.endswith(b"\x1b[?25h")
    assert Tracker(output).left_on()
    assert Tracker(output + undo).left_on() == {}
    assert ledger_of(undo).undo() == b""


@pytest.mark.parametrize("timeline", sorted(path.name for path in TIMELINES.glob("*.jsonl")))
def test_at_every_point_of_a_recording_the_undo_leaves_nothing_on(timeline):
    output = output_of(timeline)
    ledger, tracker, scanner = Ledger(), Tracker(), Scanner()
    for part in re.findall(rb"\x1b[^\x1b]*(?:\x1b\\)?|[^\x1b]+", output):
        for token in scanner.feed(part):
            ledger.apply(token)
        tracker.read(part)
        after = Tracker()
        after.__dict__.update(json_copy(tracker))
        undo = ledger.undo()
        after.read(undo)
        assert after.left_on() == {}
        assert bool(undo) >= bool(tracker.left_on())


def json_copy(tracker: Tracker) -> dict[str, object]:
    return {
        "modes": dict(tracker.modes),
        "alternate": tracker.alternate,
        "keyboard": {screen: list(stack) for screen, stack in tracker.keyboard.items()},
        "other": dict(tracker.other),
        "titles": tracker.titles,
        "pointers": tracker.pointers,
    }


@pytest.mark.parametrize("timeline", ["claude-2.1.308-exit.jsonl", "claude-2.1.332-exit.jsonl"])
def test_an_agent_that_exits_clean_is_left_alone(timeline):
    assert undo_of(output_of(timeline)) == b""


# Anything at all

OTHERS = [
    b"\x1b7",
    b"\x1b8",
    b"\x1bc",
    b"\x1b[!p",
    b"\x1b[s",
    b"\x1b[u",
    b"\x1b[?1048h",
    b"\x1b[?1048l",
    b"\x1b[>m",
    b"\x1b[?6;7;1049s",
    b"\x1b[?6;7;1049r",
    b"\x1b[?69h",
    b"\x1b[3;9s",
    b"\x1b[>4n",
    b"\x1b[=3;2u",
    b"\x1b[<9u",
    b"\x1b[?1049;2004h",
    b"\x1b[?1049;47l",
    b"\x1b-A",
    b"\x1b.F",
    b"\x1b*0",
    b"\x1b}",
    b"text",
    b"\x1b]104\a",
    b"\x1bPtmux;\x1b\x1b[?1000h\x1b\\",
    b"\x1bPtmux;\x1b\x1b]11;red\a\x1b\\",
    b"\x1b]22;=hand\a",
    b"\x1b]2;t\a",
]
PIECES = st.one_of(
    st.sampled_from([part for switch in SWITCHES for part in switch]),
    st.sampled_from(OTHERS),
    st.from_regex(rb"\x1b\[[<=>?]?[0-9;]{0,6}[ !]?[hlmnpqrstu]", fullmatch=True),
    st.from_regex(rb"\x1b\](4|5|8|9|10|11|17|22|104|105|110)(;[a-z0-9?;<>=]{0,8})?\x07", fullmatch=True),
    st.from_regex(rb"\x1b[()*+./%-]?[0-~]", fullmatch=True).filter(lambda esc: esc[-1:] not in b"[]PX^_"),
)


@settings(deadline=None, max_examples=400)
@given(st.lists(PIECES, max_size=30).map(b"".join))
def test_after_the_undo_nothing_is_left(stream):
    ledger = ledger_of(stream)
    undo = ledger.undo()
    assert ledger_of(stream + undo).undo() == b""
    again = ledger_of(stream + undo + ledger.redo())
    assert again.undo() == undo
    assert (again.alternate, again.sync_open) == (ledger.alternate, ledger.sync_open)


def test_a_key_resource_left_out_is_the_first():
    ledger = ledger_of(b"\x1b[>;n")
    assert ledger.undo() == b"\x1b[>0m"
    assert ledger.redo() == b"\x1b[>0n"


@settings(deadline=None, max_examples=200)
@given(st.lists(st.sampled_from([part for switch in SWITCHES for part in switch]), max_size=30).map(b"".join))
def test_the_tracker_finds_nothing_left_on(stream):
    assert Tracker(stream + undo_of(stream)).left_on() == {}


@settings(deadline=None, max_examples=100)
@given(st.lists(PIECES, max_size=30).map(b"".join))
def test_a_cached_undo_is_the_fresh_one(stream):
    ledger, scanner = Ledger(), Scanner()
    for i in range(len(stream)):
        for token in scanner.feed(stream[i : i + 1]):
            before = ledger.undo()
            if not ledger.apply(token):
                assert ledger.undo() == before
            cached = ledger.undo()
            ledger._head = None
            assert ledger.undo() == cached


# By hand


def test_full_reset_undoes_everything():
    program = b"\x1b[>3u\x1b[2;5r" + b"".join(on for on, _ in SWITCHES)
    assert Tracker(program + Ledger.FULL_RESET).left_on() == {}
    assert ledger_of(program + Ledger.FULL_RESET).undo() == b""
    assert undo_of(Ledger.FULL_RESET) == b""


@pytest.mark.parametrize("unfinished", [b"\x1b[?", b"\x1b]0;tit", b"\x1b_G", b"\x1bPq", b"\xe2\x94"])
def test_full_reset_works_after_an_unfinished_sequence(unfinished):
    assert ledger_of(b"\x1b[?1000h" + unfinished + Ledger.FULL_RESET).undo() == b""


def test_full_reset_clears_nothing_and_ends_on_a_fresh_line():
    program = (
        b"\r\n".join(b"line %d" % i for i in range(6)) + b"\x1b[2;4r\x1b[?6h\x1b[4h\x1b[?7l\x1b(0\x1b[?5h"
    )
    # without what pyte does not know and would print
    known = re.sub(rb"\x1b\[[<=>][0-9;]*[a-z]|\x1b\[0 q", b"", Ledger.FULL_RESET)
    screen = screen_after(program + known + b"prompt")
    on_by_default = {12, 8 << 5, 1007 << 5}  # to pyte they are nothing, and off
    assert screen.mode - on_by_default == DEFAULTS
    assert screen.margins is None or screen.margins == (0, 5)
    assert [line.rstrip() for line in screen.display] == [*[f"line {i}" for i in range(1, 6)], "prompt"]
    assert not re.search(rb"\x1b\[[0-9?]*J|\x1bc|\x1b\[\?3[hl]", Ledger.FULL_RESET)
