"""Another machine, as far as ssh can tell: an sshd of the test's own on loopback, with keys made for it."""

from __future__ import annotations

import getpass
import os
import shlex
import socket
import subprocess
from typing import TYPE_CHECKING

from tests.lab.multiplexer import BIN
from tests.lab.outer import until

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

SSHD = "/usr/sbin/sshd"


class Host:
    """The machine there. Use as a context manager.

    Args:
        folder: for keys, configuration, and what is the machine's own: its home and state directory.
        beside: makes of a command one that runs where the sshd is to be.
    """

    def __init__(
        self, folder: Path, beside: Callable[[Sequence[str]], list[str]] = list, **environ: str
    ) -> None:
        self.folder = folder
        self.home = folder / "there"
        self.state_dir = self.home / "state"
        self.home.mkdir(parents=True)
        same = {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
        self.environ = {
            **same,
            "HOME": str(self.home),
            "PATH": f"{BIN}:{os.environ['PATH']}",
            "LC_ALL": "C.UTF-8",
            "AGENTWRAP_STATE_DIR": str(self.state_dir),
            "XDG_CONFIG_HOME": str(self.home / "config"),
            **environ,
        }
        for name in ("host", "user"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        config = folder / "sshd_config"
        config.write_text(f"""\
ListenAddress 127.0.0.1:{self.port}
HostKey {folder}/host
AuthorizedKeysFile {folder}/user.pub
PasswordAuthentication no
StrictModes no
UsePAM no
PermitRootLogin prohibit-password
PidFile none
AcceptEnv LC_TERMINAL
PrintMotd no
PrintLastLog no
""")
        if os.geteuid() == 0:
            os.makedirs(
                "/run/sshd", 0o755, exist_ok=True
            )  # where sshd locks itself in before it knows who comes
        argv = beside([SSHD, "-D", "-e", "-f", str(config)])
        self._log = (folder / "sshd.log").open("wb")
        self._sshd = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stderr=self._log, start_new_session=True
        )
        log = folder / "sshd.log"
        until(lambda: b"listening" in log.read_bytes(), what=f"sshd listens: {log.read_bytes()!r}")

    def ssh(self, *command: str, terminal: bool = True) -> list[str]:
        """The words that run `command` there."""
        options = {
            "IdentityFile": self.folder / "user",
            "IdentitiesOnly": "yes",
            "UserKnownHostsFile": "/dev/null",
            "StrictHostKeyChecking": "no",
            "LogLevel": "ERROR",
            "SendEnv": "LC_TERMINAL",
            "Port": self.port,
        }
        words = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
        there = " ".join(f"{name}={shlex.quote(value)}" for name, value in self.environ.items())
        line = f"cd {shlex.quote(str(self.home))} && {there} exec {shlex.join(command)}"
        target = f"{getpass.getuser()}@127.0.0.1"
        return ["ssh", "-F", "none", *(["-t"] if terminal else []), *words, target, line]

    def config(self, text: str) -> None:
        """Write the configuration of the agentwrap there."""
        file = self.home / "config/agentwrap/config.toml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def __enter__(self) -> Host:
        return self

    def __exit__(self, *_: object) -> None:
        self._sshd.terminate()
        self._sshd.wait()
        self._log.close()
