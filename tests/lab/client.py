"""The pump's client of one session, with nobody behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agentwrap import agents, config
from agentwrap.commands.client import Client
from agentwrap.options import Options

if TYPE_CHECKING:
    from pathlib import Path

    from agentwrap.host.guard import UndoMemory


class Writer:
    """The way to the session leader, which takes everything at once."""

    fd = -1
    waiting = False

    def __init__(self) -> None:
        self.lines: list[tuple[str, str]] = []

    def send_all(self, lines: list[tuple[str, str]], *, droppable: str = "") -> None:
        """Take these lines."""
        del droppable
        self.lines += lines

    def send(self, letter: str, rest: str = "", *, droppable: bool = False) -> None:
        """Take a line."""
        del droppable
        self.lines.append((letter, rest))


def client_of(place: Path, memory: UndoMemory, writer: Any) -> Client:
    """A session of Claude Code in a terminal that is known by name, without any configuration."""
    settings, _ = config.load({"XDG_CONFIG_HOME": str(place)}, strict=False)
    return Client(
        session="claude-1",
        profile=agents.recognise(["claude"]),
        settings=settings,
        options=Options(),
        command=["claude"],
        environ={"TERM_PROGRAM": "iTerm.app"},
        tty=None,
        writer=writer,
        memory=memory,
        recorder=None,
        front=lambda: 0,
        rows=24,
    )
