"""A real kitty on a virtual display, typed into and read through its remote control."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from typing import TYPE_CHECKING, Protocol

from tests.lab.outer import until

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

START = 40.0
"""Seconds it may take to start: it draws without a graphics card."""


class Starts(Protocol):
    """Starts programs that do not outlive the test."""

    env: dict[str, str]

    def start(self, *argv: str, **more: object) -> subprocess.Popen[bytes]:
        """Start one."""


class Kitty:
    """A window with a shell. Use as a context manager: leaving it closes the window."""

    def __init__(self, processes: Starts, folder: Path, environ: Mapping[str, str]) -> None:
        # a socket's path may have about a hundred bytes, and a test's folder has more
        self._short = tempfile.mkdtemp(prefix="aw")
        self._at = f"unix:{self._short}/s"
        self._environ = {**environ, "LIBGL_ALWAYS_SOFTWARE": "1"}
        self._rung = folder / "rung"
        settings = {
            "update_check_interval": "0",
            "allow_remote_control": "socket-only",
            "confirm_os_window_close": "0",
            "remember_window_size": "no",
            "initial_window_width": "120c",
            "enable_audio_bell": "no",
            "command_on_bell": f"touch {self._rung}",
            "shell": "/bin/sh",
            "shell_integration": "disabled",
        }
        self._process = processes.start(
            "kitty", "--config", "NONE", *(word for one in settings.items() for word in ("-o", "=".join(one))),
            "--listen-on", self._at, env=self._environ,
        )  # fmt: skip
        until(lambda: self._ask("ls") is not None, START, "kitty's remote control")
        self.line(f"cd {folder}; PS1='at ''> '; PS2=")
        self.until("^at >|\nat >")

    def _ask(self, *words: str) -> str | None:
        done = subprocess.run(
            ["kitty", "@", "--to", self._at, *words],
            env=self._environ, capture_output=True, text=True, check=False, timeout=20,
        )  # fmt: skip
        return done.stdout if done.returncode == 0 else None

    @property
    def version(self) -> tuple[int, ...]:
        """Its version."""
        said = subprocess.run(["kitty", "--version"], capture_output=True, text=True, check=True).stdout
        return tuple(map(int, re.findall(r"\d+", said)[:3]))

    @property
    def text(self) -> str:
        """What is to be read in it."""
        return self._ask("get-text") or ""

    def line(self, words: str) -> None:
        """Type a line."""
        assert self._ask("send-text", "--", words.replace("\\", "\\\\") + "\\r") is not None

    def until(self, pattern: str, timeout: float = 15.0) -> re.Match[str]:
        """Wait until a regular expression is found on the screen."""
        read = [""]

        def found() -> re.Match[str] | None:
            read[0] = self.text
            return re.search(pattern, read[0])

        try:
            match = until(found, timeout, pattern)
        except AssertionError:
            raise AssertionError(f"not within {timeout:g} s: {pattern!r} in\n{read[0]}") from None
        assert isinstance(match, re.Match)
        return match

    def rang(self) -> bool:
        """Whether its bell has rung since it was asked last."""
        if not self._rung.exists():
            return False
        os.unlink(self._rung)
        return True

    def __enter__(self) -> Kitty:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(10)
        shutil.rmtree(self._short, ignore_errors=True)
