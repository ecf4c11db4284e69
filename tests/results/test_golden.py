"""What is written of results today is written tomorrow, and what was written before is read.

The files in `golden` were written by an earlier version. They change only with `version`.
"""

import dataclasses
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from browser.sample_reports import earlier_report, rich_report
from greenroom import Report
from greenroom.results import CaseResult, compare
from greenroom.results.data import report_data, report_from, verdict_data, verdict_from

GOLDEN = Path(__file__).parent / "golden"


def desk() -> Report:
    """Every status and every field, trials that were run again among them."""
    report = rich_report()
    again = tuple(replace(result, trial=9) for result in report.results[:2])
    return replace(report, confirmed=again, against="b", evalset_id="desk")


def golden(name: str) -> str:
    return (GOLDEN / name).read_text(encoding="utf-8")


def test_a_report_is_written_as_before(tmp_path: Path) -> None:
    assert desk().save(tmp_path / "report.json").read_text(encoding="utf-8") == golden(
        "report.json"
    )


def test_a_report_of_before_is_read_and_says_the_same() -> None:
    read = Report.load(GOLDEN / "report.json")
    assert report_data(read) == json.loads(golden("report.json"))
    assert str(read) == str(desk())


def test_a_report_of_before_there_were_confirmed_trials_is_read() -> None:
    data = json.loads(golden("report.json"))
    for later in ("adaptive", "against", "confirmed"):
        del data[later]
    for result in (*data["results"], *data.get("confirmed", ())):
        del result["fixed"]
        result.pop("nodes", None)
    read = report_from(data, "an old file")
    assert (read.adaptive, read.against, read.confirmed) == (False, None, ())
    assert [result.fixed for result in read] == [False] * len(read)
    assert [result.nodes for result in read] == [None] * len(read)
    # What these results took is known all the same, though not by which node.
    assert [*read.nodes] == [""]
    assert (read.nodes[""].usage, read.nodes[""].cost) == (read.usage, read.cost)


@pytest.mark.parametrize("number", range(9))
def test_a_verdict_is_written_as_before_and_read(number: int) -> None:
    line = golden("verdicts.jsonl").splitlines()[number]
    result = desk().results[number]
    assert json.dumps(verdict_data(result)) == line
    assert json.dumps(verdict_data(verdict_from(json.loads(line), "a store", None))) == line


def test_a_comparison_is_written_as_before(tmp_path: Path) -> None:
    found = compare(replace(earlier_report(), id="b"), desk())
    written = found.save(tmp_path / "comparison.json").read_text(encoding="utf-8")
    assert written == golden("comparison.json")


def test_every_field_of_a_result_is_written_or_named_here() -> None:
    report = desk()
    traced = replace(report.results[0], trace_id="4bf9", trace_link="https://traces.example/4bf9")
    whole: Any = report_data(replace(report, results=[traced, *report.results[1:]]))
    data = whole["results"][0]
    assert "trace_id" not in whole["results"][1]
    elsewhere = {"kept", "asked", "steps", "blamed", "asks"}
    other_names = {"case", "trajectory", "blame", "responses"}
    only_where_given = {"replaced", "recorded_at", "earlier_costs"}
    fields = {field.name for field in dataclasses.fields(CaseResult)}
    assert data.keys() - other_names == fields - elsewhere - only_where_given


def test_what_hooks_replaced_is_written_and_read_where_there_is_something() -> None:
    result = replace(
        desk().results[0], replaced={"tone": "by the hook 'kinder'; it was 0.20: rude"}
    )
    data = verdict_data(result)
    assert data["replaced"] == result.replaced
    assert verdict_from(data, "a store", None).replaced == result.replaced
    assert "replaced" not in verdict_data(desk().results[0])


def test_what_attempts_that_ran_again_cost_is_written_read_and_counted() -> None:
    result = replace(desk().results[0], cost=0.5, earlier_costs={"agent": 0.25, "judge": None})
    data = verdict_data(result)
    assert data["earlier_costs"] == result.earlier_costs
    assert verdict_from(data, "a store", None).earlier_costs == result.earlier_costs
    assert "earlier_costs" not in verdict_data(desk().results[0])
    report = replace(desk(), results=[result], confirmed=())
    assert (report.cost, report.judge_cost, report.spent, result.spent) == (0.75, None, None, None)


def test_when_a_replay_was_recorded_is_written_and_read() -> None:
    data = verdict_data(replace(desk().results[0], recorded_at=1.5))
    assert data["recorded_at"] == 1.5
    assert verdict_from(data, "a store", None).recorded_at == 1.5
    assert "recorded_at" not in verdict_data(desk().results[0])
