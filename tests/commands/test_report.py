"""Claims about `agentwrap report`: what it writes, where, and that it never breaks a hook."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import termios
import time

import pytest

from agentwrap import errors
from agentwrap.commands import report as command
from agentwrap.core import report

AGENTWRAP = [sys.executable, "-I", "-m", "agentwrap"]
COMMAND = " ".join(AGENTWRAP)


def body(words: list[str]) -> bytes:
    sequence = report.encode(command.parse(words))
    assert sequence.startswith(b"\x1b]7501;")
    assert sequence.endswith(b"\x1b\\")
    assert len(sequence) <= report.SEQUENCE_LIMIT
    return sequence[7:-2]


def fields(words: list[str]) -> dict[str, object]:
    got = report.parse(body(words))
    assert isinstance(got, report.Report), getattr(got, "reason", got)
    return {name: getattr(got, name) for name in got.__slots__ if getattr(got, name) not in (None, "")}


@pytest.mark.parametrize("state", ["idle", "working", "done", "blocked", "error", "clear"])
def test_every_state_is_written_as_it_is_read(state):
    assert fields([state]) == {"state": state}


def test_every_option_arrives():
    words = ["--kind=permission", "blocked", "--msg", "run rm?", "--title", "tests", "--id", "build/tests"]
    assert fields([*words, "--app=my-app", "--progress", "007"]) == {
        "state": "blocked",
        "kind": "permission",
        "msg": "run rm?",
        "title": "tests",
        "id": "build/tests",
        "app": "my-app",
        "progress": 7,
    }


def test_what_a_state_does_not_take_is_left_out():
    assert fields(["done", "--kind", "auth", "--progress", "5"]) == {"state": "done"}
    assert body(["clear", "--msg", "x", "--id", "a"]) == b"state=clear:id=a:by=command"


@pytest.mark.parametrize(
    ("given", "arrives"),
    [
        ("a\x1b]0;x\x07b\nc\td", "a]0;xb c d"),
        ("\u202eevil\u200b", "evil"),
        ("\udcff\udc80x", "x"),
        ("👩‍👩‍👧", "👩‍👩‍👧"),
        ("\x9b31m\x7f", "31m"),
        ("=--=:;", "=--=:;"),
    ],
)
def test_hostile_texts_are_cleaned_and_arrive(given, arrives):
    assert fields(["done", "--msg", given, f"--title={given}"]) == {
        "state": "done",
        "msg": arrives,
        "title": arrives,
    }


def test_long_texts_are_cut_after_a_whole_character():
    got = fields(["working", "--msg", "x" + "é" * 5000, "--title", "漢" * 1000])
    assert got["msg"] == "x" + "é" * 1023
    assert got["title"] == "漢" * 64


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["finished"],
        ["Done"],
        ["done", "now"],
        ["blocked", "--kind", "sudo"],
        ["working", "--progress", "101"],
        ["working", "--progress", "-1"],
        ["working", "--progress", "٣"],
        ["working", "--progress", "9" * 5000],
        ["done", "--id", "a//b"],
        ["done", "--id", "ü"],
        ["done", "--app", "x" * 33],
        ["done", "--app", "a b"],
        ["done", "--message", "x"],
        ["done", "--msg"],
    ],
)
def test_a_mistake_in_the_call_is_one_line_and_exit_2(words):
    with pytest.raises(errors.UsageError) as raised:
        command.parse(words)
    assert raised.value.exit_code == 2
    assert "\n" not in raised.value.line


# Nobody's child: no terminal of its own, and none of an ancestor, such as the one these tests were started from.
ORPHAN = """
import os, time
pid = os.getpid()
if os.fork():
    os._exit(0)
os.setsid()
while os.getppid() == pid:
    time.sleep(0.01)
"""


def test_without_a_terminal_it_says_nothing_and_succeeds():
    run = f"import subprocess; done = subprocess.run({[*AGENTWRAP, 'report', 'done']!r}, capture_output=True); print(done)"
    done = subprocess.run(
        [sys.executable, "-I", "-c", ORPHAN + run], capture_output=True, text=True, check=True
    )
    assert done.stdout.endswith("returncode=0, stdout=b'', stderr=b'')\n")


def test_a_bad_state_is_one_line_even_without_a_terminal(tmp_path):
    config = tmp_path / "config.toml"
    config.write_text("[notify]\nbad = 1\n")
    done = subprocess.run(
        [*AGENTWRAP, "report", "finished"],
        capture_output=True,
        start_new_session=True,
        check=False,
        env=os.environ | {"AGENTWRAP_CONFIG": str(config)},
    )
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.startswith(b"agentwrap: report: unknown state finished; there are ")
    assert done.stderr.count(b"\n") == 1


class Terminal:
    """A program in a terminal of its own."""

    def __init__(self, argv, *, setup=None):
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            try:
                if setup:
                    setup()
                os.execvp(argv[0], argv)
            finally:
                os._exit(99)

    def read(self, seconds=10.0):
        """All it writes, to its end."""
        data = b""
        deadline = time.monotonic() + seconds
        while select.select([self.master], [], [], max(0, deadline - time.monotonic()))[0]:
            try:
                chunk = os.read(self.master, 65536)
            except OSError:
                break
            if not chunk:
                break
            data += chunk
        return data, os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def test_it_writes_to_the_terminal_and_never_to_standard_output():
    shell = f"exec 3>&1; out=$({COMMAND} report blocked --kind question --msg 'Go on?' 2>&1); echo \"[$out]\""
    output, code = Terminal(["sh", "-c", shell]).read()
    expected = report.encode(report.Report("blocked", kind="question", msg="Go on?"))
    assert output == expected + b"[]\r\n"
    assert code == 0


def test_in_the_background_of_a_terminal_that_stops_writers_it_writes():
    def tostop():
        attributes = termios.tcgetattr(0)
        attributes[3] |= termios.TOSTOP
        termios.tcsetattr(0, termios.TCSANOW, attributes)

    shell = f"set -m; {COMMAND} report done & wait $!; echo $?"
    output, _ = Terminal(["sh", "-c", shell], setup=tostop).read()
    assert report.encode(report.Report("done")) in output
    assert output.endswith(b"0\r\n")


def test_a_terminal_that_takes_nothing_does_not_hold_a_hook():
    shell = f"printf r >&3; {COMMAND} report done; echo $? >&3"
    reading, writing = os.pipe()
    terminal = Terminal(
        ["sh", "-c", shell], setup=lambda: (os.dup2(writing, 3), termios.tcflow(1, termios.TCOOFF))
    )
    os.close(writing)
    try:
        began = time.monotonic()
        assert os.read(reading, 1) == b"r"
        assert os.read(reading, 9) == b"0\n"
        assert time.monotonic() - began < 5
    finally:
        os.close(reading)
        os.close(terminal.master)
        os.waitpid(terminal.pid, 0)


def test_it_imports_nothing_heavy():
    code = (
        "import sys; from agentwrap.__main__ import main; "
        "assert main(['report', 'done', '--id', 'hook', '--msg', 'x']) == 0; "
        "print(*sys.modules)"
    )
    got = subprocess.run(
        [sys.executable, "-I", "-c", ORPHAN + code], capture_output=True, text=True, check=True
    ).stdout.split()
    heavy = {
        "re",
        "json",
        "typing",
        "typer",
        "argparse",
        "subprocess",
        "socket",
        "logging",
        "tomllib",
        "psutil",
    }
    assert not heavy & set(got)


# --- as an agent's hook


def as_hook(given: bytes, *words: str) -> bytes:
    """What a hook that is given `given` writes to its agent's terminal, in a session of its own, as agents start it."""
    script = f"import subprocess, sys; sys.exit(subprocess.run({[*AGENTWRAP, 'report', *words]!r}, input={given!r}, capture_output=True, start_new_session=True).returncode)"
    output, code = Terminal([sys.executable, "-c", script]).read()
    assert code == 0
    return output


def test_in_a_session_of_its_own_it_writes_to_the_terminal_of_its_agent():
    assert as_hook(b"{}", "done", "--id", "hook") == report.encode(report.Report("done", "hook"))


def test_the_message_is_taken_from_the_json_that_a_hook_is_given():
    given = (
        b'{"tool_name": "Bash", "tool_input": {"command": "touch \\u001b[31m it"}, "rest": "'
        + b"x" * 100_000
        + b'"}'
    )
    got = as_hook(given, "blocked", "--id=hook", "--msg-from", "tool_name,tool_input.command,tool_input.url")
    assert got == report.encode(report.Report("blocked", "hook", msg="Bash: touch [31m it"))


@pytest.mark.parametrize(
    ("given", "names", "found"),
    [
        (b'{"a": {"b": ["x", {"c": " y "}]}}', "a.b.1.c", "y"),
        (b'{"a": {"b": ["x"]}}', "a.b.0,a.b.1,a.b.-1,a.b.x,a.b.9999999999", "x"),
        (b'{"a": 1, "b": null, "c": {}, "d": "  ", "e": true}', "a,b,c,d,e,f,a.b", ""),
        (b'{"": "x"}', ".", ""),
        (b"[" * 100_000, "a", ""),
        (b'{"a": "cut', "a", ""),
        (b"\xff", "a", ""),
        (b"", "a", ""),
        (b'"text"', "a", ""),
    ],
)
def test_names_lead_to_texts_and_to_nothing_else(given, names, found):
    assert command.pick(given, names) == found


def test_a_message_given_wins_over_one_to_be_looked_for():
    assert fields(["done", "--msg", "x", "--msg-from", "y"]) == {"state": "done", "msg": "x"}


def test_an_input_that_never_ends_does_not_hold_it():
    reading, writing = os.pipe()
    try:
        began = time.monotonic()
        argv = [*AGENTWRAP, "report", "done", "--id", "test", "--msg-from", "a"]
        assert subprocess.run(argv, stdin=reading, check=False).returncode == 0
        assert time.monotonic() - began < 5
    finally:
        os.close(reading)
        os.close(writing)


@pytest.mark.parametrize("more", [(), ("--msg-from", "tool_input.command")])
def test_each_tool_call_costs_little_more_than_an_interpreter(more):
    """As a ratio of the fastest of each, taken in turn: a busy machine slows both."""
    program = os.path.join(os.path.dirname(sys.executable), "agentwrap")
    given = b'{"tool_input": {"command": "x"}}'

    def took(words: list[str]) -> float:
        began = time.perf_counter()
        subprocess.run(words, check=True, input=given)
        return time.perf_counter() - began

    report = [program, "report", "working", "--id", "test", *more]
    nothing = [sys.executable, "-I", "-c", "pass"]
    pairs = [(took(report), took(nothing)) for _ in range(20)]
    assert min(pair[0] for pair in pairs) < 5 * min(pair[1] for pair in pairs)
