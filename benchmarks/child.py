"""What is wrapped while it is measured. Run with -I -S: nothing but the interpreter's own modules.

Each mode first writes its pid to the file $BENCH_PID, so that its own CPU time and memory are left out.
"""

import binascii
import os
import select
import sys
import termios
import time

QUERY = b"\x1b]7501;?\x1b\\"


def raw():
    new = termios.tcgetattr(0)
    new[0] = new[1] = 0
    new[3] &= ~(termios.ECHO | termios.ICANON | termios.ISIG | termios.IEXTEN)
    new[6][termios.VMIN] = 1
    new[6][termios.VTIME] = 0
    termios.tcsetattr(0, termios.TCSANOW, new)


def write(data):
    view = memoryview(data)
    while view:
        view = view[os.write(1, view[:65536]) :]


def report(state, message=""):
    msg = b":msg=" + binascii.b2a_base64(message.encode(), newline=False) if message else b""
    write(b"\x1b]7501;state=%b:app=bench%b\x1b\\" % (state.encode(), msg))


def stream(path):
    """The file, when a key is typed."""
    with open(path, "rb") as file:
        data = file.read()
    write(b"READY")
    os.read(0, 1)
    write(data)
    write(b"\x1b[m\r\nTHE-END")
    os.read(0, 1)


def echo(rate):
    """Each key, and beside it text at `rate` bytes a second."""
    rate = int(rate)
    line = (b"the quick brown fox jumps over the lazy dog " * 3)[:118] + b"\r\n"
    piece = line * max(1, rate // 100 // len(line))
    write(b"READY")
    due = time.monotonic()
    while True:
        timeout = None if not rate else max(0.0, due - time.monotonic())
        if select.select([0], [], [], timeout)[0]:
            key = os.read(0, 64)
            if not key or b"q" in key:
                return
            write(key)
        elif rate:
            due += 0.01
            write(piece)


def sleep(_how):
    """Nothing at all."""
    write(b"READY")
    os.read(0, 1)


def work(_how):
    """An agent at work: a report, then ten frames a second, with a spinner in the title."""
    report("working")
    write(b"READY")
    count = 0
    while not select.select([0], [], [], 0.1)[0]:
        count += 1
        mark = "⠋⠙⠹⠸⠼⠴⠦⠧"[count % 8]
        write(
            f"\x1b[?2026h\x1b]0;{mark} thinking\a\x1b[2K\r\x1b[38;2;215;119;87m{mark}\x1b[39m Thinking… "
            f"({count // 10}s)\x1b[?2026l".encode()
        )


def probe(count):
    """Ask whether status reports are understood; say in microseconds after how long the reply was here."""
    write(b"READY")
    os.read(0, 1)
    for _ in range(int(count)):
        start = time.perf_counter()
        write(QUERY)
        ready = select.select([0], [], [], 1.0)[0]
        took = (time.perf_counter() - start) * 1e6
        if ready:
            os.read(0, 256)
        write(b"<%d>" % (took if ready else -1))
        time.sleep(0.02)
    write(b"THE-END")


def published(count):
    """Report, and say in microseconds when the state file shows it."""
    path = os.environ.get("AGENTWRAP_STATE_FILE", "")
    write(b"READY")
    os.read(0, 1)
    for number in range(int(count)):
        wanted = b'"message": "number %d"' % number
        start = time.perf_counter()
        report("working", f"number {number}")
        took = -1.0
        while time.perf_counter() - start < 1.0:
            try:
                with open(path, "rb") as file:
                    if wanted in file.read():
                        took = (time.perf_counter() - start) * 1e6
                        break
            except OSError:
                pass
            time.sleep(0.0001)
        write(b"<%d>" % took)
        time.sleep(0.15)  # the next is no part of the same burst
    write(b"THE-END")


def notified(count):
    """Report what is told at once; say in microseconds when the command for it wrote to the FIFO."""
    fifo = os.open(os.environ["BENCH_FIFO"], os.O_RDWR)
    write(b"READY")
    os.read(0, 1)
    time.sleep(2)  # with what follows, longer than a key counts as looking
    for number in range(int(count)):
        report("working")
        time.sleep(1.2)  # at most one notification a second
        start = time.perf_counter()
        report("blocked", f"number {number}")
        ready = select.select([fifo], [], [], 3.0)[0]
        took = (time.perf_counter() - start) * 1e6
        if ready:
            os.read(fifo, 4096)
        write(b"<%d>" % (took if ready else -1))
    write(b"THE-END")


def told(fd):
    """Report the states that arrive, a letter each, on a descriptor that was inherited."""
    names = {b"w": "working", b"b": "blocked", b"i": "idle", b"d": "done"}
    report("idle")
    write(b"READY")
    while letter := os.read(int(fd), 1):
        report(names[letter])


if __name__ == "__main__":
    with open(os.environ["BENCH_PID"], "w") as file:
        file.write(str(os.getpid()))
    raw()
    MODES = (stream, echo, sleep, work, probe, published, notified, told)
    {mode.__name__: mode for mode in MODES}[sys.argv[1]](sys.argv[2])
