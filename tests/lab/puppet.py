"""A wrapped program that writes what the test tells it to, and keeps what it is given by its terminal.

It is told through a FIFO: what is typed would count as somebody looking.
"""

from __future__ import annotations

import base64
import os
import signal
import sys
from typing import TYPE_CHECKING

from tests.lab.outer import AGENTWRAP, Outer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

PROGRAM = r"""
import os, select, sys, termios, tty
orders, heard = os.open(sys.argv[1], os.O_RDONLY), open(sys.argv[2], "ab", 0)
tty.setraw(0, termios.TCSANOW)
rest = b""
while True:
    for fd in select.select([orders, 0], [], [])[0]:
        data = os.read(fd, 65536)
        if not data:
            sys.exit(0)  # whoever told it what to do is gone, or its terminal
        if fd == 0:
            heard.write(data)
            continue
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            what, _, more = line.decode().partition(" ")
            if what == "write":
                os.write(1, bytes.fromhex(more))
            elif what == "die":
                os.kill(os.getpid(), int(more))
            else:
                sys.exit(int(more))
"""


def report(state: str, msg: str = "", *, app: str = "claude-code", **fields: str) -> bytes:
    """A status report."""
    pairs = [f"state={state}", *(f"{key}={value}" for key, value in fields.items()), f"app={app}"]
    if msg:
        pairs.append(f"msg={base64.b64encode(msg.encode()).decode()}")
    return f"\x1b]7501;{':'.join(pairs)}\x1b\\".encode()


class Strings:
    """What the program is told by, whoever starts it.

    Attributes:
        program: its argv.
        heard_in: the file of what it has been given by its terminal.
    """

    def __init__(self, folder: Path) -> None:
        number = len(list(folder.glob("orders*")))
        self._path = folder / f"orders{number}"
        self.heard_in = folder / f"heard{number}"
        self.heard_in.touch()
        os.mkfifo(self._path)
        self.program = [sys.executable, "-S", "-c", PROGRAM, str(self._path), str(self.heard_in)]
        self._orders = -1

    def take(self) -> None:
        """Wait until the program is there."""
        self._orders = os.open(self._path, os.O_WRONLY)

    def write(self, data: bytes) -> None:
        """Have the program write to its terminal, in one write."""
        os.write(self._orders, b"write %s\n" % data.hex().encode())

    def die(self, number: int = signal.SIGKILL) -> None:
        """Have it kill itself."""
        os.write(self._orders, b"die %d\n" % number)

    def exit(self, code: int = 0) -> None:
        """Have it end."""
        os.write(self._orders, b"exit %d\n" % code)

    def heard(self) -> bytes:
        """What it has been given by its terminal."""
        return self.heard_in.read_bytes()

    def drop(self) -> None:
        """Let go of the program, which ends it."""
        if self._orders >= 0:
            os.close(self._orders)
            self._orders = -1


class Puppet(Strings):
    """agentwrap, wrapping the program, on a terminal that is the test."""

    def __init__(
        self,
        folder: Path,
        options: Sequence[str],
        environ: Mapping[str, str],
        *,
        before: Sequence[str] = (),
    ) -> None:
        super().__init__(folder)
        self.outer = Outer([*before, *AGENTWRAP, *options, *self.program], environ=environ, cwd=folder)
        self.take()

    @property
    def wrote(self) -> bytes:
        """What the terminal has got so far."""
        self.outer.read()
        return bytes(self.outer.output)

    def __enter__(self) -> Puppet:
        return self

    def __exit__(self, *_: object) -> None:
        self.drop()
        self.outer.close()
