from __future__ import annotations

import asyncio
import json

import pytest

from agentwrap.host.notifiers import helper as helper_module
from agentwrap.host.notifiers.helper import QUEUE, Helper
from agentwrap.host.notifiers.notice import Outcome


class Fake:
    """A channel that takes what it is given, or does not, when it is let."""

    def __init__(self, outcome=None, *, hangs=False, error=None):
        self.outcome = outcome or Outcome(ok=True)
        self.error = error
        self.calls = []
        self.gate = asyncio.Event()
        if not hangs:
            self.gate.set()

    async def _call(self, what, notice):
        self.calls.append((what, notice.key, notice.title, notice.body))
        await self.gate.wait()
        if self.error:
            raise self.error
        return self.outcome

    async def show(self, notice):
        return await self._call("show", notice)

    async def update(self, notice):
        return await self._call("update", notice)

    async def withdraw(self, notice):
        return await self._call("withdraw", notice)

    async def close(self):
        pass


class World:
    def __init__(self, **channels):
        self.said = []
        self.channels = channels
        self.helper = Helper(channels, self.said.append, {}, "linux")
        self.task = asyncio.create_task(self.helper.run())

    def notify(self, number, kind="blocked", channels=("desktop",), title="t", body="b"):
        message = {"op": "notify", "id": number, "key": kind, "type": kind, "title": title, "body": body}
        self.helper.line(json.dumps({**message, "channels": list(channels)}).encode())

    def tell(self, **message):
        self.helper.line(json.dumps(message).encode())

    async def settle(self):
        for _ in range(50):
            await asyncio.sleep(0)

    def results(self):
        return [(m["op"], m["id"], m["channel"], m["ok"], m["last"]) for m in self.said]


def scenario(test):
    def run(monkeypatch):
        monkeypatch.setattr(helper_module, "TIMEOUT", 0.05)
        monkeypatch.setattr(helper_module, "LAST_WORDS", 0.3)
        monkeypatch.setattr(helper_module.signal, "alarm", lambda _: None)
        asyncio.run(test())

    run.__name__ = test.__name__
    return run


@scenario
async def test_the_first_channel_that_takes_it_is_the_only_one():
    world = World(desktop=Fake(), bell=Fake())
    world.notify(1, channels=("desktop", "bell"))
    await world.settle()
    assert world.results() == [("result", 1, "desktop", True, True)]
    assert world.channels["bell"].calls == []


@scenario
async def test_a_channel_that_refuses_raises_or_hangs_is_followed_by_the_next():
    world = World(
        desktop=Fake(Outcome(ok=False, reason="no")),
        command=Fake(error=RuntimeError("broken")),
        terminal=Fake(hangs=True),
        bell=Fake(),
    )
    world.notify(1, channels=("desktop", "command", "terminal", "bell"))
    await asyncio.sleep(0.4)
    assert world.results() == [
        ("result", 1, "desktop", False, False),
        ("result", 1, "command", False, False),
        ("result", 1, "terminal", False, False),
        ("result", 1, "bell", True, True),
    ]
    assert [m["reason"] for m in world.said] == ["no", "RuntimeError: broken", "no answer within 0.05 s", ""]


@scenario
async def test_the_last_channel_that_fails_says_that_it_was_the_last():
    world = World(desktop=Fake(Outcome(ok=False)), bell=Fake(Outcome(ok=False)))
    world.notify(1, channels=("desktop", "bell"))
    world.notify(2, channels=())
    await world.settle()
    assert world.results() == [
        ("result", 1, "desktop", False, False),
        ("result", 1, "bell", False, True),
        ("result", 2, "", False, True),
    ]


@scenario
async def test_an_update_and_a_withdrawal_go_where_the_notice_went():
    world = World(desktop=Fake(Outcome(ok=False)), bell=Fake())
    world.notify(1, "done", ("desktop", "bell"))
    await world.settle()
    for message in (
        {"op": "update", "id": 2, "key": "done", "body": "new"},
        {"op": "withdraw", "key": "done"},
        {"op": "withdraw", "key": "done"},
        {"op": "update", "id": 3, "key": "done", "body": "late"},
    ):
        world.tell(**message)
        await world.settle()
    assert world.channels["bell"].calls == [
        ("show", "done", "t", "b"),
        ("update", "done", "t", "new"),
        ("withdraw", "done", "t", "new"),
    ]
    assert [call[0] for call in world.channels["desktop"].calls] == ["show"]


@scenario
async def test_what_still_waits_is_updated_and_withdrawn_there():
    world = World(desktop=Fake(hangs=True))
    world.notify(1, "exit")
    await world.settle()
    world.notify(2, "done")
    world.tell(op="update", id=3, key="done", title="newer", body="better")
    world.notify(4, "blocked")
    world.tell(op="withdraw", key="blocked")
    world.channels["desktop"].gate.set()
    await world.settle()
    assert world.channels["desktop"].calls == [
        ("show", "exit", "t", "b"),
        ("show", "done", "newer", "better"),
    ]
    assert ("result", 4, "", False, True) in world.results()


@scenario
async def test_a_withdrawal_stops_the_search_for_a_channel():
    world = World(desktop=Fake(Outcome(ok=False), hangs=True), bell=Fake())
    world.notify(1, channels=("desktop", "bell"))
    await world.settle()
    world.tell(op="withdraw", key="blocked")
    world.channels["desktop"].gate.set()
    await world.settle()
    assert world.channels["bell"].calls == []
    assert world.results()[-1] == ("result", 1, "bell", False, True)


@scenario
async def test_a_withdrawal_during_delivery_takes_it_back():
    world = World(desktop=Fake(hangs=True))
    world.notify(1)
    await world.settle()
    world.tell(op="withdraw", key="blocked")
    world.channels["desktop"].gate.set()
    await world.settle()
    assert [call[0] for call in world.channels["desktop"].calls] == ["show", "withdraw"]


@scenario
async def test_a_second_notice_of_a_key_takes_the_place_of_the_first():
    world = World(desktop=Fake())
    world.notify(1)
    world.notify(2)
    await world.settle()
    assert [call[0] for call in world.channels["desktop"].calls] == ["show", "withdraw", "show"]


@scenario
async def test_a_full_queue_drops_the_oldest_but_a_blocked_last():
    world = World(desktop=Fake(hangs=True))
    world.notify(0, "exit")
    await world.settle()
    world.notify(1, "blocked")
    for number in range(2, QUEUE + 4):
        world.notify(number, "done")
    assert world.results() == [
        ("result", 2, "", False, True),
        ("result", 3, "", False, True),
        ("result", 4, "", False, True),
    ]


@scenario
async def test_a_full_queue_never_drops_a_withdrawal():
    world = World(desktop=Fake())
    world.notify(0, "done")
    await world.settle()
    world.channels["desktop"].gate.clear()
    world.notify(1, "exit")
    await world.settle()
    world.tell(op="withdraw", key="done")
    for number in range(2, 2 * QUEUE):
        world.notify(number, f"k{number}")
    world.channels["desktop"].gate.set()
    await asyncio.sleep(0.1)
    assert ("withdraw", "done", "t", "b") in world.channels["desktop"].calls


@scenario
async def test_a_thousand_updates_are_one():
    world = World(desktop=Fake())
    world.notify(1, "done")
    await world.settle()
    for number in range(1000):
        world.tell(op="update", id=number, key="done", body=f"text {number}")
    await world.settle()
    assert world.channels["desktop"].calls[1:] == [("update", "done", "t", "text 999")]


@scenario
async def test_last_words():
    world = World(desktop=Fake())
    for number, kind in enumerate(("blocked", "done", "error", "exit")):
        world.notify(number, kind)
    await world.helper.finish()
    calls = [call[:2] for call in world.channels["desktop"].calls]
    assert calls[:4] == [("show", "blocked"), ("show", "done"), ("show", "error"), ("show", "exit")]
    assert calls[4:] == [("withdraw", "blocked"), ("withdraw", "done"), ("withdraw", "error")]


@scenario
async def test_last_words_do_not_take_for_ever():
    world = World(desktop=Fake(hangs=True))
    for number in range(40):
        world.notify(number, "exit")
    loop = asyncio.get_running_loop()
    began = loop.time()
    await world.helper.finish()
    assert loop.time() - began < 1


@pytest.mark.parametrize(
    "line", [b"", b"nonsense", b"[]", b"3", b'{"op": "format"}', b"{}", b"\xff", b"[" * 100000]
)
def test_what_is_no_message_is_ignored(line):
    async def run():
        world = World(desktop=Fake())
        world.helper.line(line)
        world.notify(1)
        await world.settle()
        assert world.results() == [("result", 1, "desktop", True, True)]

    asyncio.run(run())
