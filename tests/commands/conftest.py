"""What the tests of verbs share."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

sys.path.insert(0, os.path.dirname(__file__))  # for `live`

from live import AGENTWRAP, Live


@pytest.fixture
def directory(tmp_path):
    return tmp_path / "state"


@pytest.fixture
def start(directory):
    """Start sessions that end with the test."""
    started = []

    def start(agent, state="unknown", **more):
        started.append(Live(directory, agent, state, **more))
        return started[-1]

    yield start
    for one in started:
        one.kill()


@pytest.fixture
def verb(directory):
    """Run a verb to its end."""

    def verb(*words, **more):
        environ = os.environ | {"AGENTWRAP_STATE_DIR": str(directory), "HOME": "/srv"}
        return subprocess.run(
            [*AGENTWRAP, *words], capture_output=True, text=True, env=environ, check=False, timeout=60, **more
        )

    return verb
