"""`greenroom perform`: talk to an agent that acts for real."""

from typing import Any

import click

from greenroom.apps.cli import options
from greenroom.apps.cli.exits import PASSED
from greenroom.apps.cli.options import FILE, examples
from greenroom.suite.inputs.import_rules import acting

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
    context_settings={"allow_extra_args": True},
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
    "--message", "-m", default="", metavar="TEXT", help="Say this, print the answer, and exit."
)
@click.option(
    "--conversation", default="", metavar="ID", help="Continue a conversation from the store."
)
@click.option(
    "--user", default="", metavar="NAME", help="The user whose state is used in the scope `user`."
)
@click.option(
    "--app",
    default="",
    metavar="NAME",
    help="The app whose state is used in the scope `app` (default: the agent's name).",
)
@options.acting
@click.option(
    "--list", "is_list", is_flag=True, help="List the conversations of the store instead."
)
@options.import_network
@options.verbose_errors
@options.as_json
@click.pass_context
def perform_command(context: click.Context, **given: Any) -> int:
    """Talk to AGENT. It acts: models are asked and tools run for real.

    The conversation is kept in the store, event by event, and can be continued. When the agent waits for
    something, such as an approval, you are asked for it here.
    """
    from greenroom.apps.cli.chat import list_conversations, talk

    # Not treated as a message: someone may have meant a file of cases, and this agent acts for real.
    if context.args:
        said = " ".join(context.args)
        raise click.UsageError(
            f"one AGENT is expected. To say {said!r} to it, give --message TEXT."
        )
    if given.pop("is_list"):
        list_conversations(given["store"], given["as_json"])
        return PASSED
    with acting():
        return talk(**given)
