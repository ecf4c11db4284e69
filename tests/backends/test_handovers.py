"""Hand-overs are seen alike, whichever framework the agents are of."""

from collections.abc import Callable
from typing import Any

import pytest
from google.adk.agents import (
    LlmAgent,
    SequentialAgent,  # pyright: ignore[reportDeprecated]
)
from google.adk.tools.agent_tool import AgentTool
from langchain.agents import create_agent
from langchain_core.messages import AIMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command
from pydantic_ai import Agent as PydanticAgent

from agents import Agent as OpenAIAgent
from backends.keyed_agents import OwnChatModel, OwnLlm, OwnModel, OwnOpenAI
from greenroom import Agent, Case, Score, Scripted, call, rehearse, simulate
from greenroom.backends.http import http_agent
from greenroom.cases import Criterion
from greenroom.errors import BadCase, BadMetric
from greenroom.ledger import handovers
from greenroom.ledger.events import Decided
from greenroom.metrics import handed_over


def native() -> tuple[Any, Scripted]:
    own: Any = OwnModel()
    billing = Agent("billing", model=own)
    desk = Agent("desk", model=own, handoffs=[billing])
    return desk, Scripted(call("transfer_to_billing"), "You owe 7.")


def adk() -> tuple[Any, Scripted]:
    billing = LlmAgent(name="billing", model=OwnLlm(model="own"), description="Bills.")
    desk = LlmAgent(name="desk", model=OwnLlm(model="own"), sub_agents=[billing])
    return desk, Scripted(call("transfer_to_agent", agent_name="billing"), "You owe 7.")


def openai_agents() -> tuple[Any, Scripted]:
    billing: Any = OpenAIAgent("billing", model=OwnOpenAI())
    desk: Any = OpenAIAgent("desk", model=OwnOpenAI(), handoffs=[billing])
    return desk, Scripted(call("transfer_to_billing"), "You owe 7.")


def _graph(desk: Callable[..., Any], *, edge: bool) -> Any:
    building: Any = StateGraph(MessagesState)
    building.add_node("desk", desk)
    building.add_node("billing", create_agent(OwnChatModel(), [], name="clerk"))
    building.add_edge(START, "desk")
    if edge:
        building.add_conditional_edges("desk", lambda state: "billing", ["billing"])
    return building.compile(name="shop")


def langgraph_by_edge() -> tuple[Any, Scripted]:
    async def desk(state: MessagesState) -> dict[str, Any]:
        return {"messages": [AIMessage("To billing.")]}

    return _graph(desk, edge=True), Scripted("You owe 7.")


def langgraph_by_command() -> tuple[Any, Scripted]:
    async def desk(state: MessagesState) -> Command[Any]:
        return Command(goto="billing")

    return _graph(desk, edge=False), Scripted("You owe 7.")


def pydantic_ai_by_code() -> tuple[Any, Scripted]:
    first, second = PydanticAgent(name="desk"), PydanticAgent(name="billing")

    async def shop(message: str) -> str:
        topic = (await first.run(message)).output
        return (await second.run(topic)).output

    return shop, Scripted("A bill.", "You owe 7.")


def pydantic_ai_by_output() -> tuple[Any, Scripted]:
    billing = PydanticAgent(name="billing")

    async def ask_billing(topic: str) -> str:
        """Let billing answer."""
        return (await billing.run(topic)).output

    desk = PydanticAgent(name="desk", output_type=[ask_billing, str])
    return desk, Scripted(call("final_result", topic="A bill."), "You owe 7.")


SHOPS = [
    native,
    adk,
    openai_agents,
    langgraph_by_edge,
    langgraph_by_command,
    pydantic_ai_by_code,
    pydantic_ai_by_output,
]


def asking(metrics: Any, build: Callable[[], object]) -> Case:
    allowed = ["ask_billing"] if build is pydantic_ai_by_output else []
    return Case("c", says="My bill?", metrics=metrics, allow_tools=allowed)


@pytest.mark.parametrize("build", SHOPS)
def test_a_hand_over_is_seen(build: Callable[[], tuple[Any, Scripted]]) -> None:
    agent, model = build()
    metrics = [handed_over("billing"), handed_over("billing", by="desk", turn=1)]
    report = rehearse(agent, [asking(metrics, build)], model=model)
    assert report.passed, str(report)
    assert report["c"].responses == ["You owe 7."]


@pytest.mark.parametrize("build", SHOPS)
def test_what_was_not_handed_over_is_said_with_what_was(
    build: Callable[[], tuple[Any, Scripted]],
) -> None:
    agent, model = build()
    metrics = [
        handed_over("refunds"),
        handed_over("billing", never=True),
        handed_over("billing", by="clerk"),
        handed_over("desk"),
        handed_over("desk", never=True, name="fine"),
    ]
    scores = rehearse(agent, [asking(metrics, build)], model=model)["c"].scores
    found: dict[str, Any] = dict(scores)
    passed = [score.passed for score in found.values()]
    assert passed == [False, False, False, False, True], found
    assert "seen: desk to billing" in found["handed_over('refunds')"].reason


@pytest.mark.filterwarnings("ignore:SequentialAgent is deprecated")
async def test_a_sequence_and_an_agent_without_another_are_no_hand_over() -> None:
    own = OwnLlm(model="own")
    parts = [LlmAgent(name=name, model=own) for name in ("one", "two")]
    lined = SequentialAgent(name="line", sub_agents=[*parts])  # pyright: ignore[reportDeprecated]
    assert handovers(await simulate(Case("c", "Hi"), lined, model=Scripted("a", "b"))) == []
    model: Any = OwnModel()
    flow = Agent("one", model=model) >> Agent("two", model=model)
    assert handovers(await simulate(Case("c", "Hi"), flow, model=Scripted("a", "b"))) == []


async def test_each_output_function_of_a_chain_hands_over_and_an_agent_as_a_tool_does_not() -> None:
    refunds = PydanticAgent(name="refunds")

    async def ask_refunds(topic: str) -> str:
        return (await refunds.run(topic)).output

    billing = PydanticAgent(name="billing", output_type=[ask_refunds, str])

    async def ask_billing(topic: str) -> str:
        return (await billing.run(topic)).output

    async def look(topic: str) -> str:
        return (await refunds.run(topic)).output

    desk = PydanticAgent(name="desk", output_type=[ask_billing, str], tools=[look])
    script = [call("look", topic="x"), "Seen."]
    script += [call("final_result", topic="a"), call("final_result", topic="b"), "Paid back."]
    case = Case("c", "Hi", allow_tools=["ask_billing", "ask_refunds", "look"])
    ledger = await simulate(case, desk, model=Scripted(*script))
    seen = [(one.by, one.to) for one in handovers(ledger)]
    assert seen == [("desk", "billing"), ("billing", "refunds")]
    mocked = Case("c", "Hi", mocks={"ask_billing": "Later."})
    assert handovers(await simulate(mocked, desk, model=Scripted(script[2]))) == []


KNOWN_BEFORE = [native, adk, openai_agents]


@pytest.mark.parametrize("build", KNOWN_BEFORE)
@pytest.mark.parametrize(
    "metric",
    [
        handed_over("bliling", never=True),
        handed_over("refunds", never=True),
        handed_over("billing", by="dsek", never=True),
        handed_over("bliling"),
        Criterion("handed_over", options={"to": "bliling", "never": True}),
    ],
)
def test_an_agent_that_the_team_does_not_have_is_refused_before_the_first_case(
    build: Callable[[], tuple[Any, Scripted]], metric: Any
) -> None:
    agent, model = build()
    of_no_agent = pytest.raises(BadCase, match=r"the agent has no agent or node of that name")
    with of_no_agent:
        rehearse(agent, asking([metric], build), model=model, store=False)
    with of_no_agent:
        rehearse(agent, Case("c", "Hi"), metrics=[metric], model=model, store=False)


def test_a_metric_of_the_run_may_be_about_the_agents_of_some_cases() -> None:
    agent, _ = native()
    other = Agent("clerk", model=Scripted(then="Hi."))
    cases = [Case("c", "Hi"), Case("d", "Hi", agent=other)]
    metrics = [handed_over("billing", never=True, name="kept")]
    report = rehearse(agent, cases, metrics=metrics, model=Scripted(then="Hello."), store=False)
    assert report["c"].passed
    assert "no agent or node 'billing'" in report["d"].scores["kept"].reason


@pytest.mark.parametrize("build", [shop for shop in SHOPS if shop not in KNOWN_BEFORE])
def test_a_name_like_anothers_is_told_where_not_all_agents_are_known(
    build: Callable[[], tuple[Any, Scripted]],
) -> None:
    agent, model = build()
    case = asking([handed_over("billing2", never=True, name="kept")], build)
    found = rehearse(agent, [case], model=model, store=False)["c"].scores["kept"]
    assert isinstance(found, Score)
    assert found.passed
    assert "did you mean 'billing'" in found.reason


def test_an_agent_as_a_tool_is_one_that_the_team_has() -> None:
    helper = LlmAgent(name="helper", model=OwnLlm(model="own"))
    inner = LlmAgent(name="inner", model=OwnLlm(model="own"), tools=[AgentTool(helper)])
    desk = LlmAgent(name="desk", model=OwnLlm(model="own"), tools=[AgentTool(inner)])
    metrics = [handed_over(name, never=True) for name in ("inner", "helper")]
    model = Scripted(then="Hi.")
    assert rehearse(desk, Case("c", "Hi", metrics=metrics), model=model, store=False).passed
    with pytest.raises(BadCase, match=r"has \['desk', 'helper', 'inner'\]"):
        rehearse(desk, Case("c", "Hi", metrics=[handed_over("hlper")]), model=model, store=False)


async def test_how_the_frameworks_own_agent_goes_about_its_tools_is_no_decision() -> None:
    def look(city: str) -> str:
        """Look."""
        return city

    agent = create_agent(OwnChatModel(), [look], name="clerk")
    model = Scripted(call("look", city="Rome"), "Done.")
    ledger = await simulate(Case("c", "Hi", mocks={"look": "x"}), agent, model=model)
    assert ledger.of(Decided) == []


def test_an_agent_that_no_gate_sees_into_is_unmeasured() -> None:
    agent = http_agent("http://127.0.0.1:9/ask")
    case = Case("c", "Hi", metrics=[handed_over("billing")])
    assert rehearse(agent, [case], allow_opaque=True)["c"].status == "error"


@pytest.mark.parametrize("given", [{"to": ""}, {"to": "a", "turn": 0}, {"to": "a", "never": "x"}])
def test_what_cannot_be_meant_is_refused(given: Any) -> None:
    with pytest.raises(BadMetric, match="handed_over"):
        handed_over(**given)
