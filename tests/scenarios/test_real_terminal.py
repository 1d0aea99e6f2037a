"""A second judge of "clean": a real kitty says itself what is on, after what kills or stops an agent in it."""

from __future__ import annotations

import json
import os
import shlex
import signal
import sys
from pathlib import Path

import psutil
import pytest

import agentwrap
from tests.lab.judge import processes_of
from tests.lab.kitty import Kitty
from tests.lab.outer import AGENTWRAP, until
from tests.lab.tools import require

PROMPT = "ready$ "

# All that agents leave on. Ctrl-Z, as this keyboard mode sends it, stops it; when it goes on, it asks again.
AGENT = r"""
import os, signal, sys, tty, termios
from ask import ask
tty.setraw(0, termios.TCSANOW)
os.write(1, b"\x1b[>1u\x1b[?1h\x1b[?2004h\x1b[?1004h\x1b[?1049h\x1b[>5u\x1b[?1000h\x1b[?1002h\x1b[?1003h\x1b[?1006h"
    b"\x1b[?25l\x1b[?7l\x1b[?66h\x1b[2;10r\x1b]10;#123456\x1b\\\x1b]11;#234567\x1b\\\x1b]12;#345678\x1b\\"
    b"\x1b[4 q\x1b[1;31m\x1b[5;5Hthe agent is up")
ask("asked1")
while (key := os.read(0, 100)) != b"q":
    if key == b"\x1b[122;5u":
        os.kill(0, signal.SIGTSTP)
        ask("asked2")
"""


@pytest.fixture
def sessions(tmp_path):
    """A state directory that only the session's own processes name, not the display, kitty or the shell."""
    return tmp_path / "sessions"


@pytest.fixture
def place(tmp_path, sessions):
    (tmp_path / "rc").write_text(f"PS1='{PROMPT}'; bind 'set enable-bracketed-paste off'\n")
    (tmp_path / "agent.py").write_text(AGENT)
    wrapped = shlex.join([*AGENTWRAP, "--notify", "none", sys.executable, "-S", "agent.py"])
    (tmp_path / "wrapped").write_text(f"AGENTWRAP_STATE_DIR={sessions} exec {wrapped}\n")
    return tmp_path


@pytest.fixture
def kitty(place, environ, display):
    require("kitty", "xdotool", "bash")
    environ["PYTHONPATH"] = str(Path(agentwrap.__file__).parent.parent)
    kitty = Kitty(place, environ, display, ["bash", "--rcfile", "rc", "-i"])
    yield kitty
    kitty.close()


@pytest.fixture
def clean(kitty):
    """What kitty says of itself before anything has run in it."""
    kitty.shows(PROMPT)
    return kitty.ask()


def start(kitty, place, sessions, clean) -> dict[str, int]:
    """Run the agent until all is on; the processes by what they are."""
    kitty.type("sh wrapped")
    kitty.press("Return")
    asked = kitty.answer(place / "asked1")
    same = [name for name, said in clean["said"].items() if asked["said"][name] == said]
    assert set(same) <= {"?6", "?9", "?66", "?1000", "?1002", "?1005", "?1015", "?1016", "?2026"}, "not on"
    (session,) = [json.loads(file.read_text()) for file in sessions.glob("*.json")]
    agent = session["child_pid"]
    return {"agent": agent, "pump": session["pid"], "guardian": psutil.Process(agent).ppid()}


def typed_as_typed(kitty) -> None:
    kitty.type('echo "As Typed: $((6*7)), {a,b}~|"')
    kitty.press("Return")
    kitty.shows("As Typed: 42, {a,b}~|")


@pytest.mark.parametrize("victim", ["agent", "pump", "guardian"])
def test_kitty_is_as_it_was_when_one_is_killed(victim, kitty, clean, place, sessions):
    victims = start(kitty, place, sessions, clean)
    os.kill(victims[victim], signal.SIGKILL)
    until(lambda: not processes_of(sessions), 10, "all gone")
    assert kitty.ask() == clean
    typed_as_typed(kitty)
    assert "sh wrapped" in kitty.text(), "what was there before the agent is there again"


def test_kitty_is_the_shells_while_the_agent_is_stopped_and_the_agents_after(kitty, clean, place, sessions):
    victims = start(kitty, place, sessions, clean)
    kitty.press("ctrl+z")
    until(lambda: psutil.Process(victims["pump"]).status() == psutil.STATUS_STOPPED, what="stopped")
    assert kitty.ask() == clean
    typed_as_typed(kitty)
    kitty.type("fg")
    kitty.press("Return")
    before, after = (kitty.answer(place / f"asked{n}")["said"] for n in (1, 2))
    drawn = ("style",)  # what is drawn with is the agent's to set when it paints again
    assert {k: v for k, v in after.items() if k not in drawn} == {
        k: v for k, v in before.items() if k not in drawn
    }
    kitty.type("q")
    until(lambda: not processes_of(sessions), 10, "all gone")
    assert kitty.ask() == clean
    typed_as_typed(kitty)
