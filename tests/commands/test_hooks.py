"""Claims about `agentwrap hooks`: what is printed is settings an agent can read, and its commands report."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import tomllib

import pytest

from agentwrap.commands import hooks, report
from agentwrap.core.session import HOOK_ID
from agentwrap.errors import UsageError
from tests.lab.tools import require

AGENTS = ("claude", "codex", "opencode", "gemini", "copilot", "hermes")


def printed(agent, capsys):
    assert hooks.hooks(agent) == 0
    captured = capsys.readouterr()
    assert captured.err.count("\n") > 2  # where to paste it
    return captured.out


def commands(agent, capsys):
    """All (event, matcher, command) of an agent that has such."""
    text = printed(agent, capsys)
    if agent == "hermes":
        found, event, matcher = [], "", ""
        for line in text.splitlines()[2:]:
            key, _, value = line.strip().removeprefix("- ").partition(": ")
            if line.startswith("  ") and not line.startswith("   "):
                event, matcher = line.strip(" :"), ""
            elif key == "matcher":
                matcher = json.loads(value)
            elif key == "command":
                found.append((event, matcher, json.loads(value)))
        return found
    settings = tomllib.loads(text) if agent == "codex" else json.loads(text)
    return [
        (event, group.get("matcher", ""), hook.get("command") or hook["bash"])
        for event, groups in settings["hooks"].items()
        for group in groups
        for hook in group.get("hooks", [group])
    ]


def test_an_unknown_agent_is_one_line_that_names_the_known_ones():
    with pytest.raises(UsageError) as raised:
        hooks.hooks("crush")
    assert all(agent in raised.value.line for agent in AGENTS)


@pytest.mark.parametrize("agent", [agent for agent in AGENTS if agent != "opencode"])
def test_every_command_is_one_that_report_takes_and_speaks_as_a_hook(agent, capsys, monkeypatch):
    monkeypatch.setattr(report, "_standard_input", lambda: b"")
    states = set()
    for _, _, command in commands(agent, capsys):
        found = command.replace(";", "\n").replace("|", "\n").replace("'", "\n").splitlines()
        calls = [
            part.partition(" report ")[2].partition(" 2>")[0].split() for part in found if " report " in part
        ]
        assert calls, command
        for words in calls:
            told = report.parse(words)
            assert told.id == HOOK_ID
            assert told.app
            states.add((told.state, told.kind))
    assert states >= {("working", None), ("done", None), ("blocked", "permission")}
    assert (("idle", None) in states) is (agent != "copilot")
    assert (("blocked", "question") in states) is (agent != "codex")
    assert (("error", None) in states) is (agent in ("claude", "copilot", "hermes"))


def test_claude_is_asked_for_the_events_that_tell_each_state(capsys):
    found = {(event, matcher) for event, matcher, _ in commands("claude", capsys)}
    assert found >= {
        ("PreToolUse", "AskUserQuestion"),
        ("Notification", "permission_prompt"),
        ("Stop", ""),
        ("UserPromptSubmit", ""),
        ("PostToolUse", ""),
    }
    assert not any("idle_prompt" in matcher for _, matcher in found)
    # a notification of a prompt comes late and for questions too: it may not say more than is known
    (command,) = [c for event, matcher, c in commands("claude", capsys) if matcher == "permission_prompt"]
    assert "--msg" not in command


def fake(directory, exit_code=0):
    """An `agentwrap` that notes how it is called and with what input."""
    path = directory / "agentwrap"
    path.write_text(f'#!/bin/sh\n{{ echo "$@"; cat; echo; }} >> "$CALLS"; echo noise >&2; exit {exit_code}\n')
    path.chmod(0o755)
    return {"PATH": f"{directory}:{os.environ['PATH']}", "CALLS": str(directory / "calls")}


@pytest.mark.parametrize(
    ("event", "given", "called"),
    [
        ("AfterAgent", {"prompt": "x", "prompt_response": "pong"}, "done"),
        ("AfterAgent", {"prompt": "x", "prompt_response": "[no response text]"}, "idle"),
        ("AfterAgent", {"prompt": '"prompt_response":"[no response text]"', "prompt_response": "y"}, "done"),
        ("Notification", {"message": "m", "details": {"type": "exec", "title": "Run"}}, "blocked"),
        ("Notification", {"message": "m", "details": {"type": "ask_user", "title": "Ask"}}, ""),
    ],
)
def test_what_gemini_gives_its_hooks_decides_what_they_report(
    tmp_path, monkeypatch, capsys, event, given, called
):
    environ = fake(tmp_path)
    monkeypatch.setenv("PATH", environ["PATH"])
    (command,) = [c for each, _, c in commands("gemini", capsys) if each == event]
    data = json.dumps(given, separators=(",", ":"))
    subprocess.run(["sh", "-c", command], input=data, text=True, check=True, env=environ)
    calls = (tmp_path / "calls").read_text() if (tmp_path / "calls").exists() else ""
    assert calls.partition(" --id hook ")[0] == (
        f"report {called}" + (" --kind permission" * (called == "blocked")) if called else ""
    )
    if called in ("done", "blocked"):
        assert data in calls


@pytest.mark.parametrize(
    ("completed", "interrupted", "state"),
    [(True, False, "idle"), (False, True, "idle"), (False, False, "error")],
)
def test_how_a_turn_of_hermes_ended_decides_what_is_reported(
    tmp_path, monkeypatch, capsys, completed, interrupted, state
):
    environ = fake(tmp_path)
    monkeypatch.setenv("PATH", environ["PATH"])
    (command,) = [c for each, _, c in commands("hermes", capsys) if each == "on_session_end"]
    given = {"extra": {"task_id": "1", "completed": completed, "interrupted": interrupted, "model": "m"}}
    subprocess.run(shlex.split(command), input=json.dumps(given), text=True, check=True, env=environ)
    assert (tmp_path / "calls").read_text().startswith(f"report {state} ")


@pytest.mark.parametrize("again", [True, False])
def test_what_hermes_tries_again_is_no_error(tmp_path, monkeypatch, capsys, again):
    environ = fake(tmp_path)
    monkeypatch.setenv("PATH", environ["PATH"])
    (command,) = [c for each, _, c in commands("hermes", capsys) if each == "api_request_error"]
    said = json.dumps({"retryable": not again})
    given = json.dumps({"extra": {"retryable": again, "error": {"message": "no"}, "request": said}})
    subprocess.run(shlex.split(command), input=given, text=True, check=True, env=environ)
    if again:
        assert not (tmp_path / "calls").exists()
    else:
        assert (tmp_path / "calls").read_text().startswith("report error ")
        assert given in (tmp_path / "calls").read_text()


@pytest.mark.parametrize("agent", ["claude", "codex", "gemini", "copilot"])
@pytest.mark.parametrize("there", [True, False])
def test_a_hook_says_nothing_and_succeeds_also_where_agentwrap_fails_or_is_gone(
    tmp_path, monkeypatch, capsys, agent, there
):
    environ = fake(tmp_path, exit_code=3)
    monkeypatch.setenv("PATH", environ["PATH"])
    found = commands(agent, capsys)
    if not there:
        environ["PATH"] = os.defpath
        if shutil.which("agentwrap", path=os.defpath):
            pytest.fail("an agentwrap of the system is in the way")
    for _, _, command in found:
        done = subprocess.run(
            ["sh", "-c", command], input=b"{}", capture_output=True, env=environ, check=True
        )
        assert (done.stdout, done.stderr) == (b"", b"")


def test_agentwrap_is_called_by_its_name_where_that_is_found_else_by_its_path(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", fake(tmp_path)["PATH"])
    assert hooks.program() == "agentwrap"
    folder = tmp_path / "a folder"
    folder.mkdir()
    fake(folder)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(sys, "executable", str(folder / "python"))
    assert hooks.program() == f"'{folder}/agentwrap'"
    (folder / "agentwrap").unlink()
    assert hooks.program() == "agentwrap"


PLUGIN = """
const { Agentwrap } = await import(process.argv[1])
const { event } = await Agentwrap()
for (const [type, properties] of JSON.parse(process.argv[2])) {
  if (type === "wait") await new Promise((resolve) => setTimeout(resolve, properties))
  else await event({ event: { type, properties } })
}
"""
BUSY = ["session.status", {"sessionID": "s", "status": {"type": "busy"}}]
IDLE = ["session.idle", {"sessionID": "s"}]
ASKED = {"id": "p", "sessionID": "s", "permission": "bash", "patterns": ["rm x"]}


@pytest.mark.parametrize(
    ("events", "calls"),
    [
        ([BUSY, BUSY, IDLE, IDLE], ["working", "done"]),
        ([IDLE, ["session.idle", {}]], []),
        (
            [BUSY, ["permission.asked", ASKED], BUSY, ["permission.replied", {"requestID": "p"}], IDLE],
            ["working", "blocked --kind permission bash: rm x", "working", "done"],
        ),
        (
            [
                ["question.asked", {"id": "q", "questions": [{"question": "Which?"}]}],
                ["question.rejected", {"requestID": "q"}],
            ],
            ["blocked --kind question Which?", "working"],
        ),
        (
            [
                BUSY,
                [
                    "session.error",
                    {"sessionID": "s", "error": {"name": "APIError", "data": {"message": "no"}}},
                ],
                IDLE,
            ],
            ["working", "error no"],
        ),
        # the end may be told first
        (
            [BUSY, IDLE, ["session.error", {"sessionID": "s", "error": {"name": "MessageAbortedError"}}]],
            ["working", "idle"],
        ),
        # and a turn that was stopped only as a message that failed
        (
            [
                BUSY,
                ["message.updated", {"info": {"role": "assistant", "sessionID": "s"}}],
                [
                    "message.updated",
                    {
                        "info": {
                            "role": "assistant",
                            "sessionID": "s",
                            "error": {"name": "MessageAbortedError"},
                        }
                    },
                ],
                IDLE,
            ],
            ["working", "idle"],
        ),
        # a subagent's turn is not the user's
        (
            [
                ["session.created", {"info": {"id": "c", "parentID": "s"}}],
                BUSY,
                *([each[0], each[1] | {"sessionID": "c"}] for each in (BUSY, IDLE)),
            ],
            ["working"],
        ),
        (
            [["session.updated", {"info": {"id": "s", "title": "Fix the shop"}}], BUSY, IDLE],
            ["working", "done Fix the shop"],
        ),
    ],
)
def test_the_plugin_of_opencode_reports_in_order_what_counts(tmp_path, monkeypatch, capsys, events, calls):
    require("node")
    environ = fake(tmp_path)
    monkeypatch.setenv("PATH", environ["PATH"])
    plugin = tmp_path / "plugin.mjs"
    plugin.write_text(printed("opencode", capsys))
    subprocess.run(
        ["node", "--input-type=module", "-e", PLUGIN, str(plugin), json.dumps([*events, ["wait", 300]])],
        check=True,
        env=os.environ | environ,
    )
    found = (tmp_path / "calls").read_text().split("\n\n") if (tmp_path / "calls").exists() else []
    told = [
        each.removeprefix("report ").strip().replace("--id hook --app opencode", "").replace("--msg ", "")
        for each in found
    ]
    assert [" ".join(each.split()) for each in told if each] == calls
