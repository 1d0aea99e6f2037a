"""What single decisions buy: agentwrap beside itself with one of them taken back, interleaved in one run.

    python benchmarks/parts.py [--rounds N] [--megabytes N]

Each variant is the same package with a few lines executed before it starts. Prints a Markdown table.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import statistics
import tempfile
import time
from pathlib import Path

import contenders
import measures
import outer
import streams

LAUNCHER = """\
#!{python}
import sys
{patch}
from agentwrap.__main__ import main
if __name__ == '__main__':
    sys.exit(main())
"""

# What is taken back in each: lines that run first.
THROUGHPUT = {
    "agentwrap": "",
    "a turn of the loop for each read": "from agentwrap.host import pump\npump.BURST = 1",
    "frames looked at sequence by sequence": (
        "from agentwrap.core import scanner\nscanner._Compiled.end_of_drawn = lambda *_: -1"
    ),
    "no compiled pattern": ("from agentwrap.core import scanner\nscanner._compiled = lambda: scanner._PLAIN"),
    "nothing looked at": (
        "from agentwrap.commands import client\nclient.Client.output = lambda *_, more=False: False"
    ),
}
STARTUP = {
    "agentwrap": "",
    "re and json imported": "import re, json",
    "typing, dataclasses and enum imported": "import typing, dataclasses, enum",
    "argparse, subprocess and logging imported": "import argparse, subprocess, logging",
}


def variants(where, patches):
    """A launcher for each, all beside the same installation."""
    installed = Path(contenders.install_agentwrap(where, None))
    made = {}
    for number, (name, patch) in enumerate(patches.items()):
        launcher = installed.with_name(f"variant-{number}")
        launcher.write_text(LAUNCHER.format(python=installed.with_name("python"), patch=patch))
        launcher.chmod(0o755)
        made[name] = [str(launcher), "--notify", "none"]
    return made


def throughput(where, rounds, size):
    """MB a second and CPU seconds of agentwrap's own a GB, by stream and variant."""
    found = {}
    path = where / "stream"
    made = variants(where / "a", THROUGHPUT)
    for stream, make in streams.STREAMS.items():
        path.write_bytes(make(size))
        total = path.stat().st_size
        for _ in range(rounds):
            for name in random.sample(list(made), len(made)):
                with outer.Outer([*made[name], *measures.child("stream", path)]) as terminal:
                    terminal.expect(b"READY")
                    processes = outer.family([terminal.pid], {measures.child_pid()})
                    before = outer.cpu(processes)
                    terminal.type(b"g")
                    terminal.output.clear()
                    terminal.drain_to(b"THE-END")
                    used = outer.cpu(processes) - before
                    terminal.type(b"g")
                    terminal.wait()
                found.setdefault(f"CPU, {stream}, s/GB", {}).setdefault(name, []).append(used * 1e9 / total)
    return found


def startup(where, rounds):
    """Milliseconds from the spawn to the first byte."""
    made = variants(where / "b", STARTUP)
    found = {}
    printf = shutil.which("printf")
    for _ in range(rounds):
        for name in random.sample(list(made), len(made)):
            with outer.Outer([*made[name], printf, measures.MARK]) as terminal:
                terminal.expect(measures.MARK.encode())
                took = (time.perf_counter() - terminal.spawned) * 1e3
                terminal.wait()
            found.setdefault("first byte, ms", {}).setdefault(name, []).append(took)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--megabytes", type=int, default=32)
    options = parser.parse_args()
    where = Path(tempfile.mkdtemp(prefix="agentwrap-parts-"))
    try:
        os.environ |= {
            "BENCH_PID": str(where / "child.pid"),
            "AGENTWRAP_STATE_DIR": str(where / "state"),
            "XDG_CONFIG_HOME": str(where / "config"),
            "TERM": "xterm-256color",
        }
        for half in "ab":
            (where / half).mkdir()
        found = startup(where, options.rounds * 8)
        found |= throughput(where, options.rounds, options.megabytes << 20)
    finally:
        shutil.rmtree(where, ignore_errors=True)
    for measure, by_name in found.items():
        base = statistics.median(by_name["agentwrap"])
        print(f"\n| {measure} | median | ratio to agentwrap |\n| --- | ---: | ---: |")
        for name, values in by_name.items():
            median = statistics.median(values)
            print(f"| {name} | {median:.2f} | {median / base:.2f} |")


if __name__ == "__main__":
    main()
