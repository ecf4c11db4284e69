"""`node_sequence` looks at the agents and steps a run came through."""

from typing import Any

import pytest

from greenroom import Agent, Case, Scripted, Turn, Unmeasured, loop, score, simulate, step
from greenroom.cases import Criterion
from greenroom.errors import BadMetric
from greenroom.ledger import Ledger, NodeStarted
from greenroom.metrics import as_metric, node_sequence
from metrics.runs import run, user


@step
def sort(state):
    return "sorted"


def an_agent(name: str) -> Agent:
    return Agent(name, model=Scripted("a", "b", "c", "d"))


async def played(flow: Any, *says: str) -> Ledger:
    return await simulate(Case("c", turns=[Turn(text) for text in says]), flow)


async def outcome(metric: Any, ledger: Ledger) -> Any:
    return (await score(ledger, [metric], Case("c", says="Hi")))[metric.name]


async def test_a_sequence_is_its_agents_and_steps_and_not_the_sequence_itself():
    ledger = await played(sort >> an_agent("clerk") >> an_agent("boss"), "Hi")
    found = await outcome(node_sequence(["sort", "clerk", "boss"]), ledger)
    assert (found.value, found.reason) == (1.0, "as expected")
    assert found.details["actual"] == ["sort", "clerk", "boss"]


async def test_what_is_missing_extra_or_misplaced_is_named():
    ledger = await played(an_agent("clerk") >> an_agent("boss"), "Hi")
    found = await outcome(node_sequence(["boss", "clerk", "desk"], "in_order"), ledger)
    assert found.value == pytest.approx(1 / 3)
    assert found.reason == "missing desk; misplaced boss (place 2, expected in place 1)"
    assert (await outcome(node_sequence(["clerk", "boss"], "any_order"), ledger)).passed
    assert not (await outcome(node_sequence(["clerk"]), ledger)).passed


async def test_one_turn_can_be_looked_at_alone():
    ledger = await played(an_agent("clerk"), "one", "two")
    assert (await outcome(node_sequence(["clerk", "clerk"]), ledger)).passed
    assert (await outcome(node_sequence(["clerk"], turn=2), ledger)).passed
    found = await outcome(node_sequence(["clerk"], turn=3), ledger)
    assert (found.passed, found.reason) == (False, "turn 3: never reached")


async def test_each_round_of_a_loop_counts():
    again = loop(an_agent("clerk") >> an_agent("boss"), until=lambda output: output == "b")
    ledger = await played(again, "Hi")
    found = await outcome(node_sequence(["clerk", "boss", "clerk", "boss"]), ledger)
    assert found.passed, found.reason


async def test_a_place_in_the_graph_tells_two_nodes_of_one_name_apart():
    ledger = await played(an_agent("clerk") >> an_agent("boss"), "Hi")
    assert (await outcome(node_sequence(["seq.0/clerk", "seq.1/boss"]), ledger)).passed
    assert not (await outcome(node_sequence(["seq.1/clerk", "boss"]), ledger)).passed


async def test_a_second_try_at_a_node_is_no_second_visit():
    tries = [NodeStarted(path=path, node="clerk") for path in ("@1/clerk", "@1/clerk~2")]
    assert (await outcome(node_sequence(["clerk"]), run(user("Hi"), list(tries)))).passed


async def test_a_ledger_without_nodes_is_unmeasured():
    found = await outcome(node_sequence(["clerk"]), run(user("Hi")))
    assert isinstance(found, Unmeasured)


@pytest.mark.parametrize(
    "options, told",
    [
        ({"nodes": []}, "name some"),
        ({"nodes": "clerk"}, "give a list of strings"),
        ({"nodes": ["a"], "turn": 0}, "the first turn is 1"),
        ({"nodes": ["a"], "match_type": "SORTED"}, "not one of 'EXACT'"),
        ({}, "missing a required argument: 'nodes'"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, told):
    with pytest.raises(BadMetric, match=told):
        as_metric(Criterion("node_sequence", options=options))
