"""Our process takes the command's name and words, and nothing else of it changes."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

import agentwrap
from agentwrap.host import title

PROGRAM = """
import json, os, sys
from agentwrap.host import title
sys.path.clear()
taken = title.take(json.loads(sys.argv[1]))
with open("/proc/self/cmdline", "rb") as file:
    words = file.read()
with open("/proc/self/comm", "rb") as file:
    name = file.read()
with open("/proc/self/environ", "rb") as file:
    same = file.read().split(b"\\0")[0] == b"FIRST=1"
print(json.dumps([taken, words.decode("latin-1"), name.decode("latin-1"), same, sys.argv[2:], os.environ["LAST"]]))
"""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets a process name itself")


def run(program, *words):
    ran = subprocess.run(
        [sys.executable, "-c", program, *words],
        env={"FIRST": "1", "PYTHONPATH": os.path.dirname(agentwrap.__path__[0]), "LAST": "z"},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(ran.stdout)


def take(*command):
    taken, words, name, same, argv, last = run(PROGRAM, json.dumps(command), *command)
    assert taken
    assert same
    assert argv == list(command)
    assert last == "z"
    return words, name.removesuffix("\n")


def test_the_words_and_the_name_are_the_commands():
    words, name = take("/opt/bin/claude", "--resume", "a b", "")
    assert words.startswith("/opt/bin/claude\0--resume\0a b\0\0")
    assert words.strip("\0").split("\0") == ["/opt/bin/claude", "--resume", "a b"]
    assert name == "claude"


def test_a_long_name_is_cut_where_the_system_cuts_it():
    assert take("a-name-of-twenty-one")[1] == "a-name-of-twent"


def test_words_that_need_more_room_than_ours_are_cut():
    program = PROGRAM.replace("json.loads(sys.argv[1])", "['claude', 'x' * 100000]")
    taken, words, _, same, argv, last = run(program, "-")
    assert taken
    assert words.startswith("claude\0xxx")
    assert words.endswith("x\0")
    assert (same, argv, last) == (True, [], "z")


def test_a_system_without_these_files_is_left_alone(monkeypatch):
    def missing(path, *_):
        raise FileNotFoundError(path)

    monkeypatch.setattr(title, "_read", missing)
    assert not title.take(["claude"])
