"""What a program built on pexpect does: spawn and interact."""

import os
import sys

import pexpect

child = pexpect.spawn(sys.argv[1], sys.argv[2:], dimensions=tuple(reversed(os.get_terminal_size())))
child.interact(escape_character=None)
child.close()
sys.exit(child.exitstatus or 0)
