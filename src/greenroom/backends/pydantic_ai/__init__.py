"""pydantic-ai agents, advanced on a World by the seam at the framework's innermost calls.

The agent object is only ever run, never changed. The user's own capabilities, hooks and guardrails
run above the seam.
"""

from collections.abc import Callable, Mapping
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
    check_model,
    described_agent,
    name_of,
    tool_facts,
)
from greenroom.backends.pydantic_ai.memory import recalled, remembered
from greenroom.backends.pydantic_ai.pauses import pausing_output, twin_of
from greenroom.backends.pydantic_ai.run import STAGE, FrameworkRun
from greenroom.backends.pydantic_ai.seam import install
from greenroom.errors import AgentFailed, InDoubt
from greenroom.ledger.events import Answered, NodeEnded, NodeStarted, Remembered, ToolReturned
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.plain import Json, plain
from greenroom.world.presence import placed
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
    def _twin(self) -> Agent[Any, Any] | None:
        return twin_of(self.agent)

    async def advance(self, ledger: Ledger, world: World) -> Advance:
        """Go on with the open invocation, or begin the next one with what the user said last."""
        install()
        invocation = Invocation(ledger, world, MEMORY)
        return await invocation.play(lambda: self._run(invocation))

    async def _run(self, invocation: Invocation) -> Played:
        node = name_of(self.agent)
        path = f"{invocation.root}/{node}"
        if path not in invocation.index.started:
            invocation.world.record(NodeStarted(path=path, node=node, input=invocation.given))
        messages = recalled(invocation.history())
        with placed(_place(invocation, path)):
            return await self._played(invocation, path, messages)

    async def _played(
        self, invocation: Invocation, path: str, messages: list[ModelMessage]
    ) -> Played:
        node = name_of(self.agent)
        answers = _answers(invocation, messages)
        result = await self._result(invocation, path, messages, answers)
        while isinstance(result.output, DeferredToolRequests):
            messages = result.all_messages()
            if waits := await _waits(invocation, path, result.output):
                return Played(remembered(messages), yields=waits, is_fresh=True)
            settled = _settled(invocation, messages)
            result = await self._result(invocation, path, messages, settled)
        history = remembered(result.all_messages())
        output = result.output
        if type(output) is not str:
            output = plain(jsonable(output), "the agent's output")
        invocation.world.record(NodeEnded(path=path, node=node, output=output))
        return Played(history, output, is_fresh=True)

    async def _result(
        self,
        invocation: Invocation,
        path: str,
        messages: list[ModelMessage],
        answers: DeferredToolResults | None,
    ) -> AgentRunResult[Any]:
        check_model(self.agent)
        agent = self._twin or self.agent
        given: dict[str, Any] = {
            **({} if self._twin else pausing_output(agent)),
            "message_history": messages,
            "deps": self._deps() if self._deps else None,
            "infer_name": False,
        }
        if answers is not None:
            given["deferred_tool_results"] = answers
        else:
            given["user_prompt"] = invocation.given
        with held(STAGE, FrameworkRun(invocation, agent, name_of(self.agent), path)):
            return await agent.run(**given)


def _place(invocation: Invocation, path: str) -> str:
    """Where agents stand that run inside this one; after a pause its hooks begin anew."""
    notes = invocation.ledger.of(Remembered, voice=invocation.world.voice)
    pauses = sum(note.path == invocation.root for note in notes) if invocation.resumed else 0
    return f"{path}#{pauses + 1}" if pauses else path


def _answers(invocation: Invocation, messages: list[ModelMessage]) -> DeferredToolResults | None:
    """The user's answers to a pause, or None at the beginning of a turn."""
    given = invocation.answers() if invocation.resumed else []
    if not given:
        return None
    results = _settled(invocation, messages)
    for answer in given:
        call_id = invocation.index.yields[answer.yield_id].call_id
        if answer.yield_id == call_id:
            invocation.take_result(call_id, answer.value)
            results.calls[call_id] = answer.value
        else:
            is_approved = bool(approval(answer.value)["confirmed"])
            if results.calls.pop(call_id, None) is not None and is_approved:
                # Its body ended by asking for the approval, and now runs again from the start.
                _refuse_doubt(invocation, call_id)
            results.approvals[call_id] = is_approved
    return results


def _refuse_doubt(invocation: Invocation, call_id: str) -> None:
    """That a body runs again is not written down: after a cut it is not known whether it did."""
    world, ledger = invocation.world, invocation.ledger
    answered = max(event.seq for event in ledger.of(Answered, voice=world.voice))
    if answered < max(ledger.taken_up_at, invocation.index.resumed_at):
        called = invocation.index.called[call_id]
        raise InDoubt(
            f"tool {called.tool!r} was approved before the cut with {dict(called.args)!r} and its "
            f"return is not recorded, so nobody knows whether it acted. Look at the real system, "
            f"then start the run again."
        )


def _settled(invocation: Invocation, messages: list[ModelMessage]) -> DeferredToolResults:
    """What the World answered by itself to calls that would have waited for the user."""
    results, known = DeferredToolResults(), invocation.index.results
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
    asked = sum(opened.call_id == call_id for opened in invocation.index.yields.values())
    yield_id = world.new_id(invocation.root, "approval", call_id, asked)
    return invocation.approval_wanted(yield_id, call_id, call.tool_name, _args(call))


async def _result_wanted(invocation: Invocation, path: str, call: ToolCallPart) -> Yield | None:
    """A call that runs elsewhere returns what the user answers, unless the World does."""
    tool, call_id, args = call.tool_name, call.tool_call_id, _args(call)
    if call_id in invocation.index.results:
        return invocation.result_wanted(call_id, tool, args)  # its own body left it to the user
    n = invocation.index.call_number(tool, call_id, path)
    request = ToolRequest(call_id, tool, args, path, yields=True, n=n)
    outcome = await invocation.routed(invocation.world.call_tool(request, _nowhere))
    return invocation.result_wanted(call_id, tool, args) if isinstance(outcome, Pending) else None


def _nowhere(_: Context) -> Json:
    raise AgentFailed("a tool of an ExternalToolset has no body that could be run here.")


def _args(call: ToolCallPart) -> dict[str, Json]:
    return cast("dict[str, Json]", jsonable(call.args_as_dict()))
