"""Recording to a file without the pump waiting for a disk: a process of its own writes what a pipe brings.

Knows no format; see `core.recording`. Where the disk cannot keep up, whole events are left out and counted,
and the session goes on.
"""

from __future__ import annotations

import os

from agentwrap.host import signals
from agentwrap.host.signals import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from agentwrap.core.recording import Encoder

QUEUE = 8 << 20
"""Bytes of events that may wait for the writing process: seconds of the fastest output."""

READ = 65536


class Recorder:
    """The pump's end: encodes events, never blocks.

    Attributes:
        fd: where the events go.
        lost: events left out.
    """

    __slots__ = ("_encoder", "_queue", "_record_input", "_started", "fd", "lost")

    def __init__(self, fd: int, encoder: Encoder, started: float, *, record_input: bool) -> None:
        os.set_blocking(fd, False)
        self.fd = fd
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

    def ended(self, status: int, now: float) -> None:
        """The command has ended with this wait status."""
        self._add(self._encoder.exit(now - self._started, status))

    def _add(self, data: bytes) -> None:
        if len(self._queue) > QUEUE:
            self.lost += 1
            return
        self._queue += data
        self.flush()

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


def start(file: int) -> int:
    """Fork the process that writes to `file`; returns the descriptor to write events to.

    Raises:
        OSError: no process is to be had.
    """
    reading, writing = os.pipe()
    try:
        pid = os.fork()
    except OSError:
        os.close(reading)
        os.close(writing)
        raise
    if pid == 0:
        _copy(reading, writing, file)
    os.close(reading)
    os.close(file)
    return writing


def _copy(reading: int, writing: int, file: int) -> NoReturn:
    """Write to `file` until the pump has closed its end or has gone, then end."""
    try:
        os.close(writing)
        os.setsid()
        signals.ignore((signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP))
        null = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(null, fd)  # it must not keep the user's terminal or pipes open
        while data := os.read(reading, READ):
            while data:
                data = data[os.write(file, data) :]
    finally:
        os._exit(0)
