"""Memory that the pump and the session leader share: what undoes the terminal if the pump is gone.

The pump stores the bytes each time they change, in the slot not in use, and then flips one byte, so that a
pump killed at any moment leaves one whole version. What the command wrote may be understood but not yet be on
the terminal, so until it is, the bytes cover the terminal before and after. Knows nothing of what they mean.
"""

from __future__ import annotations

import mmap

SLOT = 8192
"""Bytes of one slot, length included: many times what a ledger of modes can need to undo."""

MOST_COMING = 8
"""Versions that may be on their way to a slow terminal; beyond it, the bytes that undo everything serve."""

_ARMED, _SLOT, _START = 0, 1, 2


class UndoMemory:
    """Anonymous shared memory, made before the fork.

    Attributes:
        unsettled: something stored is not on the terminal yet.
    """

    __slots__ = ("_coming", "_everything", "_memory", "unsettled")

    def __init__(self, everything: bytes = b"") -> None:
        self._memory = mmap.mmap(-1, _START + 2 * SLOT)
        self._coming: list[bytes] = [b""]
        self._everything = everything
        self.unsettled = False

    def expect(self, undo: bytes) -> None:
        """What is handed to the terminal next leaves it so that `undo` undoes it."""
        if undo == self._coming[-1]:
            return
        self.unsettled = True
        if len(self._coming) <= MOST_COMING:
            self._coming.append(undo)
        else:
            self._coming[-2:] = [self._everything, undo]
        self._store(b"".join(self._coming))

    def settle(self) -> None:
        """All that was handed to the terminal is on it."""
        self.unsettled = False
        del self._coming[:-1]
        self._store(self._coming[0])

    def _store(self, undo: bytes) -> None:
        if len(undo) > SLOT - 2:
            undo = self._everything
        memory = self._memory
        slot = 1 - memory[_SLOT]
        start = _START + slot * SLOT
        memory[start : start + 2 + len(undo)] = len(undo).to_bytes(2, "big") + undo
        memory[_SLOT] = slot

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
