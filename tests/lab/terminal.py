"""A terminal with a person before it: runs a command on a PTY, answers what terminals answer, shows a screen.

It plays a terminal that knows nothing of program status (OSC 7501) or kitty's notifications (OSC 99). A thread reads
and answers all the time, as a terminal does; the methods are the person's, who looks and types.
"""

from __future__ import annotations

import fcntl
import os
import re
import select
import signal
import struct
import termios
import threading
import time
from typing import TYPE_CHECKING

import pyte

from tests.lab.judge import left_on

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

KEYS = {
    "enter": b"\r",
    "esc": b"\x1b",
    "up": b"\x1b[A",
    "down": b"\x1b[B",
    "shift+tab": b"\x1b[Z",
    "ctrl+c": b"\x03",
    "ctrl+d": b"\x04",
    "ctrl+z": b"\x1a",
}
# Between the last letter and the next key: what comes faster, Codex takes for a paste, Enter being part of it.
HAND = 0.2
LOOK = 0.02  # seconds between two looks at the screen

SEQUENCE = re.compile(
    rb"\x1b\](?P<osc>[^\x07\x1b]*)(?P<end>\x07|\x1b\\)"
    rb"|\x1b[PX^_](?:[^\x1b]|\x1b\x1b)*\x1b\\"
    rb"|\x1b\[(?P<prefix>[<=>?]?)(?P<params>[0-9:;<=>?]*)(?P<inter>[ -/]*)(?P<final>[@-~])"
    rb"|\x1b[ -/]+[0-~]"
    rb"|\x1b[0-OQ-WYZ\\`-~]"
)
# The start of a sequence that may still become one; anything longer is no sequence of ours.
LONGEST = 1 << 20

# Modes the terminal knows, and says so when asked.
MODES = frozenset((1000, 1002, 1003, 1004, 1006, 1049, 2004, 2026))


class Terminal:
    """A command on a PTY. Use as a context manager: leaving it hangs up and ends what is left of the command."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        environ: Mapping[str, str],
        cwd: Path,
        rows: int = 40,
        columns: int = 110,
    ) -> None:
        self.screen = pyte.Screen(columns, rows)
        self.written = bytearray()  # all that the command wrote
        self.modes: set[int] = set()  # those of MODES that are on
        self.status: int | None = None  # as os.waitpid says it
        self.keyed_at = 0.0  # when a key was pressed last, and when the command ended (time.monotonic)
        self.ended_at = 0.0
        self._stream = pyte.ByteStream(self.screen)
        self._rest = b""
        self._text: str | None = None  # as it was read last, None since something came
        self._lock = threading.Lock()
        master, slave = os.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, columns * 8, rows * 16))
        self.settings = termios.tcgetattr(slave)
        self._slave = slave  # kept open, so that the settings can be read when all is over
        self._master = master
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.close(master)
                os.setsid()
                fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
                for descriptor in (0, 1, 2):
                    os.dup2(slave, descriptor)
                os.closerange(3, 256)
                os.chdir(cwd)
                os.execvpe(argv[0], list(argv), dict(environ))
            finally:
                os._exit(127)
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        self.hang_up()

    # --- what a terminal does by itself

    def _serve(self) -> None:
        while not self._closing.is_set():
            if not select.select([self._master], [], [], 0.1)[0]:
                continue
            try:
                data = os.read(self._master, 65536)
            except OSError:
                return
            with self._lock:
                self.written += data
                self._take(self._rest + data)
                self._text = None

    def _take(self, data: bytes) -> None:
        """Show what can be shown, answer what is asked, and keep an unfinished sequence for the next time."""
        at = 0
        while (start := data.find(b"\x1b", at)) >= 0:
            self._stream.feed(data[at:start])
            found = SEQUENCE.match(data, start)
            if found is None:
                if len(data) - start < LONGEST:
                    self._rest = data[start:]
                    return
                at = start + 1
                continue
            at = found.end()
            if found["osc"] is not None:
                self._answer_osc(found["osc"], found["end"])
            elif found["final"] is not None:
                if self._answer_csi(found["prefix"] + found["params"], found["inter"], found["final"]):
                    self._stream.feed(found[0])
            elif found[0][1:2] not in b"PX^_":
                self._stream.feed(found[0])
        self._stream.feed(data[at:])
        self._rest = b""

    def _answer_osc(self, body: bytes, end: bytes) -> None:
        if body in (b"10;?", b"11;?"):
            self.send(b"\x1b]" + body[:2] + b";rgb:1111/1111/1111" + end)

    def _answer_csi(self, params: bytes, inter: bytes, final: bytes) -> bool:
        """Answer or note one control sequence. Returns whether pyte can be shown it."""
        prefix = params[:1] if params[:1] in (b"?", b">", b"<", b"=") else b""
        numbers = [int(n) for n in re.findall(rb"\d+", params)]
        match prefix, inter, final:
            case b"", b"", b"c":
                self.send(b"\x1b[?62;22c")
            case b">", b"", b"c":
                self.send(b"\x1b[>1;10;0c")
            case b">", b"", b"q":
                self.send(b"\x1bP>|XTerm(390)\x1b\\")
            case b"", b"", b"n" if numbers == [6]:
                self.send(b"\x1b[%d;%dR" % (self.screen.cursor.y + 1, self.screen.cursor.x + 1))
            case b"?", b"$", b"p" if numbers:
                known = 0 if numbers[0] not in MODES else 1 if numbers[0] in self.modes else 2
                self.send(b"\x1b[?%d;%d$y" % (numbers[0], known))
            case b"?", b"", b"u":
                self.send(b"\x1b[?0u")
            case b"?", b"", b"h":
                self.modes |= MODES.intersection(numbers)
                return True
            case b"?", b"", b"l":
                self.modes -= MODES.intersection(numbers)
                return True
            case b"", b"", _:
                return final != b"m"  # colours are not looked at, and pyte knows no colons in them
        return False

    def send(self, data: bytes) -> None:
        """Send bytes to the command, as keys, a paste or a reply."""
        while data:
            data = data[os.write(self._master, data) :]

    # --- what a person does

    @property
    def text(self) -> str:
        """What is to be read on the screen."""
        with self._lock:
            if self._text is None:
                self._text = "\n".join(line.rstrip() for line in self.screen.display)
            return self._text

    def until(self, seen: str | Callable[[], object], timeout: float = 30.0) -> None:
        """Wait until a regular expression is found on the screen, or a condition holds. Raises AssertionError."""
        deadline = time.monotonic() + timeout
        while not (re.search(seen, self.text) if isinstance(seen, str) else seen()):
            if time.monotonic() > deadline:
                wanted = repr(seen) if isinstance(seen, str) else getattr(seen, "__doc__", None) or repr(seen)
                ended = f", the command ended ({self.status})" if self.ended() else ""
                raise AssertionError(f"not within {timeout:g} s: {wanted}{ended}\n{self.text}")
            if isinstance(seen, str) and self.ended():  # nobody is left to write it
                deadline = min(deadline, time.monotonic() + 1)
            time.sleep(LOOK)

    def type(self, words: str) -> None:
        """Type words, and see them on the screen."""
        self.send(words.encode())
        self.until(re.escape(words))
        time.sleep(HAND)

    def key(self, *names: str) -> None:
        """Press keys, one after the other."""
        for key in names:
            self.keyed_at = time.monotonic()
            self.send(KEYS.get(key) or key.encode())
            time.sleep(HAND)

    def focus(self, *, on: bool) -> None:
        """Look at the terminal, or away from it. It tells only a command that asked."""
        if 1004 in self.modes:
            self.send(b"\x1b[I" if on else b"\x1b[O")

    def ended(self) -> bool:
        """Return whether the command has ended."""
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status, self.ended_at = status, time.monotonic()
        return self.status is not None

    def wait(self, timeout: float = 10.0) -> int:
        """Wait for the command's end. Returns its wait status. Raises AssertionError when it does not end."""
        self.until(self.ended, timeout)
        # what it wrote last is on its way still
        while select.select([self._master], [], [], 0.05)[0] and self._thread.is_alive():
            time.sleep(0.01)
        assert self.status is not None
        return self.status

    def left_on(self) -> list[str]:
        """Name every mode that is not as it was at the start."""
        with self._lock:
            left = left_on(bytes(self.written))
        settings = termios.tcgetattr(self._slave)
        return left + ([] if settings == self.settings else [f"termios {settings} was {self.settings}"])

    def hang_up(self) -> None:
        """Close the terminal, as closing its window does, and make sure of the command's end."""
        if self._closing.is_set():
            return
        if self.status is None:
            os.kill(self.pid, signal.SIGHUP)
            try:
                self.wait(3.0)
            except AssertionError:
                os.kill(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
        self._closing.set()
        self._thread.join()
        os.close(self._master)
        os.close(self._slave)
