"""Agents as `LlmAgent`s: google-adk asks the model and calls the tools, with the flow's own requests.

What the model is asked (its messages by the agent's context rules, its instructions with the state
filled in) is made by the native agent node from the session, right before google-adk asks. Plug-ins and
callbacks see it as usual, and the model gets their changes. Their changes to its reply are what the flow
gets and the session keeps.
"""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from itertools import count
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.events import Event
from google.adk.tools.base_tool import BaseTool
from google.genai import types
from msgspec.structs import replace
from pydantic import PrivateAttr

from greenroom.agents.agent import Agent
from greenroom.agents.graph import Node
from greenroom.agents.handoffs import transfer_tools
from greenroom.agents.tools import Tool
from greenroom.backends.adk.compiled.layout import Layout
from greenroom.backends.adk.compiled.past import answer_of, given_of
from greenroom.backends.adk.compiled.turn import TURN, CompiledModel, Question, Turn
from greenroom.backends.adk.compiled.visit import Visit
from greenroom.backends.adk.translation import reply_of, response_of
from greenroom.backends.adk.versions import Context
from greenroom.backends.native.agent_node import AgentRun
from greenroom.backends.native.failures import describe, failure
from greenroom.backends.native.history import handed_over
from greenroom.errors import AgentFailed, GreenroomError
from greenroom.ledger.attachments import text_and_attachments
from greenroom.ledger.events import ModelReplied, NodeFailed, NodeStarted, ToolFailed, ToolReturned
from greenroom.ledger.messages import ToolCall
from greenroom.ledger.plain import Json
from greenroom.models.model import model_name
from greenroom.models.replies import checked_reply
from greenroom.world.records import given_again, record_reply

Ask = Callable[..., AsyncGenerator[Any, None]]

HANDED_TO = "greenroom_handed_to"
"""The output of an agent that handed the conversation over: the name of the other agent."""


class CompiledTool(BaseTool):
    """A tool of the flow; a tool that the user answers is a long-running one."""

    def __init__(self, tool: Tool) -> None:
        super().__init__(name=tool.name, description=tool.description, is_long_running=tool.yields)
        self._parameters = dict(tool.parameters)

    def _get_declaration(self) -> types.FunctionDeclaration:
        return types.FunctionDeclaration(
            name=self.name,
            description=self.description,
            parameters_json_schema=self._parameters,
        )

    async def run_async(self, *, args: dict[str, Any], tool_context: Any) -> Any:
        """What the body returns, or why it failed; None while the user has to answer."""
        run = TURN.get().run
        call = ToolCall(self.name, args, tool_context.function_call_id)
        if self.name in run.transfers:
            return {"result": f"The conversation is handed over to {run.transfers[self.name]}."}
        await run.call(call)
        end = run.index.results.get(call.id)
        if isinstance(end, ToolFailed):
            return {"error": end.error}
        return None if end is None else {"result": end.value}


class CompiledAgent(LlmAgent):
    """An agent of the flow."""

    _layout: Layout = PrivateAttr()
    _part: Node = PrivateAttr()

    async def _run_impl(self, *, ctx: Context, node_input: Any) -> AsyncGenerator[Any, None]:
        """Run until it has answered, with as many attempts as it has retries."""
        visit, given = Visit(self._layout, self._part, ctx), given_of(node_input)
        agent, base = self._part.flow, visit.path
        assert isinstance(agent, Agent)
        for attempt in count(1):
            visit.path = base if attempt == 1 else f"{base}~{attempt}"
            if visit.path in visit.index.failed:
                continue
            try:
                async with aclosing(_answer(visit, given, ctx, super()._run_impl)) as events:
                    async for event in events:
                        yield event
                return
            except GreenroomError:
                if visit.has_news:
                    yield visit.event()
                raise
            except Exception as error:
                visit.world.record(
                    NodeFailed(
                        path=visit.path, node=self._part.id, attempt=attempt, **failure(error)
                    )
                )
                yield visit.event()
                if attempt > agent.retries:
                    raise AgentFailed(
                        f"{agent.name!r} failed at {visit.path}: {describe(error)}"
                    ) from error


async def _answer(visit: Visit, given: Json, ctx: Context, ask: Ask) -> AsyncGenerator[Event, None]:
    """Ask and call until there is an answer, a wait, or another agent takes over."""
    node, path, index = visit.node, visit.path, visit.index
    assert isinstance(node.flow, Agent)
    run = AgentRun(node.flow, node.id, path, visit.world, index, node.team)
    TURN.set(Turn(visit, run))
    if path not in index.started:
        visit.world.record(NodeStarted(path=path, node=node.id, input=given))
    last = (index.steps.get(path) or [None])[-1]
    if isinstance(last, ModelReplied):
        run.take_answers(last.calls)
    if visit.has_news:
        yield visit.event()
    if isinstance(last, ModelReplied) and (to := _leads_elsewhere(run, last)) is not None:
        if to:
            yield _hand_over(visit, to)
        return
    text = text_and_attachments(index.started[path].input)[0] or None
    is_over = False
    while not is_over:
        is_over = True
        async with aclosing(ask(ctx=ctx, node_input=text)) as events:
            async for event in events:
                if event.partial:
                    yield event
                elif event.get_function_responses():
                    _take_results(visit, run, event)
                    yield visit.attach(event)
                    if (to := _leads_elsewhere(run, index.steps[path][-1])) is not None:
                        if to:
                            yield _hand_over(visit, to)
                        return
                else:
                    is_over = await _take_reply(visit, run, event) and is_over
                    yield visit.attach(event)


def _leads_elsewhere(run: AgentRun, reply: object) -> str | None:
    """Where a reply whose calls were made leads: nowhere yet (""), to another agent, or on (None)."""
    assert isinstance(reply, ModelReplied)
    calls = [call for call in reply.calls if call.tool not in run.transfers]
    if any(call.id not in run.index.results for call in calls):
        return ""
    return handed_over(reply.calls, run.transfers) or None


def _hand_over(visit: Visit, to: str) -> Event:
    visit.walk.hand_over(visit.node, visit.path, to)
    return visit.event({HANDED_TO: to})


async def _take_reply(visit: Visit, run: AgentRun, event: Event) -> bool:
    """Record a reply and its outcome; False if the model must be asked again."""
    content = event.content
    if content is None or content.role != "model":
        return True
    turn = TURN.get()
    seen, replied = reply_of(event, model_name(run.agent.model)), turn.replied
    turn.replied = None
    if replied is None:
        # A plug-in, a callback or a mock has answered instead of the model.
        assert turn.asked is not None
        seen = checked_reply(seen, turn.asked.model)
        record_reply(visit.world, turn.asked, seen, "mock", 0.0)
    elif content == response_of(given_again(replied)).content:
        visit.world.record(replied)
    else:
        # One of them has changed what the model replied.
        visit.world.record(
            replace(replied, text=seen.text, calls=seen.calls, attachments=seen.attachments)
        )
    reply = visit.index.steps[visit.path][-1]
    assert isinstance(reply, ModelReplied)
    event.output, event.node_info.message_as_output = None, None
    if reply.calls:
        return True
    if not run.has_answered(reply):
        return False
    event.output = visit.walk.end(visit.node, visit.path, run.output).output
    return True


def _take_results(visit: Visit, run: AgentRun, event: Event) -> None:
    """Record results that did not come from our tool bodies, and calls of unknown tools."""
    visit.adopt(event.actions.state_delta)
    for response in event.get_function_responses():
        call_id, tool = response.id or "", response.name or ""
        if tool in run.transfers or call_id in visit.index.results:
            continue
        value = answer_of(response.response)
        visit.world.record(
            ToolReturned(path=visit.path, call_id=call_id, tool=tool, value=value, source="mock")
        )


async def _refuse_unknown(tool: BaseTool, args: dict[str, Any], tool_context: Any) -> Any:
    """Tell the model which tools there are, if it calls one that does not exist."""
    if isinstance(tool, CompiledTool):
        return None
    run = TURN.get().run
    if run.agent.tool(tool.name) is not None:
        return None
    await run.call(ToolCall(tool.name, args, tool_context.function_call_id))
    end = run.index.results[tool_context.function_call_id]
    return {"error": end.error if isinstance(end, ToolFailed) else ""}


def compiled_agent(layout: Layout, node: Node, name: str) -> CompiledAgent:
    """The agent of this node."""
    agent = node.flow
    assert isinstance(agent, Agent)
    team = {one.name: one for one in node.team.values()}
    tools = (*agent.toolbox, *transfer_tools(agent, team))
    made = CompiledAgent(
        name=name,
        description=agent.description,
        model=CompiledModel(model=model_name(agent.model)),
        # A function, because google-adk fills braces in strings, but only declared places may be filled.
        instruction=lambda _: agent.instructions,
        tools=[*(CompiledTool(tool) for tool in tools), Question()],
        mode="single_turn",
        include_contents="none",
        disallow_transfer_to_parent=True,
        disallow_transfer_to_peers=True,
        before_tool_callback=_refuse_unknown,
    )
    made._layout, made._part = layout, node  # pyright: ignore[reportPrivateUsage]
    return made
