"""Writes rows into the tables, inside the open transaction."""

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache

from msgspec.structs import asdict

from greenroom.errors import StoreFailed
from greenroom.store.columns import to_column
from greenroom.store.database import Connection
from greenroom.store.ledgers import pack
from greenroom.store.runs import COUNTED, Plan, Row, Run, batches, notes_from, tally

_TOGETHER = 32
_TOGETHER_BYTES = 250_000
"""How many trials go into one statement: SQLite copies it whole, and other threads run after each."""
_TRIAL = (
    "position, run_id, case_id, trial, place, digest, covers_code, status, error_type, cost, "
    "ledger_size, verdict, ledger, judging"
)
_REPLACED = ", ".join(f"{name} = excluded.{name}" for name in _TRIAL.split(", "))


def next_position(connection: Connection, count: int = 1) -> int:
    """Reserve this many positions for the open transaction; return the first."""
    connection.execute("update store set position = position + ?", (count,))
    [last] = connection.execute("select position from store").fetchone()
    return last - count + 1


def planned(plan: Plan) -> tuple[object, ...]:
    """The columns of a run that describe its plan."""
    named = (to_column(plan.name), to_column(plan.evalset_id), to_column(plan.agent))
    facts = asdict(plan)
    for name in ("reference", "fence", "called", "shards", "by", "commit"):
        if not facts[name]:
            del facts[name]  # left out, as before the field existed
    return *named, plan.digest, plan.set_digest, json.dumps(facts)


def read_sums(run: Run, connection: Connection) -> dict[str, float]:
    """The run's sums so far; StoreFailed if the run no longer belongs to this process."""
    query = f"select attempt, {', '.join(COUNTED)} from runs where id = ?"
    found = connection.execute(query, (run.id,)).fetchone()
    if found is None:
        raise StoreFailed(f"run {run.id!r} was deleted from the store while it was running.")
    attempt, *sums = found
    if run.shard:
        query = "select attempt from shards where run_id = ? and shard = ?"
        [attempt] = connection.execute(query, (run.id, run.shard)).fetchone()
    if attempt != run.attempt:
        raise StoreFailed(f"run {run.id!r} was resumed by another process. Let that one finish it.")
    return dict(zip(COUNTED, sums, strict=True))


def put_sums(run_id: str, sums: Mapping[str, float], position: int, connection: Connection) -> None:
    """Write the sums of a run, as a change that readers can follow."""
    # Rounded, so that an amount that is added and later subtracted leaves no remainder.
    sums = {**sums, "cost": round(sums["cost"], 12)}
    connection.execute(
        f"update runs set position = ?, {', '.join(f'{name} = ?' for name in COUNTED)} where id = ?",
        (position, *(sums[name] for name in COUNTED), run_id),
    )


def put_trials(
    run: Run,
    rows: Collection[Row],
    position: int,
    connection: Connection,
    put_aside: Callable[[bytes], bytes],
) -> dict[str, float]:
    """Write trials, from this position on; return how much each sum of the run changes.

    `put_aside` returns what a row keeps of a ledger: all of it, or where it is.
    """
    change: dict[str, float] = dict.fromkeys(COUNTED, 0)
    for some in batches(rows, _TOGETHER_BYTES, _TOGETHER):
        keys = [value for row in some for value in (to_column(row.key.case_id), row.key.trial)]
        before = connection.execute(_lookup(len(some)), (*keys, run.id)).fetchall()
        connection.execute(_insertion(len(some)), _values(run.id, some, position, put_aside))
        position += len(some)
        now = [(row.status, row.place, row.key.trial, row.cost) for row in some]
        added, replaced = tally(run.plan, now), tally(run.plan, before)
        for name in COUNTED:
            change[name] += added[name] - replaced[name]
    return change


def put_spending(run_id: str, rows: Iterable[Row], connection: Connection) -> None:
    """Add the cost of these attempts at trials.

    One that is already there is not counted again; it may have cost more since, if only its metrics
    were repeated.
    """
    connection.executemany(
        "insert into spending values (?, ?, ?, ?, ?) on conflict (run_id, case_id, trial, began) "
        "do update set usd = excluded.usd where excluded.usd > spending.usd",
        [
            (run_id, to_column(row.key.case_id), row.key.trial, row.began, row.spent)
            for row in rows
            if row.spent
        ],
    )


@cache
def _lookup(count: int) -> str:
    # Joined in this order, each trial is looked up by its key; `in` would scan the whole run.
    return (
        f"with asked (case_id, trial) as (values {', '.join(['(?, ?)'] * count)}) "
        "select status, place, trials.trial, cost from asked cross join trials "
        "where run_id = ? and trials.case_id = asked.case_id and trials.trial = asked.trial"
    )


@cache
def _insertion(count: int) -> str:
    row = ", ".join("?" * len(_TRIAL.split(", ")))
    return (
        f"insert into trials ({_TRIAL}) values {', '.join([f'({row})'] * count)} "
        f"on conflict (run_id, case_id, trial) do update set {_REPLACED}"
    )


def _values(
    run_id: str, rows: Iterable[Row], position: int, put_aside: Callable[[bytes], bytes]
) -> list[object]:
    found: list[object] = []
    for number, row in enumerate(rows, position):
        found += (number, run_id, to_column(row.key.case_id), row.key.trial, row.place, row.digest)
        found += (int(row.covers_code), row.status, row.error_type, row.cost, len(row.ledger))
        found += (row.verdict, put_aside(pack(row.ledger)), put_aside(pack(row.judging)))
    return found


# Runs that several processes share: each has its own part of the cases, lock and attempt number


def take_shard(run_id: str, shard: str, connection: Connection) -> int:
    """Take over a part of a run from the process that had it; return the attempt number."""
    connection.execute(
        "insert into shards (run_id, shard, attempt, status) values (?, ?, 1, 'running') "
        "on conflict (run_id, shard) do update set attempt = shards.attempt + 1, status = 'running'",
        (run_id, shard),
    )
    connection.execute("update runs set status = 'running', ended = null where id = ?", (run_id,))
    query = "select attempt from shards where run_id = ? and shard = ?"
    [attempt] = connection.execute(query, (run_id, shard)).fetchone()
    return attempt


def close_shard(run: Run, status: str, notes: str, seconds: float, connection: Connection) -> bool:
    """Record how one part of a run ended; return whether all parts have finished."""
    connection.execute(
        "update shards set status = ?, notes = ?, seconds = ? where run_id = ? and shard = ?",
        (status, notes, seconds, run.id, run.shard),
    )
    query = "select count(*) from shards where run_id = ? and status = 'finished'"
    [finished] = connection.execute(query, (run.id,)).fetchone()
    return finished == run.plan.shards


def shards_together(run_id: str, connection: Connection) -> tuple[str, float]:
    """The notes of all parts of a run, each once, and the seconds of the longest."""
    query = "select notes, seconds from shards where run_id = ? order by shard"
    rows = connection.execute(query, (run_id,)).fetchall()
    notes = dict.fromkeys(note for written, _ in rows for note in notes_from(written))
    return json.dumps(list(notes)), max(seconds for _, seconds in rows)
