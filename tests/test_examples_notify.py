"""The example scripts for the command channel, against a stand-in server on loopback."""

from __future__ import annotations

import http.server
import json
import os
import subprocess
import sys
import threading
import time
import urllib.parse
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
TITLE = "Claude Code needs permission"
BODY = "approve Bash: echo \"<!channel> & $(x) `y` 'z'\" é \U0001f600\n~/shop"


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self):
        self.requests = []
        self.status = 200
        self.delay = 0.0
        super().__init__(("127.0.0.1", 0), Handler)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.requests.append((self.path, self.headers, body))
        time.sleep(self.server.delay)
        self.send_response(self.server.status)
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    with Server() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def run(script, **env):
    base = {
        "PATH": os.environ["PATH"],
        "no_proxy": "*",
        "AGENTWRAP_EVENT": "blocked",
        "AGENTWRAP_TITLE": TITLE,
        "AGENTWRAP_BODY": BODY,
    }
    return subprocess.run(
        [sys.executable, EXAMPLES / script], env={**base, **env}, capture_output=True, text=True, check=False
    )


def settings(server):
    return {
        "ntfy.py": {"NTFY_TOPIC": "topic", "NTFY_URL": server.url},
        "pushover.py": {"PUSHOVER_TOKEN": "t", "PUSHOVER_USER": "u", "PUSHOVER_URL": server.url},
        "slack.py": {"SLACK_WEBHOOK_URL": server.url + "/services/T/B/x"},
    }


SCRIPTS = ["ntfy.py", "pushover.py", "slack.py"]


def test_ntfy(server):
    assert run("ntfy.py", **settings(server)["ntfy.py"], NTFY_TOKEN="tk_1").returncode == 0
    ((path, headers, body),) = server.requests
    assert path == "/"
    assert headers["Authorization"] == "Bearer tk_1"
    assert json.loads(body) == {
        "topic": "topic",
        "title": TITLE,
        "message": BODY,
        "priority": 4,
        "tags": ["raised_hand"],
    }


def test_ntfy_without_a_token_or_a_known_event(server):
    assert run("ntfy.py", **settings(server)["ntfy.py"], AGENTWRAP_EVENT="new").returncode == 0
    ((_, headers, body),) = server.requests
    assert headers["Authorization"] is None
    assert (json.loads(body)["priority"], json.loads(body)["tags"]) == (3, [])


def test_pushover(server):
    assert run("pushover.py", **settings(server)["pushover.py"]).returncode == 0
    ((_, _, body),) = server.requests
    form = dict(urllib.parse.parse_qsl(body.decode(), strict_parsing=True))
    assert form == {"token": "t", "user": "u", "title": TITLE, "message": BODY, "priority": "1"}


def test_pushover_keeps_to_its_limits_and_never_sends_an_empty_message(server):
    env = settings(server)["pushover.py"]
    run("pushover.py", **env, AGENTWRAP_TITLE="é" * 300, AGENTWRAP_BODY="é" * 3000)
    run("pushover.py", **env, AGENTWRAP_BODY="", AGENTWRAP_EVENT="done")
    long, empty = (dict(urllib.parse.parse_qsl(body.decode())) for _, _, body in server.requests)
    assert (len(long["title"]), len(long["message"])) == (250, 1024)
    assert (empty["message"], empty["priority"]) == (TITLE, "0")


def test_slack_posts_plain_text_only(server):
    assert run("slack.py", **settings(server)["slack.py"], AGENTWRAP_TITLE="<@U1> & co").returncode == 0
    ((path, _, body),) = server.requests
    assert path == "/services/T/B/x"
    post = json.loads(body)
    assert post["text"] == "&lt;@U1&gt; &amp; co"
    assert [block["text"] for block in post["blocks"]] == [
        {"type": "plain_text", "text": "<@U1> & co", "emoji": False},
        {"type": "plain_text", "text": BODY, "emoji": False},
    ]


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_refusal_is_a_failure(script, server):
    server.status = 403
    ran = run(script, **settings(server)[script])
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr.startswith(f"{script}: HTTP Error 403")


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_server_that_hangs_is_a_failure_in_time_for_the_next_channel(script, server):
    server.delay = 5
    began = time.monotonic()
    assert run(script, **settings(server)[script]).returncode == 1
    assert time.monotonic() - began < 3


@pytest.mark.parametrize("script", SCRIPTS)
def test_no_server_is_a_failure(script, server):
    env = {
        name: value.replace(server.url, "http://127.0.0.1:9")
        for name, value in settings(server)[script].items()
    }
    ran = run(script, **env)
    assert ran.returncode == 1
    assert ran.stderr.count("\n") == 1


@pytest.mark.parametrize("script", SCRIPTS)
def test_without_its_settings_it_says_which(script, server):
    ran = run(script)
    assert ran.returncode == 2
    assert "set " in ran.stderr
    assert server.requests == []


@pytest.mark.parametrize("script", SCRIPTS)
def test_an_address_that_is_none_is_a_failure(script, server):
    env = {name: value.replace(server.url, "nonsense") for name, value in settings(server)[script].items()}
    ran = run(script, **env)
    assert ran.returncode == 1
    assert ran.stderr.count("\n") == 1


class TestSound:
    @staticmethod
    def run(tmp_path, players, **env):
        for name, code in players.items():
            player = tmp_path / name
            player.write_text(f'#!/bin/sh\necho "{name} $*" >>{tmp_path}/played\nexit {code}\n')
            player.chmod(0o755)
        base = {"PATH": str(tmp_path), "AGENTWRAP_EVENT": "done", "AGENTWRAP_TITLE": TITLE}
        ran = subprocess.run(
            ["/bin/sh", EXAMPLES / "sound.sh"],
            env={**base, **env}, capture_output=True, text=True, check=False,
        )  # fmt: skip
        played = tmp_path / "played"
        return ran, played.read_text().splitlines() if played.exists() else []

    def test_each_kind_of_event_has_its_sound(self, tmp_path):
        low, high = tmp_path / "low.oga", tmp_path / "high -x.oga"
        low.touch()
        high.touch()
        sounds = {"SOUND_DONE": str(low), "SOUND_BLOCKED": str(high)}
        assert self.run(tmp_path, {"paplay": 0}, **sounds)[1] == [f"paplay {low}"]
        assert self.run(tmp_path, {}, **sounds, AGENTWRAP_EVENT="blocked")[1][1:] == [f"paplay {high}"]

    def test_a_player_that_cannot_is_followed_by_the_next(self, tmp_path):
        low = tmp_path / "low.oga"
        low.touch()
        ran, played = self.run(tmp_path, {"pw-play": 1, "aplay": 0}, SOUND_DONE=str(low))
        assert ran.returncode == 0
        assert played == [f"pw-play {low}", f"aplay {low}"]

    def test_nothing_to_play_with_is_a_failure(self, tmp_path):
        ran, played = self.run(tmp_path, {})
        assert (ran.returncode, played) == (1, [])
        assert ran.stderr.startswith("sound.sh: ")

    def test_no_file_is_a_failure(self, tmp_path):
        ran, played = self.run(tmp_path, {"paplay": 0}, SOUND_DONE=str(tmp_path / "none"))
        assert (ran.returncode, played) == (1, [])


@pytest.mark.parametrize("script", [*SCRIPTS, "sound.sh"])
def test_it_can_be_executed(script):
    assert os.access(EXAMPLES / script, os.X_OK)
