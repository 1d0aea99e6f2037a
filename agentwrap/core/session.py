"""One session: the program's output and the user's input in; its state, and what to tell of it, out.

What lives here: which signal goes to which part (records, turn, attention, modes), and what the session looks
like from outside. It must not know processes, files, terminals, the time of day, or any agent's name: agents
come in as profiles.

Feed `output`, `typed`, `stopped`, `resumed`, `exited`; call `tick` at `deadline`; drain the `take_` methods.
Times are seconds on the caller's clock, which must not go back.
"""

from __future__ import annotations

from agentwrap.core import notices, report, status, text, turns
from agentwrap.core.attention import LONG_RUN, OWN_HOLD, TMUX, Attention, Escalate, Notify, Update, Withdraw
from agentwrap.core.keys import ESCAPE, FOCUS_IN, FOCUS_OUT, KEY, PASTE
from agentwrap.core.modes import Ledger
from agentwrap.core.records import Records
from agentwrap.core.scanner import Csi, Osc, Scanner
from agentwrap.core.turns import Turn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Protocol

    from agentwrap.core.attention import Policy
    from agentwrap.core.report import Report

    class Profile(Protocol):
        """What a session needs to know of an agent."""

        @property
        def name(self) -> str: ...
        @property
        def title(self) -> str | None: ...
        @property
        def notices(self) -> Sequence[turns.Rule]: ...
        @property
        def answers_osc99(self) -> bool: ...


_BY_COMMAND = b":" + report.BY.encode()

HOOK_ID = "hook"
"""The record of `agentwrap report` run by an agent's hook. It speaks for the session until the agent does."""

EVENTS = 200
"""Events kept for an explanation until they are taken."""

OSC99_QUERIES = 16
"""Queries for OSC 99 kept until they are taken; a program asks once."""

TITLE_LIMIT = 256
"""Characters kept of a window title."""

WORKING_CHILD = ("working", "blocked")


class View:
    """What a session looks like from outside at one moment.

    `state`, `kind`, `message`, `progress`, `title`, `source`, `focused`, `app` and `seq` as in the state
    file; `since` and `updated` on the session's clock. `records` are (id, report, app shown), as sent.
    `children` is how many other records are working or blocked.
    """

    __slots__ = (
        "app",
        "children",
        "focused",
        "kind",
        "message",
        "progress",
        "records",
        "seq",
        "since",
        "source",
        "state",
        "title",
        "updated",
    )

    def __init__(
        self,
        *,
        state: str,
        kind: str | None,
        message: str | None,
        progress: int | None,
        title: str | None,
        source: str,
        focused: bool | None,
        since: float,
        updated: float,
        seq: int,
        app: str | None,
        records: tuple[tuple[str, Report, str | None], ...],
        children: int,
    ) -> None:
        self.state = state
        self.kind = kind
        self.message = message
        self.progress = progress
        self.title = title
        self.source = source
        self.focused = focused
        self.since = since
        self.updated = updated
        self.seq = seq
        self.app = app
        self.records = records
        self.children = children


class Change:
    """The state, its kind or its message is another one since `t`."""

    __slots__ = ("kind", "message", "source", "state", "t")

    def __init__(self, t: float, state: str, kind: str | None, message: str | None, source: str) -> None:
        self.t = t
        self.state = state
        self.kind = kind
        self.message = message
        self.source = source

    def __repr__(self) -> str:
        return f"Change({self.t}, {self.state!r}, {self.kind!r}, {self.message!r}, {self.source!r})"


class Session:
    """The state of one wrapped program.

    Args:
        profile: the agent it is.
        policy: when to notify.
        now: when it was started.
        command: its name where the profile and the program itself give none.
        label: its name or directory, see `status.label`.
        by_app: the profile of the agent that reports this `app`, for one that another program started.
        signal_name: names a signal.
        prompt_marks: whether a shell prompt counts now: the program is a shell and has the foreground.
        answer_osc99: answer the query for kitty's notifications, because the terminal does not.
        observer: called with (time, Change or action) for each, in the order they come.
        own_hold: seconds a notice of a program without states waits for the end that it may announce.
    """

    def __init__(
        self,
        profile: Profile,
        policy: Policy,
        *,
        now: float,
        command: str = "command",
        label: str = "",
        by_app: Callable[[str], Profile | None] | None = None,
        signal_name: Callable[[int], str] = status.signal_name,
        prompt_marks: Callable[[], bool] | None = None,
        answer_osc99: bool = False,
        observer: Callable[[float, Change | Notify | Withdraw], None] | None = None,
        own_hold: float = OWN_HOLD,
    ) -> None:
        self.profile = profile
        self.ledger = Ledger()
        self.changed = True
        """Whether anything in `view` may be another since this was set to False."""
        self.by_command = False
        """Whether the last report was one of `agentwrap report`, whose process is not the one to watch."""
        self.left = False
        """A program that reported has gone, the wrapped one goes on: whoever sees this undoes its modes."""
        self.answer_osc99 = answer_osc99
        self.prompt_marks = prompt_marks
        self.label = label
        self._command = command
        self._by_app = by_app
        self._signal_name = signal_name
        self._observer = observer
        self._scanner = Scanner(latest=True)
        self._records = Records()
        self._turn = Turn(now)
        self._attention = Attention(policy, own_hold=own_hold)
        self._own_held = "the program reports no state"
        if own_hold > 0:
            self._own_held += f"; if it ends within {own_hold:g} s, told with that"
        self._kitty = notices.Kitty()
        self._started = now
        self._reported = False  # anything was ever reported by OSC 7501
        self._spoken = False  # the program itself reported for the root
        self._for_tmux = False  # the last notice was written in a passthrough
        self._app: str | None = None  # of whoever speaks, also after its record is gone
        self._rules: Sequence[turns.Rule] = profile.notices
        self.retitled = False
        """Whether the window title may be another; apart from `changed`, since spinners turn in it."""
        self._title = b""
        self._progress: int | None = None
        self._replies: list[bytes] = []
        self._queries = 0
        self._positions = 0
        self._osc99_queries: list[tuple[bytes, bool]] = []
        self._actions: list[Notify | Withdraw] = []
        self._events: list[dict[str, object]] = []
        self._shown = ("unknown", None, None)  # type: tuple[str, str | None, str | None]
        self._since = now
        self._updated = now
        self._source = "process"
        self._seq = 0
        self._ended = False

    # --- what happens ---------------------------------------------------------------------------

    def output(self, data: bytes, now: float, *, more: bool = False) -> bool:
        """The program wrote `data`. Returns False where that was only text, colours and movement.

        `more`: the next output, which may be empty, follows at once. Until then neither `ground` nor the
        ledger's modes of drawing, nor the title, need be those behind `data`.
        """
        tokens = self._scanner.feed(data, more=more)
        if not tokens:
            return False
        ledger = self.ledger
        apply = ledger.apply
        for token in tokens:
            if isinstance(token, Csi):  # first: a full-screen program writes four modes a frame
                if token.final == b"n" and _asks_position(token):
                    self._positions += 1
            elif isinstance(token, Osc):
                self._osc(token, now)
            elif token.code == b"c" and not token.wrapped:
                self._reset(now)
            apply(token)
        if ledger.focus_reporting is False and self._attention.focused is not None:
            self._attention.focused = None
            self._touch(now)
            self._explain(now, "osc", "focus", "unknown", "the program turned focus events off")
        self._drain(now)
        return True

    def typed(self, events: Iterable[int], now: float) -> None:
        """The terminal sent `events`, as the input grammar names them."""
        for event in events:
            if event in (KEY, PASTE, ESCAPE):
                self._attention.key(now)
                before = self._turn.state
                self._turn.key(now, takes_back=event == ESCAPE)
                self._looked(before, now, "key")
            elif event in (FOCUS_IN, FOCUS_OUT) and self.ledger.focus_reporting is not False:
                focused = event == FOCUS_IN
                if self._attention.focused is not focused:
                    self._attention.focused = focused
                    self._touch(now)
                    has = "has" if focused else "has lost"
                    self._explain(now, "terminal", "focus", self._shown[0], f"the terminal {has} the focus")
                if focused:
                    before = self._turn.state
                    self._turn.focus(now)
                    self._looked(before, now, "focus")
        self._drain(now)

    def stopped(self, now: float) -> None:
        """The program was stopped."""
        if self._turn.stop():
            self._attention.suspend(now)
            self._settle(now, counts=True, source="process")
            self._explain(now, "process", "stopped", "suspended", "the program was stopped")
            self._drain(now)

    def resumed(self, now: float) -> None:
        """The program goes on."""
        if self._turn.resume():
            self._settle(now, counts=True)
            self._explain(now, "process", "resumed", self._shown[0], "the program goes on")
            self._drain(now)

    def reporter_gone(self, now: float) -> None:
        """The program that reported has ended, one that the wrapped program started."""
        self.left = True
        if self._records.exit():
            self._touch(now)
        self._turn.ended(now, "process")
        self._explain(now, "process", "gone", "idle", "the program that reported has ended")
        self._settle(now, counts=True, source="process")
        self._drain(now)

    def exited(self, now: float, wait_status: int, forwarded: frozenset[int] = frozenset()) -> None:
        """The program has ended.

        Args:
            now: when.
            wait_status: as `waitpid` gives it.
            forwarded: numbers of the signals it was sent through us.
        """
        if self._ended:
            return
        self._ended = True
        self._turn.resume()
        self.tick(now)
        number = wait_status & 0x7F
        code = 0 if number else wait_status >> 8 & 0xFF
        name = self._signal_name(number) if number else None
        reason = f"killed by {name}" if name else f"exit code {code}"
        silent = not self._reported and self._turn.state == turns.NONE
        if silent:
            ok = wait_status == 0
            self._turn.exited(ok, None if ok else reason, now)
        else:
            self._records.exit()
            self._turn.ended(now, "process")
        self._settle(now, counts=True, tell=not silent, source="process")
        self._explain(now, "process", "exit", self._shown[0], reason)
        if number in forwarded:
            self._explain(now, "process", "exit", "not notified", f"{name} was sent through agentwrap")
        elif number or (silent and now - self._started > LONG_RUN):
            title = status.exit_title(self._name(), code, name)
            message = self._attention.announced()
            said = message is not None and ((number == 0 and code == 0) or f"(exit code {code})" in message)
            self._attention.exit(title, status.body(message, self.label), message, now, said=said)
        elif silent:
            self._explain(now, "process", "exit", "not notified", f"ran {now - self._started:.1f} s")
        self._attention.close(now)
        self._progress = None
        self._drain(now)

    def tick(self, now: float) -> None:
        """Do what is due. To be called at `deadline`, may be called at any time."""
        for pending in self._turn.expire(now):
            self._explain(
                now, pending.source, "notice", "ignored", f"no {'/'.join(pending.rule.waits)} within 2 s"
            )
        self._attention.tick(now)
        self._drain(now)

    @property
    def deadline(self) -> float | None:
        """When to call `tick`, or None."""
        one, other = self._turn.deadline, self._attention.deadline
        if one is None or other is None:
            return other if one is None else one
        return min(one, other)

    @property
    def quiet(self) -> bool:
        """Whether it is a time in which nothing is to be told; set by whoever knows the local time."""
        return self._attention.quiet

    @quiet.setter
    def quiet(self, quiet: bool) -> None:
        self._attention.quiet = quiet

    # --- what came of it ------------------------------------------------------------------------

    @property
    def open(self) -> bool:
        """Whether an escape sequence or control string of the program has begun and not ended."""
        return self._scanner.open

    @property
    def ground(self) -> bool:
        """Whether something may be written to the terminal now, between two writes of the program."""
        return self._scanner.ground and not self.ledger.sync_open

    @property
    def reporting(self) -> bool:
        """Whether there is any record now."""
        return len(self._records) > 0

    def undo(self) -> bytes:
        """What undoes all that the program has left on or open, b"" where that is nothing."""
        scanner = self._scanner
        return self.ledger.undo(
            mid_sequence=not scanner.ground, sgr=scanner.sgr_open(), link=scanner.link_open()
        )

    def take_replies(self) -> list[bytes]:
        """Answers to put into the program's input, in order."""
        replies, self._replies = self._replies, []
        return replies

    def take_queries(self) -> int:
        """How many status queries went on to the terminal: as many replies of it are to be taken out."""
        queries, self._queries = self._queries, 0
        return queries

    def take_position_queries(self) -> int:
        """How many times the cursor's position was asked for: a reply to it may be spelled like a key."""
        positions, self._positions = self._positions, 0
        return positions

    def take_osc99_queries(self) -> list[tuple[bytes, bool]]:
        """Queries for OSC 99 that went on to the terminal: identifier, whether they were answered here."""
        queries, self._osc99_queries = self._osc99_queries, []
        return queries

    def take_actions(self) -> list[Notify | Withdraw]:
        """What to tell, in order: Notify, Update, Escalate, Withdraw."""
        actions, self._actions = self._actions, []
        return actions

    def take_events(self) -> list[dict[str, object]]:
        """What happened, for an explanation: t, source, event, effect, reason."""
        events, self._events = self._events, []
        return events

    def view(self) -> View:
        """What the session looks like now."""
        speaker = self._speaker()
        records = self._records
        speaks = speaker[1] if speaker is not None else None
        progress = speaks.progress if speaks is not None else None
        app = records.app_of(speaker[0]) if speaker is not None else None
        return View(
            state=self._shown[0],
            kind=self._shown[1],
            message=self._shown[2],
            progress=progress if self._reported else self._progress,
            title=text.clip(text.fold(self._title[: 4 * TITLE_LIMIT].decode("utf-8", "replace")), TITLE_LIMIT)
            or None,
            source=self._source,
            focused=self._attention.focused,
            since=self._since,
            updated=self._updated,
            seq=self._seq,
            app=app,
            records=tuple((ident, each, records.app_of(ident)) for ident, each in records.items()),
            children=self._children(),
        )

    # --- the program's signals ------------------------------------------------------------------

    def _osc(self, token: Osc, now: float) -> None:
        number = token.number
        if number == report.NUMBER:
            self._report(token, now)
        elif number == 0 or number == 2:  # noqa: PLR1714 - twice as fast as a tuple, for every spinner's turn
            if token.body != self._title:
                self._title = token.body
                self._updated = now
                self.retitled = True
        elif number == 9:
            self._osc9(token, now)
        elif number == 777:
            self._notice(notices.osc777(token.body), token, now)
        elif number == 99:
            part = self._kitty.feed(token.body)
            if isinstance(part, bytes):
                answer = self.answer_osc99 and self.profile.answers_osc99
                if answer:
                    self._replies.append(notices.kitty_support(part, token.terminator))
                if not token.wrapped and len(self._osc99_queries) < OSC99_QUERIES:
                    self._osc99_queries.append((part, answer))
            else:
                self._notice(part, token, now)
        elif number == 133:
            self._prompt(token.body, now)

    def _report(self, token: Osc, now: float) -> None:
        found = report.parse(token.body, token.terminator)
        if isinstance(found, report.Query):
            self._replies.append(report.reply(token.terminator))
            self._queries += 1
            self._explain(
                now, "osc7501", "query", "answered", "the program asks whether status is understood"
            )
            return
        if isinstance(found, report.Ignored):
            self._explain(now, "osc7501", "report", "ignored", found.reason)
            return
        self.by_command = token.body.endswith(_BY_COMMAND)
        if self._records.apply(found):
            self._touch(now)
        self._reported = True
        what = found.state if not found.id else f"{found.state} id={found.id}"
        own = not found.id
        if own:
            self._spoken = self._spoken or found.state != report.CLEAR
        elif found.id == HOOK_ID and not self._spoken:
            own = True
        if own and found.id and self._says_less(found):
            self._explain(now, "osc7501", what, self._shown[0], "a hook's, which says less than is known")
            return
        if not own:
            gone = self._speaker() is None and self._turn.state not in (turns.NONE, turns.PROMPT, turns.SEEN)
            if gone and self._turn.source == "osc7501":
                self._turn.clear(now)  # evicted: more records than are kept
            self._settle(now, counts=False)
            reason = "a record of its own, never notified"
            if found.id == HOOK_ID:
                reason = "a hook's, and the program speaks for itself"
            self._explain(now, "osc7501", what, self._shown[0], reason)
            return
        if found.state == report.CLEAR:
            effect = self._turn.clear(now)
        else:
            self._app = self._records.app_of(found.id) or self._app
            self._choose_rules()
            effect = self._turn.report(found.state, found.kind, _shown(found.msg), now)
        self._settle(now, counts=True)
        children = self._children() if found.state == "done" else 0
        reason = f"{children} more still working" if children else "reported"
        self._explain(now, "osc7501", what, effect, reason)

    def _osc9(self, token: Osc, now: float) -> None:
        body = token.body
        if notices.is_conemu(body):
            root = self._records.root
            in_turn = root is not None and root.state in ("working", "blocked")
            # An agent's reply may begin like a command ("4;1;50 pong"); a command comes at any time.
            if not (in_turn and any(rule.waits for rule in self._rules)):
                progress = notices.progress(body)
                if progress is not None and not self._reported and progress[0] != self._progress:
                    self._progress = progress[0]
                    self._touch(now)
                return
        self._notice(notices.osc9(body), token, now)

    def _notice(self, notice: notices.Notice | None, token: Osc, now: float) -> None:
        if notice is None:
            return
        self._for_tmux = token.wrapped
        title, body = text.fold(notice.title), text.fold(notice.body)
        # A rule that waits for a report is of no use where none was ever made; one that does not, where the
        # program or its hooks say what it does.
        speaks = self._speaker() is not None
        rules = [rule for rule in self._rules if (self._reported if rule.waits else not speaks)]
        effect = self._turn.notice(rules, title, body, notice.source, now)
        if effect is not None:
            self._settle(now, counts=True)
            self._explain(now, notice.source, "notice", effect, "a notice of this agent")
        elif self._reported:
            self._settle(now, counts=False)
            self._explain(now, notice.source, "notice", "ignored", "the program reports its state itself")
        elif self._turn.suspended:
            self._explain(now, notice.source, "notice", "ignored", "suspended")
        else:
            self._explain(now, notice.source, "notice", "told by itself", self._own_held)
            message = text.fold(notice.text)
            own = self._own(notice.source)
            self._attention.notice(self._name(), status.body(message, self.label), message, now, own)

    def _own(self, source: str | None) -> str | None:
        return TMUX + source if source is not None and self._for_tmux else source

    def _prompt(self, body: bytes, now: float) -> None:
        fields = body.split(b";")
        kinds = [field for field in fields[1:] if field.startswith(b"k=")]
        if fields[0] != b"A" or any(kind != b"k=i" for kind in kinds):
            return
        if self.prompt_marks is None or not self.prompt_marks():
            return
        if self.reporting:
            self.left = True
        if self._records.prompt():
            self._touch(now)
        if self._turn.ended(now, "osc7501"):
            self._explain(now, "osc133", "prompt", "idle", "the shell shows its prompt")
        self._settle(now, counts=True)

    def _reset(self, now: float) -> None:
        if self._records.reset():
            self._touch(now)
            effect = self._turn.clear(now)
            self._settle(now, counts=True)
            self._explain(now, "osc7501", "reset", effect, "the program reset the terminal")

    # --- inside ---------------------------------------------------------------------------------

    def _speaker(self) -> tuple[str, Report] | None:
        """Who speaks for the session: the root record, or the hook's as long as there never was one."""
        ident = "" if self._spoken else HOOK_ID
        record = self._records.get(ident)
        return None if record is None else (ident, record)

    def _says_less(self, found: Report) -> bool:
        """Whether a hook's report would only take away: agents repeat a prompt, and tell idleness by timers.

        A prompt is told a second time without its text and kind; what came of a turn stays until it is seen.
        """
        state = self._turn.state
        if found.state == "blocked":
            return state in (turns.BLOCKED, turns.PROMPT) and not found.msg
        return found.state == "idle" and state in (turns.DONE, turns.ERROR)

    def _children(self) -> int:
        speaker = HOOK_ID if not self._spoken else ""
        return sum(
            each.state in WORKING_CHILD
            for ident, each in self._records.items()
            if ident not in (speaker, HOOK_ID)
        )

    def _current(self) -> tuple[str, str | None, str | None, str]:
        """State, kind, message and source, as they are to be shown."""
        turn = self._turn
        if turn.suspended:
            return "suspended", None, None, "process"
        shown = turns.SHOWN.get(turn.state)
        if shown is not None:
            return shown, turn.kind, turn.message, turn.source
        others = [each for each in self._records.items() if each[0] not in ("", HOOK_ID)]
        best = status.most_urgent(others)
        if best is not None:
            record = best[1]
            return record.state, record.kind, _shown(record.msg), "osc7501"
        if self._reported:
            return "idle", None, None, turn.source if turn.source != "process" or self._ended else "osc7501"
        return "unknown", None, None, "process"

    def _settle(self, now: float, *, counts: bool, tell: bool = True, source: str | None = None) -> None:
        """See what the session looks like now, and let the attention know."""
        state, kind, message, whose = self._current()
        shown = (state, kind, message)
        if shown != self._shown:
            if (state, kind) != self._shown[:2]:
                self._since = now
            self._shown = shown
            self._source = source or whose
            if counts:
                self._seq += 1
            self._touch(now)
            if self._observer is not None:
                self._observer(now, Change(now, state, kind, message, self._source))
        turn = self._turn
        if turn.suspended or not tell:
            return
        if turn.state in (turns.BLOCKED, turns.PROMPT, turns.DONE, turns.ERROR):
            texts = (
                kind,
                message,
                status.title(state, self._name(), kind, message),
                status.body(message, self.label),
            )
            length = now - turn.started if turn.started is not None else None
            own = self._own(turn.noticed)
            self._attention.state(turn.event, state, turn.since, texts, length, now, own)
        else:
            self._attention.state(turn.event, None, now, (None, None, "", ""), None, now)

    def _looked(self, before: str, now: float, how: str) -> None:
        """The user typed or came back: what was told is seen."""
        if self._turn.state == before:
            return
        self._settle(now, counts=True)
        was = turns.SHOWN.get(before, before)
        self._explain(now, how, "seen", self._shown[0], f"{was} was seen" if was != "blocked" else "answered")

    def _name(self) -> str:
        """What to call the program: its profile's name, what it calls itself, or the command's."""
        if self.profile.title:
            return self.profile.title
        if self._app:
            other = self._by_app(self._app) if self._by_app is not None else None
            return (other.title if other is not None else None) or self._app
        return self._command

    def _choose_rules(self) -> None:
        """An agent that another program started reads as itself."""
        other = self._by_app(self._app) if self._by_app is not None and self._app else None
        self._rules = other.notices if other is not None and other.notices else self.profile.notices

    def _touch(self, now: float) -> None:
        self.changed = True
        self._updated = now

    def _drain(self, now: float) -> None:
        attention = self._attention
        if attention.notes:
            for t, what, effect, reason in attention.notes:
                self._explain(t, "attention", what, effect, reason)
            attention.notes.clear()
        if attention.actions:
            self._actions += attention.actions
            if self._observer is not None:
                for action in attention.actions:
                    self._observer(now, action)
            attention.actions.clear()

    def _explain(self, now: float, source: str, event: str, effect: str, reason: str) -> None:
        if len(self._events) >= EVENTS:
            del self._events[0]
        self._events.append({"t": now, "source": source, "event": event, "effect": effect, "reason": reason})


def _asks_position(token: Csi) -> bool:
    return token.params == b"6" and not token.inter and token.prefix in (b"", b"?")


def _shown(message: str | None) -> str | None:
    return (text.clean(message) or None) if message else None


__all__ = ["HOOK_ID", "Change", "Escalate", "Notify", "Session", "Update", "View", "Withdraw"]
