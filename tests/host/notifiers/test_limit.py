"""All sessions together do not bury the desktop; somebody who is waited for always gets through."""

from __future__ import annotations

import fcntl
import os

import pytest

from agentwrap.host.notifiers import limit as limit_module
from agentwrap.host.notifiers.limit import FILE, PER_MINUTE, Limit


@pytest.fixture
def clock(monkeypatch):
    """A clock the test sets."""

    class Clock:
        now = 1000.0

        @classmethod
        def sleep(cls, seconds):
            cls.now += seconds

    monkeypatch.setattr(limit_module.time, "monotonic", lambda: Clock.now)
    monkeypatch.setattr(limit_module.time, "sleep", Clock.sleep)
    return Clock


@pytest.fixture
def environ(tmp_path):
    return {"AGENTWRAP_STATE_DIR": str(tmp_path / "state")}


def test_so_many_a_minute_whoever_shows_them(environ, clock):
    one, other = Limit(environ), Limit(environ)
    assert all((one, other)[n % 2].take(always=False) for n in range(PER_MINUTE))
    assert not one.take(always=False)
    assert not other.take(always=False)
    clock.now += 59
    assert not one.take(always=False)
    clock.now += 1
    assert one.take(always=False)


def test_what_always_comes_counts_too(environ, clock):
    limit = Limit(environ)
    assert all(limit.take(always=True) for _ in range(PER_MINUTE + 5))
    assert not limit.take(always=False)
    assert limit.take(always=True)


def test_the_file_is_private_and_bounded(environ, clock, tmp_path):
    limit = Limit(environ)
    for _ in range(3 * PER_MINUTE):
        limit.take(always=True)
    file = tmp_path / "state" / FILE
    assert file.stat().st_mode & 0o777 == 0o600
    assert len(file.read_bytes().split()) == PER_MINUTE


@pytest.mark.parametrize(
    "content", [b"", b"\0\xff x\n", b"2000.0\n" * PER_MINUTE, b"900.0\n" * PER_MINUTE, b"nan\n" * 50]
)
def test_a_file_that_says_nothing_of_now_limits_nothing(environ, clock, tmp_path, content):
    limit = Limit(environ)
    assert limit.take(always=False)
    (tmp_path / "state" / FILE).write_bytes(content)
    assert limit.take(always=False)


def test_where_there_is_no_directory_or_somebody_holds_it_there_is_no_limit(environ, clock, tmp_path):
    (tmp_path / "file").touch()
    assert Limit({"AGENTWRAP_STATE_DIR": str(tmp_path / "file")}).take(always=False)
    limit = Limit(environ)
    for _ in range(PER_MINUTE):
        limit.take(always=False)
    holder = os.open(tmp_path / "state" / FILE, os.O_RDWR)
    fcntl.flock(holder, fcntl.LOCK_EX)
    assert limit.take(always=False)
    os.close(holder)
    assert not limit.take(always=False)


def test_a_link_in_its_place_is_not_followed(environ, clock, tmp_path):
    limit = Limit(environ)
    limit.take(always=False)
    target = tmp_path / "target"
    target.write_bytes(b"precious")
    file = tmp_path / "state" / FILE
    file.unlink()
    file.symlink_to(target)
    assert limit.take(always=False)
    assert target.read_bytes() == b"precious"
