from __future__ import annotations

import asyncio
import subprocess

import pytest

from agentwrap.host.notifiers import terminal
from tests.lab.outer import Outer

from .conftest import need, until

PLAIN = {"TERM": "xterm-256color"}


def data(message):
    return message["data"].encode()


def test_what_the_terminal_is_known_for(start):
    helper = start(TERM_PROGRAM="ghostty")
    helper.notify(1, channels=("terminal",), body="a; b")
    written = helper.wait("terminal", id=1)
    assert (written["kind"], written["key"], "close" in written) == ("777", "blocked", False)
    assert data(written) == "\x1b]777;notify;Claude Code needs permission;a\uff1b b\a".encode()
    assert helper.wait(id=1)["reason"] == "OSC 777"


def test_what_it_answers_counts_more_and_is_closed(start):
    helper = start(TERM_PROGRAM="ghostty")
    helper.notify(1, channels=("terminal",), osc99=True, env={"AGENTWRAP_SESSION": "claude-7"})
    written = helper.wait("terminal")
    assert data(written).startswith(b"\x1b]99;i=claude-7.blocked:d=0:")
    assert written["close"].encode() == b"\x1b]99;i=claude-7.blocked:p=close;\x1b\\"
    helper.send(op="withdraw", key="blocked")
    assert data(helper.wait("close")) == b"\x1b]99;i=claude-7.blocked:p=close;\x1b\\"


def test_an_update_never_repeats(start):
    helper = start(TERM_PROGRAM="ghostty")
    helper.notify(1, channels=("terminal",))
    helper.wait(id=1)
    helper.send(op="update", id=2, key="blocked", body="new")
    assert helper.wait("update")["reason"] == "not repeated"
    assert len([m for m in helper.said if m["op"] == "terminal"]) == 1


def test_a_terminal_nothing_is_known_of_rings(start):
    helper = start(TERM="dumb")
    helper.notify(1, channels=("terminal",))
    assert data(helper.wait("terminal")) == b"\a"
    assert helper.wait(id=1)["reason"] == "only a bell"


def test_the_bell_channel_only_rings(start):
    helper = start(TERM_PROGRAM="ghostty")
    helper.notify(1, channels=("bell",))
    assert data(helper.wait("bell")) == b"\a"


def test_auto_over_ssh_is_in_band(start):
    helper = start(TERM="xterm-kitty", SSH_CONNECTION="a 1 b 2")
    helper.notify(1, channels=("auto",))
    assert helper.wait("terminal")["kind"] == "99"


class TestTmux:
    @pytest.fixture
    def tmux(self, clean_env, tmp_path):
        need("tmux")
        socket = str(tmp_path / "tmux")
        env = {**clean_env, "SHELL": "/bin/sh"}

        def run(*arguments):
            return subprocess.run(
                ["tmux", "-S", socket, "-f", "/dev/null", *arguments],
                env=env, check=True, capture_output=True, text=True,
            ).stdout.strip()  # fmt: skip

        run("new-session", "-d", "-x", "80", "-y", "24", "sleep 600")
        run.env = {"TMUX": f"{socket},1,0", "TMUX_PANE": run("display-message", "-p", "#{pane_id}")}
        yield run
        run("kill-server")

    @pytest.fixture
    def attached(self, tmux, clean_env, tmp_path):
        """Somebody looks at it, on a terminal that knows OSC 777."""
        environ = {**clean_env, "TERM": "rxvt-unicode-256color"}
        with Outer(["tmux", "-S", str(tmp_path / "tmux"), "attach"], environ=environ) as outer:
            until(lambda: outer.read() or tmux("list-clients"), "a client")
            yield outer

    @pytest.mark.usefixtures("attached")
    def test_wrapped_and_with_its_bell(self, tmux, start):
        tmux("set", "-g", "allow-passthrough", "on")
        helper = start(**tmux.env, TERM="tmux-256color", TERM_PROGRAM="tmux")
        helper.notify(1, channels=("terminal",), body="b")
        written = helper.wait("terminal")
        inner = b"\x1b]777;notify;Claude Code needs permission;b\a"
        assert data(written) == b"\x1bPtmux;" + inner.replace(b"\x1b", b"\x1b\x1b") + b"\x1b\\\a"

    @pytest.mark.usefixtures("attached")
    @pytest.mark.parametrize(
        "hide",
        [
            pytest.param(["new-window", "sleep 600"], id="another window"),
            pytest.param(["split-window", "-Z", "sleep 600"], id="zoomed"),
        ],
    )
    def test_only_its_bell_gets_out_of_a_pane_that_is_not_seen(self, hide, tmux, start):
        tmux("set", "-g", "allow-passthrough", "on")
        tmux(*hide)
        helper = start(**tmux.env, TERM="tmux-256color")
        helper.notify(1, channels=("terminal",))
        assert data(helper.wait("terminal")) == b"\a"
        told = helper.wait(id=1)
        assert told["ok"]
        assert told["reason"].startswith("only a bell: tmux shows another window")

    def test_attached_nowhere_it_rings_and_the_next_channel_is_used(self, tmux, start):
        tmux("set", "-g", "allow-passthrough", "on")
        helper = start(**tmux.env, WEZTERM_PANE="3", TERM="tmux-256color")
        helper.notify(1, channels=("terminal", "command"), command=["true"])
        assert data(helper.wait("terminal")) == b"\a"
        told = helper.wait(id=1, channel="terminal")
        assert (told["ok"], told["reason"]) == (False, "only a bell: tmux is attached nowhere")
        assert helper.wait(id=1, channel="command")["ok"]

    @pytest.mark.usefixtures("attached")
    def test_a_group_that_is_attached_elsewhere_is_attached(self, tmux, start, attached):
        tmux("new-session", "-d", "-t", "0", "-s", "other")
        tmux("switch-client", "-t", "other")
        tmux("set", "-g", "allow-passthrough", "on")
        helper = start(**tmux.env, TERM="tmux-256color")
        helper.notify(1, channels=("terminal",))
        assert helper.wait("terminal")["kind"] == "777"
        tmux("new-window", "sleep 600")
        helper.notify(2, channels=("terminal",))
        assert "another window" in helper.wait(id=2)["reason"]

    @pytest.mark.parametrize(
        ("said", "way"),
        [
            ("", ""),  # it does not answer
            ("xterm\t\t\t\t1\t\t0\t1", ""),  # before 3.3, and of no clients
            ("xterm\t\tall\t0\t1\t\t0\t1", ""),
            ("xterm\t\ton\t0\t1\t\t0\t1", "another window"),
            ("xterm\t\t1\t1\t1\t\t1\t0", "another window"),
            ("xterm\t\t0\t1\t1\t\t0\t1", "allow-passthrough off"),
        ],
    )
    def test_what_tmux_says_is_in_the_way(self, said, way, monkeypatch):
        async def says(environ, form):
            return said

        monkeypatch.setattr(terminal, "tmux_says", says)
        found = asyncio.run(terminal.ask_tmux({}))
        assert found.attached
        assert way in found.in_the_way
        assert bool(way) is bool(found.in_the_way)

    @pytest.mark.usefixtures("attached")
    def test_what_it_passes_on_of_the_program_itself_is_not_repeated(self, tmux, start):
        tmux("set", "-g", "allow-passthrough", "on")
        helper = start(**tmux.env, TERM="tmux-256color")
        failing = {"channels": ("command", "terminal", "bell"), "command": ["false"]}
        helper.notify(1, own=777, **failing)
        assert not helper.wait(id=1, channel="command")["last"]
        told = helper.wait(id=1, channel="terminal")
        assert (told["ok"], told["last"]) == (True, True)
        assert told["reason"] == "the terminal shows the program's own OSC 777"
        helper.notify(2, own=777, channels=("command", "terminal"), command=["true"])
        assert helper.wait(id=2)["channel"] == "command"
        helper.notify(3, own=777, channels=("bell",))
        assert helper.wait(id=3)["channel"] == "bell"
        assert [message["op"] for message in helper.said if "data" in message] == ["bell"]
        # not shown: a kind it does not know, and what comes out of a window that is not in view
        helper.notify(4, own=9, channels=("terminal",))
        assert helper.wait("terminal", id=4)["kind"] == "777"
        tmux("new-window", "sleep 600")
        helper.notify(5, own=777, channels=("terminal",))
        assert helper.wait("terminal", id=5)["kind"] == "bel"

    @pytest.mark.usefixtures("attached")
    def test_without_passthrough_only_the_bell_gets_through(self, tmux, start):
        tmux("set", "-g", "allow-passthrough", "off")
        helper = start(**tmux.env, WEZTERM_PANE="3", TERM="tmux-256color")
        helper.notify(1, channels=("terminal",))
        assert data(helper.wait("terminal")) == b"\a"
        assert helper.wait(id=1)["reason"] == "only a bell: tmux has allow-passthrough off"

    def test_auto_goes_where_tmux_is_attached_from_now(self, tmux, start):
        # started over ssh, attached at the desk
        tmux("set-environment", "-r", "SSH_CONNECTION")
        helper = start(**tmux.env, SSH_CONNECTION="a 1 b 2", SSH_TTY="/dev/pts/1")
        helper.notify(1, channels=("auto",))
        assert helper.wait(id=1)["channel"] == "desktop"
        # started at the desk, attached over ssh
        tmux("set-environment", "SSH_CONNECTION", "a 1 b 2")
        helper = start(**tmux.env)
        helper.notify(2, channels=("auto",))
        assert helper.wait(id=2)["channel"] == "terminal"

    def test_a_tmux_that_is_gone_or_hangs_does_not_matter(self, start, tmp_path):
        fake = tmp_path / "tmux"
        fake.write_text("#!/bin/sh\nexec sleep 60\n")
        fake.chmod(0o755)
        helper = start(TMUX="x", PATH=f"{tmp_path}:/usr/bin:/bin", WEZTERM_PANE="1", TERM="tmux")
        helper.notify(1, channels=("terminal",))
        assert helper.wait("terminal", timeout=5)["kind"] == "777"
        helper = start(TMUX=f"{tmp_path}/none,1,0", WEZTERM_PANE="1", TERM="tmux")
        helper.notify(1, channels=("terminal",))
        assert until(lambda: helper.wait("terminal"), "an answer")["kind"] == "777"


class TestAsking:
    def test_one_that_answers_gets_osc_99(self, start):
        helper = start(**PLAIN)
        helper.notify(1, channels=("terminal",))
        assert helper.wait("ask", id=1)["key"] == "blocked"
        helper.send(op="answer", osc99=True)
        assert helper.wait("terminal", id=1)["kind"] == "99"

    @pytest.mark.parametrize("answer", [False, None])
    def test_one_that_does_not_rings(self, start, answer):
        helper = start(**PLAIN)
        helper.notify(1, channels=("terminal",))
        helper.wait("ask", id=1)
        if answer is not None:
            helper.send(op="answer", osc99=answer)
        assert helper.wait("terminal", id=1, timeout=5)["kind"] == "bel"

    @pytest.mark.parametrize("known", [{"TERM": "dumb"}, {"TERM_PROGRAM": "iTerm.app"}])
    def test_one_that_is_known_is_not_asked(self, start, known):
        helper = start(**{**PLAIN, **known})
        helper.notify(1, channels=("terminal",))
        helper.wait("terminal", id=1)
        assert [message for message in helper.said if message["op"] == "ask"] == []

    def test_one_that_was_asked_before_is_not_asked_again(self, start):
        helper = start(**PLAIN)
        helper.notify(1, channels=("terminal",), osc99=False)
        assert helper.wait("terminal", id=1)["kind"] == "bel"
        assert [message for message in helper.said if message["op"] == "ask"] == []

    def test_an_answer_nobody_waits_for_is_nothing(self, start):
        helper = start(**PLAIN)
        helper.send(op="answer", osc99=True)
        helper.notify(1, channels=("bell",))
        assert helper.wait(id=1)["ok"]
