"""`greenroom eval-set`: the commands for eval-set files, and their options."""

from typing import Any

import click

from greenroom.apps.cli import options
from greenroom.apps.cli.options import FILE, examples


@click.group("eval-set")
def evalset_group() -> None:
    """Create, list, check and convert eval-set files."""


@evalset_group.command(
    "create", epilog=examples("greenroom eval-set create refunds -d 'Money back'")
)
@click.argument("name")
@click.option("-d", "--description", default="", metavar="TEXT", help="What the set is about.")
@options.output(help="The file to write (default: NAME.evalset.json).")
@options.force
def create(**given: Any) -> None:
    """Write an empty eval set called NAME, which may be a file: refunds.yaml."""
    from greenroom.apps.cli import evalsets

    evalsets.create(**given)


@evalset_group.command(
    "add",
    epilog=examples(
        "greenroom eval-set add refunds.evalset.json --interactive",
        "greenroom eval-set add refunds.evalset.json --from-template tool-test --id pays-back",
        "greenroom eval-set add refunds.evalset.json --from-session run.jsonl",
        "greenroom eval-set add refunds.evalset.json --from-run 20260102-09 --case refund-7 --trial 2",
    ),
)
@click.argument("file", type=FILE)
@click.option(
    "--from-session",
    type=FILE,
    default="",
    metavar="LEDGER",
    help="Add a case that repeats this recorded session.",
)
@click.option(
    "--no-expect",
    is_flag=True,
    help="With a recorded session: expect nothing; then sessions that ended early are accepted too.",
)
@click.option("--from-run", default="", metavar="RUN", help="Add a case from a stored run.")
@click.option("--case", default="", metavar="ID", help="With --from-run: which case.")
@click.option("--trial", default=1, show_default=True, help="With --from-run: which trial of it.")
@options.stored
@click.option(
    "--from-template",
    type=click.Choice(["single-turn", "multi-turn", "tool-test"]),
    help="Add a case with blanks to fill in; `validate` finds those that are left.",
)
@click.option("-i", "--interactive", is_flag=True, help="Answer questions about the case.")
@click.option("--id", "case_id", default="", metavar="ID", help="The id of the new case.")
def add(**given: Any) -> None:
    """Add a case to the eval set in FILE."""
    from_run, case, trial = given.pop("from_run"), given.pop("case"), given.pop("trial")
    ways = [given["from_session"], from_run, given["from_template"], given.pop("interactive")]
    if sum(map(bool, ways)) != 1:
        raise click.UsageError(
            "give one of --from-session, --from-run, --from-template and --interactive."
        )
    if bool(from_run) != bool(case):
        raise click.UsageError("--from-run RUN and --case ID go together.")
    from greenroom.apps.cli import evalsets

    evalsets.add(**given, from_run=(from_run, case, trial))


@evalset_group.command(
    "remove", epilog=examples("greenroom eval-set remove refunds.evalset.json old-case")
)
@click.argument("file", type=FILE)
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
def remove(file: str, ids: tuple[str, ...]) -> None:
    """Remove the cases with these IDs from the eval set in FILE."""
    from greenroom.apps.cli import evalsets

    evalsets.remove(file, ids)


@evalset_group.command(
    "list",
    epilog=examples(
        "greenroom eval-set list refunds.evalset.json",
        "greenroom eval-set list evals/ --filter tag:smoke --json",
    ),
)
@click.argument("file", type=FILE)
@options.filters
@click.option(
    "-v", "--verbose", is_flag=True, help="Also show descriptions and what the user says."
)
@options.as_json
def list_cases(**given: Any) -> None:
    """List the cases of an eval-set FILE, of a folder of them, or of a glob."""
    from greenroom.apps.cli import evalsets

    evalsets.list_cases(**given)


@evalset_group.command(
    "validate",
    epilog=examples(
        "greenroom eval-set validate refunds.evalset.json",
        "greenroom eval-set validate refunds.yaml --fix",
        "greenroom eval-set validate refunds.yaml --agent shop.py",
    ),
)
@click.argument("files", nargs=-1, required=True, type=FILE)
@click.option(
    "--fix", "mend", is_flag=True, help="Make safe repairs; comments in a YAML file are lost."
)
@click.option(
    "--agent",
    default="",
    metavar="AGENT",
    help="Check tools and their arguments too: they must be those of this agent.",
)
@options.as_json
def validate(**given: Any) -> None:
    """Report everything that is wrong with eval-set FILES, with line and place.

    Exit code 3 unless all files are valid, or were fixed. A hint points at something that may still work
    with the settings of a run; hints do not change the exit code.
    """
    from greenroom.apps.cli.validation import validate

    validate(**given)


@evalset_group.command(
    "merge",
    epilog=examples("greenroom eval-set merge one.json two.yaml -o all.evalset.json --deduplicate"),
)
@click.argument("files", nargs=-1, required=True, type=FILE)
@options.output(required=True, help="The file to write.")
@options.force
@click.option("--deduplicate", is_flag=True, help="Drop cases that are the same in several sets.")
@click.option(
    "--keep",
    type=click.Choice(["first", "last"]),
    help="If cases with the same id differ, keep this one.",
)
def merge(**given: Any) -> None:
    """Merge the cases of several FILES into one file."""
    from greenroom.apps.cli import evalsets

    evalsets.merge_files(**given)


@evalset_group.command(
    "convert",
    epilog=examples(
        "greenroom eval-set convert weather.test.json weather.yaml",
        "greenroom eval-set convert cases.yaml cases.evalset.json --to adk --lossy",
    ),
)
@click.argument("source", type=FILE)
@click.argument("target", type=FILE)
@click.option(
    "--to", "shape", default="", metavar="SHAPE", help="The shape to write (default: greenroom)."
)
@click.option(
    "--from",
    "read_as",
    default="",
    metavar="SHAPE",
    help="The shape of SOURCE, if it is not recognised.",
)
@click.option("--lossy", is_flag=True, help="Leave out what the shape cannot hold, and list it.")
@options.force
def convert(**given: Any) -> None:
    """Write the eval set in SOURCE to TARGET, in the shape of another tool.

    Shapes: greenroom, agentflow, adk, adk-flat, adk-named, queries, sessions, fluent, scenarios, and
    table for .csv and .jsonl. If anything would be lost, it is listed and nothing is written, unless
    --lossy is given.
    """
    from greenroom.apps.cli import evalsets

    evalsets.convert(**given)


@evalset_group.command(
    "schema", epilog=examples("greenroom eval-set schema -o evalset.schema.json")
)
@options.output()
def schema(output: str) -> None:
    """Print the JSON schema of eval-set files, for editors that check while you type."""
    from greenroom.apps.cli import evalsets

    evalsets.schema(output)
