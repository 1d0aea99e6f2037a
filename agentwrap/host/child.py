"""The command itself, between fork and exec, and bare execution without a terminal of ours.

ptyprocess was looked at for this: its spawn makes the command the session leader, whose process group is
orphaned, so that the kernel discards its Ctrl-Z; its setwinsize zeroes the pixels; its wait, terminate and
isalive block or sleep; and importing it costs as much as all the rest of a start. What is kept is its way of
reporting a failed exec, a close-on-exec pipe that carries the error.
"""

from __future__ import annotations

import errno
import os
import stat

from agentwrap.host import signals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import NoReturn


_EFFECTIVE = os.access in os.supports_effective_ids
# exec asks for the rights we act with


class Launch:
    """What to execute: the file, its words, its environment, and what it inherits.

    Attributes:
        path: the file to execute.
        argv: its words, the name first.
        environ: its whole environment.
        ignored: signals it finds ignored, of those the interpreter changes.
        stderr_is_terminal: whether standard error goes to the new terminal too, or stays what it was.
    """

    __slots__ = ("argv", "environ", "ignored", "path", "stderr_is_terminal")

    def __init__(
        self,
        path: str,
        argv: Sequence[str],
        environ: Mapping[str, str],
        *,
        ignored: Iterable[int] = (),
        stderr_is_terminal: bool = True,
    ) -> None:
        self.path = path
        self.argv = list(argv)
        self.environ = dict(environ)
        self.ignored = tuple(ignored)
        self.stderr_is_terminal = stderr_is_terminal


def find(name: str, environ: Mapping[str, str]) -> tuple[str | None, int]:
    """The file a shell would execute for `name`, and 0; or the best candidate or None, and the error number.

    ENOENT: not found anywhere. EACCES: found, but not executable, or a directory.
    """
    if "/" in name:
        return name, _executable(name)
    failure = errno.ENOENT
    found = None
    path = environ.get("PATH")
    for directory in (os.defpath if path is None else path).split(os.pathsep):
        candidate = os.path.join(directory or os.curdir, name)
        problem = _executable(candidate)
        if problem == 0:
            return candidate, 0
        if problem == errno.EACCES and found is None and os.path.isfile(candidate):
            found, failure = candidate, problem
    return found, failure


def _executable(path: str) -> int:
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        return errno.EACCES if error.errno == errno.EACCES else errno.ENOENT
    except ValueError:
        return errno.ENOENT  # a NUL in the name
    if stat.S_ISDIR(mode) or not os.access(path, os.X_OK, effective_ids=_EFFECTIVE):
        return errno.EACCES
    return 0


def execute(launch: Launch) -> NoReturn:
    """Become the command.

    Raises:
        OSError: it could not be executed.
    """
    try:
        os.execve(launch.path, launch.argv, launch.environ)
    except OSError as error:
        if error.errno != errno.ENOEXEC or _is_binary(launch.path):
            raise
        # a script without an interpreter line: every shell runs it with sh
        os.execve("/bin/sh", ["sh", launch.path, *launch.argv[1:]], launch.environ)


def _is_binary(path: str) -> bool:
    """Whether a file that the system would not execute is a program for another one, not a script."""
    try:
        with open(path, "rb") as file:
            return b"\0" in file.read(128).partition(b"\n")[0]
    except OSError:
        return False


def become(launch: Launch, slave: int, errors: int, *, foreground: bool, mask: Iterable[int]) -> NoReturn:
    """In the forked process: take the terminal `slave`, lead a process group, become the command.

    All signals are blocked when this is called, so that taking the foreground stops nobody. A failure goes
    to the pipe `errors` as a decimal error number.
    """
    try:
        os.setpgid(0, 0)
        if foreground:
            os.tcsetpgrp(slave, os.getpid())
        os.dup2(slave, 0)
        os.dup2(slave, 1)
        if launch.stderr_is_terminal:
            os.dup2(slave, 2)
        signals.inherit(launch.ignored)
        signals.unblock(mask)
        execute(launch)
    except OSError as error:
        os.write(errors, str(error.errno or errno.EINVAL).encode())
    except (ValueError, TypeError):
        os.write(errors, str(errno.EINVAL).encode())
    finally:
        os._exit(127)


def bare(launch: Launch) -> NoReturn:
    """Execute the command in place of this process, with nothing of ours.

    Raises:
        OSError: it could not be executed.
    """
    signals.inherit(launch.ignored)
    execute(launch)
