from __future__ import annotations

import os
import stat
import sys
import time

import pytest

from .conftest import until

ENV = {
    "AGENTWRAP_EVENT": "blocked",
    "AGENTWRAP_STATE": "blocked",
    "AGENTWRAP_KIND": "permission",
    "AGENTWRAP_AGENT": "claude",
    "AGENTWRAP_SESSION": "claude-12",
    "AGENTWRAP_CWD": "/home/u/sh op",
}
DUMP = """
import json, os, sys
with open({!r}, "w") as file:
    json.dump([sys.argv[1:], dict(os.environ), os.getsid(0) == os.getpid()], file)
"""


def dump(path):
    return [sys.executable, "-c", DUMP.format(str(path))]


def read(path):
    import json

    return json.loads(until(lambda: path.exists() and path.read_text(), path))


def test_argv_is_taken_as_it_is_and_the_environment_says_the_rest(start, tmp_path):
    words = ["a b", "$(touch pwned)", "; rm -rf x", "*", "", "'\"", "\U0001f600", "-x"]
    body = "approve Bash: $(touch pwned); `x`\n~/shop"
    helper = start(FOO="bar")
    helper.notify(1, channels=("command",), command=[*dump(tmp_path / "out"), *words], env=ENV, body=body)
    assert helper.wait(id=1)["ok"]
    argv, environ, leads = read(tmp_path / "out")
    assert argv == words
    assert {k: v for k, v in environ.items() if k.startswith("AGENTWRAP_")} == {
        **ENV,
        "AGENTWRAP_TITLE": "Claude Code needs permission",
        "AGENTWRAP_BODY": body,
    }
    assert environ["FOO"] == "bar"
    assert leads  # a session of its own: no terminal to write on


def test_every_variable_is_set_even_where_there_is_nothing_to_say(start, tmp_path):
    helper = start()
    helper.notify(1, "exit", channels=("command",), command=dump(tmp_path / "out"))
    assert helper.wait(id=1)["ok"]
    _, environ, _ = read(tmp_path / "out")
    assert (environ["AGENTWRAP_KIND"], environ["AGENTWRAP_EVENT"]) == ("", "exit")
    assert len([name for name in environ if name.startswith("AGENTWRAP_")]) == 8


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (["sh", "-c", "exit 3"], "exit code 3"),
        (["sh", "-c", "sleep 1; exit 1"], "exit code 1"),
        (["sh", "-c", "kill -9 $$"], "killed by signal 9"),
        (["/nonexistent/notify"], "cannot start /nonexistent/notify: No such file or directory"),
        (["/"], "cannot start /: Permission denied"),
        ([], "no command is configured"),
        ([""], None),
    ],
)
def test_a_command_that_fails_is_followed_by_the_next_channel(start, command, reason):
    helper = start()
    helper.notify(1, channels=("command", "bell"), command=command)
    failed = helper.wait(id=1)
    assert (failed["channel"], failed["ok"]) == ("command", False)
    assert reason is None or failed["reason"] == reason
    assert helper.wait(id=1)["channel"] == "bell"


def test_a_file_that_is_no_program_is_a_failure(start, tmp_path):
    script = tmp_path / "script"
    script.write_text("no interpreter line")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    helper = start()
    helper.notify(1, channels=("command",), command=[str(script)])
    assert "Exec format error" in helper.wait(id=1)["reason"]


def test_a_slow_command_holds_the_queue_for_no_more_than_three_seconds_and_is_left_to_finish(start, tmp_path):
    helper = start()
    began = time.monotonic()
    helper.notify(
        1, channels=("command", "bell"), command=["sh", "-c", f"sleep 4; echo >{tmp_path}/late; exit 1"]
    )
    helper.notify(2, "done", channels=("bell",))
    assert helper.wait(id=1) == {
        "op": "result",
        "id": 1,
        "key": "blocked",
        "channel": "command",
        "ok": True,
        "reason": "still running after 3 s",
        "last": True,
    }
    assert helper.wait(id=2)["ok"]
    assert time.monotonic() - began < 4
    until((tmp_path / "late").exists, "the end of the command")


def test_what_a_command_prints_is_seen_nowhere(start):
    helper = start()
    helper.notify(1, channels=("command",), command=["sh", "-c", "echo loud; echo louder >&2; cat"])
    assert helper.wait(id=1)["ok"]
    helper.end()


def test_a_command_starts_with_default_signals_and_only_its_standard_files(start, tmp_path):
    code = (
        "import json,os,signal; s=[n for n in (1,2,3,15,20) if signal.getsignal(n)==signal.SIG_IGN];"
        f"json.dump([s, sorted(map(int, os.listdir('/proc/self/fd')))], open({str(tmp_path / 'out')!r}, 'w'))"
    )
    helper = start()
    helper.notify(1, channels=("command",), command=[sys.executable, "-c", code])
    assert helper.wait(id=1)["ok"]
    ignored, files = read(tmp_path / "out")
    assert ignored == []
    assert files[:3] == [0, 1, 2]
    assert len(files) == 4  # and the directory that lists them


class TestLimits:
    """With the limits made short, in this process."""

    @pytest.fixture
    def run(self, monkeypatch):
        import asyncio

        from agentwrap.host.notifiers import command

        monkeypatch.setattr(command, "TIMEOUT", 0.3)
        monkeypatch.setattr(command, "LONGEST_RUN", 0.8)
        monkeypatch.setattr(command, "MOST_RUNNING", 2)
        return lambda test: asyncio.run(test(command.Command(dict(os.environ))))

    @staticmethod
    def notice(*argv):
        from agentwrap.host.notifiers.notice import Notice

        return Notice(1, "done", "done", "t", "b", command=list(argv))

    def test_a_command_that_hangs_is_killed_with_all_it_started(self, run, tmp_path):
        async def test(command):
            outcome = await command.show(self.notice("sh", "-c", f"sleep 60 & echo $! >{tmp_path}/pid; wait"))
            assert outcome.ok
            began = time.monotonic()
            await command.close()
            assert time.monotonic() - began < 2

        run(test)
        pid = int((tmp_path / "pid").read_text())
        until(lambda: not alive(pid), "the end of what the command started", 3)

    def test_more_than_a_few_at_once_are_not_kept(self, run, tmp_path):
        async def test(command):
            for number in range(3):
                await command.show(self.notice("sh", "-c", f"echo $$ >{tmp_path}/{number}; exec sleep 60"))
            first = int((tmp_path / "0").read_text())
            until(lambda: not alive(first), "the end of the oldest", 2)
            await command.close()

        run(test)


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as stat_file:
            return stat_file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
