"""`greenroom traces`: conversations that were recorded elsewhere."""

from typing import Any

import click

from greenroom.apps.cli import options
from greenroom.apps.cli.options import FILE, examples

_names = click.option(
    "--redact",
    "names",
    type=FILE,
    default="",
    metavar="FILE",
    help="Names to replace in the cases, one on each line.",
)


@click.group("traces")
def traces_group() -> None:
    """Read what was recorded elsewhere: traces of production, logs of other tools."""


@traces_group.command(
    "import",
    epilog=examples(
        "greenroom traces import traces/*.json -o ledgers/",
        "greenroom traces import spans.pb helm.json -o ledgers/",
        "greenroom traces import log.json --reader openai -o ledgers/",
    ),
)
@click.argument("files", nargs=-1, required=True, type=FILE)
@options.output(required=True, help="The folder that the ledgers go to, one for each conversation.")
@options.trace_reader
@options.quiet
@options.as_json
@options.verbose_errors
def traces_import(**given: Any) -> None:
    """Read FILES, or folders of them, and write a ledger for each conversation.

    What the source does not contain is noted in the ledger; to metrics it is unknown, not absent. A file, or a
    part of one, that cannot be read is named and leads to exit code 3; everything else is written.
    """
    options.loudness(given)
    from greenroom.apps.cli.traces import import_traces

    import_traces(**given)


@traces_group.command(
    "to-case",
    epilog=examples(
        "greenroom traces to-case prod.json --into prod.evalset.json",
        "greenroom traces to-case prod/ --conversation ctx-7 --as scenario --into prod.evalset.json",
        "greenroom traces to-case prod.json --redact names.txt --into prod.evalset.json",
    ),
)
@click.argument("files", nargs=-1, required=True, type=FILE)
@click.option("--into", required=True, type=FILE, metavar="EVALSET", help="The eval set to add to.")
@click.option(
    "--conversation", "chosen", multiple=True, metavar="ID", help="Only this one; may be repeated."
)
@click.option(
    "--as",
    "kind",
    type=click.Choice(["regression", "scenario"]),
    default="regression",
    show_default=True,
    help="regression: the same messages, with the same outcome expected; scenario: a simulated user with the same goal.",
)
@click.option(
    "--no-expect", is_flag=True, help="Do not expect what the agent did, because it was wrong."
)
@_names
@click.option("--keep-pii", is_flag=True, help="Keep personal data as it is.")
@options.trace_reader
@options.verbose_errors
def traces_to_case(**given: Any) -> None:
    """Turn the conversations in FILES into cases.

    Personal data is replaced, the same value by the same stand-in everywhere: e-mail addresses, telephone,
    card and account numbers, addresses of machines, and the names you list. A conversation that cannot become a
    case is named and leads to exit code 3; the others are written.
    """
    from greenroom.apps.cli.traces import write_cases

    write_cases(**given)


@traces_group.command(
    "watch",
    epilog=examples(
        "greenroom traces watch --folder traces/ --metrics safety_v1 --baseline last-week.json",
        "greenroom traces watch --otlp 127.0.0.1:4318 --metrics tone --sample 5% --budget 2 "
        "--failures prod.evalset.json",
        "greenroom traces watch --folder traces/ --metrics tone --once",
    ),
)
@options.metrics
@click.option(
    "--folder", type=FILE, default="", metavar="DIR", help="Watch the files in this folder."
)
@click.option(
    "--otlp",
    default="",
    metavar="HOST:PORT",
    help="Receive spans by OTLP over HTTP at this address, on loopback; they are kept in the state folder.",
)
@click.option(
    "--state",
    type=FILE,
    default=".greenroom/watch",
    show_default=True,
    metavar="DIR",
    help="Where to keep what has been counted, so that a restart counts nothing twice.",
)
@click.option(
    "--sample",
    default="100%",
    show_default=True,
    metavar="SHARE",
    help="Score this share of conversations.",
)
@click.option(
    "--budget",
    type=options.Number(min=0),
    metavar="USD",
    help="What judges may cost in a day; beyond it conversations are unmeasured.",
)
@click.option(
    "--baseline",
    type=FILE,
    default="",
    metavar="REPORT",
    help="Raise an alarm when rates move away from those of this report.",
)
@click.option(
    "--patience",
    type=click.IntRange(min=100),
    default=10_000,
    show_default=True,
    metavar="N",
    help="Raise a false alarm at most once in N conversations, on average.",
)
@click.option(
    "--failures",
    type=FILE,
    default="",
    metavar="EVALSET",
    help="Write failed conversations to this eval set, as cases.",
)
@_names
@click.option(
    "--settle",
    type=options.Number(min=0),
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    help="Score a conversation once nothing has been added to it for this long.",
)
@click.option("--once", is_flag=True, help="Score what is there and exit, with 1 after an alarm.")
@options.trace_reader
@options.verbose_errors
def traces_watch(**given: Any) -> None:
    """Score production conversations as they come in, and say when something gets worse.

    The rates' intervals stay valid however often you look. Each conversation counts once. The shares of
    errors and of unmeasured conversations are rates too, with their own alarms.
    """
    if bool(given["folder"]) == bool(given["otlp"]):
        raise click.UsageError("say what to watch: either --folder or --otlp.")
    from greenroom.apps.cli.trace_watch import WatchRequest, watch_traces

    watch_traces(WatchRequest(**given))
