"""Runs that several processes share: each has its own part of the cases, lock and attempt number."""

import json

from greenroom.store.database import Connection
from greenroom.store.runs import Run, notes_from


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
