"""Waiting for descriptors: poll(2) on Linux, select(2) elsewhere (macOS cannot poll terminals).

Knows no descriptor's meaning. A descriptor of which nothing is wanted is left out altogether, since
poll reports a hangup even for an empty mask and would spin.
"""

from __future__ import annotations

import select
import sys

READ = 1
WRITE = 2


class PollPoller:
    """poll(2): the registrations live in the kernel's call, changed only when a mask changes."""

    __slots__ = ("_masks", "_poll")

    def __init__(self) -> None:
        self._poll = select.poll()
        self._masks: dict[int, int] = {}

    def want(self, fd: int, mask: int) -> None:
        """Wait for READ and WRITE of `fd` from now on; 0 leaves it out."""
        if self._masks.get(fd, 0) == mask:
            return
        if mask == 0:
            self._poll.unregister(fd)
            del self._masks[fd]
            return
        events = (select.POLLIN if mask & READ else 0) | (select.POLLOUT if mask & WRITE else 0)
        self._poll.register(fd, events)
        self._masks[fd] = mask

    def wait(self, timeout: float | None) -> list[tuple[int, int]]:
        """(descriptor, READ | WRITE) of those ready, after at most `timeout` seconds (None: for ever).

        A hangup or error counts as ready for all that was wanted: the read or write then tells.
        """
        if timeout is not None:
            # a millisecond more than asked beats waking early and spinning until the deadline
            timeout = int(timeout * 1000) + 1 if timeout > 0 else 0
        ready = self._poll.poll(timeout)
        masks = self._masks
        return [
            (
                fd,
                masks[fd]
                if events & ~(select.POLLIN | select.POLLOUT)
                else (READ if events & select.POLLIN else 0) | (WRITE if events & select.POLLOUT else 0),
            )
            for fd, events in ready
            if fd in masks
        ]


class SelectPoller:
    """select(2), for systems whose poll does not take terminals."""

    __slots__ = ("_masks",)

    def __init__(self) -> None:
        self._masks: dict[int, int] = {}

    def want(self, fd: int, mask: int) -> None:
        """As PollPoller.want."""
        if mask:
            self._masks[fd] = mask
        else:
            self._masks.pop(fd, None)

    def wait(self, timeout: float | None) -> list[tuple[int, int]]:
        """As PollPoller.wait."""
        reading = [fd for fd, mask in self._masks.items() if mask & READ]
        writing = [fd for fd, mask in self._masks.items() if mask & WRITE]
        readable, writable, _ = select.select(reading, writing, (), timeout)
        ready = dict.fromkeys(readable, READ)
        for fd in writable:
            ready[fd] = ready.get(fd, 0) | WRITE
        return list(ready.items())


def make(platform: str = sys.platform) -> PollPoller | SelectPoller:
    """The poller for this system."""
    if platform == "darwin" or not hasattr(select, "poll"):
        return SelectPoller()
    return PollPoller()
