from __future__ import annotations

import os

from agentwrap.host.guard import SLOT, UndoMemory


def test_another_process_sees_the_last_whole_version():
    memory = UndoMemory()
    for number in range(5):
        assert memory.store(b"\x1b[?%dl" % number)
    memory.arm(armed=True)
    pid = os.fork()
    if pid == 0:
        os._exit(0 if memory.armed and memory.load() == b"\x1b[?4l" else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_what_the_other_process_stores_is_seen_here():
    memory = UndoMemory()
    pid = os.fork()
    if pid == 0:
        memory.store(b"from there")
        memory.arm(armed=True)
        os._exit(0)
    os.waitpid(pid, 0)
    assert memory.load() == b"from there"
    assert memory.armed


def test_the_former_bytes_stay_whole_until_the_new_ones_are():
    memory = UndoMemory()
    memory.store(b"former")
    before = memory.load()
    assert not memory.store(b"x" * (SLOT - 1))
    assert memory.load() == before
    assert memory.store(b"x" * (SLOT - 2))
    assert memory.load() == b"x" * (SLOT - 2)
