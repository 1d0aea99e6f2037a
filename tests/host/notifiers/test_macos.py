"""The macOS channels, against stand-ins that record their arguments. None of it has run on a Mac here."""

from __future__ import annotations

import asyncio
import json
import sys

import pytest

from agentwrap.host.notifiers import desktop, macos
from agentwrap.host.notifiers.notice import Notice

STAND_IN = """#!{python} -I
import json, sys, time
log = {log!r}
with open(log, "a") as file:
    file.write(json.dumps([{name!r}, *sys.argv[1:]]) + "\\n")
{body}
"""

NASTY = [
    "-message",
    "--",
    '"; do shell script "touch pwned" --',
    '" & (do shell script "touch pwned") & "',
    "display notification",
    "a\n-e\nb",
    "[x]",
    "(a, b)",
    "{a=b;}",
    "\\",
    "-help",
    "\U0001f600 é ” “ ' \\\" $(x) `y`",
    "",
]


@pytest.fixture
def mac(tmp_path, monkeypatch):
    """A PATH with stand-ins on it, and the channel that looks there."""

    async def not_native():
        return "this Python is no framework build"

    monkeypatch.setattr(macos, "native_reason", not_native)

    class Mac:
        def __init__(self):
            self.said = []
            self.log = tmp_path / "log"
            self.environ = {"PATH": str(tmp_path), "__CFBundleIdentifier": "com.googlecode.iterm2"}

        def install(self, name, body=""):
            path = tmp_path / name
            path.write_text(STAND_IN.format(python=sys.executable, log=str(self.log), name=name, body=body))
            path.chmod(0o755)

        def run(self, *steps, between=None):
            async def go():
                channel = desktop.make(self.said.append, self.environ, "darwin")
                out = []
                for step, notice in steps:
                    out.append(await getattr(channel, step)(notice))
                    if between:
                        await between()
                return out

            return asyncio.run(go())

        def calls(self):
            return [json.loads(line) for line in self.log.read_text().splitlines()]

    return Mac()


def notice(title="Claude Code needs permission", body="approve x", **more):
    env = {"AGENTWRAP_SESSION": "claude-7"}
    return Notice(1, "blocked", "blocked", title, body, env=env, **more)


@pytest.mark.parametrize("text", NASTY)
def test_osascript_gets_text_as_arguments_only(mac, text):
    mac.install("osascript")
    (shown,) = mac.run(("show", notice(title=text or "t", body=text)))
    assert shown.ok
    ((name, *argv),) = mac.calls()
    assert name == "osascript"
    scripts = []
    while argv[0] == "-e":
        scripts.append(argv[1])
        argv = argv[2:]
    assert tuple(scripts) == macos.SCRIPT_WITH_SOUND
    assert argv == ["--", text or "t", text]


def test_osascript_neither_repeats_nor_takes_back(mac):
    mac.install("osascript")
    shown, updated, withdrawn = mac.run(
        ("show", notice(sound=False)), ("update", notice(body="new")), ("withdraw", notice())
    )
    assert (shown.reason, updated.reason) == ("by osascript", "osascript cannot replace")
    assert withdrawn.reason == "osascript cannot take back"
    assert len(mac.calls()) == 1
    assert mac.calls()[0][1:7:2] == ["-e"] * 3
    assert "sound" not in " ".join(mac.calls()[0])


@pytest.mark.parametrize("text", NASTY)
def test_terminal_notifier_cannot_take_text_for_an_option(mac, text):
    mac.install("terminal-notifier")
    (shown,) = mac.run(("show", notice(title=text, body=text)))
    assert shown.ok
    assert mac.calls() == [
        [
            "terminal-notifier",
            "-title",
            "\\" + text,
            "-message",
            "\\" + (text or " "),
            "-group",
            "agentwrap.claude-7.blocked",
            "-sound",
            "default",
            "-activate",
            "com.googlecode.iterm2",
        ]
    ]


def test_terminal_notifier_replaces_and_removes_by_group(mac):
    mac.install("terminal-notifier")
    mac.run(
        ("show", notice()), ("update", notice(body="new")), ("withdraw", notice()), ("withdraw", notice())
    )
    first, second, third = mac.calls()
    assert (
        first[first.index("-group") + 1] == second[second.index("-group") + 1] == "agentwrap.claude-7.blocked"
    )
    assert third == ["terminal-notifier", "-remove", "agentwrap.claude-7.blocked"]


def test_the_best_program_that_works_is_used(mac):
    mac.install("terminal-notifier", "sys.exit('no NotificationCenter instance')")
    mac.install("osascript")
    (shown,) = mac.run(("show", notice()))
    assert shown.ok
    assert shown.reason == "terminal-notifier: exit code 1 no NotificationCenter instance; by osascript"


def test_nothing_installed_is_a_failure(mac):
    (shown,) = mac.run(("show", notice()))
    assert not shown.ok


def test_a_program_that_fails_is_never_a_delivery(mac):
    mac.install("osascript", "sys.exit(1)")
    (shown,) = mac.run(("show", notice()))
    assert not shown.ok


@pytest.mark.parametrize(
    ("version", "message"),
    [("26.3", "--message=-help"), ("usage", "\\-help")],
)
def test_alerter_of_either_kind_stands_until_it_is_answered(mac, version, message):
    mac.install(
        "alerter",
        f"""
if sys.argv[1:] == ["--version"]:
    print({version!r})
elif "remove" not in sys.argv[1]:
    time.sleep(0.7)
    print("@CONTENTCLICKED")
""",
    )
    mac.install("open")

    async def until_clicked():
        for _ in range(300):
            if mac.said and mac.calls()[-1][0] == "open":
                return
            await asyncio.sleep(0.02)

    (shown,) = mac.run(("show", notice(body="-help")), between=until_clicked)
    assert (shown.ok, shown.reason) == (True, "by alerter")
    assert mac.said[-1] == {"op": "click", "id": 1, "key": "blocked"}
    calls = mac.calls()
    assert message in calls[1]
    assert "-help" not in calls[1]
    assert calls[-1] == ["open", "-b", "com.googlecode.iterm2"]


def test_alerter_that_cannot_post_is_a_failure(mac):
    mac.install("alerter", "sys.exit(0 if '--version' in sys.argv else 1)")
    (shown,) = mac.run(("show", notice()))
    assert shown.reason == "alerter: exit code 1"


class TestTheCentreItself:
    """When desktop-notifier may be trusted to deliver."""

    @pytest.fixture
    def python(self, monkeypatch, tmp_path):
        application = tmp_path / "Resources" / "Python.app"
        application.mkdir(parents=True)
        answers = {
            "--verify": (0, ""),
            "--display": (0, "Identifier=org.python.python\nTeamIdentifier=BMM5U3QVKW\n"),
        }

        async def run(argv, _environ=None):
            return answers[argv[1]]

        monkeypatch.setattr(macos.sysconfig, "get_config_var", {"PYTHONFRAMEWORK": "Python"}.get)
        monkeypatch.setattr(macos.sys, "base_prefix", str(tmp_path))
        monkeypatch.setattr(macos, "_run", run)
        answers["application"] = application
        return answers

    @staticmethod
    def reason():
        return asyncio.run(macos.native_reason())

    def test_a_framework_build_signed_by_a_developer_is_good(self, python):
        assert self.reason() == ""

    def test_no_framework_build(self, python, monkeypatch):
        monkeypatch.setattr(macos.sysconfig, "get_config_var", {"PYTHONFRAMEWORK": ""}.get)
        assert self.reason() == "this Python is no framework build"

    def test_no_application(self, python):
        python["application"].rmdir()
        assert self.reason() == "this Python has no Python.app"

    @pytest.mark.parametrize(
        "display", ["TeamIdentifier=not set\nSignature=adhoc\n", "", "TeamIdentifier=\n"]
    )
    def test_an_ad_hoc_signature_is_none(self, python, display):
        python["--display"] = (0, display)
        assert self.reason() == "Python.app is not signed by a developer"

    def test_a_broken_signature(self, python):
        python["--verify"] = (1, "invalid")
        assert self.reason() == "the signature of Python.app is not valid"

    def test_here_it_is_not(self):
        if sys.platform != "darwin":
            assert self.reason()


def test_another_system_has_no_desktop_that_is_known():
    channel = desktop.make(print, {}, "sunos5")
    assert asyncio.run(channel.show(notice())).reason == "no desktop notifications are known on sunos5"


class TestDesktopNotifierThere:
    """desktop-notifier's answers, each of which must not be taken for more than it is."""

    @pytest.fixture
    def centre(self, mac, monkeypatch):
        import logging

        import desktop_notifier

        class Centre:
            allowed, complaint, dispatches = True, "", True
            sent, cleared = [], []

            def __init__(self, *_):
                self._backend = self

            async def request_authorisation(self):
                return self.allowed

            async def send_notification(self, notification):
                self.sent.append(notification)
                if self.complaint:
                    logging.getLogger("desktop_notifier.backends.macos").warning(self.complaint)
                if self.dispatches:
                    notification.on_dispatched()

            async def clear(self, identifier):
                self.cleared.append(identifier)

        async def native():
            return ""

        monkeypatch.setattr(macos, "native_reason", native)
        monkeypatch.setattr(desktop_notifier, "DesktopNotifier", Centre)
        Centre.sent, Centre.cleared = [], []
        return Centre

    def test_delivered_replaced_and_removed(self, centre, mac):
        shown, updated, withdrawn = mac.run(
            ("show", notice()), ("update", notice(body="n")), ("withdraw", notice())
        )
        assert (shown.ok, shown.reason) == (True, "by notification centre")
        assert updated.ok
        assert withdrawn.ok
        assert [n.message for n in centre.sent] == ["approve x", "n"]
        assert {n.identifier for n in centre.sent} == set(centre.cleared) == {"agentwrap.claude-7.blocked"}
        centre.sent[-1].on_clicked()
        assert mac.said[-1]["op"] == "click"

    @pytest.mark.parametrize(
        ("setting", "value", "reason"),
        [
            ("allowed", False, "notifications of Python are not allowed in System Settings"),
            (
                "complaint",
                "Error when scheduling notification: code=1",
                "Error when scheduling notification: code=1",
            ),
            ("dispatches", False, "not dispatched"),
        ],
    )
    def test_what_is_dropped_is_a_failure(self, centre, mac, monkeypatch, setting, value, reason):
        monkeypatch.setattr(centre, setting, value)
        (shown,) = mac.run(("show", notice()))
        assert (shown.ok, shown.reason) == (False, f"notification centre: {reason}")

    def test_its_dummy_back_end_is_a_failure(self, centre, mac, monkeypatch):
        monkeypatch.setattr(centre, "__module__", "desktop_notifier.backends.dummy")
        (shown,) = mac.run(("show", notice()))
        assert "no way to the notification centre" in shown.reason
        assert not shown.ok
