from __future__ import annotations

import os

import pytest

from agentwrap.host import poller


@pytest.fixture(params=[poller.PollPoller, poller.SelectPoller])
def waiter(request):
    return request.param()


@pytest.fixture
def pipe():
    ends = os.pipe()
    yield ends
    for fd in ends:
        try:
            os.close(fd)
        except OSError:
            pass


def test_nothing_ready_is_an_empty_list(waiter, pipe):
    waiter.want(pipe[0], poller.READ)
    assert waiter.wait(0) == []


def test_reading_and_writing_are_told_apart(waiter, pipe):
    waiter.want(pipe[0], poller.READ)
    waiter.want(pipe[1], poller.WRITE)
    assert waiter.wait(0) == [(pipe[1], poller.WRITE)]
    os.write(pipe[1], b"x")
    assert sorted(waiter.wait(0)) == sorted([(pipe[0], poller.READ), (pipe[1], poller.WRITE)])


def test_a_hangup_wakes_who_reads_and_never_who_wants_nothing(waiter, pipe):
    os.close(pipe[1])
    waiter.want(pipe[0], poller.READ)
    assert waiter.wait(0) == [(pipe[0], poller.READ)]
    waiter.want(pipe[0], 0)
    assert waiter.wait(0) == []


def test_macos_polls_no_terminals():
    assert isinstance(poller.make("darwin"), poller.SelectPoller)
    assert isinstance(poller.make("linux"), poller.PollPoller)
