"""Notifications a program asks the terminal for: OSC 9, 777 and 99, read; and ConEmu's progress.

What lives here: the syntax of the three, chunks put together, bounds. It must not know what a notice means
for a state. Texts are returned as they were sent: untrusted.
"""

from __future__ import annotations

TEXT_LIMIT = 2048
"""Characters kept of a title or body: as much as a status report may carry."""

OPEN_LIMIT = 16
"""Notifications in several parts (OSC 99) that may be open at once; the oldest is forgotten."""

ID_LIMIT = 128
"""Bytes of an OSC 99 identifier; a longer one makes no notice."""

_ID = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_+."


class Notice:
    """One complete notification: `title` and `body`, either may be empty."""

    __slots__ = ("body", "source", "title")

    def __init__(self, source: str, title: str, body: str) -> None:
        self.source = source
        self.title = title
        self.body = body

    @property
    def text(self) -> str:
        """Both on one line."""
        return f"{self.title}: {self.body}" if self.title and self.body else self.title or self.body


def osc9(body: bytes) -> Notice | None:
    """Read an OSC 9, taken as iTerm2's; None for an empty one. See `is_conemu` for the other reading."""
    text = _decode(body)
    return Notice("osc9", "", text) if text.strip() else None


def is_conemu(body: bytes) -> bool:
    """Whether an OSC 9 reads as one of ConEmu's commands: 1 to 12, alone or before a semicolon."""
    number = body.partition(b";")[0]
    return number in (b"1", b"2", b"3", b"4", b"5", b"6", b"7", b"8", b"9", b"10", b"11", b"12")


def progress(body: bytes) -> tuple[int | None] | None:
    """Read ConEmu's progress, `4;STATE;PERCENT`: a tuple of the percentage to show or None for no more.

    None if `body` is not that command. Indeterminate progress has no percentage to show.
    """
    fields = body.split(b";")
    if fields[0] != b"4" or len(fields) < 2 or fields[1] not in (b"0", b"1", b"2", b"3", b"4"):
        return None
    if fields[1] in (b"0", b"3"):
        return (None,)
    percent = fields[2] if len(fields) > 2 else b""
    if not percent.isdigit() or len(percent) > 9:
        return (None,)
    return (min(int(percent), 100),)


def osc777(body: bytes) -> Notice | None:
    """Read an OSC 777: `notify;TITLE;BODY`; None for anything else."""
    fields = body.split(b";", 2)
    if fields[0] != b"notify" or len(fields) < 2:
        return None
    title, text = _decode(fields[1]), _decode(fields[2]) if len(fields) > 2 else ""
    return Notice("osc777", title, text) if title.strip() or text.strip() else None


class Kitty:
    """OSC 99, which may come in parts."""

    __slots__ = ("_open",)

    def __init__(self) -> None:
        self._open: dict[bytes, list[str]] = {}

    def feed(self, body: bytes) -> Notice | bytes | None:
        """Read one part.

        Returns:
            The notice it completes, the identifier if it asks what the terminal supports, or None.
        """
        metadata, semicolon, payload = body.partition(b";")
        if not semicolon:
            return None
        fields = {}
        for pair in metadata.split(b":"):
            key, equals, value = pair.partition(b"=")
            if equals:
                fields[key.strip()] = value.strip()
        ident = fields.get(b"i", b"")
        if len(ident) > ID_LIMIT or ident.translate(None, _ID):
            return None
        part = fields.get(b"p", b"title")
        if part == b"?":
            return ident
        if part in (b"close", b"alive"):
            return None
        texts = self._open.pop(ident, None) or ["", ""]
        if part in (b"title", b"body"):
            index = 0 if part == b"title" else 1
            texts[index] = (texts[index] + _payload(payload, fields.get(b"e")))[:TEXT_LIMIT]
        if fields.get(b"d") == b"0":
            while len(self._open) >= OPEN_LIMIT:
                del self._open[next(iter(self._open))]
            self._open[ident] = texts
            return None
        if not texts[0].strip() and not texts[1].strip():
            return None
        return Notice("osc99", texts[0], texts[1])


def kitty_support(ident: bytes, terminator: bytes) -> bytes:
    """The answer of a terminal that shows titles and bodies of OSC 99."""
    return b"\x1b]99;i=%s:p=?;o=always,unfocused,invisible:u=0,1,2:p=title,body,?%s" % (ident, terminator)


def kitty_answer(body: bytes) -> bytes | None:
    """Read the answer of a terminal that knows OSC 99 (what follows `99;`).

    Returns:
        The identifier of the query it answers, b"" where it names none; None if it is no answer.
    """
    ident, answers = b"", False
    for pair in body.partition(b";")[0].split(b":"):
        key, _, value = pair.partition(b"=")
        if key.strip() == b"i":
            ident = value.strip()
        elif key.strip() == b"p":
            answers = answers or value.strip() == b"?"
    return ident if answers else None


def _payload(payload: bytes, encoding: bytes | None) -> str:
    if encoding != b"1":
        return _decode(payload)
    from binascii import Error, a2b_base64

    try:
        return _decode(a2b_base64(payload + b"=" * (-len(payload) % 4)))
    except Error:
        return ""


def _decode(data: bytes) -> str:
    return data[: 4 * TEXT_LIMIT].decode("utf-8", "replace")[:TEXT_LIMIT]
