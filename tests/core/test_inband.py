from __future__ import annotations

import base64

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentwrap.core import inband
from agentwrap.core.scanner import Osc, Scanner

KINDS = ("99", "777", "9")
TEXT = st.text(st.characters() | st.sampled_from("\x1b\a\x9c\x9b;:\\\n\t0]P")) | st.text(max_size=5000)


def oscs(data):
    scanner = Scanner()
    tokens = scanner.feed(data)
    assert scanner.ground
    return [token for token in tokens if isinstance(token, Osc)]


@settings(deadline=None, max_examples=300)
@given(TEXT, TEXT, st.sampled_from(KINDS), st.booleans(), TEXT, st.booleans())
def test_whatever_the_text_it_is_whole_sequences_and_nothing_else(title, body, kind, tmux, ident, sound):
    title = title.encode("utf-8", "replace").decode()
    data = inband.notification(kind, title, body, ident=ident, tmux=tmux, sound=sound)
    found = oscs(data)
    assert found
    assert {osc.number for osc in found} == {int(kind)}
    assert all(osc.wrapped is tmux for osc in found)
    # nothing beside them: no control character but those of the framing
    controls = [byte for byte in data if byte < 0x20 or byte == 0x7F]
    assert set(controls) <= {0x1B, 0x07}
    assert len(data) < 8192
    if kind != "99":
        assert len(data) < 2048
        assert data.decode()


@pytest.mark.parametrize("tmux", [False, True])
def test_a_bell_is_a_bell(tmux):
    assert inband.notification("bel", "title", "body", tmux=tmux) == b"\a"


def test_osc_99_in_two_chunks():
    data = inband.notification(
        "99", "Claude Code; needs", "approve x\n~/shop", ident="claude-7.blocked", sound=False
    )
    first, second = (osc.body for osc in oscs(data))
    assert first == b"i=claude-7.blocked:d=0:e=1:p=title:u=1:s=c2lsZW50;" + base64.b64encode(
        b"Claude Code; needs"
    )
    assert second == b"i=claude-7.blocked:d=1:e=1:p=body;" + base64.b64encode(b"approve x\n~/shop")
    assert inband.close("claude-7.blocked") == b"\x1b]99;i=claude-7.blocked:p=close;\x1b\\"


def test_osc_99_without_a_body_is_one_chunk():
    (only,) = oscs(inband.notification("99", "t", " \n", urgency=9))
    assert only.body == b"i=agentwrap:d=1:e=1:p=title:u=2;dA=="


def test_osc_99_payloads_keep_to_the_specification():
    for osc in oscs(inband.notification("99", "é" * 5000, "é" * 5000, ident="/" * 500)):
        head, payload = osc.body.split(b";", 1)
        raw = base64.b64decode(payload, validate=True)
        assert len(raw) <= 2048
        raw.decode()
        assert len(head.split(b":")[0]) <= 2 + 100


def test_a_semicolon_is_no_field_of_osc_777():
    (osc,) = oscs(inband.notification("777", "a;b", "c;d\ne"))
    assert osc.body.decode() == "notify;a\uff1bb;c\uff1bd - e"


@pytest.mark.parametrize(
    ("title", "body", "expected"),
    [
        ("Claude Code finished", "pong\n~/shop", "Claude Code finished: pong - ~/shop"),
        ("", "4;1;50 pong", "agentwrap: 4;1;50 pong"),
        ("9", "x", "agentwrap: 9: x"),
        ("t", "", "t"),
    ],
)
def test_osc_9_is_never_a_progress_command(title, body, expected):
    (osc,) = oscs(inband.notification("9", title, body))
    assert osc.body.decode() == expected


def test_tmux_gets_it_wrapped_and_a_bell_of_its_own():
    data = inband.notification("777", "t", "b", tmux=True)
    assert data == b"\x1bPtmux;\x1b\x1b]777;notify;t;b\a\x1b\\\a"
    assert inband.close("x", tmux=True) == b"\x1bPtmux;\x1b\x1b]99;i=x:p=close;\x1b\x1b\\\x1b\\"


@pytest.mark.parametrize(
    ("environ", "answers", "outer", "expected"),
    [
        ({"TERM": "xterm-256color"}, True, "", "99"),
        ({"TERM": "xterm-256color"}, None, "", "bel"),
        ({"TERM": "xterm-256color"}, False, "", "bel"),
        ({"TERM": "xterm-kitty"}, None, "", "99"),
        ({"TERM": "xterm-kitty"}, False, "", "9"),
        ({"TERM": "xterm-ghostty"}, None, "", "777"),
        ({"TERM_PROGRAM": "ghostty", "TERM": "xterm-256color"}, False, "", "777"),
        ({"TERM_PROGRAM": "WezTerm", "TERM": "xterm-256color"}, None, "", "777"),
        ({"TERM": "foot-extra"}, None, "", "777"),
        ({"TERM": "foot"}, True, "", "99"),
        ({"TERM": "rxvt-unicode-256color"}, None, "", "777"),
        ({"TERM": "rxvt", "COLORTERM": "rxvt-xpm"}, None, "", "777"),
        ({"TERM_PROGRAM": "iTerm.app", "TERM": "xterm-256color"}, None, "", "9"),
        ({"TERM": "xterm-256color", "LC_TERMINAL": "iTerm2"}, None, "", "9"),
        ({"TERM_PROGRAM": "Apple_Terminal", "TERM": "xterm-256color"}, None, "", "bel"),
        # an xterm started from a kitty is no kitty
        ({"TERM": "xterm", "KITTY_WINDOW_ID": "1"}, None, "", "bel"),
        ({"TERM": "tmux-256color", "TMUX": "x", "KITTY_WINDOW_ID": "1"}, None, "", "99"),
        (
            {"TERM": "tmux-256color", "TMUX": "x", "TERM_PROGRAM": "tmux", "WEZTERM_PANE": "0"},
            None,
            "",
            "777",
        ),
        ({"TERM": "screen", "TMUX": "x", "ITERM_SESSION_ID": "w0"}, None, "", "9"),
        # GNU screen swallows all but a bell, and so does a tmux that is not here to be asked
        ({"TERM": "screen", "STY": "x", "ITERM_SESSION_ID": "w0"}, None, "", "bel"),
        ({"TERM": "screen.xterm-kitty", "STY": "x", "KITTY_WINDOW_ID": "1"}, None, "", "bel"),
        ({"TERM": "tmux-256color", "LC_TERMINAL": "iTerm2", "SSH_TTY": "x"}, None, "", "bel"),
        # what tmux says of the terminal it is attached to now counts more than where it was started
        ({"TERM": "screen", "TMUX": "x", "KITTY_WINDOW_ID": "1"}, None, "xterm-ghostty", "777"),
        ({"TERM": "screen", "TMUX": "x", "KITTY_WINDOW_ID": "1"}, None, "xterm-256color", "bel"),
        ({}, None, "", "bel"),
    ],
)
def test_how_a_terminal_is_notified(environ, answers, outer, expected):
    assert inband.choose(environ, answers_99=answers, outer_term=outer) == expected


def test_what_a_terminal_shows_by_itself():
    assert inband.shown_by_terminal({"TERM": "xterm-kitty"}) == {9, 99, 777}
    assert inband.shown_by_terminal({"TERM_PROGRAM": "iTerm.app"}) == {9}
    assert inband.shown_by_terminal({"TERM": "xterm"}) == set()
    assert inband.shown_by_terminal({"TERM": "foot"}, answers_99=True) == {9, 99, 777}
    assert inband.shown_by_terminal({"TERM": "rxvt-unicode"}) == {777}
    assert inband.shown_by_terminal({"TERM": "tmux-256color", "TMUX": "x", "KITTY_WINDOW_ID": "1"}) == set()
    within = {"TERM": "tmux-256color", "TMUX": "x"}
    assert inband.shown_by_terminal(within, outer_term="xterm-kitty") == {9, 99, 777}
    assert inband.shown_by_terminal(within, outer_term="rxvt-unicode") == {777}
    assert inband.shown_by_terminal(within, outer_term="xterm-256color") == set()
    assert inband.shown_by_terminal({"TERM": "screen"}, outer_term="xterm-kitty") == set()


def test_which_of_a_terminals_names_says_what_it_shows():
    assert inband.name_of("xterm-256color", "WezTerm 20240203") == "WezTerm 20240203"
    assert inband.name_of("xterm-kitty", "kitty(0.26.5)") == "xterm-kitty"
    assert inband.name_of("xterm-256color", "tmux 3.4") == "xterm-256color"
    assert inband.name_of("", "") == ""


def test_the_query_and_its_answer():
    (osc,) = oscs(inband.query("agentwrap-1"))
    assert osc.body == b"i=agentwrap-1:p=?;"
    assert inband.is_answer(b"i=agentwrap-1:p=?;a=focus:o=always", "agentwrap-1")
    assert inband.is_answer(b"p=?:i=agentwrap-1;", "agentwrap-1")
    assert not inband.is_answer(b"i=agentwrap-12:p=?;", "agentwrap-1")
    assert not inband.is_answer(b"i=agentwrap-1:p=close;", "agentwrap-1")


@given(st.binary(max_size=200))
def test_base64_is_base64(data):
    assert inband.base64(data) == base64.b64encode(data)


@pytest.mark.parametrize(
    ("environ", "ask"),
    [
        ({"TERM": "xterm-256color"}, True),
        ({"TERM": "alacritty"}, True),
        ({"TERM": "xterm-kitty"}, False),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "ghostty"}, False),
        ({"TERM": "tmux-256color", "TMUX": "x"}, False),
        ({"TERM": "screen"}, False),
        ({"TERM": "dumb"}, False),
        ({"TERM": "linux"}, False),
        ({"TERM": "vt100"}, False),
        ({}, False),
    ],
)
def test_which_terminals_are_asked(environ, ask):
    assert inband.may_ask(environ) is ask


@pytest.mark.parametrize(
    ("environ", "bears"),
    [
        ({"TERM": "foot"}, False),
        ({"TERM": "foot-extra"}, False),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "foot"}, False),
        ({"TERM": "tmux-256color", "TMUX": "x"}, True),
        ({"TERM": "xterm-256color"}, True),
        ({}, True),
    ],
)
def test_a_terminal_that_ends_when_it_is_asked_is_not(environ, bears):
    assert inband.bears_asking(environ) is bears
    assert bears or not inband.may_ask(environ)


@pytest.mark.parametrize(
    ("environ", "answers"),
    [
        ({"TERM": "xterm-kitty"}, True),
        ({"TERM": "foot-extra"}, True),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "kitty"}, True),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "ghostty"}, False),
        ({"TERM": "xterm-256color"}, False),
        ({"TERM": "tmux-256color", "TMUX": "x", "KITTY_WINDOW_ID": "1"}, False),
    ],
)
def test_which_terminals_answer_a_program_themselves(environ, answers):
    assert inband.answers_by_name(environ) is answers


def test_a_terminal_that_is_only_known_to_answer_is_not_taken_to_show_the_rest():
    assert inband.shown_by_terminal({"TERM": "xterm"}, answers_99=True) == {99}
    assert inband.shown_by_terminal({"TERM": "xterm-kitty"}, answers_99=False) == {9, 777}
