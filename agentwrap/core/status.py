"""What is said of a state: its urgency, and the words of a notification.

What lives here: the order of states, titles and bodies. It must not know when anything is said, or to whom.
Texts come in cleaned.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentwrap.core.report import Report

ORDER = ("blocked", "error", "done", "working", "idle", "suspended", "unknown")
"""States, the one that needs the user most first."""

_RANKS = {state: order for order, state in enumerate(ORDER)}

# Numbers that mean the same on Linux, macOS and the BSDs; the host knows the others' names.
_SIGNALS = {
    1: "SIGHUP",
    2: "SIGINT",
    3: "SIGQUIT",
    4: "SIGILL",
    5: "SIGTRAP",
    6: "SIGABRT",
    8: "SIGFPE",
    9: "SIGKILL",
    11: "SIGSEGV",
    13: "SIGPIPE",
    14: "SIGALRM",
    15: "SIGTERM",
}

_NEEDS = {
    "permission": "needs permission",
    "question": "has a question",
    "auth": "needs you to sign in",
}

# What may stand behind a question mark and is no part of the sentence: Markdown marks, quotes, brackets.
_CLOSERS = " \t\r\n\u00a0\u3000*_`~#|>\"'”’»›“‘«‹„)]}）］｝】〕〉》」』"  # noqa: RUF001 - the marks themselves
_QUESTION_MARKS = ("?", "？")  # noqa: RUF001 - the full-width one


def rank(state: str) -> int:
    """Return how urgent `state` is, 0 the most; a state unknown here comes last."""
    return _RANKS.get(state, len(ORDER))


def most_urgent(records: Sequence[tuple[str, Report]]) -> tuple[str, Report] | None:
    """Return the id and record whose state is the most urgent, of equals the last; None of none."""
    best: tuple[str, Report] | None = None
    least = len(ORDER) + 1
    for entry in reversed(records):  # hundreds, at each report of a program gone wild
        order = _RANKS.get(entry[1].state, len(ORDER))
        if order < least:
            best, least = entry, order
            if not order:
                break
    return best


def signal_name(number: int) -> str:
    """Return the name of a signal whose number is the same everywhere, else `signal N`."""
    return _SIGNALS.get(number, f"signal {number}")


def is_question(text: str) -> bool:
    """Whether a text ends in a question, marks and closing quotes behind it set aside."""
    return text.rstrip(_CLOSERS).endswith(_QUESTION_MARKS)


def title(event: str, name: str, kind: str | None = None, message: str | None = None) -> str:
    """Return the title of a blocked, done or error notification of the program called `name`."""
    if event == "blocked":
        return f"{name} {_NEEDS.get(kind or '', 'is waiting for you')}"
    if event == "error":
        return f"{name} hit an error"
    if message and is_question(message):
        return f"{name} finished with a question"
    return f"{name} finished"


def exit_title(name: str, code: int, signal: str | None) -> str:
    """Return the title for a program that ended with exit code `code`, or by the signal named."""
    if signal is not None:
        return f"{name} was killed ({signal})"
    if code:
        return f"{name} failed (exit code {code})"
    return f"{name} finished"


def body(message: str | None, label: str) -> str:
    """Return the body of a notification: what is said, then which session says it."""
    return f"{message}\n{label}" if message else label


def label(name: str | None, cwd: str, home: str | None) -> str:
    """Return what tells a session from others: its name, else its directory with ~ for the home."""
    if name:
        return name
    home = (home or "").rstrip("/")
    if home and (cwd == home or cwd.startswith(home + "/")):
        return "~" + cwd[len(home) :]
    return cwd
