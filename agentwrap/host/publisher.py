"""What the session leader does for the pump that may wait for a disk or another process.

State files, the debug log, the events that `explain` shows, and the notification helper. A failure of any of
it is told to the pump once, as a line, and changes nothing else.
"""

from __future__ import annotations

import os
import sys
import time

from agentwrap.host import lines, poller, signals
from agentwrap.host.signals import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentwrap.host.statefile import StateDir

EVENTS = 200
"""Events kept for `explain`; the file is rewritten when it holds twice as many."""

EVENTS_SUFFIX = ".events"
"""Beside SESSION.json: one JSON object a line."""

NOTIFIER = (
    "import sys; sys.path[:] = sys.argv.pop().split('\\n'); "
    "from agentwrap.host.notifiers.__main__ import main; sys.exit(main())"
)


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
        self._events_written = 0
        self._unwritten: list[bytes] = []
        self._notifier: lines.LineWriter | None = None
        self._results: lines.LineReader | None = None
        self._notifier_pid = 0
        self._waiter: poller.PollPoller | poller.SelectPoller | None = None
        self._problem: str | None = None
        self.private: list[str] = []
        """Files made for the command alone, removed at the end."""

    # ---- called by the leader's loop ----

    def watch(self, waiter: poller.PollPoller | poller.SelectPoller) -> None:
        """Register what has to be waited for there, now and later."""
        self._waiter = waiter

    def line(self, letter: str, rest: bytes) -> None:
        """Do what a line of the pump asks for."""
        if letter == "P":
            self._publish(rest)
        elif letter == "N":
            self._notify(rest)
        elif letter == "V":
            self._unwritten.append(rest)
        elif letter == "D":
            self._debug(rest)

    def ready(self, fd: int) -> list[bytes]:
        """The helper's descriptors are ready: results to hand to the pump."""
        if self._notifier is not None and fd == self._notifier.fd:
            self._notifier.flush()
        if self._results is not None and fd == self._results.fd:
            found = [rest for _, rest in self._results.take()]
            if self._results.ended:
                self._drop_notifier()
                found.append(b'{"op": "lost", "reason": "the notification helper ended"}')
            return found
        return []

    def tick(self, now: float) -> None:
        """Do what is due."""
        if self._unwritten:
            self._write_events()
        if self._state is not None and self._summary_at is not None and now >= self._summary_at:
            self._summary_at = self._state.refresh_summary(now)
        if self._waiter is not None and self._notifier is not None:
            self._waiter.want(self._notifier.fd, poller.WRITE if self._notifier.waiting else 0)

    def timeout(self, now: float) -> float | None:
        """Seconds until something is due."""
        return None if self._summary_at is None else max(0.0, self._summary_at - now)

    def child_ended(self, pid: int) -> None:
        """One of our children that is not the command has ended."""
        if pid == self._notifier_pid:
            self._notifier_pid = 0

    def pump_gone(self) -> None:
        """The pump was killed: nothing of the session may look alive any more."""
        self.remove()
        self._flush_summary()
        self._drop_notifier()

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

    def finish(self) -> None:
        """The last moment; the pump waits for this no more."""
        self._flush_summary()
        if self._notifier is not None:
            # what is queued is the last news of the session; its helper delivers it on its own
            deadline = time.monotonic() + 0.2
            while self._notifier.waiting and time.monotonic() < deadline:
                waiter = poller.make()
                waiter.want(self._notifier.fd, poller.WRITE)
                waiter.wait(deadline - time.monotonic())
                self._notifier.flush()

    # ---- state files ----

    def _publish(self, data: bytes) -> None:
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

    # ---- events ----

    def _events_path(self) -> str:
        return "" if self._state is None else os.path.join(self._state.path, self._session + EVENTS_SUFFIX)

    def _write_events(self) -> None:
        new, self._unwritten = self._unwritten, []
        self._events = (self._events + new)[-EVENTS:]
        if self._state is None:
            return
        again = self._events_written + len(new) > 2 * EVENTS or self._events_written == 0
        data = b"".join(line + b"\n" for line in (self._events if again else new))
        path = self._events_path()
        flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | (0 if again else os.O_APPEND)
        try:
            fd = os.open(path + ".new" if again else path, flags, 0o600)
            try:
                os.write(fd, data)
            finally:
                os.close(fd)
            if again:
                os.replace(path + ".new", path)
        except OSError:
            return  # explain then shows less; the session goes on
        self._events_written = len(self._events) if again else self._events_written + len(new)

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

    # ---- the notification helper ----

    def _notify(self, rest: bytes) -> None:
        if self._notifier is None or self._notifier.broken:
            self._drop_notifier()
            if not self._start_notifier():
                return
        if self._notifier is not None:
            self._notifier.send("", rest, droppable=True)

    def _start_notifier(self) -> bool:
        reading, to_helper = os.pipe()
        from_helper, writing = os.pipe()
        try:
            pid = os.fork()
        except OSError:
            for fd in (reading, to_helper, from_helper, writing):
                os.close(fd)
            self._debug(b"no process for the notification helper")
            return False
        if pid == 0:
            try:
                os.setsid()
                os.dup2(reading, 0)
                os.dup2(writing, 1)
                null = os.open(os.devnull, os.O_RDWR)
                os.dup2(null, 2)
                # it belongs to no terminal, and a signal for the job is not for it
                signals.ignore((signal.SIGHUP, signal.SIGINT))
                words = [sys.executable, "-I", "-c", NOTIFIER, "\n".join(sys.path)]
                os.execve(sys.executable, words, self._environ)
            finally:
                os._exit(127)
        os.close(reading)
        os.close(writing)
        self._notifier_pid = pid
        self._notifier = lines.LineWriter(to_helper)
        self._results = lines.LineReader(from_helper, lettered=False)
        if self._waiter is not None:
            self._waiter.want(from_helper, poller.READ)
        return True

    def _drop_notifier(self) -> None:
        """Let go of the helper: at the end of its input it withdraws what is out of date, and ends."""
        for end in (self._notifier, self._results):
            if end is not None:
                if self._waiter is not None:
                    self._waiter.want(end.fd, 0)
                os.close(end.fd)
        self._notifier = self._results = None


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass  # it was never written, or somebody cleaned up
