"""Command lines of agentwrap that stand in documents: found, and judged without running them."""

from __future__ import annotations

import re
import shlex
from functools import cache
from typing import TYPE_CHECKING

import typer.main

from agentwrap import __main__ as command_line
from agentwrap import cli
from agentwrap.commands import report

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# What may stand before a command on a line: a prompt, other commands, $( and "$(.
BEGINNING = re.compile(r"(?:^|[|;&(`]|\bthen|\bdo|\bcommand|\bexec)\s*(?:\S*/)?(agentwrap(?:\s[^|;&)`]*)?)")


@cache
def verbs() -> dict[str, frozenset[str]]:
    """Return the verbs and the options each takes, as the program has them; without --help."""
    group = typer.main.get_command(cli.app)
    found = {
        name: frozenset(option for parameter in verb.params for option in parameter.opts if option[0] == "-")
        for name, verb in group.commands.items()  # type: ignore[attr-defined] # it is a group
    }
    assert set(found) | {"report"} == set(command_line.VERBS)
    return found | {"report": frozenset(report._VALUES)}


def options() -> frozenset[str]:
    """Return the options before COMMAND."""
    return frozenset((*command_line._VALUES, *command_line._FLAGS))


def found_in(lines: Iterable[str]) -> Iterator[list[str]]:
    """Yield the words behind each `agentwrap` that begins a command."""
    for line in lines:
        shown = re.sub(r"\s#\s.*", "", line.removeprefix("$ "))
        for match in BEGINNING.finditer(shown):
            text = match[1]
            if text.count('"') % 2:
                text = text.rpartition('"')[0]  # within "$( )"
            words = shlex.split(text)
            while words and re.fullmatch(r"\d?[<>]+.*", words[-1]):
                words.pop()
            yield words[1:]


def judge(words: list[str]) -> None:
    """Raise UsageError, or click's, for a command line that agentwrap would not take."""
    action, _, rest = command_line.split(words)
    assert action != "usage", words
    if action != "verb" or rest[-1] in ("--help", "-h"):
        return
    if rest[0] == "report":
        report.parse(rest[1:])
        return
    group = typer.main.get_command(cli.app)
    group.commands[rest[0]].make_context(rest[0], rest[1:])  # type: ignore[attr-defined]
