"""The terminal that everything is measured on, a PTY, and what /proc says of who runs on it."""

from __future__ import annotations

import fcntl
import os
import select
import signal
import struct
import sys
import termios
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
CHILD = [sys.executable, "-I", "-S", str(HERE / "child.py")]


class TooLateError(Exception):
    """Something measured did not come."""


class Outer:
    """A command as session leader of a terminal of its own, 120 columns by 40 rows."""

    def __init__(self, argv, *, environ=None, pass_fds=()):
        self.master, self.slave = os.openpty()
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 960, 800))
        self.argv = argv
        self.spawned = time.perf_counter()
        self.pid = os.posix_spawn(
            argv[0],
            argv,
            os.environ if environ is None else environ,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.ttyname(self.slave), os.O_RDWR, 0),  # becomes the controlling one
                (os.POSIX_SPAWN_DUP2, 0, 1),
                (os.POSIX_SPAWN_DUP2, 0, 2),
                *((os.POSIX_SPAWN_DUP2, fd, fd) for fd in pass_fds),
            ],
            setsid=True,
            setsigdef=[signal.SIGPIPE, signal.SIGXFSZ],  # which the interpreter ignores
        )
        self.output = bytearray()
        self.status = None

    def read(self, timeout):
        """Take what there is, waiting at most `timeout` seconds for it; b"" at the end or where none came."""
        if not select.select([self.master], [], [], timeout)[0]:
            return b""
        try:
            return os.read(self.master, 65536)
        except OSError:
            return b""

    def expect(self, wanted, timeout=30.0):
        """Read until `wanted` was written; what stood before it is forgotten."""
        deadline = time.monotonic() + timeout
        while (at := self.output.find(wanted)) < 0:
            left = deadline - time.monotonic()
            if left <= 0:
                raise TooLateError(f"{self.argv[0]}: no {wanted!r} in {bytes(self.output[-300:])!r}")
            self.output += self.read(min(left, 0.2))
            if len(self.output) > 1 << 16 and wanted not in self.output:
                del self.output[: -len(wanted)]
        del self.output[: at + len(wanted)]

    def drain_to(self, wanted, timeout=120.0):
        """Read a stream as fast as it comes, until `wanted` ends it; returns bytes read and when it ended."""
        size = 0
        tail = bytes(self.output)
        self.output.clear()
        deadline = time.monotonic() + timeout
        master = self.master
        while wanted not in tail:
            try:
                data = os.read(master, 65536)
            except OSError:
                raise TooLateError(f"{self.argv[0]} ended within the stream") from None
            size += len(data)
            tail = tail[-len(wanted) :] + data
            if time.monotonic() > deadline:
                raise TooLateError(f"{self.argv[0]}: stream too slow")
        return size, time.perf_counter()

    def type(self, data):
        os.write(self.master, data)

    def wait(self, timeout=20.0):
        """Read until the command has ended; the wait status."""
        deadline = time.monotonic() + timeout
        while self.status is None:
            pid, status, _ = os.wait4(self.pid, os.WNOHANG)
            if pid:
                self.status = status
            elif time.monotonic() > deadline:
                raise TooLateError(f"{self.argv[0]} does not end")
            else:
                self.read(0.001)
        return self.status

    def close(self):
        """Hang up and end what is left of it."""
        tree = family([self.pid], set()) if self.status is None else []
        os.close(self.slave)
        os.close(self.master)
        deadline = time.monotonic() + 3
        while self.status is None:
            pid, status, _ = os.wait4(self.pid, os.WNOHANG)
            if pid:
                self.status = status
                break
            if time.monotonic() > deadline:
                for each in tree:
                    try:
                        os.kill(each, signal.SIGKILL)
                    except OSError:
                        pass
                deadline += 3
            time.sleep(0.002)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


# ---- what /proc says ----


def _stat(pid):
    with open(f"/proc/{pid}/stat", "rb") as file:
        return file.read().rpartition(b")")[2].split()


def family(roots, without):
    """`roots` and all processes below them, except those in `without` and all below these."""
    below = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                below.setdefault(int(_stat(name)[1]), []).append(int(name))
            except (OSError, IndexError):
                continue  # it has just ended
    found = []
    todo = list(roots)
    while todo:
        pid = todo.pop()
        if pid in without or pid in found:
            continue
        found.append(pid)
        todo += below.get(pid, [])
    return found


def cpu(pids):
    """Seconds these processes have run, all threads."""
    total = 0
    for pid in pids:
        try:
            tasks = os.listdir(f"/proc/{pid}/task")
        except OSError:
            continue
        for task in tasks:
            try:
                with open(f"/proc/{pid}/task/{task}/schedstat", "rb") as file:
                    total += int(file.read().split()[0])
            except OSError:
                continue
    return total / 1e9


def wakeups(pids):
    """How often these processes went to sleep by themselves, all threads."""
    total = 0
    for pid in pids:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/status", "rb") as file:
                for line in file:
                    if line.startswith(b"voluntary_ctxt_switches"):
                        total += int(line.split()[1])
    return total


def pss(pids):
    """Bytes of memory, what is shared counted by its share."""
    total = 0
    for pid in pids:
        with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
            for line in file:
                if line.startswith(b"Pss:"):
                    total += int(line.split()[1]) * 1024
    return total
