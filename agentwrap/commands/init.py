"""`agentwrap init SHELL`: code for a shell to evaluate.

The code itself stands in `agentwrap/shell`, one file for each shell's prompt and completion. Only what
depends on the user is made here: functions that wrap the agents found.
"""

from __future__ import annotations

import os
import sys

from agentwrap import agents, config
from agentwrap.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

SHELLS = ("bash", "zsh", "fish")
_SAFE = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.+-"

# Only what is a program of that name so far: a user's own alias or function is more than a name for one.
_FUNCTION = {
    "bash": (
        'if [[ $(type -t {name}) == file ]]; then function {name} {{ command agentwrap {name} "$@"; }}; '
        '__agentwrap_aliases="${{__agentwrap_aliases-}} {name}"; fi'
    ),
    "zsh": (
        "if [[ $(whence -w {name}) == *': command' ]]; then "
        'function {name} {{ command agentwrap {name} "$@" }}; '
        '__agentwrap_aliases="${{__agentwrap_aliases-}} {name}"; fi'
    ),
    "fish": (
        "if test (type -t {name} 2>/dev/null; or echo none) = file; "
        "function {name}; command agentwrap {name} $argv; end; "
        "set -g -a __agentwrap_aliases {name}; end"
    ),
}


def init(shell: str, *, alias: bool) -> int:
    """Print the code.

    Raises:
        UsageError: no such shell.
    """
    name = os.path.basename(shell).lstrip("-")
    if name not in SHELLS:
        raise UsageError(f"init: no code for {shell}; there is some for {', '.join(SHELLS)}")
    sys.stdout.write(code(name, os.environ, alias=alias))
    return 0


def code(shell: str, environ: Mapping[str, str], *, alias: bool) -> str:
    """The code for one of `SHELLS`."""
    parts = []
    if shell == "fish":
        parts.append(f"set -g __agentwrap_uid {os.geteuid()}\n")
    parts += [_file(f"prompt.{shell}"), _file(f"complete.{shell}")]
    if alias:
        parts += [_FUNCTION[shell].format(name=name) + "\n" for name in found(environ)]
    return "".join(parts)


def found(environ: Mapping[str, str]) -> list[str]:
    """The commands in PATH that start an agent."""
    import shutil

    settings = config.load(environ, strict=False)[0]
    names: list[str] = []
    for profile in agents.PROFILES:
        names += profile.commands
        if profile.name in settings.agents:
            names += settings.agents[profile.name].commands or ()
    return [
        name
        for name in dict.fromkeys(names)
        if not name.strip(_SAFE)
        and not name.startswith("-")
        and shutil.which(name, path=environ.get("PATH", os.defpath)) is not None
    ]


def _file(name: str) -> str:
    with open(os.path.join(os.path.dirname(__file__), os.pardir, "shell", name), encoding="utf-8") as file:
        return file.read()
