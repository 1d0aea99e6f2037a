"""The notification helper, as the session leader sees it: started for the first news, replaced if it dies.

What lives here: the helper's process and pipes, what it was given and has not yet reported on, and its
reports as events for `explain`. It must not know channels or policy. What the helper wants of the terminal is
handed on to the pump, everything else ends here, so that a notification costs the pump one line.
"""

from __future__ import annotations

import os
import sys
import time

from agentwrap.core import snapshot
from agentwrap.host import lines, poller, signals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

PROGRAM = (
    "import sys; sys.path[:] = sys.argv.pop().split('\\n'); "
    "from agentwrap.host.notifiers.__main__ import main; sys.exit(main())"
)

IN_FLIGHT = 64
"""Notifications whose outcome is awaited; as many as wait in the helper."""

MOST_FILES = 65536
"""Descriptors closed in the helper: some systems allow so many that it would take minutes."""

FAREWELL = 0.2
"""Seconds to hand over what is queued at the end; the helper delivers it on its own."""

_FOR_PUMP = ("ask", "terminal", "bell", "close")
_EFFECTS = {"result": "delivered", "update": "updated", "withdraw": "withdrawn"}


class Courier:
    """Hands lines of the pump to the helper.

    Args:
        environ: the helper's environment.
        note: takes an event for `explain`.
    """

    def __init__(self, environ: Mapping[str, str], note: Callable[[dict[str, object]], None]) -> None:
        self._environ = environ
        self._note = note
        self._waiter: poller.PollPoller | poller.SelectPoller | None = None
        self._to_helper: lines.LineWriter | None = None
        self._from_helper: lines.LineReader | None = None
        self._flying: dict[int, tuple[str, bytes, bool]] = {}  # by number: key, line, whether sent again

    def watch(self, waiter: poller.PollPoller | poller.SelectPoller) -> None:
        """Register what has to be waited for there, now and later."""
        self._waiter = waiter

    def owns(self, fd: int) -> bool:
        """Whether a descriptor is the helper's."""
        return any(end is not None and end.fd == fd for end in (self._to_helper, self._from_helper))

    def send(self, line: bytes) -> None:
        """Take a line of the pump. Only a notification starts the helper."""
        try:
            message = snapshot.decode(line)
        except ValueError:
            return
        op, number, key = message.get("op"), message.get("id"), str(message.get("key"))
        if op == "withdraw":
            self._flying = {n: entry for n, entry in self._flying.items() if entry[0] != key}
        if op == "notify" and isinstance(number, int):
            while len(self._flying) >= IN_FLIGHT:
                del self._flying[next(iter(self._flying))]
            self._flying[number] = (key, line, False)
            if self._to_helper is None and not self._start():
                del self._flying[number]
                self._report(key, "failed", "no process for the notification helper")
        if self._to_helper is not None:
            # Where it is dead, the end of its output is still to come, and this goes to its successor.
            self._to_helper.send("", line, droppable=True)

    def ready(self, fd: int) -> list[bytes]:
        """A descriptor of the helper is ready: what the pump is to know."""
        if self._to_helper is not None and fd == self._to_helper.fd:
            self._to_helper.flush()
        if self._from_helper is None or fd != self._from_helper.fd:
            return []
        for_pump = [line for _, line in self._from_helper.take() if self._understand(line)]
        if self._from_helper.ended:
            self._lost()
        return for_pump

    def tick(self) -> None:
        """Wait for room in the pipe, where something waits for it."""
        if self._waiter is not None and self._to_helper is not None:
            self._waiter.want(self._to_helper.fd, poller.WRITE if self._to_helper.waiting else 0)

    def drop(self) -> None:
        """Let go of the helper: at the end of its input it withdraws what is out of date, and ends."""
        for end in (self._to_helper, self._from_helper):
            if end is not None:
                if self._waiter is not None:
                    self._waiter.want(end.fd, 0)
                os.close(end.fd)
        self._to_helper = self._from_helper = None

    def finish(self) -> None:
        """The last moment: what is queued is the last news of the session."""
        if self._to_helper is None:
            return
        deadline = time.monotonic() + FAREWELL
        # A helper that was killed this moment shows it by the end of its output, not yet by a broken pipe.
        while self._to_helper is not None and (self._to_helper.waiting or self._flying):
            left = deadline - time.monotonic()
            if left <= 0:
                return
            waiter = poller.make()
            waiter.want(self._to_helper.fd, poller.WRITE if self._to_helper.waiting else 0)
            if self._from_helper is not None:
                waiter.want(self._from_helper.fd, poller.READ)
            for fd, _ in waiter.wait(left):
                if self.owns(fd):
                    self.ready(fd)

    # ---- its reports ----

    def _understand(self, line: bytes) -> bool:
        """Take one line of the helper; whether it is for the pump."""
        try:
            message = snapshot.decode(line)
        except ValueError:
            return False
        op = message.get("op")
        if op in _FOR_PUMP:
            return True
        key = str(message.get("key", ""))
        reason = ": ".join(filter(None, (str(message.get("channel", "")), str(message.get("reason", "")))))
        if op == "click":
            self._report(key, "clicked", "its terminal is brought to the front, where that is possible")
        elif isinstance(op, str) and op in _EFFECTS:
            self._report(key, _EFFECTS[op] if message.get("ok") else "failed", reason)
        number = message.get("id")
        if op == "result" and message.get("last") and isinstance(number, int):
            self._flying.pop(number, None)
        return False

    def _report(self, event: str, effect: str, reason: str) -> None:
        line = {"t": round(time.time(), 3), "source": "notifier", "event": event, "effect": effect}
        self._note({**line, "reason": reason})

    def _lost(self) -> None:
        """The helper has died: what it had not reported on is given to another, once."""
        self.drop()
        again, self._flying = self._flying, {}
        for number, (key, line, sent_again) in again.items():
            if sent_again:
                self._report(key, "failed", "the notification helper has ended, twice")
            elif self._to_helper is not None or self._start():
                self._report(key, "sent again", "the notification helper has ended")
                self._flying[number] = (key, line, True)
                if self._to_helper is not None:
                    self._to_helper.send("", line, droppable=True)

    # ---- its process ----

    def _start(self) -> bool:
        ends: tuple[int, ...] = ()
        try:
            ends = os.pipe()
            ends += os.pipe()
            pid = os.fork()
        except OSError:
            for fd in ends:
                os.close(fd)
            return False
        reading, to_helper, from_helper, writing = ends
        if pid == 0:
            try:
                os.setsid()
                os.dup2(reading, 0)
                os.dup2(writing, 1)
                null = os.open(os.devnull, os.O_RDWR)
                os.dup2(null, 2)
                # It outlives the session by a little, and must not keep its caller's pipes and files open.
                os.closerange(3, min(os.sysconf("SC_OPEN_MAX"), MOST_FILES))
                # What the session leader ignores, the user's notification commands must not find ignored.
                signals.reset()
                words = [sys.executable, "-I", "-c", PROGRAM, "\n".join(sys.path)]
                os.execve(sys.executable, words, self._environ)
            finally:
                os._exit(127)
        os.close(reading)
        os.close(writing)
        self._to_helper = lines.LineWriter(to_helper)
        self._from_helper = lines.LineReader(from_helper, lettered=False)
        if self._waiter is not None:
            self._waiter.want(from_helper, poller.READ)
        return True
