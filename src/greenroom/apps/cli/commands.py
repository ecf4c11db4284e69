"""The commands and their options. Whatever they need is imported when they run."""

from typing import Any

import click

from greenroom import __version__
from greenroom.apps.cli.exits import Door

_RUN_EXAMPLES = """\b
Examples:
  greenroom eval run weather.py
  greenroom eval run weather.py:agent cases.yaml
  greenroom eval run my_agent/ tests/cases.py:smoke --min-pass-rate 0.9
  greenroom eval run weather.py --allow-tool to_celsius --fail-fast

\b
Exit codes, the first that applies:
  130, 143  interrupted by Ctrl-C, or by SIGTERM
  3         bad usage, or an agent or case that cannot be read
  2         errors in the run: a case broke, or the fence could not hold
  1         the pass rate is below the minimum
  0         passed
"""


@click.group(cls=Door, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="greenroom")
def main() -> None:
    """Where an AI agent rehearses before it meets real people.

    Greenroom plays your agent against simulated users with every side effect mocked, writes down
    all that happened, and measures it.

    \b
    Start here:
      greenroom demo                 see a rehearsal, without a key or a network
      greenroom eval run agent.py    rehearse your own agent
    """


@main.group("eval")
def eval_group() -> None:
    """Rehearse an agent on cases and judge what happened."""


@eval_group.command("run", epilog=_RUN_EXAMPLES)
@click.argument("agent")
@click.argument("cases", required=False, default="")
@click.option(
    "--max-concurrency",
    type=click.IntRange(min=1),
    default=4,
    show_default=True,
    metavar="N",
    help="How many cases are played at once.",
)
@click.option("--sequential", is_flag=True, help="Play one case after another.")
@click.option(
    "--allow-tool",
    "allow_tools",
    multiple=True,
    metavar="NAME",
    help="Let the real body of this tool run, inside the fence; may be repeated.",
)
@click.option("--fail-fast", is_flag=True, help="Skip the rest once a case did not pass.")
@click.option(
    "--min-pass-rate",
    type=click.FloatRange(0, 1),
    default=1.0,
    show_default=True,
    metavar="FLOAT",
    help="The share of evaluated cases that must pass, from 0 to 1.",
)
@click.option(
    "--max-errors",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    metavar="N",
    help="How many cases may end in an error, unmeasured ones among them, before exit code 2.",
)
@click.option("-v", "--verbose", is_flag=True, help="Details of every case; tracebacks.")
@click.option("-q", "--quiet", is_flag=True, help="Nothing but the line of counts.")
def eval_run(max_concurrency: int, sequential: bool, **given: Any) -> int:
    """Rehearse AGENT on CASES and report what came of it.

    Both are a path with an optional name in it: agent.py, agent.py:my_agent, a folder, or a dotted
    module. CASES may also be a .json or .yaml file; without CASES, every case, list of cases or
    eval set in AGENT's file is played.
    """
    if given["verbose"] and given["quiet"]:
        raise click.UsageError("--verbose and --quiet contradict each other; give one of them.")
    from greenroom.apps.cli.evaluation import Order, run

    return run(Order(concurrency=1 if sequential else max_concurrency, **given))


@main.command()
@click.option("--source", is_flag=True, help="Print the demo's file instead, to read or to copy.")
def demo(source: bool) -> int:
    """Watch a rehearsal: three patients call a clinic's triage agent.

    All models are scripted, so it needs no key and no network. One case fails on purpose, to show
    what a failure looks like.
    """
    from greenroom.apps.cli.demonstration import print_source, show

    return print_source() if source else show()
