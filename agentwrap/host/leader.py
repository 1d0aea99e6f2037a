"""The session leader: a small process of ours that leads the session on the command's terminal.

It forks the command into a foreground process group of its own, so that the group is not orphaned and Ctrl-Z
works; it waits for it and tells the pump. It outlives the pump as its guardian: when the pump is gone without
a farewell, it undoes the terminal's modes from shared memory, ends the command, and corrects the state
directory. And since its time is nobody's byte, it does what may wait for a disk or another process: state
files, and handing notifications to their helper.

Lines from the pump: `K n` signal the command, `F 0|1` the job is in the foreground, `A hex` the terminal's
settings, `P json` publish, `D text` debug log, `N json` a notification, `V json` an event for `explain`,
`W time` something reported then (`processes.clock`), `W 0` nothing reports any more, `Q` all is done.

Lines to the pump: `S pid` started, `E errno` cannot be executed, `T n` stopped by signal n,
`C` continued, `X status` ended (a wait status), `R json` from the notification helper,
`G pid` the program that reported, one that the command started, is gone.
"""

from __future__ import annotations

import fcntl
import marshal
import os
import termios
import time

from agentwrap.host import child, lines, poller, processes, signals, terminal
from agentwrap.host.signals import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import NoReturn, Protocol, TypeVar

    from agentwrap.host.guard import UndoMemory
    from agentwrap.host.publisher import Publisher

    Result = TypeVar("Result")

    class Naming(Protocol):
        """Tells what a command line is."""

        def is_agent(self, argv: tuple[str, ...]) -> bool:
            """Whether it is a known agent's."""

        def is_shell(self, argv: tuple[str, ...]) -> bool:
            """Whether it is a shell's."""


GRACE = 2.0
"""Seconds between hangup and kill for a command whose pump is gone; it gets TERM halfway."""

BURIAL = 0.2
"""Seconds to wait for a killed session leader to be gone."""

UNDO_WAIT = 0.5
"""Seconds to wait for a stalled terminal to take the bytes that undo its modes."""

_IGNORED = (
    signal.SIGHUP,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGTERM,
    signal.SIGTSTP,
    signal.SIGTTIN,
    signal.SIGTTOU,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGPIPE,
    signal.SIGALRM,
)
# Signals for the job reach the pump, which passes them on; the leader only follows the command and the pump.

ABORT = b"\x18\x1b\\"
"""CAN and ST: end whatever sequence or string the pump was killed in. Harmless in the ground state."""

WITHIN = b"\x1b[?2026l\x1b]8;;\x1b\\\x1b[m\x1b[?25h"
"""What a frame cut short may leave open, which nobody can tell any more."""


class Leader:
    """The session leader's own loop. Made in the forked process."""

    def __init__(
        self,
        slave: int,
        reading: int,
        writing: int,
        tty: int,
        memory: UndoMemory,
        publisher: Publisher,
        naming: Naming,
    ) -> None:
        self.naming = naming
        self.watch: processes.Watch | None = None
        self.looked: processes.Process | None = None
        self.look_at = 0.0
        self.slave = slave
        self.pump = lines.LineReader(reading)
        self.to_pump = lines.LineWriter(writing)
        self.tty = tty
        self.memory = memory
        self.publisher = publisher
        self._waiter = poller.make()
        self.pid = 0
        self.errors = -1
        self.status: int | None = None
        self.foreground = True
        self.inner_group = 0
        self.attributes: tuple[terminal.Attributes, terminal.Attributes] | None = None
        self.pump_gone: float | None = None
        self.farewell = False
        self.failed = False

    # ---- the command ----

    def start(self, launch: child.Launch, *, foreground: bool, mask: Iterable[int]) -> None:
        """Lead a session on the command's terminal, and fork the command. All signals are blocked so far."""
        self.foreground = foreground
        # Where our caller ignores the end of children, the system would not keep ours for us to ask.
        if signals.heed(signal.SIGCHLD):
            launch.ignored = (*launch.ignored, signal.SIGCHLD)
        errors = failed = pid = -1
        try:
            os.setsid()
            fcntl.ioctl(self.slave, termios.TIOCSCTTY, 0)
            errors, failed = os.pipe()
            pid = os.fork()
        except OSError as error:
            # No process is to be had; or the pump was just killed, and its terminal is to be seen to.
            self.status = 127 << 8
            self.to_pump.send("E", str(error.errno))
            self.to_pump.send("X", str(self.status))
        if pid == 0:
            child.become(launch, self.slave, failed, foreground=foreground, mask=mask)
        if self.status is None:
            os.close(failed)
            self._started(pid, foreground=foreground)
        signals.ignore(_IGNORED)
        self.signal_pipe = signals.SignalPipe()
        self.signal_pipe.catch((signal.SIGCHLD,))
        signals.unblock(mask)
        # Not waited for: the command may be stopped before it has executed.
        if self.status is None:
            os.set_blocking(errors, False)
            self.errors = errors

    def _started(self, pid: int, *, foreground: bool) -> None:
        try:
            os.setpgid(pid, pid)  # whichever of the two comes first
        except OSError:
            pass  # it has executed already, so it did so itself
        self.pid = self.inner_group = pid
        if foreground:
            self._give_foreground(pid)
        # Only now may keys come: a Ctrl-C before would have been ours.
        self.to_pump.send("S", str(pid))

    def executed(self) -> None:
        """The command has executed, or not: then say why."""
        try:
            refused = os.read(self.errors, 16)
        except BlockingIOError:
            return
        os.close(self.errors)
        self.errors = -1
        if refused:
            self.to_pump.send("E", refused)

    def reap(self) -> None:
        """Take in what changed with our children."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG | os.WUNTRACED | os.WCONTINUED)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid != self.pid:
                continue  # the notification helper: the end of its output tells
            if os.WIFSTOPPED(status):
                self.to_pump.send("T", str(os.WSTOPSIG(status)))
            elif os.WIFCONTINUED(status):
                self.to_pump.send("C")
            else:
                self._last_word()
                self.status = status
                # What the command leaves behind in its group is not hung up when the terminal goes.
                self._give_foreground(os.getpgrp())
                self.to_pump.send("X", str(status))

    def _last_word(self) -> None:
        """Why it could not be executed is told before that it has ended."""
        if self.errors >= 0:
            self._waiter.want(self.errors, 0)
            self.executed()

    def signal(self, number: int) -> None:
        """Signal the command's process group, while it is still ours to name."""
        if self.status is not None:
            return
        try:
            os.killpg(self.pid, number)
        except OSError:
            try:
                os.kill(self.pid, number)
            except OSError:
                pass  # ended this very moment

    def set_foreground(self, *, foreground: bool) -> None:
        """Let the inner terminal tell the command what the outer one tells our job."""
        if foreground == self.foreground:
            return
        self.foreground = foreground
        if foreground:
            self._give_foreground(self.inner_group)
            return
        try:
            group = os.tcgetpgrp(self.slave)
        except OSError:
            return
        if group not in (0, os.getpgrp()):
            self.inner_group = group  # a wrapped shell may have given it to a job of its own
        self._give_foreground(os.getpgrp())

    def _give_foreground(self, group: int) -> None:
        try:
            os.tcsetpgrp(self.slave, group)
        except OSError:
            if group != self.pid:
                try:
                    os.tcsetpgrp(self.slave, self.pid)
                except OSError:
                    pass  # the command has gone, or its terminal

    # ---- who reports ----

    def watch_reporter(self, reported: float) -> None:
        """Something has reported just then: if that is not the command itself, wait for its end."""
        try:
            group = os.tcgetpgrp(self.slave)
            found = processes.reporter(
                processes.table(os.getpid()), group, self.naming.is_agent, self.naming.is_shell, reported
            )
        except Exception:  # noqa: BLE001 - whatever the process table holds, the command must live
            return  # then the state ends with the command, or with the next report
        if found is None or found.pid == self.pid:
            return
        self.watch = processes.Watch.start(found)
        if self.watch is not None:
            self._waiter.want(self.watch.fd, poller.READ)
        else:
            self.looked = found
            self.look_at = time.monotonic() + processes.LOOK

    def unwatch(self) -> None:
        """Nothing reports any more, or what did is gone."""
        if self.watch is not None:
            self._waiter.want(self.watch.fd, 0)
            self.watch.close()
        self.watch = self.looked = None

    def reporter_ended(self, process: processes.Process) -> None:
        """Tell the pump, unless the process was too short-lived to have reported for itself."""
        self.unwatch()
        if processes.age(process) > processes.SHORT_LIVED:
            self.to_pump.send("G", str(process.pid))

    # ---- the loop ----

    def run(self) -> NoReturn:
        """Serve until the pump says farewell, or until all is cleaned up after it."""
        waiter = self._waiter
        waiter.want(self.pump.fd, poller.READ)
        waiter.want(self.signal_pipe.fd, poller.READ)
        if self.errors >= 0:
            waiter.want(self.errors, poller.READ)
        self.publisher.watch(waiter)
        while True:
            waiter.want(self.to_pump.fd, poller.WRITE if self.to_pump.waiting else 0)
            for fd, _ in waiter.wait(self._timeout()):
                if fd == self.pump.fd:
                    self._listen(waiter)
                elif fd == self.signal_pipe.fd:
                    self.signal_pipe.take()
                elif fd == self.errors:
                    waiter.want(fd, 0)
                    self.executed()
                elif self.watch is not None and fd == self.watch.fd:
                    self.reporter_ended(self.watch.process)
                elif fd == self.to_pump.fd:
                    self.to_pump.flush()
                else:
                    for line in self._work(self.publisher.ready, fd) or ():
                        self.to_pump.send("R", line, droppable=True)
            self.reap()
            now = time.monotonic()
            self._work(self.publisher.tick, now)
            if self.looked is not None and now >= self.look_at:
                self.look_at = now + processes.LOOK
                if not processes.exists(self.looked):
                    self.reporter_ended(self.looked)
            if self.pump_gone is not None:
                self._end_command(time.monotonic())
            if self.farewell or (self.pump_gone is not None and self.status is not None):
                self._work(self.publisher.remove, last=True)
                os.close(self.to_pump.fd)  # the pump waits for this
                self._work(self.publisher.finish, last=True)
                os._exit(0)

    def _work(self, call: Callable[..., Result], *args: object, last: bool = False) -> Result | None:
        """Do a piece of work that is not the command's. If it fails, no more of it: the command must live."""
        if self.failed and not last:
            return None
        try:
            return call(*args)
        except Exception as error:  # noqa: BLE001 - whatever a disk or a helper did, the session goes on
            self.failed = True
            self.publisher.give_up(f"{type(error).__name__}: {error}")
            return None

    def _timeout(self) -> float | None:
        now = time.monotonic()
        timeout = self._work(self.publisher.timeout, now)
        if self.looked is not None:
            timeout = processes.LOOK if timeout is None else min(processes.LOOK, timeout)
        if self.pump_gone is not None:
            return 0.05 if timeout is None else min(0.05, timeout)
        return timeout

    def _listen(self, waiter: poller.PollPoller | poller.SelectPoller) -> None:
        for letter, rest in self.pump.take():
            if letter == "K":
                self.signal(int(rest))
            elif letter == "F":
                self.set_foreground(foreground=rest == b"1")
            elif letter == "A":
                self.attributes = marshal.loads(bytes.fromhex(rest.decode()))  # noqa: S302 - our own pump's
            elif letter == "W":
                self.unwatch()
                if rest != b"0":
                    self.watch_reporter(float(rest))
            elif letter == "Q":
                self.farewell = True
            else:
                self._work(self.publisher.line, letter, rest)
        if self.pump.ended and not self.farewell and self.pump_gone is None:
            waiter.want(self.pump.fd, 0)
            self.pump_gone = time.monotonic()
            self._undo_terminal()
            self._work(self.publisher.pump_gone, last=True)
            self._hang_up()

    # ---- the guardian ----

    def _undo_terminal(self) -> None:
        """Put the user's terminal back after the pump was killed. It was ours: raw and in the foreground."""
        if not self.memory.armed:
            return
        data = ABORT + self.memory.load() + WITHIN
        deadline = time.monotonic() + UNDO_WAIT
        while data and time.monotonic() < deadline:
            waiter = poller.make()
            waiter.want(self.tty, poller.WRITE)
            if not waiter.wait(deadline - time.monotonic()):
                break
            try:
                data = data[os.write(self.tty, data[: terminal.BLOCKING_WRITE]) :]
            except BlockingIOError:
                continue
            except OSError:
                break
        if self.attributes is not None:
            terminal.restore(self.tty, *self.attributes)

    def _hang_up(self) -> None:
        self.signal(signal.SIGHUP)
        self.signal(signal.SIGCONT)
        self._ends = [(self.pump_gone or 0.0) + GRACE / 2, (self.pump_gone or 0.0) + GRACE]

    def _end_command(self, now: float) -> None:
        """The command survived the hangup: end it, TERM first."""
        if self.status is not None or not self._ends or now < self._ends[0]:
            return
        del self._ends[0]
        self.signal(signal.SIGTERM if self._ends else signal.SIGKILL)
        self.signal(signal.SIGCONT)


def announce(writer: lines.LineWriter, saved: terminal.Attributes, made: terminal.Attributes | None) -> None:
    """From the pump: tell the guardian what to set the user's terminal back to, and from what."""
    writer.send("A", marshal.dumps((saved, made)).hex())


def bury() -> None:
    """From the pump: reap the killed session leader. What it left half written is then nobody's."""
    deadline = time.monotonic() + BURIAL
    try:
        # It closes its pipes, which told us, a moment before it can be reaped.
        while not os.waitpid(-1, os.WNOHANG)[0] and time.monotonic() < deadline:
            time.sleep(0.002)
    except ChildProcessError:
        pass


def fork(
    launch: child.Launch,
    master: int,
    slave: int,
    tty: int,
    memory: UndoMemory,
    publisher: Publisher,
    naming: Naming,
    *,
    foreground: bool,
    mask: Iterable[int],
    close: Iterable[int] = (),
) -> tuple[int, int]:
    """Fork the session leader, which forks the command.

    Args:
        launch: the command.
        master: the pump's side of the terminal, closed in the leader.
        slave: the command's side.
        tty: the user's terminal, for the guardian.
        memory: what undoes its modes.
        publisher: does the work on files and helpers, there.
        naming: tells agents and shells by their command lines.
        foreground: whether our job has the user's terminal.
        mask: the signal mask to give the command; all signals are blocked now.
        close: descriptors that are the pump's alone.

    Returns:
        The descriptors to read its lines from and to write lines to it.

    Raises:
        OSError: no process or pipe is to be had.
    """
    ends: tuple[int, ...] = os.pipe()
    try:
        ends += os.pipe()
        pid = os.fork()
    except OSError:
        for fd in ends:
            os.close(fd)
        raise
    from_pump, to_leader, from_leader, to_pump = ends
    if pid:
        os.close(from_pump)
        os.close(to_pump)
        return from_leader, to_leader
    try:
        for fd in (to_leader, from_leader, master, *close):
            os.close(fd)
        leader = Leader(slave, from_pump, to_pump, tty, memory, publisher, naming)
        leader.start(launch, foreground=foreground, mask=mask)
        leader.run()
    finally:
        # no exception of this process may print on the user's terminal or run the pump's clean-up
        os._exit(70)
