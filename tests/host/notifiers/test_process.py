"""The helper as a process: what it takes with it, and how it ends."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time

import pytest

from agentwrap.host.notifiers.limit import PER_MINUTE

from .conftest import until


def test_it_ends_with_its_input_and_says_nothing_else(start):
    helper = start()
    assert helper.end(timeout=5) == []


def test_what_is_queued_is_delivered_before_it_ends(start):
    helper = start()
    for number in range(5):
        helper.notify(number, f"k{number}", channels=("bell",))
    rest = helper.end()
    assert [m["id"] for m in rest if m["op"] == "result"] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1])
def test_a_hangup_or_a_key_does_not_end_it(start, number):
    helper = start()
    helper.notify(1, channels=("bell",))
    helper.wait(id=1)
    helper.process.send_signal(number)
    helper.notify(2, channels=("bell",))
    assert helper.wait(id=2)["ok"]
    helper.end()


def test_term_ends_it_in_order(start):
    helper = start()
    helper.notify(1, channels=("bell",))
    helper.wait(id=1)
    helper.process.terminate()
    assert helper.process.wait(5) == 0


def test_a_reader_that_is_gone_ends_it(start):
    helper = start()
    helper.notify(1, channels=("bell",))
    helper.wait(id=1)
    os.close(os.dup(helper.process.stdout.fileno()))
    helper.process.stdin.close()
    assert helper.process.wait(5) == 0


def test_a_reader_that_does_not_read_does_not_stop_it(clean_env, tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-I", "-m", "agentwrap.host.notifiers"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=clean_env,
        start_new_session=True,
    )
    with process:
        try:
            for number in range(6000):
                message = {
                    "op": "notify",
                    "id": number,
                    "key": f"k{number}",
                    "type": "blocked",  # others are limited
                    "channels": ["bell"],
                }
                process.stdin.write(json.dumps(message).encode() + b"\n")
            message |= {"channels": ["command"], "command": ["touch", str(tmp_path / "reached")]}
            process.stdin.write(json.dumps(message).encode() + b"\n")
            process.stdin.flush()
            until((tmp_path / "reached").exists, "the last notice")
        finally:
            process.kill()


def test_a_line_that_is_too_long_is_left_out(start):
    helper = start()
    helper.process.stdin.write(b'{"op": "notify", "id": 1, "title": "' + b"x" * 500_000 + b'"}\n')
    helper.notify(2, channels=("bell",))
    assert helper.wait(id=2)["ok"]
    assert all(message["id"] == 2 for message in helper.said)


def test_lines_may_come_in_any_pieces(start):
    helper = start()
    line = (
        json.dumps({"op": "notify", "id": 1, "type": "done", "channels": ["bell"], "title": "é"}).encode()
        + b"\n"
    )
    for byte in line + line:
        helper.process.stdin.write(bytes([byte]))
        helper.process.stdin.flush()
    helper.wait(id=1)
    helper.wait(id=1)


def test_it_lets_go_of_what_it_inherited(clean_env):
    reading, writing = os.pipe()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    process = subprocess.Popen(
        [sys.executable, "-I", "-m", "agentwrap.host.notifiers"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=clean_env,
        pass_fds=(writing,),
        start_new_session=True,
    )
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    os.close(writing)
    with process:
        began = time.monotonic()
        assert select.select([reading], [], [], 10)[0]
        assert os.read(reading, 1) == b""  # at once, though the helper lives on
        assert time.monotonic() - began < 5
        assert process.poll() is None
        message = {"op": "notify", "id": 1, "type": "done", "channels": ["bell"]}
        process.stdin.write(json.dumps(message).encode() + b"\n")
        process.stdin.flush()
        process.stdout.readline()
        process.terminate()
        assert process.wait(5) == 0
    os.close(reading)


def test_it_starts_without_what_only_some_channels_need():
    code = (
        "import sys, agentwrap.host.notifiers.__main__;"
        "heavy = ('dbus_fast', 'desktop_notifier', 'rubicon', 'typer', 'psutil');"
        "print([m for m in heavy if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"


def test_all_sessions_share_a_limit_that_holds_nobody_who_waits(start):
    one, other = start(), start()
    for number in range(PER_MINUTE):
        (one, other)[number % 2].notify(number, kind="done", channels=("bell",))
    for helper, last in ((one, PER_MINUTE - 2), (other, PER_MINUTE - 1)):
        assert helper.wait(id=last)["ok"]
    one.notify(100, kind="done", channels=("bell",))
    assert one.wait(id=100)["reason"] == "too many notifications of all sessions"
    other.notify(101, kind="blocked", channels=("bell",))
    assert other.wait(id=101)["ok"]
    other.notify(102, kind="exit", channels=("bell",))
    assert other.wait(id=102)["ok"]
