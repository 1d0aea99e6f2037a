"""`agentwrap doctor`: this terminal, the agents found, the state directory, each notification channel.

It only looks, and with `--notify` sends; it changes nothing. Every question has a limit of a few seconds.
What programs and the terminal say of themselves is shown cleaned and clipped.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import agentwrap
from agentwrap import agents, config
from agentwrap.agents.requirements import REQUIREMENTS, find_version
from agentwrap.core import inband, report, text
from agentwrap.errors import AgentwrapError
from agentwrap.host import ask, notifiers, statefile
from agentwrap.host.notifiers import desktop
from agentwrap.host.notifiers.command import Command
from agentwrap.host.notifiers.notice import Notice, Outcome
from agentwrap.host.notifiers.terminal import Terminal, ask_tmux, tmux_says

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentwrap.config import Settings

TERMINAL_TIMEOUT = 1.0
"""Seconds the terminal may take to answer; over a slow line the rest is unknown."""

VERSION_TIMEOUT = 5.0
"""Seconds an agent may take to say its version; some start an interpreter for it."""

CHECK_TIMEOUT = 4.0
"""Seconds for looking at one channel."""

IDENT = "agentwrap-doctor"

QUESTION = f"\x1b]{report.NUMBER};?\x1b\\".encode() + inband.query(IDENT) + b"\x1b[?u\x1b[?1004$p\x1b[c"
"""Status reports, OSC 99, kitty's keyboard, focus events; and what every terminal answers, last."""

_STRING = rb"([^\x07\x1b]*)(?:\x07|\x1b\\)"
_ANSWERS = {
    "status": re.compile(rb"\x1b\]%d;" % report.NUMBER + _STRING),
    "osc99": re.compile(rb"\x1b\]99;" + _STRING),
    "keyboard": re.compile(rb"\x1b\[\?(\d*)u"),
    "focus": re.compile(rb"\x1b\[\?1004;(\d)\$y"),
    "fence": re.compile(rb"\x1b\[\?([\d;]*)c"),
}

# What to look for, since no tool says whether anything was shown.
_LOOK = {
    "desktop": "a notification on the desktop, perhaps only in its list if Do Not Disturb is on",
    "terminal": "a notification of the terminal, perhaps only while its window has not the focus",
    "command": "whatever your command does",
    "bell": "a sound, a flash, or a mark on the window or tab",
}


def doctor(*, notify: bool = False, as_json: bool = False) -> int:
    """Look at everything, say it, and return 0.

    Args:
        notify: also send one notification through each channel.
        as_json: one object, for programs.
    """
    environ = dict(os.environ)
    found = asyncio.run(examine(environ, sys.platform, notify=notify))
    if as_json:
        import json

        print(json.dumps(found, indent=2))
    else:
        print("\n".join(lines(found)))
    return 0


async def examine(environ: Mapping[str, str], platform: str, *, notify: bool) -> dict[str, Any]:
    """Look at everything; see `lines` for what the parts mean."""
    settings, problems = settings_of(environ)
    terminal = await look_at_terminal(environ)
    with ThreadPoolExecutor() as pool:
        found = list(pool.map(lambda name: look_at_agent(name, environ, settings), agents.NAMES))
    return {
        "version": agentwrap.__version__,
        "terminal": terminal,
        "agents": found,
        "state_directory": look_at_state(environ),
        "configuration": {"files": config_files(environ), "problems": problems},
        "channels": await look_at_channels(environ, platform, settings, terminal, notify=notify),
        "order": notifiers.resolve(settings.channels, environ, platform),
    }


def settings_of(environ: Mapping[str, str]) -> tuple[Settings, list[str]]:
    """The configuration as wrapping reads it, and what is wrong with it."""
    try:
        return config.load(environ, strict=False)
    except AgentwrapError as error:
        return config.Settings(), [str(error)]


def config_files(environ: Mapping[str, str]) -> list[str]:
    """The configuration files that are there, the one that counts first."""
    named = environ.get("AGENTWRAP_CONFIG")
    return [path for path in ([named] if named else config.paths(environ)) if os.path.exists(path)]


# ---- the terminal ----


async def look_at_terminal(environ: Mapping[str, str]) -> dict[str, Any]:
    """Ask the terminal what it knows; None where it was not asked or did not say."""
    found: dict[str, Any] = {name: _shown(environ.get(name)) for name in ("TERM", "TERM_PROGRAM")}
    found |= {"asked": False, "reason": "", "status": None, "osc99": None, "keyboard": None, "focus": None}
    found["wrapped"] = bool(environ.get("AGENTWRAP_SESSION"))
    found |= {"tmux": bool(environ.get("TMUX")), "passthrough": None, "outer_term": None}
    found["passthrough_hidden"] = None
    if found["tmux"]:
        tmux = await ask_tmux(environ)
        found |= {"passthrough": tmux.passthrough, "passthrough_hidden": tmux.hidden_too}
        found["outer_term"] = _shown(tmux.term)
    found |= ask_terminal(osc99=inband.bears_asking(environ))
    if found["tmux"] and found["focus"] is None:
        option = await tmux_says(environ, "#{focus-events}")
        found["focus"] = option in ("on", "1") if option else None
    found["notifies_by"] = inband.choose(
        environ, answers_99=_as_asked(environ, found), outer_term=found["outer_term"] or ""
    )
    if found["tmux"] and not found["passthrough"]:
        found["notifies_by"] = inband.ONLY_BELL
    return found


def _as_asked(environ: Mapping[str, str], terminal: Mapping[str, Any]) -> bool | None:
    """Whether the terminal answers for OSC 99, as a session knows it: it asks none that is known by name."""
    known: bool | None = terminal["osc99"] if inband.may_ask(environ) else None
    return known


def ask_terminal(*, osc99: bool = True) -> dict[str, Any]:
    """Ask the controlling terminal; keys typed meanwhile are put back where the system allows it.

    Args:
        osc99: whether to ask for that too.
    """
    question = QUESTION if osc99 else QUESTION.replace(inband.query(IDENT), b"")
    try:
        fd = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY)
    except OSError:
        return {"reason": "there is no terminal"}
    try:
        heard = ask.ask(fd, question, lambda data: "fence" in understand(data)[0], TERMINAL_TIMEOUT)
        answers, typed = understand(heard)
        if typed:
            ask.give_back(fd, typed)
    except ask.CannotAskError as error:
        return {"reason": str(error)}
    finally:
        os.close(fd)
    fenced = "fence" in answers
    reason = "" if fenced else f"it did not answer within {TERMINAL_TIMEOUT:g} s"
    found: dict[str, Any] = {"asked": True, "reason": reason}
    for name in ("status", "osc99", "keyboard"):
        found[name] = True if name in answers else False if fenced else None
    if not osc99:
        found["osc99"] = None
    if "focus" in answers:
        found["focus"] = answers["focus"] != b"0"
    return found


def understand(heard: bytes) -> tuple[dict[str, bytes], bytes]:
    """Tell answers from keys: the answers by name, and the rest."""
    answers = {}
    for name, pattern in _ANSWERS.items():
        match = pattern.search(heard)
        if match is None:
            continue
        if name == "osc99" and not inband.is_answer(match[1], IDENT):
            continue
        answers[name] = match[1]
        heard = heard[: match.start()] + heard[match.end() :]
    return answers, heard


# ---- agents ----


def look_at_agent(name: str, environ: Mapping[str, str], settings: Settings) -> dict[str, Any]:
    """Find one agent, its version, and why its status would not be seen."""
    profile = agents.by_name(name)
    requirement = REQUIREMENTS.get(name)
    configured = settings.agents[name].commands if name in settings.agents else None
    path = None
    for command in (*(configured or ()), *(profile.commands if profile else ())):
        path = path or shutil.which(command, path=environ.get("PATH"))
    found: dict[str, Any] = {"agent": name, "path": path, "version": None, "works": None}
    found |= {"problems": [], "remark": requirement.remark if requirement else ""}
    if path is None:
        return found
    said, reason = ask_version(path, environ)
    found["version"] = find_version(said)
    problems = [] if found["version"] else [reason or f"`{name} --version` says no version"]
    if requirement is not None:
        problems += requirement.problems(found["version"], environ)
    if environ.get("AGENTWRAP") == "0":
        problems.append("AGENTWRAP=0: commands run bare, nothing is seen; unset it")
    if profile is not None and profile.options and not settings.injects(name):
        problems.append("inject = false in the configuration: no texts in its notifications")
    found["problems"] = [text.clip(text.fold(problem), 200) for problem in problems]
    found["works"] = not problems
    return found


def ask_version(path: str, environ: Mapping[str, str]) -> tuple[str, str]:
    """Run `path --version`, away from the terminal; what it says, and what went wrong."""
    try:
        process = subprocess.Popen(  # noqa: S603 - an agent the user installed
            [path, "--version"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=dict(environ),
            start_new_session=True,
        )
    except OSError as error:
        return "", f"cannot be started: {error.strerror}"
    with process:
        try:
            out, _ = process.communicate(timeout=VERSION_TIMEOUT)
        except subprocess.TimeoutExpired:
            return "", f"no answer to --version within {VERSION_TIMEOUT:g} s"
        finally:
            try:
                os.killpg(process.pid, signal.SIGKILL)  # and what it started
            except OSError:
                pass  # nothing is left
    return text.fold(out[:1000].decode("utf-8", "replace")), ""


# ---- the state directory ----


def look_at_state(environ: Mapping[str, str]) -> dict[str, Any]:
    """Open the state directory as a session does, and write a file there."""
    found: dict[str, Any] = {"path": statefile.directory(environ), "ok": False, "reason": ""}
    try:
        place = statefile.StateDir.open(environ).path
    except AgentwrapError as error:
        found["reason"] = str(error)
        return found
    trial = os.path.join(place, f".doctor-{os.getpid()}")
    try:
        fd = os.open(trial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        try:
            os.write(fd, b"\n" * 4096)
        finally:
            os.close(fd)
            os.unlink(trial)
    except OSError as error:
        found["reason"] = f"{place}: cannot write there: {error.strerror}"
        return found
    found["ok"] = True
    return found


# ---- channels ----


async def look_at_channels(
    environ: Mapping[str, str],
    platform: str,
    settings: Settings,
    terminal: Mapping[str, Any],
    *,
    notify: bool,
) -> list[dict[str, Any]]:
    """Say of each channel whether it could deliver; with `notify`, send one through it."""
    order = notifiers.resolve(settings.channels, environ, platform)
    written: list[dict[str, Any]] = []
    channels = {
        "desktop": desktop.make(written.append, environ, platform),
        "terminal": Terminal(written.append, environ),
        "command": Command(environ),
        "bell": Terminal(written.append, environ, bell=True),
    }
    out = []
    for name, channel in channels.items():
        ok, detail = await check(name, channel, settings, terminal)
        entry: dict[str, Any] = {
            "channel": name,
            "used": name in order,
            "ok": ok,
            "detail": detail,
        }
        if notify:
            entry |= {"sent": None, "sent_detail": "", "look_for": ""}
            if name != "command" or settings.command:
                written.clear()
                sent = await send(name, channel, settings, _as_asked(environ, terminal))
                if sent.ok:
                    sent = put_on_terminal(written) or sent
                entry |= {
                    "sent": sent.ok,
                    "sent_detail": sent.reason,
                    "look_for": _LOOK[name] if sent.ok else "",
                }
        entry["detail"] = text.clip(text.fold(entry["detail"]), 300)
        out.append(entry)
    await channels["desktop"].close()
    await channels["command"].close()
    return out


async def check(
    name: str, channel: Any, settings: Settings, terminal: Mapping[str, Any]
) -> tuple[bool | None, str]:
    """Whether a channel could deliver, without delivering; None for one that is not set up."""
    if name == "desktop":
        try:
            outcome: Outcome = await asyncio.wait_for(channel.check(), CHECK_TIMEOUT)
        except TimeoutError:
            return False, "no answer"
        return outcome.ok, outcome.reason
    if name == "command":
        if not settings.command:
            return None, "none is configured ([notify] command)"
        program = shutil.which(settings.command[0])
        if program is None and _is_file(settings.command[0]):
            return False, f"{settings.command[0]}: not executable; chmod +x makes it so"
        return program is not None, program or f"{settings.command[0]}: not found"
    if name == "bell":
        return True, "rings"
    kind = terminal["notifies_by"]
    if kind != inband.ONLY_BELL:
        return True, f"OSC {kind}" + (", wrapped for tmux" if terminal["tmux"] else "")
    if terminal["tmux"] and not terminal["passthrough"]:
        return False, "only a bell: set -g allow-passthrough on in tmux.conf"
    return False, "only a bell: it is not known to take OSC 99, 777 or 9"


async def send(name: str, channel: Any, settings: Settings, osc99: bool | None) -> Outcome:
    """Send one notification; it stays, as that of an exit does."""
    notice = Notice(
        1,
        f"doctor-{name}",
        "exit",
        f"agentwrap: this is the {name} channel",
        "If you can read this, it works.",
        sound=settings.sound,
        command=list(settings.command),
        env={"AGENTWRAP_SESSION": IDENT, "AGENTWRAP_AGENT": "agentwrap", "AGENTWRAP_CWD": os.getcwd()},
        osc99=osc99,
    )
    try:
        outcome: Outcome = await asyncio.wait_for(channel.show(notice), CHECK_TIMEOUT)
    except TimeoutError:
        return Outcome(ok=False, reason="no answer")
    return outcome


def put_on_terminal(written: list[dict[str, Any]]) -> Outcome | None:
    """Write what a channel in-band asks for; None where that went well."""
    data = "".join(message["data"] for message in written if "data" in message).encode()
    if not data:
        return None
    try:
        with open("/dev/tty", "wb", buffering=0) as tty:
            tty.write(data)
    except OSError:
        return Outcome(ok=False, reason="there is no terminal")
    return None


# ---- showing it ----


def lines(found: Mapping[str, Any]) -> list[str]:
    """Everything that was found, for people."""
    out = [f"agentwrap {found['version']}", "", "Terminal"]
    terminal = found["terminal"]
    out.append(
        _row("TERM", " ".join(filter(None, (terminal["TERM"], terminal["TERM_PROGRAM"]))) or "not set")
    )
    if terminal["reason"]:
        out.append(_row("questions", f"not answered: {terminal['reason']}"))
    if terminal["asked"]:
        reports = "answered here", "not answered by the terminal itself; in a session agentwrap answers"
        if terminal["wrapped"]:
            reports = "answered by the agentwrap around this shell", "not answered by the agentwrap around"
        out.append(_row("status reports", _yes(terminal["status"], *reports)))
        no = "does not answer for OSC 99"
        if terminal["notifies_by"] == inband.OSC_99:
            no += ", but is known to show it; it may not close it"
        out.append(_row("notifications", _yes(terminal["osc99"], "OSC 99", no)))
        focus = (
            "tells when it has the focus",
            "does not tell when it has the focus: a key typed counts as looking",
        )
        out.append(_row("focus", _yes(terminal["focus"], *focus)))
        out.append(_row("keyboard", _yes(terminal["keyboard"], "kitty's protocol", "the usual one")))
    if terminal["tmux"]:
        outer = f", on {terminal['outer_term']}" if terminal["outer_term"] else ""
        state = "allow-passthrough off: only bells get out"
        if terminal["passthrough_hidden"]:
            state = "allow-passthrough all"
        elif terminal["passthrough"]:
            state = "allow-passthrough on: only bells get out of windows not in view (all, in tmux 3.4)"
        out.append(_row("tmux", state + outer))
    out += ["", "Agents"]
    for agent in found["agents"]:
        if agent["path"] is None:
            out.append(_row(agent["agent"], "not installed"))
            continue
        said = "; ".join(agent["problems"]) or agent["remark"] or "its status will be seen"
        out.append(_row(agent["agent"], f"{_mark(agent['works'])} {agent['version'] or '?'}: {said}"))
    state = found["state_directory"]
    out += ["", "State directory", _row("", f"{_mark(state['ok'])} {state['reason'] or state['path']}")]
    configuration = found["configuration"]
    out += ["", "Configuration"]
    for problem in configuration["problems"]:
        out.append(_row("", f"{_mark(False)} {problem.removeprefix('agentwrap: ')}"))
    if not configuration["problems"]:
        out.append(_row("", f"{_mark(True)} {(configuration['files'] or ['none; the defaults count'])[0]}"))
    out += ["", f"Notification channels, tried in this order: {', '.join(found['order']) or 'none'}"]
    for channel in found["channels"]:
        out.append(_row(channel["channel"], f"{_mark(channel['ok'])} {channel['detail'] or 'ready'}"))
        if channel.get("sent") is not None:
            told = (
                f"sent: look for {channel['look_for']}"
                if channel["sent"]
                else f"failed: {channel['sent_detail']}"
            )
            out.append(_row("", "  " + told))
    return [text.clean(line) for line in out]


def _row(name: str, said: str) -> str:
    return f"  {name:<15} {said}" if name else f"  {said}"


def _mark(ok: bool | None) -> str:
    return "-  " if ok is None else "ok " if ok else "no "


def _yes(value: bool | None, yes: str, no: str) -> str:
    return "unknown" if value is None else yes if value else no


def _shown(value: str | None) -> str | None:
    return text.clip(text.fold(value), 80) if value else None


def _is_file(path: str) -> bool:
    return os.path.isfile(path)
