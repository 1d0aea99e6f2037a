"""What Ctrl-C does to a verb: it ends as programs do that know nothing of it, so a script's loop ends too."""

from __future__ import annotations

import signal

from agentwrap.host import signals


def die() -> int:
    """Die by SIGINT; returns an exit code only if that failed."""
    return signals.die_by(signal.SIGINT)
