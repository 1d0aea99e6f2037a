from __future__ import annotations

import fcntl
import os
import struct
import termios

import pytest

from agentwrap.host import terminal

IUTF8 = 0o40000  # Linux; the termios module of Python 3.11 does not name it


@pytest.fixture
def pty():
    master, slave = os.openpty()
    yield master, slave
    os.close(master)
    os.close(slave)


def test_raw_passes_every_byte_and_keeps_the_rest(pty):
    before = termios.tcgetattr(pty[1])
    before[0] |= IUTF8 | termios.IXON | termios.ICRNL
    made = terminal.raw(before)
    assert made[0] & IUTF8
    assert not made[0] & (termios.IXON | termios.ICRNL)
    assert not made[1] & termios.OPOST
    assert not made[3] & (termios.ECHO | termios.ICANON | termios.ISIG | termios.IEXTEN)
    assert before[3] & termios.ICANON, "the original is untouched"
    assert made[6][termios.VMIN] == 1
    assert made[6][termios.VERASE] == before[6][termios.VERASE]


def test_a_reopened_terminal_leaves_the_shared_descriptor_blocking(pty):
    user = terminal.Terminal(pty[1], pty[1])
    assert user.nonblocking
    assert user.read_fd == user.write_fd != pty[1]
    assert os.get_blocking(pty[1])
    assert not os.get_blocking(user.read_fd)
    os.close(user.read_fd)


def test_raw_and_restore_round_trip(pty):
    user = terminal.Terminal(pty[1], pty[1])
    before = termios.tcgetattr(pty[1])
    assert user.make_raw()
    assert termios.tcgetattr(pty[1]) != before
    user.restore()
    assert termios.tcgetattr(pty[1]) == before


def test_settings_that_somebody_else_made_stay(pty):
    user = terminal.Terminal(pty[1], pty[1])
    user.make_raw()
    theirs = termios.tcgetattr(pty[1])
    theirs[3] |= termios.ECHO
    termios.tcsetattr(pty[1], termios.TCSANOW, theirs)
    user.restore()
    assert termios.tcgetattr(pty[1]) == theirs


def test_typed_ahead_survives_the_switch_to_raw(pty):
    os.write(pty[0], b"typed ahead\n")
    user = terminal.Terminal(pty[1], pty[1])
    user.make_raw()
    assert os.read(user.read_fd, 100) == b"typed ahead\n"


def test_an_end_of_file_typed_ahead_stays_one(pty):
    user = terminal.Terminal(pty[1], pty[1])
    os.write(pty[0], b"one\ntwo\x04\x04half")
    assert user.typed_ahead() == b"one\ntwo\x04\x04"
    user.make_raw()
    assert os.read(user.read_fd, 100) == b"half"


def test_the_size_travels_with_its_pixels(pty):
    other, inner = os.openpty()
    fcntl.ioctl(pty[1], termios.TIOCSWINSZ, struct.pack("HHHH", 50, 120, 960, 800))
    size = terminal.get_size(pty[1])
    assert size is not None
    terminal.set_size(inner, size)
    assert struct.unpack("HHHH", fcntl.ioctl(inner, termios.TIOCGWINSZ, bytes(8))) == (50, 120, 960, 800)
    os.close(other)
    os.close(inner)


def test_a_terminal_that_is_gone_is_told_as_vanished():
    master, slave = os.openpty()
    user = terminal.Terminal(slave, slave)
    os.close(master)
    with pytest.raises(terminal.VanishedError):
        user.foreground()
    os.close(slave)


def test_a_terminal_that_is_not_ours_to_lose_counts_as_foreground(pty):
    user = terminal.Terminal(pty[1], pty[1])
    assert user.foreground()
