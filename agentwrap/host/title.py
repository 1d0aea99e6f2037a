"""Our own process under the command's name, for what looks at the foreground process of a terminal.

tmux names its windows after the first word in /proc/PID/cmdline of the foreground process group's leader,
which is us, not the command: it would say python. Session managers restore what they find there, others look
at the short name (`ps -o comm`). So the pump takes the command's words and name; the session leader, which is
in no foreground, keeps its own, and with them shows what runs.

Linux alone allows this at no cost: the words a process was started with are a part of its memory, and
/proc/self/mem writes there. macOS takes a process's name from the file that was executed, for good, and has
no such file; there `#{@agentwrap_agent}` tells tmux (see `host.panes`).
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

NAME_LIMIT = 15
"""Bytes of a process's short name: TASK_COMM_LEN in <linux/sched.h>, less the NUL."""

_START = 45  # arg_start in proc(5), field 48, counted behind the name; arg_end follows


def take(command: Sequence[str]) -> bool:
    """Show the words of `command` as this process's own, as far as the room of our own words goes.

    Returns:
        Whether that worked; nothing depends on it.
    """
    words = b"".join(os.fsencode(word) + b"\0" for word in command)
    name = os.path.basename(os.fsencode(command[0]))[:NAME_LIMIT]
    try:
        fields = _read("/proc/self/stat").rpartition(b")")[2].split()
        start, end = int(fields[_START]), int(fields[_START + 1])
        size = end - start
        if size <= 0:
            return False
        # The last byte stays NUL: without, the system would read on into the environment.
        _write("/proc/self/mem", words[: size - 1].ljust(size, b"\0"), start)
        _write("/proc/self/comm", name, None)
    except (OSError, ValueError, IndexError):
        return False
    return True


def _read(path: str) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, 4096)
    finally:
        os.close(fd)


def _write(path: str, data: bytes, offset: int | None) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        if offset is None:
            os.write(fd, data)
        else:
            os.pwrite(fd, data, offset)
    finally:
        os.close(fd)
