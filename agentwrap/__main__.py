"""The command line: split by hand, so that wrapping a command pays for nothing it does not use.

A command goes to `commands.run`; the verbs that prompts and hooks call are parsed here, too; all others go to
`cli`. Errors become one line on standard error here, and nowhere else.
"""

from __future__ import annotations

import os
import sys

from agentwrap.errors import AgentwrapError, UsageError
from agentwrap.options import Options

VERBS = (
    "list",
    "status",
    "watch",
    "wait",
    "report",
    "explain",
    "replay",
    "doctor",
    "init",
    "hooks",
    "reset",
    "demo",
    "path",
)

WRAPPING = "demo"
"""The verb that wraps, and so takes the options for that."""

USAGE = """\
usage: agentwrap [OPTIONS] COMMAND [ARG...]
       agentwrap run [OPTIONS] [--] COMMAND [ARG...]
       agentwrap VERB ...
"""

HELP = (
    USAGE
    + """
Run COMMAND as it is, and know when it works, waits for you, is done or failed.
From COMMAND on, every word is the command's own. `run` is for a command that has the name of a verb.

options:
  --notify LIST     channels in order of preference: auto, none, or any of
                    desktop, terminal, command, bell (desktop,bell)
  --no-inject       add no options or environment to an agent
  --agent NAME      treat COMMAND as this agent: claude, codex, pi, opencode, crush
  --name TEXT       label of the session
  --record FILE     write an asciicast v2 of the session; --record-input: what is typed, too
  --config FILE     read this configuration
  --version         show the version
  -h, --help        show this

verbs (agentwrap VERB --help says more):
  list              live sessions, one a line (--json)
  status [SESSION]  the session that needs you most (--short, --json)
  watch             a live table of sessions (--json)
  wait [SESSION]    wait until a session needs you, is done or gone
  explain [SESSION] why a session is in its state, why it notified or not
  replay FILE       run a recording through the same engine
  report STATE      report a status to the terminal, for scripts and hooks
  doctor            check this terminal, the agents and the channels (--notify)
  init SHELL        code for bash, zsh or fish: a prompt segment, aliases, completion
  hooks AGENT       settings that make an agent report
  reset             undo terminal modes that were left on
  demo              a scripted agent, wrapped
  path              the state directory

examples:
  agentwrap claude
  agentwrap --name api --notify desktop,bell codex resume --last
  agentwrap make -j8
"""
)

# Options that take a value, and what it is called in messages.
_VALUES = {
    "--notify": "LIST",
    "--agent": "NAME",
    "--name": "TEXT",
    "--record": "FILE",
    "--config": "FILE",
}
OF_VERBS = ("--json", "--short", "--until", "--timeout", "--alias")
"""Options that people put before the verb they are for."""

_FLAGS = ("--no-inject", "--record-input", "--version", "--help", "-h")

LONGEST_NAME = 200  # characters of --name: it is shown in one line, with other things


def main(argv: list[str] | None = None) -> int:
    """Do what the command line says.

    Args:
        argv: the words behind the program's name; by default those of this process.

    Returns:
        The exit code.
    """
    words = sys.argv[1:] if argv is None else argv
    try:
        return _main(words)
    except AgentwrapError as error:
        _say(error.line)
        return error.exit_code
    except BrokenPipeError:
        # Whoever read our output has seen enough. Nothing may be left for the interpreter to flush.
        _discard_output()
        return 141
    except KeyboardInterrupt:
        from agentwrap.commands import interrupt

        _discard_output()
        return interrupt.die()
    except Exception as error:  # noqa: BLE001 - a traceback helps no user; the log has it
        _discard_output()
        return _internal_error(error)


def _main(words: list[str]) -> int:
    action, options, rest = split(words)
    if action == "usage":
        _say(USAGE.rstrip() + "\nTry: agentwrap --help")
        return 2
    if action == "help":
        return _print(HELP)
    if action == "version":
        from agentwrap import __version__

        return _print(f"agentwrap {__version__}\n")
    if action == "command":
        from agentwrap.commands.run import wrap

        return wrap(options, rest)
    return _verb(rest, options, words[: len(words) - len(rest)])


def split(words: list[str]) -> tuple[str, Options, list[str]]:
    """Split a command line.

    Returns:
        What to do (usage, help, version, command or verb), the options, and the words from the command or
        verb on.

    Raises:
        UsageError: an unknown option, or one without its value.
    """
    options = Options()
    given: list[str] = []
    running = False
    index = 0
    while index < len(words):
        word = words[index]
        index += 1
        if word == "--":
            if index == len(words):
                raise UsageError("no COMMAND after --; see agentwrap --help")
            return "command", options, words[index:]
        if not word.startswith("-") or word == "-":
            if word == "run" and not running:
                running = True
                continue
            if word in VERBS and not running:
                _check_verb_options(word, given)
                return "verb", options, words[index - 1 :]
            if not word:
                raise UsageError("the COMMAND is empty; see agentwrap --help")
            return "command", options, words[index - 1 :]
        option, equals, value = word.partition("=")
        if option in _VALUES:
            if not equals:
                if index == len(words):
                    raise UsageError(f"{option} needs {_VALUES[option]}; see agentwrap --help")
                value = words[index]
                index += 1
            _set(options, option, value)
        elif option not in _FLAGS:
            raise UsageError(f"unknown option {option}{_suggestion(option)}; see agentwrap --help")
        elif equals:
            raise UsageError(f"{option} takes no value")
        elif option in ("-h", "--help"):
            return "help", options, []
        elif option == "--version":
            return "version", options, []
        elif option == "--no-inject":
            options.inject = False
        else:
            options.record_input = True
        given.append(option)
    if running or given:
        raise UsageError("no COMMAND; see agentwrap --help")
    return "usage", options, []


def _set(options: Options, option: str, value: str) -> None:
    if not value:
        raise UsageError(f"{option} needs {_VALUES[option]}; see agentwrap --help")
    if option == "--notify":
        from agentwrap.config import parse_channels

        options.notify = parse_channels(value)
    elif option == "--agent":
        options.agent = value
    elif option == "--name":
        options.name = value[:LONGEST_NAME]
    elif option == "--record":
        options.record = value
    else:
        options.config = value


def _check_verb_options(verb: str, given: list[str]) -> None:
    for option in given:
        if option != "--config" and verb != WRAPPING:
            raise UsageError(
                f"{option} is for wrapping, not for `{verb}`; "
                f"to wrap a command of that name: agentwrap run {option} … {verb}"
            )


def _suggestion(option: str) -> str:
    import difflib

    if option in OF_VERBS:
        return f": it stands behind the verb, agentwrap VERB {option}"
    near = difflib.get_close_matches(option, [*_VALUES, *_FLAGS], 1)
    return f" (did you mean {near[0]}?)" if near else ""


def _verb(words: list[str], options: Options, before: list[str]) -> int:
    verb = words[0]
    if verb == "report":
        # First of all: it must neither cost time nor break an agent's hook, whatever is configured.
        from agentwrap.commands import report

        return report.main(words[1:])
    from agentwrap.commands import interrupt

    interrupt.hear()
    if verb == "reset":  # a broken terminal is mended, whatever is configured
        return _flushed(_run(words))
    if sys.stdout is not None and hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")  # a locale that has no such character is no reason to fail
    from agentwrap import config

    # These two are of use all the same: one shows what is wrong, without the other a shell has no prompt.
    lenient = verb in ("doctor", "init")
    mistakes = config.load(os.environ, options.config, strict=not lenient)[1]
    if options.config is not None:
        os.environ["AGENTWRAP_CONFIG"] = options.config
    if words == [WRAPPING]:
        from agentwrap.commands import demo

        code = demo.demo(options, before)
    else:
        code = _flushed(_run(words))
    if mistakes:
        _say(mistakes[0])
    return 2 if mistakes else code


def _run(words: list[str]) -> int:
    if words == ["status", "--short"]:
        from agentwrap.commands import status

        return status.short()
    if words == ["path"]:
        from agentwrap.commands import path

        return path.path()
    from agentwrap import cli

    return cli.main(words)


def _flushed(code: int) -> int:
    """`code`, after a write error of standard output had its chance to be seen."""
    if sys.stdout is not None:
        try:
            sys.stdout.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            _discard_output()
            _say(f"agentwrap: cannot write: {error.strerror}")
            return 1
    return code


def _print(text: str) -> int:
    if sys.stdout is not None:
        sys.stdout.write(text)
    return _flushed(0)


def _say(line: str) -> None:
    """One line on standard error, if there is one."""
    try:
        os.write(2, line.encode("utf-8", "replace") + b"\n")
    except OSError:
        pass  # closed by the caller, who does not want to know


def _discard_output() -> None:
    """Let nothing more come out, also not when the interpreter ends."""
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.close(null)
    except OSError:
        pass  # no descriptor left: then there is nothing buffered that could be written either


def _internal_error(error: Exception) -> int:
    line = AgentwrapError(f"internal error: {type(error).__name__}: {error}").line
    log = os.environ.get("AGENTWRAP_LOG")
    if log:
        import traceback

        text = "".join(traceback.format_exception(error))
        try:
            fd = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            os.write(fd, text.encode("utf-8", "replace"))
            os.close(fd)
        except OSError:
            pass  # the line is still said
    else:
        line += " (AGENTWRAP_LOG=FILE keeps the details; please report it)"
    _say(line)
    return 1


if __name__ == "__main__":
    sys.exit(main())
