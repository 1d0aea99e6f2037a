from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from agentwrap.host.notifiers.notice import LONGEST_BODY, LONGEST_TITLE, Notice

JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)
KEYS = st.sampled_from(["id", "key", "type", "title", "body", "sound", "channels", "command", "env", "osc99"])


@settings(deadline=None, max_examples=200)
@given(st.dictionaries(KEYS, JSON))
def test_any_message_becomes_a_notice_that_every_interface_takes(message):
    notice = Notice.parse(json.loads(json.dumps(message)))
    for text in (notice.title, notice.body, *notice.env.values()):
        assert "\0" not in text
        assert "\x1b" not in text
        text.encode()
    assert "\n" not in notice.title
    assert len(notice.title) <= LONGEST_TITLE
    assert len(notice.body) <= LONGEST_BODY
    assert all("\0" not in word for word in notice.command)


def test_what_a_notice_says():
    notice = Notice.parse(
        {
            "id": 4,
            "type": "blocked",
            "title": " Claude\u202e Code\nneeds\x07 you ",
            "body": "a\u200bb\x1b[2J\n~/shop",
            "channels": ["desktop", 5],
            "command": ["x", "y\0z"],
            "env": {"AGENTWRAP_EVENT": "blocked", "LD_PRELOAD": "/tmp/x.so", "AGENTWRAP_X=": "y"},
            "osc99": True,
        }
    )
    assert notice == Notice(
        id=4,
        key="blocked",
        type="blocked",
        title="Claude Code needs you",
        body="ab[2J\n~/shop",
        sound=True,
        channels=["desktop"],
        command=["x", "yz"],
        env={"AGENTWRAP_EVENT": "blocked"},
        osc99=True,
    )
