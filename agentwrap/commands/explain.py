"""`agentwrap explain`: what happened in a session last, and what was made of it.

The events are those that the session leader keeps beside the session's file. Only we can write there, yet
what stands in a reason came from a program: texts are cleaned for the table, and escaped as JSON otherwise.
"""

from __future__ import annotations

import json
import os
import stat
import time

from agentwrap.commands import sessions
from agentwrap.core import text
from agentwrap.errors import NoSessionError
from agentwrap.host.publisher import EVENTS, EVENTS_SUFFIX
from agentwrap.host.statefile import StateDir

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Event = dict[str, Any]

LARGEST = 4 << 20
"""Bytes read of the events, the last ones: twice EVENTS lines of the longest texts are below this."""

GAP = "  "
HEADINGS = ("TIME", "SOURCE", "EVENT", "EFFECT", "REASON")
NARROWEST = 16  # columns below which a reason says nothing; then it has a line of its own
DAY = 86400.0


def explain(session: str | None, *, as_json: bool = False) -> int:
    """Print the last events of a live session, the oldest first.

    Args:
        session: which one, as for the other verbs; None: the one that needs the user most.
        as_json: one object a line, with t (seconds since the epoch), source, event, effect and reason.

    Raises:
        NoSessionError: there is no such session, or several are called that.
        StateDirError: the state directory cannot be used.
    """
    found = sessions.live()
    if session is not None:
        one = sessions.select(found, session)
    elif found:
        one = found[0]
    else:
        raise NoSessionError("no session is running; start one with: agentwrap COMMAND")
    events = read(os.path.join(StateDir.open(os.environ).path, one["session"] + EVENTS_SUFFIX))
    if as_json:
        for event in events:
            print(json.dumps(event))
        return 0
    columns = None
    if sessions.on_terminal():
        import shutil

        columns = shutil.get_terminal_size().columns
    colours = sessions.colours()
    print(sessions.clip(_head(one), columns) if columns is not None else _head(one))
    if not events:
        print("nothing has happened yet")
    for line in table(events, columns, colours=colours):
        print(line)
    return 0


def read(path: str) -> list[Event]:
    """The last events of a file; none where there is no such file. Lines that are no events are left out."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return []
    data = b""
    try:
        found_file = os.fstat(fd)
        if stat.S_ISREG(found_file.st_mode):
            start = max(0, found_file.st_size - LARGEST)
            while len(data) < LARGEST and (piece := os.pread(fd, LARGEST, start + len(data))):
                data += piece
    except OSError:
        return []
    finally:
        os.close(fd)
    found = []
    for line in data.split(b"\n"):
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            continue  # cut at either end
        if isinstance(event, dict) and isinstance(event.get("t"), (int, float)):
            found.append(event)
    return found[-EVENTS:]


def table(events: list[Event], columns: int | None, *, colours: bool, now: float | None = None) -> list[str]:
    """The events as lines, the first of them the headings; none without events.

    Args:
        events: in order.
        columns: width of the screen; None for one without end.
        colours: whether headings and effects are coloured.
        now: seconds since the epoch.
    """
    if not events:
        return []
    now = time.time() if now is None else now
    dated = now - float(events[0]["t"]) > DAY / 2  # an hour alone says nothing of yesterday
    rows = [HEADINGS]
    for event in events:
        source, what, effect, reason = (_cell(event, key) for key in KEYS)
        rows.append((_time(event, dated=dated), source, what, effect, reason))
    widths = [max(sessions.width(row[column]) for row in rows) for column in range(5)]
    below = False
    if columns is not None:
        room = columns - sum(widths[:4]) - 4 * len(GAP)
        below = room < min(NARROWEST, widths[4])
        widths[4] = max(0, columns - INDENT if below else room)
    lines = []
    for number, row in enumerate(rows):
        head = GAP.join(sessions.pad(cell, size) for cell, size in zip(row[:3], widths[:3], strict=True))
        effect = sessions.pad(row[3], widths[3])
        reasons = _wrapped(row[4], widths[4])
        if below:
            line = sessions.clip(f"{head}{GAP}{effect}".rstrip(), columns or 0)
            lines.append(f"\x1b[2m{line}\x1b[m" if colours and not number else line)
            lines += [" " * INDENT + reason for reason in reasons if number]
            continue
        first = reasons[0] if reasons else ""
        if not number and colours:
            lines.append(f"\x1b[2m{head}{GAP}{effect}{GAP}{first}".rstrip() + "\x1b[m")
            continue
        shown = _coloured(effect, row[3], colours=colours)
        lines.append(f"{head}{GAP}{shown}{GAP}{first}".rstrip())
        indent = " " * (sum(widths[:4]) + 4 * len(GAP))
        lines += [indent + reason for reason in reasons[1:]]
    return lines


KEYS = ("source", "event", "effect", "reason")
INDENT = 4  # of a reason on a line of its own
MARKED = {"failed": "31", "not notified": "33", "notified": "32", "ignored": "2"}


def _head(one: dict[str, Any]) -> str:
    message = sessions.message_of(one)
    words = f"{sessions.name_of(one)}: {sessions.state_of(one)} for {sessions.age_of(one)}"
    return f"{words}, {message}" if message else words


def _time(event: Event, *, dated: bool) -> str:
    t = float(event["t"])
    try:
        local = time.localtime(t)
    except (OverflowError, ValueError, OSError):
        return "?"
    milliseconds = int(t * 1000) % 1000
    return time.strftime("%m-%d %H:%M:%S" if dated else "%H:%M:%S", local) + f".{milliseconds:03}"


def _cell(event: Event, key: str) -> str:
    value = event.get(key)
    return "" if value is None else text.fold(str(value)[: sessions.CLIPPED])


def _wrapped(shown: str, columns: int) -> list[str]:
    """`shown` in lines of so many columns, broken between words where that is possible."""
    lines: list[str] = []
    line = ""
    for word in shown.split():
        longer = f"{line} {word}" if line else word
        if sessions.width(longer) <= columns:
            line = longer
            continue
        if line:
            lines.append(line)
        line = sessions.clip(word, columns)
    return [*lines, line] if line else lines


def _coloured(shown: str, effect: str, *, colours: bool) -> str:
    state = effect.partition(",")[0]
    code = MARKED.get(state) or sessions.COLOURS.get(state)
    return f"\x1b[{code}m{shown}\x1b[m" if colours and code else shown
