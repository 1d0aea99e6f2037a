"""The desktop channel on macOS: the notification centre where this Python may use it, else a program.

The centre takes notifications only from a signed application: Python from python.org is one (a framework
build with a signed Python.app); those of Homebrew, conda, uv and Xcode are not, and there desktop-notifier
drops everything without an error. So it is used only behind a check of the signature, then
`terminal-notifier`, then `alerter`, then `osascript`. Text is always an argument that cannot be taken for an
option or for a script.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import sysconfig
from typing import TYPE_CHECKING, Any

from agentwrap.host.notifiers import focus
from agentwrap.host.notifiers.notice import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from agentwrap.host.notifiers.notice import Notice

SCRIPT = (
    "on run argv",
    "display notification (item -1 of argv) with title (item -2 of argv)",
    "end run",
)
SCRIPT_WITH_SOUND = (
    "on run argv",
    'display notification (item -1 of argv) with title (item -2 of argv) sound name "default"',
    "end run",
)
"""Counted from the end: whether osascript keeps the `--` before them does not matter."""

ALERT_TIMEOUT = 3600
"""Seconds after which alerter, which stays until the alert is answered, takes it down by itself."""

ALERT_STARTS = 0.5
"""Seconds within which an alerter that cannot post has ended."""


class MacOS:
    """Shows notices through the best way there is, looked for at the first one."""

    def __init__(self, send: Callable[[dict[str, Any]], None], environ: Mapping[str, str]) -> None:
        self._send = send
        self._environ = environ
        self._ways: list[_Native | _TerminalNotifier | _Alerter | _Osascript] | None = None
        self._by_key: dict[str, _Native | _TerminalNotifier | _Alerter | _Osascript] = {}

    async def show(self, notice: Notice) -> Outcome:
        """Show it by the first way that takes it."""
        reasons = []
        for way in await self._find():
            outcome = await way.show(notice)
            if outcome.ok:
                self._by_key[notice.key] = way
                reasons.append(f"by {way.name}")
                return Outcome(ok=True, reason="; ".join(reasons))
            reasons.append(f"{way.name}: {outcome.reason}")
        return Outcome(
            ok=False, reason="; ".join(reasons) or "neither terminal-notifier, alerter nor osascript"
        )

    async def update(self, notice: Notice) -> Outcome:
        """Replace it, where the way it went can."""
        way = self._by_key.get(notice.key)
        if way is None:
            return Outcome(ok=True, reason="no longer shown")
        if not way.replaces:
            return Outcome(ok=True, reason=f"{way.name} cannot replace")
        return await way.show(notice)

    async def withdraw(self, notice: Notice) -> Outcome:
        """Take it back, where the way it went can."""
        way = self._by_key.pop(notice.key, None)
        if way is None:
            return Outcome(ok=True, reason="no longer shown")
        return await way.withdraw(notice)

    async def close(self) -> None:
        """Nothing is held."""

    async def check(self) -> Outcome:
        """Say which ways there are, best first."""
        names = [way.name for way in await self._find()]
        native = await native_reason()
        reason = ", ".join(names) + (f" (not the notification centre itself: {native})" if native else "")
        return Outcome(ok=bool(names), reason=reason)

    async def _find(self) -> list[_Native | _TerminalNotifier | _Alerter | _Osascript]:
        if self._ways is None:
            self._ways = []
            if not await native_reason():
                self._ways.append(_Native(self._clicked))
            path = self._environ.get("PATH", os.defpath)
            for kind in (_TerminalNotifier, _Alerter, _Osascript):
                program = shutil.which(kind.name, path=path)
                if program:
                    self._ways.append(kind(program, self._environ, self._clicked))
        return self._ways

    def _clicked(self, notice: Notice) -> None:
        self._send({"op": "click", "id": notice.id, "key": notice.key})


async def native_reason() -> str:
    """Say why desktop-notifier would not deliver from this Python; empty where it does."""
    if not sysconfig.get_config_var("PYTHONFRAMEWORK"):
        return "this Python is no framework build"
    application = os.path.join(sys.base_prefix, "Resources", "Python.app")
    if not os.path.isdir(application):  # noqa: ASYNC240 - one stat
        return "this Python has no Python.app"
    code, out = await _run(["/usr/bin/codesign", "--verify", application])
    if code != 0:
        return "the signature of Python.app is not valid"
    code, out = await _run(["/usr/bin/codesign", "--display", "--verbose=2", application])
    team = [line.partition("=")[2] for line in out.splitlines() if line.startswith("TeamIdentifier=")]
    if code != 0 or not team or team[0] in ("", "not set"):
        return "Python.app is not signed by a developer"
    return ""


class _Native:
    """The notification centre, by desktop-notifier."""

    name = "notification centre"
    replaces = True

    def __init__(self, clicked: Callable[[Notice], None]) -> None:
        self._clicked = clicked
        self._notifier: Any = None

    async def show(self, notice: Notice) -> Outcome:
        """Post it; the same identifier replaces what is shown."""
        from desktop_notifier import DEFAULT_SOUND, DesktopNotifier
        from desktop_notifier.common import Notification

        from agentwrap.host.notifiers.complaints import Complaints

        with Complaints() as complaints:
            if self._notifier is None:
                self._notifier = DesktopNotifier("agentwrap", None)
            if "dummy" in type(self._notifier._backend).__module__:  # noqa: SLF001 - where it drops all
                return Outcome(ok=False, reason="desktop-notifier has no way to the notification centre")
            if not await self._notifier.request_authorisation():
                return Outcome(ok=False, reason="notifications of Python are not allowed in System Settings")
            dispatched: list[bool] = []
            await self._notifier.send_notification(
                Notification(
                    notice.title,
                    notice.body,
                    on_clicked=lambda: self._clicked(notice),
                    on_dispatched=lambda: dispatched.append(True),
                    sound=DEFAULT_SOUND if notice.sound else None,
                    identifier=_group(notice),
                )
            )
        if complaints.text or not dispatched:
            return Outcome(ok=False, reason=complaints.text or "not dispatched")
        return Outcome(ok=True)

    async def withdraw(self, notice: Notice) -> Outcome:
        """Remove it from the centre."""
        await self._notifier.clear(_group(notice))
        return Outcome(ok=True)


class _TerminalNotifier:
    """terminal-notifier; a leading backslash keeps any text from being read as an option or a list."""

    name = "terminal-notifier"
    replaces = True

    def __init__(self, program: str, environ: Mapping[str, str], clicked: Callable[[Notice], None]) -> None:
        self._program = program
        self._environ = environ
        del clicked  # it activates the terminal by itself, and does not tell

    async def show(self, notice: Notice) -> Outcome:
        """Post it; the same group replaces what is shown."""
        argv = [self._program, "-title", "\\" + notice.title, "-message", "\\" + (notice.body or " ")]
        argv += ["-group", _group(notice)]
        if notice.sound:
            argv += ["-sound", "default"]
        bundle = self._environ.get("__CFBundleIdentifier", "")
        if bundle:
            argv += ["-activate", bundle]
        return _outcome(await _run(argv, self._environ))

    async def withdraw(self, notice: Notice) -> Outcome:
        """Remove it by its group."""
        return _outcome(await _run([self._program, "-remove", _group(notice)], self._environ))


class _Alerter:
    """alerter: it runs as long as the alert stands, and prints how it was answered."""

    name = "alerter"
    replaces = True

    def __init__(self, program: str, environ: Mapping[str, str], clicked: Callable[[Notice], None]) -> None:
        self._program = program
        self._environ = environ
        self._clicked = clicked
        self._dashes: bool | None = None
        self._watching: set[asyncio.Task[None]] = set()

    async def _option(self, name: str, value: str) -> list[str]:
        """Write an option for this alerter: since 26 `--name=value`, before that as terminal-notifier."""
        if self._dashes is None:
            code, out = await _run([self._program, "--version"], self._environ)
            self._dashes = code == 0 and out.strip()[:1].isdecimal()
        return [f"--{name}={value}"] if self._dashes else [f"-{name}", "\\" + value]

    async def show(self, notice: Notice) -> Outcome:
        """Post it and leave it standing."""
        argv = [self._program]
        options = {"title": notice.title, "message": notice.body or " ", "group": _group(notice)}
        options["timeout"] = str(ALERT_TIMEOUT)
        if notice.sound:
            options["sound"] = "default"
        for name, value in options.items():
            argv += await self._option(name, value)
        try:
            process = await _spawn(argv, self._environ)
        except OSError as error:
            return Outcome(ok=False, reason=str(error.strerror))
        watch = asyncio.create_task(self._watch(process, notice))
        self._watching.add(watch)
        watch.add_done_callback(self._watching.discard)
        await asyncio.wait({watch}, timeout=ALERT_STARTS)
        if process.returncode:
            return Outcome(ok=False, reason=f"exit code {process.returncode}")
        return Outcome(ok=True)

    async def _watch(self, process: asyncio.subprocess.Process, notice: Notice) -> None:
        out, _ = await process.communicate()
        if out.strip().startswith((b"@CONTENTCLICKED", b"@ACTIONCLICKED")):
            self._clicked(notice)
            await focus.bring(self._environ, "darwin")

    async def withdraw(self, notice: Notice) -> Outcome:
        """Remove it by its group."""
        argv = [self._program, *await self._option("remove", _group(notice))]
        return _outcome(await _run(argv, self._environ))


class _Osascript:
    """AppleScript's own notification: it can neither be replaced nor taken back."""

    name = "osascript"
    replaces = False

    def __init__(self, program: str, environ: Mapping[str, str], clicked: Callable[[Notice], None]) -> None:
        self._program = program
        self._environ = environ
        del clicked  # a click opens the Script Editor, whatever one does

    async def show(self, notice: Notice) -> Outcome:
        """Post it; the text is an argument of the script, never part of it."""
        argv = [self._program]
        for line in SCRIPT_WITH_SOUND if notice.sound else SCRIPT:
            argv += ["-e", line]
        return _outcome(await _run([*argv, "--", notice.title, notice.body], self._environ))

    async def withdraw(self, notice: Notice) -> Outcome:
        """Do nothing."""
        return Outcome(ok=True, reason="osascript cannot take back")


def _group(notice: Notice) -> str:
    """Name what is shown, for replacing and removing: our own words only."""
    return f"agentwrap.{notice.env.get('AGENTWRAP_SESSION', '')}.{notice.key}"


def _outcome(ran: tuple[int, str]) -> Outcome:
    code, out = ran
    if code == 0:
        return Outcome(ok=True)
    return Outcome(ok=False, reason=" ".join(f"exit code {code} {out}".split())[:200])


async def _spawn(argv: list[str], environ: Mapping[str, str] | None = None) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *argv,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env=None if environ is None else dict(environ),
        start_new_session=True,
    )


async def _run(argv: list[str], environ: Mapping[str, str] | None = None) -> tuple[int, str]:
    """Run a program to its end; cancelled, it is killed. Returns its exit code and what it said."""
    try:
        process = await _spawn(argv, environ)
    except OSError as error:
        return 127, str(error.strerror)
    try:
        out, _ = await process.communicate()
    except asyncio.CancelledError:
        process.kill()
        raise
    return process.returncode or 0, out.decode("utf-8", "replace")
