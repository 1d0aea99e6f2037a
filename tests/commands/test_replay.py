from __future__ import annotations

import io
import json

import pytest

from agentwrap.commands.replay import replay
from agentwrap.core.attention import Policy
from agentwrap.core.recording import Encoder
from agentwrap.errors import AgentwrapError, ConfigError, UsageError

HEADER = {"version": 2, "width": 80, "height": 24, "command": "claude --x 'a b'"}
WORKING, DONE = "\x1b]7501;state=working:app=claude-code\a", "\x1b]7501;state=done:app=claude-code\a"


class Settings:
    def __init__(self, **fields):
        self.policy = Policy()
        self.agents = {}
        for name, value in fields.items():
            setattr(self.policy, name, value)


@pytest.fixture
def cast(tmp_path, monkeypatch):
    work = tmp_path / "home" / "shop"
    work.mkdir(parents=True)
    monkeypatch.chdir(work)

    def run(*events, header=HEADER, raw=None, **options):
        path = tmp_path / "x.cast"
        lines = [json.dumps(header), *map(json.dumps, events)] if raw is None else raw
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        out = io.StringIO()
        environ = {"HOME": str(tmp_path / "home")}
        assert replay(str(path), out=out, environ=environ, **{"as_json": True, **options}) == 0
        if options.get("as_json") is False:
            return out.getvalue()
        return [json.loads(line) for line in out.getvalue().splitlines()]

    return run


def test_the_events_of_a_turn(cast):
    assert cast([1, "o", WORKING], [2, "o", DONE], [9, "i", "x"], [10, "x", 0]) == [
        {"t": 1.0, "event": "state", "state": "working", "kind": None, "message": None, "source": "osc7501"},
        {"t": 2.0, "event": "state", "state": "done", "kind": None, "message": None, "source": "osc7501"},
        {"t": 5.0, "event": "notify", "type": "done", "title": "Claude Code finished", "body": "~/shop"},
        {"t": 9.0, "event": "state", "state": "idle", "kind": None, "message": None, "source": "osc7501"},
        {"t": 9.0, "event": "withdraw", "type": "done"},
        {"event": "end", "undo": ""},
    ]


def test_time_ends_with_the_last_event(cast):
    events = cast([1, "o", DONE], [3.9, "o", "x"])
    assert [event["event"] for event in events] == ["state", "end"]
    events = cast([1, "o", DONE], [4, "o", "x"])
    assert [event["event"] for event in events] == ["state", "notify", "end"]


def test_a_programs_own_notice_is_told_when_it_comes(cast):
    events = cast([4, "o", "\x1b]9;built\a"], header={**HEADER, "command": "make"})
    assert [(e["t"], e["event"], e["title"], e["body"]) for e in events[:-1]] == [
        (4, "notify", "make", "built\n~/shop")
    ]


def test_the_modes_left_on_are_undone_at_the_end(cast):
    (end,) = cast([1, "o", "\x1b[?1004h\x1b[?25l"], [2, "o", "\x1b[?25h"])
    assert end == {"event": "end", "undo": "\x1b[?1004l"}


def test_a_report_split_over_two_events(cast):
    assert cast([1, "o", DONE[:9]], [2, "o", DONE[9:]])[0]["t"] == 2.0


def test_the_agent_is_the_commands_or_the_one_named(cast):
    notice = [[1, "o", "\x1b]7501;state=working\a\x1b]9;pong\a\x1b]7501;state=idle\a"], [9, "o", ""]]
    assert [event.get("title") for event in cast(*notice)] == [None, None, None]
    codex = cast(*notice, header={**HEADER, "command": "npx @openai/codex"})
    assert codex == cast(*notice, agent="codex")
    assert codex[2]["title"] == "Codex finished"
    with pytest.raises(UsageError):
        cast(*notice, agent="nobody")


def test_an_unknown_command_has_its_own_name(cast):
    events = cast([20, "x", 0], header={**HEADER, "command": "/usr/bin/make -j"})
    assert events[1]["title"] == "make finished"
    for command in (None, "", 7, "'"):
        events = cast([20, "x", 0], header={**HEADER, "command": command})
        assert events[1]["title"] in ("command finished", "' finished")


def test_a_shells_prompt_marks_count(cast):
    events = [[1, "o", WORKING], [2, "o", "\x1b]133;A\a"]]
    assert [event.get("state") for event in cast(*events)] == ["working", None]
    shell = cast(*events, header={**HEADER, "command": "/bin/bash"})
    assert [event.get("state") for event in shell] == ["working", "idle", None]


def test_the_configured_delays_and_events_count(cast):
    events = [[1, "o", DONE], [9, "o", ""]]
    assert cast(*events, settings=Settings(done_delay_without_message=7.0))[1]["t"] == 8.0
    assert len(cast(*events, settings=Settings(on=("blocked",)))) == 2


def test_the_users_configuration_counts_and_a_mistake_in_it_is_said(cast, tmp_path):
    directory = tmp_path / "home" / ".config" / "agentwrap"
    directory.mkdir(parents=True)
    file = directory / "config.toml"
    file.write_text(
        "[notify]\ndone_delay_without_message = 7.0\nquiet_hours = '00:00-23:59'\nchannels = ['none']\n"
    )
    events = [[1, "o", DONE], [9, "o", ""]]
    assert cast(*events)[1]["t"] == 8.0
    file.write_text("[notify]\nmin_turns = 7.0\n")
    with pytest.raises(ConfigError, match="min_turns"):
        cast(*events)


def test_updates_are_no_events(cast):
    late = "\x1b]7501;state=done:app=claude-code:msg=YQ==\a"
    events = cast([1, "o", DONE], [4.5, "o", late], [9, "o", ""])
    assert [event["event"] for event in events] == ["state", "notify", "state", "end"]


def test_the_body_names_what_the_recording_names(cast):
    header = {**HEADER, "agentwrap": {"cwd": "/srv/www", "name": "backend"}}
    assert cast([1, "o", DONE], [9, "o", ""], header=header)[1]["body"] == "backend"
    header["agentwrap"].pop("name")
    assert cast([1, "o", DONE], [9, "o", ""], header=header)[1]["body"] == "/srv/www"


def test_events_of_no_meaning_here_are_passed_over(cast):
    assert len(cast([1, "m", ""], [1, "r", "80x24"], [2, "q", {"a": 1}], [3, "o", ""])) == 1


def test_the_wait_status_may_be_a_string(cast):
    assert cast([1, "x", "9"])[1]["title"] == "Claude Code was killed (SIGKILL)"


def test_a_signal_is_seen_in_the_wait_status_and_so_is_a_key_before_it(cast):
    events = cast([1, "o", WORKING], [2, "i", "x"], [4, "x", 9])
    assert [event["event"] for event in events] == ["state", "state", "end"]
    assert events[1]["source"] == "process"


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("[1, 'o', 'x']", "not JSON"),
        ("{}", "not an event"),
        ("[1]", "not an event"),
        ('[1, "o", "x", 2]', "not an event"),
        ('["1", "o", "x"]', "time"),
        ('[true, "o", "x"]', "time"),
        ('[-1, "o", "x"]', "time"),
        ('[NaN, "o", "x"]', "time"),
        ('[1, 2, "x"]', "code"),
        ('[1, "o", 2]', "data"),
        ('[1, "i", null]', "data"),
        ('[1, "x", "nine"]', "wait status"),
        ('[1, "x", -1]', "wait status"),
        ('[1, "x", true]', "wait status"),
        ('[1, "b", "7=ff"]\n[1, "o", "x"]', "bytes"),
        ("[" * 10000, "not JSON"),
    ],
)
def test_a_bad_line_is_one_error_that_names_it(cast, line, problem):
    good = [json.dumps(HEADER), '[0.5, "o", "x"]']
    with pytest.raises(AgentwrapError, match=problem) as caught:
        cast(raw=[*good, line])
    number = 3 + line.count("\n")
    assert f"x.cast:{number}:" in caught.value.line
    assert "\n" not in caught.value.line


@pytest.mark.parametrize(
    ("first", "problem"),
    [
        ("hello", "not JSON"),
        ("", "not JSON"),
        ("[1]", "header"),
        ("{}", "header"),
        ('{"version": 3}', "only 2"),
        ('{"version": "2"}', "only 2"),
    ],
)
def test_what_is_no_asciicast_says_so(cast, first, problem):
    with pytest.raises(AgentwrapError, match=problem):
        cast(raw=[first])


def test_a_file_that_is_not_there():
    with pytest.raises(UsageError, match="cannot read"):
        replay("/nonexistent/x.cast", as_json=True)


def test_what_was_recorded_replays_to_the_byte(cast):
    encoder = Encoder(columns=80, rows=24, timestamp=0, command=["codex"], environ={})
    # the message's two halves stand in two chunks, and bytes that are no text are all around
    data = "\xff\x1b]7501;state=working\a\x1b]9;grün\a\x1b]7501;state=done\a\xfe".encode("latin-1").replace(
        b"\xfc", "ü".encode()
    )
    half = data.index(b"\xc3") + 1
    lines = encoder.header() + encoder.output(1, data[:half]) + encoder.output(2, data[half:])
    lines += encoder.exit(9, 0)
    events = cast(raw=lines.decode().splitlines())
    assert [event.get("message") for event in events] == [None, "grün", None, None]
    assert events[2]["t"] == 3.5


def test_a_table_for_people(cast):
    text = cast([1, "o", WORKING], [2, "o", DONE], [9, "o", "\x1b[?1004h"], as_json=False)
    assert text == (
        "   1.000  state     working [osc7501]\n"
        "   2.000  state     done [osc7501]\n"
        "   5.000  notify    done: Claude Code finished · ~/shop\n"
        "     end            \\x1b[?1004l\n"
    )


def test_the_table_shows_nothing_that_moves_the_cursor(cast):
    text = cast([1, "o", "\x1b]7501;state=blocked:kind=question:msg=YeKArmI=\a"], as_json=False)
    assert text.splitlines()[0] == "   1.000  state     blocked (question): ab [osc7501]"
