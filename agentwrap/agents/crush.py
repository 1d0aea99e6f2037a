"""Crush: nothing of its own beyond its name; it is heard like any other program."""

from __future__ import annotations

from agentwrap.agents.profile import Profile

PROFILE = Profile("crush", "Crush", commands=("crush",), packages=("@charmland/crush",), apps=("crush",))
