from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentwrap import agents
from agentwrap.core import snapshot
from agentwrap.core.attention import Policy
from agentwrap.core.session import Session

KEYS = [
    "schema",
    "session",
    "name",
    "agent",
    "app",
    "command",
    "cwd",
    "tty",
    "pid",
    "pid_started",
    "child_pid",
    "started",
    "since",
    "updated",
    "seq",
    "state",
    "kind",
    "message",
    "progress",
    "title",
    "source",
    "focused",
    "records",
]


def identity(**more):
    fields = {
        "session": "claude-4211",
        "name": None,
        "agent": "claude",
        "command": ["claude"],
        "cwd": "/home/u/shop",
        "tty": "/dev/pts/3",
        "pid": 4211,
        "pid_started": 1796021809.42,
        "started": 1796021809.5,
    }
    return snapshot.Identity(**{**fields, **more})


def session():
    return Session(agents.by_name("claude"), Policy(), now=100.0)


def test_the_object_has_the_keys_of_the_state_file_in_their_order():
    made = identity().session_object(session().view(), 0.0)
    assert list(made) == KEYS
    assert made["state"] == "unknown"
    assert made["seq"] == 0
    assert made["records"] == []


def test_a_blocked_agent():
    live = session()
    live.output(b"\x1b]0;Claude Code\a\x1b]7501;state=idle:app=claude-code\a", 101.0)
    live.output(
        b"\x1b]7501;state=blocked:app=claude-code:kind=permission:progress=7:msg=YXBwcm92ZQ==\a", 102.0
    )
    who = identity()
    who.child_pid = 4213
    made = who.session_object(live.view(), 1796021700.0)
    assert made == {
        "schema": 1,
        "session": "claude-4211",
        "name": None,
        "agent": "claude",
        "app": "claude-code",
        "command": ["claude"],
        "cwd": "/home/u/shop",
        "tty": "/dev/pts/3",
        "pid": 4211,
        "pid_started": 1796021809.42,
        "child_pid": 4213,
        "started": 1796021809.5,
        "since": 1796021802.0,
        "updated": 1796021802.0,
        "seq": 2,
        "state": "blocked",
        "kind": "permission",
        "message": "approve",
        "progress": 7,
        "title": "Claude Code",
        "source": "osc7501",
        "focused": None,
        "records": [
            {
                "id": "",
                "state": "blocked",
                "kind": "permission",
                "progress": 7,
                "app": "claude-code",
                "title": None,
                "message": "approve",
            }
        ],
    }


def test_a_time_told_once_stays_when_the_clock_is_set():
    who, live = identity(), session()
    first = who.session_object(live.view(), 1000.0)
    assert who.session_object(live.view(), 5000.0)["since"] == first["since"]


def test_records_are_as_sent_and_all_else_is_cleaned():
    live = session()
    evil = "a\u202eb"
    encoded = "YeKArmI="
    live.output(f"\x1b]7501;state=blocked:msg={encoded}:title={encoded}\a\x1b]2;{evil}\a".encode(), 101.0)
    made = identity(name=evil, command=[evil], cwd="/" + evil).session_object(live.view(), 0.0)
    assert made["records"][0]["message"] == made["records"][0]["title"] == evil
    assert (made["message"], made["title"], made["name"]) == ("ab", "ab", "ab")
    assert (made["command"], made["cwd"]) == (["ab"], "/ab")


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=10,
)


@given(VALUES)
@settings(deadline=None, max_examples=200)
def test_what_is_encoded_is_json_on_one_ascii_line(value):
    encoded = snapshot.encode(value)
    assert json.loads(encoded) == value
    assert encoded.isascii()
    assert "\n" not in encoded


def test_separators_are_those_the_state_directory_looks_for():
    assert (
        snapshot.encode({"state": "idle", "n": [1, (2.5, None)]})
        == '{"state": "idle", "n": [1, [2.5, null]]}'
    )


def test_what_json_cannot_hold():
    assert snapshot.encode([math.inf, math.nan]) == "[null, null]"
    assert json.loads(snapshot.encode("\udce9")) == "\udce9"
    with pytest.raises(TypeError):
        snapshot.encode(b"bytes")


@given(st.dictionaries(st.text(max_size=5), VALUES, max_size=4))
@settings(deadline=None, max_examples=200)
def test_what_is_encoded_is_decoded(value):
    assert snapshot.decode(snapshot.encode(value).encode()) == value


@pytest.mark.parametrize(
    "line", [b"", b"{", b"[1]", b"1", b"\xff", b'{"a": }', b'{"a": "', b"[" * 100_000, b"x", b'{"a": 1 "b"}']
)
def test_what_is_no_object_is_a_value_error(line):
    with pytest.raises(ValueError):
        snapshot.decode(line)


@pytest.mark.parametrize("imported", ["", "import json; "])
def test_decoding_needs_no_json_module(imported):
    code = (
        f"import sys; {imported}sys.path.insert(0, {str(Path(__file__).parents[2])!r})\n"
        "from agentwrap.core import snapshot\n"
        "print(snapshot.decode(b'{\"a\": [1.5, null, \"\\\\u00e9\"]}'), 'json' in sys.modules)\n"
        "try: snapshot.decode(b'{')\n"
        "except ValueError: print('no object')"
    )
    result = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.splitlines() == [f"{{'a': [1.5, None, 'é']}} {bool(imported)}", "no object"]
