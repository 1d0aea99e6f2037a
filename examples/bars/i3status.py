#!/usr/bin/env python3
"""i3bar, swaybar: how many agentwrap sessions wait for you, in front of what i3status shows.

Tried with i3status 2.14. Make this file executable, and in the i3 or sway configuration:

    bar {
        status_command i3status | ~/bin/i3status.py
    }

with `output_format = "i3bar"` in the `general` part of i3status.conf. It follows i3status, line by line.
"""

from __future__ import annotations

import json
import os
import sys

COLOURS = ("#e5c07b", "#e06c75", "#98c379", "#56b6c2")  # blocked, error, done, working


def directory() -> str:
    """The state directory, as `agentwrap path` prints it."""
    own = os.environ.get("AGENTWRAP_STATE_DIR")
    if own:
        return own
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime:
        return os.path.join(runtime, "agentwrap")
    return os.path.join(os.environ.get("TMPDIR") or "/tmp", f"agentwrap-{os.getuid()}")  # noqa: S108 - where it is


def block() -> dict[str, object] | None:
    """The block to show; None where nothing runs."""
    try:
        with open(os.path.join(directory(), "summary"), encoding="utf-8") as file:
            blocked, error, done, _, _, *text = file.readline().split(maxsplit=5)
    except (OSError, ValueError):
        return None
    if not text:
        return None
    urgent = [index for index, count in enumerate((blocked, error, done)) if count != "0"]
    colour = COLOURS[urgent[0] if urgent else 3]
    shown = {"full_text": text[0].rstrip("\n"), "color": colour, "urgent": blocked != "0"}
    return {"name": "agentwrap", **shown}


def main() -> None:
    """Copy i3status's lines, with the block put in front."""
    for line in sys.stdin:
        text = line.strip()
        comma = "," if text.startswith(",") else ""
        ours = block()
        if ours is not None and text.removeprefix(",").startswith("[{"):
            text = comma + json.dumps([ours, *json.loads(text.removeprefix(","))])
        print(text, flush=True)


if __name__ == "__main__":
    try:
        main()
    except (BrokenPipeError, KeyboardInterrupt):
        sys.stderr.close()
