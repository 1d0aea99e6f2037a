"""Real agents on another machine, wrapped here, or here and there: what they do arrives here, and is told once."""

from __future__ import annotations

import time

import pytest

from tests.lab import install
from tests.lab.dialects import CLAUDE, CODEX
from tests.lab.home import Home, Model
from tests.lab.outer import AGENTWRAP
from tests.lab.remote import SSHD, Host
from tests.lab.session import SETTLED, START
from tests.lab.terminal import Terminal
from tests.lab.tools import require
from tests.lab.watch import Notices, States

pytestmark = pytest.mark.agents


@pytest.fixture(scope="module")
def model():
    with Model() as model:
        yield model


@pytest.mark.parametrize("both", [False, True], ids=["here only", "on both sides"])
@pytest.mark.parametrize("dialect", [CLAUDE, CODEX], ids=["claude", "codex"])
def test_a_turn_and_a_question_arrive_here_once(dialect, both, model, tmp_path):
    require("ssh", "ssh-keygen", SSHD)
    installed = install.find(dialect.agent, install.NEWEST, install.directory())
    if installed is None:
        pytest.skip("not installed: python tests/lab/install.py")
    there = Home(tmp_path / "home there", model.port)
    there.install({dialect.agent: installed.program})
    dialect.prepare(there)
    here = tmp_path / "here"
    here.mkdir()
    (here / "state").mkdir(mode=0o700)
    notices = Notices(here / "notices")
    config = here / "config/agentwrap/config.toml"
    config.parent.mkdir(parents=True)
    words = ", ".join(f'"{word}"' for word in notices.command)
    config.write_text(f'[notify]\nchannels = ["command"]\ncommand = [{words}]\n')
    environ = there.environ(
        HOME=str(here), XDG_CONFIG_HOME=str(here / "config"), AGENTWRAP_STATE_DIR=str(here / "state")
    )
    path = there.environ()
    path.pop("TERM")
    with (
        Host(tmp_path / "host", model.beside, **{**dialect.environ, **path}) as host,
        States(here / "state") as states,
    ):
        wrapped = AGENTWRAP if both else []
        line = f'cd "{there.work}" && exec "$@"'
        command = host.ssh("sh", "-c", line, "sh", *wrapped, *dialect.argv)
        argv = model.beside([*AGENTWRAP, *command])
        with Terminal(argv, environ=environ, cwd=here) as terminal:
            terminal.until(dialect.ready, START)
            terminal.until(lambda: states.state == "idle")
            time.sleep(1)
            terminal.focus(on=True)
            terminal.type("say pong")
            terminal.key("enter")
            terminal.focus(on=False)
            terminal.until(lambda: states.state == "done" or len(notices.all()) == 1, 60)
            terminal.until(lambda: len(notices.all()) == 1, 15)
            terminal.focus(on=True)
            terminal.type("please touch it")
            terminal.key("enter")
            terminal.focus(on=False)
            terminal.until(lambda: states.state == "blocked", 60)
            terminal.until(lambda: len(notices.all()) == 2, 15)
            time.sleep(SETTLED)
            told = [(notice.event, notice.title) for notice in notices.all()]
            assert told == [
                ("done", f"{dialect.title} finished"),
                ("blocked", f"{dialect.title} needs permission"),
            ]
            if both:
                events = "".join(file.read_text() for file in host.state_dir.glob("*.events"))
                assert events.count("left to the terminal") == 2
            terminal.focus(on=True)
            terminal.key("esc")
            terminal.until(lambda: states.state in ("idle", "working"))
