"""`greenroom perform`: talk to an agent that acts for real."""

from typing import Any

import click

from greenroom.apps.cli import options
from greenroom.apps.cli.options import FILE, examples

_CODES = """\b
In a terminal, lines that begin with / are for Greenroom:
  /state           the state of the conversation
  /save FILE [ID]  save the conversation as a case of an eval set
  /quit            leave; the conversation is kept
\b
Exit codes, the first that applies:
  129, 130, 143  ended by SIGHUP, Ctrl-C or SIGTERM
  3         bad usage, or an agent or store that cannot be read
  2         the agent failed
  0         the conversation is kept
"""


@click.command(
    "perform",
    epilog=examples(
        "greenroom perform shop.py",
        "greenroom perform shop.py --message 'Where is my parcel?' --user u7",
        "greenroom perform shop.py --conversation 20260101-120000-1a2b3c4d",
        "greenroom perform --list",
    )
    + f"\n\n{_CODES}",
)
@click.argument("agent", type=FILE, required=False, default="")
@click.option(
    "--message", "-m", default="", metavar="TEXT", help="Say this, print the answer, leave."
)
@click.option(
    "--conversation", default="", metavar="ID", help="Go on with a conversation of the store."
)
@click.option("--user", default="", metavar="NAME", help="Whose state in the scope `user` it is.")
@click.option(
    "--app", default="", metavar="NAME", help="Whose state in the scope `app` it is; the agent's."
)
@click.option("--model", default="", metavar="NAME", help="Another model for all of the agent.")
@options.declared("store", help="The folder where conversations are kept.")
@options.declared("resources", "middleware")
@click.option(
    "--max-model-calls",
    type=click.IntRange(min=1),
    default=500,
    show_default=True,
    metavar="N",
    help="How often models may be asked in one turn.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(min=0, min_open=True),
    default=None,
    metavar="S",
    help="How long one turn may take.",
)
@click.option(
    "--list", "is_list", is_flag=True, help="List the conversations of the store instead."
)
@options.import_network
@options.verbose
@options.as_json
def perform_command(**given: Any) -> int:
    """Talk to AGENT. It acts: models are asked and tools run for real.

    The conversation is kept in the store, event by event, and can be continued. What the agent waits
    for, such as an approval, is asked here.
    """
    from greenroom.apps.cli.chat import list_conversations, talk

    if given.pop("is_list"):
        return list_conversations(given["store"], given["as_json"], given["verbose"])
    return talk(**given)
