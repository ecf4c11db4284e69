"""The gate at the end of a run."""

from dataclasses import replace
from typing import Any

import pytest

from greenroom import Report, Score
from greenroom.errors import BadInput
from greenroom.results import CaseResult, Gate, Status
from greenroom.results.data import report_data, report_from
from greenroom.results.endings import Problem
from greenroom.results.redaction import redacted
from greenroom.results.shards import together


def report(**counts: int) -> Report:
    statuses: dict[str, Status] = {
        "passed": "passed",
        "failed": "failed",
        "errors": "error",
        "skipped": "skipped",
    }
    return Report(
        [
            CaseResult(case_id=f"{kind}{n}", status=statuses[kind])
            for kind, count in counts.items()
            for n in range(count)
        ]
    )


def test_it_opens_where_the_pass_rate_suffices():
    decision = Gate(min_pass_rate=0.9).decide(report(passed=9, failed=1))
    assert decision.passed
    assert str(decision) == ""


def test_it_says_both_rates_with_the_digits_it_takes():
    decision = Gate(min_pass_rate=0.9).decide(report(passed=8999, failed=1001))
    assert not decision.passed
    assert str(decision) == "the pass rate of 89.99 % is below the minimum of 90.00 %"


def test_unless_told_otherwise_every_case_must_pass():
    assert Gate().decide(report(passed=3)).passed
    assert not Gate().decide(report(passed=99, failed=1)).passed


def test_where_nothing_was_evaluated_nothing_is_shown():
    decision = Gate(min_pass_rate=0).decide(report(skipped=2))
    assert str(decision) == "no case was evaluated, so a pass rate of 0.0 % cannot be shown"


def test_a_confident_gate_looks_at_the_lower_end():
    good = report(passed=19, failed=1)
    assert Gate(min_pass_rate=0.9).decide(good).passed
    decision = Gate(min_pass_rate=0.9, confident=True).decide(good)
    assert str(decision) == (
        "the pass rate is 95 % (76–100): it may be as low as 76.4 %, below the minimum of 90.0 %"
    )
    assert Gate(min_pass_rate=0.9, confident=True).decide(report(passed=380, failed=20)).passed


def test_a_confident_gate_is_not_sure_of_a_single_case():
    decision = Gate(min_pass_rate=0.5, confident=True).decide(report(passed=1))
    assert "too few cases were evaluated to be sure of a pass rate of 50.0 %" in str(decision)


def test_trials_of_a_few_cases_do_not_buy_confidence():
    once = [CaseResult(case_id=f"c{n}", status="passed") for n in range(40)]
    often = [CaseResult(case_id=f"c{n % 4}", status="passed", trial=n // 4 + 1) for n in range(40)]
    gate = Gate(min_pass_rate=0.9, confident=True)
    assert gate.decide(Report(once)).passed
    assert not gate.decide(Report(often)).passed


def test_errors_come_first_and_prove_nothing():
    decision = Gate(min_pass_rate=1).decide(report(passed=1, failed=3, errors=2))
    assert [missed.kind for missed in decision.missed] == ["errors"]
    assert decision.broke
    assert str(decision) == "2 cases ended in an error: without a reason"
    allowed = Gate(min_pass_rate=0.2, max_errors=1).decide(report(passed=1, errors=2))
    assert str(allowed) == "2 cases ended in an error, 1 allowed: without a reason"
    assert Gate(max_errors=2).decide(report(passed=1, errors=2)).passed


# Against a baseline


def trials_of(cases: int, trials: int, status: Status, **more) -> Report:
    return Report(
        [
            CaseResult(case_id=f"c{n}", status=status, trial=t, **more)
            for n in range(cases)
            for t in range(1, trials + 1)
        ]
    )


@pytest.mark.parametrize("trials", [1, 2, 3, 5])
@pytest.mark.parametrize("now", [1, 3])
def test_a_collapse_shuts_it_however_often_cases_were_played(trials, now):
    decision = Gate().decide(trials_of(50, now, "failed"), trials_of(50, trials, "passed"))
    assert not decision.passed
    assert decision.exit_code == 1
    assert "the pass rate fell from 100 % to 0 %" in str(decision)


def test_one_flip_does_not_shut_it_and_no_minimum_is_asked_beside_a_baseline():
    then = report(passed=3)
    now = Report([*report(passed=2), CaseResult(case_id="passed2", status="failed")])
    assert Gate().decide(now, then).passed
    assert not Gate().decide(now).passed
    assert not Gate(min_pass_rate=0.9).decide(now, then).passed


def test_a_flip_where_nothing_was_left_to_chance_is_a_fact():
    then = report(passed=3)
    flipped = CaseResult(case_id="passed2", status="failed", fixed=True)
    decision = Gate().decide(Report([*report(passed=2), flipped]), then)
    assert str(decision) == "1 case regressed: passed2"
    assert decision.exit_code == 1
    assert Gate(fail_on=()).decide(Report([*report(passed=2), flipped]), then).passed


def test_what_a_gate_asks_may_come_from_an_iterator():
    names: Any = (name for name in ["skipped"])
    asked = Gate(min_pass_rate=0, fail_on=names)
    for _ in range(2):
        assert not asked.decide(report(passed=1, skipped=1)).passed


def test_to_be_confident_of_no_minimum_is_refused():
    with pytest.raises(BadInput, match="give min_pass_rate below 1"):
        Gate(confident=True).decide(report(passed=3), report(passed=3))


def test_a_case_whose_trials_prove_it_shuts_it():
    then = Report([*trials_of(20, 5, "passed")])
    now = Report([*trials_of(20, 5, "passed").results[5:], *trials_of(1, 5, "failed")])
    assert "1 case regressed: c0" in str(Gate().decide(now, then))


def test_a_report_of_nothing_but_errors_never_passes():
    decision = Gate(max_errors=99).decide(trials_of(9, 1, "error"), trials_of(9, 1, "passed"))
    assert (decision.exit_code, decision.broke) == (2, True)
    assert Gate().decide(trials_of(9, 1, "error"), trials_of(9, 1, "passed")).exit_code == 2


@pytest.mark.parametrize("errors", [0, 2])
def test_a_report_that_shares_no_case_cannot_be_compared(errors):
    decision = Gate(max_errors=9).decide(report(passed=2, errors=errors), trials_of(9, 1, "passed"))
    assert decision.exit_code == 3
    assert "no case is shared with the baseline" in str(decision)


def test_shared_cases_that_were_not_evaluated_on_both_sides_cannot_be_compared():
    pairs: list[tuple[Status, Status]]
    pairs = [("skipped", "passed"), ("passed", "skipped"), ("passed", "error")]
    for now, then in pairs:
        decision = Gate().decide(trials_of(3, 1, now), trials_of(3, 1, then))
        assert decision.exit_code == 3
        assert "no case was evaluated on both sides: 3 " in str(decision)


def test_what_is_unclear_shuts_it_only_if_asked():
    then = trials_of(9, 1, "passed")
    now = Report([*trials_of(8, 1, "passed"), CaseResult(case_id="c8", status="failed")])
    assert Gate().decide(now, then).passed
    decision = Gate(fail_on=["regression", "unclear"]).decide(now, then)
    assert decision.exit_code == 1
    assert "1 flip not decided: c8" in str(decision)
    assert Gate(fail_on=["unclear"], threshold=1).decide(then, then).passed


def test_cases_that_are_gone_shut_it_only_if_asked():
    then, now = trials_of(9, 1, "passed"), trials_of(7, 1, "passed")
    assert Gate().decide(now, then).passed
    assert str(Gate(fail_on=["removed"]).decide(now, then)) == "2 cases removed: c7, c8"


def test_a_tag_that_is_named_is_asked_about_like_the_whole():
    safe = trials_of(12, 1, "failed", tags=("safety",))
    rest = [replace(r, case_id=f"other-{r.case_id}") for r in trials_of(200, 1, "failed")]
    then = Report([replace(r, status="passed") for r in safe] + rest)
    now = Report(
        [*safe, *(replace(r, status="passed" if n < 9 else "failed") for n, r in enumerate(rest))]
    )
    assert Gate().decide(now, then).passed
    decision = Gate(tags=["safety"]).decide(now, then)
    assert "the pass rate of tag 'safety' fell from 100 % to 0 %" in str(decision)
    assert now.compare(then).per_tag["safety"].trend == "worse"


def test_a_tag_of_which_too_few_cases_compare_is_a_miss_and_loses_nothing():
    then = now = trials_of(12, 1, "passed")
    decision = Gate(tags=["nowhere"]).decide(now, then)
    assert decision.exit_code == 3
    assert "nowhere: fewer than 6 cases with this tag can be compared" in str(decision)
    assert "too few cases compare to show a change: nowhere" in str(decision.comparison)


def test_several_baselines_count_together():
    runs = [replace(trials_of(8, 1, "passed"), id=f"r{n}") for n in range(3)]
    pooled = Report.pooled(runs)
    assert [r.trial for r in pooled.by_case()["c0"]] == [1, 2, 3]
    now = Report([*trials_of(7, 1, "passed"), CaseResult(case_id="c7", status="failed")])
    assert now.compare(runs).cases[-1].before == pooled.compare(pooled).cases[-1].before
    assert now.compare(runs).suspects[0].case_id == "c7"
    assert len(Report.pooled([runs[0], runs[0]])) == 8
    with pytest.raises(BadInput, match="no report to pool"):
        Report.pooled([])


def test_many_names_are_cut():
    decision = Gate(min_pass_rate=0, fail_on=["skipped"]).decide(report(passed=1, skipped=12))
    assert str(decision).startswith("12 cases skipped: skipped0, skipped1, ")
    assert str(decision).endswith("skipped9 and 2 more")


def test_skipped_cases_keep_it_shut_only_if_asked():
    some = report(passed=1, skipped=1)
    assert Gate().decide(some).passed
    assert str(Gate(fail_on=["regression", "skipped"]).decide(some)) == "1 case skipped: skipped0"


def paid(*costs: float | None) -> Report:
    agent, user, judge = costs
    case = CaseResult(case_id="a", status="passed", ended="completed", cost=agent)
    return Report([replace(case, user_cost=user, judge_cost=judge)])


def test_what_agents_users_and_judges_cost_together_may_be_too_much():
    gate = Gate(max_cost=0.5)
    assert gate.decide(paid(0.25, 0.125, 0.125)).passed
    decision = gate.decide(paid(0.25, 0.125, 0.25))
    assert str(decision) == "the cost of $0.6250 is above a maximum of $0.5000"
    assert [missed.kind for missed in decision.missed] == ["cost"]
    assert not decision.broke
    assert Gate().decide(paid(0.25, 0.125, 0.25)).passed


def test_a_small_cost_above_a_smaller_maximum_is_told_apart_from_it():
    decision = Gate(max_cost=0.00001).decide(paid(0.00003, 0.0, 0.0))
    assert str(decision) == "the cost of $0.00003 is above a maximum of $0.00001"


@pytest.mark.parametrize("costs", [(None, 0.0, 0.0), (0.0, None, 0.0), (0.0, 0.0, None)])
def test_a_cost_that_nobody_knows_is_not_shown_to_be_low_enough(costs):
    decision = Gate(max_cost=5).decide(paid(*costs))
    assert str(decision) == "the cost is unknown, so a maximum of $5.00 cannot be shown"
    assert Gate().decide(paid(*costs)).passed


def test_a_run_that_broke_may_have_been_too_dear_as_well():
    broke = Report([*report(errors=1), *paid(2.0, 0.0, 0.0)])
    decision = Gate(max_cost=1).decide(broke)
    assert [missed.kind for missed in decision.missed] == ["errors", "cost"]


@pytest.mark.parametrize(
    "given, told",
    [
        ({"min_pass_rate": 90}, "min_pass_rate=90 is not a share"),
        ({"min_pass_rate": float("nan")}, "min_pass_rate=nan is not a share"),
        ({"max_errors": -1}, "max_errors=-1 is not a count"),
        ({"max_cost": -0.1}, "max_cost=-0.1 is not an amount"),
        ({"max_cost": float("nan")}, "max_cost=nan is not an amount"),
        ({"threshold": 5}, "threshold=5 is not a difference"),
        ({"fail_on": ["regressions"]}, "fail_on='regressions' is unknown"),
    ],
)
def test_a_gate_that_cannot_be_meant_is_refused(given, told):
    with pytest.raises(BadInput, match=told):
        Gate(**given)


@pytest.mark.parametrize(
    "asked", [{"tags": ["safety"]}, {"metrics": ["m"]}, {"fail_on": ["removed"]}]
)
def test_what_only_a_baseline_can_show_is_refused_without_one(asked: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match="needs a baseline"):
        Gate(**asked).decide(report(passed=1))


def test_a_metric_that_nothing_could_show_a_change_of_gates_nothing_and_is_told():
    def scored(value: float, count: int) -> Report:
        made = [CaseResult(case_id=f"c{n}", status="passed") for n in range(count)]
        return Report([replace(one, scores={"m": Score(value)}) for one in made])

    assert Gate(metrics=["m"]).decide(scored(0.9, 8), scored(0.9, 8)).passed
    for name, count in (("misspelt", 8), ("m", 7)):
        decision = Gate(metrics=[name]).decide(scored(0.9, count), scored(0.9, count))
        assert decision.exit_code == 3
        assert f"{name}: measured on fewer than 8 cases of both reports" in str(decision)


@pytest.mark.parametrize(
    "given",
    [
        {"min_pass_rate": True},
        {"min_pass_rate": "0.9"},
        {"max_errors": 1.5},
        {"max_errors": float("nan")},
        {"max_errors": "3"},
        {"max_cost": "1"},
        {"threshold": True},
        {"confident": "yes"},
        {"tags": "safety"},
        {"metrics": "m"},
        {"fail_on": "removed"},
        {"fail_on": None},
        {"tags": [1]},
        {"metrics": None},
        {"max_cost": float("inf")},
        {"max_cost": 10**400},
    ],
)
def test_a_gate_of_another_type_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match=next(iter(given))):
        Gate(**given)


def adaptive(ends: str, *ids: str) -> Report:
    """Trials of these cases in an adaptive run: all of them end in turn as `ends` says, p or f."""
    status: dict[str, Status] = {"p": "passed", "f": "failed"}
    score = {"p": Score(1.0), "f": Score(0.0)}
    found = [
        CaseResult(case_id=case_id, trial=n, status=status[end], scores={"m": score[end]})
        for case_id in ids
        for n, end in enumerate(ends, 1)
    ]
    return Report(found, adaptive=True)


def test_adaptive_trials_that_leave_the_minimum_open_do_not_reach_it():
    gate = Gate(min_pass_rate=0.6)
    unclear = gate.decide(adaptive("ppp", "a", "b"))
    assert unclear.exit_code == 1
    assert "adaptive trials did not show that the minimum is reached" in str(unclear)
    assert "leaves open whether it reaches the minimum of 60 %" in str(unclear)
    ids = [f"c{n}" for n in range(20)]
    assert gate.decide(adaptive("ppp", *ids)).passed
    assert gate.decide(replace(adaptive("ppp", "a", "b"), adaptive=False)).passed


@pytest.mark.parametrize("gate", [Gate(), Gate(min_pass_rate=1)])
def test_a_minimum_that_adaptive_trials_can_never_show_is_refused(gate):
    whole = adaptive("ppp", "a", "b")
    with pytest.raises(BadInput, match=r"--min-pass-rate\) below 1"):
        gate.decide(whole)
    assert Gate().decide(whole, whole).exit_code != 3  # no minimum applies against a baseline


def of_runs(*reports: Report) -> Report:
    return together(reports, [f"{n}.json" for n in range(len(reports))])


def test_adaptive_runs_are_judged_as_a_whole_though_each_stopped_at_a_round_of_its_own():
    ids = [f"c{n}" for n in range(20)]
    long = adaptive("fp" + 10 * "p", *(f"d{n}" for n in range(8)))
    short, sure = adaptive("p", "e"), adaptive("pp", *ids)
    gate = Gate(min_pass_rate=0.7)
    assert gate.decide(long).passed
    assert not gate.decide(short).passed
    bad = adaptive(6 * "f", "bad")
    perfect = [adaptive(20 * "p", f"a{n}") for n in range(9)]
    for runs, code in (
        ([sure, long], 0),
        ([long, short], 1),
        ([short, adaptive("p", "f")], 1),
        ([adaptive(6 * "p", *ids), bad], 0),
        ([bad, *perfect], 0),
        ([bad, *perfect[:2]], 1),
    ):
        whole = of_runs(*runs)
        again = report_from(report_data(whole), "all.json")
        assert [gate.decide(one).exit_code for one in (whole, again)] == [code, code]


def test_adaptive_runs_are_judged_the_same_without_their_secrets():
    secret = "sk-proj-" + "a1B2c3D4" * 5
    names = [f"c{n}" for n in range(8)]
    whole = of_runs(adaptive("pppp", f"key {secret}", *names), adaptive("ppp", *"abcdefghi"))
    shown = report_from(report_data(redacted(whole)), "all.json")
    assert secret not in str(shown.parts)
    assert [name for part in shown.parts for name in part] == list(shown.by_case())
    assert Gate(min_pass_rate=0.8).decide(shown).passed
    assert Gate(min_pass_rate=0.8).decide(whole).passed


def test_cases_of_no_adaptive_run_count_with_the_rate_they_had():
    ids = [f"c{n}" for n in range(8)]
    run = adaptive("pppp", *ids)
    fixed = replace(adaptive("p", "e1", "e2"), adaptive=False)
    poor = replace(adaptive("f", "e1", "e2"), adaptive=False)
    gate = Gate(min_pass_rate=0.8)
    assert gate.decide(run).passed
    assert gate.decide(of_runs(run, fixed)).passed
    assert gate.decide(of_runs(fixed, run)).passed
    open_still = gate.decide(of_runs(poor, run))
    assert "leaves open whether it reaches the minimum of 80 %" in str(open_still)


def test_too_many_errors_come_with_their_reasons():
    reasons = ["the model is away"] * 3 + ["tool 'refund' has no mock\nPaste one"] + ["a", "b"]
    results = [
        CaseResult(case_id=f"c{n}", status="error", error=Problem("agent", why))
        for n, why in enumerate(reasons)
    ]
    assert str(Gate(max_errors=2).decide(Report(results))) == (
        "6 cases ended in an error, 2 allowed: 3 x agent: the model is away; "
        "1 x agent: tool 'refund' has no mock; 1 x agent: a; and 1 other reason"
    )
