"""The verbs as typer sees them: signatures and help texts, nothing else. The one importer of typer.

What a verb does is in `commands`, imported when it is called.
"""

from __future__ import annotations

import typer

from agentwrap.errors import UsageError

app = typer.Typer(
    name="agentwrap",
    add_completion=False,  # `init` prints completions that start no process
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

# Click's own exceptions: typer brings its own click or uses the one installed, and re-exports only this one.
_ClickUsageError: type[Exception] = typer.BadParameter.__mro__[1]
_ClickException: type[Exception] = typer.BadParameter.__mro__[2]

_INTERRUPTED = 130  # what typer makes of Ctrl-C; no verb returns it

_SESSION = typer.Argument(
    None, metavar="[SESSION]", show_default=False, help="Name, label or agent of a session, or how it begins."
)


def main(words: list[str]) -> int:
    """Run the verb words[0].

    Raises:
        AgentwrapError: the words cannot be understood, or the verb failed.
        KeyboardInterrupt: the user ended it.
    """
    try:
        code = app(words, prog_name="agentwrap", standalone_mode=False)
    except _ClickUsageError as error:
        raise UsageError(_complaint(words[0], error)) from None
    except _ClickException as error:
        raise UsageError(f"{words[0]}: {error}") from None
    except typer.Abort:
        raise KeyboardInterrupt from None
    except SystemExit as error:  # how typer ends where nobody reads what it prints
        if error.code == 1:
            raise BrokenPipeError from None
        raise
    if code == _INTERRUPTED:
        raise KeyboardInterrupt
    return code if isinstance(code, int) else 0


def _complaint(verb: str, error: BaseException) -> str:
    message = error.format_message() if hasattr(error, "format_message") else str(error)
    message = " ".join(str(message).split()).rstrip(".")
    return f"{verb}: {message[:1].lower()}{message[1:]}; see agentwrap {verb} --help"


@app.command("list")
def _list(
    *,
    as_json: bool = typer.Option(False, "--json", help="An array of session objects."),
) -> int:
    """One row for each live session, the one that needs you most first."""
    from agentwrap.commands.list import list_sessions

    return list_sessions(as_json=as_json)


@app.command("status")
def _status(
    session: str | None = _SESSION,
    *,
    short: bool = typer.Option(
        False, "--short", help="The summary's text only, like ⚠1 ●2; nothing when nothing runs."
    ),
    as_json: bool = typer.Option(False, "--json", help="The session as an object; null when nothing runs."),
) -> int:
    """The session that needs you most, in one line."""
    from agentwrap.commands.status import status

    return status(session, as_short=short, as_json=as_json)


@app.command("watch")
def _watch(
    *,
    as_json: bool = typer.Option(False, "--json", help="One session object a line for each change."),
) -> int:
    """A live table of the sessions; q or Ctrl-C ends it."""
    from agentwrap.commands.watch import watch

    return watch(as_json=as_json)


@app.command("wait")
def _wait(
    session: str | None = _SESSION,
    *,
    until: str = typer.Option(
        "blocked,done,error,exited", "--until", metavar="STATES", help="States to wait for, joined by commas."
    ),
    timeout: float | None = typer.Option(
        None, "--timeout", metavar="S", show_default=False, help="Seconds to wait at most."
    ),
    as_json: bool = typer.Option(False, "--json", help="Print the session as an object: which one it was."),
) -> int:
    """Wait until a session is in a state, and print it; without SESSION, until any is.

    Exit code: 0 when it is reached, 1 when the session is gone without reaching it, 124 after the timeout.
    """
    from agentwrap.commands.wait import wait

    return wait(session, until=until, timeout=timeout, as_json=as_json)


@app.command("explain")
def _explain(
    session: str | None = _SESSION,
    *,
    as_json: bool = typer.Option(False, "--json", help="One JSON object a line for each event."),
) -> int:
    """Why a session is in its state, and why it notified or not: its last 200 events."""
    from agentwrap.commands.explain import explain

    return explain(session, as_json=as_json)


@app.command("replay")
def _replay(
    file: str = typer.Argument(..., metavar="FILE", help="A recording, asciicast v2."),
    *,
    as_json: bool = typer.Option(False, "--json", help="One JSON object a line for each event."),
    agent: str | None = typer.Option(
        None,
        "--agent",
        metavar="NAME",
        show_default=False,
        help="The agent recorded, if it is not recognised.",
    ),
) -> int:
    """Run a recording through the engine that watches a live session."""
    from agentwrap.commands.replay import replay

    return replay(file, as_json=as_json, agent=agent)


@app.command("doctor")
def _doctor(
    *,
    notify: bool = typer.Option(False, "--notify", help="Send a notification through each channel."),
    as_json: bool = typer.Option(False, "--json", help="As a JSON object."),
) -> int:
    """Check this terminal, the agents found, and each notification channel."""
    from agentwrap.commands.doctor import doctor

    return doctor(notify=notify, as_json=as_json)


@app.command("init")
def _init(
    shell: str = typer.Argument(..., metavar="SHELL", help="bash, zsh or fish."),
    *,
    alias: bool = typer.Option(False, "--alias", help="Functions that wrap the agents found, too."),
) -> int:
    """Code for a shell to evaluate: a prompt segment, and completion.

    bash, in ~/.bashrc: eval "$(agentwrap init bash)".
    zsh, in ~/.zshrc: eval "$(agentwrap init zsh)".
    fish, in ~/.config/fish/config.fish: agentwrap init fish | source.
    What it does is undone by agentwrap_off.
    """
    from agentwrap.commands.init import init

    return init(shell, alias=alias)


@app.command("hooks")
def _hooks(
    agent: str = typer.Argument(
        ..., metavar="AGENT", help="claude, codex, opencode, gemini, copilot or hermes."
    ),
) -> int:
    """Settings that make an agent report that does not by itself; printed, never written.

    They go to standard output, and where to put them is said on standard error. Where an agent reports by
    itself, its hooks change nothing.
    """
    from agentwrap.commands.hooks import hooks

    return hooks(agent)


@app.command("reset")
def _reset() -> int:
    """Undo the terminal modes that agents leave on."""
    from agentwrap.commands.reset import reset

    return reset()


@app.command("demo")
def _demo() -> int:
    """A scripted agent, wrapped: every state in 20 seconds.

    Options for wrapping stand before it: agentwrap --record demo.cast demo
    """
    from agentwrap.commands.demo import demo
    from agentwrap.options import Options

    return demo(Options())


@app.command("path")
def _path() -> int:
    """The state directory."""
    from agentwrap.commands.path import path

    return path()
