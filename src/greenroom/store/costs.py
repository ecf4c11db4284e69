"""What the runs in a store have cost, added up where they are kept."""

from collections.abc import Iterable

from greenroom.store.store import Store

_SUMS = """
select
    sum(
        coalesce(json_extract(verdict, '$.cost'), 0)
        + coalesce(json_extract(verdict, '$.user_cost'), 0)
        + coalesce(json_extract(verdict, '$.judge_cost'), 0)
    ),
    sum(
        json_extract(verdict, '$.ended') is not null
        and (
            json_extract(verdict, '$.cost') is null
            or json_extract(verdict, '$.user_cost') is null
            or json_extract(verdict, '$.judge_cost') is null
        )
    )
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
