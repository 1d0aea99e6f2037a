from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from agentwrap.host import signals


@pytest.fixture
def pipe():
    made = signals.SignalPipe()
    before = signal.getsignal(signal.SIGUSR1)
    yield made
    made.close()
    signal.signal(signal.SIGUSR1, before)


def test_signals_arrive_as_numbers_in_order(pipe):
    pipe.catch((signal.SIGUSR1,))
    os.kill(os.getpid(), signal.SIGUSR1)
    os.kill(os.getpid(), signal.SIGUSR1)
    assert pipe.take() == bytes((signal.SIGUSR1, signal.SIGUSR1))
    assert pipe.take() == b""


def test_a_signal_our_caller_ignores_stays_ignored(pipe):
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    pipe.catch((signal.SIGUSR1,))
    assert signal.getsignal(signal.SIGUSR1) is signal.SIG_IGN


def run(code: str, **options) -> subprocess.CompletedProcess[str]:
    program = f"import os, signal as s\nfrom agentwrap.host import signals\n{code}"
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, **options
    )


def test_dying_by_a_signal_is_dying_of_it():
    for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV, signal.SIGINT):
        assert run(f"signals.die_by({int(number)})").returncode == -number


def test_dying_leaves_no_core(tmp_path):
    run(
        "import resource\nresource.setrlimit(resource.RLIMIT_CORE, (0, -1))\nsignals.die_by(11)", cwd=tmp_path
    )
    assert list(tmp_path.iterdir()) == []


def test_an_orphaned_group_is_not_stopped_and_knows_it():
    result = run(
        "p = signals.SignalPipe(); p.catch((s.SIGCONT, s.SIGTSTP))\nprint(signals.stop_job(s.SIGTSTP, p))",
        start_new_session=True,
    )
    assert result.stdout == "(False, b'')\n"


def test_a_stopped_job_goes_on_and_knows_it():
    # a group of its own whose parent, in the same session, can continue it
    result = run(
        "pid = os.fork()\n"
        "if pid == 0:\n"
        "    os.setpgid(0, 0)\n"
        "    p = signals.SignalPipe(); p.catch((s.SIGCONT, s.SIGTSTP, s.SIGUSR1))\n"
        "    stopped, others = signals.stop_job(s.SIGTSTP, p)\n"
        "    os._exit(0 if stopped and others == bytes((s.SIGUSR1,)) else 1)\n"
        "_, status = os.waitpid(pid, os.WUNTRACED)\n"
        "assert os.WIFSTOPPED(status) and os.WSTOPSIG(status) == s.SIGTSTP\n"
        "os.kill(pid, s.SIGUSR1); os.kill(pid, s.SIGCONT)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))"
    )
    assert result.stdout == "0\n", result.stderr
