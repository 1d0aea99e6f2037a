"""What is known of one agent, as data.

What lives here: the shape of a profile. What must not: any one agent.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agentwrap.core.turns import Rule


class Profile:
    """An agent: how it is recognised, what it is called, how its notices read, what makes it report.

    Attributes:
        name: the profile's name, as `--agent` and the configuration take it.
        title: what notifications call it; None: what it calls itself, else its command's name.
        commands: base names of its program.
        packages: names under which npx and its like run it.
        apps: what it calls itself in a report.
        notices: how its notifications read.
        answers_osc99: it asks for kitty's notifications, and announces only where that is answered.
        options: words put before the user's own.
        option_keys: names of settings; if the user's `-c` sets one of them (or one below), no words are put.
        environment: variables set, each unless the user has set it.
        file: a variable that names a file, and the JSON that file holds; ("", "") for none. The host makes
            the file, private and temporary, and sets the variable, unless the user has set it.
        subcommands: words that start something without the screen that reports, if they come first.
        valued: options that take the next word for their value, so that it is no subcommand.
    """

    __slots__ = (
        "answers_osc99",
        "apps",
        "commands",
        "environment",
        "file",
        "name",
        "notices",
        "option_keys",
        "options",
        "packages",
        "subcommands",
        "title",
        "valued",
    )

    def __init__(
        self,
        name: str,
        title: str | None = None,
        *,
        commands: tuple[str, ...] = (),
        packages: tuple[str, ...] = (),
        apps: tuple[str, ...] = (),
        notices: tuple[Rule, ...] = (),
        answers_osc99: bool = False,
        options: tuple[str, ...] = (),
        option_keys: tuple[str, ...] = (),
        environment: tuple[tuple[str, str], ...] = (),
        file: tuple[str, str] = ("", ""),
        subcommands: tuple[str, ...] = (),
        valued: tuple[str, ...] = (),
    ) -> None:
        self.name = name
        self.title = title
        self.commands = commands
        self.packages = packages
        self.apps = apps
        self.notices = notices
        self.answers_osc99 = answers_osc99
        self.options = options
        self.option_keys = option_keys
        self.environment = environment
        self.file = file
        self.subcommands = subcommands
        self.valued = valued

    def __repr__(self) -> str:
        return f"Profile({self.name!r})"
