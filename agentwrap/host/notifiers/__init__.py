"""Notification channels, and the helper process that delivers through them.

Nothing here runs in the process that copies bytes: the session leader starts `python -m
agentwrap.host.notifiers` and talks to it over pipes (`helper` has the protocol). Policy (when, what, how
often) is `core.attention`'s; here it is only said where a notification goes and whether it arrived.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

NAMES = ("desktop", "terminal", "command", "bell")


def is_remote(environ: Mapping[str, str]) -> bool:
    """Whether the user sits at the other end of an ssh connection, as its environment says."""
    return bool(environ.get("SSH_CONNECTION") or environ.get("SSH_TTY"))


def has_desktop(environ: Mapping[str, str], platform: str) -> bool:
    """Whether there may be a desktop to notify on; asked of nobody, so a bus may still be dead or hang."""
    if platform == "darwin":
        return True
    if not platform.startswith("linux"):
        return False
    if environ.get("DBUS_SESSION_BUS_ADDRESS"):
        return True
    runtime = environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}"
    return os.path.exists(os.path.join(runtime, "bus"))


def resolve(channels: Iterable[str], environ: Mapping[str, str], platform: str) -> list[str]:
    """Say which channels to try, in order.

    `auto` stands for the desktop, the terminal, the bell; over ssh for the terminal first, since a desktop
    there is somebody else's, or one the user does not sit at. Doubles are dropped, and so is what is no
    channel; with `none` there are none.

    Args:
        channels: names as configured, `auto` and `none` among them.
        environ: the environment agentwrap was started in.
        platform: as `sys.platform`.
    """
    wanted = list(channels)
    if "none" in wanted:
        return []
    out: list[str] = []
    for name in wanted:
        if name != "auto":
            names = [name] if name in NAMES else []
        elif is_remote(environ) or not (platform.startswith("linux") or platform == "darwin"):
            names = ["terminal", "desktop", "bell"]
        else:
            names = ["desktop", "terminal", "bell"]
        out += [one for one in names if one not in out]
    return out
