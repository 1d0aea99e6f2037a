"""See what agentwrap tells others: the states in its state file, and its notifications, both in order.

Knows the state directory and the command channel as the documentation describes them, and nothing else of agentwrap.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

POLL = 0.004  # seconds: states are published at most ten times a second, and each is a new file


@dataclass(frozen=True)
class Seen:
    """What the state file held, and when it was seen (time.monotonic)."""

    at: float
    state: str
    kind: str | None
    message: str | None
    whole: dict[str, Any] = field(repr=False)

    @property
    def word(self) -> str:
        return f"{self.state}:{self.kind}" if self.kind else self.state


class States:
    """The states of the one session in a state directory. Use as a context manager."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.seen: list[Seen] = []
        self.session: dict[str, Any] | None = None  # what the file holds now, None where there is none
        self.changed_at = time.monotonic()  # when the state did last
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def __enter__(self) -> States:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        last = None
        while not self._stop.wait(POLL):
            try:
                names = [name for name in os.listdir(self._directory) if name.endswith(".json")]
                path = self._directory / names[0] if names else None
                known = os.stat(path) if path else None
                mark = (known.st_ino, known.st_mtime_ns) if known else None
                if mark == last:
                    continue
                session = json.loads(path.read_bytes()) if path else None
            except FileNotFoundError:
                continue  # between two names, or not begun
            last = mark
            came_or_went = (session is None) != (self.session is None)
            self.session = session
            if came_or_went:
                self.changed_at = time.monotonic()
            if session is not None:
                now = Seen(time.monotonic(), session["state"], session["kind"], session["message"], session)
                if not self.seen or self.seen[-1].word != now.word or self.seen[-1].message != now.message:
                    self.seen.append(now)
                    self.changed_at = now.at

    @property
    def state(self) -> str | None:
        """The state now, None where there is no session."""
        session = self.session
        return session["state"] if session else None

    @property
    def words(self) -> list[str]:
        """The states so far, each as `state` or `state:kind`, in order, no two alike in a row."""
        words = [seen.word for seen in list(self.seen)]
        return [word for i, word in enumerate(words) if i == 0 or words[i - 1] != word]


@dataclass(frozen=True)
class Notice:
    """A notification as the command channel's command was told of it."""

    event: str
    title: str
    body: str


class Notices:
    """A notification command that keeps what it is told."""

    NAMES = ("AGENTWRAP_EVENT", "AGENTWRAP_TITLE", "AGENTWRAP_BODY")

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        directory.mkdir()
        script = directory / "notice.sh"
        values = " ".join(f'"${name}"' for name in self.NAMES)
        script.write_text(
            f'#!/bin/sh\nprintf "%s\\0" {values} >"$1/$$.new" && mv "$1/$$.new" "$1/$(date +%s.%N)-$$.notice"\n'
        )
        self.command = ["/bin/sh", str(script), str(directory)]

    def all(self) -> list[Notice]:
        """Return the notifications so far, in order."""
        return [
            Notice(*path.read_text().split("\0")[:3]) for path in sorted(self._directory.glob("*.notice"))
        ]


def replay(recording: Path) -> list[dict[str, Any]]:
    """Return the events that `agentwrap replay` finds in a recording, by the configuration's defaults."""
    done = subprocess.run(
        [sys.executable, "-m", "agentwrap", "replay", "--json", str(recording)],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "AGENTWRAP_CONFIG": os.devnull, "HOME": str(recording.parent / "home")},
    )
    return [json.loads(line) for line in done.stdout.splitlines()]
