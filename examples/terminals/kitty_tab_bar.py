"""kitty: how many agentwrap sessions wait for you, at the right of the tab bar.

Tried with kitty 0.26.5. Copy it to ~/.config/kitty/tab_bar.py, and in kitty.conf:

    tab_bar_style custom
    tab_bar_min_tabs 1
"""

from __future__ import annotations

import os

from kitty.fast_data_types import Screen, add_timer, get_boss
from kitty.tab_bar import DrawData, ExtraData, TabBarData, as_rgb, draw_tab_with_separator
from kitty.utils import color_as_int

INTERVAL = 1.0  # seconds between two looks
COLOURS = ("#e5c07b", "#e06c75", "#98c379", "#56b6c2")  # blocked, error, done, working

shown = ("", 0)  # text and colour
timer = None


def directory() -> str:
    """The state directory, as `agentwrap path` prints it."""
    own = os.environ.get("AGENTWRAP_STATE_DIR")
    if own:
        return own
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime:
        return os.path.join(runtime, "agentwrap")
    return os.path.join(os.environ.get("TMPDIR") or "/tmp", f"agentwrap-{os.getuid()}")  # noqa: S108 - where it is


def read() -> tuple[str, int]:
    """The text of the summary and which colour it has; empty where nothing runs."""
    try:
        with open(os.path.join(directory(), "summary"), encoding="utf-8") as file:
            blocked, error, done, _, _, *text = file.readline().split(maxsplit=5)
    except (OSError, ValueError):
        return "", 0
    urgent = [index for index, count in enumerate((blocked, error, done)) if count != "0"]
    return "".join(text).rstrip("\n"), urgent[0] if urgent else 3


def look(_timer: object = None) -> None:
    """Draw the tab bars anew where the text has changed."""
    global shown
    before, shown = shown, read()
    if shown != before:
        for manager in get_boss().all_tab_managers:
            manager.mark_tab_bar_dirty()


def draw_tab(  # kitty's own signature
    draw_data: DrawData,
    screen: Screen,
    tab: TabBarData,
    before: int,
    max_title_length: int,
    index: int,
    is_last: bool,
    extra_data: ExtraData,
) -> int:
    """Draw a tab, and behind the last one the summary."""
    global timer, shown  # noqa: PLW0603 - kitty calls functions, and keeps nothing for them
    if timer is None:
        timer = add_timer(look, INTERVAL, True)
        shown = read()
    end = draw_tab_with_separator(
        draw_data, screen, tab, before, max_title_length, index, is_last, extra_data
    )
    text, colour = shown
    start = screen.columns - len(text) - 1
    if is_last and text and start > screen.cursor.x:
        screen.cursor.fg = as_rgb(int(COLOURS[colour][1:], 16))
        screen.cursor.bg = as_rgb(color_as_int(draw_data.default_bg))
        screen.draw(" " * (start - screen.cursor.x) + text)
    return end
