"""Memory that the pump and the session leader share: what undoes the terminal if the pump is gone.

The pump stores the bytes each time they change, in the slot not in use, and then flips one byte, so that a
pump killed at any moment leaves one whole version. Knows nothing of what the bytes mean.
"""

from __future__ import annotations

import mmap

SLOT = 8192
"""Bytes of one slot, length included. What a ledger of modes can produce is far less; see `store`."""

_ARMED, _SLOT, _START = 0, 1, 2


class UndoMemory:
    """Anonymous shared memory, made before the fork."""

    __slots__ = ("_memory",)

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, _START + 2 * SLOT)

    def store(self, undo: bytes) -> bool:
        """Keep these bytes from now on; False, and the former kept, where they do not fit a slot."""
        if len(undo) > SLOT - 2:
            return False
        memory = self._memory
        slot = 1 - memory[_SLOT]
        start = _START + slot * SLOT
        memory[start : start + 2 + len(undo)] = len(undo).to_bytes(2, "big") + undo
        memory[_SLOT] = slot
        return True

    def arm(self, *, armed: bool) -> None:
        """Say whether the terminal is ours to undo now: raw, and our job in its foreground."""
        self._memory[_ARMED] = armed

    @property
    def armed(self) -> bool:
        """As last said by arm."""
        return bool(self._memory[_ARMED])

    def load(self) -> bytes:
        """The bytes stored last."""
        start = _START + self._memory[_SLOT] * SLOT
        length = int.from_bytes(self._memory[start : start + 2], "big")
        return self._memory[start + 2 : start + 2 + length]
