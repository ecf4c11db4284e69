"""One model answers in place of an agent's own, whatever its framework: no key, no fake class."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent as PydanticAgent

from agents import Agent as OpenAIAgent
from backends.keyed_agents import ASKED, FRAMEWORKS, Forecast, get_weather
from greenroom import Agent, Case, Expect, Scripted, Turn, call, rehearse, simulate
from greenroom.backends.http import http_agent
from greenroom.errors import BadAgent, BadCase, BadInput
from greenroom.ledger import responses, said, tool_calls
from greenroom.ledger.events import InvocationEnded, ModelReplied
from greenroom.metrics import called, forbidden_calls, judge, tone
from greenroom.models import provider_model

LINES = (call("get_weather", city="Paris"), "It is 21 degrees.")
PARIS = Case(
    "paris",
    says="What is the weather in Paris?",
    mocks={"get_weather": {"celsius": 21}},
    expect=Expect(contains="21"),
    metrics=[called("get_weather", {"city": "Paris"})],
)
every_framework = pytest.mark.parametrize("build", FRAMEWORKS.values(), ids=[*FRAMEWORKS])


@pytest.fixture(autouse=True)
def nothing_is_asked() -> Iterator[None]:
    ASKED.clear()
    yield
    ASKED.clear()


@every_framework
def test_without_another_model_the_agents_own_is_asked(build: Callable[..., Any]) -> None:
    report = rehearse(build(), [PARIS])
    assert report["paris"].status == "error"
    assert ASKED


@every_framework
def test_a_script_answers_for_the_agent_and_its_own_model_is_never_asked(
    build: Callable[..., Any],
) -> None:
    report = rehearse(build(), [PARIS], model=Scripted(*LINES))
    assert report.passed, str(report)
    assert report.models == {"scripted": 2}
    assert report["paris"].cost == 0.0
    assert not ASKED


@every_framework
def test_what_is_said_beside_a_call_counts_as_said(build: Callable[..., Any]) -> None:
    model = Scripted(["The code is 4711, but wait.", LINES[0]], LINES[1])
    judged = Scripted(then=lambda asked: {"reasoning": "So.", "verdict": "4711" in asked.last})
    metrics = [tone(["4711"], threshold=1.0), judge("heard", "?", model=judged)]
    case = Case("paris", says="Paris?", mocks={"get_weather": {"celsius": 21}}, metrics=metrics)
    [result] = rehearse(build(), [case], model=model).results
    assert result.scores["tone"].reason == "said '4711'"
    assert result.scores["heard"].passed
    assert said(result.ledger) == ["The code is 4711, but wait.", "It is 21 degrees."]
    assert result.responses == responses(result.ledger) == ["It is 21 degrees."]


@every_framework
@pytest.mark.parametrize("blank", ["", " \n", "\u200b", "\ufeff\x00"])
@pytest.mark.parametrize("before", [(), LINES[:1]], ids=["at once", "after a call"])
def test_an_agent_that_answers_with_nothing_is_an_error(
    build: Callable[..., Any], blank: str, before: tuple[Any, ...]
) -> None:
    case = Case("paris", says="Paris?", mocks={"get_weather": 21}, metrics=[forbidden_calls("pay")])
    [result] = rehearse(build(), [case], model=Scripted(*before, then=blank)).results
    assert (result.status, result.error and result.error.phase) == ("error", "agent")
    assert result.scores["forbidden_calls('pay')"].value is None


@every_framework
def test_a_model_of_the_case_comes_before_that_of_the_run(build: Callable[..., Any]) -> None:
    other = Case("other", says="Hi", model=Scripted("Hello."), expect=Expect(response="Hello."))
    report = rehearse(build(), [PARIS, other], model=Scripted(*LINES))
    assert report.passed, str(report)
    assert not ASKED


@every_framework
async def test_data_is_answered_in_the_frameworks_own_way(build: Callable[..., Any]) -> None:
    data = {"city": "Paris", "degrees": 21}
    case = Case("data", says="Paris?", mocks={"get_weather": {"celsius": 21}})
    ledger = await simulate(case, build(Forecast), model=Scripted(LINES[0], data))
    assert [end.output for end in ledger.of(InvocationEnded)] == [data]
    assert not ASKED


@every_framework
def test_turns_and_parallel_calls_go_by_one_script(build: Callable[..., Any]) -> None:
    both = [call("get_weather", city="Paris"), call("get_weather", city="Rome")]
    case = Case("two", turns=[Turn("Paris and Rome?"), Turn("Thanks!")], mocks={"get_weather": 1})
    report = rehearse(build(), [case], model=Scripted(both, "Both 1.", "You are welcome."))
    [result] = report.results
    assert result.responses == ["Both 1.", "You are welcome."], str(report)
    assert result.ledger is not None
    assert [one.args["city"] for one in tool_calls(result.ledger)] == ["Paris", "Rome"]


@every_framework
def test_a_script_that_has_run_out_is_an_error_that_names_it(build: Callable[..., Any]) -> None:
    [result] = rehearse(build(), [PARIS], model=Scripted(LINES[0])).results
    assert result.error is not None
    assert result.error.type == "ScriptExhausted"
    assert "has 1 answers" in result.error.message


@every_framework
def test_another_model_is_another_agent(build: Callable[..., Any], tmp_path: Path) -> None:
    agent = build()
    first = rehearse(agent, [PARIS], model=Scripted(*LINES), store=tmp_path)
    again: Any = {"store": tmp_path, "resume": first.id}
    assert rehearse(agent, [PARIS], model=Scripted(*LINES), **again).passed
    with pytest.raises(BadInput, match="agent"):
        rehearse(agent, [PARIS], model=Scripted("Another."), **again)


@every_framework
def test_agents_inside_a_function_are_answered_too(build: Callable[..., Any]) -> None:
    agent = build()
    if isinstance(agent, Agent):
        pytest.skip("an agent of Greenroom's is not run by hand")

    async def desk(message: str) -> str:
        return f"The desk says: {await _run(agent, message)}"

    report = rehearse(desk, [PARIS], model=Scripted(*LINES))
    assert report.passed, str(report)
    assert report["paris"].responses == ["The desk says: It is 21 degrees."]
    assert not ASKED


async def _run(agent: Any, message: str) -> str:
    """The agent's answer, as each framework's own documentation gets it."""
    if isinstance(agent, PydanticAgent):
        return (await agent.run(message)).output
    if isinstance(agent, OpenAIAgent):
        from agents import Runner

        return (await Runner.run(agent, message)).final_output
    if hasattr(agent, "ainvoke"):
        return (await agent.ainvoke({"messages": [("user", message)]}))["messages"][-1].text
    from google.adk.runners import InMemoryRunner

    runner = InMemoryRunner(agent, app_name="desk")
    events: Any = await runner.run_debug(message, quiet=True)
    return "".join(part.text or "" for part in events[-1].content.parts)


async def test_one_script_answers_in_the_order_in_which_a_run_asks() -> None:
    own: Any = FRAMEWORKS["native"]().model
    billing = Agent("billing", model=own)
    desk = Agent("desk", model=own, handoffs=[billing])
    model = Scripted(call("transfer_to_billing"), "You owe 7.")
    ledger = await simulate(Case("one", says="Hi"), desk, model=model)
    assert responses(ledger) == ["You owe 7."]
    assert [reply.agent for reply in ledger.of(ModelReplied)] == ["desk", "billing"]
    assert not ASKED


def test_pydantic_ai_agents_that_name_their_model_or_have_none_need_no_key() -> None:
    for agent in (
        PydanticAgent(tools=[get_weather]),
        PydanticAgent("openai:gpt-4o", tools=[get_weather], defer_model_check=True),
    ):
        report = rehearse(agent, [PARIS], model=Scripted(*LINES))
        assert report.passed, str(report)

        async def inside(message: str, agent: Any = agent) -> str:
            return (await agent.run(message)).output

        assert rehearse(inside, [PARIS], model=Scripted(*LINES)).passed


def test_a_pydantic_ai_agent_that_streams_inside_a_function_is_answered() -> None:
    agent = PydanticAgent("openai:gpt-4o", tools=[get_weather], defer_model_check=True)

    async def streams(message: str) -> str:
        async with agent.run_stream(message) as stream:
            return await stream.get_output()

    report = rehearse(streams, [PARIS], model=Scripted(*LINES))
    assert report.passed, str(report)


def test_an_agent_whose_models_no_gate_sees_is_refused() -> None:
    agent = http_agent("http://127.0.0.1:9/ask")
    with pytest.raises(BadAgent, match="no other model can replace them"):
        rehearse(agent, [PARIS], model=Scripted("Hi"), allow_opaque=True)


@pytest.mark.parametrize("given", ["", " ", 7, Scripted, object()])
def test_what_cannot_respond_is_refused_at_both_doors(given: Any) -> None:
    with pytest.raises(BadInput, match="should be a model such as"):
        rehearse(FRAMEWORKS["native"](), [PARIS], model=given)
    with pytest.raises(BadCase, match="cannot respond"):
        Case("bad", says="Hi", model=given)


@every_framework
def test_a_provider_by_name_takes_the_place_of_a_frameworks_model(
    build: Callable[..., Any],
) -> None:
    # Nothing listens there: that it was asked shows whose place it took.
    model = provider_model("openai:small", base_url="http://127.0.0.1:9/v1", retries=0)
    [result] = rehearse(build(), [PARIS], model=model).results
    assert result.error is not None
    assert result.error.type == "ModelUnreachable"
    assert not ASKED
