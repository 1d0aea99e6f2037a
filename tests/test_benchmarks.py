"""The benchmarks run through; what they measure is not judged here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lab.tools import require

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="they read /proc, which only Linux has")


def run(*words, cwd):
    environ = {name: value for name, value in os.environ.items() if not name.startswith("BENCH")}
    return subprocess.run(
        [sys.executable, *words],
        cwd=cwd,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_they_measure_agentwrap_beside_script(tmp_path):
    require("script")
    ran = run(
        BENCHMARKS / "run.py",
        *("--quick", "--rounds", "0.01", "--only", "direct,script,agentwrap", "--json", "found.json"),
        *("startup", "throughput", "echo", "reports"),
        cwd=tmp_path,
    )
    assert ran.returncode == 0, ran.stderr
    figures = json.loads((tmp_path / "found.json").read_text())["figures"]
    for measure in (
        "first byte, ms",
        "`true` in total, ms",
        "throughput, agent-like, MB/s",
        "CPU, dense OSC, s/GB",
        "key echo idle, p50 µs",
        "key echo beside 2 MB/s, p99 µs",
        "probe answered after, µs",
        "state file written after, µs",
        "the first notification, its helper started, its command run after, µs",
    ):
        assert figures[measure]["agentwrap"]["median"] > 0, measure
        assert f"| {measure} |" in ran.stdout
    assert "script" in figures["CPU, plain text, s/GB"]
    assert "ratio to script" in ran.stdout


def test_what_single_decisions_buy_is_a_ratio_each(tmp_path):
    ran = run(BENCHMARKS / "parts.py", "--rounds", "1", "--megabytes", "1", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    rows = [line.split("|")[1:-1] for line in ran.stdout.splitlines() if line.startswith("| agentwrap")]
    assert len(rows) == 4
    assert all(float(ratio) == 1 and float(median) > 0 for _, median, ratio in rows)
