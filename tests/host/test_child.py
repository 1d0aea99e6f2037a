from __future__ import annotations

import errno
import os
import subprocess
import sys

from agentwrap.host import child, signals


def test_found_as_a_shell_finds_it(tmp_path):
    first, second = tmp_path / "a", tmp_path / "b"
    first.mkdir()
    second.mkdir()
    (first / "tool").write_text("#!/bin/sh\n")
    (second / "tool").write_text("#!/bin/sh\n")
    (second / "tool").chmod(0o755)
    environ = {"PATH": f"{first}:{second}"}
    assert child.find("tool", environ) == (str(second / "tool"), 0)
    (second / "tool").unlink()
    assert child.find("tool", environ) == (str(first / "tool"), errno.EACCES)
    assert child.find("other", environ) == (None, errno.ENOENT)


def test_a_path_is_taken_as_it_is(tmp_path):
    assert child.find(f"{tmp_path}/none", {})[1] == errno.ENOENT
    assert child.find(str(tmp_path), {})[1] == errno.EACCES
    assert child.find("nul\0", {"PATH": "/bin"})[1] == errno.ENOENT


def run_bare(path: str, *words: str, before: str = "") -> subprocess.CompletedProcess[str]:
    code = (
        "import os, sys\nfrom agentwrap.host import child, signals\n"
        f"{before}\nargv = {[path, *words]!r}\n"
        "child.bare(child.Launch(argv[0], argv, os.environ, ignored=signals.ignored_by_caller()))"
    )
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_a_script_without_an_interpreter_line_runs(tmp_path):
    script = tmp_path / "start.sh"
    script.write_text('echo "$0 $1"\n')
    script.chmod(0o755)
    assert run_bare(str(script), "one").stdout == f"{script} one\n"


def test_the_interpreter_hands_on_no_ignored_signal():
    ignored = run_bare("/bin/sh", "-c", "grep SigIgn /proc/self/status").stdout
    assert int(ignored.split()[1], 16) & (1 << 12 | 1 << 24) == 0  # SIGPIPE, SIGXFSZ


def test_a_shells_ignored_pipe_signal_is_handed_on():
    code = (
        "import os\nfrom agentwrap.host import child, signals\n"
        "argv = ['/bin/sh', '-c', 'grep SigIgn /proc/self/status']\n"
        "child.bare(child.Launch(argv[0], argv, os.environ, ignored=signals.ignored_by_caller()))"
    )
    out = subprocess.run(
        ["/bin/sh", "-c", f"trap '' PIPE; '{sys.executable}' -c \"$0\"; true", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ).stdout
    mask = int(out.split()[1], 16)
    assert mask & 1 << 12
    assert not mask & 1 << 24


def test_who_ignores_what_is_read_from_the_parents_status(tmp_path):
    directory = tmp_path / str(os.getppid())
    directory.mkdir()
    status = directory / "status"
    status.write_text("Name:\tzsh\nSigIgn:\t0000000000001000\n")
    assert [int(n) for n in signals.ignored_by_caller(str(tmp_path))] == [13]
    status.write_text("Name:\tpython3\nSigIgn:\t0000000001001000\n")
    assert signals.ignored_by_caller(str(tmp_path)) == ()
    assert signals.ignored_by_caller(str(tmp_path / "none")) == ()
