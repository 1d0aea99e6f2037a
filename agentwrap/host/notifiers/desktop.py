"""The desktop channel: which way to the desktop there is on this system."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agentwrap.host.notifiers.notice import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from agentwrap.host.notifiers.notice import Channel, Notice


class Unavailable:
    """No desktop that anything is known about."""

    def __init__(self, reason: str) -> None:
        self._outcome = Outcome(ok=False, reason=reason)

    async def show(self, notice: Notice) -> Outcome:
        """Fail with the reason."""
        return self._outcome

    async def update(self, notice: Notice) -> Outcome:
        """Fail with the reason."""
        return self._outcome

    async def withdraw(self, notice: Notice) -> Outcome:
        """Fail with the reason."""
        return self._outcome

    async def close(self) -> None:
        """Nothing is held."""

    async def check(self) -> Outcome:
        """Say why there is none."""
        return self._outcome


def make(send: Callable[[dict[str, Any]], None], environ: Mapping[str, str], platform: str) -> Channel:
    """Make the desktop channel of a platform; nothing is connected to or looked for yet.

    Args:
        send: takes one message for the session leader (clicks).
        environ: the environment agentwrap was started in.
        platform: as `sys.platform`.
    """
    if platform.startswith("linux"):
        from agentwrap.host.notifiers.dbus import DBus

        return DBus(send, environ)
    if platform == "darwin":
        from agentwrap.host.notifiers.macos import MacOS

        return MacOS(send, environ)
    return Unavailable(f"no desktop notifications are known on {platform}")
