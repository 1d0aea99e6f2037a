"""The input filter: our replies to the command go in, the outer terminal's own replies come out.

A program asks its terminal whether it understands status reports; we answer, and the query goes on to the
outer terminal, which may answer too: only one reply may arrive. The same with kitty's notifications (OSC 99)
where we answer, or where it was us who asked. All else passes unchanged and in order. It must not know what a
key is for, nor keep what is typed; where things begin and end is for `keys` to say.
"""

from __future__ import annotations

from agentwrap.core import notices, report
from agentwrap.core.keys import POSITION_LIMIT, InputScanner

REPLY_HEAD = b"\x1b]%d;?" % report.NUMBER
OSC99_HEAD = b"\x1b]99;"

HOLD = 0.04
"""Seconds what may be the beginning of a reply is held for its next byte. Keys must not be late."""

HOLD_LIMIT = 1024
"""Bytes held; the longest reply lists five states and three kinds and has under a hundred."""

HOLD_TOTAL = 1.0
"""Seconds a reply may take altogether once it can be nothing else."""

SEQUENCE_WAIT = 0.1
"""Seconds an unfinished sequence delays an insertion."""

PASTE_WAIT = 1.0
"""Seconds a paste delays an insertion, which is then dropped: who asked has stopped waiting."""

QUERY_LIMIT = 1024
"""Queries whose replies are awaited; a program that asks more often gets the terminal's replies too."""

OSC99_LIMIT = 16
"""Queries for OSC 99 whose answers are awaited; the oldest is forgotten. A program asks once."""

OSC99_PROMPT = 5.0
"""Seconds in which an answer to it is expected: later, a lone Esc is no more held for what may follow."""

# As much of a reply as may be keys: Esc, Alt-]. They are not held longer for a next byte that does come.
_TYPABLE = 2


class InputFilter:
    """What goes from the terminal to the command.

    `feed` what the terminal sent, `insert` replies of ours, `tick` when `deadline` has passed: each returns
    bytes for the command. `take_events` gives what the passed bytes meant, as in `keys`.
    """

    __slots__ = (
        "_asked",
        "_asked_at",
        "_events",
        "_held",
        "_held_since",
        "_held_until",
        "_last",
        "_pending",
        "_queries",
        "_scanner",
        "_unread",
        "knows_osc99",
        "knows_status",
    )

    def __init__(self) -> None:
        self._scanner = InputScanner()  # has seen exactly what the command was given of the terminal's bytes
        self._unread: list[tuple[bytes, float]] = []  # but for this, which came at these times
        self._events: list[int] = []
        self._queries = 0
        self._asked: list[tuple[bytes, bool]] = []  # OSC 99: identifier, whether its answer is taken out
        self._asked_at = 0.0
        self.knows_osc99 = False
        """Whether the terminal has answered a query for OSC 99."""
        self.knows_status = False
        """Whether the terminal has answered a query for status reports, and so understands them."""
        self._held = b""  # the beginning of what may be a reply to take out
        self._held_since = 0.0
        self._held_until = 0.0
        self._last = 0.0  # when the scanner saw its last byte
        self._pending: list[tuple[bytes, float]] = []  # replies that wait for a boundary, and since when

    def query_passed(self) -> None:
        """Expect one reply of the outer terminal, to be taken out whenever it comes."""
        self._queries = min(self._queries + 1, QUERY_LIMIT)

    def osc99_asked(self, ident: bytes, now: float, *, take: bool) -> None:
        """Expect the terminal's answer to a query for OSC 99: to be taken out, or else only noticed."""
        if len(self._asked) >= OSC99_LIMIT:
            del self._asked[0]
        self._asked.append((ident, take))
        if take:
            self._asked_at = now

    def position_asked(self) -> None:
        """Expect one cursor position report, which may look like a key."""
        self._read_on()
        scanner = self._scanner
        scanner.position_queries = min(scanner.position_queries + 1, POSITION_LIMIT)

    @property
    def deadline(self) -> float | None:
        """When `tick` is due; None where nothing waits."""
        self._read_on()
        deadline: float | None = None
        if self._held:
            deadline = self._held_until
        if self._pending:
            due = self._due()
            if deadline is None or due < deadline:
                deadline = due
        patience = self._scanner.patience
        if patience is not None and (deadline is None or self._last + patience < deadline):
            deadline = self._last + patience
        return deadline

    def take_events(self) -> list[int]:
        """Return the events since the last call, in order."""
        self._read_on()
        events = self._events
        if events:
            self._events = []
        return events

    def feed(self, data: bytes, now: float) -> bytes:
        """Take what the terminal sent; what of it, and of our replies, goes to the command now."""
        plain = not (self._queries or self._asked) or b"\x1b" not in data
        if plain and not self._held and not self._pending:
            self._unread.append((data, now))  # on its way first
            return data
        self._read_on()
        late = self._let_go(now)
        if plain and not self._held:
            return late + self._pass(data, now)
        data = self._held + data
        since = self._held_since if self._held else now
        self._held = b""
        out = [late]
        pos = 0
        while pos < len(data):
            esc = data.find(b"\x1b", pos)
            if esc < 0:
                esc = len(data)
            if esc > pos:
                out.append(self._pass(data[pos:esc], now))
                pos = esc
                continue
            # Whether this sequence is a reply to take out: only where one can begin.
            end, take = (0, False) if self._scanner.in_paste else self._reply(data, pos, now)
            if end > 0:
                if not take:
                    out.append(self._pass(data[pos:end], now))
                pos = end
            elif end < 0 and self._hold(data[pos:], since if pos == 0 else now, now):
                break
            else:
                out.append(self._pass(data[pos : pos + 1], now))
                pos += 1
        return b"".join(out)

    def _reply(self, data: bytes, pos: int, now: float) -> tuple[int, bool]:
        """Where an awaited reply at `pos` ends, as `_reply_end` says, and whether it is to be taken out."""
        if self._queries:
            end = _reply_end(data, pos, REPLY_HEAD)
            if end > 0:
                self._queries -= 1
                self.knows_status = True
            if end:
                return end, True
        if self._asked:
            end = _reply_end(data, pos, OSC99_HEAD)
            if end > 0:
                ident = notices.kitty_answer(data[pos + len(OSC99_HEAD) : end].rstrip(b"\a\x1b\\"))
                for entry in self._asked:
                    if entry[0] == ident:
                        self._asked.remove(entry)
                        self.knows_osc99 = True
                        return end, entry[1]
            elif end < 0 and any(take for _, take in self._asked):
                # One that is only noticed is not worth holding anything.
                typable = len(data) - pos <= _TYPABLE
                return (end, True) if not typable or now < self._asked_at + OSC99_PROMPT else (0, False)
        return 0, False

    def insert(self, reply: bytes, now: float) -> bytes:
        """Give the command `reply`: at once between two sequences, else as soon as `feed` or `tick` may."""
        late = self.tick(now)
        if not self._pending and self._scanner.ground:
            return late + reply
        if len(self._pending) < QUERY_LIMIT:
            self._pending.append((reply, now))
        return late

    def tick(self, now: float) -> bytes:
        """Let go of what has waited long enough."""
        self._read_on()
        out = self._let_go(now)
        if self._held and now >= self._held_until:
            held, self._held = self._held, b""
            out += self._pass(held, now)
        return out

    def _read_on(self) -> None:
        """See what that means which was passed on as it came. Nothing was held or pending then."""
        if self._unread:
            unread, self._unread = self._unread, []
            for data, at in unread:
                self._let_go(at)
                self._pass(data, at)

    def _let_go(self, now: float) -> bytes:
        """Let go of all but the held bytes, which what comes now may complete."""
        scanner = self._scanner
        patience = scanner.patience
        if patience is not None and now >= self._last + patience:
            self._events += scanner.expire()
        if not self._pending:
            return b""
        if scanner.ground:
            return self._insert_all()
        out = b""
        while self._pending and now >= self._due():
            reply, _ = self._pending.pop(0)
            if not scanner.in_paste:
                out += reply
        return out

    def _due(self) -> float:
        return self._pending[0][1] + (PASTE_WAIT if self._scanner.in_paste else SEQUENCE_WAIT)

    def _hold(self, data: bytes, since: float, now: float) -> bool:
        """Keep the beginning of a reply back for its next byte, within bounds."""
        until = since + HOLD if len(data) <= _TYPABLE else min(now + HOLD, since + HOLD_TOTAL)
        if now >= until or len(data) > HOLD_LIMIT:
            return False
        self._held, self._held_since, self._held_until = data, since, until
        return True

    def _pass(self, data: bytes, now: float) -> bytes:
        """Let `data` through, and what waits for a boundary in it at the first one."""
        if not data:
            return b""
        scanner = self._scanner
        self._last = now
        if not self._pending:
            self._events += scanner.feed(data)
            return data
        out: list[bytes] = []
        pos = 0
        while pos < len(data) and self._pending:
            if scanner.in_paste:  # which ends in a tilde
                tilde = data.find(b"~", pos)
                end = len(data) if tilde < 0 else tilde + 1
            else:
                end = pos + 1
            self._events += scanner.feed(data[pos:end])
            out.append(data[pos:end])
            pos = end
            if scanner.ground:
                out.append(self._insert_all())
        self._events += scanner.feed(data[pos:])
        out.append(data[pos:])
        return b"".join(out)

    def _insert_all(self) -> bytes:
        out = b"".join(reply for reply, _ in self._pending)
        self._pending.clear()
        return out


def _reply_end(data: bytes, pos: int, wanted: bytes) -> int:
    """Where the reply with the head `wanted` at `pos` ends; 0: none does, -1: one may have begun there."""
    head = data[pos : pos + len(wanted)]
    if head != wanted:
        return -1 if wanted.startswith(head) and pos + len(head) == len(data) else 0
    for i in range(pos + len(wanted), min(len(data), pos + HOLD_LIMIT)):
        byte = data[i]
        if byte == 0x07:
            return i + 1
        if byte == 0x1B:
            if i + 1 == len(data):
                return -1
            return i + 2 if data[i + 1] == 0x5C else 0
        if byte < 0x20 or byte > 0x7E:
            return 0
    return -1
