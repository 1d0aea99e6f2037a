"""A scripted agent as an executable file with an agent's name: for shells, tmux and ssh to start."""

from __future__ import annotations

import os
import shlex
import sys
import time
from typing import TYPE_CHECKING

from tests.lab.puppet import PROGRAM

if TYPE_CHECKING:
    from pathlib import Path


class Scripted:
    """One agent: `path` is to be started once, by whom the test likes. It does what it is told from here."""

    def __init__(self, folder: Path, name: str = "claude") -> None:
        self.bin = folder / f"{name}.bin"
        self.bin.mkdir()
        self.path = self.bin / name
        orders, self._heard = self.bin / "orders", self.bin / "heard"
        os.mkfifo(orders)
        self._heard.touch()
        self._orders_path = orders
        self._orders: int | None = None
        words = f"import sys; sys.argv[1:] = [{str(orders)!r}, {str(self._heard)!r}]\n"
        self.path.write_text(f"#!{sys.executable} -S\n{words}{PROGRAM}")
        self.path.chmod(0o755)

    def _order(self, line: bytes) -> None:
        deadline = time.monotonic() + 20
        while self._orders is None:
            try:
                self._orders = os.open(self._orders_path, os.O_WRONLY | os.O_NONBLOCK)
            except OSError:
                if time.monotonic() > deadline:
                    raise AssertionError(f"{shlex.quote(str(self.path))} was not started") from None
                time.sleep(0.01)
        os.write(self._orders, line)

    def write(self, data: bytes) -> None:
        """Have it write to its terminal, in one write."""
        self._order(b"write %s\n" % data.hex().encode())

    def exit(self, code: int = 0) -> None:
        """Have it end."""
        self._order(b"exit %d\n" % code)

    def heard(self) -> bytes:
        """What its terminal has given it."""
        return self._heard.read_bytes()

    def close(self) -> None:
        """Let go of it."""
        if self._orders is not None:
            os.close(self._orders)
