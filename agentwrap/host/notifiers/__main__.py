"""Start the helper: `python -m agentwrap.host.notifiers`, with pipes as standard input and output.

It owns nothing of the session it serves: no terminal, no open file, no signal disposition. It writes nothing
but its protocol; what a library prints goes nowhere.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from typing import Any

from agentwrap.host.notifiers import desktop
from agentwrap.host.notifiers.command import Command
from agentwrap.host.notifiers.helper import LONGEST_LINE, Helper
from agentwrap.host.notifiers.limit import Limit
from agentwrap.host.notifiers.terminal import Terminal

MOST_OUTPUT = 1 << 18
"""Bytes that may wait for the session leader to read them; results beyond it are dropped."""


class Lines(asyncio.Protocol):
    """Splits what arrives into lines; a line that is too long is left out."""

    def __init__(self, helper: Helper, ended: asyncio.Event) -> None:
        self._helper = helper
        self._ended = ended
        self._partial = b""
        self._skipping = False

    def data_received(self, data: bytes) -> None:
        """Hand over each complete line."""
        *lines, self._partial = (self._partial + data).split(b"\n")
        for line in lines:
            if not self._skipping:
                self._helper.line(line)
            self._skipping = False
        if len(self._partial) > LONGEST_LINE:
            self._partial, self._skipping = b"", True

    def connection_lost(self, exc: Exception | None) -> None:
        """The session leader has closed its end, or is gone."""
        self._ended.set()


class Output:
    """Writes messages to standard output without ever waiting for a reader."""

    def __init__(self) -> None:
        self.transport: asyncio.WriteTransport | None = None

    def send(self, message: dict[str, Any]) -> None:
        """Write one message, unless nobody reads."""
        transport = self.transport
        if transport is not None and transport.get_write_buffer_size() < MOST_OUTPUT:
            transport.write(json.dumps(message).encode() + b"\n")


async def serve() -> None:
    """Serve until the input ends or TERM comes, then say the last words."""
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2):
        loop.add_signal_handler(number, int)  # a handler, not ignored: a command starts with the default
    loop.add_signal_handler(signal.SIGTERM, ended.set)

    output = Output()
    environ = dict(os.environ)
    commands = Command(environ)
    terminal = Terminal(output.send, environ)
    limit = Limit(environ)
    channels = {
        "desktop": desktop.make(output.send, environ, sys.platform),
        "terminal": terminal,
        "command": commands,
        "bell": Terminal(output.send, environ, bell=True),
    }
    helper = Helper(
        channels,
        output.send,
        environ,
        sys.platform,
        allowed=lambda always: limit.take(always=always),
        answered=terminal.answered,
    )
    with open(1, "wb", buffering=0) as writing, open(0, "rb", buffering=0) as reading:  # noqa: ASYNC230 - pipes
        output.transport, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, writing)
        await loop.connect_read_pipe(lambda: Lines(helper, ended), reading)
        worker = asyncio.create_task(helper.run())
        await ended.wait()
        await helper.finish()
        worker.cancel()
        await channels["desktop"].close()
        output.transport.close()
        # Whoever reads sees the end now; a command that still runs is not left without a guardian.
        await commands.close()


def main() -> None:
    """Let go of all that was inherited, and serve."""
    os.closerange(3, 65536)  # the terminal must not stay open because of us
    quiet = os.open(os.devnull, os.O_RDWR)
    os.dup2(quiet, 2)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for number in (
        signal.SIGTSTP,
        signal.SIGTTIN,
        signal.SIGTTOU,
        signal.SIGALRM,
        signal.SIGCHLD,
        signal.SIGTERM,
    ):
        signal.signal(number, signal.SIG_DFL)
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, lambda *_: None)
    try:
        asyncio.run(serve())
    except BrokenPipeError:
        pass  # nobody reads any more


if __name__ == "__main__":
    main()
