"""What passes between the helper and its channels: a notice, and how it went."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

from agentwrap.core import text

TIMEOUT = 3.0
"""Seconds one channel may take for one notice before the next one is tried."""

LONGEST_TITLE = 256
"""Characters of a title; longer than any title of ours with the longest `app` a report may carry."""

LONGEST_BODY = 4096
"""Characters of a body: a message of the protocol (2048 bytes) and a directory fit."""

TRANSIENT = ("blocked", "done", "error")
"""Types that say how a session stands, so that they go with it; an exit is news that stays."""


@dataclass
class Notice:
    """One notification to deliver.

    Attributes:
        id: the sender's number for it.
        key: what a later update or withdrawal names; one notice per key is shown.
        type: blocked, done, error or exit.
        title: one line.
        body: a few lines; never markup.
        sound: whether it may be heard.
        channels: where to try, in order, resolved.
        command: argv of the command channel.
        env: environment to add for it.
        osc99: whether the terminal answered the OSC 99 query; None where it was not asked.
        own: number of the OSC by which the program has told it itself, in a passthrough of tmux; 0 for none.
    """

    id: int
    key: str
    type: str
    title: str
    body: str
    sound: bool = True
    channels: list[str] = field(default_factory=list)
    command: list[str] = field(default_factory=list)
    env: dict[str, str] = field(default_factory=dict)
    osc99: bool | None = None
    own: int = 0

    @classmethod
    def parse(cls, message: dict[str, Any]) -> Notice:
        """Read a message of the protocol. Wrong types become empty values: that never fails."""
        number = message.get("id")
        kind = _text(message.get("type"), 32)
        env, own = message.get("env"), message.get("own")
        return cls(
            id=number if isinstance(number, int) else 0,
            key=_text(message.get("key"), 64) or kind or "notice",
            type=kind,
            title=text.fold(_text(message.get("title"), LONGEST_TITLE)),
            body="\n".join(map(text.clean, _text(message.get("body"), LONGEST_BODY).splitlines())),
            sound=message.get("sound", True) is True,
            channels=_words(message.get("channels")),
            command=_words(message.get("command")),
            env={k: _text(v, 8192) for k, v in env.items() if _is_name(k)} if isinstance(env, dict) else {},
            osc99=message["osc99"] if isinstance(message.get("osc99"), bool) else None,
            own=own if isinstance(own, int) else 0,
        )


@dataclass(frozen=True)
class Outcome:
    """Whether a channel took a notice, and why not; a reason may also stand beside a success."""

    ok: bool
    reason: str = ""


class Channel(Protocol):
    """A way to the user. All calls are made one at a time, and cancelled after `TIMEOUT`."""

    async def show(self, notice: Notice) -> Outcome:
        """Deliver a notice."""

    async def update(self, notice: Notice) -> Outcome:
        """Replace the text of what was shown for `notice.key`; never a second notification."""

    async def withdraw(self, notice: Notice) -> Outcome:
        """Take back what was shown for `notice`."""

    async def close(self) -> None:
        """Let go of what the channel holds; what is shown stays."""


def _text(value: object, longest: int) -> str:
    """Text that every interface takes: no NUL or other control but newline and tab, no lone surrogate."""
    if not isinstance(value, str):
        return ""
    value = value[:longest].encode("utf-8", "replace").decode()
    return "".join(c for c in value if c in "\n\t" or not (c < " " or "\x7f" <= c < "\xa0"))


def _words(value: object) -> list[str]:
    if not isinstance(value, list):
        return []
    return [word.replace("\0", "") for word in value if isinstance(word, str)]


def _is_name(name: object) -> bool:
    return isinstance(name, str) and name.startswith("AGENTWRAP_") and name.replace("_", "").isalnum()
