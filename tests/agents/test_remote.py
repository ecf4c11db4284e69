"""Agents elsewhere as parts of a flow, in rehearsals: mocked like tools, checked, drawn and estimated."""

from typing import Any
from urllib.parse import urlsplit

import pytest

from backends.far_side import FarSide
from greenroom import Agent, Case, Scripted, Turn, evaluate, step
from greenroom.agents import (
    AgentCard,
    StateSchema,
    Traffic,
    check,
    compile_flow,
    estimate,
    race,
    remote,
    tool,
)
from greenroom.agents.mermaid import mermaid
from greenroom.cases import fault, in_turn
from greenroom.errors import BadAgent
from greenroom.ledger import responses, state, tool_calls
from greenroom.metrics import called, contains

PAYMENTS = remote(
    "payments", "https://payments.internal", sends="intent", receives="resolution", token="PAY"
)


@step(writes="intent")
def classify(input: str) -> str:
    return "refund" if "back" in input else "other"


@step(reads="resolution")
def respond(state: Any) -> str:
    return f"Result: {state.session['resolution']}"


DESK = classify >> PAYMENTS >> respond


async def played(agent: Any, **options: Any) -> Any:
    given: dict[str, Any] = {"says": "Money back!", "metrics": [contains("Result")], **options}
    report = await evaluate(agent, Case("one", **given))
    return report.results[0]


async def test_a_mock_answers_for_an_agent_elsewhere_and_its_answer_goes_into_the_state():
    result = await played(DESK, mocks={"payments": "refunded"}, metrics=[called("payments")])
    assert result.status == "passed", result.error
    assert responses(result.ledger) == ["Result: refunded"]
    assert state(result.ledger)["session"]["resolution"] == "refunded"
    [call] = tool_calls(result.ledger)
    assert call.args == {"message": "refund", "state": {"intent": "refund"}}


async def test_without_a_mock_the_call_is_refused_and_nothing_is_connected():
    far = FarSide()
    url = far.address(lambda asked: {})
    result = await played(remote("payments", url), metrics=[contains("x")])
    far.close()
    assert result.status == "error"
    assert "payments" in result.error.message
    assert "no mock" in result.error.message
    assert f"live('payments', hosts=['{urlsplit(url).netloc}'])" in result.error.message
    assert "allow_tools" not in result.error.message
    assert far.asked == []


async def test_naming_it_without_its_host_leaves_the_fence_closed():
    far = FarSide()
    url = far.address(lambda asked: {})
    flow = remote("payments", url)
    report = await evaluate(flow, Case("one", says="hi"), allow_tools=["payments"])
    far.close()
    assert report.results[0].status == "error"
    assert "127.0.0.1" in str(report.results[0].error)
    assert far.asked == []


async def test_a_failing_agent_elsewhere_lets_another_part_take_over():
    @step
    def by_hand(input: str) -> str:
        return f"Result: by hand, {input}"

    result = await played(PAYMENTS // by_hand, mocks={"payments": fault("down")})
    assert responses(result.ledger) == ["Result: by hand, Money back!"]
    result = await played(PAYMENTS, mocks={"payments": fault("down")})
    assert result.status == "error"
    assert "payments" in result.error.message


async def test_a_question_that_it_asks_back_is_put_to_the_user():
    mocks = {"payments": in_turn({"input_required": "Which order?"}, "Result: refunded 7")}
    result = await played(
        PAYMENTS, says="", turns=[Turn("Money back!"), Turn("Order 7")], mocks=mocks
    )
    assert result.status == "passed", result.error
    assert responses(result.ledger) == ["Which order?", "Result: refunded 7"]
    assert [call.args["message"] for call in tool_calls(result.ledger)] == [
        "Money back!",
        "Order 7",
    ]


async def test_it_may_stand_in_branches_and_each_has_its_own_answer():
    both = remote("one", "http://a.internal") | remote("two", "http://b.internal")
    mocks = {"one": "Result 1", "two": "Result 2"}
    result = await played(both, mocks=mocks)
    assert result.status == "passed", result.error
    assert {call.tool for call in tool_calls(result.ledger)} == {"one", "two"}


def test_contracts_know_what_it_is_sent_and_what_it_writes():
    assert not check(DESK).errors
    found = check(PAYMENTS >> respond)
    assert any(issue.place == "session.intent" for issue in found.issues)
    assert not any(issue.place == "session.resolution" for issue in found.issues)


def test_contracts_warn_of_one_in_a_race():
    found = check(race(PAYMENTS, classify))
    assert any(issue.kind == "RacingTools" and "payments" in issue.says for issue in found.issues)


def test_contracts_warn_of_a_token_that_goes_out_unencrypted():
    def kinds(url: str, token: str) -> list[str]:
        return [issue.kind for issue in check(remote("far", url, token=token)).issues]

    assert "OpenSecret" in kinds("http://far.internal", "TOKEN")
    assert "OpenSecret" not in kinds("https://far.internal", "TOKEN")
    assert "OpenSecret" not in kinds("http://far.internal", "")
    assert "OpenSecret" not in kinds("http://127.0.0.1:8080", "TOKEN")


class Billing(StateSchema):
    resolution: int


def test_fields_of_a_schema_are_places_too():
    flow = remote("payments", "http://a.internal", receives=Billing.resolution)
    assert flow.facts()["writes"] == "resolution"


async def test_an_answer_of_another_type_than_the_schema_says_fails_the_node():
    flow = remote("payments", "http://a.internal", receives=Billing.resolution)
    assert (await played(flow, mocks={"payments": 7}, metrics=[called("payments")])).passed
    result = await played(flow, mocks={"payments": "seven"})
    assert result.status == "error"


def test_the_graph_draws_it_with_its_address():
    drawn = mermaid(compile_flow(DESK).snapshot, data=True)
    assert "payments<br/>https://payments.internal" in drawn
    assert "intent" in drawn


def test_what_it_costs_is_unknown_and_never_zero():
    found = estimate(DESK, Traffic())
    assert found.usd is None
    assert found.unknown == ("what payments costs elsewhere",)
    clerk = Agent("clerk", model=Scripted("x"))
    assert estimate(clerk >> PAYMENTS).usd is None
    assert "elsewhere" in str(found)


def test_the_snapshot_has_names_of_variables_and_the_digest_changes_with_the_address():
    graph = compile_flow(PAYMENTS)
    assert PAYMENTS.facts()["headers"] == {"Authorization": "PAY"}
    other = remote("payments", "https://b.internal", sends="intent", receives="resolution")
    assert compile_flow(other).digest != graph.digest


@pytest.mark.parametrize(
    "options",
    [
        {"url": "ftp://a"},
        {"url": "https://user:secret-word@a.internal"},
        {"url": "https://a.internal/?key=secret-word"},
        {"url": "https://a.internal:99999"},
        {"url": "https://a.internal/a b"},
        {"url": 7},
        {"token": "Bearer secret-word"},
        {"headers": {"X-Key": "secret-word"}},
        {"headers": {"X Key": "KEY"}},
        {"timeout": 0},
        {"timeout": float("nan")},
        {"name": "a b"},
        {"name": "seq"},
    ],
)
def test_what_cannot_be_meant_is_refused_and_no_secret_is_shown(options: dict[str, Any]):
    given: dict[str, Any] = {"name": "payments", "url": "https://a.internal", **options}
    name, url = given.pop("name"), given.pop("url")
    with pytest.raises(BadAgent) as caught:
        remote(name, url, **given)
    assert "secret-word" not in str(caught.value)


def test_a_name_that_means_two_things_is_refused():
    @tool
    def payments() -> str:
        """Pay."""
        return ""

    clerk = Agent("clerk", model=Scripted("x"), tools=[payments])
    with pytest.raises(BadAgent, match="named like a tool"):
        compile_flow(clerk >> PAYMENTS)
    with pytest.raises(BadAgent, match="differ"):
        compile_flow(PAYMENTS >> remote("payments", "https://b.internal"))
    compile_flow(PAYMENTS >> PAYMENTS)


def test_a_card_gives_the_address():
    flow = remote("payments", AgentCard("payments", "https://a.internal/rpc"))
    assert flow.address.url == "https://a.internal/rpc"
    assert flow.address.is_endpoint
