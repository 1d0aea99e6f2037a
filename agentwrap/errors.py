"""The errors a user sees: each is one line on standard error and an exit code, never a traceback.

Whoever finds the error words it and says the way out; only `__main__` prints it. On the wrap path: nothing
is imported here.
"""

from __future__ import annotations


def one_line(text: str) -> str:
    """`text` with everything that is no printable character replaced, safe to show on any terminal."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else " " if c in "\n\t" else "?" for c in text)


class AgentwrapError(Exception):
    """Something that ends agentwrap with one line and `exit_code`."""

    exit_code = 1

    @property
    def line(self) -> str:
        """The line for standard error, without its newline."""
        return one_line(f"agentwrap: {self}")


class UsageError(AgentwrapError):
    """The command line cannot be understood or names a file that cannot be opened."""

    exit_code = 2


class ConfigError(AgentwrapError):
    """The configuration holds an unknown key or a bad value, or cannot be read."""

    exit_code = 2


class NotFound(AgentwrapError):  # noqa: N818 - the shell's words, "not found"
    """The command to wrap does not exist."""

    exit_code = 127


class CannotExecute(AgentwrapError):  # noqa: N818 - "cannot execute", as shells say
    """The command to wrap exists but cannot be executed."""

    exit_code = 126


class StateDirError(AgentwrapError):
    """The state directory cannot be used; `str()` of it is the reason."""


class NoSessionError(AgentwrapError):
    """No live session answers to the name given, or several do."""
