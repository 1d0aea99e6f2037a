"""Claims about the events kept for `explain`: private, bounded, whole lines, and gone with the session."""

from __future__ import annotations

import errno
import os
import stat

import pytest

from agentwrap.host import publisher
from agentwrap.host.publisher import EVENTS, EVENTS_INTERVAL, Publisher
from agentwrap.host.statefile import StateDir

NAME = "claude-1"


class Leader:
    """A publisher, and the time."""

    def __init__(self, path):
        self.state = StateDir.open({"AGENTWRAP_STATE_DIR": str(path)})
        self.publisher = Publisher({}, NAME, self.state)
        self.now = 100.0
        self.count = 0

    def publish(self):
        self.publisher.line("P", b'{"state": "idle"}')
        return self

    def happen(self, count=1):
        for _ in range(count):
            self.publisher.line("V", b'{"n": %d}' % self.count)
            self.count += 1
        return self

    def tick(self, seconds=EVENTS_INTERVAL):
        self.now += seconds
        self.publisher.tick(self.now)
        return self

    @property
    def path(self):
        return os.path.join(self.state.path, f"{NAME}.events")

    @property
    def numbers(self):
        with open(self.path, encoding="utf-8") as file:
            return [int(line[6:-2]) for line in file]


@pytest.fixture
def leader(tmp_path):
    return Leader(tmp_path / "state")


def others(leader):
    return [name for name in os.listdir(leader.state.path) if "events" in name and name != f"{NAME}.events"]


def test_events_are_written_in_order_to_a_private_file_whatever_the_umask(leader):
    before = os.umask(0o277)
    try:
        leader.publish().happen(2).tick().happen().tick()
    finally:
        os.umask(before)
    assert leader.numbers == [0, 1, 2]
    assert stat.S_IMODE(os.stat(leader.path).st_mode) == 0o600
    assert others(leader) == []


def test_what_happened_before_the_session_was_published_is_not_lost(leader):
    leader.happen(2).tick()
    assert not os.path.exists(leader.path)
    leader.publish().happen().tick()
    assert leader.numbers == [0, 1, 2]


def test_the_file_is_bounded_and_always_holds_the_last(leader):
    leader.publish()
    longest = 0
    for _ in range(3 * EVENTS // 7):
        leader.happen(7).tick()
        numbers = leader.numbers
        assert numbers == list(range(numbers[0], leader.count))
        assert len(numbers) >= min(EVENTS, leader.count)
        longest = max(longest, len(numbers))
    assert EVENTS < longest <= 2 * EVENTS


def test_a_flood_is_written_seldom_and_leaves_its_last(leader, monkeypatch):
    leader.publish().happen().tick()
    writes = []
    monkeypatch.setattr(Publisher, "_write_events", lambda self: writes.append(len(self._unwritten)))
    for _ in range(100):
        leader.happen(10).tick(EVENTS_INTERVAL / 50)
    assert 1 <= len(writes) <= 2
    assert 0 < leader.publisher.timeout(leader.now) < EVENTS_INTERVAL + 0.001
    assert len(leader.publisher._unwritten) == EVENTS


def test_a_file_that_was_removed_or_cut_is_made_whole_again(leader, monkeypatch):
    leader.publish().happen(2).tick()
    os.unlink(leader.path)
    assert leader.happen().tick().numbers == [0, 1, 2]
    # a full disk takes half a line
    write, left = os.write, [5]

    def full(fd, data):
        if not left:
            raise OSError(errno.ENOSPC, "full")
        return write(fd, data[: left.pop()])

    monkeypatch.setattr(publisher.os, "write", full)
    leader.happen(2).tick()
    monkeypatch.undo()
    assert others(leader) == []
    assert leader.happen().tick().numbers == list(range(6))
    assert others(leader) == []


def test_what_is_in_the_way_is_neither_followed_nor_left(leader, tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("precious")
    os.symlink(victim, leader.path)
    os.symlink(victim, os.path.join(leader.state.path, f".{NAME}.events.{os.getpid()}.tmp"))
    leader.publish().happen().tick()
    assert leader.numbers == [0]
    os.unlink(leader.path)
    os.symlink(victim, leader.path)
    assert leader.happen().tick().numbers == [0, 1]
    assert victim.read_text() == "precious"


def test_after_the_session_was_taken_back_nothing_is_written_any_more(leader):
    leader.publish().happen().tick().happen()
    leader.publisher.pump_gone()
    leader.tick().happen().tick()
    assert [name for name in os.listdir(leader.state.path) if name.startswith((NAME, f".{NAME}"))] == []


def test_without_a_state_directory_events_go_nowhere():
    alone = Publisher({}, NAME, None)
    alone.line("P", b"{}")
    alone.line("V", b"{}")
    alone.tick(1.0)
    assert alone.timeout(1.0) is None


def test_a_directory_that_takes_nothing_stops_nothing(leader):
    leader.publish().happen().tick()
    for name in os.listdir(leader.state.path):
        os.unlink(os.path.join(leader.state.path, name))
    os.rmdir(leader.state.path)
    leader.happen().tick()
    os.mkdir(leader.state.path, 0o700)
    assert leader.happen().tick().numbers == [0, 1, 2]
