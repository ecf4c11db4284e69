"""`greenroom store`: create, upgrade and check the place where runs are kept."""

from typing import TYPE_CHECKING

import click

from greenroom.apps.cli import options
from greenroom.apps.cli.exits import aside, put_out, put_out_data
from greenroom.apps.cli.options import examples
from greenroom.errors import NotFound

if TYPE_CHECKING:
    from greenroom.store.database import Database
    from greenroom.store.store import Store


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
def store_init(blobs: str, store: str) -> None:
    """Create the tables of a store. On a server this needs permission to create a schema; runs never do it."""
    from greenroom.apps.cli.report_output import open_store

    _upgrade(open_store(store).database, blobs)


@store_group.command(
    "migrate", epilog=examples("greenroom store migrate --store postgresql://db/evals")
)
@options.stored
def store_migrate(store: str) -> None:
    """Upgrade the tables of a store to the format of this version, while no run is in progress in it."""
    _upgrade(_existing(store).database)


@store_group.command(
    "check", epilog=examples("greenroom store check --store postgresql://db/evals")
)
@options.stored
@options.as_json
def store_check(store: str, as_json: bool) -> None:
    """Report whether runs can be recorded in a store, by whom, and how much is in it."""
    place = _existing(store)
    facts = [("store", place.address), *place.database.about()]
    if as_json:
        put_out_data(dict(facts))
        return
    width = max(len(name) for name, _ in facts)
    for name, fact in facts:
        put_out(f"{name:<{width}}  {fact}")


def _existing(store: str) -> "Store":
    from greenroom.apps.cli.report_output import open_store

    place = open_store(store)
    if not place.database.exists():
        raise NotFound(
            f"there is no store in {place.address}. Name the folder that holds runs.db; `greenroom "
            f"store init` makes a new store."
        )
    return place


def _upgrade(database: "Database", blobs: str = "") -> None:
    try:
        aside(database.upgrade(blobs))
    except Exception as error:
        raise database.failure(error) or error from error
