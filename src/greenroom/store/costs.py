"""What the runs in a store have cost, added up where they are kept."""

from collections.abc import Iterable

from greenroom.store.store import COST, PRICES, Store

_UNKNOWN = " or ".join(f"{price} is null" for price in PRICES)
_SUMS = f"""
select sum({COST}), sum(json_extract(verdict, '$.ended') is not null and ({_UNKNOWN}))
from trials where run_id = ? and position >= 0
"""


def costs(store: Store, ids: Iterable[str]) -> dict[str, float | None]:
    """What agents, users and judges of each run cost in USD; None when a price is unknown."""
    found: dict[str, float | None] = {}
    with store.database.connected() as connection:
        for run_id in ids:
            spent, unknown = connection.execute(_SUMS, (run_id,)).fetchone()
            found[run_id] = None if unknown else float(spent or 0)
    return found
