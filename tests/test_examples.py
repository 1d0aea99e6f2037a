"""Every example is run as it is written, in the program it is for where there is one to be had."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import time
import tomllib
from pathlib import Path

import pytest

from tests.commands.live import Live
from tests.lab.multiplexer import BIN, Tmux
from tests.lab.outer import Outer, until
from tests.lab.puppet import report
from tests.lab.scripted import Scripted
from tests.lab.terminal import Terminal
from tests.lab.tools import require

EXAMPLES = Path(__file__).parent.parent / "examples"
FILES = sorted(path for path in EXAMPLES.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
HOSTILE = "$(touch pwned) `touch pwned` #(touch pwned) %n%F{red} \\w \"'"


@pytest.fixture
def environ(tmp_path):
    """An environment of the test's own, in which `agentwrap` is a command."""
    home = tmp_path / "home"
    home.mkdir()
    return {
        "PATH": f"{BIN}:{os.environ['PATH']}",
        "HOME": str(home),
        "LC_ALL": "C.UTF-8",
        "TERM": "xterm-256color",
        "AGENTWRAP_STATE_DIR": str(tmp_path / "state"),
        "XDG_CONFIG_HOME": str(home / ".config"),
    }


@pytest.fixture
def summary(tmp_path):
    """Write the summary, as if sessions ran."""
    folder = tmp_path / "state"

    def write(text):
        folder.mkdir(mode=0o700, exist_ok=True)
        (folder / ".new").write_text(text)
        (folder / ".new").rename(folder / "summary")

    return write


@pytest.fixture
def run(tmp_path, environ):
    """Run a command to its end; what it printed."""

    def run(*argv, code=0, more=None, **options):
        ran = subprocess.run(
            argv,
            env={**environ, **(more or {})},
            cwd=options.pop("cwd", tmp_path),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=60,
            **options,
        )
        assert ran.returncode == code, ran.stdout
        return ran.stdout

    return run


@pytest.fixture
def agents(tmp_path):
    """Make scripted agents."""
    made = []

    def agent(name):
        folder = tmp_path / f"agent{len(made)}"
        folder.mkdir()
        made.append(Scripted(folder, name))
        return made[-1]

    yield agent
    for each in made:
        each.close()


# ---- all of them ----


def test_the_list_of_examples_is_complete():
    text = (EXAMPLES / "README.md").read_text()
    listed = set(re.findall(r"\[`([^`]+)`\]\(\1\)", text))
    assert listed == {str(path.relative_to(EXAMPLES)) for path in FILES} - {"README.md"}


@pytest.mark.parametrize(
    "path", [path for path in FILES if path.suffix in (".sh", "")], ids=lambda path: path.name
)
def test_shell_code_is_valid(path, run):
    if path.name == "Makefile":
        return
    run("bash" if path.name == "oh-my-posh.sh" else "sh", "-n", str(path))


@pytest.mark.parametrize("path", [path for path in FILES if path.suffix == ".py"], ids=lambda path: path.name)
def test_python_code_is_valid(path):
    compile(path.read_text(), path, "exec")


# ---- prompts ----


def test_starship(run, summary, tmp_path):
    module = tomllib.loads((EXAMPLES / "prompts/starship.toml").read_text())["custom"]["agentwrap"]
    assert module["when"] is True
    assert run(*module["shell"], "-c", module["command"]).find("pwned") < 0
    summary(f"1 0 0 2 0 ⚠1 ●2 {HOSTILE}\n")
    assert run(*module["shell"], "-c", module["command"]) == f"⚠1 ●2 {HOSTILE}"
    # handed over on standard input, as starship does it
    assert run(*module["shell"], input=module["command"]) == f"⚠1 ●2 {HOSTILE}"
    assert not (tmp_path / "pwned").exists()


def test_powerlevel10k(run, summary, tmp_path):
    require("zsh")
    # the stand-in shows what is between -t and the end as zsh shows a prompt
    code = """p10k() { print -r -- "${@[1,-2]}"; print -rP -- "${@[-1]}" }; source $1; prompt_agentwrap"""
    words = ("zsh", "-f", "-c", code, "zsh", str(EXAMPLES / "prompts/powerlevel10k.zsh"))
    run(*words, code=1)
    for line, state, colour in (
        ("1 1 1 1 0", "BLOCKED", "yellow"),
        ("0 1 1 1 0", "ERROR", "red"),
        ("0 0 1 1 0", "DONE", "green"),
        ("0 0 0 1 0", "WORKING", "cyan"),
    ):
        summary(f"{line} ●1 {HOSTILE}\n")
        assert run(*words) == f"segment -s {state} -f {colour} -t\n●1 {HOSTILE}\n"
    summary("0 0 0 0 1\n")
    assert run(*words, code=1) == ""
    assert not (tmp_path / "pwned").exists()


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_oh_my_posh(run, summary, shell, tmp_path):
    require(shell)
    code = """. "$1"; set_poshcontext; env | grep -a ^POSH_ | sort"""
    words = (shell, "-c", code, shell, str(EXAMPLES / "prompts/oh-my-posh.sh"))
    assert run(*words) == "POSH_AGENTWRAP=\nPOSH_AGENTWRAP_BLOCKED=0\nPOSH_AGENTWRAP_ERROR=0\n"
    summary(f"2 1 0 0 0 ⚠2 ✗1 {HOSTILE}\n")
    said = run(*words)
    assert said == f"POSH_AGENTWRAP=⚠2 ✗1 {HOSTILE}\nPOSH_AGENTWRAP_BLOCKED=2\nPOSH_AGENTWRAP_ERROR=1\n"
    segment = json.loads((EXAMPLES / "prompts/oh-my-posh.json").read_text())
    used = set(re.findall(r"\.Env\.(\w+)", json.dumps(segment)))
    assert used == {line.partition("=")[0] for line in said.splitlines()}
    # a context of the user's own stays
    assert "mine" in run(
        shell, "-c", 'set_poshcontext() { echo mine; }; . "$1"; set_poshcontext', shell, words[-1]
    )


# ---- tmux ----


@pytest.fixture
def tmux(tmp_path, environ):
    require("tmux")
    with Tmux(tmp_path, environ, f"source-file {EXAMPLES}/tmux/agentwrap.conf\n") as tmux:
        yield tmux


@pytest.fixture
def attached(tmux, tmp_path):
    """A terminal with a tmux on it."""
    terminal = Terminal(
        [*tmux.client, "new-session", "-s", "one"], environ=tmux.environ, cwd=tmp_path, rows=24
    )
    terminal.until(r"\[one\] 0:bash")
    yield terminal
    terminal.hang_up()


def test_tmux_shows_who_waits_in_status_line_and_window_list(tmux, attached, agents, summary, tmp_path):
    claude, codex = agents("claude"), agents("codex")
    first = tmux.says("one:", "#{pane_id}")
    second = tmux.run("split-window", "-d", "-P", "-F", "#{pane_id}", "-t", first)
    tmux.run("new-window", "-t", "one:")
    tmux.type(first, f"agentwrap --notify none {claude.path}")
    tmux.type(second, f"agentwrap --notify none {codex.path}")
    claude.write(report("working"))
    codex.write(report("working", app="codex"))
    attached.until("0:claude●●")
    attached.until("●2 *$")
    claude.write(report("blocked", HOSTILE))
    attached.until("0:claude⚠●")
    attached.until("⚠1 ●1 *$")
    codex.write(report("done", app="codex"))
    attached.until("0:claude⚠✓")
    claude.exit()
    codex.exit()
    attached.until("0:bash-")
    attached.until(lambda: not re.search("[⚠●✓]", attached.text))
    summary(f"1 0 0 0 0 ⚠1 {HOSTILE}\n")
    attached.until("touch")
    assert not (tmp_path / "pwned").exists()


def test_tmux_jumps_to_who_waits_longest(tmux, attached, agents):
    first = tmux.says("one:", "#{pane_id}")
    panes = {}
    for name, state in (("pi", "done"), ("claude", "blocked"), ("codex", "blocked")):
        agent = agents(name)
        panes[name] = tmux.run("new-window", "-d", "-P", "-F", "#{pane_id}", "-t", "one:")
        tmux.type(panes[name], f"agentwrap --notify none {agent.path}")
        agent.write(report(state, name))
        tmux.until(panes[name], "#{@agentwrap_state}", state)
        until(lambda name=name: time.time() > int(tmux.says(panes[name], "#{@agentwrap_since}")) + 1)
    attached.send(b"\x02A")
    tmux.until("one:", "#{pane_id}", panes["claude"])
    tmux.run("kill-pane", "-t", panes["claude"])
    tmux.run("kill-pane", "-t", panes["codex"])
    tmux.run("select-window", "-t", first)
    attached.send(b"\x02A")
    tmux.until("one:", "#{pane_id}", panes["pi"])
    tmux.run("kill-pane", "-t", panes["pi"])
    attached.send(b"\x02A")
    attached.until("no session waits for you")


def test_tmux_menu_jumps_to_the_one_chosen_and_runs_no_message(tmux, attached, agents, tmp_path):
    panes = {}
    for name, state, message in (
        ("codex", "working", "x"),
        ("claude", "blocked", f"-{HOSTILE} #{{pane_id}} #[fg=red];"),
    ):
        agent = agents(name)
        panes[name] = tmux.run("new-window", "-d", "-P", "-F", "#{pane_id}", "-t", "one:")
        tmux.type(panes[name], f"agentwrap --notify none {agent.path}")
        agent.write(report(state, message))
        tmux.until(panes[name], "#{@agentwrap_state}", state)
    attached.send(b"\x02\x1ba")
    attached.until(r"blocked +claude +-\$\(touch pwned\).*\(1\)")
    attached.until(r"working +codex +x +\(2\)")
    attached.send(b"2")
    tmux.until("one:", "#{pane_id}", panes["codex"])
    attached.send(b"\x02\x01")
    attached.until("SESSION +STATE")
    attached.send(b"q")
    attached.until(lambda: "SESSION" not in attached.text)
    assert not (tmp_path / "pwned").exists()


# ---- terminals ----


def test_wezterm(run, summary, tmp_path):
    require("lua5.4")
    program = tmp_path / "wezterm.lua"
    program.write_text(f"""
local handlers = {{}}
package.preload['wezterm'] = function() return {{
  on = function(name, handler) handlers[name] = handler end,
  format = function(items) return items[1].Foreground.AnsiColor .. ' ' .. items[2].Text end,
  run_child_process = function(words) return true, io.popen(table.concat(words, ' ')):read 'a' end,
}} end
dofile('{EXAMPLES}/terminals/wezterm.lua').setup()
handlers['update-status']({{ set_right_status = function(_, text) print('[' .. text .. ']') end }})
""")
    assert run("lua5.4", str(program)) == "[]\n"
    for line, colour in (
        ("1 1 1 1 0", "Yellow"),
        ("0 1 1 1 0", "Red"),
        ("0 0 1 1 0", "Lime"),
        ("0 0 0 1 0", "Aqua"),
    ):
        summary(f"{line} ●1 {HOSTILE}\n")
        assert run("lua5.4", str(program)) == f"[{colour} ●1 {HOSTILE} ]\n"
    where = f"{tmp_path}/agentwrap-{os.getuid()}"
    shutil.copytree(tmp_path / "state", where)
    elsewhere = {"AGENTWRAP_STATE_DIR": "", "XDG_RUNTIME_DIR": "", "TMPDIR": str(tmp_path)}
    assert run("lua5.4", str(program), more=elsewhere).startswith("[Aqua")


KITTY = """
import importlib.util, json, sys
from kitty.fast_data_types import Color, Screen
from kitty.tab_bar import DrawData, ExtraData, TabBarData
spec = importlib.util.spec_from_file_location("tab_bar", {path!r})
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
started = []
module.add_timer = lambda call, interval, repeats: started.append((call, interval, repeats))
module.draw_tab_with_separator = lambda data, screen, *_: (screen.draw("a tab "), screen.cursor.x)[1]
class Data:
    default_bg = Color(0, 0, 0)

screen = Screen(None, 1, 40, 0, 10, 20)
end = module.draw_tab(Data(), screen, None, 0, 20, 1, True, None)
print(json.dumps([end, len(started), str(screen.line(0))]))
"""


def test_kitty(run, summary):
    require("kitty")
    program = KITTY.format(path=str(EXAMPLES / "terminals/kitty_tab_bar.py"))
    code = f"exec({program!r}, {{}})"
    summary("1 0 0 2 0 ⚠1 ●2\n")
    end, started, line = json.loads(run("kitty", "+runpy", code).splitlines()[-1])
    assert (end, started) == (6, 1)
    assert line.rstrip() == f"{'a tab':<34}⚠1 ●2"
    summary("0 0 0 0 1\n")
    assert json.loads(run("kitty", "+runpy", code).splitlines()[-1])[2].rstrip() == "a tab"


# ---- bars ----


def test_i3status(run, summary, tmp_path):
    require("i3status")
    config = tmp_path / "i3status.conf"
    config.write_text(
        'general {\n  output_format = "i3bar"\n  interval = 1\n}\norder += "time"\ntime { format = "now" }\n'
    )
    summary("0 1 0 2 0 ✗1 ●2\n")
    line = f"timeout 2 i3status -c {config} 2>/dev/null | {EXAMPLES}/bars/i3status.py"
    said = run("sh", "-c", line).splitlines()
    assert json.loads(said[0])["version"] == 1
    blocks = json.loads(said[2])
    assert [block["full_text"] for block in blocks] == ["✗1 ●2", "now"]
    assert blocks[0]["color"] == "#e06c75"
    if len(said) > 3:
        assert json.loads(said[3].removeprefix(",")) == blocks
    summary("0 0 0 0 1\n")
    assert [block["full_text"] for block in json.loads(run("sh", "-c", line).splitlines()[2])] == ["now"]


def test_waybar(environ, tmp_path):
    text = (EXAMPLES / "bars/waybar.jsonc").read_text()
    module = json.loads(re.sub(r"(?m)^ *//.*$", "", text))["custom/agentwrap"]
    assert module["return-type"] == "json"
    live = Live(tmp_path / "state", "claude", "working")
    bar = subprocess.Popen(
        ["sh", EXAMPLES / "bars/waybar.sh"],
        env=environ,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        line = json.loads(bar.stdout.readline())
        if line["text"] == "":  # as it began
            line = json.loads(bar.stdout.readline())
        assert line == {"text": "●1", "class": "working"}
        live.set("blocked", message=HOSTILE)
        assert json.loads(bar.stdout.readline()) == {"text": "⚠1", "class": "blocked"}
        live.set("error")
        assert json.loads(bar.stdout.readline()) == {"text": "✗1", "class": "error"}
        live.end()
        assert json.loads(bar.stdout.readline()) == {"text": "", "class": "working"}
    finally:
        os.killpg(bar.pid, 15)
        bar.communicate()
        live.kill()


def test_sketchybar(run, summary, tmp_path):
    stub = tmp_path / "bin"
    stub.mkdir()
    (stub / "sketchybar").write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    (stub / "sketchybar").chmod(0o755)
    more = {"NAME": "mine", "PATH": f"{stub}:{os.environ['PATH']}"}
    script = str(EXAMPLES / "bars/sketchybar.sh")
    assert run(script, more=more).splitlines()[:3] == ["--set", "mine", "drawing=off"]
    summary(f"1 0 0 0 0 ⚠1 {HOSTILE}\n")
    said = run(script, more=more).splitlines()
    assert said == ["--set", "mine", "drawing=on", f"label=⚠1 {HOSTILE}", "label.color=0xffe5c07b"]


# ---- editors ----


@pytest.mark.parametrize("editor", ["vim", "nvim"])
def test_the_editors_status_line_and_terminal(editor, environ, summary, agents, tmp_path):
    require(editor)
    agent = agents("claude")
    plugin = EXAMPLES / "editors/agentwrap.vim"
    clean = ["-u", "NONE", "-i", "NONE", "-n"]
    nocp = ["-N"] if editor == "vim" else []
    argv = [editor, *clean, *nocp, "--cmd", "set laststatus=2", "-S", str(plugin)]
    summary("1 0 0 0 0 ⚠1 %#Error# %{system('touch pwned')}\n")
    with Terminal(argv, environ=environ, cwd=tmp_path, rows=24) as terminal:
        terminal.until("⚠1 %#Error# %{system")
        summary("0 0 0 2 0 ●2\n")
        terminal.until("●2")
        terminal.send(f":Agentwrap {agent.path}\r".encode())
        agent.write(b"hello from the agent" + report("blocked"))
        terminal.until("hello from the agent")
        terminal.until("⚠1")
        agent.exit()
        terminal.until(lambda: "⚠1" not in terminal.text)
    assert not (tmp_path / "pwned").exists()


# ---- scripts ----


def test_three_agents_in_tmux(tmux, agents, environ, tmp_path):
    three = [agents(name) for name in ("claude", "codex", "pi")]
    tmux.start("here")
    command = [
        str(EXAMPLES / "scripts/three-agents.sh"),
        *(f"--notify none {agent.path} --flag" for agent in three),
    ]
    more = {**tmux.environ, "TMUX": f"{tmux.socket},1,0"}
    script = subprocess.Popen(
        command, env=more, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    for agent in three:
        agent.write(report("working"))
    three[0].write(report("blocked", "approve Bash: make"))
    assert re.fullmatch(r"claude-\d+ +blocked \ds +approve Bash: make .*\n", script.stdout.readline())
    three[0].write(report("working"))
    three[1].write(report("done", "all tests pass", app="codex"))
    assert re.fullmatch(r"codex-\d+ +done \ds +all tests pass .*\n", script.stdout.readline())
    time.sleep(0.3)
    three[0].write(report("done", "fixed"))
    assert re.fullmatch(r"claude-\d+ +done \ds +fixed .*\n", script.stdout.readline())
    assert script.poll() is None
    three[2].write(report("error", "API Error: 400", app="pi"))
    assert re.fullmatch(r"pi-\d+ +error \ds +API Error: 400 .*\n", script.stdout.readline())
    assert script.stdout.readline() == "not all agents are done: one failed or left\n"
    assert script.wait(10) == 1


def test_a_make_target_that_tells(environ, tmp_path):
    require("make")
    told = tmp_path / "told"
    (tmp_path / "home/.config/agentwrap").mkdir(parents=True)
    (tmp_path / "tell.sh").write_text(f'#!/bin/sh\necho "$AGENTWRAP_TITLE, $AGENTWRAP_BODY" >>{told}\n')
    (tmp_path / "home/.config/agentwrap/config.toml").write_text(
        f'[notify]\nchannels = ["command"]\ncommand = ["/bin/sh", "{tmp_path}/tell.sh"]\n'
    )
    (tmp_path / "Makefile").write_text(
        f"include {EXAMPLES}/scripts/Makefile\nquick:\n\t@echo made quick\nslow:\n\t@sleep 10.2; exit 3\n"
    )
    with Outer(["make", "told-quick"], environ=environ, cwd=tmp_path) as outer:
        assert outer.wait() == 0
        assert b"made quick" in outer.output
    with Outer(["make", "told-slow"], environ=environ, cwd=tmp_path) as outer:
        assert os.waitstatus_to_exitcode(outer.wait(30)) == 2
    until(told.exists)
    until(lambda: told.read_text() == "make failed (exit code 2), slow\n", what="told")


def test_a_make_target_without_a_terminal(run, tmp_path):
    require("make")
    (tmp_path / "Makefile").write_text(f"include {EXAMPLES}/scripts/Makefile\nquick:\n\t@echo made quick\n")
    assert "made quick" in run("make", "told-quick", stdin=subprocess.DEVNULL)
    (tmp_path / "Makefile").rename(tmp_path / "other.mk")
    assert "made quick" in run("make", "-f", "other.mk", "told-quick", stdin=subprocess.DEVNULL)


def test_a_git_hook_waits_for_agents_at_work(run, tmp_path):
    repository = tmp_path / "shop"
    run("git", "init", "-q", str(repository))
    (repository / "src").mkdir()
    hook = repository / ".git/hooks/pre-commit"
    shutil.copy(EXAMPLES / "git/pre-commit", hook)
    commit = ["git", "-c", "user.name=x", "-c", "user.email=x@y", "commit", "-q", "--allow-empty", "-m", "x"]
    run(*commit, cwd=repository)
    live = Live(tmp_path / "state", "claude", "working", cwd=str(repository / "src"))
    try:
        said = run(*commit, cwd=repository, code=1)
        assert said == f"{live.name} is still at work here; wait for it: agentwrap wait {live.name}\n"
        run(*commit, "--no-verify", cwd=repository)
        run(*commit, cwd=repository, more={"AGENTWRAP_SESSION": live.name})
        live.set("working", cwd=f"{repository}-other")
        run(*commit, cwd=repository)
        live.set("done", cwd=str(repository))
        run(*commit, cwd=repository)
    finally:
        live.kill()
