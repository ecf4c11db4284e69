"""google-adk agents, advanced on a World: models and tools wrapped innermost on a copy.

The copy is made anew for every advance and its session is rebuilt from the ledger, so one agent
object serves many cases at once and is never touched. Callbacks, plug-ins and the confirmation gate
are the framework's own and run above the wrapping.
"""

import json
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar

from google.adk.agents import BaseAgent
from google.adk.apps import App
from google.adk.events import Event
from google.adk.memory import InMemoryMemoryService
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.workflow import Workflow
from google.genai import types

from greenroom.backends.adk.artifacts import Artifacts
from greenroom.backends.adk.copying import Copier
from greenroom.backends.adk.facts import (
    described,
    members_of,
    root_of,
    tool_facts,
    toolsets_of,
)
from greenroom.backends.adk.pauses import answer_to, pending_calls, wait_for
from greenroom.backends.adk.quiet import quiet
from greenroom.backends.adk.stage import PLACE, Stage
from greenroom.backends.adk.state import prefixed, state_changes
from greenroom.backends.backend import Advance, Feature, Interception, Resumption, ToolFacts
from greenroom.backends.foreign import Invocation, Played, digest_of, held, jsonable
from greenroom.errors import AgentFailed
from greenroom.ledger.events import StateChanged
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.plain import Json
from greenroom.world.world import World

_APP = _USER = _SESSION = "greenroom"
MEMORY = "google-adk.events"


class AdkBackend:
    """Runs an `LlmAgent`, a tree of agents, or an `App` around one."""

    name: ClassVar[str] = "google-adk"
    models: ClassVar[Interception] = "routed"
    tool_calls: ClassVar[Interception] = "routed"
    # Exact at pauses and between turns; a run cut while the framework works must start again.
    resumes: ClassVar[Resumption] = "checkpoint"
    supports: ClassVar[frozenset[Feature]] = frozenset(
        {
            "approvals",
            "argument_checks",
            "error_handlers",
            "handoffs",
            "parallel_calls",
            "questions",
            "speaks_first",
            "state",
            "streaming",
            "structured_output",
            "turns",
            "usage",
        }
    )

    def __init__(self, agent: BaseAgent | Workflow | App) -> None:
        self.agent = agent
        self.root = root_of(agent)
        self._members = members_of(self.root)
        quiet()

    @cached_property
    def snapshot(self) -> Json:
        """The tree of agents with their models, instructions and tools."""
        return {"framework": self.name, **described(self.root)}

    @cached_property
    def digest(self) -> str:
        """Changes whenever an agent of the tree does."""
        return digest_of(self.snapshot)

    @cached_property
    def tools(self) -> Mapping[str, ToolFacts] | None:
        """Every tool of every agent in the tree that could act; None if a toolset must be asked."""
        if any(toolsets_of(member) for member in self._members):
            return None
        return {facts.name: facts for member in self._members for facts in tool_facts(member)}

    async def advance(self, ledger: Ledger, world: World) -> Advance:
        """Go on with the open invocation, or begin the next one with what the user said last."""
        invocation = Invocation(ledger, world, MEMORY)
        return await invocation.play(lambda: self._run(invocation))

    async def _run(self, invocation: Invocation) -> Played:
        stage, memory = Stage(invocation), invocation.history()
        service, artifacts = InMemorySessionService(), Artifacts(memory)
        state = prefixed(invocation.ledger.fold(invocation.world.voice))
        await service.create_session(app_name=_APP, user_id=_USER, session_id=_SESSION, state=state)
        events = service.sessions[_APP][_USER][_SESSION].events
        events.extend(Event.model_validate(item) for item in artifacts.others)
        copier = Copier(stage, bool(getattr(self.agent, "plugins", None)))
        runner = Runner(
            app=self._copy(copier),
            app_name=_APP,
            session_service=service,
            artifact_service=artifacts.service,
            memory_service=InMemoryMemoryService(),
        )
        await copier.ask_servers()
        with held(PLACE, invocation.root):
            said = await _drive(runner, stage, _message(invocation, events), state)
        played = _played(stage, events, said, self._answers_with_data(said))
        return replace(played, history=[*played.history, *artifacts.items()])

    def _answers_with_data(self, said: Event | None) -> bool:
        """Whether the last words are those of an agent with an output schema."""
        authors = [member for member in self._members if said and member.name == said.author]
        return any(getattr(member, "output_schema", None) is not None for member in authors)

    def _copy(self, copier: Copier) -> App:
        root = copier.node(self.root)
        tripwire = copier.tripwire
        if isinstance(self.agent, App):
            plugins = [*self.agent.plugins, tripwire]
            return self.agent.model_copy(update={"root_agent": root, "plugins": plugins})
        return App(name=_APP, root_agent=root, plugins=[tripwire])


async def _drive(
    runner: Runner, stage: Stage, message: types.Content, state: dict[str, Any]
) -> Event | None:
    """Run the framework to its next rest and return its last words."""
    # Only a run's own delta may carry temporary state; a session does not keep it.
    temporary = {key: value for key, value in state.items() if key.startswith("temp:")}
    said = None
    running = runner.run_async(
        user_id=_USER, session_id=_SESSION, new_message=message, state_delta=temporary or None
    )
    async with aclosing(running) as events:
        async for event in events:
            _record_state(stage, event)
            if event.is_final_response() and (_text(event) or event.error_code or _gives(event)):
                said = event
    return said


def _message(invocation: Invocation, events: list[Event]) -> types.Content:
    """What the user said, or the answers to everything that waits."""
    waiting = pending_calls(events) if invocation.resumed else []
    if not waiting:
        text = invocation.given or ""
        return types.Content(role="user", parts=[types.Part(text=text)])
    return types.Content(role="user", parts=[answer_to(invocation, call) for call in waiting])


def _played(stage: Stage, events: list[Event], said: Event | None, is_data: bool) -> Played:
    history = [event.model_dump(mode="json", by_alias=True, exclude_none=True) for event in events]
    waiting = tuple(wait_for(stage.invocation, call) for call in pending_calls(events))
    if waiting:
        return Played(history, yields=waiting)
    stage.leave_all()
    if said is not None and said.error_code and not _text(said):
        raise AgentFailed(f"the model gave no answer ({said.error_code}): {said.error_message}")
    return Played(history, None if said is None else _output(said, is_data))


def _gives(event: Event) -> bool:
    """Whether a node of a workflow came to something that nobody has put into words."""
    return event.output is not None and not event.partial


def _output(said: Event, is_data: bool) -> Json:
    """What the turn came to; the framework gives data as text, which it has checked."""
    text = _text(said)
    if not text and said.output is not None:
        return jsonable(said.output)
    if not is_data:
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


def _record_state(stage: Stage, event: Event) -> None:
    invocation = stage.invocation
    held = invocation.ledger.fold(invocation.world.voice)
    changes = state_changes(event.actions.state_delta, held)
    if changes:
        invocation.world.record(StateChanged(path=stage.last_of(event.author), changes=changes))


def _text(event: Event) -> str:
    parts = (event.content.parts if event.content else None) or []
    return "".join(part.text for part in parts if part.text and not part.thought)
