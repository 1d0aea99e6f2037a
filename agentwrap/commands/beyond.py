"""Over ssh: whether the terminal at the other end understands status reports itself.

It does where another agentwrap wraps the ssh. Every report of the command passes on to there, and whoever
answers the query for it tells the user; being told here as well would be twice. So the channels that `auto`
stands for are left alone then; one that the user has named is used all the same. A command may have asked
already; else the question is asked with the first notification, which waits for the answer.

What lives here: what is known, the question, and what waits for it. It must not know what a notification is.
"""

from __future__ import annotations

from agentwrap.core import inband, report
from agentwrap.host import notifiers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from agentwrap.core.attention import Notify

MOMENT_WAIT = 1.0
"""Seconds to wait for a moment in which the terminal may be asked."""

ANSWER_WAIT = 0.5
"""Seconds the other end has to answer. A later answer counts from then on."""


class Beyond:
    """What is known of the terminal beyond ssh.

    Args:
        environ: tells of ssh, tmux and the kind of terminal.
        channels: as configured.
    """

    __slots__ = ("_asking", "_by", "_held", "matters", "understands")

    def __init__(self, environ: Mapping[str, str], channels: Iterable[str]) -> None:
        self.matters = notifiers.is_remote(environ) and "auto" in channels
        self.understands: bool | None = None
        if environ.get("TMUX") or not inband.knows_osc(environ):
            self.understands = False  # until it proves otherwise; it is not asked
        self._asking = ""  # "waits" for its moment, or "asked"
        self._by = 0.0
        self._held: list[Notify] = []

    def hold(self, action: Notify, now: float) -> bool:
        """Whether this notification has to wait; `take` gives it back."""
        if self.understands is not None:
            return False
        self._held.append(action)
        if not self._asking:
            self._asking = "waits"
            self._by = now + MOMENT_WAIT
        return True

    def update(self, newer: Notify) -> None:
        """Give what waits another text."""
        for action in self._held:
            if action.id == newer.id:
                action.title, action.body = newer.title, newer.body
                action.kind, action.message = newer.kind, newer.message

    def withdraw(self, kind: str) -> None:
        """What waits of this type is no longer so."""
        self._held = [action for action in self._held if action.type != kind]

    def understood(self) -> None:
        """The terminal has answered, this question or another."""
        self.understands = True
        self._asking = ""

    def tick(self, now: float) -> None:
        """Give up what was not answered in time."""
        if self._asking and now >= self._by:
            self.understands = False
            self._asking = ""

    def take(self) -> list[Notify]:
        """What has waited and need not any more."""
        if self.understands is None:
            return []
        held, self._held = self._held, []
        return held

    @property
    def deadline(self) -> float | None:
        """When `tick` is due; None where nothing waits."""
        return self._by if self._asking else None

    @property
    def waiting(self) -> bool:
        """Whether there is a question to write, at the next moment nothing of the command is open."""
        return self._asking == "waits"

    def query(self, now: float) -> bytes:
        """The question, written now: one more reply is to be taken out of the input."""
        self._asking = "asked"
        self._by = now + ANSWER_WAIT
        return report.QUERY
