#!/usr/bin/env python3
"""Send agentwrap's notifications to a phone through Pushover (https://pushover.net).

    [notify]
    channels = ["command", "auto"]
    command = ["/path/to/examples/pushover.py"]

PUSHOVER_TOKEN: the token of an application you registered there. PUSHOVER_USER: your user key. PUSHOVER_URL:
another address of the interface, for trying it out.

Any failure is an exit code other than 0, upon which agentwrap uses the next channel.
"""

import os
import sys
import urllib.parse
import urllib.request

URL = "https://api.pushover.net/1/messages.json"
TIMEOUT = 2.5  # seconds: agentwrap waits 3 for a failure
LONGEST_TITLE, LONGEST_MESSAGE = 250, 1024  # characters, as Pushover says
PRIORITY = {"blocked": 1}  # high; 0 is normal


def main() -> int:
    """Send what the environment says."""
    token, user = os.environ.get("PUSHOVER_TOKEN"), os.environ.get("PUSHOVER_USER")
    if not token or not user:
        print("pushover.py: set PUSHOVER_TOKEN and PUSHOVER_USER", file=sys.stderr)
        return 2
    title = os.environ.get("AGENTWRAP_TITLE", "")
    form = {
        "token": token,
        "user": user,
        "title": title[:LONGEST_TITLE],
        "message": (os.environ.get("AGENTWRAP_BODY") or title)[:LONGEST_MESSAGE],
        "priority": PRIORITY.get(os.environ.get("AGENTWRAP_EVENT", ""), 0),
    }
    data = urllib.parse.urlencode(form, errors="replace").encode()
    try:
        with urllib.request.urlopen(os.environ.get("PUSHOVER_URL", URL), data, timeout=TIMEOUT):  # noqa: S310 - your own
            return 0
    except (OSError, ValueError) as error:
        print(f"pushover.py: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
