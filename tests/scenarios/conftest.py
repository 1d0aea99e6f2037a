from __future__ import annotations

import os

import pytest

from tests.host.notifiers.conftest import address, bus, display, dunst, processes  # noqa: F401 - a desktop


@pytest.fixture
def state_dir(tmp_path):
    """Where this test's sessions publish."""
    return tmp_path / "state"


@pytest.fixture
def environ(tmp_path, state_dir):
    """An environment of the test's own: no configuration, no desktop, no terminal known by name."""
    home = tmp_path / "home"
    home.mkdir()
    keep = ("PATH", "PYTHONPATH", "VIRTUAL_ENV", "CI")
    return {
        **{name: os.environ[name] for name in keep if name in os.environ},
        "LANG": "C.UTF-8",  # where none is set, tmux shows ASCII only
        "HOME": str(home),
        "TERM": "xterm-256color",
        "SHELL": "/bin/bash",
        "AGENTWRAP_STATE_DIR": str(state_dir),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
    }


@pytest.fixture
def clean_env(environ):
    """What the desktop's own programs are started with."""
    return environ
