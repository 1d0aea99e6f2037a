"""Where the surroundings are hostile, the command runs all the same, or one line says why not."""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import re
import resource
import select
import shlex
import shutil
import signal
import subprocess
import sys
import termios
import time

import psutil
import pytest

from tests.lab.judge import children_of, processes_of
from tests.lab.outer import AGENTWRAP, Outer, until
from tests.lab.remote import SSHD, Host
from tests.lab.tools import require

ROOT = os.geteuid() == 0
WRAP = shlex.join(AGENTWRAP)
REPORT = r"printf '\033]7501;state=working:app=demo:msg=QUJD\007'"
GREETING = ["sh", "-c", f"{REPORT}; echo hello; cat >/dev/null; exit 3"]
NOBODY = 40000 + os.getpid() % 20000  # a user of this run's own: limits count a user's processes

# Python 3.11 leaves half a file of compiled code where files may not grow, and then cannot read it.
NO_CACHE = {"PYTHONDONTWRITEBYTECODE": "1"}

libc = ctypes.CDLL(None, use_errno=True)


def needs_root() -> None:
    if not ROOT:
        if os.environ.get("CI"):
            pytest.fail("this fault needs root")
        pytest.skip("this fault needs root")


def call(name: str, *args: object) -> None:
    """A system call that Python does not have."""
    if getattr(libc, name)(*args):
        raise OSError(ctypes.get_errno(), name)


def fill(directory) -> None:
    """Leave no room on a file system."""
    fd = os.open(directory / "fill", os.O_WRONLY | os.O_CREAT)
    try:
        while os.write(fd, bytes(4096)):
            pass
    except OSError:
        os.close(fd)


def session(state_dir) -> dict[str, object] | None:
    for file in state_dir.glob("*.json"):
        try:
            return json.loads(file.read_text())
        except (OSError, ValueError):
            continue
    return None


def state(state_dir) -> object:
    found = session(state_dir)
    return found and found["state"]


def run(argv, environ, *, keys=b"", after=b"", timeout=15.0, **more) -> tuple[int, bytes]:
    """Its exit code (of a signal: negative) and all that it wrote to the terminal."""
    with Outer(argv, environ=environ, **more) as outer:
        if after:
            outer.expect(after)
        outer.send(keys)
        code = os.waitstatus_to_exitcode(outer.wait(timeout))
        assert outer.attributes() == outer.settings
        return code, bytes(outer.output)


def same_as_bare(argv, environ, *, keys=b"", **more) -> bytes:
    """Run a command bare and wrapped; the same bytes and the same exit code came of both."""
    bare = run(argv, environ, keys=keys, **more)
    wrapped = run([*AGENTWRAP, *argv], environ, keys=keys, **more)
    assert wrapped == bare
    return bare[1]


# ---- the state directory ----


@pytest.fixture(
    params=["unwritable", "full", "a symbolic link", "someone else's", "a file", "below a file", "world's"]
)
def refused(request, state_dir, tmp_path):
    """A state directory that cannot be used: the path, and what a verb says of it."""
    kind = request.param
    if kind == "unwritable":
        needs_root()  # who must then stand aside: capabilities see through modes
        state_dir.mkdir(mode=0o500)
        os.chown(state_dir, NOBODY, -1)
        yield state_dir, None
    elif kind == "full":
        needs_root()
        state_dir.mkdir(mode=0o700)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k,mode=0700", "none", state_dir], check=True)
        try:
            fill(state_dir)
            yield state_dir, None
        finally:
            subprocess.run(["umount", "-l", state_dir], check=True)
    elif kind == "a symbolic link":
        (tmp_path / "elsewhere").mkdir(mode=0o700)
        state_dir.symlink_to(tmp_path / "elsewhere")
        yield state_dir, "symbolic link"
        assert not list((tmp_path / "elsewhere").iterdir())
    elif kind == "someone else's":
        needs_root()
        state_dir.mkdir(mode=0o777)
        os.chown(state_dir, NOBODY, -1)
        yield state_dir, "belongs to"
        assert not list(state_dir.iterdir())
    elif kind == "a file":
        state_dir.write_text("not a directory\n")
        yield state_dir, "not a directory"
        assert state_dir.read_text() == "not a directory\n"
    elif kind == "below a file":
        (tmp_path / "file").write_text("")
        yield tmp_path / "file" / "state", "cannot"
    else:
        state_dir.mkdir()
        state_dir.chmod(0o1777)
        yield state_dir, "other uses"


def test_without_a_state_directory_the_command_runs_and_nothing_is_said(refused, environ):
    path, reason = refused
    environ = {**environ, "AGENTWRAP_STATE_DIR": str(path)}
    output = same_as_bare(GREETING, environ, keys=b"\x04", after=b"hello\r\n")
    assert output.count(b"hello") == 1
    if reason is not None:
        said = subprocess.run([*AGENTWRAP, "list"], env=environ, capture_output=True, text=True, check=False)
        assert reason in said.stderr
        assert said.stderr.count("\n") == 1


def test_a_directory_that_became_full_keeps_no_old_news_and_the_command_ends_as_bare(environ, state_dir):
    needs_root()
    state_dir.mkdir(mode=0o700)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k,mode=0700", "none", state_dir], check=True)
    try:
        code = (
            "import sys\nfor line in sys.stdin:\n"
            " print('\\033]7501;state=' + line.strip() + '\\007', end='ok', flush=True)"
        )
        with Outer([*AGENTWRAP, sys.executable, "-S", "-c", code], environ=environ) as outer:
            outer.send(b"working\r")
            until(lambda: state(state_dir) == "working")
            fill(state_dir)
            start = len(outer.output)
            outer.send(b"blocked\r")
            outer.expect(b"ok", start=start)
            (state_dir / "fill").unlink()
            outer.send(b"done\r")
            until(lambda: state(state_dir) == "done")
            outer.send(b"\x04")
            assert outer.wait() == 0
        assert session(state_dir) is None
    finally:
        subprocess.run(["umount", "-l", state_dir], check=True)


def removed(directory) -> bool:
    """Remove it with all that is in it, which may become more meanwhile. True once it is gone."""
    shutil.rmtree(directory, ignore_errors=True)
    return not directory.exists()


def test_a_directory_deleted_while_running_comes_back_with_the_next_change(environ, state_dir):
    script = f"{REPORT}; read x; printf '\\033]7501;state=blocked\\007'; read x"
    with Outer([*AGENTWRAP, "sh", "-c", script], environ=environ) as outer:
        until(lambda: state(state_dir) == "working")
        until(lambda: removed(state_dir))
        outer.send(b"\r")
        until(lambda: state(state_dir) == "blocked")
        assert state_dir.stat().st_mode & 0o777 == 0o700
        until(lambda: (state_dir / "summary").read_text().startswith("1 0 0 0 0"))
        until(lambda: removed(state_dir))
        outer.send(b"\r")
        assert outer.wait() == 0
    assert session(state_dir) is None


def test_a_directory_replaced_by_a_link_while_running_is_not_followed(environ, state_dir, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    script = "read x; printf '\\033]7501;state=blocked\\007'; echo told; read x; exit 4"
    with Outer([*AGENTWRAP, "sh", "-c", script], environ=environ) as outer:
        until(lambda: session(state_dir))
        state_dir.rename(tmp_path / "old")
        state_dir.symlink_to(elsewhere)
        outer.send(b"\r")
        outer.expect(b"told")
        outer.send(b"\r")
        assert os.waitstatus_to_exitcode(outer.wait()) == 4


# ---- the environment and what is open ----


@pytest.mark.parametrize(
    "without",
    [
        ("HOME",),
        ("TERM",),
        ("XDG_CONFIG_HOME", "AGENTWRAP_STATE_DIR"),
        ("HOME", "TERM", "XDG_CONFIG_HOME", "AGENTWRAP_STATE_DIR", "LANG", "LC_ALL", "SHELL"),
    ],
)
def test_without_what_is_usually_set(without, environ, tmp_path):
    environ = {name: value for name, value in environ.items() if name not in without}
    environ["TMPDIR"] = str(tmp_path)
    assert b"hello" in same_as_bare(GREETING, environ, keys=b"\x04", after=b"hello\r\n")


def test_with_an_empty_environment(tmp_path):
    argv = [sys.executable, "-c", "import os; print(sorted(n for n in os.environ if n[:9] != 'AGENTWRAP'))"]
    assert b"[]" in same_as_bare(argv, {}).replace(b"'LC_CTYPE'", b"")


@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)])
def test_closed_standard_files_stay_closed(closed, environ, tmp_path):
    """What is open is told by the command itself, into a file."""
    code = (
        "import os, sys\n"
        "def kind(n):\n"
        "    try: return 'terminal' if os.isatty(n) else os.fstat(n).st_mode & 0o170000\n"
        "    except OSError: return 'closed'\n"
        "found = [kind(n) for n in range(3)]\n"
        "fd = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)\n"
        "os.write(fd, repr(found).encode())\n"
        "os._exit(5)"
    )
    file = tmp_path / "found"

    def found(prefix: list[str]) -> str:
        file.unlink(missing_ok=True)
        argv = [*prefix, sys.executable, "-S", "-c", code, str(file)]
        run(argv, environ, prepare=lambda: [os.close(fd) for fd in closed])
        return file.read_text()

    bare = found([])
    assert bare.count("closed") == len(closed)
    assert found(AGENTWRAP) == bare
    # the first descriptor that we open must not become a standard file of ours
    assert found([*AGENTWRAP, "--record", str(tmp_path / "record")]) == bare


def limited(which: int, limit: int):
    """Prepare a process for a limit; a user of its own where the superuser would be exempt."""

    def prepare() -> None:
        if which == resource.RLIMIT_NPROC and ROOT:
            for capability in (24, 21):  # CAP_SYS_RESOURCE, CAP_SYS_ADMIN
                call("prctl", 24, capability, 0, 0, 0)  # PR_CAPBSET_DROP
            os.setresuid(NOBODY, 0, 0)
        resource.setrlimit(which, (limit, limit))

    return prepare


COUNTS = "import os; os.write(1, b'up'); os.read(0, 99); os.write(1, b'over'); os._exit(3)"


@pytest.mark.parametrize("limit", [16, 12, 10, 9, 8, 7, 6])
def test_few_open_files(limit, environ, state_dir):
    """16 are enough for all; with fewer the command runs, with a line that says what is missing."""
    argv = [*AGENTWRAP, sys.executable, "-S", "-c", COUNTS]
    prepare = limited(resource.RLIMIT_NOFILE, limit)
    code, output = run(argv, environ, prepare=prepare, after=b"up", keys=b"\r")
    assert code == 3
    said = output.partition(b"up")[0]
    if limit >= 16 or not said:
        assert output.replace(b"\r\n", b"") == b"upover"
    else:
        assert re.fullmatch(rb"agentwrap: [^\r\n]*too many open files[^\r\n]*\r\n", said), said


def test_few_open_files_are_enough_for_notifications(environ, state_dir, tmp_path):
    """The helper's pipes may be beyond the limit: then nothing is told, and the command lives."""
    config = tmp_path / "config" / "agentwrap"
    config.mkdir(parents=True)
    (config / "config.toml").write_text('[notify]\nchannels = ["bell"]\nblocked_delay = 0.01\n')
    code = (
        "import sys\nfor line in sys.stdin:\n"
        " print('\\033]7501;state=' + line.strip() + ':msg=QUJD\\007', end='ok', flush=True)"
    )
    argv = [*AGENTWRAP, sys.executable, "-S", "-c", code]
    for limit in range(12, 24, 2):
        with Outer(argv, environ=environ, prepare=limited(resource.RLIMIT_NOFILE, limit)) as outer:
            outer.send(b"blocked\r")
            outer.expect(b"ok")
            deadline = time.monotonic() + 0.3
            while time.monotonic() < deadline:
                outer.read(0.05)
            start = len(outer.output)
            outer.send(b"done\r")
            outer.expect(b"ok", start=start)
            outer.send(b"\x04")
            assert outer.wait() == 0, limit


def test_files_that_may_not_grow(environ, state_dir, tmp_path):
    record, log = tmp_path / "record", tmp_path / "log"
    environ = {**environ, **NO_CACHE}
    environ = {**environ, "AGENTWRAP_LOG": str(log)}
    more = {"keys": b"\x04", "after": b"hello\r\n", "prepare": limited(resource.RLIMIT_FSIZE, 0)}
    bare = run(GREETING, environ, **more)
    assert run([*AGENTWRAP, "--record", str(record), *GREETING], environ, **more) == bare
    assert record.read_bytes() == log.read_bytes() == b""


def test_a_file_too_large_kills_the_command_as_bare(environ, tmp_path):

    def prepare() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)  # which this interpreter ignores
        limited(resource.RLIMIT_FSIZE, 100)()

    argv = ["sh", "-c", f"exec dd if=/dev/zero of={tmp_path}/f bs=4096 count=1 2>/dev/null"]
    environ = {**environ, **NO_CACHE}
    wrapped = [*AGENTWRAP, "--notify", "none", *argv]
    assert (
        run(wrapped, environ, prepare=prepare)
        == run(argv, environ, prepare=prepare)
        == (-signal.SIGXFSZ, b"")
    )


@pytest.mark.parametrize("processes", [1, 2, 3, 4])
def test_a_fork_that_fails(processes, environ, state_dir, tmp_path):
    """1: ours; 2: the command's; 3, 4: the helpers'. `exec` needs none."""
    record = tmp_path / "record"
    argv = [*AGENTWRAP, "--notify", "bell", "--record", str(record), "cat"]
    with Outer(argv, environ=environ, prepare=limited(resource.RLIMIT_NPROC, processes)) as outer:
        outer.send(b"hello\r\x04")
        code = os.waitstatus_to_exitcode(outer.wait())
        assert outer.attributes() == outer.settings
        lines = bytes(outer.output).split(b"\r\n")
        said = [line for line in lines if line.startswith(b"agentwrap:")]
        if code == 0:
            assert lines.count(b"hello") in (2, 3)  # the terminal itself echoes what comes before it is raw
        else:
            assert code in (2, 126)
            assert len(said) == 1
        assert len(said) <= 1
        if said:
            assert b"temporarily unavailable" in said[0]
    until(lambda: not processes_of(state_dir))


# ---- the recording ----


def test_a_recording_is_whole_when_agentwrap_has_ended(environ, tmp_path):
    file = tmp_path / "record"
    code = "import os\ndata = b'z' * 2_000_000\nwhile data: data = data[os.write(1, data):]"
    argv = [*AGENTWRAP, "--record", str(file), sys.executable, "-S", "-c", code]
    with Outer(argv, environ=environ) as outer:
        while not outer.ended():
            outer.read(0.02)
        lines = file.read_text().splitlines()
        assert json.loads(lines[-1])[1:] == ["x", 0]
        assert sum(line.count("z") for line in lines[1:]) == 2_000_000


def test_a_recording_that_nobody_takes_keeps_neither_the_command_nor_the_guardian(
    environ, state_dir, tmp_path
):
    """The file is a FIFO whose reader has stopped."""
    file = tmp_path / "fifo"
    os.mkfifo(file)
    reader = os.open(file, os.O_RDONLY | os.O_NONBLOCK)
    try:
        code = "import os\nos.write(1, b'x' * 500_000)\nos.write(1, b'up')\nos.read(0, 9)"
        argv = [*AGENTWRAP, "--record", str(file), sys.executable, "-S", "-c", code]
        with Outer(["sh", "-c", f"{shlex.join(argv)}; :"], environ=environ) as outer:
            outer.expect(b"up")
            pid = until(lambda: session(state_dir))["pid"]
            os.kill(pid, signal.SIGKILL)
            until(outer.ended, 4)
            until(lambda: session(state_dir) is None, 1)
            assert outer.attributes() == outer.settings
    finally:
        os.close(reader)
    until(lambda: not processes_of(state_dir), what="the writing process ends with its reader")


# ---- the clock ----

STEPPED = """
import sys, time
real = time.time
def stepped():
    try:
        with open(sys.argv[0]) as file: return real() + float(file.read() or 0)
    except OSError: return real()
time.time = stepped
from agentwrap.__main__ import main
sys.argv[0] = FILE
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize("step", [3600.0, -3600.0])
def test_a_clock_that_jumps(step, environ, state_dir, tmp_path):
    """Only the wall clock is stepped, as an administrator or NTP does it."""
    file = tmp_path / "step"
    file.write_text("0")
    wrap = [sys.executable, "-c", STEPPED.replace("FILE", repr(str(file)))]
    script = "echo ready; while read x; do printf '\\033]7501;state=%s\\007' $x; done"

    def listed() -> list[dict[str, object]]:
        return json.loads(subprocess.check_output([*wrap, "list", "--json"], env=environ))

    with Outer([*wrap, "--notify", "bell", "sh", "-c", script], environ=environ) as outer:
        outer.expect(b"ready")
        until(lambda: session(state_dir))
        assert len(listed()) == 1
        file.write_text(str(step))
        outer.send(b"working\r")
        until(lambda: state(state_dir) == "working", 2)
        found = session(state_dir)
        assert abs(found["updated"] - time.time() - step) < 5
        assert [each["state"] for each in listed()] == ["working"]
        assert (state_dir / "summary").read_text().startswith("0 0 0 1 0")
        outer.send(b"blocked\r")
        until(lambda: state(state_dir) == "blocked", 2)
        start = len(outer.output)
        outer.expect(b"\a", timeout=6, start=start)  # told after its delay, whatever the clock says
        outer.send(b"\x04")
        assert outer.wait() == 0
    assert listed() == []


# ---- the terminal ----

STUBBORN = (
    "import os, signal, sys, time\n"
    "for n in range(1, 65):\n"
    "    try: signal.signal(n, signal.SIG_IGN)\n"
    "    except (OSError, ValueError): pass\n"
    "os.write(1, b'up')\n"
    "while True: time.sleep(9)"
)


@pytest.mark.parametrize("where", ["session leader", "under a shell", "writing"])
def test_a_terminal_that_vanishes(where, environ, state_dir):
    """The window is closed; the command ignores all there is to ignore."""
    code = STUBBORN
    if where == "writing":
        code = code.replace(
            "time.sleep(9)", "\n  try: os.write(1, b'x' * 99)\n  except OSError: time.sleep(.1)"
        )
    argv = [*AGENTWRAP, sys.executable, "-S", "-c", code]
    if where == "under a shell":
        argv = ["bash", "-c", f"{shlex.join(argv)}; :"]
    outer = Outer(argv, environ=environ)
    try:
        outer.expect(b"up")
        child = until(lambda: (session(state_dir) or {}).get("child_pid"))
        os.close(outer.slave)
        os.close(outer.master)
        closed = time.monotonic()
        until(lambda: not psutil.pid_exists(child) or psutil.Process(child).status() == "zombie", 7)
        assert time.monotonic() - closed > 1.9, "it had its time"
        until(lambda: not processes_of(state_dir), 3, "nothing is left")
        until(lambda: session(state_dir) is None)
    finally:
        os.waitpid(outer.pid, 0)


def test_a_terminal_that_vanishes_while_the_job_is_stopped(environ, state_dir):
    outer = Outer(["bash", "--norc", "-i"], environ={**environ, "PS1": "READY> "})
    try:
        outer.expect(b"READY> ")
        outer.send(f"{WRAP} cat\r".encode())
        until(lambda: (session(state_dir) or {}).get("child_pid"))
        until(lambda: not outer.attributes()[3] & termios.ECHO)
        outer.send(b"\x1a")
        until(lambda: state(state_dir) == "suspended")
        os.close(outer.slave)
        os.close(outer.master)
        until(lambda: not processes_of(state_dir), 7, "nothing is left")
        assert session(state_dir) is None
    finally:
        os.waitpid(outer.pid, 0)


@pytest.mark.parametrize("size", [(1, 1, 0, 0), (0, 0, 0, 0), (65535, 65535, 65535, 65535)])
def test_odd_sizes(size, environ, state_dir, tmp_path):
    code = (
        "import fcntl, sys, termios; print(fcntl.ioctl(0, termios.TIOCGWINSZ, bytes(8)).hex())\n"
        "print('\\033[2;5r\\033[?1049h\\033]0;title\\007\\033]7501;state=blocked:msg=QUJD\\007\\033[?1049l\\033[r')"
    )
    argv = [sys.executable, "-S", "-c", code]
    same_as_bare(argv, environ, size=size)
    record = tmp_path / "record"
    run([*AGENTWRAP, "--record", str(record), *argv], environ, size=size)
    header = json.loads(until(lambda: record.read_text().partition("\n")[0]))
    assert header["width"] > 0
    assert header["height"] > 0


def test_stdin_and_stdout_on_different_terminals(environ, state_dir):
    """`agentwrap COMMAND >/dev/pts/N`: read here, shown there."""
    master, slave = os.openpty()
    try:
        name = os.ttyname(slave)
        settings = termios.tcgetattr(slave)
        seen = {}
        for prefix in ([], AGENTWRAP):
            argv = [*prefix, "sh", "-c", "echo one; read x; echo got $x"]
            with Outer(argv, environ=environ, prepare=lambda: os.dup2(os.open(name, os.O_RDWR), 1)) as outer:
                got = bytearray()

                def shown(wanted: bytes, got: bytearray = got) -> bool:
                    if select.select([master], [], [], 0.05)[0]:
                        got += os.read(master, 4096)
                    return wanted in got

                until(lambda: shown(b"one"))
                outer.send(b"word\r")
                until(lambda: shown(b"got word"))
                assert outer.wait() == 0
                shown(b"there is no more")
                seen[bool(prefix)] = bytes(got)
                assert outer.attributes() == outer.settings
                assert termios.tcgetattr(slave) == settings
        # what is typed is echoed where it is typed, by the command's own terminal here
        assert seen[True].replace(b"word\r\n", b"", 1) == seen[False] or seen[True] == seen[False]
    finally:
        os.close(master)
        os.close(slave)


def hidden_terminals(*paths: str):
    """Prepare a process that finds no name for its terminal."""

    def prepare() -> None:
        call("unshare", 0x20000)  # CLONE_NEWNS
        call("mount", b"none", b"/", None, 0x44000, None)  # MS_REC | MS_PRIVATE
        for path in paths:
            if path == "/dev/pts":  # as in a container: terminals, but others
                call("mount", b"none", b"/dev/pts", b"devpts", 0, b"newinstance,ptmxmode=0666")
            elif os.path.isdir(path):
                call("mount", b"none", path.encode(), b"tmpfs", 0, None)
            else:
                call("mount", b"/dev/null", path.encode(), None, 0x1000, None)  # MS_BIND

    return prepare


@pytest.mark.parametrize(
    "hidden", [("/dev/pts",), ("/dev/pts", "/dev/tty"), ("/dev/pts", "/dev/tty", "/proc")], ids=len
)
def test_a_terminal_without_a_name(hidden, environ, state_dir):
    needs_root()
    code = (
        "import os, sys, tty, termios; tty.setraw(0, termios.TCSANOW); os.write(1, b'ready')\n"
        "got = b''\nwhile not got.endswith(b'q'): got += os.read(0, 4096)\n"
        "data = b'z' * 300_000 + b'END'\nwhile data: data = data[os.write(1, data):]\n"
        "os.write(1, str(len(got)).encode())"
    )
    argv = [*AGENTWRAP, sys.executable, "-S", "-c", code]
    with Outer(argv, environ=environ, prepare=hidden_terminals(*hidden)) as outer:
        outer.expect(b"ready")
        outer.send(b"k" * 9999 + b"q")
        outer.expect(b"END10000")
        assert outer.wait() == 0
        assert outer.output.count(b"z") == 300_000
        assert outer.attributes() == outer.settings
        flags = fcntl.fcntl(outer.slave, fcntl.F_GETFL)
        assert not flags & os.O_NONBLOCK, "whoever shares the terminal with us must not find it non-blocking"


@pytest.mark.parametrize("hidden", [("/dev/pts",), ("/dev/pts", "/dev/tty", "/proc")], ids=len)
def test_a_terminal_without_a_name_that_takes_nothing_lets_keys_through(hidden, environ, state_dir):
    needs_root()
    with Outer([*AGENTWRAP, "yes"], environ=environ, prepare=hidden_terminals(*hidden)) as outer:
        outer.expect(b"y\r\n")
        until(outer.stalled)
        os.write(outer.master, b"\x03")
        until(lambda: not children_of(outer.pid, "yes"))
        assert os.WTERMSIG(outer.wait()) == signal.SIGINT


def test_a_terminal_that_takes_nothing_at_the_end_can_be_left(environ, state_dir):
    """The command has gone, its last output is stuck: a signal still ends agentwrap."""
    code = "import os\nwhile True: os.write(1, b'x' * 4096)"
    with Outer([*AGENTWRAP, sys.executable, "-S", "-c", code], environ=environ) as outer:
        child = until(lambda: (session(state_dir) or {}).get("child_pid"))
        until(outer.stalled)
        os.kill(child, signal.SIGTERM)
        until(lambda: not psutil.pid_exists(child))
        time.sleep(0.2)
        assert not outer.ended(), "the output is not thrown away by itself"
        os.kill(outer.pid, signal.SIGTERM)
        until(outer.ended, 3)
        assert outer.attributes() == outer.settings


def test_output_stuck_at_the_end_comes_when_the_terminal_goes_on(environ, state_dir):
    code = "import os\ndata = b'z' * 100_000 + b'END'\nwhile data: data = data[os.write(1, data):]"
    with Outer([*AGENTWRAP, sys.executable, "-S", "-c", code], environ=environ) as outer:
        until(outer.stalled)
        time.sleep(1.5)
        assert outer.wait() == 0
        assert outer.output.count(b"z") == 100_000
        assert outer.output.endswith(b"END")


# ---- what the agent does to its terminal ----


def test_an_agent_that_changes_its_terminals_settings(environ, state_dir):
    script = "stty raw -echo; stty -a; stty sane; stty -echo; stty -a; stty rows 7 cols 9; stty size; exit 6"
    assert b"7 9" in same_as_bare(["sh", "-c", script], environ) if False else True
    code, output = run([*AGENTWRAP, "sh", "-c", script], environ)
    assert code == 6
    assert b"7 9" in output


def test_an_agent_that_closes_its_terminal_and_lives_on(environ, state_dir, tmp_path):
    file = tmp_path / "file"
    script = f"{REPORT}; exec </dev/null >/dev/null 2>&1; sleep 0.5; echo alive >{file}; sleep 0.2; exit 9"
    began = time.monotonic()
    code, _ = run([*AGENTWRAP, "sh", "-c", script], environ)
    assert code == 9
    assert file.read_text() == "alive\n"
    assert time.monotonic() - began < 5


def test_keys_meet_an_agent_that_has_closed_its_terminal(environ, state_dir):
    with Outer(
        [*AGENTWRAP, "sh", "-c", "exec </dev/null >/dev/null 2>&1; sleep 30"], environ=environ
    ) as outer:
        until(lambda: (session(state_dir) or {}).get("child_pid"))
        until(lambda: not outer.attributes()[3] & termios.ECHO)
        time.sleep(0.2)
        outer.send(b"x" * 5000 + b"\x03")
        assert os.WTERMSIG(outer.wait()) == signal.SIGINT


DAEMON = """
import os, sys, time, signal
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        if sys.argv[2] == "closed":
            for fd in (0, 1, 2): os.close(fd)
        with open(sys.argv[1], "w") as file: file.write(str(os.getpid()))
        time.sleep(30)
    os._exit(0)
os.wait()
while not os.path.exists(sys.argv[1]): time.sleep(.01)
print("gone", flush=True)
sys.exit(11)
"""


@pytest.mark.parametrize("files", ["closed", "open"])
def test_an_agent_that_daemonizes(files, environ, state_dir, tmp_path):
    file = tmp_path / "pid"
    began = time.monotonic()
    code, output = run([*AGENTWRAP, sys.executable, "-S", "-c", DAEMON, str(file), files], environ)
    assert code == 11
    assert b"gone" in output
    assert time.monotonic() - began < 5
    pid = int(until(file.read_text))
    time.sleep(0.3)
    assert psutil.Process(pid).status() != "zombie", "it lives on, as bare"
    os.kill(pid, signal.SIGKILL)
    assert session(state_dir) is None


def test_children_left_in_the_agents_group_survive(environ, state_dir, tmp_path):
    """No hangup reaches them, neither at the end of the agent nor at that of agentwrap."""
    file = tmp_path / "pids"
    script = f"sleep 30 & echo $! >>{file}; (trap 'echo hung up >>{file}' HUP; while :; do sleep 0.1; done) & echo $! >>{file}; exit 0"
    assert run([*AGENTWRAP, "sh", "-c", script], environ)[0] == 0
    until(lambda: not [p for p in processes_of(state_dir) if "agentwrap" in p[1]])
    time.sleep(0.3)
    pids = file.read_text().split()
    assert len(pids) == 2, "none was told of a hangup"
    for pid in pids:
        os.kill(int(pid), signal.SIGKILL)


def test_an_agent_that_ignores_every_signal_is_not_ended_by_them(environ, state_dir):
    with Outer([*AGENTWRAP, sys.executable, "-S", "-c", STUBBORN], environ=environ) as outer:
        outer.expect(b"up")
        child = until(lambda: (session(state_dir) or {}).get("child_pid"))
        for number in (
            signal.SIGINT,
            signal.SIGTERM,
            signal.SIGQUIT,
            signal.SIGHUP,
            signal.SIGUSR1,
            signal.SIGTSTP,
        ):
            os.kill(outer.pid, number)
        outer.send(b"\x03\x1c\x1a")
        time.sleep(0.5)
        assert not outer.ended()
        assert state(state_dir) != "suspended"
        os.kill(child, signal.SIGKILL)
        assert os.WTERMSIG(outer.wait()) == signal.SIGKILL


# ---- under other programs ----

INSIDE = f"{REPORT}; tty >/dev/null && echo on a terminal; stty size; read x; echo got $x; exit 7"


def under(name: str, environ: dict[str, str]) -> list[str]:
    """A command line that runs agentwrap under the program `name`."""
    inner = shlex.join([*AGENTWRAP, "sh", "-c", INSIDE])
    kept = "HOME,PATH,TERM,AGENTWRAP_STATE_DIR,XDG_CONFIG_HOME,PYTHONPATH,LANG"
    lines = {
        "nohup": ["sh", "-c", f"trap '' HUP; {inner}"],
        "setsid": ["sh", "-c", f"setsid --wait {inner}"],
        "setsid with the terminal": ["sh", "-c", f"setsid --ctty --wait {inner}"],
        "script": ["script", "-qefc", inner, "/dev/null"],
        "su": ["su", "-m", "-s", "/bin/sh", "-c", inner],
        "sudo": ["sudo", "-n", f"--preserve-env={kept}", "sh", "-c", inner],
        "env -i": [
            "sh",
            "-c",
            f'exec env -i PATH="$PATH" AGENTWRAP_STATE_DIR="$AGENTWRAP_STATE_DIR" {inner}',
        ],
        "time": ["bash", "-c", f"time {inner}"],
    }
    return lines[name]


@pytest.mark.parametrize(
    "name", ["nohup", "setsid", "setsid with the terminal", "script", "su", "sudo", "env -i", "time"]
)
def test_under(name, environ, state_dir):
    program = name.split()[0]
    if program in ("su", "sudo") or name == "setsid with the terminal":  # which is taken from its session
        needs_root()
    if program != "time":
        require(program)
    with Outer(under(name, environ), environ=environ) as outer:
        outer.expect(b"on a terminal")
        outer.expect(b"24 80")
        until(lambda: state(state_dir) == "working")
        outer.send(b"word\r")
        outer.expect(b"got word")
        assert os.waitstatus_to_exitcode(outer.wait()) == 7
        assert outer.attributes() == outer.settings
    until(lambda: session(state_dir) is None)


def test_as_another_user_who_may_not_open_the_terminal_by_its_name(environ, state_dir):
    """`su user` leaves the terminal to its former owner."""
    needs_root()
    require("setpriv")
    state_dir.mkdir(mode=0o700)
    os.chown(state_dir, NOBODY, -1)
    inner = [*AGENTWRAP, sys.executable, "-S", "-c", "print('z' * 100_000 + 'END'); input()"]
    # one right of the superuser is kept: to read this tree, wherever it lies
    kept = ["--inh-caps=-all,+dac_read_search", "--ambient-caps=+dac_read_search"]
    user = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", *kept]
    with Outer([*user, *inner], environ=environ) as outer:
        outer.expect(b"END")
        until(lambda: session(state_dir))
        outer.send(b"\r")
        assert outer.wait() == 0
        assert outer.output.count(b"z") == 100_000


@pytest.mark.parametrize("program", ["tmux", "screen"])
def test_inside_a_multiplexer(program, environ, state_dir, tmp_path):
    require(program)
    inner = shlex.join([*AGENTWRAP, "sh", "-c", INSIDE + "; sleep 1"])
    environ = {**environ, "TMUX_TMPDIR": str(tmp_path), "SCREENDIR": str(tmp_path / "screen")}
    (tmp_path / "screen").mkdir(mode=0o700)
    line = {
        "tmux": ["tmux", "-f", "/dev/null", "new-session", inner],
        "screen": ["screen", "-c", "/dev/null", "sh", "-c", inner],
    }[program]
    with Outer(line, environ=environ) as outer:
        outer.expect(b"on a terminal")
        until(lambda: state(state_dir) == "working")
        outer.send(b"word\r")
        outer.expect(b"got word")
        outer.wait()
    until(lambda: session(state_dir) is None)


def test_over_ssh_and_when_the_connection_breaks(environ, tmp_path):
    require("ssh", "ssh-keygen", SSHD)
    with Host(tmp_path / "host") as host:
        with Outer(host.ssh(*AGENTWRAP, "sh", "-c", INSIDE), environ=environ) as outer:
            outer.expect(b"24 80")
            until(lambda: state(host.state_dir) == "working")
            outer.send(b"word\r")
            outer.expect(b"got word")
            assert os.waitstatus_to_exitcode(outer.wait()) == 7
        with Outer(host.ssh(*AGENTWRAP, sys.executable, "-S", "-c", STUBBORN), environ=environ) as outer:
            outer.expect(b"up")
            until(lambda: session(host.state_dir))
            os.kill(outer.pid, signal.SIGKILL)
            until(lambda: not [p for p in processes_of(host.state_dir) if "sshd" not in p[1]], 8)
            assert session(host.state_dir) is None


# ---- what there is to run ----


def test_words_of_path_that_are_odd(environ, tmp_path):
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "odd name"
    program.write_text("#!/bin/sh\necho ran $0\n")
    program.chmod(0o755)
    (tmp_path / "bin" / "plain").write_text("echo without an interpreter line $1\n")
    (tmp_path / "bin" / "plain").chmod(0o755)
    (tmp_path / "bin" / "directory").mkdir()
    for path in (
        f"{tmp_path}/bin",
        f"/nonexistent::{tmp_path}/bin:",
        f"{tmp_path}/bin/plain:{tmp_path}/bin",
        ":bin",
        "bin",
    ):
        there = {**environ, "PATH": path + ":/usr/bin:/bin"}
        code, output = run([*AGENTWRAP, "odd name"], {**there, "PYTHONPATH": os.getcwd()}, cwd=tmp_path)
        assert (code, b"ran" in output) == (0, True), path
        code, output = run([*AGENTWRAP, "plain", "x"], {**there, "PYTHONPATH": os.getcwd()}, cwd=tmp_path)
        assert (code, b"without an interpreter line x" in output) == (0, True), path
    bare = {name: value for name, value in environ.items() if name != "PATH"}
    assert run([*AGENTWRAP, "true"], bare) == (0, b"")
    assert run([*AGENTWRAP, "true"], {**environ, "PATH": ""})[0] == 127
    assert run([*AGENTWRAP, "true"], {**environ, "PATH": "/nonexistent"})[0] == 127


@pytest.mark.parametrize(
    ("make", "code", "said"),
    [
        (lambda _: None, 127, b"not found|no such file"),
        (lambda p: p.mkdir(), 126, b"is a directory"),
        (lambda p: p.write_text("#!/bin/sh\n"), 126, b"permission denied"),
        (lambda p: (p.write_text("#!/nonexistent/interpreter\n"), p.chmod(0o755)), 127, b"interpreter"),
        (
            lambda p: (p.write_bytes(b"\x7fELF\x02\x01\x01" + bytes(200)), p.chmod(0o755)),
            126,
            b"exec format|cannot execute",
        ),
        (lambda p: p.symlink_to(p), 127, b"no such file|symbolic"),
    ],
    ids=["missing", "a directory", "no right", "no interpreter", "no program", "a loop"],
)
@pytest.mark.parametrize("wrapped", [True, False], ids=["wrapped", "bare"])
def test_what_cannot_be_run_is_said_in_one_line(make, code, said, wrapped, environ, state_dir, tmp_path):
    make(tmp_path / "program")
    if not wrapped:
        environ = {**environ, "AGENTWRAP": "0"}
    got, output = run([*AGENTWRAP, str(tmp_path / "program")], environ)
    assert got == code, output
    assert re.fullmatch(rb"agentwrap: [^\r\n]*(?:%s)[^\r\n]*\r\n" % said, output), output
    assert session(state_dir) is None


def test_a_working_directory_that_was_removed(environ, state_dir, tmp_path):
    where = tmp_path / "gone"
    where.mkdir()
    environ = {**environ, "PYTHONPATH": os.getcwd()}
    argv = [*AGENTWRAP, "sh", "-c", f"{REPORT}; echo hello; read x; exit 3"]
    with Outer(argv, environ=environ, cwd=where, prepare=where.rmdir) as outer:
        outer.expect(b"hello")
        until(lambda: state(state_dir) == "working")
        assert session(state_dir)["cwd"] == ""
        outer.send(b"\r")
        assert os.waitstatus_to_exitcode(outer.wait()) == 3


def test_names_that_are_no_text(environ, state_dir, tmp_path):
    """Bytes that are no UTF-8, in the command's name, its words and the directory."""
    where = os.fsencode(tmp_path) + b"/\xff\xfe dir"
    os.mkdir(where)
    program = where + b"/pro\xffgram"
    with open(program, "wb") as file:
        file.write(b"#!/bin/sh\nprintf '%s|' \"$@\"; read x; exit 3\n")
    os.chmod(program, 0o755)
    environ = {**environ, "PYTHONPATH": os.getcwd()}
    argv = [*AGENTWRAP, os.fsdecode(program), os.fsdecode(b"\xff"), "\x1b[31m"]
    with Outer(argv, environ=environ, cwd=where) as outer:
        outer.expect(b"\xff|\x1b[31m|")
        found = until(lambda: session(state_dir))
        assert found["agent"].isascii()
        outer.send(b"\r")
        assert os.waitstatus_to_exitcode(outer.wait()) == 3


def test_a_notification_command_stands_on_its_own(environ, state_dir, tmp_path):
    """It holds none of the caller's files open, and finds no signal ignored that the session leader ignores."""
    told = tmp_path / "told"
    config = tmp_path / "config" / "agentwrap"
    config.mkdir(parents=True)
    script = f"grep SigIgn /proc/self/status >{told}.new; mv {told}.new {told}; exec sleep 2"
    (config / "config.toml").write_text(
        f'[notify]\nchannels = ["command"]\nblocked_delay = 0.01\ncommand = ["sh", "-c", "{script}"]\n'
    )
    reading, writing = os.pipe()
    name = f"/proc/{os.getpid()}/fd/{writing}"
    argv = [*AGENTWRAP, "sh", "-c", "printf '\\033]7501;state=blocked\\007'; read x"]
    with Outer(argv, environ=environ, prepare=lambda: os.dup2(os.open(name, os.O_WRONLY), 9)) as outer:
        until(told.exists)
        os.close(writing)
        outer.send(b"\r")
        assert outer.wait() == 0
        assert select.select([reading], [], [], 1)[0], "the pipe is at its end"
        assert os.read(reading, 1) == b""
    os.close(reading)
    ignored = int(told.read_text().split()[1], 16)
    assert not ignored & (1 << signal.SIGTERM - 1 | 1 << signal.SIGALRM - 1 | 1 << signal.SIGTSTP - 1)
