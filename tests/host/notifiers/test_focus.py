from __future__ import annotations

import asyncio

import pytest

from agentwrap.host.notifiers import focus


@pytest.mark.parametrize(
    ("environ", "platform", "expected"),
    [
        ({}, "linux", []),
        (
            {"TMUX": "x", "TMUX_PANE": "%3"},
            "linux",
            [
                ["tmux", "switch-client", "-t", "%3"],
                ["tmux", "select-window", "-t", "%3"],
                ["tmux", "select-pane", "-t", "%3"],
            ],
        ),
        ({"WEZTERM_PANE": "4"}, "linux", [["wezterm", "cli", "activate-pane", "--pane-id", "4"]]),
        ({"WEZTERM_PANE": "-x"}, "linux", []),
        (
            {"WINDOWID": "41943043", "DISPLAY": ":0"},
            "linux",
            [["wmctrl", "-i", "-a", "0x2800003"], ["xdotool", "windowactivate", "41943043"]],
        ),
        ({"WINDOWID": "5"}, "linux", []),
        ({"__CFBundleIdentifier": "com.apple.Terminal"}, "darwin", [["open", "-b", "com.apple.Terminal"]]),
        ({"WINDOWID": "5", "DISPLAY": ":0"}, "darwin", []),
    ],
)
def test_what_brings_the_terminal_to_the_front(environ, platform, expected):
    assert focus.commands(environ, platform) == expected


def test_one_that_is_missing_fails_or_hangs_does_not_stop_the_others(tmp_path, monkeypatch):
    monkeypatch.setattr(focus, "TIMEOUT", 0.1)
    program = tmp_path / "xdotool"
    program.write_text(f"#!/bin/sh\necho $2 >{tmp_path}/called\nexec sleep 60\n")
    program.chmod(0o755)
    asyncio.run(focus.bring({"WINDOWID": "7", "DISPLAY": ":0", "PATH": f"{tmp_path}:/usr/bin:/bin"}, "linux"))
    assert (tmp_path / "called").read_text() == "7\n"
