"""A program gone wild on a real terminal: every byte intact, memory and files bounded, the last state written."""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import psutil
import pyte
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.lab.judge import left_on
from tests.lab.outer import AGENTWRAP, Outer, until

MEGABYTE = 1 << 20

GROWTH = 3 * MEGABYTE
"""How much more memory agentwrap's two processes may ever take each for a wild stream than for a tame one.
The most seen is a fifth of it."""

RAW = "import os, sys, tty, termios\ntty.setraw(0, termios.TCSANOW)\n"
PLAY = (
    RAW  # what answers to its queries come is not read before
    + "data = open(sys.argv[1], 'rb').read()\nwhile data: data = data[os.write(1, data[:65536]):]\n"
    "while b'Q' not in os.read(0, 4096): pass\n"
)


def session(state_dir) -> dict[str, object] | None:
    for file in state_dir.glob("*.json"):
        try:
            return json.loads(file.read_text())
        except (OSError, ValueError):
            continue
    return None


def repeated(make, size: int = 2 * MEGABYTE) -> bytes:
    data = bytearray()
    i = 0
    while len(data) < size:
        data += make(i)
        i += 1
    return bytes(data)


def soup(seed: int) -> bytes:
    """Random bytes and pieces of sequences."""
    generator = random.Random(seed)
    pieces = (
        b"\x1b", b"\x1b[", b"\x1b]", b"\x1bP", b"\x1bPtmux;", b"\x1b\\", b"\a", b"\x18", b"7501;", b"state=working",
        b"?1049h", b"?2026h", b";", b"m", b"\0", "ü€😀".encode(), b"\xf0\x9f", b"text", bytes(range(0x80, 0xA0)),
    )  # fmt: skip
    return repeated(
        lambda _: generator.choice(pieces) if generator.random() < 0.8 else generator.randbytes(9)
    )


WILD = {
    "an endless OSC": lambda: b"\x1b]7501;state=working:msg=" + b"x" * (4 * MEGABYTE),
    "an endless DCS": lambda: b"\x1bPq" + b"#0;2;0;0;0" * (MEGABYTE // 4),
    "an endless CSI": lambda: b"\x1b[" + b"1;" * MEGABYTE,
    "an endless passthrough": lambda: b"\x1bPtmux;" + b"\x1b\x1b]x" * (MEGABYTE // 2),
    "long OSCs": lambda: repeated(lambda _: b"\x1b]52;c;" + b"QUJD" * 50_000 + b"\a"),
    "ids": lambda: repeated(lambda i: b"\x1b]7501;state=working:id=%d:msg=QUJD\a" % i),
    "queries": lambda: repeated(lambda _: b"\x1b]7501;?\a", 6 * MEGABYTE),
    "modes": lambda: repeated(lambda i: b"\x1b[?%dh\x1b[>%du\x1b[22;0t\x1b]4;%d;red\a" % (i, i, i)),
    "NULs": lambda: bytes(4 * MEGABYTE),
    "C1": lambda: repeated(lambda i: bytes((0x80 + i % 32,)) + chr(0x80 + i % 32).encode() + b"7501;x"),
    "broken UTF-8": lambda: repeated(lambda _: b"\xff\xfe\xc0\x80\xed\xa0\x80\xf5\xf0\x9f\x1b]\xff"),
    "soup": lambda: soup(1),
}


def peak(pid: int) -> int:
    """The most memory a process ever had, in bytes."""
    with open(f"/proc/{pid}/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) * 1024


def played(data: bytes, tmp_path, environ, state_dir) -> tuple[dict[str, int], bytes]:
    """Play bytes; the peaks of pump and session leader, and all that came out."""
    file = tmp_path / "stream"
    file.write_bytes(data)
    log = tmp_path / "log"
    environ = {**environ, "AGENTWRAP_LOG": str(log)}
    argv = [*AGENTWRAP, "--notify", "none", sys.executable, "-S", "-c", PLAY, str(file)]
    with Outer(argv, environ=environ) as outer:
        deadline = time.monotonic() + 60
        while len(outer.output) < len(data):
            assert time.monotonic() < deadline, f"{len(outer.output)} of {len(data)} bytes"
            outer.read(0.5)
        child = until(lambda: (session(state_dir) or {}).get("child_pid"))
        peaks = {"pump": peak(outer.pid), "session leader": peak(psutil.Process(child).ppid())}
        outer.send(b"Q")
        assert outer.wait() == 0
        assert outer.attributes() == outer.settings
        assert not log.exists() or "tap failed" not in log.read_text()
        return peaks, bytes(outer.output)


@pytest.fixture(scope="module")
def tame():
    return {}


@pytest.mark.parametrize("name", WILD)
def test_bytes_stay_intact_and_memory_bounded(name, environ, state_dir, tmp_path, tame):
    if not tame:
        text = b"\x1b]7501;state=working\a" + b"\x1b[31mhello\x1b[m world\r\n" * 20_000
        tame.update(played(text, tmp_path, environ, state_dir)[0])
    data = WILD[name]()
    peaks, output = played(data, tmp_path, environ, state_dir)
    assert hashlib.sha256(output[: len(data)]).digest() == hashlib.sha256(data).digest()
    for which, most in peaks.items():
        assert most - tame[which] < GROWTH, f"{which}: {most / MEGABYTE:.1f} MiB"


CUTS = [
    b"\x1b",
    b"\x1b[",
    b"\x1b[?10",
    b"\x1b[?1049h\x1b[?1000",
    b"\x1b]0;a title",
    b"\x1b]7501;state=bl",
    b"\x1b]7501;state=blocked\x1b",
    b"\x1bPq#0;2;0",
    b"\x1bPtmux;\x1b\x1b]7501;state=",
    b"\x1b_application",
    b"\x1b[?2026h\x1b[?25l\x1b[31mhalf a frame",
    b"\xf0\x9f\x98",
    b"\x1b(",
    b"\x1b]8;;http://example.org/\x1b\\a link",
]


@pytest.mark.parametrize("end", CUTS, ids=range(len(CUTS)))
@pytest.mark.parametrize("how", ["exit", "kill"])
def test_a_sequence_cut_by_the_end_is_ended(end, how, environ, tmp_path):
    """What the shell writes next is shown as text, plain and whole."""
    file = tmp_path / "stream"
    file.write_bytes(b"before" + end)
    last = "kill -9 $$" if how == "kill" else "exit 0"
    argv = [*AGENTWRAP, "--notify", "none", "sh", "-c", f"stty raw; cat {file}; {last}"]
    with Outer(argv, environ=environ) as outer:
        outer.wait()
        assert bytes(outer.output).startswith(b"before" + end)
        assert left_on(bytes(outer.output)) == []
        assert outer.attributes() == outer.settings
        screen = pyte.Screen(80, 24)
        pyte.ByteStream(screen).feed(bytes(outer.output) + b"$ prompt")
        assert any("$ prompt" in line for line in screen.display), screen.display
        row = next(row for row, line in enumerate(screen.display) if "$ prompt" in line)
        cell = screen.buffer[row][screen.display[row].index("$ prompt")]
        assert cell.fg == "default"


# ---- floods ----

FLOOD = (
    RAW
    + r"""
import base64, time
STATES = ("working", "blocked", "done", "error", "idle")
begun, n, seconds, rate = time.monotonic(), 0, float(sys.argv[1]), 10_000
os.write(1, b"up")
while (now := time.monotonic()) < begun + seconds:
    while n < (now - begun) * rate:
        batch = b"".join(b"\x1b]7501;state=%b:msg=%b\x07" % (
            STATES[i % 5].encode(), base64.b64encode(b"report %d" % i)) for i in range(n, n + 100))
        n += 100
        while batch: batch = batch[os.write(1, batch):]
    time.sleep(0.005)
os.write(1, b"\x1b]7501;state=blocked:kind=question:msg=%b\x07" % base64.b64encode(b"the last of %d" % n))
os.read(0, 1)
"""
)


def writes_of(directory, pattern: str, stop: threading.Event) -> list[float]:
    """When a file was seen to be another one: each write is a new file or a new time."""
    times: list[float] = []
    last = None
    while not stop.is_set():
        now = None
        for file in directory.glob(pattern):
            try:
                found = file.stat()
            except OSError:
                continue
            now = (found.st_ino, found.st_mtime_ns)
        if now is not None and now != last:
            times.append(time.monotonic())
            last = now
        time.sleep(0.002)
    return times


def test_ten_thousand_reports_a_second(environ, state_dir):
    """For three seconds; the last one is what is shown."""
    stop = threading.Event()
    argv = [*AGENTWRAP, "--notify", "none", sys.executable, "-S", "-c", FLOOD, "3"]
    with ThreadPoolExecutor(2) as pool, Outer(argv, environ=environ) as outer:
        outer.expect(b"up")
        watched = [pool.submit(writes_of, state_dir, pattern, stop) for pattern in ("*.json", "*.events")]
        try:

            def last() -> bool:
                outer.read(0.01)
                found = session(state_dir)
                return bool(found and found["message"] and found["message"].startswith("the last of"))

            until(last, 30)
            time.sleep(0.3)
        finally:
            stop.set()
        for times in (each.result() for each in watched):
            assert len(times) > 1
            for at in times:
                # eleven begin within a second where ten are spread over all of it
                assert sum(at <= other < at + 1 for other in times) <= 11
        found = session(state_dir)
        assert (found["state"], found["kind"]) == ("blocked", "question")
        assert (state_dir / "summary").read_text().startswith("1 0 0 0 0")
        total = int(found["message"].split()[-1])
        assert outer.output.count(b"\x1b]7501;") == total + 1
        outer.send(b"q")
        assert outer.wait() == 0


def test_a_key_comes_through_a_flood(environ, state_dir):
    code = (
        RAW
        + "import threading\n"
        + (
            "def flood():\n"
            "    n = 0\n"
            "    while True:\n"
            "        n += 1\n"
            "        os.write(1, b''.join(b'\\x1b]7501;state=working:id=%d\\a\\x1b[31mx\\x1b[m' % i for i in range(n, n + 50)))\n"
            "threading.Thread(target=flood, daemon=True).start()\n"
            "key = os.read(0, 1)\nos._exit(5)"
        )
    )
    with Outer([*AGENTWRAP, "--notify", "none", sys.executable, "-S", "-c", code], environ=environ) as outer:
        outer.expect(b"\x1b[31m")
        began = time.monotonic()
        while time.monotonic() < began + 0.5:
            outer.read(0.01)
        os.write(outer.master, b"k")
        assert os.waitstatus_to_exitcode(outer.wait()) == 5


# ---- the end ----


def test_agents_that_print_and_exit_at_once_lose_nothing(environ):
    """Several at a time, each with its own bytes."""
    code = "import os, random, sys\ndata = random.Random(int(sys.argv[1])).randbytes(200_000)\nwhile data: data = data[os.write(1, data):]\nos._exit(0)"

    def lost(seed: int) -> str | None:
        wanted = random.Random(seed).randbytes(200_000)
        argv = [
            *AGENTWRAP,
            "--notify",
            "none",
            sys.executable,
            "-S",
            "-c",
            "import tty, termios; tty.setraw(1, termios.TCSANOW)\n" + code,
            str(seed),
        ]
        with Outer(argv, environ=environ) as outer:
            status = outer.wait(60)
            got = bytes(outer.output)
            return None if got[: len(wanted)] == wanted and status == 0 else f"{seed}: {len(got)} bytes"

    with ThreadPoolExecutor(4) as pool:
        assert [each for each in pool.map(lost, range(int(os.environ.get("AGENTS", "40")))) if each] == []


@pytest.mark.parametrize("background", ["sleep 30", "yes", "cat", "sh -c 'trap \"\" HUP TERM; sleep 30'"])
def test_it_ends_within_half_a_second_of_the_command_whoever_holds_the_terminal(
    background, environ, tmp_path
):
    file = tmp_path / "ended"
    clock = f"{sys.executable} -S -c 'import time; print(time.monotonic())'"
    script = f"set -m; {background} & echo $! >{file}.pid; sleep 0.2; {clock} >{file}"
    with Outer([*AGENTWRAP, "--notify", "none", "bash", "-c", script], environ=environ) as outer:
        while not outer.ended():
            outer.read(0.005)
        now = time.monotonic()
    try:
        os.kill(int((tmp_path / "ended.pid").read_text()), signal.SIGKILL)
    except ProcessLookupError:
        # One reads, so it was stopped, and what is stopped the kernel hangs up; the other writes, to nobody.
        assert background in ("cat", "yes")
    assert now - float(file.read_text()) < 0.5


# ---- both ways, in any chunking ----

ECHO = RAW + (
    "import hashlib, json, time\n"
    "plan = json.load(open(sys.argv[1]))\n"
    "os.write(1, b'ready')\n"
    "digest, left = hashlib.sha256(), plan['typed']\n"
    "for size, pause, read in plan['steps']:\n"
    "    data = bytes(i * 7 % 251 for i in range(size))\n"
    "    while data: data = data[os.write(1, data):]\n"
    "    if read and left:\n"
    "        got = os.read(0, min(read, left)); digest.update(got); left -= len(got)\n"
    "    time.sleep(pause)\n"
    "while left:\n"
    "    got = os.read(0, min(left, 65536)); digest.update(got); left -= len(got)\n"
    "os.write(1, digest.hexdigest().encode() + b'END')\n"
)
SIZES = st.sampled_from([0, 1, 255, 4095, 4096, 4097, 20_000])


@settings(deadline=None, max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    steps=st.lists(st.tuples(SIZES, st.sampled_from([0, 0.001]), SIZES), max_size=12),
    typed=st.lists(st.binary(min_size=1, max_size=9) | SIZES.map(lambda size: b"\x1bk~" * size), max_size=8),
)
def test_both_ways_at_once_in_any_chunking(steps, typed, environ, tmp_path):
    keys = b"".join(typed)
    plan = tmp_path / "plan"
    plan.write_text(json.dumps({"typed": len(keys), "steps": steps}))
    wanted = b"".join(bytes(i * 7 % 251 for i in range(size)) for size, _, _ in steps)
    argv = [*AGENTWRAP, "--notify", "none", sys.executable, "-S", "-c", ECHO, str(plan)]
    with Outer(argv, environ=environ) as outer:
        end = outer.expect(b"ready")
        for each in typed:
            outer.send(each)
        outer.expect(hashlib.sha256(keys).hexdigest().encode() + b"END", start=end, timeout=30)
        assert outer.output[end:].startswith(wanted)
        assert outer.wait() == 0
