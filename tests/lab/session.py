"""One wrapped agent in one terminal, with someone before it: what a scenario acts through and looks at."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from tests.lab.home import Home
from tests.lab.terminal import Terminal
from tests.lab.watch import Notices, States

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tests.lab.dialects import Dialect
    from tests.lab.home import Model
    from tests.lab.watch import Notice

AGENTWRAP = [sys.executable, "-m", "agentwrap"]
# No notification comes later than this after a state: the longest delay by default is 3 s.
SETTLED = 3.7
START = 90.0  # seconds for an agent to start, on a machine that has other things to do
REST = 0.6  # seconds a person looks at a screen before typing: an agent that starts is not ready at once

TMUX = """\
set -g default-terminal tmux-256color
set -g focus-events on
set -g allow-passthrough on
set -g escape-time 10
set -g status off
"""


class Session:
    """`agentwrap AGENT` on a terminal, or in a tmux on one. Use as a context manager."""

    def __init__(
        self, dialect: Dialect, programs: Mapping[str, Path], root: Path, model: Model, *, tmux: bool = False
    ) -> None:
        self.dialect = dialect
        self.home = Home(root / "home", model.port)
        self.home.install(programs)
        dialect.prepare(self.home)
        self.recording = root / "session.cast"
        self.directory = root / "state"
        self.directory.mkdir(mode=0o700)
        self._notices = Notices(root / "notices")
        command = ", ".join(f'"{word}"' for word in self._notices.command)
        self.home.write(
            ".config/agentwrap/config.toml", f'[notify]\nchannels = ["command"]\ncommand = [{command}]\n'
        )
        self.states = States(self.directory)
        argv = [*AGENTWRAP, "--record", str(self.recording), "--record-input", *dialect.argv]
        self._socket = root / "tmux.socket" if tmux else None
        if self._socket:
            settings = self.home.write("tmux.conf", TMUX)
            status = root / "status"
            inside = f"{shlex.join(argv)}; echo $? > {shlex.quote(str(status))}"
            argv = ["tmux", "-S", str(self._socket), "-f", str(settings), "new-session", "sh", "-c", inside]
        environ = self.home.environ(AGENTWRAP_STATE_DIR=str(self.directory), **dialect.environ)
        self.terminal = Terminal(model.beside(argv), environ=environ, cwd=self.home.work)

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        if self._socket:
            subprocess.run(["tmux", "-S", str(self._socket), "kill-server"], check=False, capture_output=True)
        self.terminal.hang_up()
        self.states.__exit__()

    # --- looking

    @property
    def notices(self) -> list[Notice]:
        """The notifications so far."""
        return self._notices.all()

    def until_state(self, *wanted: str, timeout: float = 60.0) -> None:
        """Wait until the state file holds one of these states; "gone" is the file's absence."""

        def reached() -> bool:
            return (self.states.state or "gone") in wanted and bool(self.states.seen)

        try:
            self.terminal.until(reached, timeout)
        except AssertionError as error:
            raise AssertionError(f"state not {' or '.join(wanted)}: {self.states.words}\n{error}") from None

    def until_working(self) -> None:
        """Wait until the agent works on what it was told."""
        if self.dialect.reports:
            self.until_state("working")
        else:
            self.terminal.until("esc interrupt")

    def until_notices(self, count: int) -> None:
        """Wait for this many notifications in all."""
        try:
            self.terminal.until(lambda: len(self.notices) >= count, 15.0)
        except AssertionError as error:
            raise AssertionError(
                f"not {count} notices: {self.notices}, {self.states.words}\n{error}"
            ) from None

    def rest(self, seconds: float = REST) -> None:
        """Wait until the state has not changed for a while, for at most a few seconds."""
        limit = time.monotonic() + 5 + seconds
        while time.monotonic() < min(limit, self.states.changed_at + seconds):
            time.sleep(0.02)

    def settle(self) -> None:
        """Wait until no notification can be on its way any more."""
        self.rest(SETTLED)

    # --- acting

    def begin(self) -> None:
        """Wait until the agent can be spoken to."""
        self.terminal.until(self.dialect.ready, START)
        if self.dialect.reports:
            self.until_state("idle")
        self.rest()

    def say(self, words: str) -> None:
        """Look at the terminal, say something to the agent, and look away."""
        self.look()
        self.terminal.type(words)
        self.terminal.key("enter")
        self.look_away()

    def press(self, *keys: str) -> None:
        """Look at the terminal, read what is there, press keys, and look away."""
        self.look()
        self.rest()
        self.terminal.key(*keys)
        self.look_away()

    def look(self) -> None:
        """Bring the terminal to the front."""
        self.terminal.focus(on=True)

    def look_away(self) -> None:
        """Turn to another window."""
        self.terminal.focus(on=False)

    def leave(self) -> None:
        """End the agent as its users do."""
        self.look()
        self.dialect.leave(self.terminal)

    def kill(self) -> None:
        """Kill the agent itself, as the kernel does when memory runs out."""
        session = self.states.session
        assert session is not None
        os.kill(session["child_pid"], signal.SIGKILL)

    def sent(self, pattern: bytes) -> bool:
        """Return whether the terminal was sent something."""
        return re.search(pattern, bytes(self.terminal.written)) is not None
