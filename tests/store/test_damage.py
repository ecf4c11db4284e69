"""Whatever happens to a store under way or in between: no real tool acts twice, and nothing is judged
that is not on record."""

import asyncio
import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from greenroom import Agent, Case, EvalSet, Lines, Report, call, evaluate, tool
from greenroom.errors import BadInput, StoreFailed
from greenroom.metrics import contains
from greenroom.models import ModelRequest
from greenroom.store import Store
from greenroom.store.slots import SLOT
from store.asked import Asked
from store.errands import left_files
from store.test_disks import small_disk

__all__ = ["small_disk"]

PAID: list[int] = []
OK = contains("Paid", name="ok")


@tool
def pay(amount: int) -> str:
    """Pay for real."""
    PAID.append(amount)
    return "done"


def answer(request: ModelRequest) -> Any:
    return call("pay", amount=request.n) if request.n < 2 else "Paid."


def payer(model: Asked) -> Agent:
    return Agent("payer", model=model, tools=[pay])


def payments(count: int = 1, **options: Any) -> EvalSet:
    given: dict[str, Any] = {"allow_tools": [pay], "metrics": [OK], **options}
    return EvalSet("payments", [Case(f"case {i}", "Pay.", **given) for i in range(count)])


async def cut_after_paying(place: Path, evalset: EvalSet | None = None) -> None:
    """A run that was cut when its first payment was done."""
    PAID.clear()
    model = Asked(answer, cut=2)
    options: dict[str, Any] = {"store": place, "cancel": model.cancel, "concurrency": 1}
    await evaluate(payer(model), evalset or payments(), **options)
    assert PAID == [0]


async def resumed(place: Path, evalset: EvalSet | None = None, **options: Any) -> Report:
    agent = payer(Asked(answer))
    return await evaluate(agent, evalset or payments(), store=place, resume=True, **options)


def errors(report: Report) -> list[str]:
    return ["" if result.error is None else result.error.type for result in report]


# In between


async def test_a_run_that_was_cut_pays_the_rest_and_nothing_twice(tmp_path: Path) -> None:
    await cut_after_paying(tmp_path)
    assert (await resumed(tmp_path)).passed
    assert PAID == [0, 1]


async def test_a_damaged_entry_is_in_doubt_wherever_it_is_damaged(tmp_path: Path) -> None:
    await cut_after_paying(tmp_path / "cut")
    [path] = left_files(tmp_path / "cut")
    whole = path.read_bytes()
    end = len(whole.rstrip(b"\0"))
    for number, at in enumerate(range(0, end, end // 40)):
        place = tmp_path / str(number)
        shutil.copytree(tmp_path / "cut", place)
        with left_files(place)[0].open("r+b") as file:
            file.seek(at)
            file.write((b"\xff", b"\0" * 3, b"\n", b"\xfe{}")[number % 4])
        if left_files(place)[0].read_bytes() == whole:
            continue  # a line had its end there
        report = await resumed(place)
        assert PAID == [0], f"paid twice after damage at byte {at}"
        assert errors(report) == ["InDoubt"], at
        assert "is damaged" in report.results[0].error.message  # type: ignore[union-attr]
        assert Store(place).run(report.id).status == "finished"


async def test_a_line_that_lacks_only_its_end_counts(tmp_path: Path) -> None:
    await cut_after_paying(tmp_path)
    [path] = left_files(tmp_path)
    text = path.read_bytes().rstrip(b"\0")
    called = text.index(b'"tool_called"')
    path.write_bytes(text[: text.index(b"\n", called)])
    assert errors(await resumed(tmp_path)) == ["InDoubt"]
    assert PAID == [0]


async def test_a_trial_in_doubt_for_damage_stays_so_when_it_is_cut_again(tmp_path: Path) -> None:
    await cut_after_paying(tmp_path)
    with left_files(tmp_path)[0].open("r+b") as file:
        file.seek(600)
        file.write(b"\xff" * 20)
    model = Asked(answer)
    await evaluate(
        payer(model),
        payments(),
        store=tmp_path,
        resume=True,
        cancel=model.cancel,
        on_case_start=lambda _: model.cancel.cancel("again"),
    )
    assert errors(await resumed(tmp_path)) == ["InDoubt"]
    assert PAID == [0]


async def test_an_entry_that_is_nobodys_puts_all_in_doubt_that_could_have_acted(
    tmp_path: Path,
) -> None:
    evalset = EvalSet(
        "payments",
        [
            *payments(2).cases,
            Case("mocked", "Pay.", mocks={"pay": "as if"}, user=Lines(), metrics=[OK]),
        ],
    )
    await cut_after_paying(tmp_path, evalset)
    with left_files(tmp_path)[0].open("r+b") as file:
        file.write(b"T{" + b"\xff" * 30)
    report = await resumed(tmp_path, evalset)
    assert errors(report) == ["InDoubt", "InDoubt", ""]
    assert report.results[2].passed
    assert PAID == [0]


async def test_a_journal_that_was_removed_puts_all_in_doubt_that_could_have_acted(
    tmp_path: Path,
) -> None:
    await cut_after_paying(tmp_path)
    shutil.rmtree(tmp_path / "journals")
    changed = Agent("payer", model=Asked(answer), tools=[pay], instructions="Pay more.")
    with pytest.raises(BadInput, match="the agent has changed"):
        await evaluate(changed, payments(), store=tmp_path, resume=True)
    report = await resumed(tmp_path)
    assert errors(report) == ["InDoubt"]
    assert PAID == [0]


async def test_neighbours_of_a_damaged_entry_go_on(tmp_path: Path) -> None:
    evalset = payments(3)
    PAID.clear()
    asked: list[int] = []

    async def until_all_have_paid(request: ModelRequest) -> Any:
        if request.n == 1:
            asked.append(1)
            if len(asked) == 3:
                model.cancel.cancel("all have paid")
            await asyncio.sleep(3600)
        return answer(request)

    model = Asked(until_all_have_paid)
    await evaluate(payer(model), evalset, store=tmp_path, cancel=model.cancel, concurrency=3)
    assert PAID == [0, 0, 0]
    [path] = left_files(tmp_path)
    with path.open("r+b") as file:
        file.seek(SLOT + 300)
        file.write(b"\xff" * 10)
    report = await resumed(tmp_path, evalset)
    assert sorted(errors(report)) == ["", "", "InDoubt"]
    assert sorted(PAID) == [0, 0, 0, 1, 1]


# Under way


async def stopped(place: Path, spoil: Callable[[], None], at: int, **options: Any) -> StoreFailed:
    """A run whose store is spoilt while a model thinks about its `at`-th question."""
    PAID.clear()

    def answered(request: ModelRequest) -> Any:
        if model.count == at:
            spoil()
        return answer(request)

    model = Asked(answered)
    given: dict[str, Any] = {"store": place, "concurrency": 1, **options}
    with pytest.raises(StoreFailed) as failed:
        await evaluate(payer(model), payments(3), **given)
    return failed.value


def overwrite(place: Path) -> None:
    for path in place.glob("runs.db*"):
        # Not cut short first: a process that has the file in its memory would die of it.
        with path.open("r+b") as file:
            file.write(b"nonsense " * 4000)


def replace(place: Path) -> None:
    for path in place.glob("runs.db*"):
        path.unlink()
    Store(place).runs()
    sqlite3.connect(place / "runs.db").close()


@pytest.mark.parametrize("at", [1, 2, 4, 7])
@pytest.mark.parametrize("spoil", [shutil.rmtree, overwrite, replace], ids=lambda f: f.__name__)
async def test_a_store_that_is_spoilt_under_way_stops_the_run(
    tmp_path: Path, spoil: Callable[[Path], None], at: int
) -> None:
    place = tmp_path / "store"
    failed = await stopped(place, lambda: spoil(place), at)
    finished = (at - 1) // 3
    statuses = [result.status for result in failed.report]
    # SQLite may notice only in the end that somebody has written into its file.
    if spoil is not overwrite:
        assert statuses.count("passed") <= finished, "a trial was judged that is not on record"
        assert statuses.count("skipped") == 3 - statuses.count("passed")
    assert f"resume run {failed.report.id!r}" in str(failed)
    if spoil is shutil.rmtree:
        assert len(PAID) == at - 1 - finished, "a tool acted when its call was written nowhere"


async def test_a_full_disk_begins_no_real_tool(small_disk: Path) -> None:
    place = small_disk / "store"
    filler = small_disk / "filler"

    def fill() -> None:
        with filler.open("wb", buffering=0) as file:
            while os.statvfs(small_disk).f_bavail:
                try:
                    file.write(b"x" * 65536)
                except OSError:
                    break

    failed = await stopped(place, fill, 4, concurrency=1)
    assert any(words in str(failed) for words in ("full", "No space left"))
    paid = list(PAID)
    assert paid == [0, 1]
    filler.unlink()
    report = await resumed(place, payments(3))
    assert len(report) == 3
    assert all(kind in ("", "InDoubt") for kind in errors(report))
    assert len(PAID) <= 6
