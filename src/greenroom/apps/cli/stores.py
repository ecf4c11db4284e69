"""`greenroom store`: what its commands do."""

from greenroom.apps.cli import report_output
from greenroom.apps.cli.exits import PASSED, aside, put_out, put_out_data
from greenroom.errors import NotFound
from greenroom.store.database import Database
from greenroom.store.store import Store


def make_store(blobs: str, store: str) -> int:
    """Create a store, or upgrade it if there is one."""
    _upgrade(report_output.open_store(store).database, blobs)
    return PASSED


def migrate_store(store: str) -> int:
    """Upgrade a store."""
    _upgrade(_existing(store).database, "")
    return PASSED


def _existing(store: str) -> Store:
    place = report_output.open_store(store)
    if not place.database.exists():
        raise NotFound(
            f"there is no store in {place.address}. Name the folder that holds runs.db; `greenroom "
            f"store init` makes a new store."
        )
    return place


def _upgrade(database: Database, blobs: str) -> None:
    try:
        aside(database.upgrade(blobs))
    except Exception as error:
        raise database.failure(error) or error from error


def check_store(store: str, as_json: bool) -> int:
    """Print the state of a store."""
    place = _existing(store)
    facts = [("store", place.address), *place.database.about()]
    if as_json:
        put_out_data(dict(facts))
    else:
        width = max(len(name) for name, _ in facts)
        for name, fact in facts:
            put_out(f"{name:<{width}}  {fact}")
    return PASSED
