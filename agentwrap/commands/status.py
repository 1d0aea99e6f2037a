"""`agentwrap status`: the session that needs the user most, in one line.

`short` is called at every prompt by those who want no shell code: it loads nothing it does not need.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def short() -> int:
    """Print the summary's text; nothing when no session asks for attention.

    Raises:
        StateDirError: the state directory cannot be used.
    """
    from agentwrap.core import summary
    from agentwrap.host import statefile

    if not os.path.lexists(statefile.directory(os.environ)):
        return 0  # nothing has run yet
    states: Sequence[str] = statefile.StateDir.open(os.environ).correct_summary()
    shown = summary.text(summary.counts(states))
    if shown:
        print(shown)
    return 0


def status(session: str | None, *, as_short: bool, as_json: bool) -> int:
    """Print one session: the one named, else the one that needs the user most.

    Args:
        session: name, label, agent or process of a session, or how its name begins.
        as_short: its part of the summary only.
        as_json: as a JSON object, or null when nothing runs.

    Raises:
        AgentwrapError: there is no such session, or the state directory cannot be used.
    """
    if as_short and session is None and not as_json:
        return short()
    from agentwrap.commands import sessions

    found = sessions.live()
    one = found[0] if found and session is None else None
    if session is not None:
        one = sessions.select(found, session)
    if as_json:
        import json

        print(json.dumps(one, indent=2))
    elif one is None:
        if sessions.on_terminal():
            print("no session is running")
    elif as_short:
        from agentwrap.core import summary

        shown = summary.text(summary.counts([one["state"]]))
        if shown:
            print(shown)
    else:
        state = sessions.coloured(sessions.state_of(one), one["state"], colours=sessions.colours())
        parts = [
            sessions.name_of(one),
            f"{state} {sessions.age_of(one)}",
            sessions.message_of(one),
            sessions.directory_of(one),
        ]
        print("  ".join(part for part in parts if part))
    return 0
