"""The state directory: where it is, whether it can be trusted, and the files in it.

A session's file changes by rename, so a reader never sees half of one. `summary` is made from all sessions'
files by whoever changes something; nobody waits for anybody (see `StateDir.refresh_summary`). What a
session file says is `core.snapshot`'s; here only three of its values are read. On the wrap path: nothing
heavy is imported, and disk errors are values, not exceptions.
"""

from __future__ import annotations

import fcntl
import os
import stat
import sys
import time

from agentwrap.core import summary
from agentwrap.errors import StateDirError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    _Known = tuple[int, int, int, float, str]  # inode, time (ns), pid, its start, state

START_TOLERANCE = 2.0  # seconds between the recorded and the present idea of when a process started
HEAD = 4096  # bytes of a session file that nearly always hold its state: all short values come first
LARGEST_SESSION = 4 << 20  # bytes: 256 records of the longest texts, escaped, are below this
LARGEST_SUMMARY = 4096
LARGEST_MEMORY = 1 << 20

# `summary` is right within 0.2 s, however many sessions change: scans start at least SPACING apart, and one
# that finds the lock taken looks again after RETRY. A holder that was stopped is waited for no longer
# than PATIENCE; its own scan is then too old to be written.
SPACING = 0.12
RETRY = 0.02
PATIENCE = 0.06
OLDEST_SCAN = 0.05
STAGGER = 0.001  # times 0 to 15, so that the first one is done when the others look

# A scan looks again only at what changed since the one before it, as long as it can tell: a file system's
# time moves in steps. That a process still is the same one is asked once a second; that it exists, always.
SETTLED = 0.05
RECHECK = 1.0

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def directory(environ: Mapping[str, str]) -> str:
    """The state directory's path, whether it exists or not."""
    named = environ.get("AGENTWRAP_STATE_DIR")
    if named:
        return os.path.abspath(named)
    runtime = environ.get("XDG_RUNTIME_DIR", "")
    if runtime.startswith("/"):  # a relative one is to be ignored, says the specification
        return os.path.join(os.path.abspath(runtime), "agentwrap")
    return os.path.join(os.path.abspath(environ.get("TMPDIR") or "/tmp"), f"agentwrap-{os.geteuid()}")  # noqa: S108 - the documented place; owner and mode are checked


class StateDir:
    """A state directory that was found to be ours alone.

    Attributes:
        path: absolute.
    """

    __slots__ = ("_data", "_name", "_seen", "_waiting", "path")

    def __init__(self, path: str) -> None:
        self.path = path
        self._name = ""  # the session written from here, and what was written last
        self._data = b""
        self._seen: int | None = None  # scans that had started when the last change from here was complete
        self._waiting: tuple[int, float] | None = None  # the scan that holds the lock, and since when we wait

    @classmethod
    def open(cls, environ: Mapping[str, str]) -> StateDir:
        """Find and verify the directory, make it where it is missing.

        Raises:
            StateDirError: it cannot be made, or belongs to someone else, or is a symbolic link.
        """
        path = directory(environ)
        reason = _prepare(path, environ.get("HOME"))
        if reason is not None:
            raise StateDirError(reason)
        return cls(path)

    def session_path(self, name: str) -> str:
        """The file of the session called `name`."""
        return os.path.join(self.path, f"{name}.json")

    @property
    def summary_path(self) -> str:
        """The summary's file."""
        return os.path.join(self.path, "summary")

    def write_session(self, name: str, data: bytes) -> str | None:
        """Publish a session; `refresh_summary` is to be called next.

        Returns:
            None, or why it could not be written (the former file is then as it was).
        """
        self._name, self._data = name, data
        reason = self._replace(f"{name}.json", data)
        self._changed()
        return reason

    def remove_session(self, name: str) -> str | None:
        """Take a session back; `refresh_summary` is to be called next.

        Returns:
            None, also where it was not there; or why it could not be removed.
        """
        if name == self._name:
            self._name, self._data = "", b""
        reason = _unlink(self.session_path(name))
        self._changed()
        return reason

    def refresh_summary(self, now: float, *, urgent: bool = False) -> float | None:
        """Bring the summary up to date, or say when to call again to see that it is.

        Scanning all sessions for each change of each of them would cost the square of their number. So a
        scan that began after a change was complete serves that change too, whoever made it; scans are
        spaced; and the lock is never waited for. Numbers in the lock file say which scan began when:
        a clock that is set cannot hide a change.

        Args:
            now: monotonic time.
            urgent: do not space scans: for those that will not be there to be called again.

        Returns:
            None if the summary holds everything that was changed from here, else the time to call again.
        """
        if self._seen is None:
            return None
        try:
            lock = self._open_lock()
        except OSError:
            self._seen = None  # nothing can be written there; the next change tries again
            return None
        try:
            started, finished, last = _mark(lock)
            if finished <= self._seen:
                if last <= now < last + SPACING and not urgent:
                    if started > self._seen:
                        return now + RETRY  # the scan that will serve us is under way
                    return last + SPACING + os.getpid() % 16 * STAGGER
                locked = self._locked(lock)
                if not locked and self._may_wait(started, now):
                    return now + RETRY
                self._scan(lock, now, locked=locked)
        except OSError:
            pass  # full or gone: readers see the former summary, and the next change tries again
        finally:
            os.close(lock)
        self._seen = self._waiting = None
        return None

    def flush_summary(self, patience: float = 0.3) -> None:
        """Refresh it now, waiting for others at most `patience` seconds; for verbs and at the end."""
        end = time.monotonic() + patience
        while True:
            now = time.monotonic()
            again = self.refresh_summary(now, urgent=True)
            if again is None or now >= end:
                return
            time.sleep(max(0.0, min(again, end) - now))

    def states(self) -> list[str]:
        """The state of each live session; what is left of dead ones is removed.

        Raises:
            OSError: the directory cannot be read.
        """
        return self._survey({}).states

    def sessions(self) -> list[dict[str, Any]]:
        """All live sessions as the objects in their files, in no order; for verbs.

        Cleans up behind dead ones, the summary included.
        """
        import json

        found = []
        stale = False
        try:
            entries = os.listdir(self.path)
        except OSError:
            return []
        for entry in entries:
            if not entry.endswith(".json"):
                continue
            path = os.path.join(self.path, entry)
            data, inode, _ = _read(path, LARGEST_SESSION)
            try:
                one = json.loads(data)
                pid, started = int(one["pid"]), float(one["pid_started"])
                known = isinstance(one["session"], str) and isinstance(one["state"], str)
            except (ValueError, TypeError, KeyError, RecursionError):
                continue
            if not known:
                continue
            if is_live(pid, started, exact=True):
                found.append(one)
            else:
                _remove_stale(path, inode)
                stale = True
        if stale:
            self._changed()
            self.flush_summary()
        return found

    def correct_summary(self) -> list[str]:
        """See that the summary says what the sessions say; for verbs.

        Returns:
            The states of the live sessions.
        """
        try:
            survey = self._survey({})
        except OSError:
            return []
        if survey.stale or _read(self.summary_path, LARGEST_SUMMARY)[0] != _line(survey.states):
            self._changed()
            self.flush_summary()
        return survey.states

    def _changed(self) -> None:
        """Note that a scan which starts from now on is needed."""
        self._seen = 0  # smaller than any scan's number: at worst one that was too early counts
        try:
            lock = self._open_lock()
        except OSError:
            return
        try:
            self._seen = _mark(lock)[0]
        except OSError:
            pass
        finally:
            os.close(lock)

    def _open_lock(self) -> int:
        path = os.path.join(self.path, ".lock")
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            return os.open(path, flags, 0o600)
        except FileNotFoundError:
            if _prepare(self.path, None) is not None:
                raise
            return os.open(path, flags, 0o600)
        except PermissionError:  # made under an umask that takes our own rights away
            _unlink(path)
            _write_new(path, b"")
            return os.open(path, flags, 0o600)

    def _locked(self, lock: int) -> bool:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True

    def _may_wait(self, scan: int, now: float) -> bool:
        """Whether the scan that holds the lock may still be waited for."""
        if self._waiting is None or self._waiting[0] != scan:
            self._waiting = (scan, now)
        return now < self._waiting[1] + PATIENCE

    def _scan(self, lock: int, now: float, *, locked: bool) -> None:
        """Make the summary from all sessions."""
        known, checked = _memory(lock) if locked else ({}, 0.0)
        if not checked <= now < checked + RECHECK:
            checked = now
        for attempt in range(3):
            started = (_mark(lock)[0] + 1).to_bytes(8, "big")
            os.pwrite(lock, started, 0)
            os.pwrite(lock, _stamp(now), 16)
            survey = self._survey(known, exact=checked == now)
            line = _line(survey.states)
            # If we were stopped since, others have gone on without the lock and know better.
            if time.monotonic() - now < OLDEST_SCAN or attempt == 2:
                if line != _read(self.summary_path, LARGEST_SUMMARY)[0]:
                    if line:
                        self._replace("summary", line)
                    else:
                        _unlink(self.summary_path)
                os.pwrite(lock, started, 8)
                if locked:
                    memory = _stamp(checked) + "".join(survey.lines).encode()
                    os.pwrite(lock, memory, 24)
                    os.ftruncate(lock, 24 + len(memory))
                return
            now = time.monotonic()

    def _survey(self, known: dict[str, _Known], *, exact: bool = True) -> _Survey:
        """Look at all sessions; remove what is left of dead ones.

        Args:
            known: what an earlier survey found, by file name.
            exact: whether a known process is to be compared with its start time again.
        """
        found = _Survey()
        own = f"{self._name}.json" if self._data else ""
        for entry in os.listdir(self.path):
            if not entry.endswith(".json"):
                if _is_left_over(entry):
                    _unlink(os.path.join(self.path, entry))
                continue
            path = os.path.join(self.path, entry)
            if entry == own:
                own = ""
                found.states.append(_state(self._data))
                continue
            if entry in known:
                inode, changed, pid, started, _ = known[entry]
                try:
                    now = os.lstat(path)
                except OSError:
                    continue  # gone just now
                if (now.st_ino, now.st_mtime_ns) == (inode, changed) and (
                    is_live(pid, started) if exact else _exists(pid)
                ):
                    found.add(entry, known[entry])
                    continue
            data, inode, changed = _head(path)
            pid, started = _identity(data)
            if pid <= 0:
                continue  # not one of ours
            if is_live(pid, started):
                found.add(entry, (inode, changed, pid, started, _state(data)))
            else:
                _remove_stale(path, inode)
                found.stale = True
        if own:  # removed by someone: with the directory, or by a clean-up that took us for dead
            self._replace(own, self._data)
            found.states.append(_state(self._data))
        return found

    def _replace(self, name: str, data: bytes) -> str | None:
        """Give the file `name` this content, in one step. Returns None, or why not."""
        temporary = os.path.join(self.path, f".{name}.{os.getpid()}.tmp")
        for _ in range(3):
            try:
                _write_new(temporary, data)
                os.rename(temporary, os.path.join(self.path, name))
            except FileExistsError:  # left by a process that had our number
                _unlink(temporary)
            except FileNotFoundError:  # the directory was deleted
                reason = _prepare(self.path, None)
                if reason is not None:
                    return reason
            except OSError as error:
                _unlink(temporary)
                return f"{self.path}: cannot write {name}: {error.strerror}"
            else:
                return None
        return f"{self.path}: cannot write {name}: the directory does not stay"


def _line(states: list[str]) -> bytes:
    """The summary's content; empty for no file."""
    return summary.line(summary.counts(states)).encode() if states else b""


class _Survey:
    """What a look at all sessions found."""

    __slots__ = ("lines", "settled", "stale", "states")

    def __init__(self) -> None:
        self.states: list[str] = []
        self.stale = False
        """Whether there was a dead session."""
        self.lines: list[str] = []
        """What can be known the next time, in the form of the lock file."""
        self.settled = time.time_ns() - int(SETTLED * 1e9)

    def add(self, entry: str, known: _Known) -> None:
        """Count a live session."""
        self.states.append(known[4])
        if known[1] < self.settled and entry.isascii() and entry.isprintable() and " " not in entry:
            inode, changed, pid, started, state = known
            self.lines.append(f"{inode} {changed} {pid} {started!r} {state} {entry}\n")


# The lock file: scans started, scans finished, when (monotonic) the last one started, when processes were
# last compared with their start times; eight bytes each; then a line for each session known.


def _mark(lock: int) -> tuple[int, int, float]:
    """Scans started, scans finished, and when (monotonic) the last one started."""
    mark = os.pread(lock, 24, 0)
    number = int.from_bytes
    started, finished = number(mark[:8], "big"), number(mark[8:16], "big")
    if not finished <= started < 1 << 62:
        started = finished = 0  # not ours: everybody scans for himself, until it is
    return started, finished, number(mark[16:], "big") / 1e9


def _memory(lock: int) -> tuple[dict[str, _Known], float]:
    """The sessions known, and when (monotonic) their processes were last checked."""
    data = os.pread(lock, min(LARGEST_MEMORY, os.fstat(lock).st_size), 24)
    known = {}
    try:
        for line in data[8:].decode("ascii").splitlines():
            inode, changed, pid, started, state, entry = line.split(" ")
            known[entry] = (int(inode), int(changed), int(pid), float(started), state)
    except ValueError:
        return {}, 0.0  # not ours, or cut by a full disk
    return known, int.from_bytes(data[:8], "big") / 1e9


def _stamp(now: float) -> bytes:
    return int(now * 1e9).to_bytes(8, "big")


def is_live(pid: int, started: float, *, exact: bool = False) -> bool:
    """Whether the process `pid` that started at `started` (seconds since the epoch) exists.

    Args:
        pid: its number.
        started: when it started, as recorded.
        exact: ask psutil for the start time where the system has no /proc; it costs 20 ms to import.
    """
    if not _exists(pid):
        return False
    now_started = process_started(pid)
    if now_started is None:
        if sys.platform.startswith("linux"):
            return _exists(pid)  # it went just now; or /proc is hidden, and then its number is all there is
        if not exact:
            return True
        import psutil

        try:
            now_started = psutil.Process(pid).create_time()
        except psutil.Error:
            return False
    return abs(now_started - started) <= START_TOLERANCE


def process_started(pid: int) -> float | None:
    """When process `pid` started, seconds since the epoch by today's clock; None where /proc does not say."""
    try:
        fd = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        line = os.read(fd, 2048)
    except OSError:
        return None
    finally:
        os.close(fd)
    fields = line[line.rfind(b")") + 2 :].split()  # the name before it may hold anything
    if len(fields) < 20:
        return None
    if fields[0] in (b"Z", b"X"):
        return 0.0  # dead, only not waited for
    return int(fields[19]) / _TICKS + time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)


_TICKS = os.sysconf("SC_CLK_TCK")


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    return True


def _prepare(path: str, home: str | None) -> str | None:
    """Make `path` if it is missing, and see that it is ours alone. Returns None, or why it is refused."""
    try:
        try:
            os.mkdir(path, 0o700)
        except FileNotFoundError:
            os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
            os.mkdir(path, 0o700)
    except FileExistsError:
        pass
    except OSError as error:
        return f"{path}: cannot make the state directory: {error.strerror}"
    try:
        found = os.lstat(path)
    except OSError as error:
        return f"{path}: cannot use the state directory: {error.strerror}"
    refused = f"{path}: refused as state directory"
    if stat.S_ISLNK(found.st_mode):
        return f"{refused}: it is a symbolic link"
    if not stat.S_ISDIR(found.st_mode):
        return f"{refused}: it is not a directory"
    if found.st_uid != os.geteuid():
        return f"{refused}: it belongs to user {found.st_uid}"
    if stat.S_IMODE(found.st_mode) == 0o700:
        return None
    # Taking everyone's rights to these away would break more than a state directory.
    if found.st_mode & stat.S_ISVTX or path == "/" or (home and path == os.path.abspath(home)):
        return f"{refused}: it has other uses; name one of its own"
    try:
        # Where only our own rights are missing, by an umask say, there is nothing to look for, nor a way to.
        if found.st_mode & 0o077 and not all(_is_ours(name) for name in os.listdir(path)):
            return f"{refused}: others may enter it, and it holds other files; name one of its own"
        os.chmod(path, 0o700)
    except OSError as error:
        return f"{refused}: others may enter it, and its mode cannot be changed: {error.strerror}"
    return None


def _is_ours(name: str) -> bool:
    """Whether a name is one of those that sessions leave in their directory."""
    return name == "summary" or name.startswith(".") or name.endswith((".json", ".events", ".agent"))


def _write_new(path: str, data: bytes) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        os.fchmod(fd, 0o600)  # whatever the umask took away
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]
    finally:
        os.close(fd)


def _unlink(path: str) -> str | None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        return f"{path}: cannot remove: {error.strerror}"
    return None


def _remove_stale(path: str, inode: int) -> None:
    """Remove a dead session's file, unless a new session took its name since it was read."""
    try:
        if os.lstat(path).st_ino == inode:
            os.unlink(path)
            # Its events too: the number may be another process's by now, and they would stay as long as that.
            os.unlink(f"{path.removesuffix('.json')}.events")
    except OSError:
        pass  # gone already, or not to be had: it is not counted either way


def _is_left_over(entry: str) -> bool:
    """Whether this file, beside a session's or on its way to become one, was of a process that is gone."""
    if entry.startswith(".") and entry.endswith(".tmp"):
        pid = entry[:-4].rpartition(".")[2]
    elif entry.endswith((".events", ".events.new")):
        pid = entry.rpartition(".events")[0].rpartition("-")[2]
    else:
        return False
    return pid.isdecimal() and not _exists(int(pid))


def _head(path: str) -> tuple[bytes, int, int]:
    """So much of a session file that its state is in it, the file's number and time; or empty."""
    found = _read(path, HEAD)
    if len(found[0]) == HEAD and found[0].find(b'"state": "') < 0:
        return _read(path, LARGEST_SESSION)
    return found


def _read(path: str, limit: int) -> tuple[bytes, int, int]:
    """The first `limit` bytes of a file, its number and time (ns); empty for what is no regular file."""
    try:
        fd = os.open(path, _READ)
    except OSError:
        return b"", 0, 0
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            return b"", 0, 0
        return os.read(fd, min(limit, found.st_size)), found.st_ino, found.st_mtime_ns
    except OSError:
        return b"", 0, 0
    finally:
        os.close(fd)


def _state(data: bytes) -> str:
    # Inside a JSON text every quote has a backslash before it, so this is the key and nothing else.
    start = data.find(b'"state": "') + 10
    if start >= 10:
        return data[start : data.find(b'"', start)].decode("ascii", "replace")
    return str(_parsed(data).get("state"))


def _identity(data: bytes) -> tuple[int, float]:
    """The process a session file names: its pid and start time; (0, 0) if it names none."""
    try:
        start, begun = data.find(b'"pid": '), data.find(b'"pid_started": ')
        if start >= 0 and begun >= 0:
            return (
                int(data[start + 7 : data.find(b",", start)]),
                float(data[begun + 15 : data.find(b",", begun)]),
            )
        one = _parsed(data)
        return int(one["pid"]), float(one["pid_started"])
    except (ValueError, TypeError, KeyError):
        return 0, 0.0


def _parsed(data: bytes) -> dict[str, Any]:
    """A session file that was written by something else than `core.snapshot`."""
    import json

    try:
        one = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return one if isinstance(one, dict) else {}
