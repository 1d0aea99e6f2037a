"""The man page says what there is, all of it, and nothing else."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import agentwrap
from agentwrap import __main__ as command_line
from agentwrap import agents, config
from agentwrap.commands import hooks
from agentwrap.core import recording, snapshot, status, summary
from agentwrap.core.session import Session
from agentwrap.host import panes
from tests.lab import commands
from tests.lab.tools import require

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "man" / "agentwrap.1"
LINES = PAGE.read_text(encoding="utf-8").split("\n")


def section(name):
    """The lines of a section or subsection; those of a section with its subsections."""
    for level in (".Ss", ".Sh"):
        head = f"{level} {name}"
        if head in LINES:
            start = LINES.index(head) + 1
            ends = (".Sh",) if level == ".Sh" else (".Sh", ".Ss")
            end = next((i for i in range(start, len(LINES)) if LINES[i].startswith(ends)), len(LINES))
            return LINES[start:end]
    raise AssertionError(name)


def flags(lines):
    """The options named, with their dashes."""
    text = "\n".join(line for line in lines if line.startswith("."))
    short = {f"-{one}" for one in re.findall(r"(?<!Fl )Fl (\w)\b", text)}
    return {f"--{one}" for one in re.findall(r"Fl Fl ([a-z][a-z-]*)", text)} | short


def items(lines, macro, *, nested=False):
    """What the items of the first list, or of all of them, are about: the words behind a macro."""
    found, depth = [], 0
    for line in lines:
        depth += line.startswith(".Bl") - line.startswith(".El")
        match = re.match(rf"\.It {macro} (.+)", line)
        if match and (nested or depth == 1):
            found += [word for word in match[1].split() if word != ","]
    return found


def literals(lines):
    """The displays, each as its lines."""
    found, inside = [], None
    for line in lines:
        if line.startswith(".Bd -literal"):
            inside = []
        elif line == ".Ed":
            found.append(inside)
            inside = None
        elif inside is not None:
            found_line = re.sub(r"\\\[u([0-9A-F]+)\]", lambda match: chr(int(match[1], 16)), line)
            inside.append(found_line.replace("\\e", "\\"))
    return found


def test_the_page_is_without_fault():
    require("mandoc")
    found = subprocess.run(
        ["mandoc", "-T", "lint", "-W", "warning", PAGE], check=False, capture_output=True, text=True
    )
    assert (found.stdout, found.returncode) == ("", 0)


def test_every_option_is_there_and_no_other():
    lines = section("Options")
    real = commands.options()
    codex = {"-c"}
    assert flags(lines) - codex == real
    for option in real:
        assert any(
            re.match(rf"\.It (Fl h , )?Fl Fl {option[2:]}\b", line) or option == "-h" for line in lines
        )


def test_every_verb_is_there_with_its_options_and_no_other():
    lines = section("Verbs")
    documented = {}
    name, depth = None, 0
    for line in lines:
        depth += line.startswith(".Bl") - line.startswith(".El")
        head = re.match(r"\.It Cm (\w+)", line)
        if depth == 1 and head:
            name = head[1]
            documented[name] = []
        elif name is None:
            continue
        documented[name].append(line)
    assert set(documented) == {*command_line.VERBS, "run"}
    for verb, options in commands.verbs().items():
        assert flags(documented[verb]) == options, verb


def test_no_section_names_an_option_that_does_not_exist():
    real = commands.options().union(*commands.verbs().values(), {"-c"})
    assert flags(LINES) <= real


def test_every_key_of_the_configuration_is_there_and_no_other():
    lines = section("CONFIGURATION")
    documented = items(lines, "Ic")
    assert sorted(documented) == sorted([*config._NOTIFY, "inject", "commands"])


def test_the_defaults_are_those_that_count(tmp_path):
    (text,) = literals(section("CONFIGURATION"))
    tables = tomllib.loads("\n".join(text))
    assert set(tables["notify"]) == set(config._NOTIFY)
    path = tmp_path / "config.toml"
    path.write_text("\n".join(text))
    settings, _ = config.load({}, str(path), strict=True)
    default = config.Settings()
    for key in config._NOTIFY:
        assert getattr(settings, key) == getattr(default, key), key
    assert settings.injects("codex") == default.injects("codex")


def test_every_agent_is_named():
    for lines in (section("Options"), section("CONFIGURATION")):
        assert f".Cm {' , '.join(agents.NAMES)}" in "\n".join(lines)


def test_every_channel_and_every_event_is_there_and_no_other():
    assert sorted(items(section("Channels"), "Cm")) == sorted(config.CHANNELS)
    told = [line.split()[1] for line in section("NOTIFICATIONS") if re.match(r"\.It \w+ Ta", line)]
    assert tuple(told) == config.EVENTS


def test_every_environment_variable_is_there_and_no_other():
    lines = section("ENVIRONMENT")
    given = next(i for i, line in enumerate(lines) if line.startswith("Given to the command"))
    program = next(i for i, line in enumerate(lines) if line.startswith("Given to the program"))
    parts = lines[:given], lines[given:program], lines[program:]
    lists = config.ENVIRONMENT_READ, config.ENVIRONMENT_GIVEN, config.ENVIRONMENT_OF_NOTIFY_COMMAND
    for part, real in zip(parts, lists, strict=True):
        documented, names = set(items(part, "Ev")), {name for name, _ in real}
        assert names <= documented
        if real is not config.ENVIRONMENT_READ:
            assert names == documented
    package = "".join(path.read_text() for path in (ROOT / "agentwrap").rglob("*.py"))
    for name in re.findall(r"^\.Ev (\w+)|^\.It Ev (.+)$", PAGE.read_text(), re.MULTILINE):
        for one in " ".join(name).replace(",", " ").split():
            assert f'"{one}"' in package or any(f"{one}" == n for n, _ in config.ENVIRONMENT_GIVEN), one


def test_every_state_is_there_and_no_other():
    documented = [line.split()[1] for line in section("STATES") if line.startswith(".It ")]
    assert sorted(documented) == sorted(status.ORDER)


def test_every_key_of_a_session_is_there_in_order():
    session = Session(
        agents.GENERIC, config.Settings().policy, now=0.0, command="x", label="x", by_app=agents.by_app
    )
    identity = snapshot.Identity(
        session="x-1",
        name=None,
        agent="x",
        command=["x"],
        cwd="/",
        tty=None,
        pid=1,
        pid_started=0.0,
        started=0.0,
    )
    session.output(b"\x1b]7501;state=idle\a", 0.0)
    real = identity.session_object(session.view(), 0.0)
    lines = section("Session files")
    assert items(lines, "Cm") == list(real)
    records = " ".join(lines[lines.index(".It Cm records") :])
    (record,) = real["records"]
    assert [key for key in record if not re.search(rf"\.Cm [a-z ,]*\b{key}\b", records)] == []


def test_the_summary_is_as_the_program_writes_it():
    words, example = literals(section("Summary"))[0]
    assert words.lower().split()[:5] == list(summary.COUNTED)
    assert example + "\n" == summary.line([int(word) for word in example.split()[:5]])
    text = "\n".join(section("Summary"))
    for symbol, state in zip(summary.SYMBOLS, summary.COUNTED, strict=True):
        assert not symbol or f"\\[u{ord(symbol):04X}] for {state}" in text


def test_every_code_of_a_recording_is_there():
    text = "\n".join(section("RECORDINGS"))
    for code in (recording.OUTPUT, recording.INPUT, recording.RESIZE, recording.EXIT, recording.BYTES):
        assert f"\n.Cm {code}" in text


def test_every_option_of_a_tmux_pane_is_there_and_no_other():
    documented = set(re.findall(r"@agentwrap_(\w+)", PAGE.read_text()))
    assert documented == set(panes._KEYS)


def test_every_agent_with_hooks_is_there(capsys):
    text = "\n".join(section("Verbs"))
    page = text[text.index(".It Cm hooks") :].split("\n.It ")[0]
    with pytest.raises(agentwrap.errors.UsageError) as error:
        hooks.hooks("nobody")
    known = str(error.value).rpartition("there are ")[2].split(", ")
    named = set(
        re.findall(r"\b[a-z]+\b", " ".join(line for line in page.split("\n") if line.startswith(".Cm")))
    )
    assert named - {"report"} == set(known)


def test_titles_are_those_of_notifications():
    told = {
        status.title("blocked", "Claude Code", "permission"),
        *(status.title("blocked", "", kind).strip() for kind in ("question", "auth", None)),
        *(status.title("done", "", None, message).strip() for message in (None, "so?")),
        status.title("error", "").strip(),
        status.exit_title("", 9, "SIGKILL").strip(),
        status.exit_title("make", 0, None),
        status.exit_title("make", 3, None),
    }
    quoted = re.findall(r"^\.Qq (.+?)(?: ,)?$", "\n".join(section("NOTIFICATIONS")), re.MULTILINE)
    assert {one.removesuffix(" .") for one in quoted} == told


def test_every_example_is_a_command_line_that_agentwrap_takes():
    lines = [line for display in literals(LINES) for line in display]
    found = list(commands.found_in(lines))
    assert len(found) > 10
    for words in found:
        commands.judge(words)


@pytest.mark.parametrize(
    "words", ["frobnicate", "--foo true", "--name x list", "status api", "--config config.toml list"]
)
def test_a_diagnostic_is_what_is_said(words, tmp_path):
    (tmp_path / "config.toml").write_text('[notify]\n# mine\nchanels = ["bell"]\n')
    done = subprocess.run(
        [sys.executable, "-m", "agentwrap", *shlex.split(words)],
        check=False,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={
            "PATH": "/usr/bin:/bin",
            "PYTHONPATH": str(ROOT),
            "AGENTWRAP_STATE_DIR": str(tmp_path / "state"),
        },
    )
    said = done.stderr.strip().replace(str(tmp_path), "").replace("config.toml:", "FILE:")
    documented = [line.removeprefix(".It ").replace("\\[u2026]", "…") for line in section("DIAGNOSTICS")]
    assert said in documented
