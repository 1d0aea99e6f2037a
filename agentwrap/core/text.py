"""Untrusted text made fit to be shown outside the terminal grid.

What lives here: what is taken out, folding and clipping. It must not know where a text comes from or goes.
Escaping for a particular place (markup, a shell, JSON) is that place's business.
"""

from __future__ import annotations

ELLIPSIS = "…"

# Controls, Unicode's format characters (Cf), the line and paragraph separators, the unassigned U+2065 between
# the bidi controls. U+200C and U+200D join letters and emoji, U+E0020 to U+E007F spell flags: they stay.
_REMOVED_RANGES = (
    (0x7F, 0x9F),
    (0xAD, 0xAD),
    (0x600, 0x605),
    (0x61C, 0x61C),
    (0x6DD, 0x6DD),
    (0x70F, 0x70F),
    (0x890, 0x891),
    (0x8E2, 0x8E2),
    (0x180E, 0x180E),
    (0x200B, 0x200B),
    (0x200E, 0x200F),
    (0x2028, 0x202E),
    (0x2060, 0x206F),
    (0xD800, 0xDFFF),
    (0xFEFF, 0xFEFF),
    (0xFFF9, 0xFFFB),
    (0x110BD, 0x110BD),
    (0x110CD, 0x110CD),
    (0x13430, 0x1343F),
    (0x1BCA0, 0x1BCA3),
    (0x1D173, 0x1D17A),
    (0xE0001, 0xE0001),
)

_WHITE = "\t\n\v\f\r"


class _Removed(dict[int, "int | None"]):
    """A table for `str.translate`, filled as characters are met: few ever are."""

    def __missing__(self, code: int) -> int | None:
        found: int | None = code
        if code < 0x20:
            found = 0x20 if chr(code) in _WHITE else None
        else:
            for low, high in _REMOVED_RANGES:
                if low <= code <= high:
                    found = None
                    break
        if found is None or code < 0x20:
            self[code] = found
        return found


_REMOVED = _Removed()


def clean(text: str) -> str:
    """Return `text` without control and format characters; tabs and line breaks become spaces."""
    if text.isascii() and text.isprintable():
        return text
    return text.translate(_REMOVED)


def fold(text: str) -> str:
    """Return `text` cleaned and on one line: runs of white space become one space, none at the ends."""
    return " ".join(clean(text).split())


def clip(text: str, limit: int) -> str:
    """Return at most `limit` characters of `text`, the last an ellipsis where something was cut off.

    A cut never leaves half of a joined emoji or a letter without its marks where that can be told cheaply.
    """
    if len(text) <= limit:
        return text
    end = limit - 1
    while end > 0 and _joins(text[end]):
        end -= 1
    return text[: max(end, 0)].rstrip("\u200d ") + ELLIPSIS


def _joins(char: str) -> bool:
    """Whether `char` belongs to the one before it: marks, variation selectors, joiners, skin tones, tags."""
    code = ord(char)
    return (
        0x300 <= code <= 0x36F
        or code in (0x200C, 0x200D)
        or 0x20D0 <= code <= 0x20FF
        or 0xFE00 <= code <= 0xFE0F
        or 0x1F3FB <= code <= 0x1F3FF
        or 0xE0020 <= code <= 0xE007F
    )
