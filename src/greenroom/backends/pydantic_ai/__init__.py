"""pydantic-ai agents, advanced on a World through a gate that is put into each run.

The agent object is only ever run, never changed: the gate is innermost for this one run, so the
user's own capabilities, hooks and wrapping toolsets run above it.
"""

from collections.abc import Awaitable, Callable, Mapping
from functools import cached_property
from typing import Any, ClassVar, cast

from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.messages import ModelMessage, ModelResponse, ToolCallPart
from pydantic_ai.run import AgentRunResult

from greenroom.backends.backend import Advance, Feature, Interception, Resumption, ToolFacts, Yield
from greenroom.backends.foreign import Invocation, Played, approval, digest_of, held, jsonable
from greenroom.backends.pydantic_ai.facts import (
    check_agent,
    described_agent,
    name_of,
    tool_facts,
)
from greenroom.backends.pydantic_ai.gates import Gate
from greenroom.backends.pydantic_ai.memory import recalled, remembered
from greenroom.backends.pydantic_ai.pausing import pausing_output, twin_of
from greenroom.backends.pydantic_ai.seats import (
    Around,
    Seat,
    Taken,
    Witness,
    both_ends,
    is_silent,
    seat_of,
)
from greenroom.errors import AgentFailed
from greenroom.ledger.events import NodeEnded, NodeStarted, ToolReturned
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.plain import Json, plain
from greenroom.world.world import Context, Pending, ToolRequest, World

MEMORY = "pydantic-ai.messages"


class PydanticAIBackend:
    """Runs an `Agent`; `deps`, if given, is called for each run to make its dependencies."""

    name: ClassVar[str] = "pydantic-ai"
    models: ClassVar[Interception] = "routed"
    tool_calls: ClassVar[Interception] = "routed"
    # Exact at pauses and between turns; a run cut while the framework works must start again.
    resumes: ClassVar[Resumption] = "checkpoint"
    supports: ClassVar[frozenset[Feature]] = frozenset(
        {
            "approvals",
            "argument_checks",
            "error_handlers",
            "parallel_calls",
            "questions",
            "speaks_first",
            "streaming",
            "structured_output",
            "turns",
            "usage",
        }
    )

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

    @cached_property
    def _seat(self) -> Seat | None:
        return seat_of(self.agent)

    @cached_property
    def _is_silent(self) -> bool:
        return is_silent(self.agent)

    @cached_property
    def _twin(self) -> Agent[Any, Any] | None:
        return twin_of(self.agent)

    async def advance(self, ledger: Ledger, world: World) -> Advance:
        """Go on with the open invocation, or begin the next one with what the user said last."""
        invocation = Invocation(ledger, world, MEMORY)
        return await invocation.play(lambda: self._run(invocation))

    async def _run(self, invocation: Invocation) -> Played:
        node = name_of(self.agent)
        path = f"{invocation.root}/{node}"
        if path not in invocation.trail.started:
            invocation.world.record(NodeStarted(path=path, node=node, input=invocation.given))
        gate, messages = Gate(invocation, node, path), recalled(invocation.history())
        result = await self._result(invocation, gate, messages, _answers(invocation, messages))
        while isinstance(result.output, DeferredToolRequests):
            messages = result.all_messages()
            if waits := await _waits(invocation, path, result.output):
                return Played(remembered(messages), yields=waits, is_fresh=True)
            settled = _settled(invocation, messages)
            result = await self._result(invocation, gate, messages, settled)
        history = remembered(result.all_messages())
        output = result.output
        if type(output) is not str:
            output = plain(jsonable(output), "the agent's output")
        invocation.world.record(NodeEnded(path=path, node=node, output=output))
        return Played(history, output, is_fresh=True)

    def _result(
        self,
        invocation: Invocation,
        gate: Gate,
        messages: list[ModelMessage],
        answers: DeferredToolResults | None,
    ) -> Awaitable[AgentRunResult[Any]]:
        agent = self._twin or self.agent
        given: dict[str, Any] = {
            **({} if self._twin else pausing_output(agent)),
            "message_history": messages,
            "deps": self._deps() if self._deps else None,
            "infer_name": False,
        }
        if answers is not None:
            # Tools that were approved run before any request, so before there is a witness.
            given |= {"deferred_tool_results": answers, "capabilities": both_ends(gate)}
            return agent.run(**given)
        given["user_prompt"] = invocation.given
        return self._fresh_result(agent, gate, given)

    async def _fresh_result(
        self, agent: Agent[Any, Any], gate: Gate, given: dict[str, Any]
    ) -> AgentRunResult[Any]:
        seat = self._seat
        if seat is None or seat.get() is not None:
            return await agent.run(**given, capabilities=both_ends(gate))
        around = Around(agent.root_capability, gate, is_silent=self._is_silent)
        with held(seat, Taken(around)):
            return await agent.run(**given, usage_limits=Witness(gate=gate))


def _answers(invocation: Invocation, messages: list[ModelMessage]) -> DeferredToolResults | None:
    """The user's answers to a pause, or None at the beginning of a turn."""
    given = invocation.answers() if invocation.resumed else []
    if not given:
        return None
    results = _settled(invocation, messages)
    for answer in given:
        call_id = invocation.trail.yields[answer.yield_id].call_id
        if answer.yield_id == call_id:
            invocation.take_result(call_id, answer.value)
            results.calls[call_id] = answer.value
        else:
            results.approvals[call_id] = approval(answer.value)["confirmed"]
    return results


def _settled(invocation: Invocation, messages: list[ModelMessage]) -> DeferredToolResults:
    """What the World answered by itself to calls that would have waited for the user."""
    results, known = DeferredToolResults(), invocation.trail.results
    for call in _unanswered(messages):
        end = known.get(call.tool_call_id)
        if isinstance(end, ToolReturned):
            results.calls[call.tool_call_id] = plain(end.value)
        elif end is not None:
            results.calls[call.tool_call_id] = ToolFailed(end.error)
    return results


def _unanswered(messages: list[ModelMessage]) -> list[ToolCallPart]:
    """The calls of the last reply that have no result in the history."""
    calls: dict[str, ToolCallPart] = {}
    for message in messages:
        if isinstance(message, ModelResponse):
            calls = {call.tool_call_id: call for call in message.tool_calls}
        else:
            for part in message.parts:
                calls.pop(str(getattr(part, "tool_call_id", "")), None)
    return list(calls.values())


async def _waits(
    invocation: Invocation, path: str, requests: DeferredToolRequests
) -> tuple[Yield, ...]:
    wanted = [await _result_wanted(invocation, path, call) for call in requests.calls]
    approvals = [_approval_wanted(invocation, call) for call in requests.approvals]
    return (*approvals, *(wait for wait in wanted if wait is not None))


def _approval_wanted(invocation: Invocation, call: ToolCallPart) -> Yield:
    world, call_id = invocation.world, call.tool_call_id
    asked = sum(opened.call_id == call_id for opened in invocation.trail.yields.values())
    yield_id = world.new_id(invocation.root, "approval", call_id, asked)
    return invocation.approval_wanted(yield_id, call_id, call.tool_name, _args(call))


async def _result_wanted(invocation: Invocation, path: str, call: ToolCallPart) -> Yield | None:
    """A call that runs elsewhere returns what the user answers, unless the World does."""
    tool, call_id, args = call.tool_name, call.tool_call_id, _args(call)
    n = invocation.trail.call_number(tool, call_id, path)
    request = ToolRequest(call_id, tool, args, path, yields=True, n=n)
    outcome = await invocation.routed(invocation.world.call_tool(request, _nowhere))
    return invocation.result_wanted(call_id, tool, args) if isinstance(outcome, Pending) else None


def _nowhere(_: Context) -> Json:
    raise AgentFailed("a tool of an ExternalToolset has no body that could be run here.")


def _args(call: ToolCallPart) -> dict[str, Json]:
    return cast("dict[str, Json]", jsonable(call.args_as_dict()))
