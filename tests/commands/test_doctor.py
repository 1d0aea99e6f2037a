from __future__ import annotations

import asyncio
import json
import os
import select
import signal
import subprocess
import sys
import termios
import time
from contextlib import contextmanager

import pytest
from ptyprocess import PtyProcess

from agentwrap import agents
from agentwrap.commands import doctor as doctor_module
from agentwrap.commands.doctor import QUESTION, lines, understand

CODE = """
import sys
from agentwrap.commands.doctor import doctor
{before}
sys.exit(doctor(as_json=True, notify={notify}))
"""
STATUS, OSC99 = b"\x1b]7501;?\x07", b"\x1b]99;i=agentwrap-doctor:p=?;a=focus\x1b\\"
KEYBOARD, FOCUS, FENCE = b"\x1b[?0u", b"\x1b[?1004;2$y", b"\x1b[?62;22c"


@pytest.fixture
def environ(tmp_path):
    home = tmp_path / "home"
    (home / "bin").mkdir(parents=True)
    return {
        "PATH": f"{home / 'bin'}:/usr/bin:/bin",
        "HOME": str(home),
        "XDG_RUNTIME_DIR": str(home),
        "XDG_CONFIG_HOME": str(home / "config"),
        "TERM": "xterm-256color",
    }


class TestUnderstanding:
    def test_answers_and_keys_are_told_apart(self):
        heard = b"a" + STATUS + b"b" + OSC99 + KEYBOARD + b"\x1b[A" + FOCUS + b"c" + FENCE
        answers, typed = understand(heard)
        assert answers == {
            "status": b"?",
            "osc99": b"i=agentwrap-doctor:p=?;a=focus",
            "keyboard": b"0",
            "focus": b"2",
            "fence": b"62;22",
        }
        assert typed == b"ab\x1b[Ac"

    def test_another_ones_osc_99_is_no_answer(self):
        assert understand(b"\x1b]99;i=other:p=?;\x1b\\" + FENCE)[0] == {"fence": b"62;22"}

    @pytest.mark.parametrize("end", range(len(FENCE)))
    def test_half_a_fence_is_none(self, end):
        assert "fence" not in understand(STATUS + FENCE[:end])[0]


@contextmanager
def terminal(environ, *, notify=False, before=""):
    process = PtyProcess.spawn(
        [sys.executable, "-c", CODE.format(notify=notify, before=before)],
        env=environ,
        dimensions=(24, 80),
        echo=True,
    )
    try:
        yield process
    finally:
        process.close(force=True)


def read_until(process, wanted, deadline=20.0):
    heard = b""
    end = time.monotonic() + deadline
    while wanted not in heard:
        assert select.select([process.fd], [], [], max(0, end - time.monotonic()))[0], heard
        heard += os.read(process.fd, 4096)
    return heard


def rest(process, deadline=20.0):
    heard = b""
    end = time.monotonic() + deadline
    while select.select([process.fd], [], [], max(0, end - time.monotonic()))[0]:
        try:
            data = os.read(process.fd, 4096)
        except OSError:
            break
        if not data:
            break
        heard += data
    return heard


def parse(heard):
    return json.loads(heard[heard.index(b"{") :])


class TestTheTerminal:
    def test_what_it_answers(self, environ):
        with terminal(environ) as process:
            before = termios.tcgetattr(process.fd)
            read_until(process, QUESTION)
            assert termios.tcgetattr(process.fd) != before
            os.write(process.fd, STATUS + OSC99)
            os.write(process.fd, KEYBOARD + FOCUS + FENCE)
            found = parse(rest(process))["terminal"]
        assert (found["status"], found["osc99"], found["keyboard"], found["focus"]) == (
            True,
            True,
            True,
            True,
        )
        assert (found["asked"], found["reason"], found["notifies_by"]) == (True, "", "99")

    def test_foot_is_not_asked_what_it_aborts_over(self, environ):
        with terminal({**environ, "TERM": "foot"}) as process:
            heard = read_until(process, b"\x1b[c")
            os.write(process.fd, STATUS + KEYBOARD + FOCUS + FENCE)
            heard += rest(process)
        assert b"]99;" not in heard
        found = parse(heard)["terminal"]
        assert (found["status"], found["osc99"], found["notifies_by"]) == (True, None, "777")

    def test_a_fence_alone_is_a_no_to_the_rest(self, environ):
        with terminal(environ) as process:
            read_until(process, QUESTION)
            os.write(process.fd, FENCE)
            found = parse(rest(process))["terminal"]
        assert (found["status"], found["osc99"], found["keyboard"], found["focus"]) == (
            False,
            False,
            False,
            None,
        )
        assert found["notifies_by"] == "bel"

    def test_no_answer_is_waited_for_no_longer_than_a_second(self, environ):
        with terminal(environ) as process:
            before = termios.tcgetattr(process.fd)
            read_until(process, QUESTION)
            began = time.monotonic()
            heard = read_until(process, b"state_directory")
            assert 0.9 < time.monotonic() - began < 4
            assert termios.tcgetattr(process.fd) == before
            assert b"it did not answer within 1 s" in heard

    def test_what_is_typed_meanwhile_is_there_afterwards(self, environ):
        with terminal(environ) as process:
            read_until(process, QUESTION)
            os.write(process.fd, b"l" + STATUS + b"s" + FENCE)
            if tiocsti_works():  # it has come back as typing: the terminal echoes it now
                assert b"ls" in read_until(process, b"ls")
            else:  # newer kernels may forbid that; then it is lost, but nothing else is
                assert parse(rest(process))["terminal"]["status"]

    def test_what_was_typed_before_is_left_alone(self, environ):
        wait = "import select; select.select([0], [], [])"
        after = "import atexit; atexit.register(lambda: print('left:', sys.stdin.readline()))"
        with terminal(environ, before=f"{wait}; {after}") as process:
            os.write(process.fd, b"ls\n")
            heard = rest(process)
        assert b"something was typed ahead; try again" in heard
        assert QUESTION not in heard
        assert b"left: ls" in heard

    def test_it_is_restored_when_the_doctor_is_killed_meanwhile(self, environ):
        with terminal(environ) as process:
            before = termios.tcgetattr(process.fd)
            read_until(process, QUESTION)
            process.kill(signal.SIGTERM)
            end = time.monotonic() + 5
            while termios.tcgetattr(process.fd) != before:
                assert time.monotonic() < end
                time.sleep(0.01)
            process.wait()
            assert process.signalstatus == signal.SIGTERM

    def test_notifications_in_band_reach_it(self, environ):
        with terminal({**environ, "TERM_PROGRAM": "ghostty"}, notify=True) as process:
            read_until(process, QUESTION)
            os.write(process.fd, FENCE)
            heard = rest(process)
        assert b"\x1b]777;notify;agentwrap: this is the terminal channel;" in heard
        sent = {entry["channel"]: entry["sent"] for entry in parse(heard)["channels"]}
        assert sent == {"desktop": False, "terminal": True, "command": None, "bell": True}


def tiocsti_works():
    try:
        with open("/proc/sys/dev/tty/legacy_tiocsti") as setting:
            return setting.read().strip() == "1"
    except FileNotFoundError:
        return True


@pytest.fixture
def examine(environ, monkeypatch):
    monkeypatch.setattr(doctor_module, "ask_terminal", lambda **_: {"reason": "not in this test"})

    def examine(*, notify=False, platform="linux", **more):
        environ.update(more)
        monkeypatch.setattr(os, "environ", environ)
        return asyncio.run(doctor_module.examine(environ, platform, notify=notify))

    return examine


def install(environ, name, body):
    path = os.path.join(environ["HOME"], "bin", name)
    with open(path, "w") as file:
        file.write(f"#!/bin/sh\n{body}\n")
    os.chmod(path, 0o755)
    return path


class TestAgents:
    @staticmethod
    def agent(found, name):
        (entry,) = [entry for entry in found["agents"] if entry["agent"] == name]
        return entry

    def test_what_is_installed(self, environ, examine):
        path = install(environ, "claude", "echo '2.1.332 (Claude Code)'")
        found = examine()
        assert self.agent(found, "claude") == {
            "agent": "claude",
            "path": path,
            "version": "2.1.332",
            "works": True,
            "problems": [],
            "remark": "",
        }
        assert self.agent(found, "codex")["path"] is None
        assert [entry["agent"] for entry in found["agents"]] == list(agents.NAMES)

    def test_why_one_would_not_be_seen(self, environ, examine):
        install(environ, "claude", "echo 2.1.100")
        install(environ, "codex", "echo codex-cli 0.163.0")
        found = examine(AGENTWRAP="0", CLAUDE_CODE_DISABLE_TERMINAL_TITLE="1")
        claude, codex = self.agent(found, "claude"), self.agent(found, "codex")
        assert (claude["works"], codex["works"]) == (False, False)
        assert [problem.partition(" ")[0] for problem in claude["problems"]] == [
            "version",
            "CLAUDE_CODE_DISABLE_TERMINAL_TITLE=1:",
            "AGENTWRAP=0:",
        ]
        assert len(codex["problems"]) == 1

    def test_one_that_hangs_is_killed_with_what_it_started(self, environ, examine, monkeypatch, tmp_path):
        monkeypatch.setattr(doctor_module, "VERSION_TIMEOUT", 0.3)
        install(environ, "pi", f"sleep 60 & echo $! >{tmp_path}/pid; wait")
        began = time.monotonic()
        found = self.agent(examine(), "pi")
        assert time.monotonic() - began < 5
        assert found["problems"] == ["no answer to --version within 0.3 s"]
        pid = int((tmp_path / "pid").read_text())
        end = time.monotonic() + 5
        while running(pid):
            assert time.monotonic() < end
            time.sleep(0.01)

    def test_what_it_says_is_not_trusted(self, environ, examine):
        install(environ, "crush", "printf '\\033[2J\\033]0;x\\007 1.\\342\\200\\2562'")
        assert "\x1b" not in json.dumps(examine())

    def test_configuration_that_takes_an_agent_its_texts(self, environ, examine):
        install(environ, "codex", "echo 0.171.0")
        place = os.path.join(environ["XDG_CONFIG_HOME"], "agentwrap")
        os.makedirs(place)
        with open(os.path.join(place, "config.toml"), "w") as file:
            file.write("[agents.codex]\ninject = false\n")
        assert "inject = false" in self.agent(examine(), "codex")["problems"][0]


def running(pid):
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


class TestTheRest:
    def test_a_good_state_directory(self, environ, examine):
        found = examine()["state_directory"]
        assert found == {"path": f"{environ['HOME']}/agentwrap", "ok": True, "reason": ""}
        assert not [name for name in os.listdir(found["path"]) if "doctor" in name]

    def test_a_state_directory_that_is_refused(self, environ, examine, tmp_path):
        (tmp_path / "real").mkdir()
        (tmp_path / "link").symlink_to(tmp_path / "real")
        found = examine(AGENTWRAP_STATE_DIR=str(tmp_path / "link"))["state_directory"]
        assert not found["ok"]
        assert "symbolic link" in found["reason"]

    def test_a_configuration_with_mistakes(self, environ, examine, tmp_path):
        (tmp_path / "c.toml").write_text("[notify]\nsoud = true\n")
        found = examine(AGENTWRAP_CONFIG=str(tmp_path / "c.toml"))
        assert found["configuration"]["files"] == [str(tmp_path / "c.toml")]
        assert "soud" in found["configuration"]["problems"][0]

    def test_channels_here(self, examine):
        found = examine(TERM_PROGRAM="ghostty")
        assert found["order"] == ["desktop", "terminal", "bell"]
        states = {entry["channel"]: (entry["ok"], entry["detail"]) for entry in found["channels"]}
        assert states["terminal"] == (True, "OSC 777")
        assert states["desktop"] == (False, "there is no session bus (DBUS_SESSION_BUS_ADDRESS is not set)")
        assert states["command"] == (None, "none is configured ([notify] command)")

    def test_the_command_is_run_with_notify_only(self, environ, examine, tmp_path):
        install(environ, "tell", f"env >{tmp_path}/told")
        (tmp_path / "c.toml").write_text('[notify]\nchannels = ["command"]\ncommand = ["tell"]\n')
        found = examine(AGENTWRAP_CONFIG=str(tmp_path / "c.toml"))
        assert not (tmp_path / "told").exists()
        assert "sent" not in found["channels"][0]
        examine(notify=True)
        assert "AGENTWRAP_TITLE=agentwrap: this is the command channel" in (tmp_path / "told").read_text()

    def test_everything_is_said_to_people_too(self, environ, examine):
        install(environ, "claude", "echo 2.1.332")
        said = "\n".join(lines(examine(notify=True, TMUX="/nowhere,1,0", TMUX_PANE="%1")))
        for part in (
            "Terminal",
            "tmux",
            "claude",
            "2.1.332",
            "State directory",
            "desktop",
            "not in this test",
        ):
            assert part in said
        assert all(line.isprintable() for line in said.split("\n"))


def test_a_notify_command_that_cannot_be_executed_says_the_way_out(tmp_path):
    script = tmp_path / "notify.sh"
    script.write_text("#!/bin/sh\n")
    config = tmp_path / "config.toml"
    config.write_text(f'[notify]\ncommand = ["{script}"]\n')
    out = subprocess.run(
        [sys.executable, "-m", "agentwrap", "doctor"],
        capture_output=True,
        text=True,
        env={**os.environ, "AGENTWRAP_CONFIG": str(config), "AGENTWRAP_STATE_DIR": str(tmp_path / "state")},
        check=False,
    ).stdout
    assert f"{script}: not executable; chmod +x" in out
