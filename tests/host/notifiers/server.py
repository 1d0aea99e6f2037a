"""A notification server that records what it is asked, one JSON object a line, and can be told to misbehave.

Arguments: capabilities, parted by commas; the name of a method that never answers. Input, JSON lines:
{"click": ID} or {"close": ID, "reason": N} make it send those signals.
"""

import asyncio
import json
import sys
from typing import Annotated

from dbus_fast import RequestNameReply
from dbus_fast.aio import MessageBus
from dbus_fast.annotations import DBusDict, DBusSignature
from dbus_fast.service import ServiceInterface, dbus_method, dbus_signal

STRINGS = Annotated[list, DBusSignature("as")]
UINT = Annotated[int, DBusSignature("u")]
INT = Annotated[int, DBusSignature("i")]
STR = Annotated[str, DBusSignature("s")]
INFO = Annotated[tuple, DBusSignature("ssss")]
SIGNAL = Annotated[tuple, DBusSignature("uu")]
ACTION = Annotated[tuple, DBusSignature("us")]


def say(call, **more):
    print(json.dumps({"call": call, **more}), flush=True)


class Notifications(ServiceInterface):
    def __init__(self, capabilities, hang):
        super().__init__("org.freedesktop.Notifications")
        self.capabilities, self.hang, self.number = capabilities, hang, 0

    async def maybe_hang(self, name):
        if self.hang == name:
            say("hangs", name=name)
            await asyncio.sleep(3600)

    @dbus_method(name="Notify")
    async def notify(
        self,
        app: STR,
        replaces: UINT,
        icon: STR,
        title: STR,
        body: STR,
        actions: STRINGS,
        hints: DBusDict,
        expires: INT,
    ) -> UINT:
        await self.maybe_hang("Notify")
        if not replaces:
            self.number += 1
        number = replaces or self.number
        plain = {key: value.value for key, value in hints.items()}
        say("Notify", id=number, app=app, replaces=replaces, icon=icon, title=title, body=body,
            actions=actions, hints=plain, timeout=expires)  # fmt: skip
        if "close at once" in self.hang:
            asyncio.get_running_loop().call_soon(self.notification_closed, number, 2)
        return number

    @dbus_method(name="CloseNotification")
    async def close_notification(self, number: UINT):
        say("CloseNotification", id=number)
        self.notification_closed(number, 3)

    @dbus_method(name="GetCapabilities")
    async def get_capabilities(self) -> STRINGS:
        await self.maybe_hang("GetCapabilities")
        return self.capabilities

    @dbus_method(name="GetServerInformation")
    def get_server_information(self) -> INFO:
        return ["stand-in", "tests", "1", "1.2"]

    @dbus_signal(name="NotificationClosed")
    def notification_closed(self, number, reason) -> SIGNAL:
        return [number, reason]

    @dbus_signal(name="ActionInvoked")
    def action_invoked(self, number, action) -> ACTION:
        return [number, action]


async def main():
    capabilities = [name for name in sys.argv[1].split(",") if name]
    server = Notifications(capabilities, sys.argv[2])
    bus = await MessageBus().connect()
    bus.export("/org/freedesktop/Notifications", server)
    assert await bus.request_name("org.freedesktop.Notifications") == RequestNameReply.PRIMARY_OWNER
    say("ready")
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        told = json.loads(line)
        if "click" in told:
            server.action_invoked(told["click"], "default")
            server.notification_closed(told["click"], 2)
        else:
            server.notification_closed(told["close"], told["reason"])


asyncio.run(main())
