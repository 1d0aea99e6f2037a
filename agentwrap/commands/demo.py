"""`agentwrap demo`: a scripted agent, wrapped, that goes through every state in about 20 seconds.

The agent is `play`, an ordinary program that reports with OSC 7501 as real agents do; what it prints about
agentwrap it reads from the state file, as any script could. It needs no agent, no display and no keyboard.
"""

from __future__ import annotations

import json
import os
import select
import sys
import termios
import time
import tty

from agentwrap.core import report

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agentwrap.options import Options

PLAY = "from agentwrap.commands.demo import play; raise SystemExit(play())"

STEPS: tuple[tuple[str, str | None, str | None, float, str], ...] = (
    # state, kind, message, seconds, what the user sees explained
    ("idle", None, None, 1.5, "The agent has started and waits for a prompt."),
    ("working", None, "reading the code", 2.0, "It works on a turn. Nothing for you to do."),
    (
        "blocked",
        "permission",
        "approve Bash: rm -r build",
        3.0,
        "It needs a permission. After half a second you are notified, unless you look here.",
    ),
    ("working", None, "running rm -r build", 1.5, "Somebody answered: the notification is withdrawn."),
    ("blocked", "question", "Which colour? (Red · Blue)", 2.5, "It has a question for you."),
    ("working", None, "painting", 1.5, "Answered, it goes on."),
    ("error", None, "API Error: 529 overloaded", 2.5, "Something failed. That is news as well."),
    ("working", None, "trying again", 1.5, "It tries again."),
    ("done", None, "All 14 tests pass.", 3.0, "The turn is finished; you are told once."),
)

COLOURS = {"blocked": "33", "error": "31", "done": "32", "working": "36"}


def demo(options: Options, words: Sequence[str] = ()) -> int:
    """Wrap the scripted agent in this terminal, or, where there is none, in one made for it.

    Args:
        options: as for any command.
        words: how they were spelled.

    Returns:
        The exit code.
    """
    if os.isatty(0) and os.isatty(1):
        from agentwrap.commands.run import wrap

        options.called = "demo"
        return wrap(options, agent())
    return in_terminal([sys.executable, "-m", "agentwrap", *words, "demo"])


def agent() -> list[str]:
    """The command line of the scripted agent."""
    return [sys.executable, "-c", PLAY]


def in_terminal(command: list[str]) -> int:
    """Run `command` on a terminal made for it and show its output; for pipes and build logs.

    ptyprocess serves here, where nothing has to be fast or stoppable.
    """
    from ptyprocess import PtyProcess

    process = PtyProcess.spawn(command, dimensions=(24, 80))
    while True:
        try:
            data = process.read()
        except EOFError:
            break
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    status: int = process.wait()
    return status


# ---- the agent itself ----


def encode(state: str, kind: str | None = None, message: str | None = None) -> bytes:
    """One status report of the scripted agent."""
    import base64

    pairs = [f"state={state}", "app=demo"]
    if kind:
        pairs.append(f"kind={kind}")
    if message:
        pairs.append(f"msg={base64.b64encode(message.encode()).decode()}")
    return f"\x1b]{report.NUMBER};{':'.join(pairs)}\x1b\\".encode()


def play(pause: Callable[[float], None] = time.sleep) -> int:
    """Be the agent: ask whether status is understood, then go through the steps.

    Returns:
        The exit code: 0, or 1 where nobody answered the question, as without agentwrap.
    """
    out = sys.stdout
    print("\x1b[1magentwrap demo\x1b[m: a scripted agent, wrapped. About 20 seconds, no keys needed.\n")
    out.flush()
    understood = probe()
    if not understood:
        print("This terminal does not understand status reports: the agent is not wrapped.")
        return 1
    print("The agent asked `does this terminal understand status?` and agentwrap answered yes.\n")
    out.flush()
    os.write(1, b"\x1b[?2004h\x1b[?1004h")  # as real agents do; agentwrap undoes what they leave on
    for state, kind, message, seconds, explained in STEPS:
        os.write(1, encode(state, kind, message))
        pause(0.3)
        colour = COLOURS.get(state, "0")
        print(f"\x1b[1;{colour}m{shown()}\x1b[m\n    {explained}")
        out.flush()
        pause(seconds - 0.3)
    print("\nThe agent ends without tidying up: bracketed paste and focus reports are still on.")
    print("agentwrap undoes that. Now try it with yours:")
    print("    agentwrap claude        agentwrap codex        agentwrap make test")
    out.flush()
    return 0


def probe(patience: float = 1.0) -> bool:
    """Ask for support as an agent does, with a device attributes request behind it as the fence."""
    fd = sys.stdin.fileno()
    before = termios.tcgetattr(fd)
    tty.setraw(fd, termios.TCSANOW)
    try:
        os.write(1, f"\x1b]{report.NUMBER};?\x07\x1b[c".encode())
        wanted = f"\x1b]{report.NUMBER};?".encode()
        heard = b""
        end = time.monotonic() + patience
        while wanted not in heard and time.monotonic() < end:
            ready, _, _ = select.select([fd], [], [], end - time.monotonic())
            if ready:
                heard += os.read(fd, 1024)
        # the terminal's own reply to the fence must not reach the shell as typed text
        end = time.monotonic() + 0.2
        while b"\x1b[?" not in heard and time.monotonic() < end:
            ready, _, _ = select.select([fd], [], [], end - time.monotonic())
            if ready:
                heard += os.read(fd, 1024)
    finally:
        termios.tcsetattr(fd, termios.TCSANOW, before)
    return wanted in heard


def shown() -> str:
    """What the state file says of this session, as a script would read it."""
    try:
        with open(os.environ["AGENTWRAP_STATE_FILE"], encoding="utf-8") as file:
            session = json.load(file)
    except (OSError, KeyError, ValueError):
        return "no state file"
    return " ".join(str(session[key]) for key in ("state", "kind", "message") if session.get(key))
