"""Commands that other doors and installed packages offer, by entry points."""

import click

from greenroom.plugins import Plugins

COMMANDS = Plugins(
    "greenroom.commands",
    "command",
    accept=lambda found, _: found if isinstance(found, click.Command) else None,
    wanted="a click command",
)
