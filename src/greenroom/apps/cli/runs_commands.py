"""`greenroom runs`: recorded runs listed, shown, replayed, compared, shrunk and deleted."""

from typing import Any

import click

from greenroom.apps.cli import options
from greenroom.apps.cli.options import FILE, examples

_agent = click.option(
    "--agent",
    default="",
    type=FILE,
    metavar="AGENT",
    help="The agent, as for `eval run` (default: the one that RUN was started with).",
)
_model = options.declared(
    "model",
    help="What answers in place of the agent's own models, as for `eval run` (default: what the case or "
    "RUN named).",
)


@click.group("runs")
def runs_group() -> None:
    """List, show, replay, compare, shrink and delete recorded runs."""


@runs_group.command(
    "list", epilog=examples("greenroom runs list", "greenroom runs list --limit 5 --json")
)
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Only the latest N.")
@click.option("--all", "every", is_flag=True, help="Every run, not only the latest 50.")
@options.stored
@options.as_json
def runs_list(**given: Any) -> None:
    """List the runs, the latest first: the set, how far it got, its errors and its cost."""
    from greenroom.apps.cli.runs import list_runs

    list_runs(**given)


@runs_group.command(
    "show",
    epilog=examples(
        "greenroom runs show 20260102-090000-1f3a",
        "greenroom runs show 20260102-09 -f html -o report.html",
    ),
)
@click.argument("run")
@options.formats
@options.stored
@options.verbose
@options.quiet
@options.as_json
def runs_show(run: str, store: str, **given: Any) -> None:
    """Show the report of RUN as `eval run` does; the beginning of its id is enough."""
    options.loudness(given)
    from greenroom.apps.cli.report_output import Showing
    from greenroom.apps.cli.runs import show_run

    show_run(run, store, Showing(**given))


@runs_group.command(
    "coverage",
    epilog=examples(
        "greenroom runs coverage 20260102-09", "greenroom runs coverage 20260102 20260103 --json"
    ),
)
@click.argument("runs", nargs=-1, required=True)
@options.stored
@options.as_json
def runs_coverage(**given: Any) -> None:
    """Report which nodes, tools, arguments and tool failures RUNS have exercised, and which they have not."""
    from greenroom.apps.cli.agents import show_coverage

    show_coverage(**given)


@runs_group.command(
    "delete",
    epilog=examples(
        "greenroom runs delete 20260102-090000-1f3a",
        "greenroom runs delete --older-than 90d --keep 20 --yes",
    ),
)
@click.argument("runs", nargs=-1)
@click.option(
    "--older-than",
    default="",
    metavar="AGE",
    help="All runs that are older than this: 30d, 12h or 2w.",
)
@click.option(
    "--keep",
    type=click.IntRange(min=1),
    metavar="N",
    help="Keep the latest N runs of each set, however old they are.",
)
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@options.stored
def runs_delete(**given: Any) -> None:
    """Delete RUNS and everything recorded in them. Runs in progress are left alone."""
    if bool(given["runs"]) == bool(given["older_than"] or given["keep"]):
        raise click.UsageError("say which runs: their ids, or --older-than and --keep.")
    from greenroom.apps.cli.runs import delete_runs

    delete_runs(**given)


@runs_group.command(
    "replay",
    epilog=examples(
        "greenroom runs replay 20260102-09 refund",
        "greenroom runs replay 20260102-09 refund#2 --agent desk.py --on-drift live",
    ),
)
@click.argument("run")
@click.argument("case", metavar="CASE[#TRIAL]")
@_agent
@_model
@click.option(
    "--on-drift",
    type=click.Choice(["error", "live"]),
    default="error",
    help="If it asks for something else: stop and say what differs, or ask the model.",
)
@options.declared("middleware")
@options.stored
@options.as_json
@options.verbose_errors
def runs_replay(**given: Any) -> int:
    """Run a trial of RUN again from its ledger with the agent as it is now; no model is asked.

    Exits with 1 if the agent does anything other than what was recorded, and says what differs first.
    """
    from greenroom.apps.cli.trials import replay_trial

    return replay_trial(**given)


@runs_group.command(
    "diff",
    epilog=examples(
        "greenroom runs diff 20260102-09 refund",
        "greenroom runs diff 20260102-09 refund#2 --with 20260103-10",
    ),
)
@click.argument("run")
@click.argument("case", metavar="CASE[#TRIAL]")
@click.option(
    "--with",
    "other",
    default="",
    metavar="RUN[#TRIAL]",
    help="The trial to compare with: of another run, or `#2` of this one (default: the next trial).",
)
@options.stored
@options.as_json
def runs_diff(**given: Any) -> int:
    """Say where two trials of a case differ, side by side and place by place; exits with 1 if they do."""
    from greenroom.apps.cli.trials import diff_trials

    return diff_trials(**given)


@runs_group.command(
    "shrink",
    epilog=examples(
        "greenroom runs shrink 20260102-09 refund",
        "greenroom runs shrink 20260102-09 refund#2 --agent desk.py --cases desk.py --fails-in 3 --trials 4",
    ),
)
@click.argument("run")
@click.argument("case", metavar="CASE[#TRIAL]")
@_agent
@_model
@click.option(
    "--cases",
    type=FILE,
    default="",
    metavar="CASES",
    help="The cases of the run, if this case has code that a run does not keep, such as a metric.",
)
@click.option(
    "--fails-in",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    metavar="K",
    help="How many of --trials trials must fail for a smaller case to count as failing.",
)
@click.option(
    "--trials",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    metavar="N",
    help="How often each smaller case runs, for failures that depend on chance.",
)
@click.option(
    "--max-trials",
    type=click.IntRange(min=1),
    default=200,
    show_default=True,
    metavar="N",
    help="How many trials the search may take.",
)
@click.option(
    "--max-model-calls",
    type=click.IntRange(min=0),
    metavar="N",
    help="How often models may be asked; reused answers of the run do not count.",
)
@click.option(
    "--budget", type=options.Number(min=0), metavar="USD", help="What the search may cost."
)
@options.output(help="The file to write the shrunk case to (default: CASE.shrunk.yaml).")
@options.force
@options.config
@options.tools
@options.stored
@options.as_json
@options.verbose_errors
def runs_shrink(**given: Any) -> int:
    """Find the shortest conversation and the fewest mocks with which a failed trial of RUN still fails.

    A smaller case counts as failing if a metric falls short that fell short in RUN too. Recorded answers are
    reused; a model is asked only what is new. Exits with 1 if the search stopped before it was clear that
    nothing more can be left out.
    """
    from greenroom.apps.cli.trials import shrink_trial

    del given["allow_opaque"]
    return shrink_trial(**given)
