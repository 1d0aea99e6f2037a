"""Job control and signals at the worst moments: at the start, while stopped, in storms, to any of our processes."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shlex
import signal
import struct
import sys
import termios
import time

import psutil
import pytest

from tests.lab.judge import left_on, processes_of
from tests.lab.outer import AGENTWRAP, Outer, until
from tests.lab.tools import require

WRAP = shlex.join(AGENTWRAP)
PROMPT = b"READY> "

# Tells keys and sizes, keeps modes on, and stops as a terminal's own Ctrl-Z would.
AGENT = r"""
import fcntl, os, signal, sys, termios, tty
before = termios.tcgetattr(0)
def size(*_): os.write(1, b"[size %s]" % fcntl.ioctl(0, termios.TIOCGWINSZ, bytes(8))[:4].hex().encode())
def on(*_):
    tty.setraw(0, termios.TCSANOW)
    os.write(1, b"\x1b[?2004h\x1b[?1000h\x1b[?25l[on]")
signal.signal(signal.SIGWINCH, size)
signal.signal(signal.SIGCONT, on)
on()
os.write(1, b"\x1b]7501;state=working\x07")
while True:
    key = os.read(0, 1)
    if key == b"\x1a":
        os.write(1, b"\x1b[?25h\x1b[?1000l\x1b[?2004l[off]")
        termios.tcsetattr(0, termios.TCSANOW, before)
        os.kill(0, signal.SIGTSTP)
    elif key == b"s":
        os.kill(os.getpid(), signal.SIGSTOP)
    elif key == b"q":
        os.write(1, b"\x1b[?25h\x1b[?1000l\x1b[?2004l[bye]")
        termios.tcsetattr(0, termios.TCSANOW, before)
        os._exit(0)
    else:
        os.write(1, b"[key %s]" % key.hex().encode())
"""


@pytest.fixture
def agent(tmp_path):
    file = tmp_path / "agent.py"
    file.write_text(AGENT)
    return f"{sys.executable} -S {file}"


@pytest.fixture
def shell(environ):
    with Outer(
        ["bash", "--norc", "--noprofile", "-i"], environ={**environ, "PS1": "READY> ", "HISTFILE": ""}
    ) as outer:
        outer.expect(PROMPT)
        yield outer


def say(outer: Outer, line: str) -> int:
    start = len(outer.output)
    outer.send(line.encode() + b"\r")
    return start


def session(state_dir) -> dict[str, object]:
    for file in state_dir.glob("*.json"):
        try:
            return json.loads(file.read_text())
        except (OSError, ValueError):
            continue
    return {}


def of(state_dir) -> dict[str, int]:
    """The pids of agent, pump and session leader."""
    found = until(lambda: session(state_dir).get("child_pid") and session(state_dir))
    return {
        "agent": found["child_pid"],
        "pump": found["pid"],
        "leader": psutil.Process(found["child_pid"]).ppid(),
    }


def cooked(outer: Outer) -> bool:
    return bool(outer.attributes()[3] & termios.ECHO)


# ---- the start ----


@pytest.fixture
def marked(tmp_path, environ):
    """Starts agentwrap as its script does, and shows when the first line of its own has run."""
    file = tmp_path / "agentwrap"
    file.write_text(
        "import sys\nimport agentwrap\nimport os\nos.write(1, b'!')\n"
        "from agentwrap.__main__ import main\nsys.exit(main())\n"
    )
    environ["PYTHONPATH"] = os.getcwd()
    return str(file)


@pytest.mark.parametrize("how", ["key", "signal"])
def test_ctrl_c_at_any_moment_of_the_start_ends_it_without_a_traceback(how, marked, environ, state_dir):
    """Of the interpreter's own start nothing can be said here: it is over when the first line of ours runs."""
    for step in range(24):
        with Outer([sys.executable, marked, "sleep", "30"], environ=environ) as outer:
            outer.expect(b"!")
            time.sleep(step * 0.004)
            if how == "key":
                os.write(outer.master, b"\x03")
            else:
                os.kill(outer.pid, signal.SIGINT)
            assert os.WTERMSIG(outer.wait()) == signal.SIGINT
            assert b"Traceback" not in outer.output, outer.output
            assert re.fullmatch(rb"!(\^C)?", bytes(outer.output)), outer.output
            assert outer.attributes() == outer.settings
    until(lambda: not processes_of(state_dir))


def test_ctrl_z_at_any_moment_of_the_start_stops_the_job(marked, environ, state_dir):
    with Outer(["bash", "--norc", "--noprofile", "-i"], environ={**environ, "PS1": "READY> "}) as shell:
        shell.expect(PROMPT)
        for step in range(20):
            start = say(shell, f"{sys.executable} {marked} cat")
            shell.expect(b"!", start=start)
            time.sleep(step * 0.005)
            os.write(shell.master, b"\x1a")
            shell.expect(PROMPT, start=start)
            start = say(shell, "fg")
            shell.expect(b"cat\r\n", start=start)
            word = b"word%d" % step
            shell.send(word + b"\r")
            end = shell.expect(word + b"\r\n" + word + b"\r\n", start=start)
            shell.send(b"\x04")
            shell.expect(PROMPT, start=end)
    assert session(state_dir) == {}


@pytest.mark.parametrize("victim", ["pump", "leader"])
def test_killed_at_any_moment_of_the_start(victim, marked, environ, state_dir):
    """The guardian knows what to restore before there is anything to restore, with or without a command."""
    for step in range(20):
        with Outer(["sh", "-c", f"{sys.executable} {marked} sleep 30; :"], environ=environ) as outer:
            outer.expect(b"!")
            pump = psutil.Process(outer.pid).children()[0]
            time.sleep(step * 0.003)
            if victim == "pump":
                pump.kill()
            else:
                leader = until(lambda pump=pump: [p for p in pump.children() if os.getsid(p.pid) == p.pid])[0]
                time.sleep(step * 0.001)
                leader.kill()
            until(outer.ended, 6)
            until(lambda: not processes_of(state_dir), 4)
            assert outer.attributes() == outer.settings, step
            assert left_on(bytes(outer.output)) == []
            assert session(state_dir) == {}


# ---- storms ----


def test_a_storm_of_resizes_ends_with_the_last_size(agent, environ, state_dir):
    with Outer([*AGENTWRAP, *agent.split()], environ=environ) as outer:
        outer.expect(b"[on]")
        for n in range(600):
            fcntl.ioctl(
                outer.master, termios.TIOCSWINSZ, struct.pack("HHHH", 20 + n % 40, 60 + n % 100, 0, 0)
            )
            outer.read()
        fcntl.ioctl(outer.master, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 99, 1, 2))
        last = struct.pack("HH", 33, 99).hex().encode()
        outer.expect(b"[size %b]" % last)
        outer.send(b"k")
        outer.expect(b"[key 6b]")
        outer.send(b"q")
        assert outer.wait() == 0


def test_a_storm_of_signals_kills_nobody(environ, state_dir):
    code = (
        "import os, signal, time\nseen = set()\n"
        "for number in (10, 12, 1, 15): signal.signal(number, lambda number, _: seen.add(number))\n"
        "os.write(1, b'ready')\nwhile len(seen) < 4: time.sleep(0.01)\n"
        "os.write(1, b'all')\nos.read(0, 1)\nos._exit(4)"
    )
    with Outer([*AGENTWRAP, sys.executable, "-S", "-c", code], environ=environ) as outer:
        outer.expect(b"ready")
        for _ in range(300):
            for number in (
                signal.SIGUSR1,
                signal.SIGUSR2,
                signal.SIGHUP,
                signal.SIGTERM,
                signal.SIGWINCH,
                signal.SIGCONT,
            ):
                os.kill(outer.pid, number)
        outer.expect(b"all")
        outer.send(b"\r")
        assert os.waitstatus_to_exitcode(outer.wait()) == 4


def test_an_agent_that_stops_itself_again_and_again(agent, environ, state_dir, shell):
    start = say(shell, f"{WRAP} {agent}")
    shell.expect(b"[on]", start=start)
    for n in range(6):
        start = len(shell.output)
        shell.send(b"s" if n % 2 else b"\x1a")
        shell.expect(PROMPT, start=start)
        assert left_on(bytes(shell.output).replace(b"\x1b[?2004h" + PROMPT, PROMPT)) in ([], ["?2004 on"])
        until(lambda: session(state_dir).get("state") == "suspended")
        start = say(shell, "fg")
        shell.expect(b"[on]", start=start)
        until(lambda: session(state_dir).get("state") == "working")
        shell.send(b"k")
        shell.expect(b"[key 6b]", start=start)
    shell.send(b"q")
    shell.expect(PROMPT, start=shell.expect(b"[bye]"))


# ---- while stopped ----


def test_what_is_written_behind_a_stopped_agent_waits(environ, state_dir, shell, tmp_path):
    """A helper of it goes on writing: the shell's terminal must stay clean."""
    file = tmp_path / "agent.py"
    file.write_text(
        "import os, signal, sys, time\n"
        "if os.fork() == 0:\n"
        "    while os.getppid() != 1: os.write(1, b'\\x1b[?1000h\\x1b[?1003hxxxxxxxx')\n"
        "    os._exit(0)\n"
        "os.write(1, b'[on]'); os.read(0, 1); os.kill(os.getpid(), signal.SIGSTOP)\n"
        "os.write(1, b'[on again]'); os.read(0, 1)"
    )
    start = say(shell, f"{WRAP} {sys.executable} -S {file}")
    shell.expect(b"[on]", start=start)
    time.sleep(0.1)
    start = len(shell.output)
    shell.send(b"\r")
    shell.expect(PROMPT, start=start)
    assert left_on(re.sub(rb"\x1b\[\?2004[hl]", b"", bytes(shell.output))) == []
    start = say(shell, "fg")
    shell.expect(b"[on again]", start=start)
    shell.send(b"\r")
    shell.expect(PROMPT, start=start + 10)
    shell.read(0.1)
    assert left_on(re.sub(rb"\x1b\[\?2004[hl]", b"", bytes(shell.output))) == []


def test_continued_in_the_background_one_that_reads_stops_again(environ, state_dir, shell):
    start = say(shell, f"{WRAP} cat")
    until(lambda: session(state_dir).get("child_pid"))
    until(lambda: not cooked(shell))
    shell.send(b"\x1a")
    shell.expect(PROMPT, start=start + 10)
    start = say(shell, "bg")
    shell.expect(PROMPT, start=start)
    pid = session(state_dir)["pid"]
    until(lambda: psutil.Process(pid).status() == "stopped", what="it reads, so it stops")
    start = say(shell, "fg")
    shell.expect(b"cat\r\n", start=start)
    shell.send(b"word\r")
    shell.expect(b"word\r\nword\r\n", start=start)
    shell.send(b"\x04")
    shell.expect(PROMPT, start=start + 10)


def test_modes_undone_at_a_stop_are_set_again_by_a_later_fg(environ, state_dir, shell, tmp_path):
    """Stopped from outside, continued in the background, stopped there since it reads, and then fg."""
    file = tmp_path / "agent.py"
    file.write_text(
        "import os, tty, termios\ntty.setraw(0, termios.TCSANOW)\nos.write(1, b'\\x1b[?1000h[on]')\n"
        "while os.read(0, 1) != b'q': os.write(1, b'[key]')\n"
        "os.write(1, b'\\x1b[?1000l[bye]')"
    )
    start = say(shell, f"{WRAP} {sys.executable} -S {file}")
    shell.expect(b"[on]", start=start)
    pids = of(state_dir)
    start = len(shell.output)
    os.kill(pids["agent"], signal.SIGSTOP)
    shell.expect(b"\x1b[?1000l", start=start)
    shell.expect(PROMPT, start=start)
    start = say(shell, "bg")
    shell.expect(PROMPT, start=start)
    time.sleep(0.3)
    start = say(shell, "fg")
    shell.expect(b"\x1b[?1000h", start=start)
    shell.send(b"k")
    shell.expect(b"[key]", start=start)
    shell.send(b"q")
    shell.expect(PROMPT, start=shell.expect(b"[bye]", start=start))


def test_resized_while_stopped_it_knows_the_size_when_it_goes_on(agent, environ, state_dir, shell):
    start = say(shell, f"{WRAP} {agent}")
    shell.expect(b"[on]", start=start)
    shell.send(b"\x1a")
    shell.expect(PROMPT, start=shell.expect(b"[off]"))
    fcntl.ioctl(shell.master, termios.TIOCSWINSZ, struct.pack("HHHH", 44, 77, 0, 0))
    start = say(shell, "fg")
    shell.expect(b"[size %b]" % struct.pack("HH", 44, 77).hex().encode(), start=start)
    shell.send(b"q")
    shell.expect(b"[bye]")


@pytest.mark.parametrize("victim", ["pump", "leader", "agent"])
def test_killed_while_stopped(victim, agent, environ, state_dir, shell):
    start = say(shell, f"{WRAP} {agent}")
    shell.expect(b"[on]", start=start)
    pids = of(state_dir)
    shell.send(b"\x1a")
    shell.expect(PROMPT, start=shell.expect(b"[off]"))
    until(lambda: session(state_dir).get("state") == "suspended")
    settings = shell.attributes()
    os.kill(pids[victim], signal.SIGKILL)
    if (
        victim == "pump"
    ):  # its guardian sees to the rest at once; a stopped pump can do nothing before it goes on
        until(lambda: session(state_dir) == {}, 1)
        until(lambda: not psutil.pid_exists(pids["agent"]), 4)
    assert shell.attributes() == settings
    start = say(shell, "fg; echo af''ter")
    shell.expect(b"after\r\n", start=start, timeout=8)
    until(lambda: session(state_dir) == {}, 2)
    start = say(shell, "stty -a; echo us''able")
    shell.expect(b"usable\r\n", start=start)
    assert left_on(re.sub(rb"\x1b\[\?2004[hl]", b"", bytes(shell.output))) == []
    until(lambda: not [p for p in processes_of(state_dir) if "bash" not in p[1]], 5)


def test_stopped_with_its_output_stuck(environ, state_dir, shell, tmp_path):
    """The terminal takes nothing while Ctrl-Z is typed; when it does again, all comes, and the shell has it."""
    file = tmp_path / "count.py"
    file.write_text("import os\nn = 0\nwhile True: n += 1; os.write(1, b'%07d ' % n)\n")
    start = say(shell, f"{WRAP} {sys.executable} -S {file}")
    shell.expect(b"0000009 ", start=start)
    time.sleep(0.5)  # nothing is read: all is full
    os.write(shell.master, b"\x1a")
    until(lambda: session(state_dir).get("state") == "suspended", 5)
    shell.expect(PROMPT, start=start + 60)
    before = bytes(shell.output)
    start = say(shell, "kill -CONT %1 2>/dev/null; fg")
    shell.expect(b"fg\r\n", start=start)
    time.sleep(0.3)
    shell.read(0.1)
    os.write(shell.master, b"\x03")
    shell.expect(PROMPT, start=len(before) + 10)
    start = say(shell, "echo sh''ell")
    shell.expect(b"shell\r\n", start=start)
    numbers = [int(word) for word in re.findall(rb"(\d{7}) ", bytes(shell.output))]
    assert numbers == sorted(set(numbers))  # the terminal itself drops what waits in it at a Ctrl-Z or Ctrl-C


def test_an_orphaned_group_cannot_be_stopped_and_is_not(environ, state_dir):
    """Whoever would continue it is gone: Ctrl-Z does what it does to a bare command, nothing."""
    with Outer(["sh", "-c", f"{WRAP} sh -c 'echo up; read x; echo got $x'"], environ=environ) as outer:
        outer.expect(b"up")
        os.write(outer.master, b"\x1a")
        time.sleep(0.3)
        os.kill(of(state_dir)["pump"], signal.SIGTSTP)
        time.sleep(0.3)
        outer.send(b"word\r")
        outer.expect(b"got word")
        assert outer.wait() == 0


def test_what_was_undone_at_a_stop_is_not_undone_again_behind_the_shells_back(
    environ, state_dir, shell, tmp_path
):
    """It ends in the background: by then the terminal's modes are the shell's."""
    file = tmp_path / "agent.py"
    file.write_text(
        "import os, signal\nos.write(1, b'\\x1b[>7u\\x1b[?1049h\\x1b[?1000h[on]')\nwhile True: signal.pause()"
    )
    start = say(shell, f"{WRAP} {sys.executable} -S {file}")
    shell.expect(b"[on]", start=start)
    pids = of(state_dir)
    os.kill(pids["agent"], signal.SIGSTOP)
    end = shell.expect(b"\x1b[?1049l", start=start)
    end = shell.expect(PROMPT, start=end)
    start = say(shell, "bg")
    shell.expect(PROMPT, start=start)
    os.kill(pids["agent"], signal.SIGKILL)
    until(lambda: session(state_dir) == {})
    start = say(shell, "echo af''ter")
    shell.expect(b"after\r\n", start=start)
    assert b"\x1b[?1049l" not in shell.output[end:]
    assert b"\x1b[<" not in shell.output[end:]


# ---- to our own processes ----


def test_the_leader_stopped_while_typing(agent, environ, state_dir):
    """It is in nobody's way."""
    with Outer([*AGENTWRAP, *agent.split()], environ=environ) as outer:
        outer.expect(b"[on]")
        leader = of(state_dir)["leader"]
        os.kill(leader, signal.SIGSTOP)
        for _ in range(200):
            outer.send(b"k")
        until(lambda: outer.read(0.05) is not None and outer.output.count(b"[key 6b]") == 200)
        os.kill(leader, signal.SIGCONT)
        outer.send(b"q")
        assert outer.wait() == 0


@pytest.mark.parametrize(
    "name", ["TERM", "HUP", "INT", "QUIT", "USR1", "ALRM", "PIPE", "TSTP", "TTIN", "WINCH", "CONT"]
)
def test_signals_to_the_leader_are_none_of_its_business(name, agent, environ, state_dir):
    with Outer([*AGENTWRAP, *agent.split()], environ=environ) as outer:
        outer.expect(b"[on]")
        os.kill(of(state_dir)["leader"], getattr(signal, f"SIG{name}"))
        outer.send(b"k")
        outer.expect(b"[key 6b]")
        outer.send(b"q")
        assert outer.wait() == 0


def test_all_our_processes_told_to_end_at_once(environ, state_dir):
    """As `pkill agentwrap` does."""
    with Outer([*AGENTWRAP, "sleep", "30"], environ=environ) as outer:
        pids = of(state_dir)
        for pid in (pids["leader"], pids["pump"]):
            os.kill(pid, signal.SIGTERM)
        assert os.WTERMSIG(outer.wait()) == signal.SIGTERM
        assert outer.attributes() == outer.settings
    until(lambda: session(state_dir) == {} and not processes_of(state_dir))


def test_the_notification_helper_killed_again_and_again(environ, state_dir, tmp_path):
    """Each notification finds another; the session and its terminal know nothing of it."""
    told = tmp_path / "told"
    config = tmp_path / "config" / "agentwrap"
    config.mkdir(parents=True)
    (config / "config.toml").write_text(
        f'[notify]\nchannels = ["command"]\nblocked_delay = 0.05\ncommand = ["sh", "-c", "echo x >>{told}"]\n'
    )
    code = "import os\nwhile True:\n key = os.read(0, 1)\n if key == b'q': os._exit(0)\n os.write(1, b'\\x1b]7501;state=%b\\x07[%b]' % ({b'b': b'blocked', b'w': b'working'}[key], key))"
    code = "import tty, termios; tty.setraw(0, termios.TCSANOW)\n" + code
    with Outer([*AGENTWRAP, sys.executable, "-S", "-c", code], environ=environ) as outer:
        leader = of(state_dir)["leader"]
        killed = 0
        for _ in range(3):
            outer.send(b"b")
            until(lambda: session(state_dir).get("state") == "blocked")
            helpers = until(
                lambda: [
                    p for p in psutil.Process(leader).children() if "notifiers" in " ".join(p.cmdline())
                ],
                8,
            )
            for helper in helpers:
                helper.kill()
                killed += 1
            outer.send(b"w")
            until(lambda: session(state_dir).get("state") == "working")
        assert killed >= 3
        outer.send(b"q")
        assert outer.wait() == 0
        assert outer.attributes() == outer.settings
    until(lambda: not processes_of(state_dir), 8)


# ---- several on one terminal ----


def test_two_in_a_makefile_at_once(environ, state_dir, tmp_path):
    require("make")
    (tmp_path / "Makefile").write_text(
        f"all: one two\none:\n\t{WRAP} sh -c 'echo one up; sleep $(NAP); echo one over'\n"
        f"two:\n\t{WRAP} sh -c 'echo two up; sleep $(NAP); echo two over'\n"
    )
    with Outer(["bash", "--norc", "--noprofile", "-i"], environ={**environ, "PS1": "READY> "}) as outer:
        outer.expect(PROMPT)
        settings = outer.attributes()
        start = say(outer, f"make -s -j2 -f {tmp_path}/Makefile NAP=0.3; echo made $?")
        for wanted in (b"one up", b"two up", b"one over", b"two over", b"made 0"):
            outer.expect(wanted, start=start)
        outer.expect(PROMPT, start=outer.expect(b"made 0", start=start))
        until(lambda: outer.attributes() == settings)
        start = say(outer, f"make -s -j2 -f {tmp_path}/Makefile NAP=2; echo made $?")
        outer.expect(b"two up", start=start)
        outer.expect(b"one up", start=start)
        # dash forks with vfork: stopped before its exec, a child would keep the shell from stopping
        until(lambda: sum(p[1].startswith("sleep 2") for p in processes_of(state_dir)) == 2)
        os.write(outer.master, b"\x1a")
        outer.expect(PROMPT, start=start + 60)
        until(lambda: outer.attributes() == settings)
        start = say(outer, "fg")
        outer.expect(b"two over", start=start)
        outer.expect(PROMPT, start=start + 10)
        until(lambda: outer.attributes() == settings)
    until(
        lambda: session(state_dir) == {} and not [p for p in processes_of(state_dir) if "agentwrap" in p[1]]
    )


def test_a_pipeline_runs_bare_at_both_ends(environ, state_dir):
    script = f"{WRAP} sh -c 'seq 100000' | {WRAP} sh -c 'sha256sum'; seq 100000 | sha256sum"
    with Outer(["bash", "-c", script], environ=environ) as outer:
        outer.wait()
        one, other = outer.output.split(b"\r\n")[:2]
        assert one == other
