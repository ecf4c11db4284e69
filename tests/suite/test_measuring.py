"""What an evaluation makes of metrics that ask models: counted apart, and paid for once."""

import json
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from greenroom import (
    Agent,
    Case,
    Expect,
    Report,
    Score,
    Scripted,
    Unmeasured,
    call,
    evaluate,
    simulate,
    tool,
)
from greenroom.ledger import Ledger, Usage
from greenroom.metrics import contains, judge, matches
from greenroom.metrics.scores import measure_trial, metrics_for
from greenroom.models import ModelReply
from greenroom.suite.measurement import Measurement
from greenroom.suite.options import complete
from greenroom.suite.recorded.rescores import rescore
from greenroom.suite.settings import Settings
from greenroom.suite.trial import run_trial
from greenroom.suite.trial_state import Trial, TrialState
from greenroom.world.answers import AnswerCache
from greenroom.world.live import LiveWorld

HELLO = Agent("greeter", model=Scripted("Hello."))
CASE = Case("hello", says="Hi")


class Critic:
    """A judge's model that says yes, unless it is out of order, and counts how often it was asked."""

    name = "critic-1"

    def __init__(self, answer: str | Exception | None = None) -> None:
        self.asked = 0
        self.answer = answer or json.dumps({"reasoning": "It is.", "verdict": True})

    async def respond(self, request, on_delta=None):
        self.asked += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return ModelReply(self.answer, usage=Usage(100, 7), cost=0.25, model=self.name)


async def test_judges_are_counted_apart_from_the_agent(tmp_path):
    kind = judge("kind", "Was it kind?", model=Critic())
    report = await evaluate(HELLO, [CASE, Case("again", says="Hi")], metrics=[kind])
    assert (report.judge_cost, report.judge_usage) == (0.5, Usage(200, 14))
    assert report.judge_models == {"critic-1": 2}
    assert (report.cost, report.models) == (0.0, {"scripted": 2})
    assert "judged by critic-1" in str(report)
    report.save(tmp_path / "r.json")
    loaded = Report.load(tmp_path / "r.json")
    assert loaded.judge_cost == 0.5
    assert loaded["hello"].judge_models == {"critic-1": 1}


async def test_what_a_judge_cost_is_known_though_its_answers_could_not_be_used():
    kind = judge("kind", "Was it kind?", model=Critic("nonsense"))
    [result] = await evaluate(HELLO, [CASE], metrics=[kind])
    assert result.status == "error"
    assert result.judge_cost == 0.75


async def test_a_run_without_judges_spent_nothing_on_them():
    report = await evaluate(HELLO, [CASE], metrics=[contains("Hello")])
    assert (report.judge_cost, report.judge_models) == (0.0, {})
    assert "judged by" not in str(report)


@pytest.mark.parametrize(
    "expect, guarded",
    [
        (Expect(tools=[], contains="Goodbye"), []),
        (Expect(response="Hello.", contains=["Hell", "o"]), []),
        (Expect(tools=["greet"]), []),
        (Expect(tools=[call("greet", name="Ann")]), []),
        (Expect(reference="Hello there."), []),
        (Expect(state={"session": {"$exists": False}}, response="Hello."), ["expected_state"]),
        (Expect(tools=[call("greet", name=bool)]), ["expected_tools"]),
        (Expect(tools=[call("greet", name={"$gt": 1})]), ["expected_tools"]),
    ],
)
async def test_only_what_runs_no_code_is_measured_without_a_guard(expect, guarded):
    case = Case("hello", says="Hi", expect=expect)
    ledger = await simulate(case, HELLO)
    seen: list[str] = []

    async def limit(name: str, measure: Callable[[], Any], _: float) -> Any:
        seen.append(name)
        return measure()

    found = await measure_trial(
        ledger, case, metrics_for(case), LiveWorld(Ledger()), limit, 60, attempts=1
    )
    assert seen == guarded
    assert found == await Measurement().outcomes(case, ledger, Ledger())


async def test_a_metric_is_guarded_unless_it_says_that_it_needs_no_guard():
    class Asked:
        def __init__(self, name: str) -> None:
            self.name = name

        def measure(self, case, ledger, world):
            return Score(1.0)

    class Quick(Asked):
        def needs_guard(self, case):
            return False

    seen: list[str] = []

    async def limit(name: str, measure: Callable[[], Any], _: float) -> Any:
        seen.append(name)
        return measure()

    metrics = [Asked("asked"), Quick("quick"), matches("Hello"), contains("Hello")]
    named = metrics_for(CASE, metrics)
    await measure_trial(
        await simulate(CASE, HELLO), CASE, named, LiveWorld(Ledger()), limit, 60, attempts=1
    )
    assert seen == ["asked", metrics[2].name]


async def test_what_judges_took_before_a_cut_counts_though_none_is_asked_any_more():
    kind = judge("kind", "Was it kind?", model=Critic())
    case = Case("hello", says="Hi", expect=Expect(contains="Hello"))
    take = TrialState(Trial(0, case), await simulate(case, HELLO))
    await run_trial(HELLO, take, Settings.of(complete({}), Measurement(metrics=[kind])))
    result = await run_trial(HELLO, take, Settings.of(complete({}), Measurement()))
    assert (result.status, result.judge_cost) == ("passed", 0.25)


async def test_an_answer_that_was_kept_is_not_paid_for_twice(tmp_path):
    critic = Critic()
    kind = judge("kind", "Was it kind?", model=critic)
    await evaluate(HELLO, [CASE], metrics=[kind], cache=tmp_path)
    again = await evaluate(HELLO, [CASE], metrics=[kind], cache=str(tmp_path))
    assert critic.asked == 1
    kept = again["hello"].scores["kind"]
    assert isinstance(kept, Score)
    assert kept.details["cached"] == 1
    assert again.judge_models == {"critic-1 (cached)": 1}
    assert AnswerCache(tmp_path).clear() == 1
    await evaluate(HELLO, [CASE], metrics=[kind], cache=AnswerCache(tmp_path))
    assert critic.asked == 2


async def test_without_a_cache_a_judge_is_asked_every_time():
    critic = Critic()
    kind = judge("kind", "Was it kind?", model=critic)
    for _ in range(2):
        await evaluate(HELLO, [CASE], metrics=[kind])
    assert critic.asked == 2


async def test_a_judge_out_of_order_is_asked_again_in_the_next_run():
    critic = Critic(RuntimeError("out of order"))
    kind = judge("kind", "Was it kind?", model=critic)
    cases = [Case(f"c{n}", says="Hi") for n in range(8)]
    await evaluate(HELLO, cases, metrics=[kind], concurrency=1)
    assert critic.asked == 5
    critic.answer = json.dumps({"reasoning": "It is.", "verdict": True})
    assert (await evaluate(HELLO, cases, metrics=[kind])).passed


async def test_a_metric_that_claims_to_need_no_guard_is_fenced_all_the_same():
    class Sly:
        name = "sly"

        def needs_guard(self, case):
            return False

        def measure(self, case, ledger, world):
            with socket.create_connection(("127.0.0.1", 9)):
                return Score(1.0)

    report = await evaluate(HELLO, [CASE], metrics=[Sly()])
    assert report["hello"].error is not None
    assert "tried to reach the outside" in report["hello"].error.message


async def test_a_metric_that_breaks_when_asked_whether_it_needs_a_guard_measured_nothing():
    class Odd:
        name = "odd"
        needs_guard = False

        def measure(self, case, ledger, world):
            return Score(1.0)

    found = (await evaluate(HELLO, [CASE], metrics=[Odd()]))["hello"].scores["odd"]
    assert isinstance(found, Unmeasured)
    assert "'bool' object is not callable" in found.why


async def test_likeness_asked_for_the_run_is_measured():
    case = Case("hello", says="Hi", expect=Expect(reference="Hello."))
    report = await evaluate(HELLO, [case], metrics=["response_match_score"])
    assert report.passed, report
    assert list(report["hello"].scores) == ["response_match_score"]


async def test_a_metric_that_swallows_the_refusal_of_a_tool_measured_nothing():
    paid: list[int] = []

    @tool
    def pay(order: int) -> str:
        """Pay."""
        paid.append(order)
        return "paid"

    def curious(case: Case) -> bool:
        with suppress(Exception):
            pay(7)
        return True

    [result] = await evaluate(HELLO, [CASE], metrics=[curious])
    assert (result.status, result.measured, paid) == ("error", {}, [])
    assert result.error
    assert "a metric called the tool 'pay'" in result.error.message


class Moody:
    """A judge's model that changes its mind each time it is asked."""

    name = "moody"

    def __init__(self) -> None:
        self.asked = 0

    async def respond(self, request, on_delta=None):
        self.asked += 1
        return ModelReply(json.dumps({"reasoning": "Hm.", "verdict": self.asked % 2 == 1}))


def verdicts(report) -> list[bool]:
    return [result.scores["kind"].passed for result in report.results]


@pytest.mark.parametrize("kept_by", ["run", "judge"])
async def test_a_kept_answer_belongs_to_its_trial(tmp_path, kept_by):
    moody, cache = Moody(), AnswerCache(tmp_path)
    own: dict[str, Any] = {"cache": cache} if kept_by == "judge" else {}
    kind = judge("kind", "Was it kind?", model=moody, **own)
    options: dict[str, Any] = {"metrics": [kind], "concurrency": 1}
    options["cache"] = cache if kept_by == "run" else None
    first = await evaluate(HELLO, [CASE], trials=2, **options)
    assert (verdicts(first), moody.asked) == ([True, False], 2)
    # The same trials again ask nobody, a third one does, and so does another case that says the same.
    again = await evaluate(HELLO, [CASE], trials=2, **options)
    assert (verdicts(again), moody.asked) == ([True, False], 2)
    third = await evaluate(HELLO, [CASE], trials=3, **options)
    assert (verdicts(third), moody.asked) == ([True, False, True], 3)
    other = await evaluate(HELLO, [Case("other", says="Hi")], **options)
    assert (verdicts(other), moody.asked) == ([False], 4)


async def test_measured_anew_a_trial_finds_its_own_answer(tmp_path):
    moody, cache = Moody(), AnswerCache(tmp_path)
    kind = judge("kind", "Was it kind?", model=moody)
    report = await evaluate(HELLO, [CASE], trials=2, metrics=[kind], concurrency=1, cache=cache)
    again = await rescore(report, metrics=[kind], cache=cache)
    assert (verdicts(again.report), moody.asked) == ([True, False], 2)
