"""What is wrapped and what runs bare, what is injected, and how a command that cannot run is told."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys

import pytest

from tests.lab.judge import processes_of
from tests.lab.outer import AGENTWRAP, Outer, until

SHOW = """#!/bin/sh
echo "words:$#"
for word; do echo "word:$word"; done
tty -s && echo terminal
env | grep -E '^(AGENTWRAP|PI_|OPENCODE)' | sort
[ -n "$OPENCODE_TUI_CONFIG" ] && cat "$OPENCODE_TUI_CONFIG" && ls -l "$OPENCODE_TUI_CONFIG"
exit 5
"""

NOTICES = [
    "-c",
    'tui.notifications=["agent-turn-complete","approval-requested","plan-mode-prompt","async-question"]',
    "-c",
    'tui.notification_method="osc9"',
    "-c",
    'tui.notification_condition="always"',
]


@pytest.fixture
def programs(tmp_path, environ):
    """Programs with the agents' names that show how they were started."""
    directory = tmp_path / "bin"
    directory.mkdir()
    for name in ("claude", "codex", "pi", "opencode", "list"):
        (directory / name).write_text(SHOW)
        (directory / name).chmod(0o755)
    environ["PATH"] = f"{directory}:{environ['PATH']}"
    return directory


def shown(words, environ, **options) -> list[str]:
    with Outer([*AGENTWRAP, *words], environ=environ, **options) as outer:
        assert os.waitstatus_to_exitcode(outer.wait()) == 5
        return outer.output.decode().split("\r\n")


def given(lines: list[str]) -> list[str]:
    return [line[5:] for line in lines if line.startswith("word:")]


def test_every_word_from_the_command_on_is_its_own(programs, environ):
    assert given(shown(["claude", "--help", "--notify", "x", "--"], environ)) == [
        "--help",
        "--notify",
        "x",
        "--",
    ]


def test_a_command_with_the_name_of_a_verb(programs, environ):
    assert given(shown(["run", "--name", "n", "--", "list", "--json"], environ)) == ["--json"]


def test_codex_is_told_to_say_when_a_turn_is_finished_before_the_users_words(programs, environ):
    assert given(shown(["codex", "resume", "--last"], environ)) == [*NOTICES, "resume", "--last"]
    assert given(shown(["codex", "exec", "say hi"], environ)) == ["exec", "say hi"]
    assert given(shown(["codex", "--version"], environ)) == ["--version"]
    assert given(shown(["codex", "-c", "tui.notifications=false"], environ)) == [
        "-c",
        "tui.notifications=false",
    ]
    assert given(shown(["codex", "-c", "model=x"], environ)) == [*NOTICES, "-c", "model=x"]


def test_injection_can_be_turned_off(programs, environ, tmp_path):
    assert given(shown(["--no-inject", "codex", "hi"], environ)) == ["hi"]
    config = tmp_path / "config.toml"
    config.write_text("[agents.codex]\ninject = false\n")
    assert given(shown(["--config", str(config), "codex", "hi"], environ)) == ["hi"]
    assert given(shown(["codex", "hi"], {**environ, "AGENTWRAP_CONFIG": str(config)})) == ["hi"]


def test_pi_need_not_ask(programs, environ):
    assert "PI_PROGRAM_STATUS=1" in shown(["pi"], environ)
    assert "PI_PROGRAM_STATUS=0" in shown(["pi"], {**environ, "PI_PROGRAM_STATUS": "0"})
    assert "PI_PROGRAM_STATUS=1" not in shown(["--no-inject", "pi"], environ)


def test_opencode_gets_a_private_file_that_is_gone_afterwards(programs, environ, state_dir):
    lines = shown(["opencode"], environ)
    assert '{"attention":{"enabled":true,"sound":false}}' in "".join(lines)
    path = next(line for line in lines if line.startswith("OPENCODE_TUI_CONFIG=")).partition("=")[2]
    assert "}}-rw-------" in "".join(lines)
    until(lambda: not os.path.exists(path))
    mine = {**environ, "OPENCODE_TUI_CONFIG": "/my/own"}
    assert "OPENCODE_TUI_CONFIG=/my/own" in shown(["opencode"], mine)


def test_agentwrap_0_runs_bare(programs, environ, state_dir):
    lines = shown(["codex", "hi"], {**environ, "AGENTWRAP": "0"})
    assert given(lines) == ["hi"]
    assert not any(line.startswith(("AGENTWRAP_SESSION", "AGENTWRAP_STATE_FILE")) for line in lines)
    assert not list(state_dir.glob("*.json"))


@pytest.mark.parametrize("redirection", ["</dev/null", ">{file}", "| cat >{file}"])
def test_without_a_terminal_it_runs_bare(redirection, programs, environ, tmp_path):
    file = tmp_path / "out"
    line = f"{' '.join(AGENTWRAP)} codex hi {redirection.format(file=file)}"
    with Outer(["sh", "-c", line], environ=environ) as outer:
        outer.wait()
        out = outer.output.decode() + (file.read_text() if file.exists() else "")
    assert "word:hi" in out
    assert "words:1" in out
    assert "AGENTWRAP_SESSION" not in out


def test_bare_it_is_executed_in_place(environ):
    result = subprocess.run(
        [*AGENTWRAP, "sh", "-c", "echo $$; exit 9"], capture_output=True, text=True, env=environ, check=False
    )
    assert result.returncode == 9
    process = subprocess.Popen(
        [*AGENTWRAP, "sh", "-c", "echo $$"], stdout=subprocess.PIPE, text=True, env=environ
    )
    assert int(process.communicate()[0]) == process.pid


def test_inside_another_agentwrap_it_runs_bare_with_options_injected(programs, environ, state_dir):
    inner = f"{' '.join(AGENTWRAP)} codex hi"
    with Outer([*AGENTWRAP, "--name", "outer", "sh", "-c", f"{inner}; sleep 0"], environ=environ) as outer:
        outer.wait()
        lines = outer.output.decode().split("\r\n")
    assert given(lines) == [*NOTICES, "hi"]
    session = next(line for line in lines if line.startswith("AGENTWRAP_SESSION="))
    assert session.startswith("AGENTWRAP_SESSION=sh-"), "the session is the outer one's"


def test_on_a_terminal_of_its_own_inside_another_it_wraps(programs, environ):
    inner = [*AGENTWRAP, "codex", "hi"]
    code = f"import pty, sys; sys.exit(0 if pty.spawn({inner!r}) else 0)"
    with Outer([*AGENTWRAP, sys.executable, "-c", code], environ=environ) as outer:
        outer.wait()
        lines = outer.output.decode().replace("\r", "").split("\n")
    session = next(line for line in lines if line.startswith("AGENTWRAP_SESSION="))
    assert session.startswith("AGENTWRAP_SESSION=codex-")


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["no-such-program"], 127, "agentwrap: no-such-program: command not found"),
        (["lst"], 127, "did you mean `agentwrap list`?"),
        (["help"], 127, "did you mean `agentwrap --help`?"),
        (["/nowhere/program"], 127, "agentwrap: /nowhere/program: no such file"),
        (["/etc/passwd"], 126, "agentwrap: /etc/passwd: permission denied"),
        (["/etc"], 126, "agentwrap: /etc: is a directory"),
        (["--config", "/nowhere/config.toml", "true"], 2, "agentwrap: "),
        (["--record", "/nowhere/file.cast", "true"], 2, "agentwrap: cannot record to /nowhere/file.cast"),
        (["--agent", "nobody", "true"], 2, "agentwrap: no agent called 'nobody'"),
        (["--notify", "smoke", "true"], 2, "agentwrap: "),
    ],
)
def test_what_cannot_be_is_one_line_and_a_code(words, code, message, environ, state_dir):
    with Outer([*AGENTWRAP, *words], environ=environ) as outer:
        assert os.waitstatus_to_exitcode(outer.wait()) == code
        text = outer.output.decode()
        assert outer.attributes() == outer.settings
    assert message in text
    assert text.startswith("agentwrap: ")
    assert text.count("\n") == 1
    until(lambda: not processes_of(state_dir))


def test_also_bare_an_agent_that_there_is_not_runs_nothing(environ, tmp_path):
    words = ["--agent", "nobody", "--record", str(tmp_path / "x.cast"), "echo", "ran"]
    done = subprocess.run([*AGENTWRAP, *words], env=environ, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("agentwrap: no agent called 'nobody'; there are claude, ")
    assert not (tmp_path / "x.cast").exists()


def test_an_interpreter_that_is_missing(environ, tmp_path):
    script = tmp_path / "script"
    script.write_text("#!/nowhere/interpreter\n")
    script.chmod(0o755)
    with Outer([*AGENTWRAP, str(script)], environ=environ) as outer:
        assert os.waitstatus_to_exitcode(outer.wait()) == 127
        assert b"interpreter is missing" in outer.output
        assert outer.attributes() == outer.settings


def test_a_bad_configuration_is_told_and_the_command_runs(programs, environ, tmp_path):
    config = tmp_path / "config.toml"
    config.write_text("[notify]\nblocked_delay = 'soon'\n")
    lines = shown(["claude"], {**environ, "AGENTWRAP_CONFIG": str(config)})
    assert lines[0].startswith(f"agentwrap: {config}:2: ")
    assert "blocked_delay" in lines[0]


def test_a_recording_is_private_and_holds_no_keys_unless_asked(environ, tmp_path):
    def recorded(*options: str) -> list[list[object]]:
        file = tmp_path / f"{len(options)}.cast"
        with Outer(
            [
                *AGENTWRAP,
                "--record",
                str(file),
                *options,
                "sh",
                "-c",
                "stty -echo; echo ready; read x; echo got",
            ],
            environ=environ,
        ) as outer:
            outer.expect(b"ready")
            outer.send(b"secret\r")
            outer.wait()
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        until(lambda: file.read_text().rstrip().endswith('"x", 0]'))
        return [json.loads(line) for line in file.read_text().splitlines()]

    header, *events = recorded()
    assert header["version"] == 2
    assert (header["width"], header["height"]) == (80, 24)
    assert {event[1] for event in events} == {"o", "x"}
    assert "got" in "".join(event[2] for event in events if event[1] == "o")
    assert "secret" not in json.dumps(events)
    assert "secret" in "".join(event[2] for event in recorded("--record-input")[1:] if event[1] == "i")


def test_a_command_that_reports_nothing_is_told_by_its_end(environ, state_dir):
    """What replay makes of a recording is what the session did: state unknown, then done or error."""

    def states(script: str) -> list[object]:
        file = state_dir.parent / "x.cast"
        with Outer([*AGENTWRAP, "--record", str(file), "sh", "-c", script], environ=environ) as outer:
            outer.wait()
        until(lambda: '"x"' in file.read_text())
        out = subprocess.run(
            [*AGENTWRAP, "replay", "--json", str(file)],
            capture_output=True,
            text=True,
            env=environ,
            check=True,
        ).stdout
        return [event["state"] for event in map(json.loads, out.splitlines()) if event["event"] == "state"]

    assert states("exit 0") == ["done"]
    assert states("exit 3") == ["error"]


def test_a_caller_that_ignores_the_end_of_children(environ):
    before = ["env", "--ignore-signal=CHLD", *AGENTWRAP]
    with Outer([*before, "sh", "-c", "exit 5"], environ=environ) as outer:
        assert os.waitstatus_to_exitcode(outer.wait()) == 5
    with Outer([*before, "grep", "SigIgn", "/proc/self/status"], environ=environ) as outer:
        outer.wait()
        mask = int(bytes(outer.output).split()[1], 16)
    assert mask & 1 << 16, "the command finds it ignored, as without us"


def test_a_stalled_terminal_does_not_hold_what_a_signal_has_ended(environ):
    with Outer([*AGENTWRAP, "yes"], environ=environ) as outer:
        outer.expect(b"y\r\n")
        until(outer.stalled, what="the terminal takes nothing more")
        os.kill(outer.pid, signal.SIGTERM)
        until(outer.ended, 5)
        assert os.WTERMSIG(outer.status) == signal.SIGTERM


def test_the_debug_log_says_what_happened_and_is_private(environ, tmp_path):
    log = tmp_path / "log"
    with Outer(
        [*AGENTWRAP, "printf", "\\033]7501;state=working\\007"],
        environ={**environ, "AGENTWRAP_LOG": str(log)},
    ) as outer:
        outer.wait()
    until(lambda: '"working"' in log.read_text() and "exit code 0" in log.read_text())
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
