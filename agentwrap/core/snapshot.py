"""A session as the object its state file holds, and JSON without the json module.

What lives here: the file's keys and their order, what is cleaned, encoding. It must not know where the
file is.
"""

from __future__ import annotations

from _json import encode_basestring_ascii as _string
from _json import make_encoder as _make_encoder
from _json import make_scanner as _scanner

from agentwrap.core import text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, NoReturn

    from agentwrap.core.session import View

SCHEMA = 1


class Identity:
    """What of a session does not change while it runs. `pid_started`, `started`: seconds since the epoch."""

    __slots__ = (
        "_since",
        "_updated",
        "agent",
        "child_pid",
        "command",
        "cwd",
        "name",
        "pid",
        "pid_started",
        "session",
        "started",
        "tty",
    )

    def __init__(
        self,
        *,
        session: str,
        name: str | None,
        agent: str,
        command: Sequence[str],
        cwd: str,
        tty: str | None,
        pid: int,
        pid_started: float,
        started: float,
    ) -> None:
        self.session = session
        self.name = name
        self.agent = agent
        self.command = command
        self.cwd = cwd
        self.tty = tty
        self.pid = pid
        self.pid_started = pid_started
        self.child_pid: int | None = None
        self.started = started
        self._since = (-1.0, started)
        self._updated = (-1.0, started)

    def session_object(self, view: View, offset: float) -> dict[str, object]:
        """The session as its state file holds it.

        Args:
            view: what it looks like.
            offset: seconds from the view's clock to the epoch; a later one does not move a time told before.
        """
        if view.since != self._since[0]:
            self._since = (view.since, round(view.since + offset, 3))
        if view.updated != self._updated[0]:
            self._updated = (view.updated, round(view.updated + offset, 3))
        return {
            "schema": SCHEMA,
            "session": self.session,
            "name": _clean(self.name),
            "agent": self.agent,
            "app": view.app,
            "command": [text.clean(word) for word in self.command],
            "cwd": text.clean(self.cwd),
            "tty": self.tty,
            "pid": self.pid,
            "pid_started": round(self.pid_started, 3),
            "child_pid": self.child_pid,
            "started": round(self.started, 3),
            "since": self._since[1],
            "updated": self._updated[1],
            "seq": view.seq,
            "state": view.state,
            "kind": view.kind,
            "message": view.message,
            "progress": view.progress,
            "title": view.title,
            "source": view.source,
            "focused": view.focused,
            "records": [
                {
                    "id": ident,
                    "state": record.state,
                    "kind": record.kind,
                    "progress": record.progress,
                    "app": app,
                    "title": record.title,
                    "message": record.msg,
                }
                for ident, record, app in view.records
            ],
        }


def _refuse(value: object) -> NoReturn:
    raise TypeError(f"no JSON for {type(value).__name__}")


# As json.dumps makes it: no check for cycles, no indentation, keys as they come, numbers that are finite.
_encode = _make_encoder(None, _refuse, _string, None, ": ", ", ", False, False, False)


def encode(value: object) -> str:
    """Return `value`, of None, booleans, numbers, strings, lists and dicts, as one line of ASCII JSON.

    Raises:
        TypeError: there is no JSON for it.
    """
    try:
        return "".join(_encode(value, 0))
    except ValueError:
        return "".join(_encode(_finite(value), 0))


def _finite(value: object) -> object:
    """`value` with null for infinite numbers: JSON has none, and they are no time or percentage either."""
    if isinstance(value, float):
        return value if value - value == 0 else None
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    return value


class _Plain:
    """How the scanner of the json module is to read: as `json.loads` does without arguments."""

    strict = True
    object_hook = object_pairs_hook = array_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float


_scan = _scanner(_Plain)  # type: ignore[arg-type] # any object with these attributes


def decode(line: bytes) -> dict[str, Any]:
    """Return the object a line of JSON holds, as `encode` writes it.

    Raises:
        ValueError: it is no JSON, or no object, or nested too deep.
    """
    try:
        value, _ = _scan(line.decode(), 0)
    except (StopIteration, RecursionError, SystemError):
        # the last is what it raises where the json module, which has its error, was never imported
        raise ValueError(line[:80]) from None
    if not isinstance(value, dict):
        raise ValueError(line[:80])  # noqa: TRY004 - the same mistake as any other in the line
    return value


def _clean(name: str | None) -> str | None:
    return None if name is None else text.clean(name)
