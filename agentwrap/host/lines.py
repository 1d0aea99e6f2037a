"""Lines over a pipe, between the pump and the session leader: framing and bounded queues, no meaning.

A line is a letter, a blank, and the rest without a newline; to and from other helpers, just the
rest. Writing never blocks: what does not fit the
pipe waits here, and beyond a bound what may be lost is refused, so that neither process can hold the other.
"""

from __future__ import annotations

import os

QUEUE = 1 << 20
"""Bytes that may wait in this process for the pipe. Events and notifications beyond it are refused."""

READ = 65536


class LineWriter:
    """The writing end, non-blocking.

    Attributes:
        fd: the descriptor. It stays open when the other side is gone, since a poller may know it.
        broken: the other side is gone.
    """

    __slots__ = ("_queue", "_queued", "broken", "fd")

    def __init__(self, fd: int) -> None:
        os.set_blocking(fd, False)
        self.fd = fd
        self.broken = False
        self._queue: list[bytes] = []
        self._queued = 0

    @property
    def waiting(self) -> bool:
        """Whether something waits for the pipe to take it."""
        return bool(self._queue)

    def send(self, letter: str, rest: str | bytes = b"", *, droppable: bool = False) -> bool:
        """Write or queue one line; False where it was refused or nobody reads any more."""
        data = rest.encode("utf-8", "surrogateescape") if isinstance(rest, str) else rest
        if self.broken or (droppable and self._queued > QUEUE):
            return False
        head = letter.encode() + b" " if letter else b""
        self._queue.append(head + data.replace(b"\n", b" ") + b"\n")
        self._queued += len(self._queue[-1])
        if len(self._queue) == 1:
            self.flush()
        return not self.broken

    def send_all(self, batch: list[tuple[str, str]], *, droppable: str = "") -> None:
        """Write or queue several lines in one go, but for those of `droppable` letters beyond the bound."""
        taken = [entry for entry in batch if entry[0] not in droppable or self._queued <= QUEUE]
        if self.broken or not taken:
            return
        data = "".join(f"{letter} {rest.replace(chr(10), ' ')}\n" for letter, rest in taken)
        self._queue.append(data.encode("utf-8", "surrogateescape"))
        self._queued += len(self._queue[-1])
        if len(self._queue) == 1:
            self.flush()

    def flush(self) -> None:
        """Write as much of the queue as the pipe takes."""
        while self._queue:
            line = self._queue[0]
            try:
                written = os.write(self.fd, line)
            except BlockingIOError:
                return
            except OSError:
                self.broken = True
                self._queue.clear()
                self._queued = 0
                return
            self._queued -= written
            if written < len(line):
                self._queue[0] = line[written:]
                return
            del self._queue[0]


class LineReader:
    """The reading end, non-blocking.

    Attributes:
        ended: the other side has closed or died, and all it wrote was taken.
    """

    __slots__ = ("_lettered", "_partial", "ended", "fd")

    def __init__(self, fd: int, *, lettered: bool = True) -> None:
        os.set_blocking(fd, False)
        self.fd = fd
        self.ended = False
        self._lettered = lettered
        self._partial = b""

    def take(self) -> list[tuple[str, bytes]]:
        """The lines that have arrived: (letter, rest); without letters, ("", line)."""
        try:
            data = os.read(self.fd, READ)
        except BlockingIOError:
            return []
        except OSError:
            data = b""
        if not data:
            self.ended = True
            return []
        *lines, self._partial = (self._partial + data).split(b"\n")
        if not self._lettered:
            return [("", line) for line in lines]
        return [(chr(line[0]), line[2:]) for line in lines if line]
