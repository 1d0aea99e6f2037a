from __future__ import annotations

import pytest

from agentwrap.host.notifiers import resolve

HERE = {"TERM": "xterm"}
THERE = {"SSH_CONNECTION": "10.0.0.1 5 10.0.0.2 22"}


@pytest.mark.parametrize(
    ("channels", "environ", "platform", "expected"),
    [
        (["auto"], HERE, "linux", ["desktop", "terminal", "bell"]),
        (["auto"], HERE, "darwin", ["desktop", "terminal", "bell"]),
        (["auto"], THERE, "linux", ["terminal", "desktop", "bell"]),
        (["auto"], {"SSH_TTY": "/dev/pts/1"}, "darwin", ["terminal", "desktop", "bell"]),
        (["auto"], HERE, "freebsd14", ["terminal", "desktop", "bell"]),
        (["command", "auto"], HERE, "linux", ["command", "desktop", "terminal", "bell"]),
        (["bell", "auto", "bell"], HERE, "linux", ["bell", "desktop", "terminal"]),
        (["desktop", "carrier-pigeon"], HERE, "linux", ["desktop"]),
        (["none"], HERE, "linux", []),
        (["desktop", "none"], HERE, "linux", []),
        ([], HERE, "linux", []),
    ],
)
def test_channels_in_order(channels, environ, platform, expected):
    assert resolve(channels, environ, platform) == expected
