"""What is written where throughput is measured: plain text, what an agent draws, strings without end."""

from __future__ import annotations

import random

WORDS = (  # noqa: SIM905 - a text, to be read as such
    "the agent reads files and writes code while tests run in parallel then waits for an answer before it "
    "continues with the next step of its plan and reports what changed in which module and why"
).split()


def plain(size):
    """Lines of a build's output or a log."""
    rng = random.Random(1)
    lines = []
    for _ in range(2000):
        line = " ".join(rng.choice(WORDS) for _ in range(rng.randrange(4, 18)))
        lines.append(line.encode() + b"\r\n")
    return repeat(b"".join(lines), size)


def agent(size):
    """Frames of a full-screen agent: synchronized updates, truecolor, cursor moves, box drawing."""
    rng = random.Random(2)
    frames = []
    for number in range(300):
        out = ["\x1b[?2026h\x1b[?25l", f"\x1b[{rng.randrange(1, 30)};1H"]
        if number % 5 == 0:
            out.append(f"\x1b]0;⠋ working on step {number}\a")
        out.append("\x1b[38;2;215;119;87m╭" + "─" * 78 + "╮\x1b[39m\x1b[K\r\n")
        for _ in range(rng.randrange(3, 14)):
            r, g, b = (rng.randrange(256) for _ in range(3))
            text = " ".join(rng.choice(WORDS) for _ in range(rng.randrange(2, 9)))
            out.append(
                f"\x1b[38;2;215;119;87m│\x1b[39m \x1b[1m\x1b[38;2;{r};{g};{b}m{text}\x1b[22m\x1b[39m"
                f"\x1b[{rng.randrange(2, 79)}G\x1b[48;2;20;20;30m{text[:12]}\x1b[49m\x1b[K\x1b[80G│\r\n"
            )
        out.append("╰" + "─" * 78 + "╯\x1b[2A\x1b[3G\x1b[?25h\x1b[?2026l")
        frames.append("".join(out).encode())
    return repeat(b"".join(frames), size)


def osc(size):
    """Hyperlinks and window titles, hardly any text between: the worst of what programs do write."""
    rng = random.Random(3)
    parts = []
    for number in range(2000):
        name = "-".join(rng.choice(WORDS) for _ in range(3))
        parts.append(f"\x1b]8;;file:///home/user/{name}\x1b\\{name}\x1b]8;;\x1b\\ ")
        if number % 2:
            parts.append(f"\x1b]0;{rng.choice('⠋⠙⠹⠸')} {name}\a")
        if number % 10 == 9:
            parts.append("\r\n")
    return repeat("".join(parts).encode(), size)


def repeat(block, size):
    """`block` over and over, about `size` bytes of whole blocks."""
    return block * max(1, size // len(block))


STREAMS = {"plain text": plain, "agent-like": agent, "dense OSC": osc}
