from __future__ import annotations

import pytest

from agentwrap.core.scanner import RECENT_LIMIT
from agentwrap.host.guard import UndoMemory
from tests.lab.client import Writer, client_of


@pytest.fixture
def client(tmp_path):
    return client_of(tmp_path, UndoMemory(), Writer())


FRAME = b"\x1b[?2026h\x1b[?25l\x1b[1;1Htext\x1b[?25h\x1b[?2026l"


@pytest.fixture
def drawing(client):
    """One that has seen a program draw."""
    client.output(FRAME * (2 * RECENT_LIMIT // len(FRAME)), 1.0)
    assert client._memory.load() == b""
    client._memory.settle()
    return client


class TestAFrameThatHasBegun:
    def test_is_undone_while_it_is_not_known_how_it_goes_on(self, drawing):
        drawing.output(b"\x1b[?2026h\x1b[?25l", 2.0, more=True)
        assert drawing._memory.load() == b"\x1b[?2026l\x1b[?25h"
        drawing.output(b"\x1b[?25h\x1b[?2026l", 2.0)
        drawing._memory.settle()
        assert drawing._memory.load() == b""

    def test_is_known_with_the_last_output(self, drawing):
        drawing.output(b"\x1b[?2026h\x1b[?25l", 2.0, more=True)
        drawing.output(b"", 2.0)
        drawing._memory.settle()
        assert drawing._memory.load() == b"\x1b[?2026l\x1b[?25h"

    def test_lets_nothing_in_between(self, drawing):
        drawing._news._inband.append(("blocked", b"NEWS"))
        drawing.output(b"\x1b[?2026h", 2.0, more=True)
        assert drawing.between() == b""
        drawing.output(b"", 2.0)
        assert drawing.between() == b""
        drawing.output(b"\x1b[?2026l", 2.0, more=True)
        assert drawing.between() == b""
        drawing.output(b"", 2.0)
        assert drawing.between() == b"NEWS"


def test_a_key_comes_before_a_report_that_ends_after_it(client):
    client.output(b"\x1b]7501;state=working\a\x1b]7501;state=do", 1.0)
    client.typed(b"x", 1.001)
    client.output(b"ne\a", 1.002)
    client.tick(1.01)
    assert client._session.view().state == "done"
