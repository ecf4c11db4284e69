"""Disks that are full, and files that were torn: what was safe stays so, and the rest is said."""

import asyncio
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import warm_python
from greenroom import Agent, Case, EvalSet, Report, evaluate
from greenroom.errors import StoreFailed
from greenroom.metrics import contains
from greenroom.results.result import CaseResult
from greenroom.store import Store
from greenroom.store.ledgers import StoredLedger
from greenroom.store.runs import Key, Plan, Row
from store.asked import Asked
from store.timeless import timeless

OK = contains("Answer", name="ok")
LONG = "word " * 6000


class OneByOne:
    """Answers at length, each question only when the trial before it was written, or could not be."""

    def __init__(self) -> None:
        self._is_over = asyncio.Event()
        self._is_over.set()

    async def answer(self, request: Any) -> str:
        await self._is_over.wait()
        self._is_over.clear()
        return f"Answer to {request.last}: {LONG}"

    def complete(self, _: CaseResult) -> None:
        self._is_over.set()


def cases(count: int) -> EvalSet:
    return EvalSet("long", [Case(f"case {i}", f"Hello {i}.") for i in range(count)])


async def played(place: Path, evalset: EvalSet, **options: Any) -> tuple[Report, Asked]:
    order = OneByOne()
    model = Asked(order.answer)
    agent = Agent("a", model=model)
    given: dict[str, Any] = {"metrics": [OK], "concurrency": 1, **options}
    report = await evaluate(agent, evalset, store=place, on_case_complete=order.complete, **given)
    return report, model


async def stopped(place: Path, evalset: EvalSet, **options: Any) -> tuple[StoreFailed, Asked]:
    """A run that has to stop because of its store."""
    order = OneByOne()
    model = Asked(order.answer)
    given: dict[str, Any] = {"metrics": [OK], "concurrency": 1, "on_case_complete": order.complete}
    with pytest.raises(StoreFailed) as failed:
        await evaluate(Agent("a", model=model), evalset, store=place, **given, **options)
    return failed.value, model


# A full disk


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of twelve megabytes."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=12m", "tmpfs", str(place)]
    if (
        shutil.which("mount") is None
        or subprocess.run(mount, capture_output=True, check=False).returncode
    ):
        pytest.skip("only root may mount a small disk")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def safe(report: Report) -> set[str]:
    """The cases that this report's run was told to be in the store."""
    return {result.case_id for result in report if isinstance(result.kept, StoredLedger)}


def kept(place: Path, report: Report) -> set[str]:
    return {key.case_id for key in Store(place).keys(report.id)}


async def test_a_full_disk_loses_nothing_that_was_safe(small_disk: Path) -> None:
    place, evalset = small_disk / "store", cases(30)
    old, _ = await played(place, cases(3))
    filler = small_disk / "filler"
    filler.write_bytes(b"x" * 11_000_000)
    failed, model = await stopped(place, evalset)
    report = failed.report
    [note] = [note for note in report.notes if "not everything could be recorded" in note]
    for told in (note, str(failed)):
        assert any(words in told for words in ("full", "No space left"))
    assert f"resume run {report.id!r}" in str(failed)
    assert 0 < len(safe(report)) < 30
    assert model.count < 30
    skipped = [result for result in report if result.status == "skipped"]
    assert len(skipped) == 30 - len(safe(report)), "what is not written down is not a result"
    assert {result.notes[0].partition(":")[0] for result in skipped} == {
        "not run",
        "not finished",
    }

    filler.unlink()
    assert kept(place, report) >= safe(report)
    assert timeless(Store(place).report(old.id)) == timeless(old)

    again, model = await played(place, evalset, resume=report.id)
    whole, _ = await played(small_disk.parent / "whole", evalset)
    assert timeless(again) == timeless(whole)
    assert not {f"a:Hello {name[5:]}." for name in safe(report)} & set(model.questions)
    assert Store(place).run(report.id).status == "finished"


async def test_a_disk_that_is_full_from_the_first_says_so(small_disk: Path) -> None:
    with suppress(OSError), (small_disk / "filler").open("wb", buffering=0) as filler:
        while True:
            filler.write(b"x" * 4096)
    with pytest.raises(StoreFailed, match=r"full|No space left|disk I/O error"):
        await played(small_disk / "store", cases(1))


LIMITED = """
import resource, sys
from pathlib import Path

limit = int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
sys.path.insert(0, sys.argv[3])

import asyncio
from store.test_disks import cases, kept, safe, stopped

place = Path(sys.argv[1])
failed, model = asyncio.run(stopped(place, cases(60)))
report = failed.report
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
assert 0 < len(safe(report)) < 60, len(safe(report))
assert kept(place, report) >= safe(report)
print(report.id)
print(*sorted(safe(report)), sep=",")
print([note for note in report.notes if "not everything could be recorded" in note])
"""


async def test_files_that_may_not_grow_lose_nothing_that_was_safe(tmp_path: Path) -> None:
    place = tmp_path / "store"
    command = [sys.executable, "-c", LIMITED, str(place), "700000", str(Path(__file__).parents[1])]
    told = warm_python.run(command, capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stderr
    run_id, names, note = told.stdout.splitlines()
    assert "cannot be used" in note or "cannot write" in note
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY
    again, model = await played(place, cases(60), resume=run_id)
    assert again.passed
    assert len(again) == 60
    assert not {f"a:Hello {name[5:]}." for name in names.split(",")} & set(model.questions)


# A torn log


def committed(store: Store, count: int, torn: Path | None = None) -> str:
    """A run whose trials went in one by one; `torn` gets the files as a power cut leaves them."""
    with store.database.connected() as connection:
        run = store.begin(Plan(name="s", cases=count), connection)
        for number in range(count):
            row = Row(
                key=Key("a", number + 1),
                place=number,
                digest="d",
                status="passed",
                verdict="{}",
                ledger=b"x" * 5000,
                judging=b"",
            )
            store.add(run, [row], connection)
        if torn is not None:
            torn.mkdir()
            # Now, for closing the last connection would put the log away.
            for name in ("runs.db", "runs.db-wal"):
                shutil.copy(store.place / name, torn / name)
    return run.id


def trials(store: Store, run_id: str) -> set[int]:
    return {key.trial for key in store.keys(run_id)}


@pytest.mark.parametrize("junk", [b"\x00" * 4096, b"\xff" * 5000, b"nonsense", b"\x00" * 24])
def test_junk_after_the_log_hides_nothing(tmp_path: Path, junk: bytes) -> None:
    run_id = committed(Store(tmp_path / "store"), 10, tmp_path / "torn")
    with (tmp_path / "torn" / "runs.db-wal").open("ab") as file:
        file.write(junk)
    torn = Store(tmp_path / "torn")
    assert trials(torn, run_id) == set(range(1, 11))
    assert torn.run(run_id).status == "interrupted"
    committed(torn, 3)  # it can be written to
    assert trials(torn, run_id) == set(range(1, 11))


@pytest.mark.parametrize("missing", [1, 100, 4096, 4120, 4121, 8000])
def test_a_log_without_its_last_bytes_has_all_that_was_committed_before(
    tmp_path: Path, missing: int
) -> None:
    run_id = committed(Store(tmp_path / "store"), 10, tmp_path / "torn")
    log = tmp_path / "torn" / "runs.db-wal"
    log.write_bytes(log.read_bytes()[:-missing])
    torn = Store(tmp_path / "torn")
    # The bytes are those of the last commit, which spans several pages of the log.
    assert trials(torn, run_id) == set(range(1, 10))
    with torn.database.connected() as connection:
        assert connection.execute("pragma integrity_check").fetchone() == ("ok",)


def test_the_memory_of_a_log_need_not_be_there(tmp_path: Path) -> None:
    run_id = committed(Store(tmp_path / "store"), 4, tmp_path / "torn")
    torn = tmp_path / "torn"
    (torn / "runs.db-shm").write_bytes(b"\xff" * 32768)
    assert trials(Store(torn), run_id) == {1, 2, 3, 4}
