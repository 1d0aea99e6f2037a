"""Claims about `agentwrap wait`: what it waits for, how soon it wakes, how it ends."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import time

import pytest
from live import AGENTWRAP

from tests.lab.outer import Outer


class Waiting:
    """A `wait` under way."""

    def __init__(self, directory, *words):
        self.process = subprocess.Popen(
            [*AGENTWRAP, "wait", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"AGENTWRAP_STATE_DIR": str(directory)},
        )
        # It watches once it sleeps in poll, inotify in hand.
        deadline = time.monotonic() + 20
        while "inotify" not in self.descriptors() and self.process.poll() is None:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        time.sleep(0.15)

    def descriptors(self):
        found = ""
        try:
            for fd in os.listdir(f"/proc/{self.process.pid}/fd"):
                found += os.readlink(f"/proc/{self.process.pid}/fd/{fd}") + " "
        except OSError:
            pass
        return found

    def result(self):
        output, complaint = self.process.communicate(timeout=20)
        return self.process.returncode, output, complaint


def test_a_state_that_is_there_is_reached_at_once(verb, start):
    start("claude", "blocked")
    assert (verb("wait").returncode, verb("wait").stdout) == (0, "blocked\n")
    assert verb("wait", "claude", "--until", "done,blocked").stdout == "blocked\n"


@pytest.mark.parametrize("state", ["blocked", "done", "error"])
def test_by_default_it_waits_for_all_that_needs_somebody(start, directory, state):
    session = start("claude", "working")
    waiting = Waiting(directory, "claude")
    session.set("idle")
    session.set("working")
    assert waiting.process.poll() is None
    session.set(state)
    assert waiting.result() == (0, f"{state}\n", "")


def test_the_end_of_a_session_is_a_state(start, directory):
    session = start("claude", "working")
    waiting = Waiting(directory, session.name)
    session.end()
    assert waiting.result() == (0, "exited\n", "")


def test_a_session_killed_with_all_its_processes_has_exited(start, directory):
    session = start("claude", "working")
    waiting = Waiting(directory, session.name)
    killed = time.monotonic()
    session.kill()
    assert waiting.result() == (0, "exited\n", "")
    assert time.monotonic() - killed < 1


def test_a_session_gone_without_reaching_it_is_exit_1_and_a_line(start, directory):
    session = start("claude", "working")
    other = start("codex", "done")
    waiting = Waiting(directory, "claude", "--until", "done")
    session.end()
    code, output, complaint = waiting.result()
    assert (code, output) == (1, "")
    assert complaint == "agentwrap: wait: the session is gone without reaching done\n"
    other.end()


def test_without_a_session_any_will_do_also_one_that_came_later(start, directory):
    start("claude", "working")
    waiting = Waiting(directory)
    later = start("codex", "working")
    time.sleep(0.1)
    assert waiting.process.poll() is None
    later.set("error")
    assert waiting.result() == (0, "error\n", "")


def test_without_a_session_it_ends_when_all_are_gone(start, directory):
    first, second = start("claude", "working"), start("codex", "working")
    waiting = Waiting(directory, "--until", "done")
    first.end()
    time.sleep(0.1)
    assert waiting.process.poll() is None
    second.end()
    assert waiting.result() == (1, "", "agentwrap: wait: all sessions are gone without reaching done\n")


def test_json_says_which_session_it_was(verb, start, directory):
    start("codex", "working")
    session = start("claude", "blocked", name="api", kind="permission")
    done = verb("wait", "--json")
    assert done.returncode == 0
    assert done.stdout.count("\n") == 1
    one = json.loads(done.stdout)
    assert (one["session"], one["state"], one["kind"]) == (session.name, "blocked", "permission")
    assert [one] == [each for each in json.loads(verb("list", "--json").stdout) if each["name"] == "api"]
    assert (verb("wait", "--json", "--until", "idle", "--timeout", "0").stdout) == ""
    waiting = Waiting(directory, "--json", "--until", "exited")
    session.end()
    code, output, _ = waiting.result()
    assert (code, json.loads(output)) == (0, {"session": session.name, "state": "exited"})


def test_on_a_terminal_any_session_is_named(start, directory):
    session = start("claude", "blocked", name="api")
    environ = os.environ | {"AGENTWRAP_STATE_DIR": str(directory)}
    for words, shown in (((), f"blocked  {session.name} (api)\r\n"), (("claude",), "blocked\r\n")):
        with Outer([*AGENTWRAP, "wait", *words], environ=environ) as outer:
            assert outer.wait() == 0
            assert outer.output.decode() == shown


def test_a_timeout_is_exit_124(verb, start):
    start("claude", "working")
    began = time.monotonic()
    done = verb("wait", "--timeout", "0.3")
    assert (done.returncode, done.stdout, done.stderr) == (124, "", "")
    assert 0.3 < time.monotonic() - began < 10
    assert verb("wait", "--timeout", "0").returncode == 124
    assert verb("wait", "--timeout", "0", "--until", "working").returncode == 0


def test_no_session_at_all_or_none_of_that_name_is_exit_1_and_a_line(verb, start):
    for words in ((), ("claude",)):
        done = verb("wait", *words)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith("agentwrap: ")
        assert done.stderr.count("\n") == 1
    session = start("codex")
    done = verb("wait", "claude")
    assert done.stderr == f"agentwrap: no live session called claude; there are {session.name}\n"


def test_it_wakes_within_a_tenth_of_a_second_and_costs_nothing_meanwhile(start, directory):
    session = start("claude", "working")
    delays = []
    for _ in range(3):
        session.set("working")
        waiting = Waiting(directory, "claude", "--until", "done")
        with open(f"/proc/{waiting.process.pid}/stat", encoding="utf-8") as file:
            before = file.read().rpartition(")")[2].split()[11:13]
        time.sleep(0.5)
        with open(f"/proc/{waiting.process.pid}/stat", encoding="utf-8") as file:
            assert file.read().rpartition(")")[2].split()[11:13] == before
        changed = session.set("done")
        assert waiting.process.stdout.readline() == "done\n"
        delays.append(time.monotonic() - changed)
        waiting.result()
    assert statistics.median(delays) < 0.1
