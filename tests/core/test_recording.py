from __future__ import annotations

import json
import shlex

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentwrap.core import recording
from agentwrap.core.recording import Encoder


def encoder(**more):
    return Encoder(
        columns=80, rows=24, timestamp=1796021809, command=["codex"], environ={"TERM": "xterm"}, **more
    )


def restored(lines):
    """The bytes of the output in recorded lines, as a replay reads them."""
    out, escaped = b"", None
    for line in lines.splitlines():
        _, code, data = json.loads(line)
        if code == "b":
            escaped = data
        else:
            assert code == "o"
            out += recording.restore(data, escaped)
            escaped = None
    return out


def test_the_header_is_asciicast_v2():
    lines = encoder().header()
    assert lines.endswith(b"}\n")
    assert json.loads(lines) == {
        "version": 2,
        "width": 80,
        "height": 24,
        "timestamp": 1796021809,
        "command": "codex",
        "env": {"TERM": "xterm"},
    }


def test_the_header_keeps_directory_and_name_for_a_replay():
    header = json.loads(encoder(title='the "back" end', cwd="/home/u/sh\udce9p").header())
    assert header["title"] == 'the "back" end'
    assert header["agentwrap"] == {"cwd": "/home/u/sh?p", "name": 'the "back" end'}


def test_the_command_is_written_as_a_shell_takes_it():
    argv = ["codex", "-c", 'a="b c"', "it's", "", "$HOME", "--x=1", "ü"]
    header = json.loads(Encoder(columns=1, rows=1, timestamp=0, command=argv, environ={}).header())
    assert shlex.split(header["command"]) == argv
    assert header["command"].startswith("codex -c ")


def test_events_are_lines_of_time_code_and_data():
    encoded = encoder()
    assert json.loads(encoded.output(1.5, b"\x1b[1mhi\r\n")) == [1.5, "o", "\x1b[1mhi\r\n"]
    assert json.loads(encoded.input(1.25, b"q")) == [1.25, "i", "q"]
    assert json.loads(encoded.resize(2, 100, 30)) == [2.0, "r", "100x30"]
    assert json.loads(encoded.exit(3, 9)) == [3.0, "x", 9]
    assert encoded.output(4, b"") == b""


def test_a_character_in_two_chunks_comes_with_the_second():
    encoded = encoder()
    first, second = encoded.output(1, "aé".encode()[:2]), encoded.output(2, "é".encode()[1:] + b"b")
    assert json.loads(first) == [1.0, "o", "a"]
    assert json.loads(second) == [2.0, "o", "éb"]


def test_half_a_character_at_the_end_is_kept():
    encoded = encoder()
    lines = encoded.output(1, b"a\xe2\x82") + encoded.exit(2, 0)
    assert restored(b"\n".join(lines.splitlines()[:-1])) == b"a\xe2\x82"


def test_bytes_that_are_no_text_show_as_replacement_characters():
    lines = encoder().output(1, b"a\xffb\xfe").splitlines()
    assert [json.loads(line)[1:] for line in lines] == [["b", "1=ff,3=fe"], ["o", "a\ufffdb\ufffd"]]


def test_a_replacement_character_of_the_program_is_its_own():
    assert restored(encoder().output(1, "\ufffd".encode() + b"\xff")) == "\ufffd".encode() + b"\xff"


@given(st.lists(st.binary(max_size=40), max_size=8))
@settings(deadline=None, max_examples=300)
def test_any_bytes_in_any_chunks_come_back(chunks):
    encoded = encoder()
    lines = b"".join(encoded.output(n, chunk) for n, chunk in enumerate(chunks)) + encoded.flush(99)
    assert restored(lines) == b"".join(chunks)
    lines.decode("utf-8")
    for line in lines.splitlines():
        assert not any("\ud800" <= char <= "\udfff" for char in json.loads(line)[2])


@pytest.mark.parametrize("escaped", ["9=ff", "x=ff", "0", "0=41", "0=1ff", "0=zz", "-1=ff", ",", "0=ff,,"])
def test_bytes_that_fit_no_text_are_refused(escaped):
    with pytest.raises(ValueError):
        recording.restore("abc", escaped)


def test_half_a_surrogate_pair_of_another_program_does_no_harm():
    assert recording.restore("a\ud83db", None) == b"a?b"


def test_times_do_not_go_below_zero():
    assert json.loads(encoder().output(-0.1, b"x"))[0] == 0.0
