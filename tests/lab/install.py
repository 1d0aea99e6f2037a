"""Install the real coding agents that the tests run, from npm, each version into a folder of its own.

    python tests/lab/install.py [DIRECTORY]

Takes about 3 GB under DIRECTORY (else $AGENTWRAP_TEST_AGENTS, else ~/.cache/agentwrap-tests). What is already
there is kept, so that a second run only asks npm which version is the newest. Knows where an agent's program
lies in its package; knows nothing of how it is run.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

NEWEST = "newest"
TRIES = 3
MARK = "agent.json"  # written last: a folder without it is half an installation

OS = sys.platform  # as npm says it: linux, darwin
CPU = {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())


@dataclass(frozen=True)
class Package:
    """One agent as npm has it. `program` is a pattern below node_modules, the program itself and no shim."""

    agent: str
    name: str
    versions: tuple[str, ...]
    program: str
    newest: str = "latest"


PACKAGES = (
    Package(
        "claude",
        "@anthropic-ai/claude-code",
        (NEWEST, "2.1.308"),
        f"@anthropic-ai/claude-code-{OS}-{CPU}/claude",
    ),
    Package(
        "codex",
        "@openai/codex",
        (NEWEST, "0.164.0", "0.163.0"),
        f"@openai/codex-{OS}-{CPU}/vendor/*/bin/codex",
    ),
    Package("pi", "@earendil-works/pi-coding-agent", (NEWEST,), ".bin/pi"),
    Package("opencode", "opencode-ai", (NEWEST,), f"opencode-{OS}-{CPU}/bin/opencode"),
    # the last one that reports nothing itself: what its hooks say is all there is
    Package("codex-silent", "@openai/codex", ("0.162.1",), f"@openai/codex-{OS}-{CPU}/vendor/*/bin/codex"),
    Package("gemini", "@google/gemini-cli", (NEWEST,), "@google/gemini-cli/bundle/gemini.js"),
    Package("copilot", "@github/copilot", (NEWEST,), f"@github/copilot-{OS}-{CPU}/copilot"),
    # pi runs on Node 22, which few machines have yet
    Package("node", f"node-{OS}-{CPU}", (NEWEST,), f"node-{OS}-{CPU}/bin/node", newest="22"),
)


@dataclass(frozen=True)
class Installed:
    """An agent that is there. `asked` is the version as PACKAGES names it, `version` what that turned out to be."""

    agent: str
    asked: str
    version: str
    program: Path


def directory(environ: dict[str, str] | os._Environ[str] = os.environ) -> Path:
    """Return where the agents are, whether or not they are there yet."""
    named = environ.get("AGENTWRAP_TEST_AGENTS")
    return Path(named) if named else Path.home() / ".cache" / "agentwrap-tests"


def find(agent: str, asked: str, root: Path) -> Installed | None:
    """Return the installation of `agent` in the version asked for, or None."""
    try:
        known = json.loads((root / f"{agent}-{asked}.json").read_text())
    except FileNotFoundError:
        return None
    program = root / known["program"]
    return Installed(agent, asked, known["version"], program) if program.exists() else None


def npm(*arguments: str, cwd: Path) -> str:
    """Run npm, a few times if need be: registries have bad moments. Raises CalledProcessError."""
    for attempt in range(1, TRIES + 1):
        try:
            done = subprocess.run(
                ["npm", *arguments],
                cwd=cwd,
                check=True,
                capture_output=True,
                text=True,
                stdin=subprocess.DEVNULL,
            )
        except subprocess.CalledProcessError as error:
            print(
                f"npm {' '.join(arguments)} failed ({attempt} of {TRIES}):\n{error.stderr[-2000:]}",
                file=sys.stderr,
            )
            if attempt == TRIES:
                raise
            time.sleep(3 * attempt)
        else:
            return done.stdout
    raise AssertionError


def newest(package: Package, root: Path) -> str:
    """Return the newest version npm has of a package."""
    found = json.loads(npm("view", f"{package.name}@{package.newest}", "version", "--json", cwd=root))
    # a range such as "22" gives all versions within it, in order
    return found[-1] if isinstance(found, list) else found


def install(package: Package, asked: str, root: Path) -> Installed:
    """Make the version asked for of one agent be there. Raises CalledProcessError, or OSError for a full disk."""
    start = time.monotonic()
    version = newest(package, root) if asked == NEWEST else asked
    folder = root / f"{package.agent}-{version}"
    how = "there already"
    if not (folder / MARK).exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        npm(
            "install",
            # the scripts only copy the program to where its shim looks, or fetch more
            "--ignore-scripts",
            "--no-audit",
            "--no-fund",
            "--no-package-lock",
            # Claude Code's shim says it needs a newer Node; its program needs none
            "--force",
            f"--prefix={folder}",
            f"{package.name}@{version}",
            cwd=folder,
        )
        programs = sorted((folder / "node_modules").glob(package.program))
        if not programs:
            raise FileNotFoundError(f"{package.name}@{version} holds no {package.program}")
        (folder / MARK).write_text(
            json.dumps({"version": version, "program": str(programs[0].relative_to(root))}) + "\n"
        )
        how = f"installed in {time.monotonic() - start:.0f} s"
    shutil.copyfile(folder / MARK, root / f"{package.agent}-{asked}.json")
    print(f"{package.agent} {asked}: {version}, {how}", flush=True)
    there = find(package.agent, asked, root)
    assert there is not None
    return there


def main(arguments: list[str]) -> int:
    """Install all of them, several at once. Returns an exit code."""
    root = Path(arguments[0]) if arguments else directory()
    root.mkdir(parents=True, exist_ok=True)
    if shutil.which("npm") is None:
        print(
            "npm is needed to install the agents: https://nodejs.org, or apt-get install npm", file=sys.stderr
        )
        return 1
    with ThreadPoolExecutor(max_workers=4) as pool:
        jobs = [
            pool.submit(install, package, asked, root) for package in PACKAGES for asked in package.versions
        ]
    failed = [error for job in jobs if (error := job.exception())]
    for error in failed:
        print(f"not installed: {error}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
