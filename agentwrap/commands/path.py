"""`agentwrap path`: where the state directory is."""

from __future__ import annotations

import os

from agentwrap.host import statefile


def path() -> int:
    """Print the state directory's path, whether it exists or not."""
    print(statefile.directory(os.environ))
    return 0
