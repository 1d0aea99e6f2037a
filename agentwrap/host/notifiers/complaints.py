"""What desktop-notifier logs instead of raising."""

from __future__ import annotations

import logging
from typing import Self


class Complaints(logging.Handler):
    """Catches it while entered, and keeps it from being printed.

    Attributes:
        error: the exception it caught, if any.
        text: the last message.
    """

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.error: BaseException | None = None
        self.text = ""

    def emit(self, record: logging.LogRecord) -> None:
        """Keep it."""
        self.text = record.getMessage()[:200]
        if record.exc_info and record.exc_info[1] is not None:
            self.error = record.exc_info[1]

    def __enter__(self) -> Self:
        logger = logging.getLogger("desktop_notifier")
        logger.propagate = False
        logger.addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        logging.getLogger("desktop_notifier").removeHandler(self)
