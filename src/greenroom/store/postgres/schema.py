"""The tables of a store on a server: those of SQLite, and those that only many machines need.

An authorised user creates and migrates them with `greenroom store init` and `greenroom store migrate`;
a run never does.
"""

import re
from collections.abc import Callable
from os import urandom

from psycopg import errors, sql

from greenroom.store import schema
from greenroom.store.postgres.connection import PostgresConnection

VERSION = schema.VERSION
WRITER = "greenroom_writer"
READER = "greenroom_reader"
_TYPES = {
    "integer": "bigint",
    "real": "double precision",
    "blob": "bytea",
    "text": 'text collate "C"',
}
_TYPE = re.compile(rf"\b({'|'.join(_TYPES)})\b")
_OWN = """
create table format (
    version integer not null,
    blobs text not null
);
create table events (
    run_id text not null,
    case_id text not null,
    trial integer not null,
    attempt integer not null,
    n integer not null,
    redacted integer not null,
    lines blob not null,
    primary key (run_id, case_id, trial, attempt, n)
);
create table blobs (
    digest text primary key,
    data blob
);
create table mentions (
    owner text not null,
    digest text not null,
    primary key (owner, digest)
);
create index mentioned on mentions (digest);
create index named on runs (evalset_id, begun);
"""

Step = Callable[[PostgresConnection], None]
STEPS: dict[int, tuple[int, Step]] = {}
"""The migration from each earlier format, and the format it leads to."""


def create(connection: PostgresConnection, name: str, blobs: str) -> None:
    """Create the schema and its tables, inside the open transaction."""
    connection.raw.execute(sql.SQL("create schema if not exists {}").format(sql.Identifier(name)))
    connection.raw.execute(sql.SQL("set local search_path to {}").format(sql.Identifier(name)))
    for statement in (schema.TABLES + schema.CONVERSATIONS + schema.SHARDS + _OWN).split(";"):
        if statement.strip():
            connection.execute(_in_postgres(statement))
    connection.execute("insert into store values (?, 0)", (urandom(8).hex(),))
    connection.execute("insert into format values (?, ?)", (VERSION, blobs))


def _in_postgres(statement: str) -> str:
    return _TYPE.sub(lambda match: _TYPES[match[1]], statement)


def upgrade(connection: PostgresConnection, version: int) -> None:
    """Migrate the tables of this format to the current one, inside the open transaction."""
    while version < VERSION:
        version, step = STEPS[version]
        step(connection)
    connection.execute("update format set version = ?", (VERSION,))


def grant(connection: PostgresConnection, name: str) -> str:
    """Grant access to two roles, one for running and one for reading; return what an administrator must do if we may not.

    Events of trials in progress are only for the role that runs: they may never be stored.
    """
    try:
        for role in (WRITER, READER):
            if not connection.execute(
                "select 1 from pg_roles where rolname = ?", (role,)
            ).fetchone():
                connection.raw.execute(
                    sql.SQL("create role {} nologin").format(sql.Identifier(role))
                )
    except (errors.InsufficientPrivilege, errors.DuplicateObject, errors.UniqueViolation) as error:
        if not isinstance(error, errors.InsufficientPrivilege):
            return grant(connection, name)  # another process was faster
        return (
            f"the roles {WRITER} and {READER} are missing, and this user may not create them. Ask an "
            f"administrator to run: create role {WRITER}; create role {READER}; then run "
            f"`greenroom store migrate`."
        )
    known = sql.Identifier(name)
    for role in map(sql.Identifier, (WRITER, READER)):
        connection.raw.execute(sql.SQL("grant usage on schema {} to {}").format(known, role))
        connection.raw.execute(
            sql.SQL("grant select on all tables in schema {} to {}").format(known, role)
        )
    connection.raw.execute(
        sql.SQL("revoke select on {}.events from {}").format(known, sql.Identifier(READER))
    )
    connection.raw.execute(
        sql.SQL("grant insert, update, delete on all tables in schema {} to {}").format(
            known, sql.Identifier(WRITER)
        )
    )
    connection.raw.execute(
        sql.SQL("revoke insert, update, delete on {}.format from {}").format(
            known, sql.Identifier(WRITER)
        )
    )
    return ""
