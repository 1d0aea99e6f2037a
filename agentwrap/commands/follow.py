"""What `watch` and `wait` share: the live sessions, again whenever one has changed."""

from __future__ import annotations

import os

from agentwrap.host.dirwatch import Watch
from agentwrap.host.statefile import StateDir

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agentwrap.commands.sessions import Session


class Follower:
    """The live sessions by name, kept up to date.

    Raises:
        StateDirError: the state directory cannot be used.
    """

    def __init__(self) -> None:
        self._state = StateDir.open(os.environ)
        self.watch = Watch(self._state.path, ".json")
        self.sessions: dict[str, Session] = {}
        self.ready: set[int] = set()
        """Descriptors given to `watch.also` that ended the last `wait`."""
        self.look()
        self._state.correct_summary()

    def look(self) -> list[Session]:
        """Read all sessions again; returns what appeared, changed or went.

        A session that went is told as its last object, its state `exited`.
        """
        before = self.sessions
        self.sessions = {one["session"]: one for one in self._state.sessions()}
        self.watch.processes(one["pid"] for one in self.sessions.values())
        told = [one for name, one in self.sessions.items() if before.get(name) != one]
        told += [one | {"state": "exited"} for name, one in before.items() if name not in self.sessions]
        return told

    def wait(self, timeout: float | None) -> list[Session]:
        """Wait for a change, at most `timeout` seconds; returns as `look`."""
        self.ready = self.watch.wait(timeout)
        return self.look()
