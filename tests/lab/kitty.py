"""A real terminal, kitty, on a virtual display: keys are pressed there, and the terminal itself says what is on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

from tests.lab.outer import until

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

ASK = r"""
import os, json, re, select, sys, termios, time, tty

QUESTIONS = {
    **{f"?{n}": "\x1b[?%d$p" % n for n in
        (1, 6, 7, 9, 25, 66, 1000, 1002, 1003, 1004, 1005, 1006, 1015, 1016, 1049, 2004, 2026)},
    "keyboard": "\x1b[?u",
    **{f"colour {n}": f"\x1b]{n};?\x1b\\" for n in (10, 11, 12)},
    **{name: f"\x1bP$q{what}\x1b\\" for name, what in
        (("style", "m"), ("cursor", " q"), ("region", "r"))},
}

def answer(question):
    # whatever the terminal says before it says what it is: that it always does
    os.write(1, question.encode() + b"\x1b[c")
    said, end = b"", time.monotonic() + 20
    while not (found := re.search(rb"\x1b\[\?[0-9;]*c", said)):
        if not select.select([0], [], [], max(0, end - time.monotonic()))[0]:
            raise SystemExit(f"no answer to {question!r} but {said!r}")
        said += os.read(0, 4096)
    return said[:found.start()].decode("latin-1")

def ask(file):
    before = termios.tcgetattr(0)
    tty.setraw(0, termios.TCSANOW)
    try:
        said = {name: answer(question) for name, question in QUESTIONS.items()}
    finally:
        termios.tcsetattr(0, termios.TCSANOW, before)
    with open(file + ".new", "w") as new:
        json.dump({"said": said, "settings": repr(before)}, new)
    os.rename(file + ".new", file)
"""
"""A program's part: `ask(file)` writes what its terminal says of itself. Only what the terminal knows is told."""


class Kitty:
    """One window with a program in it; end it with `close`."""

    def __init__(self, place: Path, environ: Mapping[str, str], display: str, argv: list[str]) -> None:
        self._place = place
        self._socket = f"unix:{place / 'socket'}"
        self._answers = 0
        self._environ = {**environ, "DISPLAY": display, "LIBGL_ALWAYS_SOFTWARE": "1"}
        self._environ.pop("TERM", None)
        (place / "ask.py").write_text(ASK + "\nif __name__ == '__main__': ask(sys.argv[1])\n")
        with open(place / "kitty.log", "wb") as log:
            self._process = subprocess.Popen(
                [
                    "kitty", "--config", "NONE", "--listen-on", self._socket,
                    "-o", "allow_remote_control=yes", "-o", "update_check_interval=0",
                    "-o", "shell_integration=disabled", "-o", "confirm_os_window_close=0",
                    *argv,
                ],
                env=self._environ, cwd=place, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip
        try:
            until(lambda: self.text() is not None, 40, "kitty answers")
            window = self._run("xdotool", "search", "--sync", "--onlyvisible", "--class", "kitty").split()[0]
            self._run("xdotool", "windowfocus", "--sync", window)
        except BaseException:
            self.close()
            raise

    def _run(self, *argv: str) -> str:
        done = subprocess.run(argv, env=self._environ, capture_output=True, text=True, timeout=40, check=True)
        return done.stdout

    def text(self) -> str | None:
        """What the window shows; None while kitty does not answer."""
        done = subprocess.run(
            ["kitty", "@", "--to", self._socket, "get-text"],
            env=self._environ, capture_output=True, text=True, timeout=40, check=False,
        )  # fmt: skip
        return done.stdout if done.returncode == 0 else None

    def shows(self, wanted: str) -> None:
        """Wait until the window shows this."""
        until(lambda: wanted in (self.text() or ""), 20, f"{wanted!r} on the screen:\n{self.text()}")

    def type(self, text: str) -> None:
        """Press the keys that make this text."""
        self._run("xdotool", "type", "--delay", "15", text)

    def press(self, *keys: str) -> None:
        """Press keys by X's names, like `Return` or `ctrl+z`."""
        self._run("xdotool", "key", "--delay", "15", *keys)

    def ask(self) -> dict[str, object]:
        """Have a program, typed to the shell in the window, ask the terminal for its modes."""
        self._answers += 1
        file = self._place / f"answer{self._answers}"
        self.type(f"{sys.executable} -S ask.py {file.name}")
        self.press("Return")
        return self.answer(file)

    @staticmethod
    def answer(file: Path) -> dict[str, object]:
        """What a program wrote by `ask`."""
        until(file.exists, 30, f"the answer {file.name}")
        found: dict[str, object] = json.loads(file.read_text())
        return found

    def close(self) -> None:
        """End kitty, and with it what runs in its window."""
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            os.kill(self._process.pid, 9)
            self._process.wait()
