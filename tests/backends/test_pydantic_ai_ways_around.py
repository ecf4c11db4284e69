"""Ways around the gate that capabilities, hooks and instructions of an agent offer: all are closed.

Each is first walked without Greenroom, to see that it leads somewhere.
"""

from collections.abc import Callable
from typing import Any, cast

import pytest
from pydantic_ai import Agent, RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models import Model
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.toolsets import (
    AbstractToolset,
    CombinedToolset,
    FunctionToolset,
    WrapperToolset,
)

from greenroom import Case, Lines, evaluate
from greenroom.ledger import ModelCalled, Remembered
from greenroom.metrics import contains
from greenroom.results.result import CaseResult

Marks = list[str]


def saying(*lines: str | ToolCallPart, marks: Marks | None = None) -> FunctionModel:
    """A model that goes through its lines, and leaves a mark each time it is really asked."""

    async def reply(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        if marks is not None:
            marks.append("model")
        line = lines[sum(isinstance(message, ModelResponse) for message in messages) % len(lines)]
        return ModelResponse(parts=[TextPart(line) if isinstance(line, str) else line])

    return FunctionModel(reply, model_name="script")


async def played(agent: Agent[Any, Any], **options: Any) -> CaseResult:
    case = Case("one", says="hello", metrics=[contains("done")], **options)
    return (await evaluate(agent, [case])).results[0]


def adding(marks: Marks) -> Agent[Any, Any]:
    def pay() -> str:
        """Pay."""
        marks.append("pay")
        return "paid"

    class Adds(AbstractCapability[Any]):
        def get_wrapper_toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any]:
            return CombinedToolset([toolset, FunctionToolset([pay])])

    return Agent(saying(ToolCallPart("pay", {}), "done"), name="clerk", capabilities=[Adds()])


def listing(marks: Marks) -> Agent[Any, Any]:
    def pay() -> str:
        """Pay."""
        marks.append("pay")
        return "paid"

    own = FunctionToolset[Any]([pay])

    class Lists(WrapperToolset[Any]):
        async def get_tools(self, ctx: RunContext[Any]) -> Any:
            return {**await super().get_tools(ctx), **await own.get_tools(ctx)}

        async def call_tool(self, name: str, tool_args: Any, ctx: Any, tool: Any) -> Any:
            if name == "pay":
                return await own.call_tool(name, tool_args, ctx, tool)
            return await super().call_tool(name, tool_args, ctx, tool)

    class Adds(AbstractCapability[Any]):
        def get_wrapper_toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any]:
            return CombinedToolset([Lists(toolset)]).filtered(lambda *_: True)

    return Agent(saying(ToolCallPart("pay", {}), "done"), name="clerk", capabilities=[Adds()])


def handing_back(marks: Marks) -> Agent[Any, Any]:
    def pay() -> str:
        """Pay."""
        marks.append("pay")
        return "paid"

    own = FunctionToolset[Any]([pay])

    class Hands(AbstractCapability[Any]):
        def get_wrapper_toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any]:
            return CombinedToolset([own])

    script = saying(ToolCallPart("pay", {}), "done")
    return Agent(script, name="clerk", toolsets=[own], capabilities=[Hands()])


def turning_into_others(marks: Marks) -> Agent[Any, Any]:
    def pay() -> str:
        """Pay."""
        marks.append("pay")
        return "paid"

    class Turns(WrapperToolset[Any]):
        async def for_run(self, ctx: RunContext[Any]) -> AbstractToolset[Any]:
            return CombinedToolset([self.wrapped, FunctionToolset([pay])])

    class Adds(AbstractCapability[Any]):
        def get_wrapper_toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any]:
            return Turns(toolset)

    return Agent(saying(ToolCallPart("pay", {}), "done"), name="clerk", capabilities=[Adds()])


def swapping(marks: Marks) -> Agent[Any, Any]:
    class Swaps(AbstractCapability[Any]):
        def get_wrapper_model(self, model: Model) -> Model:
            return saying("done", marks=marks)

    return Agent(saying("done"), name="clerk", capabilities=[Swaps()])


def counting(marks: Marks) -> Agent[Any, Any]:
    class Provider(FunctionModel):
        async def count_tokens(self, *_: Any, **__: Any) -> Any:
            marks.append("counted by the provider")

    class Counts(AbstractCapability[Any]):
        async def before_model_request(self, ctx: RunContext[Any], request_context: Any) -> Any:
            await request_context.model.count_tokens([], None, None)
            return request_context

    async def reply(*_: Any) -> ModelResponse:
        return ModelResponse(parts=[TextPart("done")])

    return Agent(Provider(reply, model_name="script"), name="clerk", capabilities=[Counts()])


def running_itself(marks: Marks) -> Agent[Any, Any]:
    agent = Agent(saying("done", marks=marks), name="clerk")
    depth: list[int] = []

    @agent.instructions
    async def look_it_up() -> str:
        if depth:
            return "Be kind."
        depth.append(1)
        try:
            return (await agent.run("what is the rule?")).output
        finally:
            depth.pop()

    return agent


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("way", [adding, listing, handing_back, turning_into_others, counting])
async def test_a_way_around_the_gate_ends_the_case_before_anything_happens(
    way: Callable[[Marks], Agent[Any, Any]], traced: bool
):
    open_marks: Marks = []
    await way(open_marks).run("hello")
    assert open_marks
    marks: Marks = []
    agent = way(marks)
    agent.instrument = traced
    result = await played(agent)
    assert result.status == "error"
    assert result.error is not None
    assert result.error.type == "ToolRefused"
    assert marks == []


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("way,asked", [(swapping, 1), (running_itself, 2)])
async def test_models_that_a_capability_or_an_instruction_brings_are_asked_through_the_world(
    way: Callable[[Marks], Agent[Any, Any]], asked: int, traced: bool
):
    marks: Marks = []
    agent = way(marks)
    agent.instrument = traced
    result = await played(agent)
    assert result.passed
    assert result.ledger is not None
    assert len(result.ledger.of(ModelCalled)) == len(marks) == asked


async def test_a_hook_that_asks_the_model_itself_asks_through_the_world():
    class Asks(AbstractCapability[Any]):
        async def before_model_request(self, ctx: RunContext[Any], request_context: Any) -> Any:
            parameters = request_context.model_request_parameters
            await request_context.model.request(request_context.messages, None, parameters)
            return request_context

    result = await played(Agent(saying("done"), name="clerk", capabilities=[Asks()]))
    assert result.passed
    assert result.ledger is not None
    assert len(result.ledger.of(ModelCalled)) == 2


async def test_what_a_later_turn_makes_of_its_history_changes_nothing_that_happened():
    class Redacts(AbstractCapability[Any]):
        async def before_model_request(self, ctx: RunContext[Any], request_context: Any) -> Any:
            for message in request_context.messages:
                for part in message.parts:
                    if isinstance(part, ToolCallPart) and len(request_context.messages) > 4:
                        cast(Any, part.args)["who"]["card"] = "***"
            return request_context

    def pay(who: dict[str, str]) -> str:
        """Pay."""
        raise AssertionError

    paying = ToolCallPart("pay", {"who": {"card": "42"}})
    agent = Agent(saying(paying, "done"), name="clerk", tools=[pay], capabilities=[Redacts()])
    result = await played(agent, user=Lines("again"), mocks={"pay": "paid"})
    assert result.ledger is not None
    first, *_ = result.ledger.of(Remembered)
    assert '"card": "42"' in str(first.data).replace("'", '"')
