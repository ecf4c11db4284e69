"""Greenroom's own agents, run on a World and continued from their ledger."""

from collections.abc import Mapping
from typing import ClassVar

from greenroom.agents.flow import Flow, as_flow
from greenroom.agents.graph import compile_flow, recast
from greenroom.backends.backend import (
    FEATURES,
    Advance,
    Feature,
    Interception,
    Resumption,
    ToolFacts,
    Waiting,
)
from greenroom.backends.native.kinds import KINDS
from greenroom.backends.native.listeners import Door, ToUser
from greenroom.backends.native.walk import GraphWalk, Paused
from greenroom.backends.tool_facts import by_name, own_facts
from greenroom.backends.turn_ends import end_turn, fail_turn, recorded_end, say_questions
from greenroom.errors import Refusal
from greenroom.ledger.events import InvocationStarted
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.plain import Json
from greenroom.models.model import Model
from greenroom.models.named import as_model
from greenroom.world.world import World


class NativeBackend:
    """Runs expressions of `Agent`, `step` and flow."""

    name: ClassVar[str] = "native"
    models: ClassVar[Interception] = "routed"
    tool_calls: ClassVar[Interception] = "routed"
    resumes: ClassVar[Resumption] = "exact"
    supports: ClassVar[frozenset[Feature]] = frozenset(FEATURES) - {"approvals", "error_handlers"}

    def __init__(self, agent: Flow) -> None:
        self.graph = compile_flow(as_flow(agent))
        self.answered_by: Model | None = None
        """The model that answers in place of every model of the agent."""
        self._tools: dict[str, ToolFacts] | None = None

    def part(self, name: str) -> "NativeBackend":
        """One node of the graph, as an agent to run alone."""
        found = NativeBackend(self.graph.part(name))
        found.answered_by = self.answered_by
        return found

    def with_model(self, model: Model | str) -> "NativeBackend":
        """A copy of the agent in which this model answers for every model."""
        model = as_model(model)
        recasted = NativeBackend(recast(self.graph.root.flow, model))
        recasted.answered_by = model
        return recasted

    @property
    def snapshot(self) -> Json:
        """The graph as JSON."""
        return self.graph.snapshot

    @property
    def digest(self) -> str:
        """Changes whenever the graph does."""
        return self.graph.digest

    @property
    def tools(self) -> Mapping[str, ToolFacts]:
        """Every tool of every agent in the graph, and every remote agent."""
        if self._tools is None:
            self._tools = by_name(map(own_facts, self.graph.toolboxes))
            for name in self.graph.approvals:
                self._tools[name] = ToolFacts(
                    name, ("question", "input"), yields=True, takes_more=True
                )
            for name, remote in self.graph.remotes.items():
                takes = ("message", "state") if remote.reads else ("message",)
                self._tools[name] = ToolFacts(name, takes, origin=remote, takes_more=True)
        return self._tools

    async def advance(self, ledger: Ledger, world: World) -> Advance:
        """Continue the open invocation, or begin the next one with what the user said last."""
        index = ledger.indexes[world.voice]
        invocation = index.open_invocation
        if invocation is not None:
            return await self.invoke(ledger, world, invocation.path, invocation.input)
        number = len(index.invocations) + 1
        given = index.said[-1].value if index.said else None
        return await self.invoke(ledger, world, f"@{number}", given)

    async def invoke(self, ledger: Ledger, world: World, root: str, given: Json) -> Advance:
        """Run or continue the invocation at `root`; one that has ended gives its recorded end."""
        index = ledger.indexes[world.voice]
        if root in index.invocations_ended:
            return recorded_end(index.invocations_ended[root])
        begun = index.invocations.get(root)
        if begun is None:
            begun = world.record(InvocationStarted(path=root, input=given))
        given = begun.input
        try:
            to_user: ToUser | None = getattr(world, "door", None)
            door = None if to_user is None else Door(to_user)
            walk = GraphWalk(ledger, world, index, root, KINDS, outlet=door)
            walked = await walk.walk(self.graph.root, root, given)
        except Refusal:
            raise
        except Exception as error:  # noqa: BLE001 - a failed agent is an outcome, not a crash
            return fail_turn(world, root, error)
        if isinstance(walked, Paused):
            say_questions(world, index, walked.yields)
            return Waiting(walked.yields)
        return end_turn(world, index, root, walked.output, finished=self.graph.awaits_input)
