"""What becomes of news: the core's actions as messages for the notification helper, its answers as bytes.

What lives here: which channels a notification is for, what waits to be written to the terminal, what takes it
back there, and what is known of the terminal. It must not know when something is news (`core.attention`), how
it is shown (`host.notifiers`), or when bytes may be written (the session). It runs in the pump: nothing here
waits, opens a file or imports anything; all that leaves is lines for the session leader.
"""

from __future__ import annotations

import sys

from agentwrap.commands.beyond import Beyond
from agentwrap.core import inband, snapshot
from agentwrap.core.attention import TMUX, Withdraw
from agentwrap.host import notifiers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from agentwrap.config import Settings
    from agentwrap.core.attention import Notify

    Line = tuple[str, str]

WAITING_INBAND = 16
"""Notifications that wait for a moment to be written to the terminal; the oldest go first."""

MOMENT_WAIT = 1.0
"""Seconds to wait for a moment in which the terminal may be asked what it knows."""

ANSWER_WAIT = 0.3
"""Seconds the terminal has to answer; then the notification takes the way that is sure."""

_SOURCES = {"osc9": 9, "osc99": 99, "osc777": 777}
_STAYS = "exit"
"""The type of what is news after the session, so that it is never taken back."""


class News:
    """The notifications of one session.

    Args:
        session: its name.
        agent: the profile's name, as in the state file.
        settings: channels, command, sound.
        environ: what is known of the terminal.
        cwd: the directory the command was started in.
        state: the session's present state.
        expect: told the identifier of a query for OSC 99 that is written now.
        expect_status: told that a query for status reports is written now.
    """

    __slots__ = (
        "_agent",
        "_ask_by",
        "_asking",
        "_beyond",
        "_closing",
        "_cwd",
        "_environ",
        "_events",
        "_expect",
        "_expect_status",
        "_inband",
        "_knows_99",
        "_last",
        "_lines",
        "_session",
        "_settings",
        "_standing",
        "_state",
        "_written",
    )

    def __init__(
        self,
        *,
        session: str,
        agent: str,
        settings: Settings,
        environ: Mapping[str, str],
        cwd: str,
        state: Callable[[], str],
        expect: Callable[[bytes], None],
        expect_status: Callable[[], None],
    ) -> None:
        self._session = session
        self._agent = agent
        self._settings = settings
        self._environ = environ
        self._cwd = cwd
        self._state = state
        self._expect = expect
        self._expect_status = expect_status
        self._beyond = Beyond(environ, settings.channels)
        self._knows_99: bool | None = None
        self._standing: dict[str, int] = {}  # by key: the number of what the helper was given and still holds
        self._written: dict[str, int] = {}  # by key: the number of what was written last
        self._closing: dict[str, bytes] = {}  # by key: what takes back what the terminal shows
        self._inband: list[tuple[str, bytes]] = []  # what waits for its moment, and its key
        self._last: list[bytes] = []  # what is to be written at the very end
        self._asking = ""  # "waits" for its moment, or "asked"
        self._ask_by = 0.0
        self._lines: list[Line] = []
        self._events: list[dict[str, Any]] = []

    # ---- from the core ----

    def act(self, action: Notify | Withdraw, now: float) -> None:
        """Do what the core has decided."""
        if isinstance(action, Withdraw):
            self._withdraw(action, now)
        elif action.action == "update":
            self._beyond.update(action)
            if self._standing.get(action.type) == action.id:
                self._send("update", action, action.type, [])
        elif action.action == "escalate":
            self._standing[f"{action.type}-escalated"] = action.id
            self._send("notify", action, f"{action.type}-escalated", ["command"])
        else:
            self._notify(action, now)

    def take_lines(self) -> list[Line]:
        """Lines for the session leader: letter, rest."""
        lines, self._lines = self._lines, []
        return lines

    def take_events(self) -> list[dict[str, Any]]:
        """What was decided here, for an explanation."""
        events, self._events = self._events, []
        return events

    def _notify(self, action: Notify, now: float) -> None:
        settings = self._settings
        channels = list(settings.channels)
        if self._beyond.matters and action.type != _STAYS:  # nobody else may see how a command ends
            if not action.last and self._beyond.hold(action, now):
                return
            if self._beyond.understands is not False:
                channels = [name for name in channels if name != "auto"]
                how = "it understands" if self._beyond.understands else "it may understand"
                self._explain(now, action.type, "left to the terminal", f"{how} status reports itself")
        if action.type == "blocked" and settings.escalate_after > 0 and "command" in channels:
            channels.remove("command")  # it is kept for a user who does not come
            if not channels:
                self._explain(now, action.type, "held", "the command is run only where it stays so")
        shown = _SOURCES.get(action.own or "")
        if shown in inband.shown_by_terminal(self._environ, answers_99=self._knows_99):
            for index, name in enumerate(channels):
                if name in ("auto", "terminal"):
                    del channels[index:]
                    self._explain(
                        now, action.type, "not repeated", f"the terminal shows the program's own OSC {shown}"
                    )
                    break
        elif not settings.channels:
            self._explain(now, action.type, "not notified", "there is no channel")
        if action.last:
            channels = self._exit(action, channels)
        if channels:
            self._standing[action.type] = action.id
            self._send("notify", action, action.type, channels)

    def _withdraw(self, action: Withdraw, now: float) -> None:
        key = action.type
        self._beyond.withdraw(key)
        for each in (key, f"{key}-escalated"):
            if self._standing.pop(each, None) is not None:
                self._lines.append(("N", snapshot.encode({"op": "withdraw", "key": each})))
        self._inband = [entry for entry in self._inband if entry[0] != key]
        closing = self._closing.pop(key, b"")
        if closing:
            self._inband.append((key, closing))
            self._explain(now, key, "withdrawn", "terminal")

    def _exit(self, action: Notify, channels: list[str]) -> list[str]:
        """Ring or write what the terminal is to show of an exit: nobody can when we are gone.

        Returns:
            The channels that are left for the helper, which outlives us.
        """
        left: list[str] = []
        for name in notifiers.resolve(channels, self._environ, sys.platform):
            if name in ("terminal", "bell"):
                if not left:
                    self._last.append(self._bytes(action) if name == "terminal" else inband.BELL)
                break
            if (name == "command" and self._settings.command) or (
                name == "desktop" and notifiers.has_desktop(self._environ, sys.platform)
            ):
                left.append(name)
        return left

    def _bytes(self, action: Notify) -> bytes:
        return inband.notification(
            inband.choose(self._environ, answers_99=self._knows_99),
            action.title,
            action.body,
            ident=f"{self._session}.{action.type}",
            urgency=inband.URGENCY.get(action.type, 1),
            sound=self._settings.sound,
            tmux=bool(self._environ.get("TMUX")),
        )

    def _send(self, op: str, action: Notify, key: str, channels: list[str]) -> None:
        # The session leader finds op, id and key at the beginning.
        message = {
            "op": op,
            "id": action.id,
            "key": key,
            "type": action.type,
            "title": action.title,
            "body": action.body,
            "sound": self._settings.sound,
            "channels": channels,
            "command": list(self._settings.command),
            "osc99": self._knows_99,
            # whether the terminal shows what was written for tmux to pass on, tmux has to be asked
            "own": _SOURCES.get(action.own.removeprefix(TMUX), 0)
            if action.own and action.own.startswith(TMUX)
            else 0,
            "env": {
                "AGENTWRAP_EVENT": action.type,
                "AGENTWRAP_STATE": self._state(),
                "AGENTWRAP_KIND": action.kind or "",
                "AGENTWRAP_AGENT": self._agent,
                "AGENTWRAP_TITLE": action.title,
                "AGENTWRAP_BODY": action.body,
                "AGENTWRAP_SESSION": self._session,
                "AGENTWRAP_CWD": self._cwd,
            },
        }
        self._lines.append(("N", snapshot.encode(message)))

    # ---- from the helper ----

    def reported(self, line: bytes, now: float) -> None:
        """The helper wants something of the terminal."""
        try:
            message = snapshot.decode(line)
        except ValueError:
            return
        op, key = message.get("op"), str(message.get("key", ""))
        if op == "ask":
            self._ask(now)
        elif op in ("terminal", "bell"):
            number = self._standing.get(key)
            if number is None or number != message.get("id") or self._written.get(key) == number:
                return  # withdrawn meanwhile; or sent again by a helper whose predecessor got this far
            self._written[key] = number
            self._write(key, message.get("data"))
            closing = message.get("close")
            if isinstance(closing, str) and key != _STAYS:
                self._closing[key] = closing.encode()
        elif op == "close" and self._closing.pop(key, None) is not None:
            self._write(key, message.get("data"))

    def _write(self, key: str, data: object) -> None:
        if isinstance(data, str):
            self._inband.append((key, data.encode()))
            del self._inband[:-WAITING_INBAND]

    # ---- what the terminal knows ----

    def _ask(self, now: float) -> None:
        """The helper asks whether the terminal knows OSC 99: ask it, unless that is known."""
        if self._knows_99 is not None:
            self._answer(known=self._knows_99)
        elif not self._asking:
            self._asking = "waits"
            self._ask_by = now + MOMENT_WAIT

    def answered(self, now: float) -> None:
        """The terminal has answered a query for OSC 99, this one or another."""
        if self._knows_99:
            return
        self._knows_99 = True
        self._explain(now, "terminal", "noted", "it knows OSC 99")
        if self._asking:
            self._asking = ""
            self._answer(known=True)

    def understood(self, now: float) -> None:
        """The terminal has answered a query for status reports, this one or the command's."""
        self._beyond.understood()
        self._resume(now)

    def _resume(self, now: float) -> None:
        for action in self._beyond.take():
            self._notify(action, now)

    def _answer(self, *, known: bool) -> None:
        self._lines.append(("N", snapshot.encode({"op": "answer", "osc99": known})))

    @property
    def deadline(self) -> float | None:
        """When `tick` is due; None where nothing waits."""
        asked, beyond = self._ask_by if self._asking else None, self._beyond.deadline
        return beyond if asked is None or (beyond is not None and beyond < asked) else asked

    def tick(self, now: float) -> None:
        """Give up what was not answered in time."""
        self._beyond.tick(now)
        self._resume(now)
        if self._asking and now >= self._ask_by:
            if self._asking == "asked":
                self._knows_99 = False  # until it answers late, over a slow line
                self._explain(now, "terminal", "noted", f"no answer to OSC 99 within {ANSWER_WAIT:g} s")
            self._asking = ""
            self._answer(known=False)

    # ---- for the terminal ----

    @property
    def waiting(self) -> bool:
        """Whether something is to be written at the next moment nothing of the command is open."""
        return bool(self._inband) or self._asking == "waits" or self._beyond.waiting

    def between(self, now: float) -> bytes:
        """What waited for this moment."""
        data = b"".join(entry[1] for entry in self._inband)
        self._inband.clear()
        if self._asking == "waits":
            self._asking = "asked"
            self._ask_by = now + ANSWER_WAIT
            self._expect(inband.identifier(self._session).encode())
            data += inband.query(self._session)
        if self._beyond.waiting:
            self._expect_status()
            data += self._beyond.query(now)
        return data

    def stopped(self) -> bytes:
        """At a stop, behind what undoes the modes: what takes back what is no longer so."""
        data = b"".join(entry[1] for entry in self._inband if entry[0] not in self._standing)
        self._inband.clear()
        if self._asking == "waits":
            self._asking = ""
            self._answer(known=False)
        return data

    def last(self) -> bytes:
        """At the end, behind what undoes the modes: takes back what is shown, tells of an exit."""
        data = self.stopped() + b"".join(self._closing.values()) + b"".join(self._last)
        self._closing.clear()
        self._last.clear()
        return data

    def _explain(self, now: float, event: str, effect: str, reason: str) -> None:
        line = {"t": now, "source": "notifier", "event": event, "effect": effect, "reason": reason}
        self._events.append(line)
