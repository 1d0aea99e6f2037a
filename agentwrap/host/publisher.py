"""What the session leader does for the pump that may wait for a disk or another process.

State files, the debug log, the events that `explain` shows, and the notification helper. A failure of any of
it is told to the pump once, as a line, and changes nothing else.
"""

from __future__ import annotations

import os
import time

from agentwrap.core import snapshot
from agentwrap.host.courier import Courier

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentwrap.host import poller
    from agentwrap.host.panes import Pane
    from agentwrap.host.statefile import StateDir

EVENTS = 200
"""Events kept for `explain`; the file is rewritten when it holds twice as many."""

EVENTS_SUFFIX = ".events"
"""Beside SESSION.json: one JSON object a line."""

EVENTS_INTERVAL = 0.2
"""Seconds between two writes of events: a program gone wild must not keep a disk busy."""


class Publisher:
    """Made before the fork, used in the session leader."""

    def __init__(self, environ: Mapping[str, str], session: str, state: StateDir | None) -> None:
        self._environ = environ
        self._session = session
        self._state = state
        self._published = False
        self._summary_at: float | None = None
        self._log: int | None = None
        self._log_path = environ.get("AGENTWRAP_LOG")
        self._events: list[bytes] = []
        self._events_written = 0  # lines in the file; 0 where it has to be written anew
        self._events_at = 0.0  # when (monotonic) it may be written next
        self._unwritten: list[bytes] = []
        self._courier = Courier(environ, self._note)
        self._pane: Pane | None = None
        self._problem: str | None = None
        self.private: list[str] = []
        """Files made for the command alone, removed at the end."""

    # ---- called by the leader's loop ----

    def watch(self, waiter: poller.PollPoller | poller.SelectPoller) -> None:
        """Register what has to be waited for there, now and later."""
        self._courier.watch(waiter)
        self._pane = self._tmux_pane()
        if self._pane is not None:
            self._pane.watch(waiter)

    def line(self, letter: str, rest: bytes) -> None:
        """Do what a line of the pump asks for."""
        if letter == "P":
            self._publish(rest)
        elif letter == "N":
            self._courier.send(rest)
        elif letter == "V":
            self._unwritten.append(rest)
            del self._unwritten[:-EVENTS]
            self._debug(rest)
        elif letter == "D":
            self._debug(rest)

    def ready(self, fd: int) -> list[bytes]:
        """The helper's descriptors are ready: lines to hand to the pump."""
        if self._pane is not None and self._pane.owns(fd):
            self._pane.ready(time.monotonic())
            return []
        return self._courier.ready(fd)

    def tick(self, now: float) -> None:
        """Do what is due."""
        if self._unwritten and now >= self._events_at:
            self._events_at = now + EVENTS_INTERVAL
            self._write_events()
        if self._state is not None and self._summary_at is not None and now >= self._summary_at:
            self._summary_at = self._state.refresh_summary(now)
        if self._pane is not None:
            self._pane.tick(now)
        self._courier.tick()

    def timeout(self, now: float) -> float | None:
        """Seconds until something is due."""
        due = [] if self._summary_at is None else [self._summary_at]
        if self._unwritten:
            due.append(self._events_at)
        pane = None if self._pane is None else self._pane.timeout(now)
        if pane is not None:
            due.append(now + pane)
        return max(0.0, min(due) - now) if due else None

    def pump_gone(self) -> None:
        """The pump was killed: nothing of the session may look alive any more."""
        self.remove()
        self._flush_summary()
        self._courier.drop()

    def give_up(self, reason: str) -> None:
        """Something unforeseen has failed, and no more will be asked of this but to clean up."""
        try:
            self._debug(f"no state and no notifications any more: {reason}".encode("utf-8", "replace"))
        except Exception:  # noqa: BLE001 - whatever is broken, there is nobody left to tell
            pass

    def take_over(self) -> None:
        """In the pump, when the session leader was killed: take the session back, whatever was published."""
        self._published = True
        self.remove()
        self._flush_summary()
        pane = self._tmux_pane()
        if pane is not None:
            pane.clear(self._session)

    def finish(self) -> None:
        """The last moment; the pump waits for this no more."""
        self._flush_summary()
        self._courier.finish()
        if self._pane is not None:
            self._pane.finish()

    # ---- state files ----

    def _publish(self, data: bytes) -> None:
        if self._pane is not None:
            self._pane.publish(snapshot.decode(data), time.monotonic())
        if self._state is None:
            return
        problem = self._state.write_session(self._session, data)
        self._published = True
        self._summary_at = time.monotonic()
        if problem != self._problem and problem is not None:
            self._debug(f"state file: {problem}".encode())
        self._problem = problem

    def remove(self) -> None:
        """Take the session and its private files back."""
        for path in self.private:
            _unlink(path)
        self.private.clear()
        if self._state is None or not self._published:
            return
        self._published = False
        self._state.remove_session(self._session)
        _unlink(self._events_path())
        self._summary_at = time.monotonic()

    def _flush_summary(self) -> None:
        if self._state is not None and self._summary_at is not None:
            self._state.flush_summary()
            self._summary_at = None

    def _tmux_pane(self) -> Pane | None:
        """The pane to show the state in; elsewhere the module is not even loaded."""
        if not self._environ.get("TMUX"):
            return None
        from agentwrap.host import panes

        return panes.of(self._environ)

    # ---- events ----

    def _events_path(self) -> str:
        return "" if self._state is None else os.path.join(self._state.path, self._session + EVENTS_SUFFIX)

    def _note(self, event: dict[str, object]) -> None:
        """An event of our own side."""
        self.line("V", snapshot.encode(event).encode())

    def _write_events(self) -> None:
        new, self._unwritten = self._unwritten, []
        self._events = (self._events + new)[-EVENTS:]
        if not self._published:
            # Before the first publication its time has not come; after the last it would be left behind.
            self._events_written = 0
            return
        anew = self._events_written == 0 or self._events_written + len(new) > 2 * EVENTS
        if not anew and self._append_events(new):
            self._events_written += len(new)
            return
        # explain shows less where this fails, too; the session goes on
        self._events_written = len(self._events) if self._replace_events() else 0

    def _append_events(self, new: list[bytes]) -> bool:
        """Append these; False where that cannot be done, or only in part."""
        data = b"".join(line + b"\n" for line in new)
        flags = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            fd = os.open(self._events_path(), flags)
        except OSError:
            return False  # removed by someone
        try:
            return os.write(fd, data) == len(data)
        except OSError:
            return False
        finally:
            os.close(fd)

    def _replace_events(self) -> bool:
        """Write all events anew, in one step."""
        path = self._events_path()
        directory, name = os.path.split(path)
        temporary = os.path.join(directory, f".{name}.{os.getpid()}.tmp")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        _unlink(temporary)  # left by a process that had our number
        try:
            fd = os.open(temporary, flags, 0o600)
            try:
                os.fchmod(fd, 0o600)  # whatever the umask took away
                left = b"".join(line + b"\n" for line in self._events)
                while left:
                    left = left[os.write(fd, left) :]
            finally:
                os.close(fd)
            os.replace(temporary, path)
        except OSError:
            _unlink(temporary)
            return False
        return True

    # ---- debug log ----

    def _debug(self, text: bytes) -> None:
        if self._log is None:
            if not self._log_path:
                return
            try:
                self._log = os.open(self._log_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            except OSError:
                self._log_path = None
                return
        try:
            os.write(self._log, b"%.3f %s %s\n" % (time.time(), self._session.encode(), text))
        except OSError:
            pass  # a full disk loses the log, nothing else


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass  # it was never written, or somebody cleaned up
