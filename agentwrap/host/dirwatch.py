"""Waiting for something to change in a directory, or for processes to end, without looking again and again.

For verbs. Linux tells through inotify and pidfds, macOS and the BSDs through kqueue; where neither is to be
had, the directory's time is looked at, often enough for people and scripts.
"""

from __future__ import annotations

import os
import select
import struct
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

POLL = 0.05  # seconds between two looks where nothing tells of changes
MISSING = 0.2  # seconds between two looks for a directory that is not there
ALIVE = 1.0  # seconds between two looks at processes of whose end nothing tells

_IN_CLOEXEC, _IN_NONBLOCK = 0o2000000, 0o4000
_IN_MOVED_FROM, _IN_MOVED_TO, _IN_DELETE = 0x40, 0x80, 0x200
_IN_GONE = (
    0x400 | 0x800 | 0x8000 | 0x2000
)  # the directory itself: deleted, moved, no longer watched, unmounted


class Watch:
    """Tells when the files of `path` whose names end in `suffix` may have changed, or processes ended.

    A change between two calls of `wait` is told by the second.
    """

    def __init__(self, path: str, suffix: str) -> None:
        self._path = path
        self._suffix = suffix.encode()
        self._add: Callable[[], bool] = lambda: False
        self._fd = -1
        self._watching = False
        self._queue: Any = None
        self._pids: dict[int, int] = {}  # pid → pidfd, or -1 where there is none
        self._extra: list[int] = []
        self._seen: tuple[int, int, float] | None = None
        try:
            self._add = self._inotify() if sys.platform == "linux" else self._kqueue()
        except (OSError, AttributeError, ImportError):
            pass  # looking it is
        self._watching = self._add()
        self._stamp()

    def also(self, fd: int) -> None:
        """Return from `wait` when `fd` is readable or hung up, too."""
        self._extra.append(fd)

    def processes(self, pids: Iterable[int]) -> None:
        """The processes whose end is a change."""
        wanted = set(pids)
        for pid in set(self._pids) - wanted:
            fd = self._pids.pop(pid)
            if fd >= 0:
                os.close(fd)
        for pid in wanted - set(self._pids):
            try:
                self._pids[pid] = os.pidfd_open(pid)
            except (OSError, AttributeError):
                self._pids[pid] = -1

    def wait(self, timeout: float | None) -> set[int]:
        """Wait for a change, a descriptor of `also`, or `timeout` seconds (None: for ever).

        Returns:
            The descriptors of `also` that are ready.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            if not self._watching:
                self._watching = self._add()
                if self._watching:
                    return set()  # it appeared, with what is in it
            limits = [] if deadline is None else [max(0.0, deadline - time.monotonic())]
            if not self._watching:
                limits.append(POLL if os.path.isdir(self._path) else MISSING)
            if -1 in self._pids.values():
                limits.append(ALIVE)
            ready = self._select(min(limits) if limits else None)
            if ready - {self._fd} or (self._fd in ready and self._changed()):
                return ready & set(self._extra)
            if not self._watching and self._stamp():
                return set()
            if deadline is not None and time.monotonic() >= deadline:
                return set()
            if any(fd < 0 and not _exists(pid) for pid, fd in self._pids.items()):
                return set()

    def close(self) -> None:
        """Give all descriptors back."""
        self.processes(())
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
            self._watching = False
            self._add = lambda: False

    def _select(self, timeout: float | None) -> set[int]:
        waiter = select.poll()
        for fd in (self._fd, *self._pids.values()):
            if fd >= 0:
                waiter.register(fd, select.POLLIN)
        for fd in self._extra:
            # What can only be written to is watched for its end alone.
            waiter.register(fd, select.POLLIN if fd != 1 else 0)
        return {fd for fd, _ in waiter.poll(None if timeout is None else timeout * 1000)}

    def _stamp(self) -> bool:
        """Whether the directory's own time is another than at the last call."""
        try:
            found = os.stat(self._path)
        except OSError:
            now = None
        else:
            # Its time moves in steps: what happened within one is seen only by looking again after it.
            step = time.time() if abs(time.time() - found.st_mtime) < 3 * POLL else 0.0
            now = (found.st_ino, found.st_mtime_ns, step)
        before, self._seen = self._seen, now
        return before != now

    def _inotify(self) -> Callable[[], bool]:
        import ctypes

        library = ctypes.CDLL(None, use_errno=True)
        self._fd = library.inotify_init1(_IN_CLOEXEC | _IN_NONBLOCK)
        if self._fd < 0:
            raise OSError(ctypes.get_errno(), "inotify")
        mask = _IN_MOVED_FROM | _IN_MOVED_TO | _IN_DELETE | 0x400 | 0x800 | 0x01000000  # a directory only
        return lambda: library.inotify_add_watch(self._fd, os.fsencode(self._path), mask) >= 0

    def _kqueue(self) -> Callable[[], bool]:
        if sys.platform == "linux":
            raise OSError
        queue = select.kqueue()
        self._fd = queue.fileno()
        self._queue = queue
        opened = -1

        def add() -> bool:
            nonlocal opened
            if opened >= 0:
                os.close(opened)
                opened = -1
            try:
                opened = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
            except OSError:
                return False
            notes = select.KQ_NOTE_WRITE | select.KQ_NOTE_DELETE | select.KQ_NOTE_RENAME
            flags = select.KQ_EV_ADD | select.KQ_EV_CLEAR
            queue.control([select.kevent(opened, select.KQ_FILTER_VNODE, flags, notes)], 0, 0)
            return True

        return add

    def _changed(self) -> bool:
        """Read what the system tells; whether it concerns the files watched."""
        if sys.platform != "linux":
            gone = select.KQ_NOTE_DELETE | select.KQ_NOTE_RENAME
            events = self._queue.control(None, 16, 0)
            if any(event.fflags & gone for event in events):
                self._watching = False
            return bool(events)
        try:
            data = os.read(self._fd, 65536)
        except BlockingIOError:
            return False
        found = False
        while len(data) >= 16:
            _, mask, _, length = struct.unpack_from("iIII", data)
            name = data[16 : 16 + length].rstrip(b"\0")
            data = data[16 + length :]
            if mask & (_IN_GONE | 0x4000):  # or the queue ran over
                self._watching = False if mask & _IN_GONE else self._watching
                found = True
            elif name.endswith(self._suffix):
                found = True
        return found


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except OSError:
        return False
    return True
