"""The plainest outer terminal: a PTY whose other end the test reads and writes, byte for byte."""

from __future__ import annotations

import fcntl
import os
import select
import signal
import struct
import sys
import termios
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

AGENTWRAP = [sys.executable, "-m", "agentwrap"]


def until(condition: Callable[[], object], timeout: float = 10.0, what: str = "") -> object:
    """Poll a condition until it holds; return what it returned."""
    deadline = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout:g} s: {what or condition}")
        time.sleep(0.005)


class Outer:
    """A command as the foreground job, and session leader, of a terminal of its own."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        environ: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        size: tuple[int, int, int, int] = (24, 80, 640, 480),
        prepare: Callable[[], None] | None = None,
    ) -> None:
        self.master, self.slave = os.openpty()
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", *size))
        self.settings = termios.tcgetattr(self.slave)
        self.output = bytearray()
        self.status: int | None = None
        self._used: list[list[tuple[float, ...]]] = []
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.setsid()
                fcntl.ioctl(self.slave, termios.TIOCSCTTY, 0)
                for fd in (0, 1, 2):
                    os.dup2(self.slave, fd)
                os.closerange(3, 256)
                if cwd is not None:
                    os.chdir(cwd)
                if prepare is not None:
                    prepare()
                os.execvpe(argv[0], list(argv), dict(os.environ if environ is None else environ))
            finally:
                os._exit(127)

    def read(self, timeout: float = 0.0) -> bytes:
        """Take what has been written, waiting at most `timeout` seconds for the first of it."""
        got = b""
        while select.select([self.master], [], [], 0 if got else timeout)[0]:
            try:
                data = os.read(self.master, 65536)
            except OSError:
                break
            if not data:
                break
            got += data
            if len(got) > 1 << 20:
                break
        self.output += got
        return got

    def expect(self, wanted: bytes, timeout: float = 10.0, start: int = 0) -> int:
        """Read until `wanted` has been written, at or after `start`; return the index behind it."""
        deadline = time.monotonic() + timeout
        while (at := self.output.find(wanted, start)) < 0:
            left = deadline - time.monotonic()
            if left <= 0:
                raise AssertionError(
                    f"not within {timeout:g} s: {wanted!r} in {bytes(self.output[start:])!r}"
                )
            self.read(min(left, 0.2))
        return at + len(wanted)

    def send(self, data: bytes) -> None:
        """Type bytes; what is written meanwhile is read, so that nothing can jam."""
        os.set_blocking(self.master, False)
        view = memoryview(data)
        while view:
            _, writable, _ = select.select([self.master], [self.master], [], 10)
            if writable:
                try:
                    view = view[os.write(self.master, view) :]
                except BlockingIOError:
                    pass
            self.read()

    def stalled(self) -> bool:
        """Whether all here stand still, with output that nobody takes. To be polled.

        That the terminal takes no more does not tell: its buffer moves on a little by itself, and wakes nobody.
        """
        import psutil

        try:
            top = psutil.Process(self.pid)
            used = [tuple(each.cpu_times()[:2]) for each in (top, *top.children(recursive=True))]
        except psutil.NoSuchProcess:
            return False
        self._used = [*self._used[-19:], used]
        stuck = bool(select.select([self.master], [], [], 0)[0])
        return stuck and len(self._used) == 20 and all(each == used for each in self._used)

    def ended(self) -> bool:
        """Whether the command has ended; `status` is its wait status then."""
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = status
        return self.status is not None

    def wait(self, timeout: float = 10.0) -> int:
        """Read until the command has ended; return its wait status."""
        deadline = time.monotonic() + timeout
        while not self.ended():
            if time.monotonic() > deadline:
                wrote = bytes(self.output[-500:])
                raise AssertionError(f"did not end within {timeout:g} s; wrote {wrote!r}")
            self.read(0.02)
        while self.read(0.02):
            pass
        assert self.status is not None
        return self.status

    def attributes(self) -> list[object]:
        """The terminal's present settings."""
        return termios.tcgetattr(self.slave)

    def close(self) -> None:
        """Hang up, and end what is left."""
        if not self.ended():
            try:
                os.kill(self.pid, signal.SIGHUP)
                self.wait(5)
            except AssertionError:
                os.kill(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
        os.close(self.master)
        os.close(self.slave)

    def __enter__(self) -> Outer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
