"""Which process reports, where the wrapped command is a shell, a script or a launcher, and when it is gone.

A terminal does not say who wrote to it. But when a report has just come, its program is in the terminal's
foreground process group: the group's leader, or below it past shells. What is an agent is told to us; nothing
here knows one by name. Its end is waited for by the kernel's own means (pidfd, kqueue), so nothing wakes up
meanwhile; a pid that was used again cannot be mistaken for it.
"""

from __future__ import annotations

import os
import select
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

SHORT_LIVED = 0.25
"""Seconds: a process that lived no longer has reported for somebody else (printf, `agentwrap report`)."""

TICK = 0.01
"""Seconds to which a process's start is known: what a script started so close to a report did not make it."""

LOOK = 1.0
"""Seconds between two looks where the system cannot tell an end by itself."""


class Process:
    """One row of the process table. `started`: seconds since boot on Linux, since the epoch elsewhere."""

    __slots__ = ("argv", "group", "parent", "pid", "started")

    def __init__(self, pid: int, parent: int, group: int, started: float, argv: tuple[str, ...]) -> None:
        self.pid = pid
        self.parent = parent
        self.group = group
        self.started = started
        self.argv = argv


def clock() -> float:
    """The time now on the clock that tells when processes started."""
    boottime = getattr(time, "CLOCK_BOOTTIME", None)
    return time.time() if boottime is None else time.clock_gettime(boottime)


def age(process: Process) -> float:
    """Seconds since it started."""
    return clock() - process.started


def exists(process: Process) -> bool:
    """Whether it, and not another one with its pid, is there."""
    return any(each.started == process.started for each in _rows((process.pid,)))


def reporter(
    table: Iterable[Process],
    group: int,
    is_agent: Callable[[tuple[str, ...]], bool],
    is_shell: Callable[[tuple[str, ...]], bool],
    reported: float,
) -> Process | None:
    """The process that most likely reports, of those in the foreground process group; None for a shell.

    Args:
        table: all processes of the session.
        group: the foreground process group.
        is_agent: whether a command line is a known agent's.
        is_shell: whether it is a shell's, running a script or not.
        reported: when the report came, on `clock`. What a script started since has not made it, nor has
            `agentwrap report`, which speaks for the script.
    """
    members = [
        process
        for process in table
        if process.group == group
        # a program may report at once; only what others in its group start can come right behind a report
        and process.started <= reported - (0.0 if process.pid == group else TICK)
        and not _speaks_for_another(process)
    ]
    by_pid = {process.pid: process for process in members}
    current = by_pid.get(group)
    if current is None:
        # the leader of a pipeline may have ended before the others
        outsiders = [each for each in members if each.parent not in by_pid]
        current = min(outsiders, key=lambda each: each.started, default=None)
    agents = [each for each in members if is_agent(each.argv)]
    if agents:
        return min(agents, key=lambda each: each.started)  # agents may start more of themselves
    while current is not None and is_shell(current.argv):
        children = [each for each in members if each.parent == current.pid]
        # of a script's children the one started last is the one it waits for; others are helpers
        current = max(children, key=lambda each: (each.started, each.pid), default=None)
    return current


def _speaks_for_another(process: Process) -> bool:
    """Whether it is `agentwrap report`, started by its name or as a module."""
    words = process.argv[:5]
    named = any(word.rpartition("/")[2] == "agentwrap" for word in words)
    return named and "report" in words


def table(session: int) -> list[Process]:
    """The processes of one session (named by its leader's pid); empty where the system does not tell."""
    return [process for process in _rows() if _session(process.pid) == session]


def _session(pid: int) -> int:
    try:
        return os.getsid(pid)
    except OSError:
        return -1  # it has ended, or is hidden from us


def _rows(pids: Iterable[int] | None = None) -> list[Process]:
    if os.path.isdir("/proc/self"):
        return _rows_of_proc(pids)
    return _rows_by_psutil(pids)


def _rows_of_proc(pids: Iterable[int] | None, proc: str = "/proc") -> list[Process]:
    found = []
    ticks = os.sysconf("SC_CLK_TCK")
    names = [name for name in os.listdir(proc) if name.isdigit()] if pids is None else map(str, pids)
    for name in names:
        try:
            with open(f"{proc}/{name}/stat", "rb") as file:
                fields = file.read(1024).rpartition(b")")[2].split()
            with open(f"{proc}/{name}/cmdline", "rb") as file:
                words = file.read(4096).split(b"\0")
        except OSError:
            continue  # it has ended while we looked
        if fields[0] == b"Z":
            continue
        argv = tuple(word.decode("utf-8", "replace") for word in words[:-1])
        found.append(Process(int(name), int(fields[1]), int(fields[2]), int(fields[19]) / ticks, argv))
    return found


def _rows_by_psutil(pids: Iterable[int] | None) -> list[Process]:
    """For systems without /proc. Late: only where a program inside a shell or script reports."""
    import psutil

    found = []
    for pid in psutil.pids() if pids is None else pids:
        try:
            process = psutil.Process(pid)
            if process.status() == psutil.STATUS_ZOMBIE:
                continue
            started, argv = process.create_time(), tuple(process.cmdline())
            found.append(Process(pid, process.ppid(), os.getpgid(pid), started, argv))
        except (psutil.Error, OSError):
            continue
    return found


class Watch:
    """Waits for the end of one process that is not our child.

    Attributes:
        fd: becomes readable when it has ended.
        process: the process.
    """

    __slots__ = ("_close", "fd", "process")

    def __init__(self, process: Process, fd: int, close: Callable[[], None]) -> None:
        self.process = process
        self.fd = fd
        self._close = close

    @classmethod
    def start(cls, process: Process) -> Watch | None:
        """Watch `process`; None where the system cannot. One that has ended already is readable at once."""
        try:
            if hasattr(os, "pidfd_open"):
                return cls._by_descriptor(process, os.pidfd_open(process.pid))
            if hasattr(select, "kqueue"):
                return cls._by_kqueue(process)
        except ProcessLookupError:
            reading, writing = os.pipe()
            os.close(writing)
            return cls._by_descriptor(process, reading)
        except OSError:
            pass  # a kernel without it, a sandbox, or no descriptor left
        return None

    @classmethod
    def _by_descriptor(cls, process: Process, fd: int) -> Watch:
        return cls(process, fd, lambda: os.close(fd))

    @classmethod
    def _by_kqueue(cls, process: Process) -> Watch:
        system: Any = select  # the names are there only on macOS and the BSDs
        queue = system.kqueue()
        event = system.kevent(
            process.pid,
            filter=system.KQ_FILTER_PROC,
            flags=system.KQ_EV_ADD,
            fflags=system.KQ_NOTE_EXIT,
        )
        try:
            queue.control([event], 0)
        except OSError:
            queue.close()
            raise
        return cls(process, queue.fileno(), queue.close)

    def close(self) -> None:
        """Stop watching."""
        self._close()
