from __future__ import annotations

import pytest

from agentwrap import agents
from agentwrap.agents.requirements import REQUIREMENTS, find_version, numbers


def test_every_agent_has_an_entry():
    assert set(REQUIREMENTS) == set(agents.NAMES)


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("2.1.308 (Claude Code)", "2.1.308"),
        ("codex-cli 0.171.0", "0.171.0"),
        ("pi v1.6.0", "1.6.0"),
        ("0.164.0-alpha.2\n", "0.164.0-alpha.2"),
        ("1.18", "1.18"),
        ("usage: x [1]", None),
        ("", None),
    ],
)
def test_a_version_is_found(text, version):
    assert find_version(text) == version


@pytest.mark.parametrize(
    ("version", "expected"),
    [("2.1.295", (2, 1, 295)), ("0.164.0-alpha.2", (0, 164, 0)), ("x", ()), ("1..2", (1,))],
)
def test_numbers(version, expected):
    assert numbers(version) == expected


@pytest.mark.parametrize(
    ("agent", "version", "environ", "count"),
    [
        ("claude", "2.1.294", {}, 1),
        ("claude", "2.1.295", {}, 0),
        ("claude", "2.2.0", {}, 0),
        ("claude", None, {}, 0),
        ("claude", "2.1.300", {"CLAUDE_CODE_DISABLE_TERMINAL_TITLE": "1"}, 1),
        ("claude", "2.1.300", {"CLAUDE_CODE_DISABLE_TERMINAL_TITLE": "0"}, 0),
        ("claude", "2.1.300", {"CLAUDE_CODE_DISABLE_TERMINAL_TITLE": ""}, 0),
        ("codex", "0.162.9", {}, 1),
        ("codex", "0.163.0", {}, 0),
        ("pi", "1.6.0", {"PI_PROGRAM_STATUS": "0"}, 1),
        ("pi", "1.6.0", {"PI_PROGRAM_STATUS": "1"}, 0),
        ("opencode", "1.18.33", {"OPENCODE_TUI_CONFIG": "/home/u/tui.json"}, 1),
        ("crush", "0.1.0", {}, 0),
    ],
)
def test_why_an_agent_would_not_be_seen(agent, version, environ, count):
    assert len(REQUIREMENTS[agent].problems(version, environ)) == count
