"""A call that the gate refused is a call that the agent made, in every metric that counts calls."""

import pytest

from greenroom import score
from greenroom.cases import Case, Expect
from greenroom.cases.scores import Score
from greenroom.ledger import Event, ToolBlocked, ToolCalled
from greenroom.ledger.questions import CallRecord, asked_calls, tool_calls
from greenroom.metrics import (
    called,
    efficiency,
    event_count,
    forbidden_calls,
    metric,
    tool_name_match,
    tool_trajectory_avg_score,
)
from metrics.runs import agent, run, tool, user

NONE_EXPECTED = Case("a", says="Hi", expect=Expect(tools=[]))


def blocked(name: str, call_id: str = "b1") -> list[Event]:
    return [ToolBlocked(call_id=call_id, tool=name, args={"order": 7}, why="it has no mock")]


@metric
def no_calls(tool_calls: list[CallRecord]) -> bool:
    return not tool_calls


LOOKING = [
    forbidden_calls("delete_*"),
    called("delete_all", never=True),
    called("delete_all", at_most=0, name="at_most"),
    tool_trajectory_avg_score(),
    tool_trajectory_avg_score(scope="all", name="whole"),
    tool_name_match(),
    efficiency(calls=0, penalty=1.0),
    event_count("tool_call", at_most=0),
    no_calls,
]


@pytest.mark.parametrize("looking", LOOKING, ids=lambda one: one.name)
async def test_whoever_looks_for_calls_sees_one_that_was_refused(looking):
    quiet = await score(run(user("Hi"), agent("Ho")), [looking], NONE_EXPECTED, expectations=False)
    met = quiet[looking.name]
    assert isinstance(met, Score)
    assert met.passed
    ledger = run(user("Hi"), blocked("delete_all"), agent("Ho"))
    found = (await score(ledger, [looking], NONE_EXPECTED, expectations=False))[looking.name]
    assert isinstance(found, Score)
    assert (found.passed, found.value) == (False, 0.0)


async def test_an_expectation_of_no_calls_sees_it_too():
    ledger = run(user("Hi"), blocked("delete_all"), agent("Ho"))
    (found,) = (await score(ledger, (), NONE_EXPECTED)).values()
    assert isinstance(found, Score)
    assert not found.passed


async def test_calls_stand_in_the_order_in_which_they_were_asked_for():
    ledger = run(user("Hi"), tool("look"), blocked("delete_all"), tool("look"), agent("Ho"))
    assert [call.tool for call in asked_calls(ledger)] == ["look", "delete_all", "look"]
    refused = asked_calls(ledger)[1]
    assert (refused.source, refused.error, refused.args) == (
        "refused",
        "it has no mock",
        {"order": 7},
    )
    assert [call.tool for call in tool_calls(ledger)] == ["look", "look"]


def test_a_call_that_was_written_down_before_it_was_refused_counts_once():
    issued: list[Event] = [ToolCalled(call_id="b1", tool="delete_all", args={"order": 7})]
    assert len(asked_calls(run(user("Hi"), issued, blocked("delete_all")))) == 1
    assert len(asked_calls(run(user("Hi"), issued, blocked("delete_some")))) == 2
    assert len(asked_calls(run(user("Hi"), blocked("a", ""), blocked("a", "")))) == 2
