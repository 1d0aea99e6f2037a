"""The Program Status Protocol's report: the body of one OSC 7501, read or refused.

What lives here: the number, the syntax of a body, the limits. It must not know what a record is, how an OSC
is framed, or what a state means to anyone. A report is taken whole or not at all; a refusal is a value with a
reason. Texts are returned as they were sent: untrusted.
"""

from __future__ import annotations

NUMBER = 7501

SEQUENCE_LIMIT = 4096  # bytes from ESC ] through the terminator, C0 dropped
KEY_LIMIT = 16
ID_LIMIT = 128
ID_SEGMENTS = 8
SEGMENT_LIMIT = 32
APP_LIMIT = 32
MSG_ENCODED_LIMIT = 2732
MSG_LIMIT = 2048
TITLE_ENCODED_LIMIT = 256
TITLE_LIMIT = 192

STATES = ("idle", "working", "done", "blocked", "error")
CLEAR = "clear"
KINDS = ("permission", "question", "auth")

_LOWER = b"abcdefghijklmnopqrstuvwxyz"
_DIGITS = b"0123456789"
_NAME = _LOWER + _LOWER.upper() + _DIGITS + b"_.+-"
_VALUE = _NAME + b",/="
_BASE64 = _LOWER.upper() + _LOWER + _DIGITS + b"+/"  # in the order of their values
_BLANKS = b" \t"


BY = "by=command"
"""A pair that `encode` puts last, and that every terminal ignores: the process that writes the report speaks
for whoever started it, and ends at once."""


class Report:
    """One well-formed report. `id` is "" for the root; absent fields are None; `state` may be "clear"."""

    __slots__ = ("app", "id", "kind", "msg", "progress", "state", "title")

    def __init__(
        self,
        state: str,
        id: str = "",  # noqa: A002 - the protocol's own name
        kind: str | None = None,
        progress: int | None = None,
        app: str | None = None,
        title: str | None = None,
        msg: str | None = None,
    ) -> None:
        self.state = state
        self.id = id
        self.kind = kind
        self.progress = progress
        self.app = app
        self.title = title
        self.msg = msg

    def __repr__(self) -> str:
        return f"Report({', '.join(f'{name}={getattr(self, name)!r}' for name in self.__slots__)})"


class Query:
    """The program asks whether the protocol is understood."""

    __slots__ = ()


class Ignored:
    """A body that changes nothing, and why."""

    __slots__ = ("reason",)

    def __init__(self, reason: str) -> None:
        self.reason = reason


QUERY = b"\x1b]7501;?\x1b\\"
"""Asks a terminal whether it understands reports."""


def reply(terminator: bytes) -> bytes:
    """Return the answer to a query, ended as the query was."""
    return b"\x1b]7501;?" + terminator


def encode(report: Report) -> bytes:
    """Return the sequence that tells a terminal of `report`.

    It says that it speaks for somebody else, see `BY`. Texts must be free of control characters; what is too
    long is cut after a whole character. Fields that are not read with the state are left out.

    Raises:
        ValueError: a state, kind, id, app or progress that no terminal would accept; says which.
    """
    pairs = [f"state={report.state}"]
    if report.state not in (*STATES, CLEAR):
        raise ValueError("state")
    if report.id:
        if not _is_id(report.id.encode()):
            raise ValueError("id")
        pairs.append(f"id={report.id}")
    if report.kind is not None and report.kind not in KINDS:
        raise ValueError("kind")
    if report.kind is not None and report.state == "blocked":
        pairs.append(f"kind={report.kind}")
    if report.progress is not None and not 0 <= report.progress <= 100:
        raise ValueError("progress")
    if report.progress is not None and report.state in ("working", "blocked"):
        pairs.append(f"progress={report.progress}")
    if report.app:
        if len(report.app) > APP_LIMIT or report.app.encode().translate(None, _NAME):
            raise ValueError("app")
        pairs.append(f"app={report.app}")
    for key, text, limit in (("title", report.title, TITLE_LIMIT), ("msg", report.msg, MSG_LIMIT)):
        if text and report.state != CLEAR:
            from binascii import b2a_base64

            data = text.encode()[:limit].decode("utf-8", "ignore").encode()
            pairs.append(f"{key}={b2a_base64(data, newline=False).decode('ascii')}")
    pairs.append(BY)
    return f"\x1b]{NUMBER};{':'.join(pairs)}\x1b\\".encode("ascii")


def parse(body: bytes, terminator: bytes = b"\x1b\\") -> Report | Query | Ignored:
    """Read what stands between `7501;` and the terminator, C0 already dropped."""
    if body == b"?":
        return Query()
    if len(b"\x1b]7501;") + len(body) + len(terminator) > SEQUENCE_LIMIT:
        return Ignored("sequence too long")
    state = kind = progress = app = title = msg = None
    ident = ""
    for pair in body.split(b":"):
        raw_key, equals, raw_value = pair.partition(b"=")
        if not equals:
            continue
        key = raw_key.strip(_BLANKS)
        value = raw_value.strip(_BLANKS)
        if len(key) > KEY_LIMIT:
            return Ignored("key too long")
        if key == b"id":
            # Also where it is no well-formed pair: a bad id never falls back to the root.
            if not _is_id(value):
                return Ignored("bad id")
            ident = value.decode("ascii")
            continue
        if key == b"app" and len(value) > APP_LIMIT:
            return Ignored("app too long")
        if (key == b"msg" and len(value) > MSG_ENCODED_LIMIT) or (
            key == b"title" and len(value) > TITLE_ENCODED_LIMIT
        ):
            return Ignored("text too long")
        if value.translate(None, _VALUE):
            continue
        if key == b"state":
            state = value.decode("ascii")
        elif key == b"kind":
            kind = value.decode("ascii")
        elif key == b"progress":
            progress = _percent(value)
        elif key == b"app":
            app = None if value.translate(None, _NAME) else value.decode("ascii") or None
        elif key == b"title":
            title = _text(value, TITLE_LIMIT)
            if title is None:
                return Ignored("bad title")
        elif key == b"msg":
            msg = _text(value, MSG_LIMIT)
            if msg is None:
                return Ignored("bad msg")
    if state == CLEAR:
        return Report(CLEAR, ident)
    if state not in STATES:
        return Ignored("no known state")
    return Report(
        state,
        ident,
        kind if state == "blocked" and kind in KINDS else None,
        progress if state in ("working", "blocked") else None,
        app,
        title or None,
        msg or None,
    )


def _is_id(value: bytes) -> bool:
    if len(value) > ID_LIMIT:
        return False
    segments = value.split(b"/")
    if len(segments) > ID_SEGMENTS:
        return False
    for segment in segments:
        if not segment or len(segment) > SEGMENT_LIMIT or segment.translate(None, _NAME):
            return False
    return True


def _percent(value: bytes) -> int | None:
    digits = value.lstrip(b"0")
    if not value or value.translate(None, _DIGITS) or len(digits) > 3:
        return None
    number = int(digits or b"0")
    return number if number <= 100 else None


def _text(value: bytes, limit: int) -> str | None:
    """Decode a title or message; None for anything but at most `limit` bytes of printable UTF-8."""
    from binascii import a2b_base64

    data = value.rstrip(b"=")
    needed = -len(data) % 4
    if needed == 3 or len(value) - len(data) not in (0, needed) or data.translate(None, _BASE64):
        return None
    # The bits of the last digit that no byte takes must be zero: one text, one encoding.
    if needed and _BASE64.index(data[-1]) & (0x3 if needed == 1 else 0xF):
        return None
    decoded = a2b_base64(data + b"=" * needed)
    if len(decoded) > limit:
        return None
    try:
        text = decoded.decode("utf-8")
    except UnicodeDecodeError:
        return None
    for char in text:
        if char < " " or "\x7f" <= char < "\xa0":
            return None
    return text
