"""What an evaluation would take, asked from Python."""

from typing import Any

import pytest

from greenroom import (
    Agent,
    Case,
    Lines,
    Report,
    Scripted,
    SimulatedUser,
    Turn,
    UserAgents,
    metric,
    step,
    tool,
)
from greenroom.ledger import Usage
from greenroom.metrics import judge
from greenroom.metrics.judges import jury
from greenroom.results import CaseResult
from greenroom.suite.forecasts import Forecast, forecast


class Priced:
    """A model whose price no list knows."""

    name = "house-model"

    async def respond(self, request: object, on_delta: object = None) -> Any:
        raise AssertionError("a forecast asks no model")


@metric
def fine(response: str) -> bool:
    return bool(response)


async def of(agent: Any, *cases: Case, **options: Any) -> Forecast:
    given: Any = {"store": False, "metrics": [fine], **options}
    return await forecast(agent, list(cases), **given)


def seen(case_id: str, **given: Any) -> CaseResult:
    usual: dict[str, Any] = {
        "status": "passed",
        "ended": "completed",
        "usage": Usage(100, 10),
        "cost": 1.0,
        "models": {"scripted": 2},
        "user_usage": Usage(),
        "user_cost": 0.0,
        "judge_usage": Usage(),
        "judge_cost": 0.0,
    }
    return CaseResult(case_id=case_id, **{**usual, **given})


CLERK = Agent("clerk", model=Scripted("Hi"))


async def test_each_case_is_taken_for_what_it_took_before_and_a_new_one_for_the_mean() -> None:
    earlier = Report([seen("a", cost=1.0), seen("a", cost=2.0), seen("b", cost=6.0)], id="r")
    cases = [Case(name, says="Hi") for name in ("a", "b", "new")]
    found = await of(CLERK, *cases, earlier=[earlier], trials=2)
    assert found.usd == pytest.approx(2 * (1.5 + 6.0 + 3.0))
    assert (found.trials, found.roles["agent"].calls, found.learnt) == (6, 12, ("r",))
    assert (found.whole.tokens_in, found.trials_seen) == (600, 3)


async def test_trials_that_never_began_teach_nothing() -> None:
    skipped = CaseResult(case_id="a", status="skipped")
    found = await of(CLERK, Case("a", says="Hi"), earlier=[Report([skipped], id="r")])
    assert (found.learnt, found.roles["agent"].is_least) == ((), True)


async def test_an_unknown_price_stays_unknown_with_the_least_of_it() -> None:
    earlier = Report([seen("a", cost=None), seen("b", cost=2.0)], id="r")
    found = await of(CLERK, Case("a", says="Hi"), Case("b", says="Hi"), earlier=[earlier])
    assert (found.usd, found.whole.cost.at_least) == (None, 2.0)
    assert found.whole.cost.unknown == ("the prices of the agent",)
    assert "unknown, at least $2.00" in str(found)


@pytest.mark.parametrize(
    "models, cost, cached, without",
    [
        ({"j": 1, "j (cached)": 2}, 1.0, 1.0, 3.0),
        ({"j (cached)": 3}, 0.0, 0.0, None),
        ({"j": 3}, 3.0, 3.0, 3.0),
    ],
)
async def test_what_a_cache_has_saved_is_paid_for_without_it(
    models: dict[str, int], cost: float, cached: float, without: float | None, tmp_path: Any
) -> None:
    earlier = [Report([seen("a", judge_models=models, judge_cost=cost)], id="r")]
    case = Case("a", says="Hi")
    found = (await of(CLERK, case, earlier=earlier, cache=tmp_path)).roles["judge"]
    assert (found.calls, found.cost.usd) == (3, cached)
    found = (await of(CLERK, case, earlier=earlier)).roles["judge"]
    assert (found.calls, found.cost.usd) == (3, without)


async def test_the_least_of_a_flow_follows_its_graph_and_the_turns_of_the_script() -> None:
    flow = CLERK >> Agent("closer", model=Priced())
    need = (await of(flow, Case("a", turns=[Turn("Hi"), Turn("More")]))).roles["agent"]
    assert (need.calls, need.is_least, need.cost.usd) == (4, True, None)
    plain = await of(step(lambda: "Hi", name="s"), Case("a", says="Hi"))
    assert (plain.roles["agent"].calls, plain.roles["agent"].is_least, plain.usd) == (0, False, 0)


async def test_one_node_alone_takes_what_it_takes() -> None:
    flow = CLERK >> Agent("closer", model=Priced())
    found = await of(flow, Case("a", says="Hi", target="clerk"))
    assert (found.roles["agent"].calls, found.usd) == (1, 0)


async def test_a_case_may_bring_its_own_agent() -> None:
    found = await of(CLERK, Case("a", says="Hi", agent=CLERK >> CLERK))
    assert found.roles["agent"].calls == 2


async def test_of_a_function_nothing_is_known_before_it_ran() -> None:
    async def agent(text: str) -> str:
        return text

    found = await of(agent, Case("a", says="Hi"))
    assert (found.usd, found.whole.cost.unknown) == (None, ("what the agent asks models",))
    assert str(found).splitlines()[2].split() == ["agent", *["unknown"] * 4]


@pytest.mark.parametrize(
    "user, is_known",
    [
        (None, True),
        (Lines("More."), True),
        (Lines("More.", then=SimulatedUser("Ann", model=Priced())), False),
        (SimulatedUser("Ann", model=Priced()), False),
        (UserAgents(loop=Agent("ann", model=Priced())), False),
        (UserAgents(loop=Lines("More."), tools={"ask": 7}), True),
    ],
)
async def test_users_who_ask_models_are_known_from_runs_alone(user: Any, is_known: bool) -> None:
    @tool(yields=True)
    def ask(question: str) -> int:
        """Ask the user."""
        raise AssertionError(question)

    clerk = Agent("clerk", model=Priced(), tools=[ask])
    found = (await of(clerk, Case("a", says="Hi", user=user))).roles["user"]
    assert (found.cost.usd == 0) is is_known
    assert found.is_least is not is_known


async def test_judges_vote_at_least_as_often_as_they_must() -> None:
    often = judge("often", "Is it kind?", model=Priced(), samples=5)
    quick = judge("quick", "Is it kind?", model=Priced(), samples=5, early_stop=True)
    both = jury([Priced(), Scripted(name="other")], prompt="Is it kind?")
    case = Case("a", says="Hi", metrics=[often, quick, both])
    found = (await of(CLERK, case, trials=2)).roles["judge"]
    assert (found.calls, found.is_least) == (2 * (5 + 1 + 2), True)
    assert found.cost.unknown == ("the tokens of the judges", "the price of house-model")


async def test_what_is_wrong_with_an_evaluation_is_wrong_with_its_forecast() -> None:
    with pytest.raises(Exception, match="trials"):
        await of(CLERK, Case("a", says="Hi"), trials=0)
