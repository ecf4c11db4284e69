"""Two reports side by side: what got worse, what got better, what cannot be told."""

import json
from dataclasses import replace
from itertools import product
from math import comb
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom import Agent, Case, Report, Score, Scripted, rehearse
from greenroom.cases import Metric
from greenroom.errors import BadFile, BadInput
from greenroom.ledger.plain import as_array, as_object
from greenroom.metrics import contains, exact, response_match_score
from greenroom.results import CaseResult, Problem, Status, compare, compare_all
from greenroom.results.shards import together
from greenroom.results.statistics.exact import fisher, sign


def result(
    case_id: str, status: Status = "passed", score: float | None = None, **more
) -> CaseResult:
    value = {"passed": 1.0, "failed": 0.0, "terminated": 0.0}.get(status)
    value = value if score is None else score
    scores = {} if value is None else {"m": Score(value, status == "passed")}
    return CaseResult(case_id=case_id, status=status, scores=scores, **more)


def trials(case_id: str, passed: int, of: int, high: float = 1.0, low: float = 0.0):
    return [
        result(
            case_id, "passed" if n < passed else "failed", high if n < passed else low, trial=n + 1
        )
        for n in range(of)
    ]


def verdicts(then: list[CaseResult], now: list[CaseResult], **options) -> dict[str, str]:
    found = compare(Report(then), Report(now), **options)
    return {case.case_id: case.verdict for case in found.cases}


def test_cases_are_matched_by_id_and_not_by_position():
    then = [result("a"), result("b", "failed"), result("gone")]
    now = [result("new"), result("b"), result("a", "failed")]
    assert verdicts(then, now) == {
        "new": "added",
        "b": "flipped",
        "a": "flipped",
        "gone": "removed",
    }


@pytest.mark.parametrize(
    "then, now, verdict",
    [
        ("passed", "passed", "unchanged"),
        ("passed", "failed", "flipped"),
        ("passed", "terminated", "flipped"),
        ("failed", "terminated", "unchanged"),
        ("terminated", "passed", "flipped"),
        ("passed", "error", "unclear"),
        ("error", "passed", "unclear"),
        ("error", "error", "unclear"),
        ("skipped", "failed", "unclear"),
    ],
)
def test_one_flip_is_no_regression_and_what_broke_proves_nothing(then, now, verdict):
    assert verdicts([result("a", then)], [result("a", now)]) == {"a": verdict}


def test_scores_of_trials_that_broke_prove_nothing():
    then = trials("a", 5, 5)
    broken = [result("a", "error", 0.0, trial=n) for n in range(1, 5)]
    now = [*broken, result("a", "failed", 0.0, trial=5)]
    assert verdicts(then, now) == {"a": "suspect"}
    assert verdicts(now, then) == {"a": "unclear"}


@pytest.mark.parametrize("status", ["error", "skipped"])
def test_scores_of_trials_that_broke_enter_no_mean(status):
    good, bad = ({"m": Score(value), "only": Score(value)} for value in (1.0, 0.0))
    then = [replace(result("a", trial=1), scores=good), result("a", trial=2)]
    now = [result("a", trial=1), replace(result("a", status, trial=2), scores=bad)]
    (case,) = compare(Report(then), Report(now)).cases
    assert case.verdict == "unchanged"
    assert list(case.metrics) == ["m"]
    assert (case.metrics["m"].before, case.metrics["m"].now) == (1.0, 1.0)


def test_scores_of_terminated_trials_count():
    now = [result("a", "terminated", trial=n + 1) for n in range(5)]
    (case,) = compare(Report(trials("a", 5, 5)), Report(now)).cases
    assert (case.verdict, case.metrics["m"].now) == ("regressed", 0.0)


def test_an_error_on_one_side_says_where_and_why():
    broke = replace(result("a", "error"), error=Problem("agent", "it fell over\nin detail", "Oops"))
    [case] = compare(Report([result("a")]), Report([broke])).cases
    assert case.why == "error now in phase agent: it fell over"


def test_a_score_of_one_case_never_makes_it_a_regression():
    then = [result("a", score=0.9)]
    assert verdicts(then, [result("a", score=0.1)]) == {"a": "unchanged"}
    assert verdicts(trials("a", 4, 4, high=0.9), trials("a", 4, 4, high=0.7)) == {"a": "unchanged"}
    [case] = compare(Report(then), Report([result("a", score=0.1)])).cases
    assert case.metrics["m"].delta == pytest.approx(-0.8)


def scored(*values: float) -> Report:
    return Report([result(f"c{n}", score=value) for n, value in enumerate(values)])


def test_the_mean_of_a_metric_that_fell_significantly_and_far_enough_is_worse():
    then, now = scored(*[0.9] * 10), scored(*[0.7] * 10)
    found = compare(then, now)
    assert [missed.why for missed in found.worse] == [
        "the mean of m fell from 0.90 to 0.70 (p = 0.002)"
    ]
    assert compare(then, now, threshold=0.2).worse == []
    assert compare(then, now, metrics=["other"]).worse == []
    assert compare(now, then).worse == []
    assert "mean 0.90 -> 0.70: significantly lower (p = 0.002, 1 metric compared)" in str(found)


def test_a_metric_of_fewer_than_eight_cases_is_never_said_to_differ():
    assert compare(scored(*[0.9] * 7), scored(*[0.1] * 7)).worse == []


def test_metrics_are_corrected_for_as_many_as_were_compared():
    def several(value: float) -> Report:
        names = [f"m{n}" for n in range(8)]
        return Report(
            [replace(result(f"c{n}"), scores=dict.fromkeys(names, Score(value))) for n in range(8)]
        )

    # Each p is 2 / 2^8, which is below 1 % alone, and above it eight times.
    assert compare(several(0.9), several(0.7)).moved == {}
    assert list(compare(several(0.9), several(0.7), metrics=["m3"]).moved) == ["m3"]


def test_a_threshold_that_is_no_difference_is_refused():
    with pytest.raises(BadInput, match="threshold=5 is not a difference"):
        compare(Report([]), Report([]), threshold=5)


# Several trials


def test_few_trials_cannot_tell_and_say_so():
    assert verdicts(trials("a", 3, 3), trials("a", 2, 3)) == {"a": "unclear"}
    assert verdicts(trials("a", 3, 3), trials("a", 0, 3)) == {"a": "suspect"}
    assert verdicts(trials("a", 1, 1), trials("a", 0, 3)) == {"a": "suspect"}


def test_enough_trials_tell():
    assert verdicts(trials("a", 4, 4), trials("a", 0, 4)) == {"a": "regressed"}
    assert verdicts(trials("a", 2, 20), trials("a", 18, 20)) == {"a": "improved"}
    assert verdicts(trials("a", 3, 5), trials("a", 3, 5)) == {"a": "unchanged"}


def test_trials_that_broke_do_not_count():
    then = [*trials("a", 4, 4), result("a", "error", trial=5)]
    [case] = compare(Report(then), Report(trials("a", 4, 4))).cases
    assert case.verdict == "unchanged"
    assert case.p == 1


def test_fishers_test_agrees_with_counting_every_table():
    for total, total_then in product(range(1, 7), repeat=2):
        for passed, passed_then in product(range(total + 1), range(total_then + 1)):
            good, everything = passed + passed_then, total + total_then
            weight = {
                k: comb(total, k) * comb(total_then, good - k)
                for k in range(everything + 1)
                if 0 <= good - k <= total_then and k <= total
            }
            seen = weight[passed]
            expected = sum(w for w in weight.values() if w <= seen) / comb(everything, good)
            assert fisher(passed, total, passed_then, total_then) == pytest.approx(expected)


def test_known_values_of_the_exact_tests():
    assert fisher(3, 3, 0, 3) == pytest.approx(0.1)
    assert fisher(4, 4, 0, 4) == pytest.approx(2 / 70)
    assert fisher(1, 10, 8, 10) == pytest.approx(0.005477, abs=1e-6)
    assert sign(0, 6) == pytest.approx(0.03125)
    assert sign(5, 5) == 1
    assert sign(0, 0) == 1


@given(st.integers(1, 30), st.integers(1, 30), st.data())
def test_the_exact_tests_are_symmetric_and_are_shares(total, total_then, data):
    passed = data.draw(st.integers(0, total))
    passed_then = data.draw(st.integers(0, total_then))
    p = fisher(passed, total, passed_then, total_then)
    assert 0 < p <= 1
    assert p == pytest.approx(fisher(passed_then, total_then, passed, total))
    assert p == pytest.approx(fisher(total - passed, total, total_then - passed_then, total_then))


# The whole


def many(n: int, status: Status) -> list[CaseResult]:
    return [result(f"c{i}", status) for i in range(n)]


def test_the_whole_is_worse_only_if_chance_does_not_explain_it():
    assert compare(Report(many(5, "passed")), Report(many(5, "failed"))).trend == "unclear"
    worse = compare(Report(many(6, "passed")), Report(many(6, "failed")))
    assert (worse.trend, worse.p) == ("worse", 0.03125)
    assert compare(Report(many(6, "failed")), Report(many(6, "passed"))).trend == "better"
    assert compare(Report(many(6, "passed")), Report(many(6, "passed"))).trend == "same"
    nothing = compare(Report(many(6, "error")), Report(many(6, "passed")))
    assert (nothing.trend, nothing.p) == ("unclear", None)


def test_metrics_are_compared_over_the_cases_that_both_sides_measured():
    then = [result("a", score=0.8), result("b", score=0.6), result("gone", score=0.0)]
    now = [result("a", score=0.9), result("b", score=0.7), result("new", score=0.1)]
    change = compare(Report(then), Report(now)).metrics["m"]
    assert (change.before, change.now) == (pytest.approx(0.7), pytest.approx(0.8))
    assert change.delta == pytest.approx(0.1)


@given(
    st.dictionaries(
        st.text(min_size=1, max_size=4), st.sampled_from(["passed", "failed", "error"])
    ),
    st.dictionaries(
        st.text(min_size=1, max_size=4), st.sampled_from(["passed", "failed", "error"])
    ),
)
def test_every_case_of_both_sides_gets_one_verdict_and_the_mirror_is_the_opposite(then, now):
    before = Report([result(name, status) for name, status in then.items()])
    after = Report([result(name, status) for name, status in now.items()])
    there = {c.case_id: c.verdict for c in compare(before, after).cases}
    back = {c.case_id: c.verdict for c in compare(after, before).cases}
    opposite = {"regressed": "improved", "improved": "regressed", "added": "removed"}
    opposite |= {"removed": "added"}
    assert there.keys() == then.keys() | now.keys()
    assert {name: opposite.get(verdict, verdict) for name, verdict in there.items()} == back


# What is asked for


AGENT = Agent("a", model=Scripted("three"))


def played(*cases: Case) -> Report:
    return rehearse(AGENT, cases)


def test_a_case_that_asks_for_something_else_is_named_and_not_compared(tmp_path):
    then = played(Case("a", says="How many?", metrics=[contains("three")]))
    now = played(Case("a", says="How many cups?", metrics=[contains("three")]))
    stricter = played(Case("a", says="How many?", metrics=[contains("four")]))
    for current in (now, stricter):
        [case] = Report.load(then.save(tmp_path / "r.json")).compare(current).cases
        assert (case.verdict, case.why) == ("changed", "the case was changed: not comparable")


def test_a_name_or_a_tag_is_no_other_question(tmp_path):
    then = played(Case("a", says="How many?", metrics=[contains("three")]))
    now = played(
        Case("a", says="How many?", metrics=[contains("three")], name="Cups", tags=["smoke"])
    )
    [case] = now.compare(Report.load(then.save(tmp_path / "r.json"))).cases
    assert (case.verdict, case.known) == ("unchanged", True)


def test_a_secret_that_the_file_lost_is_no_other_question(tmp_path):
    case = Case("a", says="I am sk-ant-0123456789abcdefghij", metrics=[contains("three")])
    then, now = played(case), played(case)
    assert "sk-ant" not in then.save(tmp_path / "r.json").read_text()
    [found] = now.compare(Report.load(tmp_path / "r.json")).cases
    assert found.verdict == "unchanged"


def test_where_the_case_was_not_kept_nobody_knows_whether_it_is_the_same():
    [case] = compare(Report([result("a")]), Report([result("a")])).cases
    assert (case.verdict, case.known) == ("unchanged", False)
    shown = str(compare(Report([result("a")]), Report([result("a")])))
    assert "It is unknown whether 1 case asked for the same thing before." in shown


def measured(*metrics: Metric) -> Report:
    return rehearse(AGENT, [Case(f"c{n}", says="How many?") for n in range(2)], metrics=metrics)


@pytest.mark.parametrize(
    "then, now, told",
    [
        ([contains("three")], [contains("three"), contains("four")], "contains('four') only now"),
        ([contains("three"), exact("four")], [contains("three")], "exact('four') only before"),
        (
            [contains("three", "four", threshold=0.9, name="m")],
            [contains("three", "four", threshold=0.5, name="m")],
            "m with threshold 0.9 before, 0.5 now",
        ),
    ],
)
def test_what_was_measured_on_one_side_only_is_told(tmp_path, then, now, told):
    before, after = measured(*then), measured(*now)
    loaded = Report.load(before.save(tmp_path / "r.json"))
    words = f"2 cases were measured differently, which may be all that changed: {told}."
    for baseline in (before, loaded):
        changes = after.compare(baseline)
        assert words in str(changes)
        cases = as_array(changes.data()["cases"])
        assert [as_object(case)["unlike"] for case in cases] == [told, told]
    assert "measured differently" not in str(before.compare(loaded))


def test_a_metric_that_kept_its_name_and_measures_something_else_is_told(tmp_path):
    before = measured(contains("four", name="m"), exact("three"))
    after = measured(contains("three", name="m"), exact("three"))
    files = [one.save(tmp_path / f"{n}.json") for n, one in enumerate((before, after))]
    loaded = list(map(Report.load, files))
    words = "m has other options, another model or other code now, which may be all that changed."
    for then, now in ((before, after), loaded, (together([before], ["a"]), after)):
        changes = now.compare(then)
        assert words in str(changes)
        assert changes.data()["remade"] == ["m"]
    assert compare([before, replace(after, id="x")], after).remade == ["m"]
    assert "remade" not in before.compare(loaded[0]).data()
    assert replace(before, measures={}).compare(after).remade == []


def test_a_metric_that_applies_to_no_case_makes_no_difference(tmp_path):
    then, now = measured(contains("three")), measured(contains("three"), response_match_score())
    assert now["c0"].scores["response_match_score"].value is None
    assert "measured differently" not in str(now.compare(then))


def test_a_secret_that_the_file_lost_is_no_other_metric(tmp_path):
    then = measured(contains("sk-ant-0123456789abcdefghij"))
    loaded = Report.load(then.save(tmp_path / "r.json"))
    assert "measured differently" not in str(then.compare(loaded))


def test_trials_of_a_baseline_that_other_metrics_measured_are_not_counted_together():
    lenient, strict = measured(contains("three")), measured(contains("three"), exact("four"))
    assert [len(Report.pooled(pair)) for pair in ((lenient, strict), (strict, strict))] == [2, 2]
    again = measured(contains("three"), exact("four"))
    assert len(Report.pooled([strict, again])) == 4


# Told and saved


@pytest.mark.parametrize("status", ["failed", "error"])
def test_a_new_case_that_did_not_pass_is_not_told_like_one_that_did(status):
    text = str(Report([result("a"), result("new", status)]).compare(Report([result("a")])))
    assert "  added       new  passed 0 of 1, with nothing to compare to" in text


def test_it_reads_as_plain_text():
    then = [result("a"), result("b", "failed"), result("c", score=0.9), result("gone")]
    now = [result("a", "failed"), result("b"), result("c", score=0.7), result("new")]
    text = str(Report(now).compare(Report(then, name="main.json")))
    assert text.splitlines() == [
        "Against main.json (3 cases, 1 trial there, 1 here):",
        "  pass rate   67 % -> 67 %  (0 points, 95 % interval -78 to +78): no significant change",
        "  m           mean 0.63 -> 0.57: no significant change",
        "  flipped     a     passed before, failed now (1 trial each)",
        "  flipped     b     failed before, passed now (1 trial each)",
        "  added       new",
        "  removed     gone",
        "1 flip is not proof. eval run --baseline runs flipped cases again.",
        "3 of 5 cases compare: 1 removed, 1 added",
        "It is unknown whether 3 cases asked for the same thing before.",
    ]


def test_what_is_significant_is_said_with_its_p():
    then, now = Report(many(20, "passed")), Report(many(20, "failed"))
    told = "100 % -> 0 %  (-100 points, 95 % interval -100 to -74): significantly worse (p = 2e-06)"
    assert told in str(compare(then, now))
    assert "significantly better (p = 2e-06)" in str(compare(now, then))
    assert "no change" in str(compare(then, then))


def test_it_is_saved_as_json_without_secrets(tmp_path: Path):
    broke = replace(
        result("a", "error"), error=Problem("agent", "401 for sk-ant-0123456789abcdefghij")
    )
    path = compare(Report([result("a")], id="x"), Report([broke], id="y")).save(
        tmp_path / "deep" / "c.json"
    )
    data = json.loads(path.read_text())
    assert (data["kind"], data["version"], data["threshold"]) == ("comparison", 1, 0.05)
    assert (data["baseline"]["id"], data["current"]["id"]) == ("x", "y")
    assert data["counts"]["unclear"] == 1
    assert data["cases"][0]["why"] == "error now in phase agent: 401 for [redacted:api_key]"


def test_one_that_cannot_be_saved_says_so(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(BadFile, match="cannot write the comparison"):
        compare(Report([]), Report([])).save(tmp_path / "file" / "c.json")


def test_several_reports_are_compared_with_one_baseline():
    baseline = Report([result("a")])
    found = compare_all(baseline, [Report([result("a")]), Report([result("a", "failed")])])
    assert [len(one.flipped) for one in found] == [0, 1]


def test_a_side_that_was_replayed_is_named():
    live, replayed = Report([result("a")]), Report([result("a", recorded_at=1.0), result("b")])
    assert "replayed" not in str(compare(live, live))
    for one, other, side in ((live, replayed, "report"), (replayed, live, "baseline")):
        found = compare(one, other)
        assert f"note on the {side}: 1 of 2 trials was replayed from recordings" in str(found)
        assert json.dumps(found.data()).count('"replayed": 1') == 1
