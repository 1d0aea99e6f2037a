"""What the README says can be done is done here; what cannot be run is read."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tomllib
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from agentwrap import __main__ as command_line
from agentwrap import config
from tests.lab import commands, install
from tests.lab.outer import Outer
from tests.lab.tools import require

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
TEXT = README.read_text(encoding="utf-8")
SHELL = re.findall(r"^```sh\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
DOCUMENTS = [
    README,
    *sorted((ROOT / "docs").glob("*.md")),
    ROOT / "examples" / "README.md",
    ROOT / "CHANGELOG.md",
]


def copy(to):
    """The project as git would clone it now, with what is not committed yet."""
    require("git")
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    if listed.returncode:
        pytest.skip("not a git repository")
    for name in listed.stdout.decode().rstrip("\0").split("\0"):
        if (ROOT / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, to / name)


def test_its_first_two_commands_are_a_line_each():
    setup, tests = SHELL[:2]
    assert setup.count("\n") == tests.count("\n") == 1
    assert setup.startswith("python3 -m venv ")
    assert setup.endswith("/agentwrap demo\n")
    assert tests.endswith(".venv/bin/python -m pytest\n")


@pytest.mark.timeout(600)
def test_its_first_two_commands_set_all_up_and_run_it(tmp_path):
    python = shutil.which("python3") or ""
    enough = "import sys, ensurepip; sys.exit(sys.version_info < (3, 11))"
    if not python or subprocess.run([python, "-c", enough], check=False, capture_output=True).returncode:
        folder = tmp_path / "bin"  # whoever reads the README has a Python 3.11 called so
        folder.mkdir()
        (folder / "python3").symlink_to(Path(sys.base_prefix) / "bin" / "python3")
    clone, home = tmp_path / "clone", tmp_path / "home"
    clone.mkdir()
    home.mkdir()
    copy(clone)
    # How pip reaches the registry is this machine's business, and stays.
    kept = {
        name: value
        for name, value in os.environ.items()
        if name.startswith(("PIP_", "SSL_")) or name in PROXIES
    }
    environ = {
        **kept,
        "HOME": str(home),
        "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}",
        "LANG": "C.UTF-8",
        "AGENTWRAP_STATE_DIR": str(tmp_path / "state"),
    }
    setup, tests = SHELL[:2]
    first = run(setup, clone, environ)
    if first.returncode and not os.environ.get("CI") and unreachable(first):
        pytest.skip("pip does not reach a registry")
    assert first.returncode == 0, first.stdout + first.stderr
    assert "done All 14 tests pass." in first.stdout
    assert "agentwrap demo" in first.stdout
    # Only gathered: running them here would run this one, too.
    second = run(f"{tests.strip()} --collect-only -q", clone, environ)
    assert second.returncode == 0, second.stdout + second.stderr
    assert "tests collected" in second.stdout
    assert (clone / ".venv" / "share" / "man" / "man1" / "agentwrap.1").is_file()
    assert not [path for path in home.rglob("*") if "agentwrap" in path.name]


PROXIES = {
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "XDG_CONFIG_DIRS",
}


def run(command, cwd, environ):
    """A command line, as a shell takes it, with no terminal."""
    return subprocess.run(
        ["sh", "-c", command],
        cwd=cwd,
        env=environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def unreachable(done):
    """Whether pip has said that there is no network."""
    return any(
        word in done.stderr for word in ("NewConnectionError", "No matching distribution", "resolution")
    )


def test_every_command_line_in_it_and_in_docs_is_one_that_agentwrap_takes():
    found = 0
    for document in DOCUMENTS:
        text = document.read_text(encoding="utf-8")
        blocks = re.findall(r"^```(?:sh|console)?\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
        spans = re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL))
        for words in commands.found_in([*"\n".join(blocks).split("\n"), *spans]):
            if words and "COMMAND" not in words and (len(words) > 1 or words[0] not in command_line.VERBS):
                commands.judge(words)
                found += 1
    assert found >= 10


def test_every_verb_it_names_in_passing_exists():
    for verb in re.findall(r"`agentwrap ([a-z]+)[^`]*`", TEXT):
        assert verb in (*command_line.VERBS, "claude", "codex", "make"), verb


@pytest.fixture
def stand_ins(tmp_path):
    """Programs that say with which words they were called; and the agentwrap of this tree."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("claude", "codex", "make"):
        (folder / name).write_text(f'#!/bin/sh\necho "{name} got: $*"\n')
        (folder / name).chmod(0o755)
    (folder / "agentwrap").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m agentwrap "$@"\n')
    (folder / "agentwrap").chmod(0o755)
    return {
        "PATH": f"{folder}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "HOME": str(tmp_path),
        "AGENTWRAP_STATE_DIR": str(tmp_path / "state"),
        "TERM": "xterm-256color",
        "LANG": "C.UTF-8",
    }


FIRST_USE = [line.split("  #")[0].strip() for line in SHELL[3].split("\n") if line]


@pytest.mark.parametrize("line", FIRST_USE)
def test_first_use_works_as_written(line, stand_ins, tmp_path):
    with Outer(["bash", "--norc", "-c", line], environ=stand_ins, cwd=tmp_path) as terminal:
        if line.endswith(" watch"):
            terminal.expect(b"q quit")
            terminal.send(b"q")
        status = terminal.wait()
        said = bytes(terminal.output).decode()
    assert os.WIFEXITED(status), signal.Signals(os.WTERMSIG(status))
    assert os.WEXITSTATUS(status) == 0, said
    if "claude" in line:
        assert "claude got:" in said
    elif "codex" in line:
        assert "codex got:" in said
        assert "tui.notifications" in said
        assert "resume" not in line or said.strip().endswith("resume --last")
    elif "make" in line:
        assert "make got: -j8" in said


def test_the_alias_it_promises_is_made(stand_ins, tmp_path):
    line = next(line for line in FIRST_USE if line.startswith("eval"))
    done = subprocess.run(
        ["bash", "--norc", "-c", f"{line}; declare -f claude"],
        env=stand_ins,
        capture_output=True,
        text=True,
        check=True,
    )
    assert 'agentwrap claude "$@"' in done.stdout


def test_its_configuration_is_taken(tmp_path):
    (text,) = re.findall(r"^```toml\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    path = tmp_path / "config.toml"
    path.write_text(text)
    settings, mistakes = config.load({}, str(path), strict=True)
    assert not mistakes
    assert list(settings.channels) == tomllib.loads(text)["notify"]["channels"]


def test_every_file_it_leads_to_is_there():
    for document in DOCUMENTS:
        for target in re.findall(r"\]\(([^)#]+)\)", document.read_text(encoding="utf-8")):
            if "://" not in target:
                assert (document.parent / target).exists(), f"{document.name}: {target}"
    for path in re.findall(r"`((?:docs|examples|tests)/[\w./-]+)`", TEXT):
        assert (ROOT / path).exists(), path


def test_its_picture_is_small_and_whole():
    picture = ROOT / "docs" / "watch.svg"
    assert picture.stat().st_size < 20_000
    words = "".join(ET.parse(picture).getroot().itertext())
    for word in ("blocked (permission)", "done", "working", "~/shop"):
        assert word in words


def test_the_picture_is_drawn_from_a_recording(tmp_path):
    cast = tmp_path / "run.cast"
    cast.write_text(
        '{"version": 2, "width": 20, "height": 3}\n'
        '[0.1, "o", "\\u001b[?1049h\\u001b[1;33mw<\\u001b[m \\u6f22 \\u001b[7mup\\u001b[m"]\n'
        '[0.2, "o", "\\u001b[?1049l"]\n'
    )
    picture = tmp_path / "p.svg"
    command = [sys.executable, str(ROOT / "docs" / "picture.py"), str(cast), str(picture), "--title", "a & b"]
    subprocess.run(command, check=True, env={"PATH": os.environ["PATH"]})
    words = [element.text for element in ET.parse(picture).getroot().iter() if element.text]
    assert [word for word in words if word.strip()] == ["a & b", "a & b", "w<", "漢", "up"]


def test_the_versions_it_names_are_those_that_are_run():
    limits = TEXT.partition("## Limits")[2].partition("\n- OpenCode")[0]
    for package in install.PACKAGES:
        if package.agent in ("claude", "codex", "pi", "opencode"):
            for version in package.versions:
                assert version == install.NEWEST or version in limits, (package.agent, version)
    pinned = {version for package in install.PACKAGES for version in package.versions}
    assert set(re.findall(r"\d+\.\d+\.\d+", limits)) <= pinned
