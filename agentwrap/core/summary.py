"""The one line that says how many sessions are in which state, for prompts and status bars.

Pure: states in, a line out. It does not know where the states come from or where the line goes.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

COUNTED = ("blocked", "error", "done", "working", "idle")  # in the order of the line; the rest is in no count
SYMBOLS = ("⚠", "✗", "✓", "●", "")  # idle asks for nothing, so it shows nothing


def counts(states: Iterable[str]) -> list[int]:
    """How many of `states` are each of `COUNTED`."""
    found = [0] * len(COUNTED)
    for state in states:
        if state in COUNTED:
            found[COUNTED.index(state)] += 1
    return found


def text(numbers: list[int]) -> str:
    """What a prompt shows for such counts, for example `⚠1 ●2`; empty where nothing asks for attention."""
    return " ".join(
        f"{symbol}{number}" for symbol, number in zip(SYMBOLS, numbers, strict=True) if number and symbol
    )


def line(numbers: list[int]) -> str:
    """Counts and text as one line with its newline, for example `1 0 0 2 0 ⚠1 ●2`."""
    return f"{' '.join(map(str, numbers))} {text(numbers)}".rstrip() + "\n"
