"""Claims about `agentwrap watch`: the table on a real terminal, and the lines for scripts."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import time

import ptyprocess
import pyte
import pytest
from live import AGENTWRAP

from agentwrap.commands import watch
from tests.lab.tools import require


class Screen:
    """`watch` on a terminal of its own, started by a shell that says when it is back."""

    def __init__(self, directory, rows=12, columns=80, environ=None):
        self.screen = pyte.Screen(columns, rows)
        self.stream = pyte.ByteStream(self.screen)
        self.raw = b""
        base = os.environ | {"AGENTWRAP_STATE_DIR": str(directory), "TERM": "xterm-256color", "HOME": "/srv"}
        base.pop("NO_COLOR", None)
        base.pop("COLUMNS", None)
        base.pop("LINES", None)
        command = " ".join([*AGENTWRAP, "watch"])
        self.process = ptyprocess.PtyProcess.spawn(
            ["bash", "--norc", "--noprofile", "-i"], env=base | (environ or {}), dimensions=(rows, columns)
        )
        self.type(f"PS1='$ '; {command}; echo \"[$?]\"\r")

    def type(self, text):
        os.write(self.process.fd, text.encode())

    def read(self, seconds=0.05):
        while select.select([self.process.fd], [], [], seconds)[0]:
            try:
                data = os.read(self.process.fd, 65536)
            except OSError:
                return
            self.raw += data
            self.stream.feed(data)

    @property
    def text(self):
        return "\n".join(line.rstrip() for line in self.screen.display)

    def until(self, reached, seconds=15):
        deadline = time.monotonic() + seconds
        while not reached(self.text):
            assert time.monotonic() < deadline, self.text
            self.read()

    def pid(self):
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children", encoding="utf-8") as file:
            return int(file.read().split()[0])

    def is_clean(self):
        """Cursor, wrapping, screen and line discipline are as they were."""
        assert self.raw.count(b"\x1b[?1049h") == self.raw.count(b"\x1b[?1049l")
        assert self.raw.rfind(b"\x1b[?25h") > self.raw.rfind(b"\x1b[?25l")
        assert self.raw.rfind(b"\x1b[?7h") > self.raw.rfind(b"\x1b[?7l")
        self.type("stty -a\r")
        self.until(lambda text: "cs8" in text)
        assert " icanon" in self.text
        assert " echo " in self.text


@pytest.fixture
def show(directory):
    shown = []

    def show(**more):
        shown.append(Screen(directory, **more))
        return shown[-1]

    yield show
    for one in shown:
        one.process.terminate(force=True)


def test_the_table_follows_the_sessions_the_most_urgent_first(show, start):
    screen = show()
    screen.until(lambda text: "no session is running" in text and "q quit" in text)
    first = start("codex", "working", message="漢字 building")
    screen.until(lambda text: first.name in text and "漢字 building" in text and "~/shop" in text)
    second = start("claude", "blocked", kind="permission")
    screen.until(lambda text: second.name in text)
    lines = screen.text.splitlines()
    assert lines[0] == "agentwrap  ⚠1 ●1"
    assert [line.split()[0] for line in lines[2:5]] == ["SESSION", second.name, first.name]
    second.end()
    screen.until(lambda text: second.name not in text)
    first.kill()
    screen.until(lambda text: "no session is running" in text)


@pytest.mark.parametrize("key", ["q", "Q", "\x03"])
def test_a_key_ends_it_and_the_screen_is_clean(show, start, key):
    start("claude", "done")
    screen = show()
    screen.until(lambda text: "claude" in text and "q quit" in text)
    screen.type(key)
    screen.until(lambda text: "[0]" in text)
    screen.is_clean()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_a_signal_ends_it_by_that_signal_and_the_screen_is_clean(show, start, number):
    screen = show()
    screen.until(lambda text: "q quit" in text)
    os.kill(screen.pid(), number)
    screen.until(lambda text: f"[{128 + number}]" in text)
    screen.is_clean()


def test_ctrl_z_gives_the_screen_back_and_fg_takes_it_again(show, start):
    session = start("claude", "done")
    screen = show()
    screen.until(lambda text: session.name in text)
    screen.type("\x1a")
    screen.until(lambda text: "Stopped" in text)
    screen.is_clean()
    screen.type("fg\r")
    screen.until(lambda text: session.name in text and "q quit" in text)
    screen.type("q")
    screen.until(lambda _: screen.raw.endswith(b"$ "))
    screen.is_clean()


def test_a_row_that_fills_the_screen_is_shown_whole(start, directory, tmp_path):
    require("tmux")  # without wrapping, the cursor stays on the last column there, as on a real terminal
    session = start("claude", "blocked", message="x" * 200)
    tmux = ["tmux", "-S", str(tmp_path / "tmux"), "-f", "/dev/null"]
    environ = os.environ | {"AGENTWRAP_STATE_DIR": str(directory)}
    command = " ".join([*AGENTWRAP, "watch"])
    subprocess.run([*tmux, "new-session", "-d", "-x64", "-y9", command], check=True, env=environ)
    try:
        deadline = time.monotonic() + 15
        lines = [""]
        while not lines[-1].startswith("q quit"):
            assert time.monotonic() < deadline, lines
            shown = subprocess.run([*tmux, "capture-pane", "-p"], check=True, capture_output=True, text=True)
            lines = shown.stdout.rstrip().split("\n")
        assert lines[2].endswith("  DIRECTORY")
        assert lines[3].startswith(session.name)
    finally:
        subprocess.run([*tmux, "kill-server"], check=False)


def test_it_follows_the_size_of_the_screen(show, start):
    start("claude", "blocked", message="x" * 200)
    screen = show()
    screen.until(lambda text: "xxx" in text)
    for rows, columns in ((8, 50), (30, 130), (3, 20), (2, 5), (1, 1), (12, 80)):
        screen.screen.resize(rows, columns)
        screen.raw = b""
        screen.process.setwinsize(rows, columns)
        deadline = time.monotonic() + 10
        while b"\x1b[?2026l" not in screen.raw:
            assert time.monotonic() < deadline
            screen.read()
        frame = screen.raw.split(b"\x1b[?2026l")[0]
        assert frame.count(b"\n") < rows
    screen.until(lambda text: "xxx" in text and "q quit" in text)


def test_more_sessions_than_rows_are_counted(show, start):
    for _ in range(4):
        start("claude", "working")
    screen = show(rows=6)
    screen.until(lambda text: "(2 more below)" in text)


def test_it_is_drawn_again_when_an_age_reads_differently():
    assert watch.next_change([{"since": 0.0}, {"since": 70.0}], 100.5) == pytest.approx(0.5, abs=0.1)
    assert watch.next_change([{"since": 0.0}], 70.0) == pytest.approx(50, abs=0.1)
    assert watch.next_change([{"since": 0.0}], 86400 * 2 + 5.0) == pytest.approx(86395, abs=1)
    assert watch.next_change([], 5.0) is None


def test_no_key_and_no_change_costs_no_time(show):
    screen = show()
    screen.until(lambda text: "q quit" in text)
    screen.read(0.3)
    path = f"/proc/{screen.pid()}/"

    def costs():
        with open(path + "schedstat", encoding="utf-8") as file:
            return file.read()

    before = costs()
    screen.raw = b""
    screen.read(1.5)
    assert costs() == before
    assert screen.raw == b""


def test_without_colours_there_are_none(show, start):
    start("claude", "blocked")
    screen = show(environ={"NO_COLOR": "1"})
    screen.until(lambda text: "claude" in text)
    assert b"m" not in [part[-1:] for part in screen.raw.split(b"\x1b[?1049h")[1].split(b"\x1b[")[1:]]
    coloured = show()
    coloured.until(lambda text: "claude" in text)
    assert b"\x1b[33;1mblocked" in coloured.raw


@pytest.mark.parametrize(("columns", "rows"), [(1, 1), (1, 5), (5, 1), (0, 0), (20, 2), (20, 3), (200, 60)])
def test_a_frame_never_leaves_the_screen(columns, rows):
    found = [
        {"session": f"a-{number}", "state": "blocked", "since": 0.0, "message": "漢" * 200, "cwd": "/x" * 80}
        for number in range(10)
    ]
    lines = watch.draw(found, columns, rows, colours=False, now=10.0)
    assert len(lines) <= rows
    from wcwidth import wcswidth

    assert all(wcswidth(line.removesuffix("\x1b[K")) <= columns for line in lines)


# For scripts


class Lines:
    """`watch --json` under way."""

    def __init__(self, directory):
        self.process = subprocess.Popen(
            [*AGENTWRAP, "watch", "--json"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=os.environ | {"AGENTWRAP_STATE_DIR": str(directory)},
        )

    def next(self):
        return json.loads(self.process.stdout.readline())


def test_each_change_is_a_line_and_the_last_is_the_end(start, directory):
    session = start("claude", "working")
    lines = Lines(directory)
    try:
        assert lines.next()["session"] == session.name
        session.set("blocked", kind="permission", message="touch x")
        one = lines.next()
        assert (one["state"], one["kind"], one["message"]) == ("blocked", "permission", "touch x")
        other = start("codex", "idle")
        assert lines.next()["session"] == other.name
        other.kill()
        assert lines.next() == {"session": other.name, "state": "exited"}
        session.end()
        assert lines.next() == {"session": session.name, "state": "exited"}
    finally:
        lines.process.kill()
        lines.process.communicate()


def test_it_ends_when_nobody_reads_any_more(start, directory):
    start("claude", "working")
    lines = Lines(directory)
    lines.next()
    lines.process.stdout.close()
    assert lines.process.wait(10) in (0, 141)
    assert lines.process.stderr.read() == b""
    lines.process.stderr.close()
