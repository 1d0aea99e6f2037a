"""Over ssh: agentwrap here only, there only, and on both sides. The host is an sshd of the test's own on loopback."""

from __future__ import annotations

import base64
import contextlib
import json
import re
import time

import pytest

from agentwrap.core import report as protocol
from tests.lab.outer import AGENTWRAP, Outer, until
from tests.lab.puppet import report
from tests.lab.remote import SSHD, Host
from tests.lab.scripted import Scripted
from tests.lab.tools import require

TITLE = "Claude Code needs permission"
MESSAGE = "approve Bash: touch x"
SETTLED = 3.0  # seconds: no notification of a blocked session comes later
BELL = b"\a"
ST = b"\x1b\\"


def st(data):
    """The same report, ended by ST: every BEL is a bell then."""
    return data.replace(BELL, ST)


NEEDS = st(report("blocked", MESSAGE, kind="permission"))


@pytest.fixture
def host(tmp_path):
    require("ssh", "ssh-keygen", SSHD)
    with Host(tmp_path / "host") as host:
        yield host


@pytest.fixture
def agent(tmp_path):
    agent = Scripted(tmp_path)
    yield agent
    agent.close()


@pytest.fixture
def told(tmp_path):
    """A configuration of agentwrap here that tells a file; what it was told."""
    path = tmp_path / "told"
    script = tmp_path / "tell.sh"
    script.write_text(
        f'#!/bin/sh\nprintf "%s\\n" "$(echo "$AGENTWRAP_TITLE: $AGENTWRAP_BODY" | tr "\\n" " ")" >>{path}\n'
    )
    config = tmp_path / "config/agentwrap/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(f'[notify]\nchannels = ["command"]\ncommand = ["/bin/sh", "{script}"]\n')
    return lambda: path.read_text() if path.exists() else ""


def state(directory):
    """The session that a state directory holds."""
    for file in directory.glob("*.json"):
        try:
            return json.loads(file.read_text())
        except (OSError, ValueError):
            pass
    return {}


def test_here_only_the_status_of_an_agent_there_arrives_here(host, agent, told, environ, state_dir):
    command = [*AGENTWRAP, *host.ssh(str(agent.path))]
    with Outer(command, environ=environ) as outer:
        agent.write(b"\x1b]7501;?\x1b\\" + b"\x1b[c")
        until(agent.heard, what="the answer")
        assert agent.heard() == protocol.reply(ST)
        agent.write(st(report("working")))
        until(lambda: state(state_dir).get("state") == "working")
        assert state(state_dir)["session"].startswith("ssh-")
        assert state(state_dir)["app"] == "claude-code"
        agent.write(NEEDS)
        until(told, what="told")
        assert told().startswith(f"{TITLE}: {MESSAGE} ")
        assert state(state_dir)["kind"] == "permission"
        assert not host.state_dir.exists()
        outer.read()
        agent.exit(3)
        assert outer.wait() == 3 << 8
        until(lambda: not state(state_dir))


@pytest.mark.parametrize(
    ("terminal", "wanted"),
    [
        (
            {"TERM": "xterm-kitty"},
            rb"\x1b\]99;i=[^:]*:d=0:e=1:p=title:[^;]*;%s\x1b\\" % base64.b64encode(TITLE.encode()),
        ),
        ({"TERM": "xterm-ghostty"}, rb"\x1b\]777;notify;%s;approve Bash: touch x" % TITLE.encode()),
        ({"LC_TERMINAL": "iTerm2"}, rb"\x1b\]9;%s: approve Bash: touch x" % TITLE.encode()),
        ({}, rb"\x07"),
    ],
    ids=["kitty", "ghostty", "iterm", "any"],
)
def test_there_only_the_notification_reaches_this_terminal(host, agent, environ, terminal, wanted):
    command = host.ssh(*AGENTWRAP, str(agent.path))
    with Outer(command, environ={**environ, **terminal}) as outer:
        agent.write(st(report("working")))
        until(lambda: state(host.state_dir).get("state") == "working")
        agent.write(NEEDS)
        until(lambda: outer.read() is not None and re.search(wanted, outer.output), 5, what=f"{wanted!r}")
        agent.exit()
        outer.wait()


def test_there_only_a_terminal_that_is_not_known_is_asked(host, agent, environ):
    command = host.ssh(*AGENTWRAP, str(agent.path))
    with Outer(command, environ=environ) as outer:
        agent.write(st(report("working")) + NEEDS)
        at = outer.expect(b"\x1b]99;i=", 5)
        at = outer.expect(b":p=?;\x1b\\", 5, at)
        ident = re.search(rb"\x1b\]99;(i=[^:]*):p=\?", outer.output)[1]
        outer.send(b"\x1b]99;" + ident + b":p=?;p=title,body,?:o=always\x1b\\")
        outer.expect(base64.b64encode(TITLE.encode()), 5, at)
        assert BELL not in outer.output
        assert agent.heard() == b""
        agent.exit()
        outer.wait()


@pytest.mark.parametrize("asks", [True, False], ids=["that asks", "that never asks"])
def test_on_both_sides_one_notification_on_this_side(host, agent, told, environ, state_dir, asks):
    command = [*AGENTWRAP, *host.ssh(*AGENTWRAP, str(agent.path))]
    with Outer(command, environ=environ) as outer:
        if asks:
            agent.write(b"\x1b]7501;?\x1b\\")
            until(agent.heard, what="the answer")
        agent.write(st(report("working")))
        until(lambda: state(host.state_dir).get("state") == "working")
        until(lambda: state(state_dir).get("state") == "working")
        agent.write(NEEDS)
        for directory in (state_dir, host.state_dir):
            until(lambda directory=directory: state(directory).get("state") == "blocked")
        until(told, what="told")
        time.sleep(SETTLED)
        outer.read()
        assert told().count(TITLE) == 1
        assert BELL not in outer.output
        assert not re.search(rb"\x1b\](9|777|99;(?![^\x1b]*p=\?));", outer.output)
        assert agent.heard() == (protocol.reply(ST) if asks else b"")
        (events,) = host.state_dir.glob("*.events")
        assert "left to the terminal" in events.read_text()
        agent.exit()
        outer.wait()
        assert agent.heard() == (protocol.reply(ST) if asks else b"")


def test_on_both_sides_a_channel_named_there_is_used_all_the_same(host, agent, told, environ):
    host.config('[notify]\nchannels = ["bell"]\n')
    command = [*AGENTWRAP, *host.ssh(*AGENTWRAP, str(agent.path))]
    with Outer(command, environ=environ) as outer:
        agent.write(b"\x1b]7501;?\x1b\\")
        until(agent.heard, what="the answer")
        agent.write(st(report("working")) + NEEDS)
        outer.expect(BELL, 5)
        until(told, what="told")
        agent.exit()
        outer.wait()


class Silent:
    """A command that reports nothing and runs long enough for its end to be news."""

    def __init__(self, folder, code):
        self.path = folder / f"make-{code}"
        self.path.write_text(f"#!/bin/sh\nsleep 10.5\nexit {code}\n")
        self.path.chmod(0o755)

    def __str__(self):
        return str(self.path)


def test_on_both_sides_the_end_of_a_silent_command_is_one_notification(host, told, environ):
    fine, fails = Silent(host.folder, 0), Silent(host.folder, 3)
    inner = {
        "kitty": (fine, {"TERM": "xterm-kitty"}, b"\x1b]99;"),
        "foot": (fails, {"TERM": "foot"}, b"\x1b]777;"),
        "iterm": (fine, {"LC_TERMINAL": "iTerm2"}, b"\x1b]9;"),
    }
    with contextlib.ExitStack() as stack:
        outers = {}
        for name, (make, terminal, _) in inner.items():
            command = [*AGENTWRAP, "--name", name, *host.ssh(*AGENTWRAP, str(make))]
            outers[name] = stack.enter_context(Outer(command, environ={**environ, **terminal}))
        # here, too, the terminal is to show it: what it has from there is enough
        command = [*AGENTWRAP, "--notify", "terminal", *host.ssh(*AGENTWRAP, str(fails))]
        shown = stack.enter_context(Outer(command, environ={**environ, "TERM": "foot"}))
        for name, outer in outers.items():
            make, _, form = inner[name]
            assert outer.wait(30) == (3 << 8 if make is fails else 0)
            assert form in outer.output, "told there, at the end"
        until(lambda: told().count("\n") >= len(inner), what="told")
        time.sleep(SETTLED)
        lines = {line.split()[-1]: line.rstrip() for line in told().splitlines()}
        assert lines == {
            "kitty": "ssh finished: make-0 finished: ~ kitty",
            "foot": "ssh failed (exit code 3): make-3 failed (exit code 3): ~ foot",
            "iterm": "ssh finished: make-0 finished: ~ iterm",
        }
        assert told().count("\n") == len(inner)
        assert shown.wait(30) == 3 << 8
        assert shown.output.count(b"\x1b]777;notify;") == 1


def test_on_one_side_the_end_of_a_silent_command_is_told_too(host, told, environ):
    make = str(Silent(host.folder, 3))
    there = Outer(host.ssh(*AGENTWRAP, make), environ={**environ, "TERM": "foot"})
    here = Outer([*AGENTWRAP, *host.ssh(make)], environ=environ)
    with there, here:
        assert there.wait(30) == here.wait(30) == 3 << 8
        assert there.output.count(b"\x1b]777;notify;make-3 failed (exit code 3);") == 1
        until(told, what="told")
        time.sleep(SETTLED)
        assert told().count("\n") == 1
        assert told().startswith("ssh failed (exit code 3): ")
