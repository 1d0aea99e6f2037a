"""A clean home, a project in it, a model beside it: all that a real agent needs to run a turn offline.

Nothing of the user's own is read or written. Where the tests run as root on Linux, agents and model are alone in a
network namespace that has only loopback; elsewhere the agents' own attempts at the network are theirs.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SERVER = Path(__file__).with_name("model_server.py")
KEY = "sk-ant-mock-000000000000000000000000"


class Model:
    """The stand-in model, running. Use as a context manager."""

    def __init__(self) -> None:
        alone = sys.platform == "linux" and os.geteuid() == 0 and shutil.which("unshare") is not None
        argv = [sys.executable, str(SERVER)]
        if alone:
            argv = ["unshare", "--net", *argv, "--loopback-up"]
        self._server = subprocess.Popen(argv, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
        assert self._server.stdout is not None
        self.port = int(self._server.stdout.readline())
        namespace = f"/proc/{self._server.pid}/ns/net"
        self._beside = ["nsenter", f"--net={namespace}", "--"] if alone else []

    def __enter__(self) -> Model:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.kill()
        self._server.communicate()

    def beside(self, argv: Sequence[str]) -> list[str]:
        """Return the command that runs `argv` where the model is to be reached, in the same process."""
        return [*self._beside, *argv]


class Home:
    """A home directory with the settings of all the agents. `work` is a git repository they trust."""

    def __init__(self, root: Path, port: int) -> None:
        self.root = root
        self.work = root / "work"
        self.bin = root / "bin"
        self.config = root / ".config"
        self.port = port
        self.work.mkdir(parents=True)
        self.bin.mkdir()
        subprocess.run(["git", "init", "-q", str(self.work)], check=True)
        self._claude()
        self._codex()
        self._opencode()
        self._pi()

    def write(self, name: str, value: object) -> Path:
        """Write a file below the home: a string as it is, all else as JSON."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(value if isinstance(value, str) else json.dumps(value))
        return path

    def environ(self, **more: str) -> dict[str, str]:
        """Return the whole environment of a command run here."""
        return {
            "HOME": str(self.root),
            "USER": "user",
            "SHELL": "/bin/bash",
            "LANG": "C.UTF-8",
            "TERM": "xterm-256color",
            "PATH": f"{self.bin}:{os.environ['PATH']}",
            "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{self.port}",
            "ANTHROPIC_API_KEY": KEY,
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_TELEMETRY": "1",
            "MOCK_KEY": "x",
            **more,
        }

    def install(self, programs: Mapping[str, Path]) -> None:
        """Put programs on the PATH under the names given."""
        for name, program in programs.items():
            (self.bin / name).symlink_to(program)

    def _claude(self) -> None:
        project = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
        self.write(
            ".claude.json",
            {
                "hasCompletedOnboarding": True,
                "theme": "dark",
                "customApiKeyResponses": {"approved": [KEY[-20:]], "rejected": []},
                "projects": {str(self.work): project},
            },
        )

    def _codex(self) -> None:
        self.write(
            ".codex/config.toml",
            f"""\
model = "gpt-6-sol"
model_provider = "mock"
check_for_update_on_startup = false
[model_providers.mock]
name = "mock"
base_url = "http://127.0.0.1:{self.port}/v1"
wire_api = "responses"
env_key = "MOCK_KEY"
supports_websockets = false
[projects."{self.work}"]
trust_level = "trusted"
""",
        )

    def _opencode(self) -> None:
        provider = {
            "npm": "@ai-sdk/openai-compatible",
            "name": "Mock",
            "options": {"baseURL": f"http://127.0.0.1:{self.port}/v1", "apiKey": "x"},
            "models": {"mock-model": {"name": "Mock Model"}},
        }
        self.write(
            ".config/opencode/opencode.json",
            {
                "autoupdate": False,
                "model": "mock/mock-model",
                "permission": {"bash": "ask"},
                "provider": {"mock": provider},
            },
        )

    def _pi(self) -> None:
        provider = {
            "baseUrl": f"http://127.0.0.1:{self.port}/v1",
            "api": "openai-completions",
            "apiKey": "x",
            "models": [{"id": "mock-model"}],
        }
        self.write(".pi/agent/models.json", {"providers": {"mock": provider}})
