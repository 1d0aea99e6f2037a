"""What Ctrl-C does to a verb: it ends as programs do that know nothing of it, so a script's loop ends too."""

from __future__ import annotations

from agentwrap.host import signals
from agentwrap.host.signals import signal


def hear() -> None:
    """Have Ctrl-C raise KeyboardInterrupt, so that a verb leaves the screen as it was."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def die() -> int:
    """Die by SIGINT; returns an exit code only if that failed."""
    return signals.die_by(signal.SIGINT)
