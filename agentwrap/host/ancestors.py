"""The terminal of whoever started us, for a process that has none of its own.

Agents start their hooks in a session of their own, where /dev/tty does not exist. The nearest ancestor that
has a controlling terminal is the agent, and its terminal the one that shows it. On the path of every hook:
nothing heavy is imported.
"""

from __future__ import annotations

import os
import stat

DEEPEST = 32
"""Ancestors looked at: between a hook and its agent are a shell or two."""

_FLAGS = os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW


def open_terminal() -> int | None:
    """Open the controlling terminal of the nearest ancestor that has one, for writing; None if none has."""
    found = _from_proc() if os.path.exists("/proc/self/stat") else _from_ps()
    if found is None:
        return None
    path, device = found
    try:
        fd = os.open(path, _FLAGS)
    except OSError:
        return None
    is_it = os.fstat(fd)
    if stat.S_ISCHR(is_it.st_mode) and device in (None, is_it.st_rdev) and os.isatty(fd):
        return fd
    os.close(fd)
    return None


def _from_proc() -> tuple[str, int | None] | None:
    pid = os.getppid()
    for _ in range(DEEPEST):
        try:
            fd = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            line = os.read(fd, 2048)
        except OSError:
            return None
        finally:
            os.close(fd)
        fields = line[line.rfind(b")") + 2 :].split()  # the name before it may hold anything
        if len(fields) < 5:
            return None
        device = int(fields[4])
        if device:
            return _linux(device & 0xFFFFFFFF)
        pid = int(fields[1])
        if pid <= 1:
            return None
    return None


def _linux(device: int) -> tuple[str, int] | None:
    """Path and number of the terminal that the kernel names by `device`."""
    major = device >> 8 & 0xFFF
    minor = device & 0xFF | device >> 12 & 0xFFF00
    if 136 <= major <= 143:
        return f"/dev/pts/{(major - 136) * 256 + minor}", os.makedev(major, minor)
    if major == 4 and 0 < minor < 64:
        return f"/dev/tty{minor}", os.makedev(major, minor)
    return None  # a serial line: nobody wraps an agent there


def _from_ps() -> tuple[str, int | None] | None:
    reading, writing = os.pipe()
    words = ["ps", "-A", "-o", "pid=,ppid=,tty="]
    actions = [
        (os.POSIX_SPAWN_DUP2, writing, 1),
        (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
    ]
    try:
        child = os.posix_spawn("/bin/ps", words, {"LC_ALL": "C"}, file_actions=actions)
    except OSError:
        os.close(reading)
        return None
    finally:
        os.close(writing)
    data = b""
    with open(reading, "rb") as file:
        data = file.read()
    os.waitpid(child, 0)
    return nearest(data.decode("ascii", "replace"), os.getppid())


def nearest(table: str, pid: int) -> tuple[str, None] | None:
    """The terminal of `pid` or its nearest ancestor with one; `table`: process, parent, terminal a line."""
    rows = {}
    for line in table.splitlines():
        fields = line.split()
        if len(fields) == 3:
            rows[fields[0]] = fields[1:]
    wanted = str(pid)
    for _ in range(DEEPEST):
        parent, terminal = rows.get(wanted, ("", ""))
        if not parent:
            return None
        if "?" not in terminal and terminal != "-":
            return f"/dev/{terminal}", None
        wanted = parent
    return None
