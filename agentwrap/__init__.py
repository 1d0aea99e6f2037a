"""agentwrap: prefix a coding agent with it and know when it needs you."""

__version__ = "0.1.0"
