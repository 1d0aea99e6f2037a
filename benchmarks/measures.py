"""What is measured, each kind interleaved: one round takes every contender once, in an order of its own."""

from __future__ import annotations

import os
import random
import shutil
import statistics
import sys
import time
from pathlib import Path

import outer
import streams
from outer import CHILD, Outer

SETTLE = 2.0
KEYS = 200
MARK = "Qx"  # a word that no terminal sequence looks like


class Setting:
    """How much is to be done, and where."""

    def __init__(self, where, launcher, *, quick, factor):
        self.where = where
        self.launcher = launcher
        self.python = Path(launcher).parent / "python"
        self.quick = quick
        self.factor = factor

    def count(self, full, quick):
        """How many rounds."""
        return max(1, round((quick if self.quick else full) * self.factor))


def order(found):
    """All of them, in an order of chance: whoever follows a heavy one must not always be the same."""
    return random.sample(found, len(found))


def child(mode, argument):
    """The words of what is wrapped."""
    return [*CHILD, mode, str(argument)]


def child_pid():
    """The pid of what is wrapped."""
    return int(Path(os.environ["BENCH_PID"]).read_text())


def own(contender, terminal):
    """The contender's own processes: all but what it wraps."""
    if contender.name == "direct":
        return []
    return outer.family(contender.roots(terminal), {child_pid()})


# ---- start-up ----


def startup(found, setting, series):
    """From the spawn to the first byte of `printf x`, and all of `true`."""
    printf, true = shutil.which("printf"), shutil.which("true")
    pythons = {"python -I -c pass": ["-I", "-c", "pass"], "python -c pass": ["-c", "pass"]}
    python = str(setting.python if setting.python.exists() else sys.executable)
    deaf = set()
    for round_ in range(setting.count(60, 15) + 2):
        for contender in order(found):
            with Outer(contender.argv([printf, MARK])) as terminal:
                try:
                    if contender.name not in deaf:
                        terminal.expect(MARK.encode(), 3)
                except outer.TooLateError:
                    deaf.add(contender.name)  # pexpect loses what a command wrote that has ended already
                first = time.perf_counter() - terminal.spawned
                terminal.wait()
            with Outer(contender.argv([true])) as terminal:
                terminal.wait()
                whole = time.perf_counter() - terminal.spawned
            contender.done()
            if round_ >= 2:  # the first ones fill caches
                if contender.name not in deaf:
                    series.add("first byte, ms", contender.name, first * 1e3)
                series.add("`true` in total, ms", contender.name, whole * 1e3)
        for name, words in pythons.items():
            with Outer([python, *words]) as terminal:
                terminal.wait()
                took = time.perf_counter() - terminal.spawned
            if round_ >= 2:
                series.add("first byte, ms", name, took * 1e3)
                series.add("`true` in total, ms", name, took * 1e3)


# ---- throughput ----


def throughput(found, setting, series):
    """A stream as fast as the terminal takes it: MB a second, and CPU seconds of the contender's own a GB."""
    size = 16 << 20 if setting.quick else 64 << 20
    path = setting.where / "stream"
    for name, make in streams.STREAMS.items():
        path.write_bytes(make(size))
        total = path.stat().st_size
        for _ in range(setting.count(5, 3)):
            for contender in order(found):
                with Outer(contender.argv(child("stream", path))) as terminal:
                    terminal.expect(b"READY")
                    processes = own(contender, terminal)
                    before = outer.cpu(processes)
                    start = time.perf_counter()
                    terminal.type(b"g")
                    terminal.output.clear()
                    _, end = terminal.drain_to(b"THE-END")
                    used = outer.cpu(processes) - before
                    terminal.type(b"g")
                    terminal.wait()
                contender.done()
                series.add(f"throughput, {name}, MB/s", contender.name, total / 1e6 / (end - start))
                if contender.name != "direct":
                    series.add(f"CPU, {name}, s/GB", contender.name, used / (total / 1e9))


# ---- keys ----


def echo(found, setting, series):
    """A key there and back."""
    for label, rate in (("idle", 0), ("beside 2 MB/s", 2_000_000)):
        for round_ in range(setting.count(6, 2) + 1):
            for contender in order(found):
                if rate and contender.name == "tmux":
                    continue  # it draws what its screen comes to, and the key has scrolled out by then
                took = []
                with Outer(contender.argv(child("echo", rate))) as terminal:
                    terminal.expect(b"READY")
                    time.sleep(0.2)
                    for count in range(setting.count(KEYS, KEYS // 2)):
                        # one that the text beside it has not, and that tmux shows as it is
                        key = bytes((ord("A") + count % 26,))
                        # long enough for everything to be at rest between two keys
                        until = time.perf_counter() + random.uniform(0.004, 0.012)
                        while (left := until - time.perf_counter()) > 0:
                            terminal.read(left)
                        start = time.perf_counter()
                        terminal.type(key)
                        while key not in (came := terminal.read(5)):
                            if not came:
                                raise outer.TooLateError(f"{contender.name}: no echo of {key!r}")
                        took.append((time.perf_counter() - start) * 1e6)
                    terminal.type(b"q")
                    terminal.wait()
                contender.done()
                if round_ == 0:
                    continue
                took.sort()
                series.add(f"key echo {label}, p50 µs", contender.name, statistics.median(took))
                series.add(f"key echo {label}, p99 µs", contender.name, took[int(len(took) * 0.99)])


# ---- while nothing happens ----


def idle(found, setting, series):
    """Memory, wake-ups and CPU of the contender's own, all of them side by side for a minute."""
    seconds = 10 if setting.quick else 60
    for label, mode in (("idle", "sleep"), ("agent at work", "work")):
        running = []
        try:
            for contender in found:
                terminal = Outer(contender.argv(child(mode, "-")))
                terminal.expect(b"READY")
                running.append((contender, terminal, own(contender, terminal)))
            drain(running, SETTLE)
            before = [(outer.wakeups(each), outer.cpu(each)) for _, _, each in running]
            drain(running, seconds)
            for (contender, _, processes), (woken, used) in zip(running, before, strict=True):
                if contender.name == "direct":
                    continue
                name = contender.name
                series.add(f"{label}: memory (PSS), MB", name, outer.pss(processes) / 1e6)
                series.add(
                    f"{label}: wake-ups a minute", name, (outer.wakeups(processes) - woken) * 60 / seconds
                )
                series.add(f"{label}: CPU, ms a minute", name, (outer.cpu(processes) - used) * 60e3 / seconds)
        finally:
            for contender, terminal, _ in running:
                terminal.type(b"q")
                terminal.close()
                contender.done()


def drain(running, seconds):
    """Take what they write, as a terminal would."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        for _, terminal, _ in running:
            terminal.read(0)
        time.sleep(0.05)


# ---- what only agentwrap does ----


def reports(found, setting, series):
    """Microseconds from a report or query to what comes of it, as the program that made it sees them."""
    ours = [each for each in found if each.name == "agentwrap"]
    fifo = setting.where / "fifo"
    os.mkfifo(fifo)
    os.environ["BENCH_FIFO"] = str(fifo)
    config = setting.where / "notify.toml"
    config.write_text(
        '[notify]\nchannels = ["command"]\nblocked_delay = 0.0\n'
        f'command = ["/bin/sh", "-c", "echo >> {fifo}"]\n'
    )
    for contender in ours:
        for value in _said(contender.argv(child("probe", count := setting.count(100, 30))), count):
            series.add("probe answered after, µs", contender.name, value)
        for value in _said(contender.argv(child("published", count := setting.count(60, 15))), count):
            series.add("state file written after, µs", contender.name, value)
        telling = [
            setting.launcher,
            "--config",
            str(config),
            *child("notified", count := setting.count(12, 4)),
        ]
        for number, value in enumerate(_said(telling, count)):
            which = "the first notification, its helper started" if number == 0 else "a notification"
            series.add(f"{which}, its command run after, µs", contender.name, value)


def _said(argv, count):
    """What the wrapped program tells of itself, in angle brackets."""
    with Outer(argv) as terminal:
        terminal.expect(b"READY")
        terminal.type(b"g")
        text = b""
        while b"THE-END" not in text:
            text += terminal.read(10)
        terminal.wait()
    found = [int(part.partition(b">")[0]) for part in text.split(b"<")[1:] if b">" in part]
    assert len(found) == count, f"{argv}: {found}"
    assert min(found) >= 0, f"{argv}: {found}"
    return found


# ---- many at once ----


def many(found, setting, series):
    """Fifty sessions that change once a second each: cost in total, and whether the summary follows."""
    ours = [each for each in found if each.name == "agentwrap"]
    seconds = 10 if setting.quick else 40
    rng = random.Random(4)
    for contender in ours:
        running = []
        try:
            for _ in range(50):
                reading, writing = os.pipe()
                os.set_inheritable(reading, True)
                terminal = Outer(contender.argv(child("told", reading)), pass_fds=(reading,))
                os.close(reading)
                terminal.expect(b"READY")
                processes = outer.family([terminal.pid], {child_pid()})
                running.append((contender, terminal, processes, writing))
            every = [pid for _, _, each, _ in running for pid in each]
            states = ["i"] * 50
            time.sleep(SETTLE)
            used, start, late = outer.cpu(every), time.monotonic(), 0
            for second in range(seconds):
                for number, entry in enumerate(running):
                    _wait_until(start + second + number * 0.015, running)
                    states[number] = rng.choice([each for each in "wbi" if each != states[number]])
                    os.write(entry[3], states[number].encode())
                _wait_until(time.monotonic() + 0.2, running)
                late += _counts() != _wanted(states)
                _wait_until(start + second + 1, running)
            share = (outer.cpu(every) - used) / (time.monotonic() - start)
            series.add("50 sessions: CPU, % of one core", contender.name, share * 100)
            series.add("50 sessions: memory (PSS) each, MB", contender.name, outer.pss(every) / 50e6)
            series.add(
                "50 sessions: summary wrong 0.2 s after a change, of 100",
                contender.name,
                late * 100 / seconds,
            )
        finally:
            for *_, writing in running:
                os.close(writing)
            for _, terminal, _, _ in running:
                terminal.close()


def _wait_until(when, running):
    while True:
        for _, terminal, _, _ in running[:: max(1, len(running) // 5)]:
            terminal.read(0)
        left = when - time.monotonic()
        if left <= 0:
            return
        time.sleep(min(left, 0.01))


def _wanted(states):
    """The counts of `summary`: blocked, error, done, working, idle."""
    return f"{states.count('b')} 0 0 {states.count('w')} {states.count('i')}"


def _counts():
    text = (Path(os.environ["AGENTWRAP_STATE_DIR"]) / "summary").read_text()
    return " ".join(text.split()[:5])
