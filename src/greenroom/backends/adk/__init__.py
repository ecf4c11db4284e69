"""google-adk agents, advanced on a World: models and tools wrapped innermost on a copy.

The copy is made anew for every advance and its session is rebuilt from the ledger, so one agent
object serves many cases at once and is never touched. Callbacks, plug-ins and the confirmation gate
are the framework's own and run above the wrapping.
"""

from collections.abc import Mapping
from contextlib import aclosing
from copy import deepcopy
from functools import cached_property
from typing import ClassVar

from google.adk.agents import BaseAgent
from google.adk.apps import App
from google.adk.events import Event
from google.adk.memory import InMemoryMemoryService
from google.adk.runners import Runner
from google.genai import types
from msgspec import structs

from greenroom.backends.adk.copies import Copier
from greenroom.backends.adk.facts import (
    described,
    members_of,
    root_of,
    tool_facts,
    toolsets_of,
)
from greenroom.backends.adk.quiet import quiet
from greenroom.backends.adk.run import PLACE, FrameworkRun
from greenroom.backends.adk.sessions import Artifacts, Sessions
from greenroom.backends.adk.state import prefixed
from greenroom.backends.adk.turns import is_last_word, message_for, played, record_state
from greenroom.backends.adk.versions import Workflow
from greenroom.backends.backend import Advance, Feature, Interception, Resumption, ToolFacts
from greenroom.backends.foreign import Invocation, Played, digest_of, held
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
        stage, memory = FrameworkRun(invocation), invocation.history()
        copier, artifacts = self.copier(stage), Artifacts(memory)
        service = Sessions(copier.tripwire.hear)
        state = prefixed(invocation.ledger.fold(invocation.world.voice))
        await service.create_session(app_name=_APP, user_id=_USER, session_id=_SESSION, state=state)
        session = service.sessions[_APP][_USER][_SESSION]
        # The service keeps no temporary state, but one advance is one invocation.
        session.state |= {key: value for key, value in state.items() if key.startswith("temp:")}
        events = session.events
        # Told anew: the framework keeps some of what it is given, and what happened is never edited.
        events.extend(Event.model_validate(deepcopy(item)) for item in artifacts.others)
        runner = Runner(
            app=self.copied(copier),
            app_name=_APP,
            session_service=service,
            artifact_service=artifacts.service,
            memory_service=InMemoryMemoryService(),
        )
        await copier.ask_servers()
        with held(PLACE, invocation.root):
            said = await _drive(runner, stage, message_for(invocation, events))
        came = played(stage, events, said, self.answers_with_data(said))
        files = artifacts.items()
        return structs.replace(came, history=[*came.history, *files]) if files else came

    def answers_with_data(self, said: Event | None) -> bool:
        """Whether the last words are those of an agent with an output schema."""
        authors = [member for member in self._members if said and member.name == said.author]
        return any(getattr(member, "output_schema", None) is not None for member in authors)

    def copier(self, stage: FrameworkRun) -> Copier:
        """What makes a copy for this stage."""
        return Copier(stage, bool(getattr(self.agent, "plugins", None)))

    def copied(self, copier: Copier) -> App:
        """The gated copy of all, with the tripwire as the last of its plug-ins."""
        root = copier.node(self.root)
        tripwire = copier.tripwire
        if isinstance(self.agent, App):
            plugins = [*self.agent.plugins, tripwire]
            return self.agent.model_copy(update={"root_agent": root, "plugins": plugins})
        return App(name=_APP, root_agent=root, plugins=[tripwire])


async def _drive(runner: Runner, stage: FrameworkRun, message: types.Content) -> Event | None:
    """Run the framework to its next rest and return its last words."""
    said = None
    running = runner.run_async(user_id=_USER, session_id=_SESSION, new_message=message)
    async with aclosing(running) as events:
        async for event in events:
            record_state(stage, event)
            if is_last_word(event):
                said = event
    return said
