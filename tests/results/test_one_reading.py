"""Every figure of a report comes from one reading of its results, and is what it was before."""

import gc
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import fsum, isclose
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from greenroom import Report
from greenroom.cases.scores import NotApplicable, Outcome, Score, Unmeasured
from greenroom.ledger.messages import Usage
from greenroom.ledger.questions import Spending
from greenroom.reports import shown
from greenroom.reports.html import render_html
from greenroom.results import CaseResult, Gate, compare
from greenroom.results.data import facts_in, report_data, verdict_data, verdict_in
from greenroom.results.endings import EVALUATED, Problem, Status
from greenroom.results.facts import Facts, TrialFacts
from greenroom.results.reporters import render_report
from greenroom.results.statistics.intervals import of_cases
from greenroom.results.stored_results import ReadResults
from greenroom.results.text import repeats


class Kept(ReadResults):
    """Results kept as JSON text, as a store keeps them; counts how often they are read."""

    def __init__(self, results: Sequence[CaseResult]) -> None:
        self.texts = [json.dumps(verdict_data(result)) for result in results]
        self.ids = [result.case_id for result in results]
        self.readings = 0
        self.most_alive = 0

    def __len__(self) -> int:
        return len(self.texts)

    def read(self, first: int = 0, count: int | None = None) -> Iterator[CaseResult]:
        self.readings += 1
        texts = self.texts[first:] if count is None else self.texts[first : first + count]
        for text in texts:
            yield verdict_in(text, "a test", None)

    def facts(self) -> Iterator[Facts]:
        self.readings += 1
        for number, text in enumerate(self.texts):
            yield facts_in(text, "a test", None)
            if len(self.texts) > 200 and number % 300 == 299:
                alive = sum(isinstance(one, TrialFacts) for one in gc.get_objects())
                self.most_alive = max(self.most_alive, alive)

    def of_case(self, case_id: str) -> list[CaseResult]:
        texts = [text for text, own in zip(self.texts, self.ids, strict=True) if own == case_id]
        return [verdict_in(text, "a test", None) for text in texts]


# Any results

STATUSES: list[Status] = ["passed", "passed", "failed", "error", "terminated", "skipped"]
KEY = "sk-proj-" + "Ab1Cd2Ef3Gh4Ij5Kl6Mn7" * 2
AMOUNTS = st.none() | st.sampled_from([0.0, 0.1, 0.25, 1e-9, 3.7])
USAGES = st.none() | st.builds(Usage, st.integers(0, 9), st.integers(0, 9))
MODELS = st.dictionaries(st.sampled_from(["gpt", "opus"]), st.integers(1, 3), max_size=2)
OUTCOMES: st.SearchStrategy[Outcome] = st.one_of(
    st.builds(
        Score, st.floats(0, 1), st.booleans(), reason=st.sampled_from(["", "too short\nby far"])
    ),
    st.builds(NotApplicable, st.just("says nothing")),
    st.builds(Unmeasured, st.just("the judge was out"), st.sampled_from(["metric", "user_agent"])),
)
NODES = st.none() | st.dictionaries(
    st.sampled_from(["", "desk", "clerk"]),
    st.builds(Spending, USAGES, AMOUNTS, MODELS, st.just(0.5)),
    max_size=2,
)
PROBLEMS = st.builds(
    Problem,
    st.sampled_from(["agent", "metric", "system"]),
    st.sampled_from(["it fell over\nin detail", "", "{side}"]),
    st.sampled_from(["", "AgentFailed"]),
)


@st.composite
def trials_of(draw: st.DrawFn, case_id: str) -> list[CaseResult]:
    """The trials of one case, which may end in any way."""
    count = draw(st.integers(1, 4))
    found: list[CaseResult] = []
    for number in range(1, count + 1):
        status = draw(st.sampled_from(STATUSES))
        found.append(
            CaseResult(
                case_id=case_id,
                status=status,
                name=draw(st.sampled_from(["", "A refund"])),
                trial=number,
                tags=tuple(
                    draw(st.lists(st.sampled_from(["smoke", "slow", "smoke "]), max_size=3))
                ),
                scores=draw(
                    st.dictionaries(
                        st.sampled_from(["tone", "called('a')", "called('b')"]), OUTCOMES
                    )
                ),
                ended=draw(st.sampled_from([None, "completed", "max_turns", "error"])),
                error=draw(PROBLEMS) if status == "error" else draw(st.none() | PROBLEMS),
                turns=draw(st.integers(0, 3)),
                seconds=draw(st.sampled_from([0.0, 0.1, 2.5])),
                usage=draw(USAGES),
                cost=draw(AMOUNTS),
                user_usage=draw(USAGES),
                user_cost=draw(AMOUNTS),
                judge_usage=draw(USAGES),
                judge_cost=draw(AMOUNTS),
                models=draw(MODELS),
                user_models=draw(MODELS),
                judge_models=draw(MODELS),
                nodes=draw(NODES),
                notes=tuple(draw(st.lists(st.sampled_from(["slow", "late"]), max_size=2))),
                fixed=draw(st.booleans()),
                replaced=draw(st.just({}) | st.just({"tone": "by a hook"})),
                recorded_at=draw(st.none() | st.just(1.5)),
            )
        )
    return found


@st.composite
def any_results(draw: st.DrawFn) -> list[CaseResult]:
    """The results of some cases, in their order."""
    ids = [f"c{n}" for n in range(draw(st.integers(0, 6)))]
    return [result for case_id in ids for result in draw(trials_of(case_id))]


# As it was before: each figure by its own way through the results


def sum_or_none(found: Sequence[Any], start: Any) -> Any:
    return None if None in found else sum(found, start)


def figures_before(
    results: Sequence[CaseResult], confirmed: Sequence[CaseResult]
) -> dict[str, Any]:
    paid = [*results, *confirmed]
    ran = [result for result in paid if result.ended is not None]
    found: dict[str, Any] = {"statuses": [r.status for r in results]}
    for role in ("", "user_", "judge_"):
        found[f"{role}cost"] = sum_or_none([getattr(r, f"{role}cost") for r in ran], 0.0)
        found[f"{role}usage"] = sum_or_none([getattr(r, f"{role}usage") for r in ran], Usage())
        names = dict.fromkeys(name for r in paid for name in getattr(r, f"{role}models"))
        found[f"{role}models"] = {
            name: sum(getattr(r, f"{role}models").get(name, 0) for r in paid) for name in names
        }
    found["tallies"] = tallies_before(results)
    for name in dict.fromkeys(name for r in results for name in r.scores):
        outcomes = [r.scores[name] for r in results if name in r.scores]
        scores = [o for o in outcomes if isinstance(o, Score)]
        found[f"metric {name}"] = (
            sum(s.value for s in scores) / len(scores) if scores else None,
            sum(s.passed for s in scores),
            sum(not s.passed for s in scores),
            sum(isinstance(o, NotApplicable) for o in outcomes),
            sum(isinstance(o, Unmeasured) for o in outcomes),
            min((s.value for s in scores), default=None),
            max((s.value for s in scores), default=None),
        )
    for tag in sorted({tag for r in results for tag in r.tags}):
        some = [r for r in results if tag in r.tags]
        tallies = tallies_before(some)
        rates = [passed / evaluated for passed, evaluated in tallies]
        found[f"tag {tag}"] = (
            len(some),
            sum(r.passed for r in some),
            sum_or_none([r.cost for r in some if r.ended is not None], 0.0),
            of_cases(tallies),
            fsum(rates) / len(rates) if rates else None,
        )
    return found


def tallies_before(results: Sequence[CaseResult]) -> list[tuple[int, int]]:
    tallies: dict[str, tuple[int, int]] = {}
    for result in results:
        if result.status in EVALUATED:
            passed, evaluated = tallies.get(result.case_id, (0, 0))
            tallies[result.case_id] = (passed + result.passed, evaluated + 1)
    return list(tallies.values())


def figures_now(report: Report) -> dict[str, Any]:
    found: dict[str, Any] = {
        "statuses": [r.status for r in report.results],
        "tallies": report.totals.tallies,
    }
    for role in ("", "user_", "judge_"):
        for name in ("cost", "usage", "models"):
            found[f"{role}{name}"] = getattr(report, f"{role}{name}")
    for name, one in report.metrics.items():
        counts = (one.passed, one.failed, one.not_applicable, one.unmeasured)
        found[f"metric {name}"] = (one.mean, *counts, one.min, one.max)
    for tag, one in report.per_tag.items():
        found[f"tag {tag}"] = (one.total, one.passed, one.cost, one.interval, one.pass_rate)
    return found


def same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return isclose(one, other, rel_tol=1e-12, abs_tol=1e-15)
    if isinstance(one, tuple | list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


@given(any_results(), trials_of("c0"))
def test_every_figure_is_what_its_own_way_through_the_results_gives(
    results: list[CaseResult], again: list[CaseResult]
) -> None:
    confirmed = tuple(again)
    before = figures_before(results, confirmed)
    for given_results in (results, Kept(results)):
        now = figures_now(Report(given_results, confirmed=confirmed))
        assert now.keys() == before.keys()
        assert [name for name in before if not same(now[name], before[name])] == []


@given(any_results(), trials_of("c0"))
def test_what_a_comparison_adds_up_on_its_way_is_what_the_totals_say(
    results: list[CaseResult], again: list[CaseResult]
) -> None:
    for given_results in (results, Kept(results)):
        report = Report(given_results, confirmed=tuple(again))
        compare(report, report)
        found = report.paid, (report.cost, report.user_cost, report.judge_cost)
        paid = report.totals.paid
        assert found == (paid, (paid.agent, paid.user, paid.judge))


@settings(max_examples=8)
@given(any_results(), any_results())
def test_results_that_are_read_say_the_same_as_results_that_are_kept(
    results: list[CaseResult], earlier: list[CaseResult]
) -> None:
    kept, read = Report(results, id="now"), Report(Kept(results), id="now")
    assert read == kept
    assert report_data(read) == report_data(kept)
    assert repeats(read) == repeats(kept)
    assert str(read) == str(kept)
    for name in ("json", "markdown", "html", "junit", "console"):
        assert render_report(name, read) == render_report(name, kept), name
    then, then_read = Report(earlier, id="then"), Report(Kept(earlier), id="then")
    assert compare(then_read, read).data() == compare(then, kept).data()
    assert str(compare(then_read, read)) == str(compare(then, kept))
    assert Gate().decide(read, then_read).missed == Gate().decide(kept, then).missed


def test_the_verdicts_of_a_comparison_look_at_the_first_trial_of_each_side() -> None:
    broke = CaseResult(case_id="a", status="error", error=Problem("agent", "{side} fell", "Oops"))
    [case] = compare(Report([broke]), Report([replace(broke, status="skipped")])).cases
    assert (
        case.why
        == "error before in phase agent: {side} fell; skipped now in phase agent: {side} fell"
    )


# Once, and few at a time


def many(count: int) -> list[CaseResult]:
    return [
        CaseResult(
            case_id=f"c{n}",
            status="failed" if n % 9 == 0 else "passed",
            ended="completed",
            scores={"tone": Score(0.2 if n % 9 == 0 else 0.8)},
            tags=["smoke"],
            cost=0.1,
            user_cost=0.0,
            judge_cost=0.0,
        )
        for n in range(count)
    ]


@pytest.mark.parametrize("show", ["gate", "totals", "html", "compare"])
def test_the_rows_of_a_run_are_read_once_and_never_all_held(
    show: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shown, "MOST_TRIALS", 50)
    results, earlier = Kept(many(600)), Kept(many(600))
    report = Report(results)
    if show == "gate":
        Gate(min_pass_rate=0.5, max_cost=1e9).decide(report)
    elif show == "html":
        render_html(report)
    elif show == "compare":
        str(compare(Report(earlier), report))
        assert earlier.readings == 1
    else:
        assert all([report.pass_rate, report.metrics, report.per_tag, report.spent])
    assert results.readings == 1
    assert 0 < results.most_alive < 150


def test_a_page_of_very_many_cases_lists_the_worst_and_says_how_many_are_not_inside(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shown, "MOST_TRIALS", 50)
    for results in (many(300), Kept(many(300))):
        text = render_html(Report(results))
        assert "250 of 300 cases are not inside this file; those that are ended worst." in text
        inside = json.loads(text.split('id="index">', 1)[1].split("</script>", 1)[0])
        assert inside["head"]["counts"] == {"passed": 266, "failed": 34}
        listed = [row["status"] for row in inside["rows"]]
        assert (len(listed), listed.count("failed")) == (50, 34)
    assert "not inside" not in render_html(Report(many(50)))


def test_a_page_of_cases_with_many_trials_holds_no_more_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shown, "MOST_TRIALS", 50)
    trials = [replace(one, trial=n) for one in many(30) for n in range(1, 9)]
    text = render_html(Report(Kept(trials)))
    assert "24 of 30 cases are not inside this file; those that are ended worst." in text
    whole = [replace(one, trial=n) for one in many(1) for n in range(1, 61)]
    assert "not inside" not in render_html(Report(Kept(whole)))


def test_results_that_are_read_lose_their_secrets_wherever_they_are_shown() -> None:
    told = [
        *many(150),
        CaseResult(
            case_id=f"with {KEY}",
            status="error",
            ended="error",
            tags=(KEY,),
            error=Problem("agent", f"refused: {KEY}", "Oops"),
        ),
    ]
    kept, read = Report(told), Report(Kept(told))
    assert KEY in "".join(facts.case_id for facts in Kept(told).facts())
    for name in ("json", "markdown", "html", "junit", "console"):
        text = render_report(name, read)
        assert KEY not in text, name
        assert text == render_report(name, kept), name
