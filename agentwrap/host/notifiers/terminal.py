"""The channels in-band: bytes for the terminal, which the pump writes, since only it knows when it may.

What the terminal understands is guessed from the environment by `core.inband`; where tmux stands between,
tmux is asked, since its environment says nothing of the terminal it is attached to now.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agentwrap.core import inband
from agentwrap.host.notifiers.notice import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from agentwrap.host.notifiers.notice import Notice

TMUX_TIMEOUT = 1.0
"""Seconds tmux may take to answer; it is on this machine."""

ASK_TIMEOUT = 1.5
"""Seconds for the pump to ask the terminal, longer than its own limits: it answers in any case."""

_TMUX = (
    "client_termname",
    "client_termtype",
    "allow-passthrough",
    "window_active_clients",
    "session_attached",
    "session_group_attached",
    "window_zoomed_flag",
    "pane_active",
)
"""What tmux is asked. What it does not know is empty."""


class Terminal:
    """A notification the terminal shows, or at least a bell.

    Args:
        send: takes one message for the session leader.
        environ: the environment agentwrap was started in.
        bell: only ever ring the bell.
    """

    def __init__(
        self, send: Callable[[dict[str, Any]], None], environ: Mapping[str, str], *, bell: bool = False
    ) -> None:
        self._send = send
        self._environ = environ
        self._bell = bell
        self._closeable: dict[str, bytes] = {}
        self._answer: asyncio.Future[bool] | None = None

    async def show(self, notice: Notice) -> Outcome:
        """Ask the pump to write it. That it does is as much as can be known: terminals do not say."""
        if self._bell:
            self._emit("bell", notice, inband.ONLY_BELL, inband.BELL)
            return Outcome(ok=True)
        tmux = await ask_tmux(self._environ) if self._environ.get("TMUX") else None
        answers = notice.osc99
        if answers is None and inband.may_ask(self._environ):
            answers = await self._ask(notice)
        kind = inband.choose(self._environ, answers_99=answers, outer_term=tmux.term if tmux else "")
        if tmux and tmux.in_the_way:
            kind = inband.ONLY_BELL
        data = inband.notification(
            kind,
            notice.title,
            notice.body,
            ident=_ident(notice),
            urgency=inband.URGENCY.get(notice.type, 1),
            sound=notice.sound,
            tmux=tmux is not None,
        )
        closing = inband.close(_ident(notice), tmux=tmux is not None) if kind == inband.OSC_99 else b""
        if closing:
            self._closeable[notice.key] = closing
        self._emit("terminal", notice, kind, data, closing)
        if tmux and not tmux.attached:  # the mark of its bell may be seen one day, which is not enough
            return Outcome(ok=False, reason="only a bell: tmux is attached nowhere")
        if tmux and tmux.in_the_way and kind == inband.ONLY_BELL:
            return Outcome(ok=True, reason=f"only a bell: {tmux.in_the_way}")
        return Outcome(ok=True, reason="only a bell" if kind == inband.ONLY_BELL else f"OSC {kind}")

    async def _ask(self, notice: Notice) -> bool | None:
        """Let the pump ask the terminal whether it knows OSC 99; None where that is not to be known."""
        self._answer = asyncio.get_running_loop().create_future()
        self._send({"op": "ask", "id": notice.id, "key": notice.key})
        try:
            return await asyncio.wait_for(self._answer, ASK_TIMEOUT)
        except TimeoutError:
            return None
        finally:
            self._answer = None

    def answered(self, known: bool) -> None:
        """Take the answer."""
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(known)

    async def update(self, notice: Notice) -> Outcome:
        """Do nothing: shown again, it would be a second notification."""
        return Outcome(ok=True, reason="not repeated")

    async def withdraw(self, notice: Notice) -> Outcome:
        """Close it where the terminal can; harmless where there is nothing to close."""
        closing = self._closeable.pop(notice.key, b"")
        if not closing:
            return Outcome(ok=True, reason="cannot be taken back")
        self._emit("close", notice, inband.OSC_99, closing)
        return Outcome(ok=True)

    async def close(self) -> None:
        """Nothing is held."""

    def _emit(self, op: str, notice: Notice, kind: str, data: bytes, closing: bytes = b"") -> None:
        message = {"op": op, "id": notice.id, "key": notice.key, "kind": kind}
        message["data"] = data.decode()
        if closing:
            message["close"] = closing.decode()
        self._send(message)


def _ident(notice: Notice) -> str:
    return f"{notice.env.get('AGENTWRAP_SESSION', 'agentwrap')}.{notice.key}"


@dataclass(frozen=True)
class Tmux:
    """What stands between the pane of this environment and the terminal.

    Attributes:
        term: TERM of the terminal tmux is attached to, or its own name where that says more; empty where tmux
            does not say.
        passthrough: whether sequences are passed on to it, at least from panes that are seen.
        hidden_too: whether they are from panes that are not.
        attached: whether anybody is attached to the session, or to another that shows the window.
        seen: whether the pane is on anybody's screen.
    """

    term: str = ""
    passthrough: bool = True
    hidden_too: bool = False
    attached: bool = True
    seen: bool = True

    @property
    def in_the_way(self) -> str:
        """Why nothing but a bell gets through now; empty where more does."""
        if not self.passthrough:
            return "tmux has allow-passthrough off"
        if not self.seen and not self.hidden_too:
            return "tmux shows another window, and allow-passthrough is not all (tmux 3.4)"
        return ""


async def ask_tmux(environ: Mapping[str, str]) -> Tmux:
    """Ask tmux where the pane of this environment is shown, and what gets through; all, if it is silent."""
    said = await tmux_says(environ, "\t".join(f"#{{{name}}}" for name in _TMUX)) or ""
    values = dict(zip(_TMUX, said.split("\t"), strict=False))
    passthrough = values.get("allow-passthrough")
    viewers = values.get("window_active_clients")
    sessions = values.get("session_attached"), values.get("session_group_attached")
    in_front = values.get("window_zoomed_flag") != "1" or values.get("pane_active") != "0"
    return Tmux(
        term=inband.name_of(values.get("client_termname", ""), values.get("client_termtype", "")),
        passthrough=passthrough not in ("off", "0"),
        # before 3.3 there is no such option, and all is passed on
        hidden_too=passthrough == "all",
        attached=viewers not in ("0", "") or sessions[0] != "0" or sessions[1] not in ("0", "", None),
        seen=viewers != "0" and in_front,
    )


async def shows_own(environ: Mapping[str, str], own: int) -> bool:
    """Whether the terminal shows an OSC of this number that the program has written for tmux to pass on."""
    if not own or not environ.get("TMUX"):
        return False
    tmux = await ask_tmux(environ)
    if not tmux.attached or tmux.in_the_way:
        return False
    return own in inband.shown_by_terminal(environ, outer_term=tmux.term)


async def seat(environ: Mapping[str, str]) -> dict[str, str]:
    """Bring the ssh variables up to date: a tmux session outlives the place it is attached from."""
    now = dict(environ)
    if environ.get("TMUX"):
        said = await _run_tmux(environ, "show-environment", "SSH_CONNECTION")
        if said is not None:
            now.pop("SSH_TTY", None)
            now["SSH_CONNECTION"] = said.partition("=")[2]  # "-SSH_CONNECTION": attached without
    return now


async def tmux_says(environ: Mapping[str, str], form: str) -> str | None:
    """Let tmux fill in a format for the pane of this environment; None where it does not answer."""
    pane = environ.get("TMUX_PANE", "")
    return await _run_tmux(environ, "display-message", "-p", *(["-t", pane] if pane else []), form)


async def _run_tmux(environ: Mapping[str, str], *arguments: str) -> str | None:
    try:
        process = await asyncio.create_subprocess_exec(
            *("tmux", *arguments),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env=dict(environ),
        )
    except OSError:
        return None
    try:
        out, _ = await asyncio.wait_for(process.communicate(), TMUX_TIMEOUT)
    except TimeoutError:
        process.kill()
        return None
    return out.decode("utf-8", "replace").rstrip("\n") if process.returncode == 0 else None
