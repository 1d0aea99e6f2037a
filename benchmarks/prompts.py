"""What a prompt, a status line and a waiting script cost, with 50 live sessions.

    python benchmarks/prompts.py

Prints milliseconds, the median and the worst: a prompt segment in each shell, `agentwrap status --short`, and
from the publication of a blocked session until `agentwrap wait` prints that.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

SESSIONS = 50
# Each prints the microseconds of one segment, five times, from two hundred in a row.
SHELLS = {
    "bash": r"""
eval "$(agentwrap init bash)"
for i in {1..5}; do
    t=$EPOCHREALTIME
    for j in {1..200}; do __agentwrap_update; done
    u=$EPOCHREALTIME
    echo $(( (${u/./} - ${t/./}) / 200 ))
done""",
    "zsh": r"""
zmodload zsh/datetime
eval "$(agentwrap init zsh)"
for i in {1..5}; do
    t=$EPOCHREALTIME
    for j in {1..200}; do __agentwrap_update; done
    echo $(( ($EPOCHREALTIME - t) * 5000 ))
done""",
    "fish": r"""
agentwrap init fish | source
for i in (seq 5)
    set t (date +%s%N)
    for j in (seq 200); __agentwrap_segment; end >/dev/null
    set u (date +%s%N)
    math "($u - $t) / 200000"
end""",
}
START = {
    "bash": ["bash", "--norc", "-i", "-c"],
    "zsh": ["zsh", "-f", "-i", "-c"],
    "fish": ["fish", "--no-config", "-i", "-c"],
}


def show(what: str, times: list[float]) -> None:
    """One row, times in seconds."""
    middle, worst = statistics.median(times) * 1e3, max(times) * 1e3
    print(f"{what:<42}{middle:>9.3f}{worst:>9.3f}", flush=True)


def main() -> None:
    """Measure."""
    from agentwrap.host import statefile

    folder = tempfile.mkdtemp()
    environ = {**os.environ, "AGENTWRAP_STATE_DIR": folder, "TERM": "xterm-256color"}
    environ["PATH"] = f"{os.path.dirname(sys.executable)}:{environ['PATH']}"
    state = statefile.StateDir.open(environ)
    base = {
        "schema": 1,
        "name": None,
        "agent": "claude",
        "app": None,
        "command": ["claude"],
        "cwd": folder,
        "tty": None,
    }
    base |= {
        "pid": os.getpid(),
        "pid_started": statefile.process_started(os.getpid()),
        "since": time.time(),
        "seq": 0,
    }
    base |= {"kind": None, "message": "approve Bash: touch x", "progress": None, "title": None}

    def publish(number: int, status: str) -> None:
        one = base | {"session": f"claude-{number}", "state": status}
        state.write_session(f"claude-{number}", json.dumps(one).encode())

    for number in range(SESSIONS):
        publish(number, ("working", "idle", "done", "working")[number % 4])
    state.flush_summary()
    print(f"{f'milliseconds, {SESSIONS} sessions':<42}{'median':>9}{'worst':>9}")
    for shell, code in SHELLS.items():
        if shutil.which(shell):
            argv = START[shell]
            out = subprocess.run(
                [*argv, code], env=environ, capture_output=True, text=True, check=True
            ).stdout
            show(f"prompt segment, {shell}", [float(line) / 1e6 for line in out.split()])
    times = []
    for _ in range(20):
        began = time.perf_counter()
        subprocess.run(["agentwrap", "status", "--short"], env=environ, stdout=subprocess.DEVNULL, check=True)
        times.append(time.perf_counter() - began)
    show("agentwrap status --short", times)
    times = []
    for _ in range(10):
        wait = subprocess.Popen(
            ["agentwrap", "wait", "claude-7", "--until", "blocked"], env=environ, stdout=subprocess.PIPE
        )
        time.sleep(1.0)  # it waits by now
        began = time.perf_counter()
        publish(7, "blocked")
        assert wait.stdout is not None
        assert wait.stdout.readline() == b"blocked\n"
        times.append(time.perf_counter() - began)
        wait.communicate()
        publish(7, "working")
    show("agentwrap wait, from publication to print", times)
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
