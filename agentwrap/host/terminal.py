"""The user's terminal: its file descriptors, settings, size and who has its foreground.

Nothing here moves bytes of the session (the pump does) or knows an escape sequence. The terminal is
reopened by name, because O_NONBLOCK on an inherited descriptor would leak to everyone who shares it,
the shell included.
"""

from __future__ import annotations

import errno
import fcntl
import os
import sys
import termios

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Attributes = list[Any]  # what termios.tcgetattr returns

IFLAG, OFLAG, CFLAG, LFLAG, CC = 0, 1, 2, 3, 6

BLOCKING_WRITE = 256
"""Bytes written at once where the terminal could not be reopened: poll(2) reports a terminal writable
while at least this many fit (WAKEUP_CHARS of the Linux tty layer), so such a write does not block."""


_TIOCGDEV = 0x80045432
"""The request for a terminal's true device number, from Linux's <asm-generic/ioctls.h>."""

MOST_LINES = 4096
"""Lines typed ahead that are taken: what the kernel keeps of them is less."""


class VanishedError(Exception):
    """The terminal is gone (hangup)."""


def raw(attributes: Attributes) -> Attributes:
    """The settings of cfmakeraw(3), made from `attributes`; character size and parity stay as they are."""
    made = [*attributes[:CC], list(attributes[CC])]
    made[IFLAG] &= ~(
        termios.IGNBRK
        | termios.BRKINT
        | termios.PARMRK
        | termios.ISTRIP
        | termios.INLCR
        | termios.IGNCR
        | termios.ICRNL
        | termios.IXON
    )
    made[OFLAG] &= ~termios.OPOST
    made[LFLAG] &= ~(termios.ECHO | termios.ECHONL | termios.ICANON | termios.ISIG | termios.IEXTEN)
    made[CC][termios.VMIN] = 1
    made[CC][termios.VTIME] = 0
    return made


def get_attributes(fd: int) -> Attributes | None:
    """The settings of the terminal behind `fd`, None where they cannot be read."""
    try:
        return termios.tcgetattr(fd)
    except (termios.error, OSError):
        return None


def set_attributes(fd: int, attributes: Attributes) -> bool:
    """Set them at once, without dropping what was typed ahead; False where that failed."""
    while True:
        try:
            termios.tcsetattr(fd, termios.TCSANOW, attributes)
        except termios.error as error:
            if error.args and error.args[0] == errno.EINTR:
                continue
            return False
        except OSError:
            return False
        return True


def adds_carriage_returns(fd: int) -> bool:
    """Whether the terminal itself makes a line feed start at the left margin."""
    attributes = get_attributes(fd)
    wanted = termios.OPOST | termios.ONLCR
    return attributes is not None and attributes[OFLAG] & wanted == wanted


def get_size(fd: int) -> bytes | None:
    """The window size as the kernel's struct winsize (8 bytes, pixels included), None where unknown."""
    try:
        return fcntl.ioctl(fd, termios.TIOCGWINSZ, bytes(8))
    except OSError:
        return None


def rows_and_columns(size: bytes | None) -> tuple[int, int]:
    """Of a struct winsize; 0 and 0 where unknown."""
    if size is None:
        return 0, 0
    return int.from_bytes(size[:2], sys.byteorder), int.from_bytes(size[2:4], sys.byteorder)


def set_size(fd: int, size: bytes) -> None:
    """Give a terminal that size; ptyprocess's setwinsize would zero the pixels."""
    try:
        fcntl.ioctl(fd, termios.TIOCSWINSZ, size)
    except OSError:
        pass  # a terminal that has just gone needs no size


def reopen(fd: int) -> int | None:
    """A descriptor of its own for the terminal behind `fd`, non-blocking; None where that is impossible.

    By its name; else through the descriptor itself, which needs no name (a container that brought its own
    /dev/pts hides it); else as the controlling terminal, which needs no right to the device (after `su` it
    still belongs to the user before).
    """
    names = [f"/proc/self/fd/{fd}", "/dev/tty"]
    try:
        names.insert(0, os.ttyname(fd))
    except OSError:
        pass
    for name in names:
        try:
            new = os.open(name, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            continue
        if _is_same(new, fd):
            return new
        os.close(new)
    return None


def _is_same(one: int, other: int) -> bool:
    """Whether two descriptors are one terminal. /dev/tty has a number of its own, so the kernel is asked."""
    if sys.platform == "linux":
        try:
            return fcntl.ioctl(one, _TIOCGDEV, bytes(4)) == fcntl.ioctl(other, _TIOCGDEV, bytes(4))
        except OSError:
            pass  # an old kernel, or none of Linux at all below
    return os.fstat(one).st_rdev == os.fstat(other).st_rdev


class Terminal:
    """The terminal that standard input and output share, or the two that they are.

    Attributes:
        read_fd: read from it what is typed.
        write_fd: write to it what the command writes.
        one: whether that is one and the same.
        nonblocking: False where it could not be reopened; then writes stay below BLOCKING_WRITE.
        saved: its settings before it was made raw, None while it is not.
    """

    __slots__ = ("made", "nonblocking", "one", "read_fd", "saved", "stdin", "write_fd")

    def __init__(self, stdin: int = 0, stdout: int = 1) -> None:
        self.stdin = stdin
        self.one = _is_same(stdin, stdout)
        reading = reopen(stdin)
        writing = reading if self.one else reopen(stdout)
        self.nonblocking = writing is not None
        self.read_fd = stdin if reading is None else reading
        self.write_fd = stdout if writing is None else writing
        self.saved: Attributes | None = None
        self.made: Attributes | None = None

    def foreground(self) -> bool:
        """Whether our process group may use the terminal now.

        Raises:
            VanishedError: the terminal has hung up.
        """
        try:
            return os.tcgetpgrp(self.read_fd) == os.getpgrp()
        except OSError as error:
            if error.errno == errno.ENOTTY and get_attributes(self.read_fd) is not None:
                return True  # not our controlling terminal, so nobody arbitrates
            raise VanishedError from None

    def typed_ahead(self) -> bytes:
        """Take the lines typed before we came, with an end of file as the character that makes one.

        In raw mode a Ctrl-D typed before could no more be told from a NUL. An unfinished line stays, to be
        read in raw mode.
        """
        attributes = get_attributes(self.read_fd)
        if attributes is None or not self.nonblocking or not attributes[LFLAG] & termios.ICANON:
            return b""
        eof: bytes = attributes[CC][termios.VEOF]
        lines = b""
        for _ in range(MOST_LINES):
            try:
                line = os.read(self.read_fd, 4096)
            except OSError:
                break
            lines += line if line.endswith((b"\n", b"\r")) else line + eof
        return lines

    def make_raw(self, announce: Callable[[Attributes, Attributes | None], None] | None = None) -> bool:
        """Remember the settings and switch to raw mode; the caller has made sure of the foreground.

        Args:
            announce: told what to set back and from what, before anything is changed, so that whoever
                restores for us if we are killed knows it at any moment; and again if it turned out otherwise.
        """
        current = get_attributes(self.read_fd)
        if current is None:
            return False
        wanted = raw(current)
        if announce is not None:
            announce(current, wanted)
        if not set_attributes(self.read_fd, wanted):
            return False
        # read back: the kernel may have refused single flags, and restore() compares
        self.saved, self.made = current, get_attributes(self.read_fd)
        if announce is not None and self.made != wanted:
            announce(current, self.made)
        return True

    def restore(self) -> None:
        """Give the settings back, only if they are still as make_raw left them."""
        restore(self.read_fd, self.saved, self.made)
        self.saved = self.made = None


def restore(fd: int, saved: Attributes | None, made: Attributes | None) -> None:
    """Set `saved` if the terminal's settings still are `made`: what somebody else set is theirs."""
    if saved is not None and get_attributes(fd) == made:
        set_attributes(fd, saved)
