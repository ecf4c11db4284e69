"""pydantic-ai agents, run on a World through a seam at the framework's innermost calls.

The agent object is only run, never changed. The author's own capabilities, hooks and guardrails run outside
the seam.
"""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, ClassVar, cast

from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.messages import ModelMessage, ModelResponse, ToolCallPart
from pydantic_ai.run import AgentRunResult

from greenroom.backends.backend import FEATURES, Feature, ToolFacts, Yield
from greenroom.backends.foreign import ForeignBackend, jsonable
from greenroom.backends.invocation import Invocation, Progress, approval
from greenroom.backends.pydantic_ai.facts import (
    check_agent,
    check_model,
    described_agent,
    name_of,
    tool_facts,
)
from greenroom.backends.pydantic_ai.pauses import pausing_output, twin_of
from greenroom.backends.pydantic_ai.run import RUN, FrameworkRun
from greenroom.backends.pydantic_ai.seam import install
from greenroom.backends.pydantic_ai.translation import (
    as_returned,
    file_of,
    output_as_json,
    recalled,
    remembered,
)
from greenroom.errors import InDoubt
from greenroom.ledger.events import Answered, NodeEnded, Remembered, ToolReturned
from greenroom.ledger.plain import Json, plain
from greenroom.world.call_context import ContextSetting, placed


class PydanticAIBackend(ForeignBackend):
    """Runs an `Agent`; `deps`, if given, is called for each run to make its dependencies."""

    name: ClassVar[str] = "pydantic-ai"
    memory: ClassVar[str] = "pydantic-ai.messages"
    supports: ClassVar[frozenset[Feature]] = frozenset(FEATURES) - {
        "handoffs",
        "message_waits",
        "state",
    }

    def __init__(self, agent: Agent[Any, Any], deps: Callable[[], Any] | None = None) -> None:
        self.agent = check_agent(agent)
        self._deps = deps

    def describe(self) -> dict[str, Json]:
        """The agent with its model, instructions and tools."""
        return described_agent(self.agent)

    def list_tools(self) -> Mapping[str, ToolFacts] | None:
        """The tools and output functions, or None if a toolset lists its own only when it runs."""
        return tool_facts(self.agent)

    def install_seam(self) -> None:
        """Gate the framework's innermost calls."""
        install()

    @cached_property
    def _twin(self) -> Agent[Any, Any] | None:
        return twin_of(self.agent)

    async def run(self, invocation: Invocation) -> Progress:
        """Run the agent to its answer, or to calls that only the user can answer."""
        node, world = name_of(self.agent), invocation.world
        path = invocation.enter_node(node, invocation.root, invocation.given)
        messages = recalled(invocation.history())
        with placed(_place_inside(invocation, path)):
            answers = _answers(invocation, messages)
            result = await self._result(invocation, path, messages, answers)
            while isinstance(result.output, DeferredToolRequests):
                messages = result.all_messages()
                if waits := await _waits(invocation, path, result.output):
                    return Progress(remembered(messages), yields=waits, is_fresh=True)
                settled = _settled(invocation, messages)
                result = await self._result(invocation, path, messages, settled)
        history, output = remembered(result.all_messages()), output_as_json(result)
        world.record(NodeEnded(path=path, node=node, output=output))
        return Progress(history, output, is_fresh=True)

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
            said, attached = invocation.given, invocation.attached
            files = [file_of(one) for one in attached]
            given["user_prompt"] = [*([said] if said else []), *files] if files else said
        with ContextSetting(RUN, FrameworkRun(invocation, agent, name_of(self.agent), path)):
            return await agent.run(**given)


def _place_inside(invocation: Invocation, path: str) -> str:
    """The path of agents that run inside this one; after a pause its hooks start again."""
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
            invocation.record_result(call_id, answer.value)
            results.calls[call_id] = as_returned(answer.value)
        else:
            is_approved = bool(approval(answer.value)["confirmed"])
            if results.calls.pop(call_id, None) is not None and is_approved:
                # Its body ended by asking for the approval, and now runs again from the start.
                _refuse_doubt(invocation, call_id)
            results.approvals[call_id] = is_approved
    return results


def _refuse_doubt(invocation: Invocation, call_id: str) -> None:
    """Refuse to resume if it is unknown whether an approved body ran: running it again is not recorded."""
    world, ledger = invocation.world, invocation.ledger
    answered = max(event.seq for event in ledger.of(Answered, voice=world.voice))
    if answered < max(ledger.loaded_count, invocation.index.resumed_at):
        called = invocation.index.called[call_id]
        raise InDoubt(
            f"tool {called.tool!r} was approved before the interruption with {dict(called.args)!r}, and its "
            f"return is not recorded, so it is unknown whether it acted. Look at the real "
            f"system, then start the run again."
        )


def _settled(invocation: Invocation, messages: list[ModelMessage]) -> DeferredToolResults:
    """What the World itself answered to calls that would have waited for the user."""
    calls: dict[str, ToolCallPart] = {}
    for message in messages:
        if isinstance(message, ModelResponse):
            calls = {call.tool_call_id: call for call in message.tool_calls}
        else:
            for part in message.parts:
                calls.pop(str(getattr(part, "tool_call_id", "")), None)
    results = DeferredToolResults()
    for call_id in calls:  # calls of the last reply that have no result in the history
        end = invocation.index.results.get(call_id)
        if isinstance(end, ToolReturned):
            results.calls[call_id] = as_returned(plain(end.value))
        elif end is not None:
            results.calls[call_id] = ToolFailed(end.error)
    return results


async def _waits(
    invocation: Invocation, path: str, requests: DeferredToolRequests
) -> tuple[Yield, ...]:
    """What the user is asked: approvals, and results of calls that the World does not answer."""
    waits: list[Yield] = []
    for call in requests.approvals:
        waits.append(invocation.approval_of(call.tool_call_id, call.tool_name, _args(call)))
    for call in requests.calls:
        tool, call_id, args = call.tool_name, call.tool_call_id, _args(call)
        if call_id in invocation.index.results:
            # The tool's own body left the answer to the user.
            waits.append(invocation.result_wanted(call_id, tool, args))
            continue
        why = "a tool of an ExternalToolset has no body that could be run here."
        wait = await invocation.ask_for_result(call_id, tool, args, path, no_body=why)
        if wait is not None:
            waits.append(wait)
    return tuple(waits)


def _args(call: ToolCallPart) -> dict[str, Json]:
    return cast("dict[str, Json]", jsonable(call.args_as_dict()))
