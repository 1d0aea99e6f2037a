"""Compare agentwrap with what people would otherwise use, interleaved in one run.

    python benchmarks/run.py [--quick] [startup] [throughput] [echo] [idle] [reports] [many]

Prints a Markdown table of medians and ratios, and writes all figures to one JSON file.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

import contenders
import measures
import report
from outer import TooLateError

SUBSETS = {
    "startup": measures.startup,
    "throughput": measures.throughput,
    "echo": measures.echo,
    "idle": measures.idle,
    "reports": measures.reports,
    "many": measures.many,
}
STALLED = 1200  # seconds after which one subset is given up


class Series(dict):
    """Figures by measure and contender; each a list of single results."""

    def add(self, measure, contender, value):
        """Note one result."""
        self.setdefault(measure, {}).setdefault(contender, []).append(value)


def summary(values):
    """Median and spread."""
    values = sorted(values)
    quarters = statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else [values[0]] * 3
    return {
        "median": statistics.median(values),
        "p25": quarters[0],
        "p75": quarters[2],
        "min": values[0],
        "max": values[-1],
        "n": len(values),
    }


def machine():
    """What it was measured on."""
    try:
        model = next(
            line.split(":", 1)[1].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        )
    except (OSError, StopIteration):
        model = platform.machine()
    return {
        "system": f"{platform.system()} {platform.release()}",
        "cpu": model,
        "cpus": os.cpu_count(),
        "python": platform.python_version(),
        "load": os.getloadavg(),
    }


def tools_environment(where, given, *, install):
    """The virtual environment with asciinema and pexpect, or None."""
    if given:
        return Path(given).resolve()
    if not install:
        return None
    home = where / "tools"
    venv.create(home, with_pip=True)
    subprocess.run([home / "bin" / "pip", "install", "-q", "asciinema<3", "pexpect"], check=True)
    return home


def give_up(*_):
    raise TooLateError(f"not through after {STALLED} s")


def main():
    signal.signal(signal.SIGALRM, give_up)
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("subsets", nargs="*", metavar="SUBSET", help=", ".join(SUBSETS) + " (default: all)")
    parser.add_argument("--quick", action="store_true", help="fewer rounds, smaller streams, shorter waits")
    parser.add_argument("--only", default="", help="contenders, by name, with commas")
    parser.add_argument("--agentwrap", help="a launcher to measure, instead of a fresh installation")
    parser.add_argument("--tools", help="a virtual environment with asciinema 2 and pexpect")
    parser.add_argument("--install-tools", action="store_true", help="make one with pip, to throw away")
    parser.add_argument("--rounds", type=float, default=1.0, help="more or fewer rounds, as a factor")
    parser.add_argument("--json", default="benchmark.json", help="where the figures go")
    options = parser.parse_args()
    for name in options.subsets:
        if name not in SUBSETS:
            parser.error(f"no subset {name}: {', '.join(SUBSETS)}")
    if sys.platform != "linux":
        parser.error("it reads /proc, which only Linux has")

    where = Path(tempfile.mkdtemp(prefix="agentwrap-bench-"))
    series = Series()
    try:
        os.environ["BENCH_PID"] = str(where / "child.pid")
        os.environ["AGENTWRAP_STATE_DIR"] = str(where / "state")
        os.environ["XDG_CONFIG_HOME"] = str(where / "config")
        os.environ["HOME"] = str(where)
        os.environ["TERM"] = "xterm-256color"
        for name in (  # whatever is set where it is started from
            "PYTHONDONTWRITEBYTECODE",
            "PYTHONUNBUFFERED",
            "TMUX",
            "AGENTWRAP",
            "AGENTWRAP_SESSION",
            "AGENTWRAP_STATE_FILE",
            "AGENTWRAP_LOG",
            "AGENTWRAP_CONFIG",
        ):
            os.environ.pop(name, None)
        launcher = contenders.install_agentwrap(where, options.agentwrap)
        tools = tools_environment(where, options.tools, install=options.install_tools)
        only = [name.strip() for name in options.only.split(",") if name.strip()]
        found, missing = contenders.find(where, agentwrap=launcher, tools=tools, only=only)
        for name, reason in missing.items():
            print(f"left out: {name}: {reason}", file=sys.stderr)
        before = machine()
        setting = measures.Setting(where, launcher, quick=options.quick, factor=options.rounds)
        for name in options.subsets or SUBSETS:
            print(f"measuring {name} …", file=sys.stderr)
            signal.alarm(STALLED)
            try:
                SUBSETS[name](found, setting, series)
            except TooLateError as error:
                missing[name] = f"given up: {error}"
            finally:
                signal.alarm(0)
    finally:
        shutil.rmtree(where, ignore_errors=True)
    figures = {
        measure: {name: summary(values) for name, values in by_name.items()}
        for measure, by_name in series.items()
    }
    data = {"machine": before, "missing": missing, "figures": figures, "single": series}
    Path(options.json).write_text(json.dumps(data, indent=1) + "\n")
    print(report.markdown(data))


if __name__ == "__main__":
    main()
