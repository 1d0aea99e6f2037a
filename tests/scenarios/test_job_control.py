"""Ctrl-Z, fg, bg, & and kill, through real shells, as without a wrapper."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import termios

import psutil
import pytest

from tests.lab.outer import AGENTWRAP, Outer, until
from tests.lab.tools import require

PROMPT = b"READY> "
WRAP = " ".join(AGENTWRAP)

# An agent: reports, keeps modes on, repaints when continued, and tells the keys it gets.
AGENT = """
import os, signal, sys, time, tty, termios
def out(text): os.write(1, text.encode())
before = termios.tcgetattr(0)
def on(*_):
    tty.setraw(0, termios.TCSANOW)
    out("\\x1b[?2004h\\x1b[?1000h[painted]")
def off():
    out("\\x1b[?1000l\\x1b[?2004l[tidied]")
    termios.tcsetattr(0, termios.TCSANOW, before)
signal.signal(signal.SIGCONT, on)
on()
out("\\x1b]7501;state=working:app=demo\\x07")
while True:
    key = os.read(0, 1)
    if key == b"\\x1a":
        off()
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(0, signal.SIGTSTP)
    elif key == b"q":
        off()
        sys.exit(0)
    else:
        out(f"[key {key!r}]")
"""


@pytest.fixture
def agent(tmp_path):
    file = tmp_path / "agent.py"
    file.write_text(AGENT)
    return f"{sys.executable} -S {file}"


def shell(name: str, environ: dict[str, str]) -> Outer:
    require(name)
    words = {
        "bash": ["bash", "--norc", "--noprofile", "-i"],
        "zsh": ["zsh", "-f", "-i"],
        "fish": ["fish", "--no-config", "-i"],
    }[name]
    environ = {**environ, "PS1": PROMPT.decode(), "fish_greeting": "", "HISTFILE": ""}
    outer = Outer(words, environ=environ)
    if name == "fish":
        outer.send(b"function fish_prompt; echo -n 'READY> '; end; function fish_mode_prompt; end\r")
    outer.expect(PROMPT)
    return outer


def say(outer: Outer, line: str) -> int:
    """Type a command line at the prompt; the index behind its echo."""
    start = len(outer.output)
    outer.send(line.encode() + b"\r")
    return start


def prompt(outer: Outer, start: int) -> None:
    outer.expect(PROMPT, start=start)


def session(state_dir) -> dict[str, object] | None:
    for file in state_dir.glob("*.json"):
        try:
            return json.loads(file.read_text())
        except (OSError, ValueError):
            continue
    return None


def state(state_dir) -> object:
    found = session(state_dir)
    return found and found["state"]


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_ctrl_z_jobs_fg(name, agent, environ, state_dir):
    with shell(name, environ) as outer:
        start = say(outer, f"{WRAP} {agent}")
        outer.expect(b"[painted]", start=start)
        until(lambda: state(state_dir) == "working")

        start = len(outer.output)
        outer.send(b"\x1a")
        outer.expect(b"[tidied]", start=start)
        prompt(outer, start)
        until(lambda: state(state_dir) == "suspended")

        start = say(outer, "jobs")
        outer.expect(b"suspended" if name == "zsh" else b"topped", start=start)
        prompt(outer, start)

        start = say(outer, "fg")
        outer.expect(b"[painted]", start=start)
        until(lambda: state(state_dir) == "working")
        outer.send(b"x")
        outer.expect(b"[key b'x']", start=start)

        start = len(outer.output)
        outer.send(b"q")
        prompt(outer, start)
        start = say(outer, "echo st''ill")
        outer.expect(b"still\r\n" if name != "fish" else b"still", start=start)
        assert not list(state_dir.glob("*.json"))


def test_twice_stopped_twice_continued(agent, environ, state_dir):
    with shell("bash", environ) as outer:
        start = say(outer, f"{WRAP} {agent}")
        outer.expect(b"[painted]", start=start)
        for _ in range(2):
            start = len(outer.output)
            outer.send(b"\x1a")
            prompt(outer, start)
            start = say(outer, "fg")
            outer.expect(b"[painted]", start=start)
        outer.send(b"q")
        prompt(outer, start)


def test_stopped_from_outside_its_modes_are_undone_and_set_again(agent, environ, state_dir):
    with shell("bash", environ) as outer:
        start = say(outer, f"{WRAP} {agent}")
        outer.expect(b"[painted]", start=start)
        child = until(lambda: (session(state_dir) or {}).get("child_pid"))
        start = len(outer.output)
        os.kill(child, signal.SIGSTOP)
        prompt(outer, start)
        assert b"[tidied]" not in outer.output[start:]
        assert b"\x1b[?1000l" in outer.output[start:]
        start = say(outer, "fg")
        outer.expect(b"\x1b[?1000h", start=start)
        outer.expect(b"[painted]", start=start)
        outer.send(b"q")
        prompt(outer, start)


def test_the_wrapper_stopped_and_continued_from_outside(agent, environ, state_dir):
    with shell("bash", environ) as outer:
        start = say(outer, f"{WRAP} {agent}")
        outer.expect(b"[painted]", start=start)
        pid = until(lambda: (session(state_dir) or {}).get("pid"))
        start = len(outer.output)
        os.kill(pid, signal.SIGSTOP)
        prompt(outer, start)
        start = say(outer, "fg")
        outer.expect(b"fg", start=start)
        until(lambda: not outer.attributes()[3] & termios.ECHO, what="raw mode is back")
        outer.send(b"z")
        outer.expect(b"[key b'z']", start=start)
        outer.send(b"q")
        prompt(outer, start)


def test_a_stop_signal_to_the_wrapper_stops_the_job(agent, environ, state_dir):
    with shell("bash", environ) as outer:
        start = say(outer, f"{WRAP} sleep 60")
        pid = until(lambda: (session(state_dir) or {}).get("pid"))
        os.kill(pid, signal.SIGTSTP)
        prompt(outer, start)
        until(lambda: state(state_dir) == "suspended")
        start = say(outer, "kill %1; fg")
        prompt(outer, start)


def test_background_then_foreground(environ, state_dir):
    with shell("bash", environ) as outer:
        start = say(outer, f"{WRAP} cat &")
        prompt(outer, start)
        # it reads, so it stops, as cat would without us
        until(lambda: state(state_dir) == "suspended")
        start = say(outer, "fg")
        until(lambda: state(state_dir) != "suspended")
        until(lambda: not outer.attributes()[3] & termios.ECHO)
        outer.send(b"hello\r")
        outer.expect(b"hello\r\nhello\r\n", start=start)
        outer.send(b"\x04")
        prompt(outer, start)


def test_in_the_background_the_shells_settings_stay(environ, state_dir):
    with shell("bash", environ) as outer:
        start = say(outer, f"{WRAP} sh -c 'echo from below; sleep 1; exit 4' &")
        outer.expect(b"from below\r\n", start=start + 60)
        until(lambda: not outer.attributes()[3] & termios.ICANON, what="bash edits a line")
        editing = outer.attributes()
        start = say(outer, "wait %1; echo got $?")
        outer.expect(b"got 4", start=start)
        prompt(outer, start)
        until(lambda: outer.attributes() == editing, what="the line editor's settings are back")
        assert b"\r\r\n" not in outer.output


def test_bg_of_a_stopped_job_goes_on_and_fg_brings_it_back(environ, state_dir):
    with shell("bash", environ) as outer:
        # no shell: dash forks with vfork, and a child stopped before its exec keeps the shell from stopping
        code = "import time; [(print('tick', n, flush=True), time.sleep(0.02)) for n in range(400)]"
        ticking = f'{sys.executable} -c "{code}"'
        start = say(outer, f"{WRAP} {ticking}")
        outer.expect(b"tick 3", start=start)
        start = len(outer.output)
        outer.send(b"\x1a")
        prompt(outer, start)
        start = say(outer, "bg")
        outer.expect(b"tick", start=start)
        start = say(outer, "fg")
        outer.expect(b"tick", start=start)
        until(lambda: not outer.attributes()[3] & termios.ECHO)
        start = len(outer.output)
        outer.send(b"\x03")
        prompt(outer, start)
        start = say(outer, "echo code $?")
        outer.expect(b"code 130", start=start)


@pytest.mark.parametrize(
    "line",
    [
        "sh -c '{wrap} {agent}; echo'",
        "time {wrap} {agent}",
        "({wrap} {agent})",
        "sh {dir}/script.sh",
        "make -s -f {dir}/Makefile agent",
        "echo ignored | xargs -o {wrap} {agent}",
    ],
)
def test_started_by_something_else_it_stops_and_goes_on(line, agent, environ, state_dir, tmp_path):
    if line.startswith("make"):
        require("make")
    (tmp_path / "script.sh").write_text(f"{WRAP} {agent}\n:\n")
    (tmp_path / "Makefile").write_text(f"agent:\n\t{WRAP} {agent}\n")
    with shell("bash", environ) as outer:
        start = say(outer, line.format(wrap=WRAP, agent=agent, dir=tmp_path))
        outer.expect(b"[painted]", start=start)
        start = len(outer.output)
        outer.send(b"\x1a")
        prompt(outer, start)
        until(lambda: state(state_dir) == "suspended")
        start = say(outer, "fg")
        outer.expect(b"[painted]", start=start)
        outer.send(b"q")
        prompt(outer, start)
        start = say(outer, "echo mo''re")
        outer.expect(b"more", start=start)


def test_an_agent_without_a_shell_cannot_stop_and_goes_on(agent, environ, state_dir):
    """The terminal's own command: nobody could ever continue it, so the kernel discards the stop."""
    with Outer([*AGENTWRAP, *agent.split()], environ=environ) as outer:
        outer.expect(b"[painted]")
        outer.send(b"\x1a")
        end = outer.expect(b"[tidied]")
        outer.expect(b"[painted]", start=end)
        outer.send(b"k")
        outer.expect(b"[key b'k']", start=end)
        outer.send(b"q")
        assert outer.wait() == 0
        until(lambda: not list(state_dir.glob("*.json")))


@pytest.mark.parametrize("name", ["TERM", "HUP", "INT", "QUIT", "USR1", "USR2"])
def test_a_signal_to_the_wrapper_ends_the_command_and_both_die_of_it(name, environ, state_dir):
    number = getattr(signal, f"SIG{name}")
    with Outer([*AGENTWRAP, "sleep", "60"], environ=environ) as outer:
        pid = until(lambda: (session(state_dir) or {}).get("child_pid") and session(state_dir)["pid"])
        before = outer.settings
        os.kill(pid, number)
        assert os.WTERMSIG(outer.wait()) == number
        assert outer.attributes() == before


def test_a_command_that_ignores_term_keeps_its_wrapper(environ, state_dir):
    code = "import os, signal, time; signal.signal(15, lambda *_: os.write(1, b'no')); os.write(1, b'ready')\nwhile True: time.sleep(9)"
    with Outer([*AGENTWRAP, sys.executable, "-c", code], environ=environ) as outer:
        outer.expect(b"ready")
        os.kill(outer.pid, signal.SIGTERM)
        outer.expect(b"no")
        assert not outer.ended()
        os.kill(outer.pid, signal.SIGINT)
        outer.wait()


@pytest.mark.parametrize(
    ("script", "status"), [("exit 0", 0), ("exit 7", 7 << 8), ("kill -9 $$", 9), ("kill -11 $$", 11)]
)
def test_the_end_is_passed_on(script, status, environ):
    with Outer([*AGENTWRAP, "sh", "-c", script], environ=environ) as outer:
        assert outer.wait() & ~0x80 == status


def test_what_keys_mean_stays_with_the_command(environ):
    with Outer([*AGENTWRAP, "cat"], environ=environ) as outer:
        until(lambda: psutil.Process(outer.pid).children(recursive=True)[1:], what="cat has started")
        until(lambda: psutil.Process(outer.pid).children(recursive=True)[-1].name() == "cat")
        outer.send(b"\x1c")
        assert os.WTERMSIG(outer.wait()) == signal.SIGQUIT
        assert re.search(rb"\^\\", outer.output)
