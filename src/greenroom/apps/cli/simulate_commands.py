"""`greenroom simulate`: conversations with simulated users, without a verdict."""

from typing import Any

import click

from greenroom.apps.cli import options
from greenroom.apps.cli.options import FILE, examples

_CODES = """\b
Exit codes, the first that applies:
  129, 130, 143  ended by SIGHUP, Ctrl-C or SIGTERM
  3         bad usage, or an agent or file that cannot be read
  2         a conversation broke
  1         a conversation was stopped at a limit
  0         all conversations completed
"""


@click.group("simulate")
def simulate_group() -> None:
    """Let a model speak as the user, and see how the conversation goes."""


_user_model = click.option(
    "--model",
    default="gpt-4o-mini",
    show_default=True,
    metavar="NAME",
    help="The model that answers as the user: its name, or models.py:name.",
)


@simulate_group.command(
    "run",
    epilog=examples(
        "greenroom simulate run shop.py --prompt 'I want my money back' --goals 'a refund'",
        "greenroom simulate run shop.py --prompt Hello --persona 'in a hurry' --mocks mocks.yaml",
        "greenroom simulate run shop.py --prompt Hello --save-as-eval shop.evalset.json",
    )
    + f"\n\n{_CODES}",
)
@click.argument("agent", type=FILE)
@click.option("--prompt", required=True, metavar="TEXT", help="What the user says first.")
@click.option("--persona", default="", metavar="TEXT", help="Who the user is.")
@click.option("--plan", default="", metavar="TEXT", help="What the user intends to do.")
@click.option(
    "--goals",
    default="",
    metavar="A,B",
    help="What the user wants to achieve, separated by commas.",
)
@click.option(
    "--max-turns",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    metavar="N",
    help="How often the user may speak.",
)
@_user_model
@options.tools
@options.output(help="Write the conversation to this JSON file.")
@click.option(
    "--save-as-eval",
    type=FILE,
    default="",
    metavar="FILE",
    help="Add the conversation as a case to this eval-set file, if it completed.",
)
@options.verbose_errors
@options.as_json
def simulate_run(**given: Any) -> None:
    """Run one conversation between AGENT and a simulated user.

    Tools are mocked: give --mocks, or name tools that may run for real with --allow-tool.
    """
    from greenroom.apps.cli.simulations import run_one

    run_one(**given)


@simulate_group.command(
    "batch",
    epilog=examples(
        "greenroom simulate batch shop.py scenarios.json -o conversations/",
        "greenroom simulate batch shop.py scenarios.yaml --save-successful shop.evalset.json",
    )
    + f"\n\n{_CODES}",
)
@click.argument("agent", type=FILE)
@click.argument("scenarios", type=FILE)
@_user_model
@options.parallel
@options.declared("concurrency", help="How many cases run at once (default: 4).")
@options.tools
@options.filters
@options.output(help="A folder for one JSON file per scenario.")
@click.option(
    "--save-successful",
    type=FILE,
    default="",
    metavar="FILE",
    help="Write the conversations that completed to this eval-set file.",
)
@click.option("--force", is_flag=True, help="With --save-successful: overwrite an existing file.")
@options.verbose_errors
@options.as_json
def simulate_batch(concurrency: int | None, parallel: bool, **given: Any) -> None:
    """Run every conversation of SCENARIOS, a file of scenarios or cases, with AGENT."""
    from greenroom.apps.cli.simulations import run_many
    from greenroom.suite.options import CONCURRENCY

    run_many(concurrency=options.at_once(concurrency, parallel) or CONCURRENCY, **given)
