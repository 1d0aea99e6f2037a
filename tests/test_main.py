"""Claims about the command line: what is an option, a verb, a command; exit codes; one line for an error."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from agentwrap import __version__
from agentwrap.__main__ import VERBS, split
from agentwrap.errors import UsageError

AGENTWRAP = [sys.executable, "-I", "-m", "agentwrap"]


def run(*words, **more):
    environ = dict(os.environ) | {"AGENTWRAP_STATE_DIR": "/nonexistent/agentwrap"} | more.pop("environ", {})
    return subprocess.run(
        [*AGENTWRAP, *words], capture_output=True, text=True, env=environ, check=False, timeout=60, **more
    )


@pytest.mark.parametrize(
    ("words", "action", "rest"),
    [
        ([], "usage", []),
        (["--help"], "help", []),
        (["-h", "claude"], "help", []),
        (["--version"], "version", []),
        (["claude"], "command", ["claude"]),
        (["claude", "--help", "--notify", "x"], "command", ["claude", "--help", "--notify", "x"]),
        (["list", "--json"], "verb", ["list", "--json"]),
        (["run", "list", "--json"], "command", ["list", "--json"]),
        (["run", "--", "list"], "command", ["list"]),
        (["--", "list"], "command", ["list"]),
        (["--", "--odd"], "command", ["--odd"]),
        (["run", "run", "x"], "command", ["run", "x"]),
        (["run", "--help"], "help", []),
        (["./list"], "command", ["./list"]),
        (["-"], "command", ["-"]),
        (["claude", "--"], "command", ["claude", "--"]),
        (["codex", "", "--"], "command", ["codex", "", "--"]),
        (["--config", "f", "doctor"], "verb", ["doctor"]),
        (["lists"], "command", ["lists"]),
    ],
)
def test_where_the_command_begins(words, action, rest):
    got = split(words)
    assert (got[0], got[2]) == (action, rest)


@pytest.mark.parametrize("run_word", [[], ["run"]])
@pytest.mark.parametrize("equals", [False, True])
def test_every_option(run_word, equals):
    values = {
        "--notify": "bell,desktop",
        "--agent": "codex",
        "--name": "my api",
        "--record": "-",
        "--config": "c",
    }
    words = [*run_word, "--no-inject", "--record-input"]
    for option, value in values.items():
        words += [f"{option}={value}"] if equals else [option, value]
    action, options, rest = split([*words, "claude", "--name", "theirs"])
    assert (action, rest) == ("command", ["claude", "--name", "theirs"])
    assert options.notify == ("bell", "desktop")
    assert (options.agent, options.name, options.record, options.config) == ("codex", "my api", "-", "c")
    assert (options.inject, options.record_input) == (False, True)


def test_options_on_both_sides_of_run_count():
    _, options, rest = split(["--name", "a", "run", "--no-inject", "--", "status"])
    assert (options.name, options.inject, rest) == ("a", False, ["status"])


def test_nothing_given_is_nothing_set():
    options = split(["x"])[1]
    assert options.notify is None
    assert options.inject is True
    assert options.record_input is False


@pytest.mark.parametrize(
    "words",
    [
        ["--nmae", "x", "claude"],
        ["-x", "claude"],
        ["--name"],
        ["--name=", "claude"],
        ["--name", "", "claude"],
        ["--notify", "mail", "claude"],
        ["--no-inject=yes", "claude"],
        ["--no-inject"],
        ["--name", "x"],
        ["run"],
        ["run", "--"],
        ["--"],
        ["--name", "x", "list"],
        ["--record", "f", "status"],
        [""],
    ],
)
def test_wrong_usage(words):
    with pytest.raises(UsageError) as raised:
        split(words)
    assert raised.value.exit_code == 2


def test_the_way_out_is_said():
    with pytest.raises(UsageError, match="did you mean --name"):
        split(["--nmae", "x"])
    with pytest.raises(
        UsageError, match="unknown option --json: it stands behind the verb, agentwrap VERB --json"
    ):
        split(["--json", "list"])
    with pytest.raises(UsageError, match="agentwrap run --name … list"):
        split(["--name", "x", "list"])


def test_the_demo_takes_the_options_of_a_command():
    what, options, rest = split(["--record", "x.cast", "--name", "x", "--notify", "bell", "demo"])
    assert (what, rest) == ("verb", ["demo"])
    assert (options.record, options.name, options.notify) == ("x.cast", "x", ("bell",))


def test_no_arguments_is_usage_and_exit_2():
    done = run()
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("usage: agentwrap [OPTIONS] COMMAND [ARG...]\n")


def test_help_names_every_verb_and_option_and_version_the_version():
    done = run("--help")
    assert (done.returncode, done.stderr) == (0, "")
    for word in (
        *VERBS,
        "--notify",
        "--no-inject",
        "--agent",
        "--name",
        "--record",
        "--record-input",
        "--config",
    ):
        assert f" {word}" in done.stdout
    assert run("--version").stdout == f"agentwrap {__version__}\n"


def test_every_verb_has_help():
    for verb in VERBS:
        done = run(verb, "--help")
        assert (done.returncode, done.stderr) == (0, ""), verb
        assert f"agentwrap {verb}" in done.stdout


@pytest.mark.parametrize(
    "words",
    [
        ["list", "--jsn"],
        ["list", "extra"],
        ["status", "--timeout", "1"],
        ["wait", "--timeout", "soon"],
        ["wait", "--timeout", "-1"],
        ["wait", "--until", "finished"],
        ["init"],
        ["init", "tcsh"],
        ["replay"],
        ["report"],
        ["watch"],
    ],
)
def test_wrong_usage_of_a_verb_is_one_line_and_exit_2(words, tmp_path):
    done = run(*words, environ={"AGENTWRAP_STATE_DIR": str(tmp_path)})
    assert done.returncode == 2, done
    assert done.stdout == ""
    assert done.stderr.startswith(f"agentwrap: {words[0]}: ")
    assert done.stderr.count("\n") == 1


def test_a_mistake_in_the_configuration_ends_a_verb(tmp_path):
    path = tmp_path / "c.toml"
    path.write_text("[notify]\nsund = true\n")
    line = f"agentwrap: {path}:2: unknown key notify.sund (did you mean sound?)\n"
    for words in (["list"], ["status", "--short"], ["path"], ["wait"]):
        done = run(*words, environ={"AGENTWRAP_CONFIG": str(path)})
        assert (done.returncode, done.stdout, done.stderr) == (2, "", line)
        done = run("--config", str(path), *words)
        assert (done.returncode, done.stdout, done.stderr) == (2, "", line)
    done = run("--config", str(tmp_path / "none"), "list")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1


def test_a_shells_prompt_survives_a_mistake_in_the_configuration(tmp_path):
    path = tmp_path / "c.toml"
    path.write_text("x = 1\n")
    done = run("init", "bash", environ={"AGENTWRAP_CONFIG": str(path)})
    assert done.returncode == 2
    assert "agentwrap_off" in done.stdout
    assert done.stderr.count("\n") == 1


def test_a_refused_state_directory_is_said_by_the_verbs_that_need_it(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path)
    for words in (
        ["list"],
        ["list", "--json"],
        ["status"],
        ["status", "--short"],
        ["watch", "--json"],
        ["wait"],
    ):
        done = run(*words, environ={"AGENTWRAP_STATE_DIR": str(tmp_path / "link")})
        assert done.returncode == 1, words
        assert done.stdout == ""
        assert (
            done.stderr == f"agentwrap: {tmp_path}/link: refused as state directory: it is a symbolic link\n"
        )


def test_a_reader_that_has_seen_enough_is_no_error(tmp_path):
    for words in (["--help"], ["list", "--json"], ["path"], ["init", "bash"], ["status", "--help"]):
        reading, writing = os.pipe()
        os.close(reading)
        done = subprocess.run(
            [*AGENTWRAP, *words],
            stdout=writing,
            stderr=subprocess.PIPE,
            env=os.environ | {"AGENTWRAP_STATE_DIR": str(tmp_path)},
            check=False,
        )
        os.close(writing)
        assert (done.returncode, done.stderr) == (141, b""), words


def test_an_output_that_cannot_be_written_is_one_line(tmp_path):
    with open("/dev/full", "w", encoding="utf-8") as full:
        for words in (["--help"], ["list", "--json"], ["path"]):
            done = subprocess.run(
                [*AGENTWRAP, *words],
                stdout=full,
                stderr=subprocess.PIPE,
                env=os.environ | {"AGENTWRAP_STATE_DIR": str(tmp_path)},
                check=False,
            )
            assert done.returncode == 1
            assert done.stderr == b"agentwrap: cannot write: No space left on device\n"


def test_closed_descriptors_are_no_error(tmp_path):
    command = f"{sys.executable} -I -m agentwrap list"
    environ = os.environ | {"AGENTWRAP_STATE_DIR": str(tmp_path)}
    for closed in (">&-", "2>&-", "<&-", ">&- 2>&- <&-"):
        done = subprocess.run(
            ["sh", "-c", f"{command} {closed}"], env=environ, capture_output=True, check=False
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b""), closed


def test_ctrl_c_ends_a_verb_as_it_ends_any_program(tmp_path):
    verb = subprocess.Popen(
        [*AGENTWRAP, "watch", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {"AGENTWRAP_STATE_DIR": str(tmp_path / "state")},
    )
    import time

    deadline = time.monotonic() + 20
    while not (tmp_path / "state").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(0.2)
    verb.send_signal(signal.SIGINT)
    output, complaint = verb.communicate(timeout=20)
    assert (verb.returncode, output, complaint) == (-signal.SIGINT, b"", b"")


def test_a_locale_that_cannot_say_it_all_is_no_error(tmp_path):
    import json
    import time

    from agentwrap.host import statefile

    state = statefile.StateDir.open({"AGENTWRAP_STATE_DIR": str(tmp_path)})
    one = {"session": "a-1", "pid": os.getpid(), "pid_started": statefile.process_started(os.getpid())}
    one |= {"state": "blocked", "message": "漢字", "since": time.time(), "cwd": "/é"}
    state.write_session("a-1", json.dumps(one).encode())
    for words in (["list"], ["status"], ["status", "--short"], ["--help"]):
        done = subprocess.run(
            [*AGENTWRAP, *words],
            capture_output=True,
            env={"PATH": os.environ["PATH"], "AGENTWRAP_STATE_DIR": str(tmp_path), "PYTHONCOERCECLOCALE": "0"}
            | {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONIOENCODING": ""},
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, b""), words


def test_an_error_of_our_own_is_one_line_and_its_details_are_in_the_log(tmp_path, monkeypatch, capfd):
    from agentwrap import __main__, cli

    def broken(words):
        raise RuntimeError("lost\nit")

    monkeypatch.setattr(cli, "main", broken)
    monkeypatch.setattr(__main__, "_discard_output", lambda: None)
    monkeypatch.setenv("AGENTWRAP_LOG", str(tmp_path / "log"))
    assert __main__.main(["list"]) == 1
    assert capfd.readouterr().err == "agentwrap: internal error: RuntimeError: lost it\n"
    assert "Traceback" in (tmp_path / "log").read_text()
    assert (tmp_path / "log").stat().st_mode & 0o777 == 0o600
