"""Any program: what speaks OSC 7501 is understood, and notices without a state are told as they are."""

from __future__ import annotations

from agentwrap.agents.profile import Profile

PROFILE = Profile("generic")
