"""Settings: defaults and the configuration file; and the one list of environment variables.

What a key means is said here: its type, its range, its default. What is done with it is not: delays are
`core.attention`'s, channels are `host.notifiers`'. On the wrap path: `tomllib` is imported only where a
file exists, `difflib` only where one is wrong.
"""

from __future__ import annotations

import os
import sys

from agentwrap.errors import ConfigError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from agentwrap.core.attention import Policy

# Every environment variable that is read, and every one that is set for another program.
ENVIRONMENT_READ = (
    ("AGENTWRAP", "0: run the command bare, without a PTY, injected options or state"),
    ("AGENTWRAP_CONFIG", "configuration file to read instead of the usual one"),
    ("AGENTWRAP_STATE_DIR", "state directory to use instead of the usual one"),
    ("AGENTWRAP_LOG", "file to append a debug log to; never holds what is typed"),
    ("AGENTWRAP_SESSION", "set for a wrapped command: tells an inner agentwrap that it is inside another"),
    ("NO_COLOR", "not empty: no colours"),
    ("HOME", "home directory: configuration, and ~ in notifications"),
    ("XDG_CONFIG_HOME", "where agentwrap/config.toml is looked for, if not ~/.config"),
    ("XDG_RUNTIME_DIR", "where the state directory is made"),
    ("TMPDIR", "where the state directory is made if XDG_RUNTIME_DIR is not set"),
    ("TERM", "with TERM_PROGRAM and the like: how to notify through this terminal"),
)
ENVIRONMENT_GIVEN = (
    ("AGENTWRAP_SESSION", "to the command: name of the session, as in `agentwrap list`"),
    ("AGENTWRAP_STATE_FILE", "to the command: the session's file in the state directory"),
)
ENVIRONMENT_OF_NOTIFY_COMMAND = (
    ("AGENTWRAP_EVENT", "blocked, done, error or exit"),
    ("AGENTWRAP_STATE", "state of the session"),
    ("AGENTWRAP_KIND", "permission, question, auth or empty"),
    ("AGENTWRAP_AGENT", "name of the profile, for example claude"),
    ("AGENTWRAP_TITLE", "title of the notification"),
    ("AGENTWRAP_BODY", "body of the notification"),
    ("AGENTWRAP_SESSION", "name of the session"),
    ("AGENTWRAP_CWD", "directory the command was started in"),
)

CHANNELS = ("auto", "none", "desktop", "terminal", "command", "bell")
EVENTS = ("blocked", "done", "error", "exit")
LONGEST_DELAY = 86400.0  # a day: what is longer is a slip, not a wish
LONGEST_COMMAND = 256  # words of notify.command: far above any use, far below the system's limit
LARGEST_FILE = 1 << 20  # bytes of configuration: a wrong path (a disk, a log) must not fill the memory


class Settings:
    """Everything that can be configured, checked. Delays are seconds, from 0 to a day.

    Attributes:
        channels: notification channels in order of preference; empty for none.
        on: events that are announced, of blocked, done, error, exit.
        blocked_delay: how long a session is blocked before that is announced.
        error_delay: the same for an error.
        done_delay: the same for a finished turn that came with a message.
        done_delay_without_message: the same for one that came without.
        min_turn: turns shorter than this are not announced as done.
        while_focused: announce even where the terminal is known to have the focus.
        quiet_hours: "" or "HH:MM-HH:MM", local time, past midnight where the end is the smaller.
        sound: whether a desktop notification may be heard.
        command: argv of the command channel; empty for none.
        escalate_after: run `command` for a blocked session that is still so after this long; 0 for never.
        agents: for each agent configured, its profile name, whether options are injected, and the command
            names it is recognised by (None: as the profile says).
        inject: False after `--no-inject`, for every agent.
    """

    __slots__ = (
        "agents",
        "blocked_delay",
        "channels",
        "command",
        "done_delay",
        "done_delay_without_message",
        "error_delay",
        "escalate_after",
        "inject",
        "min_turn",
        "on",
        "quiet_hours",
        "sound",
        "while_focused",
    )

    def __init__(self) -> None:
        self.channels: tuple[str, ...] = ("auto",)
        self.on: tuple[str, ...] = EVENTS
        self.blocked_delay = 0.5
        self.error_delay = 1.5
        self.done_delay = 1.5
        self.done_delay_without_message = 3.0
        self.min_turn = 0.0
        self.while_focused = False
        self.quiet_hours = ""
        self.sound = True
        self.command: tuple[str, ...] = ()
        self.escalate_after = 0.0
        self.agents: dict[str, AgentSettings] = {}
        self.inject = True

    @property
    def policy(self) -> Policy:
        """What decides when to notify, as `core.attention` takes it."""
        from agentwrap.core.attention import Policy

        policy = Policy()
        for name in Policy.__slots__:
            setattr(policy, name, getattr(self, name))
        return policy

    @property
    def quiet_minutes(self) -> tuple[int, int] | None:
        """`quiet_hours` as minutes since midnight, from and until; None without quiet hours."""
        return quiet_minutes(self.quiet_hours)

    def injects(self, agent: str) -> bool:
        """Whether options and environment may be added for the agent whose profile has this name."""
        return self.inject and (agent not in self.agents or self.agents[agent].inject)


class AgentSettings:
    """One `[agents.NAME]` table."""

    __slots__ = ("commands", "inject")

    def __init__(self) -> None:
        self.inject = True
        self.commands: tuple[str, ...] | None = None


def paths(environ: Mapping[str, str]) -> list[str]:
    """Where the configuration is looked for, the first that exists counts; none without a home."""
    found = []
    base = environ.get("XDG_CONFIG_HOME", "")
    if base.startswith("/"):  # a relative one is to be ignored, says the specification
        found.append(base)
    home = home_directory(environ)
    if home is not None and (not found or sys.platform == "darwin"):
        found.append(os.path.join(home, ".config"))
    return [os.path.join(base, "agentwrap", "config.toml") for base in found]


def home_directory(environ: Mapping[str, str]) -> str | None:
    """The user's home: HOME, else what the system says, else None."""
    home = environ.get("HOME")
    if home:
        return home
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_dir or None
    except KeyError:  # a container's user is often in no list
        return None


def load(environ: Mapping[str, str], path: str | None = None, *, strict: bool) -> tuple[Settings, list[str]]:
    """Read the settings.

    Args:
        environ: the environment.
        path: the file given by `--config`, else AGENTWRAP_CONFIG or the first of `paths` counts.
        strict: for verbs: the first mistake is an error. Else a mistake costs its key the default.

    Returns:
        The settings, and for each mistake one line for standard error.

    Raises:
        ConfigError: a mistake, where strict; and always where `path` cannot be read.
    """
    settings = Settings()
    name, text, complaint = _read(environ, path)
    complaints: list[str] = []
    if complaint:
        if path is not None:
            raise ConfigError(complaint)
        complaints.append(complaint)
    elif text is not None:
        complaints += _apply(settings, name, text)
    if strict and complaints:
        raise ConfigError(complaints[0])
    return settings, [ConfigError(complaint).line for complaint in complaints]


def parse_channels(text: str) -> tuple[str, ...]:
    """The LIST of `--notify`: channels in order of preference; empty for `none`.

    Raises:
        UsageError: an unknown channel, an empty list, or `none` beside others.
    """
    try:
        return _channels([word.strip() for word in text.split(",")] if text.strip() else [""])
    except _BadValueError as bad:
        raise UsageError(f"--notify {text}: {bad}") from None


def quiet_minutes(text: str) -> tuple[int, int] | None:
    """`"22:00-08:00"` as (1320, 480), minutes since midnight; None for an empty text.

    Raises:
        ValueError: anything else.
    """
    if not text:
        return None
    start, dash, end = text.partition("-")
    if not dash:
        raise ValueError(text)
    return _minute(start), _minute(end)


def _minute(text: str) -> int:
    hour, colon, minute = text.strip().partition(":")
    digits = colon and len(hour) in (1, 2) and len(minute) == 2 and (hour + minute).isascii()
    if not (digits and hour.isdigit() and minute.isdigit() and int(hour) < 24 and int(minute) < 60):
        raise ValueError(text)
    return int(hour) * 60 + int(minute)


def _read(environ: Mapping[str, str], path: str | None) -> tuple[str, str | None, str]:
    """The file's name, its text (None where there is no file to read), and what was wrong."""
    named = path if path is not None else environ.get("AGENTWRAP_CONFIG") or None
    for name in [named] if named is not None else paths(environ):
        try:
            with open(name, "rb") as file:
                data = file.read(LARGEST_FILE + 1)
            if len(data) > LARGEST_FILE:
                return name, None, f"{name}: larger than {LARGEST_FILE} bytes, is this a configuration?"
            return name, data.decode(), ""
        except (FileNotFoundError, NotADirectoryError) as error:
            if named is not None:
                return name, None, f"{name}: cannot read the configuration: {error.strerror}"
        except OSError as error:
            return name, None, f"{name}: cannot read the configuration: {error.strerror}"
        except UnicodeDecodeError:
            return name, None, f"{name}: the configuration is not UTF-8"
        except ValueError:  # a NUL in the name
            return name, None, f"{name}: not the name of a file"
    return "", None, ""


def _apply(settings: Settings, name: str, text: str) -> list[str]:
    import tomllib

    try:
        tables = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        reason, at, place = str(error).partition(" (at ")
        line = place.removeprefix("line ").partition(",")[0] if at else ""
        where = line if line.isdecimal() else str(text.count("\n") + 1)
        return [f"{name}:{where}: not valid TOML: {reason}"]

    complaints: list[str] = []

    def complain(key: tuple[str, ...], problem: str) -> None:
        complaints.append(f"{name}:{_line_of(text, key)}: {problem}")

    for top, table in tables.items():
        if top not in ("notify", "agents"):
            complain((top,), _unknown((), top, ("notify", "agents")))
        elif not isinstance(table, dict):
            complain((top,), f"bad value for {top}: a table is needed: [{top}]")
        elif top == "notify":
            for key, value in table.items():
                if key not in _NOTIFY:
                    complain((top, key), _unknown((top,), key, tuple(_NOTIFY)))
                    continue
                try:
                    setattr(settings, key, _NOTIFY[key](value))
                except _BadValueError as bad:
                    complain((top, key), f"bad value for {top}.{key}: {bad}")
        else:
            _apply_agents(settings, table, complain)
    return complaints


def _apply_agents(
    settings: Settings, table: dict[str, object], complain: Callable[[tuple[str, ...], str], None]
) -> None:
    names = _agent_names()
    for agent, keys in table.items():
        if agent not in names:
            complain(("agents", agent), _unknown(("agents",), agent, names))
            continue
        if not isinstance(keys, dict):
            complain(("agents", agent), f"bad value for agents.{agent}: a table is needed: [agents.{agent}]")
            continue
        one = settings.agents[agent] = AgentSettings()
        for key, value in keys.items():
            path = ("agents", agent, key)
            try:
                if key == "inject":
                    one.inject = _flag(value)
                elif key == "commands":
                    one.commands = _names(value)
                else:
                    complain(path, _unknown(path[:2], key, ("inject", "commands")))
            except _BadValueError as bad:
                complain(path, f"bad value for agents.{agent}.{key}: {bad}")


def _agent_names() -> tuple[str, ...]:
    from agentwrap import agents

    return agents.NAMES


class _BadValueError(Exception):
    """A value that cannot be; `str()` of it says what is needed."""


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise _BadValueError("true or false is needed")
    return value


def _seconds(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= LONGEST_DELAY:
        raise _BadValueError(f"seconds are needed, a number from 0 to {LONGEST_DELAY:.0f}")
    return float(value)


def _words(value: object) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
        raise _BadValueError('a list of texts is needed, like ["one", "two"]')
    return value


def _channels(value: object) -> tuple[str, ...]:
    words = _words(value)
    for word in words:
        if word not in CHANNELS:
            raise _BadValueError(
                f"no channel {word!r}{_suggestion(word, CHANNELS)}; there are {', '.join(CHANNELS)}"
            )
    if "none" in words:
        if len(words) > 1:
            raise _BadValueError("none stands alone")
        return ()
    return tuple(dict.fromkeys(words))


def _events(value: object) -> tuple[str, ...]:
    words = _words(value)
    for word in words:
        if word not in EVENTS:
            raise _BadValueError(
                f"no event {word!r}{_suggestion(word, EVENTS)}; there are {', '.join(EVENTS)}"
            )
    return tuple(dict.fromkeys(words))


def _hours(value: object) -> str:
    try:
        minutes = quiet_minutes(value if isinstance(value, str) else "?")
    except ValueError:
        raise _BadValueError('from and until are needed, like "22:00-08:00"') from None
    if minutes is None:
        return ""
    if minutes[0] == minutes[1]:
        raise _BadValueError("they begin and end at the same time")
    return str(value)


def _argv(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        raise _BadValueError('a list of words is needed, run without a shell, like ["notify-send", "agent"]')
    words = _words(value)
    if len(words) > LONGEST_COMMAND:
        raise _BadValueError(f"at most {LONGEST_COMMAND} words")
    if words and not words[0]:
        raise _BadValueError("the first word, the program, is empty")
    if any("\0" in word for word in words):
        raise _BadValueError("no word may hold a NUL")
    return tuple(words)


def _names(value: object) -> tuple[str, ...]:
    words = _words(value)
    if not words or any(not word or "/" in word for word in words):
        raise _BadValueError(
            'names of commands are needed, without directories, like ["claude", "claude-next"]'
        )
    return tuple(dict.fromkeys(words))


_NOTIFY: dict[str, Callable[[object], object]] = {
    "channels": _channels,
    "on": _events,
    "blocked_delay": _seconds,
    "error_delay": _seconds,
    "done_delay": _seconds,
    "done_delay_without_message": _seconds,
    "min_turn": _seconds,
    "while_focused": _flag,
    "quiet_hours": _hours,
    "sound": _flag,
    "command": _argv,
    "escalate_after": _seconds,
}


def _unknown(table: tuple[str, ...], key: str, known: tuple[str, ...]) -> str:
    return f"unknown key {'.'.join((*table, key))}{_suggestion(key, known)}"


def _suggestion(word: str, known: tuple[str, ...]) -> str:
    import difflib

    near = difflib.get_close_matches(word, known, 1)
    return f" (did you mean {near[0]}?)" if near else ""


def _line_of(text: str, key: tuple[str, ...]) -> int:
    """The line that gives `key` its value, or, for one inside an inline table, that of the table."""
    table: tuple[str, ...] = ()
    best, length = 1, 0
    for number, raw in enumerate(text.split("\n"), 1):
        line = raw.strip()
        if line.startswith("["):
            table = full = _key_parts(line.strip("[] \t"), "]")
        elif "=" in line and not line.startswith("#"):
            full = (*table, *_key_parts(line, "="))
        else:
            continue
        shared = len(full) if key[: len(full)] == full else len(key) if full[: len(key)] == key else 0
        if shared > length:
            best, length = number, shared
    return best


def _key_parts(text: str, end: str) -> tuple[str, ...]:
    """A dotted TOML key, up to the first `end` outside quotes, as its parts."""
    parts, part, quote = [], "", ""
    for char in text:
        if quote:
            if char == quote:
                quote = ""
            else:
                part += char
        elif char in "\"'":
            quote = char
        elif char == end:
            break
        elif char == ".":
            parts.append(part)
            part = ""
        elif char not in " \t":
            part += char
    return (*parts, part)
