"""`agentwrap report STATE`: one status report to the controlling terminal, for scripts and hooks.

Parsed by hand and written without anything heavy: hooks call it at every step of an agent. Whatever goes
wrong with the terminal, it says nothing and succeeds, so that no hook ever breaks its agent. Only a mistake
in the call itself is an error.
"""

from __future__ import annotations

import os
import select
import signal
import time

from agentwrap.core import report, text
from agentwrap.errors import UsageError
from agentwrap.host import ancestors, signals

HELP = """\
usage: agentwrap report STATE [OPTIONS]

Write a status report to the controlling terminal, for whatever shows it: agentwrap, or a terminal that knows
OSC 7501. Without a terminal it does nothing, and succeeds.

STATE is idle, working, blocked, done, error, or clear (forget what was reported).

options:
  --kind KIND       what it is blocked on: permission, question or auth
  --msg TEXT        what it is about
  --msg-from NAMES  take that from the JSON on standard input, as agents give it to their hooks; NAMES lead
                    to it, like tool_input.command; several, joined by commas, make `one: two`
  --title TEXT      title of a part of the work, together with --id
  --id ID           a part of the work, like build/tests; without: the whole program
  --app NAME        what reports
  --progress N      per cent done, with working or blocked

examples:
  agentwrap report working --msg "running the tests" --progress 40
  agentwrap report blocked --kind question --msg "Deploy now?"
  agentwrap report clear
  agentwrap report done --id hook --msg-from last_assistant_message

With --id hook it is an agent's hook that reports: it counts as long as the agent does not report by itself.
See agentwrap hooks --help.
"""

PATIENCE = 1.0  # seconds for a terminal that takes nothing (Ctrl-S), and twice that to finish what was begun
LONGEST_INPUT = 8 << 20  # bytes of JSON read from standard input; agents send whole conversations
INPUT_WAIT = 1.0  # seconds for it to come: an agent writes it at once
_VALUES = ("--kind", "--msg", "--msg-from", "--title", "--id", "--app", "--progress")


def main(words: list[str]) -> int:
    """Do what the command line behind `report` says.

    Raises:
        UsageError: a mistake in the call.
    """
    if "-h" in words or "--help" in words:
        os.write(1, HELP.encode())
        return 0
    send(report.encode(parse(words)))
    return 0


def parse(words: list[str]) -> report.Report:
    """The report that the command line means.

    Raises:
        UsageError: an unknown state or option, or a value that cannot be.
    """
    values: dict[str, str] = {}
    state: str | None = None
    index = 0
    while index < len(words):
        option, equals, value = words[index].partition("=")
        index += 1
        if option in _VALUES:
            if not equals:
                if index == len(words):
                    raise UsageError(f"report: {option} needs a value; see agentwrap report --help")
                value = words[index]
                index += 1
            values[option] = value
        elif option.startswith("-"):
            raise UsageError(f"report: unknown option {option}; see agentwrap report --help")
        elif state is None:
            state = words[index - 1]
        else:
            raise UsageError(f"report: one STATE only, not also {words[index - 1]}; a text goes behind --msg")
    states = (*report.STATES, report.CLEAR)
    if state not in states:
        what = f"unknown state {state}" if state else "no STATE"
        raise UsageError(f"report: {what}; there are {', '.join(states)}")
    progress = values.get("--progress")
    if progress is not None and not (progress.isascii() and progress.isdecimal() and len(progress) < 9):
        raise UsageError(f"report: --progress {progress}: a number from 0 to 100 is needed")
    message = values.get("--msg") or ""
    if not message and "--msg-from" in values:
        message = pick(_standard_input(), values["--msg-from"])
    wanted = report.Report(
        state,
        values.get("--id", ""),
        values.get("--kind") or None,
        None if progress is None else int(progress),
        values.get("--app") or None,
        text.clean(values.get("--title", "")) or None,
        text.clean(message) or None,
    )
    try:
        report.encode(wanted)
    except ValueError as error:
        raise UsageError(f"report: --{error} {values.get(f'--{error}', '')}: {_NEEDED[str(error)]}") from None
    return wanted


_NEEDED = {
    "kind": f"it is one of {', '.join(report.KINDS)}",
    "id": "names of 1 to 32 of A-Za-z0-9_.+- are needed, joined by /, at most 8 of them",
    "app": "1 to 32 of A-Za-z0-9_.+- are needed",
    "progress": "a number from 0 to 100 is needed",
}


def pick(data: bytes, names: str) -> str:
    """The texts in the JSON object `data` that `names` lead to, joined by `: `; empty where there are none.

    Args:
        data: untrusted, and perhaps cut off.
        names: joined by commas; each a path of keys and places in lists, joined by dots.
    """
    import json

    try:
        whole = json.loads(data)
    except (ValueError, RecursionError):
        return ""
    found = []
    for name in names.split(","):
        value = whole
        for key in name.strip().split("."):
            if isinstance(value, dict):
                value = value.get(key)
            elif isinstance(value, list) and key.isascii() and key.isdecimal() and len(key) < 9:
                value = value[int(key)] if int(key) < len(value) else None
            else:
                value = None
        if isinstance(value, str) and value.strip():
            found.append(value.strip())
    return ": ".join(found)


def _standard_input() -> bytes:
    """What comes on standard input to its end; empty for a terminal, where somebody would have to type it."""
    data = b""
    try:
        if os.isatty(0):
            return b""
        waiter = select.poll()
        waiter.register(0, select.POLLIN)
        deadline = time.monotonic() + INPUT_WAIT
        while len(data) < LONGEST_INPUT and waiter.poll(max(0.0, deadline - time.monotonic()) * 1000):
            piece = os.read(0, 1 << 18)
            if not piece:
                break
            data += piece
    except OSError:
        pass  # closed by the caller
    return data


def send(sequence: bytes) -> bool:
    """Write `sequence` to the controlling terminal, else the caller's; whether all of it was taken."""
    # A hook may run in the background of its terminal: `stty tostop` must not stop it.
    signals.ignore((signal.SIGTTOU,))
    fd: int | None
    try:
        fd = os.open("/dev/tty", os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        fd = ancestors.open_terminal()
    if fd is None:
        return False
    deadline = time.monotonic() + PATIENCE
    left = sequence
    try:
        while left:
            try:
                left = left[os.write(fd, left) :]
            except BlockingIOError:
                limit = deadline if left is sequence else deadline + PATIENCE
                waiter = select.poll()
                waiter.register(fd, select.POLLOUT)
                if not waiter.poll(max(0.0, limit - time.monotonic()) * 1000):
                    return False
    except OSError:
        return False
    finally:
        os.close(fd)
    return True
