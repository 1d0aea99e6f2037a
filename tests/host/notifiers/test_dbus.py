from __future__ import annotations

import os
import signal
import socket
import time

import pytest

from agentwrap.host.notifiers import dbus

TITLE = "Claude Code needs permission"


class TestDunst:
    def test_shows_replaces_in_place_and_withdraws(self, dunst, address, start):
        helper = start(DBUS_SESSION_BUS_ADDRESS=address)

        helper.notify(1)
        assert helper.wait(id=1)["ok"]
        assert (dunst.displayed(), dunst.history()) == (1, [])

        helper.send(op="update", id=2, key="blocked", body="approve Bash: touch y")
        assert helper.wait("update", id=2)["ok"]
        assert (dunst.displayed(), dunst.history()) == (1, [])

        helper.send(op="withdraw", key="blocked")
        assert helper.wait("withdraw")["ok"]
        assert dunst.displayed() == 0
        assert dunst.history() == [(TITLE, "approve Bash: touch y")]

    def test_text_is_shown_literally(self, dunst, address, start):
        helper = start(DBUS_SESSION_BUS_ADDRESS=address)
        body = 'approve Bash: cat <<EOF >a && <b>x</b> &amp; "q" \U0001f600 é'

        helper.notify(1, body=body, title="<i>A</i> & co needs permission")
        assert helper.wait(id=1)["ok"]
        dunst.ctl("close-all")

        # dunst keeps a body as it came, escaped; as it is shown, that is this:
        shown = body.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        assert dunst.history() == [("<i>A</i> & co needs permission", shown)]

    def test_the_end_of_a_session_withdraws_its_state_and_leaves_its_exit(self, dunst, address, start):
        helper = start(DBUS_SESSION_BUS_ADDRESS=address)
        for number, kind in enumerate(("blocked", "done", "error", "exit")):
            helper.notify(number, kind, title=kind)
            assert helper.wait(id=number)["ok"]
        assert dunst.displayed() == 4

        helper.end()

        assert dunst.displayed() == 1
        assert {title for title, _ in dunst.history()} == {"blocked", "done", "error"}

    def test_a_server_that_dies_in_between_is_a_failure_and_its_successor_is_used(
        self, dunst, address, start
    ):
        helper = start(DBUS_SESSION_BUS_ADDRESS=address)
        helper.notify(1)
        assert helper.wait(id=1)["ok"]

        dunst.kill()
        helper.notify(2, channels=("desktop", "bell"))
        failed = helper.wait(id=2, channel="desktop")
        assert (failed["ok"], failed["last"]) == (False, False)
        assert failed["reason"] == "no notification server is running"
        assert helper.wait(id=2, channel="bell")["ok"]

        dunst.restart()
        helper.notify(3)
        assert helper.wait(id=3)["ok"]
        assert dunst.displayed() == 1

    def test_what_a_successor_shows_under_the_same_number_is_somebody_elses(self, dunst, address, start):
        helper, other = start(DBUS_SESSION_BUS_ADDRESS=address), start(DBUS_SESSION_BUS_ADDRESS=address)
        helper.notify(1)
        helper.notify(2, "done")
        assert helper.wait(id=2)["ok"]
        dunst.restart()  # it counts from the beginning
        other.notify(1, title="A")
        other.notify(2, "done", title="B")
        assert other.wait(id=2)["ok"]

        helper.send(op="update", id=3, key="done", title="C", body="new")
        assert helper.wait("update")["reason"] == "no longer shown"
        helper.send(op="withdraw", key="blocked")
        assert helper.wait("withdraw")["reason"] == "no longer shown"

        assert (dunst.displayed(), dunst.history()) == (2, [])
        dunst.ctl("close-all")
        assert {title for title, _ in dunst.history()} == {"A", "B"}

    def test_it_is_withdrawn_also_when_the_bus_has_hung_meanwhile(self, bus, dunst, address, start):
        helper = start(DBUS_SESSION_BUS_ADDRESS=address)
        helper.notify(1)
        assert helper.wait(id=1)["ok"]
        os.kill(bus.pid, signal.SIGSTOP)
        helper.send(op="update", id=2, key="blocked", title="", body="new")
        assert "did not answer within 3 s" in helper.wait("update")["reason"]
        os.kill(bus.pid, signal.SIGCONT)
        assert dunst.displayed() == 1
        helper.send(op="withdraw", key="blocked")
        assert helper.wait("withdraw")["ok"]
        assert dunst.displayed() == 0


class TestWhatIsAskedOfTheServer:
    def test_blocked_stays_and_done_goes_by_itself(self, serve, address, start):
        server, helper = serve(), start(DBUS_SESSION_BUS_ADDRESS=address)
        helper.notify(1, "blocked")
        helper.notify(2, "done", sound=False)
        blocked, done = server.wait("Notify"), server.wait("Notify", 2)
        assert (blocked["timeout"], done["timeout"]) == (0, -1)
        assert blocked["hints"] == {"urgency": 1, "sound-name": "message-new-instant"}
        assert done["hints"] == {"urgency": 1}
        assert (blocked["app"], blocked["replaces"]) == ("agentwrap", 0)

    def test_markup_is_escaped_only_for_a_server_that_reads_it(self, serve, address, start):
        server, helper = serve(), start(DBUS_SESSION_BUS_ADDRESS=address)
        helper.notify(1, body="a <b> & c")
        assert server.wait("Notify")["body"] == "a <b> & c"

    def test_markup_is_escaped_for_a_server_that_reads_it(self, serve, address, start):
        server = serve(capabilities=("body", "body-markup"))
        start(DBUS_SESSION_BUS_ADDRESS=address).notify(1, body="a <b> & c")
        assert server.wait("Notify")["body"] == "a &lt;b&gt; &amp; c"

    def test_an_update_names_what_it_replaces_and_is_silent(self, serve, address, start):
        server, helper = serve(), start(DBUS_SESSION_BUS_ADDRESS=address)
        helper.notify(1, "done")
        shown = server.wait("Notify")
        helper.send(op="update", id=2, key="done", title="Claude Code finished", body="new")
        newer = server.wait("Notify", 2)
        assert (newer["replaces"], newer["id"], newer["body"]) == (shown["id"], shown["id"], "new")
        assert newer["title"] == "Claude Code finished"
        assert newer["hints"] == {"urgency": 1}

    def test_what_was_dismissed_is_not_brought_back(self, serve, address, start):
        server, helper = serve(), start(DBUS_SESSION_BUS_ADDRESS=address)
        helper.notify(1, "done")
        helper.wait(id=1)
        server.tell(close=99, reason=2)  # another program's
        server.tell(close=server.wait("Notify")["id"], reason=2)
        time.sleep(0.3)  # the signal has no answer to wait for
        helper.send(op="update", id=2, key="done", title="", body="new")
        assert helper.wait("update")["reason"] == "no longer shown"
        helper.send(op="withdraw", key="done")
        assert helper.wait("withdraw")["reason"] == "no longer shown"
        assert len(server.of("Notify")) == 1
        assert server.of("CloseNotification") == []

    def test_what_is_closed_at_once_is_known_to_be_gone(self, serve, address, start):
        server, helper = serve(hang="nothing, but close at once"), start(DBUS_SESSION_BUS_ADDRESS=address)
        helper.notify(1, "done")
        assert helper.wait(id=1)["ok"]
        time.sleep(0.3)
        helper.send(op="update", id=2, key="done", title="", body="new")
        assert helper.wait("update")["reason"] == "no longer shown"
        assert len(server.of("Notify")) == 1

    def test_a_click_is_told(self, serve, address, start):
        server, helper = serve(), start(DBUS_SESSION_BUS_ADDRESS=address)
        helper.notify(7)
        shown = server.wait("Notify")
        assert shown["actions"] == ["default", ""]
        helper.wait(id=7)
        server.tell(click=shown["id"])
        assert helper.wait("click") == {"op": "click", "id": 7, "key": "blocked"}


class TestWhereItCannotBeDelivered:
    def test_no_bus(self, start):
        helper = start()
        helper.notify(1, channels=("desktop",))
        failed = helper.wait(id=1, timeout=2)
        assert (failed["ok"], failed["last"]) == (False, True)
        assert failed["reason"] == "there is no session bus (DBUS_SESSION_BUS_ADDRESS is not set)"

    def test_a_bus_that_is_gone(self, start, tmp_path):
        helper = start(DBUS_SESSION_BUS_ADDRESS=f"unix:path={tmp_path}/gone")
        helper.notify(1, channels=("desktop", "bell"))
        assert "does not run" in helper.wait(id=1, timeout=2)["reason"]
        assert helper.wait(id=1)["channel"] == "bell"

    def test_a_bus_without_a_server(self, address, start):
        helper = start(DBUS_SESSION_BUS_ADDRESS=address)
        helper.notify(1)
        assert helper.wait(id=1, timeout=2)["reason"] == "no notification server is running"

    @pytest.mark.parametrize("wrong", ["nonsense", "unix:path", "tcp:host=x,port=y", "unix:path=/ä"])
    def test_an_address_that_is_none(self, wrong, start):
        helper = start(DBUS_SESSION_BUS_ADDRESS=wrong)
        helper.notify(1)
        assert not helper.wait(id=1, timeout=3.5)["ok"]

    def test_a_bus_that_hangs_costs_its_time_once(self, start, tmp_path_factory):
        path = tmp_path_factory.mktemp("b") / "bus"
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(str(path))
            listening.listen(1)
            helper = start(DBUS_SESSION_BUS_ADDRESS=f"unix:path={path}")
            began = time.monotonic()
            helper.notify(1, channels=("desktop", "bell"))
            assert helper.wait(id=1)["reason"] == "the session bus did not answer within 3 s"
            assert helper.wait(id=1)["channel"] == "bell"
            assert 2.9 < time.monotonic() - began < 4.5
            helper.notify(2, channels=("desktop", "bell"))
            assert helper.wait(id=2)["reason"] == "the session bus did not answer lately"
            assert time.monotonic() - began < 4.5

    @pytest.mark.parametrize("hang", ["Notify", "GetCapabilities"])
    def test_a_server_that_hangs(self, hang, serve, address, start):
        server = serve(hang=hang)
        helper = start(DBUS_SESSION_BUS_ADDRESS=address)
        helper.notify(1, channels=("desktop", "bell"))
        server.wait("hangs")
        assert "did not answer within 3 s" in helper.wait(id=1)["reason"]
        assert helper.wait(id=1)["channel"] == "bell"

    def test_a_bus_that_dies_in_between(self, bus, serve, address, start):
        serve()
        helper = start(DBUS_SESSION_BUS_ADDRESS=address)
        helper.notify(1)
        assert helper.wait(id=1)["ok"]
        bus.kill()
        bus.wait()
        helper.notify(2, channels=("desktop", "bell"))
        assert not helper.wait(id=2, timeout=5)["ok"]
        assert helper.wait(id=2)["ok"]
        helper.end()


def test_the_bus_is_found_where_systemd_puts_it(tmp_path):
    assert dbus.find_bus({"XDG_RUNTIME_DIR": str(tmp_path)}) is None
    (tmp_path / "bus").touch()
    assert dbus.find_bus({"XDG_RUNTIME_DIR": str(tmp_path)}) == f"unix:path={tmp_path}/bus"
    assert dbus.find_bus({"DBUS_SESSION_BUS_ADDRESS": "unix:x=y"}) == "unix:x=y"
