"""How the agents are started, spoken to and left: what their users know of them. Nothing here judges a state."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.lab.home import Home
    from tests.lab.terminal import Terminal


@dataclass(frozen=True)
class Dialect:
    """An agent as its users know it."""

    agent: str
    title: str  # as notifications name it
    argv: tuple[str, ...]
    ready: str  # on the screen when it can be spoken to
    goodbye: tuple[str, ...]  # words, or keys in brackets
    reports: bool = True  # that it is idle and works; one that does not only announces what came of it
    environ: Mapping[str, str] = field(default_factory=dict)
    also: tuple[str, ...] = ()  # other packages it needs
    files: Mapping[str, str] = field(default_factory=dict)  # below the home

    def prepare(self, home: Home) -> None:
        """Put the files it needs into a home."""
        for name, text in self.files.items():
            home.write(name, text)

    def leave(self, terminal: Terminal) -> None:
        """Say goodbye."""
        for word in self.goodbye:
            if word.startswith("["):
                terminal.key(word[1:-1])
            else:
                terminal.type(word)


# pi asks for nothing by itself: it leaves that to extensions, such as this one.
PI_GATE = """\
import { Type } from "typebox";

export default function (pi) {
  pi.on("tool_call", async (event, ctx) => {
    if (event.toolName !== "bash") return undefined;
    const allowed = await ctx.ui.confirm("Allow bash?", event.input.command);
    return allowed ? undefined : { block: true, reason: "Denied by the user", terminate: true };
  });
  pi.registerTool({
    name: "question",
    label: "Question",
    description: "Ask the user a question",
    parameters: Type.Object({ questions: Type.Array(Type.Any()) }),
    async execute(id, params, signal, onUpdate, ctx) {
      const { question, options } = params.questions[0];
      const answer = await ctx.ui.select(question, options.map((option) => option.label));
      return { content: [{ type: "text", text: `The answer: ${answer}` }], details: {} };
    },
  });
}
"""

CLAUDE = Dialect(
    agent="claude",
    title="Claude Code",
    argv=("claude", "--permission-mode", "default"),
    ready=r"for shortcuts",
    goodbye=("/exit", "[enter]"),
)
CLAUDE_PLANNING = replace(CLAUDE, argv=("claude", "--permission-mode", "plan"), ready=r"plan mode on")
CODEX = Dialect(
    agent="codex",
    title="Codex",
    argv=("codex", "-a", "on-request"),
    ready=r"for shortcuts",
    goodbye=("/quit", "[enter]"),
)
PI = Dialect(
    agent="pi",
    title="pi",
    argv=("pi", "--model", "mock/mock-model"),
    ready=r"mock-model",
    goodbye=("[ctrl+d]",),
    # nothing is to be downloaded, and nothing could be
    environ={"PI_OFFLINE": "1"},
    also=("node",),
    files={".pi/agent/extensions/gate.ts": PI_GATE},
)
OPENCODE = Dialect(
    agent="opencode",
    title="OpenCode",
    argv=("opencode",),
    ready=r"Ask anything",
    goodbye=("/exit", "[enter]"),
    reports=False,
    # a list of the world's models, which is not to be had here, and which it would wait for
    environ={"OPENCODE_DISABLE_MODELS_FETCH": "1"},
)

DIALECTS = {dialect.agent: dialect for dialect in (CLAUDE, CODEX, PI, OPENCODE)}
