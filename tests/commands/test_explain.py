"""Claims about `agentwrap explain`: the last events of a session, readable on any screen, whatever they hold."""

from __future__ import annotations

import json
import os
import stat
import sys
import time

import pytest
from wcwidth import wcswidth

from agentwrap.commands import explain, sessions
from tests.lab.outer import AGENTWRAP, Outer, until

T = 1796021840.125


def event(t=T, source="attention", event="done", effect="held", reason="notified if it stands 1.5 s", **more):
    return {"t": t, "source": source, "event": event, "effect": effect, "reason": reason, **more}


def write(directory, name, *events):
    path = directory / f"{name}.events"
    path.write_text("".join(f"{each if isinstance(each, str) else json.dumps(each)}\n" for each in events))
    return path


def rows(lines):
    return [line.split() for line in lines]


# --- the verb


def test_events_are_printed_with_time_source_effect_and_reason(directory, start, verb):
    one = start("claude", "done")
    write(
        directory, one.name, event(), event(T + 1.5, effect="not notified", reason="focused, so not notified")
    )
    done = verb("explain")
    assert (done.returncode, done.stderr) == (0, "")
    head, headings, first, second = done.stdout.splitlines()
    assert head.startswith(f"{one.name}: done for ")
    assert headings.split() == ["TIME", "SOURCE", "EVENT", "EFFECT", "REASON"]
    assert first.endswith("  attention  done   held          notified if it stands 1.5 s")
    assert second.endswith("  attention  done   not notified  focused, so not notified")


def test_as_json_each_line_is_an_event(directory, start, verb):
    one = start("claude")
    events = [event(), event(T + 1, reason='"quoted" ü\n')]
    write(directory, one.name, *events)
    done = verb("explain", "claude", "--json")
    assert [json.loads(line) for line in done.stdout.splitlines()] == events
    assert done.stdout.isascii()


def test_without_a_name_it_is_the_session_that_needs_the_user_most(directory, start, verb):
    for agent, state in (("pi", "working"), ("codex", "blocked"), ("claude", "done")):
        write(directory, start(agent, state).name, event(reason=agent))
    assert [json.loads(line)["reason"] for line in verb("explain", "--json").stdout.splitlines()] == ["codex"]
    assert json.loads(verb("explain", "pi", "--json").stdout)["reason"] == "pi"


@pytest.mark.parametrize(("running", "words"), [(0, ()), (0, ("claude",)), (1, ("codex",)), (2, ("claude",))])
def test_no_such_session_is_one_line_and_exit_1(start, verb, running, words):
    for _ in range(running):
        start("claude")
    done = verb("explain", *words)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("agentwrap: ")
    assert done.stderr.count("\n") == 1


def test_a_session_without_events_says_so(start, verb):
    start("claude")
    done = verb("explain")
    assert (done.returncode, done.stdout.splitlines()[1:]) == (0, ["nothing has happened yet"])
    assert verb("explain", "--json").stdout == ""


# --- the file


def test_only_the_last_200_are_shown_and_what_is_no_event_is_left_out(tmp_path):
    lines = [event(T + n) for n in range(300)]
    path = write(tmp_path, "x", '{"cut', *lines, "null", "[]", '{"t": "x"}', "[" * 100000, '{"t": 1')
    assert [each["t"] for each in explain.read(str(path))] == [T + n for n in range(100, 300)]


def test_a_file_without_end_is_read_from_its_end(tmp_path, monkeypatch):
    monkeypatch.setattr(explain, "LARGEST", 1000)
    path = write(tmp_path, "x", *(event(T + n) for n in range(300)))
    found = [each["t"] for each in explain.read(str(path))]
    assert found == [T + n for n in range(300 - len(found), 300)]
    assert 3 < len(found) < 12


@pytest.mark.parametrize("kind", ["missing", "link", "pipe", "folder"])
def test_what_is_no_file_of_ours_holds_no_events(tmp_path, kind):
    path = tmp_path / "x.events"
    if kind == "link":
        os.symlink(write(tmp_path, "y", event()), path)
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    assert explain.read(str(path)) == []


# --- the table


HOSTILE = "\x1b]0;x\x07\u202eevil\nline\x9b31m" + "漢" * 50


@pytest.mark.parametrize("columns", [*range(1, 60), 80, 200])
def test_no_line_is_wider_than_the_screen(columns):
    events = [
        event(),
        event(reason=HOSTILE),
        event(source=HOSTILE, event=HOSTILE, effect=HOSTILE),
        event(reason=""),
    ]
    lines = explain.table(events, columns, colours=False)
    assert max(map(wcswidth, lines)) <= columns
    assert all(line.isprintable() for line in lines)


def test_a_long_reason_is_broken_between_words_and_nothing_of_it_is_lost():
    reason = "the program reports its state itself and so this notice of it was ignored altogether"
    for columns in (50, 65, 80):
        lines = explain.table([event(reason=reason)], columns, colours=False)
        text = " ".join(" ".join(line.split()) for line in lines)
        assert text.endswith(reason), lines


def test_hostile_text_reaches_the_screen_as_text_only():
    (_, line) = explain.table([event(reason=HOSTILE)], None, colours=False)
    assert "]0;xevil line31m漢" in line
    assert line.isprintable()


@pytest.mark.parametrize("t", [1e30, -1e30, float("inf"), float("nan"), 0])
def test_a_time_beyond_all_time_is_shown_as_one(t):
    assert len(explain.table([event(t)], 80, colours=False)) >= 2


def test_the_day_is_shown_where_the_first_event_is_not_of_today():
    moment = time.localtime(T)
    for age, form in ((60, "%H:%M:%S.125"), (100_000, "%m-%d")):
        (_, row) = rows(explain.table([event()], None, colours=False, now=T + age))
        assert row[0] == time.strftime(form, moment)


def test_colours_mark_headings_and_effects_and_only_where_wanted():
    events = [event(effect="not notified"), event(effect="done, with its notice"), event(effect="held")]
    heading, *lines = explain.table(events, 100, colours=True)
    assert heading.startswith("\x1b[2m")
    assert ["\x1b[33m" in lines[0], "\x1b[32m" in lines[1], "\x1b" in lines[2]] == [True, True, False]
    assert not any("\x1b" in line for line in explain.table(events, 100, colours=False))


# --- live


def test_a_live_session_explains_itself(environ_of_outer, tmp_path):
    environ = environ_of_outer
    program = tmp_path / "agent.sh"
    program.write_text('printf "\\033]7501;state=working\\007\\033]7501;state=done\\007"; read line\n')
    with Outer([*AGENTWRAP, "--notify", "none", "sh", str(program)], environ=environ) as outer:
        directory = environ["AGENTWRAP_STATE_DIR"]

        def told():
            outer.read()
            found = (
                [name for name in os.listdir(directory) if name.endswith(".events")]
                if os.path.isdir(directory)
                else []
            )
            if not found:
                return None
            events = explain.read(os.path.join(directory, found[0]))
            return (found[0], events) if any(each["effect"] == "notified" for each in events) else None

        name, events = until(told, 10)
        assert stat.S_IMODE(os.stat(os.path.join(directory, name)).st_mode) == 0o600
        short = [(each["source"], each["event"], each["effect"]) for each in events]
        assert ("process", "start", "unknown") in short
        assert [each for each in short if each[0] == "osc7501"] == [
            ("osc7501", "working", "working"),
            ("osc7501", "done", "done"),
        ]
        assert ("attention", "done", "held") in short
        (reason,) = [each["reason"] for each in events if each["effect"] == "notified"]
        assert reason.startswith("held 3.0 s: ")
        assert abs(events[0]["t"] - time.time()) < 60
        outer.send(b"\r")
        outer.wait()
        assert not [each for each in os.listdir(directory) if ".events" in each]


@pytest.fixture
def environ_of_outer(tmp_path):
    keep = ("PATH", "LANG", "PYTHONPATH", "VIRTUAL_ENV")
    return {
        **{name: os.environ[name] for name in keep if name in os.environ},
        "HOME": str(tmp_path),
        "TERM": "xterm-256color",
        "AGENTWRAP_STATE_DIR": str(tmp_path / "state"),
    }


def test_it_asks_for_the_width_of_the_screen_and_obeys_no_color(directory, start, tmp_path):
    write(directory, start("claude", "done").name, event(effect="not notified", reason="because " * 30))
    for more, coloured in (({}, True), ({"NO_COLOR": "1"}, False)):
        environ = os.environ | {"AGENTWRAP_STATE_DIR": str(directory), "TERM": "xterm"} | more
        with Outer(
            [sys.executable, "-m", "agentwrap", "explain"], environ=environ, size=(24, 60, 0, 0)
        ) as outer:
            outer.wait()
            lines = bytes(outer.output).decode().splitlines()
        assert ("\x1b[" in "".join(lines)) is coloured
        assert len(lines) > 5
        if not coloured:
            assert max(map(sessions.width, lines)) <= 60
