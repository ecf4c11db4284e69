"""A trial that broke has no scores, whichever way its result came to be."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.cases import Case
from greenroom.cases.scores import NotApplicable, Outcome, Score, Unmeasured
from greenroom.ledger import Ledger, RunEnded, RunStarted, UserSaid
from greenroom.results import CaseResult, Problem, Report, broken
from greenroom.results.blame import Blame
from greenroom.results.data import report_data, report_from, verdict_data, verdict_from
from greenroom.results.redaction import redacted
from greenroom.results.trial_verdict import concluded, unmeasured

PHASES = ["system", "agent", "user_agent"]
MEASURED: dict[str, Outcome] = {
    "forbidden_calls": Score(1.0),
    "polite": Score(0.25),
    "reference": NotApplicable("no reference"),
    "judge": Unmeasured("it answered nonsense"),
}


def run(**end) -> Ledger:
    ledger = Ledger()
    for event in (RunStarted(run_id="r"), UserSaid(text="Hi."), RunEnded(**end)):
        ledger.append(event, 0.0)
    return ledger


def concluded_as(phase) -> CaseResult:
    end = run(reason="error", phase=phase, error="all went dark\nin two lines", error_type="Dark")
    return concluded(Case("a", says="Hi."), end, MEASURED)


def made_by_hand(phase) -> CaseResult:
    error = Problem(phase, "all went dark")
    return CaseResult(case_id="a", status="error", scores=MEASURED, error=error)


def read_from_an_old_file(phase) -> CaseResult:
    data = json.loads(json.dumps(report_data(Report([made_by_hand(phase)]))))
    data["results"][0]["scores"] = _as_data(MEASURED)
    return report_from(data, "old.json").results[0]


def read_from_an_old_store(phase) -> CaseResult:
    data = verdict_data(concluded_as(phase))
    return verdict_from({**data, "scores": _as_data(MEASURED)}, "a store", None)


def turned_into_an_error(phase) -> CaseResult:
    passed = CaseResult(case_id="a", status="passed", scores=MEASURED, ended="completed")
    return replace(passed, status="error", error=Problem(phase, "all went dark"))


def _as_data(scores: dict[str, Outcome]) -> Any:
    whole = CaseResult(case_id="a", status="failed", scores=scores)
    data: Any = verdict_data(whole)["scores"]
    assert data["forbidden_calls"]["score"] == 1.0  # the door would let a number through
    return data


WAYS = [
    concluded_as,
    made_by_hand,
    read_from_an_old_file,
    read_from_an_old_store,
    turned_into_an_error,
]


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_every_metric_of_a_broken_trial_is_unmeasured_and_says_why(way, phase):
    result = way(phase)
    assert (result.status, result.passed, result.broke, result.measured) == (
        "error",
        False,
        True,
        {},
    )
    why = Unmeasured("the trial broke: all went dark", phase)
    assert result.scores == dict.fromkeys(MEASURED, why)
    assert replace(result, trial=2).scores == result.scores


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_where_only_a_metric_broke_the_others_stand(way):
    if way is concluded_as:
        result = concluded(Case("a", says="Hi."), run(reason="completed"), MEASURED)
    elif way is read_from_an_old_store:
        return  # what is left of the trial there says that it broke
    else:
        result = way("metric")
    assert (result.status, result.broke) == ("error", False)
    assert result.scores == MEASURED
    summary = Report([result]).summary
    assert (summary.errors, summary.evaluated, summary.pass_rate) == (1, 0, None)


def test_a_run_that_ended_as_an_error_is_broken_whatever_phase_was_recorded():
    result = concluded_as("metric")
    assert result.broke
    assert not result.measured


def test_an_error_of_which_nobody_says_whose_it_is_has_no_scores():
    assert not CaseResult(case_id="a", status="error", scores=MEASURED).measured


@pytest.mark.parametrize("reason", ["max_turns", "max_seconds"])
def test_a_trial_that_was_cut_at_its_limit_keeps_its_scores_and_never_passes(reason):
    scores: dict[str, Outcome] = {"forbidden_calls": Score(1.0)}
    result = concluded(Case("a", says="Hi."), run(reason=reason), scores)
    assert (result.status, result.broke, result.scores) == ("terminated", False, scores)


def test_means_count_what_was_measured_and_nothing_of_broken_or_skipped_trials():
    half = CaseResult(case_id="a", status="failed", scores={"polite": Score(0.5)})
    metric = CaseResult(
        case_id="b",
        status="error",
        scores={"polite": Score(1.0), "judge": Unmeasured("nonsense")},
        error=Problem("metric", "judge: nonsense"),
    )
    others = [
        replace(half, case_id="c", status="error", error=Problem("agent", "down")),
        replace(half, case_id="d", status="skipped"),
        replace(metric, case_id="e", status="skipped"),
    ]
    report = Report([half, metric, *others])
    polite = report.metrics["polite"]
    assert (polite.mean, polite.measured, polite.unmeasured) == (0.75, 2, 3)
    assert report.metrics["judge"].mean is None
    assert report.summary.pass_rate == 0


def test_a_case_that_could_not_be_played_names_the_metrics_that_could_not_measure_it():
    result = broken(Case("a", says="Hi."), ValueError("no such agent"), metrics=["polite", "cost"])
    why = Unmeasured("the trial broke: no such agent", "system")
    assert result.scores == {"polite": why, "cost": why}


def test_a_run_that_could_not_be_measured_names_its_metrics():
    case = Case("a", says="Hi.")
    result = unmeasured(case, run(reason="completed"), ValueError("odd"), ["polite"])
    assert result.scores == {"polite": Unmeasured("odd", "metric")}
    assert (result.status, result.broke) == ("error", False)


def test_who_found_the_user_out_of_character_keeps_its_words_and_is_the_evidence():
    scores: dict[str, Outcome] = {
        "forbidden_calls": Score(1.0),
        "simulator_quality": Unmeasured("it said it is a model", "user_agent"),
    }
    result = concluded(Case("a", says="Hi."), run(reason="completed"), scores)
    assert result.scores["simulator_quality"] == scores["simulator_quality"]
    why = "the trial broke: simulator_quality: it said it is a model"
    assert result.scores["forbidden_calls"] == Unmeasured(why, "user_agent")
    assert result.blame == Blame("user", ["simulator_quality: it said it is a model"])


@given(message=st.text(max_size=30), kind=st.text(max_size=5), phase=st.sampled_from(PHASES))
def test_whatever_an_error_says_the_reason_is_one_line_and_never_empty(message, kind, phase):
    error = Problem(phase, message, kind)
    result = CaseResult(case_id="a", status="error", scores=MEASURED, error=error)
    (why,) = {found.why for found in result.scores.values() if isinstance(found, Unmeasured)}
    assert len(why.splitlines()) == 1
    assert why.removeprefix("the trial broke: ").strip()
    assert redacted(Report([result])).results[0].measured == {}
