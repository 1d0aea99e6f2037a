"""Claims about the state directory: who may use it, what is in it, and that no change is lost."""

from __future__ import annotations

import errno
import json
import os
import signal
import stat
import subprocess
import sys
import time

import pytest

from agentwrap.errors import StateDirError
from agentwrap.host import statefile
from agentwrap.host.statefile import StateDir


def session(of: str, state: str = "working", *, pid: int | None = None, started: float | None = None, **more):
    """A session's file, as agentwrap writes it."""
    pid = os.getpid() if pid is None else pid
    if started is None:
        started = statefile.process_started(pid) or 0.0
    values = {"schema": 1, "session": of, "name": more.pop("name", None)}
    values |= {"command": [more.pop("command", "claude")], "pid": pid}
    values |= {"pid_started": started, "state": state, **more}
    return json.dumps(values).encode() + b"\n"


@pytest.fixture
def state(tmp_path):
    return StateDir.open({"AGENTWRAP_STATE_DIR": str(tmp_path / "state")})


def summary_of(state: StateDir) -> str | None:
    try:
        with open(state.summary_path, encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        return None


def mode(path: str) -> int:
    return stat.S_IMODE(os.lstat(path).st_mode)


def dead_pid() -> int:
    child = subprocess.Popen(["true"])
    child.wait()
    return child.pid


# Where it is


def test_where_it_is():
    uid = os.geteuid()
    assert statefile.directory({"AGENTWRAP_STATE_DIR": "/s/", "XDG_RUNTIME_DIR": "/run/u"}) == "/s"
    assert statefile.directory({"XDG_RUNTIME_DIR": "/run/u/", "TMPDIR": "/t"}) == "/run/u/agentwrap"
    assert statefile.directory({"TMPDIR": "/t/"}) == f"/t/agentwrap-{uid}"
    assert statefile.directory({}) == f"/tmp/agentwrap-{uid}"
    assert (
        statefile.directory({"AGENTWRAP_STATE_DIR": "", "XDG_RUNTIME_DIR": "", "TMPDIR": ""})
        == f"/tmp/agentwrap-{uid}"
    )
    assert statefile.directory({"XDG_RUNTIME_DIR": "run"}) == f"/tmp/agentwrap-{uid}"
    assert statefile.directory({"AGENTWRAP_STATE_DIR": "s"}) == os.path.join(os.getcwd(), "s")


# Whether it can be trusted


def test_it_is_made_for_the_owner_alone_whatever_the_umask(tmp_path):
    old = os.umask(0o777)
    try:
        state = StateDir.open({"AGENTWRAP_STATE_DIR": str(tmp_path / "state")})
        assert state.write_session("a-1", session("a-1")) is None
        state.flush_summary()
    finally:
        os.umask(old)
    assert mode(state.path) == 0o700
    assert mode(state.session_path("a-1")) == 0o600
    assert mode(state.summary_path) == 0o600


def test_one_that_not_even_its_owner_may_read_is_made_readable_unread(tmp_path, monkeypatch):
    def denied(path):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)

    (tmp_path / "state").mkdir(mode=0)
    monkeypatch.setattr(os, "listdir", denied)  # root may always
    assert mode(StateDir.open({"AGENTWRAP_STATE_DIR": str(tmp_path / "state")}).path) == 0o700


def test_missing_parents_are_made(tmp_path):
    state = StateDir.open({"AGENTWRAP_STATE_DIR": str(tmp_path / "a" / "b" / "state")})
    assert mode(state.path) == 0o700


def test_a_loose_mode_of_ones_own_is_tightened(tmp_path):
    path = tmp_path / "state"
    path.mkdir(mode=0o755)
    path.chmod(0o777)
    StateDir.open({"AGENTWRAP_STATE_DIR": str(path)})
    assert mode(str(path)) == 0o700


@pytest.mark.parametrize("target", ["real", "nowhere"])
def test_a_symbolic_link_is_refused(tmp_path, target):
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "state").symlink_to(tmp_path / target)
    for name in ("state", "state/"):
        with pytest.raises(StateDirError, match="symbolic link"):
            StateDir.open({"AGENTWRAP_STATE_DIR": f"{tmp_path}/{name}"})


def test_someone_elses_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "state"
    path.mkdir(mode=0o700)
    uid = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: uid + 1)
    with pytest.raises(StateDirError, match=f"belongs to user {uid}"):
        StateDir.open({"AGENTWRAP_STATE_DIR": str(path)})


def test_a_file_in_its_place_is_refused(tmp_path):
    (tmp_path / "state").touch()
    with pytest.raises(StateDirError, match="not a directory"):
        StateDir.open({"AGENTWRAP_STATE_DIR": str(tmp_path / "state")})
    with pytest.raises(StateDirError, match="Not a directory"):
        StateDir.open({"AGENTWRAP_STATE_DIR": str(tmp_path / "state" / "below")})


def test_a_directory_with_other_uses_keeps_its_mode(tmp_path):
    shared = tmp_path / "tmp"
    shared.mkdir()
    shared.chmod(0o1777)
    home = tmp_path / "home"
    home.mkdir(mode=0o755)
    for path in (shared, home):
        before = mode(str(path))
        with pytest.raises(StateDirError, match="other uses"):
            StateDir.open({"AGENTWRAP_STATE_DIR": str(path), "HOME": str(home)})
        assert mode(str(path)) == before


# What is in it


def test_a_session_appears_changes_and_goes(state):
    assert summary_of(state) is None
    assert state.write_session("a-1", session("a-1", "blocked")) is None
    state.flush_summary()
    assert summary_of(state) == "1 0 0 0 0 ⚠1\n"
    assert state.write_session("a-1", session("a-1", "idle")) is None
    state.flush_summary()
    assert summary_of(state) == "0 0 0 0 1\n"
    assert [one["session"] for one in state.sessions()] == ["a-1"]
    assert state.remove_session("a-1") is None
    assert state.remove_session("a-1") is None, "twice is no error"
    state.flush_summary()
    assert summary_of(state) is None
    assert sorted(os.listdir(state.path)) == [".lock"]


def test_unknown_and_suspended_sessions_are_in_no_count(state):
    for name, what in (("a-1", "unknown"), ("a-2", "suspended"), ("a-3", "done"), ("a-4", "error")):
        state.write_session(name, session(name, what))
    state.flush_summary()
    assert summary_of(state) == "0 1 1 0 0 ✗1 ✓1\n"


def test_texts_cannot_pass_for_the_state(state):
    for number, text in enumerate(
        ['"state": "blocked"', '", "state": "blocked', '\\", "pid": 1, "state": "x']
    ):
        state.write_session(f"a-{number}", session(f"a-{number}", "working", command=text, name=text))
    state.flush_summary()
    assert summary_of(state) == "0 0 0 3 0 ●3\n"


@pytest.mark.parametrize("separators", [(",", ":"), (" ,", " : ")])
def test_a_file_written_by_another_program_is_read(state, separators):
    one = json.loads(session("a-1", "error"))
    one["command"] = ["x" * 2 * statefile.HEAD]
    with open(state.session_path("a-1"), "w", encoding="utf-8") as file:
        json.dump(one, file, separators=separators)
    state.write_session("a-2", session("a-2", "error", command="y" * 3 * statefile.HEAD))
    state.flush_summary()
    assert summary_of(state) == "0 2 0 0 0 ✗2\n"


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"[]", b'"x"', b"\xff", b'{"pid": "a", "pid_started": 1, "state": "done"}', b"[" * 100_000],
)
def test_what_is_no_session_is_passed_over_and_kept(state, data):
    path = state.session_path("odd")
    with open(path, "wb") as file:
        file.write(data)
    os.mkfifo(state.session_path("pipe"))
    os.mkdir(state.session_path("folder"))
    os.symlink("/etc/passwd", state.session_path("link"))
    state.write_session("a-1", session("a-1", "done"))
    state.flush_summary()
    assert summary_of(state) == "0 0 1 0 0 ✓1\n"
    assert [one["session"] for one in state.sessions()] == ["a-1"]
    assert os.path.exists(path)


def test_the_former_content_of_a_symbolic_link_is_safe(state, tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("precious")
    for name in ("a-1.json", "summary"):
        os.symlink(victim, os.path.join(state.path, name))
    os.symlink(victim, os.path.join(state.path, f".a-1.json.{os.getpid()}.tmp"))
    assert state.write_session("a-1", session("a-1")) is None
    state.flush_summary()
    assert victim.read_text() == "precious"
    assert not os.path.islink(state.session_path("a-1"))


# Which sessions are live


def test_a_dead_session_is_never_shown_and_cleaned_up_by_whoever_comes_next(state):
    gone = dead_pid()
    with open(state.session_path("dead-1"), "wb") as file:
        file.write(session("dead-1", "blocked", pid=gone, started=time.time()))
    names = [f".dead-1.json.{gone}.tmp", f"dead-{gone}.events", f"dead-{gone}.events.new"]
    leftovers = [os.path.join(state.path, name) for name in names]
    others = [
        os.path.join(state.path, name) for name in (f"a-{os.getpid()}.events", "notes.txt", ".hidden.tmp")
    ]
    for path in leftovers + others:
        with open(path, "wb"):
            pass
    other = StateDir(state.path)
    other.write_session("a-1", session("a-1", "done"))
    other.flush_summary()
    assert summary_of(state) == "0 0 1 0 0 ✓1\n"
    assert not os.path.exists(state.session_path("dead-1"))
    assert not any(map(os.path.exists, leftovers))
    assert all(map(os.path.exists, others))


@pytest.mark.parametrize("clean", [StateDir.sessions, StateDir.correct_summary, StateDir.states])
def test_a_dead_sessions_events_go_with_it_though_its_number_is_in_use_again(state, clean):
    name = f"dead-{os.getpid()}"
    with open(state.session_path(name), "wb") as file:
        file.write(session(name, "blocked", pid=os.getpid(), started=1000.0))
    events = os.path.join(state.path, f"{name}.events")
    with open(events, "wb"):
        pass
    assert clean(state) == []
    assert not os.path.exists(events)


@pytest.mark.parametrize("verb", [StateDir.sessions, StateDir.correct_summary])
def test_a_verb_cleans_up_too(state, verb):
    with open(state.session_path("dead-1"), "wb") as file:
        file.write(session("dead-1", "blocked", pid=dead_pid(), started=time.time()))
    with open(state.summary_path, "w", encoding="utf-8") as file:
        file.write("1 0 0 0 0 ⚠1\n")
    assert verb(state) == []
    assert summary_of(state) is None
    assert not os.path.exists(state.session_path("dead-1"))


def test_a_wrong_summary_is_corrected_by_a_verb(state):
    state.write_session("a-1", session("a-1", "done"))
    with open(state.summary_path, "w", encoding="utf-8") as file:
        file.write("7 0 0 0 0 ⚠7\n")
    assert StateDir(state.path).correct_summary() == ["done"]
    assert summary_of(state) == "0 0 1 0 0 ✓1\n"


def test_a_reused_number_is_another_process(state):
    started = statefile.process_started(os.getpid())
    for number, difference in enumerate((-1.9, 1.9, -2.1, 2.1)):
        with open(state.session_path(f"a-{number}"), "wb") as file:
            file.write(session(f"a-{number}", pid=os.getpid(), started=started + difference))
    assert sorted(one["session"] for one in state.sessions()) == ["a-0", "a-1"]


def test_a_dead_process_nobody_waited_for_is_not_live():
    child = subprocess.Popen(["true"])
    deadline = time.monotonic() + 10
    while statefile.is_live(child.pid, time.time()) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not statefile.is_live(child.pid, time.time())
    child.wait()


def test_start_times_are_those_of_psutil():
    psutil = pytest.importorskip("psutil")
    child = subprocess.Popen(["sleep", "60"])
    try:
        got = statefile.process_started(child.pid)
        assert got == pytest.approx(psutil.Process(child.pid).create_time(), abs=1.5)
        assert got == pytest.approx(time.time(), abs=1.5)
    finally:
        child.kill()
        child.wait()
    assert statefile.process_started(child.pid) is None


def test_impossible_numbers_are_no_processes():
    assert not statefile.is_live(1 << 70, 0.0)
    assert not statefile.is_live(dead_pid(), time.time())


# When the disk or somebody else interferes


def test_a_deleted_directory_is_made_again(state):
    state.write_session("a-1", session("a-1"))
    import shutil

    shutil.rmtree(state.path)
    other = StateDir(state.path)
    assert other.write_session("a-2", session("a-2", "done")) is None
    other.flush_summary()
    assert summary_of(state) == "0 0 1 0 0 ✓1\n"
    shutil.rmtree(state.path)
    state.remove_session("nothing")
    state.flush_summary()
    assert summary_of(state) == "0 0 0 1 0 ●1\n", "its own file is written again"
    assert mode(state.path) == 0o700


def test_a_deleted_directory_replaced_by_a_link_is_refused(state, tmp_path):
    os.rmdir(state.path)
    (tmp_path / "trap").mkdir()
    os.symlink(tmp_path / "trap" / "deeper", state.path)
    assert "symbolic link" in state.write_session("a-1", session("a-1"))
    state.flush_summary()
    assert list((tmp_path / "trap").iterdir()) == []


@pytest.mark.parametrize(
    "number", [errno.ENOSPC, errno.EROFS, errno.EDQUOT, errno.EFBIG, errno.EMFILE, errno.EIO]
)
def test_a_disk_that_takes_nothing_gives_a_reason_and_no_exception(state, monkeypatch, number):
    state.write_session("a-1", session("a-1", "done"))
    state.flush_summary()

    def fail(*_args, **_more):
        raise OSError(number, os.strerror(number))

    real_open = os.open

    def refuse(path, flags, *more, **named):
        return fail() if flags & (os.O_WRONLY | os.O_RDWR) else real_open(path, flags, *more, **named)

    for name, function in (("write", fail), ("pwrite", fail), ("rename", fail), ("open", refuse)):
        with monkeypatch.context() as patch:
            patch.setattr(os, name, function)
            reason = state.write_session("a-1", session("a-1", "error"))
            state.flush_summary()
        if name != "pwrite":
            assert os.strerror(number) in reason
    assert summary_of(state) == "0 0 1 0 0 ✓1\n"
    assert not [name for name in os.listdir(state.path) if name.endswith(".tmp")]


def test_a_holder_of_the_lock_that_was_stopped_is_not_waited_for(state):
    code = (
        "import fcntl, os, sys; fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT); "
        "fcntl.flock(fd, fcntl.LOCK_EX); print('held', flush=True); sys.stdin.read()"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", code, os.path.join(state.path, ".lock")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert holder.stdout.readline() == b"held\n"
        holder.send_signal(signal.SIGSTOP)
        state.write_session("a-1", session("a-1", "done"))
        began = time.monotonic()
        state.flush_summary(30)
        assert time.monotonic() - began < 10
        assert summary_of(state) == "0 0 1 0 0 ✓1\n"
    finally:
        holder.kill()
        holder.communicate()


def test_no_call_waits_for_the_lock(state):
    state.write_session("a-1", session("a-1", "done"))
    import fcntl

    with open(os.path.join(state.path, ".lock"), "rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        began = time.monotonic()
        again = state.refresh_summary(began)  # or it would wait for ever
        assert again is not None
        assert began < again < began + 0.1


def scans(state, *, started=None, finished=None, last=None):
    """Write into the lock file as another session would."""
    with open(os.path.join(state.path, ".lock"), "r+b") as lock:
        for place, value in ((0, started), (8, finished), (16, last)):
            if value is not None:
                os.pwrite(lock.fileno(), int(value).to_bytes(8, "big"), place)


def test_a_scan_that_began_before_a_change_does_not_serve_it(state):
    state.write_session("a-1", session("a-1", "working"))
    state.flush_summary()
    scans(state, started=5, finished=4)
    state.write_session("a-1", session("a-1", "blocked"))
    scans(state, finished=5)
    now = time.monotonic() + 1
    assert state.refresh_summary(now) is None
    assert summary_of(state) == "1 0 0 0 0 ⚠1\n"


def test_a_scan_that_began_after_a_change_serves_it_once_it_is_finished(state):
    state.write_session("a-1", session("a-1", "working"))
    state.flush_summary()
    scans(state, started=5, finished=5)
    state.write_session("a-1", session("a-1", "blocked"))
    now = time.monotonic()
    scans(state, started=6, last=now * 1e9)
    assert state.refresh_summary(now) is not None, "under way, it may still fail"
    scans(state, finished=6)
    assert state.refresh_summary(now) is None
    assert summary_of(state) == "0 0 0 1 0 ●1\n", "the other one wrote it, or would have"


def test_a_scan_that_never_finishes_is_made_up_for(state):
    state.write_session("a-1", session("a-1", "working"))
    state.flush_summary()
    state.write_session("a-1", session("a-1", "blocked"))
    now = time.monotonic()
    scans(state, started=9, last=now * 1e9)
    again = state.refresh_summary(now)
    assert again is not None
    assert state.refresh_summary(now + statefile.SPACING + 0.001) is None
    assert summary_of(state) == "1 0 0 0 0 ⚠1\n"


@pytest.mark.parametrize(
    "content", [b"", b"x", b"\xff" * 24, b"\xff" * 32, b"\xff" * 500, b"\0" * 32 + b"1 2 3\n"]
)
def test_a_lock_file_with_anything_in_it_is_no_trouble(state, content):
    with open(os.path.join(state.path, ".lock"), "wb") as lock:
        lock.write(content)
    for what, line in (("blocked", "1 0 0 0 0 ⚠1\n"), ("done", "0 0 1 0 0 ✓1\n")):
        state.write_session("a-1", session("a-1", what))
        state.flush_summary()
        assert summary_of(state) == line


# Many at once

WORKER = """
import os, select, sys, time
from agentwrap.host import statefile
state = statefile.StateDir.open(os.environ)
name, period, end = sys.argv[1], float(sys.argv[2]), float(sys.argv[3])
started = statefile.process_started(os.getpid())
states = ("working", "done", "blocked", "error", "idle")
change = time.monotonic() + period * (hash(name) % 97) / 97
due = None
turn = hash(name)
while time.monotonic() < end:
    now = time.monotonic()
    if now >= change:
        turn += 1
        change += period
        text = '{"schema": 1, "session": "%s", "pid": %d, "pid_started": %f, "state": "%s"}\\n'
        state.write_session(name, (text % (name, os.getpid(), started, states[turn % 5])).encode())
        due = state.refresh_summary(now)
    elif due is not None and now >= due:
        due = state.refresh_summary(now)
    time.sleep(max(0, min(x for x in (change, due, end) if x is not None) - time.monotonic()))
due = state.refresh_summary(time.monotonic())
while due is not None:
    time.sleep(max(0, due - time.monotonic()))
    due = state.refresh_summary(time.monotonic())
print(time.process_time(), flush=True)
sys.stdin.read()
state.remove_session(name)
state.flush_summary()
"""


def run_workers(state: StateDir, number: int, period: float, seconds: float):
    environ = os.environ | {"AGENTWRAP_STATE_DIR": state.path}
    end = time.monotonic() + seconds
    return [
        subprocess.Popen(
            [sys.executable, "-I", "-c", WORKER, f"a-{index}", str(period), str(end)],
            env=environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        for index in range(number)
    ]


def test_sessions_that_change_at_once_lose_no_update(state):
    workers = run_workers(state, 12, 0.05, 4)
    try:
        for worker in workers:
            assert worker.stdout.readline()
        states = [one["state"] for one in state.sessions()]
        assert len(states) == len(workers)
        numbers = [states.count(name) for name in ("blocked", "error", "done", "working", "idle")]
        assert [int(word) for word in summary_of(state).split()[:5]] == numbers
    finally:
        for worker in workers:
            worker.communicate()
    assert summary_of(state) is None
    assert os.listdir(state.path) == [".lock"]


def test_sessions_killed_at_once_are_gone_when_another_changes(state):
    workers = run_workers(state, 4, 0.2, 60)
    deadline = time.monotonic() + 20
    while len(os.listdir(state.path)) < 6 and time.monotonic() < deadline:
        time.sleep(0.02)
    for worker in workers:
        worker.kill()
        worker.communicate()
    state.write_session("b-1", session("b-1", "blocked"))
    state.flush_summary()
    assert summary_of(state) == "1 0 0 0 0 ⚠1\n"


def test_it_costs_nothing_to_import():
    code = (
        "import sys; before = set(sys.modules); import agentwrap.host.statefile; "
        "print(*(set(sys.modules) - before))"
    )
    got = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    ours = {name for name in got if name.startswith("agentwrap")}
    assert set(got) - ours <= {"__future__", "fcntl"}


def test_a_loose_directory_with_other_files_is_refused_and_left_alone(tmp_path):
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o755)
    (shared / "bin").mkdir()
    with pytest.raises(StateDirError, match="holds other files"):
        StateDir.open({"AGENTWRAP_STATE_DIR": str(shared)})
    assert shared.stat().st_mode & 0o777 == 0o755
    (shared / "bin").rmdir()
    StateDir.open({"AGENTWRAP_STATE_DIR": str(shared)})
    assert shared.stat().st_mode & 0o777 == 0o700
