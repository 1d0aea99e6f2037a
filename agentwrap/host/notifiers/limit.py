"""The limit for all sessions together: many agents at once must not bury the desktop.

Each session keeps its own limit before anything gets here. This one is a file of times in the state
directory, which the helpers of all sessions share. It fails open: where it cannot be read or written, or
somebody keeps it locked, there is no limit.
"""

from __future__ import annotations

import fcntl
import os
import time
from typing import TYPE_CHECKING

from agentwrap.errors import StateDirError
from agentwrap.host.statefile import StateDir

if TYPE_CHECKING:
    from collections.abc import Mapping

PER_MINUTE = 30
"""Notifications of all sessions in any 60 seconds: three sessions may use up their own limits."""

FILE = ".notified"
"""In the state directory: one monotonic time a line, oldest first."""

PATIENCE = 0.05
"""Seconds to wait for the lock: others hold it for a read and a write."""

LARGEST = 4096
"""Bytes of the file; PER_MINUTE lines are far below."""


class Limit:
    """Counts what is shown, and says when it is enough."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ

    def take(self, *, always: bool) -> bool:
        """Count one notification, unless there were too many; one that comes `always` is counted in any case.

        Returns:
            Whether it may be shown.
        """
        try:
            path = os.path.join(StateDir.open(self._environ).path, FILE)
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            file = os.open(path, flags, 0o600)
        except (OSError, StateDirError):
            return True
        try:
            _lock(file)
            return _count(file, time.monotonic(), always=always)
        except OSError:
            return True
        finally:
            os.close(file)


def _lock(file: int) -> None:
    """Take the lock, or fail with an OSError."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= end:
                raise
            time.sleep(PATIENCE / 25)
        else:
            return


def _count(file: int, now: float, *, always: bool) -> bool:
    times = []
    for word in os.pread(file, LARGEST, 0).split():
        try:
            then = float(word)
        except ValueError:
            continue
        if now - 60.0 < then < now + 1.0:  # a time to come is of before the machine was started
            times.append(then)
    if len(times) >= PER_MINUTE and not always:
        return False
    data = b"".join(b"%.3f\n" % then for then in [*times, now][-PER_MINUTE:])
    os.pwrite(file, data, 0)
    os.ftruncate(file, len(data))
    return True
