"""The only place that sets signal handlers: signals become bytes of a pipe, and dispositions are inherited.

Handlers do nothing but exist; the interpreter writes each signal's number into the pipe, which the poll loop
reads. What the command inherits is decided here too, because the interpreter itself ignores SIGPIPE and
SIGXFSZ at start-up, which the command must not inherit, unless our caller did so.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as signal  # noqa: PLC0414 - exported: the modules beside this one take it from here
    from collections.abc import Iterable
else:
    # The C module itself: its wrapper makes enums of the numbers, which takes longer than all of our imports.
    import _signal as signal

FORWARDED = (
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGTSTP,
    signal.SIGCONT,
    signal.SIGUSR1,
    signal.SIGUSR2,
)
"""Signals that go on to the command's process group."""

_PYTHON_IGNORES = tuple(
    getattr(signal, name) for name in ("SIGPIPE", "SIGXFSZ", "SIGXFZ") if hasattr(signal, name)
)

_SHELLS = frozenset(("sh", "bash", "zsh", "fish", "dash", "ksh", "mksh", "nu", "xonsh", "busybox", "tcsh"))


def block_all() -> Iterable[int]:
    """Hold back every signal; returns the mask to set again. For the moments around fork."""
    return signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())


def unblock(mask: Iterable[int]) -> None:
    """Set a mask that block_all returned."""
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def ignored_by_caller(proc: str = "/proc") -> tuple[int, ...]:
    """Those of the signals the interpreter ignores by itself that our caller ignored already.

    Only its parent can tell, and only on Linux: a shell with `trap '' PIPE` has the signal ignored itself.
    Other parents (a Python program, say) ignore it for themselves and hand on the default.
    """
    try:
        with open(f"{proc}/{os.getppid()}/status", "rb") as file:
            status = file.read(8192)
    except OSError:
        return ()
    name = _field(status, b"Name:").decode("ascii", "replace")
    if name.lstrip("-") not in _SHELLS:
        return ()
    try:
        mask = int(_field(status, b"SigIgn:"), 16)
    except ValueError:
        return ()
    return tuple(number for number in _PYTHON_IGNORES if mask >> (number - 1) & 1)


def _field(status: bytes, name: bytes) -> bytes:
    start = status.find(b"\n" + name) + 1 if not status.startswith(name) else 0
    end = status.find(b"\n", start)
    return status[start + len(name) : end].strip()


def inherit(ignored: Iterable[int]) -> None:
    """Just before exec: give back the dispositions our caller had.

    Handlers would go by themselves at exec, but a signal that arrives before must find the default, not them.
    """
    for number in _PYTHON_IGNORES:
        signal.signal(number, signal.SIG_IGN if number in ignored else signal.SIG_DFL)
    for number in (*FORWARDED, signal.SIGWINCH, signal.SIGCHLD):
        if number in ignored:
            signal.signal(number, signal.SIG_IGN)
        elif signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


def reset() -> None:
    """Everything at its default, for a helper that stands on its own."""
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        if signal.getsignal(number) is not None:
            signal.signal(number, signal.SIG_DFL)


def heed(number: int) -> bool:
    """Give a signal its default in this process; whether our caller had it ignored."""
    ignored = signal.getsignal(number) is signal.SIG_IGN
    signal.signal(number, signal.SIG_DFL)
    return ignored


def ignore(numbers: Iterable[int]) -> None:
    """Ignore them in this process."""
    for number in numbers:
        signal.signal(number, signal.SIG_IGN)


def _arrived(_number: int, _frame: object) -> None:
    """Exist only so that the interpreter writes to the pipe."""


class SignalPipe:
    """Signals as bytes of a pipe, readable at `fd`."""

    __slots__ = ("_write", "fd")

    def __init__(self) -> None:
        self.fd, self._write = os.pipe()
        os.set_blocking(self.fd, False)
        os.set_blocking(self._write, False)
        signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)

    def catch(self, numbers: Iterable[int]) -> None:
        """Have these arrive from now on; one that our caller ignores stays ignored, as nohup wants it."""
        for number in numbers:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, _arrived)

    def take(self) -> bytes:
        """The numbers of the signals that arrived, in order."""
        try:
            return os.read(self.fd, 4096)
        except BlockingIOError:
            return b""

    def close(self) -> None:
        """Stop writing to the pipe; the handlers stay until exec or exit."""
        signal.set_wakeup_fd(-1)
        os.close(self.fd)
        os.close(self._write)


def stop_job(number: int, pipe: SignalPipe) -> tuple[bool, bytes]:
    """Stop our whole job as the terminal's Ctrl-Z would, and return when it goes on.

    Returns:
        Whether it really stopped, and the other signals that arrived meanwhile. The kernel discards the
        stop of an orphaned process group (no shell could ever continue it); then no SIGCONT arrived.
    """
    before = pipe.take()
    # the C library's default action, for this one delivery
    previous = signal.signal(number, signal.SIG_DFL)
    os.killpg(0, number)
    arrived = pipe.take()
    signal.signal(number, previous)
    stopped = bytes((signal.SIGCONT,)) in arrived
    return stopped, (before + arrived).replace(bytes((signal.SIGCONT,)), b"")


def die_by(number: int) -> int:
    """End this process by the signal `number`, without a core file; returns only if that failed."""
    import resource

    try:
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    except (OSError, ValueError):
        pass  # at worst there is a core file
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (number,))
    os.kill(os.getpid(), number)
    return 128 + number
