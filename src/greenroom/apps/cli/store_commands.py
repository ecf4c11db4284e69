"""`greenroom store`: create, upgrade and check the place where runs are kept."""

from typing import Any

import click

from greenroom.apps.cli import options
from greenroom.apps.cli.options import examples


@click.group("store")
def store_group() -> None:
    """Create, upgrade and check the store of runs: a folder, or a Postgres server."""


@store_group.command(
    "init",
    epilog=examples(
        "greenroom store init --store postgresql://db/evals",
        "greenroom store init --store postgresql://db/evals --blobs s3://bucket/evals",
    ),
)
@click.option(
    "--blobs",
    default="",
    metavar="PLACE",
    help="Where a server's store keeps large values: a folder that all machines see, or a bucket such as "
    "s3://bucket/evals (default: the database itself).",
)
@options.stored
def store_init(**given: Any) -> int:
    """Create the tables of a store. On a server this needs permission to create a schema; runs never do it."""
    from greenroom.apps.cli.stores import make_store

    return make_store(**given)


@store_group.command(
    "migrate", epilog=examples("greenroom store migrate --store postgresql://db/evals")
)
@options.stored
def store_migrate(**given: Any) -> int:
    """Upgrade the tables of a store to the format of this version, while no run is in progress in it."""
    from greenroom.apps.cli.stores import migrate_store

    return migrate_store(**given)


@store_group.command(
    "check", epilog=examples("greenroom store check --store postgresql://db/evals")
)
@options.stored
@options.as_json
def store_check(**given: Any) -> int:
    """Report whether runs can be recorded in a store, by whom, and how much is in it."""
    from greenroom.apps.cli.stores import check_store

    return check_store(**given)
