from __future__ import annotations

import os
import select
import subprocess
import sys
import time

from agentwrap.host import processes
from agentwrap.host.processes import Process, Watch, reporter


def is_agent(argv):
    return any(word.endswith("claude") for word in argv)


def is_shell(argv):
    return argv[0] in ("bash", "sh", "-zsh")


def find(rows, group):
    found = reporter([Process(*row) for row in rows], group, is_agent, is_shell, 10.0)
    return found and found.pid


SHELL = (10, 9, 10, 1.0, ("-zsh",))


def test_a_job_of_a_shell_is_its_leader():
    assert find([SHELL, (20, 10, 20, 2.0, ("tool", "--flag")), (21, 20, 20, 3.0, ("helper",))], 20) == 20


def test_a_shell_at_its_prompt_is_nobody():
    assert find([SHELL], 10) is None


def test_a_script_is_looked_through_to_the_program_it_waits_for():
    script = (20, 10, 20, 2.0, ("bash", "./start.sh"))
    helper = (21, 20, 20, 3.0, ("caffeinate",))
    assert find([SHELL, script, helper, (22, 20, 20, 4.0, ("tool",))], 20) == 22


def test_an_agent_is_known_among_helpers_started_later():
    script = (20, 10, 20, 2.0, ("bash", "./start.sh"))
    agent = (21, 20, 20, 3.0, ("node", "/usr/bin/claude"))
    assert (
        find([script, agent, (22, 20, 20, 4.0, ("caffeinate",)), (23, 21, 20, 5.0, ("claude", "mcp"))], 20)
        == 21
    )


def test_a_pipeline_whose_leader_has_ended():
    assert find([SHELL, (21, 10, 20, 3.0, ("tool",)), (22, 21, 20, 3.5, ("child",))], 20) == 21


def test_what_a_script_started_after_the_report_has_not_made_it():
    script = (20, 10, 20, 2.0, ("bash", "./start.sh"))
    assert find([script, (21, 20, 20, 9.995, ("sleep", "4"))], 20) is None
    assert find([script, (21, 20, 20, 9.9, ("tool",)), (22, 20, 20, 10.1, ("sleep", "4"))], 20) == 21


def test_a_program_may_report_as_soon_as_it_has_started():
    assert find([(20, 10, 20, 9.995, ("/usr/bin/quick",))], 20) == 20
    assert find([(20, 10, 20, 10.1, ("/usr/bin/later",))], 20) is None


def test_agentwrap_report_speaks_for_the_script_that_runs_it():
    script = (20, 10, 20, 2.0, ("bash", "./start.sh"))
    named = (21, 20, 20, 3.0, ("/x/python", "/x/bin/agentwrap", "report", "working"))
    module = (21, 20, 20, 3.0, ("/x/python", "-m", "agentwrap", "report", "working"))
    assert find([script, named], 20) is None
    assert find([script, module], 20) is None
    assert find([(20, 10, 20, 3.0, named[4])], 20) is None


def test_the_table_has_this_session_only():
    code = """
import os
from agentwrap.host import processes
table = {process.pid: process for process in processes.table(os.getsid(0))}
print(set(table) == {os.getpid()}, table[os.getpid()].group == os.getpgrp(), 0 < processes.age(table[os.getpid()]) < 60)
"""
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, start_new_session=True
    )
    assert ran.stdout.split() == ["True"] * 3, ran.stderr


def test_psutil_tells_the_same_as_proc():
    pids = [os.getpid(), os.getppid()]
    one, other = processes._rows_of_proc(pids), processes._rows_by_psutil(pids)
    assert [(p.pid, p.parent, p.group, p.argv) for p in one] == [
        (p.pid, p.parent, p.group, p.argv) for p in other
    ]


def test_an_end_is_seen_without_looking():
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    process = next(p for p in processes._rows_of_proc([child.pid]))
    watch = Watch.start(process)
    assert watch is not None
    assert select.select([watch.fd], [], [], 0)[0] == []
    assert processes.exists(process)
    child.communicate(b"\n")
    assert select.select([watch.fd], [], [], 5)[0] == [watch.fd]
    assert not processes.exists(process)
    watch.close()


def test_one_that_has_ended_before_is_seen_at_once():
    child = subprocess.Popen(["true"])
    child.wait()
    watch = Watch.start(Process(child.pid, 1, child.pid, time.time(), ("true",)))
    assert watch is not None
    assert select.select([watch.fd], [], [], 0)[0] == [watch.fd]
    watch.close()


def test_another_process_with_the_same_pid_is_not_the_same():
    process = next(p for p in processes._rows_of_proc([os.getpid()]))
    process.started -= 100
    assert not processes.exists(process)
