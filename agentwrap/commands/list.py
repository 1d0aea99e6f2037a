"""`agentwrap list`: one row for each live session."""

from __future__ import annotations

import json

from agentwrap.commands import sessions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agentwrap.commands.sessions import Session

GAP = "  "
NARROWEST = 12  # columns below which a directory says nothing
DIRECTORY = 0.4  # share of what is left for message and directory that a directory may always take


def list_sessions(*, as_json: bool) -> int:
    """Print the live sessions, the one that needs the user most first.

    Raises:
        StateDirError: the state directory cannot be used.
    """
    found = sessions.live()
    if as_json:
        print(json.dumps(found, indent=2))
    elif found:
        columns = None
        if sessions.on_terminal():
            import shutil

            columns = shutil.get_terminal_size().columns
        for line in table(found, columns, colours=sessions.colours()):
            print(line)
    elif sessions.on_terminal():
        print("no session is running")
    return 0


def table(found: list[Session], columns: int | None, *, colours: bool, now: float | None = None) -> list[str]:
    """The sessions as lines, the first of them the headings.

    Args:
        found: the sessions, in the order wanted.
        columns: width of the screen; None for one without end.
        colours: whether states are coloured.
        now: seconds since the epoch.
    """
    rows = [("SESSION", "STATE", "SINCE", "MESSAGE", "DIRECTORY")]
    rows += [
        (
            sessions.name_of(one),
            sessions.state_of(one),
            sessions.age_of(one, now),
            sessions.message_of(one),
            sessions.directory_of(one),
        )
        for one in found
    ]
    widths = [max(sessions.width(row[column]) for row in rows) for column in range(5)]
    if columns is not None:
        widths = _fitted(widths, columns)
    lines = []
    for number, row in enumerate(rows):
        cells = [sessions.pad(cell, size) for cell, size in zip(row, widths, strict=True)]
        cells[4] = cells[4].rstrip()
        if number:
            cells[1] = sessions.coloured(cells[1], found[number - 1]["state"], colours=colours)
        elif colours:
            cells = [f"\x1b[2m{cell}\x1b[m" for cell in cells]
        lines.append(GAP.join(cells).rstrip())
    return lines


def _fitted(widths: list[int], columns: int) -> list[int]:
    """Widths that fit: message and directory share what the others leave; where that is little, no directory.

    On the narrowest screens the others give way too, the last first.
    """
    left = max(0, columns - len(GAP) * 4)
    fitted = list(widths)
    rest = max(0, left - sum(widths[:3]))
    directory = max(int(rest * DIRECTORY), rest - widths[3]) if rest >= 2 * NARROWEST else 0
    fitted[4] = min(widths[4], directory)
    fitted[3] = min(widths[3], rest - fitted[4])
    for column in (2, 1, 0):
        fitted[column] = max(0, fitted[column] - max(0, sum(fitted) - left))
    return fitted
