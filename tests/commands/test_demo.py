"""`agentwrap demo`: it is a command like any other, with the options of one."""

from __future__ import annotations

import json
import os
import subprocess

import pytest

from tests.lab.outer import AGENTWRAP, Outer, until


@pytest.fixture
def environ(tmp_path):
    return {
        **os.environ,
        "HOME": str(tmp_path),
        "AGENTWRAP_STATE_DIR": str(tmp_path / "state"),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
    }


def recorded(file):
    return file.read_text() if file.exists() else ""


def test_it_is_recorded_and_named(environ, tmp_path):
    file = tmp_path / "demo.cast"
    with Outer([*AGENTWRAP, "--name", "trial", "--record", str(file), "demo"], environ=environ) as outer:
        outer.expect(b"It works on a turn")
        (session,) = (tmp_path / "state").glob("demo-*.json")
        assert json.loads(session.read_text())["name"] == "trial"
        outer.send(b"\x03")
        outer.wait()
    until(lambda: '"x"' in recorded(file))
    header, *events = map(json.loads, recorded(file).splitlines())
    assert (header["version"], header["title"]) == (2, "trial")
    assert "It works on a turn" in "".join(event[2] for event in events if event[1] == "o")


def test_also_where_it_makes_the_terminal_itself(environ, tmp_path):
    file = tmp_path / "demo.cast"
    words = [*AGENTWRAP, f"--record={file}", "--notify", "none", "demo"]
    playing = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=environ)
    try:
        until(lambda: "It works on a turn" in recorded(file))
    finally:
        playing.kill()
        playing.communicate()
