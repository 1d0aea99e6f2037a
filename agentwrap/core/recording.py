"""Asciicast v2, written and read back to the byte.

What lives here: the lines of a recording. It must not know files, or what the bytes mean.

The format's strings are Unicode, a program's output is bytes. What is no UTF-8 is written as U+FFFD, which
every player shows; an event of code "b" before it holds the bytes that were there, as `INDEX=HEX` pairs,
INDEX counting characters of the next event's text. Players skip codes they do not know. A character that is
split between two chunks is written with the second.
"""

from __future__ import annotations

from _codecs import utf_8_decode as _utf_8_decode
from _json import encode_basestring as _string

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

VERSION = 2
OUTPUT, INPUT, RESIZE, SIGNAL, EXIT, BYTES = "o", "i", "r", "s", "x", "b"

REPLACEMENT = "\ufffd"

_PLAIN = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_@%+=:,./-"


class Encoder:
    """Writes events. `t` is seconds since the recording began.

    Args:
        columns: width of the terminal.
        rows: its height.
        timestamp: seconds since the epoch.
        command: what is recorded; written as a shell would take it.
        environ: TERM and SHELL, by custom.
        title: the session's name, None if it has none.
        cwd: its directory. With the name it also goes under a key of our own, so that a replay words its
            notifications as the session did.
    """

    __slots__ = ("_header", "_rest")

    def __init__(
        self,
        *,
        columns: int,
        rows: int,
        timestamp: float,
        command: Sequence[str],
        environ: Mapping[str, str],
        title: str | None = None,
        cwd: str | None = None,
    ) -> None:
        own = []
        if cwd is not None:
            own.append(f'"cwd": {_text(cwd)}')
        if title is not None:
            own.append(f'"name": {_text(title)}')
        fields = [
            f'"version": {VERSION}',
            f'"width": {columns}',
            f'"height": {rows}',
            f'"timestamp": {int(timestamp)}',
            f'"command": {_text(" ".join(map(quote, command)))}',
            f'"env": {{{", ".join(f"{_text(key)}: {_text(value)}" for key, value in environ.items())}}}',
        ]
        if title is not None:
            fields.append(f'"title": {_text(title)}')
        if own:
            fields.append(f'"agentwrap": {{{", ".join(own)}}}')
        self._header = f"{{{', '.join(fields)}}}\n".encode()
        self._rest = {OUTPUT: b"", INPUT: b""}

    def header(self) -> bytes:
        """The first line."""
        return self._header

    def output(self, t: float, data: bytes) -> bytes:
        """What the program wrote."""
        return self._event(OUTPUT, data, t, final=False)

    def input(self, t: float, data: bytes) -> bytes:
        """What was typed."""
        return self._event(INPUT, data, t, final=False)

    def resize(self, t: float, columns: int, rows: int) -> bytes:
        """The terminal has another size."""
        return self.flush(t) + b'[%s, "r", "%dx%d"]\n' % (_time(t), columns, rows)

    def signal(self, t: float, number: int) -> bytes:
        """A signal was sent to the program through us: a death by it is no news."""
        return self.flush(t) + b'[%s, "s", %d]\n' % (_time(t), number)

    def exit(self, t: float, wait_status: int) -> bytes:
        """The program has ended, `wait_status` as waitpid gives it."""
        return self.flush(t) + b'[%s, "x", %d]\n' % (_time(t), wait_status)

    def flush(self, t: float) -> bytes:
        """What is left of a character that will not be completed."""
        return self._event(OUTPUT, b"", t, final=True) + self._event(INPUT, b"", t, final=True)

    def _event(self, code: str, data: bytes, t: float, *, final: bool) -> bytes:
        rest = self._rest[code]
        if rest:
            data = rest + data
        if not data:
            return b""
        text, used = _utf_8_decode(data, "surrogateescape", final)
        self._rest[code] = data[used:]
        if not text:
            return b""
        lines = ""
        if not text.isascii():
            text, escaped = _escape(text)
            if escaped:
                lines = f'[{_time(t).decode()}, "{BYTES}", "{escaped}"]\n'
        return f'{lines}[{_time(t).decode()}, "{code}", {_string(text)}]\n'.encode()


def quote(word: str) -> str:
    """Return `word` as a shell takes it for one word. `shlex` would do, but imports `re`."""
    if word and not word.strip(_PLAIN):
        return word
    return "'" + word.replace("'", "'\"'\"'") + "'"


def restore(text: str, escaped: str | None) -> bytes:
    """Return the bytes of an event's text; `escaped` is the "b" event before it, if there was one.

    Raises:
        ValueError: `escaped` does not belong to `text`.
    """
    if escaped:
        chars = list(text)
        for pair in escaped.split(","):
            index, equals, value = pair.partition("=")
            byte = int(value, 16) if equals else -1
            if not index.isdigit() or int(index) >= len(chars) or not 0x80 <= byte <= 0xFF:
                raise ValueError("bytes that do not belong to the event after them")
            chars[int(index)] = chr(0xDC00 + byte)
        text = "".join(chars)
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        # half of a UTF-16 pair, from another program's recording
        return text.encode("utf-8", "replace")


def _escape(text: str) -> tuple[str, str]:
    """Replace the bytes that are no UTF-8, and say which they were."""
    escaped = [
        f"{index}={ord(char) - 0xDC00:x}" for index, char in enumerate(text) if "\udc80" <= char <= "\udcff"
    ]
    if not escaped:
        return text, ""
    return "".join(REPLACEMENT if "\udc80" <= char <= "\udcff" else char for char in text), ",".join(escaped)


def _text(text: str) -> str:
    return str(_string(text.encode("utf-8", "replace").decode("utf-8")))


def _time(t: float) -> bytes:
    return b"%.6f" % max(t, 0.0)
