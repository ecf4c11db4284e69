"""`greenroom traces`: conversations that were recorded elsewhere."""

from typing import Any

import click

from greenroom.apps.cli import options
from greenroom.apps.cli.options import FILE, examples


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
@options.verbose
def traces_import(**given: Any) -> int:
    """Read FILES, or folders of them, and write a ledger for each conversation.

    What the source does not hold is noted in the ledger, and no metric takes it for nothing. A file, or a
    part of one, that cannot be read is named and leads to exit code 3; everything else is written.
    """
    options.loudness(given)
    from greenroom.apps.cli.traces import import_traces

    return import_traces(**given)
