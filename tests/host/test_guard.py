from __future__ import annotations

import os

from agentwrap.host.guard import MOST_COMING, SLOT, UndoMemory


def in_another_process(look) -> bool:
    pid = os.fork()
    if pid == 0:
        os._exit(0 if look() else 1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_another_process_sees_the_last_whole_version():
    memory = UndoMemory()
    for number in range(5):
        memory.expect(b"\x1b[?%dl" % number)
        memory.settle()
    memory.arm(armed=True)
    assert in_another_process(lambda: memory.armed and memory.load() == b"\x1b[?4l")


def test_what_the_other_process_stores_is_seen_here():
    memory = UndoMemory()

    def store() -> bool:
        memory.expect(b"from there")
        memory.arm(armed=True)
        return True

    assert in_another_process(store)
    assert memory.load() == b"from there"
    assert memory.armed


def test_until_it_is_out_both_the_terminal_before_and_after_are_covered():
    memory = UndoMemory()
    memory.expect(b"<mouse>")
    memory.settle()
    memory.expect(b"<paste>")
    assert memory.unsettled
    assert memory.load() == b"<mouse><paste>"
    memory.expect(b"")
    assert memory.load() == b"<mouse><paste>"
    memory.settle()
    assert memory.load() == b""
    assert not memory.unsettled


def test_a_slow_terminal_gets_everything_undone():
    memory = UndoMemory(b"<all>")
    for number in range(3 * MOST_COMING):
        memory.expect(b"<%d>" % number)
    assert b"<all>" in memory.load()
    assert memory.load().endswith(b"<%d>" % (3 * MOST_COMING - 1))
    assert len(memory.load()) < 8 * MOST_COMING


def test_what_does_not_fit_is_undone_by_everything():
    memory = UndoMemory(b"<all>")
    memory.expect(b"x" * (SLOT - 2))
    memory.settle()
    assert memory.load() == b"x" * (SLOT - 2)
    memory.expect(b"y" * (SLOT - 1))
    memory.settle()
    assert memory.load() == b"<all>"
