"""`agentwrap hooks AGENT`: settings by which an agent that reports nothing itself reports through hooks.

Printed, never written: whose settings they are decides what goes into them. The settings go to standard
output, so that they can be piped or saved as they are; where to put them is said on standard error.

What the hooks have in common: they report as HOOK_ID, which counts for the session only as long as the agent
does not speak for itself; they say nothing and always succeed, so that none of them stops its agent.
"""

from __future__ import annotations

import os
import shlex
import sys

from agentwrap.core.session import HOOK_ID
from agentwrap.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

WORKING, DONE, ERROR, IDLE, CLEAR = "working", "done", "error", "idle", "clear"
PERMISSION, QUESTION = "blocked --kind permission", "blocked --kind question"

SECONDS = 5
"""After which an agent is to give a hook up. It takes a fiftieth of one."""


def hooks(agent: str) -> int:
    """Print the settings for an agent, and where to put them.

    Raises:
        UsageError: there are none for an agent of this name.
    """
    known = {"claude": claude, "codex": codex, "opencode": opencode, "gemini": gemini}
    known |= {"copilot": copilot, "hermes": hermes}
    make: Callable[[str], tuple[str, str]] | None = known.get(agent)
    if make is None:
        raise UsageError(f"hooks: no hooks for {agent!r}; there are {', '.join(known)}")
    where, settings = make(program())
    sys.stdout.flush()
    sys.stderr.write(where + "\n")
    sys.stderr.flush()
    print(settings, end="")
    return 0


def program() -> str:
    """What to call agentwrap in a hook: its name where that is found, else its path, as a shell's word."""
    import shutil

    if shutil.which("agentwrap"):
        return "agentwrap"
    path = os.path.join(os.path.dirname(sys.executable), "agentwrap")
    return shlex.quote(path) if os.access(path, os.X_OK) else "agentwrap"


class _Reporter:
    """Makes the command lines of the hooks of one agent."""

    def __init__(self, name: str, app: str) -> None:
        self._name = name
        self._app = app

    def __call__(self, state: str, texts: str = "") -> str:
        """The command that reports `state`, with its kind; the message is at `texts` in its input."""
        words = f"{self._name} report {state} --id {HOOK_ID} --app {self._app}"
        return f"{words} --msg-from {texts}" if texts else words


def claude(name: str) -> tuple[str, str]:
    """For Claude Code: hooks in its settings."""
    say = _Reporter(name, "claude-code")
    table = (
        ("SessionStart", "startup|resume|clear", say(IDLE)),
        ("UserPromptSubmit", "", say(WORKING)),
        ("PreToolUse", "AskUserQuestion", say(QUESTION, "tool_input.questions.0.question")),
        # At once, and with what it is about; the notification comes 6 s later, and from older versions, too.
        # It comes for questions as well: being without a text, it changes nothing where one is known.
        ("PermissionRequest", "^(?!AskUserQuestion$)", say(PERMISSION, TOOL_TEXTS)),
        ("Notification", "permission_prompt", say(PERMISSION)),
        ("Notification", "elicitation_dialog", say(QUESTION, "message")),
        ("PostToolUse", "", say(WORKING)),
        ("PostToolUseFailure", "", say(WORKING)),
        ("Stop", "", say(DONE, "last_assistant_message")),
        ("StopFailure", "", say(ERROR, "last_assistant_message")),
        ("SessionEnd", "", say(CLEAR)),
    )
    where = """\
Newer versions of Claude Code report by themselves; these hooks are for older ones, and for one that was told
not to set the terminal's title. Merge this into ~/.claude/settings.json, or a project's settings, and
start Claude Code again. A version that does not know one of the events says so; leave that one out then.
No hook tells of a prompt or turn that was stopped with Esc: it stays until the next thing you say.
"""
    return where, _json({"hooks": _matched(table, timeout=SECONDS)})


def codex(name: str) -> tuple[str, str]:
    """For Codex: hooks in its configuration."""
    say = _Reporter(name, "codex")
    table = (
        ("UserPromptSubmit", say(WORKING)),
        ("PermissionRequest", say(PERMISSION, TOOL_TEXTS)),
        ("PostToolUse", say(WORKING)),
        ("Interrupt", say(IDLE)),
        ("Stop", say(DONE, "last_assistant_message")),
    )
    where = """\
Newer versions of Codex report by themselves; these hooks are for older ones. Put this at the end of
~/.codex/config.toml.
Codex runs no hook before you have trusted it: start it, type /hooks, and look at each of them there.
Codex has no hook for errors of the model, and none for questions: both look like work that goes on.
"""
    text = "# ~/.codex/config.toml, at the end\n\n"
    for event, command in table:
        text += f"[[hooks.{event}]]\n[[hooks.{event}.hooks]]\n"
        text += f'type = "command"\ncommand = {_quoted(_safe(command))}\ntimeout = {SECONDS}\n\n'
    return where, text.rstrip("\n") + "\n"


def gemini(name: str) -> tuple[str, str]:
    """For Gemini CLI: hooks in its settings."""
    say = _Reporter(name, "gemini")
    told = say(PERMISSION, "details.title,details.command,details.fileName")
    done = say(DONE, "prompt_response")
    table = (
        ("SessionStart", "", say(IDLE)),
        ("BeforeAgent", "", say(WORKING)),
        ("BeforeTool", "ask_user", say(QUESTION, "tool_input.questions.0.question")),
        # A question is notified of as well, without its text.
        ("Notification", "ToolPermission", _either('"type":"ask_user"', ":", _fed(told))),
        ("AfterTool", "", say(WORKING)),
        # So end a turn that was stopped and one that failed; there is no telling them apart.
        ("AfterAgent", "", _either('"prompt_response":"[no response text]"', say(IDLE), _fed(done))),
        ("SessionEnd", "", say(CLEAR)),
    )
    where = """\
Merge this into ~/.gemini/settings.json, or a project's .gemini/settings.json, and start Gemini CLI again.
Gemini CLI does not tell its hooks an error of the model from a turn that was stopped: both are idle.
"""
    return where, _json({"hooks": _matched(table, timeout=SECONDS * 1000)})


def copilot(name: str) -> tuple[str, str]:
    """For GitHub Copilot CLI: a file of hooks."""
    say = _Reporter(name, "copilot")
    table = (
        # None for sessionStart: it comes with the first prompt, and which hook ends first is chance.
        ("userPromptSubmitted", "", say(WORKING)),
        ("preToolUse", "ask_user", say(QUESTION, "toolArgs.message,toolArgs.question")),
        ("notification", "permission_prompt", say(PERMISSION, "message")),
        ("notification", "elicitation_dialog", say(QUESTION)),
        ("postToolUse", "", say(WORKING)),
        ("postToolUseFailure", "", say(WORKING)),
        ("agentStop", "", say(DONE)),
        ("errorOccurred", "", say(ERROR, "error.message")),
        ("sessionEnd", "", say(CLEAR)),
    )
    found: dict[str, list[Any]] = {}
    for event, matcher, command in table:
        entry = {"type": "command", "bash": _safe(command), "timeoutSec": SECONDS}
        found.setdefault(event, []).append({"matcher": matcher, **entry} if matcher else entry)
    where = """\
Save this as ~/.copilot/hooks/agentwrap.json ($COPILOT_HOME may be another place), and start Copilot again:
agentwrap hooks copilot > ~/.copilot/hooks/agentwrap.json
No hook tells of a prompt or turn that was stopped with Esc: it stays until the next thing you say.
"""
    return where, _json({"version": 1, "hooks": found})


def hermes(name: str) -> tuple[str, str]:
    """For Hermes Agent: hooks in its configuration. It runs them without a shell."""
    say = _Reporter(name, "hermes")
    failed = 'grep -q "completed.: false.*interrupted.: false"'
    refused = _either('"retryable": false', _fed(say(ERROR, "extra.error.message")), ":")
    end = f"{failed} && exec {say(ERROR)}; exec {say(IDLE)}"
    table = (
        ("pre_llm_call", "", say(WORKING)),
        ("pre_tool_call", "clarify", say(QUESTION, "tool_input.question")),
        ("pre_approval_request", "", say(PERMISSION, "extra.description,extra.command")),
        ("post_approval_response", "", say(WORKING)),
        ("post_tool_call", "clarify", say(WORKING)),
        ("post_llm_call", "", say(DONE, "extra.assistant_response")),
        # What is tried again is no error yet; what is not ends a turn without a further word.
        ("api_request_error", "", f"/bin/sh -c {shlex.quote(refused)}"),
        # Of every turn. What came of a turn is not taken back by idle before it is seen.
        ("on_session_end", "", f"/bin/sh -c {shlex.quote(end)}"),
        ("on_session_finalize", "", say(CLEAR)),
    )
    text = "# ~/.hermes/config.yaml\nhooks:\n"
    for event, matcher, command in table:
        text += f"  {event}:\n"
        first = f"    - matcher: {_quoted(matcher)}\n      " if matcher else "    - "
        text += f"{first}command: {_quoted(command)}\n      timeout: {SECONDS}\n"
    where = """\
Merge this into ~/.hermes/config.yaml. Hermes asks once for each of the hooks whether it may run it;
`hermes hooks list` shows them.
"""
    return where, text


def opencode(name: str) -> tuple[str, str]:
    """For OpenCode: a plugin."""
    where = """\
agentwrap makes OpenCode announce what it does; this plugin tells more: that it works, and what it asks. Save
it as ~/.config/opencode/plugins/agentwrap.js, or in a project's .opencode/plugins, and start OpenCode again:
agentwrap hooks opencode > ~/.config/opencode/plugins/agentwrap.js
"""
    words = ", ".join(_quoted(word) for word in shlex.split(name))
    return where, OPENCODE.replace("@COMMAND@", words).replace("@ID@", HOOK_ID)


TOOL_TEXTS = "tool_name,tool_input.command,tool_input.file_path,tool_input.url"
"""What a permission is asked for: the tool, and what most tools are given."""

OPENCODE = """\
// Reports what OpenCode is doing through `agentwrap report`. To be kept in ~/.config/opencode/plugins
import { spawn } from "node:child_process"

const COMMAND = [@COMMAND@]
const children = new Set() // sessions of subagents: their ends are no news
const running = new Set() // sessions in a turn: an end is told twice, and after an error
const titles = new Map() // what each session is about
const waiting = new Set() // prompts that nobody has answered
let last = Promise.resolve() // one report after the other

function report(state, ...options) {
  const words = [...COMMAND.slice(1), "report", state, "--id", "@ID@", "--app", "opencode", ...options]
  const run = () =>
    new Promise((resolve) => {
      const child = spawn(COMMAND[0], words, { stdio: "ignore" })
      child.on("error", resolve)
      child.on("close", resolve)
    })
  last = last.then(run)
}

function blocked(kind, id, text) {
  waiting.add(id)
  report("blocked", "--kind", kind, ...(text ? ["--msg", text] : []))
}

function answered(id) {
  waiting.delete(id)
  if (waiting.size === 0) report("working")
}

function ended(session) {
  if (!running.delete(session)) return
  waiting.clear()
  const title = titles.get(session)
  report("done", ...(title ? ["--msg", title] : []))
}

function failed(session, error) {
  if (!running.delete(session)) return
  waiting.clear()
  if (error?.name === "MessageAbortedError") report("idle")
  else report("error", ...(error?.data?.message ? ["--msg", error.data.message] : []))
}

export const Agentwrap = async () => ({
  event: async ({ event }) => {
    const of = event.properties ?? {}
    const mine = !children.has(of.sessionID)
    switch (event.type) {
      case "session.created":
      case "session.updated":
        if (of.info?.parentID) children.add(of.info.id)
        if (of.info?.title && !of.info.title.startsWith("New session")) titles.set(of.info.id, of.info.title)
        break
      case "session.status":
        if (mine && of.status?.type === "busy" && !running.has(of.sessionID)) {
          running.add(of.sessionID)
          report("working")
        }
        break
      case "session.idle":
        // An error may be told a moment later.
        if (running.has(of.sessionID)) setTimeout(ended, 100, of.sessionID)
        break
      case "session.error":
        failed(of.sessionID, of.error)
        break
      case "message.updated": // not every turn that is stopped is told as an error
        if (of.info?.role === "assistant" && of.info.error) failed(of.info.sessionID, of.info.error)
        break
      case "permission.asked":
      case "permission.updated": {
        const what = [of.permission ?? of.title, ...(of.patterns ?? [])]
        blocked("permission", of.id, what.filter(Boolean).join(": "))
        break
      }
      case "question.asked":
        blocked("question", of.id, of.questions?.[0]?.question)
        break
      case "permission.replied":
      case "question.replied":
      case "question.rejected":
        answered(of.requestID ?? of.permissionID)
        break
    }
  },
})
"""


def _matched(table: tuple[tuple[str, str, str], ...], *, timeout: int) -> dict[str, list[Any]]:
    """Hooks by event, in groups with a matcher, as several agents have them."""
    found: dict[str, list[Any]] = {}
    for event, matcher, command in table:
        entry = {"hooks": [{"type": "command", "command": _safe(command), "timeout": timeout}]}
        found.setdefault(event, []).append({"matcher": matcher, **entry} if matcher else entry)
    return found


def _either(text: str, one: str, other: str) -> str:
    """A command for a shell: `one` where `text` is in its input, else `other`."""
    return f"i=$(cat); case $i in *{shlex.quote(text)}*) {one};; *) {other};; esac"


def _fed(command: str) -> str:
    """`command` with the input that `_either` has looked at."""
    return f'printf %s "$i" | {command}'


def _safe(command: str) -> str:
    """`command` for a shell, so that an agent sees no failure also where agentwrap is no longer there."""
    return f"{{ {command}; }} 2>/dev/null || true" if ";;" in command else f"{command} 2>/dev/null || true"


def _json(value: object) -> str:
    import json

    return json.dumps(value, indent=2) + "\n"


def _quoted(words: str) -> str:
    """A string as JSON, TOML, YAML and JavaScript alike read it."""
    import json

    return json.dumps(words)
