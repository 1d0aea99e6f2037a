"""A tmux of the test's own: its server, configuration and environment touch no other."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING

from tests.lab.outer import until

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

BIN = os.path.dirname(sys.executable)


class Tmux:
    """A server. Use as a context manager: leaving it ends the server and all that runs in it."""

    def __init__(self, folder: Path, environ: Mapping[str, str], config: str = "") -> None:
        # A socket's path may have about a hundred bytes, and a test's folder has more.
        self._short = tempfile.mkdtemp(prefix="aw")
        self.socket = f"{self._short}/s"
        self.folder = folder
        file = folder / "tmux.conf"
        file.write_text(f"set -g default-command 'exec bash --norc'\nset -s exit-empty off\n{config}")
        self.environ = {**environ, "PATH": f"{BIN}:{environ['PATH']}"}
        self.client = ["tmux", "-S", self.socket, "-f", str(file)]

    def run(self, *words: str) -> str:
        """What tmux says to a command."""
        done = subprocess.run(
            [*self.client, *words],
            env=self.environ,
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=20,
        )
        assert done.returncode == 0, done.stdout
        return done.stdout.rstrip("\n")

    def start(self, name: str, *words: str) -> str:
        """A new session that nobody looks at; returns its pane."""
        size = ("-x", "100", "-y", "24")
        return self.run("new-session", "-d", "-P", "-F", "#{pane_id}", *size, "-s", name, *words)

    def type(self, pane: str, line: str) -> None:
        """Type a line in a pane."""
        self.run("send-keys", "-t", pane, "-l", line + "\r")

    def says(self, pane: str, form: str) -> str:
        """A format, as it is filled in for a pane."""
        return self.run("display-message", "-p", "-t", pane, form)

    def until(self, pane: str, form: str, wanted: str, timeout: float = 10.0) -> None:
        """Wait until a format is filled in like this."""
        said = [""]

        def reached() -> bool:
            said[0] = self.says(pane, form)
            return said[0] == wanted

        try:
            until(reached, timeout)
        except AssertionError:
            raise AssertionError(f"{form} is {said[0]!r}, not {wanted!r}\n{self.screen(pane)}") from None

    def screen(self, pane: str) -> str:
        """What is to be read in a pane."""
        return self.run("capture-pane", "-p", "-t", pane)

    def __enter__(self) -> Tmux:
        return self

    def __exit__(self, *_: object) -> None:
        subprocess.run([*self.client, "kill-server"], check=False, capture_output=True)
        shutil.rmtree(self._short, ignore_errors=True)
