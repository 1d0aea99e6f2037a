"""`agentwrap replay`: run a recording through the engine that runs live, on recorded time."""

from __future__ import annotations

import json
import os
import shlex
import sys
from typing import TYPE_CHECKING, Any, TextIO

from agentwrap import agents, config
from agentwrap.core import recording, status, text
from agentwrap.core.attention import Notify, Withdraw
from agentwrap.core.probe import InputFilter
from agentwrap.core.session import Change, Session
from agentwrap.errors import AgentwrapError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from agentwrap.agents.profile import Profile
    from agentwrap.config import Settings
    from agentwrap.core.attention import Policy


class Player:
    """A session and its input filter on a clock of their own.

    Time passes as events are fed; what became due since the last one is done first, at its own time.
    `told` is called with (time, Change or action), in order.
    """

    def __init__(
        self,
        profile: Profile,
        policy: Policy,
        *,
        command: str,
        label: str,
        told: Callable[[float, Change | Notify | Withdraw], None],
        shell: bool = False,
    ) -> None:
        self.session = Session(
            profile,
            policy,
            now=0.0,
            command=command,
            label=label,
            by_app=agents.by_app,
            signal_name=status.signal_name,
            # Whether the shell had the foreground is not recorded; its programs' own marks are rare.
            prompt_marks=(lambda: True) if shell else None,
            observer=told,
            own_hold=0.0,  # nothing has to be delivered before an end, and time ends with the last event
        )
        self.filter = InputFilter()
        self._forwarded: set[int] = set()
        self._now = 0.0

    def feed(self, t: float, code: str, data: bytes | int) -> None:
        """Let time pass to `t` seconds, then take bytes, rows ("r"), a signal ("s") or a status ("x")."""
        self._pass(t)
        if isinstance(data, int):
            if code == recording.RESIZE:
                self.session.ledger.rows = data
            elif code == recording.SIGNAL:
                self._forwarded.add(data)
            else:
                self.session.exited(t, data, frozenset(self._forwarded))
        elif code == recording.OUTPUT:
            self.session.output(data, t)
            for _ in range(self.session.take_queries()):
                self.filter.query_passed()
            for _ in range(self.session.take_position_queries()):
                self.filter.position_asked()
            self.session.take_replies()
        else:
            self.filter.feed(data, t)
            self.session.typed(self.filter.take_events(), t)

    def _pass(self, t: float) -> None:
        while True:
            keys, due = self.filter.deadline, self.session.deadline
            if keys is not None and keys <= t and (due is None or keys < due):
                self._now = max(self._now, keys)
                self.filter.tick(self._now)
                self.session.typed(self.filter.take_events(), self._now)
            elif due is not None and due <= t:
                self._now = max(self._now, due)
                self.session.tick(self._now)
            else:
                self._now = t
                return


def replay(
    file: str,
    *,
    as_json: bool = False,
    agent: str | None = None,
    settings: Settings | None = None,
    out: TextIO | None = None,
    environ: Mapping[str, str] | None = None,
) -> int:
    """Print what agentwrap makes of the recording `file` ("-": standard input).

    Args:
        file: an asciicast v2.
        as_json: one object a line, instead of a table for people.
        agent: the profile to use instead of the one that the recorded command names.
        settings: whose delays and events count; None: what is configured.
        out: where to print.
        environ: for the home directory and the configuration.

    Returns:
        The exit code.

    Raises:
        AgentwrapError: the file cannot be read, or is no asciicast v2; a mistake in the configuration.
    """
    out = sys.stdout if out is None else out
    environ = os.environ if environ is None else environ
    if settings is None:
        settings, _ = config.load(environ, strict=True)
    show = _print_json if as_json else _print_text

    def told(t: float, what: Change | Notify | Withdraw) -> None:
        event = describe(t, what)
        if event is not None:
            show(event, out)

    lines = _lines(file)
    header = _header(file, lines)
    command = _command(header)
    own = header.get("agentwrap")
    own = own if isinstance(own, dict) else {}
    player = Player(
        agents.recognise(command, agent, settings),
        settings.policy,
        command=agents.command_name(command),
        label=status.label(_string(own.get("name")), _string(own.get("cwd")) or _cwd(), environ.get("HOME")),
        told=told,
        shell=agents.is_shell(command),
    )
    player.session.ledger.rows = _number(header.get("height"))
    for t, code, data in _events(file, lines):
        player.feed(t, code, data)
    show({"event": "end", "undo": player.session.undo().decode("utf-8", "replace")}, out)
    return 0


def describe(t: float, what: Change | Notify | Withdraw) -> dict[str, Any] | None:
    """Return the event to print, or None for what is none (an update, an escalation)."""
    t = round(t, 6)
    if isinstance(what, Change):
        return {
            "t": t,
            "event": "state",
            "state": what.state,
            "kind": what.kind,
            "message": what.message,
            "source": what.source,
        }
    if isinstance(what, Withdraw):
        return {"t": t, "event": "withdraw", "type": what.type}
    if what.action == "notify":
        return {"t": t, "event": "notify", "type": what.type, "title": what.title, "body": what.body}
    return None


# --- reading ------------------------------------------------------------------------------------


def _lines(file: str) -> Iterator[tuple[int, str]]:
    """The lines of the file with their numbers, from 1; empty ones left out."""
    try:
        with sys.stdin if file == "-" else open(file, encoding="utf-8", errors="replace") as stream:
            for number, line in enumerate(stream, 1):
                if line.strip():
                    yield number, line
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}") from None


def _parse(file: str, number: int, line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        raise AgentwrapError(f"{file}:{number}: not JSON; is it an asciicast v2 recording?") from None


def _header(file: str, lines: Iterator[tuple[int, str]]) -> dict[str, Any]:
    number, line = next(lines, (1, ""))
    header = _parse(file, number, line)
    if not isinstance(header, dict) or "version" not in header:
        raise AgentwrapError(f"{file}:{number}: no asciicast header; `agentwrap --record FILE` writes one")
    if header["version"] != recording.VERSION:
        raise AgentwrapError(
            f"{file}:{number}: asciicast version {header['version']!r}; only 2 can be replayed"
        )
    return header


def _events(file: str, lines: Iterable[tuple[int, str]]) -> Iterator[tuple[float, str, bytes | int]]:
    """The events that mean something: time, code and bytes, rows or wait status."""
    last = 0.0
    escaped: str | None = None
    for number, line in lines:
        event = _parse(file, number, line)
        problem = _problem(event)
        if problem is not None:
            raise AgentwrapError(f"{file}:{number}: {problem}")
        t, code, data = event
        last = max(last, float(t))
        if code == recording.BYTES:
            escaped = data
            continue
        if code in (recording.EXIT, recording.SIGNAL):
            yield last, code, int(data)
        elif code == recording.RESIZE:
            yield last, code, _number(data.rpartition("x")[2])
        elif code in (recording.OUTPUT, recording.INPUT):
            try:
                yield last, code, recording.restore(data, escaped)
            except ValueError as error:
                raise AgentwrapError(f"{file}:{number}: {error}") from None
        escaped = None


def _problem(event: object) -> str | None:
    """What is wrong with an event, or None. Codes nobody knows are allowed."""
    if not isinstance(event, list) or len(event) != 3:
        return "not an event of the form [time, code, data]"
    t, code, data = event
    if isinstance(t, bool) or not isinstance(t, (int, float)) or not 0 <= t < 1e12:
        return "the time is not a number of seconds"
    if not isinstance(code, str):
        return "the code is not a string"
    if code in (recording.EXIT, recording.SIGNAL):
        digits = data if isinstance(data, str) else str(data) if type(data) is int else ""
        if not (digits.isascii() and digits.isdigit() and len(digits) <= 9):
            return "the wait status or signal is not a number"
    elif code in (recording.OUTPUT, recording.INPUT, recording.RESIZE, recording.BYTES) and not isinstance(
        data, str
    ):
        return "the data is not a string"
    return None


def _command(header: dict[str, Any]) -> list[str]:
    command = header.get("command")
    if not isinstance(command, str) or not command.strip():
        return []
    try:
        return shlex.split(command)
    except ValueError:
        return command.split()


def _number(value: object) -> int:
    """A number of rows, 0 where that is none."""
    digits = str(value)
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 6 else 0


def _string(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _cwd() -> str:
    try:
        return os.getcwd()
    except OSError:
        return "?"  # it was removed under us


# --- printing -----------------------------------------------------------------------------------


def _print_json(event: dict[str, Any], out: TextIO) -> None:
    print(json.dumps(event), file=out)


def _print_text(event: dict[str, Any], out: TextIO) -> None:
    what = event["event"]
    if what == "state":
        kind = f" ({event['kind']})" if event["kind"] else ""
        message = f": {event['message']}" if event["message"] else ""
        words = f"{event['state']}{kind}{message}  [{event['source']}]"
    elif what == "notify":
        body = event["body"].replace("\n", " · ")
        words = f"{event['type']}: {event['title']} · {body}"
    elif what == "withdraw":
        words = event["type"]
    else:
        undo = event["undo"].encode("unicode_escape").decode("ascii")
        print(f"     end            {undo or 'no mode left on'}", file=out)
        return
    print(f"{event['t']:8.3f}  {what:8}  {text.fold(words)}", file=out)
