"""kill -9 of any of our processes, or of the agent, leaves a usable terminal, and nothing behind."""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import termios
import time

import psutil
import pytest

from tests.lab.judge import left_on, processes_of
from tests.lab.outer import AGENTWRAP, Outer, until

# Everything agents leave on, at full speed, with frames and reports.
BUSY = r"""
import os, sys, tty, termios, random
tty.setraw(0, termios.TCSANOW)
os.write(1, b"\x1b[?2004h\x1b[>7u\x1b[>4;2m\x1b[?1004h\x1b[?1049h\x1b[>5u\x1b[?1000h\x1b[?1002h\x1b[?1003h\x1b[?1006h"
    b"\x1b[?2031h\x1b[?1007l\x1b[2;10r\x1b]11;rgb:00/00/00\x07\x1b[4 q\x1b]22;pointer\x07up\x1b]7501;state=working\x07")
n = 0
while True:
    n += 1
    os.write(1, b"\x1b[?2026h\x1b[?25l\x1b[31mframe %d\x1b[m\x1b[?25h\x1b[?2026l\x1b]7501;state=working:msg=%s\x07" % (n, b"QUJD"))
    if n % 50 == 0:
        os.write(1, b"\x1b]0;a title that is long enough to be cut" + b"." * 200 + b"\x07")
"""


def one(state_dir) -> dict[str, object] | None:
    for file in state_dir.glob("*.json"):
        try:
            return json.loads(file.read_text())
        except (OSError, ValueError):
            continue
    return None


def pids(outer: Outer, state_dir) -> dict[str, int]:
    """agent, pump and leader (the guardian)."""
    found = until(lambda: (one(state_dir) or {}).get("child_pid") and one(state_dir))
    return {
        "agent": found["child_pid"],
        "pump": found["pid"],
        "guardian": psutil.Process(found["child_pid"]).ppid(),
    }


def settle(outer: Outer, state_dir) -> None:
    """Wait until the outcome is what it must be, or fail with what it is."""

    def clean() -> bool:
        outer.read(0.01)
        return (
            outer.ended()
            and not processes_of(state_dir)
            and not left_on(bytes(outer.output))
            and outer.attributes() == outer.settings
        )

    try:
        until(clean, 6)
    except AssertionError:
        raise AssertionError(
            f"ended {outer.ended()}, processes {processes_of(state_dir)}, left on {left_on(bytes(outer.output))}, "
            f"settings {'as before' if outer.attributes() == outer.settings else 'changed'}"
        ) from None


def kill_at_random(victim: str, environ, state_dir, generator: random.Random) -> None:
    # a shell in between keeps the terminal alive when the pump dies, as a user's shell does
    with Outer(
        ["sh", "-c", f'{" ".join(AGENTWRAP)} "$@"; :', "sh", sys.executable, "-S", "-c", BUSY],
        environ=environ,
    ) as outer:
        outer.expect(b"up")
        victims = pids(outer, state_dir)
        until_time = time.monotonic() + generator.uniform(0, 0.15)
        while time.monotonic() < until_time:
            outer.read(0.001)
        os.kill(victims[victim], signal.SIGKILL)
        killed = time.monotonic()
        settle(outer, state_dir)
        until(lambda: one(state_dir) is None, 1)
        assert time.monotonic() - killed < 6
        summary = state_dir / "summary"
        assert not summary.exists() or summary.read_text().strip() in ("", "0 0 0 0 0")


@pytest.mark.parametrize("victim", ["agent", "pump", "guardian"])
@pytest.mark.parametrize("seed", range(4))
def test_killed_at_a_random_moment(victim, seed, environ, state_dir):
    kill_at_random(victim, environ, state_dir, random.Random(f"{victim}{seed}"))


def test_a_killed_guardian_ends_the_session_with_a_line_that_says_why(environ, state_dir):
    with Outer([*AGENTWRAP, sys.executable, "-S", "-c", BUSY], environ=environ) as outer:
        outer.expect(b"up")
        os.kill(pids(outer, state_dir)["guardian"], signal.SIGKILL)
        settle(outer, state_dir)
        assert os.WTERMSIG(outer.status) == signal.SIGHUP
        outer.read(0.1)
        said = bytes(outer.output).rpartition(b"\x1b[?2004l")[2]
        line = f"agentwrap: its session leader was killed, so the terminal of {sys.executable} hung up\r\n"
        assert said.endswith(line.encode()), said
        assert one(state_dir) is None


@pytest.mark.parametrize("victim", ["pump", "guardian"])
def test_an_agent_that_ignores_the_hangup_is_ended_when_one_of_us_is_gone(victim, environ, state_dir):
    stubborn = "import signal, os, time\nfor n in (1, 15): signal.signal(n, signal.SIG_IGN)\nos.write(1, b'up')\nwhile True: time.sleep(9)"
    with Outer(
        ["sh", "-c", f'{" ".join(AGENTWRAP)} "$@"; :', "sh", sys.executable, "-S", "-c", stubborn],
        environ=environ,
    ) as outer:
        outer.expect(b"up")
        victims = pids(outer, state_dir)
        os.kill(victims[victim], signal.SIGKILL)
        if victim == "pump":
            until(lambda: one(state_dir) is None, 1, "the session is gone within a second")
        settle(outer, state_dir)
        assert one(state_dir) is None


def test_settings_that_somebody_else_has_made_meanwhile_stay(environ, state_dir):
    with Outer(["sh", "-c", f"{' '.join(AGENTWRAP)} sleep 60; :", "sh"], environ=environ) as outer:
        victims = pids(outer, state_dir)
        until(lambda: outer.attributes() != outer.settings, what="raw")
        theirs = outer.attributes()
        theirs[3] |= termios.ECHOE
        theirs[6][termios.VMIN] = 3
        termios.tcsetattr(outer.slave, termios.TCSANOW, theirs)
        os.kill(victims["pump"], signal.SIGKILL)
        until(lambda: not processes_of(state_dir), 6)
        assert outer.attributes() == theirs


def test_all_killed_at_once_the_session_is_not_shown_as_live(environ, state_dir):
    from agentwrap.host.statefile import StateDir

    with Outer(["sh", "-c", f"{' '.join(AGENTWRAP)} sleep 60; :", "sh"], environ=environ) as outer:
        victims = pids(outer, state_dir)
        for pid in (victims["guardian"], victims["pump"], victims["agent"]):
            os.kill(pid, signal.SIGSTOP)
        # The pump's end hangs up the guardian's terminal, which continues a stopped guardian: that goes first.
        for victim in ("guardian", "pump", "agent"):
            os.kill(victims[victim], signal.SIGKILL)
        outer.wait()
        assert one(state_dir) is not None, "nobody was left to remove it"
        assert StateDir.open(environ).sessions() == []
        assert one(state_dir) is None, "whoever comes next cleans up"


def test_a_guardian_killed_while_it_writes_leaves_no_half_a_file(environ, state_dir):
    with Outer([*AGENTWRAP, sys.executable, "-S", "-c", BUSY], environ=environ) as outer:
        outer.expect(b"up")
        victims = pids(outer, state_dir)
        guardian = psutil.Process(victims["guardian"])
        guardian.suspend()
        half = state_dir / f".{one(state_dir)['session']}.json.{guardian.pid}.tmp"
        half.write_text("{")
        guardian.kill()
        settle(outer, state_dir)
        assert not half.exists()
