"""Claims about `agentwrap status` and `list`, with sessions of other processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time


def test_nothing_runs(verb, directory):
    assert (verb("status").returncode, verb("status").stdout) == (0, "")
    assert verb("status", "--short").stdout == ""
    assert verb("status", "--json").stdout == "null\n"
    assert (verb("list").returncode, verb("list").stdout) == (0, "")
    assert verb("list", "--json").stdout == "[]\n"
    done = verb("status", "claude")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "agentwrap: no live session called claude; none is running\n"


def test_the_most_urgent_is_shown_and_of_equals_the_latest(verb, start):
    working = start("codex", "working")
    assert verb("status").stdout.split()[:2] == [working.name, "working"]
    first = start("claude", "blocked", kind="permission", message="approve Bash: touch x")
    second = start("claude", "blocked")
    assert verb("status").stdout.split()[0] == second.name
    second.set("idle")
    assert verb("status").stdout.startswith(f"{first.name}  blocked (permission) ")
    assert "approve Bash: touch x  ~/shop\n" in verb("status").stdout
    assert verb("status", "--short").stdout == "⚠1 ●1\n"
    assert verb("status", "codex").stdout.split()[0] == working.name
    assert verb("status", "--short", "codex").stdout == "●1\n"
    assert json.loads(verb("status", "--json").stdout)["session"] == first.name
    done = verb("status", "claude")
    assert done.returncode == 1
    assert "say which" in done.stderr
    rows = [line.split()[0] for line in verb("list").stdout.splitlines()]
    assert rows == ["SESSION", first.name, working.name, second.name]
    assert [one["state"] for one in json.loads(verb("list", "--json").stdout)] == [
        "blocked",
        "working",
        "idle",
    ]


def test_sessions_killed_are_gone_with_the_next_verb(verb, start, directory):
    session = start("claude", "blocked")
    deadline = time.monotonic() + 5
    while not (directory / "summary").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert (directory / "summary").read_text() == "1 0 0 0 0 ⚠1\n"
    session.kill()
    assert verb("status", "--short").stdout == ""
    assert not (directory / "summary").exists()
    assert [path.name for path in directory.iterdir()] == [".lock"]


def test_short_neither_makes_a_directory_nor_imports_what_it_does_not_need(verb, directory):
    assert verb("status", "--short").returncode == 0
    assert not directory.exists()
    code = "import sys; from agentwrap.__main__ import main; main(['status', '--short']); print(*sys.modules)"
    directory.mkdir(mode=0o700)
    loaded = subprocess.run(
        [sys.executable, "-I", "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"AGENTWRAP_STATE_DIR": str(directory)},
    ).stdout.split()
    assert not {"re", "json", "typing", "typer", "argparse", "subprocess", "socket", "wcwidth"} & set(loaded)
