"""`greenroom runs`: recorded runs listed, shown and deleted."""

from typing import Any

import click

from greenroom.apps.cli import options
from greenroom.apps.cli.options import examples


@click.group("runs")
def runs_group() -> None:
    """List, show and delete recorded runs."""


@runs_group.command(
    "list", epilog=examples("greenroom runs list", "greenroom runs list --limit 5 --json")
)
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Only the latest N.")
@options.stored
@options.as_json
def runs_list(**given: Any) -> int:
    """List the runs, the latest first: the set, how far it got, its errors and its cost."""
    from greenroom.apps.cli.runs import list_runs

    return list_runs(**given)


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
def runs_show(run: str, store: str, **given: Any) -> int:
    """Show the report of RUN as `eval run` does; the beginning of its id is enough."""
    options.loudness(given)
    from greenroom.apps.cli.report_output import Showing
    from greenroom.apps.cli.runs import show_run

    return show_run(run, store, Showing(**given))


@runs_group.command(
    "delete",
    epilog=examples(
        "greenroom runs delete 20260102-090000-1f3a", "greenroom runs delete --older-than 30d --yes"
    ),
)
@click.argument("runs", nargs=-1)
@click.option(
    "--older-than",
    default="",
    metavar="AGE",
    help="All runs that began longer ago than this: 30d, 12h or 2w.",
)
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@options.stored
def runs_delete(**given: Any) -> int:
    """Delete RUNS and everything recorded in them. Runs under way are left alone."""
    if bool(given["runs"]) == bool(given["older_than"]):
        raise click.UsageError("say which runs: their ids, or --older-than.")
    from greenroom.apps.cli.runs import delete_runs

    return delete_runs(**given)
