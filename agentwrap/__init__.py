"""agentwrap: prefix a coding agent with it and know when it needs you."""

import sys

__version__ = "0.1.0"

if sys.argv and sys.argv[0].rpartition("/")[2] in ("agentwrap", "-m"):
    # The first of our lines that runs when the program is started by its name or as a module. A Ctrl-C while
    # it starts is to end it as it ends any program, not to show in which import that was.
    from _signal import (  # type: ignore[import-not-found] # the C module: see host.signals
        SIG_DFL,
        SIGINT,
        default_int_handler,
        getsignal,
        signal,
    )

    if getsignal(SIGINT) is default_int_handler:
        signal(SIGINT, SIG_DFL)
