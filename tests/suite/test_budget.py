"""A budget stops a run before the money is spent, and never takes an unknown price for nothing."""

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom import Agent, Case, EvalSet, Expect, Report, Scripted, evaluate, rehearse, step
from greenroom.errors import BadInput
from greenroom.ledger import ModelReplied
from greenroom.metrics import contains
from greenroom.models import ModelReply, ModelRequest
from greenroom.results import CaseResult
from greenroom.suite.budget import Budget, UnknownPrices
from greenroom.suite.cancel import Cancel

OK = contains("Done")


class Priced:
    """A model whose replies cost what its user says, and which counts who asks at once."""

    name = "priced"

    def __init__(self) -> None:
        self.spent = 0.0
        self.asked: list[str] = []
        self.under_way = 0
        self.widths: list[int] = []

    async def respond(self, request: ModelRequest, on_delta: Any = None) -> ModelReply:
        self.asked.append(request.last)
        self.under_way += 1
        self.widths.append(self.under_way)
        for _ in range(3):
            await asyncio.sleep(0)
        self.under_way -= 1
        cost = None if request.last == "?" else float(request.last)
        self.spent += cost or 0.0
        return ModelReply("Done.", cost=cost)


def cases(*costs: object) -> EvalSet:
    return EvalSet("costly", [Case(f"c{n}", str(cost)) for n, cost in enumerate(costs)])


async def run(model: Any, costs: Any, budget: Any, **options: Any) -> Report:
    agent = Agent("clerk", model=model)
    return await evaluate(agent, cases(*costs), metrics=[OK], budget=budget, **options)


@pytest.mark.parametrize("limit", [0, float("inf"), float("nan"), True, 10**400, "3", None])
def test_what_is_no_limit_is_no_budget(limit: Any):
    with pytest.raises(BadInput, match="an amount of USD above 0"):
        Budget(limit)


def statuses(report: Report) -> list[str]:
    return [result.status for result in report]


COSTS = [0.03, 0.01, 0.05, 0.02, 0.04] * 8


@pytest.mark.parametrize("limit", [0.06, 0.25, 0.5, 0.77])
async def test_no_more_is_spent_than_the_budget_however_many_run_at_once(limit):
    model = Priced()
    report = await run(model, COSTS, limit, concurrency=8)
    assert model.spent <= limit
    # It stops when the dearest case would not fit any more, not long before.
    assert model.spent > limit - 2 * max(COSTS)
    assert len(report) == len(COSTS)
    assert set(statuses(report)) == {"passed", "skipped"}


async def test_what_was_not_run_says_why_and_the_rest_is_a_whole_report():
    report = await run(Priced(), [0.4, 0.4, 0.4], 1.0)
    assert statuses(report) == ["passed", "passed", "skipped"]
    assert report["c2"].notes == (
        "not run: the budget of $1 is not enough: $0.8 is spent, and a case cost up to $0.4",
    )
    assert not report.passed
    assert report.summary.skipped == 1
    assert "is not enough" in str(report)


async def test_tiny_amounts_are_not_written_as_powers_of_ten():
    report = await run(Priced(), [0.00003, 0.00003], 0.00005)
    assert report["c1"].notes == (
        (
            "not run: the budget of $0.00005 is not enough: $0.00003 is spent, and a case cost up to "
            "$0.00003"
        ),
    )


async def test_a_budget_that_just_suffices_is_enough():
    assert (await run(Priced(), [0.1, 0.1, 0.1], 0.3)).passed


async def test_the_first_case_goes_alone_since_nobody_knows_what_it_costs():
    model = Priced()
    assert (await run(model, [0.01] * 20, 5, concurrency=8)).passed
    assert model.widths[0] == 1
    assert model.widths[1:9] == list(range(1, 9))


async def test_a_case_that_broke_at_once_teaches_nothing_of_the_price_of_others():
    model = Priced()
    report = await run(model, ["no number", *[0.5] * 9], 1.0, concurrency=8)
    assert statuses(report)[0] == "error"
    assert model.spent <= 1.0


async def test_cases_that_cost_nothing_are_not_held_up():
    model = Scripted("Done.")
    assert (await run(model, [0] * 12, 0.01, concurrency=4)).passed


async def test_an_unknown_price_ends_the_run():
    model = Priced()
    report = await run(model, [0.01, "?", 0.01, 0.01], 5, concurrency=1)
    assert statuses(report) == ["passed", "passed", "skipped", "skipped"]
    assert "the price of priced is unknown" in report["c2"].notes[0]
    assert model.asked == ["0.01", "?"]


async def test_an_unknown_price_may_be_allowed_and_is_not_taken_for_nothing():
    budget = Budget(5, unknown_prices="allow")
    report = await run(Priced(), [0.01, "?", 0.01], budget, concurrency=1)
    assert report.passed
    assert budget.unpriced == {"priced"}
    assert report["c1"].cost is None
    assert budget.spent == pytest.approx(0.02)


async def test_an_agent_whose_models_nobody_sees_has_an_unknown_price_too():
    budget = Budget(5)
    budget.settle(0, CaseResult(case_id="c", status="passed", ended="completed", cost=None))
    assert "a model that case 'c' asked is unknown" in await budget.begin(1)


async def test_what_users_and_judges_cost_counts_as_well():
    budget = Budget(1.0)
    spent = CaseResult(
        case_id="c", status="passed", ended="completed", cost=0.2, user_cost=0.3, judge_cost=0.1
    )
    budget.settle(0, spent)
    assert budget.spent == pytest.approx(0.6)
    assert "is not enough" in await budget.begin(1)


async def test_a_run_that_goes_on_counts_what_was_spent_before(tmp_path):
    model = Priced()
    first = await run(model, [0.1] * 10, 0.35, store=tmp_path)
    assert statuses(first).count("passed") == 3
    again = await run(model, [0.1] * 10, 0.35, store=tmp_path, resume=True)
    assert statuses(again) == statuses(first)
    assert len(model.asked) == 3
    more = await run(model, [0.1] * 10, 0.75, store=tmp_path, resume=True)
    assert statuses(more).count("passed") == 7
    assert model.spent == pytest.approx(0.7)


def test_one_budget_serves_several_runs_one_after_the_other():
    budget, agent = Budget(0.5), Agent("clerk", model=Priced())
    for _ in range(2):
        rehearse(agent, cases(0.1, 0.1, 0.1), metrics=[OK], budget=budget, concurrency=3)
    assert budget.spent == pytest.approx(0.5)


async def test_a_run_that_is_cancelled_while_cases_wait_for_money_begins_none_of_them():
    token, model = Cancel(), Priced()

    def stop(*_: object) -> None:
        token.cancel("enough")

    report = await run(model, [0.1] * 6, 5.0, concurrency=6, cancel=token, on_metric_complete=stop)
    assert model.asked == ["0.1"]
    assert statuses(report) == ["skipped"] * 6


async def test_agents_without_a_model_cost_nothing():
    report = await evaluate(step(lambda: "Done."), cases(1, 2, 3), metrics=[OK], budget=0.01)
    assert report.passed


@pytest.mark.parametrize("limit", [0, -1, float("nan")])
def test_a_budget_is_an_amount_above_nothing(limit):
    with pytest.raises(BadInput, match="above 0"):
        Budget(limit)


def test_unknown_prices_are_refused_or_allowed():
    wrong: Any = "ignore"
    with pytest.raises(BadInput, match="'refuse', 'allow'"):
        Budget(1, unknown_prices=wrong)


async def work_off(budget: Budget, costs: list[list[int]], width: int) -> None:
    """Let so many at once pay for their cases call by call, and check the sum at every start."""
    paid, dearest, waiting = 0, 0, iter(enumerate(costs))

    async def work() -> None:
        nonlocal paid, dearest
        for position, calls in waiting:
            if await budget.begin(position):
                continue
            assert paid + dearest <= budget.limit * (1 + 1e-9)
            for cost in calls:
                await asyncio.sleep(0)
                paid += cost
                budget.add_event(position, ModelReplied(node="a", cost=float(cost)))
            dearest = max(dearest, sum(calls))
            result = CaseResult(case_id="c", status="passed", cost=float(sum(calls)))
            budget.settle(position, result)

    await asyncio.wait_for(asyncio.gather(*(work() for _ in range(width))), 30)
    assert budget.spent == paid


@given(
    limit=st.integers(1, 100),
    costs=st.lists(st.lists(st.integers(0, 20), max_size=4), max_size=30),
    width=st.integers(1, 8),
)
def test_at_no_start_the_sum_and_the_dearest_case_exceed_the_limit(limit, costs, width):
    asyncio.run(work_off(Budget(limit), costs, width))


@given(
    costs=st.lists(st.integers(1, 20), min_size=1, max_size=30),
    limit=st.integers(1, 200),
    width=st.integers(1, 8),
)
def test_cases_of_one_call_that_cost_the_same_never_overdraw(costs, limit, width):
    price = costs[0]
    budget = Budget(limit)
    asyncio.run(work_off(budget, [[price]] * len(costs), width))
    assert budget.spent <= max(limit, price)


@pytest.mark.parametrize("unknown, refused", [("refuse", True), ("allow", False)])
async def test_an_unpriced_reply_is_heard_at_once(unknown: UnknownPrices, refused):
    budget = Budget(1, unknown_prices=unknown)
    assert await budget.begin(0) == ""
    budget.add_event(0, ModelReplied(node="a", model="m", cost=None))
    assert budget.unpriced_refused is refused


async def test_a_budget_goes_on_after_a_run_that_was_broken_off() -> None:
    budget = Budget(1.0)
    slow = Agent("slow", model=Scripted("Hello.", latency=5.0))
    quick = Agent("quick", model=Scripted("Hello."))
    case = Case("a", says="Hi.", expect=Expect(response="Hello."))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(evaluate(slow, [case], budget=budget), 0.2)
    report = await asyncio.wait_for(evaluate(quick, [case], budget=budget), 30)
    assert report.passed
