"""How right what was told is: of what was told, how much was due; of what was due, how much was told."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Sequence


@dataclass(frozen=True)
class Score:
    """One scenario: how many of something were due, told, and both."""

    agent: str
    version: str
    states_right: bool
    due: int
    told: int
    right: int


def score(
    agent: str, version: str, *, states_right: bool, due: Iterable[Hashable], told: Iterable[Hashable]
) -> Score:
    """Compare what was due with what was told, each counted as often as it occurs."""
    wanted, found = Counter(due), Counter(told)
    right = (wanted & found).total()
    return Score(agent, version, states_right, wanted.total(), found.total(), right)


def table(scores: Sequence[Score]) -> Iterator[str]:
    """Yield the lines of a table, one for each agent and version, and one for all."""
    yield (
        f"{'agent':<12}{'version':<12}{'scenarios':>10}{'states right':>14}"
        f"{'due':>6}{'told':>6}{'precision':>11}{'recall':>8}"
    )
    kinds = dict.fromkeys((one.agent, one.version) for one in scores)
    for kind in kinds:
        yield _row(*kind, [one for one in scores if (one.agent, one.version) == kind])
    yield _row("all", "", scores)


def _row(agent: str, version: str, scores: Sequence[Score]) -> str:
    due, told, right = (sum(getattr(one, name) for one in scores) for name in ("due", "told", "right"))
    states = f"{sum(one.states_right for one in scores)}/{len(scores)}"
    return (
        f"{agent:<12}{version:<12}{len(scores):>10}{states:>14}{due:>6}{told:>6}"
        f"{right / told if told else 1:>11.3f}{right / due if due else 1:>8.3f}"
    )
