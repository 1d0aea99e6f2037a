from __future__ import annotations

import json

import pytest

from agentwrap import agents
from agentwrap.errors import UsageError

NOTICES = 'tui.notifications=["agent-turn-complete","approval-requested","plan-mode-prompt","async-question"]'
OPTIONS = [
    "-c",
    NOTICES,
    "-c",
    'tui.notification_method="osc9"',
    "-c",
    'tui.notification_condition="always"',
]


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("claude", "claude"),
        ("/opt/bin/claude --resume", "claude"),
        ("./node_modules/.bin/codex resume --last", "codex"),
        ("pi", "pi"),
        ("opencode", "opencode"),
        ("crush", "crush"),
        ("make", "generic"),
        ("claude-squad", "generic"),
        ("cat claude", "generic"),
        ("bash -c codex", "generic"),
        ("npx @anthropic-ai/claude-code", "claude"),
        ("npx -y @openai/codex@latest resume", "codex"),
        ("npx --yes --package @openai/codex codex", "codex"),
        ("npx -p=x codex@0.171.0", "codex"),
        ("bunx opencode-ai@1.18.33", "opencode"),
        ("pnpm dlx @earendil-works/pi-coding-agent", "pi"),
        ("pnpm codex", "generic"),
        ("yarn dlx @openai/codex", "codex"),
        ("npm exec -- @openai/codex", "codex"),
        ("npm run codex", "generic"),
        ("uvx codex", "codex"),
        ("node /usr/lib/node_modules/@openai/codex/bin/codex.js", "codex"),
        ("node --require x.js /usr/local/bin/claude -p", "claude"),
        ("node codex.js", "generic"),
        ("node -e codex", "generic"),
        ("bun run /x/node_modules/opencode-ai/bin/opencode.js", "opencode"),
        ("bun x opencode-ai", "opencode"),
        ("deno run -A claude", "claude"),
        ("python3.12 -m codex", "codex"),
        ("python -c codex", "generic"),
        ("python codex.py", "generic"),
        ("env codex", "codex"),
        ("env -u X -i A=1 B=c codex", "codex"),
        ("/usr/bin/env -- codex", "codex"),
        ("env A=1", "generic"),
        ("mise exec node@22 -- codex", "codex"),
        ("mise x -- claude", "claude"),
        ("asdf exec codex", "codex"),
        ("volta run --node 22 codex", "codex"),
        ("nvm exec 22 codex", "codex"),
        ("nvm-exec codex", "codex"),
        ("fnm exec --using=22 codex", "codex"),
        ("env A=1 npx -y @openai/codex", "codex"),
        ("nice -n 5 mise x -- env B=1 node /x/@openai/codex/bin/codex.js", "codex"),
        ("npx", "generic"),
        ("env", "generic"),
        ("node", "generic"),
        ("mise exec", "generic"),
        ("npx -p", "generic"),
    ],
)
def test_an_agent_is_recognised_through_what_starts_it(command, name):
    assert agents.recognise(command.split()).name == name


def test_env_with_its_words_in_one():
    for argv in (["env", "-S", "A=1 codex resume"], ["env", "-Scodex"], ["env", "--split-string=codex x"]):
        assert agents.recognise(argv).name == "codex"
        # nothing can be put between words that stand in one
        assert agents.launch(agents.by_name("codex"), argv, {}, inject=True) == (argv, {})
    assert agents.recognise(["env", "-S", ""]).name == "generic"


def test_no_command_is_no_agent():
    assert agents.recognise([]).name == "generic"


def test_a_riddle_of_launchers_ends():
    assert agents.recognise(["env"] * 1000 + ["codex"]).name == "generic"


def test_an_agent_can_be_named_and_a_wrong_name_says_which_there_are():
    assert agents.recognise(["make"], "codex").name == "codex"
    assert agents.recognise(["codex"], "generic").name == "generic"
    with pytest.raises(UsageError, match="claude, codex, pi, opencode, crush, generic"):
        agents.recognise(["make"], "emacs")


class Configured:
    def __init__(self, **commands):
        self.agents = {name: type("A", (), {"commands": value})() for name, value in commands.items()}


def test_the_configuration_says_what_an_agents_commands_are():
    settings = Configured(codex=("cdx", "codex-nightly"), claude=None)
    assert agents.recognise(["/opt/cdx"], None, settings).name == "codex"
    assert agents.recognise(["env", "codex-nightly"], None, settings).name == "codex"
    assert agents.recognise(["codex"], None, settings).name == "generic"
    assert agents.recognise(["claude"], None, settings).name == "claude"


def test_the_reporting_name_finds_the_profile():
    assert agents.by_app("claude-code").name == "claude"
    assert agents.by_app("codex").name == "codex"
    assert agents.by_app("pi").name == "pi"
    assert agents.by_app("nobody") is None


def test_titles():
    titles = [profile.title for profile in agents.PROFILES]
    assert titles == ["Claude Code", "Codex", "pi", "OpenCode", "Crush"]
    assert agents.GENERIC.title is None


# --- codex --------------------------------------------------------------------------------------


def launched(command, environ=None, agent="codex", *, inject=True):
    argv = command if isinstance(command, list) else command.split()
    return agents.launch(agents.by_name(agent), argv, environ or {}, inject=inject)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("codex", ""),
        ("codex", "resume --last"),
        ("codex", "fork"),
        ("codex", "agents"),
        ("codex", "fix the exec command"),
        ("codex", "-m gpt-6 -a on-request"),
        ("codex", "-m exec resume"),
        ("codex", "--profile review"),
        ("codex", "--cd exec"),
        ("codex", "-- exec"),
        ("codex", "-c model=x"),
        ("codex", "-c tui.theme=x"),
        ("codex", "-c tuinotifications=x"),
        ("codex", "--strict-config"),
        ("npx -y @openai/codex@latest", "resume"),
        ("env A=1 codex", "-m x"),
        ("node /x/node_modules/@openai/codex/bin/codex.js", "hello"),
        ("./my-codex", "hello"),
    ],
)
def test_codex_gets_its_options_before_the_users_words(before, after):
    argv, added = launched(f"{before} {after}")
    assert argv == [*before.split(), *OPTIONS, *after.split()]
    assert added == {}


@pytest.mark.parametrize(
    "command",
    [
        "codex exec hello",
        "codex e hello",
        "codex -m x exec hello",
        "codex --model=x review",
        "codex login",
        "codex mcp list",
        "codex doctor",
        "codex apply",
        "codex a",
        "codex completion zsh",
        "codex queue x y",
        "codex --help",
        "codex -h",
        "codex --version",
        "codex -V",
        "codex resume --help",
        "codex help",
        "npx @openai/codex exec x",
    ],
)
def test_codex_without_its_screen_is_left_alone(command):
    assert launched(command) == (command.split(), {})


@pytest.mark.parametrize(
    "words",
    [
        ["-c", "tui.notifications=false"],
        ["-c", "tui.notification_method=bel"],
        ["--config", "tui.notification_condition=unfocused"],
        ["--config=tui.notifications=true"],
        ["-c=tui.notifications=true"],
        ["-ctui.notifications=true"],
        ["-c", "tui={notifications=true}"],
        ["resume", "-c", "tui.notifications=false"],
        ["-c", " tui.notifications = false"],
    ],
)
def test_the_users_own_notification_options_win(words):
    assert launched(["codex", *words]) == (["codex", *words], {})


def test_nothing_is_added_when_that_is_not_wanted():
    assert launched("codex", inject=False) == (["codex"], {})
    assert launched("pi", agent="pi", inject=False) == (["pi"], {})
    assert agents.private_file(agents.by_name("opencode"), ["opencode"], {}, inject=False) is None


@pytest.mark.parametrize(
    "command", ["bash my-codex.sh", "python codex.py", "npx cdx", "env X=1 cdx", "node x.js"]
)
def test_nothing_is_put_into_a_launchers_own_words(command):
    assert launched(command) == (command.split(), {})


# --- pi, opencode -------------------------------------------------------------------------------


def test_pi_reports_without_being_asked_unless_the_user_decided():
    assert launched("pi", agent="pi") == (["pi"], {"PI_PROGRAM_STATUS": "1"})
    for value in ("0", "1", ""):
        assert launched("pi", {"PI_PROGRAM_STATUS": value}, agent="pi") == (["pi"], {})


def test_opencode_gets_its_attention_switched_on_in_a_private_file():
    opencode = agents.by_name("opencode")
    variable, content = agents.private_file(opencode, ["opencode"], {}, inject=True)
    assert variable == "OPENCODE_TUI_CONFIG"
    assert json.loads(content) == {"attention": {"enabled": True, "sound": False}}
    assert agents.private_file(opencode, ["opencode", "attach", "http://x"], {}, inject=True)
    assert agents.private_file(opencode, ["opencode", "--prompt", "run"], {}, inject=True)
    assert agents.private_file(opencode, ["opencode", "some/run"], {}, inject=True)


@pytest.mark.parametrize(
    "words", ["run hello", "serve", "web", "auth login", "--version", "-v", "-h", "-m x run y"]
)
def test_opencode_without_its_screen_gets_none(words):
    argv = ["opencode", *words.split()]
    assert agents.private_file(agents.by_name("opencode"), argv, {}, inject=True) is None


def test_the_users_own_file_wins():
    opencode = agents.by_name("opencode")
    assert agents.private_file(opencode, ["opencode"], {"OPENCODE_TUI_CONFIG": "/x"}, inject=True) is None


@pytest.mark.parametrize("name", ["claude", "codex", "pi", "crush", "generic"])
def test_no_other_agent_needs_a_file(name):
    assert agents.private_file(agents.by_name(name), ["x"], {}, inject=True) is None


# --- names --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("argv", "name"),
    [
        (["claude"], "claude"),
        (["npx", "@openai/codex"], "codex"),
        (["/usr/bin/make"], "make"),
        (["./my tool (2)"], "my-tool--2-"),
        (["größe"], "gr--e"),
        (["x" * 100], "x" * 64),
        (["g++"], "g++"),
        (["/"], "command"),
        ([], "command"),
    ],
)
def test_the_agent_part_of_a_sessions_name(argv, name):
    assert agents.session_name(agents.recognise(argv), argv) == name


@pytest.mark.parametrize(
    "word", ["sh", "bash", "-zsh", "/bin/fish", "dash", "ksh", "nu", "/x/xonsh", "-/bin/bash"]
)
def test_shells(word):
    assert agents.is_shell([word])


@pytest.mark.parametrize("argv", [["csh"], ["make"], ["claude"], ["bash.exe"], []])
def test_no_shells(argv):
    assert not agents.is_shell(argv)
