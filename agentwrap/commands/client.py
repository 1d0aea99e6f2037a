"""The pump's client: joins the bytes with what they mean, and hands on what comes of it.

Output goes to the session, input through the filter, replies between keys; the state goes to the session
leader for publishing, at most ten times a second and always the last one; notifications go to their helper
through it. Nothing here waits or touches a file.
"""

from __future__ import annotations

import os
import time

from agentwrap import agents
from agentwrap.core import inband, snapshot
from agentwrap.core.attention import Withdraw
from agentwrap.core.probe import InputFilter
from agentwrap.core.session import Session
from agentwrap.host import statefile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from agentwrap.agents.profile import Profile
    from agentwrap.config import Settings
    from agentwrap.core.attention import Notify
    from agentwrap.host.guard import UndoMemory
    from agentwrap.host.lines import LineWriter
    from agentwrap.host.recorder import Recorder
    from agentwrap.options import Options

PUBLISH_INTERVAL = 0.1
"""Seconds between two publications of a session's state; the first of a burst goes at once."""

TIDY_WAIT = 0.1
"""Seconds to wait for a moment between two sequences to undo modes in: the dead may have left one open."""

_OUTCOMES = {
    "result": "delivered",
    "update": "updated",
    "withdraw": "withdrawn",
    "click": "clicked",
    "lost": "",
}
"""What the notification helper reports, and what to call it where it went well."""

WAITING_INBAND = 16
"""Notifications that wait for a moment to be written to the terminal; the oldest go first."""


class Client:
    """One wrapped session, as the pump sees it."""

    def __init__(
        self,
        *,
        session: str,
        profile: Profile,
        settings: Settings,
        options: Options,
        command: list[str],
        environ: Mapping[str, str],
        tty: str | None,
        writer: LineWriter,
        memory: UndoMemory,
        recorder: Recorder | None,
        front: Callable[[], int],
        rows: int,
    ) -> None:
        now = time.monotonic()
        self.recorder = recorder
        self._writer = writer
        self._memory = memory
        self._settings = settings
        self._environ = environ
        self._cwd = _cwd()
        self._name = options.name
        self._identity = snapshot.Identity(
            session=session,
            name=options.name,
            agent=session.rpartition("-")[0],
            command=command,
            cwd=self._cwd,
            tty=tty,
            pid=os.getpid(),
            pid_started=statefile.process_started(os.getpid()) or time.time(),
            started=time.time(),
        )
        self._shell = agents.is_shell(command)
        self._session = Session(
            profile,
            settings.policy,
            now=now,
            command=os.path.basename(command[0]),
            label=options.name or _short(self._cwd, environ),
            by_app=agents.by_app,
            prompt_marks=self._shell_in_front if self._shell else None,
            answer_osc99=profile.answers_osc99,
        )
        self._launcher = not agents.is_agent((os.path.basename(command[0]),))
        self._front = front
        self._watched = 0
        self._tidy_by = 0.0
        self._tidy_now = False
        self._filter = InputFilter()
        self._session.ledger.rows = rows
        self._published = now - PUBLISH_INTERVAL
        self._publish_at: float | None = None
        self._quiet_at = now
        self._inband: list[bytes] = []
        self._osc99: bool | None = None
        self._how = f"taken for {profile.title or 'a program that no profile knows'}"

    # ---- the pump's calls ----

    def output(self, data: bytes, now: float) -> None:
        """The command wrote `data`."""
        if self.recorder is not None:
            self.recorder.output(data, now)
        session = self._session
        session.output(data, now)
        self._memory.expect(session.ledger.undo())
        if session.left and not self._tidy_by:
            self._tidy_by = now + TIDY_WAIT
        for _ in range(session.take_queries()):
            self._filter.query_passed()
        for _ in range(session.take_position_queries()):
            self._filter.position_asked()
        if session.changed:
            self._came(now)

    def typed(self, data: bytes, now: float) -> bytes:
        """The terminal sent `data`; returns what goes to the command."""
        if self.recorder is not None:
            self.recorder.typed(data, now)
        passed = self._filter.feed(data, now)
        events = self._filter.take_events()
        if events:
            self._session.typed(events, now)
            self._came(now)
        return passed

    def insert(self, now: float) -> bytes:
        """Replies for the command that are due."""
        replies = self._session.take_replies()
        return b"".join(self._filter.insert(reply, now) for reply in replies) if replies else b""

    def tick(self, now: float) -> bytes:
        """A deadline may have passed."""
        data = self._filter.tick(now)
        events = self._filter.take_events()
        if events:
            self._session.typed(events, now)
        self._session.quiet = self._quiet(now)
        self._session.tick(now)
        self._tidy_now = 0.0 < self._tidy_by <= now
        self._came(now)
        return data

    def deadline(self) -> float | None:
        """When tick is due next."""
        deadline = self._session.deadline
        other = self._filter.deadline
        if other is not None and (deadline is None or other < deadline):
            deadline = other
        if self._tidy_by and (deadline is None or self._tidy_by < deadline):
            deadline = self._tidy_by
        other = self._publish_at
        if other is not None and (deadline is None or other < deadline):
            deadline = other
        return deadline

    def between(self) -> bytes:
        """What may go to the terminal now, with nothing of the command open there."""
        if self._tidy_by and (self._tidy_now or self._session.ground):
            return self._tidy()
        if not self._inband or not self._session.ground:
            return b""
        data = b"".join(self._inband)
        self._inband.clear()
        return data

    def reporter_gone(self, now: float) -> None:
        """The program that reported has ended, while the command goes on."""
        self._watched = 0
        self._session.reporter_gone(now)
        self._tidy_by = now + TIDY_WAIT
        self._came(now)

    def _tidy(self) -> bytes:
        """Undo the modes of a program that is gone, for the shell or script it ran in.

        What a shell's line editor sets for itself at each prompt it may have set again by now.
        """
        session = self._session
        data = session.undo()
        if data and self._shell:
            data += b"".join(
                b"\x1b[?%bh" % mode for mode in (b"1", b"2004") if session.ledger.private_changed(mode)
            )
        session.left = self._tidy_now = False
        self._tidy_by = 0.0
        if data:
            session.output(data, time.monotonic())  # it goes the way of all output, so the ledger knows it
            self._memory.expect(session.ledger.undo())
        return data

    def _watch(self) -> None:
        """Have the session leader look for who reports, when that may have become somebody else."""
        group = 0
        if self._session.reporting:
            try:
                group = self._front()
            except OSError:
                return  # the command's terminal is gone
        if group == self._identity.child_pid and not self._launcher:
            group = 0  # the command itself: its end is seen anyway
        if group != self._watched:
            self._watched = group
            self._writer.send("W", "1" if group else "0")

    def undo(self) -> bytes:
        """What undoes the modes that are on."""
        return self._session.undo()

    def redo(self) -> bytes:
        """What sets them again."""
        return self._session.ledger.redo()

    def started(self, pid: int, now: float) -> None:
        """The command has a pid."""
        self._identity.child_pid = pid
        self._publish(now)
        line = {"t": now, "source": "process", "event": "start", "effect": "unknown"}
        self._writer.send(
            "V", snapshot.encode(self._wall({**line, "reason": self._how}, now)), droppable=True
        )

    def resized(self, columns: int, rows: int, now: float) -> None:
        """The terminal has this size now."""
        self._session.ledger.rows = rows
        if self.recorder is not None:
            self.recorder.resized(columns, rows, now)

    def stopped(self, now: float) -> None:
        """The command has stopped."""
        self._session.stopped(now)
        self._came(now)
        self._publish(now)

    def resumed(self, now: float) -> None:
        """The command goes on."""
        self._session.resumed(now)
        self._came(now)

    def ended(self, status: int, forwarded: frozenset[int], now: float) -> None:
        """The command has ended."""
        self._session.exited(now, status, forwarded)
        self._came(now)
        if self.recorder is not None:
            self.recorder.ended(status, now)

    def reported(self, line: bytes, now: float) -> None:
        """The notification helper said something."""
        import json

        try:
            message = json.loads(line)
        except ValueError:
            return
        if message.get("op") in ("terminal", "bell", "close"):
            self._write_inband(message)
        elif message.get("op") in _OUTCOMES:
            failed = not message.get("ok", message["op"] == "click")
            effect = "failed" if failed else _OUTCOMES[message["op"]]
            self._explain(now, "notifier", message.get("key", message["op"]), effect, message)

    # ---- what came of it ----

    def _came(self, now: float) -> None:
        session = self._session
        for action in session.take_actions():
            self._act(action)
        for event in session.take_events():
            self._writer.send("V", snapshot.encode(self._wall(event, now)), droppable=True)
        self._watch()
        if session.changed and self._publish_at is None:
            if now - self._published >= PUBLISH_INTERVAL:
                self._publish(now)
            else:
                self._publish_at = self._published + PUBLISH_INTERVAL
        elif self._publish_at is not None and now >= self._publish_at:
            self._publish(now)

    def _publish(self, now: float) -> None:
        """Send the state to be written; not while the former one has not even been taken."""
        if self._writer.waiting:
            self._publish_at = now + PUBLISH_INTERVAL
            return
        self._session.changed = False
        self._published = now
        self._publish_at = None
        offset = time.time() - now
        self._writer.send("P", snapshot.encode(self._identity.session_object(self._session.view(), offset)))

    def _act(self, action: Notify | Withdraw) -> None:
        if isinstance(action, Withdraw):
            self._writer.send("N", snapshot.encode({"op": "withdraw", "key": action.type}), droppable=True)
            return
        settings = self._settings
        escalated = action.action == "escalate"
        view = self._session.view()
        message = {
            "op": "update" if action.action == "update" else "notify",
            "id": action.id,
            "key": action.type + ("-escalated" if escalated else ""),
            "type": action.type,
            "title": action.title,
            "body": action.body,
            "sound": settings.sound,
            "channels": ["command"] if escalated else list(settings.channels),
            "command": list(settings.command),
            "osc99": self._osc99,
            "env": {
                "AGENTWRAP_EVENT": action.type,
                "AGENTWRAP_STATE": view.state,
                "AGENTWRAP_KIND": action.kind or "",
                "AGENTWRAP_AGENT": self._identity.agent,
                "AGENTWRAP_TITLE": action.title,
                "AGENTWRAP_BODY": action.body,
                "AGENTWRAP_SESSION": self._identity.session,
                "AGENTWRAP_CWD": self._cwd,
            },
        }
        # a message of this kind is news the user waits for: it is never dropped for a full queue
        self._writer.send("N", snapshot.encode(message))

    def _write_inband(self, message: dict[str, Any]) -> None:
        import base64

        data = inband.BELL if message["op"] == "bell" else base64.b64decode(message.get("data", ""))
        self._inband.append(data)
        del self._inband[:-WAITING_INBAND]

    def _explain(self, now: float, source: str, event: object, effect: str, message: dict[str, Any]) -> None:
        reason = f"{message.get('channel', '')}: {message.get('reason', '')}".strip(": ")
        line = {"t": now, "source": source, "event": event, "effect": effect, "reason": reason}
        self._writer.send("V", snapshot.encode(self._wall(line, now)), droppable=True)

    @staticmethod
    def _wall(event: dict[str, Any], now: float) -> dict[str, Any]:
        return {**event, "t": round(event["t"] + time.time() - now, 3)}

    def _quiet(self, now: float) -> bool:
        hours = self._settings.quiet_minutes
        if hours is None:
            return False
        local = time.localtime()
        minute = local.tm_hour * 60 + local.tm_min
        start, end = hours
        return start <= minute < end if start <= end else minute >= start or minute < end

    def _shell_in_front(self) -> bool:
        """Whether the wrapped shell itself has its terminal's foreground, not a program it runs."""
        try:
            return self._front() == self._identity.child_pid
        except OSError:
            return False


def _cwd() -> str:
    try:
        return os.getcwd()
    except OSError:
        return ""  # it was removed under us; the command runs there all the same


def _short(path: str, environ: Mapping[str, str]) -> str:
    home = environ.get("HOME", "").rstrip("/")
    if home and (path == home or path.startswith(home + "/")):
        return "~" + path[len(home) :]
    return path
