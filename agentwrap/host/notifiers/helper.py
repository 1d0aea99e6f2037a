"""The helper's queue: takes notices, delivers them one after the other, says how each went.

Protocol: one JSON object a line, both ways, ASCII only. In:

- `{"op": "notify", "id": 7, "key": "blocked", "type": "blocked", "title": "…", "body": "…", "sound": true,
  "channels": ["auto"], "command": ["notify.sh"], "env": {"AGENTWRAP_EVENT": "blocked", …}, "osc99": null,
  "own": 0}`
- `{"op": "update", "id": 8, "key": "done", "title": "…", "body": "…"}`: new text for what is queued or shown
- `{"op": "withdraw", "key": "blocked"}`
- `{"op": "answer", "osc99": true}`: whether the terminal knows OSC 99, after `ask`
- end of input: deliver what is queued for up to 3 s, withdraw all but exits, end

`key` defaults to `type`. Out:

- `{"op": "result", "id": 7, "channel": "desktop", "ok": false, "reason": "…", "last": false}` for each
  channel tried, `last` true when no further one will be; with the op `update` or `withdraw` for those
- `{"op": "terminal", "id": 7, "key": "blocked", "kind": "99", "data": "…"}`: please write this, in UTF-8,
  to the terminal at the next moment nothing of the command is open there; `{"op": "bell", …}` the same for
  the bell, `{"op": "close", …}` the same to take it back. `close` beside `data`, where it can be taken back,
  is what does that, for when the session ends before anything else can be asked
- `{"op": "ask", "id": 7, "key": "blocked"}`: please ask the terminal whether it knows OSC 99
- `{"op": "click", "id": 7, "key": "blocked"}`: the user clicked on it

Every bound is here: what is over-long or too much is dropped and, where it has a number, reported.
"""

from __future__ import annotations

import asyncio
import json
import signal
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from agentwrap.host.notifiers import resolve
from agentwrap.host.notifiers.notice import TIMEOUT, TRANSIENT, Notice, Outcome
from agentwrap.host.notifiers.terminal import seat, shows_own

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from agentwrap.host.notifiers.notice import Channel

QUEUE = 64
"""Notices that may wait. A session sends 10 a minute, so this is many minutes of a channel that hangs."""

LONGEST_LINE = 1 << 18
"""Bytes of one message: a command of 256 words and a long body fit."""

LAST_WORDS = 3.0
"""Seconds to deliver what is queued once the session has ended."""

WATCHDOG = 30
"""Seconds after which a helper stuck in a system call is killed: twice what all channels take together."""


class Helper:
    """Queue and worker.

    Args:
        channels: by name; `shown` notices go back to the channel that took them.
        send: takes one message for the session leader.
        environ: the environment agentwrap was started in.
        platform: as `sys.platform`.
        allowed: asked before each notice whether it may be shown; whether it has to be is its argument.
        answered: told whether the terminal knows OSC 99.
    """

    def __init__(
        self,
        channels: Mapping[str, Channel],
        send: Callable[[dict[str, Any]], None],
        environ: Mapping[str, str],
        platform: str,
        *,
        allowed: Callable[[bool], bool] = lambda always: True,  # noqa: ARG005 - without a limit
        answered: Callable[[bool], None] = lambda known: None,  # noqa: ARG005 - nobody asked
    ) -> None:
        self._allowed = allowed
        self._answered = answered
        self._channels = channels
        self._send = send
        self._environ = environ
        self._platform = platform
        self._queue: list[tuple[str, Notice]] = []
        self._shown: dict[str, tuple[str, Notice]] = {}
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()

    # ---- what comes in ----

    def line(self, line: bytes) -> None:
        """Take one line. What is no message of the protocol is ignored."""
        try:
            message = json.loads(line)
        except ValueError:  # that a number or nesting is beyond json is one of these, or RecursionError
            return
        except RecursionError:
            return
        if not isinstance(message, dict):
            return
        op = message.get("op")
        if op == "notify":
            self._put("notify", Notice.parse(message))
        elif op == "update":
            self._update(Notice.parse(message))
        elif op == "withdraw":
            self._withdraw(Notice.parse(message))
        elif op == "answer":
            self._answered(message.get("osc99") is True)

    def _update(self, notice: Notice) -> None:
        """Change what still waits; else queue an update for what is shown, at most one per key."""
        for place, (op, waiting) in enumerate(self._queue):
            if waiting.key != notice.key or op == "withdraw":
                continue
            env = {**waiting.env, **notice.env}
            newer = replace(waiting, title=notice.title or waiting.title, body=notice.body, env=env)
            self._queue[place] = (op, newer)
            return
        self._put("update", notice)

    def _withdraw(self, notice: Notice) -> None:
        """Forget what still waits for this key; then take back what is shown."""
        for op, waiting in [entry for entry in self._queue if entry[1].key == notice.key]:
            if op == "notify":
                self._result("notify", waiting, "", Outcome(ok=False, reason="withdrawn in time"), last=True)
        self._queue = [entry for entry in self._queue if entry[1].key != notice.key]
        self._put("withdraw", notice)

    def _put(self, op: str, notice: Notice) -> None:
        if len(self._queue) >= QUEUE:
            # what is over goes, the oldest first; never who is waited for, and never what takes back
            worth = [2 if op == "withdraw" else waiting.type == "blocked" for op, waiting in self._queue]
            dropped_op, dropped = self._queue.pop(worth.index(min(worth)))
            self._result(dropped_op, dropped, "", Outcome(ok=False, reason="too many are waiting"), last=True)
        self._queue.append((op, notice))
        self._idle.clear()
        self._wake.set()

    # ---- what goes out ----

    async def run(self) -> None:
        """Deliver, for ever."""
        while True:
            while self._queue:
                op, notice = self._queue.pop(0)
                signal.alarm(WATCHDOG)
                try:
                    await self._deliver(op, notice)
                finally:
                    signal.alarm(0)
            self._wake.clear()
            self._idle.set()
            await self._wake.wait()

    async def finish(self) -> None:
        """Say the last words of a session: what is queued, then take back all that was about its state."""
        try:
            await asyncio.wait_for(self._idle.wait(), LAST_WORDS)
        except TimeoutError:
            self._queue.clear()
            return  # a channel hangs; it would hang for a withdrawal as well
        for key, (_, notice) in list(self._shown.items()):
            if notice.type in TRANSIENT:
                self._put("withdraw", replace(notice, key=key))
        try:
            await asyncio.wait_for(self._idle.wait(), LAST_WORDS)
        except TimeoutError:
            self._queue.clear()

    async def _deliver(self, op: str, notice: Notice) -> None:
        if op == "notify":
            await self._show(notice)
            return
        name, shown = self._shown.get(notice.key, ("", notice))
        if not name:
            return  # nothing was shown, or it is gone: nothing to change
        if op == "update":
            newer = replace(shown, id=notice.id, title=notice.title or shown.title, body=notice.body)
            outcome = await self._attempt(self._channels[name].update, newer)
            self._shown[notice.key] = (name, newer)
            self._result(op, newer, name, outcome, last=True)
        else:
            del self._shown[notice.key]
            outcome = await self._attempt(self._channels[name].withdraw, shown)
            self._result(op, shown, name, outcome, last=True)

    async def _show(self, notice: Notice) -> None:
        # Somebody waits for a blocked; an exit is told once in a session's life.
        if not self._allowed(notice.type in ("blocked", "exit")):
            reason = "too many notifications of all sessions"
            self._result("notify", notice, "", Outcome(ok=False, reason=reason), last=True)
            return
        name, shown = self._shown.pop(notice.key, ("", notice))
        if name:  # its place is taken; a notice that stays behind would be told twice
            await self._attempt(self._channels[name].withdraw, shown)
        environ = self._environ
        if "auto" in notice.channels:
            environ = await seat(environ)
        wanted, else_ = await self._without_own(notice)
        channels = resolve(wanted, environ, self._platform)
        for name in channels:
            if any(op == "withdraw" and waiting.key == notice.key for op, waiting in self._queue):
                self._result("notify", notice, name, Outcome(ok=False, reason="withdrawn in time"), last=True)
                return
            outcome = await self._attempt(self._channels[name].show, notice)
            last = outcome.ok or (name == channels[-1] and not else_.ok)
            self._result("notify", notice, name, outcome, last=last)
            if outcome.ok:
                self._shown[notice.key] = (name, notice)
                return
        if else_.ok or not channels:
            self._result("notify", notice, "terminal" if else_.ok else "", else_, last=True)

    async def _without_own(self, notice: Notice) -> tuple[list[str], Outcome]:
        """What is left where the terminal shows the program's own notice; and how it went if none took it."""
        for place, name in enumerate(notice.channels):
            if name in ("auto", "terminal") and await shows_own(self._environ, notice.own):
                reason = f"the terminal shows the program's own OSC {notice.own}"
                return notice.channels[:place], Outcome(ok=True, reason=reason)
        return notice.channels, Outcome(ok=False, reason="no channel")

    async def _attempt(self, call: Callable[[Notice], Any], notice: Notice) -> Outcome:
        """Call a channel; every way it can fail is an outcome."""
        try:
            # A command has its own, equal limit: it has to say what the end of it means.
            outcome: Outcome = await asyncio.wait_for(call(notice), TIMEOUT + 0.2)
        except TimeoutError:
            return Outcome(ok=False, reason=f"no answer within {TIMEOUT:g} s")
        except Exception as error:  # noqa: BLE001 - a channel is other people's code: the next one is tried
            return Outcome(ok=False, reason=f"{type(error).__name__}: {error}"[:200])
        return outcome

    def _result(self, op: str, notice: Notice, channel: str, outcome: Outcome, *, last: bool) -> None:
        message: dict[str, Any] = {
            "op": "result" if op == "notify" else op,
            "id": notice.id,
            "key": notice.key,
        }
        message |= {"channel": channel, "ok": outcome.ok, "reason": outcome.reason, "last": last}
        self._send(message)
