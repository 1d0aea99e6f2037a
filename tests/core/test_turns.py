from __future__ import annotations

import os

import pytest

from agentwrap.core import turns
from agentwrap.core.turns import Rule, Turn

CODEX = (
    Rule("prefix", "Approval requested:", ("blocked",), "blocked", "permission"),
    Rule("prefix", "Plan mode prompt:", ("idle", "done"), "blocked", "question"),
    Rule("prefix", "", ("idle", "done"), "done"),
)
ALONE = (
    Rule("suffix", "Permission needs input", (), "blocked", "permission"),
    Rule("suffix", "Session done", (), "done"),
)

REPORTS = {
    turns.REPORT_IDLE: turns.IDLE,
    turns.REPORT_WORKING: turns.WORKING,
    turns.REPORT_BLOCKED: turns.BLOCKED,
    turns.REPORT_DONE: turns.DONE,
    turns.REPORT_ERROR: turns.ERROR,
    turns.CLEAR: turns.NONE,
    turns.NOTICE_PROMPT: turns.PROMPT,
    turns.NOTICE_DONE: turns.DONE,
    turns.NOTICE_ERROR: turns.ERROR,
    turns.STOP: turns.SUSPENDED,
}


@pytest.mark.parametrize("state", turns.STATES)
@pytest.mark.parametrize(("event", "target"), REPORTS.items())
def test_a_report_or_notice_counts_from_every_state(state, event, target):
    assert turns.next_state(state, event) == target


@pytest.mark.parametrize(
    ("state", "event", "target"),
    [
        (turns.DONE, turns.KEY, turns.SEEN),
        (turns.ERROR, turns.KEY, turns.SEEN),
        (turns.PROMPT, turns.KEY, turns.SEEN),
        (turns.BLOCKED, turns.KEY, None),
        (turns.WORKING, turns.KEY, None),
        (turns.DONE, turns.FOCUS, turns.SEEN),
        (turns.ERROR, turns.FOCUS, turns.SEEN),
        (turns.PROMPT, turns.FOCUS, None),
        (turns.BLOCKED, turns.FOCUS, None),
        (turns.WORKING, turns.ENDED, turns.NONE),
        (turns.BLOCKED, turns.ENDED, turns.NONE),
        (turns.PROMPT, turns.ENDED, turns.NONE),
        (turns.DONE, turns.ENDED, None),
        (turns.ERROR, turns.ENDED, None),
        (turns.NONE, turns.EXIT_OK, turns.DONE),
        (turns.NONE, turns.EXIT_FAILED, turns.ERROR),
        (turns.IDLE, turns.EXIT_OK, None),
        (turns.SEEN, turns.REPORT_AGAIN, turns.SEEN),
        (turns.WORKING, turns.REPORT_AGAIN, None),
        (turns.SUSPENDED, turns.RESUME, turns.HISTORY),
        (turns.SUSPENDED, turns.STOP, None),
    ],
)
def test_what_a_key_focus_exit_and_stop_do(state, event, target):
    assert turns.next_state(state, event) == target


def test_no_state_ends_by_time_alone():
    assert not [row for row in turns.TABLE if row[1] == turns.TIMER]


def test_the_table_names_known_states_and_events_and_decides_each_pair_once():
    pairs = [(state, event) for states, event, _ in turns.TABLE for state in states]
    assert len(pairs) == len(set(pairs))
    assert {event for _, event in pairs} | {turns.TIMER} == set(turns.EVENTS)
    targets = {target for *_, target in turns.TABLE}
    assert targets <= {*turns.STATES, turns.SUSPENDED, turns.HISTORY}
    assert set(turns.SHOWN) == set(turns.STATES) - {turns.NONE}


def test_the_diagram_in_the_documentation_is_the_table():
    path = os.path.join(os.path.dirname(__file__), "..", "..", "docs", "states.md")
    with open(path, encoding="utf-8") as file:
        text = file.read()
    assert f"```mermaid\n{turns.mermaid()}```" in text


def shown(turn):
    return turns.SHOWN.get(turn.state), turn.kind, turn.message


def test_a_notice_and_its_state_up_to_two_seconds_apart_are_one():
    for gap in (0.0, 0.9, 2.0):
        turn = Turn(0.0)
        turn.report("working", None, None, 1.0)
        turn.notice(CODEX, "", "Approval requested: touch x", "osc9", 2.0)
        assert shown(turn) == ("working", None, None)
        turn.report("blocked", None, None, 2.0 + gap)
        assert shown(turn) == ("blocked", "permission", "touch x")
        assert turn.source == "osc7501"


def test_a_notice_without_its_state_is_dropped_after_two_seconds():
    turn = Turn(0.0)
    turn.report("working", None, None, 1.0)
    turn.notice(CODEX, "", "Approval requested: touch x", "osc9", 2.0)
    assert turn.deadline == pytest.approx(4.0, abs=0.01)
    assert turn.expire(4.0) == []
    assert [each.message for each in turn.expire(4.1)] == ["touch x"]
    assert turn.deadline is None
    turn.report("blocked", None, None, 4.1)
    assert shown(turn) == ("blocked", None, None)


def test_a_late_state_takes_no_notice_that_nobody_has_expired():
    turn = Turn(0.0)
    turn.notice(CODEX, "", "Approval requested: touch x", "osc9", 2.0)
    turn.report("blocked", None, None, 4.5)
    assert shown(turn) == ("blocked", None, None)


def test_a_notice_waits_past_states_that_are_not_its_own():
    turn = Turn(0.0)
    turn.report("working", None, None, 1.0)
    turn.notice(CODEX, "", "Approval requested: touch x", "osc9", 2.0)
    turn.report("idle", None, None, 2.1)
    assert shown(turn) == ("idle", None, None)
    turn.report("blocked", None, None, 2.2)
    assert shown(turn) == ("blocked", "permission", "touch x")


def test_a_reply_makes_done_of_idle_and_gives_done_its_message():
    for state, source in (("idle", "osc9"), ("done", "osc7501")):
        turn = Turn(0.0)
        turn.report("working", None, None, 1.0)
        turn.notice(CODEX, "", "All done.", "osc9", 2.0)
        turn.report(state, None, None, 2.0)
        assert shown(turn) == ("done", None, "All done.")
        assert turn.source == source


def test_a_plan_prompt_is_a_question_whether_idle_or_done_is_said_and_a_key_ends_it():
    for state in ("idle", "done"):
        turn = Turn(0.0)
        turn.report("working", None, None, 1.0)
        turn.notice(CODEX, "", "Plan mode prompt: Implement this plan?", "osc9", 2.0)
        turn.report(state, None, None, 2.0)
        assert shown(turn) == ("blocked", "question", "Implement this plan?")
        assert turn.source == "osc9"
        assert not turn.focus(3.0)
        assert turn.key(4.0)
        assert shown(turn) == ("idle", None, None)


def test_the_newest_fitting_notice_counts_and_takes_older_ones_with_it():
    turn = Turn(0.0)
    turn.report("working", None, None, 1.0)
    turn.notice(CODEX, "", "first", "osc9", 2.0)
    turn.notice(CODEX, "", "second", "osc9", 2.1)
    turn.report("idle", None, None, 2.2)
    assert turn.message == "second"
    turn.report("working", None, None, 2.3)
    turn.report("idle", None, None, 2.4)
    assert shown(turn) == ("idle", None, None)


def test_notices_that_wait_are_bounded():
    turn = Turn(0.0)
    for number in range(turns.MAX_PENDING + 5):
        turn.notice(CODEX, "", f"text {number}", "osc9", 1.0)
    assert len(turn.expire(9.0)) == turns.MAX_PENDING


def test_a_done_repeated_within_five_seconds_is_the_same_turn_and_only_brings_its_message():
    turn = Turn(0.0)
    turn.report("working", None, None, 1.0)
    turn.report("done", None, None, 2.0)
    event, since = turn.event, turn.since
    turn.report("done", None, "a summary", 4.5)
    assert shown(turn) == ("done", None, "a summary")
    assert (turn.event, turn.since) == (event, since)
    turn.report("done", None, None, 5.0)
    assert turn.message == "a summary"


def test_a_done_repeated_after_it_was_seen_stays_seen():
    turn = Turn(0.0)
    turn.report("done", None, None, 2.0)
    turn.key(3.0)
    turn.report("done", None, "a summary", 4.5)
    assert shown(turn) == ("idle", None, None)


def test_a_done_long_after_one_that_was_seen_is_another():
    turn = Turn(0.0)
    turn.report("done", None, None, 2.0)
    event = turn.event
    turn.key(3.0)
    turn.report("done", None, None, 7.1)
    assert shown(turn) == ("done", None, None)
    assert turn.event == event + 1


def test_an_unseen_done_said_again_much_later_is_no_other_event():
    turn = Turn(0.0)
    turn.report("done", None, "one", 2.0)
    event = turn.event
    turn.report("done", None, "two", 60.0)
    assert turn.message == "two"
    assert turn.event == event


def test_done_working_done_is_two_turns():
    turn = Turn(0.0)
    turn.report("done", None, None, 2.0)
    event = turn.event
    turn.report("working", None, None, 2.1)
    turn.report("done", None, None, 2.2)
    assert turn.event == event + 1


def test_error_after_done_is_another_event():
    turn = Turn(0.0)
    turn.report("done", None, None, 2.0)
    event = turn.event
    turn.report("error", None, "oh", 2.1)
    assert turn.event == event + 1


def test_blocked_said_again_is_the_same_unless_it_was_answered_or_is_of_another_kind():
    turn = Turn(0.0)
    turn.report("blocked", None, None, 1.0)
    event = turn.event
    turn.report("blocked", "permission", "a", 1.1)
    assert turn.event == event
    turn.report("blocked", "permission", "b", 1.2)
    assert turn.event == event
    turn.key(2.0)
    turn.report("blocked", "permission", "b", 2.1)
    assert turn.event == event
    turn.report("blocked", "permission", "c", 2.2)
    assert turn.event == event + 1
    turn.report("blocked", "question", "c", 2.3)
    assert turn.event == event + 2


def test_a_notice_of_its_own_makes_a_state_and_a_key_ends_it():
    turn = Turn(0.0)
    assert turn.notice(ALONE, "My session", "Permission needs input", "osc99", 1.0)
    assert (*shown(turn), turn.source) == ("blocked", "permission", "My session", "osc99")
    turn.key(2.0)
    assert shown(turn) == ("idle", None, None)
    turn.notice(ALONE, "", "Session done", "osc777", 9.0)
    assert (*shown(turn), turn.source) == ("done", None, None, "osc777")
    assert turn.notice(ALONE, "", "Something else", "osc99", 9.0) is None


def test_reports_while_suspended_count_beneath_it():
    turn = Turn(0.0)
    turn.report("working", None, None, 1.0)
    assert turn.stop()
    assert not turn.stop()
    turn.report("done", None, None, 2.0)
    assert turn.suspended
    assert turn.resume()
    assert not turn.resume()
    assert shown(turn) == ("done", None, None)


def test_the_length_of_a_turn_runs_from_its_first_working_also_past_a_question():
    turn = Turn(0.0)
    turn.report("idle", None, None, 1.0)
    turn.report("working", None, None, 2.0)
    turn.report("blocked", "question", None, 5.0)
    turn.report("working", None, None, 8.0)
    assert turn.started == 2.0
    turn.report("done", None, None, 9.0)
    assert turn.started == 2.0
    turn.report("working", None, None, 10.0)
    assert turn.started == 10.0
    turn.report("idle", None, None, 11.0)
    assert turn.started is None


def test_the_end_of_a_reporting_program_keeps_its_outcome_only():
    for state, after in (
        ("working", None),
        ("blocked", None),
        ("idle", None),
        ("done", "done"),
        ("error", "error"),
    ):
        turn = Turn(0.0)
        turn.report(state, None, None, 1.0)
        turn.ended(2.0, "process")
        assert turns.SHOWN.get(turn.state) == after


def test_the_end_of_a_silent_program_is_its_state():
    for ok, state in ((True, "done"), (False, "error")):
        turn = Turn(0.0)
        turn.exited(ok, "why", 2.0)
        assert (turn.state, turn.message, turn.source) == (state, "why", "process")


def test_whether_the_program_itself_has_called_for_an_event():
    turn = Turn(0.0)
    turn.report("working", None, None, 1.0)
    turn.notice(CODEX, "", "Approval requested: touch x", "osc9", 2.0)
    assert turn.noticed is None, "it waits for its state"
    turn.report("blocked", None, None, 2.1)
    assert turn.noticed == "osc9"
    turn.report("working", None, None, 3.0)
    turn.report("blocked", None, None, 4.0)
    assert turn.noticed is None, "another event, without one"
    turn.notice((), "", "whatever", "osc777", 4.1)
    assert turn.noticed == "osc777", "while it stands, what is called for is this"
    turn.report("working", None, None, 5.0)
    turn.notice((), "", "whatever", "osc99", 5.1)
    turn.report("done", None, None, 6.0)
    assert turn.noticed is None, "before it began, it was about something else"
    turn.notice(ALONE, "My session", "Permission needs input", "osc99", 7.0)
    assert turn.noticed == "osc99"


APPROVAL = Rule("prefix", "Approval requested:", ("blocked",), "blocked", "permission")


def test_a_notice_just_behind_its_state_brings_its_words():
    turn = Turn(0.0)
    turn.report("blocked", "permission", None, 1.0)
    event = turn.event
    turn.notice([APPROVAL], "", "Approval requested: touch x", "osc9", 1.2)
    assert (turn.state, turn.kind, turn.message) == (turns.BLOCKED, "permission", "touch x")
    assert turn.event == event, "it is the same event"


@pytest.mark.parametrize("late", [2.1, 60.0])
def test_a_notice_long_behind_waits_for_the_next(late):
    turn = Turn(0.0)
    turn.report("blocked", None, None, 1.0)
    turn.notice([APPROVAL], "", "Approval requested: touch x", "osc9", 1.0 + late)
    assert turn.message is None


def test_words_that_stand_are_not_replaced_by_the_next_notice():
    turn = Turn(0.0)
    turn.report("blocked", None, "mine", 1.0)
    turn.notice([APPROVAL], "", "Approval requested: touch x", "osc9", 1.2)
    assert turn.message == "mine"


DENIED = [Rule("suffix", "needs input", (), "blocked", "permission"), Rule("suffix", "done", (), "done")]


@pytest.mark.parametrize(
    ("escape", "after", "state"), [(True, 0.8, turns.SEEN), (True, 3.0, turns.DONE), (False, 0.8, turns.DONE)]
)
def test_the_end_of_what_escape_denied_is_no_finished_turn(escape, after, state):
    turn = Turn(0.0)
    turn.notice(DENIED, "title", "Permission needs input", "osc99", 1.0)
    turn.key(2.0, takes_back=escape)
    turn.notice(DENIED, "title", "Session done", "osc99", 2.0 + after)
    assert turn.state == state


def test_only_the_first_end_after_escape_is_taken_back():
    turn = Turn(0.0)
    turn.notice(DENIED, "title", "Permission needs input", "osc99", 1.0)
    turn.key(2.0, takes_back=True)
    turn.notice(DENIED, "title", "Session done", "osc99", 2.5)
    turn.notice(DENIED, "title", "Session done", "osc99", 2.9)
    assert turn.state == turns.DONE
