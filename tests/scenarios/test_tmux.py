"""In a real tmux: what tmux thinks runs there, and the pane's options."""

from __future__ import annotations

import os
import signal
import subprocess
import time

import psutil
import pytest

from tests.lab.multiplexer import Tmux
from tests.lab.outer import until
from tests.lab.puppet import report
from tests.lab.scripted import Scripted
from tests.lab.tools import require

STATE = "#{@agentwrap_state}"
ALL = "|".join(f"#{{@agentwrap_{key}}}" for key in ("state", "kind", "message", "agent", "session"))


@pytest.fixture
def agent(tmp_path):
    agent = Scripted(tmp_path)
    yield agent
    agent.close()


@pytest.fixture
def tmux(tmp_path, environ):
    require("tmux")
    with Tmux(tmp_path, environ) as tmux:
        yield tmux


def wrapped(agent, *options, words=""):
    return f"agentwrap --notify none {' '.join(options)} {agent.path} {words}"


def test_tmux_sees_the_agent(tmux, agent):
    pane = tmux.start("one")
    tmux.until(pane, "#{pane_current_command}", "bash")
    tmux.type(pane, wrapped(agent, words="--resume"))
    tmux.until(pane, "#{pane_current_command}", "claude")
    tmux.until(pane, "#{window_name}", "claude")
    leader = int(tmux.run("display-message", "-p", "-t", pane, "#{pane_pid}"))
    (ours,) = psutil.Process(leader).children()
    assert ours.name() == "claude"
    assert [word for word in ours.cmdline() if word] == [str(agent.path), "--resume"]
    agent.exit()
    tmux.until(pane, "#{pane_current_command}", "bash")
    tmux.until(pane, "#{window_name}", "bash")


def test_the_panes_options_follow_the_state_and_go_with_the_session(tmux, agent):
    pane = tmux.start("one")
    other = tmux.run("split-window", "-d", "-P", "-F", "#{pane_id}", "-t", pane)
    tmux.type(pane, wrapped(agent))
    tmux.until(pane, STATE, "unknown")
    agent.write(report("blocked", "approve Bash: touch x", kind="permission"))
    tmux.until(pane, STATE, "blocked", 2)
    state, kind, message, name, session = tmux.says(pane, ALL).split("|")
    assert (state, kind, message, name) == ("blocked", "permission", "approve Bash: touch x", "claude")
    assert session.startswith("claude-")
    assert int(tmux.says(pane, "#{@agentwrap_since}")) > 1_600_000_000
    agent.write(report("working"))
    tmux.until(pane, ALL, f"working|||claude|{session}", 2)
    assert tmux.says(other, STATE) == ""
    agent.exit()
    tmux.until(pane, ALL, "||||", 2)
    assert tmux.run("show-options", "-p", "-t", pane) == ""


def test_a_hostile_message_is_text_wherever_tmux_shows_it(tmux, agent, tmp_path):
    hostile = "#(touch pwned) #[fg=red]x #{pane_id} `touch pwned` $(touch pwned) \"' %H \\;"
    pane = tmux.start("one")
    tmux.type(pane, wrapped(agent))
    agent.write(report("blocked", hostile))
    tmux.until(pane, STATE, "blocked", 3)
    shown = hostile.replace("#", "\uff03").removesuffix(";")
    assert tmux.says(pane, "#{@agentwrap_message}") == shown
    # expanded once more: the hour at most, which `display-message` would put in anywhere
    assert tmux.says(pane, "#{E:@agentwrap_message}").startswith(shown.partition("%H")[0])
    agent.write(report("working", "a; ;;"))
    tmux.until(pane, "#{@agentwrap_message}", "a", 3)
    agent.write(report("working", "-u"))
    tmux.until(pane, "#{@agentwrap_message}", "-u", 3)
    agent.write(report("working", "x" * 500))
    tmux.until(pane, "#{n:@agentwrap_message}", "202", 3)  # counted in bytes, the ellipsis has three
    assert not (tmp_path / "pwned").exists()


def test_changes_in_a_row_run_tmux_seldom_and_the_last_one_counts(tmux, agent, tmp_path):
    log = tmp_path / "runs"
    counting = tmp_path / "counting"
    counting.mkdir()
    (counting / "tmux").write_text(f'#!/bin/sh\necho run >>{log}\nexec {tmux_path()} "$@"\n')
    (counting / "tmux").chmod(0o755)
    pane = tmux.start("one")
    tmux.type(pane, f"PATH={counting}:$PATH {wrapped(agent)}")
    tmux.until(pane, STATE, "unknown")
    for number in range(30):
        agent.write(report("working", str(number)))
        time.sleep(0.05)  # so that each second of them is published
    agent.write(report("done", "all of it"))
    tmux.until(pane, "#{@agentwrap_state} #{@agentwrap_message}", "done all of it", 3)
    assert len(log.read_text().split()) <= 7


def tmux_path():
    return subprocess.run(["which", "tmux"], capture_output=True, text=True, check=True).stdout.strip()


def test_a_tmux_that_hangs_holds_nothing_up(tmux, agent, tmp_path):
    stuck = tmp_path / "stuck"
    stuck.mkdir()
    (stuck / "tmux").write_text("#!/bin/sh\nexec sleep 60\n")
    (stuck / "tmux").chmod(0o755)
    pane = tmux.start("one")
    tmux.type(pane, f"PATH={stuck}:$PATH {wrapped(agent)}")
    agent.write(b"he" + report("working") + b"llo")
    until(lambda: "hello" in tmux.screen(pane), 3)
    agent.exit()
    tmux.until(pane, "#{pane_current_command}", "bash", 2)


def test_a_terminal_started_from_a_pane_is_not_that_pane(tmux, agent, state_dir):
    pane = tmux.start("one")
    tmux.type(pane, f'script -qc "{wrapped(agent)}" /dev/null')
    agent.write(b"hello" + report("working"))
    until(lambda: any('"working"' in file.read_text() for file in state_dir.glob("*.json")))
    with pytest.raises(AssertionError):
        tmux.until(pane, STATE, "working", 1)


def test_options_of_another_session_in_the_pane_stay(tmux, agent, tmp_path):
    (tmp_path / "two").mkdir()
    second = Scripted(tmp_path / "two", "codex")
    pane = tmux.start("one")
    tmux.type(pane, wrapped(agent))
    agent.write(report("working"))
    tmux.until(pane, STATE, "working")
    ours = session_pid(tmux, pane)
    os.killpg(ours, signal.SIGTSTP)
    tmux.until(pane, STATE, "suspended", 3)
    tmux.type(pane, wrapped(second))
    second.write(report("idle"))
    tmux.until(pane, "#{@agentwrap_state} #{@agentwrap_agent}", "idle codex", 3)
    os.kill(ours, signal.SIGKILL)
    until(lambda: not psutil.pid_exists(ours) or psutil.Process(ours).status() == "zombie")
    with pytest.raises(AssertionError):
        tmux.until(pane, STATE, "", 1.5)
    second.exit()
    tmux.until(pane, STATE, "", 3)
    second.close()


def session_pid(tmux, pane):
    return int(tmux.says(pane, "#{@agentwrap_session}").rpartition("-")[2])


@pytest.mark.parametrize("who", ["pump", "leader"])
def test_they_go_when_a_process_of_ours_is_killed(tmux, agent, who):
    pane = tmux.start("one")
    tmux.type(pane, wrapped(agent))
    agent.write(report("working"))
    tmux.until(pane, STATE, "working")
    process = psutil.Process(session_pid(tmux, pane))
    if who == "leader":
        (process,) = process.children()
    process.kill()
    tmux.until(pane, STATE, "", 5)
