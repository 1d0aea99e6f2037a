"""Wrap a command: decide whether and how, start it, and join the pump with the session's understanding.

The order matters for speed: what must be known to start the command comes first, then the fork, and all else
is imported while the command starts.
"""

from __future__ import annotations

import errno
import gc
import os
import sys
import time

from agentwrap import errors
from agentwrap.host import child, guard, leader, lines, publisher, signals, terminal
from agentwrap.host.signals import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentwrap.agents.profile import Profile
    from agentwrap.commands.client import Client
    from agentwrap.config import Settings
    from agentwrap.host import recorder as recorder_module
    from agentwrap.host.statefile import StateDir
    from agentwrap.options import Options


TIOCGSID = {"linux": 0x5429, "darwin": 0x40047463}
"""The request for a terminal's session, which the termios module lacks, by platform: <asm-generic/ioctls.h>,
<sys/ttycom.h>."""


def wrap(options: Options, command: list[str]) -> int:
    """Run `command` as the options say; does not return where it was executed bare.

    Returns:
        The exit code to end with. A command that died by a signal makes this process die by it.

    Raises:
        AgentwrapError: wrong usage, a file that cannot be opened, or a command that cannot be started.
    """
    gc.disable()  # what is made now stays
    from agentwrap import agents

    environ = original_environment()
    # Options and configuration are judged first: a mistake in them runs nothing.
    settings = load_settings(environ, options)
    if options.agent is not None:
        agents.recognise(command, options.agent)
    if not _open(2):
        # Or the first file we open becomes standard error. It is closed on exec: the command finds none.
        os.open(os.devnull, os.O_RDWR)
    record = open_recording(options)
    path = locate(command[0], environ)
    ignored = signals.ignored_by_caller()
    wrapped = environ.get("AGENTWRAP") != "0" and os.isatty(0) and os.isatty(1)
    if not wrapped:
        return execute_bare(child.Launch(path, command, environ, ignored=ignored))
    profile = agents.recognise(command, options.agent, settings)
    inject = options.inject and settings.injects(profile.name)
    argv, added = agents.launch(profile, command, environ, inject=inject)
    if nested(environ):
        return execute_bare(child.Launch(path, argv, {**environ, **added}, ignored=ignored))
    plan = Plan(path, command, argv, environ, added, ignored)
    plan.file = agents.private_file(profile, command, environ, inject=inject)
    return run(options, settings, profile, plan, record)


class Plan:
    """What was decided about the command.

    Attributes:
        path: the file to execute.
        command: its words as typed.
        argv: its words with what is injected.
        environ: our caller's environment.
        added: what is added to it.
        ignored: signals the command finds ignored.
        file: a variable and the text of the private file it is to name, or None.
    """

    __slots__ = ("added", "argv", "command", "environ", "file", "ignored", "path")

    def __init__(
        self,
        path: str,
        command: list[str],
        argv: list[str],
        environ: dict[str, str],
        added: dict[str, str],
        ignored: tuple[int, ...],
    ) -> None:
        self.path = path
        self.command = command
        self.argv = argv
        self.environ = environ
        self.added = added
        self.ignored = ignored
        self.file: tuple[str, str] | None = None

    def bare(self) -> child.Launch:
        """The command with nothing of ours."""
        return child.Launch(self.path, self.command, self.environ, ignored=self.ignored)


# ---- what must be known first ----


def original_environment() -> dict[str, str]:
    """Our caller's environment, without what the interpreter puts in at start-up.

    In the C locale it sets LC_CTYPE for itself and its children (PEP 538); the command must not see that.
    Linux keeps the block we were given; elsewhere the value tells, where no locale is set at all.
    """
    environ = dict(os.environ)
    if environ.get("LC_CTYPE") not in ("C.UTF-8", "C.utf8", "UTF-8") or environ.get("LC_ALL"):
        return environ
    try:
        with open("/proc/self/environ", "rb") as file:
            given = b"\0" + file.read()
    except OSError:
        coerced = environ.get("LANG", "C") in ("", "C", "POSIX")
    else:
        coerced = b"\0LC_CTYPE=" not in given
    if coerced:
        del environ["LC_CTYPE"]
    return environ


def load_settings(environ: Mapping[str, str], options: Options) -> Settings:
    """The configuration; its mistakes are lines on standard error, and the defaults for those keys.

    Raises:
        ConfigError: the file named by `--config` cannot be opened.
    """
    from agentwrap import config

    settings, warnings = config.load(environ, options.config, strict=False)
    for warning in warnings:
        say(warning)
    if options.notify is not None:
        settings.channels = tuple(options.notify)
    settings.inject = options.inject
    return settings


def say(line: str) -> None:
    """One line on standard error, if there is one."""
    try:
        os.write(2, errors.one_line(line).encode("utf-8", "replace") + b"\n")
    except OSError:
        pass  # a closed standard error is the caller's wish


def open_recording(options: Options) -> int | None:
    """The file to record to, made private.

    Raises:
        UsageError: it cannot be opened.
    """
    if options.record is None:
        return None
    try:
        fd = os.open(options.record, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        if os.fstat(fd).st_uid == os.geteuid() and os.path.isfile(options.record):
            os.fchmod(fd, 0o600)  # one that was there before may have been readable to others
    except OSError as error:
        raise errors.UsageError(f"cannot record to {options.record}: {error.strerror}") from None
    return fd


def locate(name: str, environ: Mapping[str, str]) -> str:
    """The file to execute for the command `name`.

    Raises:
        NotFound: there is none.
        CannotExecute: there is one that is no program.
    """
    path, problem = child.find(name, environ)
    if problem == errno.EACCES:
        raise errors.CannotExecute(
            f"{path}: {'is a directory' if os.path.isdir(path or '') else 'permission denied'}"
        )
    if problem or path is None:
        raise errors.NotFound(f"{name}: {advice(name)}")
    return path


def advice(name: str) -> str:
    """Why a command was not found, and the way out."""
    if "/" in name:
        return "no such file"
    from agentwrap.__main__ import VERBS

    if name in ("help", "version"):
        return f"command not found (did you mean `agentwrap --{name}`?)"
    if len(name) > 2:
        import difflib

        close = difflib.get_close_matches(name, VERBS, 1)
        if close:
            return f"command not found (did you mean `agentwrap {close[0]}`?)"
    return "command not found; is it installed and in PATH?"


def nested(environ: Mapping[str, str]) -> bool:
    """Whether our terminal is the one that an outer agentwrap gave to its command.

    Its session leader then is a child of the process that AGENTWRAP_SESSION names. Where the system does
    not tell parents, the state file's command does, if it is in the same session.
    """
    session = environ.get("AGENTWRAP_SESSION", "")
    pump = session.rpartition("-")[2]
    if not pump.isdecimal():
        return False
    import fcntl

    try:
        answer = fcntl.ioctl(0, TIOCGSID[sys.platform], bytes(4))
    except (OSError, KeyError):
        return False
    sid = int.from_bytes(answer, sys.byteorder)
    try:
        with open(f"/proc/{sid}/stat", "rb") as file:
            return file.read(512).rpartition(b")")[2].split()[1] == pump.encode()
    except (OSError, IndexError):
        pass
    try:
        with open(environ.get("AGENTWRAP_STATE_FILE", ""), "rb") as file:
            data = file.read(4096)
        start = data.index(b'"child_pid": ') + 13
        number = data[start : start + 12].split(b",")[0]
        return os.getsid(int(number)) == sid
    except (OSError, ValueError):
        return False


def execute_bare(launch: child.Launch) -> int:
    """Execute without a terminal of ours. Returns only by raising.

    Raises:
        CannotExecute: the system refuses it.
    """
    try:
        child.bare(launch)
    except OSError as error:
        raise refused(launch.argv[0], error.errno or 0) from None


def refused(name: str, number: int) -> errors.AgentwrapError:
    """The error for a command that the system would not execute."""
    if number == errno.ENOENT:
        return errors.NotFound(f"{name}: no such file, or its interpreter is missing")
    return errors.CannotExecute(f"{name}: {os.strerror(number).lower()}")


# ---- the session ----


def run(options: Options, settings: Settings, profile: Profile, plan: Plan, record: int | None) -> int:
    """Start the command on a terminal of its own and see it to its end.

    Returns:
        The exit code.

    Raises:
        AgentwrapError: the command cannot be executed.
    """
    from agentwrap import agents
    from agentwrap.core.modes import Ledger

    session = f"{options.called or agents.session_name(profile, plan.command)}-{os.getpid()}"
    state = open_state(plan.environ)
    work = publisher.Publisher(plan.environ, session, state)
    given = {**plan.environ, **plan.added, "AGENTWRAP_SESSION": session}
    given.pop("AGENTWRAP_STATE_FILE", None)
    if state is not None:
        given["AGENTWRAP_STATE_FILE"] = state.session_path(session)
    if plan.file is not None:
        private = write_private(state, session, plan.file[1])
        if private is not None:
            given[plan.file[0]] = private
            work.private.append(private)
    launch = child.Launch(
        plan.path, plan.argv, given, ignored=plan.ignored, stderr_is_terminal=_same_terminal(1, 2)
    )
    memory = guard.UndoMemory(Ledger.FULL_RESET)
    recording = start_recording(record)
    gc.freeze()  # and is not looked through again, so that its pages stay shared
    gc.enable()
    mask = signals.block_all()
    try:
        user = terminal.Terminal()
        foreground = user.foreground()
        master, slave = os.openpty()
        attributes = terminal.get_attributes(user.read_fd)
        if attributes is not None:
            terminal.set_attributes(slave, attributes)
        inner = terminal.get_attributes(slave)  # before the command can change them
        size = terminal.get_size(user.write_fd)
        if size is not None:
            terminal.set_size(slave, size)
        reading, writing = leader.fork(
            launch,
            master,
            slave,
            user.write_fd,
            memory,
            work,
            agents,
            foreground=foreground,
            mask=mask,
            close=recording,
        )
    except (OSError, terminal.VanishedError) as error:
        signals.unblock(mask)
        reason = str(error.strerror) if isinstance(error, OSError) else "the terminal has hung up"
        say(f"agentwrap: no terminal or process ({reason.lower()}), so {plan.command[0]} runs without it")
        return execute_bare(plan.bare())
    os.close(slave)
    pipe = signals.SignalPipe()
    pipe.catch((*signals.FORWARDED, signal.SIGWINCH))
    writer = lines.LineWriter(writing)
    ahead = b""
    if foreground:
        ahead = user.typed_ahead()
        # from before it is ours to after: we may be killed at any moment
        memory.arm(armed=True)
        memory.arm(armed=user.make_raw(lambda saved, made: leader.announce(writer, saved, made)))
    signals.unblock(mask)

    # the command is starting by now
    from agentwrap.host import title
    from agentwrap.host.pump import Pump, Tapless

    title.take(plan.command)

    client: Client | Tapless
    recorder = None
    try:
        from agentwrap.commands import client as client_module

        if recording:
            recorder = make_recorder(recording, options, plan, size)
        client = client_module.Client(
            session=session,
            profile=profile,
            settings=settings,
            options=options,
            command=plan.command,
            environ=plan.environ,
            tty=_tty_name(),
            writer=writer,
            memory=memory,
            recorder=recorder,
            rows=terminal.rows_and_columns(size)[0],
            front=lambda: os.tcgetpgrp(master),
        )
    except Exception as error:  # noqa: BLE001 - a failure of ours must not stop a command that has started
        writer.send("D", f"nothing is understood of this session: {type(error).__name__}: {error}")
        client = Tapless(b"")
    alone = False

    def take_over() -> None:
        nonlocal alone
        alone = True
        work.take_over()

    pump = Pump(
        user,
        master,
        lines.LineReader(reading),
        writer,
        pipe,
        client,
        memory,
        foreground=foreground,
        ahead=ahead,
        inner=inner,
        take_over=take_over,
    )
    if recorder is not None:
        pump.writers.append(recorder)
    status = pump.run()
    if recorder is not None:
        recorder.finish()
    if pump.exec_error:
        raise refused(plan.command[0], pump.exec_error)
    if alone:
        say(f"agentwrap: its session leader was killed, so the terminal of {plan.command[0]} hung up")
    if os.WIFSIGNALED(status):
        return signals.die_by(os.WTERMSIG(status))
    # Nothing is left to be written. To take the interpreter apart would only take the user's time.
    os._exit(os.WEXITSTATUS(status))


def write_private(state: StateDir | None, session: str, text: str) -> str | None:
    """A file of the session's own for an agent to read; None where none can be written."""
    try:
        if state is not None:
            path = os.path.join(state.path, f"{session}.agent")
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        else:
            import tempfile

            fd, path = tempfile.mkstemp(prefix="agentwrap-")
        with open(fd, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError:
        return None  # the agent then reports nothing, which is better than not to run
    return path


def start_recording(file: int | None) -> tuple[int, ...]:
    """Start the process that writes the recording, if there is to be one; its descriptors.

    Raises:
        UsageError: it cannot be started.
    """
    if file is None:
        return ()
    from agentwrap.host import recorder

    try:
        return recorder.start(file)
    except OSError as error:
        raise errors.UsageError(f"cannot record: {(error.strerror or '').lower()}") from None


def make_recorder(
    recording: tuple[int, ...], options: Options, plan: Plan, size: bytes | None
) -> recorder_module.Recorder:
    """The recording of this session."""
    from agentwrap.core.recording import Encoder
    from agentwrap.host import recorder

    rows, columns = terminal.rows_and_columns(size)
    encoder = Encoder(
        columns=columns or 80,
        rows=rows or 24,
        timestamp=time.time(),
        command=plan.command,
        environ={name: plan.environ[name] for name in ("SHELL", "TERM") if name in plan.environ},
        title=options.name,
        cwd=_cwd(),
    )
    writing, done = recording
    return recorder.Recorder(writing, done, encoder, time.monotonic(), record_input=options.record_input)


def open_state(environ: Mapping[str, str]) -> StateDir | None:
    """The state directory, or None where it is refused: the command runs all the same."""
    from agentwrap.host.statefile import StateDir

    try:
        return StateDir.open(environ)
    except errors.StateDirError:
        return None  # `doctor` and `list` say why; the command's screen is not ours to write on


def _same_terminal(one: int, other: int) -> bool:
    try:
        return os.isatty(other) and os.fstat(one).st_rdev == os.fstat(other).st_rdev
    except OSError:
        return False


def _open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


def _cwd() -> str | None:
    try:
        return os.getcwd()
    except OSError:
        return None


def _tty_name() -> str | None:
    try:
        return os.ttyname(0)
    except OSError:
        return None
