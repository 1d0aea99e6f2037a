"""A private desktop for each test: bus, display, notification server; and the helper to talk to."""

from __future__ import annotations

import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

BUS_CONFIG = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>session</type><listen>unix:path={path}</listen>
<policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/>
<allow own="*"/></policy></busconfig>"""
SERVER = Path(__file__).with_name("server.py")
DEADLINE = 15.0


def need(*programs):
    for program in programs:
        if shutil.which(program) is None:
            if os.environ.get("CI"):
                pytest.fail(f"{program} is not installed, and CI must have it")
            pytest.skip(f"{program} is not installed")


def until(condition, what, deadline=DEADLINE):
    end = time.monotonic() + deadline
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.02)
    pytest.fail(f"not within {deadline} s: {what}")


class Helper:
    """The real helper process, and what it said."""

    def __init__(self, env, *extra):
        self.process = subprocess.Popen(
            [sys.executable, "-I", *extra, "-m", "agentwrap.host.notifiers"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=env,
            start_new_session=True,
        )
        self.said = []
        self._lines = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            self._lines.put((time.monotonic(), json.loads(line)))
        self._lines.put(None)

    def send(self, **message):
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def notify(self, number, kind="blocked", channels=("desktop",), **more):
        more = {"title": "Claude Code needs permission", "body": "approve Bash: touch x\n~/shop", **more}
        self.send(op="notify", id=number, key=kind, type=kind, channels=list(channels), **more)

    def wait(self, op="result", timeout=DEADLINE, **wanted):
        """The next message like this; those before it are kept in `said`."""
        end = time.monotonic() + timeout
        while True:
            try:
                entry = self._lines.get(timeout=max(0.01, end - time.monotonic()))
            except queue.Empty:
                pytest.fail(f"no {op} {wanted} within {timeout} s, but {self.said}")
            if entry is None:
                pytest.fail(f"ended without {op} {wanted}: {self.said}, {self.process.stderr.read()}")
            self.said.append(entry[1])
            if entry[1]["op"] == op and all(entry[1].get(k) == v for k, v in wanted.items()):
                return entry[1]

    def end(self, timeout=DEADLINE):
        """Close its input, and return the rest of what it says."""
        self.process.stdin.close()
        rest = []
        while (entry := self._lines.get(timeout=timeout)) is not None:
            rest.append(entry[1])
        self.said += rest
        assert self.process.wait(timeout) == 0
        assert self.process.stderr.read() == b""
        return rest

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            try:
                pipe.close()
            except OSError:
                pass


@pytest.fixture
def clean_env(tmp_path):
    """An environment without any desktop, tmux or ssh in it."""
    home = tmp_path / "home"
    home.mkdir()
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "XDG_RUNTIME_DIR": str(home),
        "XDG_CONFIG_HOME": str(home / "config"),
        "TERM": "xterm-256color",
    }


@pytest.fixture
def start(clean_env):
    """Start helpers, which do not outlive the test."""
    helpers = []

    def start(**env):
        helpers.append(Helper({**clean_env, **env}))
        return helpers[-1]

    yield start
    for helper in helpers:
        helper.kill()


class Processes:
    """Programs that do not outlive the test."""

    def __init__(self, env):
        self.env = env
        self._started = []

    def start(self, *argv, **more):
        more = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, **more}
        process = subprocess.Popen(argv, env={**self.env, **more.pop("env", {})}, **more)
        self._started.append(process)
        return process

    def end(self):
        for process in reversed(self._started):
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.terminate()
                try:
                    process.wait(5)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe:
                    pipe.close()


@pytest.fixture
def processes(clean_env):
    processes = Processes(clean_env)
    yield processes
    processes.end()


@pytest.fixture
def bus(processes, tmp_path_factory):
    """A session bus of its own, which starts no services by itself. Returns its address."""
    need("dbus-daemon")
    place = tmp_path_factory.mktemp("b")  # short: a socket's path is limited
    config = place / "conf"
    config.write_text(BUS_CONFIG.format(path=place / "bus"))
    daemon = processes.start("dbus-daemon", f"--config-file={config}", "--nofork")
    until((place / "bus").exists, "the session bus")
    processes.env["DBUS_SESSION_BUS_ADDRESS"] = f"unix:path={place / 'bus'}"
    return daemon


@pytest.fixture
def address(bus, processes):
    assert bus.poll() is None
    return processes.env["DBUS_SESSION_BUS_ADDRESS"]


class Dunst:
    """A real dunst on a virtual display."""

    def __init__(self, processes):
        self._processes = processes
        self._run()

    def _run(self):
        self.process = self._processes.start("dunst")
        until(lambda: self.ctl("count", "displayed") is not None, "dunst on the bus")

    def ctl(self, *arguments):
        run = subprocess.run(
            ["dunstctl", *arguments], env=self._processes.env, capture_output=True, text=True, check=False
        )
        return run.stdout.strip() if run.returncode == 0 and run.stdout.strip() else None

    def displayed(self):
        return int(self.ctl("count", "displayed"))

    def history(self):
        """What was shown and is gone, latest first: (summary, body)."""
        entries = json.loads(self.ctl("history"))["data"][0]
        return [(entry["summary"]["data"], entry["body"]["data"]) for entry in entries]

    def restart(self):
        self.kill()
        self._run()

    def kill(self):
        self.process.kill()
        self.process.wait()


@pytest.fixture
def display(processes):
    """A virtual display of its own. Returns its name."""
    need("Xvfb")
    reading, writing = os.pipe()
    with os.fdopen(reading) as answer:
        processes.start("Xvfb", "-displayfd", str(writing), "-screen", "0", "640x480x24", pass_fds=(writing,))
        os.close(writing)
        return ":" + answer.readline().strip()


@pytest.fixture
def dunst(processes, address, display):
    need("dunst", "dunstctl")
    processes.env |= {"DBUS_SESSION_BUS_ADDRESS": address, "DISPLAY": display}
    return Dunst(processes)


class Server:
    """A notification server of ours, that records every call and does as it is told."""

    def __init__(self, processes, *, capabilities=("body", "actions"), hang=""):
        self.process = processes.start(
            sys.executable,
            str(SERVER),
            ",".join(capabilities),
            hang,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.calls = []
        self._changed = threading.Condition()
        threading.Thread(target=self._read, daemon=True).start()
        self.wait("ready")

    def _read(self):
        for line in self.process.stdout:
            with self._changed:
                self.calls.append(json.loads(line))
                self._changed.notify_all()

    def wait(self, call, count=1):
        with self._changed:
            done = self._changed.wait_for(lambda: len(self.of(call)) >= count, DEADLINE)
            assert done, f"no {count} of {call} in {self.calls}"
            return self.of(call)[count - 1]

    def of(self, call):
        return [entry for entry in self.calls if entry["call"] == call]

    def tell(self, **message):
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()


@pytest.fixture
def serve(processes, address):
    processes.env["DBUS_SESSION_BUS_ADDRESS"] = address
    return lambda **options: Server(processes, **options)
