"""Claims about the configuration file, `--notify`, and where both are looked for."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from agentwrap import config, errors


@pytest.fixture
def write(tmp_path):
    """Write a configuration, return its path."""

    def write(text: str | bytes) -> str:
        path = tmp_path / "config.toml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return str(path)

    return write


def lenient(path: str):
    return config.load({}, path, strict=False)


def test_without_a_file_every_key_has_its_documented_default(tmp_path):
    settings, complaints = config.load({"HOME": str(tmp_path)}, strict=True)
    assert complaints == []
    got = {name: getattr(settings, name) for name in config.Settings.__slots__}
    assert got == {
        "channels": ("auto",),
        "on": ("blocked", "done", "error", "exit"),
        "blocked_delay": 0.5,
        "error_delay": 1.5,
        "done_delay": 1.5,
        "done_delay_without_message": 3.0,
        "min_turn": 0.0,
        "while_focused": False,
        "quiet_hours": "",
        "sound": True,
        "command": (),
        "escalate_after": 0.0,
        "agents": {},
        "inject": True,
    }


def test_every_key_is_read(write):
    settings, complaints = lenient(
        write("""
            [notify]
            channels = ["command", "desktop", "desktop"]
            on = ["blocked"]
            blocked_delay = 1
            error_delay = 2.5
            done_delay = 0
            done_delay_without_message = 4
            min_turn = 60
            while_focused = true
            quiet_hours = "22:00-8:30"
            sound = false
            command = ["say", "it"]
            escalate_after = 30
            [agents.codex]
            inject = false
            commands = ["codex", "codex-next"]
        """)
    )
    assert complaints == []
    assert settings.channels == ("command", "desktop")
    assert settings.on == ("blocked",)
    delays = (settings.blocked_delay, settings.error_delay, settings.done_delay)
    assert delays == (1.0, 2.5, 0.0)
    assert all(isinstance(delay, float) for delay in delays)
    assert settings.done_delay_without_message == 4
    assert settings.min_turn == 60
    assert settings.while_focused is True
    assert settings.quiet_minutes == (22 * 60, 8 * 60 + 30)
    assert settings.sound is False
    assert settings.command == ("say", "it")
    assert settings.escalate_after == 30
    assert settings.agents["codex"].commands == ("codex", "codex-next")
    assert not settings.injects("codex")
    assert settings.injects("claude")


def test_the_policy_of_attention_has_the_same_defaults_and_takes_every_key():
    from agentwrap.core.attention import Policy

    settings = config.Settings()
    for name in Policy.__slots__:
        assert getattr(settings.policy, name) == getattr(Policy(), name)
        setattr(settings, name, "mine")
        assert getattr(settings.policy, name) == "mine"


def test_agents_are_known_by_name(write):
    path = write("[agents.codexx]\ninject = false\n")
    assert lenient(path)[1] == [f"agentwrap: {path}:1: unknown key agents.codexx (did you mean codex?)"]


def test_an_unknown_key_is_named_with_file_line_and_a_suggestion(write):
    path = write("# mine\n[notify]\nsound = false\n\n# where\n\nchanels = []\n")
    settings, complaints = lenient(path)
    assert complaints == [f"agentwrap: {path}:7: unknown key notify.chanels (did you mean channels?)"]
    assert settings.sound is False, "the other keys count"
    with pytest.raises(errors.ConfigError) as raised:
        config.load({}, path, strict=True)
    assert raised.value.exit_code == 2
    assert raised.value.line == complaints[0]


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ("channels = 'auto'", "channels"),
        ("channels = ['mail']", "channels"),
        ("channels = ['none', 'bell']", "channels"),
        ("on = ['finished']", "on"),
        ("on = [1]", "on"),
        ("blocked_delay = -0.1", "blocked_delay"),
        ("blocked_delay = true", "blocked_delay"),
        ("error_delay = '1'", "error_delay"),
        ("done_delay = nan", "done_delay"),
        ("done_delay_without_message = inf", "done_delay_without_message"),
        ("min_turn = 86401", "min_turn"),
        ("while_focused = 1", "while_focused"),
        ("quiet_hours = '22-8'", "quiet_hours"),
        ("quiet_hours = '24:00-08:00'", "quiet_hours"),
        ("quiet_hours = '08:00-08:00'", "quiet_hours"),
        ("quiet_hours = false", "quiet_hours"),
        ("sound = 'on'", "sound"),
        ("command = 'notify-send hi'", "command"),
        ("command = ['']", "command"),
        ('command = ["a\\u0000b"]', "command"),
        (f"command = {['x'] * 257}", "command"),
        ("escalate_after = []", "escalate_after"),
    ],
)
def test_a_bad_value_costs_its_key_the_default_and_is_named(write, line, key):
    path = write(f"[notify]\n\n{line}\nwhile_focused_not = 0\n")
    settings, complaints = lenient(path)
    assert len(complaints) == 2
    assert complaints[0].startswith(f"agentwrap: {path}:3: bad value for notify.{key}: ")
    assert getattr(settings, key) == getattr(config.Settings(), key)


@pytest.mark.parametrize(
    ("text", "line", "key"),
    [
        ("notify.sund = true\n", 1, "notify.sund"),
        ("x = 1\n", 1, "x"),
        ("\n[notfy]\nsound = true\n", 2, "notfy"),
        ("\nnotify = { sound = true, sund = 1 }\n", 2, "notify.sund"),
        (
            "[agents.claude]\ninject = true\n[agents.codex] # mine\n'inject' = true\ninjekt = 1\n",
            5,
            "agents.codex.injekt",
        ),
        ("[notify]\ncommand = [\n 'a=b',\n]\nsund = 1\n", 5, "notify.sund"),
        ("agents.codex.injekt = 1\n", 1, "agents.codex.injekt"),
    ],
)
def test_the_line_is_found_however_the_key_is_written(write, text, line, key):
    path = write(text)
    _, complaints = lenient(path)
    assert [complaint.partition(" (did")[0] for complaint in complaints] == [
        f"agentwrap: {path}:{line}: unknown key {key}"
    ]


def test_a_syntax_error_is_one_line_and_everything_has_its_default(write):
    path = write("[notify]\nsound = false\nchannels == 1\n")
    settings, complaints = lenient(path)
    assert len(complaints) == 1
    assert complaints[0].startswith(f"agentwrap: {path}:3: not valid TOML: ")
    assert settings.sound is True


@pytest.mark.parametrize(
    "data", [b"\xff\xfe[\0n", b"x" * (config.LARGEST_FILE + 1), b"notify = 3\n", b"agents = 1"]
)
def test_what_is_no_configuration_is_one_line(write, data):
    _, complaints = lenient(write(data)) if data.startswith((b"n", b"a")) else (None, None)
    if complaints is None:
        with pytest.raises(errors.ConfigError):
            lenient(write(data))
    else:
        assert len(complaints) == 1


def test_a_file_that_was_asked_for_and_cannot_be_opened_is_an_error_even_when_wrapping(tmp_path):
    with pytest.raises(errors.ConfigError, match="No such file"):
        config.load({}, str(tmp_path / "none.toml"), strict=False)
    with pytest.raises(errors.ConfigError):
        config.load({}, str(tmp_path), strict=False)


def test_one_named_by_the_environment_and_missing_is_a_warning_when_wrapping(tmp_path):
    environ = {"AGENTWRAP_CONFIG": str(tmp_path / "none.toml")}
    settings, complaints = config.load(environ, strict=False)
    assert settings.channels == ("auto",)
    assert len(complaints) == 1
    with pytest.raises(errors.ConfigError):
        config.load(environ, strict=True)


def test_where_the_file_is_looked_for(monkeypatch):
    monkeypatch.setattr(sys, "platform", "linux")
    home = {"HOME": "/home/u"}
    assert config.paths(home) == ["/home/u/.config/agentwrap/config.toml"]
    assert config.paths(home | {"XDG_CONFIG_HOME": "/cfg"}) == ["/cfg/agentwrap/config.toml"]
    assert config.paths(home | {"XDG_CONFIG_HOME": "cfg"}) == ["/home/u/.config/agentwrap/config.toml"]
    monkeypatch.setattr(sys, "platform", "darwin")
    assert config.paths(home | {"XDG_CONFIG_HOME": "/cfg"}) == [
        "/cfg/agentwrap/config.toml",
        "/home/u/.config/agentwrap/config.toml",
    ]


def test_the_environments_file_and_the_usual_place_are_read(tmp_path):
    usual = tmp_path / ".config" / "agentwrap" / "config.toml"
    usual.parent.mkdir(parents=True)
    usual.write_text("[notify]\nmin_turn = 1\n")
    other = tmp_path / "other.toml"
    other.write_text("[notify]\nmin_turn = 2\n")
    third = tmp_path / "third.toml"
    third.write_text("[notify]\nmin_turn = 3\n")
    home = {"HOME": str(tmp_path)}
    assert config.load(home, strict=True)[0].min_turn == 1
    assert config.load(home | {"AGENTWRAP_CONFIG": str(other)}, strict=True)[0].min_turn == 2
    assert config.load(home | {"AGENTWRAP_CONFIG": ""}, strict=True)[0].min_turn == 1
    environ = home | {"AGENTWRAP_CONFIG": str(other)}
    assert config.load(environ, str(third), strict=True)[0].min_turn == 3


def test_no_home_at_all_is_no_error(monkeypatch):
    import pwd

    def nobody(uid):
        raise KeyError(uid)

    monkeypatch.setattr(pwd, "getpwuid", nobody)
    assert config.paths({}) == []
    assert config.load({}, strict=True)[1] == []


def test_the_list_given_to_notify():
    assert config.parse_channels("bell, desktop,bell") == ("bell", "desktop")
    assert config.parse_channels("none") == ()
    for bad in ("", "mail", "bell,", "none,bell"):
        with pytest.raises(errors.UsageError) as raised:
            config.parse_channels(bad)
        assert raised.value.exit_code == 2


def test_messages_are_one_printable_line():
    assert errors.UsageError("a\nb\x1b]0;x\x07\u202e\udcff").line == "agentwrap: a b?]0;x???"


def test_heavy_modules_are_not_imported_without_a_file(tmp_path):
    code = (
        "import sys; before = set(sys.modules); import agentwrap.config, agentwrap.options as o; "
        "agentwrap.config.load({'HOME': sys.argv[1]}, strict=True); print(*(set(sys.modules) - before))"
    )
    got = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ,
    ).stdout.split()
    assert set(got) - {"__future__"} == {
        "agentwrap",
        "agentwrap.config",
        "agentwrap.errors",
        "agentwrap.options",
    }
