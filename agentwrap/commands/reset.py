"""`agentwrap reset`: undo by hand every terminal mode that agents leave on, without clearing anything."""

from __future__ import annotations

import os
import termios

from agentwrap.core.modes import Ledger
from agentwrap.errors import AgentwrapError
from agentwrap.host import terminal

# As stty sane, except what is a matter of taste and no agent changes for good: IXON, IUTF8, character size.
_INPUT_ON = termios.BRKINT | termios.ICRNL
_INPUT_OFF = termios.IGNBRK | termios.INLCR | termios.IGNCR | termios.PARMRK | termios.ISTRIP | termios.IXOFF
_OUTPUT_ON = termios.OPOST | termios.ONLCR
_OUTPUT_OFF = termios.OCRNL | termios.ONOCR | termios.ONLRET
_LOCAL_ON = termios.ICANON | termios.ECHO | termios.ECHOE | termios.ECHOK | termios.ISIG | termios.IEXTEN
_LOCAL_ON |= termios.ECHOCTL | termios.ECHOKE
_LOCAL_OFF = termios.ECHONL | termios.NOFLSH | termios.TOSTOP
# Given back where they are disabled only: a chosen erase character stays.
_CHARACTERS = {
    termios.VINTR: b"\x03",
    termios.VQUIT: b"\x1c",
    termios.VERASE: b"\x7f",
    termios.VKILL: b"\x15",
    termios.VEOF: b"\x04",
    termios.VSUSP: b"\x1a",
}
_DISABLED = (b"\x00", b"\xff")
_STDOUT = 1


def reset() -> int:
    """Reset the controlling terminal, else the one standard output is.

    Raises:
        AgentwrapError: there is none.
    """
    fd = _open()
    try:
        attributes = terminal.get_attributes(fd)
        if attributes is not None:
            terminal.set_attributes(fd, sane(attributes))
        data = Ledger.FULL_RESET
        while data:
            data = data[os.write(fd, data) :]
    except OSError as error:
        raise AgentwrapError(
            f"cannot write to the terminal: {error.strerror}; run it in the terminal that is out of order"
        ) from None
    finally:
        if fd != _STDOUT:
            os.close(fd)
    return 0


def sane(attributes: terminal.Attributes) -> terminal.Attributes:
    """`attributes` as a line-editing shell or program expects to find them."""
    made = [*attributes[: terminal.CC], list(attributes[terminal.CC])]
    made[terminal.IFLAG] = made[terminal.IFLAG] & ~_INPUT_OFF | _INPUT_ON
    made[terminal.OFLAG] = made[terminal.OFLAG] & ~_OUTPUT_OFF | _OUTPUT_ON
    made[terminal.CFLAG] |= termios.CREAD
    made[terminal.LFLAG] = made[terminal.LFLAG] & ~_LOCAL_OFF | _LOCAL_ON
    characters = made[terminal.CC]
    for index, default in _CHARACTERS.items():
        if characters[index] in _DISABLED:
            characters[index] = default
    if not attributes[terminal.LFLAG] & termios.ICANON:
        characters[termios.VMIN], characters[termios.VTIME] = b"\x01", b"\x00"
    return made


def _open() -> int:
    try:
        return os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        pass  # no controlling terminal: a cron job, a daemon, an editor's shell
    try:
        if os.isatty(_STDOUT):
            return _STDOUT
    except OSError:
        pass
    raise AgentwrapError("there is no terminal to reset; run it in the terminal that is out of order")
