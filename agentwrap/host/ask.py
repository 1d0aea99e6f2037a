"""Asking the terminal something and reading what it answers, without losing what is typed meanwhile.

Used by verbs, never beside a pump. Knows how to write, wait and put things back; not what is asked.
"""

from __future__ import annotations

import errno
import fcntl
import os
import select
import signal
import termios
import time

from agentwrap.host import terminal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import NoReturn

LONGEST_ANSWER = 65536
"""Bytes read before giving up: far more than any terminal says of itself."""

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class CannotAskError(Exception):
    """The terminal cannot be asked now; the message says why."""


class _EndedError(BaseException):
    """A signal that ends this process came while the terminal was raw."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def ask(fd: int, question: bytes, complete: Callable[[bytes], bool], timeout: float) -> bytes:
    """Write a question and return everything that comes in until it is answered.

    Args:
        fd: the terminal, open for reading and writing.
        question: what to write.
        complete: whether what came so far is the whole answer.
        timeout: seconds to wait for it.

    Returns:
        What came, answers and keys alike; `give_back` takes the keys.

    Raises:
        CannotAskError: this process is in the background, or something was typed before (it would be eaten).
    """
    try:
        if os.tcgetpgrp(fd) != os.getpgrp():
            raise CannotAskError("in the background")
    except OSError:
        raise CannotAskError("it is not our controlling terminal") from None
    before = terminal.get_attributes(fd)
    if before is None:
        raise CannotAskError("its settings cannot be read")

    def end(number: int, _frame: FrameType | None) -> NoReturn:
        raise _EndedError(number)

    handlers = {number: signal.signal(number, end) for number in _ENDING}
    try:
        try:
            made = terminal.raw(before)
            if not terminal.set_attributes(fd, made):
                raise CannotAskError("its settings cannot be changed")
            return _exchange(fd, question, complete, timeout)
        finally:
            terminal.set_attributes(fd, before)
            for number, handler in handlers.items():
                signal.signal(number, handler)
    except _EndedError as ended:
        os.kill(os.getpid(), ended.number)
        raise CannotAskError("interrupted") from None


def _exchange(fd: int, question: bytes, complete: Callable[[bytes], bool], timeout: float) -> bytes:
    if select.select([fd], [], [], 0)[0]:
        raise CannotAskError("something was typed ahead; try again")
    deadline = time.monotonic() + timeout
    _, writable, _ = select.select([], [fd], [], timeout)
    if not writable:
        raise CannotAskError("it takes no output")
    os.write(fd, question)
    heard = b""
    while not complete(heard) and len(heard) < LONGEST_ANSWER:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([fd], [], [], left)[0]:
            break
        data = os.read(fd, 4096)
        if not data:
            break
        heard += data
    return heard


def give_back(fd: int, typed: bytes) -> bool:
    """Put keys back as if typed now; False where the system does not allow it, and they are lost."""
    for byte in typed:
        try:
            fcntl.ioctl(fd, termios.TIOCSTI, bytes([byte]))
        except OSError as error:
            if error.errno in (errno.EIO, errno.EPERM, errno.EACCES, errno.EINVAL, errno.ENOTTY):
                return False
            raise
    return True
