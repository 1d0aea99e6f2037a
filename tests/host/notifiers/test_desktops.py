"""Other real programs at the far end: a second notification server, and a terminal that posts by itself."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import need, until

NOTIFYD = ("/usr/lib/x86_64-linux-gnu/xfce4/notifyd/xfce4-notifyd", "/usr/lib/xfce4/notifyd/xfce4-notifyd")
LOGGING = """<?xml version="1.0" encoding="UTF-8"?>
<channel name="xfce4-notifyd" version="1.0">
<property name="notification-log" type="bool" value="true"/><property name="log-level" type="uint" value="1"/>
</channel>
"""
SAY = """
import os, sys, tty
from agentwrap.core import inband
tty.setraw(0)
for data in (
    inband.notification("99", "Claude Code needs; permission", "approve x and y\\n~/shop", ident="c-1.blocked"),
    inband.notification("9", "Claude Code finished", "pong"),
    inband.notification("777", "Codex; finished", "pong; x"),
):
    os.write(1, data)
os.read(0, 1)  # until the window is closed
"""


@pytest.fixture
def xfce(processes, address, display, clean_env):
    """xfce4-notifyd, which keeps a log of what it shows. Returns the log and a count of what is on screen."""
    need("xdotool")
    program = next((path for path in NOTIFYD if shutil.which(path)), None)
    need(program or NOTIFYD[0])
    settings = Path(clean_env["XDG_CONFIG_HOME"]) / "xfce4/xfconf/xfce-perchannel-xml"
    settings.mkdir(parents=True)
    (settings / "xfce4-notifyd.xml").write_text(LOGGING)
    processes.env |= {"DBUS_SESSION_BUS_ADDRESS": address, "DISPLAY": display, "NO_AT_BRIDGE": "1"}
    processes.start(str(Path(program).parents[1] / "xfconf" / "xfconfd"))
    until(lambda: owned(processes, "org.xfce.Xfconf"), "xfconf on the bus")
    processes.start(program)
    until(lambda: owned(processes, "org.freedesktop.Notifications"), "xfce4-notifyd on the bus")

    def shown():
        run = subprocess.run(
            ["xdotool", "search", "--onlyvisible", "--class", "notifyd"],
            env=processes.env, capture_output=True, text=True, check=False,
        )  # fmt: skip
        return len(run.stdout.split())

    return Path(clean_env["HOME"]) / ".cache/xfce4/notifyd/log", shown


def owned(processes, name):
    run = subprocess.run(
        ["dbus-send", "--session", "--print-reply", "--dest=org.freedesktop.DBus", "/org/freedesktop/DBus",
         "org.freedesktop.DBus.NameHasOwner", f"string:{name}"],
        env=processes.env, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return "boolean true" in run.stdout


def test_xfce_shows_replaces_and_withdraws(xfce, address, start):
    log, shown = xfce
    helper = start(DBUS_SESSION_BUS_ADDRESS=address)

    helper.notify(1, body="approve Bash: a <b> & c")
    assert helper.wait(id=1)["ok"]
    until(lambda: shown() == 1, "one notification on the screen")

    helper.send(op="update", id=2, key="blocked", body="approve Bash: d")
    assert helper.wait("update")["ok"]
    until(lambda: "body=approve Bash: d" in log.read_text(), "the new text")
    assert shown() == 1

    helper.send(op="withdraw", key="blocked")
    assert helper.wait("withdraw")["ok"]
    until(lambda: shown() == 0, "an empty screen")

    bodies = [line for line in log.read_text().splitlines() if line.startswith("body=")]
    assert bodies == ["body=approve Bash: a &lt;b&gt; &amp; c", "body=approve Bash: d"]


def test_kitty_understands_what_is_written_to_it(dunst, processes, tmp_path):
    need("kitty")
    script = tmp_path / "say.py"
    script.write_text(SAY)
    kitty = processes.start(
        "kitty", "--config", "NONE", "-o", "update_check_interval=0", sys.executable, str(script),
        env={"LIBGL_ALWAYS_SOFTWARE": "1"},
    )  # fmt: skip
    until(lambda: dunst.displayed() == 3, "three notifications of kitty's", 40)
    kitty.terminate()
    dunst.ctl("close-all")
    assert set(dunst.history()) == {
        ("Claude Code needs; permission", "approve x and y\n~/shop"),
        ("Claude Code finished: pong", ""),
        ("Codex\uff1b finished", "pong\uff1b x"),
    }
