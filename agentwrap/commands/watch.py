"""`agentwrap watch`: a live table of the sessions, or, for scripts, a line for each change.

The screen is drawn again only when something on it changes; between changes nothing runs. Whatever ends it,
the screen is left as it was.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import termios
import time

from agentwrap.commands import sessions
from agentwrap.commands.follow import Follower
from agentwrap.commands.list import table
from agentwrap.core import summary
from agentwrap.errors import UsageError
from agentwrap.host import signals, terminal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

    from agentwrap.commands.sessions import Session

ENTER = "\x1b[?1049h\x1b[?25l\x1b[?7l"  # alternate screen, no cursor, no wrapping: a row too long stays one
LEAVE = "\x1b[?7h\x1b[?25h\x1b[?1049l"
FRAME = "\x1b[?2026h\x1b[H{}\x1b[?2026l"  # always as many lines as the screen has
HINTS = "q quit"
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGTSTP, signal.SIGWINCH)


def watch(*, as_json: bool) -> int:
    """Show the sessions until the user has seen enough.

    Raises:
        AgentwrapError: there is no terminal to show a table on, or the state directory cannot be used.
    """
    if as_json:
        return _lines()
    if not (sys.stdin and sys.stdout and sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("watch: a terminal is needed; for scripts there is agentwrap watch --json")
    follower = Follower()
    with Screen() as screen:
        return _table(follower, screen)


def _lines() -> int:
    follower = Follower()
    follower.watch.also(1)  # whoever reads may go
    told = sessions.ordered(follower.sessions.values())
    while True:
        for one in told:
            shown = {"session": one["session"], "state": "exited"} if one["state"] == "exited" else one
            sys.stdout.write(json.dumps(shown) + "\n")
        sys.stdout.flush()
        told = follower.wait(None)
        if 1 in follower.ready:
            return 0


def _table(follower: Follower, screen: Screen) -> int:
    drawn = ""
    for fd in screen.descriptors:
        follower.watch.also(fd)
    while not screen.gone:
        found = sessions.ordered(follower.sessions.values())
        columns, rows = screen.size()
        now = time.time()
        frame = "\r\n".join(draw(found, columns, rows, colours=sessions.colours(), now=now))
        if frame != drawn or screen.fresh:
            screen.write(FRAME.format(frame))
            drawn, screen.fresh = frame, False
        follower.wait(next_change(found, now))
        for number in screen.signals():
            if number == signal.SIGINT:
                return 0
            if number == signal.SIGTSTP:
                screen.suspend()
            elif number != signal.SIGWINCH:
                screen.leave()
                return signals.die_by(number)
        keys = screen.keys()
        if keys is None or b"q" in keys or b"Q" in keys or b"\x03" in keys:
            return 0
        if b"\x0c" in keys:
            screen.fresh = True
    return 1


def draw(found: list[Session], columns: int, rows: int, *, colours: bool, now: float) -> list[str]:
    """The screen's lines: what is said above, the table, and what can be done below."""
    if rows < 1 or columns < 1:
        return []
    counted = summary.text(summary.counts(one["state"] for one in found))
    title = f"agentwrap  {counted}" if counted else "agentwrap"
    lines = [sessions.clip(title, columns)]
    if found:
        lines += ["", *table(found, columns, colours=colours, now=now)]
    else:
        lines += ["", sessions.clip("no session is running; start one: agentwrap COMMAND", columns)]
    if len(lines) > rows - 2:
        hidden = len(lines) - max(1, rows - 1)
        lines = lines[: max(1, rows - 1)]
        hint = f"{HINTS}  ({hidden} more below)" if found and hidden > 0 else HINTS
    else:
        hint = HINTS
        lines += [""] * (rows - 1 - len(lines))
    if rows > 1:
        hint = sessions.clip(hint, columns)
        lines.append(f"\x1b[2m{hint}\x1b[m" if colours else hint)
    # erased before it is written: behind a line that fills the screen's width, its last column would go
    return ["\x1b[K" + line for line in lines]


def next_change(found: list[Session], now: float) -> float | None:
    """Seconds until an age on the screen reads differently; None if none ever does."""
    waits = []
    for one in found:
        age = max(0.0, now - float(one.get("since") or 0))
        step = 1 if age < 60 else 60 if age < 86400 else 86400
        waits.append(step - age % step + 0.01)
    return min(waits, default=None)


class Screen:
    """The alternate screen of this terminal, taken and given back.

    Signals are received through a pipe, so that one never interrupts half a frame.
    """

    def __init__(self) -> None:
        self.fresh = True
        """Whether what was drawn is no longer there."""
        self.gone = False
        """Whether the terminal has hung up."""
        self._pipe = signals.SignalPipe()
        self._saved = terminal.get_attributes(0)
        self._taken = False

    def __enter__(self) -> Self:
        self._pipe.catch(SIGNALS)
        self.enter()
        return self

    def __exit__(self, *_: object) -> None:
        self.leave()

    @property
    def descriptors(self) -> tuple[int, ...]:
        """What is ready when there is a key or a signal."""
        return (0, self._pipe.fd)

    def size(self) -> tuple[int, int]:
        """Columns and rows."""
        try:
            found = os.get_terminal_size(1)
        except OSError:
            return 80, 24
        return found.columns or 80, found.lines or 24

    def enter(self) -> None:
        """Take the screen."""
        if self._saved is not None:
            quiet = terminal.get_attributes(0) or self._saved
            quiet[3] &= ~(termios.ICANON | termios.ECHO)
            quiet[6][termios.VMIN], quiet[6][termios.VTIME] = 1, 0
            terminal.set_attributes(0, quiet)
        self._taken = self.fresh = True
        self.write(ENTER)

    def leave(self) -> None:
        """Give the screen back."""
        if self._taken:
            self._taken = False
            self.write(LEAVE)
            if self._saved is not None:
                terminal.set_attributes(0, self._saved)

    def suspend(self) -> None:
        """Stop as Ctrl-Z does, and take the screen again when we go on."""
        self.leave()
        signals.stop_job(signal.SIGTSTP, self._pipe)
        self.enter()

    def write(self, text: str) -> None:
        """Put `text` on the screen, all of it."""
        data = text.encode("utf-8", "replace")
        while data and not self.gone:
            try:
                data = data[os.write(1, data) :]
            except BlockingIOError:  # somebody else made the terminal's descriptor so
                waiter = select.poll()
                waiter.register(1, select.POLLOUT)
                waiter.poll(1000)
            except OSError:
                self.gone = True

    def keys(self) -> bytes | None:
        """What was typed; None at the end of input."""
        waiter = select.poll()
        waiter.register(0, select.POLLIN)
        if not waiter.poll(0):
            return b""
        try:
            return os.read(0, 4096) or None
        except OSError:
            return None

    def signals(self) -> list[int]:
        """The signals that arrived."""
        return list(self._pipe.take())
