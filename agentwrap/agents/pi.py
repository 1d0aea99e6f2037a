"""pi: reports its state; with PI_PROGRAM_STATUS=1 without asking first, so no reply can come too late."""

from __future__ import annotations

from agentwrap.agents.profile import Profile

PROFILE = Profile(
    "pi",
    "pi",
    commands=("pi",),
    packages=("@earendil-works/pi-coding-agent", "@mariozechner/pi-coding-agent"),
    apps=("pi",),
    environment=(("PI_PROGRAM_STATUS", "1"),),
)
