from __future__ import annotations

import pytest

from agentwrap.core import status
from agentwrap.core.report import Report


@pytest.mark.parametrize(
    "text",
    [
        "Which one?",
        "Which one?  ",
        "Which one?\n",
        "**Which one?**",
        "_Which one?_",
        "`Which one?`",
        '"Which one?"',
        "“Which one?”",
        "«Which one?»",
        "(Which one?)",
        "[Which (one?)]",
        '**"Which one?"** ',
        "どちらにしますか？",  # noqa: RUF001 - the mark in question
        "「どちら？」",  # noqa: RUF001 - the mark in question
    ],
)
def test_a_text_that_ends_in_a_question_mark_is_a_question(text):
    assert status.is_question(text)


@pytest.mark.parametrize("text", ["", "?!", "Done. Right? Yes.", "What? I see", "a ? b", "...", "()"])
def test_any_other_text_is_none(text):
    assert not status.is_question(text)


@pytest.mark.parametrize(
    ("event", "kind", "message", "title"),
    [
        ("blocked", "permission", None, "Codex needs permission"),
        ("blocked", "question", None, "Codex has a question"),
        ("blocked", "auth", None, "Codex needs you to sign in"),
        ("blocked", None, "dialog open", "Codex is waiting for you"),
        ("blocked", None, "Sure?", "Codex is waiting for you"),
        ("done", None, None, "Codex finished"),
        ("done", None, "All done.", "Codex finished"),
        ("done", None, "A or B?", "Codex finished with a question"),
        ("error", None, "Why?", "Codex hit an error"),
    ],
)
def test_titles(event, kind, message, title):
    assert status.title(event, "Codex", kind, message) == title


def test_exit_titles():
    assert status.exit_title("make", 0, None) == "make finished"
    assert status.exit_title("make", 3, None) == "make failed (exit code 3)"
    assert status.exit_title("Codex", 0, "SIGKILL") == "Codex was killed (SIGKILL)"


def test_a_body_is_the_message_and_the_label_or_the_label_alone():
    assert status.body("pong", "~/shop") == "pong\n~/shop"
    assert status.body(None, "~/shop") == "~/shop"
    assert status.body("", "~/shop") == "~/shop"


@pytest.mark.parametrize(
    ("name", "cwd", "home", "label"),
    [
        ("backend", "/home/u/shop", "/home/u", "backend"),
        (None, "/home/u/shop", "/home/u", "~/shop"),
        (None, "/home/u/shop", "/home/u/", "~/shop"),
        (None, "/home/u", "/home/u", "~"),
        (None, "/home/user2", "/home/u", "/home/user2"),
        (None, "/srv", None, "/srv"),
        (None, "/srv", "/", "/srv"),
        ("", "/srv", "", "/srv"),
    ],
)
def test_a_label_is_the_name_or_the_directory(name, cwd, home, label):
    assert status.label(name, cwd, home) == label


def test_the_most_urgent_record_wins_and_of_equals_the_last():
    records = [("a", Report("working", "a")), ("b", Report("idle", "b")), ("c", Report("working", "c"))]
    assert status.most_urgent(records)[0] == "c"
    records.append(("d", Report("done", "d")))
    assert status.most_urgent(records)[0] == "d"
    records.append(("e", Report("blocked", "e")))
    records.append(("f", Report("error", "f")))
    assert status.most_urgent(records)[0] == "e"
    assert status.most_urgent([]) is None


def test_the_order_of_urgency():
    states = ["unknown", "suspended", "idle", "working", "done", "error", "blocked", "no such state"]
    assert sorted(states, key=status.rank) == [*reversed(states[:-1]), states[-1]]


def test_signals_whose_number_differs_between_systems_are_named_by_number():
    assert status.signal_name(9) == "SIGKILL"
    assert status.signal_name(10) == "signal 10"
