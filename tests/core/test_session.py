from __future__ import annotations

import base64

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentwrap import agents
from agentwrap.core.attention import Policy
from agentwrap.core.keys import FOCUS_IN, FOCUS_OUT, KEY, MOUSE, PASTE, REPLY
from agentwrap.core.session import EVENTS, HOOK_ID, OSC99_QUERIES, Change, Session

KILLED = 9


def b64(text):
    return base64.b64encode(text.encode()).decode()


class Live:
    """A session on a clock of its own, which ticks at each deadline."""

    def __init__(self, agent="generic", command="make", *, shell=False, **policy):
        self.log = []
        self.now = 0.0
        self.policy = Policy()
        for name, value in policy.items():
            setattr(self.policy, name, value)
        self.session = Session(
            agents.by_name(agent),
            self.policy,
            now=0.0,
            command=command,
            label="~/w",
            by_app=agents.by_app,
            prompt_marks=(lambda: True) if shell else None,
            answer_osc99=True,
            observer=lambda t, what: self.log.append((round(t, 3), what)),
        )

    def until(self, now):
        while (due := self.session.deadline) is not None and due <= now:
            self.now = max(self.now, due)
            self.session.tick(self.now)
        self.now = now
        return self

    def write(self, now, data):
        self.until(now).session.output(data if isinstance(data, bytes) else data.encode(), now)
        return self

    def report(self, now, body):
        return self.write(now, f"\x1b]7501;{body}\a")

    def type(self, now, *events):
        self.until(now).session.typed(events or (KEY,), now)
        return self

    def end(self, now, status, *forwarded):
        self.until(now).session.exited(now, status, frozenset(forwarded))
        return self

    @property
    def states(self):
        return [
            (what.state, what.kind, what.message, what.source)
            for _, what in self.log
            if isinstance(what, Change)
        ]

    @property
    def told(self):
        return [
            (t, what.action, what.type, getattr(what, "title", None), getattr(what, "body", None))
            for t, what in self.log
            if not isinstance(what, Change)
        ]

    @property
    def view(self):
        return self.session.view()

    @property
    def state(self):
        return self.view.state, self.view.kind, self.view.message

    @property
    def reasons(self):
        return [event["reason"] for event in self.session.take_events()]


# --- the state ----------------------------------------------------------------------------------


def test_nothing_reported_is_unknown():
    live = Live().write(1, "\x1b[2J\x1b]0;title\ahello")
    assert live.state == ("unknown", None, None)
    assert (live.view.source, live.view.seq, live.view.since, live.view.app) == ("process", 0, 0.0, None)


def test_children_alone_give_the_state_of_the_most_urgent_and_are_never_told():
    live = (
        Live().report(1, "state=working:id=a").report(2, f"state=blocked:kind=question:id=b:msg={b64('x')}")
    )
    assert live.state == ("blocked", "question", "x")
    live.report(3, "state=clear:id=b").report(4, "state=error:id=a")
    assert live.state == ("error", None, None)
    live.report(5, "state=clear:id=a")
    assert live.state == ("idle", None, None)
    live.until(100)
    assert live.told == []
    assert live.view.seq == 0
    assert live.view.since == 5


def test_the_root_says_it_all_and_children_are_counted():
    live = Live().report(1, "state=working:app=x").report(2, "state=working:id=a").report(3, "state=done")
    assert live.state == ("done", None, None)
    assert live.view.children == 1
    assert "1 more still working" in live.reasons
    live.report(4, "state=blocked:id=a/b")
    assert live.state == ("done", None, None)
    assert live.view.seq == 2


def test_one_report_counts_once_and_one_that_changes_nothing_not_at_all():
    live = Live().report(1, "state=blocked:kind=permission:msg=YQ==")
    assert (live.view.seq, live.view.since) == (1, 1)
    live.report(2, "state=blocked:kind=permission:msg=YQ==:progress=4:app=z")
    assert (live.view.seq, live.view.since, live.view.progress, live.view.app) == (1, 1, 4, "z")
    live.report(3, "state=blocked:kind=permission:msg=Yg==")
    assert (live.view.seq, live.view.since) == (2, 1)
    live.report(4, "state=blocked:kind=question:msg=Yg==")
    assert (live.view.seq, live.view.since) == (3, 4)


def test_clearing_the_root_leaves_the_children_then_idle():
    live = Live().report(1, "state=blocked").report(2, "state=working:id=a").report(3, "state=idle")
    live.report(4, "state=clear")
    assert live.state == ("idle", None, None)
    assert live.view.records == ()


def test_a_root_evicted_by_too_many_records_is_gone():
    live = Live().report(1, "state=blocked")
    for n in range(256):
        live.report(2, f"state=idle:id=c{n}")
    assert live.state == ("idle", None, None)


def test_a_reset_of_the_terminal_clears_all():
    live = Live().report(1, "state=working").report(1, "state=working:id=a").write(2, "\x1bc")
    assert live.state == ("idle", None, None)
    assert live.view.records == ()


def test_messages_and_titles_are_cleaned_and_bounded():
    live = Live().report(1, "state=blocked:msg=" + b64("a\u202eb\u200b"))
    assert live.view.message == "ab"
    live.write(2, "\x1b]2;\u202etitle\u2066  x\a")
    assert live.view.title == "title x"
    live.write(3, "\x1b]0;" + "é" * 1000 + "\a")
    assert len(live.view.title) == 256
    live.write(4, "\x1b]0;\a")
    assert live.view.title is None


def test_two_reports_in_one_write_are_two_changes():
    live = Live().write(1, "\x1b]7501;state=idle\a\x1b]7501;state=working\a\x1b]7501;state=idle\a")
    assert [state for state, *_ in live.states] == ["idle", "working", "idle"]


# --- the probe ----------------------------------------------------------------------------------


def test_a_query_is_answered_once_in_its_own_terminator():
    live = Live().write(1, b"\x1b]7501;?\a\x1b]7501;?\x1b\\")
    assert live.session.take_replies() == [b"\x1b]7501;?\a", b"\x1b]7501;?\x1b\\"]
    assert live.session.take_queries() == 2
    assert live.session.take_replies() == []
    assert live.session.take_queries() == 0
    assert live.state == ("unknown", None, None)


def test_a_query_inside_a_passthrough_is_answered():
    live = Live().write(1, b"\x1bPtmux;\x1b\x1b]7501;?\a\x1b\\")
    assert live.session.take_replies() == [b"\x1b]7501;?\a"]


def test_questions_for_the_cursor_are_counted():
    live = Live().write(1, b"\x1b[6n\x1b[?6n\x1b[5n")
    assert live.session.take_position_queries() == 2
    assert live.session.take_position_queries() == 0


def test_kittys_query_is_answered_for_opencode_alone_and_only_where_the_host_says_so():
    query = b"\x1b]99;i=opentui-notifications:p=?;\x1b\\"
    live = Live("opencode").write(1, query)
    (reply,) = live.session.take_replies()
    assert reply.startswith(b"\x1b]99;i=opentui-notifications:p=?;")
    assert live.session.take_queries() == 0
    assert Live("generic").write(1, query).session.take_replies() == []
    live.session.answer_osc99 = False
    live.write(2, query)
    assert live.session.take_replies() == []


# --- seen, focus --------------------------------------------------------------------------------


@pytest.mark.parametrize("event", [KEY, PASTE, FOCUS_IN])
@pytest.mark.parametrize("state", ["done", "error"])
def test_done_and_error_are_seen_at_a_key_a_paste_or_focus(state, event):
    live = Live().report(1, f"state={state}").type(9, event)
    assert live.state == ("idle", None, None)
    assert live.view.seq == 2
    assert live.view.since == 9
    assert live.told[-1][:3] == (9, "withdraw", state)


@pytest.mark.parametrize("event", [MOUSE, REPLY, FOCUS_OUT])
def test_what_the_terminal_sends_is_no_key(event):
    live = Live().report(1, "state=done").type(9, event)
    assert live.state == ("done", None, None)


def test_focus_is_known_once_the_terminal_has_said_so_until_it_is_turned_off():
    live = Live().write(1, b"\x1b[?1004h")
    assert live.view.focused is None
    assert live.type(2, FOCUS_OUT).view.focused is False
    assert live.type(3, FOCUS_IN).view.focused is True
    assert live.write(4, b"\x1b[?1004l").view.focused is None
    assert live.type(5, FOCUS_IN).view.focused is None
    assert live.write(6, b"\x1b[?1004h").type(7, FOCUS_IN).view.focused is True


def test_focus_counts_where_the_program_never_spoke_of_it():
    assert Live().type(1, FOCUS_OUT).view.focused is False


def test_not_told_while_focused():
    live = Live().type(0.5, FOCUS_IN).report(1, "state=blocked").until(50)
    assert live.told == []
    assert "focused, so not notified" in live.reasons


def test_a_done_seen_before_its_message_came_stays_idle():
    live = Live().report(1, "state=done").type(2).report(3.5, "state=done:msg=YQ==").until(50)
    assert live.state == ("idle", None, None)
    assert live.told == []


def test_a_late_message_updates_what_was_told():
    live = (
        Live()
        .report(1, "state=working:app=x")
        .report(2, "state=done")
        .report(6, f"state=done:msg={b64('ok?')}")
    )
    live.until(50)
    assert live.told == [
        (5, "notify", "done", "x finished", "~/w"),
        (6, "update", "done", "x finished with a question", "ok?\n~/w"),
    ]


def test_flicker_between_done_and_working_tells_only_the_last():
    live = Live()
    for n in range(5):
        live.report(n + 1, "state=working").report(n + 1.5, "state=done:msg=YQ==")
    live.until(50)
    assert [(t, what) for t, what, *_ in live.told] == [(7, "notify")]


# --- notices ------------------------------------------------------------------------------------


def test_a_reply_like_a_conemu_command_is_a_reply_while_codex_works():
    for body in ("4;1;50 pong", "4;1;50", "9;path"):
        live = Live("codex").report(1, "state=working:app=codex")
        live.write(2, f"\x1b]9;{body}\a\x1b]7501;state=done:app=codex\x1b\\")
        assert live.state == ("done", None, body)
        assert live.view.progress is None


def test_it_is_none_outside_a_turn_or_from_another_program():
    live = Live("codex").report(1, "state=idle:app=codex").write(2, "\x1b]9;4;1;50\a")
    live.report(2, "state=idle:app=codex")
    assert live.state == ("idle", None, None)
    live = (
        Live("claude")
        .report(1, "state=working")
        .write(2, "\x1b]9;4;1;50\a")
        .report(2, "state=done")
        .until(50)
    )
    assert live.state == ("done", None, None)
    assert live.view.progress is None
    assert len(live.told) == 1


def test_progress_of_a_program_that_reports_nothing_else():
    live = Live().write(1, "\x1b]9;4;1;50\x1b\\")
    assert (live.state, live.view.progress, live.view.seq) == (("unknown", None, None), 50, 0)
    assert live.write(2, "\x1b]9;4;3;\x1b\\").view.progress is None
    assert live.write(3, "\x1b]9;4;1;7\x1b\\").view.progress == 7
    assert live.write(4, "\x1b]9;4;0\x1b\\").view.progress is None
    live.write(5, "\x1b]9;4;1;7\x1b\\").report(6, "state=working")
    assert live.view.progress is None
    live.until(50)
    assert live.told == []


def test_codex_inside_another_program_reads_as_codex():
    live = Live("generic", "work.sh").report(1, "state=working:app=codex").write(2, "\x1b]9;All done.\a")
    live.report(2, "state=idle:app=codex").until(50)
    assert live.state == ("done", None, "All done.")
    assert live.told[0][3:] == ("Codex finished", "All done.\n~/w")


def test_notices_of_a_program_without_states_are_told_with_its_name():
    live = Live(command="cargo").write(1, "\x1b]9;Build done\a").write(5, "\x1b]777;notify;Tests;3 failed\a")
    live.write(9, "\x1b]99;;Hello\x1b\\").until(50)
    assert live.told == [
        (1.5, "notify", "done", "cargo", "Build done\n~/w"),
        (5.5, "notify", "done", "cargo", "Tests: 3 failed\n~/w"),
        (9.5, "notify", "done", "cargo", "Hello\n~/w"),
    ]
    assert live.state == ("unknown", None, None)


def test_notices_of_a_program_that_reports_are_not_told_twice():
    live = Live("claude").report(1, "state=done:msg=YQ==").write(1.1, "\x1b]9;Claude is waiting\a").until(50)
    assert [what[3] for what in live.told] == ["Claude Code finished"]


def test_notices_of_codex_before_it_ever_reported_are_told_as_they_are():
    live = Live("codex").write(1, "\x1b]9;Agent turn complete\a").until(50)
    assert live.told == [(1.5, "notify", "done", "Codex", "Agent turn complete\n~/w")]


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("Session done", ("done", None)),
        ("Permission needs input", ("blocked", "permission")),
        ("Question needs input", ("blocked", "question")),
        ("Session error", ("error", None)),
    ],
)
@pytest.mark.parametrize("form", ["osc99", "osc777", "osc9"])
def test_opencodes_four_notices(form, text, state):
    written = {
        "osc99": f"\x1b]99;i=o-1:p=title:e=1:d=0;{b64('Shop')}\x1b\\"
        f"\x1b]99;i=o-1:p=body:e=1:d=1;{b64(text)}\x1b\\",
        "osc777": f"\x1b]777;notify;Shop;{text}\x1b\\",
        "osc9": f"\x1b]9;{text}\x1b\\",
    }
    live = Live("opencode").write(1, written[form])
    assert (live.view.state, live.view.kind, live.view.source) == (*state, form)
    assert live.view.message == (None if form == "osc9" else "Shop")
    assert live.type(9).state == ("idle", None, None)


# --- suspended ----------------------------------------------------------------------------------


def test_suspended_drops_what_waits_withdraws_what_was_told_and_tells_nothing_again():
    live = Live().report(1, "state=blocked:kind=permission:msg=YQ==").until(2)
    live.session.stopped(3)
    assert live.state == ("suspended", None, None)
    assert live.view.source == "process"
    live.until(10).session.resumed(10)
    assert live.state == ("blocked", "permission", "a")
    assert live.view.source == "osc7501"
    live.until(50)
    assert [what[:3] for what in live.told] == [(1.5, "notify", "blocked"), (3, "withdraw", "blocked")]
    assert live.view.seq == 3


def test_what_waited_when_it_was_stopped_is_not_told_later():
    live = Live().report(1, "state=done")
    live.session.stopped(2)
    live.until(10).session.resumed(10)
    assert live.until(50).told == []


def test_what_is_reported_while_suspended_is_told_after():
    live = Live().report(1, "state=working")
    live.session.stopped(2)
    live.report(3, "state=blocked").until(9)
    assert live.state == ("suspended", None, None)
    live.until(10).session.resumed(10)
    live.until(50)
    assert [what[:3] for what in live.told] == [(10, "notify", "blocked")]


def test_stopping_twice_is_once():
    live = Live()
    live.session.stopped(1)
    live.session.stopped(2)
    assert live.view.seq == 1


# --- the end ------------------------------------------------------------------------------------


def test_a_silent_command_is_done_or_failed_and_told_after_ten_seconds():
    live = Live(command="make").end(10.5, 0)
    assert live.states == [("done", None, None, "process")]
    assert live.told == [(10.5, "notify", "exit", "make finished", "~/w")]
    live = Live(command="make").end(11, 3 << 8)
    assert live.states == [("error", None, "exit code 3", "process")]
    assert live.told == [(11, "notify", "exit", "make failed (exit code 3)", "~/w")]


def test_a_quick_silent_command_is_no_news_but_for_a_signal():
    assert Live().end(10, 0).told == []
    assert Live().end(9, 1 << 8).told == []
    live = Live().end(1, KILLED)
    assert live.states == [("error", None, "killed by SIGKILL", "process")]
    assert live.told == [(1, "notify", "exit", "make was killed (SIGKILL)", "~/w")]


INNER = "\x1b]777;notify;make failed (exit code 3);~/there\a"
"""What an agentwrap at the other end of ssh writes last."""


def test_a_command_whose_last_words_tell_of_its_end_is_told_once():
    live = Live(command="ssh").write(20, INNER).end(20.1, 3 << 8).until(100)
    body = "make failed (exit code 3): ~/there\n~/w"
    assert live.told == [(20.1, "notify", "exit", "ssh failed (exit code 3)", body)]


def test_what_was_said_well_before_the_end_is_another_thing():
    live = Live(command="ssh").write(20, INNER).end(22, 3 << 8)
    assert [each[:4] for each in live.told] == [
        (20.5, "notify", "done", "ssh"),
        (22, "notify", "exit", "ssh failed (exit code 3)"),
    ]


@pytest.mark.parametrize("wait_status", [0, 1 << 8])
def test_of_a_quick_command_only_the_last_words_are_told(wait_status):
    live = Live(command="ssh").write(2, "\x1b]9;Deployed\a").end(2.1, wait_status)
    assert live.told == [(2.1, "notify", "done", "ssh", "Deployed\n~/w")]


@pytest.mark.parametrize(
    ("text", "wait_status", "own"),
    [
        ("Deployed", 0, "osc9"),
        ("Deployed", 3 << 8, None),
        ("make failed (exit code 3)", 3 << 8, "osc9"),
        ("make failed (exit code 3)", 4 << 8, None),
        ("make was killed (SIGKILL)", KILLED, None),
    ],
)
def test_a_terminal_that_shows_the_last_words_need_not_show_an_end_that_they_tell(text, wait_status, own):
    live = Live(command="ssh").write(20, f"\x1b]9;{text}\a").end(20.1, wait_status)
    (told,) = [what for _, what in live.log if not isinstance(what, Change)]
    assert (told.type, told.own) == ("exit", own)


def test_a_core_dump_is_the_same_signal():
    assert Live().end(1, 11 | 0x80).told[0][3] == "make was killed (SIGSEGV)"


def test_a_signal_that_was_passed_on_is_no_news():
    assert Live().end(20, 15, 15).told == []
    assert Live().end(20, 9, 15).told[0][3] == "make was killed (SIGKILL)"
    assert Live().report(1, "state=working").end(20, 15, 15).told == []


def test_an_agent_that_ends_is_idle_and_its_outcome_stays():
    live = Live("claude").report(1, "state=working").end(20, KILLED)
    assert live.states[-1] == ("idle", None, None, "process")
    assert live.told == [(20, "notify", "exit", "Claude Code was killed (SIGKILL)", "~/w")]
    live = Live("claude").report(1, "state=done").end(20, 0)
    assert live.state == ("done", None, None)
    assert [what[:3] for what in live.told] == [(4, "notify", "done")]
    live = Live("claude").report(1, "state=blocked").end(20, 0)
    assert [what[:3] for what in live.told] == [(1.5, "notify", "blocked"), (20, "withdraw", "blocked")]


def test_an_agent_that_ends_with_an_error_code_is_no_exit_to_tell():
    assert Live("claude").report(1, "state=idle").end(100, 1 << 8).told == []


def test_what_waits_at_the_end_is_not_told():
    live = Live().report(1, "state=done").end(2, 0).until(50)
    assert live.told == []
    assert "the command ended first" in live.reasons


def test_the_end_comes_once():
    live = Live().end(20, KILLED).end(20, KILLED)
    assert len(live.told) == 1


def test_an_exit_is_told_when_its_signal_has_no_common_number():
    live = Live()
    live.session._signal_name = lambda number: {10: "SIGUSR1"}[number]
    assert live.end(1, 10).told[0][3] == "make was killed (SIGUSR1)"


def test_names_of_programs():
    assert Live("pi", "node").end(1, KILLED).told[0][3] == "pi was killed (SIGKILL)"
    assert (
        Live(command="x.sh")
        .report(1, "state=idle:app=tool")
        .end(20, KILLED)
        .told[0][3]
        .startswith("tool was")
    )
    assert (
        Live(command="x.sh")
        .report(1, "state=idle:app=claude-code")
        .end(20, KILLED)
        .told[0][3]
        .startswith("Claude")
    )
    cleared = Live(command="x.sh").report(1, "state=idle:app=tool").report(2, "state=clear").end(20, KILLED)
    assert cleared.told[0][3].startswith("tool was")


# --- shells, hooks ------------------------------------------------------------------------------


def test_a_shells_prompt_ends_what_was_going_on_and_keeps_the_outcome():
    live = Live(shell=True).report(1, "state=working").write(2, "\x1b]133;A\a")
    assert live.state == ("idle", None, None)
    live = Live(shell=True).report(1, "state=done").write(2, "\x1b]133;A;k=i\a")
    assert live.state == ("done", None, None)


@pytest.mark.parametrize("mark", ["B", "C", "D;0", "A;k=s", "A;k=c", "AB"])
def test_other_marks_mean_nothing(mark):
    live = Live(shell=True).report(1, "state=working").write(2, f"\x1b]133;{mark}\a")
    assert live.state == ("working", None, None)


def test_an_agents_own_prompt_mark_means_nothing():
    assert Live().report(1, "state=working").write(2, "\x1b]133;A\a").state == ("working", None, None)


def test_a_hook_speaks_for_an_agent_that_does_not():
    live = (
        Live("claude")
        .report(1, f"state=working:id={HOOK_ID}")
        .report(2, f"state=blocked:kind=permission:id={HOOK_ID}")
    )
    assert live.state == ("blocked", "permission", None)
    assert live.view.seq == 2
    live.until(50)
    assert live.told == [(2.5, "notify", "blocked", "Claude Code needs permission", "~/w")]
    assert live.report(60, f"state=clear:id={HOOK_ID}").state == ("idle", None, None)


def test_a_hook_never_overrides_an_agent_that_speaks_for_itself():
    live = Live("claude").report(1, "state=working").report(2, f"state=done:id={HOOK_ID}").until(50)
    assert live.state == ("working", None, None)
    live.report(60, "state=clear").until(99)
    assert live.state == ("idle", None, None)
    assert live.told == []
    live = Live("claude").report(1, f"state=blocked:id={HOOK_ID}").report(2, "state=working").until(50)
    assert live.state == ("working", None, None)


def test_a_prompt_that_an_agent_tells_its_hooks_again_without_its_text_is_the_same():
    asked = f"state=blocked:kind=question:id={HOOK_ID}:msg={b64('Which?')}"
    again = f"state=blocked:kind=permission:id={HOOK_ID}"
    live = Live().report(1, f"state=working:id={HOOK_ID}").report(2, asked).type(5).report(8, again).until(60)
    assert live.state == ("blocked", "question", "Which?")
    assert [what[1:3] for what in live.told] == [("notify", "blocked")]
    assert "a hook's, which says less than is known" in live.reasons
    # one that says more is another
    live.report(61, f"{again}:msg={b64('rm')}")
    assert live.state == ("blocked", "permission", "rm")
    # and after an answer it is one, whatever it says
    live.report(70, f"state=working:id={HOOK_ID}").report(71, again)
    assert live.state == ("blocked", "permission", None)


def test_what_came_of_a_turn_is_not_taken_back_by_a_hooks_idle_before_it_is_seen():
    for outcome in ("done", "error"):
        live = Live().report(1, f"state=working:id={HOOK_ID}").report(2, f"state={outcome}:id={HOOK_ID}")
        assert live.report(3, f"state=idle:id={HOOK_ID}").until(60).state[0] == outcome
        assert [what[1:3] for what in live.told] == [("notify", outcome)]
        assert live.type(70).report(71, f"state=idle:id={HOOK_ID}").state[0] == "idle"
    live = Live().report(1, f"state=blocked:id={HOOK_ID}").report(2, f"state=idle:id={HOOK_ID}")
    assert live.state[0] == "idle"


def test_where_hooks_speak_an_announcement_of_the_same_is_none():
    live = Live("opencode").report(1, f"state=working:id={HOOK_ID}")
    live.report(2, f"state=blocked:kind=permission:id={HOOK_ID}:msg={b64('rm')}")
    live.write(2.1, "\x1b]777;notify;A title;Permission needs input\a")
    assert live.state == ("blocked", "permission", "rm")
    assert "the program reports its state itself" in live.reasons
    assert Live("opencode").write(2, "\x1b]777;notify;A title;Permission needs input\a").state == (
        "blocked",
        "permission",
        "A title",
    )


# --- bounds -------------------------------------------------------------------------------------


def test_events_kept_for_an_explanation_are_bounded():
    live = Live()
    for _ in range(EVENTS + 50):
        live.report(1, "state=nonsense")
    events = live.session.take_events()
    assert len(events) == EVENTS
    assert set(events[0]) == {"t", "source", "event", "effect", "reason"}
    assert live.session.take_events() == []


def test_ground_is_no_open_sequence_character_or_update():
    session = Live().session
    assert session.ground
    for begin, end in (
        (b"\x1b[3", b"1m"),
        ("é".encode()[:1], "é".encode()[1:]),
        (b"\x1b[?2026h", b"\x1b[?2026l"),
    ):
        session.output(begin, 1)
        assert not session.ground
        session.output(end, 1)
        assert session.ground


PIECES = st.sampled_from(
    [
        b"\x1b]7501;",
        b"state=working",
        b"state=done",
        b"state=blocked:kind=permission",
        b"state=clear",
        b":id=a",
        b":id=hook",
        b":app=codex",
        b":msg=YQ==",
        b"\a",
        b"\x1b\\",
        b"\x1b]9;",
        b"4;1;50",
        b"Approval requested: x",
        b"\x1b]99;i=1:d=0;",
        b"\x1b]777;notify;a;b",
        b"\x1b]133;A",
        b"\x1bc",
        b"\x1b[?1004h",
        b"\x1b[?1004l",
        b"text",
        b"\xff",
    ]
)


@given(
    st.lists(st.lists(PIECES, max_size=12).map(b"".join), max_size=8),
    st.lists(st.sampled_from([KEY, FOCUS_IN, FOCUS_OUT, PASTE, REPLY]), max_size=8),
    st.sampled_from(["generic", "codex", "opencode", "claude"]),
)
@settings(deadline=None, max_examples=300)
def test_anything_in_any_order_is_survived_and_never_told_twice(writes, keys, agent):
    live = Live(agent, shell=True)
    now = 1.0
    for n, data in enumerate(writes):
        live.write(now, data)
        if n < len(keys):
            live.type(now + 0.5, keys[n])
        now += 1.7
        view = live.view
        assert view.state in ("unknown", "idle", "working", "blocked", "done", "error")
        assert view.kind is None or view.state == "blocked"
    live.end(now, 0).until(now + 100)
    assert live.session.deadline is None or live.session.deadline > now
    open_ids = set()
    for _, what in live.log:
        if not isinstance(what, Change):
            if what.action == "notify":
                assert what.id not in open_ids
                open_ids.add(what.id)
            else:
                assert what.id in open_ids


def test_queries_for_osc99_are_told_with_whether_they_were_answered():
    live = Live("opencode")
    live.write(1.0, "\x1b]99;i=a:p=?;\x1b\\\x1bPtmux;\x1b\x1b]99;i=b:p=?;\x07\x1b\\")
    assert live.session.take_osc99_queries() == [(b"a", True)]
    assert live.session.take_osc99_queries() == []
    live = Live("claude")
    live.write(1.0, "\x1b]99;i=a:p=?;\x1b\\")
    assert live.session.take_osc99_queries() == [(b"a", False)]
    live.write(2.0, "\x1b]99;i=a:p=?;\x1b\\" * 100)
    assert len(live.session.take_osc99_queries()) == OSC99_QUERIES


def test_an_event_says_whether_the_program_has_called_by_itself():
    live = Live("codex")
    live.report(1.0, "state=working:app=codex")
    live.write(2.0, "\x1b]9;Approval requested: x\a")
    live.report(2.1, "state=blocked:app=codex").until(3.0)
    live.report(4.0, "state=working:app=codex")
    live.report(5.0, "state=blocked:app=codex").until(6.0)
    told = [each for each in live.session.take_actions() if each.action == "notify"]
    assert [each.own for each in told] == ["osc9", None]
    live = Live("claude")
    live.report(1.0, "state=blocked")
    live.write(1.2, "\x1b]777;notify;anything;else\a").until(2.0)
    assert live.session.take_actions()[0].own == "osc777"
    live = Live("codex")
    live.report(1.0, "state=working:app=codex")
    live.write(2.0, "\x1bPtmux;\x1b\x1b]9;Approval requested: x\a\x1b\\")
    live.report(2.2, "state=blocked:app=codex").until(3.0)
    assert live.session.take_actions()[0].own == "tmux:osc9"
