"""What verbs share: the live sessions, which of them is meant, and how one is shown in a line.

Texts in session files were cleaned when they were written; they are folded again here, because a terminal is
not the place to trust a file.
"""

from __future__ import annotations

import os
import sys
import time

from agentwrap.core import status as words
from agentwrap.core import text
from agentwrap.errors import NoSessionError
from agentwrap.host.statefile import StateDir

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    Session = dict[str, Any]

COLOURS = {"blocked": "33;1", "error": "31;1", "done": "32", "working": "36", "idle": "2", "suspended": "2"}
CLIPPED = 400  # characters of a text looked at for one line: more is on no screen


def live() -> list[Session]:
    """The live sessions, the one that needs the user most first.

    Raises:
        StateDirError: the state directory cannot be used.
    """
    state = StateDir.open(os.environ)
    found = ordered(state.sessions())
    state.correct_summary()
    return found


def ordered(sessions: Iterable[Session]) -> list[Session]:
    """Sessions by urgency, of the equally urgent the latest first."""
    return sorted(
        sessions, key=lambda one: (words.rank(one["state"]), -_number(one, "since"), one["session"])
    )


def select(sessions: list[Session], wanted: str) -> Session:
    """The session that `wanted` names: its name, label, process or agent, or how one of these begins.

    Raises:
        NoSessionError: none is called that, or several are.
    """
    readings: tuple[Callable[[Session], bool], ...] = (
        lambda one: one["session"] == wanted,
        lambda one: wanted in (one.get("name"), str(one.get("pid"))),
        lambda one: one.get("agent") == wanted,
        lambda one: one["session"].startswith(wanted) or str(one.get("name") or "").startswith(wanted),
    )
    for reading in readings:
        found = [one for one in sessions if wanted and reading(one)]
        if len(found) == 1:
            return found[0]
        if found:
            names = ", ".join(one["session"] for one in found)
            raise NoSessionError(f"{wanted} may be {names}; say which")
    running = ", ".join(one["session"] for one in sessions)
    raise NoSessionError(
        f"no live session called {wanted}" + (f"; there are {running}" if running else "; none is running")
    )


def state_of(one: Session) -> str:
    """State and kind in words, like `blocked (permission)`."""
    kind = one.get("kind")
    progress = one.get("progress")
    state = text.fold(str(one["state"]))
    if kind:
        state += f" ({text.fold(str(kind))})"
    return state if progress is None else f"{state} {text.fold(str(progress))}%"


def name_of(one: Session) -> str:
    """Name of the session, and its label."""
    label = one.get("name")
    return text.fold(one["session"]) + (f" ({text.fold(str(label))})" if label else "")


def message_of(one: Session) -> str:
    """What the session says; its title where it says nothing."""
    return text.fold(str(one.get("message") or one.get("title") or "")[:CLIPPED])


def directory_of(one: Session) -> str:
    """Where the session runs, with ~ for the home."""
    return text.fold(words.label(None, str(one.get("cwd") or ""), os.environ.get("HOME"))[:CLIPPED])


def age_of(one: Session, now: float | None = None) -> str:
    """For how long the session is in its state, like `40s`, `12m`, `3h05` or `2d`."""
    seconds = max(0, int((time.time() if now is None else now) - _number(one, "since")))
    if seconds < 60:
        return f"{seconds}s"
    if seconds < 3600:
        return f"{seconds // 60}m"
    if seconds < 86400:
        return f"{seconds // 3600}h{seconds // 60 % 60:02}"
    return f"{seconds // 86400}d"


def _number(one: Session, key: str) -> float:
    value = one.get(key)
    return float(value) if isinstance(value, (int, float)) else 0.0


def coloured(shown: str, state: str, *, colours: bool) -> str:
    """`shown` in the colour of `state`."""
    code = COLOURS.get(state)
    return f"\x1b[{code}m{shown}\x1b[m" if colours and code else shown


def on_terminal() -> bool:
    """Whether standard output is a terminal."""
    return sys.stdout is not None and sys.stdout.isatty()


def colours() -> bool:
    """Whether standard output shows colours and the user wants them."""
    return on_terminal() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def width(shown: str) -> int:
    """Columns that `shown` takes on a terminal."""
    if shown.isascii():
        return len(shown)
    from wcwidth import wcswidth

    return max(0, wcswidth(shown))


def clip(shown: str, columns: int) -> str:
    """As much of `shown` as fits in so many columns, an ellipsis where something was cut off."""
    shown = shown[: max(0, columns) * 8 + 64]  # even joined emoji are no longer than that
    if width(shown) <= columns:
        return shown
    if columns <= 0:
        return ""
    shortest, longest = 1, len(shown)  # in characters; the first fits, the last does not
    while longest - shortest > 1:
        middle = (shortest + longest) // 2
        if width(text.clip(shown, middle)) <= columns:
            shortest = middle
        else:
            longest = middle
    return text.clip(shown, shortest)


def pad(shown: str, columns: int) -> str:
    """`shown` in exactly so many columns."""
    shown = clip(shown, columns)
    return shown + " " * (columns - width(shown))
