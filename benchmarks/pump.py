"""A bare pump in Python: what the language costs at the least. No job control, no signals."""

import os
import pty
import select
import sys
import termios
import tty

size = termios.tcgetwinsize(0)
saved = termios.tcgetattr(0)
pid, master = pty.fork()
if pid == 0:
    termios.tcsetattr(0, termios.TCSANOW, saved)
    termios.tcsetwinsize(0, size)
    os.execvp(sys.argv[1], sys.argv[1:])
tty.setraw(0, termios.TCSANOW)
poll = select.poll()
poll.register(master, select.POLLIN)
poll.register(0, select.POLLIN)
try:
    while True:
        for fd, _ in poll.poll():
            data = os.read(fd, 65536)
            to = master if fd == 0 else 1
            while data:
                data = data[os.write(to, data) :]
except OSError:
    pass
termios.tcsetattr(0, termios.TCSANOW, saved)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
