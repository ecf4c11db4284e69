"""A trial that broke has no scores: every metric, every phase, every door, every report."""

import json
import re
import socket
import subprocess
from contextlib import suppress
from dataclasses import replace
from threading import Event, Thread
from typing import Any

import pytest

from greenroom import (
    Agent,
    Case,
    EvalSet,
    Expect,
    Report,
    Score,
    Scripted,
    SimulatedUser,
    Unmeasured,
    call,
    evaluate,
    metric,
    rehearse,
    score,
    tool,
)
from greenroom.ledger import Ledger
from greenroom.metrics import (
    called,
    completed_within,
    contains,
    cost_within,
    efficiency,
    event_count,
    exact,
    first_answer_within,
    forbidden_calls,
    goals_achieved,
    hallucinations_v1,
    json_schema,
    judge,
    keywords,
    matches,
    response_match_score,
    safety_v1,
    simulator_quality,
    state_is,
    state_matches,
    tokens_within,
    tone,
    tool_name_match,
    tool_trajectory_avg_score,
    turn_within,
    turns_within,
)
from greenroom.results import CaseResult
from greenroom.results.reporters import load_reporter
from greenroom.store import Store
from greenroom.suite.recorded.rescores import rescore


@tool
def delete_all() -> str:
    """Delete everything."""
    raise AssertionError("a tool body ran in a rehearsal")


@metric
def of_ones_own(ledger: Ledger) -> bool:
    return True


YES = '{"reasoning": "fine", "verdict": true}'
JUDGE = Scripted(then=YES)
FAMILIES = [
    forbidden_calls("delete_*"),
    called("delete_all", never=True),
    efficiency(calls=3),
    tool_trajectory_avg_score(),
    tool_name_match(),
    cost_within(1.0),
    tokens_within(1000),
    completed_within(60),
    turns_within(9),
    turn_within(60),
    first_answer_within(60),
    event_count("tool_call", at_most=9),
    contains("done"),
    exact(),
    matches("[a-z]"),
    response_match_score(),
    keywords("done"),
    tone(),
    json_schema({"type": "string"}),
    state_is("session", "order", query={"$exists": False}),
    state_matches({"session": {"order": {"$exists": False}}}),
    judge("polite", "Was it polite?", model=JUDGE),
    safety_v1(model=JUDGE),
    hallucinations_v1(model=JUDGE),
    goals_achieved(model=JUDGE),
    simulator_quality(model=JUDGE),
    of_ones_own,
]
NAMES = {one.name for one in FAMILIES}
EXPECT = Expect(tools=[], contains="done", reference="done")


def reckless() -> Agent:
    return Agent("clerk", model=Scripted(call("delete_all"), "done"), tools=[delete_all])


def down() -> Agent:
    return Agent("clerk", model=Scripted(then=ConnectionError("no route to the provider")))


def talking() -> Agent:
    return Agent("clerk", model=Scripted(then="done"))


MUTE = SimulatedUser(goal="leave", model=Scripted(then=ValueError("the line is dead")))
BROKEN: dict[str, tuple[Agent, Case, str]] = {
    "system": (reckless(), Case("a", "Hi", expect=EXPECT), "'delete_all' was called"),
    "agent": (down(), Case("a", "Hi", expect=EXPECT), "no route to the provider"),
    "user_agent": (talking(), Case("a", "Hi", expect=EXPECT, user=MUTE), "the line is dead"),
    "not played": (
        talking(),
        Case("a", "Hi", expect=EXPECT, user=object()),
        "has the user <object",
    ),
}
PHASES = list(BROKEN)


def assert_unmeasured(result: CaseResult, phase: str, names: set[str] = NAMES) -> None:
    _, _, why = BROKEN[phase]
    assert (result.status, result.passed, result.broke) == ("error", False, True)
    assert result.error
    assert result.error.phase == ("system" if phase == "not played" else phase)
    assert names <= set(result.scores)
    for outcome in result.scores.values():
        assert isinstance(outcome, Unmeasured)
        assert outcome.why.startswith("the trial broke: ")
        assert why in outcome.why
        assert outcome.phase == result.error.phase


def played(phase: str, *metrics: Any, **options: Any) -> Report:
    agent, case, _ = BROKEN[phase]
    options = {"store": False, **options}
    return rehearse(agent, [case], metrics=metrics or FAMILIES, **options)


def test_each_of_these_metrics_measures_a_trial_that_did_not_break():
    case = Case("a", "Hi", expect=EXPECT)
    (result,) = rehearse(talking(), [case], metrics=FAMILIES, store=False)
    assert not result.broke
    measured = set(result.measured)
    assert {"forbidden_calls", "of_ones_own", "polite"} <= {name.split("(")[0] for name in measured}
    assert len(measured) > len(FAMILIES) / 2


@pytest.mark.parametrize("phase", PHASES)
def test_no_metric_of_a_broken_trial_has_a_score(phase):
    report = played(phase)
    assert_unmeasured(report.results[0], phase)
    assert all(found.mean is None for found in report.metrics.values())
    assert all((found.measured, found.unmeasured) == (0, 1) for found in report.metrics.values())
    assert (report.summary.pass_rate, report.summary.errors) == (None, 1)


@pytest.mark.parametrize("phase", ["system", "agent", "user_agent"])
async def test_a_broken_ledger_is_not_scored(phase, tmp_path):
    ledger = played(phase).results[0].ledger
    assert ledger is not None
    ledger.save(tmp_path / "run.jsonl")
    for given in (ledger, tmp_path / "run.jsonl"):
        found = await score(given, FAMILIES)
        assert set(found) >= NAMES
        assert {type(outcome) for outcome in found.values()} == {Unmeasured}


@pytest.mark.parametrize("phase", PHASES)
def test_no_judge_is_asked_about_a_broken_trial(phase):
    asked: list[object] = []

    def answer(request: object) -> str:
        asked.append(request)
        return YES

    polite = judge("polite", "Was it polite?", model=Scripted(then=answer))
    rehearse(talking(), [Case("a", "Hi")], metrics=[polite], store=False)
    assert asked  # the canary sings
    asked.clear()
    report = played(phase, polite)
    assert (asked, report.judge_cost or 0.0) == ([], 0.0)


@pytest.mark.parametrize("phase", PHASES)
def test_hooks_hear_no_score_of_a_broken_trial(phase):
    heard: list[tuple[str, type]] = []

    def hear(case: Case, name: str, outcome: object) -> None:
        heard.append((name, type(outcome)))

    played(phase, on_metric_complete=hear)
    assert {name for name, _ in heard} >= NAMES
    assert {kind for _, kind in heard} == {Unmeasured}


@pytest.mark.parametrize("phase", PHASES)
async def test_a_store_gives_none_back_and_rescoring_finds_none(phase, tmp_path):
    store = Store(tmp_path / "runs")
    agent, case, _ = BROKEN[phase]
    report = await evaluate(agent, [case], metrics=FAMILIES, store=store)
    kept = store.report(report.id)
    assert_unmeasured(kept.results[0], phase)
    if phase != "not played":
        again = await rescore(report.id, metrics=[forbidden_calls("delete_*")], store=store)
        assert_unmeasured(again.report.results[0], phase, {"forbidden_calls('delete_*')"})
        assert not again.flips


@pytest.mark.parametrize("phase", PHASES)
def test_a_report_file_gives_none_back_whatever_stands_in_it(phase, tmp_path):
    path = played(phase).save(tmp_path / "report.json")
    data = json.loads(path.read_text())
    whole = rehearse(talking(), [Case("a", "Hi")], metrics=[of_ones_own], store=False)
    numbers = json.loads(whole.save(tmp_path / "whole.json").read_text())["results"][0]["scores"]
    assert numbers["of_ones_own"]["score"] == 1.0
    data["results"][0]["scores"] = numbers
    path.write_text(json.dumps(data))
    assert_unmeasured(Report.load(path).results[0], phase, {"of_ones_own"})


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("form", ["console", "html", "json", "junit", "markdown", "adk"])
def test_no_report_shows_a_number_of_a_broken_trial(phase, form):
    case = BROKEN[phase][1]
    named = replace(case, tags=["smoke"])
    only = [metric(_as_named("marked_metric"))]
    fine = rehearse(talking(), [Case("a", "Hi", tags=["smoke"])], metrics=only, store=False)
    broke = rehearse(BROKEN[phase][0], [named], metrics=only, store=False)
    shown, silent = (_numbers(load_reporter(form).render(one)) for one in (fine, broke))
    assert shown
    assert not silent


def _as_named(name: str) -> Any:
    def measure(ledger: Ledger) -> Score:
        return Score(0.8125, reason="number-of-the-metric")

    measure.__name__ = name
    return measure


def _numbers(text: str) -> list[str]:
    """Where the number of the metric is shown, in full or rounded."""
    return re.findall(r"number-of-the-metric|0\.8125|0\.81\b", text)


@pytest.mark.parametrize("phase", PHASES)
def test_plain_text_shows_none_either(phase):
    assert "unmeasured" in str(played(phase))
    assert not re.search(r" [01]\.\d\d\b", str(played(phase)).splitlines()[0])


def test_a_mean_is_that_of_the_trials_that_were_played():
    cases = EvalSet("s", [Case("good", "Hi"), Case("bad", "Hi", agent=down())])
    report = rehearse(talking(), cases, metrics=[forbidden_calls("x"), contains("o")], store=False)
    for found in report.metrics.values():
        assert (found.mean, found.measured, found.unmeasured) == (1.0, 1, 1)
    assert report.summary.pass_rate == 1.0
    assert not report.passed


def test_where_one_metric_broke_the_others_stand():
    @metric
    def breaks(ledger: Ledger) -> bool:
        raise ZeroDivisionError("no ground to stand on")

    report = rehearse(talking(), [Case("a", "Hi")], metrics=[breaks, contains("done")], store=False)
    assert (report.results[0].status, report.results[0].broke) == ("error", False)
    assert report.metrics["breaks"].mean is None
    (other,) = [found for name, found in report.metrics.items() if name != "breaks"]
    assert (other.mean, other.measured) == (1.0, 1)
    assert report.summary.pass_rate is None


def connecting(ledger: Ledger) -> bool:
    socket.create_connection(("127.0.0.1", 9))
    return True


def connecting_unheard(ledger: Ledger) -> bool:
    with suppress(BaseException):
        connecting(ledger)
    return True


async def starting(ledger: Ledger) -> bool:
    subprocess.run(["true"], check=False)  # noqa: ASYNC221
    return True


def calling(ledger: Ledger) -> bool:
    with suppress(Exception):
        delete_all()
    return True


@pytest.mark.parametrize("acting", [connecting, connecting_unheard, starting, calling])
@pytest.mark.parametrize("is_first", [True, False])
def test_where_the_fence_refused_one_metric_the_others_stand(acting, is_first):
    kind = judge("kind", "Was it?", model=Scripted(then='{"reasoning": "Yes.", "verdict": true}'))
    others = [contains("done"), contains("nope"), kind]
    metrics = [metric(acting), *others] if is_first else [*others, metric(acting)]
    report = rehearse(talking(), [Case("a", "Hi")], metrics=metrics, store=False)
    [result] = report.results
    assert (result.status, result.broke) == ("error", False)
    assert isinstance(result.scores[acting.__name__], Unmeasured)
    values = [getattr(result.scores[other.name], "value", None) for other in others]
    assert values == [1.0, 0.0, 1.0]
    assert report.metrics["contains('done')"].mean == 1.0
    assert report.metrics[acting.__name__].mean is None
    assert report.summary.pass_rate is None


def test_what_a_metric_left_behind_is_held_against_it_and_nobody_else():
    gone = Event()

    @metric
    def leaving(ledger: Ledger) -> bool:
        def later() -> None:
            gone.wait()
            connecting_unheard(ledger)

        left.append(Thread(target=later))
        left[0].start()
        return True

    @metric
    def waiting(ledger: Ledger) -> bool:
        gone.set()
        left[0].join()
        return True

    left: list[Thread] = []
    report = rehearse(talking(), [Case("a", "Hi")], metrics=[leaving, waiting], store=False)
    [result] = report.results
    assert result.status == "error"
    assert isinstance(result.scores["leaving"], Unmeasured)
    assert result.scores["waiting"] == Score(1.0, True, name="waiting")


def test_a_trial_that_was_left_out_counts_in_no_mean():
    @metric
    def breaks(ledger: Ledger) -> bool:
        raise ZeroDivisionError("no ground to stand on")

    options: Any = {"store": False, "on_error": "skip"}
    for agent, metrics in ((down(), [contains("done")]), (talking(), [contains("done"), breaks])):
        report = rehearse(agent, [Case("a", "Hi")], metrics=metrics, **options)
        assert report.results[0].status == "skipped"
        assert all(found.measured == 0 for found in report.metrics.values())
