"""The session's state as options of the tmux pane it runs in, for status lines, window names and menus.

    @agentwrap_state    unknown, idle, working, blocked, done, error, suspended
    @agentwrap_kind     permission, question, auth, or empty
    @agentwrap_message  one line, or empty
    @agentwrap_agent    as in the session's name
    @agentwrap_since    seconds since the epoch
    @agentwrap_session  the session's name

They are set when the state changes, at most twice a second, and taken away at the end; a pane that is closed
takes them along. What lives here: when `tmux` is run for it, one process at a time, never waited for, in the
session leader. It must not know how a state comes about.

A message is somebody else's text, and tmux evaluates a format wherever an option's value is expanded once
more, as in a menu: `#(command)` runs a command there. So no `#` gets in, and no semicolon at the end.
"""

from __future__ import annotations

import os
import time

from agentwrap.core import text
from agentwrap.host import child, poller
from agentwrap.host.signals import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

INTERVAL = 0.5
"""Seconds between two runs of tmux: each makes it draw its status lines anew."""

LONGEST_MESSAGE = 200
"""Characters: a status line is seldom wider."""

FAREWELL = 0.5
"""Seconds to wait at the end for a tmux that is still at it, so that the options it sets do not stay."""

NUMBER_SIGN = "\uff03"
"""What stands for a `#`: the full-width one, which is nothing but text."""

_KEYS = ("state", "kind", "message", "agent", "since", "session")
_DEFAULTS = (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGPIPE, signal.SIGHUP)


def of(environ: Mapping[str, str]) -> Pane | None:
    """The tmux pane this environment belongs to, or None."""
    pane = environ.get("TMUX_PANE", "")
    if not environ.get("TMUX") or not (pane[:1] == "%" and pane[1:].isdecimal()):
        return None
    path, problem = child.find("tmux", environ)
    return None if problem or path is None else Pane(path, pane, environ)


class Pane:
    """One pane. Its methods never raise and, but for `finish`, never wait.

    Args:
        path: the tmux program.
        pane: its number, with the percent sign.
        environ: tmux's environment, which names its server.
    """

    def __init__(self, path: str, pane: str, environ: Mapping[str, str]) -> None:
        self._path = path
        self._pane = pane
        self._environ = dict(environ)
        self._waiter: poller.PollPoller | poller.SelectPoller | None = None
        self._answer = -1  # the standard output of the tmux that runs
        self._said = b""
        self._ours: bool | None = None  # whether the pane's terminal is ours; None where not known yet
        self._tty = ""
        self._shown: tuple[str, ...] = ()
        self._wanted: tuple[str, ...] = ()
        self._next = 0.0

    def watch(self, waiter: poller.PollPoller | poller.SelectPoller) -> None:
        """Register what has to be waited for there, now and later."""
        self._waiter = waiter

    def publish(self, session: Mapping[str, Any], now: float) -> None:
        """Show this session, given as in its state file, as soon as may be."""
        self._tty = str(session.get("tty") or "")
        self._wanted = tuple(_value(key, session.get(key)) for key in _KEYS)
        self.tick(now)

    def timeout(self, now: float) -> float | None:
        """Seconds until `tick` is due."""
        due = self._wanted != self._shown and self._answer < 0 and self._ours is not False
        return max(0.0, self._next - now) if due else None

    def tick(self, now: float) -> None:
        """Run tmux, where that is due."""
        if self.timeout(now) != 0.0:
            return
        if self._ours is None:
            # A terminal started from a pane inherits the pane's number, and is not in it.
            self._run("display-message", "-p", "-t", self._pane, "#{pane_tty}")
            return
        words: list[str] = []
        for key, value in zip(_KEYS, self._wanted, strict=True):
            words += ["set-option", "-p", "-t", self._pane, f"@agentwrap_{key}", value, ";"]
        self._next = now + INTERVAL
        self._shown = self._wanted
        self._run(*words[:-1])

    def owns(self, fd: int) -> bool:
        """Whether a descriptor is ours."""
        return fd == self._answer >= 0

    def ready(self, now: float) -> None:
        """Take what tmux says; the end of it is tmux's."""
        try:
            data = os.read(self._answer, 4096)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            self._said = (self._said + data)[:4096]
            return
        if self._waiter is not None:
            self._waiter.want(self._answer, 0)
        os.close(self._answer)
        self._answer = -1
        if self._ours is None:
            self._ours = bool(self._tty) and self._said.strip() == self._tty.encode()
        self.tick(now)

    def finish(self) -> None:
        """Take the options away, unless another session has set them meanwhile."""
        deadline = time.monotonic() + FAREWELL
        while self._answer >= 0 and (left := deadline - time.monotonic()) > 0:
            waiter = poller.make()
            waiter.want(self._answer, poller.READ)
            self._wanted = self._shown  # nothing new is shown now
            if waiter.wait(left):
                self.ready(time.monotonic())
        if self._shown:
            self.clear(self._shown[_KEYS.index("session")])

    def clear(self, session: str) -> None:
        """Take the options away where they are this session's."""
        gone = " ; ".join(f"set-option -pu -t {self._pane} @agentwrap_{key}" for key in _KEYS)
        # The session's name has no character that means anything to tmux.
        mine = f"#{{==:#{{@agentwrap_session}},{session}}}"
        self._run("if-shell", "-F", "-t", self._pane, mine, gone)

    def _run(self, *words: str) -> None:
        """Start tmux, in the background of our terminal, with nothing of ours but a pipe for what it says."""
        try:
            reading, writing = os.pipe()
        except OSError:
            return  # as good as a tmux that fails: the next change tries again
        actions = (
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDWR, 0),
            (os.POSIX_SPAWN_DUP2, writing, 1),
            (os.POSIX_SPAWN_DUP2, 0, 2),
        )
        try:
            os.posix_spawn(
                self._path,
                ["tmux", *words],
                self._environ,
                file_actions=actions,
                setpgroup=0,
                setsigdef=_DEFAULTS,
            )
        except OSError:
            os.close(reading)
            return
        finally:
            os.close(writing)
        os.set_blocking(reading, False)
        self._answer, self._said = reading, b""
        if self._waiter is not None:
            self._waiter.want(reading, poller.READ)


def _value(key: str, value: object) -> str:
    """The value of an option: one line in which nothing means anything to tmux."""
    if value is None:
        return ""
    if key == "since" and isinstance(value, (int, float)):
        return str(int(value))
    # A semicolon at the end of a word ends the command, for tmux and for scripts that hand this on to it.
    shown = text.fold(str(value)).replace("#", NUMBER_SIGN)
    return text.clip(shown, LONGEST_MESSAGE).rstrip("; ")
