"""The pump's client: joins the bytes with what they mean, and hands on what comes of it.

Output goes to the session, input through the filter, replies between keys; the state goes to the session
leader for publishing, at most ten times a second and always the last one; notifications go to their helper
through it. Nothing here waits or touches a file.
"""

from __future__ import annotations

import os
import time

from agentwrap import agents
from agentwrap.commands.news import News
from agentwrap.core import inband, snapshot
from agentwrap.core.probe import InputFilter
from agentwrap.core.session import Session
from agentwrap.core.status import signal_name as common_signal_name
from agentwrap.host import processes, statefile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from agentwrap.agents.profile import Profile
    from agentwrap.config import Settings
    from agentwrap.host.guard import UndoMemory
    from agentwrap.host.lines import LineWriter
    from agentwrap.host.recorder import Recorder
    from agentwrap.options import Options

PUBLISH_INTERVAL = 0.1
"""Seconds between two publications of a session's state; the first of a burst goes at once."""

TITLE_INTERVAL = 1.0
"""Seconds from one publication to the next where only the window title has changed: agents animate it."""

CLOCK_STEP = 1.0
"""Seconds the clock may be set by before our own start is told anew: readers allow for two."""

THINK_WAIT = 0.005
"""Seconds after a key until what it means is seen to. Its echo comes before; that must not be late."""

TIDY_WAIT = 0.1
"""Seconds to wait for a moment between two sequences to undo modes in: the dead may have left one open."""


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
            answer_osc99=not inband.answers_by_name(environ),
            signal_name=signal_name,
        )
        self._filter = InputFilter()
        self._news = News(
            session=session,
            agent=self._identity.agent,
            settings=settings,
            environ=environ,
            cwd=self._cwd,
            state=lambda: self._session.view().state,
            expect=self._expect_answer,
            expect_status=self._filter.query_passed,
        )
        self._launcher = not agents.is_agent((os.path.basename(command[0]),))
        self._front = front
        self._watched = 0
        self._tidy_by = 0.0
        self._tidy_now = False
        self._drawing = False  # more output follows at once, and what it is drawn with is not known yet
        self._again = b""  # what sets the modes again that were undone at a stop
        self._think_by = 0.0  # when to think about what was passed on, at the latest
        self._session.ledger.rows = rows
        self._published = now - PUBLISH_INTERVAL
        self._offset = time.time() - now  # of the clock, when `pid_started` was read
        self._publish_at: float | None = None
        self._quiet_hours = settings.quiet_minutes
        self._quiet_until = now  # when the local time is to be looked at again
        self._ended = False
        self._how = f"taken for {profile.title or 'a program that no profile knows'}"

    # ---- the pump's calls ----

    def output(self, data: bytes, now: float, *, more: bool = False) -> bool:
        """The command wrote `data`. Returns whether a sequence is open behind it.

        `more`: the next output, which may be empty, follows at once.
        """
        if self.recorder is not None and data:
            self.recorder.output(data, now)
        session = self._session
        if self._quiet_hours is not None:
            self._hush(now)
        if self._think_by and (session.open or b"\x1b" in data):
            self._think(now)  # keys that were typed before it come before it
        meant = session.output(data, now, more=more)
        if meant:
            self._meant(now)
        if meant or more is not self._drawing:
            self._drawing = more
            self._memory.expect(session.ledger.undo(drawing=more))
        return session.open

    def _meant(self, now: float) -> None:
        """What the command wrote was more than text, colours and movement."""
        session = self._session
        if session.left and not self._tidy_by:
            self._tidy_by = now + TIDY_WAIT
        for _ in range(session.take_queries()):
            self._filter.query_passed()
        for _ in range(session.take_position_queries()):
            self._filter.position_asked()
        for ident, answered in session.take_osc99_queries():
            self._filter.osc99_asked(ident, now, take=answered)
        if not self._think_by and (session.changed or (session.retitled and self._publish_at is None)):
            self._think_by = now

    def typed(self, data: bytes, now: float) -> bytes:
        """The terminal sent `data`; returns what goes to the command."""
        if self.recorder is not None:
            self.recorder.typed(data, now)
        if not self._think_by:
            self._think_by = now + THINK_WAIT
        return self._filter.feed(data, now)

    def insert(self, now: float) -> bytes:
        """Replies for the command that are due."""
        replies = self._session.take_replies()
        return b"".join(self._filter.insert(reply, now) for reply in replies) if replies else b""

    def tick(self, now: float) -> bytes:
        """A deadline may have passed."""
        data = self._filter.tick(now)
        self._think(now)
        self._hush(now)
        self._session.tick(now)
        self._news.tick(now)
        self._tidy_now = 0.0 < self._tidy_by <= now
        self._came(now)
        return data

    def deadline(self) -> float | None:
        """When tick is due next."""
        if self._think_by:
            return self._think_by
        deadline = self._session.deadline
        other = self._filter.deadline
        if other is not None and (deadline is None or other < deadline):
            deadline = other
        if self._tidy_by and (deadline is None or self._tidy_by < deadline):
            deadline = self._tidy_by
        other = self._publish_at
        if other is not None and (deadline is None or other < deadline):
            deadline = other
        other = self._news.deadline
        if other is not None and (deadline is None or other < deadline):
            deadline = other
        return deadline

    def between(self) -> bytes:
        """What may go to the terminal now, with nothing of the command open there.

        What a report just passed on changes is seen to here, when it is on its way.
        """
        if self._think_by and self._session.changed:
            self._think(time.monotonic())
        if self._drawing:
            return b""
        if self._tidy_by and (self._tidy_now or self._session.ground):
            return self._tidy()
        if not self._news.waiting or not self._session.ground:
            return b""
        return self._news.between(time.monotonic())

    def _think(self, now: float) -> None:
        self._think_by = 0.0
        session, passed = self._session, self._filter
        events = passed.take_events()
        if events:
            session.typed(events, now)
        if passed.knows_osc99:
            self._news.answered(now)
        if passed.knows_status:
            self._news.understood(now)
        if events or passed.knows_osc99 or passed.knows_status or session.changed or session.retitled:
            passed.knows_osc99 = passed.knows_status = False
            self._came(now)

    def reporter_gone(self, now: float) -> None:
        """The program that reported has ended, while the command goes on."""
        self._watched = 0
        self._think(now)
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
        self._passed(data)
        return data

    def _watch(self) -> None:
        """Have the session leader look for who reports, when that may have become somebody else."""
        group = 0
        if self._session.reporting:
            try:
                group = self._front()
            except OSError:
                return  # the command's terminal is gone
        if self._session.by_command or (group == self._identity.child_pid and not self._launcher):
            group = 0  # for a script, which goes on; or by the command itself, whose end is seen anyway
        if group != self._watched:
            self._watched = group
            self._writer.send("W", f"{processes.clock():.3f}" if group else "0")

    def undo(self) -> bytes:
        """What undoes the modes that are on, at a stop or the end; and takes back what the terminal shows."""
        if self._ended:
            return self._session.undo() + self._news.last()
        self._again = self._session.ledger.redo()
        data = self._session.undo()
        self._passed(data)
        return data + self._news.stopped()

    def redo(self) -> bytes:
        """What sets them again."""
        data, self._again = self._again, b""
        self._passed(data)
        return data

    def _passed(self, data: bytes) -> None:
        """These bytes of ours go the way of all output, so the ledger knows what is on."""
        if data:
            self._session.output(data, time.monotonic())
            self._memory.expect(self._session.ledger.undo())

    def started(self, pid: int, now: float) -> None:
        """The command has a pid."""
        self._identity.child_pid = pid
        line = {"t": now, "source": "process", "event": "start", "effect": "unknown", "reason": self._how}
        self._send([("V", snapshot.encode(self._wall(line, now))), *self._publish(now)])

    def resized(self, columns: int, rows: int, now: float) -> None:
        """The terminal has this size now."""
        self._session.ledger.rows = rows
        if self.recorder is not None:
            self.recorder.resized(columns, rows, now)

    def stopped(self, now: float) -> None:
        """The command has stopped."""
        self._think(now)
        self._session.stopped(now)
        self._came(now)
        self._send(self._publish(now))

    def resumed(self, now: float) -> None:
        """The command goes on."""
        self._think(now)
        self._session.resumed(now)
        self._came(now)

    def ended(self, status: int, forwarded: frozenset[int], now: float) -> None:
        """The command has ended."""
        self._ended = True
        self._think(now)
        self._hush(now)
        self._session.exited(now, status, forwarded)
        self._came(now)
        if self.recorder is not None:
            self.recorder.ended(status, forwarded, now)

    def reported(self, line: bytes, now: float) -> None:
        """The notification helper wants something of the terminal."""
        self._news.reported(line, now)
        self._came(now)

    # ---- what came of it ----

    def _came(self, now: float) -> None:
        """Send on what came of an event, in one line or several, with one write."""
        session, news = self._session, self._news
        for action in session.take_actions():
            news.act(action, now)
        lines = news.take_lines()
        for event in (*session.take_events(), *news.take_events()):
            lines.append(("V", snapshot.encode(self._wall(event, now))))
        if session.changed:
            self._watch()
        if session.changed or session.retitled:
            due = self._published + (PUBLISH_INTERVAL if session.changed else TITLE_INTERVAL)
            if due <= now:
                lines += self._publish(now)
            else:
                self._publish_at = due
        self._send(lines)

    def _send(self, lines: list[tuple[str, str]]) -> None:
        """Hand lines to the session leader. Events may be lost; the state and news for the user are not."""
        if lines:
            self._writer.send_all(lines, droppable="V")

    def _publish(self, now: float) -> list[tuple[str, str]]:
        """The state to be written; nothing while the former one has not even been taken."""
        if self._writer.waiting:
            self._publish_at = now + PUBLISH_INTERVAL
            return []
        self._session.changed = self._session.retitled = False
        self._published = now
        self._publish_at = None
        offset = time.time() - now
        if abs(offset - self._offset) > CLOCK_STEP:
            # the clock was set, and with it what the system says
            self._offset = offset
            self._identity.pid_started = (
                statefile.process_started(self._identity.pid) or self._identity.pid_started
            )
        return [("P", snapshot.encode(self._identity.session_object(self._session.view(), offset)))]

    def _expect_answer(self, ident: bytes) -> None:
        self._filter.osc99_asked(ident, time.monotonic(), take=True)

    @staticmethod
    def _wall(event: dict[str, Any], now: float) -> dict[str, Any]:
        return {**event, "t": round(event["t"] + time.time() - now, 3)}

    def _hush(self, now: float) -> None:
        """Keep the session informed of quiet hours, which begin and end with a minute."""
        if self._quiet_hours is None or now < self._quiet_until:
            return
        local = time.localtime()
        self._quiet_until = now + 60 - min(local.tm_sec, 59)
        minute = local.tm_hour * 60 + local.tm_min
        start, end = self._quiet_hours
        inside = start <= minute < end if start <= end else minute >= start or minute < end
        self._session.quiet = inside

    def _shell_in_front(self) -> bool:
        """Whether the wrapped shell itself has its terminal's foreground, not a program it runs."""
        try:
            return self._front() == self._identity.child_pid
        except OSError:
            return False


def signal_name(number: int) -> str:
    """Name a signal. The module that knows all names is imported for those that few programs die of."""
    name = common_signal_name(number)
    if name.startswith("SIG"):
        return name
    import signal

    try:
        return signal.Signals(number).name
    except ValueError:
        return name


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
