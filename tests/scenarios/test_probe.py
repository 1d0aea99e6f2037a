"""The one question agents ask is answered once, in time, in their own terminator, whatever the terminal says."""

from __future__ import annotations

import sys

import pytest

from tests.lab.outer import AGENTWRAP, Outer

ASK = r"""
import os, sys, tty, termios
tty.setraw(0, termios.TCSANOW)
os.write(1, b"\x1b]7501;?" + bytes.fromhex(sys.argv[1]) + b"\x1b[casked")
heard = b""
while not heard.endswith(b"q"):
    heard += os.read(0, 1000)
os.write(1, b"heard " + heard.hex().encode() + b".")
"""


def heard(outer: Outer) -> bytes:
    start = outer.expect(b"heard ")
    end = outer.expect(b".", start=start)
    return bytes.fromhex(outer.output[start : end - 1].decode())


@pytest.mark.parametrize("terminator", [b"\x07", b"\x1b\\"])
@pytest.mark.parametrize(
    "terminal",
    [b"", b"\x1b]7501;?\x1b\\", b"\x1b]7501;?\x07", b"\x1b]7501;?:states=idle,done:kinds=auth\x1b\\"],
    ids=["silent", "st", "bel", "lists"],
)
@pytest.mark.parametrize("late", [False, True])
def test_exactly_one_reply_before_the_terminals_attributes(terminator, terminal, late, environ):
    with Outer([*AGENTWRAP, sys.executable, "-S", "-c", ASK, terminator.hex()], environ=environ) as outer:
        outer.expect(b"\x1b]7501;?" + terminator + b"\x1b[casked")  # passed on unchanged
        attributes = b"\x1b[?62;22c"
        outer.send(attributes + terminal if late else terminal + attributes)
        outer.send(b"q")
        assert heard(outer) == b"\x1b]7501;?" + terminator + attributes + b"q"
        assert outer.wait() == 0


def test_the_terminals_reply_byte_by_byte_is_taken_out_too(environ):
    with Outer([*AGENTWRAP, sys.executable, "-S", "-c", ASK, "07"], environ=environ) as outer:
        outer.expect(b"asked")
        for byte in b"\x1b]7501;?\x1b\\":
            outer.send(bytes((byte,)))
        outer.send(b"q")
        assert heard(outer) == b"\x1b]7501;?\x07q"


def test_what_is_pasted_is_never_taken_out(environ):
    paste = b"\x1b[200~a \x1b]7501;?\x07 b\x1b[201~"
    with Outer([*AGENTWRAP, sys.executable, "-S", "-c", ASK, "07"], environ=environ) as outer:
        outer.expect(b"asked")
        outer.send(paste + b"q")
        assert heard(outer) == b"\x1b]7501;?\x07" + paste + b"q"


def test_a_lone_escape_is_passed_on_although_a_reply_is_awaited(environ):
    code = ASK.replace('heard.endswith(b"q")', 'heard.endswith(b"\\x1b")')
    with Outer([*AGENTWRAP, sys.executable, "-S", "-c", code, "07"], environ=environ) as outer:
        outer.expect(b"asked")
        outer.send(b"\x1b")
        assert heard(outer) == b"\x1b]7501;?\x07\x1b"
