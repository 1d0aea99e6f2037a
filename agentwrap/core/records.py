"""The records a program's reports leave: one per id, bounded, forgotten at the right events.

What lives here: replacing, clearing, eviction, inheritance of `app`. It must not know how a report is
encoded, or what a state is worth to the user.
"""

from __future__ import annotations

from agentwrap.core.report import CLEAR

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agentwrap.core.report import Report

CAPACITY = 256
"""Records kept; above it the least recently updated goes. The protocol's maximum."""

_ENDED_BY_EXIT = ("working", "blocked", "idle")


class Records:
    """The table of records, keyed by id ("" is the root), least recently updated first."""

    __slots__ = ("_capacity", "_records")

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._capacity = capacity
        self._records: dict[str, Report] = {}

    def __len__(self) -> int:
        return len(self._records)

    @property
    def root(self) -> Report | None:
        """The root record, or None."""
        return self._records.get("")

    def get(self, ident: str) -> Report | None:
        """Return the record with this id, or None."""
        return self._records.get(ident)

    def items(self) -> list[tuple[str, Report]]:
        """Return ids and records, least recently updated first."""
        return list(self._records.items())

    def apply(self, report: Report) -> bool:
        """Take a report; return whether any record is now another than before."""
        if report.state == CLEAR:
            return self._clear(report.id)
        old = self._records.pop(report.id, None)
        self._records[report.id] = report
        if len(self._records) > self._capacity:
            del self._records[next(iter(self._records))]
        return old is None or not _same(old, report)

    def exit(self) -> bool:
        """The program has ended: what it was doing goes, what it left as a result stays."""
        return self._drop([ident for ident, each in self._records.items() if each.state in _ENDED_BY_EXIT])

    def prompt(self) -> bool:
        """A shell shows its prompt: as `exit`."""
        return self.exit()

    def reset(self) -> bool:
        """The terminal was reset: all go."""
        return self._clear("")

    def app_of(self, ident: str) -> str | None:
        """Return the record's own `app`, else its nearest ancestor's; none of them need exist."""
        while True:
            record = self._records.get(ident)
            if record is not None and record.app is not None:
                return record.app
            if not ident:
                return None
            ident = ident.rpartition("/")[0]

    def _clear(self, ident: str) -> bool:
        if not ident:
            return self._drop(list(self._records))
        below = ident + "/"
        return self._drop([each for each in self._records if each == ident or each.startswith(below)])

    def _drop(self, idents: list[str]) -> bool:
        for ident in idents:
            del self._records[ident]
        return bool(idents)


def _same(one: Report, other: Report) -> bool:
    return (
        one.state == other.state
        and one.msg == other.msg
        and one.kind == other.kind
        and one.progress == other.progress
        and one.title == other.title
        and one.app == other.app
    )
