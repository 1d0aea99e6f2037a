"""Claims about the shell code, each in a real bash, zsh and fish on a terminal of its own."""

from __future__ import annotations

import json
import os
import re
import select
import subprocess
import time

import ptyprocess
import pyte
import pytest

from agentwrap import agents
from agentwrap.__main__ import VERBS
from agentwrap.commands import init
from agentwrap.host import statefile
from agentwrap.host.statefile import StateDir
from tests.lab.tools import require

SHELLS = ("bash", "zsh", "fish")
START = {
    "bash": ["bash", "--norc", "--noprofile", "-i"],
    "zsh": ["zsh", "-f", "-i"],
    "fish": ["fish", "--no-config", "-i"],
}
PROMPT = {
    "bash": "PS1='$ '",
    "zsh": "PROMPT='$ '; unsetopt prompt_cr prompt_sp",
    "fish": "function fish_prompt; printf '$ '; end; function fish_greeting; end",
}


class Shell:
    """An interactive shell, and the screen it draws."""

    def __init__(self, name, home, environ=None):
        self.name = name
        self.bin = home / "bin"
        self.bin.mkdir(exist_ok=True)
        path = f"{self.bin}:{os.environ['PATH']}"
        base = {"HOME": str(home), "PATH": path, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}
        base["AGENTWRAP_STATE_DIR"] = str(home / "state")
        self.screen = pyte.Screen(100, 24)
        self.stream = pyte.ByteStream(self.screen)
        self.raw = b""
        self.process = ptyprocess.PtyProcess.spawn(
            START[name], env=base | (environ or {}), cwd=str(home), dimensions=(24, 100)
        )
        self.say(PROMPT[name])

    def read(self, seconds=0.05):
        while select.select([self.process.fd], [], [], seconds)[0]:
            try:
                data = os.read(self.process.fd, 65536)
            except OSError:
                return
            if not data:
                return
            self.raw += data
            self.stream.feed(data)

    def type(self, text):
        os.write(self.process.fd, text.encode())

    def say(self, line):
        """Run a line and wait until it is done, by what it prints at its end."""
        self.count = getattr(self, "count", 0) + 1
        marker = f"<{self.count}-end>"
        self.raw = b""
        self.type(f"{line}\r" if not line else f"{line}; echo '<{self.count}'-'end>'\r")
        if line:
            self.until(lambda: marker.encode() in self.raw)
        self.settle()
        return self.raw.decode("utf-8", "replace")

    def until(self, reached, seconds=15):
        deadline = time.monotonic() + seconds
        while not reached():
            assert time.monotonic() < deadline, "\n".join(self.screen.display)
            self.read()

    def settle(self):
        """Until the shell has drawn its prompt and waits."""
        before = None
        while before != self.raw:
            before = self.raw
            self.read(0.15)

    @property
    def prompt(self):
        """The line the cursor is on."""
        return self.screen.display[self.screen.cursor.y].rstrip()

    def enter(self):
        self.type("\r")
        self.settle()
        return self.prompt

    def load(self, tmp_path, *, alias=False, environ=None):
        code = tmp_path / f"init.{self.name}"
        code.write_text(init.code(self.name, environ or {"PATH": str(self.bin)}, alias=alias))
        # As the documentation says; a file stands for the command's output.
        self.say(f"source {code}" if self.name == "fish" else f'eval "$(cat {code})"')

    def close(self):
        self.process.terminate(force=True)


@pytest.fixture(params=SHELLS)
def shell(request, tmp_path):
    require(request.param)
    shell = Shell(request.param, tmp_path)
    yield shell
    shell.close()


class Sessions:
    """Sessions of this process."""

    def __init__(self, home):
        self.state = StateDir.open({"AGENTWRAP_STATE_DIR": str(home / "state")})

    def set(self, name, state, **more):
        one = {"session": name, "pid": os.getpid(), "pid_started": statefile.process_started(os.getpid())}
        self.state.write_session(name, json.dumps(one | {"state": state} | more).encode())
        self.state.flush_summary()

    def clear(self):
        for one in self.state.sessions():
            self.state.remove_session(one["session"])
        self.state.flush_summary()


@pytest.fixture
def sessions(tmp_path):
    return Sessions(tmp_path)


def test_the_segment_follows_the_sessions(shell, sessions, tmp_path):
    shell.load(tmp_path)
    assert shell.enter() == "$"
    sessions.set("a-1", "blocked", message="$(touch pwned) `touch pwned` %n \\w \x1b]0;x\x07")
    assert shell.enter() == "⚠1 $"
    sessions.set("a-2", "working")
    assert shell.enter() == "⚠1 ●1 $"
    sessions.set("a-1", "idle")
    assert shell.enter() == "●1 $"
    sessions.set("a-2", "unknown")
    assert shell.enter() == "$"
    sessions.clear()
    assert shell.enter() == "$"


HOSTILE = "1 0 0 0 0 $(touch pwned)`touch pwned`${HOME}%n%F{red}\\w\\u!!%(?.x.y)"


def test_a_hostile_summary_is_shown_and_nothing_else(shell, tmp_path):
    (tmp_path / "state").mkdir(mode=0o700)
    shell.load(tmp_path)
    (tmp_path / "state" / "summary").write_bytes(HOSTILE.encode() + b"\x1b]0;t\x07\x1b[31m\x01\n")
    assert shell.enter() == HOSTILE.split(" ", 5)[5] + "]0;t[31m $"
    assert not (tmp_path / "pwned").exists()


@pytest.mark.parametrize(
    "content", [b"", b"\n", b"x", b"1", b"\0\0\0", b"0 0 0 0 0", b"\xff\xfe", b"1 2 3 4 5 " + b"\xff"]
)
def test_an_odd_summary_breaks_nothing(shell, tmp_path, content):
    (tmp_path / "state").mkdir(mode=0o700)
    shell.load(tmp_path)
    (tmp_path / "state" / "summary").write_bytes(content)
    shell.enter()
    assert shell.enter().endswith("$")
    assert shell.say("echo all good").count("all good") >= 1
    assert "agentwrap" not in "".join(shell.screen.display[3:])


def test_it_costs_no_process_and_little_time(shell, sessions, tmp_path):
    sessions.set("a-1", "blocked")
    shell.load(tmp_path)
    function = {"fish": "__agentwrap_segment >/dev/null"}.get(shell.name, "__agentwrap_update")
    measure = {
        "bash": f"time for i in {{1..200}}; do {function}; done",
        "zsh": f"time ( for i in {{1..200}}; do {function}; done )",
        "fish": f"time for i in (seq 200); {function}; end",
    }[shell.name]
    shell.say("TIMEFORMAT=%R; TIMEFMT=%E" if shell.name != "fish" else "true")
    output = shell.say(measure)
    numbers = re.findall(r"(?:^|\s|in +)(\d+[.,]\d+)\s*(s|secs|millis|micros)?\s", output)
    seconds = min(
        float(number.replace(",", ".")) * {"millis": 1e-3, "micros": 1e-6}.get(unit, 1)
        for number, unit in numbers
    )
    assert seconds / 200 < 0.001, output


def test_no_process_is_started_at_a_prompt(shell, sessions, tmp_path):
    require("strace")
    sessions.set("a-1", "blocked")
    shell.load(tmp_path)
    shell.enter()
    trace = tmp_path / "trace"
    tracer = subprocess.Popen(
        ["strace", "-f", "-e", "trace=process", "-o", str(trace), "-p", str(shell.process.pid)],
        stderr=subprocess.PIPE,
    )
    try:
        assert b"attached" in tracer.stderr.readline()
        for _ in range(3):
            assert shell.enter() == "⚠1 $"
    finally:
        tracer.terminate()
        tracer.communicate()
    started = re.findall(r"(?m)^.*(?:fork|clone3?|execve)\(.*$", trace.read_text())
    assert [line for line in started if "CLONE_THREAD" not in line] == []


def test_the_status_of_the_last_command_is_kept(shell, sessions, tmp_path):
    sessions.set("a-1", "done")
    code = {
        "bash": "PS1='[$?] '",
        "zsh": "PROMPT='[%?] '",
        "fish": "function fish_prompt; printf '[%s] ' $status; end",
    }
    shell.say(code[shell.name])
    shell.load(tmp_path)
    shell.type("sh -c 'exit 7'\r")
    shell.settle()
    assert shell.prompt == "✓1 [7]"
    shell.type("echo status $status\r" if shell.name == "fish" else "echo status $?\r")
    shell.settle()
    assert any("status 7" in line and "echo" not in line for line in shell.screen.display)


OTHER = {
    "bash": "__theirs() { PS1=\"theirs:$? \"; }; PROMPT_COMMAND='__theirs ;'",
    "zsh": '__theirs() { PROMPT="theirs:$? " }; precmd_functions+=(__theirs)',
    "fish": "function fish_prompt; printf 'theirs:%s ' $status; end",
}


@pytest.mark.parametrize("when", ["before", "after"])
def test_other_prompt_code_goes_on_working(shell, sessions, tmp_path, when):
    sessions.set("a-1", "error")
    if when == "before":
        shell.say(OTHER[shell.name])
        shell.load(tmp_path)
    else:
        shell.load(tmp_path)
        shell.say(
            OTHER[shell.name].replace(
                "PROMPT_COMMAND='__theirs ;'", 'PROMPT_COMMAND="__theirs; $PROMPT_COMMAND"'
            )
        )
    shell.enter()
    shell.type("false\r")
    shell.settle()
    assert shell.prompt == "✗1 theirs:1"
    shell.say("agentwrap_off")
    shell.enter()
    assert shell.enter().startswith("theirs:")


def test_an_array_of_prompt_commands_is_respected(tmp_path, sessions):
    shell = Shell("bash", tmp_path)
    try:
        sessions.set("a-1", "blocked")
        shell.say("PROMPT_COMMAND=('one=1' 'two=2')")
        shell.load(tmp_path)
        assert shell.enter() == "⚠1 $"
        shell.say("agentwrap_off")
        assert "[one=1][two=2]" in shell.say("printf '[%s]' \"${PROMPT_COMMAND[@]}\"")
        assert shell.enter() == "$"
    finally:
        shell.close()


def test_strict_shell_options_are_no_trouble(shell, sessions, tmp_path):
    sessions.set("a-1", "blocked")
    options = {
        "bash": "set -u; set -o noclobber",
        "zsh": "setopt nounset ksh_arrays sh_word_split warn_create_global",
    }
    shell.say(options.get(shell.name, "true"))
    shell.load(tmp_path)
    shell.screen.reset()
    assert shell.enter() == "⚠1 $"
    assert shell.enter() == "⚠1 $"
    text = "\n".join(shell.screen.display)
    assert "unbound" not in text
    assert "global" not in text
    assert "parameter" not in text


LEFT = {
    "bash": "{ set; complete -p; alias; }",
    "zsh": "{ set; functions; alias; }",
    "fish": "begin; set; functions -a; complete; end",
}


def test_one_function_undoes_everything(shell, sessions, tmp_path):
    for name in ("claude", "codex"):
        (shell.bin / name).write_text("#!/bin/sh\necho bare\n")
        (shell.bin / name).chmod(0o755)
    sessions.set("a-1", "blocked")
    before = known(shell)
    shell.load(tmp_path, alias=True)
    assert shell.enter() == "⚠1 $"
    assert known(shell) - before
    shell.say("agentwrap_off")
    assert shell.enter() == "$"
    assert "bare" in shell.say("claude")
    assert known(shell) - before == set()


def known(shell):
    """What of ours the shell knows: names, functions, completions."""
    shell.say(f"{LEFT[shell.name]} | grep -a agentwrap | sed 's/^/found:/'")
    found = re.findall(r"(?m)^found:(\w+).*$", shell.raw.decode("utf-8", "replace").replace("\r", ""))
    return set(found) - {"_", "argv", "BASH_EXECUTION_STRING", "AGENTWRAP_STATE_DIR", "history", "OLDPWD"}


def test_loading_it_twice_shows_it_once(shell, sessions, tmp_path):
    sessions.set("a-1", "blocked")
    shell.load(tmp_path)
    shell.load(tmp_path)
    assert shell.enter() == "⚠1 $"
    shell.say("agentwrap_off")
    assert shell.enter() == "$"


def test_the_agents_found_are_wrapped_and_a_users_own_functions_are_not(shell, tmp_path):
    for name, text in (
        ("agentwrap", 'echo "wrapped $*"'),
        ("codex", "echo bare"),
        ("pi", "echo bare"),
        ("claude", "echo bare"),
    ):
        (shell.bin / name).write_text(f"#!/bin/sh\n{text}\n")
        (shell.bin / name).chmod(0o755)
    shell.say("alias claude='echo mine'")
    shell.say({"fish": "function pi; echo my own; end"}.get(shell.name, "pi() { echo my own; }"))
    environ = {"PATH": str(shell.bin)}
    assert init.found(environ) == ["claude", "codex", "pi"]
    shell.load(tmp_path, alias=True, environ=environ)
    assert "wrapped codex resume --last a b" in shell.say("codex resume --last 'a b'")
    assert "mine" in shell.say("claude")
    assert "my own" in shell.say("pi")
    shell.say("opencode")
    assert "wrapped opencode" not in "\n".join(shell.screen.display)


def test_no_colour_where_it_is_not_wanted(tmp_path, sessions):
    require(*SHELLS)
    for name in SHELLS:
        for environ, coloured in (({}, True), ({"NO_COLOR": "1"}, False)):
            shell = Shell(name, tmp_path, environ)
            try:
                sessions.set("a-1", "blocked")
                shell.load(tmp_path)
                assert shell.enter() == "⚠1 $"
                row = shell.screen.buffer[shell.screen.cursor.y]
                assert (row[0].fg != "default") == coloured, name
                assert row[3].fg == "default"
            finally:
                shell.close()


def test_the_line_is_as_wide_as_the_shell_thinks(shell, sessions, tmp_path):
    sessions.set("a-1", "blocked")
    shell.load(tmp_path)
    shell.enter()
    words = "echo " + "x" * 120
    shell.type(words)
    shell.settle()
    shell.type("\x01")
    shell.settle()
    assert shell.screen.cursor.x == len("⚠1 $ ")


# Completion


def complete(shell, text):
    shell.screen.reset()
    shell.raw = b""
    shell.type("\x15" + text + "\t")
    shell.settle()
    if shell.name == "bash":
        shell.type("\t")
        shell.settle()
    shown = "\n".join(shell.screen.display)
    shell.type("\x03")
    shell.settle()
    return shown


@pytest.fixture
def completing(shell, tmp_path):
    if shell.name == "zsh":
        shell.say("autoload -Uz compinit; compinit -u -D; zstyle ':completion:*' menu no")
    shell.load(tmp_path)
    return shell


def test_verbs_their_options_and_sessions_are_completed(completing, sessions):
    sessions.set("claude-77", "blocked")
    assert "agentwrap explain" in complete(completing, "agentwrap expla")
    assert "agentwrap status --short" in complete(completing, "agentwrap status --sh")
    assert "agentwrap wait claude-77" in complete(completing, "agentwrap wait cl")
    assert "desktop" in complete(completing, "agentwrap --notify de")
    assert "agentwrap --no-inject" in complete(completing, "agentwrap --no-")


def test_behind_a_command_its_own_completion_works(completing, tmp_path):
    (completing.bin / "codex").write_text("#!/bin/sh\n")
    (completing.bin / "codex").chmod(0o755)
    completing.say(
        {
            "bash": "_codex() { COMPREPLY=($(compgen -W 'resume-$COMP_CWORD' -- \"$2\")); }; complete -F _codex codex",
            "zsh": "_codex() { compadd resume-$((CURRENT - 1)) }; compdef _codex codex",
            "fish": "complete -c codex -f -a 'resume-1'",
        }[completing.name]
    )
    assert "agentwrap codex resume-1" in complete(completing, "agentwrap codex re")
    assert "agentwrap --name x codex resume-1" in complete(completing, "agentwrap --name x codex re")
    assert "agentwrap run codex resume-1" in complete(completing, "agentwrap run codex re")


@pytest.mark.parametrize("shell", SHELLS)
def test_completions_know_every_verb_option_and_agent(shell):
    import typer

    from agentwrap import cli
    from agentwrap.commands import report

    text = init._file(f"complete.{shell}")
    words = set(re.findall(r"[A-Za-z][A-Za-z-]*", text))
    verbs = typer.main.get_command(cli.app).commands
    assert set(verbs) | {"report"} == set(VERBS)
    assert set(VERBS) <= words
    options = {name.lstrip("-") for verb in verbs.values() for option in verb.params for name in option.opts}
    options = {
        name
        for name in options
        if any(f"--{name}" in option.opts for verb in verbs.values() for option in verb.params)
    }
    options |= {name.lstrip("-") for name in report._VALUES}
    options |= {"notify", "no-inject", "agent", "name", "record", "record-input", "config", "version", "help"}
    assert options <= words
    assert set(agents.NAMES) <= words


def test_a_shell_of_another_kind_is_one_line(capsys):
    from agentwrap.__main__ import main

    assert main(["init", "tcsh"]) == 2
    assert capsys.readouterr().out == ""
    assert main(["init", "/bin/zsh"]) == 0
    assert "agentwrap_off" in capsys.readouterr().out
