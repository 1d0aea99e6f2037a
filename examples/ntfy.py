#!/usr/bin/env python3
"""Send agentwrap's notifications to a phone through ntfy (https://ntfy.sh, or a server of your own).

    [notify]
    channels = ["command", "auto"]
    command = ["/path/to/examples/ntfy.py"]

NTFY_TOPIC: the topic you subscribed to in the app; whoever knows it can read along. NTFY_URL: the server, if
not https://ntfy.sh. NTFY_TOKEN: an access token, where the server asks for one.

Any failure is an exit code other than 0, upon which agentwrap uses the next channel.
"""

import json
import os
import sys
import urllib.request

TIMEOUT = 2.5  # seconds: agentwrap waits 3 for a failure
PRIORITY = {"blocked": 4, "error": 4}  # 3 is the default; 4 vibrates longer
TAGS = {"blocked": "raised_hand", "done": "white_check_mark", "error": "warning", "exit": "checkered_flag"}


def main() -> int:
    """Send what the environment says."""
    topic = os.environ.get("NTFY_TOPIC")
    if not topic:
        print("ntfy.py: set NTFY_TOPIC", file=sys.stderr)
        return 2
    event = os.environ.get("AGENTWRAP_EVENT", "")
    message = {
        "topic": topic,
        "title": os.environ.get("AGENTWRAP_TITLE", ""),
        "message": os.environ.get("AGENTWRAP_BODY", ""),
        "priority": PRIORITY.get(event, 3),
        "tags": [TAGS[event]] if event in TAGS else [],
    }
    headers = {"Content-Type": "application/json"}
    if os.environ.get("NTFY_TOKEN"):
        headers["Authorization"] = f"Bearer {os.environ['NTFY_TOKEN']}"
    url = os.environ.get("NTFY_URL", "https://ntfy.sh")
    try:
        request = urllib.request.Request(url, json.dumps(message).encode(), headers)  # noqa: S310 - your own
        with urllib.request.urlopen(request, timeout=TIMEOUT):  # noqa: S310 - your own
            return 0
    except (OSError, ValueError) as error:
        print(f"ntfy.py: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
