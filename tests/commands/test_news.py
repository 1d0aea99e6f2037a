"""What the core decides becomes messages for the helper, and what the helper asks becomes bytes."""

from __future__ import annotations

import json

import pytest

from agentwrap.commands.news import ANSWER_WAIT, MOMENT_WAIT, WAITING_INBAND, News
from agentwrap.config import Settings
from agentwrap.core.attention import Escalate, Notify, Update, Withdraw


class Room:
    """News, and what came of it."""

    def __init__(self, environ=None, **settings):
        self.settings = Settings()
        for name, value in settings.items():
            setattr(self.settings, name, value)
        self.asked = []
        self.news = News(
            session="claude-7",
            agent="claude",
            settings=self.settings,
            environ={"TERM": "xterm", **(environ or {})},
            cwd="/w",
            state=lambda: "blocked",
            expect=self.asked.append,
            expect_status=lambda: self.asked.append("status"),
        )

    def notify(self, number=1, kind="blocked", cls=Notify, **more):
        self.news.act(cls(number, kind, "Title", "Body", **more), 0.0)
        return self.sent()

    def withdraw(self, number=1, kind="blocked"):
        self.news.act(Withdraw(number, kind), 0.0)
        return self.sent()

    def sent(self):
        lines = self.news.take_lines()
        assert {letter for letter, _ in lines} <= {"N"}
        return [json.loads(rest) for _, rest in lines]

    def says(self, **message):
        self.news.reported(json.dumps(message).encode(), 0.0)

    def shows(self, number=1, key="blocked", data="shown", **more):
        self.says(op="terminal", id=number, key=key, data=data, **more)

    def reasons(self):
        return [event["reason"] for event in self.news.take_events()]


def test_a_notification_with_all_that_is_known():
    room = Room(channels=("command", "bell"), command=("say", "it"), sound=False)
    (message,) = room.notify(kind="blocked")
    assert list(message)[:3] == ["op", "id", "key"], "where the session leader looks"
    assert message["channels"] == ["command", "bell"]
    assert (message["command"], message["sound"], message["osc99"]) == (["say", "it"], False, None)
    assert message["env"]["AGENTWRAP_STATE"] == "blocked"


def test_an_update_or_withdrawal_only_of_what_was_told():
    room = Room(channels=())
    assert room.notify() == []
    assert room.reasons() == ["there is no channel"]
    assert room.notify(cls=Update) == []
    assert room.withdraw() == []
    room = Room()
    room.notify()
    assert [each["op"] for each in room.notify(cls=Update)] == ["update"]
    assert room.notify(2, cls=Update) == []
    assert room.withdraw() == [{"op": "withdraw", "key": "blocked"}]
    assert room.withdraw() == []


def test_an_escalation_is_the_commands_alone_and_is_taken_back_too():
    room = Room(channels=(), escalate_after=5.0, command=("x",))
    (message,) = room.notify(cls=Escalate)
    assert (message["op"], message["key"], message["channels"]) == (
        "notify",
        "blocked-escalated",
        ["command"],
    )
    assert room.withdraw() == [{"op": "withdraw", "key": "blocked-escalated"}]


def test_with_an_escalation_the_command_is_not_run_at_once():
    room = Room(channels=("command", "bell"), escalate_after=5.0, command=("x",))
    assert room.notify()[0]["channels"] == ["bell"]
    assert room.notify(2, kind="done")[0]["channels"] == ["command", "bell"]
    room = Room(channels=("command",), escalate_after=5.0, command=("x",))
    assert room.notify() == []


@pytest.mark.parametrize(
    ("channels", "own", "left"),
    [
        (("auto",), "osc9", []),
        (("auto",), "osc99", ["auto"]),  # this terminal does not know it
        (("auto",), None, ["auto"]),
        (("terminal", "bell"), "osc9", []),
        (("command", "terminal"), "osc9", ["command"]),
        (("desktop",), "osc9", ["desktop"]),
        (("bell",), "osc9", ["bell"]),
    ],
)
def test_what_the_terminal_shows_of_the_program_itself_is_not_repeated(channels, own, left):
    room = Room({"TERM_PROGRAM": "iTerm.app"}, channels=channels)
    sent = room.notify(own=own)
    assert (sent[0]["channels"] if sent else []) == left
    assert bool(room.reasons()) is (list(channels) != left)


def test_what_tmux_may_pass_on_is_for_the_helper_to_ask():
    room = Room({"TMUX": "x", "TERM": "tmux-256color", "LC_TERMINAL": "iTerm2"})
    (message,) = room.notify(own="tmux:osc9")
    assert (message["channels"], message["own"]) == (["auto"], 9)
    assert room.notify(2, own="osc9")[0]["own"] == 0, "tmux keeps to itself what is not wrapped"
    assert room.notify(3)[0]["own"] == 0


def test_what_waits_is_written_at_its_moment_in_order():
    room = Room()
    room.notify()
    room.notify(2, kind="done")
    assert not room.news.waiting
    room.shows()
    room.says(op="bell", id=2, key="done", data="\a")
    assert room.news.waiting
    assert room.news.between(0.0) == b"shown\a"
    assert not room.news.waiting
    assert room.news.between(0.0) == b""


def test_what_is_sent_twice_or_was_withdrawn_is_not_written():
    room = Room()
    room.notify()
    room.shows()
    room.shows()
    assert room.news.between(0.0) == b"shown"
    room.withdraw()
    room.notify(3)
    room.shows(2)
    assert not room.news.waiting


def test_what_is_withdrawn_while_it_waits_is_neither_written_nor_closed_needlessly():
    room = Room()
    room.notify()
    room.shows(close="closed")
    room.withdraw()
    assert b"shown" not in room.news.between(0.0)


def test_it_is_taken_back_on_withdrawal_and_not_once_more_for_the_helper():
    room = Room()
    room.notify()
    room.shows(close="closed")
    room.news.between(0.0)
    room.withdraw()
    room.says(op="close", id=1, key="blocked", data="closed")
    assert room.news.between(0.0) == b"closed"
    assert room.news.last() == b""


def test_the_helper_closes_what_makes_room_for_another():
    room = Room()
    room.notify(kind="done")
    room.shows(key="done", close="closed")
    room.news.between(0.0)
    room.notify(2, kind="done")
    room.says(op="close", id=1, key="done", data="closed")
    room.shows(2, key="done", data="new", close="closed")
    assert room.news.between(0.0) == b"closednew"
    assert room.news.last() == b"closed"


def test_at_a_stop_only_what_was_withdrawn_is_closed():
    room = Room()
    room.notify()
    room.notify(2, kind="done")
    room.shows(close="closed")
    room.shows(2, key="done", close="closed done")
    room.news.between(0.0)
    room.withdraw()
    assert room.news.stopped() == b"closed"
    assert room.news.last() == b"closed done"


def test_what_still_waits_at_the_end_is_out_of_date():
    room = Room()
    room.notify()
    room.shows()
    assert room.news.last() == b""


@pytest.mark.parametrize(
    ("environ", "settings", "channels", "last"),
    [
        ({}, {"channels": ("bell",)}, [], b"\a"),
        ({"TERM_PROGRAM": "iTerm.app"}, {"channels": ("terminal",)}, [], b"\x1b]9;Title: Body\a"),
        ({"DBUS_SESSION_BUS_ADDRESS": "x"}, {}, ["desktop"], b""),
        ({"DBUS_SESSION_BUS_ADDRESS": "x", "SSH_TTY": "x"}, {}, [], b"\a"),
        ({}, {"channels": ("command", "bell")}, [], b"\a"),
        ({}, {"channels": ("command", "bell"), "command": ("x",)}, ["command"], b""),
        ({}, {"channels": ()}, [], b""),
    ],
)
@pytest.mark.parametrize("kind", ["exit", "done"])
def test_an_end_goes_where_it_arrives_without_us(
    environ, settings, channels, last, kind, tmp_path, monkeypatch
):
    monkeypatch.setattr("sys.platform", "linux")
    room = Room({"XDG_RUNTIME_DIR": str(tmp_path), **environ}, **settings)
    sent = room.notify(kind=kind, last=True)
    assert (sent[0]["channels"] if sent else []) == channels
    # over ssh the terminal has the program's own last words, and nobody can wait for what it makes of them
    assert room.news.last() == (b"" if "SSH_TTY" in environ and kind == "done" else last)


def test_the_terminal_is_asked_once_at_its_moment():
    room = Room()
    room.notify()
    room.says(op="ask", id=1, key="blocked")
    assert room.news.waiting
    assert room.news.deadline == MOMENT_WAIT
    assert room.news.between(0.5) == b"\x1b]99;i=claude-7:p=?;\x1b\\"
    assert room.asked == [b"claude-7"]
    assert room.news.deadline == 0.5 + ANSWER_WAIT
    assert not room.news.waiting
    room.news.answered(0.6)
    assert room.sent() == [{"op": "answer", "osc99": True}]
    assert room.news.deadline is None
    room.says(op="ask", id=1, key="blocked")
    assert room.sent() == [{"op": "answer", "osc99": True}]
    assert room.notify(2, kind="done")[0]["osc99"] is True


def test_no_answer_in_time_is_one_and_a_late_one_counts_from_then_on():
    room = Room()
    room.says(op="ask", id=1, key="blocked")
    room.news.between(0.5)
    room.news.tick(0.6)
    assert room.sent() == []
    room.news.tick(0.5 + ANSWER_WAIT)
    assert room.sent() == [{"op": "answer", "osc99": False}]
    assert room.notify()[0]["osc99"] is False
    room.news.answered(9.0)
    assert room.sent() == []
    assert room.notify(2, kind="done")[0]["osc99"] is True


def test_where_there_is_no_moment_to_ask_nothing_is_learned():
    room = Room()
    room.says(op="ask", id=1, key="blocked")
    room.news.tick(MOMENT_WAIT)
    assert room.sent() == [{"op": "answer", "osc99": False}]
    assert not room.news.waiting
    assert room.notify()[0]["osc99"] is None


def test_what_waits_is_bounded():
    room = Room()
    for number in range(1, 3 * WAITING_INBAND):
        room.notify(number)
        room.shows(number)
    assert room.news.between(0.0) == b"shown" * WAITING_INBAND


@pytest.mark.parametrize(
    "line", [b"", b"[]", b'{"op": "terminal"}', b'{"op": "close", "key": 3}', b'{"op": 1}']
)
def test_what_is_no_message_is_nothing(line):
    room = Room()
    room.notify()
    room.news.reported(line, 0.0)
    assert not room.news.waiting


# ---- over ssh, with somebody at the other end who understands status reports ----

SSH = {"SSH_CONNECTION": "10.0.0.1 50000 10.0.0.2 22"}


def test_the_terminal_beyond_ssh_is_asked_first_and_told_nothing_where_it_understands():
    room = Room(SSH)
    assert room.notify() == []
    assert room.news.waiting
    assert room.news.between(0.1) == b"\x1b]7501;?\x1b\\"
    assert room.asked == ["status"]
    assert not room.news.waiting
    room.news.understood(0.2)
    assert room.sent() == []
    assert room.reasons() == ["it understands status reports itself"]
    assert room.news.deadline is None
    assert room.notify(2, "done") == []
    assert room.news.between(0.3) == b""


def test_it_is_not_asked_where_the_command_has_asked():
    room = Room(SSH)
    room.news.understood(0.0)
    assert room.notify() == []
    assert room.news.between(0.1) == b""
    assert room.asked == []


def test_without_an_answer_it_is_told_after_all():
    room = Room(SSH)
    room.notify()
    room.notify(2, "done")
    room.news.between(0.1)
    assert room.news.deadline == pytest.approx(0.6)
    room.news.tick(0.5)
    assert room.sent() == []
    room.news.tick(0.6)
    assert [message["id"] for message in room.sent()] == [1, 2]
    assert len(room.notify(3, "error")) == 1, "it is not asked again"
    room.news.understood(9.0)
    assert room.notify(4) == [], "a late answer counts from then on"


def test_no_moment_to_ask_is_no_answer():
    room = Room(SSH)
    room.notify()
    assert room.news.deadline == pytest.approx(1.0)
    room.news.tick(1.0)
    assert len(room.sent()) == 1
    assert not room.news.waiting


def test_what_is_withdrawn_while_it_waits_is_never_told():
    room = Room(SSH)
    room.notify()
    room.withdraw()
    room.news.between(0.1)
    room.news.tick(2.0)
    assert room.sent() == []


def test_a_channel_the_user_has_named_is_used_all_the_same():
    room = Room(SSH, channels=("command", "auto"), command=("say",))
    room.news.understood(0.0)
    (message,) = room.notify()
    assert message["channels"] == ["command"]
    room = Room(SSH, channels=("terminal",))
    room.news.understood(0.0)
    assert room.notify()[0]["channels"] == ["terminal"]


def test_an_end_that_nobody_else_sees_is_told():
    room = Room(SSH)
    room.news.understood(0.0)
    room.notify(kind="exit", last=True)
    assert room.news.last() == b"\a"


@pytest.mark.parametrize("environ", [{**SSH, "TMUX": "/tmp/s,1,0"}, {**SSH, "TERM": "linux"}])
def test_what_cannot_answer_is_not_asked(environ):
    room = Room(environ)
    assert len(room.notify()) == 1
    assert not room.news.waiting


def test_at_home_nobody_is_asked_and_an_answer_means_nothing():
    room = Room()
    room.news.understood(0.0)
    assert len(room.notify()) == 1
    assert not room.news.waiting


def test_a_better_text_reaches_what_still_waits_for_the_terminal_beyond_ssh():
    room = Room(SSH)
    assert room.notify() == []
    room.news.act(Notify(2, "done", "Done", "as it was"), 0.1)
    room.news.act(Update(1, "blocked", "Better", "words", "question", "words"), 1.0)
    room.news.act(Update(9, "done", "Another", "event"), 1.0)
    assert room.sent() == []
    room.news.tick(1.1)
    sent = room.sent()
    assert [(each["op"], each["id"], each["title"], each["body"]) for each in sent] == [
        ("notify", 1, "Better", "words"),
        ("notify", 2, "Done", "as it was"),
    ]
    assert sent[0]["env"]["AGENTWRAP_KIND"] == "question"
