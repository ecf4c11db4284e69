"""The writer: everything in its order, everybody told, whatever breaks."""

import asyncio
import sqlite3
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from greenroom.errors import GreenroomError, StoreFailed
from greenroom.ledger.redaction import Redactor
from greenroom.store import Store
from greenroom.store.database import Connection
from greenroom.store.redaction import Cleaner
from greenroom.store.runs import Key, Plan, Row, Run
from greenroom.store.writer import Writer


def row(case_id: str = "a", trial: int = 1, **options: Any) -> Row:
    given: dict[str, Any] = {
        "place": 0,
        "digest": "d",
        "status": "passed",
        "verdict": "{}",
        "ledger": b"",
        "judging": b"",
        **options,
    }
    return Row(key=Key(case_id, trial), **given)


class Told:
    """Who was told what, in the order of telling."""

    def __init__(self) -> None:
        self.all: list[tuple[str, GreenroomError | None]] = []

    def of(self, name: str) -> Any:
        return lambda failure: self.all.append((name, failure))


@asynccontextmanager
async def writing(store: Store) -> AsyncGenerator[tuple[Writer, Run]]:
    writer = Writer(store, Cleaner(Redactor))
    run = await writer.do(lambda connection: store.begin(Plan(name="s"), connection))
    yield writer, run
    await writer.close()


async def test_everything_is_written_and_told_in_its_order(tmp_path: Path) -> None:
    store, told = Store(tmp_path), Told()
    names = [f"case {i}" for i in range(300)]
    async with writing(store) as (writer, run):
        for name in names:
            writer.add(run, lambda name=name: row(name), told.of(name))
        counted = await writer.do(lambda c: c.execute("select count(*) from trials").fetchone()[0])
        assert counted == 300
        assert told.all == [(name, None) for name in names]
    assert set(store.keys(run.id)) == {Key(name, 1) for name in names}


async def test_an_error_of_one_who_is_told_is_raised_and_the_others_are_told(
    tmp_path: Path,
) -> None:
    store, told = Store(tmp_path), Told()

    def fail(failure: GreenroomError | None) -> None:
        raise AttributeError("no such thing")

    async with writing(store) as (writer, run):
        for name, tell in (("a", told.of("a")), ("b", fail), ("c", told.of("c"))):
            writer.add(run, lambda name=name: row(name), tell)
        with pytest.raises(AttributeError, match="no such thing"):
            await writer.do(lambda _: None)
        assert told.all == [("a", None), ("c", None)]
        assert await writer.do(lambda _: 5) == 5
    assert len(store.keys(run.id)) == 3


async def test_who_is_told_finds_the_trial_on_disk(tmp_path: Path) -> None:
    store, seen = Store(tmp_path), asyncio.Event()
    found: list[Key] = []
    async with writing(store) as (writer, run):

        def tell(failure: GreenroomError | None) -> None:
            found.extend(store.keys(run.id))
            seen.set()

        writer.add(run, row, tell)
        await seen.wait()
    assert found == [Key("a", 1)]


async def test_closing_waits_for_what_was_given(tmp_path: Path) -> None:
    store, told = Store(tmp_path), Told()
    writer = Writer(store, Cleaner(Redactor))
    run = await writer.do(lambda connection: store.begin(Plan(), connection))
    for trial in range(1, 51):
        writer.add(run, lambda trial=trial: row("a", trial), told.of(str(trial)))
    await writer.close()
    assert len(told.all) == len(store.keys(run.id)) == 50


async def test_a_trial_written_twice_is_kept_once(tmp_path: Path) -> None:
    store, told = Store(tmp_path), Told()
    async with writing(store) as (writer, run):
        writer.add(run, lambda: row(digest="old"), told.of("old"))
        writer.add(run, lambda: row(digest="new"), told.of("new"))
    assert store.keys(run.id) == {Key("a", 1): "new"}


@pytest.mark.parametrize(
    "problem", [TypeError("no JSON"), sqlite3.OperationalError("broken"), StoreFailed("ours")]
)
async def test_a_row_that_cannot_be_made_is_told_and_the_writer_goes_on(
    tmp_path: Path, problem: Exception
) -> None:
    store, told = Store(tmp_path), Told()

    def explode() -> Row:
        raise problem

    async with writing(store) as (writer, run):
        writer.add(run, explode, told.of("bad"))
        await writer.do(lambda _: None)
        [(name, failure)] = told.all
        assert name == "bad"
        assert isinstance(failure, StoreFailed)
        assert str(problem) in str(failure)
        writer.add(run, row, told.of("good"))
        await writer.do(lambda _: None)
        assert told.all[-1] == ("good", None)
    assert set(store.keys(run.id)) == {Key("a", 1)}


async def test_a_row_that_the_database_refuses_takes_its_group_along_whole(tmp_path: Path) -> None:
    store, told = Store(tmp_path), Told()
    odd: Any = object()
    async with writing(store) as (writer, run):
        writer.add(run, lambda: row("good"), told.of("good"))
        writer.add(run, lambda: row("bad", verdict=odd), told.of("bad"))
        await writer.do(lambda _: None)
        kept = {key.case_id for key in store.keys(run.id)}
        safe = {name for name, failure in told.all if failure is None}
        # Whether the two met in one group is a matter of time; that nobody is lied to is not.
        assert kept == safe
        assert dict(told.all)["bad"] is not None
        writer.add(run, lambda: row("next"), told.of("next"))
        await writer.do(lambda _: None)
        assert told.all[-1] == ("next", None)


@pytest.mark.parametrize("problem", [RuntimeError("odd"), StoreFailed("ours")])
async def test_an_errand_that_fails_says_so_to_whoever_waits(
    tmp_path: Path, problem: Exception
) -> None:
    def explode(_: Connection) -> None:
        raise problem

    async with writing(Store(tmp_path)) as (writer, _):
        with pytest.raises(StoreFailed, match=str(problem)):
            await writer.do(explode)
        assert await writer.do(lambda _: 5) == 5


async def test_who_stops_waiting_does_not_take_the_work_along(tmp_path: Path) -> None:
    store = Store(tmp_path)
    writer = Writer(store, Cleaner(Redactor))
    begun = asyncio.ensure_future(writer.do(lambda c: store.begin(Plan(name="s"), c)))
    await asyncio.sleep(0)
    begun.cancel()
    await writer.close()
    assert [run.plan.name for run in store.runs()] == ["s"]


def test_a_loop_that_is_closed_takes_nothing_along(tmp_path: Path) -> None:
    store, told, is_closed = Store(tmp_path), Told(), threading.Event()

    async def given() -> tuple[Writer, Run]:
        writer = Writer(store, Cleaner(Redactor))
        run = await writer.do(lambda connection: store.begin(Plan(), connection))
        waiting = asyncio.ensure_future(writer.do(lambda _: is_closed.wait()))
        await asyncio.sleep(0)
        assert not waiting.done()
        writer.add(run, lambda: row("before"), told.of("before"))
        return writer, run

    writer, run = asyncio.run(given())
    is_closed.set()
    writer.add(run, lambda: row("after"), told.of("after"))
    writer.stop()
    for thread in threading.enumerate():
        if thread.name == "greenroom-store":
            thread.join()
    assert set(store.keys(run.id)) == {Key("before", 1), Key("after", 1)}
    assert told.all == []


async def test_a_store_that_cannot_be_opened_is_told_to_everybody(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    told = Told()
    writer = Writer(Store(tmp_path / "file"), Cleaner(Redactor))
    writer.add(Run(id="r", plan=Plan(), status="running", begun=0.0), row, told.of("a"))
    with pytest.raises(StoreFailed, match="cannot keep runs in"):
        await writer.do(lambda _: None)
    await writer.close()
    [(_, failure)] = told.all
    assert isinstance(failure, StoreFailed)
