"""The turn of the one who speaks for the session: a table of states and events.

What lives here: which state follows which event (TABLE), the pairing of a notice with the state that
follows it, and what counts as the same event told again. What it must not know: escape sequences, records
of subagents, when or how anybody is notified, any agent's name (an agent's notices come in as rules).

The states are finer than what is shown (SHOWN): a blocked state that only a notice told of ends
differently from one the agent reports, and a turn that was seen shows as idle while the agent still
says done.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# States.
NONE = "none"  # nothing is reported for the whole session (never, or no more)
IDLE = "idle"
WORKING = "working"
BLOCKED = "blocked"
PROMPT = "prompt"  # blocked as a notice tells; the agent will not report that it ended
DONE = "done"
ERROR = "error"
SEEN = "seen"  # done or error, and the user has looked
SUSPENDED = "suspended"
HISTORY = "history"  # only as a target: what the state was before it was suspended

STATES = (NONE, IDLE, WORKING, BLOCKED, PROMPT, DONE, ERROR, SEEN)
ANY = STATES  # as the origin of a transition: from wherever it was

# What a state is called outside. NONE has no name of its own: other records, or nothing, decide.
SHOWN = {
    IDLE: "idle",
    WORKING: "working",
    BLOCKED: "blocked",
    PROMPT: "blocked",
    DONE: "done",
    ERROR: "error",
    SEEN: "idle",
}

# Events.
REPORT_IDLE = "report idle"
REPORT_WORKING = "report working"
REPORT_BLOCKED = "report blocked"
REPORT_DONE = "report done"
REPORT_ERROR = "report error"
REPORT_AGAIN = "report again"  # the same done or error once more, see REPEAT
CLEAR = "clear"  # the record is gone: cleared, evicted, or the terminal was reset
NOTICE_PROMPT = "notice prompt"
NOTICE_DONE = "notice done"
NOTICE_ERROR = "notice error"
KEY = "key"
FOCUS = "focus"
ENDED = "ended"  # process exit of a program that reports, or its shell's prompt
EXIT_OK = "exit ok"  # process exit of a program that never reported
EXIT_FAILED = "exit failed"
STOP = "stop"
RESUME = "resume"
TIMER = "timer"  # time has passed: ends the wait of a notice, but no state (a long turn is a long turn)

EVENTS = (
    REPORT_IDLE,
    REPORT_WORKING,
    REPORT_BLOCKED,
    REPORT_DONE,
    REPORT_ERROR,
    REPORT_AGAIN,
    CLEAR,
    NOTICE_PROMPT,
    NOTICE_DONE,
    NOTICE_ERROR,
    KEY,
    FOCUS,
    ENDED,
    EXIT_OK,
    EXIT_FAILED,
    STOP,
    RESUME,
    TIMER,
)

# From, event, to. A pair that is not here changes nothing.
TABLE = (
    (ANY, REPORT_IDLE, IDLE),
    (ANY, REPORT_WORKING, WORKING),
    (ANY, REPORT_BLOCKED, BLOCKED),
    (ANY, REPORT_DONE, DONE),
    (ANY, REPORT_ERROR, ERROR),
    ((DONE,), REPORT_AGAIN, DONE),
    ((ERROR,), REPORT_AGAIN, ERROR),
    ((SEEN,), REPORT_AGAIN, SEEN),
    (ANY, CLEAR, NONE),
    (ANY, NOTICE_PROMPT, PROMPT),
    (ANY, NOTICE_DONE, DONE),
    (ANY, NOTICE_ERROR, ERROR),
    ((DONE, ERROR, PROMPT), KEY, SEEN),
    ((DONE, ERROR), FOCUS, SEEN),
    ((IDLE, WORKING, BLOCKED, PROMPT), ENDED, NONE),
    ((NONE,), EXIT_OK, DONE),
    ((NONE,), EXIT_FAILED, ERROR),
    (ANY, STOP, SUSPENDED),
    ((SUSPENDED,), RESUME, HISTORY),
)

_NEXT: dict[tuple[str, str], str] = {
    (state, event): target for states, event, target in TABLE for state in states
}

_REPORTED = {
    "idle": REPORT_IDLE,
    "working": REPORT_WORKING,
    "blocked": REPORT_BLOCKED,
    "done": REPORT_DONE,
    "error": REPORT_ERROR,
}
_NOTICED = {"blocked": NOTICE_PROMPT, "done": NOTICE_DONE, "error": NOTICE_ERROR}
_TOLD = (BLOCKED, PROMPT, DONE, ERROR)

PAIRING = 2.0
"""Seconds a notice waits for its state: Codex 0.163 says blocked 0.9 s after its notice."""

REPEAT = 5.0
"""Seconds in which a done that was seen may come again and is the same turn: Claude Code sends its
summary about 2.5 s later."""

TAKEN_BACK = 2.0
"""Seconds in which a done that only a notice tells is the end of what Esc took back: OpenCode says that its
session is done 0.3 to 0.8 s after a permission was denied."""

MAX_PENDING = 8
"""Notices that wait at once. One turn has one or two; a program that floods loses the oldest."""


def next_state(state: str, event: str) -> str | None:
    """The state that follows `event` in `state`, or None where the table has no such pair."""
    return _NEXT.get((state, event))


class Rule:
    """How one of an agent's notices reads.

    `match` is "prefix" (the message is what follows `text`) or "suffix" (the text ends with it, and the
    message is the notice's title). `waits` names the reported states the notice belongs to, the next of
    which it decides; empty: it tells a state by itself. `becomes` is blocked, done or error, and `kind`
    that of blocked.
    """

    __slots__ = ("becomes", "kind", "match", "text", "waits")

    def __init__(
        self, match: str, text: str, waits: tuple[str, ...], becomes: str, kind: str | None = None
    ) -> None:
        self.match = match
        self.text = text
        self.waits = waits
        self.becomes = becomes
        self.kind = kind

    def message(self, title: str, body: str) -> str | None:
        """What the notice says, or None if it is not this rule's."""
        if self.match == "suffix":
            return title if body.endswith(self.text) else None
        return body[len(self.text) :].strip() if body.startswith(self.text) else None


class Pending:
    """A notice that waits for its state."""

    __slots__ = ("kind", "message", "rule", "source", "t")

    def __init__(self, rule: Rule, message: str, source: str, t: float) -> None:
        self.rule = rule
        self.message = message
        self.source = source
        self.t = t


class Turn:
    """State, kind and message of the session's own record, and whose word they are.

    `event` counts what may be told to the user: it moves when a blocked, done or error begins, and stays
    while the same one is repeated or gets its message. `since` is when the last such one began, `started`
    when the turn's working began (None: not known), both in seconds on the caller's clock. `noticed` is the
    source of the program's own notice of that event, None where it made none.
    """

    __slots__ = (
        "_keyed",
        "_last",
        "_pending",
        "_taken_back",
        "event",
        "kind",
        "message",
        "noticed",
        "since",
        "source",
        "started",
        "state",
        "suspended",
    )

    def __init__(self, now: float) -> None:
        self.state = NONE
        self.kind: str | None = None
        self.message: str | None = None
        self.source = "process"
        self.since = now
        self.started: float | None = None
        self.event = 0
        self.noticed: str | None = None
        self.suspended = False
        self._pending: list[Pending] = []
        self._keyed = False  # typed since the event began
        self._taken_back: float | None = None  # when Esc ended a prompt that only a notice told of
        self._last: tuple[str, float] | None = None  # done or error as last reported, and when

    # --- what happens ---------------------------------------------------------------------------

    def report(
        self, state: str, kind: str | None, message: str | None, now: float, *, source: str = "osc7501"
    ) -> str:
        """The session's record says `state`. Returns what became of it, in a few words."""
        pending = self._take(state, now)
        if pending is None:
            return self._tell(_REPORTED[state], state, kind, message, source, now)
        rule = pending.rule
        event = _REPORTED[state]
        if rule.becomes != state:
            event, source = _NOTICED[rule.becomes], pending.source
        message = message or pending.message
        effect = self._tell(event, rule.becomes, kind or rule.kind, message, source, now)
        self.noticed = pending.source
        return effect + ", with its notice"

    def notice(self, rules: Sequence[Rule], title: str, body: str, source: str, now: float) -> str | None:
        """A notice of the program. Returns what became of it, or None if no rule reads it."""
        for rule in rules:
            message = rule.message(title, body)
            if message is None:
                continue
            if not rule.waits:
                if rule.becomes == DONE and self._was_taken_back(now):
                    return "the end of what was denied"
                effect = self._tell(_NOTICED[rule.becomes], rule.becomes, rule.kind, message, source, now)
                self.noticed = source
                return effect
            if self._belongs_to_state(rule, now):
                self.kind = self.kind or rule.kind
                self.message = message or None
                self.noticed = source
                return "the words of what stands"
            if len(self._pending) >= MAX_PENDING:
                del self._pending[0]
            self._pending.append(Pending(rule, message, source, now))
            return "waits for " + " or ".join(rule.waits)
        if self.state in _TOLD:
            self.noticed = source  # whatever it says, the user is called for what stands now
        return None

    def clear(self, now: float) -> str:
        """The record is gone."""
        self._last = None
        self._step(CLEAR, None, None, self.source, now)
        return self._word()

    def key(self, now: float, *, takes_back: bool = False) -> bool:
        """Something was typed; Esc takes back. Returns whether that changed the state."""
        self._keyed = True
        if self.state == PROMPT:
            self._taken_back = now if takes_back else None
        return self._step(KEY, None, None, self.source, now)

    def focus(self, now: float) -> bool:
        """The terminal got the focus. Returns whether that changed the state."""
        return self._step(FOCUS, None, None, self.source, now)

    def ended(self, now: float, source: str) -> bool:
        """The reporting program is gone: what it was doing too, what came of it stays."""
        self._last = None
        self._pending.clear()
        return self._step(ENDED, None, None, source, now)

    def exited(self, ok: bool, message: str | None, now: float) -> bool:
        """A program that never reported is gone."""
        return self._step(EXIT_OK if ok else EXIT_FAILED, None, message, "process", now)

    def stop(self) -> bool:
        """The program was stopped. Returns whether that changed the state."""
        stopped = not self.suspended
        self.suspended = True
        return stopped

    def resume(self) -> bool:
        """The program goes on, and so does the state it was in."""
        resumed = self.suspended
        self.suspended = False
        return resumed

    # --- time -----------------------------------------------------------------------------------

    @property
    def deadline(self) -> float | None:
        """When the oldest waiting notice has waited too long; None if none waits."""
        # A state exactly PAIRING later is still in time, so the deadline lies just behind it.
        return self._pending[0].t + PAIRING + 0.001 if self._pending else None

    def expire(self, now: float) -> Iterable[Pending]:
        """Drop and return the notices whose state did not follow in time."""
        late = [pending for pending in self._pending if now - pending.t > PAIRING]
        if late:
            self._pending = [pending for pending in self._pending if now - pending.t <= PAIRING]
        return late

    # --- inside ---------------------------------------------------------------------------------

    def _was_taken_back(self, now: float) -> bool:
        since, self._taken_back = self._taken_back, None
        return since is not None and now - since <= TAKEN_BACK and self.state == SEEN

    def _belongs_to_state(self, rule: Rule, now: float) -> bool:
        """Whether a notice comes just after the state it belongs to, and that still has no words.

        Codex 0.164 has been seen to say blocked first. Of a done or idle that can be no more than a guess.
        """
        return (
            self.state == BLOCKED
            and rule.becomes == BLOCKED
            and BLOCKED in rule.waits
            and self.message is None
            and self.kind in (None, rule.kind)
            and not self._keyed
            and now - self.since <= PAIRING
        )

    def _take(self, state: str, now: float) -> Pending | None:
        """The newest notice that waits for `state`; older ones have missed theirs and go with it."""
        for index in range(len(self._pending) - 1, -1, -1):
            pending = self._pending[index]
            if state in pending.rule.waits and now - pending.t <= PAIRING:
                del self._pending[: index + 1]
                return pending
        return None

    def _tell(
        self, event: str, state: str, kind: str | None, message: str | None, source: str, now: float
    ) -> str:
        """Apply a report or notice of `state`, unless it only says again what was said before."""
        if state not in (DONE, ERROR):
            self._last = None
            self._step(event, kind, message or None, source, now)
            return self._word()
        again = (
            self._last is not None
            and self._last[0] == state
            and (self.state == state or (self.state == SEEN and now - self._last[1] <= REPEAT))
        )
        self._last = (state, now)
        if not again:
            self._step(event, None, message or None, source, now)
            return self._word()
        seen = self.state == SEEN
        self._step(REPORT_AGAIN, None, None if seen else message or self.message, self.source, now)
        return "the same turn, already seen" if seen else "the same turn"

    def _step(self, event: str, kind: str | None, message: str | None, source: str, now: float) -> bool:
        target = _NEXT.get((self.state, event))
        if target is None:
            return False
        old = self.state
        if target in _TOLD and event != REPORT_AGAIN and not self._same(old, target, kind, message):
            self.event += 1
            self.noticed = None
            self.since = now
            self._keyed = False
        if target == WORKING and old not in (WORKING, BLOCKED, PROMPT):
            self.started = now
        elif target in (NONE, IDLE):
            self.started = None
        self.state = target
        self.kind = kind if target in (BLOCKED, PROMPT) else None
        self.message = message
        self.source = source
        return True

    def _same(self, old: str, target: str, kind: str | None, message: str | None) -> bool:
        """Whether a blocked is the one that was there, in other words perhaps."""
        if old != target or target in (DONE, ERROR):
            return False
        if kind and self.kind and kind != self.kind:
            return False
        # Another question, where the one before was answered and nothing was reported in between.
        return not (self._keyed and message and message != self.message)

    def _word(self) -> str:
        word = SHOWN.get(self.state, "nothing reported")
        return word + ", suspended" if self.suspended else word


def mermaid() -> str:
    """TABLE as a Mermaid state diagram, as docs/states.md shows it."""
    lines = ["stateDiagram-v2", "    [*] --> none"]
    by_edge: dict[tuple[str, str], list[str]] = {}
    for states, event, target in TABLE:
        origins = ("any",) if states is ANY else states
        for origin in origins:
            by_edge.setdefault((origin, target), []).append(event)
    for (origin, target), events in by_edge.items():
        lines.append(f"    {origin} --> {target}: {', '.join(events)}")
    return "\n".join(lines) + "\n"
