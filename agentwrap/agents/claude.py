"""Claude Code: reports its state itself, once it is told that the terminal understands."""

from __future__ import annotations

from agentwrap.agents.profile import Profile

PROFILE = Profile(
    "claude",
    "Claude Code",
    commands=("claude",),
    packages=("@anthropic-ai/claude-code",),
    apps=("claude-code",),
)
