"""In a real kitty, alone and with a real tmux in it: what is written in-band arrives on the desktop beside it."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from tests.lab.kitty_shell import Kitty
from tests.lab.multiplexer import Tmux
from tests.lab.outer import AGENTWRAP, until
from tests.lab.puppet import Strings, report
from tests.lab.tools import require

NEEDS = report("blocked", "approve Bash: touch x", kind="permission")
SHOWN = ("Claude Code needs permission", "approve Bash: touch x\nshop")
CLOSES = (0, 36)
"""The version of kitty from which on it answers the query for OSC 99, and closes."""


def told(state_dir):
    """What `explain` has to go by, of notifications that were given to a channel."""
    lines = [line for file in state_dir.glob("*.events") for line in file.read_text().splitlines()]
    return [one["reason"] for one in map(json.loads, lines) if one["effect"] == "delivered"]


def reasons(state_dir):
    lines = [line for file in state_dir.glob("*.events") for line in file.read_text().splitlines()]
    return [json.loads(line)["reason"] for line in lines]


@pytest.fixture
def stays(environ):
    """What is shown goes only when it is told to."""
    folder = Path(environ["XDG_CONFIG_HOME"], "dunst")
    folder.mkdir(parents=True)
    (folder / "dunstrc").write_text("[urgency_normal]\ntimeout = 0\n")


@pytest.fixture
def kitty(stays, dunst, processes, tmp_path, environ):
    require("kitty")
    with Kitty(processes, tmp_path, {**environ, **processes.env}) as kitty:
        yield kitty


@pytest.fixture
def strings(tmp_path):
    strings = Strings(tmp_path)
    yield strings
    strings.drop()


def wrapped(strings, *options, before=()):
    return shlex.join([*before, *AGENTWRAP, "--name", "shop", *options, *strings.program])


def history(dunst):
    dunst.ctl("close-all")
    return dunst.history()


def test_a_notification_arrives_and_is_closed_where_it_can_be(kitty, dunst, strings, state_dir):
    kitty.line(wrapped(strings, "--notify", "terminal"))
    strings.take()
    strings.write(NEEDS)
    until(lambda: dunst.displayed() == 1, what="a notification of kitty's")
    assert until(lambda: told(state_dir)) == ["terminal: OSC 99"]
    strings.write(report("working"))
    if kitty.version >= CLOSES:
        until(lambda: dunst.displayed() == 0, what="closed when answered")
        strings.write(report("done", "well"))
        until(lambda: dunst.displayed() == 1)
        strings.exit()
        until(lambda: dunst.displayed() == 0, what="closed at the end")
        assert history(dunst) == [("Claude Code finished", "well\nshop"), SHOWN]
    else:
        strings.exit()
        kitty.until(r"at >\s*$")
        assert history(dunst) == [SHOWN]


def test_what_doctor_says_of_it_is_true(kitty, dunst, tmp_path):
    kitty.line(f"{shlex.join(AGENTWRAP)} doctor --notify --json >found; echo 'all' said")
    kitty.until("all said", 30)
    found = json.loads((tmp_path / "found").read_text())
    channels = {one["channel"]: (one["ok"], one["detail"], one.get("sent")) for one in found["channels"]}
    assert channels["desktop"][0] is channels["desktop"][2] is True
    assert channels["desktop"][1].startswith("dunst ")
    assert channels["terminal"] == (True, "OSC 99", True)
    assert channels["command"][0] is channels["command"][2] is None
    assert channels["bell"] == (True, "rings", True)
    assert found["terminal"]["osc99"] is (kitty.version >= CLOSES)
    assert found["terminal"]["focus"] is True
    body = "If you can read this, it works."
    assert history(dunst) == [
        (f"agentwrap: this is the {name} channel", body) for name in ("terminal", "desktop")
    ]
    assert kitty.rang()


def test_one_that_is_not_known_by_name_is_asked(kitty, dunst, strings, state_dir):
    kitty.line(wrapped(strings, "--notify", "terminal", before=["env", "TERM=xterm-256color"]))
    strings.take()
    strings.write(NEEDS)
    until(lambda: told(state_dir))
    if kitty.version >= CLOSES:
        until(lambda: dunst.displayed() == 1)
        assert told(state_dir) == ["terminal: OSC 99"]
    else:
        until(kitty.rang, what="a bell")
        assert told(state_dir) == ["terminal: only a bell"]
        assert history(dunst) == []
    assert strings.heard() == b"", "the answer is not for the program"


def own_notice(wrapped):
    """What Codex writes: its own notice, for tmux in a passthrough, and its report."""
    notice = b"\x1b]9;Approval requested: touch x\a"
    if wrapped:
        notice = b"\x1bPtmux;" + notice.replace(b"\x1b", b"\x1b\x1b") + b"\x1b\\"
    return report("idle", app="codex") + notice + report("blocked", app="codex", kind="permission")


def test_the_programs_own_notice_is_enough(kitty, dunst, strings, state_dir):
    kitty.line(wrapped(strings, "--agent", "codex", "--notify", "auto"))
    strings.take()
    strings.write(own_notice(wrapped=False))
    until(lambda: dunst.displayed() == 1)
    until(lambda: [one for one in reasons(state_dir) if one.endswith("the program's own OSC 9")])
    strings.write(report("working", app="codex") + report("error", app="codex"))
    until(lambda: dunst.displayed() == 2)
    assert [title for title, _ in history(dunst)] == ["Codex hit an error", "Approval requested: touch x"]


class TestTmux:
    @pytest.fixture
    def start(self, kitty, tmp_path, environ, processes, strings):
        """Attach to a tmux with a shell, and wrap a program in it; returns the tmux and its pane."""
        require("tmux")
        with Tmux(tmp_path, {**environ, **processes.env}) as tmux:

            def start(passthrough, *options, before=()):
                pane = tmux.start("work")
                tmux.run("set", "-g", "allow-passthrough", passthrough)
                kitty.line(f"{shlex.join([*before, *tmux.client])} attach")
                tmux.until(pane, "#{session_attached}", "1")
                tmux.type(pane, wrapped(strings, *(options or ("--notify", "terminal"))))
                strings.take()
                kitty.rang()
                return tmux, pane

            yield start

    def test_with_passthrough_it_arrives_with_a_bell(self, start, kitty, dunst, strings, state_dir):
        start("on")
        strings.write(NEEDS)
        until(lambda: dunst.displayed() == 1, what="a notification, through tmux and kitty")
        until(kitty.rang, what="a bell")
        assert until(lambda: told(state_dir)) == ["terminal: OSC 99"]
        strings.write(report("working"))
        if kitty.version >= CLOSES:
            until(lambda: dunst.displayed() == 0, what="closed when answered")
        assert history(dunst) == [SHOWN]

    def test_a_terminal_with_anothers_term_is_known_by_its_answer_to_tmux(
        self, start, dunst, state_dir, strings
    ):
        tmux, pane = start("on", before=["env", "TERM=xterm-256color"])
        until(
            lambda: tmux.says(pane, "#{client_termtype}").startswith("kitty"),
            what="its name, as tmux asks for it",
        )
        strings.write(NEEDS)
        assert until(lambda: told(state_dir)) == ["terminal: OSC 99"]
        until(lambda: dunst.displayed() == 1)

    def test_the_programs_own_notice_is_enough(self, start, dunst, strings, state_dir):
        start("on", "--agent", "codex", "--notify", "auto")
        strings.write(own_notice(wrapped=True))
        until(lambda: dunst.displayed() == 1)
        until(lambda: [one for one in reasons(state_dir) if one.endswith("the program's own OSC 9")])
        strings.write(report("working", app="codex") + report("error", app="codex"))
        until(lambda: dunst.displayed() == 2)
        assert [title for title, _ in history(dunst)] == ["Codex hit an error", "Approval requested: touch x"]

    def test_a_window_that_is_not_in_view_only_rings(self, start, kitty, dunst, strings, state_dir):
        tmux, pane = start("on")
        tmux.run("new-window", "sleep 600")
        strings.write(NEEDS)
        until(kitty.rang, what="a bell")
        assert until(lambda: told(state_dir))[0].startswith(
            "terminal: only a bell: tmux shows another window"
        )
        assert tmux.says(pane, "#{window_bell_flag}") == "1"
        assert history(dunst) == []

    def test_without_it_only_a_bell_does_and_it_is_said_why(self, start, kitty, dunst, strings, state_dir):
        tmux, pane = start("off")
        strings.write(NEEDS)
        until(kitty.rang, what="a bell")
        assert until(lambda: told(state_dir)) == ["terminal: only a bell: tmux has allow-passthrough off"]
        assert history(dunst) == []
        strings.exit()
        tmux.until(pane, "#{pane_current_command}", "bash")
        tmux.type(pane, "clear; agentwrap doctor | grep -e passthrough")
        until(lambda: "set -g allow-passthrough on" in tmux.screen(pane), 30, "what doctor says")
        assert "allow-passthrough off: only bells get out, on xterm-kitty" in tmux.screen(pane)
