"""Runs that have a name, and runs that several processes share."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from greenroom import Agent, Case, EvalSet, evaluate
from greenroom.errors import BadInput, StoreFailed
from greenroom.metrics import contains
from greenroom.store import Store
from store.asked import Asked
from store.recount import recounted

OK = contains("Answer")


def cases(count: int = 7) -> EvalSet:
    return EvalSet("set", [Case(f"c{n}", f"Hello {n}") for n in range(count)])


async def run(
    place: Path, model: Any = None, evalset: EvalSet | None = None, **options: Any
) -> Any:
    agent = Agent("a", model=model or Asked(lambda request: f"Answer to {request.last}"))
    given: dict[str, Any] = {"metrics": [OK], "store": place, "resume_or_new": "nightly"}
    return await evaluate(agent, evalset or cases(), **{**given, **options})


# A run with a name


async def test_a_name_begins_a_run_and_resumes_it_until_it_is_finished(tmp_path: Path) -> None:
    first = Asked(lambda request: f"Answer to {request.last}", cut=3)
    await run(tmp_path, first, cancel=first.cancel, concurrency=1)
    [begun] = Store(tmp_path).runs()
    assert (begun.status, begun.plan.called) == ("interrupted", "nightly")
    second = Asked(lambda request: f"Answer to {request.last}")
    report = await run(tmp_path, second)
    assert (report.id, len(report), second.count) == (begun.id, 7, 5)
    assert (await run(tmp_path)).id != begun.id


async def test_another_name_and_another_set_are_other_runs(tmp_path: Path) -> None:
    first = Asked(lambda request: f"Answer to {request.last}", cut=1)
    await run(tmp_path, first, cancel=first.cancel)
    await run(tmp_path, resume_or_new="weekly")
    await run(tmp_path, evalset=EvalSet("other", [Case("x", "Hi")]))
    found = [(one.plan.called, one.plan.name, one.status) for one in Store(tmp_path).runs()]
    assert found == [
        ("nightly", "other", "finished"),
        ("weekly", "set", "finished"),
        ("nightly", "set", "interrupted"),
    ]


async def test_a_named_run_that_is_under_way_is_not_begun_twice(tmp_path: Path) -> None:
    store = Store(tmp_path)
    first = Asked(lambda request: f"Answer to {request.last}", cut=2)
    await run(tmp_path, first, cancel=first.cancel, concurrency=1)
    journal = store.journal(store.runs()[0].id)
    with pytest.raises(StoreFailed, match="is in use by another process"):
        await run(tmp_path)
    journal.close(remove=False)


# Shards


async def test_shards_make_one_run_and_each_reports_on_all_of_it(tmp_path: Path) -> None:
    models = [Asked(lambda request: f"Answer to {request.last}") for _ in range(3)]
    reports = await asyncio.gather(
        *(run(tmp_path, model, shard=f"{n}/3", trials=2) for n, model in enumerate(models, 1))
    )
    [one] = Store(tmp_path).runs()
    assert (one.status, one.done, one.plan.shards) == ("finished", 14, 3)
    assert {report.id for report in reports} == {one.id}
    assert [model.count for model in models] == [6, 4, 4]
    whole = max(reports, key=len)
    assert [result.case_id for result in whole] == [f"c{n}" for n in range(7) for _ in range(2)]
    assert recounted(Store(tmp_path)) == {}


async def test_a_run_is_finished_when_its_last_shard_is(tmp_path: Path) -> None:
    report = await run(tmp_path, shard="2/2")
    assert any("3 of 7 trials are done" in note for note in report.notes)
    assert Store(tmp_path).run(report.id).status == "interrupted"
    last = await run(tmp_path, shard="1/2")
    assert (last.id, len(last), last.passed) == (report.id, 7, True)
    assert Store(tmp_path).run(report.id).status == "finished"


async def test_a_shard_that_was_cut_goes_on_and_leaves_the_others_alone(tmp_path: Path) -> None:
    first = Asked(lambda request: f"Answer to {request.last}", cut=2)
    await run(tmp_path, first, shard="1/2", cancel=first.cancel, concurrency=1)
    await run(tmp_path, shard="2/2")
    again = Asked(lambda request: f"Answer to {request.last}")
    report = await run(tmp_path, again, shard="1/2")
    assert (again.count, len(report)) == (3, 7)
    [one] = Store(tmp_path).runs()
    assert one.status == "finished"


async def test_two_processes_cannot_have_the_same_shard(tmp_path: Path) -> None:
    await run(tmp_path, shard="1/2")
    store = Store(tmp_path)
    [one] = store.runs()
    journal = store.journal(one.id, "2/2")
    assert store.run(one.id).status == "running"
    with pytest.raises(StoreFailed, match="is in use by another process"):
        await run(tmp_path, shard="2/2")
    journal.close(remove=False)


async def test_a_stale_shard_writes_nothing_any_more(tmp_path: Path) -> None:
    await run(tmp_path, shard="1/2")
    store = Store(tmp_path)
    [one] = store.runs()
    with store.database.connected(to_write=True) as connection:
        mine = store.resume(_shard(one, "2/2"), one.plan, {}, connection)
        newer = store.resume(_shard(one, "2/2"), one.plan, {}, connection)
        assert newer.attempt == mine.attempt + 1
        with pytest.raises(StoreFailed, match="resumed by another process"):
            store.close(mine, "finished", [], 0.0, connection)
        store.close(newer, "finished", [], 0.0, connection)
    assert store.run(one.id).status == "finished"


def _shard(one: Any, shard: str) -> Any:
    from msgspec.structs import replace

    return replace(one, shard=shard)


async def test_a_shared_run_is_deleted_with_all_its_shards(tmp_path: Path) -> None:
    report = await run(tmp_path, shard="1/2")
    store = Store(tmp_path)
    journal = store.journal(report.id, "2/2")
    with pytest.raises(StoreFailed, match="is in use by"):
        store.delete(report.id)
    journal.close(remove=True)
    store.delete(report.id)
    with store.database.connected() as connection:
        assert connection.execute("select count(*) from shards").fetchone()[0] == 0
    assert store.runs() == []


@pytest.mark.parametrize(
    "options, says",
    [
        ({"shard": "1/2", "resume_or_new": None}, "needs a name"),
        ({"shard": "3/2"}, "which part of how many"),
        ({"shard": "1/2", "trials": "auto", "min_pass_rate": 0.5}, "found out by one process"),
        ({"resume": True}, "contradict each other"),
        ({"store": False}, "no store to resume from"),
    ],
)
async def test_what_cannot_be_shared_or_named_is_refused(
    tmp_path: Path, options: dict[str, Any], says: str
) -> None:
    with pytest.raises(BadInput, match=says):
        await run(tmp_path, **options)


async def test_all_shards_of_a_run_must_agree_on_how_many_there_are(tmp_path: Path) -> None:
    report = await run(tmp_path, shard="1/2")
    assert (await run(tmp_path, shard="1/3")).id != report.id
    with pytest.raises(BadInput, match=r"is shared by 2 shards; resume it with --shard N/2"):
        await run(tmp_path, resume_or_new=None, resume=report.id)


@pytest.mark.parametrize(
    "before, how", [({"shard": "1/2"}, "with 2 shards"), ({"shard": ""}, "without shards")]
)
async def test_a_name_that_begins_again_with_another_number_of_shards_is_noted(
    tmp_path: Path, before: dict[str, Any], how: str
) -> None:
    first = Asked(lambda request: f"Answer to {request.last}", cut=1)
    await run(tmp_path, first, cancel=first.cancel, **before)
    [begun] = Store(tmp_path).runs()
    reports = [await run(tmp_path, shard=f"{n}/3") for n in (1, 2, 3)]
    expected = f"run '{begun.id}' is also called 'nightly', was begun {how} and is not finished"
    for report in reports:
        assert sum(expected in note for note in report.notes) == 1
    assert sum(expected in note for note in Store(tmp_path).run(reports[0].id).notes) == 1


async def test_a_name_whose_last_run_is_finished_begins_again_without_a_note(
    tmp_path: Path,
) -> None:
    await run(tmp_path)
    reports = [await run(tmp_path, shard=f"{n}/2") for n in (1, 2)]
    assert not reports[1].notes


def renamed() -> EvalSet:
    return EvalSet("set", [Case(f"c{n}", f"Other {n}") for n in range(7)])


@pytest.mark.parametrize(
    "options",
    [{"evalset": cases(9)}, {"evalset": cases(4)}, {"evalset": renamed()}, {"trials": 3}],
    ids=["more", "fewer", "changed", "trials"],
)
async def test_a_shard_of_other_cases_is_refused(tmp_path: Path, options: dict[str, Any]) -> None:
    report = await run(tmp_path, shard="1/2")
    with pytest.raises(BadInput, match="has other cases or trials than these"):
        await run(tmp_path, shard="2/2", **options)
    [begun] = Store(tmp_path).runs()
    assert (begun.id, begun.status, begun.done) == (report.id, "interrupted", 4)
    assert len(await run(tmp_path, shard="2/2")) == 7


async def test_shards_may_have_their_cases_in_another_order(tmp_path: Path) -> None:
    await run(tmp_path, evalset=cases(6), shard="1/2")
    backwards = EvalSet("set", [*reversed(cases(6).cases)])
    report = await run(tmp_path, evalset=backwards, shard="2/2")
    assert sorted(result.case_id for result in report) == [f"c{n}" for n in range(6)]


# Who, and on which commit


async def test_a_run_knows_who_began_it_and_on_which_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git = tmp_path / ".git"
    (git / "refs/heads").mkdir(parents=True)
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    (git / "refs/heads/main").write_text("0123456789abcdef0123456789abcdef01234567\n")
    for name in ("GITHUB_SHA", "CI_COMMIT_SHA", "GITHUB_ACTOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GREENROOM_USER", "ana")
    monkeypatch.chdir(tmp_path)
    first = Asked(lambda request: f"Answer to {request.last}", cut=2)
    await run(tmp_path / "kept", first, cancel=first.cancel, concurrency=1)
    monkeypatch.setenv("GREENROOM_USER", "ben")
    (git / "refs/heads/main").unlink()
    (git / "packed-refs").write_text(
        "# pack\nffffffffffffffffffffffffffffffffffffffff refs/heads/main\n"
    )
    await run(tmp_path / "kept")
    await run(tmp_path / "kept")
    found = [(one.plan.by, one.plan.commit) for one in Store(tmp_path / "kept").runs()]
    assert found == [("ben", "ffffffffffff"), ("ana", "0123456789ab")]
