"""The desktop channel on Linux: desktop-notifier over the session bus.

desktop-notifier sends every notification as a new one and takes no notice of whether the server parses
markup; both are put right here, between it and the bus. It also reports no failure but to a log, so the
proof of delivery is the number the server gave.
"""

from __future__ import annotations

import asyncio
import os
import time
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote

from agentwrap.host.notifiers import focus
from agentwrap.host.notifiers.complaints import Complaints
from agentwrap.host.notifiers.notice import TIMEOUT, Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from agentwrap.host.notifiers.notice import Notice

NAME = "org.freedesktop.Notifications"

SOUNDS = {"error": "dialog-warning", "done": "complete", "exit": "complete"}
"""Names of the freedesktop sound theme; anything else is a message that waits for an answer."""

STAYS = ("blocked", "error")
"""Types that stay until they are withdrawn or dismissed: somebody is waited for."""

SILENCE = 30.0
"""Seconds during which a bus that did not answer is not asked again, so that it costs its 3 s only once."""

GONE = Outcome(ok=True, reason="no longer shown")


class NoBusError(Exception):
    """There is nobody to ask; the message says why."""


class _Server:
    """The server's interface with what desktop-notifier's own does not do: it replaces, and it remembers.

    Attributes:
        replaces: number of the notification the next one replaces, 0 for none.
        shown: number the server gave the last one; 0 after it took none.
    """

    def __init__(self, interface: Any) -> None:
        self._interface = interface
        self.replaces = 0
        self.shown = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._interface, name)

    async def call_notify(self, *arguments: Any) -> int:
        """Notify, in the place of `replaces`."""
        app, _, *rest = arguments
        self.shown = 0
        self.shown = await self._interface.call_notify(app, self.replaces, *rest)
        return self.shown


class DBus:
    """Shows notices through the notification server of the session bus."""

    def __init__(self, send: Callable[[dict[str, Any]], None], environ: Mapping[str, str]) -> None:
        self._send = send
        self._environ = environ
        self._backend: Any = None
        self._server: _Server | None = None
        self._silent_until = 0.0
        self._clicking: set[asyncio.Task[None]] = set()
        self._closed: set[int] = set()  # numbers closed since the last notice was posted
        # by key: the server's number, and which server it was; gone once closed by whomever
        self._shown: dict[str, tuple[int, str]] = {}

    async def show(self, notice: Notice) -> Outcome:
        """Show a notice, as a new one."""
        return await self._bounded(self._post(notice))

    async def update(self, notice: Notice) -> Outcome:
        """Replace the text of a notice that is still shown; one that was dismissed stays away."""
        shown = self._shown.get(notice.key)
        if shown is None:
            return GONE
        return await self._bounded(self._post(notice, *shown))

    async def withdraw(self, notice: Notice) -> Outcome:
        """Close a notice; tried also on a bus that did not answer lately, since it would stay for good."""
        shown = self._shown.pop(notice.key, None)
        if shown is None:
            return GONE
        self._silent_until = 0.0
        return await self._bounded(self._close(*shown))

    async def close(self) -> None:
        """Leave the bus."""
        self._drop()

    async def check(self) -> Outcome:
        """Say whether a notification server answers, and which."""
        return await self._bounded(self._describe())

    # ---- the work ----

    async def _bounded(self, work: Any) -> Outcome:
        """Run it with the limit of a channel, and remember a bus that hangs."""
        if time.monotonic() < self._silent_until:
            work.close()
            return Outcome(ok=False, reason="the session bus did not answer lately")
        try:
            async with asyncio.timeout(TIMEOUT):
                outcome: Outcome = await work
        except TimeoutError:
            self._drop()
            self._silent_until = time.monotonic() + SILENCE
            return Outcome(ok=False, reason=f"the session bus did not answer within {TIMEOUT:g} s")
        except Exception as error:  # noqa: BLE001 - whatever a bus does, the next channel is used
            self._drop()
            return Outcome(ok=False, reason=explain(error))
        return outcome

    async def _post(self, notice: Notice, replaces: int = 0, owner: str = "") -> Outcome:
        """Post a notice; one that replaces, only at the server that gave the number."""
        from desktop_notifier.common import Icon, Notification, Sound, Urgency

        server = await self._connect()
        if replaces and await self._owner() != owner:
            self._shown.pop(notice.key, None)
            return GONE
        body = notice.body
        if "body-markup" in await server.call_get_capabilities():
            body = body.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        sound = (
            Sound(name=SOUNDS.get(notice.type, "message-new-instant"))
            if notice.sound and not replaces
            else None
        )
        notification = Notification(
            notice.title,
            body,
            # Critical would break through Do Not Disturb; that is for the user to decide, not for an agent.
            urgency=Urgency.Normal,
            icon=Icon(name="utilities-terminal"),
            on_clicked=lambda: self._clicked(notice),
            sound=sound,
            timeout=0 if notice.type in STAYS else -1,
        )
        server.replaces, server.shown = replaces, 0
        self._closed.clear()
        with Complaints() as complaints:
            await self._backend.send(notification)
        if not server.shown:
            if complaints.error is not None:
                raise complaints.error
            return Outcome(ok=False, reason=complaints.text or "the server took no notification")
        owner = await self._owner()
        if server.shown not in self._closed:  # the signal may be read together with the answer
            self._shown[notice.key] = (server.shown, owner)
        return Outcome(ok=True)

    async def _close(self, number: int, owner: str) -> Outcome:
        """Close by its number, which is known to the server also over another connection."""
        from dbus_fast import DBusError

        try:
            server = await self._connect()
            if await self._owner() != owner:
                return GONE
            await server.call_close_notification(number)
        except DBusError:
            return GONE  # it has just been closed, or there is no server any more
        return Outcome(ok=True)

    async def _owner(self) -> str:
        """The present server, by its name on the bus, empty for none: each counts from the beginning."""
        from dbus_fast import Message

        asked = Message(
            destination="org.freedesktop.DBus",
            path="/org/freedesktop/DBus",
            interface="org.freedesktop.DBus",
            member="GetNameOwner",
            signature="s",
            body=[NAME],
        )
        answer = await self._backend.bus.call(asked)
        return str(answer.body[0]) if answer.signature == "s" and not answer.error_name else ""

    async def _describe(self) -> Outcome:
        server = await self._connect()
        name, vendor, version, _ = await server.call_get_server_information()
        return Outcome(
            ok=True, reason=" ".join(part for part in (name, version, f"({vendor})") if part != "()")
        )

    async def _connect(self) -> _Server:
        """Connect once, and again after the connection was lost."""
        from desktop_notifier.backends.dbus import DBusDesktopNotifier

        if self._backend is not None and self._server is not None and self._backend.bus.connected:
            return self._server
        self._drop()
        address = find_bus(self._environ)
        if address is None:
            raise NoBusError("there is no session bus (DBUS_SESSION_BUS_ADDRESS is not set)")
        os.environ["DBUS_SESSION_BUS_ADDRESS"] = address  # the only way desktop-notifier takes it

        channel = self

        class Backend(DBusDesktopNotifier):
            """desktop-notifier's, over a server that replaces."""

            async def _init_dbus(self) -> Any:
                channel._server = _Server(await super()._init_dbus())
                self.interface = cast("Any", channel._server)
                return self.interface

            def _on_closed(self, nid: int, reason: int) -> None:
                channel._forget(nid)
                super()._on_closed(nid, reason)

        self._backend = Backend("agentwrap", None)
        await self._backend._init_dbus()  # noqa: SLF001 - its errors are wanted as errors, not as a log line
        if self._server is None:
            raise NoBusError("no notification server")
        return self._server

    def _drop(self) -> None:
        backend, self._backend, self._server = self._backend, None, None
        bus = getattr(backend, "bus", None)
        if bus is not None:
            bus.disconnect()

    def _forget(self, number: int) -> None:
        self._closed.add(number)
        for key, shown in list(self._shown.items()):
            if shown[0] == number:
                del self._shown[key]

    def _clicked(self, notice: Notice) -> None:
        self._shown.pop(notice.key, None)
        self._send({"op": "click", "id": notice.id, "key": notice.key})
        task = asyncio.get_running_loop().create_task(focus.bring(self._environ, "linux"))
        self._clicking.add(task)
        task.add_done_callback(self._clicking.discard)


def find_bus(environ: Mapping[str, str]) -> str | None:
    """Find the address of the session bus: as told, or where systemd puts it; None where there is none."""
    address = environ.get("DBUS_SESSION_BUS_ADDRESS")
    if address:
        return address
    runtime = environ.get("XDG_RUNTIME_DIR")
    path = os.path.join(runtime, "bus") if runtime else f"/run/user/{os.getuid()}/bus"
    return f"unix:path={quote(path)}" if os.path.exists(path) else None


def explain(error: BaseException) -> str:
    """Say in a few words why the bus or the server failed."""
    if isinstance(error, NoBusError):
        return str(error)
    name = getattr(error, "type", "") or ""
    if name == "org.freedesktop.DBus.Error.ServiceUnknown":
        return "no notification server is running"
    if isinstance(error, FileNotFoundError | ConnectionRefusedError):
        return "the session bus does not run (DBUS_SESSION_BUS_ADDRESS leads nowhere)"
    text = " ".join(str(error).split())[:200]
    return f"{name or type(error).__name__}: {text}" if text else name or type(error).__name__
