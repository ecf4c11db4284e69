"""google-adk agents, run on a copy whose models and tools ask the World.

The agent is copied because many cases may run one agent object at once, and because the author's object
must stay as it is. Each advance makes a new copy and rebuilds its session from the ledger. Callbacks,
plug-ins and confirmations are the framework's own, and run outside the wrapped calls.
"""

from collections.abc import Mapping
from contextlib import aclosing
from copy import deepcopy
from typing import ClassVar

from google.adk.agents import BaseAgent
from google.adk.apps import App
from google.adk.events import Event
from google.adk.memory import InMemoryMemoryService
from google.adk.runners import Runner
from msgspec import structs

from greenroom.backends.adk.compiled import to_adk
from greenroom.backends.adk.copies import Copier
from greenroom.backends.adk.facts import (
    described,
    members_of,
    part_of,
    root_of,
    tool_facts,
    toolsets_of,
)
from greenroom.backends.adk.run import PLACE, FrameworkRun
from greenroom.backends.adk.seam import RUN_AS, silence_refusals
from greenroom.backends.adk.sessions import Artifacts, Sessions
from greenroom.backends.adk.state import prefixed
from greenroom.backends.adk.turns import (
    is_last_word,
    message_for,
    progress_of,
    record_actions,
    record_state,
)
from greenroom.backends.adk.versions import Workflow
from greenroom.backends.backend import FEATURES, Feature, ToolFacts
from greenroom.backends.foreign import ForeignBackend
from greenroom.backends.invocation import Invocation, Progress
from greenroom.backends.tool_facts import by_name
from greenroom.ledger.plain import Json
from greenroom.world.call_context import ContextSetting

__all__ = ["AdkBackend", "to_adk"]

_APP = _USER = _SESSION = RUN_AS


class AdkBackend(ForeignBackend):
    """Runs an `LlmAgent`, a tree of agents, or an `App` around one."""

    name: ClassVar[str] = "google-adk"
    memory: ClassVar[str] = "google-adk.events"
    supports: ClassVar[frozenset[Feature]] = frozenset(FEATURES) - {"message_waits"}

    def __init__(self, agent: BaseAgent | Workflow | App) -> None:
        self.agent = agent
        self.root = root_of(agent)
        self._members = members_of(self.root)
        silence_refusals()

    def part(self, name: str) -> "AdkBackend":
        """One agent of the tree, or one node of a workflow, as an agent to run alone."""
        found = part_of(self._members, name)
        if isinstance(self.agent, App):
            return AdkBackend(self.agent.model_copy(update={"root_agent": found}))
        return AdkBackend(found)

    def describe(self) -> dict[str, Json]:
        """The tree of agents with their models, instructions and tools."""
        return described(self.root)

    def list_tools(self) -> Mapping[str, ToolFacts] | None:
        """Every tool of every agent in the tree that could act; None if a toolset must be asked."""
        if any(toolsets_of(member) for member in self._members):
            return None
        return by_name(facts for member in self._members for facts in tool_facts(member))

    async def run(self, invocation: Invocation) -> Progress:
        """Run a copy of the tree to its last word, or to calls that wait for the user."""
        run, memory = FrameworkRun(invocation), invocation.history()
        copier, artifacts = self.copier(run), Artifacts(memory)
        service = Sessions(copier.tripwire.hear)
        state = prefixed(invocation.ledger.fold(invocation.world.voice))
        await service.create_session(app_name=_APP, user_id=_USER, session_id=_SESSION, state=state)
        session = service.sessions[_APP][_USER][_SESSION]
        # The service keeps no temporary state, but one advance is one invocation.
        session.state |= {key: value for key, value in state.items() if key.startswith("temp:")}
        events = session.events
        # Copies: the framework keeps some of what it is given, and must not edit the ledger through it.
        events.extend(Event.model_validate(deepcopy(item)) for item in artifacts.others)
        runner = Runner(
            app=self.copied(copier),
            app_name=_APP,
            session_service=service,
            artifact_service=artifacts.service,
            memory_service=InMemoryMemoryService(),
        )
        await copier.ask_servers()
        said = None
        with ContextSetting(PLACE, invocation.root):
            message = message_for(invocation, events)
            running = runner.run_async(user_id=_USER, session_id=_SESSION, new_message=message)
            async with aclosing(running) as heard:
                async for event in heard:
                    record_state(run, event)
                    record_actions(run, event, await artifacts.saved_by(event, session))
                    if is_last_word(event):
                        said = event
        progress = progress_of(run, events, said, self.answers_with_data(said))
        files = artifacts.items()
        return structs.replace(progress, history=[*progress.history, *files]) if files else progress

    def answers_with_data(self, said: Event | None) -> bool:
        """Whether the last words are those of an agent with an output schema."""
        authors = [member for member in self._members if said and member.name == said.author]
        return any(getattr(member, "output_schema", None) is not None for member in authors)

    def copier(self, run: FrameworkRun) -> Copier:
        """Makes the copy for this run."""
        return Copier(run, bool(getattr(self.agent, "plugins", None)))

    def copied(self, copier: Copier) -> App:
        """The gated copy of the whole app, with the tripwire as its last plug-in."""
        root = copier.node(self.root)
        tripwire = copier.tripwire
        if isinstance(self.agent, App):
            plugins = [*self.agent.plugins, tripwire]
            return self.agent.model_copy(update={"root_agent": root, "plugins": plugins})
        return App(name=_APP, root_agent=root, plugins=[tripwire])
