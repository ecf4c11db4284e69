"""Commands that other parts and installed packages offer through entry points."""

import click

from greenroom.plugins import Plugins

COMMANDS = Plugins(
    "greenroom.commands",
    "command",
    accept=lambda found, _: found if isinstance(found, click.Command) else None,
    wanted="a click command",
)
