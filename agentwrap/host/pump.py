"""The pump: moves every byte between the user's terminal and the command's, both ways, in one loop.

Mechanism only. What the bytes mean is the client's business: it is shown each chunk (a tap, not a filter) and
says what to put in between. Nothing here waits for anything but the poller: no disk, no network, no other
process. Both directions are non-blocking with bounded queues; a full queue stops reading from the other side,
which holds that side back as a slow terminal or a busy command would without us.
"""

from __future__ import annotations

import errno
import os
import sys
import time

from agentwrap.host import leader, poller, signals, terminal
from agentwrap.host.signals import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    from agentwrap.host.guard import UndoMemory
    from agentwrap.host.lines import LineReader, LineWriter

    class Writer(Protocol):
        """Something with a queue towards a non-blocking descriptor."""

        fd: int

        @property
        def waiting(self) -> bool:
            """Whether something waits to be written."""

        def flush(self) -> None:
            """Write what the descriptor takes."""

    class Client(Protocol):
        """Who understands the bytes. No method may block."""

        def output(self, data: bytes, now: float, *, more: bool = False) -> bool:
            """The command wrote `data`; called before the terminal gets it, unless it is text.

            Args:
                data: what it wrote.
                now: when.
                more: the next call, whose data may be empty, follows at once.

            Returns:
                Whether a sequence is open behind it, so that what follows is no text yet.
            """

        def typed(self, data: bytes, now: float) -> bytes:
            """The terminal sent `data`; returns what goes to the command."""

        def tick(self, now: float) -> bytes:
            """A deadline may have passed; returns bytes for the command."""

        def deadline(self) -> float | None:
            """When to call tick, at the latest."""

        def insert(self, now: float) -> bytes:
            """Bytes that are due for the command now (replies)."""

        def between(self) -> bytes:
            """Bytes for the terminal that may go between two chunks now; called when those were passed on."""

        def undo(self) -> bytes:
            """What undoes the modes that are on, whatever sequence is open."""

        def redo(self) -> bytes:
            """What sets them again."""

        def resized(self, columns: int, rows: int, now: float) -> None:
            """The terminal has this size now."""

        def stopped(self, now: float) -> None:
            """The command has stopped, and we are about to."""

        def resumed(self, now: float) -> None:
            """It goes on."""

        def started(self, pid: int, now: float) -> None:
            """It has a pid."""

        def ended(self, status: int, forwarded: frozenset[int], now: float) -> None:
            """It has ended with this wait status; these signals were sent to it through us."""

        def reported(self, line: bytes, now: float) -> None:
            """The notification helper said something."""

        def reporter_gone(self, now: float) -> None:
            """The program that reported, one that the command started, has ended."""


READ = 65536 if sys.platform == "darwin" else 4096
"""Bytes asked for at once. A PTY of Linux gives at most 4095."""

FULL_READ = 1024 if sys.platform == "darwin" else 4095
"""A read of so much was cut short, and more is there or about to be."""

BURST = 16
"""Full reads taken one after the other, each passed on at once, before anything else is looked at: so many
that looking costs little beside them, so few that a key does not wait for long. More in one piece would be
slower: the other programs would stand still while we look at it, and we while they do."""

BURST_TIME = 0.005
"""Seconds after which no further read is taken so: some output takes milliseconds a read to be understood."""

OUTPUT_QUEUE = 64 * 1024
"""Bytes that may wait for the terminal before the command is held back. Small, so that after Ctrl-C little
old output follows; the contract allows 1 MiB."""

INPUT_QUEUE = 64 * 1024
"""Bytes that may wait for the command before the terminal is held back."""

LAST_OUTPUT = 256 * 1024
"""Bytes read after the command has ended: more than a PTY holds, so all of its own output, but not for ever
that of a background process it left behind."""

FATAL = frozenset((signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM))
"""Signals by which somebody wants the command, and so us, to be gone."""

LAST_WORDS = 1.0
"""Seconds that a terminal which takes nothing may hold us after such a signal has ended the command."""

SETTLE = 0.5
"""Seconds a terminal that takes nothing may delay a stop or the end."""

BACKGROUND_LOOK = 0.2
"""Seconds between looks at the foreground while in the background: `fg` of a running job sends no signal."""

GRACE = 2.0
"""Seconds a command has after its terminal vanished, then again after TERM."""

_ENDING = (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP)
# What ends a program that waits for its terminal.

LEADER_END = 1.0
"""Seconds to wait for the session leader's last writes."""


class Tapless:
    """The client when the real one has failed: bytes go on, nothing is understood any more."""

    def __init__(self, undo: bytes) -> None:
        self._undo = undo

    def output(self, data: bytes, now: float, *, more: bool = False) -> bool:
        """Understand nothing."""
        return False

    def typed(self, data: bytes, now: float) -> bytes:
        """Pass it on."""
        return data

    def tick(self, now: float) -> bytes:
        """Nothing is ever due."""
        return b""

    def deadline(self) -> None:
        """Nothing is ever due."""
        return

    def insert(self, now: float) -> bytes:
        """No replies."""
        return b""

    def between(self) -> bytes:
        """No notifications."""
        return b""

    def undo(self) -> bytes:
        """What was known last."""
        return self._undo

    def redo(self) -> bytes:
        """Unknown."""
        return b""

    def resized(self, columns: int, rows: int, now: float) -> None:
        """Say nothing."""

    def stopped(self, now: float) -> None:
        """Say nothing."""

    def resumed(self, now: float) -> None:
        """Say nothing."""

    def started(self, pid: int, now: float) -> None:
        """Say nothing."""

    def ended(self, status: int, forwarded: frozenset[int], now: float) -> None:
        """Say nothing."""

    def reported(self, line: bytes, now: float) -> None:
        """Say nothing."""

    def reporter_gone(self, now: float) -> None:
        """Say nothing."""


class Pump:
    """One session's loop. `run` returns the command's wait status."""

    def __init__(
        self,
        user: terminal.Terminal,
        master: int,
        reader: LineReader,
        writer: LineWriter,
        pipe: signals.SignalPipe,
        client: Client,
        memory: UndoMemory,
        *,
        foreground: bool,
        ahead: bytes,
        inner: terminal.Attributes | None,
        take_over: Callable[[], None],
    ) -> None:
        os.set_blocking(master, False)
        self._take_over = take_over
        self.user = user
        self.master = master
        self.reader = reader
        self.writer = writer
        self.pipe = pipe
        self.client: Client = client
        self.memory = memory
        self.foreground = foreground
        self.writers: list[Writer] = [writer]
        self.child = 0
        self.exec_error = 0
        self.status: int | None = None
        self.failure: str | None = None
        self._poller = poller.make()
        self._out = bytearray()
        self._in = bytearray(ahead)
        self._master_open = True
        self._open = False  # the output so far ends within a sequence
        self._last_output = LAST_OUTPUT
        self._drained = False
        self._vanished = False
        self._ends: list[tuple[float, int]] = []
        self._forwarded: set[int] = set()
        self._give_up: float | None = None
        self._leader_gone = False
        self._suspended = False
        self._undone = False  # at a stop, and not set again yet
        self._inner = inner  # as the command found its terminal's settings, or as we set them since
        self._wanted: tuple[object, ...] = ()  # what decided for what is waited
        self._next: float | None = None  # the client's deadline when the wait began

    # ---- the loop ----

    def run(self) -> int:
        """Move bytes until the command has ended and all its output is out; then clean up.

        Returns:
            The command's wait status. `exec_error` is set where it could not be executed.
        """
        while not (self._drained and not self._out) and not self._given_up():
            self._want()
            self._turn(self._timeout())
        self._finish()
        return self.status if self.status is not None else signal.SIGHUP

    def _given_up(self) -> bool:
        """Whether somebody has ended the command by a signal to us, and the terminal takes nothing more.

        Without us it would have been gone at once, whatever the terminal does.
        """
        if self._forwarded.isdisjoint(FATAL) or self.status is None:
            return False
        if not self._drained and len(self._out) < OUTPUT_QUEUE:
            return False
        if self._give_up is None:
            self._give_up = time.monotonic() + LAST_WORDS
        return time.monotonic() >= self._give_up

    def _turn(self, timeout: float | None) -> None:
        user = self.user
        for fd, ready in self._poller.wait(timeout):
            if fd == self.master:
                if ready & poller.READ:
                    self._read_command()
                if ready & poller.WRITE:
                    self._write_command(b"")
            elif fd == user.read_fd or fd == user.write_fd:  # noqa: PLR1714 - hot, and no tuple to build
                if ready & poller.WRITE:
                    self._flush()
                if ready & poller.READ and fd == user.read_fd:
                    self._read_user()
            elif fd == self.reader.fd:
                self._listen()
            elif fd == self.pipe.fd:
                self._signals(self.pipe.take())
            else:
                for writer in self.writers:
                    if writer.fd == fd:
                        writer.flush()
        if self.status is not None and not self._drained:
            self._drain()
        self._due(time.monotonic())

    def _want(self) -> None:
        """Say to the poller what to wait for: reading only where the other side's queue has room."""
        reading = len(self._out) < OUTPUT_QUEUE
        alive = not self._vanished
        typing = len(self._in) < INPUT_QUEUE and self.foreground and self.child > 0 and self.status is None
        waiting = [writer.waiting for writer in self.writers]
        wanted = (reading, typing, alive, not self._out, not self._in, *waiting)
        if wanted == self._wanted:
            return
        self._wanted = wanted
        want = self._poller.want
        user = self.user
        if self._master_open:
            # without a reader of ours, a look at the master would only spin on its hangup
            want(self.master, (poller.READ if reading else 0) | (poller.WRITE if self._in else 0))
        # What is typed after the command's end is for whoever comes next.
        typing = typing and alive
        if user.read_fd == user.write_fd:
            want(
                user.read_fd,
                (poller.READ if typing else 0) | (poller.WRITE if self._out and alive else 0),
            )
        else:
            want(user.read_fd, poller.READ if typing else 0)
            want(user.write_fd, poller.WRITE if self._out and alive else 0)
        if not self._leader_gone:
            want(self.reader.fd, poller.READ)
        want(self.pipe.fd, poller.READ)
        for writer in self.writers:
            want(writer.fd, poller.WRITE if writer.waiting else 0)

    def _deadline(self) -> float | None:
        try:
            return self.client.deadline()
        except Exception as error:  # noqa: BLE001 - a failing tap must never stop the bytes
            self._untap(error)
            return None

    def _timeout(self) -> float | None:
        deadline = self._next = self._deadline()
        if deadline is None and self.foreground and not (self._ends or self._leader_gone or self._give_up):
            return None
        if self._ends and (deadline is None or self._ends[0][0] < deadline):
            deadline = self._ends[0][0]
        if self._give_up is not None and (deadline is None or self._give_up < deadline):
            deadline = self._give_up
        timeout = None if deadline is None else max(0.0, deadline - time.monotonic())
        if not self.foreground and not self._vanished:
            timeout = BACKGROUND_LOOK if timeout is None else min(timeout, BACKGROUND_LOOK)
        if self._leader_gone:
            timeout = 0.05 if timeout is None else min(timeout, 0.05)
        return timeout

    def _due(self, now: float) -> None:
        if self._next is not None and self._next <= now:
            try:
                data = self.client.tick(now)
            except Exception as error:  # noqa: BLE001 - a failing tap must never stop the bytes
                data = self._untap(error)
            self._write_command(data)
            self._between()
        if not self.foreground and not self._vanished:
            self._look()
        while self._ends and self._ends[0][0] <= now:
            self._signal(self._ends.pop(0)[1])
        if self._leader_gone:
            self._watch_orphan()

    # ---- the command's output ----

    def _read_command(self) -> None:
        """Take what the command has written, as long as it writes more than one read gives."""
        more = False
        until = time.monotonic() + BURST_TIME
        for left in range(BURST - 1, -1, -1):
            try:
                data = os.read(self.master, READ)
            except BlockingIOError:
                break
            except OSError:
                data = b""  # Linux says EIO when the last holder of the other side is gone, macOS end of file
            if not data:
                self._close_master()
                break
            if self.status is not None:
                self._last_output -= len(data)
            now = time.monotonic()
            more = len(data) >= FULL_READ and left > 0 and not self._out and now < until
            # Text goes first, an echo must not be late. What undoes a sequence must be known when it is out.
            text = not self._open and b"\x1b" not in data and b"\x0e" not in data
            if text:
                self._to_terminal(data)
            self._understand(data, now, more=more)
            if not text:
                self._to_terminal(data)
            if not more or self._out:
                break
        if more:
            self._understand(b"", time.monotonic(), more=False)
        self._between()
        if self.memory.unsettled and not self._out:
            self.memory.settle()  # text is out before it is understood, and what ends a burst is nothing

    def _understand(self, data: bytes, now: float, *, more: bool) -> None:
        try:
            self._open = self.client.output(data, now, more=more)
            reply = self.client.insert(now)
        except Exception as error:  # noqa: BLE001 - a failing tap must never stop the bytes
            reply = self._untap(error)
        if reply and len(self._in) < INPUT_QUEUE:
            self._write_command(reply)  # one that asks and never reads is answered no more, as by a terminal

    def _between(self) -> None:
        try:
            data = self.client.between()
        except Exception as error:  # noqa: BLE001 - a failing tap must never stop the bytes
            data = self._untap(error)
        if data:
            self._to_terminal(data)

    def _to_terminal(self, data: bytes) -> None:
        if self._vanished:
            return
        if not (self.foreground and self.user.one) and terminal.adds_carriage_returns(self.user.write_fd):
            # In the background the terminal is not raw, nor is one that is only written to: it would add to
            # what the command's own has added.
            data = data.replace(b"\r\n", b"\n")
        if self._out or not self.user.nonblocking:
            self._out += data
            return
        try:
            written = os.write(self.user.write_fd, data)
        except BlockingIOError:
            written = 0
        except OSError as error:
            self._write_failed(error)
            return
        if written < len(data):
            self._out += memoryview(data)[written:]
        elif self.memory.unsettled:
            self.memory.settle()

    def _flush(self) -> None:
        if not self._out:
            return
        data = self._out if self.user.nonblocking else self._out[: terminal.BLOCKING_WRITE]
        try:
            written = os.write(self.user.write_fd, data)
        except BlockingIOError:
            return
        except OSError as error:
            self._write_failed(error)
            return
        del self._out[:written]
        if not self._out and self.memory.unsettled:
            self.memory.settle()

    def _write_failed(self, error: OSError) -> None:
        # An orphaned background job hears EIO, too, of a terminal that is well. Any other error is the
        # terminal's own; what it did not take is lost there as without us.
        gone = error.errno in (errno.EIO, errno.ENXIO, errno.EBADF, errno.EPIPE)
        if gone and terminal.get_attributes(self.user.write_fd) is None:
            self._vanish()

    def _close_master(self) -> None:
        """Nobody holds the command's side any more, or macOS says so by an end of file."""
        if self._master_open:
            self._poller.want(self.master, 0)
            self._master_open = False
        if self.status is not None:
            self._drained = True

    def _drain(self) -> None:
        """The command has ended: take what it left in the terminal, then no more."""
        while len(self._out) < OUTPUT_QUEUE:
            if not self._master_open or self._last_output <= 0:
                self._drained = True
                return
            before = self._last_output
            self._read_command()
            if self._last_output == before:
                self._drained = True
                return

    # ---- what is typed ----

    def _read_user(self) -> None:
        try:
            data = os.read(self.user.read_fd, READ)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            # a hangup; or we have lost the foreground; or someone else changed the terminal's settings
            if terminal.get_attributes(self.user.read_fd) is None:
                self._vanish()
            else:
                self._look()
            return
        now = time.monotonic()
        try:
            data = self.client.typed(data, now)
        except Exception as error:  # noqa: BLE001 - a failing tap must never stop the bytes
            data += self._untap(error)
        if data:
            self._write_command(data)

    def _write_command(self, data: bytes) -> None:
        if not self._master_open or not (data or self._in):
            return
        if self._in:
            self._in += data
            data = bytes(self._in)
        try:
            written = os.write(self.master, data)
        except BlockingIOError:
            written = 0
        except OSError:
            written = len(data)  # nobody is left to read it
        if self._in:
            del self._in[:written]
        elif written < len(data):
            self._in += memoryview(data)[written:]

    # ---- the session leader ----

    def _listen(self) -> None:
        for letter, rest in self.reader.take():
            now = time.monotonic()
            if letter == "S":
                self.child = int(rest)
                self._tell("started", self.child, now)
            elif letter == "E":
                self.exec_error = int(rest)
            elif letter == "T":
                self._suspend(int(rest))
            elif letter == "C":
                if self._suspended:
                    self._suspended = False
                    self._tell("resumed", now)
            elif letter == "X":
                self.status = int(rest)
            elif letter == "R":
                try:
                    self.client.reported(rest, now)
                except Exception as error:  # noqa: BLE001 - a failing tap must never stop the bytes
                    self._untap(error)
                self._between()
            elif letter == "G":
                self._tell("reporter_gone", now)
                self._between()
        if self.reader.ended and not self._leader_gone:
            self._poller.want(self.reader.fd, 0)
            self._leader_gone = True
            if self.status is None:
                if self.exec_error:
                    self.status = 127 << 8
                else:
                    # Killed. The kernel has hung up the command; end it as soon as the leader would.
                    self._end_command(GRACE / 2)

    def _watch_orphan(self) -> None:
        """Without the session leader nobody waits for the command: see by other means when it has ended."""
        if self.status is None and not (self.child and _alive(self.child)):
            self.status = int(signal.SIGHUP)

    def _tell(self, what: str, *args: object) -> None:
        try:
            getattr(self.client, what)(*args)
        except Exception as error:  # noqa: BLE001 - a failing tap must never stop the bytes
            self._untap(error)

    def _untap(self, error: Exception) -> bytes:
        """Go on without the client. Returns nothing to insert."""
        self.failure = f"{type(error).__name__}: {error}"
        if isinstance(self.client, Tapless):
            return b""
        self.writer.send("D", f"tap failed, passing bytes on without it: {self.failure}")
        self.client = Tapless(self.memory.load())
        return b""

    # ---- signals ----

    def _signals(self, numbers: bytes) -> None:
        for number in numbers:
            if number == signal.SIGWINCH:
                self._resize()
            elif number == signal.SIGCONT:
                self._continued()
            elif number in signals.FORWARDED:
                self._forwarded.add(number)
                self.writer.send("D", f"signal {number} arrived, passed on to the command", droppable=True)
                if number == signal.SIGHUP and terminal.get_attributes(self.user.read_fd) is None:
                    self._vanish()  # which tells the command
                elif self.status is None:
                    self._signal(number)
                elif number in _ENDING:
                    self._out.clear()  # only a terminal that takes nothing keeps us: leave it
                    self._drained = True

    def _signal(self, number: int) -> None:
        """Send a signal to the command's process group."""
        if self.status is not None:
            return
        if not self._leader_gone:
            self.writer.send("K", str(number))  # it knows the command's pid before we do
            return
        if not self.child:
            return
        try:
            os.killpg(self.child, number)
        except OSError:
            pass  # it has ended

    def _resize(self) -> None:
        size = terminal.get_size(self.user.write_fd)
        if size is not None:
            terminal.set_size(self.master, size)
            rows, columns = terminal.rows_and_columns(size)
            self._tell("resized", columns, rows, time.monotonic())

    def _continued(self) -> None:
        """Somebody stopped us from outside (SIGSTOP) and continues us now."""
        self._look()
        if self.foreground and not self._vanished:
            # the shell has set the terminal for itself while we were away
            self._take_terminal()
        self._signal(signal.SIGCONT)

    # ---- job control ----

    def _look(self) -> None:
        """Notice that our job came to the foreground or lost it."""
        try:
            foreground = self.user.foreground()
        except terminal.VanishedError:
            self._vanish()
            return
        if foreground == self.foreground:
            return
        self.foreground = foreground
        if foreground:
            self._take_terminal()
            self._resize()
            if self._undone:
                self._set_again()
        else:
            self.memory.arm(armed=False)
        self.writer.send("F", "1" if foreground else "0")

    def _take_terminal(self) -> None:
        """Make the terminal raw, unless it still is as we made it."""
        self.memory.arm(armed=True)  # before, since we may be killed at any moment
        if self.user.saved is None or terminal.get_attributes(self.user.read_fd) != self.user.made:
            self.user.make_raw(lambda saved, made: leader.announce(self.writer, saved, made))
        if self.user.saved is None:
            self.memory.arm(armed=False)
            return
        # A job started with `&` began with whatever the shell's line editor had set, and the user may have
        # changed settings while it was stopped: what the command has not set itself follows the terminal.
        if self._inner is not None and terminal.get_attributes(self.master) == self._inner:
            terminal.set_attributes(self.master, self.user.saved)
            self._inner = terminal.get_attributes(self.master)

    def _suspend(self, number: int) -> None:
        """The command has stopped: give the terminal back, stop with it, and go on together."""
        now = time.monotonic()
        self._suspended = True
        self._settle(now + SETTLE)
        self._tell("stopped", now)
        try:
            ours = not self._vanished and self.foreground and self.user.foreground()
        except terminal.VanishedError:
            self._vanish()
            ours = False
        if self._vanished:
            self._signal(signal.SIGCONT)
            return
        if ours:
            self._to_terminal(self._undo())
            self._undone = True
            self._empty(time.monotonic() + SETTLE)  # what is written now waits until the job goes on
            self.user.restore()
            self.memory.arm(armed=False)
        self.writer.flush()
        # SIGSTOP cannot be discarded for an orphaned group, which nobody could continue: stop as Ctrl-Z does
        by = number if number in (signal.SIGTTIN, signal.SIGTTOU) else signal.SIGTSTP
        stopped, arrived = signals.stop_job(by, self.pipe)
        self.foreground = False
        self._look()
        if self.foreground and self.user.saved is None:
            self._take_terminal()
        if not self.foreground:
            self.writer.send("F", "0")  # continued in the background: if it reads, it is to stop again
        elif self._undone:
            self._set_again()
        if stopped or number != signal.SIGSTOP:
            # a stop the kernel discarded leaves the command as it would be without us: running
            self._suspended = False
            self._signal(signal.SIGCONT)
            if self.foreground:
                self._signal(signal.SIGWINCH)  # one that was stopped from outside knows of no repaint
            self._tell("resumed", time.monotonic())
        self._signals(arrived)

    def _undo(self) -> bytes:
        try:
            return self.client.undo()
        except Exception as error:  # noqa: BLE001 - the terminal must be left clean all the same
            self._untap(error)
            return self.client.undo()

    def _redo(self) -> bytes:
        try:
            return self.client.redo()
        except Exception as error:  # noqa: BLE001 - a failing tap must never stop the bytes
            return self._untap(error)

    def _set_again(self) -> None:
        """The modes that were undone at a stop, for a job that has the terminal again."""
        self._undone = False
        self._to_terminal(self._redo())

    def _settle(self, deadline: float) -> None:
        """Bring out all that the command has written so far, if the terminal takes it."""
        while self._master_open and len(self._out) < OUTPUT_QUEUE:
            before = len(self._out), self._last_output
            try:
                data = os.read(self.master, READ)
            except OSError:
                break
            if not data:
                break
            self._understand(data, time.monotonic(), more=False)
            self._to_terminal(data)
            if (len(self._out), self._last_output) == before and time.monotonic() > deadline:
                break
        self._empty(deadline)

    def _empty(self, deadline: float) -> None:
        while self._out and not self._vanished:
            left = deadline - time.monotonic()
            if left <= 0:
                return
            waiter = poller.make()
            waiter.want(self.user.write_fd, poller.WRITE)
            waiter.wait(left)
            self._flush()

    # ---- the ends ----

    def _vanish(self) -> None:
        """The terminal has hung up: the command hears of it, and is ended if it does not care."""
        if self._vanished:
            return
        self._vanished = True
        self._poller.want(self.user.read_fd, 0)
        self._poller.want(self.user.write_fd, 0)
        self._out.clear()
        self.memory.arm(armed=False)
        if self.status is None:
            self._end_command()

    def _end_command(self, grace: float = GRACE) -> None:
        now = time.monotonic()
        self._signal(signal.SIGHUP)
        self._signal(signal.SIGCONT)
        if not self._ends:
            self._ends = [(now + grace, int(signal.SIGTERM)), (now + 2 * grace, int(signal.SIGKILL))]

    def _finish(self) -> None:
        """Leave the terminal as it was, and see the session leader to its end."""
        status = self.status if self.status is not None else int(signal.SIGHUP)
        self._tell("ended", status, frozenset(self._forwarded), time.monotonic())
        if not self._vanished:
            self._to_terminal(self._undo())
            self._empty(time.monotonic() + SETTLE)
            try:
                ours = self.user.foreground()
            except terminal.VanishedError:
                ours = False
            if ours:
                self.user.restore()
        self.memory.arm(armed=False)
        if self._leader_gone:
            # the terminal is clean and nobody's byte waits: now the disk may
            leader.bury()
            self._take_over()
        deadline = time.monotonic() + LEADER_END
        self.writer.send("Q")
        self._last_lines(deadline)
        self._await_leader(deadline)

    def _last_lines(self, deadline: float) -> None:
        """Hand over what waits for the session leader and other helpers; not longer than the deadline."""
        while waiting := [writer for writer in self.writers if writer.waiting]:
            left = deadline - time.monotonic()
            if left <= 0:
                return
            waiter = poller.make()
            for writer in waiting:
                waiter.want(writer.fd, poller.WRITE)
            waiter.wait(left)
            for writer in waiting:
                writer.flush()

    def _await_leader(self, deadline: float) -> None:
        """Wait until the session is taken back; the summary may follow when we are gone."""
        waiter = poller.make()
        while not self.reader.ended:
            left = deadline - time.monotonic()
            if left <= 0:
                return
            waiter.want(self.reader.fd, poller.READ)
            waiter.wait(left)
            self.reader.take()


def _alive(pid: int) -> bool:
    """Whether a process with this pid runs; one that ended but nobody waited for does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return not file.read(512).rpartition(b")")[2].startswith(b" Z")
    except OSError:
        return True
