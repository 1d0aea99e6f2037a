"""Every case of the protocol's vectors: whole, byte by byte, and in two chunks at each offset."""

from __future__ import annotations

import base64
import json
import pathlib

import pytest

from agentwrap.core import report
from agentwrap.core import scanner as scanner_module
from agentwrap.core.records import Records
from agentwrap.core.scanner import Esc, Osc, Scanner

VECTORS = json.loads((pathlib.Path(__file__).parents[1] / "vectors" / "osc7501.json").read_text("utf-8"))
CASES = VECTORS["cases"]
LONG = 400  # bytes
FLOOD = 5200  # bytes: only cases that fill the table are longer


class Terminal:
    """The smallest reader of the protocol: it applies every token as the protocol says, and nothing else."""

    def __init__(self, finder):
        self.scanner = Scanner()
        self.scanner._finder = finder
        self.records = Records()
        self.replies = b""

    def feed(self, data):
        for token in self.scanner.feed(data):
            if isinstance(token, Esc) and token.code == b"c":
                self.records.reset()
            elif isinstance(token, Osc) and token.number == report.NUMBER:
                read = report.parse(token.body, token.terminator)
                if isinstance(read, report.Query):
                    self.replies += report.reply(token.terminator)
                elif isinstance(read, report.Report):
                    self.records.apply(read)
            elif isinstance(token, Osc) and token.number == 133:
                mark, *options = token.body.split(b";")
                kinds = [each[2:] for each in options if each.startswith(b"k=")]
                if mark == b"A" and kinds in ([], [b"i"]):
                    self.records.prompt()

    def shown(self):
        return {
            ident: {
                "state": each.state,
                "kind": each.kind,
                "progress": each.progress,
                "app": self.records.app_of(ident),
                "title": each.title,
                "msg": each.msg,
            }
            for ident, each in self.records.items()
        }


def play(case, cuts, finder):
    data = base64.b64decode(case["input_b64"])
    exits = {each["at"] for each in case.get("events", ())}
    assert all(each["event"] == "exit" for each in case.get("events", ()))
    terminal = Terminal(finder)
    start = 0
    for end in sorted({*cuts, *exits, len(data)}):
        terminal.feed(data[start:end])
        if end in exits:
            terminal.records.exit()
        start = end
    return terminal


def expected(case):
    return {
        ident: {**record, "title": record["title"] or None, "msg": record["msg"] or None}
        for ident, record in case["expect"]["records"].items()
    }


def check(case, cuts, finder=scanner_module._PLAIN):
    terminal = play(case, cuts, finder)
    assert terminal.shown() == expected(case), cuts
    assert terminal.replies == base64.b64decode(case["expect"]["replies_b64"]), cuts


def test_the_vectors_are_all_here():
    assert len(CASES) == 270


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_case_whole_and_in_its_own_chunks(case):
    for finder in (scanner_module._PLAIN, scanner_module._compiled()):
        check(case, [], finder)
        check(case, case.get("splits", ()), finder)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_case_byte_by_byte(case):
    for finder in (scanner_module._PLAIN, scanner_module._compiled()):
        check(case, range(len(base64.b64decode(case["input_b64"]))), finder)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_case_split_at_each_offset(case):
    data = base64.b64decode(case["input_b64"])
    for cut in range(1, len(data)):
        if len(data) <= LONG:
            check(case, [cut])
        else:
            # Tokens are all that the reader sees of a chunk, and quicker to compare; floods of reports are
            # compared around the cut only.
            reach = len(data) if len(data) <= FLOOD else FLOOD // 10
            before, after = data[max(0, cut - reach) : cut], data[cut : cut + reach]
            scanner = Scanner()
            assert scanner.feed(before) + scanner.feed(after) == Scanner().feed(before + after), cut


@pytest.mark.parametrize(
    "case", [case for case in CASES if "text" in case["expect"]], ids=lambda c: c["name"]
)
def test_text_in_ground_state(case):
    scanner = Scanner()
    text = b""
    for byte in base64.b64decode(case["input_b64"]):
        was_open = scanner.open
        scanner.feed(bytes((byte,)))
        if not was_open and not scanner.open and byte >= 0x20:
            text += bytes((byte,))
    assert text.decode() == case["expect"]["text"]
