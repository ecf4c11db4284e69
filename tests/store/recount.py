"""What the runs of a store count, next to what a recount of their trials gives."""

from typing import Any

from greenroom.store import Store

_SUMS = """
select count(*) filter (where status = 'passed' and not confirms) as passed,
    count(*) filter (where status = 'failed' and not confirms) as failed,
    count(*) filter (where status = 'error' and not confirms) as error,
    count(*) filter (where status = 'terminated' and not confirms) as terminated,
    count(*) filter (where status = 'skipped' and not confirms) as skipped,
    count(*) filter (where confirms) as again,
    count(*) filter (where cost is null) as unpriced,
    coalesce(sum(cost), 0) as cost
from (select *, ? > 0 and trial > ? as confirms from trials where run_id = ? and place >= 0) as counted
"""


def recounted(store: Store) -> dict[str, Any]:
    """The runs whose counts are not those of their trials."""
    wrong: dict[str, Any] = {}
    with store.database.connected() as connection:
        for run in store.runs():
            given = run.plan.confirm, run.plan.trials, run.id
            expected = connection.execute(_SUMS, given).fetchone()
            query = (
                "select passed, failed, error, terminated, skipped, again, unpriced, "
                "cost from runs where id = ?"
            )
            kept = connection.execute(query, (run.id,)).fetchone()
            if _rounded(kept) != _rounded(expected):
                wrong[run.id] = kept, expected
    return wrong


def _rounded(sums: Any) -> list[float]:
    return [round(value, 9) for value in sums]
