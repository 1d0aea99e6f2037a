"""Who is compared, and how each is made to run a command on a terminal of its own.

A contender that is not installed here says so and is left out. agentwrap is installed for the occasion, as
pip would install it: a virtual environment with a copy of the package, its launcher, and nothing else.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
PACKAGE = HERE.parent / "agentwrap"

LAUNCHER = """\
#!{python}
import sys
from agentwrap.__main__ import main
if __name__ == '__main__':
    sys.argv[0] = sys.argv[0].removesuffix('.exe')
    sys.exit(main())
"""


class Contender:
    """One way of running a command on a terminal."""

    def __init__(self, name, argv, *, roots=None, per_use=None):
        self.name = name
        self._argv = argv
        self._roots = roots
        self._per_use = per_use
        self._uses = 0

    def argv(self, command):
        """The words that run `command` this way."""
        self._uses += 1
        return self._argv(command, self._uses)

    def roots(self, outer):
        """The processes under which all of its own are."""
        return [outer.pid, *(self._roots(self._uses) if self._roots else [])]

    def done(self):
        """Clean up after the last use."""
        if self._per_use:
            self._per_use(self._uses)


def install_agentwrap(where, given):
    """The launcher of agentwrap to measure."""
    if given:
        return str(Path(given).resolve())
    home = where / "agentwrap"
    venv.create(home, with_pip=False, symlinks=True)
    site = next((home / "lib").glob("python*/site-packages"))
    shutil.copytree(PACKAGE, site / "agentwrap", ignore=shutil.ignore_patterns("__pycache__"))
    python = home / "bin" / "python"
    subprocess.run([python, "-m", "compileall", "-q", site], check=True)
    launcher = home / "bin" / "agentwrap"
    launcher.write_text(LAUNCHER.format(python=python))
    launcher.chmod(0o755)
    return str(launcher)


def find(where, *, agentwrap, tools, only):
    """The contenders, and why others are missing.

    Args:
        where: a directory for what has to be made.
        agentwrap: the launcher.
        tools: a virtual environment with asciinema 2 and pexpect, or None.
        only: names; all if empty.
    """
    missing = {}
    found = [Contender("direct", lambda command, _: command)]
    found.append(Contender("agentwrap", lambda command, _: [agentwrap, "--notify", "none", *command]))

    if script := shutil.which("script"):
        found.append(Contender("script", lambda c, _: [script, "-qefc", shlex.join(c), os.devnull]))
    else:
        missing["script"] = "not installed (util-linux)"

    if expect := shutil.which("expect"):
        found.append(Contender("expect", lambda c, _: [expect, "-f", str(HERE / "interact.exp"), *c]))
    else:
        missing["expect"] = "not installed"
    sudo = shutil.which("sudo")
    if sudo and subprocess.run([sudo, "-n", "true"], capture_output=True, check=False).returncode == 0:
        found.append(Contender("sudo", lambda c, _: [sudo, "-n", "-E", *c]))
    else:
        missing["sudo"] = "not installed, or it asks for a password"

    if tmux := shutil.which("tmux"):

        def socket(number):
            return str(where / f"tmux-{number}")

        def server(number):
            query = [tmux, "-S", socket(number), "display-message", "-p", "#{pid}"]
            return [int(subprocess.run(query, capture_output=True, check=True).stdout)]

        def kill(number):
            subprocess.run([tmux, "-S", socket(number), "kill-server"], capture_output=True, check=False)

        found.append(
            Contender(
                "tmux",
                lambda c, n: [tmux, "-S", socket(n), "-f", os.devnull, "new-session", shlex.join(c)],
                roots=server,
                per_use=kill,
            )
        )
    else:
        missing["tmux"] = "not installed"

    asciinema = tools / "bin" / "asciinema" if tools else shutil.which("asciinema")
    if asciinema and Path(asciinema).exists():
        cast = str(where / "bench.cast")
        found.append(
            Contender(
                "asciinema",
                lambda c, _: [str(asciinema), "rec", "-q", "--overwrite", "-c", shlex.join(c), cast],
            )
        )
    else:
        missing["asciinema"] = "not installed (--tools VENV, or --install-tools)"
    python = str(tools / "bin" / "python") if tools else sys.executable
    if subprocess.run([python, "-c", "import pexpect"], capture_output=True, check=False).returncode == 0:
        found.append(Contender("pexpect", lambda c, _: [python, str(HERE / "interact.py"), *c]))
    else:
        missing["pexpect"] = "not installed (--tools VENV, or --install-tools)"

    if cc := shutil.which("cc"):
        made = str(where / "pump")
        subprocess.run([cc, "-O2", "-o", made, str(HERE / "pump.c"), "-lutil"], check=True)
        found.append(Contender("C pump", lambda c, _: [made, *c]))
    else:
        missing["C pump"] = "no C compiler"
    base = str(Path(agentwrap).parent / "python")
    bare = base if Path(base).exists() else sys.executable
    found.append(Contender("Python pump", lambda c, _: [bare, "-I", str(HERE / "pump.py"), *c]))
    return [each for each in found if not only or each.name in only], missing
