"""The root of the command line. Whatever a command needs is imported when it runs."""

from typing import Any

import click

from greenroom import __version__
from greenroom.apps.cli import options
from greenroom.apps.cli.eval_commands import eval_group
from greenroom.apps.cli.evalset_commands import evalset_group
from greenroom.apps.cli.exits import RootGroup
from greenroom.apps.cli.judging_commands import JUDGING
from greenroom.apps.cli.labels_commands import labels_group
from greenroom.apps.cli.options import FILE, examples
from greenroom.apps.cli.perform_commands import perform_command
from greenroom.apps.cli.runs_commands import runs_group
from greenroom.apps.cli.serve_commands import serve_command
from greenroom.apps.cli.simulate_commands import simulate_group
from greenroom.apps.cli.store_commands import store_group
from greenroom.apps.cli.traces_commands import traces_group


@click.group(cls=RootGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="greenroom")
def main() -> None:
    """Where an AI agent rehearses before it meets real people.

    Greenroom runs your agent against simulated users with every side effect mocked, records
    everything that happens, and measures it.

    \b
    Start here:
      greenroom demo                 see a rehearsal, without a key or a network
      greenroom init my_project      a starter project: agent, cases, test, CI
      greenroom eval run agent.py    rehearse your own agent
    """


for _command in JUDGING:
    eval_group.add_command(_command)
main.add_command(eval_group)
main.add_command(evalset_group)
main.add_command(simulate_group)
main.add_command(runs_group)
main.add_command(store_group)
main.add_command(traces_group)
main.add_command(labels_group)
main.add_command(perform_command)
main.add_command(serve_command)


@main.group("agent")
def agent_group() -> None:
    """Draw an agent, check its contracts, and estimate its costs."""


@agent_group.command(
    "graph",
    epilog=examples(
        "greenroom agent graph weather.py",
        "greenroom agent graph my_agent/ --data --cost > a.mmd",
        "greenroom agent graph --run 20260102-09 --case refund#2",
    ),
)
@click.argument("agent", type=FILE, required=False)
@click.option(
    "--data", is_flag=True, help="Show which nodes write each part of the state, and which read it."
)
@click.option(
    "--cost",
    is_flag=True,
    help="Show what each node is expected to cost; with --run, learnt from all its trials.",
)
@click.option(
    "--run", default="", metavar="RUN", help="Draw the path that a trial of this run took."
)
@click.option("--case", default="", metavar="CASE#TRIAL", help="Which trial (default: the first).")
@options.stored
@options.verbose_errors
def agent_graph(**given: Any) -> None:
    """Print AGENT's graph as a Mermaid flowchart, for Markdown pages and viewers.

    With --run, the graph is drawn as it was recorded: the trial's path is thick, and each node shows its
    visits, time and cost.
    """
    if not given["agent"] and not given["run"]:
        raise click.UsageError("say what to draw: AGENT, or --run.")
    if given["case"] and not given["run"]:
        raise click.UsageError("--case is a trial of a run; give --run too.")
    from greenroom.apps.cli.agents import print_graph

    print_graph(**given)


@agent_group.command(
    "check",
    epilog=examples(
        "greenroom agent check desk.py",
        "greenroom agent check desk.py:desk --schema desk.py:Billing --strict",
        'greenroom agent check desk.py --given \'{"user": {"tier": "gold"}}\' --json',
    ),
)
@click.argument("agent", type=FILE)
@click.option("--schema", default="", metavar="MODULE:CLASS", help="The schema of its whole state.")
@click.option(
    "--given", default="", metavar="JSON", help="The state that its runs begin with, by scope."
)
@click.option("--strict", is_flag=True, help="Exit with 1 for warnings too.")
@options.as_json
@options.verbose_errors
def agent_check(agent: str, **given: Any) -> int:
    """Check AGENT's contracts: what its nodes read, write and cost, without asking a model.

    Exits with 1 if there are errors (with --strict: or warnings), with 3 if the agent, the schema or
    the state cannot be used.
    """
    from greenroom.apps.cli.agents import check_agent

    return check_agent(agent, **given)


def _amount(name: str, help: str) -> Any:
    return click.option(name, type=options.Number(min=0), metavar="N", help=help)


@agent_group.command(
    "cost",
    epilog=examples(
        "greenroom agent cost desk.py --tokens-in 500 --tokens-out 200 --conversations-per-day 10000",
        "greenroom agent cost desk.py --from 20260102-09 --from 20260103",
        "greenroom agent cost desk.py --from 20260102-09 --beside 20260103 --json",
    ),
)
@click.argument("agent", type=FILE)
@click.option(
    "--from",
    "learnt",
    multiple=True,
    metavar="RUN",
    help="Learn from this recorded run: visits, calls, tokens and prices; may be repeated.",
)
@click.option(
    "--beside",
    multiple=True,
    metavar="RUN",
    help="Show the estimate next to what this recorded run used; may be repeated.",
)
@_amount("--conversations-per-day", "How many conversations there are per day.")
@_amount("--turns", "How many turns the agent takes in a conversation.")
@_amount("--calls", "How often an agent asks its model in one visit, if no run shows it.")
@_amount("--tokens-in", "Tokens of a first question, if no run shows them.")
@_amount("--tokens-out", "Tokens of a reply, if no run shows them.")
@click.option("--model", default="", metavar="NAME", help="Use this model in place of its own.")
@options.stored
@options.as_json
@options.verbose_errors
def agent_cost(**given: Any) -> None:
    """Estimate what AGENT costs, per node and in total, without asking a model.

    Unknown values, such as a price, are named and never counted as 0. If no run shows which way routes,
    loops and forks go, the estimate states what it assumes.
    """
    from greenroom.apps.cli.agents import show_cost

    show_cost(**given)


@main.command(epilog=examples("greenroom demo", "greenroom demo --source > clinic.py"))
@click.option(
    "--source", is_flag=True, help="Print the source of the demo instead, to read or to copy."
)
def demo(source: bool) -> None:
    """Watch a rehearsal: three patients call a clinic's triage agent.

    All models are scripted, so it needs no key and no network. One case fails on purpose, to show
    what a failure looks like.
    """
    from greenroom.apps.cli.first_steps import print_source, show_demo

    print_source() if source else show_demo()


@main.command(epilog=examples("greenroom init", "greenroom init my_project"))
@click.argument("folder", required=False, default=".", type=FILE)
def init(folder: str) -> None:
    """Write a starter project into FOLDER, or here.

    An agent that runs without a key, an eval set for it, a pytest file and a CI workflow; all cases
    and tests pass. Existing files are left alone.
    """
    from greenroom.apps.cli.first_steps import write_project

    write_project(folder)


@main.command("node", hidden=True)
def node() -> None:
    """Call the functions of an agent that runs in another process, over standard input and output."""
    from greenroom.simulation.node import main as serve

    serve()


@main.command(
    "explain", epilog=examples("greenroom explain ToolRefused", "greenroom explain badfile")
)
@click.argument("error", required=False, default="")
@options.verbose_errors
def explain_error(error: str) -> None:
    """Say what ERROR means and what to do about it; without a name, list all errors."""
    from greenroom.apps.cli.explain import explain

    explain(error)


@main.command(
    epilog=examples(
        'eval "$(greenroom completion bash)"',
        "greenroom completion zsh > ~/.zfunc/_greenroom",
        "greenroom completion fish > ~/.config/fish/completions/greenroom.fish",
    )
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the script that completes commands, options and files in a shell."""
    from click.shell_completion import BashComplete, FishComplete, ZshComplete

    kinds = {"bash": BashComplete, "zsh": ZshComplete, "fish": FishComplete}
    made = kinds[shell](click.Group(), {}, "greenroom", "_GREENROOM_COMPLETE")
    # click's `source()` for bash first runs bash to check its version, but bash may not be installed here.
    click.echo(made.source_template % made.source_vars())
