"""Imports point one way, and starting to wrap stays cheap."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "agentwrap"
MODULES = sorted(PACKAGE.rglob("*.py"))

# Who may import whom, by part. `errors` is a leaf for everyone outside the core.
ALLOWED = {
    "core": {"core"},
    "agents": {"core", "agents", "errors"},
    "host": {"core", "host", "errors"},
    "config": {"errors", "core", "agents"},
    "errors": set(),
    "options": set(),
    "commands": {"core", "agents", "host", "config", "errors", "options", "commands", "__main__", ""},
    "cli": {"commands", "config", "errors", "options", "agents", "core", ""},
    "__main__": {"commands", "cli", "config", "errors", "options", ""},
    "": set(),
}

SYSTEM = {
    "os",
    "sys",
    "time",
    "signal",
    "select",
    "fcntl",
    "termios",
    "socket",
    "subprocess",
    "logging",
    "io",
}

HEAVY = {
    "argparse",
    "asyncio",
    "collections",
    "dataclasses",
    "desktop_notifier",
    "enum",
    "functools",
    "json",
    "logging",
    "pathlib",
    "psutil",
    "ptyprocess",
    "re",
    "shutil",
    "socket",
    "subprocess",
    "tempfile",
    "tomllib",
    "typer",
    "typing",
    "wcwidth",
}


def part(path: Path) -> str:
    relative = path.relative_to(PACKAGE)
    first = relative.parts[0]
    return first if len(relative.parts) > 1 else ("" if first == "__init__.py" else first.removesuffix(".py"))


def imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports hide where they point"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_one_way(path):
    mine = part(path)
    for name in imports(path):
        words = name.split(".")
        if words[0] != "agentwrap":
            continue
        target = words[1] if len(words) > 1 else ""
        if not (PACKAGE / target).is_dir() and not (PACKAGE / f"{target}.py").exists():
            target = ""
        assert target in ALLOWED[mine], f"{mine} must not import {name}"


@pytest.mark.parametrize(
    "path", [p for p in MODULES if part(p) == "core"], ids=lambda path: str(path.relative_to(PACKAGE))
)
def test_the_core_is_pure(path):
    tops = {name.split(".")[0] for name in imports(path)}
    assert not tops & SYSTEM


def test_only_the_cli_imports_typer():
    users = {path.name for path in MODULES if any(name.split(".")[0] == "typer" for name in imports(path))}
    assert users == {"cli.py"}


def wrapped_imports(program: str) -> set[str]:
    """Modules loaded by `program` beyond those of a bare interpreter, in an isolated one."""
    code = f"import sys; before = set(sys.modules)\n{program}\nprint(*sorted(set(sys.modules) - before))"
    result = subprocess.run(
        [
            sys.executable,
            "-I",
            "-S",
            "-c",
            f"import sys; sys.path.insert(0, {str(PACKAGE.parent)!r})\n{code}",
        ],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "AGENTWRAP_CONFIG": "/nonexistent"},
    )
    return set(result.stdout.split())


def test_wrapping_imports_nothing_heavy():
    loaded = wrapped_imports(
        "import agentwrap.__main__, agentwrap.config, agentwrap.agents, agentwrap.commands.run\n"
        "import agentwrap.commands.client, agentwrap.host.pump, agentwrap.host.statefile"
    )
    assert "agentwrap.host.pump" in loaded
    assert not loaded & HEAVY


def test_the_guard_would_bite():
    assert "json" in wrapped_imports("import json")
