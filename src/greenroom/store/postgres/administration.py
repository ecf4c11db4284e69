"""What `greenroom store` does on a server: creating, migrating and checking tables, with the rights to do so."""

from collections.abc import Generator
from contextlib import contextmanager
from math import inf
from typing import TYPE_CHECKING, Any

import psycopg

from greenroom.errors import BadInput, StoreFailed
from greenroom.store.postgres import schema
from greenroom.store.postgres.blobs import blob_place
from greenroom.store.postgres.connection import PostgresConnection
from greenroom.store.postgres.locks import check_session
from greenroom.store.postgres.schema import VERSION
from greenroom.store.runs import journal_names, plan_from

if TYPE_CHECKING:
    from greenroom.store.postgres.database import PostgresDatabase

_SIZE = (
    "select pg_size_pretty(sum(pg_total_relation_size(oid))) from pg_class where relkind = 'r' "
    "and relnamespace = current_schema()::regnamespace"
)


def upgrade(database: "PostgresDatabase", blobs: str) -> str:
    """Create the tables or migrate them to the current format; return what was done."""
    blob_place(blobs)  # refuses an invalid place
    try:
        connection = database.connect()
        connection.raw.silence = inf  # large tables take their time
        try:
            with _owning(database, connection):
                done = _changed(database, connection, blobs)
            return "; ".join(filter(None, [done, schema.grant(connection, database.schema)]))
        finally:
            connection.close()
    except psycopg.Error as error:
        raise database.named(error) from error


@contextmanager
def _owning(database: "PostgresDatabase", connection: PostgresConnection) -> Generator[None]:
    """A transaction that changes tables, one process at a time."""
    connection.raw.execute("begin")
    try:
        number = database.lock_number("journals", "")
        connection.execute("select pg_advisory_xact_lock(?)", (number,))
        yield
        connection.commit()
    except BaseException:
        if connection.in_transaction:
            connection.rollback()
        raise


def _changed(database: "PostgresDatabase", connection: PostgresConnection, blobs: str) -> str:
    address = database.address
    if not _asked(connection, f"select to_regclass('{database.schema}.format') is not null"):
        schema.create(connection, database.schema, blobs)
        return f"{address} now has the tables of format {VERSION}"
    version, place = connection.execute("select version, blobs from format").fetchone() or (0, "")
    if version > VERSION:
        raise StoreFailed(f"{address} was written by a newer Greenroom. Update greenroom.")
    if blobs and blobs != place:
        raise BadInput(f"{address} keeps its blobs in {place or 'its own tables'!r} already.")
    if version == VERSION:
        return f"{address} already has format {VERSION}"
    running = connection.execute("select id, plan from runs where status = 'running'").fetchall()
    for run_id, plan in running:
        if database.held_by(connection, "journals", journal_names(run_id, plan_from(plan).shards)):
            raise StoreFailed(f"{address} is in use for run {run_id!r}. Wait until that run ends.")
    schema.upgrade(connection, version)
    return f"{address} now has format {VERSION}; it had {version}"


def about(database: "PostgresDatabase", blobs: str) -> list[tuple[str, str]]:
    """The facts about a store; StoreFailed if no run could be recorded in it."""
    with database.connected() as connection, database.connected() as other:
        check_session(connection, other, database.address)
        user, rights = _asked(connection, "select current_user"), _rights(connection)
        return [
            ("engine", f"PostgreSQL {_asked(connection, 'show server_version')}"),
            ("format", str(VERSION)),
            ("user", f"{user}, who may {rights}"),
            ("durable", _durable(connection)),
            ("runs", str(_asked(connection, "select count(*) from runs"))),
            ("size", str(_asked(connection, _SIZE))),
            ("blobs", blobs),
        ]


def _asked(connection: PostgresConnection, query: str) -> Any:
    found = connection.execute(query).fetchone()
    return None if found is None else found[0]


def _rights(connection: PostgresConnection) -> str:
    if _asked(connection, "select has_table_privilege('trials', 'insert')"):
        return "record runs"
    may_see = _asked(connection, "select has_table_privilege('events', 'select')")
    return "look at runs" + (" and at trials in progress" if may_see else "")


def _durable(connection: PostgresConnection) -> str:
    if {_asked(connection, f"show {name}") for name in ("fsync", "full_page_writes")} == {"on"}:
        return "yes"
    return (
        "no: the server runs with fsync or full_page_writes off, and may lose what it has confirmed"
    )
