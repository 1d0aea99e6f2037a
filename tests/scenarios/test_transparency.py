"""Every byte, both ways, unchanged and in order."""

from __future__ import annotations

import hashlib
import os
import random
import select
import signal
import sys
import time

import pytest

from tests.lab.judge import children_of
from tests.lab.outer import AGENTWRAP, Outer, until

MEGABYTE = 1 << 20

RAW = "import os, sys, tty, random, hashlib, termios\nfor fd in (0, 1): tty.setraw(fd, termios.TCSANOW)\n"

WRITE_RANDOM = (
    RAW
    + """
generator = random.Random(int(sys.argv[1]))
data = generator.randbytes(int(sys.argv[2]))
at = 0
while at < len(data):
    at += os.write(1, data[at : at + generator.choice((1, 7, 100, 4095, 4096, 65536))])
"""
)

READ_RANDOM = (
    RAW
    + """
os.write(1, b"ready")
left, digest = int(sys.argv[1]), hashlib.sha256()
while left:
    data = os.read(0, min(left, random.choice((1, 100, 65536))))
    digest.update(data)
    left -= len(data)
os.write(1, digest.hexdigest().encode())
"""
)


@pytest.mark.parametrize("seed", [1, 2])
def test_twenty_megabytes_of_output_arrive_as_written(seed, environ):
    size = 20 * MEGABYTE
    wanted = hashlib.sha256(random.Random(seed).randbytes(size)).hexdigest()
    got, left = hashlib.sha256(), size
    with Outer(
        [*AGENTWRAP, sys.executable, "-c", WRITE_RANDOM, str(seed), str(size)], environ=environ
    ) as outer:
        while left:
            assert select.select([outer.master], [], [], 20)[0], f"{left} bytes are missing"
            data = os.read(outer.master, 65536)[:left]
            got.update(data)
            left -= len(data)
        outer.wait()
    assert got.hexdigest() == wanted


def test_twenty_megabytes_of_input_arrive_as_typed(environ):
    size = 20 * MEGABYTE
    data = random.Random(3).randbytes(size)
    with Outer([*AGENTWRAP, sys.executable, "-c", READ_RANDOM, str(size)], environ=environ) as outer:
        outer.expect(b"ready")
        outer.send(data)
        outer.expect(hashlib.sha256(data).hexdigest().encode(), timeout=60)
        assert outer.wait() == 0


PRINT_AND_NOT_READ = (
    RAW
    + """
os.write(1, b"ready")
data = b"x" * 65536
for _ in range(128):
    at = 0
    while at < len(data):
        at += os.write(1, data[at:])
left, digest = int(sys.argv[1]), hashlib.sha256()
while left:
    data = os.read(0, min(left, 65536))
    digest.update(data)
    left -= len(data)
os.write(1, digest.hexdigest().encode())
"""
)


def test_a_paste_against_an_agent_that_prints_and_does_not_read(environ):
    paste = random.Random(4).randbytes(MEGABYTE)
    with Outer(
        [*AGENTWRAP, sys.executable, "-c", PRINT_AND_NOT_READ, str(len(paste))], environ=environ
    ) as outer:
        outer.expect(b"ready")
        outer.send(paste)
        outer.expect(hashlib.sha256(paste).hexdigest().encode(), timeout=60)
        assert outer.wait() == 0


def test_a_stalled_terminal_still_lets_ctrl_c_through(environ):
    with Outer([*AGENTWRAP, "yes"], environ=environ) as outer:
        outer.expect(b"y\r\n")
        until(outer.stalled)
        os.write(outer.master, b"\x03")
        # the command must die although nobody takes its output; agentwrap then waits for the terminal
        until(lambda: not children_of(outer.pid, "yes"), what="yes has ended")
        assert os.WTERMSIG(outer.wait()) == signal.SIGINT


def test_no_byte_is_lost_when_an_agent_prints_and_exits_at_once(environ):
    code = "import os, sys; data = b'z' * 200_000 + b'END'\nwhile data: data = data[os.write(1, data):]"
    for _ in range(10):
        with Outer([*AGENTWRAP, sys.executable, "-S", "-c", code], environ=environ) as outer:
            outer.wait()
            assert outer.output.count(b"z") == 200_000
            assert outer.output.endswith(b"END")


def test_agentwrap_ends_with_the_command_not_with_who_holds_its_terminal(environ):
    with Outer([*AGENTWRAP, "sh", "-c", "sleep 30 & echo started $!; exit 3"], environ=environ) as outer:
        end = outer.expect(b"started ")
        began = time.monotonic()
        assert os.waitstatus_to_exitcode(outer.wait(5)) == 3
        assert time.monotonic() - began < 2
        # what it left behind lives on, as without a wrapper
        outer.expect(b"\r\n", start=end)
        pid = int(outer.output[end:].split()[0])
        os.kill(pid, 0)
        os.kill(pid, signal.SIGKILL)


def test_the_command_sees_the_terminal_as_it_is(environ):
    code = (
        "import termios, fcntl, sys; print(termios.tcgetattr(0) == termios.tcgetattr(1), termios.tcgetattr(0))\n"
        "print(fcntl.ioctl(0, termios.TIOCGWINSZ, bytes(8)))"
    )

    def seen(prefix: list[str]) -> bytes:
        with Outer([*prefix, sys.executable, "-c", code], environ=environ, size=(33, 121, 968, 528)) as outer:
            outer.wait()
            return bytes(outer.output)

    bare = seen([])
    assert b"True" in bare
    assert seen(AGENTWRAP) == bare


def test_a_resize_reaches_the_command_with_its_pixels(environ):
    import fcntl
    import struct
    import termios

    code = (
        "import signal, fcntl, os, termios, time\n"
        "def show(*_): os.write(1, b'size ' + fcntl.ioctl(0, termios.TIOCGWINSZ, bytes(8)).hex().encode())\n"
        "signal.signal(signal.SIGWINCH, show); print('ready', flush=True)\n"
        "while True: signal.pause()"
    )
    with Outer([*AGENTWRAP, sys.executable, "-c", code], environ=environ) as outer:
        outer.expect(b"ready")
        size = struct.pack("HHHH", 50, 132, 1056, 800)
        fcntl.ioctl(outer.master, termios.TIOCSWINSZ, size)
        outer.expect(b"size " + size.hex().encode())
        outer.send(b"\x03")
        outer.wait()


def test_standard_error_elsewhere_stays_there(tmp_path, environ):
    file = tmp_path / "errors"
    command = f"exec {' '.join(AGENTWRAP)} sh -c 'echo out; echo err >&2' 2>{file}"
    with Outer(["sh", "-c", command], environ=environ) as outer:
        outer.wait()
        assert b"out" in outer.output
        assert b"err" not in outer.output
    assert file.read_text() == "err\n"


def test_open_files_reach_the_command(environ):
    script = f"{' '.join(AGENTWRAP)} diff <(echo a) <(echo b)"
    with Outer(["bash", "-c", script], environ=environ) as outer:
        assert os.waitstatus_to_exitcode(outer.wait()) == 1
        assert b"< a" in outer.output
        assert b"> b" in outer.output


def test_the_environment_is_the_callers_and_two_names_of_ours(environ):
    environ = {**environ, "LANG": "C"}
    for name in ("LC_ALL", "LC_CTYPE"):
        environ.pop(name, None)

    def seen(prefix: list[str]) -> dict[str, str]:
        with Outer([*prefix, "env", "-0"], environ=environ) as outer:
            outer.wait()
            return dict(pair.split("=", 1) for pair in outer.output.decode().split("\0") if "=" in pair)

    bare, wrapped = seen([]), seen(AGENTWRAP)
    session, file = wrapped.pop("AGENTWRAP_SESSION"), wrapped.pop("AGENTWRAP_STATE_FILE")
    assert wrapped == bare
    assert session.startswith("env-")
    assert file == f"{environ['AGENTWRAP_STATE_DIR']}/{session}.json"


def test_typed_while_it_starts_is_not_lost(environ):
    with Outer([*AGENTWRAP, "head", "-n", "1"], environ=environ) as outer:
        os.write(outer.master, b"typed before anything ran\r")
        outer.wait()
        assert b"typed before anything ran\r\n" in outer.output


def test_an_end_of_file_typed_while_it_starts_is_one(environ):
    with Outer([*AGENTWRAP, "cat"], environ=environ) as outer:
        os.write(outer.master, b"all there is\r\x04")
        assert outer.wait() == 0
        assert outer.output.count(b"all there is") >= 2  # echoed, and written by cat


DEMO = """
from agentwrap.commands import demo
demo.shown = lambda: "what the state file says"
demo.play(pause=lambda seconds: None)
"""


def test_the_demo_agents_stream_is_the_same_with_and_without(environ):
    def stream(prefix: list[str]) -> bytes:
        with Outer([*prefix, sys.executable, "-c", DEMO], environ=environ) as outer:
            outer.expect(b"\x1b]7501;?\x07\x1b[c")
            if not prefix:
                outer.send(b"\x1b]7501;?\x07")
            outer.send(b"\x1b[?62;22c")
            assert outer.wait() == 0
            return bytes(outer.output)

    bare = stream([])
    assert b"answered yes" in bare
    wrapped = stream(AGENTWRAP)
    undo = b"\x1b[?2004l\x1b[?1004l"
    assert wrapped.endswith(undo), "what the demo leaves on is undone, behind all that it wrote"
    assert hashlib.sha256(wrapped.removesuffix(undo)).digest() == hashlib.sha256(bare).digest()
