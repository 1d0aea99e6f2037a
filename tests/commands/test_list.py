"""Claims about the table of sessions: order, widths, colours, hostile texts."""

from __future__ import annotations

import pytest
from wcwidth import wcswidth

from agentwrap.commands import sessions
from agentwrap.commands.list import table
from agentwrap.errors import NoSessionError


def session(called, state="working", since=1000.0, **more):
    agent, _, pid = called.rpartition("-")
    one = {"session": called, "agent": agent, "pid": int(pid), "state": state, "since": since}
    rest = dict.fromkeys(("name", "kind", "message", "title", "progress"))
    return one | rest | {"cwd": "/srv/shop"} | more


def test_the_most_urgent_comes_first_of_equals_the_latest():
    states = ["unknown", "idle", "working", "suspended", "done", "error", "blocked"]
    found = [session(f"a-{number}", state, number) for number, state in enumerate(states)]
    found.append(session("b-9", "blocked", 9.0))
    assert [one["session"] for one in sessions.ordered(found)] == [
        "b-9",
        "a-6",
        "a-5",
        "a-4",
        "a-2",
        "a-1",
        "a-3",
        "a-0",
    ]


def test_a_row_says_name_state_since_message_and_directory(monkeypatch):
    monkeypatch.setenv("HOME", "/srv")
    one = session("claude-1", "blocked", kind="permission", name="api", message="approve\nBash", progress=40)
    lines = table([one], None, colours=False, now=1000 + 3 * 3600 + 5 * 60)
    assert lines[1].split("  ")[0] == "claude-1 (api)"
    assert " ".join(lines[1].split()) == "claude-1 (api) blocked (permission) 40% 3h05 approve Bash ~/shop"


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (-5, "0s"),
        (59.9, "59s"),
        (60, "1m"),
        (3599, "59m"),
        (3600, "1h00"),
        (86399, "23h59"),
        (86400 * 3, "3d"),
    ],
)
def test_ages(seconds, shown):
    assert sessions.age_of(session("a-1"), 1000.0 + seconds) == shown


WIDE = ["漢字かな交じり文" * 9, "👩‍👩‍👧" * 20, "🇩🇪" * 30, "e\u0301" * 90, "👍🏽" * 40, "plain " * 30, "", "x"]


@pytest.mark.parametrize("columns", [1, 5, 20, 40, 60, 80, 133, 300])
def test_no_line_is_wider_than_the_screen(columns):
    found = [
        session(f"agent-{number}", "blocked", kind="permission", message=text, cwd=f"/x/{text}")
        for number, text in enumerate(WIDE)
    ]
    for line in table(found, columns, colours=False):
        assert 0 <= wcswidth(line) <= columns


@pytest.mark.parametrize("text", WIDE)
@pytest.mark.parametrize("columns", [0, 1, 2, 3, 7, 10])
def test_a_clipped_text_fits_and_ends_in_an_ellipsis_only_if_something_was_cut(text, columns):
    got = sessions.clip(text, columns)
    assert wcswidth(got) <= columns
    if wcswidth(text) <= columns:
        assert got == text
    else:
        assert got == "" or got.endswith("…")
        assert text.startswith(got.rstrip("…").rstrip())


def test_columns_stand_below_each_other():
    found = [session("claude-1", message="漢字"), session("a-22222", "blocked", message="x")]
    lines = table(found, 100, colours=False)
    starts = {wcswidth(line[: line.index("/srv")]) for line in lines[1:]}
    assert len(starts) == 1
    assert wcswidth(lines[0][: lines[0].index("DIRECTORY")]) in starts


def test_nothing_a_session_says_reaches_the_terminal_as_a_command():
    evil = "\x1b]0;x\x07\x9b31m\u202e\r\n"
    one = session("a-1", message=evil, cwd=evil, name=evil, kind=evil)
    one["state"] = evil
    for line in table([one], 120, colours=False):
        assert line.isprintable()


def test_colours_take_no_columns():
    found = [session("a-1", "blocked", message="x"), session("a-2", "unknown", message="y")]
    import re

    plain, coloured = (table(found, 80, colours=colours) for colours in (False, True))
    assert "\x1b[33;1m" in coloured[1]
    assert [re.sub(r"\x1b\[[\d;]*m", "", line).rstrip() for line in coloured] == plain


def test_a_session_is_named_in_every_way_people_try():
    found = [session("claude-41", name="api"), session("claude-42"), session("codex-43", name="claude-41x")]
    assert sessions.select(found, "claude-41")["pid"] == 41
    assert sessions.select(found, "api")["pid"] == 41
    assert sessions.select(found, "ap")["pid"] == 41
    assert sessions.select(found, "42")["pid"] == 42
    assert sessions.select(found, "codex")["pid"] == 43
    assert sessions.select(found, "co")["pid"] == 43
    with pytest.raises(NoSessionError, match="claude may be claude-41, claude-42; say which"):
        sessions.select(found, "claude")
    with pytest.raises(
        NoSessionError, match="no live session called pi; there are claude-41, claude-42, codex-43"
    ):
        sessions.select(found, "pi")
    with pytest.raises(NoSessionError, match="none is running"):
        sessions.select([], "")


def test_colours_are_for_terminals_of_those_who_want_them(monkeypatch):
    import sys

    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert sessions.colours()
    monkeypatch.setenv("NO_COLOR", "1")
    assert not sessions.colours()
    monkeypatch.setenv("NO_COLOR", "")
    assert sessions.colours()
    monkeypatch.setenv("TERM", "dumb")
    assert not sessions.colours()
