"""An agent or a node that fails is told in the ledger, in every framework as in our own language."""

from collections.abc import Callable
from typing import Any

import pytest

from greenroom import Agent, Case, Scripted, simulate
from greenroom.ledger.events import NodeFailed, NodeStarted
from greenroom.models.model import ModelRequest


def native() -> Any:
    return Agent("clerk", model="openai:gpt-4o")


def adk() -> Any:
    from google.adk.agents import LlmAgent

    return LlmAgent(name="clerk", model="gemini-2.5-flash")


def openai_agents() -> Any:
    from agents import Agent as OpenAIAgent

    return OpenAIAgent("clerk", model="gpt-4o")


def pydantic_ai() -> Any:
    from pydantic_ai import Agent as PydanticAgent

    return PydanticAgent("openai:gpt-4o", name="clerk", defer_model_check=True)


def broken(_: ModelRequest) -> str:
    raise ValueError("out of order")


@pytest.mark.parametrize("build", [native, adk, openai_agents, pydantic_ai])
async def test_the_agent_at_work_has_failed(build: Callable[[], Any]) -> None:
    ledger = await simulate(Case("one", says="Hello"), build(), model=Scripted(broken))
    assert [event.path for event in ledger.of(NodeStarted)] == ["@1/clerk"]
    (failed,) = ledger.of(NodeFailed)
    assert (failed.path, failed.node, failed.attempt) == ("@1/clerk", "clerk", 1)
    assert (failed.error, failed.error_type) == ("out of order", "ValueError")


@pytest.mark.filterwarnings("ignore:SequentialAgent is deprecated:DeprecationWarning")
async def test_those_around_it_have_failed_with_it() -> None:
    from google.adk.agents import SequentialAgent  # pyright: ignore[reportDeprecated]

    flow = SequentialAgent(name="flow", sub_agents=[adk()])  # pyright: ignore[reportDeprecated]
    ledger = await simulate(Case("one", says="Hello"), flow, model=Scripted(broken))
    assert [event.path for event in ledger.of(NodeFailed)] == ["@1/flow/clerk", "@1/flow"]
