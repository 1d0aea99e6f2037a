"""Recording to a file without the pump waiting for a disk: a process of its own writes what a pipe brings.

Knows no format; see `core.recording`. Where the disk cannot keep up, whole events are left out and counted,
and the session goes on.
"""

from __future__ import annotations

import os

from agentwrap.host import poller, signals
from agentwrap.host.signals import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import NoReturn

    from agentwrap.core.recording import Encoder

QUEUE = 8 << 20
"""Bytes of events that may wait for the writing process: seconds of the fastest output."""

READ = 65536

PATIENCE = 1.0
"""Seconds the end of a session waits for a slow disk."""

MOST_FILES = 65536
"""Descriptors closed in the writing process: some systems allow so many that it would take minutes."""


class Recorder:
    """The pump's end: encodes events, never blocks.

    Attributes:
        fd: where the events go.
        done: at its end when all of them are in the file.
        lost: events left out.
    """

    __slots__ = ("_encoder", "_queue", "_record_input", "_started", "done", "fd", "lost")

    def __init__(self, fd: int, done: int, encoder: Encoder, started: float, *, record_input: bool) -> None:
        os.set_blocking(fd, False)
        self.fd = fd
        self.done = done
        self.lost = 0
        self._encoder = encoder
        self._record_input = record_input
        self._started = started
        self._queue = bytearray()
        self._add(encoder.header())

    @property
    def waiting(self) -> bool:
        """Whether something waits to be written."""
        return bool(self._queue)

    def output(self, data: bytes, now: float) -> None:
        """The command wrote `data`."""
        self._add(self._encoder.output(now - self._started, data))

    def typed(self, data: bytes, now: float) -> None:
        """The terminal sent `data`; recorded only where that was asked for."""
        if self._record_input:
            self._add(self._encoder.input(now - self._started, data))

    def resized(self, columns: int, rows: int, now: float) -> None:
        """The terminal has another size."""
        self._add(self._encoder.resize(now - self._started, columns, rows))

    def ended(self, status: int, forwarded: Iterable[int], now: float) -> None:
        """The command has ended with this wait status; these signals were sent to it through us."""
        for number in sorted(forwarded):
            self._add(self._encoder.signal(now - self._started, number))
        self._add(self._encoder.exit(now - self._started, status))

    def _add(self, data: bytes) -> None:
        if len(self._queue) > QUEUE:
            self.lost += 1
            return
        self._queue += data
        self.flush()

    def finish(self, patience: float = PATIENCE) -> None:
        """There is no more: wait until all is in the file, at most `patience` seconds."""
        os.close(self.fd)
        waiter = poller.make()
        waiter.want(self.done, poller.READ)
        waiter.wait(patience)
        os.close(self.done)

    def flush(self) -> None:
        """Write what the pipe takes."""
        while self._queue:
            try:
                written = os.write(self.fd, self._queue[:READ])
            except BlockingIOError:
                return
            except OSError:
                self._queue.clear()  # the writing process is gone, and the recording ends here
                return
            del self._queue[:written]


def start(file: int) -> tuple[int, int]:
    """Fork the process that writes to `file`, which is closed here.

    Returns:
        The descriptor to write events to, and one that is at its end when all of them are in the file.

    Raises:
        OSError: no process is to be had.
    """
    ends: tuple[int, ...] = os.pipe()
    try:
        ends += os.pipe()
        pid = os.fork()
    except OSError:
        for fd in ends:
            os.close(fd)
        raise
    reading, writing, done, _ = ends
    if pid == 0:
        _copy(reading, ends[3], file)
    for fd in (reading, ends[3], file):
        os.close(fd)
    return writing, done


def _copy(reading: int, done: int, file: int) -> NoReturn:
    """Write to `file` until the pump has closed its end or has gone, then end."""
    try:
        os.setsid()
        signals.ignore((signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP))
        null = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(null, fd)  # it must not keep the user's terminal or pipes open
        below = 3
        for kept in (*sorted((reading, done, file)), min(os.sysconf("SC_OPEN_MAX"), MOST_FILES)):
            os.closerange(below, kept)  # nor, with its own ends of the pipes, see no end of them
            below = kept + 1
        while data := os.read(reading, READ):
            while data:
                data = data[os.write(file, data) :]
    finally:
        os._exit(0)
