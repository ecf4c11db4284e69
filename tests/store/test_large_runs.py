"""The results of a large run are read from the store as they are asked for."""

from pathlib import Path

import pytest

from greenroom import Agent, Case, EvalSet, Expect, Report, Scripted, evaluate
from greenroom.errors import NotFound
from greenroom.results.reporters import render_report
from greenroom.results.stored_results import ReadResults
from greenroom.results.totals import by_case
from greenroom.store import Store, contents

AGENT = Agent("clerk", model=Scripted("Your money is on its way."))


@pytest.fixture
async def kept(tmp_path: Path) -> tuple[Store, Report]:
    """A store with a run of five cases, two trials each, and its report as a list."""
    place = Store(tmp_path / "runs")
    cases = [
        Case(f"c{n}", "Hi", expect=Expect(contains="money" if n % 2 else "never")) for n in range(5)
    ]
    report = await evaluate(AGENT, EvalSet("refunds", cases), store=place, trials=2)
    return place, place.report(report.id)


@pytest.fixture
def read(kept: tuple[Store, Report], monkeypatch: pytest.MonkeyPatch) -> Report:
    """The same run, as one that is too large to be held."""
    monkeypatch.setattr(contents, "_AT_ONCE", 3)
    place, report = kept
    found = place.report(report.id)
    assert isinstance(found.results, ReadResults)
    return found


def test_they_are_the_same_as_those_of_a_run_that_is_held(
    kept: tuple[Store, Report], read: Report
) -> None:
    _, held = kept
    assert isinstance(held.results, list)
    assert read == held
    assert list(read) == held.results
    assert [result.ledger for result in read] == [result.ledger for result in held]
    for name in ("json", "junit", "markdown", "html", "console"):
        assert render_report(name, read) == render_report(name, held), name
    assert read.compare(held).data() == held.compare(held).data()


def test_any_of_them_can_be_asked_for(kept: tuple[Store, Report], read: Report) -> None:
    held, results = list(kept[1].results), read.results
    assert (len(results), results[0], results[-1]) == (10, held[0], held[-1])
    for part in (
        slice(2, 5),
        slice(None, None, 3),
        slice(None, None, -2),
        slice(8, 1, -3),
        slice(5, 5),
    ):
        assert list(results[part]) == held[part], part
    with pytest.raises(IndexError):
        results[10]
    assert read["c3"] == held[6]
    assert [[trial.trial for trial in trials] for trials in by_case(read)] == [[1, 2]] * 5


def test_a_run_that_is_gone_is_not_reported_in_part(
    kept: tuple[Store, Report], read: Report
) -> None:
    place, held = kept
    place.delete(held.id)
    with pytest.raises(NotFound, match="has changed while it was read"):
        _ = read.summary
    with pytest.raises(NotFound, match="Read its report again"):
        list(read.results)


def test_trials_that_are_written_later_are_in_the_next_report(
    kept: tuple[Store, Report], read: Report
) -> None:
    place, held = kept
    with place.database.connected(to_write=True) as connection:
        connection.execute(
            "insert into trials select position + 1000, run_id, 'late', 1, 99, digest, covers_code, "
            "status, error_type, cost, ledger_size, verdict, ledger, judging from trials limit 1"
        )
    assert len(list(read.results)) == read.summary.total == 10
    assert place.report(held.id).summary.total == 11


def test_a_run_whose_trials_lie_far_apart_reads_the_same(kept: tuple[Store, Report]) -> None:
    place, held = kept
    together = [(one.case_id, one.trial) for one in place.facts(held.id)]
    by_place = place.found_by(held.id)
    with place.database.connected(to_write=True) as connection:
        connection.execute("update trials set position = position * 1000")
    assert [(one.case_id, one.trial) for one in place.facts(held.id)] == together
    assert (by_place.startswith("position between"), place.found_by(held.id)) == (
        True,
        "run_id = ?",
    )
