"""`agentwrap reset`: the terminal's settings and modes come back, through a real PTY."""

from __future__ import annotations

import fcntl
import os
import select
import signal
import subprocess
import sys
import termios
import time
import tty

import pytest

from agentwrap.core.modes import Ledger
from agentwrap.errors import AgentwrapError

IUTF8 = 0x4000  # on Linux and macOS; the termios module does not name it
RESET = [sys.executable, "-c", "from agentwrap.commands.reset import reset; raise SystemExit(reset())"]


WRITTEN = Ledger.FULL_RESET.replace(b"\n", b"\r\n")  # as sane output settings make it


@pytest.fixture(name="pty")
def _pty():
    master, slave = os.openpty()
    yield master, slave
    os.close(master)
    os.close(slave)


def adopt_terminal(slave: int):
    def prepare() -> None:
        os.setsid()
        fcntl.ioctl(slave, termios.TIOCSCTTY, 0)

    return prepare


def read_until(master: int, wanted: bytes, patience: float = 10.0) -> bytes:
    data = b""
    deadline = time.monotonic() + patience
    while wanted not in data and time.monotonic() < deadline:
        if select.select([master], [], [], 0.1)[0]:
            data += os.read(master, 65536)
    return data


def spoil(slave: int) -> None:
    """Leave the terminal raw and without its control characters, as a killed program may."""
    tty.setraw(slave)
    attributes = termios.tcgetattr(slave)
    attributes[0] |= termios.INLCR | termios.IGNCR
    for index in (termios.VINTR, termios.VSUSP, termios.VEOF):
        attributes[6][index] = b"\x00"
    attributes[6][termios.VERASE] = b"\x08"
    termios.tcsetattr(slave, termios.TCSANOW, attributes)


def run(slave: int, **kwargs) -> subprocess.CompletedProcess:
    return subprocess.run(
        RESET,
        preexec_fn=adopt_terminal(slave),
        pass_fds=(slave,),
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        timeout=30,
        check=False,
        **kwargs,
    )


def test_it_writes_the_undo_to_the_controlling_terminal_whatever_stdout_is(pty):
    master, slave = pty
    spoil(slave)
    done = run(slave, stdout=subprocess.PIPE)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert read_until(master, WRITTEN) == WRITTEN


def test_the_settings_are_sane_again(pty):
    master, slave = pty
    before = termios.tcgetattr(slave)
    spoil(slave)
    assert run(slave, stdout=subprocess.DEVNULL).returncode == 0
    after = termios.tcgetattr(slave)
    for flags, wanted in (
        (0, termios.ICRNL | termios.BRKINT),
        (1, termios.OPOST | termios.ONLCR),
        (3, termios.ICANON | termios.ECHO | termios.ECHOE | termios.ISIG | termios.IEXTEN),
    ):
        assert after[flags] & wanted == wanted
    assert not after[0] & (termios.INLCR | termios.IGNCR)
    for index in (termios.VINTR, termios.VSUSP, termios.VEOF):
        assert after[6][index] == before[6][index]
    assert after[6][termios.VERASE] == b"\x08"  # a chosen character stays
    # as a person would see it: a line typed is echoed, edited, and ended by Return
    read_until(master, WRITTEN)
    os.write(master, b"ab\x08c\r")
    assert os.read(slave, 100) == b"ac\n"
    assert read_until(master, b"\r\n").startswith(b"ab")


def test_settings_that_are_sane_stay_as_they_are(pty):
    _, slave = pty
    attributes = termios.tcgetattr(slave)
    attributes[0] &= ~termios.IXON
    attributes[0] |= IUTF8 | termios.BRKINT
    attributes[6][termios.VINTR] = b"\x07"
    termios.tcsetattr(slave, termios.TCSANOW, attributes)
    before = termios.tcgetattr(slave)
    assert run(slave, stdout=subprocess.DEVNULL).returncode == 0
    assert termios.tcgetattr(slave) == before


def test_without_a_controlling_terminal_it_resets_the_one_on_stdout(pty):
    master, slave = pty
    spoil(slave)
    done = subprocess.run(
        RESET, start_new_session=True, stdin=subprocess.DEVNULL, stdout=slave, timeout=30, check=False
    )
    assert done.returncode == 0
    assert read_until(master, WRITTEN) == WRITTEN
    assert termios.tcgetattr(slave)[3] & termios.ICANON


def test_without_any_terminal_it_says_so():
    program = (
        "from agentwrap.commands.reset import reset\n"
        "from agentwrap.errors import AgentwrapError\n"
        "try:\n    reset()\nexcept AgentwrapError as error:\n    print(error.line)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], start_new_session=True, capture_output=True, timeout=30, check=True
    )
    assert done.stdout.startswith(b"agentwrap: there is no terminal to reset; ")
    assert AgentwrapError.exit_code == 1


def test_a_terminal_that_vanishes_is_an_error_and_no_traceback(pty, monkeypatch):
    from agentwrap.commands import reset

    _, slave = pty
    monkeypatch.setattr(reset, "_open", lambda: os.dup(slave))
    monkeypatch.setattr(os, "write", lambda *_: (_ for _ in ()).throw(OSError(5, "Input/output error")))
    with pytest.raises(AgentwrapError, match="cannot write to the terminal: Input/output error"):
        reset.reset()


def test_after_an_interrupt_character_the_reset_terminal_signals(pty):
    master, slave = pty
    spoil(slave)
    assert run(slave, stdout=subprocess.DEVNULL).returncode == 0
    program = "import time; print('up', flush=True); time.sleep(30)"
    child = subprocess.Popen(
        [sys.executable, "-c", program],
        preexec_fn=adopt_terminal(slave),  # noqa: PLW1509 - no thread runs here
        pass_fds=(slave,),
        stdin=slave,
        stdout=slave,
        stderr=subprocess.DEVNULL,
    )
    try:
        read_until(master, b"up")
        os.write(master, b"\x03")
        assert child.wait(timeout=20) == -signal.SIGINT
    finally:
        child.kill()
        child.wait()
