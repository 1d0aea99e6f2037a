"""The table of what was told of the real agents, printed after the tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.lab.score import Score

SCORES: pytest.StashKey[list[Score]] = pytest.StashKey()


@pytest.fixture
def scores(request: pytest.FixtureRequest) -> list[Score]:
    """Where a scenario's score is put."""
    return request.config.stash.setdefault(SCORES, [])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the table, one row for each agent and version."""
    scores = config.stash.get(SCORES, [])
    if not scores:
        return
    from tests.lab.score import table

    terminalreporter.section("real agents: states and notifications")
    for line in table(scores):
        terminalreporter.line(line)
