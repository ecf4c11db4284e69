"""`greenroom serve`: an agent that other agents talk to by the A2A protocol."""

from typing import Any

import click

from greenroom.apps.cli import options
from greenroom.apps.cli.options import FILE, examples
from greenroom.suite.inputs.import_rules import acting

_CODES = """\b
Exit codes, the first that applies:
  3         bad usage, or an agent, a store or a port that cannot be used
  143       stopped by SIGTERM; conversations are kept, and the next server continues what was in progress
  0         stopped by Ctrl-C; conversations are kept too
"""


@click.command(
    "serve",
    epilog=examples(
        "greenroom serve shop.py",
        "greenroom serve shop.py:desk --port 8080 --card shop.py:card",
        "greenroom serve shop.py --host 0.0.0.0 --url https://shop.example.com/ --token-env SHOP_TOKEN",
    )
    + f"\n\n{_CODES}",
)
@click.argument("agent", type=FILE)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8080,
    show_default=True,
    metavar="N",
    help="The port to listen on; 0 picks a free one.",
)
@click.option(
    "--url", default="", metavar="URL", help="Where others reach it, if not at that host and port."
)
@click.option(
    "--allow-host",
    "hosts",
    multiple=True,
    metavar="NAME",
    help="Answer requests for this host name too; may be repeated.",
)
@click.option(
    "--token-env",
    multiple=True,
    metavar="NAME",
    help="The environment variable with the token that callers must send; required if other machines can reach "
    "the server. May be repeated: each token is then a separate user with their own conversations and state.",
)
@click.option(
    "--card",
    default="",
    metavar="FILE:NAME",
    help="A card made by card_of(...) (default: a card with the agent's name).",
)
@options.acting
@click.option(
    "--at-once",
    type=click.IntRange(min=1),
    default=16,
    show_default=True,
    metavar="N",
    help="How many turns may be in progress at the same time.",
)
@options.import_network
@options.verbose_errors
def serve_command(**given: Any) -> None:
    """Serve AGENT to other agents over the A2A protocol. It acts: models are asked and tools run for real.

    Its card is at /.well-known/agent-card.json. Each conversation is kept in the store, event by event:
    if the server is stopped or killed, the next one continues what was in progress.
    """
    from greenroom.apps.cli.server import serve

    with acting():
        serve(**given)
