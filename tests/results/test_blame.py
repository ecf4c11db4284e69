"""Whose failure it is: only what the record shows decides, the rest is undecided."""

from typing import Any

import pytest

from greenroom import (
    Agent,
    Case,
    Expect,
    Scripted,
    SimulatedUser,
    Stop,
    call,
    evaluate,
    fault,
    tool,
)
from greenroom.metrics import contains
from greenroom.metrics.simulator import simulator_quality
from greenroom.results.blame import Blame


@tool
def refund(order: int) -> str:
    """Refund an order."""
    raise AssertionError("a tool body ran in a rehearsal")


CLERK = Agent(
    "clerk", model=Scripted(call("refund", order=7), "Done.", then="Bye."), tools=[refund]
)
SILENT = Agent("clerk", model=Scripted("Hello."))
MISSED = [contains("never said")]
FINE = {"reasoning": "as described", "label": "in_character"}


def person(*answers: Any) -> SimulatedUser:
    return SimulatedUser("Ada.", model=Scripted(*answers))


async def blamed(agent: Any = CLERK, metrics: Any = (), **options: Any) -> Blame | None:
    options.setdefault("mocks", {"refund": "ok"} if agent is CLERK else {})
    played = Case("c", "Money back.", **options)
    return (await evaluate(agent, [played], metrics=metrics)).results[0].blame


async def whom(agent: Any = CLERK, metrics: Any = (), **options: Any) -> str:
    found = await blamed(agent, metrics, **options)
    return "nobody" if found is None else found.whom


async def test_nobody_is_to_blame_when_nothing_failed() -> None:
    assert await whom(metrics=[contains("Done")]) == "nobody"


async def test_an_agent_that_missed_what_was_expected_is_to_blame() -> None:
    found = await blamed(metrics=MISSED)
    assert found is not None
    assert found.whom == "agent"
    assert "never said" in found.evidence[0]


async def test_an_agent_that_raises_is_to_blame() -> None:
    assert await whom(Agent("a", model=Scripted(RuntimeError("no"))), MISSED) == "agent"


async def test_a_user_that_fails_is_to_blame() -> None:
    assert await whom(metrics=MISSED, user=person(RuntimeError("no idea"))) == "user"


@pytest.mark.parametrize("mocks", [{"refund": fault("down")}, {"refund": lambda: 1 / 0}, {}])
async def test_a_mock_that_fails_or_is_missing_is_to_blame(mocks: Any) -> None:
    assert await whom(metrics=MISSED, mocks=mocks) == "tool_mock"


@pytest.mark.parametrize("agent", [CLERK, SILENT])
async def test_an_expectation_that_no_agent_could_meet_is_to_blame(agent: Any) -> None:
    found = await blamed(agent, expect=Expect(tools=["cancel"]))
    assert found is not None
    assert found.whom == "expectation"
    assert "expects a call of 'cancel', but the agent offers" in found.evidence[0]


async def test_an_expected_call_that_was_possible_is_the_agents() -> None:
    assert await whom(expect=Expect(tools=[])) == "agent"


async def test_with_a_user_nobody_looked_at_it_is_undecided() -> None:
    found = await blamed(metrics=MISSED, user=person("Hm?", "</finished>"))
    assert found is not None
    assert found.whom == "undecided"
    assert "simulator_quality" in found.evidence[-1]


async def test_with_a_user_that_was_found_in_character_it_is_the_agents() -> None:
    quality = simulator_quality(model=Scripted(then=FINE))
    assert await whom(metrics=[*MISSED, quality], user=person("Hm?", "</finished>")) == "agent"


async def test_a_run_that_was_cut_has_somebody_to_blame() -> None:
    user = SimulatedUser("Ada.", model=Scripted(then="More."))
    found = await blamed(metrics=[contains("Bye")], user=user, stop=Stop(max_turns=2))
    assert found is not None
    assert (found.whom, found.evidence[0]) == ("undecided", "the trial was stopped at max_turns")
