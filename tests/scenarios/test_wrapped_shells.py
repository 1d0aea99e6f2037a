"""A shell, a script or a launcher is wrapped, and what reports is a program it started."""

from __future__ import annotations

import json
import os
import signal
import sys
import time

import psutil
import pytest

from tests.lab.judge import left_on
from tests.lab.outer import AGENTWRAP, Outer, until
from tests.lab.tools import require

AGENT = """
import os, sys, time, subprocess
if "helper" in sys.argv:
    subprocess.Popen(["sleep", "5"])
os.write(1, b"\\x1b[?1000h\\x1b[?1049h\\x1b[?25lpid %d.\\x1b]7501;state=working:app=demo\\x07" % os.getpid())
while True:
    time.sleep(9)
"""


@pytest.fixture
def agent(tmp_path):
    file = tmp_path / "agent.py"
    file.write_text(AGENT)
    return f"{sys.executable} -S {file}"


def session(state_dir):
    for file in state_dir.glob("*.json"):
        try:
            return json.loads(file.read_text())
        except (OSError, ValueError):
            continue
    return {}


def modes(outer: Outer) -> list[str]:
    """What is left on beside what a shell's line editor uses itself."""
    return [mode for mode in left_on(bytes(outer.output)) if mode not in ("?1 on", "?2004 on", "SGR")]


def old_enough(pid: int) -> None:
    """A process that lived for a moment only is taken for one that reported for somebody else."""
    until(lambda: psutil.Process(pid).create_time() + 0.5 < time.time())


def kill_agent(outer: Outer, state_dir) -> None:
    """Kill the agent once it has reported, and see its state and modes go while the wrapped program stays."""
    end = outer.expect(b"pid ")
    outer.expect(b".", start=end)
    pid = int(outer.output[end:].split(b".")[0])
    until(lambda: session(state_dir).get("state") == "working")
    assert pid != session(state_dir)["child_pid"]
    old_enough(pid)
    os.kill(pid, signal.SIGKILL)
    until(lambda: session(state_dir).get("state") == "idle", 2, "the state has ended with its program")
    try:
        until(lambda: (outer.read(0.01), not modes(outer))[1], 2)
    except AssertionError:
        raise AssertionError(f"left on: {modes(outer)} after {bytes(outer.output)!r}") from None
    assert not outer.ended()


@pytest.mark.parametrize("name", ["bash", "zsh", "sh"])
@pytest.mark.parametrize("helper", ["", " helper"])
def test_an_agent_killed_in_a_wrapped_shell(name, helper, agent, environ, state_dir):
    require(name)
    words = {"bash": ["bash", "--norc", "-i"], "zsh": ["zsh", "-f", "-i"], "sh": ["sh", "-i"]}[name]
    environ = {**environ, "PS1": "READY> "}
    with Outer([*AGENTWRAP, *words], environ=environ) as outer:
        outer.expect(b"READY> ")
        outer.send(f"{agent}{helper}\r".encode())
        kill_agent(outer, state_dir)
        start = len(outer.output)
        outer.send(b"echo still; exit\r")
        outer.expect(b"still", start=start)
        outer.wait()


def test_an_agent_killed_in_a_script_that_goes_on(agent, environ, state_dir, tmp_path):
    script = tmp_path / "start.sh"
    script.write_text(f"#!/bin/sh\nsleep 600 &\n{agent}\necho went on\nsleep 30\n")
    script.chmod(0o755)
    with Outer([*AGENTWRAP, str(script)], environ=environ) as outer:
        kill_agent(outer, state_dir)
        outer.expect(b"went on")


def test_a_short_report_for_a_script_outlives_its_process(environ, state_dir, tmp_path):
    script = tmp_path / "backup.sh"
    report = f"{sys.executable} -m agentwrap report working --msg Syncing"
    script.write_text(f"#!/bin/sh\n{report}\necho told\nread answer\n")
    script.chmod(0o755)
    with Outer([*AGENTWRAP, str(script)], environ=environ) as outer:
        outer.expect(b"told")
        until(lambda: session(state_dir).get("message") == "Syncing")
        # the process that wrote the report is gone; what it reported for goes on
        until(lambda: len(psutil.Process(outer.pid).children(recursive=True)) == 2)
        outer.send(b"x")
        outer.expect(b"x")
        assert session(state_dir)["state"] == "working"
        outer.send(b"\r")
        outer.wait()


def test_what_a_script_runs_after_a_report_is_not_who_reported(environ, state_dir, tmp_path):
    script = tmp_path / "sync.sh"
    report = f"{sys.executable} -m agentwrap report working --msg Syncing"
    script.write_text(f"#!/bin/sh\n{report}\nsleep 0.4\nsleep 0.4\necho went on\nread answer\n")
    script.chmod(0o755)
    with Outer([*AGENTWRAP, str(script)], environ=environ) as outer:
        outer.expect(b"went on")
        assert session(state_dir)["state"] == "working"
        outer.send(b"\r")
        outer.wait()


def test_a_clean_exit_in_a_wrapped_shell_leaves_the_next_program_alone(environ, state_dir, tmp_path):
    tool = tmp_path / "tool.py"
    tool.write_text(
        "import os, sys, time\nos.write(1, b'\\x1b]7501;state=%s\\x07up %s.' % (sys.argv[1].encode(), sys.argv[1].encode()))\n"
        "sys.stdin.readline()\nif sys.argv[1] == 'working': os.write(1, b'\\x1b]7501;state=clear\\x07')\n"
    )
    with Outer([*AGENTWRAP, "bash", "--norc", "-i"], environ={**environ, "PS1": "READY> "}) as outer:
        outer.expect(b"READY> ")
        for state in ("working", "blocked", "done"):
            start = len(outer.output)
            outer.send(f"{sys.executable} -S {tool} {state}\r".encode())
            outer.expect(f"up {state}.".encode(), start=start)
            until(lambda state=state: session(state_dir).get("state") == state)
            old_enough(max(p.pid for p in psutil.Process(outer.pid).children(recursive=True)))
            start = len(outer.output)
            outer.send(b"\r")
            outer.expect(b"READY> ", start=start)
            # done is an outcome and stays (until a key is typed, which was the one that ended it)
            until(lambda: session(state_dir).get("state") == "idle")
        outer.send(b"exit\r")
        outer.wait()
