"""pydantic-ai agents, advanced on a World through a capability given to each run.

The agent object is only ever run, never changed: the capability is innermost for this one run, so
the user's own capabilities, hooks and wrapping toolsets run above it.
"""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, ClassVar, cast

from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ToolCallPart
from pydantic_ai.run import AgentRunResult

from greenroom.backends.backend import Advance, Interception, Resumption, ToolFacts, Yield
from greenroom.backends.foreign import Invocation, Played, approval, digest_of, jsonable
from greenroom.backends.pydantic_ai.facts import (
    check_agent,
    described_agent,
    name_of,
    output_type,
    tool_facts,
)
from greenroom.backends.pydantic_ai.gates import Gate
from greenroom.ledger.events import NodeEnded, NodeStarted
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.plain import Json, plain
from greenroom.world.recording import begin_call
from greenroom.world.world import ToolRequest, World

MEMORY = "pydantic-ai.messages"


class PydanticAIBackend:
    """Runs an `Agent`; `deps`, if given, is called for each run to make its dependencies."""

    name: ClassVar[str] = "pydantic-ai"
    models: ClassVar[Interception] = "routed"
    tool_calls: ClassVar[Interception] = "routed"
    # Exact at pauses and between turns; a run cut while the framework works must start again.
    resumes: ClassVar[Resumption] = "checkpoint"

    def __init__(self, agent: Agent[Any, Any], deps: Callable[[], Any] | None = None) -> None:
        self.agent = check_agent(agent)
        self._deps = deps

    @cached_property
    def snapshot(self) -> Json:
        """The agent with its model, instructions and tools."""
        return {"framework": self.name, **described_agent(self.agent)}

    @cached_property
    def digest(self) -> str:
        """Changes whenever the agent does."""
        return digest_of(self.snapshot)

    @cached_property
    def tools(self) -> Mapping[str, ToolFacts] | None:
        """The tools and output functions, or None if a toolset tells only when it runs."""
        return tool_facts(self.agent)

    async def advance(self, ledger: Ledger, world: World) -> Advance:
        """Go on with the open invocation, or begin the next one with what the user said last."""
        invocation = Invocation(ledger, world, MEMORY)
        return await invocation.play(lambda: self._run(invocation))

    async def _run(self, invocation: Invocation) -> Played:
        node = name_of(self.agent)
        path = f"{invocation.root}/{node}"
        if path not in invocation.trail.started:
            invocation.world.record(NodeStarted(path=path, node=node, input=invocation.given))
        result = await self._result(invocation, Gate(invocation, node, path))
        history = ModelMessagesTypeAdapter.dump_python(result.all_messages(), mode="json")
        if isinstance(result.output, DeferredToolRequests):
            return Played(history, yields=_waits(invocation, path, result.output))
        output = plain(jsonable(result.output), "the agent's output")
        invocation.world.record(NodeEnded(path=path, node=node, output=output))
        return Played(history, output)

    async def _result(self, invocation: Invocation, gate: Gate) -> AgentRunResult[Any]:
        given: dict[str, Any] = {"user_prompt": invocation.given}
        answers = _answers(invocation)
        if answers is not None:
            given = {"deferred_tool_results": answers}
        if (spec := output_type(self.agent)) is not None:
            given["output_type"] = spec
        history: list[ModelMessage] = ModelMessagesTypeAdapter.validate_python(invocation.history())
        return await self.agent.run(
            **given,
            message_history=history,
            deps=self._deps() if self._deps else None,
            capabilities=[gate],
            infer_name=False,
        )


def _answers(invocation: Invocation) -> DeferredToolResults | None:
    """The user's answers to a pause, or None at the beginning of a turn."""
    given = invocation.answers() if invocation.resumed else []
    if not given:
        return None
    results = DeferredToolResults()
    for answer in given:
        call_id = invocation.trail.yields[answer.yield_id].call_id
        if answer.yield_id == call_id:
            invocation.take_result(call_id, answer.value)
            results.calls[call_id] = answer.value
        else:
            results.approvals[call_id] = approval(answer.value)["confirmed"]
    return results


def _waits(invocation: Invocation, path: str, requests: DeferredToolRequests) -> tuple[Yield, ...]:
    approvals = [_approval_wanted(invocation, call) for call in requests.approvals]
    return (*approvals, *(_result_wanted(invocation, path, call) for call in requests.calls))


def _approval_wanted(invocation: Invocation, call: ToolCallPart) -> Yield:
    world, call_id = invocation.world, call.tool_call_id
    asked = sum(opened.call_id == call_id for opened in invocation.trail.yields.values())
    yield_id = world.new_id(invocation.root, "approval", call_id, asked)
    return invocation.approval_wanted(yield_id, call_id, call.tool_name, _args(call))


def _result_wanted(invocation: Invocation, path: str, call: ToolCallPart) -> Yield:
    """A call that runs elsewhere is called now and returns what the user answers."""
    tool, call_id, args = call.tool_name, call.tool_call_id, _args(call)
    n = invocation.trail.call_number(tool, call_id, path)
    begin_call(invocation.world, ToolRequest(call_id, tool, args, path, yields=True, n=n))
    return invocation.result_wanted(call_id, tool, args)


def _args(call: ToolCallPart) -> dict[str, Json]:
    return cast("dict[str, Json]", jsonable(call.args_as_dict()))
