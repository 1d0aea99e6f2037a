"""What is news arrives, once, where the user is, and costs the session nothing."""

from __future__ import annotations

import base64
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.lab.outer import AGENTWRAP, Outer, until
from tests.lab.puppet import Puppet, Strings, report
from tests.lab.tools import require

COMMAND = r"""
import json, os, sys
told = {name: value for name, value in os.environ.items() if name.startswith("AGENTWRAP_") and name != "AGENTWRAP_STATE_DIR"}
fd = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
os.write(fd, json.dumps(told).encode() + b"\n")
sys.exit(int(sys.argv[2]))
"""

NEEDS = report("blocked", "approve Bash: touch x", kind="permission")


@pytest.fixture
def start(tmp_path, environ):
    """Start wrapped puppets, which do not outlive the test."""
    puppets = []

    def start(*options, before=(), **more):
        puppets.append(Puppet(tmp_path, options, {**environ, **more}, before=before))
        return puppets[-1]

    yield start
    for puppet in puppets:
        puppet.__exit__()


class Told:
    """A configuration with a command channel, and what the command was told."""

    def __init__(self, folder):
        self.path = folder / "told"
        self._config = folder / "config.toml"
        self.configure()

    def configure(self, code=0, **keys):
        command = [sys.executable, "-S", "-c", COMMAND, str(self.path), str(code)]
        lines = [f"{key} = {json.dumps(value)}" for key, value in {"command": command, **keys}.items()]
        self._config.write_text("[notify]\n" + "\n".join(lines) + "\n")
        return self.options

    @property
    def options(self):
        return ["--config", str(self._config), "--notify", "command"]

    def all(self):
        return [json.loads(line) for line in self.path.read_text().splitlines()] if self.path.exists() else []

    def wait(self, count):
        until(lambda: len(self.all()) >= count, what=f"{count} of {self.all()}")
        return self.all()[count - 1]

    def events(self):
        return [one["AGENTWRAP_EVENT"] for one in self.all()]


@pytest.fixture
def told(tmp_path):
    return Told(tmp_path)


def live(state_dir):
    for file in state_dir.glob("*.json"):
        return json.loads(file.read_text())
    return None


def events(state_dir):
    """What `explain` has to go by."""
    return [json.loads(line) for file in state_dir.glob("*.events") for line in file.read_text().splitlines()]


def helper_of(state_dir):
    """The notification helper's pid."""
    leader = psutil.Process(psutil.Process(live(state_dir)["child_pid"]).ppid())
    for child in leader.children():
        try:
            if "notifiers" in " ".join(child.cmdline()):
                return child.pid
        except psutil.Error:
            continue  # it is just ending
    return None


def settle(puppet, seconds=1.0):
    """See what else comes, within reason."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        puppet.outer.read(0.05)


# ---- the command channel


class TestCommand:
    def test_is_told_of_each_event_once_and_of_no_update(self, start, told, tmp_path):
        puppet = start("--name", "shop", *told.options)
        puppet.write(report("idle") + report("working") + NEEDS)
        first = told.wait(1)
        session = first["AGENTWRAP_SESSION"]
        assert first == {
            "AGENTWRAP_EVENT": "blocked",
            "AGENTWRAP_STATE": "blocked",
            "AGENTWRAP_KIND": "permission",
            "AGENTWRAP_AGENT": session.rpartition("-")[0],
            "AGENTWRAP_TITLE": "Claude Code needs permission",
            "AGENTWRAP_BODY": "approve Bash: touch x\nshop",
            "AGENTWRAP_SESSION": session,
            "AGENTWRAP_CWD": str(tmp_path),
        }
        puppet.write(report("working") + report("done", "all is well; is it?"))
        second = told.wait(2)
        assert (second["AGENTWRAP_EVENT"], second["AGENTWRAP_KIND"]) == ("done", "")
        assert second["AGENTWRAP_TITLE"] == "Claude Code finished with a question"
        puppet.write(report("done", "a better summary"))
        settle(puppet, 2)
        puppet.write(report("working") + report("error", "API Error: 400 $(touch y)"))
        third = told.wait(3)
        assert third["AGENTWRAP_TITLE"] == "Claude Code hit an error"
        settle(puppet, 1.1)  # there is at most one a second
        puppet.die()
        assert puppet.outer.wait() == signal.SIGKILL
        fourth = told.wait(4)
        assert fourth["AGENTWRAP_EVENT"] == "exit"
        assert fourth["AGENTWRAP_TITLE"] == "Claude Code was killed (SIGKILL)"
        assert fourth["AGENTWRAP_BODY"] == "shop"
        assert told.events() == ["blocked", "done", "error", "exit"]

    def test_any_signal_has_its_name(self, start, told):
        start(*told.options).die(signal.SIGXCPU)
        assert told.wait(1)["AGENTWRAP_TITLE"].endswith(" was killed (SIGXCPU)")

    def test_what_was_left_in_time_is_not_told(self, start, told):
        puppet = start(*told.options)
        puppet.write(NEEDS)
        settle(puppet, 0.2)
        puppet.write(report("working"))
        settle(puppet, 1.5)
        assert told.all() == []

    def test_one_that_fails_is_followed_by_the_next_channel(self, start, told):
        options = told.configure(code=3)
        puppet = start(*options[:-1], "command,bell")
        puppet.write(NEEDS)
        puppet.outer.expect(NEEDS + b"\a")
        assert told.events() == ["blocked"]

    def test_waits_until_nobody_looks(self, start, told):
        puppet = start(*told.options)
        puppet.write(b"\x1b[?1004h")
        puppet.outer.expect(b"1004h")
        puppet.outer.send(b"\x1b[I")
        until(lambda: puppet.heard() == b"\x1b[I")
        puppet.write(NEEDS)
        settle(puppet, 1)
        puppet.outer.send(b"\x1b[O")
        puppet.write(report("working") + NEEDS)
        told.wait(1)
        settle(puppet, 0.5)
        assert told.events() == ["blocked"]

    def test_none_is_none(self, start, told, state_dir):
        puppet = start(*told.options[:-1], "none")
        puppet.write(NEEDS)
        until(lambda: [e for e in events(state_dir) if e["reason"] == "there is no channel"])
        assert told.all() == []
        assert helper_of(state_dir) is None
        assert puppet.wrote == NEEDS

    def test_escalation_runs_it_only_where_the_user_does_not_come(self, start, told, state_dir):
        options = told.configure(escalate_after=1.5)
        puppet = start(*options)
        began = time.monotonic()
        puppet.write(NEEDS)
        assert told.wait(1)["AGENTWRAP_EVENT"] == "blocked"
        assert time.monotonic() - began > 1.4
        puppet.write(report("working") + NEEDS)
        settle(puppet, 1)
        puppet.write(report("working"))
        settle(puppet, 1.5)
        assert told.events() == ["blocked"]

    def test_escalation_runs_it_also_where_it_is_no_channel(self, start, told):
        options = told.configure(escalate_after=1.0)
        puppet = start(*options[:-1], "bell")
        puppet.write(NEEDS)
        puppet.outer.expect(NEEDS + b"\a")
        assert told.all() == []
        assert told.wait(1)["AGENTWRAP_EVENT"] == "blocked"
        at = len(puppet.wrote)
        puppet.write(report("done", "well"))
        puppet.outer.expect(b"\a", start=at)
        assert told.events() == ["blocked"]

    def test_quiet_hours_are_those_of_the_moment_it_is_due(self, start, told, state_dir):
        now = time.localtime()
        minute = now.tm_hour * 60 + now.tm_min
        hours = "{:02}:{:02}-{:02}:{:02}".format(*divmod(minute, 60), *divmod((minute + 3) % 1440, 60))
        puppet = start(*told.configure(quiet_hours=hours))
        puppet.write(NEEDS)
        until(lambda: [e for e in events(state_dir) if e["reason"] == "quiet hours"])
        puppet.die()
        puppet.outer.wait()
        assert told.all() == []


# ---- the terminal


class TestTerminal:
    @pytest.mark.parametrize(
        "known, wanted",
        [
            ({"TERM_PROGRAM": "ghostty"}, b"\x1b]777;notify;Claude Code needs permission;%s\a"),
            ({"TERM_PROGRAM": "WezTerm"}, b"\x1b]777;notify;Claude Code needs permission;%s\a"),
            ({"TERM": "foot"}, b"\x1b]777;notify;Claude Code needs permission;%s\a"),
            ({"TERM": "rxvt-unicode-256color"}, b"\x1b]777;notify;Claude Code needs permission;%s\a"),
            ({"TERM_PROGRAM": "iTerm.app"}, b"\x1b]9;Claude Code needs permission: %s\a"),
            ({"TERM": "dumb"}, b"\a"),
        ],
    )
    def test_gets_what_it_is_known_to_show(self, start, known, wanted):
        puppet = start("--name", "shop", "--notify", "terminal", **known)
        puppet.write(NEEDS)
        wanted = wanted.replace(b"%s", b"approve Bash: touch x - shop")
        puppet.outer.expect(NEEDS + wanted)
        settle(puppet)
        puppet.write(report("blocked", "another text", kind="permission"))
        settle(puppet, 1.5)
        puppet.exit()
        puppet.outer.wait()
        assert puppet.wrote.count(wanted) == 1
        assert b"]99;" not in puppet.wrote

    def test_that_is_not_known_is_asked_and_rung_where_it_does_not_answer(self, start, state_dir):
        puppet = start("--notify", "terminal")
        puppet.write(NEEDS)
        session = until(lambda: live(state_dir))["session"].encode()
        query = b"\x1b]99;i=%s:p=?;\x1b\\" % session
        at = puppet.outer.expect(NEEDS + query + b"\a")
        puppet.write(report("working") + report("done", "well"))
        puppet.outer.expect(b"\a", start=at)
        assert puppet.wrote.count(query) == 1, "it is asked once"
        # over a slow line the answer may come late: it is for us all the same
        puppet.outer.send(b"a\x1b]99;i=%s:p=?;o=always\x1b\\b" % session)
        until(lambda: puppet.heard() == b"ab")

    def test_that_answers_gets_osc_99_and_closes_it(self, start, state_dir):
        puppet = start("--name", "shop", "--notify", "terminal")
        puppet.write(NEEDS)
        session = until(lambda: live(state_dir))["session"].encode()
        puppet.outer.expect(b"\x1b]99;i=%s:p=?;\x1b\\" % session)
        puppet.outer.send(b"\x1b]99;i=%s:p=?;a=focus:o=always:u=0,1,2:p=title,body,?,close\x1b\\" % session)
        ident = b"i=%s.blocked" % session
        title = base64.b64encode(b"Claude Code needs permission")
        body = base64.b64encode(b"approve Bash: touch x\nshop")
        shown = b"\x1b]99;%s:d=0:e=1:p=title:u=1;%s\x1b\\\x1b]99;%s:d=1:e=1:p=body;%s\x1b\\"
        puppet.outer.expect(shown % (ident, title, ident, body))
        assert puppet.heard() == b"", "the answer is not for the program"
        puppet.write(report("working"))
        close = b"\x1b]99;i=%s.%s:p=close;\x1b\\"
        at = puppet.outer.expect(close % (session, b"blocked"))
        puppet.write(report("done", "well"))
        at = puppet.outer.expect(b"\x1b]99;i=%s.done:d=0" % session, start=at)
        puppet.exit()
        puppet.outer.wait()
        assert puppet.wrote.endswith(close % (session, b"done"))
        assert puppet.wrote.count(b":p=close;") == 2
        assert puppet.wrote.count(b":p=?;") == 1

    def test_what_it_answers_the_program_is_learned_from(self, start):
        puppet = start("--notify", "terminal")
        puppet.write(b"\x1b]99;i=mine:p=?;\x1b\\")
        puppet.outer.expect(b"p=?;")
        answer = b"\x1b]99;i=mine:p=?;o=always\x1b\\"
        puppet.outer.send(answer)
        until(lambda: puppet.heard() == answer)
        puppet.write(NEEDS)
        puppet.outer.expect(b".blocked:d=0:")
        assert puppet.wrote.count(b":p=?;") == 1

    @pytest.mark.parametrize(
        "begin, end",
        [
            pytest.param(b"\x1b[38;5", b";1mred\x1b[m", id="control sequence"),
            pytest.param(b"\x1b]0;a tit", b"le\a", id="string"),
            pytest.param("ä€".encode()[:-1], "€".encode()[-1:], id="character"),
            pytest.param(b"\x1b[?2026hhalf a fr", b"ame\x1b[?2026l", id="synchronized update"),
            pytest.param(b"\x1bP+q54", b"4e\x1b\\", id="device control"),
        ],
    )
    def test_gets_nothing_of_ours_within(self, begin, end, start, state_dir):
        puppet = start("--notify", "terminal", TERM_PROGRAM="ghostty")
        puppet.write(NEEDS + begin)
        until(lambda: [e for e in events(state_dir) if e["effect"] == "delivered"])
        settle(puppet, 0.5)
        assert puppet.wrote == NEEDS + begin
        puppet.write(end)
        puppet.outer.expect(b"\x1b]777;notify;")
        assert puppet.wrote.startswith(NEEDS + begin + end + b"\x1b]777;notify;")

    def test_what_is_answered_while_it_waits_is_never_written(self, start, state_dir):
        puppet = start("--notify", "terminal", TERM_PROGRAM="ghostty")
        puppet.write(NEEDS + b"\x1b[?2026h")
        until(lambda: [e for e in events(state_dir) if e["effect"] == "delivered"])
        puppet.write(report("working") + b"\x1b[?2026l")
        settle(puppet)
        assert b"777" not in puppet.wrote

    def test_an_exit_is_told_after_the_modes_are_undone(self, start):
        puppet = start("--notify", "terminal", TERM_PROGRAM="ghostty")
        puppet.write(b"\x1b[?25l\x1b[?2004h\x1b]0;unfinished")
        puppet.outer.expect(b"unfinished")
        puppet.die()
        puppet.outer.wait()
        assert re.search(
            rb"\x1b\[\?25h.*\x1b\]777;notify;[^;\a]* was killed \(SIGKILL\);[^\a]*\a$",
            puppet.wrote,
            re.DOTALL,
        )

    def test_an_exit_goes_to_the_terminal_where_there_is_no_desktop(self, start, tmp_path):
        puppet = start("--notify", "auto", TERM_PROGRAM="iTerm.app", XDG_RUNTIME_DIR=str(tmp_path))
        puppet.die()
        puppet.outer.wait()
        assert b"\x1b]9;" in puppet.wrote

    def test_the_bell_is_one_byte(self, start):
        puppet = start("--notify", "bell", TERM_PROGRAM="ghostty")
        puppet.write(NEEDS)
        puppet.outer.expect(NEEDS + b"\a")
        settle(puppet)
        assert puppet.wrote == NEEDS + b"\a"

    def test_one_that_takes_nothing_loses_nothing_else(self, start):
        puppet = start("--notify", "terminal", TERM_PROGRAM="ghostty")
        puppet.write(NEEDS)
        time.sleep(2)  # nothing is read here
        puppet.write(b"more")
        puppet.outer.expect(b"more")
        assert re.fullmatch(re.escape(NEEDS) + rb"\x1b\]777;[^\a]*\amore", puppet.wrote)


class TestTmux:
    @pytest.fixture
    def tmux(self, clean_env, tmp_path):
        require("tmux")
        socket = str(tmp_path / "tmux")

        def run(*arguments):
            return subprocess.run(
                ["tmux", "-S", socket, "-f", "/dev/null", *arguments],
                env={**clean_env, "SHELL": "/bin/sh"}, check=True, capture_output=True, text=True,
            ).stdout.strip()  # fmt: skip

        run("new-session", "-d", "-x", "80", "-y", "24", "sleep 600")
        run.env = {"TMUX": f"{socket},1,0", "TMUX_PANE": run("display-message", "-p", "#{pane_id}")}
        with Outer(["tmux", "-S", socket, "attach"], environ=clean_env) as outer:
            until(lambda: outer.read() or run("list-clients"), what="a client")
            yield run
        run("kill-server")

    def test_wraps_it_and_rings_its_bell(self, tmux, start):
        tmux("set", "-g", "allow-passthrough", "on")
        puppet = start(
            "--name", "shop", "--notify", "terminal", **tmux.env, TERM="tmux-256color", LC_TERMINAL="iTerm2"
        )
        puppet.write(NEEDS)
        inner = b"\x1b\x1b]9;Claude Code needs permission: approve Bash: touch x - shop\a"
        puppet.outer.expect(NEEDS + b"\x1bPtmux;" + inner + b"\x1b\\\a")

    def test_without_passthrough_gets_only_a_bell(self, tmux, start):
        tmux("set", "-g", "allow-passthrough", "off")
        puppet = start("--notify", "terminal", **tmux.env, TERM="tmux-256color", LC_TERMINAL="iTerm2")
        puppet.write(NEEDS)
        puppet.outer.expect(NEEDS + b"\a")


def test_through_gnu_screen_the_bell_gets_out(environ, tmp_path):
    require("screen")
    (tmp_path / "screenrc").write_text("vbell off\nstartup_message off\n")
    strings = Strings(tmp_path)
    command = [*AGENTWRAP, "--notify", "terminal", *strings.program]
    # as it is within a kitty, which is known to show more; screen itself passes nothing on
    inside = {**environ, "KITTY_WINDOW_ID": "1", "SCREENDIR": str(tmp_path / "S")}
    (tmp_path / "S").mkdir(mode=0o700)
    with Outer(["screen", "-c", "screenrc", *command], environ=inside, cwd=tmp_path) as outer:
        strings.take()
        strings.write(b"here" + NEEDS)
        at = outer.expect(b"here")
        outer.expect(b"\a", start=at)
        strings.exit()
        outer.wait()
    strings.drop()


class TestOwnNotices:
    """The program's own notice, shown by its terminal, is enough."""

    NOTICE = (
        report("idle", app="codex")
        + b"\x1b]9;Approval requested: touch x\a"
        + report("blocked", app="codex", kind="permission")
    )

    def test_is_not_repeated_where_the_terminal_shows_it(self, start, state_dir):
        puppet = start("--agent", "codex", "--notify", "auto", TERM_PROGRAM="iTerm.app")
        puppet.write(self.NOTICE)
        until(
            lambda: [
                e for e in events(state_dir) if e["reason"] == "the terminal shows the program's own OSC 9"
            ]
        )
        settle(puppet)
        assert puppet.wrote == self.NOTICE
        puppet.write(report("working", app="codex") + report("blocked", app="codex", kind="permission"))
        settle(puppet, 2.5)
        # this time there was none
        assert b"\x1b]9;Codex needs permission" in puppet.wrote

    def test_is_told_where_the_terminal_does_not_show_it(self, start):
        puppet = start("--agent", "codex", "--notify", "terminal", TERM="dumb")
        puppet.write(self.NOTICE)
        puppet.outer.expect(self.NOTICE + b"\a")

    def test_keeps_the_channels_before_the_terminal(self, start, told):
        puppet = start(
            "--agent", "codex", *told.options[:-1], "command,terminal,bell", TERM_PROGRAM="iTerm.app"
        )
        puppet.write(self.NOTICE)
        assert told.wait(1)["AGENTWRAP_BODY"].startswith("touch x\n")
        settle(puppet)
        assert puppet.wrote == self.NOTICE

    def test_as_its_last_words_it_rings_although_nobody_is_left(self, environ):
        for program, rings in (("printf '\\033]9;hello\\033\\\\'", 1), ("true", 0)):
            with Outer([*AGENTWRAP, "--notify", "bell", "sh", "-c", program], environ=environ) as outer:
                assert outer.wait() == 0
                assert outer.output.count(b"\a") == rings

    @pytest.mark.parametrize(
        "known, ours", [({}, True), ({"TERM": "xterm-kitty"}, False), ({"TERM": "foot"}, False)]
    )
    def test_a_query_gets_exactly_one_answer(self, known, ours, start):
        puppet = start("--agent", "opencode", "--notify", "none", **known)
        puppet.write(b"\x1b]99;i=opentui-notifications:p=?;\x1b\\\x1b[c")
        puppet.outer.expect(b"\x1b[c")
        puppet.outer.send(b"\x1b]99;i=opentui-notifications:p=?;theirs\x1b\\\x1b[?62;c")
        until(lambda: puppet.heard().endswith(b"\x1b[?62;c"))
        assert puppet.heard().count(b"]99;") == 1
        assert (b"theirs" in puppet.heard()) is not ours


# ---- the desktop


def click(env, name):
    """Click on the window of this class with the mouse, until it is gone: at first it may still move."""

    def xdotool(*words):
        run = subprocess.run(["xdotool", *words], env=env, capture_output=True, text=True, check=False)
        return run.stdout.split()

    def windows():
        return xdotool("search", "--onlyvisible", "--class", name)

    def gone():
        for window in windows():
            xdotool("mousemove", "--window", window, "30", "20", "click", "1")
        return not windows()

    until(windows, what=name)
    until(gone, what=f"{name} takes a click")


class TestDesktop:
    def test_is_shown_replaced_and_taken_back(self, start, dunst):
        puppet = start("--name", "shop", "--notify", "desktop", **dunst._processes.env)
        puppet.write(report("working") + report("done"))
        until(lambda: dunst.displayed() == 1)
        puppet.write(report("done", "a <b>summary</b>"))
        settle(puppet, 1.5)
        assert dunst.displayed() == 1
        puppet.write(report("working"))
        until(lambda: dunst.displayed() == 0)
        assert dunst.history() == [("Claude Code finished", "a &lt;b&gt;summary&lt;/b&gt;\nshop")]
        puppet.write(NEEDS)
        until(lambda: dunst.displayed() == 1)
        puppet.exit()
        puppet.outer.wait()
        until(lambda: dunst.displayed() == 0, what="withdrawn at the end")

    @pytest.fixture
    def elsewhere(self, tmp_path, environ):
        """A tmux that shows another window than a session's; returns where that is, and what is shown."""
        require("tmux")
        socket = str(tmp_path / "tmux")

        def tmux(*arguments):
            return subprocess.run(
                ["tmux", "-S", socket, "-f", "/dev/null", *arguments],
                env={**environ, "SHELL": "/bin/sh"}, check=True, capture_output=True, text=True,
            ).stdout.strip()  # fmt: skip

        tmux("new-session", "-d", "-x", "80", "-y", "24", "sleep 600")
        pane = tmux("display-message", "-p", "#{pane_id}")
        tmux("split-window", "sleep 600")
        tmux("new-window", "sleep 600")
        yield (
            {"TMUX": f"{socket},1,0", "TMUX_PANE": pane},
            lambda: tmux("display-message", "-p", "#{pane_id}"),
        )
        tmux("kill-server")

    def test_a_click_selects_the_window_and_pane(self, start, dunst, elsewhere):
        where, shown = elsewhere
        puppet = start("--notify", "desktop", **dunst._processes.env, **where)
        puppet.write(NEEDS)
        until(lambda: dunst.displayed() == 1)
        assert shown() != where["TMUX_PANE"]
        dunst.ctl("action")
        until(lambda: shown() == where["TMUX_PANE"])

    def test_a_click_with_the_mouse_does_so(self, environ, start, request, elsewhere, processes):
        require("xdotool", "dunst")
        config = Path(environ["XDG_CONFIG_HOME"], "dunst/dunstrc")
        config.parent.mkdir(parents=True)
        config.write_text("[global]\nmouse_left_click = do_action, close_current\n")
        dunst = request.getfixturevalue("dunst")
        where, shown = elsewhere
        puppet = start("--notify", "desktop", **processes.env, **where)
        puppet.write(NEEDS)
        until(lambda: dunst.displayed() == 1)
        assert shown() != where["TMUX_PANE"]
        click(processes.env, "Dunst")
        until(lambda: shown() == where["TMUX_PANE"])
        assert dunst.displayed() == 0

    def test_an_exit_is_shown_when_we_are_gone_and_stays(self, start, dunst):
        puppet = start("--name", "shop", "--notify", "auto", **dunst._processes.env)
        puppet.write(NEEDS)
        until(lambda: dunst.displayed() == 1)
        settle(puppet, 1.1)
        puppet.die()
        puppet.outer.wait()
        until(lambda: [summary for summary, _ in dunst.history()] == ["Claude Code needs permission"])
        assert dunst.displayed() == 1

    def test_a_bus_that_hangs_delays_neither_bytes_nor_the_end(self, start, bus, processes, state_dir):
        os.kill(bus.pid, signal.SIGSTOP)
        puppet = start("--notify", "auto", TERM_PROGRAM="ghostty", **processes.env)
        puppet.write(NEEDS)
        until(lambda: live(state_dir) and helper_of(state_dir))
        for number in range(50):
            began = time.monotonic()
            puppet.write(b"byte %d;" % number)
            puppet.outer.expect(b"byte %d;" % number)
            assert time.monotonic() - began < 0.5
        puppet.outer.expect(b"\x1b]777;notify;")
        puppet.write(report("working"))
        settle(puppet, 0.3)
        began = time.monotonic()
        puppet.die()
        puppet.outer.wait()
        assert time.monotonic() - began < 1


# ---- the helper


class TestHelper:
    def test_one_that_is_killed_on_its_way_is_replaced_and_tells_it_once(
        self, start, told, state_dir, tmp_path
    ):
        slow = tmp_path / "slow"
        slow.write_text(f"#!/bin/sh\necho $$ >>{tmp_path}/runs\nexec sleep 600\n")
        slow.chmod(0o755)
        config = tmp_path / "slow.toml"
        config.write_text(f"[notify]\ncommand = [{json.dumps(str(slow))}]\n")
        puppet = start("--config", str(config), "--notify", "command")
        puppet.write(NEEDS)
        runs = tmp_path / "runs"
        until(lambda: runs.exists() and runs.read_text())
        first = helper_of(state_dir)
        os.kill(first, signal.SIGKILL)
        until(lambda: helper_of(state_dir) not in (None, first))
        until(lambda: len(runs.read_text().split()) == 2)
        os.kill(helper_of(state_dir), signal.SIGKILL)
        until(lambda: [e for e in events(state_dir) if "twice" in e["reason"]])
        assert len(runs.read_text().split()) == 2
        for pid in runs.read_text().split():
            os.kill(int(pid), signal.SIGKILL)
        puppet.write(b"alive")
        puppet.outer.expect(b"alive")

    def test_one_that_died_after_it_told_tells_nothing_again(self, start, told, state_dir):
        puppet = start(*told.options)
        puppet.write(NEEDS)
        told.wait(1)
        until(lambda: [e for e in events(state_dir) if e["effect"] == "delivered"])
        os.kill(helper_of(state_dir), signal.SIGKILL)
        until(lambda: helper_of(state_dir) is None)
        puppet.write(report("working") + report("done", "well"))
        told.wait(2)
        assert told.events() == ["blocked", "done"]

    def test_one_that_died_just_before_the_end_loses_no_exit(self, start, told, state_dir):
        puppet = start(*told.options)
        puppet.write(NEEDS)
        told.wait(1)
        settle(puppet, 1.1)  # there is at most one a second
        os.kill(helper_of(state_dir), signal.SIGKILL)
        puppet.die()
        puppet.outer.wait()
        assert told.wait(2)["AGENTWRAP_EVENT"] == "exit"

    def test_costs_the_pump_one_write(self, start, told, tmp_path, state_dir):
        require("strace")
        trace = tmp_path / "trace"
        puppet = start(*told.options, before=["strace", "-ff", "-s", "24", "-o", str(trace)])
        puppet.write(b"here")
        puppet.outer.expect(b"here", timeout=30)
        pump = until(lambda: live(state_dir))["pid"]
        puppet.write(NEEDS)
        told.wait(1)
        until(lambda: [e for e in events(state_dir) if e["effect"] == "delivered"])
        settle(puppet, 0.5)
        calls = (tmp_path / f"trace.{pump}").read_text().splitlines()
        mine = [index for index, call in enumerate(calls) if re.match(r'write\(\d+, "N \{', call)]
        assert len(mine) == 1
        # Everything between two waits: the timer has ended the first, the second follows at once.
        before = max(i for i in range(mine[0]) if re.match(r"p?poll\(", calls[i]))
        after = min(i for i in range(mine[0], len(calls)) if re.match(r"p?poll\(", calls[i]))
        assert calls[before + 1 : after] == [calls[mine[0]]]
        # and of its delivery the pump hears nothing
        assert not [call for call in calls[after:] if "read(" in call and '"R ' in call]


def test_a_wrapped_command_that_ran_long_tells_that_it_is_done(told, environ, tmp_path):
    with Outer(
        [*AGENTWRAP, *told.options, "sh", "-c", "sleep 10.2; exit 3"], environ=environ, cwd=tmp_path
    ) as outer:
        assert os.waitstatus_to_exitcode(outer.wait(20)) == 3
    assert told.wait(1)["AGENTWRAP_TITLE"] == "sh failed (exit code 3)"
