from __future__ import annotations

import json
import os
import time

import pytest

from agentwrap.core.recording import Encoder
from agentwrap.host import recorder
from tests.lab.outer import until


@pytest.fixture
def encoder():
    return Encoder(columns=80, rows=24, timestamp=0, command=["x"], environ={})


def test_another_process_writes_the_file_and_ends_with_us(tmp_path, encoder):
    path = tmp_path / "x.cast"
    writing, done = recorder.start(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
    made = recorder.Recorder(writing, done, encoder, time.monotonic(), record_input=False)
    made.output(b"hello", time.monotonic())
    made.typed(b"not this", time.monotonic())
    made.ended(256, {15}, time.monotonic())
    until(lambda: not made.waiting)
    made.finish()
    header, output, sent, end = map(json.loads, path.read_text().splitlines())
    assert header["version"] == 2
    assert output[1:] == ["o", "hello"]
    assert sent[1:] == ["s", 15]
    assert end[1:] == ["x", 256]


def test_a_disk_that_is_too_slow_costs_events_and_never_time(encoder):
    reading, writing = os.pipe()
    made = recorder.Recorder(writing, os.dup(writing), encoder, 0.0, record_input=False)
    for _ in range(3 * recorder.QUEUE // 65536):
        made.output(b"x" * 65536, 0.0)
    assert made.lost > 0
    assert made.waiting
    os.close(reading)
    made.flush()
    assert not made.waiting, "the writing process is gone: nothing waits for it any more"
    began = time.monotonic()
    made.finish(0.05)
    assert time.monotonic() - began < 1
