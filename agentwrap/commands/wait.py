"""`agentwrap wait`: block a script until a session needs somebody."""

from __future__ import annotations

import sys
import time

from agentwrap.commands import sessions
from agentwrap.commands.follow import Follower
from agentwrap.core import status as words
from agentwrap.errors import NoSessionError, UsageError

STATES = (*words.ORDER, "exited")
TIMED_OUT = 124
LONGEST = 10 * 365 * 86400.0  # seconds: more is for ever


def wait(session: str | None, *, until: str, timeout: float | None, as_json: bool = False) -> int:
    """Wait for a state and print it; on a terminal, where any session will do, also which it was.

    Args:
        session: name, label, agent or process of a session, or how its name begins; None for any session.
        until: states, joined by commas.
        timeout: seconds; None for ever.
        as_json: print the session object; of one that is gone, session and state, as `watch` does.

    Returns:
        0 when a state is reached, 1 when all that could reach it are gone, 124 after the timeout.

    Raises:
        AgentwrapError: there is no such session, or a value makes no sense.
    """
    wanted = _states(until)
    if timeout is not None and not timeout >= 0:
        raise UsageError(f"wait: --timeout {timeout:g}: a number of seconds is needed, 0 or more")
    if timeout is not None and timeout > LONGEST:
        timeout = None
    deadline = None if timeout is None else time.monotonic() + timeout
    follower = Follower()
    if not follower.sessions:
        raise NoSessionError("wait: no session is running; start one first: agentwrap COMMAND")
    found = sessions.ordered(follower.sessions.values())
    if session is not None:
        found = [sessions.select(found, session)]
    mine = {one["session"] for one in found}
    while True:
        for one in found:
            if (session is None or one["session"] in mine) and one["state"] in wanted:
                _print(one, as_json=as_json, which=session is None)
                return 0
        mine = set(follower.sessions) if session is None else mine & set(follower.sessions)
        if not mine:
            what = "the session is" if session is not None else "all sessions are"
            print(f"agentwrap: wait: {what} gone without reaching {until}", file=sys.stderr)
            return 1
        left = None if deadline is None else deadline - time.monotonic()
        if left is not None and left <= 0:
            return TIMED_OUT
        found = sessions.ordered(follower.wait(left))


def _print(one: sessions.Session, *, as_json: bool, which: bool) -> None:
    if as_json:
        import json

        gone = one["state"] == "exited"
        print(json.dumps({"session": one["session"], "state": "exited"} if gone else one))
    elif which and sessions.on_terminal():  # for scripts the state is all of the line
        print(f"{one['state']}  {sessions.name_of(one)}")
    else:
        print(one["state"])


def _states(until: str) -> set[str]:
    wanted = {state.strip() for state in until.split(",")}
    for state in wanted:
        if state not in STATES:
            raise UsageError(f"wait: --until {until}: no state {state!r}; there are {', '.join(STATES)}")
    return wanted
