"""An independent judge of what a byte stream leaves on in a terminal. Shares no code with the product."""

from __future__ import annotations

import re
from pathlib import Path

TOKEN = re.compile(
    rb"\x18|\x1a"
    rb"|\x1b\](?P<osc>[^\x07\x1b\x18\x1a]*)(?P<end>\x07|\x1b\\)"
    rb"|\x1b[PX^_][^\x1b\x18\x1a]*\x1b\\"
    rb"|\x1b\[(?P<prefix>[<=>?]?)(?P<params>[0-9;:]*)(?P<inter>[ -/]*)(?P<final>[@-~])"
    rb"|\x1b(?P<esc>[ -/]*[0-~])"
)

ON_IS_LEFT = {
    *(1, 5, 6, 47, 66, 1000, 1002, 1003, 1004, 1005, 1006, 1015, 1016, 1047, 1049),
    *(2004, 2026, 2027, 2031, 2048, 9001),
}
OFF_IS_LEFT = {7, 25, 1007}


def left_on(stream: bytes) -> list[str]:
    """Name what is not at its default after `stream`, for a terminal that was clean before."""
    on: set[int] = set()
    off: set[int] = set()
    keyboard = {False: 0, True: 0}
    other: dict[str, str] = {}
    alternate = False
    for found in TOKEN.finditer(stream):
        final, prefix = found["final"], found["prefix"]
        numbers = [int(n) for n in re.findall(rb"\d+", found["params"] or b"")]
        if final in (b"h", b"l") and prefix == b"?":
            for number in numbers:
                if number in ON_IS_LEFT:
                    (on.add if final == b"h" else on.discard)(number)
                if number in OFF_IS_LEFT:
                    (off.discard if final == b"h" else off.add)(number)
                if number in (47, 1047, 1049):
                    alternate = final == b"h"
        elif final == b"u" and prefix == b">":
            keyboard[alternate] += 1
        elif final == b"u" and prefix == b"<":
            keyboard[alternate] = max(0, keyboard[alternate] - (numbers or [1])[0])
        elif final == b"m" and prefix == b">" and numbers[:1] == [4]:
            other["modifyOtherKeys"] = "" if numbers[1:] in ([], [0]) else "on"
        elif final == b"m" and not prefix:
            other["SGR"] = "" if numbers in ([], [0]) else "on"
        elif final == b"q" and found["inter"] == b" ":
            other["cursor style"] = "" if numbers in ([], [0]) else "on"
        elif final == b"r" and not prefix:
            other["scroll region"] = "on" if numbers else ""
        elif found["osc"] is not None:
            number, _, body = found["osc"].partition(b";")
            if number == b"22":
                other["pointer"] = "on" if body else ""
            elif number in (b"10", b"11", b"12") and body != b"?":
                other[f"colour {number.decode()}"] = "on"
            elif number in (b"110", b"111", b"112"):
                other[f"colour {number.decode()[1:]}"] = ""
            elif number == b"9" and body.startswith(b"4;"):
                other["progress"] = "" if body.startswith(b"4;0") else "on"
        elif found["esc"] == b"c":
            on, off, other, alternate = set(), set(), {}, False
            keyboard = {False: 0, True: 0}
    return (
        [f"?{n} on" for n in sorted(on)]
        + [f"?{n} off" for n in sorted(off)]
        + [f"keyboard {'alternate' if k else 'main'} {n}" for k, n in keyboard.items() if n]
        + [name for name, value in other.items() if value]
    )


def processes_of(state_dir: Path) -> list[tuple[int, str]]:
    """Live processes whose environment names this state directory: (pid, command line)."""
    wanted = f"AGENTWRAP_STATE_DIR={state_dir}".encode()
    found = []
    for directory in Path("/proc").iterdir():
        if not directory.name.isdigit():
            continue
        try:
            if wanted not in (directory / "environ").read_bytes().split(b"\0"):
                continue
            if (directory / "stat").read_text().rpartition(")")[2].split()[0] == "Z":
                continue
            found.append((int(directory.name), (directory / "cmdline").read_text().replace("\0", " ")[:120]))
        except OSError:
            continue
    return found


def children_of(pid: int, name: str) -> list[int]:
    """Processes under `pid` with that command name that have not ended."""
    import psutil

    try:
        return [
            each.pid
            for each in psutil.Process(pid).children(recursive=True)
            if each.name() == name and each.status() != "zombie"
        ]
    except psutil.NoSuchProcess:
        return []
