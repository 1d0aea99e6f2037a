from __future__ import annotations

import pytest

from agentwrap.core import attention
from agentwrap.core.attention import Attention, Policy


class Watcher:
    """Says what is so to an Attention, and keeps what it tells with the time."""

    def __init__(self, **policy):
        self.policy = Policy()
        for name, value in policy.items():
            setattr(self.policy, name, value)
        self.attention = Attention(self.policy)
        self.told = []
        self.number = 0

    def begin(self, kind_of_event, now, *, message=None, kind=None, turn=None):
        self.number += 1
        self.again(kind_of_event, now, began=now, message=message, kind=kind, turn=turn)

    def again(self, kind_of_event, now, *, began, message=None, kind=None, turn=None):
        texts = (kind, message, f"title {kind_of_event}", f"body {message}")
        self.attention.state(self.number, kind_of_event, began, texts, turn, now)
        self.drain(now)

    def leave(self, now):
        self.attention.state(self.number, None, now, (None, None, "", ""), None, now)
        self.drain(now)

    def key(self, now):
        self.run(now)
        self.attention.key(now)

    def run(self, until):
        """Tick at each deadline up to `until`."""
        while (due := self.attention.deadline) is not None and due <= until:
            self.attention.tick(due)
            self.drain(due)

    def drain(self, now):
        self.told += [(round(now, 3), each.action, each.type) for each in self.attention.actions]
        self.attention.actions.clear()

    @property
    def reasons(self):
        return [reason for *_, reason in self.attention.notes]


def test_the_reason_of_a_notification_says_how_long_it_was_held_and_for_what():
    watcher = Watcher()
    watcher.attention.focused = False
    watcher.begin("done", 10.0, message="text")
    watcher.run(20)
    assert watcher.reasons == ["notified if it stands 1.5 s", "held 1.5 s: title done"]
    watcher = Watcher()
    watcher.begin("blocked", 10.0)
    watcher.key(10.25)
    watcher.run(20)
    assert watcher.reasons[-1] == "held 3.2 s, 3 s after a key: title blocked"


@pytest.mark.parametrize(
    ("event", "message", "delay"),
    [("blocked", None, 0.5), ("error", None, 1.5), ("done", "text", 1.5), ("done", None, 3.0)],
)
def test_each_event_is_told_once_it_has_stood(event, message, delay):
    watcher = Watcher()
    watcher.attention.focused = False
    watcher.begin(event, 10.0, message=message)
    watcher.attention.tick(10.0 + delay - 0.01)
    watcher.drain(0)
    assert watcher.told == []
    watcher.run(100)
    assert watcher.told == [(10.0 + delay, "notify", event)]
    assert watcher.attention.deadline is None


def test_what_is_left_before_it_is_due_is_never_told():
    watcher = Watcher()
    watcher.begin("done", 10.0, message="text")
    watcher.leave(11.0)
    watcher.run(100)
    assert watcher.told == []


def test_what_was_told_is_withdrawn_when_it_is_left():
    watcher = Watcher()
    watcher.begin("blocked", 10.0)
    watcher.run(20)
    watcher.leave(21.0)
    assert watcher.told == [(10.5, "notify", "blocked"), (21.0, "withdraw", "blocked")]


def test_a_message_that_comes_later_makes_done_due_earlier_but_not_before_its_delay():
    for came, due in ((10.5, 11.5), (12.5, 12.5)):
        watcher = Watcher()
        watcher.begin("done", 10.0)
        watcher.run(came)
        watcher.again("done", came, began=10.0, message="summary")
        watcher.run(100)
        assert watcher.told == [(due, "notify", "done")]


def test_a_message_after_it_was_told_updates_it():
    watcher = Watcher()
    watcher.begin("done", 10.0)
    watcher.run(13)
    watcher.again("done", 14.0, began=10.0, message="summary")
    watcher.again("done", 14.5, began=10.0, message="summary")
    watcher.run(100)
    assert watcher.told == [(13.0, "notify", "done"), (14.0, "update", "done")]


def test_updates_are_as_rare_as_notifications_and_the_last_text_is_shown():
    watcher = Watcher()
    watcher.begin("done", 10.0)
    watcher.run(13)
    for n in range(50):
        watcher.run(13.0 + n / 20)
        watcher.again("done", 13.0 + n / 20, began=10.0, message=f"text {n}")
    watcher.run(100)
    assert watcher.told[1:] == [(t, "update", "done") for t in (14.0, 15.0, 16.0)]


def test_an_update_names_the_notification_it_replaces():
    watcher = Watcher()
    watcher.begin("done", 10.0)
    watcher.attention.tick(13.0)
    watcher.attention.state(1, "done", 10.0, (None, "x", "t", "b"), None, 14.0)
    told, updated = watcher.attention.actions
    assert (told.id, updated.id, updated.title, updated.body) == (updated.id, told.id, "t", "b")


def test_nothing_is_told_while_the_terminal_has_the_focus_and_not_later_either():
    watcher = Watcher()
    watcher.attention.focused = True
    watcher.begin("blocked", 10.0)
    watcher.run(11)
    watcher.attention.focused = False
    watcher.run(100)
    assert watcher.told == []
    assert "focused, so not notified" in watcher.reasons


def test_while_focused_tells_all_the_same():
    watcher = Watcher(while_focused=True)
    watcher.attention.focused = True
    watcher.begin("blocked", 10.0)
    watcher.run(100)
    assert watcher.told == [(10.5, "notify", "blocked")]


def test_a_key_counts_as_looking_for_three_seconds_where_the_focus_is_unknown():
    watcher = Watcher()
    watcher.attention.key(9.0)
    watcher.begin("blocked", 10.0)
    watcher.key(11.0)
    watcher.run(100)
    assert watcher.told == [(14.0, "notify", "blocked")]


def test_a_key_holds_nothing_back_where_the_focus_is_known_to_be_elsewhere():
    watcher = Watcher()
    watcher.attention.focused = False
    watcher.attention.key(9.9)
    watcher.begin("blocked", 10.0)
    watcher.run(100)
    assert watcher.told == [(10.5, "notify", "blocked")]


def test_one_event_is_told_once_also_past_a_suspension():
    watcher = Watcher()
    watcher.begin("blocked", 10.0)
    watcher.run(11)
    watcher.attention.suspend(12.0)
    watcher.drain(12.0)
    watcher.again("blocked", 20.0, began=10.0)
    watcher.run(100)
    assert watcher.told == [(10.5, "notify", "blocked"), (12.0, "withdraw", "blocked")]


def test_events_not_wanted_are_not_told():
    for event in ("blocked", "done", "error"):
        watcher = Watcher(on=("exit",))
        watcher.begin(event, 10.0)
        watcher.run(100)
        assert watcher.told == []
    watcher = Watcher(on=("done",))
    watcher.attention.exit("t", "b", None, 10.0)
    assert watcher.attention.actions == []


def test_short_turns_are_not_told_as_done():
    watcher = Watcher(min_turn=30.0)
    watcher.begin("done", 10.0, turn=29.0)
    watcher.run(100)
    watcher.begin("done", 200.0, turn=30.0)
    watcher.run(300)
    watcher.begin("done", 400.0, turn=None)
    watcher.run(500)
    assert [t for t, *_ in watcher.told] == [203.0, 400.0, 403.0]
    assert [action for _, action, _ in watcher.told] == ["notify", "withdraw", "notify"]


def test_quiet_hours_tell_nothing():
    watcher = Watcher()
    watcher.attention.quiet = True
    watcher.begin("blocked", 10.0)
    watcher.run(100)
    watcher.attention.exit("t", "b", None, 200.0)
    assert watcher.told == []
    assert watcher.reasons.count("quiet hours") == 2


def test_two_within_a_second_drop_the_second_but_only_delay_a_blocked():
    watcher = Watcher()
    watcher.begin("blocked", 10.0)
    watcher.run(10.5)
    watcher.begin("error", 9.6)  # due at 11.1
    watcher.run(11.2)
    assert watcher.told[-1][:2] == (9.6, "withdraw")
    watcher.begin("blocked", 10.7)
    watcher.run(100)
    assert [each for each in watcher.told if each[1] == "notify"] == [
        (10.5, "notify", "blocked"),
        (11.5, "notify", "blocked"),
    ]


def test_ten_a_minute_and_no_more():
    watcher = Watcher()
    for n in range(30):
        watcher.begin("error", 100.0 + 2 * n)
        watcher.run(100.0 + 2 * n + 1.6)
    told = [t for t, action, _ in watcher.told if action == "notify"]
    assert told == [101.5 + 2 * n for n in range(10)]
    watcher.begin("blocked", 158.0)
    watcher.run(300)
    assert watcher.told[-1] == (161.5, "notify", "blocked")


def test_an_exit_is_told_at_once_or_never():
    watcher = Watcher()
    watcher.attention.exit("t", "b", None, 10.0)
    watcher.drain(10.0)
    assert watcher.told == [(10.0, "notify", "exit")]
    for focused, key in ((True, None), (None, 8.0)):
        watcher = Watcher()
        watcher.attention.focused = focused
        if key is not None:
            watcher.attention.key(key)
        watcher.attention.exit("t", "b", None, 10.0)
        assert watcher.attention.actions == []
        assert watcher.attention.deadline is None


def test_an_exit_three_seconds_after_a_key_is_told():
    watcher = Watcher()
    watcher.attention.key(7.0)
    watcher.attention.exit("t", "b", None, 10.0)
    assert [each.type for each in watcher.attention.actions] == ["exit"]


def test_nothing_is_told_after_the_end_and_nothing_withdrawn():
    watcher = Watcher()
    watcher.begin("done", 10.0)
    watcher.attention.close(11.0)
    watcher.run(100)
    assert watcher.told == []


def test_escalation_comes_once_if_it_is_still_blocked():
    watcher = Watcher(escalate_after=60.0)
    watcher.begin("blocked", 10.0)
    watcher.run(300)
    assert watcher.told == [(10.5, "notify", "blocked"), (70.0, "escalate", "blocked")]
    watcher.begin("blocked", 400.0)
    watcher.run(450.0)
    watcher.leave(450.0)
    watcher.run(1000)
    assert [action for _, action, _ in watcher.told[2:]] == ["withdraw", "notify", "withdraw"]


def test_escalation_waits_for_a_key_and_not_for_who_looks():
    watcher = Watcher(escalate_after=60.0)
    watcher.begin("blocked", 10.0)
    watcher.key(69.0)
    watcher.run(300)
    assert watcher.told[-1] == (72.0, "escalate", "blocked")
    watcher = Watcher(escalate_after=60.0)
    watcher.begin("blocked", 10.0)
    watcher.run(20)
    watcher.attention.focused = True
    watcher.run(300)
    assert watcher.told == [(10.5, "notify", "blocked")]


def test_a_notice_is_told_when_the_command_goes_on_and_nobody_types():
    watcher = Watcher()
    watcher.attention.notice("t", "b", "m", 10.0)
    watcher.run(100)
    assert watcher.told == [(10.5, "notify", "done")]
    watcher.key(20.0)
    watcher.attention.notice("t", "b", "m", 21.0)
    watcher.run(100)
    assert watcher.told[1:] == [(23.0, "notify", "done")]


def test_notices_that_wait_are_bounded_and_the_same_is_told_once():
    watcher = Watcher()
    watcher.key(9.0)
    for _ in range(5):
        watcher.attention.notice("t", "b", "same", 10.0)
    watcher.run(100)
    assert len(watcher.told) == 1
    watcher.key(200.0)
    for n in range(100):
        watcher.attention.notice("t", f"b{n}", f"m{n}", 200.5)
    assert len(watcher.attention._notices) == attention.MAX_NOTICES


def test_a_notice_over_the_limit_is_dropped():
    watcher = Watcher()
    watcher.attention.notice("t", "b", "one", 10.0)
    watcher.attention.notice("t", "c", "two", 10.2)
    watcher.run(100)
    watcher.drain(100)
    assert len(watcher.told) == 1
    assert watcher.reasons[-1] == "too many notifications"


def test_a_notice_and_the_end_right_behind_it_are_one():
    watcher = Watcher()
    watcher.attention.notice("t", "b", "m", 10.0)
    assert watcher.attention.announced() == "m"
    watcher.attention.exit("made", "m", "m", 10.4)
    watcher.attention.close(10.4)
    watcher.drain(10.4)
    watcher.run(100)
    assert watcher.told == [(10.4, "notify", "exit")]
    watcher = Watcher()
    watcher.attention.notice("t", "b", "m", 10.0)
    watcher.run(10.5)
    assert watcher.attention.announced() is None
    watcher.attention.exit("made", "", None, 12.0)
    watcher.drain(12.0)
    assert watcher.told == [(10.5, "notify", "done"), (12.0, "notify", "exit")]


def test_all_that_was_said_before_the_end_is_told_with_it():
    watcher = Watcher()
    for n, message in enumerate(("built", "3 failed", "make finished: 3 failed"), 1):
        watcher.attention.notice("t", "b", message, 10.0 + n / 10)
    assert watcher.attention.announced() == "built\nmake finished: 3 failed"


@pytest.mark.parametrize(
    ("wanted", "told"), [(("done",), ["done"]), (("exit",), ["exit"]), (("done", "exit"), ["exit"]), ((), [])]
)
def test_of_a_notice_and_the_end_that_is_told_which_is_wanted(wanted, told):
    watcher = Watcher(on=wanted)
    watcher.attention.notice("t", "b", "m", 10.0, "osc9")
    watcher.attention.exit("made", "m", "m", 10.4)
    watcher.attention.close(10.4)
    actions = watcher.attention.actions
    assert [each.type for each in actions] == told
    assert all(each.last for each in actions), "nobody waits for the terminal any more"


def test_the_last_words_of_a_command_whose_end_is_no_news_are_told():
    watcher = Watcher()
    watcher.attention.notice("t", "b", "m", 10.0)
    watcher.attention.close(10.1)
    watcher.drain(10.1)
    assert watcher.told == [(10.1, "notify", "done")]
    for focused, key in ((True, None), (None, 9.0)):
        watcher = Watcher()
        watcher.attention.focused = focused
        if key is not None:
            watcher.attention.key(key)
        watcher.attention.notice("t", "b", "m", 10.0)
        watcher.attention.close(10.1)
        assert watcher.attention.actions == []
        assert watcher.attention.deadline is None


@pytest.mark.parametrize(("said", "own"), [(True, "osc9"), (False, None)])
def test_the_end_is_the_programs_own_notice_only_where_that_says_all(said, own):
    watcher = Watcher()
    watcher.attention.notice("t", "b", "m", 10.0, "osc9")
    watcher.attention.exit("made", "m", "m", 10.1, said=said)
    assert [each.own for each in watcher.attention.actions] == [own]


def test_it_is_said_whether_the_program_itself_called():
    watcher = Watcher()
    texts = (None, "m", "title", "body")
    watcher.attention.focused = False
    watcher.attention.state(1, "blocked", 10.0, texts, None, 10.0)
    watcher.attention.state(1, "blocked", 10.0, texts, None, 10.2, "osc9")
    watcher.attention.tick(10.5)
    watcher.attention.state(1, None, 11.0, texts, None, 11.0)
    watcher.attention.state(2, "blocked", 12.0, texts, None, 12.0)
    watcher.attention.tick(12.5)
    watcher.attention.notice("t", "b", "m", 14.0, "osc777")
    watcher.attention.tick(14.5)
    told = [each for each in watcher.attention.actions if each.action == "notify"]
    assert [each.own for each in told] == ["osc9", None, "osc777"]
