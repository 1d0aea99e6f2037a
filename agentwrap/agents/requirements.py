"""What an agent needs so that its status is seen, as data, and how its version is compared.

What lives here: the oldest version that reports, and the variables that stop it. What must not: finding
the agent or asking it for its version, which is the host's and the verbs' business.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_OFF = ("", "0", "false", "no", "off")


class Requirement:
    """What one agent needs.

    Attributes:
        oldest: the first version that reports its status; "" where all known ones do, or none does.
        stopped_by: variables that stop it: name, the value that does ("" for any that is not off), and what
            comes of it.
        remark: what to expect of it even when all is well; "" where it reports everything.
    """

    __slots__ = ("oldest", "remark", "stopped_by")

    def __init__(
        self, oldest: str = "", *, stopped_by: tuple[tuple[str, str, str], ...] = (), remark: str = ""
    ) -> None:
        self.oldest = oldest
        self.stopped_by = stopped_by
        self.remark = remark

    def problems(self, version: str | None, environ: Mapping[str, str]) -> list[str]:
        """Say why this agent's status would not be seen; nothing where it would."""
        found = []
        if self.oldest and version is not None and numbers(version) < numbers(self.oldest):
            found.append(f"version {version} reports no status; {self.oldest} and later do")
        for name, value, what in self.stopped_by:
            current = environ.get(name)
            if current is not None and (current == value if value else current.lower() not in _OFF):
                found.append(f"{name}={current}: {what}")
        return found


REQUIREMENTS = {
    "claude": Requirement(
        "2.1.295",
        stopped_by=(
            ("CLAUDE_CODE_DISABLE_TERMINAL_TITLE", "", "Claude Code then reports no status; unset it"),
        ),
    ),
    "codex": Requirement("0.163.0"),
    "pi": Requirement(stopped_by=(("PI_PROGRAM_STATUS", "0", "pi then reports no status; unset it"),)),
    "opencode": Requirement(
        stopped_by=(
            ("OPENCODE_TUI_CONFIG", "", "your own file counts; its attention must be enabled there"),
        ),
        remark="says when it is done, failed or needs you, and only while its terminal is out of focus",
    ),
    "crush": Requirement(remark="reports no status itself; notices it writes and its end are seen"),
}
"""By the name of the profile."""


def numbers(version: str) -> tuple[int, ...]:
    """The numbers of a version, to compare: (2, 1, 295) for "2.1.295-beta"."""
    out = []
    for part in version.split("."):
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if not digits:
            break
        out.append(int(digits))
        if digits != part:
            break
    return tuple(out)


def find_version(text: str) -> str | None:
    """The first thing in a text that looks like a version, "2.1.308" in "2.1.308 (Claude Code)"."""
    for word in text.replace("(", " ").replace(")", " ").split():
        candidate = word.lstrip("v").rstrip(",;")
        if len(numbers(candidate)) >= 2:
            return candidate
    return None
