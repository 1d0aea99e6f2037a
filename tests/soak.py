"""Kills at random moments, many of them, and a long run at speed. By hand, not part of the suite.

    python tests/soak.py kills [--count 200] [--jobs 2]     each of agent, pump and guardian
    python tests/soak.py soak [--minutes 30] [--jobs 2]     sessions that end by themselves, by kills, stops, resizes

Each session runs under a shell on a PTY of its own, with an agent that leaves on all that agents do. After its end
are judged: the terminal's settings; modes left on, by a ledger that shares no code with the product; what pyte shows
of a prompt printed next; processes; session files and the summary. Prints each fault with the seed that found it,
`--seed N` runs one again. Exit code 1 where there was any.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import random
import shutil
import signal
import struct
import sys
import tempfile
import termios
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import psutil  # noqa: E402
import pyte  # noqa: E402

from tests.lab.judge import left_on, processes_of  # noqa: E402
from tests.lab.outer import AGENTWRAP, Outer  # noqa: E402

AGENT = r"""
import os, random, signal, sys, time, tty, termios
seed, mode = sys.argv[1:3]
generator = random.Random(seed)
before = termios.tcgetattr(0)
def on(*_):
    tty.setraw(0, termios.TCSANOW)
    out(b"\x1b[?2004h\x1b[>7u\x1b[>4;2m\x1b[?1004h\x1b[?1049h\x1b[>5u\x1b[?1000h\x1b[?1002h\x1b[?1003h\x1b[?1006h"
        b"\x1b[?2031h\x1b[?1007l\x1b[2;10r\x1b]11;rgb:00/00/00\x07\x1b[4 q\x1b]22;pointer\x07up\x1b]7501;state=working\x07")
def off():
    out(b"\x1b[?2031l\x1b[?1007h\x1b[r\x1b]111\x07\x1b[ q\x1b]22;\x07\x1b[<u\x1b[?1049l\x1b[<u\x1b[>4m\x1b[?1000l\x1b[?1002l"
        b"\x1b[?1003l\x1b[?1006l\x1b[?1004l\x1b[?2004l\x1b[?25h")
    termios.tcsetattr(0, termios.TCSANOW, before)
def out(data):
    while data: data = data[os.write(1, data):]
signal.signal(signal.SIGCONT, on)
if mode == "stubborn":
    for number in (signal.SIGHUP, signal.SIGTERM): signal.signal(number, signal.SIG_IGN)
on()
n, end = 0, time.monotonic() + (generator.uniform(0.1, 1.5) if mode == "short" else 60)
while time.monotonic() < end:
    n += 1
    out(b"\x1b[?2026h\x1b[?25l\x1b[31mframe %d\x1b[m\x1b[?25h\x1b[?2026l" % n)
    state = generator.choice((b"working", b"blocked:kind=permission", b"done", b"error", b"working:id=child", b"clear:id=child"))
    out(b"\x1b]7501;state=%b:msg=QUJD\x07" % state)
    if n % 50 == 0: out(b"\x1b]0;a title" + b"." * 200 + b"\x07\x1b]7501;?\x07\x1b[c")
    if generator.random() < 0.02: time.sleep(0.01)
if generator.random() < 0.5: off()
os._exit(generator.choice((0, 0, 3)))
"""

SETTLED = 8.0
"""Seconds until everything must be over: two graces of two seconds, and a machine that is busy."""


class FaultError(Exception):
    """Something was not as it must be."""


class Screen(pyte.Screen):
    """pyte's, which fails on a number it does not know: a killed sequence and a shell's "Killed" can make one."""

    def erase_in_line(self, how: int = 0, private: bool = False) -> None:
        if how in (0, 1, 2):
            super().erase_in_line(how, private)


class Trial:
    """One session and its judgement."""

    def __init__(self, seed: str, victim: str) -> None:
        self.seed = seed
        self.victim = victim
        self.generator = random.Random(seed)
        self.base = Path(tempfile.mkdtemp(prefix="agentwrap-soak-"))
        self.state = self.base / "state"
        self.environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.base),
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
            "AGENTWRAP_STATE_DIR": str(self.state),
            "PYTHONPATH": str(ROOT),
        }

    def run(self) -> str | None:
        """Return what was wrong, or None."""
        mode = {"nobody": "short"}.get(self.victim) or self.generator.choice(("plain", "plain", "stubborn"))
        argv = [*AGENTWRAP, "--notify", "none", sys.executable, "-S", "-c", AGENT, self.seed, mode]
        # The shell holds on to the terminal, as a user's does.
        try:
            with Outer(["sh", "-c", '"$@"; :', "sh", *argv], environ=self.environ) as outer:
                self._live(outer)
                self._judge(outer)
        except (FaultError, AssertionError) as error:
            return f"{self.victim} {self.seed} ({mode}): {error}"
        finally:
            shutil.rmtree(self.base, ignore_errors=True)
        return None

    def _live(self, outer: Outer) -> None:
        """Let it run for a while, then do to it what is to be done."""
        end = time.monotonic() + self.generator.uniform(0, 0.9)
        if self.generator.random() < 0.3:
            end = 0.0  # as soon as the process is there
        while time.monotonic() < end:
            outer.read(0.005)
        if self.victim == "nobody":
            self._pester(outer)
            return
        deadline = time.monotonic() + 10
        while (pid := self._find(outer.pid)) is None:
            outer.read(0.001)
            if time.monotonic() > deadline:
                raise FaultError("the process to kill never came")
        os.kill(pid, signal.SIGKILL)

    def _pester(self, outer: Outer) -> None:
        deadline = time.monotonic() + 60
        while not outer.ended():
            outer.read(self.generator.uniform(0, 0.05))
            what = self.generator.random()
            if what < 0.1:
                size = struct.pack(
                    "HHHH", self.generator.randint(1, 60), self.generator.randint(1, 200), 0, 0
                )
                fcntl.ioctl(outer.master, termios.TIOCSWINSZ, size)
            elif what < 0.2:
                os.write(
                    outer.master,
                    self.generator.choice((b"k", b"\x1b[A", b"\x1b[I", b"\x1b[O", b"\x1b[<0;1;1M")),
                )
            elif what < 0.22:
                pid = self._find(outer.pid, self.generator.choice(("pump", "guardian", "agent")))
                try:
                    if pid is not None:
                        os.kill(pid, signal.SIGSTOP)
                        time.sleep(self.generator.uniform(0, 0.05))
                        os.kill(pid, signal.SIGCONT)
                except ProcessLookupError:
                    pass  # it has just ended
            if time.monotonic() > deadline:
                raise FaultError("does not end")

    def _find(self, shell: int, which: str = "") -> int | None:
        """The process that is to be killed, when it is there."""
        which = which or self.victim
        try:
            pump = next(iter(psutil.Process(shell).children()), None)
            if which == "pump" or pump is None:
                return pump and pump.pid
            leader = next((p for p in pump.children() if os.getsid(p.pid) == p.pid), None)
            if which == "guardian" or leader is None:
                return leader and leader.pid
            agent = next((p for p in leader.children() if os.getpgid(p.pid) == p.pid), None)
        except (psutil.Error, OSError):
            return None
        return agent and agent.pid

    def _judge(self, outer: Outer) -> None:
        killed = time.monotonic()
        faults: list[str] = []
        stale_until = 0.0
        while time.monotonic() < killed + SETTLED:
            outer.read(0.02)
            if list(self.state.glob("*.json")):
                stale_until = time.monotonic() - killed
            if not outer.ended():
                continue  # read on: what it has queued for its terminal is to come out first
            faults = self._faults(outer)
            if not faults:
                break
        if faults or not outer.ended():
            faults = self._faults(outer)
        if faults:
            raise FaultError("; ".join(faults))
        if self.victim == "pump" and stale_until > 1.5:
            raise FaultError(f"the session was shown as live for {stale_until:.1f} s")

    def _faults(self, outer: Outer) -> list[str]:
        found = []
        if not outer.ended():
            found.append("not ended")
        if outer.attributes() != outer.settings:
            found.append("settings changed")
        if left := left_on(bytes(outer.output)):
            found.append(f"left on: {', '.join(left)}")
        if there := processes_of(self.state):
            found.append(f"processes: {there}")
        if files := [file.name for file in self.state.glob("*") if file.name not in (".lock", "summary")]:
            found.append(f"files: {files}")
        try:
            summary = (self.state / "summary").read_text()
        except OSError:
            summary = ""
        if summary.strip() not in ("", "0 0 0 0 0"):
            found.append(f"summary: {summary!r}")
        if not found and not self._readable(outer):
            found.append("what is printed next is not shown")
        return found

    @staticmethod
    def _readable(outer: Outer) -> bool:
        screen = Screen(80, 24)
        stream = pyte.ByteStream(screen)
        output = bytes(outer.output)
        # of a long stream the end is enough, from a point where nothing is open
        start = output.rfind(b"\x1b[?2026h", 0, max(0, len(output) - 8192))
        try:
            stream.feed(output[max(0, start) :] + b"\r\n$ prompt")
        except Exception as error:
            raise FaultError(f"pyte: {error!r} at {output[-400:]!r}") from error
        return any("$ prompt" in line for line in screen.display)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("kills", "soak"))
    parser.add_argument("--count", type=int, default=200, help="kills of each")
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", help="run one again: VICTIM SEED as printed", nargs=2)
    options = parser.parse_args()
    victims = ("agent", "pump", "guardian")
    if options.seed:
        print(Trial(options.seed[1], options.seed[0]).run() or "no fault")
        return 0
    done: Counter[str] = Counter()
    faults: list[str] = []
    lock = threading.Lock()
    began = time.monotonic()
    run = f"{os.getpid():x}"

    def trial(number: int) -> None:
        if options.what == "kills":
            victim = victims[number % 3]
        else:
            if time.monotonic() > began + options.minutes * 60:
                return
            victim = random.Random(f"{run}{number}").choice(("nobody", "nobody", *victims))
        fault = Trial(f"{run}-{number}", victim).run()
        with lock:
            done[victim] += 1
            if fault:
                faults.append(fault)
                print(f"FAULT {fault}", flush=True)
            if sum(done.values()) % 50 == 0:
                print(f"{sum(done.values())} sessions, {len(faults)} faults", flush=True)

    total = 3 * options.count if options.what == "kills" else 10_000_000
    with ThreadPoolExecutor(options.jobs) as pool:
        if options.what == "kills":
            list(pool.map(trial, range(total)))
        else:
            number = 0
            while time.monotonic() < began + options.minutes * 60:
                list(pool.map(trial, range(number, number + 4 * options.jobs)))
                number += 4 * options.jobs
    result = {"seconds": round(time.monotonic() - began), "sessions": dict(done), "faults": len(faults)}
    print(json.dumps(result))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
