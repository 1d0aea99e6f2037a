"""Claims about finding the terminal of whoever started us."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from agentwrap.host import ancestors
from tests.lab.outer import Outer

FIND = (
    "import os; from agentwrap.host import ancestors; fd = ancestors.open_terminal(); "
    "print(fd is not None and os.ttyname(fd))"
)
ALONE = f"import os, subprocess, sys; os.setsid(); sys.exit(subprocess.run([sys.executable, '-c', {FIND!r}]).returncode)"


def test_a_process_in_a_session_of_its_own_finds_its_ancestors_terminal():
    shell = f"import os, sys\nif os.fork() == 0:\n    exec({ALONE!r})\nos.wait()"
    with Outer([sys.executable, "-c", shell]) as outer:
        outer.wait()
        assert bytes(outer.output).decode().strip() == os.ttyname(outer.slave)


def test_without_a_terminal_among_the_ancestors_there_is_none():
    # orphaned: its parent is whoever adopts, which has no terminal
    orphan = f"import os, time\nif os.fork(): os._exit(0)\nos.setsid()\nwhile os.getppid() == {{}}: time.sleep(0.01)\n{FIND}"
    program = f"import os; exec({orphan!r}.format(os.getpid()))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize(
    ("device", "path"),
    [
        (0x8803, "/dev/pts/3"),
        (0x8803 | 0x100000, "/dev/pts/259"),
        (0x0402, "/dev/tty2"),
        (0x0440, None),
        (0x0501, None),
    ],
)
def test_the_kernels_number_of_a_terminal_is_read(device, path):
    found = ancestors._linux(device)
    assert (found[0] if found else None) == path


TABLE = """\
    1     0 ??
  500     1 ttys001
  501   500 ttys003
  502   501 ??
  503   502 ?
  504   503 -
  600     1 ??
  700   701 ??
  701   700 ??
"""


@pytest.mark.parametrize(
    ("pid", "path"),
    [
        (504, "/dev/ttys003"),
        (501, "/dev/ttys003"),
        (500, "/dev/ttys001"),
        (600, None),
        (999, None),
        (700, None),
    ],
)
def test_the_nearest_ancestor_with_a_terminal_is_found_in_a_table(pid, path):
    found = ancestors.nearest(TABLE, pid)
    assert (found[0] if found else None) == path


def test_the_table_of_this_system_is_read(monkeypatch):
    asked = []
    monkeypatch.setattr(ancestors, "nearest", lambda table, pid: asked.append((table, pid)))
    ancestors._from_ps()
    ((table, pid),) = asked
    assert pid == os.getppid()
    assert any(line.split()[:2] == [str(os.getpid()), str(pid)] for line in table.splitlines())
