"""Bringing the terminal to the front after a click, as far as that goes without extra permissions.

tmux selects the window and pane of the session, WezTerm the pane; on macOS the terminal application is
activated by its bundle identifier; under X11 its window by its number, where wmctrl or xdotool is there. A
Wayland compositor lets no program raise another's window: there only tmux and WezTerm move.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

TIMEOUT = 2.0
"""Seconds each program may take."""


def commands(environ: Mapping[str, str], platform: str) -> list[list[str]]:
    """List the commands that bring the terminal of this environment to the front; each may fail alone."""
    out: list[list[str]] = []
    pane = environ.get("TMUX_PANE", "")
    if environ.get("TMUX") and pane:
        out.append(["tmux", "switch-client", "-t", pane])
        out.append(["tmux", "select-window", "-t", pane])
        out.append(["tmux", "select-pane", "-t", pane])
    if environ.get("WEZTERM_PANE", "").isdigit():
        out.append(["wezterm", "cli", "activate-pane", "--pane-id", environ["WEZTERM_PANE"]])
    bundle = environ.get("__CFBundleIdentifier", "")
    window = environ.get("WINDOWID", "")
    if platform == "darwin":
        if bundle:
            out.append(["open", "-b", bundle])
    elif window.isdigit() and environ.get("DISPLAY"):
        out.append(["wmctrl", "-i", "-a", hex(int(window))])
        out.append(["xdotool", "windowactivate", window])
    return out


async def bring(environ: Mapping[str, str], platform: str) -> None:
    """Run them, one after the other; what is not installed or fails is passed over."""
    for argv in commands(environ, platform):
        try:
            process = await asyncio.create_subprocess_exec(
                *argv,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.DEVNULL,
                env=dict(environ),
            )
        except OSError:
            continue
        try:
            await asyncio.wait_for(process.wait(), TIMEOUT)
        except TimeoutError:
            process.kill()
