"""One node of an agent's graph, played alone."""

import pytest

from greenroom import Agent, Case, Expect, Scripted, call, loop, rehearse, route, simulate, tool
from greenroom.errors import BadCase
from greenroom.ledger import AgentSaid, NodeStarted


@tool
def look_up(topic: str) -> str:
    """Look a topic up."""
    raise RuntimeError("never reached in a rehearsal")


def classify(state, input):
    state["session"]["kind"] = "refund" if "money" in input else "other"
    return state["session"]["kind"]


clerk = Agent("clerk", model=Scripted(call("look_up", topic="x"), "Found it."), tools=[look_up])
talker = Agent("talker", model=Scripted("Hello."))
DESK = classify >> route("session.kind", refund=clerk, otherwise=talker)


def nodes_of(ledger):
    return [event.node for event in ledger.of(NodeStarted)]


async def test_only_the_targeted_node_is_played():
    ledger = await simulate(Case("c", says="Hi", target="talker"), DESK)
    assert nodes_of(ledger) == ["talker"]


async def test_a_step_can_be_played_alone():
    case = Case("c", says="money back", target="classify", expect=Expect(response="refund"))
    report = rehearse(DESK, [case])
    assert report.passed, report
    assert nodes_of(await simulate(case, DESK)) == ["classify"]


async def test_a_node_may_be_named_by_its_place():
    twice = loop(Agent("a", model=Scripted("one"), instructions="first"), max_rounds=1) >> Agent(
        "a", model=Scripted("two"), instructions="second"
    )
    ledger = await simulate(Case("c", says="Hi", target="seq.1/a"), twice)
    assert [event.text for event in ledger.of(AgentSaid)] == ["two"]
    with pytest.raises(BadCase, match=r"several nodes 'a': seq\.0/loop#/a, seq\.1/a"):
        await simulate(Case("c", says="Hi", target="a"), twice)


async def test_a_flow_inside_a_flow_is_a_node_too():
    inner = loop(Agent("a", model=Scripted("one", "two")), max_rounds=2)
    ledger = await simulate(Case("c", says="Hi", target="loop"), talker >> inner)
    assert nodes_of(ledger) == ["loop", "loop#/a", "loop#/a"]


async def test_a_node_that_is_not_there_is_named_with_those_that_are():
    with pytest.raises(BadCase, match=r"no node 'clark'.*seq\.0/classify.*route\.refund/clerk"):
        await simulate(Case("c", says="Hi", target="clark"), DESK)


async def test_the_tools_of_other_nodes_are_not_there_to_be_mocked():
    with pytest.raises(BadCase, match=r"mocks tool 'look_up', but the agent offers \[\]"):
        await simulate(Case("c", says="Hi", target="talker", mocks={"look_up": 1}), DESK)


async def test_an_agent_without_parts_has_none_to_target():
    class Elsewhere:
        name = "elsewhere"
        tools = None

        def advance(self): ...
        def snapshot(self): ...

    with pytest.raises(BadCase, match=r"run by 'elsewhere' has no parts"):
        await simulate(Case("c", says="Hi", target="talker"), Elsewhere())
