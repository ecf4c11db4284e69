"""`greenroom store`: what its commands do."""

from greenroom.apps.cli import report_output
from greenroom.apps.cli.exits import PASSED, aside, put_out, put_out_data, telling


def make_store(blobs: str, store: str) -> int:
    """Create a store, or upgrade it."""
    with telling(verbose=False):
        database = report_output.open_store(store).database
        try:
            aside(database.upgrade(blobs))
        except Exception as error:
            raise database.failure(error) or error from error
    return PASSED


def check_store(store: str, as_json: bool) -> int:
    """Print the state of a store."""
    with telling(verbose=False):
        place = report_output.open_store(store)
        facts = [("store", place.address), *place.database.about()]
        if as_json:
            put_out_data(dict(facts))
        else:
            width = max(len(name) for name, _ in facts)
            for name, fact in facts:
                put_out(f"{name:<{width}}  {fact}")
    return PASSED
