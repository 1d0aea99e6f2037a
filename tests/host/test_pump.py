"""What the pump keeps in step, burst by burst: the terminal, and what undoes it if the pump is killed."""

from __future__ import annotations

import os

import pytest

from agentwrap.core.modes import Ledger
from agentwrap.core.scanner import RECENT_LIMIT
from agentwrap.host.guard import MOST_COMING, UndoMemory
from agentwrap.host.pump import BURST, BURST_TIME, READ, Pump
from tests.lab.client import Writer, client_of

PUSHED = b"\x1b[>1u\x1b[22;0t"
FRAME = b"\x1b[?2026h\x1b[?25l\x1b[1;1Htext\x1b[?25h\x1b[?2026l"


class Screen:
    """The user's terminal: a pipe, which takes as much as it holds."""

    one = nonblocking = True

    def __init__(self):
        self.read_fd, self.write_fd = os.pipe()
        os.set_blocking(self.read_fd, False)
        os.set_blocking(self.write_fd, False)

    def take(self):
        """Take what it holds."""
        got = b""
        while True:
            try:
                got += os.read(self.read_fd, 1 << 20)
            except BlockingIOError:
                return got

    def fill(self):
        """Have it take nothing more."""
        try:
            while True:
                os.write(self.write_fd, b" " * 65536)
        except BlockingIOError:
            pass


class Wrapped:
    """A pump between a screen and a pipe for the command, which this writes into."""

    def __init__(self, tmp_path):
        self.memory = UndoMemory(Ledger.FULL_RESET)
        self.client = client_of(tmp_path, self.memory, Writer())
        master, self.command = os.pipe()
        self.screen = Screen()
        self.pump = Pump(
            self.screen,
            master,
            None,
            Writer(),
            None,
            self.client,
            self.memory,
            foreground=True,
            ahead=b"",
            inner=None,
            take_over=lambda: None,
        )
        self.fds = [master, self.command, self.screen.read_fd, self.screen.write_fd]

    def writes(self, data):
        """Have the command write, and the pump read once."""
        os.write(self.command, data)
        self.pump._read_command()


@pytest.fixture
def wrapped(tmp_path):
    wrapped = Wrapped(tmp_path)
    wrapped.writes(PUSHED)
    wrapped.writes(FRAME * (READ // len(FRAME)))
    while wrapped.client._session._scanner._recent_size <= RECENT_LIMIT:
        wrapped.writes(FRAME * (READ // len(FRAME)))
    wrapped.screen.take()
    yield wrapped
    for fd in wrapped.fds:
        os.close(fd)


class TestWhatUndoesTheTerminal:
    @pytest.mark.parametrize(
        "data",
        [
            b"x" * READ,
            b"x" * READ + b"text",
            FRAME * 200 + b"x" * READ,
            (FRAME * READ)[:READ],
            (FRAME * READ)[:READ] + b"text",
            FRAME + b"x" * (2 * READ - len(FRAME)) + b"\x0f",
        ],
        ids=["full", "text", "frames", "cut", "cut, then text", "shift"],
    )
    def test_is_known_exactly_when_a_burst_is_out(self, wrapped, data):
        wrapped.writes(data)
        assert wrapped.screen.take() == data
        assert wrapped.memory.load() == wrapped.client._session.ledger.undo()
        assert wrapped.memory.load().count(b"\x1b[<1u") == 1

    def test_stays_known_while_a_slow_terminal_is_flooded_with_text(self, wrapped):
        wrapped.screen.fill()
        for _ in range(2 * MOST_COMING):
            wrapped.writes(b"x" * READ)
        assert Ledger.FULL_RESET not in wrapped.memory.load()


class Clock:
    """Time, of which looking at a piece of output takes as much as is said."""

    def __init__(self, client, takes):
        self.now = 0.0
        self._takes = takes
        self._output = client.output
        client.output = self._look

    def _look(self, data, now, *, more=False):
        self.now += self._takes if data else 0.0
        return self._output(data, now, more=more)

    def monotonic(self):
        return self.now


@pytest.mark.parametrize("takes", [0.0001, 0.004, 0.02])
def test_output_that_is_slow_to_understand_does_not_hold_up_a_key(wrapped, monkeypatch, takes):
    clock = Clock(wrapped.client, takes)
    monkeypatch.setattr("agentwrap.host.pump.time", clock)
    os.write(wrapped.command, b"x" * READ * BURST)
    wrapped.pump._read_command()
    assert clock.now < BURST_TIME + 2 * takes
    if takes * BURST < BURST_TIME:
        assert wrapped.screen.take() == b"x" * READ * BURST
