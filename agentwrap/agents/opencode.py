"""OpenCode: reports nothing, but announces four events once its attention is switched on.

Each of them is a state of its own, and nothing tells when it ends: a key does. The title is the session's.
It announces only while it has been told that the terminal lost the focus.
"""

from __future__ import annotations

from agentwrap.agents.profile import Profile
from agentwrap.core.turns import Rule

PROFILE = Profile(
    "opencode",
    "OpenCode",
    commands=("opencode",),
    packages=("opencode-ai",),
    apps=("opencode",),
    notices=(
        Rule("suffix", "Session done", (), "done"),
        Rule("suffix", "Permission needs input", (), "blocked", "permission"),
        Rule("suffix", "Question needs input", (), "blocked", "question"),
        Rule("suffix", "Session error", (), "error"),
    ),
    answers_osc99=True,
    file=("OPENCODE_TUI_CONFIG", '{"attention":{"enabled":true,"sound":false}}'),
    subcommands=(
        "completion",
        "acp",
        "mcp",
        "run",
        "debug",
        "providers",
        "auth",
        "agent",
        "upgrade",
        "uninstall",
        "serve",
        "web",
        "models",
        "stats",
        "export",
        "import",
        "github",
        "session",
        "plugin",
        "plug",
        "db",
        "help",
    ),
    valued=(
        "-m",
        "--model",
        "-s",
        "--session",
        "--prompt",
        "--agent",
        "--port",
        "--hostname",
        "--mdns-domain",
        "--cors",
        "--log-level",
    ),
)
