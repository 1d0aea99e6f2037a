"""What the options before COMMAND said. Plain values, split from argv by `__main__`."""

from __future__ import annotations


class Options:
    """Options of one wrap; each is None or False where it was not given.

    Attributes:
        notify: channels in order of preference, or None to leave it to the configuration.
        inject: False after `--no-inject`.
        agent: name of the profile to use instead of the one recognised.
        name: label of the session, chosen by the user.
        record: file to write an asciicast of the session to.
        record_input: record what is typed, too.
        config: configuration file to read instead of the usual one.
        called: what the session is called after instead of the command; set by `demo`, no option.
    """

    __slots__ = ("agent", "called", "config", "inject", "name", "notify", "record", "record_input")

    def __init__(self) -> None:
        self.notify: tuple[str, ...] | None = None
        self.inject = True
        self.agent: str | None = None
        self.name: str | None = None
        self.record: str | None = None
        self.record_input = False
        self.config: str | None = None
        self.called: str | None = None
