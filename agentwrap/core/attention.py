"""When the user is told, and when no more.

What lives here: delays, focus, keys that count as looking, limits of rate, updates and withdrawals. It must
not know how a state came about, or what a notification is shown with. One event is told at most once.

Times are seconds on the caller's clock.
"""

from __future__ import annotations

LOOKING = 3.0
"""Seconds a key typed counts as looking at a terminal that does not tell its focus."""

SPACING = 1.0
"""Seconds between two notifications of a session."""

PER_MINUTE = 10
"""Notifications of a session in any 60 seconds: a program gone wild must not bury the desktop."""

LONG_RUN = 10.0
"""Seconds a command that reports nothing must have run for its end to be news."""

MAX_NOTICES = 4
"""Notices of a program without states that wait at once, for the user to look away."""

OWN_HOLD = 0.5
"""Seconds a notice of a program without states waits for the end that it may announce. An agentwrap at the
other end of ssh tells of its command's end with its last bytes; ssh ends a round trip or two behind them."""

TMUX = "tmux:"
"""Begins the source of a program's own notice that was written for tmux to pass on."""

PENDING, TOLD, OVER = "pending", "told", "over"


class Policy:
    """The settings that decide when to notify, at their defaults. Delays are in seconds.

    Attributes:
        on: which of blocked, done, error and exit are told at all.
        blocked_delay, error_delay: how long the state must have stood.
        done_delay, done_delay_without_message: the same for a finished turn.
        min_turn: turns shorter than this are not told as done.
        while_focused: tell also while the user looks.
        escalate_after: how long blocked must have stood to escalate; 0 never.
    """

    __slots__ = (
        "blocked_delay",
        "done_delay",
        "done_delay_without_message",
        "error_delay",
        "escalate_after",
        "min_turn",
        "on",
        "while_focused",
    )

    def __init__(self) -> None:
        self.on: tuple[str, ...] = ("blocked", "done", "error", "exit")
        self.blocked_delay = 0.5
        self.error_delay = 1.5
        self.done_delay = 1.5
        self.done_delay_without_message = 3.0
        self.min_turn = 0.0
        self.while_focused = False
        self.escalate_after = 0.0


class Notify:
    """Tell the user. `type` is blocked, done, error or exit; `id` names it for a later update.

    `own` is the source of the notice with which the program itself has asked the terminal to tell it (behind
    `TMUX` where it asked tmux to pass that on), None where it has not. `last` says that the command has
    ended: whoever tells it cannot wait for anything of it.
    """

    __slots__ = ("body", "id", "kind", "last", "message", "own", "title", "type")
    action = "notify"

    def __init__(
        self,
        id: int,  # noqa: A002 - what it is
        type: str,  # noqa: A002 - the name it has in the output of replay
        title: str,
        body: str,
        kind: str | None = None,
        message: str | None = None,
        own: str | None = None,
        *,
        last: bool = False,
    ) -> None:
        self.id = id
        self.type = type
        self.title = title
        self.body = body
        self.kind = kind
        self.message = message
        self.own = own
        self.last = last

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.id}, {self.type!r}, {self.title!r}, {self.body!r})"


class Update(Notify):
    """Replace the text of what was told, silently."""

    __slots__ = ()
    action = "update"


class Escalate(Notify):
    """Blocked, still: run the command kept for that."""

    __slots__ = ()
    action = "escalate"


class Withdraw:
    """What was told is no longer so."""

    __slots__ = ("id", "type")
    action = "withdraw"

    def __init__(self, id: int, type: str) -> None:  # noqa: A002 - as in Notify
        self.id = id
        self.type = type

    def __repr__(self) -> str:
        return f"Withdraw({self.id}, {self.type!r})"


class Event:
    """Something that may be told: a blocked, done or error, from when it began until its state is left."""

    __slots__ = (
        "began",
        "body",
        "due",
        "escalate",
        "id",
        "kind",
        "message",
        "number",
        "own",
        "spoken",
        "status",
        "title",
        "type",
        "update",
    )

    def __init__(self, number: int, type: str, began: float) -> None:  # noqa: A002 - as in Notify
        self.number = number
        self.type = type
        self.began = began
        self.own: str | None = None
        self.kind: str | None = None
        self.message: str | None = None
        self.title = ""
        self.body = ""
        self.due = began
        self.escalate: float | None = None
        self.status = PENDING
        self.id = 0
        self.spoken = began  # when it was told or updated last
        self.update: float | None = None  # when a text that came since may be shown


class Attention:
    """Decides what to tell. The session says what is so; `actions` and `notes` are drained by it.

    `notes` are (time, what, effect, reason) for the explanation of a decision. `focused` is None where the
    terminal does not tell; `quiet` is set by whoever knows the local time.
    """

    __slots__ = (
        "_event",
        "_last_id",
        "_last_key",
        "_last_number",
        "_notices",
        "_times",
        "actions",
        "focused",
        "notes",
        "own_hold",
        "policy",
        "quiet",
    )

    def __init__(self, policy: Policy, *, own_hold: float = OWN_HOLD) -> None:
        self.policy = policy
        self.own_hold = own_hold
        self.focused: bool | None = None
        self.quiet = False
        self.actions: list[Notify | Withdraw] = []
        self.notes: list[tuple[float, str, str, str]] = []
        self._event: Event | None = None
        self._last_number = 0  # of the last event taken up, so that none is taken up twice
        self._last_id = 0
        self._last_key: float | None = None
        self._notices: list[tuple[float, str, str, str, str | None]] = []
        self._times: list[float] = []  # of the last PER_MINUTE notifications

    # --- what is so -----------------------------------------------------------------------------

    def key(self, now: float) -> None:
        """Something was typed."""
        self._last_key = now

    def state(
        self,
        number: int,
        type: str | None,  # noqa: A002 - as in Notify
        began: float,
        texts: tuple[str | None, str | None, str, str],
        turn: float | None,
        now: float,
        own: str | None = None,
    ) -> None:
        """Say which event stands now.

        Args:
            number: counts events; the same number is the same event.
            type: blocked, done or error; None if none of them stands.
            began: when it began.
            texts: kind, message, title and body.
            turn: how long the turn took, None if that is not known.
            now: the time.
            own: the source of the program's own notice of it, None where it made none.
        """
        event = self._event
        if event is not None and (type is None or event.number != number):
            self._leave(event, now)
            event = None
        if type is None:
            return
        if event is not None:
            self._update(event, texts, now)
        elif number > self._last_number:
            self._last_number = number
            event = Event(number, type, began)
            self._begin(event, texts, turn, now)
        if event is not None:
            event.own = own

    def notice(self, title: str, body: str, message: str, now: float, own: str | None = None) -> None:
        """A notice of a program without states: told by itself, as soon as nobody looks.

        If the command ends within `own_hold`, the notice has told of that: see `exit`.
        """
        if "done" not in self.policy.on:
            self._note(now, "notice", "not notified", "done is not in notify.on")
            return
        entry = (now + self.own_hold, title, body, message, own)
        # The same again while it waits is the same; a flood loses its oldest.
        self._notices = [each for each in self._notices if each[1:] != entry[1:]]
        if len(self._notices) >= MAX_NOTICES:
            del self._notices[0]
            self._note(now, "notice", "dropped", "too many wait")
        self._notices.append(entry)
        self.tick(now)

    def announced(self) -> str | None:
        """What the notices that wait say, one line each; None where none waits."""
        said: list[str] = []
        for _, _, _, message, _ in self._notices:
            # An agentwrap within tells its command's notice again, as its own or together with the end.
            said = [each for each in said if each not in message]
            said.append(message)
        return "\n".join(said) or None

    def exit(self, title: str, body: str, message: str | None, now: float, *, said: bool = False) -> None:
        """The command has ended in a way that is news. It is told now or never.

        Args:
            title: what is told.
            body: more of it.
            message: what `announced` said: the notices that wait are told with the end, if it is told.
            now: the time.
            said: whether the last of these notices says all that is to be told.
        """
        reason = self._silenced("exit")
        if (
            reason is None
            and not self.policy.while_focused
            and self.focused is None
            and self._looking(now) > now
        ):
            reason = "a key was typed just before"
        if reason is None and self._allowed(now) > now:
            reason = "too many notifications"
        if reason is not None:
            self._note(now, "exit", "not notified", reason)
            return
        own = None
        if self._notices:
            own = self._notices[-1][4] if said else None
            self._notices.clear()
            self._note(now, "notice", "joined", "the command ended with it")
        self._tell("exit", title, body, None, message, now, own=own, last=True)

    def suspend(self, now: float) -> None:
        """The command was stopped: nothing of it is news before it goes on."""
        self._notices.clear()
        if self._event is not None:
            self._leave(self._event, now)

    def close(self, now: float) -> None:
        """The command has ended: nothing more is told but its last words. What was told and holds stays."""
        event = self._event
        if event is not None:
            event.escalate = None
            if event.status == PENDING:
                event.status = OVER
                self._note(now, event.type, "not notified", "the command ended first")
        if self._when(now) <= now:
            self._speak(now, last=True)
        self._notices.clear()

    # --- time -----------------------------------------------------------------------------------

    @property
    def deadline(self) -> float | None:
        """When `tick` has something to decide; None if nothing waits."""
        if self._event is None and not self._notices:
            return None
        times = [self._when(entry[0]) for entry in self._notices[:1]]
        event = self._event
        if event is not None:
            if event.status == PENDING:
                times.append(self._when(event.due))
            if event.escalate is not None:
                times.append(self._when(event.escalate))
            if event.update is not None:
                times.append(event.update)
        return min(times) if times else None

    def tick(self, now: float) -> None:
        """Tell what is due."""
        event = self._event
        if event is not None:
            if event.status == PENDING and self._when(event.due) <= now:
                self._decide(event, now)
            if event.escalate is not None and self._when(event.escalate) <= now:
                self._escalate(event, now)
            if event.update is not None and event.update <= now:
                self._renew(event, now)
        self._speak(now)

    # --- inside ---------------------------------------------------------------------------------

    def _speak(self, now: float, *, last: bool = False) -> None:
        """Tell the notices that are due; all of them at the last."""
        while self._notices and (last or self._when(self._notices[0][0]) <= now):
            _, title, body, message, own = self._notices.pop(0)
            reason = self._silenced("done")
            if reason is None and self._allowed(now) > now:
                reason = "too many notifications"
            if reason is None:
                self._tell("done", title, body, None, message, now, own=own, last=last)
            else:
                self._note(now, "notice", "not notified", reason)

    def _begin(
        self, event: Event, texts: tuple[str | None, str | None, str, str], turn: float | None, now: float
    ) -> None:
        policy = self.policy
        self._event = event
        event.kind, event.message, event.title, event.body = texts
        if event.type not in policy.on:
            event.status = OVER
            self._note(now, event.type, "not notified", f"{event.type} is not in notify.on")
            return
        if event.type == "done" and turn is not None and turn < policy.min_turn:
            event.status = OVER
            self._note(
                now,
                "done",
                "not notified",
                f"the turn took {turn:.1f} s, notify.min_turn is {policy.min_turn:g} s",
            )
            return
        if event.type == "blocked":
            delay = policy.blocked_delay
            if policy.escalate_after > 0:
                event.escalate = event.began + policy.escalate_after
        elif event.type == "error":
            delay = policy.error_delay
        else:
            delay = policy.done_delay if event.message else policy.done_delay_without_message
        event.due = event.began + delay
        self._note(now, event.type, "held", f"notified if it stands {delay:g} s")

    def _update(self, event: Event, texts: tuple[str | None, str | None, str, str], now: float) -> None:
        if texts == (event.kind, event.message, event.title, event.body):
            return
        came = texts[1] is not None and event.message is None
        event.kind, event.message, event.title, event.body = texts
        if event.status == TOLD:
            event.update = event.spoken + SPACING
            if event.update <= now:
                self._renew(event, now)
        elif event.status == PENDING and event.type == "done" and came:
            event.due = min(event.due, max(now, event.began + self.policy.done_delay))
            self._note(
                now,
                "done",
                "held",
                f"its message came, notified {event.due - event.began:g} s after it began",
            )

    def _renew(self, event: Event, now: float) -> None:
        event.update = None
        event.spoken = now
        self.actions.append(Update(event.id, event.type, event.title, event.body, event.kind, event.message))
        self._note(now, event.type, "updated", "another text for the same event")

    def _leave(self, event: Event, now: float) -> None:
        self._event = None
        if event.status == TOLD:
            self.actions.append(Withdraw(event.id, event.type))
            self._note(now, event.type, "withdrawn", "the state was left")
        elif event.status == PENDING:
            self._note(now, event.type, "not notified", f"the state was left after {now - event.began:.1f} s")

    def _decide(self, event: Event, now: float) -> None:
        reason = self._silenced(event.type)
        if reason is not None:
            event.status = OVER
            self._note(now, event.type, "not notified", reason)
            return
        allowed = self._allowed(now)
        if allowed > now:
            if event.type == "blocked":
                event.due = allowed
                self._note(now, "blocked", "delayed", "too many notifications")
            else:
                event.status = OVER
                self._note(now, event.type, "not notified", "too many notifications")
            return
        event.status = TOLD
        event.spoken = now
        held = f"held {now - event.began:.1f} s"
        if self.focused is None and self._last_key is not None and self._last_key + LOOKING > event.due:
            held += f", {LOOKING:g} s after a key"
        event.id = self._tell(
            event.type, event.title, event.body, event.kind, event.message, now, held, own=event.own
        )

    def _escalate(self, event: Event, now: float) -> None:
        event.escalate = None
        reason = self._silenced("blocked")
        if reason is not None:
            self._note(now, "blocked", "not escalated", reason)
            return
        self._last_id += 1
        self.actions.append(
            Escalate(self._last_id, event.type, event.title, event.body, event.kind, event.message)
        )
        self._note(now, "blocked", "escalated", f"still blocked after {now - event.began:.1f} s")

    def _tell(
        self,
        type: str,  # noqa: A002 - as in Notify
        title: str,
        body: str,
        kind: str | None,
        message: str | None,
        now: float,
        how: str = "",
        *,
        own: str | None = None,
        last: bool = False,
    ) -> int:
        self._last_id += 1
        self._times.append(now)
        del self._times[:-PER_MINUTE]
        self.actions.append(Notify(self._last_id, type, title, body, kind, message, own, last=last))
        self._note(now, type, "notified", f"{how}: {title}" if how else title)
        return self._last_id

    def _silenced(self, type: str) -> str | None:  # noqa: A002 - as in Notify
        if type not in self.policy.on:
            return f"{type} is not in notify.on"
        if self.focused and not self.policy.while_focused:
            return "focused, so not notified"
        if self.quiet:
            return "quiet hours"
        return None

    def _when(self, due: float) -> float:
        """When something due then may be told, if no more is typed."""
        if self.focused is None and not self.policy.while_focused:
            return max(due, self._looking(due))
        return due

    def _looking(self, otherwise: float) -> float:
        return otherwise if self._last_key is None else self._last_key + LOOKING

    def _allowed(self, now: float) -> float:
        """When the next notification is within the limits; `now` or before if it is."""
        times = self._times
        if not times:
            return now
        allowed = times[-1] + SPACING
        if len(times) >= PER_MINUTE:
            allowed = max(allowed, times[0] + 60.0)
        return allowed

    def _note(self, now: float, what: str, effect: str, reason: str) -> None:
        self.notes.append((now, what, effect, reason))
