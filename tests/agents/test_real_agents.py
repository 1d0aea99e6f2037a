"""The real agents, wrapped: the state file says what each is doing, and each event is told once.

Every scenario that the stand-in model can play, with every agent and version; some also inside a tmux. They run
several at once, for an agent mostly waits. The delays of notifications are those that users have.
"""

from __future__ import annotations

import os
import re
import signal
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING

import pytest

from tests.lab import install
from tests.lab.dialects import CLAUDE_PLANNING, DIALECTS, Dialect
from tests.lab.home import Model
from tests.lab.score import Score, score
from tests.lab.session import Session
from tests.lab.tools import require
from tests.lab.watch import Notice, replay

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Future
    from pathlib import Path

pytestmark = pytest.mark.agents

AT_ONCE = 5  # scenarios
PATIENCE = (
    2.5  # seconds: within 3 s of a key, an end is no news; measured from outside, that is not to the instant
)

CLAUDE = ("claude-newest", "claude-2.1.308")
CODEX = ("codex-newest", "codex-0.164.0", "codex-0.163.0")
PI = ("pi-newest",)
OPENCODE = ("opencode-newest",)
REPORTING = CLAUDE + CODEX + PI
ALL = REPORTING + OPENCODE

# What comes before the first turn. Codex starts with a working that is none, too short for every reader to see.
START = {
    "claude": "unknown idle ",
    "codex": "unknown (idle )?(working )?idle ",
    "pi": "unknown idle ",
    "opencode": "unknown ",
}

HERE = "~/work"


# --- what the person does


def turn(session: Session) -> None:
    """Say something, go away, and come back for the answer."""
    session.say("say pong")
    session.until_state("done")
    session.until_notices(1)
    session.look()
    session.until_state("idle")


def two_turns(session: Session) -> None:
    """Two turns, each to be told of."""
    turn(session)
    session.say("say pong")
    session.until_state("done")
    session.until_notices(2)


def watched_turn(session: Session) -> None:
    """Stay and read the answer as it comes, then type on."""
    session.look()
    session.terminal.type("pause please")
    session.terminal.key("enter")
    session.until_state("working")
    session.until_state("done")
    session.settle()
    session.terminal.type("x")
    session.until_state("idle")


def query(session: Session) -> None:
    """A reply that ends in a question."""
    session.say("query it")
    session.until_state("done")
    session.until_notices(1)


def number(session: Session) -> None:
    """A reply that reads like a terminal command."""
    session.say("number it")
    session.until_state("done")
    session.until_notices(1)


def approve(session: Session) -> None:
    """Allow a command to be run."""
    session.say("please touch it")
    session.until_state("blocked")
    session.until_notices(1)
    session.press("enter")
    session.until_state("done")
    session.until_notices(2)
    assert (session.home.work / "probe.txt").exists()


def deny(session: Session) -> None:
    """Forbid a command to be run."""
    session.say("please touch it")
    session.until_state("blocked")
    session.until_notices(1)
    session.press("esc")
    session.until_state("idle")
    assert not (session.home.work / "probe.txt").exists()


def answer(session: Session) -> None:
    """Answer a question by its first choice."""
    session.say("ask me")
    session.until_state("blocked")
    session.until_notices(1)
    session.press("enter")
    session.until_state("done")
    session.until_notices(2)


def cancel_question(session: Session) -> None:
    """Answer a question with Esc."""
    session.say("ask me")
    session.until_state("blocked")
    session.until_notices(1)
    session.press("esc")
    session.until_state("idle")


def cancel(session: Session) -> None:
    """Stop a turn that takes too long."""
    session.say("slow please")
    session.until_working()
    if session.dialect.reports:
        session.press("esc")
        session.until_state("idle")
    else:
        for _ in range(10):  # it wants to be sure, and for a while only
            session.press("esc")
            if "interrupted" in session.terminal.text:
                break
        session.terminal.until("interrupted")


def error(session: Session) -> None:
    """A turn that fails."""
    session.say("fail now")
    session.until_state("error")
    session.until_notices(1)
    session.look()
    session.until_state("idle")


def untold_error(session: Session) -> None:
    """A turn that fails, of which the agent says only that it is over."""
    session.say("fail now")
    session.until_state("working")
    session.until_state("idle")


def refuse_plan(session: Session) -> None:
    """A plan that the agent asks leave to follow."""
    session.say("plan it")
    session.until_state("blocked")
    session.until_notices(1)
    session.press("esc")
    session.until_state("idle")


def plan_and_refuse(session: Session) -> None:
    """The same, with an agent that is told to plan first."""
    session.press("shift+tab")
    session.terminal.until("Plan mode")
    refuse_plan(session)


def subagent(session: Session) -> None:
    """A turn that waits for another agent of its own."""
    session.say("subagent go")
    session.until_state("working")
    session.until_state("done")
    session.until_notices(1)
    assert any(len(seen.whole["records"]) > 1 for seen in session.states.seen), "no record of the subagent"


def leave(session: Session) -> None:
    """Say goodbye."""
    session.leave()
    assert os.waitstatus_to_exitcode(session.terminal.wait()) == 0
    session.until_state("gone")
    assert session.terminal.left_on() == []


def kill(session: Session) -> None:
    """The agent is killed in the middle of a turn."""
    session.say("slow please")
    session.until_working()
    session.rest()
    session.kill()
    assert os.waitstatus_to_exitcode(session.terminal.wait()) == -signal.SIGKILL
    session.until_state("gone")
    session.until_notices(1)
    assert session.terminal.left_on() == []


# --- what is due


@dataclass(frozen=True)
class Scenario:
    """What is done with an agent, and what is due: the states as a pattern, the notifications as they are."""

    label: str  # agent and version
    act: Callable[[Session], None]
    states: str  # after the start
    notices: tuple[Notice, ...] = ()
    tmux: bool = False
    dialect: Dialect | None = None  # other than the agent's usual one
    late: tuple[
        Notice, ...
    ] = ()  # due instead, should the agent take long to end: whoever waits looks elsewhere

    @property
    def agent(self) -> str:
        return self.label.partition("-")[0]

    @property
    def name(self) -> str:
        return f"{self.label}-{self.act.__name__}{'-tmux' if self.tmux else ''}"


def told(label: str, event: str, message: str = "") -> Notice:
    """Return a notification as it is to be: `event` is blocked, permission, question, done, query, error, killed."""
    says = {
        "blocked": "is waiting for you",
        "permission": "needs permission",
        "question": "has a question",
        "done": "finished",
        "query": "finished with a question",
        "error": "hit an error",
        "killed": "was killed (SIGKILL)",
    }[event]
    kinds = {"permission": "blocked", "question": "blocked", "query": "done", "killed": "exit"}
    title = f"{DIALECTS[label.partition('-')[0]].title} {says}"
    return Notice(kinds.get(event, event), title, f"{message}\n{HERE}" if message else HERE)


def claude(label: str) -> Iterator[Scenario]:
    done, permission = told(label, "done"), told(label, "permission", "approve Bash: touch probe.txt")
    question = told(label, "question", "answer: Which color? (Red · Blue)")
    failed = told(label, "error", "API Error: 400 mock failure")
    for tmux in (False, True):
        yield Scenario(label, turn, "working done idle ", (done,), tmux)
        yield Scenario(
            label, approve, "(working )?blocked:permission working done ", (permission, done), tmux
        )
    yield Scenario(label, two_turns, "working done idle working done ", (done, done))
    yield Scenario(label, watched_turn, "working done idle ")
    yield Scenario(label, deny, "(working )?blocked:permission (working )?idle ", (permission,))
    yield Scenario(label, answer, "(working )?blocked:question working done ", (question, done))
    yield Scenario(label, cancel_question, "(working )?blocked:question (working )?idle ", (question,))
    yield Scenario(label, cancel, "working idle ")
    yield Scenario(label, error, "working error idle ", (failed,))
    yield Scenario(label, subagent, "working done ", (done,))
    plan = told(label, "permission", "approve plan")
    refused = "working blocked:permission (working )?idle "
    yield Scenario(label, refuse_plan, refused, (plan,), dialect=CLAUDE_PLANNING)
    yield Scenario(label, leave, "")
    yield Scenario(label, kill, "working (idle )?", (told(label, "killed"),))


def codex(label: str) -> Iterator[Scenario]:
    newest, oldest = label == CODEX[0], label == CODEX[-1]
    pong, done = told(label, "done", "pong"), told(label, "done", "All done.")
    permission = told(label, "permission", "touch probe.txt" if newest else "/bin/bash -lc 'touch probe....")
    question = told(label, "query", "I can do A or B. Which one do you want?")
    for tmux in (False, True):
        yield Scenario(label, turn, "working done idle ", (pong,), tmux)
        yield Scenario(label, approve, "working blocked:permission working done ", (permission, done), tmux)
    yield Scenario(label, two_turns, "working done idle working done ", (pong, pong))
    yield Scenario(label, watched_turn, "working done idle ")
    yield Scenario(label, deny, "working blocked:permission (working )?idle ", (permission,))
    yield Scenario(label, query, "working done ", (question,))
    yield Scenario(label, number, "working done ", (told(label, "done", "4;1;50 pong"),))
    yield Scenario(label, cancel, "working idle ")
    if oldest:
        yield Scenario(label, untold_error, "working idle ")
    else:
        yield Scenario(label, error, "working error idle ", (told(label, "error"),))
    plan = told(label, "question", "Implement this plan?")
    yield Scenario(label, plan_and_refuse, "working blocked:question idle ", (plan,))
    yield Scenario(label, leave, "")
    yield Scenario(label, kill, "working (idle )?", (told(label, "killed"),))


def pi(label: str) -> Iterator[Scenario]:
    done, permission = told(label, "done"), told(label, "permission", "Allow bash?")
    question = told(label, "question", "Which color?")
    yield Scenario(label, turn, "working done idle ", (done,))
    yield Scenario(label, two_turns, "working done idle working done ", (done, done))
    yield Scenario(label, watched_turn, "working done idle ")
    yield Scenario(label, approve, "working blocked:permission working done ", (permission, done))
    yield Scenario(label, answer, "working blocked:question working done ", (question, done))
    yield Scenario(label, cancel, "working idle ")
    yield Scenario(
        label,
        error,
        "working error idle ",
        (told(label, "error", '400: {"type":"invalid_request_error","message":"mock failure"}'),),
    )
    yield Scenario(label, leave, "")
    yield Scenario(label, kill, "working (idle )?", (told(label, "killed"),))


def opencode(label: str) -> Iterator[Scenario]:
    # what it announces, it says of a conversation by its title, which the model gave
    done, permission = told(label, "done", "Mock title"), told(label, "permission", "Mock title")
    question, failed = told(label, "question", "Mock title"), told(label, "error", "Mock title")
    yield Scenario(label, turn, "done idle ", (done,))
    yield Scenario(label, approve, "blocked:permission idle done ", (permission, done))
    yield Scenario(label, deny, "blocked:permission idle ", (permission,))
    yield Scenario(label, answer, "blocked:question idle done ", (question, done))
    yield Scenario(label, cancel, "")
    yield Scenario(label, error, "error idle ", (failed,))
    # a program that reports nothing is judged by how it ended
    late = Notice("exit", "OpenCode finished", HERE)
    yield Scenario(label, leave, "(done )?", late=(late,))
    yield Scenario(label, kill, "(error )?", (told(label, "killed"),))


def scenarios() -> list[Scenario]:
    """Return all of them, one of each agent in turn: some need much of a processor to start."""
    makers = {"claude": claude, "codex": codex, "pi": pi, "opencode": opencode}
    rows = [
        makers[package.agent](f"{package.agent}-{version}")
        for package in install.PACKAGES
        if package.agent in makers
        for version in package.versions
    ]
    return [scenario for column in zip_longest(*rows) for scenario in column if scenario is not None]


SCENARIOS = scenarios()


# --- playing them


@dataclass(frozen=True)
class Played:
    """What came of a scenario: as others were told live, and as its recording tells it."""

    version: str
    ended: bool  # by itself, before the terminal was closed
    after: float  # seconds from the last key to the end
    states: list[str]
    notices: list[Notice]
    replayed_states: list[str]
    replayed_notices: list[Notice]


def programs(scenario: Scenario) -> list[install.Installed]:
    """Return what a scenario runs, the agent first. Skips, or fails in CI, where it is not installed."""
    there = install.directory()
    wanted = [(scenario.agent, scenario.label.partition("-")[2])]
    wanted += [(other, install.NEWEST) for other in DIALECTS[scenario.agent].also]
    found = [install.find(agent, version, there) for agent, version in wanted]
    if None in found:
        pytest.skip("not installed: python tests/lab/install.py")
    return [program for program in found if program is not None]


def play(scenario: Scenario, root: Path, model: Model, installed: list[install.Installed]) -> Played:
    """Play a scenario to its end, and wait until no notification can follow. Raises AssertionError."""
    dialect = scenario.dialect or DIALECTS[scenario.agent]
    paths = {one.agent: one.program for one in installed}
    with Session(dialect, paths, root, model, tmux=scenario.tmux) as session:
        session.begin()
        scenario.act(session)
        session.settle()
        states, notices = session.states.words, session.notices
        ended = session.states.state is None
        after = session.terminal.ended_at - session.terminal.keyed_at
    again = replay(session.recording)
    if not ended:  # but by closing the terminal: nobody is told; a recording does not hold who sent a signal
        again = [e for e in again if (e["event"], e.get("type")) != ("notify", "exit")]
    return Played(
        installed[0].version,
        ended,
        after,
        states,
        notices,
        ["unknown"]
        + [f"{e['state']}:{e['kind']}" if e["kind"] else e["state"] for e in again if e["event"] == "state"],
        [Notice(e["type"], e["title"], e["body"]) for e in again if e["event"] == "notify"],
    )


@pytest.fixture(scope="module")
def played(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Future[Played]]]:
    """All scenarios that are asked for, being played, several at once."""
    require("git", "tmux")
    wanted = [
        item.callspec.params["scenario"]
        for item in request.session.items
        if isinstance(item, pytest.Function) and item.path == request.path and hasattr(item, "callspec")
    ]
    root = tmp_path_factory.mktemp("agents")
    with Model() as model, ThreadPoolExecutor(AT_ONCE) as pool:
        yield {s.name: pool.submit(play, s, root / s.name, model, programs(s)) for s in wanted}
        pool.shutdown(cancel_futures=True)


def once(words: list[str]) -> str:
    """Join states, each but once where it stands twice in a row."""
    return "".join(f"{word} " for i, word in enumerate(words) if i == 0 or words[i - 1] != word)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_states_in_order_and_exactly_the_notifications_due(
    scenario: Scenario, played: dict[str, Future[Played]], scores: list[Score]
) -> None:
    programs(scenario)
    result = None
    states, notices = START[scenario.agent] + scenario.states, list(scenario.notices)
    try:
        result = played[scenario.name].result()
        if result.notices and result.after > PATIENCE:
            notices = list(scenario.late or scenario.notices)
    finally:
        scores.append(
            score(
                scenario.agent,
                result.version if result else scenario.label.partition("-")[2],
                states_right=result is not None and re.fullmatch(states, once(result.states)) is not None,
                due=notices,
                told=result.notices if result else (),
            )
        )
    assert re.fullmatch(states, once(result.states)), result
    assert result.notices == notices, result
    # the same from its recording, which goes on until the terminal was closed
    states += "" if result.ended else "(idle |done |error )?"
    assert re.fullmatch(states, once(result.replayed_states)), result
    assert result.replayed_notices == notices, result
