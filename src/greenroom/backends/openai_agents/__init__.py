"""OpenAI Agents, run on a World: tools and models are gated when a turn asks for them.

The agent objects are only run, never changed. Guardrails, hooks, handoffs, tool policies and approvals are
the framework's own, and run outside the gates.
"""

# The framework is only partly typed.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false, reportPrivateUsage=false

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from copy import copy, deepcopy
from dataclasses import replace
from typing import Any, ClassVar, cast

from agents.exceptions import (
    InputGuardrailTripwireTriggered,
    OutputGuardrailTripwireTriggered,
    ToolInputGuardrailTripwireTriggered,
    ToolOutputGuardrailTripwireTriggered,
)
from agents.run_config import DEFAULT_MAX_TURNS
from pydantic_core import from_json, to_json

from agents import Agent, RunConfig, Runner, RunState
from greenroom.backends.backend import FEATURES, Feature, ToolFacts
from greenroom.backends.foreign import ForeignBackend, jsonable
from greenroom.backends.invocation import Invocation, Progress, approval
from greenroom.backends.openai_agents.facts import agents_of, described_agent, tool_facts
from greenroom.backends.openai_agents.run import RUN, FrameworkRun
from greenroom.backends.openai_agents.seam import install
from greenroom.backends.openai_agents.translation import args_of, user_item
from greenroom.errors import AgentFailed, GuardrailTripped, NotFound, UserAgentFailed
from greenroom.ledger.events import STOPPED, Noted
from greenroom.ledger.plain import Json, as_object, is_object, plain
from greenroom.world.call_context import ContextSetting

_TRIPPED = (
    InputGuardrailTripwireTriggered,
    OutputGuardrailTripwireTriggered,
    ToolInputGuardrailTripwireTriggered,
    ToolOutputGuardrailTripwireTriggered,
)
"""What a guardrail raises that stops an agent; a case may expect it."""


class OpenAIAgentsBackend(ForeignBackend):
    """Runs an `Agent` with all those it hands over to or uses as tools.

    `context`, if given, makes the run's context from the session's state; what it holds afterwards becomes
    the session's state. `live_servers` are MCP servers that may be asked for their tools.
    """

    name: ClassVar[str] = "openai-agents"
    memory: ClassVar[str] = "openai-agents.items"
    supports: ClassVar[frozenset[Feature]] = frozenset(FEATURES) - {"message_waits", "questions"}

    def __init__(
        self,
        agent: Agent[Any],
        *,
        context: Callable[[dict[str, Json]], Any] | None = None,
        run_config: RunConfig | None = None,
        max_turns: int | None = DEFAULT_MAX_TURNS,
        streamed: bool = False,
        live_servers: Sequence[object] = (),
    ) -> None:
        self.agent = agent
        self._live = tuple(live_servers)
        self._members = agents_of(agent, self._live)
        self._context = context
        self._config = replace(run_config or RunConfig(), tracing_disabled=True)
        self._max_turns = max_turns
        self._streamed = streamed

    def part(self, name: str) -> "OpenAIAgentsBackend":
        """One of the agents, with the agents that it hands over to."""
        found = [member for member in self._members if member.name == name]
        if len(found) != 1:
            names = ", ".join(member.name for member in self._members)
            raise NotFound(f"there is no single agent {name!r}; there are {names}.")
        twin = copy(self)
        twin.agent, twin._members = found[0], agents_of(found[0], self._live)
        for known in ("snapshot", "digest", "tools"):
            vars(twin).pop(known, None)
        return twin

    def describe(self) -> dict[str, Json]:
        """The agents with their models, instructions, tools and handoffs."""
        agents: list[Json] = [described_agent(member) for member in self._members]
        return {"name": self.agent.name, "agents": agents}

    def list_tools(self) -> Mapping[str, ToolFacts] | None:
        """The tools of all agents, or None if a server lists its own only when it is asked."""
        return tool_facts(self._members)

    def install_seam(self) -> None:
        """Gate the framework's innermost calls."""
        install()

    async def run(self, invocation: Invocation) -> Progress:
        """Run the agents to their answer or to the next approval."""
        run, context = FrameworkRun(invocation, self._live), None
        if self._context is not None:
            state = invocation.ledger.fold(invocation.world.voice).get("session", {})
            context = self._context(as_object(plain(state, "the session's state")))
        if context is not None:
            run.outermost.note_state = _state_notes(invocation, context)
        with ContextSetting(RUN, run):
            agent, given = await self._start(run, context)
            try:
                result = await self._result(agent, given, context)
            except _TRIPPED as error:
                raise _stopped_by(error, invocation) from error
        if run.outermost.note_state is not None:
            run.outermost.note_state(run.outermost.path)
        if result.interruptions:
            waits = [
                invocation.approval_of(
                    item.call_id or "", item.name or "", args_of(item.arguments or "{}")
                )
                for item in result.interruptions
            ]
            state = json.loads(result.to_state().to_string())
            paused: Json = {
                "state": state,
                "waits": {wait.id: wait.call_id for wait in waits},
                "places": {**run.places},
            }
            return Progress([paused], yields=tuple(waits))
        items, is_fresh = _items_as_json(result.to_input_list())
        output = result.final_output
        if type(output) is not str:
            output = plain(jsonable(output), "the agent's output")
        run.outermost.leave(output)
        return Progress([*items, {"agent": result.last_agent.name}], output, is_fresh=is_fresh)

    async def _result(self, agent: Agent[Any], given: Any, context: Any) -> Any:
        options: dict[str, Any] = {
            "context": None if isinstance(given, RunState) else context,
            "run_config": self._config,
            "max_turns": self._max_turns,
        }
        if not self._streamed:
            return await Runner.run(agent, given, **options)
        result = Runner.run_streamed(agent, given, **options)
        async with aclosing(cast("Any", result.stream_events())) as events:
            async for _ in events:
                pass
        return result

    async def _start(self, run: FrameworkRun, context: Any) -> tuple[Agent[Any], Any]:
        """The agent that begins, and its input: all that was said, or the pause with its answers."""
        invocation = run.invocation
        # A copy: guardrails see the framework's input, and must not edit the ledger through it.
        *items, end = deepcopy(invocation.history()) or [{}]
        last: dict[str, Any] = as_object(end)
        if last.get("state") is not None and invocation.resumed:
            state = await RunState.from_json(
                self.agent, last["state"], context_override=context if self._context else None
            )
            _answer(invocation, state, last["waits"])
            run.places = last.get("places", {})
            return self.agent, state
        agent, given = self._agent_named(last.get("agent")), invocation.given
        attached = invocation.attached
        if not items and isinstance(given, str) and given and not attached:
            return agent, given  # the form that authors mostly use, and their guardrails expect
        return agent, [*items, *([user_item(given or "", attached)] if given or attached else [])]

    def _agent_named(self, name: str | None) -> Agent[Any]:
        """The agent the conversation was handed over to, or the one it begins with."""
        if name is None:
            return self.agent
        found = next((agent for agent in self._members if agent.name == name), None)
        if found is None:
            raise AgentFailed(
                f"the conversation was handed over to {name!r}, an agent that is made while it "
                f"runs and cannot be found again. List it in the handoffs."
            )
        return found


def _state_notes(invocation: Invocation, context: Any) -> Callable[[str], None]:
    """Records what the agent at a path changed in the shared context."""
    known = jsonable(context)

    def note(path: str) -> None:
        nonlocal known
        before, known = known, jsonable(context)
        if is_object(known):
            # What the session lacks is recorded even if no agent has changed it.
            session = invocation.ledger.fold(invocation.world.voice).get("session", {})
            kept = before if is_object(before) else {}
            shared = {key: value for key, value in kept.items() if key in session}
            invocation.record_state(known, shared, path)

    return note


def _items_as_json(items: list[Any]) -> tuple[list[Json], bool]:
    """The items as JSON, and whether that is an unshared copy."""
    try:
        # Through JSON text: NaN becomes None there, and nothing is shared with the run.
        text = to_json(items, by_alias=True, inf_nan_mode="null", fallback=str)
        return from_json(text), True
    except ValueError:  # half a surrogate pair cannot be encoded
        return cast("list[Json]", jsonable(items)), False


def _answer(invocation: Invocation, state: Any, waits: dict[str, str]) -> None:
    """Approve or reject every call that waits, as the user said."""
    said = {waits[answer.yield_id]: answer.value for answer in invocation.answers()}
    for item in state.get_interruptions():
        if item.call_id not in said:
            raise UserAgentFailed(f"the call of {item.name!r} ({item.call_id}) was not answered.")
        answer = approval(said[item.call_id])
        if answer["confirmed"]:
            state.approve(item)
        else:
            why = answer.get("message") or answer.get("reason")
            state.reject(item, rejection_message=str(why) if why else None)


def _stopped_by(error: Any, invocation: Invocation) -> GuardrailTripped:
    """The error for a triggered guardrail; the ledger notes which one it was, and what it said."""
    result: Any = getattr(error, "guardrail_result", None)
    guardrail: Any = getattr(error, "guardrail", None) or getattr(result, "guardrail", None)
    name = str(guardrail.get_name())
    info: Any = getattr(getattr(error, "output", None) or result.output, "output_info", None)
    data = {"by": "guardrail", "name": name, "info": jsonable(info)}
    invocation.world.record(Noted(path=invocation.root, name=STOPPED, data=data))
    return GuardrailTripped(
        f"the guardrail {name!r} stopped the agent. If it should, expect that: "
        f'Expect(stopped_by="guardrail").'
    )
