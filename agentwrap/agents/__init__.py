"""The agents: which one a command is, and what is added to it so that it reports.

The only place that tests an agent's name. What an agent is like stands in its own file; how commands are
looked through stands here. A wrong guess may put a wrong name on a session, never a wrong state into it.
"""

from __future__ import annotations

from agentwrap.agents import claude, codex, crush, generic, opencode, pi

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Protocol

    from agentwrap.agents.profile import Profile

    class AgentSettings(Protocol):
        """What is configured for one agent."""

        @property
        def commands(self) -> tuple[str, ...] | None:
            """Names it is recognised by instead of the profile's."""

    class Settings(Protocol):
        """What is configured."""

        @property
        def agents(self) -> Mapping[str, AgentSettings]:
            """By profile name."""


GENERIC = generic.PROFILE
PROFILES = (claude.PROFILE, codex.PROFILE, pi.PROFILE, opencode.PROFILE, crush.PROFILE)
NAMES = tuple(profile.name for profile in PROFILES)

SHELLS = ("sh", "bash", "zsh", "fish", "dash", "ksh", "nu", "xonsh")

NAME_LIMIT = 64
"""Bytes of the agent part of a session's name."""

_DEPTH = 8
"""Launchers looked through, one inside another: more is a riddle, not a command line."""

_NAME = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.+-"

# Programs that run a script: the options that take the next word, then those that hold the program itself.
_INTERPRETERS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "node": (
        (
            "-r",
            "--require",
            "--import",
            "--loader",
            "--experimental-loader",
            "-C",
            "--conditions",
            "--env-file",
        ),
        ("-e", "--eval", "-p", "--print"),
    ),
    "nodejs": (("-r", "--require", "--import", "--loader"), ("-e", "--eval", "-p", "--print")),
    "bun": (("-r", "--preload", "--cwd", "--env-file", "-c", "--config"), ("-e", "--eval", "-p", "--print")),
    "deno": (("-c", "--config", "--import-map", "--env-file"), ()),
    "tsx": (("--tsconfig",), ("-e", "--eval")),
    "python": (("-W", "-X"), ("-c",)),
}
_SCRIPT_WORDS = {"bun": ("run", "x"), "deno": ("run",)}

# Programs that run another: a word that must follow (one of these; none if empty), and the options that take
# the next word.
_RUNNERS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "npx": ((), ("-p", "--package", "-w", "--workspace", "--prefix", "--cache", "-c", "--call")),
    "bunx": ((), ("-p", "--package")),
    "pnpx": ((), ("--package",)),
    "uvx": ((), ("--from", "--with", "-p", "--python", "--index-url", "--directory")),
    "pnpm": (("dlx", "exec"), ("--package", "-C", "--dir", "--filter")),
    "yarn": (("dlx", "exec", "run"), ("-p", "--package")),
    "npm": (("exec", "x"), ("-p", "--package", "-w", "--workspace", "--prefix")),
    "uv": (("run",), ("--with", "-p", "--python", "--from", "--directory", "--project")),
    "pipx": (("run",), ("--spec", "--python", "--index-url")),
    "mise": (("exec", "x"), ("-C", "--cd", "-E", "--env", "-j", "--jobs")),
    "asdf": (("exec",), ()),
    "rtx": (("exec", "x"), ()),
    "volta": (("run",), ("--node", "--npm", "--yarn", "--pnpm")),
    "fnm": (("exec",), ("--using",)),
    "nvm": (("exec", "run"), ()),
    "nvm-exec": ((), ()),
    "direnv": (("exec",), ()),
    "proto": (("run",), ()),
    "nodenv": (("exec",), ()),
    "pyenv": (("exec",), ()),
    "devbox": (("run",), ()),
    "nice": ((), ("-n", "--adjustment")),
    "ionice": ((), ("-c", "-n")),
    "nohup": ((), ()),
    "caffeinate": ((), ("-t", "-w")),
    "stdbuf": ((), ("-i", "-o", "-e")),
    "time": ((), ("-f", "-o")),
    "command": ((), ()),
    "exec": ((), ("-a",)),
    "sudo": ((), ("-u", "--user", "-g", "--group", "-C", "-D", "-p", "-R", "-T")),
    "doas": ((), ("-u", "-C")),
}


def by_name(name: str) -> Profile | None:
    """Return the profile called `name`; `generic` is one."""
    for profile in (*PROFILES, GENERIC):
        if profile.name == name:
            return profile
    return None


def by_app(app: str) -> Profile | None:
    """Return the profile of the agent that reports itself as `app`."""
    for profile in PROFILES:
        if app in profile.apps:
            return profile
    return None


def recognise(argv: Sequence[str], override: str | None = None, settings: Settings | None = None) -> Profile:
    """Return the profile of the agent that the command `argv` starts.

    Args:
        argv: the command, as typed.
        override: name of the profile to use instead.
        settings: whose `agents` name further commands of an agent.

    Raises:
        UsageError: there is no profile called `override`.
    """
    if override is not None:
        profile = by_name(override)
        if profile is None:
            from agentwrap.errors import UsageError

            raise UsageError(f"no agent called {override!r}; there are {', '.join((*NAMES, GENERIC.name))}")
        return profile
    return _find(argv, settings)[0]


def launch(
    profile: Profile, argv: Sequence[str], environ: Mapping[str, str], *, inject: bool
) -> tuple[list[str], dict[str, str]]:
    """Return the command to execute and the variables to add to its environment.

    What the user chose wins: nothing is added beside it. Files are the host's to make, see `private_file`.
    """
    argv = list(argv)
    if not inject or not argv or profile is GENERIC:
        return argv, {}
    added = {name: value for name, value in profile.environment if name not in environ}
    place = _own_words(argv, profile)
    if place is not None and profile.options:
        words = argv[place:]
        if interactive(profile, words) and not _chosen(profile, words):
            argv[place:place] = profile.options
    return argv, added


def private_file(
    profile: Profile, argv: Sequence[str], environ: Mapping[str, str], *, inject: bool
) -> tuple[str, str] | None:
    """Return the variable to name a private file in and the file's text, or None if there is to be none."""
    variable, content = profile.file
    if not inject or not variable or variable in environ:
        return None
    place = _own_words(argv, profile)
    return (variable, content) if interactive(profile, argv[place:] if place is not None else ()) else None


def interactive(profile: Profile, words: Sequence[str]) -> bool:
    """Whether the agent started with these words shows its screen: no help, version or other subcommand."""
    skip = first = False
    for word in words:
        if skip:
            skip = False
        elif word == "--":
            return True  # what follows is a prompt, whatever it reads like
        elif word.startswith("-") and len(word) > 1:
            if word in ("-h", "--help", "-V", "-v", "--version"):
                return False
            skip = word in profile.valued
        elif not first:
            first = True
            if word in profile.subcommands:
                return False
    return True


def is_shell(argv: Sequence[str]) -> bool:
    """Whether the command is a shell, whose prompt marks say that a program has ended."""
    return bool(argv) and _base(argv[0]).removeprefix("-") in SHELLS


def is_agent(argv: Sequence[str]) -> bool:
    """Whether the command is a known agent."""
    return recognise(argv) is not GENERIC


def command_name(argv: Sequence[str]) -> str:
    """Return what to call a command that no profile knows: its base name."""
    return _base(argv[0]) if argv and _base(argv[0]) else "command"


def session_name(profile: Profile, argv: Sequence[str]) -> str:
    """Return the agent part of the session's name: of `A-Za-z0-9_.+-`, at most 64 bytes."""
    name = profile.name if profile is not GENERIC else command_name(argv)
    return "".join(char if char in _NAME else "-" for char in name)[:NAME_LIMIT]


def _chosen(profile: Profile, words: Sequence[str]) -> bool:
    """Whether the user's own `-c` or `--config` sets one of the settings the profile would set."""
    for index, word in enumerate(words):
        if word == "--":
            return False
        value = None
        if word in ("-c", "--config"):
            value = words[index + 1] if index + 1 < len(words) else ""
        elif word.startswith("--config="):
            value = word[len("--config=") :]
        elif word.startswith("-c"):
            value = word[2:].removeprefix("=")
        if value is not None:
            key = value.partition("=")[0].strip()
            if any(
                key == each or key.startswith(each + ".") or each.startswith(key + ".")
                for each in profile.option_keys
            ):
                return True
    return False


def _own_words(argv: Sequence[str], profile: Profile) -> int | None:
    """Where the agent's own words begin, or None where that cannot be told."""
    place = _find(argv, None, profile)[1]
    if place is None and argv:
        # Some other command was said to be this agent; behind a launcher its words begin nobody knows where.
        name = _base(argv[0])
        if name not in _RUNNERS and _interpreter(name) is None and name != "env" and not is_shell(argv):
            return 1
    return place


def _find(
    argv: Sequence[str], settings: Settings | None, wanted: Profile | None = None
) -> tuple[Profile, int | None]:
    """Look through launchers for an agent: its profile, and where its own words begin (None: unknown)."""
    place = 0
    script = False
    for _ in range(_DEPTH if argv else 0):
        profile = _match(argv[place], settings, script=script)
        if profile is not None and wanted in (None, profile):
            return profile, place + 1
        if _base(argv[place]) == "env":
            place, packed = _through_env(argv, place + 1)
            if packed:
                return _find(packed, settings, wanted)[0], None  # all in one word: nothing can be put between
            script = False
        else:
            place, script = _inner(argv, place)
        if not 0 <= place < len(argv):
            break
    return GENERIC, None


def _inner(argv: Sequence[str], place: int) -> tuple[int, bool]:
    """Where the launcher at `place` names what it starts (-1: nowhere), and whether that is a script."""
    name = _base(argv[place])
    if name in _RUNNERS:
        words, valued = _RUNNERS[name]
        place = _positional(argv, place + 1, valued)
        if not words:
            return place, False
        if place < 0 or argv[place] not in words:
            return -1, False
        return _after_word(name, argv, place, valued), False
    interpreter = _interpreter(name)
    if interpreter is None:
        return -1, False
    valued, inline = _INTERPRETERS[interpreter]
    place += 1
    while place < len(argv) and argv[place].startswith("-"):
        if argv[place] in inline:
            return -1, False
        if argv[place] == "-m" and interpreter == "python":
            return place + 1, False
        place += 2 if argv[place] in valued else 1
    if place < len(argv) and argv[place] in _SCRIPT_WORDS.get(interpreter, ()):
        package = argv[place] == "x"
        return _positional(argv, place + 1, valued), not package
    return place, True


def _interpreter(name: str) -> str | None:
    if name.startswith("python") and not name[6:].strip("0123456789."):
        return "python"
    return name if name in _INTERPRETERS else None


def _after_word(name: str, argv: Sequence[str], place: int, valued: tuple[str, ...]) -> int:
    """Where the command begins behind `exec` and its like."""
    if name in ("mise", "rtx") and "--" in argv[place:]:
        return list(argv).index("--", place) + 1
    if name == "direnv":  # exec DIRECTORY COMMAND
        return place + 2
    place = _positional(argv, place + 1, valued)
    if name == "nvm" and place >= 0 and argv[place].lstrip("v")[:1].isdigit():
        return place + 1
    return place


def _through_env(argv: Sequence[str], place: int) -> tuple[int, list[str]]:
    """Where the command of `env` is, past options and assignments; and its words if `-S` has them in one."""
    while place < len(argv):
        word = argv[place]
        if word in ("-S", "--split-string"):
            packed = argv[place + 1] if place + 1 < len(argv) else ""
        elif word.startswith("--split-string="):
            packed = word[len("--split-string=") :]
        elif word.startswith("-S"):
            packed = word[2:]
        elif word in ("-u", "--unset", "-C", "--chdir"):
            place += 2
            continue
        elif word == "--":
            return place + 1, []
        elif word.startswith("-") or "=" in word:
            place += 1
            continue
        else:
            return place, []
        words = packed.split()
        while words and "=" in words[0]:
            del words[0]
        return -1, words
    return -1, []


def _positional(argv: Sequence[str], place: int, valued: tuple[str, ...]) -> int:
    """Index of the first word from `place` that is no option or its value, or -1."""
    while place < len(argv):
        word = argv[place]
        if word == "--":
            return place + 1
        if not word.startswith("-"):
            return place
        place += 2 if word in valued else 1
    return -1


def _match(word: str, settings: Settings | None, *, script: bool = False) -> Profile | None:
    """The profile whose command or package `word` names; a script's file name alone is no proof."""
    base = _base(word)
    if settings is not None:
        for name, configured in settings.agents.items():
            if configured.commands is not None and base in configured.commands:
                return by_name(name)
    package = _package(word)
    for profile in PROFILES:
        replaced = settings.agents.get(profile.name) if settings is not None else None
        if replaced is not None and replaced.commands is not None:
            continue  # the configuration says what its commands are
        if package in profile.packages or base in profile.commands:
            return profile
        if not script and _base(package) in profile.commands and "/" not in package:
            return profile  # npx codex@latest
        if script and any(f"/{each}/" in word for each in profile.packages):
            return profile  # node .../node_modules/@openai/codex/bin/codex.js
    return None


def _package(word: str) -> str:
    """`word` without the version asked for: `@scope/name@1.2` is `@scope/name`."""
    at = word.rfind("@")
    return word[:at] if at > 0 and "/" not in word[at:] else word


def _base(word: str) -> str:
    return word.rstrip("/").rpartition("/")[2]
