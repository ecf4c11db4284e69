"""LangChain models that answer from a list, and agents built as the conformance suite wants them."""

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, TypedDict

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, HumanInTheLoopMiddleware
from langchain.agents.structured_output import ToolStrategy
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.tools import BaseTool, StructuredTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command, interrupt
from pydantic import Field

from greenroom.backends.langgraph import LangGraphBackend
from greenroom.ledger.messages import ToolCall
from greenroom.testing import (
    USAGE,
    Blueprint,
    Bypass,
    HandOver,
    Hang,
    Structured,
    ToolPlan,
    pieces,
)

_USED: Any = {"input_tokens": USAGE.input, "output_tokens": USAGE.output, "total_tokens": 10}


class Script(BaseChatModel):
    """Answers by how many replies the history already holds, so it serves many runs at once."""

    lines: list[Any]
    streaming: bool = False
    asked: list[list[BaseMessage]] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "script"

    def bind_tools(self, tools: Sequence[Any], **options: Any) -> Any:
        told = [t if isinstance(t, dict) else convert_to_openai_tool(t) for t in tools]
        return self.bind(tools=told, **{k: v for k, v in options.items() if v is not None})

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **_: Any
    ) -> ChatResult:
        self.asked.append(list(messages))
        said = sum(isinstance(message, AIMessage) for message in messages)
        return ChatResult(generations=[ChatGeneration(message=reply(self.lines[said]))])

    async def _agenerate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **_: Any
    ) -> ChatResult:
        said = sum(isinstance(message, AIMessage) for message in messages)
        if isinstance(self.lines[said], Hang):
            await asyncio.Event().wait()
        return self._generate(messages)


class Streamed(Script):
    """The same, word by word."""

    def _stream(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **_: Any
    ) -> Iterator[ChatGenerationChunk]:
        whole = self._generate(messages).generations[0].message
        assert isinstance(whole, AIMessage)
        for text in pieces(str(whole.text)) if whole.text else []:
            yield ChatGenerationChunk(message=AIMessageChunk(content=text))
        calls = [
            tool_call_chunk(name=c["name"], args=json.dumps(c["args"]), id=c["id"], index=n)
            for n, c in enumerate(whole.tool_calls)
        ]
        yield ChatGenerationChunk(
            message=AIMessageChunk(content="", tool_call_chunks=calls, usage_metadata=_USED)
        )


def reply(line: Any) -> AIMessage:
    match line:
        case Exception():
            raise line
        case str():
            return AIMessage(line, usage_metadata=_USED)
        case HandOver(to):
            return AIMessage(f"-> {to}", usage_metadata=_USED)
        case Structured(value):
            return reply(ToolCall("Verdict", value, "call-verdict"))
        case ToolCall():
            return reply([line])
        case _:
            calls = [{"name": c.tool, "args": dict(c.args), "id": c.id or None} for c in line]
            return AIMessage("", tool_calls=calls, usage_metadata=_USED)


def last(_: Any, new: Any) -> Any:
    return new


class Order(TypedDict):
    """A state with a key of its own."""

    order: Annotated[int, last]


class Swallow(AgentMiddleware):
    """A user's middleware that makes the best of every failure."""

    async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
        from langchain_core.messages import ToolMessage

        try:
            return await handler(request)
        except BaseException:
            return ToolMessage("all fine", tool_call_id=request.tool_call["id"])


def tool_of(plan: ToolPlan) -> BaseTool:
    import inspect

    if inspect.iscoroutinefunction(plan.fn):
        return StructuredTool.from_function(coroutine=plan.fn)
    return StructuredTool.from_function(plan.fn)


def model_of(plan: Blueprint) -> Script:
    kind = Streamed if plan.streams else Script
    return kind(lines=list(plan.lines), streaming=plan.streams)


def agent_of(plan: Blueprint) -> Any:
    asked: dict[str, Any] = {
        tool.name: True if tool.kind == "approval" else {"allowed_decisions": ["respond"]}
        for tool in plan.tools
        if tool.kind != "plain"
    }
    middleware: list[Any] = [HumanInTheLoopMiddleware(asked)] if asked else []
    if plan.swallows:
        middleware.append(Swallow())
    return create_agent(
        model_of(plan),
        [tool_of(tool) for tool in plan.tools],
        name=plan.name,
        system_prompt=plan.instructions,
        middleware=middleware,
        response_format=ToolStrategy(plan.output) if plan.output else None,
    )


def writing(plan: Blueprint) -> Any:
    class Answered(MessagesState):
        order: int
        answer: str

    async def clerk(state: Answered) -> Any:
        said = await model_of(plan).ainvoke(state["messages"])
        return {"messages": [said], plan.writes: said.text}

    graph = StateGraph(Answered)
    graph.add_node("clerk", clerk)
    graph.add_edge(START, "clerk")
    return graph.compile(name="clerk")


def awaiting(plan: Blueprint) -> Any:
    async def clerk(state: MessagesState) -> Any:
        asked = await model_of(plan).ainvoke(state["messages"])
        name = interrupt(str(asked.text))
        heard = [*state["messages"], asked, HumanMessage(name)]
        return {"messages": [asked, HumanMessage(name), await model_of(plan).ainvoke(heard)]}

    graph = StateGraph(MessagesState)
    graph.add_node("clerk", clerk)
    graph.add_edge(START, "clerk")
    return graph.compile(name="clerk")


def handing(plan: Blueprint) -> Any:
    """A graph of agents in which one hands over to another by a command to their parent."""

    async def model(state: MessagesState) -> Any:
        said = await model_of(plan).ainvoke(state["messages"])
        to = said.text.removeprefix("-> ")
        return Command(goto=to, graph=Command.PARENT, update={"messages": []})

    clerk = StateGraph(MessagesState)
    clerk.add_node("model", model)
    clerk.add_edge(START, "model")
    graph = StateGraph(MessagesState)
    graph.add_node("clerk", clerk.compile(name="clerk"), destinations=("helper",))
    for helper in plan.helpers:
        graph.add_node(helper.name, agent_of(helper))
        graph.add_edge(helper.name, END)
    graph.add_edge(START, "clerk")
    return graph.compile(name="office")


class LangGraphHarness:
    backend: Any = LangGraphBackend
    seam = (
        "langchain_core.tools:BaseTool.run",
        "langchain_core.tools:BaseTool.arun",
        "langgraph.pregel:Pregel.astream",
        "langgraph.prebuilt:ToolNode._arun_one",
    )

    def build(self, plan: Blueprint) -> Any:
        if plan.writes:
            return writing(plan)
        if plan.awaits_input:
            return awaiting(plan)
        return handing(plan) if plan.helpers else agent_of(plan)

    async def run_bare(self, agent: Any, says: str) -> None:
        await agent.ainvoke({"messages": [HumanMessage(says)]})

    def bypasses(self) -> Mapping[str, Bypass]:
        from backends.langgraph.bypasses import BYPASSES

        return BYPASSES
