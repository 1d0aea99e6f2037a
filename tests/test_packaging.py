"""What is installed, and where."""

from __future__ import annotations

import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
# Where man and the shells look, below a prefix, and what has to stand there.
SHARED = {
    "share/man/man1/agentwrap.1": ".Nm agentwrap",
    "share/bash-completion/completions/agentwrap": "complete -F __agentwrap_complete agentwrap",
    "share/zsh/site-functions/_agentwrap": "#compdef agentwrap\n",
    "share/fish/vendor_completions.d/agentwrap.fish": "complete -c agentwrap ",
}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel, as its build backend makes it."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (path,) = folder.glob("*.whl")
    return zipfile.ZipFile(path)


def test_the_wheel_holds_the_whole_package_and_nothing_else(wheel):
    names = [name for name in wheel.namelist() if ".dist-info/" not in name and ".data/" not in name]
    source = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "agentwrap").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert set(names) == source


def test_the_wheel_installs_man_page_and_completions_where_they_are_looked_for(wheel):
    shared = {name.partition(".data/data/")[2]: name for name in wheel.namelist() if ".data/" in name}
    assert set(shared) == set(SHARED)
    for place, words in SHARED.items():
        assert words in wheel.read(shared[place]).decode()


def test_the_command_is_called_agentwrap(wheel):
    (name,) = (name for name in wheel.namelist() if name.endswith("entry_points.txt"))
    assert "agentwrap = agentwrap.__main__:main" in wheel.read(name).decode()


def test_the_formula_links_all_that_the_wheel_installs():
    formula = (ROOT / "docs" / "agentwrap.rb").read_text()
    for place in SHARED:
        assert f'libexec/"{place}"' in formula
    assert f'desc "{PROJECT["project"]["description"]}"' in formula
    assert f'license "{PROJECT["project"]["license"]}"' in formula


def test_every_dependency_is_bounded():
    for one in PROJECT["project"]["dependencies"]:
        assert ">=" in one, one
        assert "<" in one, one
