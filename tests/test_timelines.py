"""Golden tests: what each recorded timeline of a real agent must look like from outside.

Each expected result follows from what the recording holds and from the rules for notifications. Times are when
a notification is due: the state's delay, or three seconds after the last key where the terminal does not tell
its focus. Every timeline ends with the agent's death by SIGKILL or its exit.
"""

from __future__ import annotations

import glob
import json
import os
import random

import pytest

from agentwrap import agents
from agentwrap.commands.replay import Player
from agentwrap.core.attention import Policy
from agentwrap.core.session import Change

DIRECTORY = os.path.join(os.path.dirname(__file__), "timelines")
LABEL = "~/work"

TOUCH = "approve Bash: touch probe.txt"
COLOR = "answer: Which color? (Red · Blue)"
FAILURE = "API Error: 400 mock failure"
SHELL = "/bin/bash -lc 'touch probe...."
AORB = "I can do A or B. Which one do you want?"

IDLE = ("idle", None, None)
WORKING = ("working", None, None)
DONE = ("done", None, None)
BLIP = [IDLE, WORKING, IDLE]


def killed(name):
    return ("exit", f"{name} was killed (SIGKILL)", LABEL)


CLAUDE_KILLED = killed("Claude Code")
CLAUDE_DONE = ("done", "Claude Code finished", LABEL)
CODEX_KILLED = killed("Codex")
WITHDRAWN_DONE = ("withdraw", "done")
WITHDRAWN_BLOCKED = ("withdraw", "blocked")


def permission(name, message):
    return ("blocked", f"{name} needs permission", f"{message}\n{LABEL}")


def question(name, message):
    return ("blocked", f"{name} has a question", f"{message}\n{LABEL}")


def codex_done(message):
    return ("done", "Codex finished", f"{message}\n{LABEL}")


CODEX_QUESTION = ("done", "Codex finished with a question", f"{AORB}\n{LABEL}")

# name: (states in order, what is told in order, with the time it is due)
EXPECTED = {
    "claude-2.1.308-cancel": ([IDLE, WORKING, IDLE], [(8.764, CLAUDE_KILLED)]),
    "claude-2.1.308-dialog": (
        [IDLE, WORKING, ("blocked", None, "dialog open"), IDLE],
        [
            (5.273, ("blocked", "Claude Code is waiting for you", f"dialog open\n{LABEL}")),
            (6.654, WITHDRAWN_BLOCKED),
            (9.799, CLAUDE_KILLED),
        ],
    ),
    "claude-2.1.308-error": (
        [IDLE, WORKING, ("error", None, FAILURE)],
        [(5.356, ("error", "Claude Code hit an error", f"{FAILURE}\n{LABEL}")), (6.638, CLAUDE_KILLED)],
    ),
    "claude-2.1.308-exit": ([IDLE, WORKING, DONE, IDLE], [(5.489, CLAUDE_DONE), (6.556, WITHDRAWN_DONE)]),
    "claude-2.1.308-permission-approve": (
        [IDLE, WORKING, ("blocked", "permission", TOUCH), WORKING, DONE],
        [
            (5.294, permission("Claude Code", TOUCH)),
            (5.582, WITHDRAWN_BLOCKED),
            (8.741, CLAUDE_DONE),
            (10.81, CLAUDE_KILLED),
        ],
    ),
    "claude-2.1.308-permission-deny": (
        [IDLE, WORKING, ("blocked", "permission", TOUCH), IDLE],
        [(5.259, permission("Claude Code", TOUCH)), (5.623, WITHDRAWN_BLOCKED), (9.781, CLAUDE_KILLED)],
    ),
    "claude-2.1.308-question-cancel": (
        [IDLE, WORKING, ("blocked", "question", COLOR), IDLE],
        [(5.336, question("Claude Code", COLOR)), (5.69, WITHDRAWN_BLOCKED), (9.864, CLAUDE_KILLED)],
    ),
    # the subagent's record is no state of the session and never told
    "claude-2.1.308-subagent": ([IDLE, WORKING, DONE], [(10.817, CLAUDE_DONE), (16.554, CLAUDE_KILLED)]),
    "claude-2.1.308-turn": (
        [IDLE, WORKING, DONE, IDLE, WORKING, DONE],
        [(5.874, CLAUDE_DONE), (7.874, WITHDRAWN_DONE), (11.282, CLAUDE_DONE), (13.446, CLAUDE_KILLED)],
    ),
    "claude-2.1.332-cancel": ([IDLE, WORKING, IDLE], [(8.718, CLAUDE_KILLED)]),
    "claude-2.1.332-error": (
        [IDLE, WORKING, ("error", None, FAILURE)],
        [(5.205, ("error", "Claude Code hit an error", f"{FAILURE}\n{LABEL}")), (6.481, CLAUDE_KILLED)],
    ),
    "claude-2.1.332-exit": ([IDLE, WORKING, DONE, IDLE], [(5.399, CLAUDE_DONE), (6.47, WITHDRAWN_DONE)]),
    "claude-2.1.332-permission-approve": (
        [IDLE, WORKING, ("blocked", "permission", TOUCH), WORKING, DONE],
        [
            (5.176, permission("Claude Code", TOUCH)),
            (5.484, WITHDRAWN_BLOCKED),
            (8.62, CLAUDE_DONE),
            (10.708, CLAUDE_KILLED),
        ],
    ),
    "claude-2.1.332-question-answer": (
        [IDLE, WORKING, ("blocked", "question", COLOR), WORKING, DONE],
        [
            (5.183, question("Claude Code", COLOR)),
            (5.494, WITHDRAWN_BLOCKED),
            (8.565, CLAUDE_DONE),
            (10.698, CLAUDE_KILLED),
        ],
    ),
    "claude-2.1.332-question-cancel": (
        [IDLE, WORKING, ("blocked", "question", COLOR), IDLE],
        [(5.2, question("Claude Code", COLOR)), (5.56, WITHDRAWN_BLOCKED), (9.725, CLAUDE_KILLED)],
    ),
    # 2.3 s after the last key: someone is looking, and sees it die
    "claude-2.1.332-sigkill": ([IDLE, WORKING, IDLE], []),
    "claude-2.1.332-turn": (
        [IDLE, WORKING, DONE, IDLE, WORKING, DONE],
        [(5.346, CLAUDE_DONE), (7.433, WITHDRAWN_DONE), (10.819, CLAUDE_DONE), (12.996, CLAUDE_KILLED)],
    ),
    # 0.163 cannot be told from a cancelled turn here: a bare idle is announced as nothing
    "codex-0.163.0-error": ([*BLIP, WORKING, IDLE], [(8.104, CODEX_KILLED)]),
    "codex-0.163.0-exit": (
        [*BLIP, WORKING, ("done", None, "pong"), IDLE],
        [(5.836, codex_done("pong")), (6.087, WITHDRAWN_DONE)],
    ),
    "codex-0.163.0-permission-approve": (
        [*BLIP, WORKING, ("blocked", "permission", SHELL), WORKING, ("done", None, "All done.")],
        [
            (5.832, permission("Codex", SHELL)),
            (6.087, WITHDRAWN_BLOCKED),
            (9.083, codex_done("All done.")),
            (10.345, CODEX_KILLED),
        ],
    ),
    "codex-0.163.0-permission-deny": (
        [IDLE, WORKING, ("blocked", "permission", SHELL), WORKING, IDLE],
        [(5.833, permission("Codex", SHELL)), (6.087, WITHDRAWN_BLOCKED), (10.344, CODEX_KILLED)],
    ),
    "codex-0.163.0-sigkill": ([*BLIP, WORKING, IDLE], []),
    "codex-0.163.0-turn": (
        [IDLE, WORKING, ("done", None, "pong"), IDLE, WORKING, ("done", None, AORB)],
        [
            (5.989, codex_done("pong")),
            (7.24, WITHDRAWN_DONE),
            (11.041, CODEX_QUESTION),
            (12.323, CODEX_KILLED),
        ],
    ),
    "codex-0.163.0-uninjected-turn": ([*BLIP, WORKING, IDLE], [(7.091, CODEX_KILLED)]),
    "codex-0.171.0-cancel": ([IDLE, WORKING, IDLE], [(9.359, CODEX_KILLED)]),
    "codex-0.171.0-exit": (
        [*BLIP, WORKING, ("done", None, "pong"), IDLE],
        [(5.849, codex_done("pong")), (6.1, WITHDRAWN_DONE)],
    ),
    "codex-0.171.0-in-tmux": (
        [*BLIP, WORKING, ("blocked", "permission", "touch probe.txt"), WORKING, ("done", None, "All done.")],
        [
            (5.881, permission("Codex", "touch probe.txt")),
            (6.137, WITHDRAWN_BLOCKED),
            (9.132, codex_done("All done.")),
            (10.395, CODEX_KILLED),
        ],
    ),
    "codex-0.171.0-permission-approve": (
        [*BLIP, WORKING, ("blocked", "permission", "touch probe.txt"), WORKING, ("done", None, "All done.")],
        [
            (5.838, permission("Codex", "touch probe.txt")),
            (6.095, WITHDRAWN_BLOCKED),
            (9.089, codex_done("All done.")),
            (10.352, CODEX_KILLED),
        ],
    ),
    # done, says 0.171, but the plan waits for an answer; Esc, and its idle comes before the lone Esc is sure
    "codex-0.171.0-plan-prompt": (
        [IDLE, WORKING, ("blocked", "question", "Implement this plan?"), IDLE],
        [
            (7.087, question("Codex", "Implement this plan?")),
            (8.359, WITHDRAWN_BLOCKED),
            (11.609, CODEX_KILLED),
        ],
    ),
    "codex-0.171.0-sigkill": ([*BLIP, WORKING, IDLE], []),
    "codex-0.171.0-turn": (
        [IDLE, WORKING, ("done", None, "pong"), IDLE, WORKING, ("done", None, AORB)],
        [
            (5.932, codex_done("pong")),
            (7.182, WITHDRAWN_DONE),
            (10.984, CODEX_QUESTION),
            (12.246, CODEX_KILLED),
        ],
    ),
    "codex-0.171.0-uninjected-turn": (
        [*BLIP, WORKING, DONE],
        [(5.953, ("done", "Codex finished", LABEL)), (7.095, CODEX_KILLED)],
    ),
    # OpenCode's terminal has told it that the focus is elsewhere: nothing waits for a key
    "opencode-1.18.33-error": (
        [("error", None, "Mock title")],
        [
            (12.287, ("error", "OpenCode hit an error", f"Mock title\n{LABEL}")),
            (13.876, killed("OpenCode")),
        ],
    ),
    "opencode-1.18.33-permission-approve": (
        [("blocked", "permission", "Mock title"), IDLE, ("done", None, "Mock title")],
        [
            (9.705, permission("OpenCode", "Mock title")),
            (11.006, WITHDRAWN_BLOCKED),
            (13.182, ("done", "OpenCode finished", f"Mock title\n{LABEL}")),
            (16.339, killed("OpenCode")),
        ],
    ),
    "opencode-1.18.33-turn": (
        [("done", None, "Mock title")],
        [(11.35, ("done", "OpenCode finished", f"Mock title\n{LABEL}")), (13.368, killed("OpenCode"))],
    ),
    "pi-1.6.0-cancel": ([IDLE, WORKING, IDLE], [(11.358, killed("pi"))]),
    "pi-1.6.0-sigkill": ([IDLE, WORKING, IDLE], []),
    "pi-1.6.0-turn": (
        [IDLE, WORKING, DONE],
        [(8.88, ("done", "pi finished", LABEL)), (10.079, killed("pi"))],
    ),
}

SOURCES = {"claude": "osc7501", "codex": "osc7501", "opencode": "osc99", "pi": "osc7501"}


def read(name):
    """The agent, and the timeline as (time, code, bytes or wait status)."""
    with open(os.path.join(DIRECTORY, name + ".jsonl"), encoding="utf-8") as file:
        head, *lines = map(json.loads, file)
    events = []
    for line in lines:
        if "out" in line:
            events.append((line["t"], "o", line["out"].encode()))
        elif "in" in line:
            events.append((line["t"], "i", line["in"].encode()))
        elif "exit" in line:
            events.append((line["t"], "x", line["exit"]))
    return head["agent"], events


def play(agent, events):
    states, told, sources = [], [], []

    def observe(t, what):
        if isinstance(what, Change):
            states.append((what.state, what.kind, what.message))
            sources.append((t, what.source))
        elif what.action == "withdraw":
            told.append((round(t, 3), ("withdraw", what.type)))
        else:
            told.append((round(t, 3), (what.type, what.title, what.body)))

    player = Player(agents.by_name(agent), Policy(), command=agent, label=LABEL, told=observe)
    for event in events:
        player.feed(*event)
    return states, told, sources


def joined(events):
    """Neighbours of the same kind and time as one chunk: whole writes."""
    chunks = []
    for t, code, data in events:
        if chunks and code != "x" and chunks[-1][:2] == (t, code):
            chunks[-1] = (t, code, chunks[-1][2] + data)
        else:
            chunks.append((t, code, data))
    return chunks


def cut(events, sizes):
    """Each chunk cut into pieces of the sizes that `sizes` yields, at the same time."""
    for t, code, data in events:
        if code == "x":
            yield t, code, data
            continue
        start = 0
        while start < len(data):
            end = start + next(sizes)
            yield t, code, data[start:end]
            start = end


def ones():
    while True:
        yield 1


def shuffled(seed):
    numbers = random.Random(seed)
    while True:
        yield numbers.choice((1, 1, 2, 3, 5, 8, 13, 40))


def test_every_timeline_has_its_expectation():
    names = {
        os.path.basename(path)[: -len(".jsonl")] for path in glob.glob(os.path.join(DIRECTORY, "*.jsonl"))
    }
    assert names == set(EXPECTED)


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_states_and_notifications(name):
    agent, events = read(name)
    states, told, sources = play(agent, joined(events))
    assert (states, told) == EXPECTED[name]
    end = events[-1][0]
    for t, source in sources:
        # what ends with the process is its source; 0.163's done is its notice's, as is a plan's question
        allowed = {"process"} if t == end and "sigkill" in name else {SOURCES[agent]}
        if name.startswith("codex-0.163") or "plan" in name:
            allowed.add("osc9")
        assert source in allowed


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_the_same_byte_by_byte(name):
    agent, events = read(name)
    assert play(agent, cut(events, ones()))[:2] == EXPECTED[name]


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_the_same_at_shuffled_borders(name):
    agent, events = read(name)
    for seed in range(4):
        assert play(agent, cut(joined(events), shuffled(seed)))[:2] == EXPECTED[name]


@pytest.mark.parametrize(
    "name", [name for name in sorted(EXPECTED) if name.startswith(("claude", "codex", "pi"))]
)
def test_the_same_without_recognising_the_agent_but_for_its_words(name):
    # a program's own reports are understood whoever runs it: here, some shell script
    _, events = read(name)
    states, told, _ = play("generic", events)
    wanted_states, wanted_told = EXPECTED[name]
    assert states == wanted_states
    assert [(t, what[0]) for t, what in told] == [(t, what[0]) for t, what in wanted_told]
