"""The real agents with the hooks that `agentwrap hooks` prints, pasted as it says.

Where an agent reports nothing itself, what the hooks say is the state, and each event is told once. Where one speaks
for itself, the hooks change nothing. An agent's own reports are left out by a setting or an old version.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from tests.lab import install
from tests.lab.dialects import CLAUDE, CODEX, OPENCODE, Dialect
from tests.lab.home import Model
from tests.lab.session import AGENTWRAP, Session
from tests.lab.tools import require
from tests.lab.watch import Notice

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Future
    from pathlib import Path

    from tests.lab.home import Home

pytestmark = [pytest.mark.agents, pytest.mark.timeout(400)]

AT_ONCE = 3  # scenarios
SLOW_START = 60.0  # seconds
HERE = "~/work"


def printed(agent: str) -> str:
    """Return what `agentwrap hooks` prints for an agent."""
    done = subprocess.run([*AGENTWRAP, "hooks", agent], check=True, capture_output=True, text=True)
    assert done.stderr
    return done.stdout


@dataclass(frozen=True)
class Hooked:
    """An agent with hooks: which one is installed, how it is started, and where the hooks go."""

    dialect: Dialect
    version: str
    paste: Callable[[Home], None]
    trust: str | None = None  # on the screen at the start, to be answered with Enter


def paste_claude(home: Home) -> None:
    home.write(".claude/settings.json", printed("claude"))


def paste_codex(home: Home) -> None:
    path = home.root / ".codex/config.toml"
    path.write_text(path.read_text() + printed("codex"))


def paste_opencode(home: Home) -> None:
    home.write(".config/opencode/plugins/agentwrap.js", printed("opencode"))
    # Where there are plugins it waits for a package that some of them need, and which is not to be had here.
    home.write(".config/opencode/node_modules/.package-lock.json", "{}")
    needed = {"packages": {"": {"dependencies": {"@opencode-ai/plugin": "1"}}}}
    home.write(".config/opencode/package-lock.json", needed)


def paste_copilot(home: Home) -> None:
    home.write(".copilot/hooks/agentwrap.json", printed("copilot"))
    launch(home, "copilot", f"COPILOT_PROVIDER_BASE_URL=http://127.0.0.1:{home.port}/v1")


def paste_gemini(home: Home) -> None:
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
        "general": {"disableAutoUpdate": True},
        "privacy": {"usageStatisticsEnabled": False},
    }
    home.write(".gemini/settings.json", settings | json.loads(printed("gemini")))
    launch(home, "gemini", f"GOOGLE_GEMINI_BASE_URL=http://127.0.0.1:{home.port} node")


def launch(home: Home, name: str, before: str) -> None:
    """Put a script that starts the program as it needs to be here in its place."""
    program = os.readlink(home.bin / name)
    (home.bin / name).unlink()
    home.write(f"bin/{name}", f'#!/bin/sh\nexec env {before} {program} "$@"\n')
    (home.bin / name).chmod(0o755)


SILENT = {
    "CLAUDE_CODE_DISABLE_TERMINAL_TITLE": "1"
}  # then it does not ask whether status is understood, either
TRUSTING = ("codex", "--dangerously-bypass-hook-trust", "-a", "on-request")

AGENTS = {
    "claude": Hooked(dataclasses.replace(CLAUDE, environ=SILENT), "2.1.308", paste_claude),
    "claude-speaking": Hooked(CLAUDE, install.NEWEST, paste_claude),
    "codex": Hooked(
        dataclasses.replace(CODEX, agent="codex-silent", argv=TRUSTING, reports=False), "0.162.1", paste_codex
    ),
    "codex-speaking": Hooked(dataclasses.replace(CODEX, argv=TRUSTING), install.NEWEST, paste_codex),
    "opencode": Hooked(OPENCODE, install.NEWEST, paste_opencode),
    "copilot": Hooked(
        Dialect(
            agent="copilot",
            title="copilot",
            argv=("copilot",),
            ready=r"for shortcuts|/ commands",
            goodbye=(),
            reports=False,
            environ={
                "COPILOT_OFFLINE": "true",
                "COPILOT_MODEL": "gpt-5.4",
                "COPILOT_PROVIDER_API_KEY": "x",
            },
        ),
        install.NEWEST,
        paste_copilot,
        trust=r"Do you trust",
    ),
    "gemini": Hooked(
        Dialect(
            agent="gemini",
            title="gemini",
            argv=("gemini",),
            ready=r"Type your message",
            goodbye=(),
            environ={"GEMINI_API_KEY": "x"},
        ),
        install.NEWEST,
        paste_gemini,
    ),
}


# --- what the person does


def turn(session: Session) -> None:
    """Say something, go away, and come back for the answer."""
    session.say("say pong")
    session.until_state("done")
    session.until_notices(1)


def approve(session: Session) -> None:
    """Let a command be run, after so long that an agent has told again that it waits."""
    session.say("please touch it")
    session.until_state("blocked")
    session.until_notices(1)
    session.rest(7.5)
    session.press("enter")
    session.until_state("done")
    session.until_notices(2)
    assert (session.home.work / "probe.txt").exists()


def answer(session: Session) -> None:
    """Answer a question, after so long that an agent has told again that it waits."""
    session.say("ask me")
    session.until_state("blocked")
    session.until_notices(1)
    session.rest(7.5)
    session.press("enter")
    session.until_state("done")
    session.until_notices(2)


def error(session: Session) -> None:
    """The model fails."""
    session.say("fail it")
    session.until_state("error")
    session.until_notices(1)


def cancel(session: Session) -> None:
    """Stop a turn that takes too long."""
    session.say("slow please")
    session.until_state("working")
    for _ in range(10):  # some want to be sure, and for a while only
        session.press("esc")
        if session.states.state == "idle":
            break
    session.until_state("idle")


# --- what is due


@dataclass(frozen=True)
class Scenario:
    """What is done with an agent, and what is due: the states as a pattern, the notifications as they are."""

    agent: str
    act: Callable[[Session], None]
    states: str
    notices: tuple[tuple[str, str], ...] = ()  # what it says after the agent's name, and the message

    @property
    def name(self) -> str:
        return f"{self.agent}-{self.act.__name__}"

    @property
    def due(self) -> list[Notice]:
        kinds = {"finished": "done", "hit an error": "error"}
        title = AGENTS[self.agent].dialect.title
        return [
            Notice(kinds.get(says, "blocked"), f"{title} {says}", f"{message}\n{HERE}" if message else HERE)
            for says, message in self.notices
        ]


PERMISSION, QUESTION, DONE, FAILED = "needs permission", "has a question", "finished", "hit an error"
APPROVED = "(idle )?working blocked:permission working done "
ANSWERED = "(idle )?working blocked:question working done "

SCENARIOS = (
    Scenario("claude", turn, "idle working done ", ((DONE, "pong"),)),
    Scenario("claude", approve, APPROVED, ((PERMISSION, "Bash: touch probe.txt"), (DONE, "All done."))),
    Scenario("claude", answer, ANSWERED, ((QUESTION, "Which color?"), (DONE, "All done."))),
    Scenario("claude", error, "idle working error ", ((FAILED, "API Error: 400 mock failure"),)),
    # what it says itself, and that once
    Scenario("claude-speaking", turn, "idle working done ", ((DONE, ""),)),
    Scenario(
        "claude-speaking",
        approve,
        "idle (working )?blocked:permission working done ",
        ((PERMISSION, "approve Bash: touch probe.txt"), (DONE, "")),
    ),
    Scenario("codex", turn, "working done ", ((DONE, "pong"),)),
    Scenario("codex", approve, APPROVED, ((PERMISSION, "Bash: touch probe.txt"), (DONE, "All done."))),
    Scenario("codex", cancel, "working idle "),
    Scenario("codex-speaking", turn, "(idle )?(working )?idle working done ", ((DONE, "pong"),)),
    Scenario("opencode", turn, "working done ", ((DONE, "Mock title"),)),
    Scenario("opencode", approve, APPROVED, ((PERMISSION, "bash: touch probe.txt"), (DONE, "Mock title"))),
    Scenario("opencode", answer, ANSWERED, ((QUESTION, "Which color?"), (DONE, "Mock title"))),
    Scenario("opencode", error, "working error ", ((FAILED, "mock failure"),)),
    Scenario("opencode", cancel, "working idle "),
    Scenario("copilot", turn, "working done ", ((DONE, ""),)),
    Scenario("copilot", approve, APPROVED, ((PERMISSION, "Run command: touch probe.txt"), (DONE, ""))),
    Scenario("copilot", answer, ANSWERED, ((QUESTION, "Which color?"), (DONE, ""))),
    Scenario(
        "copilot",
        error,
        "working error ",
        ((FAILED, '{"type":"invalid_request_error","message":"mock failure"}'),),
    ),
    Scenario("gemini", turn, "idle working done ", ((DONE, "pong"),)),
    Scenario(
        "gemini",
        approve,
        APPROVED,
        ((PERMISSION, "Confirm Shell Command: touch probe.txt"), (DONE, "All done.")),
    ),
    Scenario("gemini", answer, ANSWERED, ((QUESTION, "Which color?"), (DONE, "All done."))),
    Scenario("gemini", cancel, "idle working idle "),
)


# --- playing them


def play(scenario: Scenario, root: Path, model: Model, program: Path) -> tuple[list[str], list[Notice]]:
    """Play a scenario to its end, and wait until no notification can follow. Raises AssertionError."""
    agent = AGENTS[scenario.agent]
    hooked = dataclasses.replace(agent.dialect, agent=agent.dialect.argv[0])

    class Pasted(Dialect):
        def prepare(self, home: Home) -> None:
            super().prepare(home)
            agent.paste(home)

    dialect = Pasted(**{field.name: getattr(hooked, field.name) for field in dataclasses.fields(hooked)})
    with Session(dialect, {dialect.agent: program}, root, model) as session:
        if agent.trust:
            session.terminal.until(agent.trust)
            session.rest()
            session.terminal.key("enter")
        session.terminal.until(dialect.ready, SLOW_START)
        if dialect.reports:
            session.until_state("idle")
        session.rest(1.0)
        scenario.act(session)
        session.settle()
        return session.states.words, session.notices


def installed(scenario: Scenario) -> Path:
    """Return the program of a scenario. Skips, or fails in CI, where it is not installed."""
    agent = AGENTS[scenario.agent]
    found = install.find(agent.dialect.agent, agent.version, install.directory())
    if found is None:
        pytest.skip("not installed: python tests/lab/install.py")
    return found.program


@pytest.fixture(scope="module")
def played(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Future[tuple[list[str], list[Notice]]]]]:
    """All scenarios that are asked for, being played, several at once."""
    require("git")
    wanted = [
        item.callspec.params["scenario"]
        for item in request.session.items
        if isinstance(item, pytest.Function) and item.path == request.path and hasattr(item, "callspec")
    ]
    root = tmp_path_factory.mktemp("hooks")
    with Model() as model, ThreadPoolExecutor(AT_ONCE) as pool:
        yield {s.name: pool.submit(play, s, root / s.name, model, installed(s)) for s in wanted}
        pool.shutdown(cancel_futures=True)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_hooks_tell_the_states_and_each_event_once(
    scenario: Scenario, played: dict[str, Future[tuple[list[str], list[Notice]]]]
) -> None:
    installed(scenario)
    states, notices = played[scenario.name].result()
    words = "".join(f"{word} " for word in states)
    assert re.fullmatch("unknown " + scenario.states, words), (words, notices)
    assert notices == scenario.due, (words, notices)
