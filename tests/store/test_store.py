"""The store: what is put into it comes out of it, and what cannot be used is named."""

import asyncio
import os
import sqlite3
import stat
from collections.abc import AsyncGenerator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from greenroom import Case, EvalSet, evaluate, step
from greenroom.errors import NotFound, StoreFailed, StoreRefused
from greenroom.metrics import contains
from greenroom.store import Run, Store, default_store
from greenroom.store.database import transaction
from greenroom.store.results import StoredResults
from greenroom.store.runs import Key, Plan, Row
from greenroom.store.schema import VERSION
from greenroom.store.sqlite import SqliteDatabase
from greenroom.store.store import as_store
from store.timeless import timeless

ECHO = step(lambda ctx: f"You said {ctx.input}", name="echo")
OK = contains("You said", name="ok")
INSERT = "insert into deleted values ('a', 1)"


def row(case_id: str, trial: int = 1, place: int = 0, digest: str = "d") -> Row:
    return Row(
        key=Key(case_id, trial),
        place=place,
        digest=digest,
        status="passed",
        verdict="{}",
        ledger=b"",
        judging=b"",
    )


def begun(store: Store, name: str = "s", rows: Sequence[Row] = ()) -> Run:
    with store.database.connected() as connection:
        run = store.begin(Plan(name=name, evalset_id=name, cases=3), connection)
        store.add(run, rows, connection)
        return run


async def played(store: Store, *ids: str, **options: Any) -> Any:
    evalset = EvalSet("s", [Case(name, f"Hello {name}") for name in ids])
    return await evaluate(ECHO, evalset, metrics=[OK], store=store, **options)


# What is kept


async def test_a_run_is_remembered_as_its_report_told_it(tmp_path: Path) -> None:
    store = Store(tmp_path)
    report = await played(store, "b", "a", trials=2)
    [run] = store.runs()
    assert (run.id, run.status, run.done, run.total) == (report.id, "finished", 4, 4)
    assert run.counts == {"passed": 4}
    assert timeless(store.report(run.id)) == timeless(report)
    ledgers = [result.ledger for result in store.report(run.id)]
    assert ledgers == [result.ledger for result in report]
    assert not (tmp_path / "journals" / run.id).exists()


async def test_what_the_metrics_asked_is_kept_apart(tmp_path: Path) -> None:
    store = Store(tmp_path)
    report = await played(store, "a")
    assert len(store.ledger(report.id, Key("a", 1), "judging")) == 0
    assert len(store.ledger(report.id, Key("a", 1))) > 0


async def test_cases_that_are_asked_for_one_by_one_share_what_is_read_ahead(tmp_path: Path) -> None:
    class Counting(Store):
        reads = 0

        def packed_ledgers(self, run_id: str, key: Key) -> dict[Key, bytes]:
            self.reads += 1
            return super().packed_ledgers(run_id, key)

    cases = EvalSet("s", [Case(f"c{n}", "Hi") for n in range(20)])
    await evaluate(step(lambda: "Hi."), cases, metrics=[contains("Hi")], store=tmp_path)
    store = Counting(tmp_path)
    # As the report of a run has them that is too large to be read at once.
    results = StoredResults(store, store.runs()[0].id, trials=1, latest=1_000, count=20)
    found = [result for case in cases for result in results.of_case(case.id)]
    assert [len(result.ledger) > 0 for result in found] == [True] * 20
    assert store.reads < 3


def test_a_ledger_that_is_not_there_is_named(tmp_path: Path) -> None:
    run = begun(Store(tmp_path))
    with pytest.raises(NotFound, match=r"no longer has trial 2 of case 'a'"):
        Store(tmp_path).ledger(run.id, Key("a", 2))


def test_runs_are_told_the_latest_first(tmp_path: Path) -> None:
    store = Store(tmp_path)
    ids = [begun(store, str(number)).id for number in range(5)]
    assert [run.id for run in store.runs()] == ids[::-1]


async def test_runs_are_listed_without_a_look_at_their_trials(tmp_path: Path) -> None:
    place = Store(tmp_path / "runs")
    report = await played(place, "a", "b")
    listed = place.runs()
    with place.database.connected(to_write=True) as connection:
        connection.execute("alter table trials rename to elsewhere")
    assert (place.runs(), place.runs(unfinished=True)) == (listed, [])
    assert place.run(report.id) == listed[0]


def test_ids_are_not_given_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = iter(["one", "one", "one", "two"])
    monkeypatch.setattr("greenroom.store.store._new_id", lambda: next(drawn))
    store = Store(tmp_path)
    assert [begun(store).id, begun(store).id] == ["one", "two"]


def test_of_many_runs_that_an_id_fits_only_the_latest_are_named(tmp_path: Path) -> None:
    store = Store(tmp_path)
    ids = sorted(begun(store).id for _ in range(15))
    with pytest.raises(NotFound, match="and 5 more") as told:
        store.run(ids[0][:4])
    assert sum(one in str(told.value) for one in ids) == 10


def test_the_beginning_of_an_id_is_enough_if_it_is_the_only_one(tmp_path: Path) -> None:
    store = Store(tmp_path)
    first, second = begun(store), begun(store)
    assert store.run(first.id).id == first.id
    with pytest.raises(NotFound, match="the ids of several runs begin with '2'"):
        store.run("2")
    store.delete(second.id)
    assert store.run(first.id[:-1]).id == first.id
    for nothing in ("", "nonsense", "%", "\ud83d", "\0"):
        with pytest.raises(NotFound, match="there is no run"):
            store.run(nothing)


def test_a_deleted_run_is_gone_with_its_trials_and_no_other(tmp_path: Path) -> None:
    store = Store(tmp_path)
    gone, stays = begun(store, rows=[row("a")]), begun(store, rows=[row("a")])
    store.journal(gone.id).close(remove=False)
    store.delete(gone.id)
    assert [run.id for run in store.runs()] == [stays.id]
    assert (store.keys(gone.id), list(store.keys(stays.id))) == ({}, [Key("a", 1)])
    assert not (tmp_path / "journals" / gone.id).exists()


def test_a_run_whose_process_is_gone_was_interrupted(tmp_path: Path) -> None:
    store = Store(tmp_path)
    run = begun(store)
    journal = store.journal(run.id)
    assert store.run(run.id).status == "running"
    with pytest.raises(StoreFailed, match=f"run '{run.id}' is in use by another process"):
        store.latest_open(run.plan)
    journal.close(remove=False)
    assert store.run(run.id).status == "interrupted"
    assert store.latest_open(run.plan).id == run.id


def test_to_look_at_a_store_that_is_not_there_makes_none(tmp_path: Path) -> None:
    assert Store(tmp_path / "nowhere").runs() == []
    assert list(tmp_path.iterdir()) == []


TEXTS = st.text(st.characters(exclude_categories=()), min_size=1, max_size=6)


# Each example opens a store, and a server has but a hundred connections.
@settings(max_examples=16)
@given(ids=st.lists(TEXTS, min_size=1, max_size=4, unique=True))
def test_ids_of_any_characters_are_told_apart(
    tmp_path_factory: pytest.TempPathFactory, ids: list[str]
) -> None:
    store = Store(tmp_path_factory.mktemp("store"))
    run = begun(store, ids[0], [row(name, digest=f"d{i}") for i, name in enumerate(ids)])
    wanted = {Key(name, 1): f"d{i}" for i, name in enumerate(ids)}
    assert store.keys(run.id) == wanted
    assert store.run(run.id).plan.name == ids[0]
    with store.database.connected() as connection:
        store.resume(run, run.plan, {Key(ids[0], 1): 0}, connection)
    assert store.keys(run.id) == wanted, "what has no place is set aside, not lost"
    assert store.run(run.id).done == 1


def test_a_run_that_goes_on_keeps_what_has_a_place_and_in_its_order(tmp_path: Path) -> None:
    store = Store(tmp_path)
    run = begun(store, rows=[row("a", place=0), row("b", place=1), row("c", place=2)])
    with store.database.connected() as connection:
        plan = Plan(name="new", evalset_id="s", cases=2)
        again = store.resume(run, plan, {Key("c", 1): 0, Key("a", 1): 1}, connection)
        order = connection.execute("select case_id from trials order by place").fetchall()
    assert order == [("b",), ("c",), ("a",)]
    assert store.run(run.id).done == 2
    assert (again.begun_before, again.plan, store.run(run.id).plan) == (True, plan, plan)


# What goes wrong


@pytest.mark.sqlite
async def test_a_store_of_smaller_pages_goes_on_as_it_was_made(tmp_path: Path) -> None:
    store = Store(tmp_path)
    begun(store, "before", [row("a")])
    [usual] = asked(store, "pragma page_size")
    assert usual > 4096
    asked(store, "pragma journal_mode = delete")
    asked(store, "pragma page_size = 4096", "vacuum")
    report = await played(store, "b")
    assert asked(store, "pragma page_size") == [4096]
    assert [run.plan.name for run in store.runs()] == ["s", "before"]
    assert timeless(store.report(report.id)) == timeless(report)


def asked(store: Store, *statements: str) -> list[Any]:
    """What the last of these statements answers, asked past the store."""
    connection = sqlite3.connect(store.place / "runs.db")
    found = [connection.execute(statement).fetchall() for statement in statements][-1]
    connection.close()
    return [value for [value] in found]


@pytest.mark.sqlite
def test_a_newer_format_is_refused(tmp_path: Path) -> None:
    begun(Store(tmp_path))
    with sqlite3.connect(tmp_path / "runs.db") as connection:
        connection.execute(f"pragma user_version = {VERSION + 1}")
    connection.close()
    with pytest.raises(
        StoreFailed, match=r"written by a newer Greenroom \(format 5; this one knows up to 4\)"
    ):
        Store(tmp_path).runs()


@pytest.mark.sqlite
async def test_a_newer_format_is_left_as_it_is(tmp_path: Path) -> None:
    begun(Store(tmp_path), rows=[row("a")])
    with sqlite3.connect(tmp_path / "runs.db") as connection:
        connection.execute(f"pragma user_version = {VERSION + 1}")
    connection.close()
    with pytest.raises(StoreFailed, match="newer Greenroom"):
        await played(Store(tmp_path), "a")
    with sqlite3.connect(tmp_path / "runs.db") as connection:
        assert connection.execute("select count(*) from runs").fetchone() == (1,)
    connection.close()


@pytest.mark.sqlite
@pytest.mark.parametrize("content", [b"nonsense " * 100, b"SQLite format 3\x00" + b"\x00" * 500])
def test_a_file_that_is_no_database_is_named_and_left_alone(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "runs.db").write_bytes(content)
    with pytest.raises(StoreFailed, match=r"runs\.db cannot be used: .*; check the file"):
        Store(tmp_path).runs()
    assert (tmp_path / "runs.db").read_bytes() == content


def test_a_transaction_that_breaks_leaves_nothing_behind(tmp_path: Path) -> None:
    database = SqliteDatabase(tmp_path / "x")
    with database.connected() as connection:
        with pytest.raises(sqlite3.IntegrityError), transaction(connection):
            connection.executemany(INSERT, [(), ()])  # the second one has the id of the first
        assert connection.execute("select count(*) from deleted").fetchone() == (0,)
        with transaction(connection):
            connection.execute(INSERT)
        assert connection.execute("select count(*) from deleted").fetchone() == (1,)


def test_a_commit_that_is_refused_leaves_no_transaction_open(tmp_path: Path) -> None:
    database = SqliteDatabase(tmp_path / "x")
    with database.connected() as connection:
        connection.execute("pragma foreign_keys = on")
        connection.execute(
            "create table parts (of text references runs(id) deferrable initially deferred)"
        )
        with pytest.raises(sqlite3.IntegrityError), transaction(connection):
            connection.execute("insert into parts values ('nobody')")
        assert not connection.in_transaction


# Who may read it


@pytest.mark.sqlite
def test_a_store_is_for_its_owner_only(tmp_path: Path) -> None:
    store = Store(tmp_path / "new")
    with store.database.connected() as connection:
        store.begin(Plan(), connection)
        modes = {
            path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "new").iterdir()
        }
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700
    assert modes.pop(".gitignore")
    assert modes == {"runs.db": 0o600, "runs.db-wal": 0o600, "runs.db-shm": 0o600}


@pytest.mark.sqlite
def test_a_store_in_an_open_folder_is_for_its_owner_only(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir(mode=0o755)
    umask = os.umask(0)
    try:
        begun(Store(tmp_path / "open"))
    finally:
        os.umask(umask)
    assert stat.S_IMODE((tmp_path / "open" / "runs.db").stat().st_mode) == 0o600


@pytest.mark.sqlite
def test_a_new_store_stays_out_of_repositories(tmp_path: Path) -> None:
    begun(Store(tmp_path / "new"))
    assert (tmp_path / "new" / ".gitignore").read_text() == "*\n"


@pytest.mark.sqlite
@pytest.mark.parametrize("number", [0, 1, VERSION, VERSION + 1])
def test_a_database_of_another_program_is_refused_and_not_written_to(
    tmp_path: Path, number: int
) -> None:
    with closing(sqlite3.connect(tmp_path / "runs.db")) as other:
        other.execute("create table customers (id)")
        other.execute(f"pragma user_version = {number}")
        other.commit()
    before = (tmp_path / "runs.db").read_bytes()
    store = Store(tmp_path)
    for use in (store.runs, store.database.open, store.database.upgrade, store.database.about):
        with pytest.raises(StoreRefused, match="is a database of another program"):
            use()
    assert (tmp_path / "runs.db").read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["runs.db"]


# Where it is


async def test_without_a_word_the_variable_says_where(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GREENROOM_STORE", str(tmp_path / "there"))
    report = await evaluate(ECHO, Case("a", "Hi"), metrics=[OK])
    assert [run.id for run in Store(tmp_path / "there").runs()] == [report.id]
    monkeypatch.setenv("GREENROOM_STORE", "off")
    assert default_store() is None


@pytest.mark.parametrize("written", ["OFF", " off ", "Off"])
def test_off_is_off_however_it_is_written(written: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GREENROOM_STORE", written)
    assert default_store() is None


@pytest.mark.sqlite
@pytest.mark.parametrize("door", ["variable", "file"])
def test_where_no_shell_has_read_it_a_tilde_is_home_too(
    door: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    if door == "variable":
        monkeypatch.setenv("GREENROOM_STORE", "~/kept")
    else:
        monkeypatch.delenv("GREENROOM_STORE")
        (tmp_path / "pyproject.toml").write_text('[tool.greenroom]\nstore = "~/kept"\n')
    found = default_store()
    assert found is not None
    assert Path(found.place) == tmp_path / "home" / "kept"


@pytest.mark.sqlite
def test_a_store_may_be_named_in_several_ways(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GREENROOM_STORE", str(tmp_path / "usual"))
    store = Store(tmp_path)
    assert as_store(store) is store
    places = [given and given.place for given in map(as_store, (tmp_path, str(tmp_path)))]
    assert places == [tmp_path, tmp_path]
    usual = [given and given.place for given in map(as_store, (None, True, ""))]
    assert usual == [tmp_path / "usual"] * 3
    assert [as_store(False), as_store("off")] == [None, None]


async def test_without_a_variable_it_is_in_the_folder_one_works_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GREENROOM_STORE")
    monkeypatch.chdir(tmp_path)
    report = await evaluate(ECHO, Case("a", "Hi"), metrics=[OK])
    assert [run.id for run in Store(tmp_path / ".greenroom").runs()] == [report.id]


@pytest.mark.sqlite
async def test_a_usual_place_that_cannot_be_written_is_a_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".greenroom").touch()
    monkeypatch.delenv("GREENROOM_STORE")
    monkeypatch.chdir(tmp_path)
    report = await evaluate(ECHO, Case("a", "Hi"), metrics=[OK])
    assert report.passed
    [note] = [note for note in report.notes if "the run is not recorded" in note]
    assert "cannot keep runs in" in note


@pytest.mark.sqlite
async def test_a_named_run_needs_even_the_usual_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".greenroom").touch()
    monkeypatch.delenv("GREENROOM_STORE")
    monkeypatch.chdir(tmp_path)
    asked: list[str] = []
    agent = step(lambda ctx: asked.append(ctx.input), name="s")
    with pytest.raises(StoreFailed):
        await evaluate(agent, Case("a", "Hi"), metrics=[OK], resume_or_new="nightly")
    assert asked == []


@asynccontextmanager
async def nightly_run(**options: Any) -> AsyncGenerator[None]:
    """A run called "nightly" that is in the middle of its only case, and passes after that."""
    begun, may_end = asyncio.Event(), asyncio.Event()

    async def wait(ctx: Any) -> str:
        begun.set()
        await may_end.wait()
        return "You said Hi"

    options["resume_or_new"] = "nightly"
    agent = step(wait, name="s")
    run = asyncio.create_task(evaluate(agent, Case("a", "Hi"), metrics=[OK], **options))
    await begun.wait()
    yield
    may_end.set()
    assert (await run).passed


@pytest.mark.sqlite
async def test_a_named_run_of_the_usual_place_is_not_run_twice_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GREENROOM_STORE")
    monkeypatch.chdir(tmp_path)
    async with nightly_run():
        with pytest.raises(StoreFailed, match="is in use by another process"):
            await evaluate(ECHO, Case("a", "Hi"), metrics=[OK], resume_or_new="nightly")


async def test_a_named_run_that_two_processes_begin_in_the_same_instant_is_one_run(
    tmp_path: Path,
) -> None:
    """Neither has found the other's run when it looked for one."""

    class Earlier(Store):
        def latest_called(self, name: str, plan: Plan) -> None:
            return None

    async with nightly_run(store=tmp_path):
        options: Any = {"store": Earlier(tmp_path), "resume_or_new": "nightly"}
        with pytest.raises(StoreFailed, match="is in use by another process"):
            await evaluate(ECHO, Case("a", "Hi"), metrics=[OK], **options)
    [run] = Store(tmp_path).runs()
    assert (run.status, run.done) == ("finished", 1)


@pytest.mark.sqlite
async def test_a_place_that_was_asked_for_must_do(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    asked: list[str] = []
    agent = step(lambda ctx: asked.append(ctx.input), name="s")
    with pytest.raises(StoreFailed, match="cannot keep runs in"):
        await evaluate(agent, Case("a", "Hi"), metrics=[OK], store=tmp_path / "file" / "there")
    assert asked == []


@pytest.mark.sqlite
async def test_a_place_that_a_variable_names_must_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("GREENROOM_STORE", str(tmp_path / "file" / "there"))
    with pytest.raises(StoreFailed, match="cannot keep runs in"):
        await evaluate(ECHO, Case("a", "Hi"), metrics=[OK])


async def test_nothing_is_written_if_nobody_wants_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GREENROOM_STORE")
    monkeypatch.chdir(tmp_path)
    await evaluate(ECHO, Case("a", "Hi"), metrics=[OK], store=False)
    assert os.listdir(tmp_path) == []  # noqa: PTH208 - a short look, in an async test


def test_many_may_make_one_store_at_the_same_moment(tmp_path: Path) -> None:
    for attempt in range(10):
        store = Store(tmp_path / str(attempt))
        with ThreadPoolExecutor(8) as pool:
            runs = list(pool.map(lambda n: begun(store, str(n)).id, range(8)))  # noqa: B023
        assert {run.id for run in store.runs()} == set(runs)
