"""What a test needs that is not Python. Missing, it fails the test in CI, and skips it elsewhere."""

from __future__ import annotations

import os
import shutil

import pytest


def require(*tools: str) -> None:
    """Skip the test where one of these programs is missing; under CI, fail."""
    missing = [tool for tool in tools if shutil.which(tool) is None]
    if not missing:
        return
    reason = f"not installed: {', '.join(missing)}"
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)
