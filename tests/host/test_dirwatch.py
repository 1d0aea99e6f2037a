"""Claims about waiting for a directory to change."""

from __future__ import annotations

import os
import subprocess
import threading
import time

import pytest

from agentwrap.host import dirwatch


@pytest.fixture(params=["told", "looking"])
def make(request, monkeypatch):
    """Watches that are told of changes by the system, and ones that look."""
    if request.param == "looking":

        def none(self):
            raise OSError

        monkeypatch.setattr(dirwatch.Watch, "_inotify", none)
        monkeypatch.setattr(dirwatch.Watch, "_kqueue", none)
        monkeypatch.delattr(os, "pidfd_open", raising=False)
    made = []

    def make(path):
        made.append(dirwatch.Watch(str(path), ".json"))
        return made[-1]

    yield make
    for watch in made:
        watch.close()


def woken(watch, action, timeout=5.0):
    """Seconds until the watch wakes of `action`."""
    took = []
    began = []

    def act():
        began.append(time.monotonic())
        action()

    timer = threading.Timer(0.2, act)
    timer.start()
    watch.wait(timeout)
    took.append(time.monotonic())
    timer.join()
    return took[0] - began[0] if began else -1.0


def put(path, text="x"):
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.write_text(text)
    temporary.rename(path)


def settle(watch):
    """Past what a watch that looks cannot tell from a change."""
    deadline = time.monotonic() + 1
    while time.monotonic() < deadline:
        before = time.monotonic()
        watch.wait(0.3)
        if time.monotonic() - before > 0.25:
            return


def test_a_file_that_appears_changes_or_goes_wakes(make, tmp_path):
    watch = make(tmp_path)
    settle(watch)
    for action in (
        lambda: put(tmp_path / "a.json"),
        lambda: put(tmp_path / "a.json", "y"),
        (tmp_path / "a.json").unlink,
    ):
        assert 0 <= woken(watch, action) < 0.9
        settle(watch)


def test_a_change_before_the_wait_is_told_by_it(make, tmp_path):
    watch = make(tmp_path)
    settle(watch)
    put(tmp_path / "a.json")
    began = time.monotonic()
    watch.wait(5)
    assert time.monotonic() - began < 0.9


def test_other_files_are_no_change(tmp_path):
    watch = dirwatch.Watch(str(tmp_path), ".json")
    began = time.monotonic()
    threading.Timer(0.1, lambda: put(tmp_path / "summary")).start()
    watch.wait(0.4)
    assert time.monotonic() - began >= 0.4
    watch.close()


def test_a_directory_that_is_missing_or_made_again_is_followed(make, tmp_path):
    path = tmp_path / "state"
    watch = make(path)

    def appear():
        path.mkdir()
        put(path / "a.json")

    assert 0 <= woken(watch, appear) < 2.5
    settle(watch)

    def again():
        for file in path.iterdir():
            file.unlink()
        path.rmdir()
        path.mkdir()

    assert 0 <= woken(watch, again) < 2.5
    settle(watch)
    assert 0 <= woken(watch, lambda: put(path / "b.json")) < 2.5


def test_the_end_of_a_process_wakes(make, tmp_path):
    child = subprocess.Popen(["sleep", "60"])
    watch = make(tmp_path)
    settle(watch)
    watch.processes([child.pid])

    def end():
        child.kill()
        child.wait()

    assert 0 <= woken(watch, end) < dirwatch.ALIVE + 2
    watch.processes([])


def test_another_descriptor_wakes_and_is_named(make, tmp_path):
    reading, writing = os.pipe()
    watch = make(tmp_path)
    settle(watch)
    watch.also(reading)
    os.write(writing, b"x")
    assert watch.wait(5) == {reading}
    os.close(reading)
    os.close(writing)


def test_a_timeout_is_kept(make, tmp_path):
    watch = make(tmp_path)
    settle(watch)
    began = time.monotonic()
    assert watch.wait(0.3) == set()
    assert 0.3 <= time.monotonic() - began < 5
