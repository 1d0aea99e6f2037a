#!/usr/bin/env python3
"""Post agentwrap's notifications to a Slack channel through an incoming webhook.

    [notify]
    channels = ["command", "auto"]
    command = ["/path/to/examples/slack.py"]

SLACK_WEBHOOK_URL: the webhook's address, which is a secret. The text is posted as plain text: whatever an
agent writes, it mentions nobody and links nowhere.

Any failure is an exit code other than 0, upon which agentwrap uses the next channel.
"""

import json
import os
import sys
import urllib.request

TIMEOUT = 2.5  # seconds: agentwrap waits 3 for a failure
LONGEST = 2900  # characters of a text block; Slack takes 3000


def plain(text: str) -> dict[str, object]:
    """Make a block of text in which nothing is markup."""
    shown = {"type": "plain_text", "text": text[:LONGEST], "emoji": False}
    return {"type": "section", "text": shown}


def escape(text: str) -> str:
    """Escape what would be a mention or a link in the one text that Slack reads as markup."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def main() -> int:
    """Post what the environment says."""
    url = os.environ.get("SLACK_WEBHOOK_URL")
    if not url:
        print("slack.py: set SLACK_WEBHOOK_URL", file=sys.stderr)
        return 2
    title, body = os.environ.get("AGENTWRAP_TITLE", ""), os.environ.get("AGENTWRAP_BODY", "")
    blocks = [plain(text) for text in (title, body) if text]
    post = {"text": escape(title), "blocks": blocks}
    try:
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(url, json.dumps(post).encode(), headers)  # noqa: S310 - your own
        with urllib.request.urlopen(request, timeout=TIMEOUT):  # noqa: S310 - your own
            return 0
    except (OSError, ValueError) as error:
        print(f"slack.py: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
