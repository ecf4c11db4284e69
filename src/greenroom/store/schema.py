"""The tables of a store, and the steps that bring an earlier format up to date.

The SQL is what SQLite and Postgres share: no JSON functions, `on conflict` for what is written twice. In
Postgres `integer` is `bigint`, `real` is `double precision` and `blob` is `bytea`. Only the step from
format 1, which SQLite alone has ever had, uses what SQLite alone can do.

Whatever readers can follow has a `position`. Each transaction that writes takes its positions from the one
row of `store`, and holds that row until it commits: a later commit has higher positions in every table,
so a reader who asks for all after position N misses nothing. A row that is written again takes a new one.

A new table or column is its own step in `STEPS` and a higher `VERSION`. Tables without a writer are
not made in advance; docs/decisions/0025-store-schema.md says which ones are expected.
"""

import sqlite3
from contextlib import closing
from functools import partial
from os import urandom

VERSION = 4

TABLES = """
create table store (
    id text not null,
    position integer not null
);
create table runs (
    id text primary key,
    position integer not null unique,
    name text not null,
    evalset_id text not null,
    agent text not null,
    agent_digest text not null,
    set_digest text not null,
    status text not null,
    attempt integer not null default 1,
    begun real not null,
    ended real,
    seconds real not null default 0,
    passed integer not null default 0,
    failed integer not null default 0,
    error integer not null default 0,
    terminated integer not null default 0,
    skipped integer not null default 0,
    again integer not null default 0,
    unpriced integer not null default 0,
    cost real not null default 0,
    plan text not null,
    notes text not null default '[]'
);
create table trials (
    position integer primary key,
    run_id text not null,
    case_id text not null,
    trial integer not null,
    place integer not null,
    digest text not null,
    covers_code integer not null,
    status text not null,
    error_type text,
    cost real,
    ledger_size integer not null,
    verdict text not null,
    ledger blob not null,
    judging blob not null,
    unique (run_id, case_id, trial)
);
create table spending (
    run_id text not null,
    case_id text not null,
    trial integer not null,
    began real not null,
    usd real not null,
    primary key (run_id, case_id, trial, began)
);
create table deleted (
    run_id text primary key,
    position integer not null unique
);
"""

CONVERSATIONS = """
create table conversations (
    id text primary key,
    position integer not null unique,
    app text not null,
    user_id text not null,
    agent_digest text not null,
    begun real not null,
    updated real not null
);
create table conversation_events (
    conversation_id text not null,
    seq integer not null,
    line blob not null,
    primary key (conversation_id, seq)
);
create table state (
    scope text not null,
    owner text not null,
    key text not null,
    value text not null,
    position integer not null,
    primary key (scope, owner, key)
);
"""
"""Since format 3: conversations of agents that act for real, and the state of users and apps."""

SHARDS = """
create table shards (
    run_id text not null,
    shard text not null,
    attempt integer not null,
    status text not null,
    seconds real not null default 0,
    notes text not null default '[]',
    primary key (run_id, shard)
);
create index latest on runs (begun desc, id desc);
"""
"""Since format 4: the processes that share one run, each with a part of the cases; and runs by their age."""

# What format 1 holds, in the shape of today's tables. {runs} and {trials} are the tables of format 1.
_FACTS_1 = """
select rowid as number, *,
    case when json_valid(verdict) then verdict else '{}' end as facts
from {trials}
"""
_PRICES_1 = [f"json_extract(facts, '$.{who}')" for who in ("cost", "user_cost", "judge_cost")]
_SUM_1 = " + ".join(f"coalesce({price}, 0.0)" for price in _PRICES_1)
_TRIALS_1 = f"""
select number as position, run_id, case_id, trial, position as place, digest,
    instr(ledger, cast(':unknown"' as blob)) = 0 as covers_code, status,
    case when json_extract(facts, '$.error') is not null
        then coalesce(json_extract(facts, '$.error.type'), '') end as error_type,
    case when json_extract(facts, '$.ended') is null
        or ({" and ".join(f"{price} is not null" for price in _PRICES_1)}) then {_SUM_1} end as cost,
    length(ledger) as ledger_size, verdict, ledger, judging
from ({_FACTS_1})
"""
_SPENDING_1 = f"""
select run_id, case_id, trial, 0.0 as began, {_SUM_1} as usd from ({_FACTS_1}) where {_SUM_1} > 0
union all
select id, '', 0, 0.0, spent from {{runs}} where spent > 0
"""
_OF_RUN_1 = "from trials where run_id = planned.id and place >= 0"
_IS_AGAIN_1 = "(confirm > 0 and trial > planned_trials)"
_COUNTS_1 = ", ".join(
    f"(select count(*) {_OF_RUN_1} and status = '{status}' and not {_IS_AGAIN_1}) as {status}"
    for status in ("passed", "failed", "error", "terminated", "skipped")
)
_RUNS_1 = f"""
select id, {{position}} as position, name,
    coalesce(json_extract(facts, '$.evalset_id'), '') as evalset_id,
    coalesce(json_extract(facts, '$.agent'), '') as agent,
    coalesce(json_extract(facts, '$.digest'), '') as agent_digest, '' as set_digest,
    status, 1 as attempt, begun, ended, seconds, {_COUNTS_1},
    (select count(*) {_OF_RUN_1} and {_IS_AGAIN_1}) as again,
    (select count(*) {_OF_RUN_1} and cost is null) as unpriced,
    (select coalesce(sum(cost), 0.0) {_OF_RUN_1}) as cost, plan, notes
from (
    select *, coalesce(json_extract(facts, '$.confirm'), 0) as confirm,
        coalesce(json_extract(facts, '$.trials'), 1) as planned_trials
    from (select *, case when json_valid(plan) then plan else '{{}}' end as facts from {{runs}})
) as planned
"""
_AFTER_TRIALS = (
    "(select coalesce(max(position), 0) from trials) + row_number() over (order by begun, id)"
)


def _format_1(query: str, prefix: str, suffix: str, position: str) -> str:
    for name in ("runs", "trials"):
        query = query.replace(f"{{{name}}}", f"{prefix}{name}{suffix}")
    return query.replace("{position}", position)


def read_earlier(connection: sqlite3.Connection, version: int) -> None:
    """Let this connection read an earlier format as if it had the current tables; the file is not changed."""
    connection.execute("pragma temp_store = memory")
    if version == 1:
        _read_format_1(connection)
    for since, name, columns in (
        (3, "conversations", "id, position, app, user_id, agent_digest, begun, updated"),
        (3, "conversation_events", "conversation_id, seq, line"),
        (3, "state", "scope, owner, key, value, position"),
        (4, "shards", "run_id, shard, attempt, status, seconds, notes"),
    ):
        if version >= since:
            continue
        nothing = ", ".join(f"'' as {column}" for column in columns.split(", "))
        connection.execute(f"create temp view if not exists {name} as select {nothing} where false")


def _read_format_1(connection: sqlite3.Connection) -> None:
    tables = {"trials": _TRIALS_1, "runs": _RUNS_1, "spending": _SPENDING_1}
    for name, query in tables.items():
        # Its changes cannot be followed: numbering the runs would cost more than the rest.
        connection.execute(
            f"create temp view if not exists {name} as {_format_1(query, 'main.', '', '0')}"
        )
    connection.execute("create temp view if not exists store as select '' as id, 0 as position")
    connection.execute(
        "create temp view if not exists deleted as select '' as run_id, 0 as position where false"
    )


def _add(tables: str, connection: sqlite3.Connection) -> None:
    for statement in tables.split(";"):
        connection.execute(statement)


def _create(connection: sqlite3.Connection) -> None:
    _add(TABLES, connection)
    connection.execute("insert into store values (?, 0)", (urandom(8).hex(),))


def _from_format_1(connection: sqlite3.Connection) -> None:
    for name in ("runs", "trials"):
        connection.execute(f"alter table {name} rename to {name}_1")
    _create(connection)
    # In this order: the counts of a run are those of its trials.
    for name, query in (("trials", _TRIALS_1), ("runs", _RUNS_1), ("spending", _SPENDING_1)):
        connection.execute(f"insert into {name} {_format_1(query, '', '_1', _AFTER_TRIALS)}")
    connection.execute(
        "update store set position = (select coalesce(max(position), 0) from "
        "(select position from trials union all select position from runs) as taken)"
    )
    for name in ("runs", "trials"):
        connection.execute(f"drop table {name}_1")


STEPS = {
    0: (2, _create),
    1: (2, _from_format_1),
    2: (3, partial(_add, CONVERSATIONS)),
    3: (4, partial(_add, SHARDS)),
}
"""The migration from each earlier format, and the format it leads to; 0 is an empty file."""


def names(connection: sqlite3.Connection) -> set[str]:
    """The names of all tables, indexes and triggers."""
    return {name for (name,) in connection.execute("select name from sqlite_master")}


def missing(connection: sqlite3.Connection) -> list[str]:
    """What a store of the current format should have, and this one lacks."""
    with closing(sqlite3.connect(":memory:")) as whole:
        upgrade(whole, 0)
        return sorted(names(whole) - names(connection))


def upgrade(connection: sqlite3.Connection, version: int) -> None:
    """Migrate a store of this format to the current one, inside the open transaction."""
    while version < VERSION:
        version, step = STEPS[version]
        step(connection)
    connection.execute(f"pragma user_version = {VERSION}")
