"""What holds for all tests: they see nothing of who runs them, and in CI nothing is skipped.

A test that cannot run there has not passed.
"""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator

CI = bool(os.environ.get("CI"))

# The surroundings of whoever runs the tests are not the tests': a width or colours exported by a shell, the
# session when they run wrapped, a multiplexer's pane. What a test wants, it sets.
for _name in tuple(os.environ):
    if _name.startswith(("AGENTWRAP", "TMUX")) or _name in ("COLUMNS", "LINES", "NO_COLOR", "STY"):
        del os.environ[_name]

# Started in the background by a script, they would hand on to what they start that Ctrl-C is ignored.
for _number in (signal.SIGINT, signal.SIGQUIT):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, signal.default_int_handler)


def _forbid_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Turn a skip into a failure. An expected failure, which pytest reports as skipped too, is none."""
    if CI and report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"no test is skipped in CI: {reason}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Judge a test's report."""
    report = yield
    _forbid_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Judge the report of a file that could not be collected."""
    report = yield
    _forbid_skip(report)
    return report
