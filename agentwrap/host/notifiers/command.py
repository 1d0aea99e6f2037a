"""The command channel: the user's own program, without a shell, told by its environment."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import TYPE_CHECKING

from agentwrap.host.notifiers.notice import TIMEOUT, Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentwrap.host.notifiers.notice import Notice

VARIABLES = ("EVENT", "STATE", "KIND", "AGENT", "TITLE", "BODY", "SESSION", "CWD")
"""Each is set, as AGENTWRAP_…, for every run; empty where there is nothing to say."""

LONGEST_RUN = 30.0
"""Seconds after which a command and what it started are killed: a long sound is over by then."""

MOST_RUNNING = 8
"""Commands that may run at once; the oldest is killed for a new one."""


class Command:
    """Runs the command of each notice.

    A command that cannot be started, or that ends other than with exit code 0 within 3 s, has failed. One
    that still runs then has taken the notice: it is left to finish, in the background, for up to 30 s.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._running: dict[asyncio.subprocess.Process, asyncio.Task[int]] = {}

    async def show(self, notice: Notice) -> Outcome:
        """Start the command; wait up to 3 s for its exit code."""
        if not notice.command:
            return Outcome(ok=False, reason="no command is configured")
        while len(self._running) >= MOST_RUNNING:
            self._kill(next(iter(self._running)))
        try:
            process = await asyncio.create_subprocess_exec(
                *notice.command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.DEVNULL,
                env={**self._environ, **environment(notice)},
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            return Outcome(ok=False, reason=f"cannot start {notice.command[0]}: {_why(error)}")
        watch = asyncio.create_task(self._watch(process))
        self._running[process] = watch
        done, _ = await asyncio.wait({watch}, timeout=TIMEOUT)
        if not done:
            return Outcome(ok=True, reason=f"still running after {TIMEOUT:g} s")
        code = watch.result()
        if code == 0:
            return Outcome(ok=True)
        return Outcome(ok=False, reason=f"killed by signal {-code}" if code < 0 else f"exit code {code}")

    async def update(self, notice: Notice) -> Outcome:
        """Do nothing: a command is run once per notice."""
        return Outcome(ok=True, reason="not repeated")

    async def withdraw(self, notice: Notice) -> Outcome:
        """Do nothing: what a command did cannot be taken back."""
        return Outcome(ok=True, reason="cannot be taken back")

    async def close(self) -> None:
        """Wait for commands still running, each to the end of its time."""
        while self._running:
            await asyncio.wait(set(self._running.values()))

    async def _watch(self, process: asyncio.subprocess.Process) -> int:
        try:
            return await asyncio.wait_for(process.wait(), LONGEST_RUN)
        except TimeoutError:
            self._kill(process)
            return await process.wait()
        finally:
            self._running.pop(process, None)

    def _kill(self, process: asyncio.subprocess.Process) -> None:
        """Kill the command and what it started; it leads a session, so a group, of its own."""
        self._running.pop(process, None)
        if process.returncode is None:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except OSError:
                pass  # it ended this very moment


def environment(notice: Notice) -> dict[str, str]:
    """Say in the environment what the notice says."""
    told = {"AGENTWRAP_EVENT": notice.type, **notice.env}
    told |= {"AGENTWRAP_TITLE": notice.title, "AGENTWRAP_BODY": notice.body}  # as they are by now
    return {f"AGENTWRAP_{name}": told.get(f"AGENTWRAP_{name}", "") for name in VARIABLES}


def _why(error: OSError | ValueError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
