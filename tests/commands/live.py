"""Sessions for the tests of verbs: processes that publish what they are told to, as agentwrap does."""

from __future__ import annotations

import json
import os
import subprocess
import sys

AGENTWRAP = [sys.executable, "-I", "-m", "agentwrap"]

PROGRAM = """
import json, os, sys, time
from agentwrap.host import statefile
state = statefile.StateDir.open(os.environ)
pid = os.getpid()
name = f"{sys.argv[1]}-{pid}"
one = {"schema": 1, "session": name, "name": None, "agent": sys.argv[1], "app": None, "command": [sys.argv[1]],
    "cwd": "/srv/shop", "tty": None, "pid": pid, "pid_started": statefile.process_started(pid), "state": "unknown",
    "kind": None, "message": None, "progress": None, "title": None, "since": time.time(), "seq": 0}
print(name, flush=True)
for line in sys.stdin:
    change = json.loads(line)
    if change is None:
        break
    one |= change | {"since": time.time(), "seq": one["seq"] + 1}
    state.write_session(name, json.dumps(one).encode())
    print(time.monotonic(), flush=True)
    state.flush_summary()
state.remove_session(name)
state.flush_summary()
"""


class Live:
    """A session in a process of its own."""

    def __init__(self, directory, agent, state="unknown", **more):
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-c", PROGRAM, agent],
            env=os.environ | {"AGENTWRAP_STATE_DIR": str(directory)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.name = self.process.stdout.readline().strip()
        self.set(state, **more)

    def set(self, state, **more):
        """Be in this state; returns when (monotonic) that was published."""
        self.process.stdin.write(json.dumps({"state": state} | more) + "\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())

    def end(self):
        if self.process.poll() is None:
            self.process.communicate("null\n")

    def kill(self):
        self.process.kill()
        self.process.communicate()
