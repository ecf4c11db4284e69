"""One agent or node of a framework's tree or graph, run alone."""

from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.workflow import START as ADK_START
from google.adk.workflow import Workflow
from langchain.agents import create_agent
from langchain_core.messages import AIMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command

from agents import Agent as OpenAIAgent
from backends.keyed_agents import OwnChatModel, OwnLlm, OwnOpenAI, pydantic_ai
from greenroom import Case, Expect, Scripted, rehearse, simulate
from greenroom.errors import BadCase
from greenroom.ledger import responses
from greenroom.ledger.events import NodeStarted

MODEL = Scripted("Classified.", then="Again.")


def adk_tree() -> Any:
    own = OwnLlm(model="own")
    classifier = LlmAgent(name="classifier", model=own)
    clerk = LlmAgent(name="clerk", model=own)
    return LlmAgent(name="line", model=own, sub_agents=[classifier, clerk])


def adk_app() -> Any:
    return App(name="shop", root_agent=adk_tree())


def langgraph() -> Any:
    async def route(state: MessagesState) -> Command[Any]:
        return Command(goto="classifier", update={"messages": [AIMessage("routed")]})

    building: Any = StateGraph(MessagesState)
    building.add_node("route", route)
    building.add_node("classifier", create_agent(OwnChatModel(), [], name="inner"))
    building.add_edge(START, "route")
    return building.compile(name="shop")


def openai_agents() -> Any:
    classifier: Any = OpenAIAgent("classifier", model=OwnOpenAI())
    desk: Any = OpenAIAgent("desk", model=OwnOpenAI(), handoffs=[classifier])
    return desk


@pytest.mark.parametrize("build", [adk_tree, adk_app, langgraph, openai_agents])
async def test_only_the_target_runs(build: Any) -> None:
    agent = build()
    case = Case("c", "Hi", target="classifier", expect=Expect(response="Classified."))
    report = rehearse(agent, [case], model=MODEL)
    assert report.passed, str(report)
    assert report.models == {"scripted": 1}
    ledger = await simulate(case, agent, model=MODEL)
    assert not {"clerk", "route", "desk"} & {event.node for event in ledger.of(NodeStarted)}


async def test_a_plain_node_of_a_graph_and_a_node_inside_a_node_run_alone() -> None:
    ledger = await simulate(Case("c", "Hi", target="route"), langgraph(), model=MODEL)
    assert responses(ledger) == ["routed"]
    assert [event.node for event in ledger.of(NodeStarted)] == ["route"]
    ledger = await simulate(Case("c", "Hi", target="classifier/model"), langgraph(), model=MODEL)
    assert responses(ledger) == ["Classified."]
    assert [event.node for event in ledger.of(NodeStarted)] == ["model"]


async def test_a_function_node_of_a_workflow_runs_alone() -> None:
    def shout(node_input: str) -> str:
        return f"{node_input}!"

    def whisper(node_input: str) -> str:
        return node_input.lower()

    flow = Workflow(name="flow", edges=[(ADK_START, shout, whisper)])
    case = Case("c", "HI", target="shout", allow_tools=["shout"], expect=Expect(response="HI!"))
    report = rehearse(flow, [case])
    assert report.passed, str(report)


@pytest.mark.parametrize("build", [adk_tree, langgraph, openai_agents])
def test_a_target_that_is_not_there_is_named_with_those_that_are(build: Any) -> None:
    case = Case("c", "Hi", target="clark", expect=Expect(response="x"))
    with pytest.raises(BadCase, match=r"targets 'clark'.*classifier"):
        rehearse(build(), [case], model=MODEL)


async def test_an_agent_without_parts_says_so() -> None:
    with pytest.raises(BadCase, match="has no parts"):
        await simulate(Case("c", "Hi", target="x"), pydantic_ai(), model=MODEL)
