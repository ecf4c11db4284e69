"""Stores of an earlier format: read as they are, brought up to date by whoever writes, whole or not at all."""

import asyncio
import json
import signal
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from shutil import copytree, which
from typing import Any

import pytest

import warm_python
from greenroom.errors import StoreFailed
from greenroom.ledger import Ledger
from greenroom.store import Store
from greenroom.store.conversations import Conversations
from greenroom.store.database import transaction
from greenroom.store.runs import Key, Plan
from greenroom.store.schema import VERSION
from greenroom.store.sqlite import SqliteDatabase
from store.asked import Asked
from store.golden.shop import found, mended, play, set_of, shortened, written
from store.recount import recounted
from store.timeless import timeless
from warm_python import WarmPython

GOLDEN = Path(__file__).with_name("golden")
FOUND = json.loads((GOLDEN / "format-1.json").read_text())
TABLES = ("runs", "trials")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return Path(copytree(GOLDEN / "format-1", tmp_path / "store"))


def version(place: Path) -> int:
    connection = sqlite3.connect(place / "runs.db")
    [[found]] = connection.execute("pragma user_version").fetchall()
    connection.close()
    return found


def written_to(place: Path) -> Store:
    """The store after a process has opened it to write."""
    store = Store(place)
    store.database.open().close()
    return store


async def test_reading_leaves_an_earlier_format_as_it_is(place: Path) -> None:
    before = (place / "runs.db").read_bytes()
    assert written(await found(place)) == FOUND
    assert (place / "runs.db").read_bytes() == before


async def test_a_store_that_was_brought_up_to_date_says_the_same(place: Path) -> None:
    written_to(place)
    assert version(place) == VERSION
    assert written(await found(place)) == FOUND


def test_a_store_on_a_read_only_disk_is_read(place: Path, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "tmpfs", str(disk)]
    if which("mount") is None or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("only root may mount a disk")
    try:
        copytree(place, disk / "store")
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        store = Store(disk / "store")
        reports = {run.id: shortened(timeless(store.report(run.id))) for run in store.runs()}
        with pytest.raises(sqlite3.OperationalError, match=r"unable to open|readonly"):
            store.database.open()
    finally:
        subprocess.run(["umount", str(disk)], check=True)
    assert written(reports) == FOUND["reports"]


def test_what_a_run_counts_and_costs_is_what_its_trials_say(place: Path) -> None:
    before = [(run.id, dict(run.counts), run.again, run.cost) for run in Store(place).runs()]
    store = written_to(place)
    assert [(run.id, dict(run.counts), run.again, run.cost) for run in store.runs()] == before
    assert recounted(store) == {}
    assert any(cost is None for *_, cost in before)
    assert any(again for _, _, again, _ in before)


def test_positions_begin_behind_those_of_every_row(place: Path) -> None:
    store = written_to(place)
    changes = store.changes(limit=10_000)
    positions = [change.position for change in changes]
    assert positions == sorted(set(positions))
    assert store.latest_position()[1] == positions[-1]
    with store.database.connected(to_write=True) as connection:
        run = store.begin(Plan(name="new"), connection)
    assert [change.run_id for change in store.changes(positions[-1])] == [run.id]


async def test_a_run_whose_process_was_killed_is_resumed(place: Path) -> None:
    run_id = FOUND["runs"][0][0]
    with sqlite3.connect(place / "runs.db") as connection:
        connection.execute("update runs set status = 'running' where id = ?", (run_id,))
    connection.close()
    model = Asked(mended)
    report = await play(place, set_of("long", name="under way"), model, resume=run_id)
    assert (report.id, len(report), version(place)) == (run_id, 6, VERSION)
    assert Store(place).run(run_id).attempt == 2


def test_the_format_stays_while_a_run_is_under_way_in_it(place: Path) -> None:
    run_id = FOUND["runs"][0][0]
    with sqlite3.connect(place / "runs.db") as connection:
        connection.execute("update runs set status = 'running' where id = ?", (run_id,))
    connection.close()
    journal = Store(place).journal(run_id)
    with pytest.raises(StoreFailed, match=f"is using it for run '{run_id}'. Wait until that run"):
        Store(place).database.open()
    assert (version(place), Store(place).run(run_id).status) == (1, "running")
    journal.close(remove=False)
    assert version(written_to(place).place) == VERSION


def test_rows_that_cannot_be_read_keep_no_store_from_being_brought_up_to_date(place: Path) -> None:
    with sqlite3.connect(place / "runs.db") as connection:
        connection.execute("update trials set verdict = substr(verdict, 1, 40) where trial = 2")
        connection.execute("update runs set plan = 'torn', notes = '[' where name = 'golden'")
        connection.execute("update trials set ledger = x'5a00ff', judging = 'torn' where trial = 1")
    connection.close()
    before = [[run.id, dict(run.counts)] for run in Store(place).runs()]
    # A plan that cannot be read does not say which trials were run again: it planned none of them.
    assert before == [[run_id, counts] for run_id, _, counts, *_ in FOUND["runs"]]
    store = written_to(place)
    assert [[run.id, dict(run.counts)] for run in store.runs()] == before
    with pytest.raises(StoreFailed, match="the verdict in the store cannot be read"):
        list(store.results(FOUND["runs"][-1][0]))


KILLED = """
import os, signal, sqlite3, sys
from pathlib import Path
from greenroom.store.sqlite import SqliteDatabase

connect, steps = sqlite3.connect, int(sys.argv[2])

def counted():
    global steps
    steps -= 1
    if not steps:
        os.kill(os.getpid(), signal.SIGKILL)

def opened(*args, **options):
    connection = connect(*args, **options)
    connection.set_progress_handler(counted, 100)
    return connection

sqlite3.connect = opened
SqliteDatabase(Path(sys.argv[1]).parent).open().close()
"""


def test_a_process_that_is_killed_while_it_changes_the_format_loses_nothing(place: Path) -> None:
    before = dump(place, *TABLES)
    steps, killed = 1, 0
    while True:
        command = [sys.executable, "-c", KILLED, str(place / "runs.db"), str(steps)]
        ended = warm_python.run(command, check=False, capture_output=True, text=True)
        if ended.returncode == 0:
            break
        assert ended.returncode == -signal.SIGKILL, ended.stderr
        killed += 1
        steps = int(steps * 1.6) + 1
        assert version(place) == 1
        assert dump(place, *TABLES) == before
    assert killed >= 8, "it was hardly under way when it was killed"
    assert version(place) == VERSION
    assert written(asyncio.run(found(place))) == FOUND


def dump(place: Path, *tables: str) -> list[Any]:
    connection = sqlite3.connect(place / "runs.db")
    rows = [connection.execute(f"select * from {table}").fetchall() for table in tables]
    connection.close()
    return rows


def test_two_processes_that_open_it_at_once_bring_it_up_to_date_once(place: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from greenroom.store.sqlite import SqliteDatabase; "
        "sys.stdin.read(); SqliteDatabase(Path(sys.argv[1]).parent).open().close()"
    )
    command = [sys.executable, "-c", code, str(place / "runs.db")]
    processes = [
        WarmPython(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(4)
    ]
    with ThreadPoolExecutor(4) as pool:
        complaints = [told for _, told in pool.map(subprocess.Popen.communicate, processes)]
    assert complaints == [b""] * 4
    assert (version(place), recounted(Store(place))) == (VERSION, {})
    assert written(asyncio.run(found(place))) == FOUND


def test_a_reader_that_began_before_goes_on_with_what_it_had(place: Path) -> None:
    run_id = FOUND["runs"][-1][0]
    results = Store(place).results(run_id)
    first = next(results)
    written_to(place)
    rest = list(results)
    assert first[0] == Key("passes", 1)
    assert len(rest) == 13


def test_a_step_adds_a_table_and_touches_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How scores of imported traces will come."""
    database = SqliteDatabase(tmp_path)
    database.open().close()
    with database.connected(to_write=True) as connection:
        Store(tmp_path).begin(Plan(name="kept"), connection)
    table = "create table scores (id text primary key, position integer not null unique)"
    for room in ("schema", "sqlite"):
        monkeypatch.setattr(f"greenroom.store.{room}.VERSION", VERSION + 1)
    monkeypatch.setitem(
        sys.modules["greenroom.store.schema"].STEPS,
        VERSION,
        (VERSION + 1, lambda connection: connection.execute(table)),
    )
    with database.connected(to_write=True) as connection, transaction(connection):
        connection.execute("insert into scores values ('a', 1)")
    assert version(tmp_path) == VERSION + 1
    assert [run.plan.name for run in Store(tmp_path).runs()] == ["kept"]


def test_a_store_without_conversations_is_read_as_it_is_and_gets_them_when_one_begins(
    tmp_path: Path,
) -> None:
    store = Store(tmp_path)
    with store.database.connected(to_write=True) as connection:
        store.begin(Plan(name="kept"), connection)
        for table in ("conversations", "conversation_events", "state", "shards"):
            connection.execute(f"drop table {table}")
        connection.execute("drop index latest")
        connection.execute("pragma user_version = 2")
    kept = Conversations(store.database)
    assert (kept.list(), kept.kept_state({"user": "u7"})) == ([], {"user": {}})
    assert [run.plan.name for run in store.runs()] == ["kept"]
    assert version(tmp_path) == 2
    kept.open(Ledger(), {"app": "desk", "user": "u7"}).close()
    assert version(tmp_path) == VERSION
    assert [run.plan.name for run in store.runs()] == ["kept"]


async def test_a_store_without_shards_is_read_as_it_is_and_gets_them_with_the_next_run(
    tmp_path: Path,
) -> None:
    store = Store(tmp_path)
    kept = Conversations(store.database)
    kept.open(Ledger(), {"app": "desk", "user": "u7"}).close()
    with store.database.connected(to_write=True) as connection:
        store.begin(Plan(name="kept"), connection)
        connection.execute("insert into state values ('user', 'u7', 'name', '5', 9)")
        connection.execute("drop table shards")
        connection.execute("drop index latest")
        connection.execute("pragma user_version = 3")
    assert [run.plan.name for run in store.runs()] == ["kept"]
    assert kept.kept_state({"user": "u7"}) == {"user": {"name": 5}}
    assert version(tmp_path) == 3
    store.database.open().close()
    assert version(tmp_path) == VERSION
    assert kept.kept_state({"user": "u7"}) == {"user": {"name": 5}}
    assert [run.plan.name for run in store.runs()] == ["kept"]


def test_an_unfinished_change_of_format_is_no_open_transaction(place: Path) -> None:
    with sqlite3.connect(place / "runs.db") as connection:
        connection.execute("create table spending (id)")  # in the way of the table to come
    connection.close()
    with pytest.raises(sqlite3.OperationalError, match="spending already exists"):
        Store(place).database.open()
    assert version(place) == 1
    assert len(dump(place, "trials")[0]) == 48
