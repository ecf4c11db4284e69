"""The published figures of 200 recorded conversations: 50 airline tasks, played four times each."""

import json
import os
from pathlib import Path

import pytest

from greenroom import Report
from greenroom.results import CaseResult

DATA = os.environ.get("GREENROOM_DATA")

pytestmark = pytest.mark.skipif(
    not DATA, reason="GREENROOM_DATA names no folder with tau/gpt-4o-airline.json"
)


@pytest.fixture(scope="module")
def report() -> Report:
    path = Path(DATA or "") / "tau" / "gpt-4o-airline.json"
    return Report(
        [
            CaseResult(
                case_id=f"task-{played['task_id']}",
                status="passed" if played["reward"] == 1 else "failed",
                trial=played["trial"] + 1,
            )
            for played in json.loads(path.read_text())
        ]
    )


def test_the_chance_that_k_trials_all_pass_is_the_published_one(report: Report):
    assert len(report.per_case) == 50
    found = [report.all_of(k) for k in (1, 2, 3, 4)]
    assert found == [pytest.approx(figure, abs=5e-5) for figure in (0.420, 0.2733, 0.220, 0.200)]
    assert report.all_of(5) is None


def test_the_chance_that_one_of_k_trials_passes_mirrors_that_all_of_them_fail(report: Report):
    assert report.any_of(1) == pytest.approx(0.42)
    ever = sum(case.counts.passed > 0 for case in report.per_case.values())
    assert report.any_of(4) == pytest.approx(ever / 50)


def test_trials_that_resemble_each_other_make_the_pass_rate_less_sure(report: Report):
    interval = report.interval
    assert interval is not None
    assert (interval.low, interval.high) == pytest.approx((0.3216, 0.5252), abs=5e-5)
    assert str(interval) == "42 % ± 11"
    assert str(report).endswith("; 42 % ± 11 passing; 26 flaky; pass^4 20.0 %")
