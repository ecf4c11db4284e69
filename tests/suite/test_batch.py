"""Many simulated conversations at once: bounded, in order, and counted honestly."""

import asyncio
from typing import Any

import pytest

from greenroom import Agent, Case, Lines, Scripted, SimulatedUser, Stop, UserAgents, tool
from greenroom.cases.scenarios import scenario_cases
from greenroom.errors import BadCase, BadInput
from greenroom.simulation import Simulation
from greenroom.suite import simulate_all


@tool
def refund(order: int) -> str:
    """Pay an order back."""
    raise AssertionError


CLERK = Agent("clerk", model=Scripted("Which order?", "Order 7 is refunded.", then="Bye."))
HAPPY = Scripted("Order 7.", "<done 1>Order 7 is refunded.</done> Thanks.")
SCENARIOS = [
    {"scenario_id": f"s{n}", "starting_prompt": "Money back.", "goals": ["a refund"]}
    for n in range(6)
]


async def test_scenarios_are_played_by_one_model_and_summed_up() -> None:
    batch = await simulate_all(CLERK, scenario_cases(SCENARIOS), user_model=HAPPY)
    assert [one.case_id for one in batch.simulations] == [f"s{n}" for n in range(6)]
    assert (batch.completed, batch.mean_turns, batch.goals_achieved) == (1.0, 2.0, 1.0)
    assert not batch.errors


async def test_at_most_so_many_are_under_way_at_once() -> None:
    under_way = most = 0

    async def reply(request: Any) -> str:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        for _ in range(5):
            await asyncio.sleep(0)
        under_way -= 1
        return "</finished>"

    cases = scenario_cases(SCENARIOS, model=Scripted(then=reply))
    await simulate_all(CLERK, cases, concurrency=2)
    assert most == 2


async def test_what_broke_is_counted_apart_and_harms_no_other() -> None:
    cases = [
        Case("good", "Hi", user=SimulatedUser(goals=["a refund"], model=HAPPY)),
        Case(
            "cut", "Hi", user=SimulatedUser(goals=["x"], model=Scripted(then="More."), max_turns=4)
        ),
        Case("broken", "Hi", user=SimulatedUser(goals=["y"], model=Scripted(RuntimeError("no")))),
        Case("unplayable", "Hi", user=SimulatedUser("Nobody plays me.")),
    ]
    batch = await simulate_all(CLERK, cases)
    assert [one.ended for one in batch.simulations] == ["completed", "max_turns", "error", None]
    assert [one.case_id for one in batch.errors] == ["broken", "unplayable"]
    assert "has no model to play it" in batch.simulations[3].error
    assert (batch.completed, batch.mean_turns, batch.goals_achieved) == (0.5, 3.0, 0.5)


async def test_nothing_played_has_no_averages() -> None:
    batch = await simulate_all(CLERK, [Case("a", "Hi", user=SimulatedUser())])
    assert (batch.completed, batch.mean_turns, batch.goals_achieved) == (None, None, None)


async def test_conversations_without_goals_have_no_share_of_goals() -> None:
    batch = await simulate_all(CLERK, [Case("a", "Hi", user=Lines("Order 7."))])
    assert (batch.completed, batch.goals_achieved) == (1.0, None)


async def test_the_users_model_is_for_those_who_have_none() -> None:
    own = SimulatedUser("Own.", model=Scripted("Mine.", "</finished>"))
    none = SimulatedUser("None.")
    cases = [
        Case("own", "Hi", user=own),
        Case("none", "Hi", user=none),
        Case("later", "Hi", user=Lines("Order?", then=none)),
        Case("agents", "Hi", user=UserAgents(loop=none, tools={})),
    ]
    model = Scripted("Yours.", "</finished>")
    batch = await simulate_all(CLERK, cases, user_model=model)
    said = [[m.text for m in one.conversation if m.role == "user"][1:] for one in batch.simulations]
    assert said == [["Mine."], ["Yours."], ["Order?", "Yours."], ["Yours."]]


async def test_each_end_is_told_and_a_hook_that_raises_harms_nothing() -> None:
    heard: list[str] = []

    def hook(done: Simulation) -> None:
        heard.append(done.case_id)
        raise LookupError("lost")

    cases = [Case("a", "Hi", user=Lines("b")), Case("b", "Hi", stop=Stop(max_turns=1))]
    batch = await simulate_all(CLERK, cases, on_complete=hook)
    assert sorted(heard) == ["a", "b"]
    assert batch.completed == 1.0
    assert "on_complete raised LookupError('lost') after case 'a'" in batch.notes


async def test_a_tool_that_is_allowed_in_vain_is_named() -> None:
    agent = Agent("clerk", model=Scripted("Hi."), tools=[refund])
    batch = await simulate_all(agent, [Case("a", "Hi")], allow_tools=["lookup"])
    assert batch.notes == ("allow_tools names 'lookup', but the agents offer ['refund']",)
    with pytest.raises(BadCase, match="Did you mean 'refund'"):
        await simulate_all(agent, [Case("a", "Hi")], allow_tools=["refnud"])


@pytest.mark.parametrize("concurrency", [0, -1, True, 2.5])
async def test_a_concurrency_that_makes_no_sense_is_refused(concurrency: Any) -> None:
    with pytest.raises(BadInput, match=r"concurrency=.* should be a whole number of 1 or more"):
        await simulate_all(CLERK, [Case("a", "Hi")], concurrency=concurrency)
