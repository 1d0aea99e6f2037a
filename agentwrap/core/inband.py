"""Notifications in-band: the bytes that make a terminal show one, and which bytes a terminal understands.

What lives here: OSC 99 (kitty's desktop notifications), OSC 777 (rxvt-unicode's), OSC 9 (iTerm2's), the
bell, and tmux's passthrough around them. It must not know when a notification is due or when bytes may be
written. Text is data: whatever it holds, what comes out is complete, well-formed sequences and nothing else.
"""

from __future__ import annotations

from agentwrap.core import text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

OSC_99 = "99"
OSC_777 = "777"
OSC_9 = "9"
ONLY_BELL = "bel"

BELL = b"\a"

URGENCY = {"blocked": 1, "error": 1, "done": 1, "exit": 1}
"""Urgency of OSC 99 by type of notification: 0 low, 1 normal, 2 critical, which breaks through silencing."""

LONGEST_TITLE = 120
"""Characters of a title. Ours are about 40."""

LONGEST_LINE = 300
"""Characters of an OSC 9 or 777 notice: all in all it stays under 1 KiB for any text in Latin script, and
under 2 KiB for any other, which the parsers of these terminals take."""

LONGEST_CHUNK = 2048
"""Bytes of one OSC 99 payload before it is encoded, as kitty's specification says."""

LONGEST_IDENT = 100
"""Characters of an OSC 99 identifier."""

_IDENT = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_+.")
_BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

# What is known of terminals: the beginning of TERM_PROGRAM or TERM, in lower case.
_KNOWN = (
    ("xterm-kitty", OSC_99),
    ("kitty", OSC_99),
    ("ghostty", OSC_777),
    ("xterm-ghostty", OSC_777),
    ("wezterm", OSC_777),
    ("foot", OSC_777),
    ("rxvt-unicode", OSC_777),
    ("iterm", OSC_9),
)

# Variables that a terminal sets and that survive inside tmux, where TERM and TERM_PROGRAM are tmux's own.
_TRACES = (
    ("KITTY_WINDOW_ID", OSC_99),
    ("GHOSTTY_RESOURCES_DIR", OSC_777),
    ("WEZTERM_PANE", OSC_777),
    ("ITERM_SESSION_ID", OSC_9),
)

# Which notices of a program a terminal known by name shows by itself.
_SHOWN = {
    OSC_99: frozenset((9, 99, 777)),  # kitty
    OSC_777: frozenset((9, 777)),
    OSC_9: frozenset((9,)),
    ONLY_BELL: frozenset[int](),
}

# Terminals known by name that answer the query for OSC 99 themselves.
_ANSWERING = ("xterm-kitty", "kitty", "foot")

# Terminals that may end over that query: foot 1.21 does, whose answer is longer than the space it has for it.
_ENDED_BY_ASKING = ("foot",)

# What does not even know where an OSC ends: nothing may be asked there. The beginning of TERM.
_WITHOUT_OSC = ("dumb", "linux", "vt", "cons", "eterm", "sun", "unknown")


def _multiplexed(environ: Mapping[str, str]) -> bool:
    return bool(environ.get("TMUX")) or environ.get("TERM", "").startswith(("tmux", "screen"))


def _by_name(name: str) -> str:
    for beginning, kind in _KNOWN:
        if name.lower().startswith(beginning):
            return kind
    return ""


def name_of(*names: str) -> str:
    """Of several names of one terminal, like TERM and its own answer, the first that says what it shows."""
    return next((name for name in names if _by_name(name)), names[0])


def _known(environ: Mapping[str, str], outer_term: str) -> str:
    """What is known of the terminal without asking it."""
    if _multiplexed(environ) and not environ.get("TMUX"):
        # GNU screen, or a tmux at the other end of an ssh: what is no bell ends there, whatever stands behind
        return ONLY_BELL
    names = [outer_term]
    if not _multiplexed(environ):
        # TERM_PROGRAM first: TERM is often a plain xterm-256color
        names += [environ.get("TERM_PROGRAM", ""), environ.get("TERM", "")]
    names.append(environ.get("LC_TERMINAL", ""))  # iTerm2 sends it along over ssh
    for name in names:
        kind = _by_name(name)
        if kind:
            return kind
    if environ.get("COLORTERM", "").startswith("rxvt"):
        return OSC_777
    if _multiplexed(environ) and not outer_term:
        for variable, kind in _TRACES:
            if environ.get(variable):
                return kind
    return ONLY_BELL


def choose(environ: Mapping[str, str], *, answers_99: bool | None = None, outer_term: str = "") -> str:
    """Say how to notify through a terminal.

    Args:
        environ: TERM, TERM_PROGRAM, LC_TERMINAL, TMUX and the variables terminals set are read.
        answers_99: whether the terminal answered `query()`; None where it was not asked, or cannot answer
            because a multiplexer stands between: then what is known of it counts.
        outer_term: the TERM of the terminal outside tmux, where tmux has told it.

    Returns:
        "99", "777", "9" or "bel".
    """
    if answers_99:
        return OSC_99
    kind = _known(environ, outer_term)
    if kind == OSC_99 and answers_99 is False:
        return OSC_9  # a kitty older than its own protocol
    return kind


def shown_by_terminal(
    environ: Mapping[str, str], *, answers_99: bool | None = None, outer_term: str = ""
) -> frozenset[int]:
    """Say which notices a program writes (OSC 9, 99, 777) this terminal shows by itself.

    None behind a multiplexer, but for a tmux that passes on what is written for that, to a terminal with the
    TERM `outer_term`.
    """
    if _multiplexed(environ) and not outer_term:
        return frozenset()
    shown = _SHOWN[_known(environ, outer_term)]
    if answers_99 is not None:
        shown = shown | {99} if answers_99 else shown - {99}
    rxvt = (outer_term or environ.get("TERM", "")).startswith("rxvt") or environ.get(
        "COLORTERM", ""
    ).startswith("rxvt")
    return shown - {9} if rxvt else shown


def knows_osc(environ: Mapping[str, str]) -> bool:
    """Whether this kind of terminal at least passes over an OSC it does not understand."""
    term = environ.get("TERM", "")
    return bool(term) and not term.startswith(_WITHOUT_OSC)


def may_ask(environ: Mapping[str, str]) -> bool:
    """Whether asking is the way to know: nothing is known of the terminal, and an answer could come back."""
    if not knows_osc(environ) or _multiplexed(environ):
        return False
    return _known(environ, "") == ONLY_BELL


def bears_asking(environ: Mapping[str, str]) -> bool:
    """Whether a terminal of this name is sure to get over the query, which only `may_ask` makes useful."""
    if _multiplexed(environ):
        return True  # it keeps the query to itself
    names = (environ.get("TERM_PROGRAM", ""), environ.get("TERM", ""))
    return not any(name.lower().startswith(_ENDED_BY_ASKING) for name in names)


def answers_by_name(environ: Mapping[str, str]) -> bool:
    """Whether this terminal is known to answer a program's query for OSC 99 itself."""
    if _multiplexed(environ):
        return False
    names = (environ.get("TERM_PROGRAM", ""), environ.get("TERM", ""))
    return any(name.lower().startswith(_ANSWERING) for name in names)


def notification(
    kind: str,
    title: str,
    body: str,
    *,
    ident: str = "agentwrap",
    urgency: int = 1,
    sound: bool = True,
    tmux: bool = False,
) -> bytes:
    """Make the bytes that notify.

    Args:
        kind: as `choose` returns it.
        title: shown as one line, cleaned and clipped.
        body: the same; lines stay apart where the terminal shows several (OSC 99).
        ident: OSC 99 only: what `close` names; other characters than `A-Za-z0-9_.+-` are replaced.
        urgency: OSC 99 only: 0 to 2.
        sound: OSC 99 only: False asks for silence.
        tmux: wrap it for tmux, and ring its bell, which `monitor-bell` shows.
    """
    title = text.clip(text.fold(title), LONGEST_TITLE)
    if kind == ONLY_BELL:
        return BELL
    if kind == OSC_99:
        lines = "\n".join(filter(None, map(text.fold, body.splitlines())))
        head = f"i={_ident(ident)}"
        quiet = "" if sound else ":s=c2lsZW50"  # "silent"
        more = b"0" if lines else b"1"
        data = b"\x1b]99;%s:d=%s:e=1:p=title:u=%d%s;%s\x1b\\" % (
            head.encode(),
            more,
            min(max(urgency, 0), 2),
            quiet.encode(),
            base64(_chunk(title)),
        )
        if lines:
            data += b"\x1b]99;%s:d=1:e=1:p=body;%s\x1b\\" % (head.encode(), base64(_chunk(lines)))
    else:
        line = text.fold(" - ".join(filter(None, map(text.fold, body.splitlines()))))
        if kind == OSC_777:
            # Fields are parted by semicolons, and some terminals take no more than three.
            title, line = title.replace(";", "\uff1b"), line.replace(";", "\uff1b")
            line = text.clip(line, LONGEST_LINE)
            data = f"\x1b]777;notify;{title};{line}\a".encode("utf-8", "replace")
        else:
            line = text.clip(": ".join(filter(None, (title, line))), LONGEST_LINE)
            # "4;1;50" would be ConEmu's progress, "9;…" its directory: a number first is not a notice
            shield = "" if not line[:1].isdecimal() else "agentwrap: "
            data = f"\x1b]9;{shield}{line}\a".encode("utf-8", "replace")
    return wrap(data) + BELL if tmux else data


def close(ident: str, *, tmux: bool = False) -> bytes:
    """Make the bytes that take an OSC 99 notification back; no effect where it is gone already."""
    data = b"\x1b]99;i=%s:p=close;\x1b\\" % _ident(ident).encode()
    return wrap(data) if tmux else data


def query(ident: str) -> bytes:
    """Make the bytes that ask a terminal whether it knows OSC 99; `is_answer` reads what comes back."""
    return b"\x1b]99;i=%s:p=?;\x1b\\" % _ident(ident).encode()


def is_answer(body: bytes, ident: str) -> bool:
    """Whether the body of an OSC 99 from the terminal (what follows `99;`) answers `query(ident)`."""
    pairs = body.split(b";", 1)[0].split(b":")
    return b"p=?" in pairs and b"i=%s" % _ident(ident).encode() in pairs


def wrap(data: bytes) -> bytes:
    """Wrap sequences for tmux, which passes them to its terminal where `allow-passthrough` is on."""
    return b"\x1bPtmux;" + data.replace(b"\x1b", b"\x1b\x1b") + b"\x1b\\"


def identifier(ident: str) -> str:
    """Say how `ident` is written in OSC 99."""
    return _ident(ident)


def _ident(ident: str) -> str:
    return "".join(c if c in _IDENT else "-" for c in ident[-LONGEST_IDENT:]) or "-"


def _chunk(value: str) -> bytes:
    """Encode, and cut to what one payload may hold, not within a character."""
    data = value.encode("utf-8", "replace")
    return data[:LONGEST_CHUNK].decode("utf-8", "ignore").encode()


def base64(data: bytes) -> bytes:
    """Encode as standard base64 with padding. The texts are short; the module would be an import."""
    out = bytearray()
    for start in range(0, len(data), 3):
        group = data[start : start + 3]
        bits = int.from_bytes(group.ljust(3, b"\0"), "big")
        encoded = bytes(_BASE64[bits >> shift & 63] for shift in (18, 12, 6, 0))
        out += encoded[: len(group) + 1] + b"=" * (3 - len(group))
    return bytes(out)
