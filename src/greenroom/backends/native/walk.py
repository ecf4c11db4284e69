"""The native interpreter: it walks the graph from its root, skipping what the ledger already has.

Only the ledger is kept between two walks. A node whose end is recorded gives its recorded output, a
recorded decision is not made again, and an agent node continues from its last recorded reply. So a run may
be interrupted at any event and continued anywhere.

How a part runs depends on its kind: `sequences` has parts that run one branch at a time, `forks` parts that
run several at once, `guards` parts that guard others, and `kinds` maps each kind to its function.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct, structs

from greenroom.agents.agent import Agent
from greenroom.agents.deciders import Decider, named_arguments
from greenroom.agents.flow import Flow, Step
from greenroom.agents.forks import MapOver
from greenroom.agents.graph import Node
from greenroom.agents.places import typed_fields, value_of
from greenroom.agents.remote import Remote
from greenroom.backends.backend import Yield
from greenroom.backends.native.agent_node import AgentRun
from greenroom.backends.native.failures import describe, failure
from greenroom.backends.native.listeners import Feed, Outlet
from greenroom.errors import AgentFailed, BadAgent, GreenroomError
from greenroom.ledger.changes import Change, check_appends, unwrapped
from greenroom.ledger.events import (
    Decided,
    NodeEnded,
    NodeFailed,
    NodeStarted,
)
from greenroom.ledger.index import VoiceIndex
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.paths import branch_of
from greenroom.ledger.plain import Json, is_object, plain
from greenroom.ledger.query import MISSING, matches_state, split_place
from greenroom.world.records import RecordedFailure
from greenroom.world.world import AgentTurn, Context, World

if TYPE_CHECKING:
    from greenroom.backends.native.boundaries import FarCode
    from greenroom.world.middleware.run import RunMiddleware


class Done(Struct, frozen=True):
    """A node ended with this output, or handed the conversation to another agent."""

    output: Json
    to: str = ""


class Paused(Struct, frozen=True):
    """A node waits for these answers."""

    yields: tuple[Yield, ...]


Walked = Done | Paused

_Writer = Agent | Step | Remote
"""The kinds of flow that may declare where their output is written."""

NodeRunner = Callable[["GraphWalk", Node, str, Json], Awaitable[Walked]]
"""How a kind of flow is run: the walk, the node, its path and its input."""


class GraphWalk(Struct, frozen=True, eq=False):
    """One walk over a graph, as far as it can go now."""

    ledger: Ledger
    world: World
    index: VoiceIndex
    root: str
    kinds: Mapping[type[Flow], NodeRunner]
    feed: Feed | None = None
    """Feeds this part with pieces, if it takes its input in pieces."""
    outlet: Outlet | None = None
    """Where this part sends the pieces of what it says, if anyone takes them."""
    far: "FarCode | None" = None
    """Calls the author's functions, if this part runs in another process."""

    async def walk(self, node: Node, base: str, given: Json) -> Walked:
        """Run a node below `base`, or take its end from the ledger."""
        path, attempt, index = f"{base}/{node.segment}", 1, self.index
        if index.failed:
            path, attempt = self._attempt(node, path)
        if path in index.ended:
            to = index.decided.get(path, "") if node.team else ""
            return Done(index.ended[path].output, to)
        if path in index.started:
            given = index.started[path].input
        else:
            items = self.items(node.flow, path) if isinstance(node.flow, MapOver) else None
            begun = NodeStarted(path=path, node=node.id, input=given, items=items)
            given = self.world.record(begun).input
        try:
            if isinstance(node.flow, Agent):
                return await self._run_agent(node.flow, node, path, given)
            return await self._run(node, path, given)
        except GreenroomError:
            raise
        except Exception as error:
            self.world.record(
                NodeFailed(path=path, node=node.id, attempt=attempt, **failure(error))
            )
            if attempt > _retries(node.flow):
                raise AgentFailed(
                    f"{node.segment!r} failed at {path}: {describe(error)}"
                ) from error
        return await self.walk(node, base, given)

    def _attempt(self, node: Node, path: str) -> tuple[str, int]:
        """The path and number of the next attempt; recorded failures count."""
        failed, attempt, here = self.index.failed, 1, path
        # Forks and guards record the failures of their parts themselves.
        while here in failed and node.segment not in ("par", "within"):
            if attempt > _retries(node.flow):
                again = RecordedFailure(failed[here].error, failed[here].error_type)
                raise AgentFailed(f"{node.segment!r} failed at {here}: {describe(again)}")
            attempt += 1
            here = f"{path}~{attempt}"
        return here, attempt

    def items(self, flow: MapOver, path: str) -> Json:
        """The list that a map reads from the current state."""
        if not flow.over:
            return None
        found = value_of(flow.over, self.ledger.fold(self.world.voice, branch_of(path)))
        return None if found is MISSING else found

    async def _run_agent(self, agent: Agent, node: Node, path: str, given: Json) -> Walked:
        """Run an agent; middleware around it may answer instead."""
        outlet = self.outlet if agent.output is None else None
        run = AgentRun(agent, node.id, path, self.world, self.index, node.team, outlet=outlet)
        turn = AgentTurn(agent.name, path, given)
        hooks: RunMiddleware | None = getattr(self.world, "middleware", None)
        if hooks is not None and not self.index.steps.get(path):
            answer = await hooks.before_agent(turn)
            if answer is not None:
                return self.end(node, path, answer[0])
        waits = await run.run()
        if run.handed_to:
            return self.hand_over(node, path, run.handed_to)
        if waits:
            return Paused(waits)
        output = run.output if hooks is None else await hooks.after_agent(turn, run.output)
        return self.end(node, path, output)

    async def _run(self, node: Node, path: str, given: Json) -> Walked:
        run = self.kinds.get(type(node.flow))
        if run is None:
            raise BadAgent(f"{node.flow!r} cannot be run.")
        if self.outlet is not None and not self.outlet.passes(node.flow):
            return await run(structs.replace(self, outlet=None), node, path, given)
        return await run(self, node, path, given)

    def end(self, node: Node, path: str, output: Any, changes: tuple[Change, ...] = ()) -> Done:
        """Record that a node ended, with its output and what it did to the state."""
        asks: tuple[Change, ...] = ()
        if type(output) is not str:
            output, asks = unwrapped(output)
            if asks and self.world.voice == "agent":
                changes, asks = (*changes, *asks), ()
            output = plain(output, f"the output of {node.segment!r}")
        written = changes
        if isinstance(node.flow, _Writer) and node.flow.writes:
            written = (*changes, *_declared_changes(node.flow, output, changes))
        if written:
            held = self.ledger.fold(self.world.voice, branch_of(path))
            check_appends(held, written, f"{node.segment!r}")
        event = NodeEnded(path=path, node=node.id, output=output, changes=written, asks=asks)
        return Done(self.world.record(event).output)

    def hand_over(self, node: Node, path: str, to: str) -> Done:
        """Record that an agent hands the conversation to another, and writes nothing itself."""
        if path not in self.index.decided:
            self.world.record(Decided(path=path, choice=to))
        self.world.record(NodeEnded(path=path, node=node.id))
        return Done(None, to)

    async def decide(self, on: Decider, wants: tuple[str, ...], path: str, value: Json) -> Any:
        """The decision of a state place, a query or a function on `value`; it may change nothing."""
        state = self.ledger.fold(self.world.voice, branch_of(path))
        if isinstance(on, str):
            return value_of(on, state)
        if not callable(on):
            return matches_state(state, on)
        context = Context(self.world, path, input=plain(value), output=plain(value))
        if self.far is not None:
            choice = await self.far.call(on, context, path, wants=wants)
        else:
            choice = on(**named_arguments(wants, context, on))
        if context.changes():
            raise BadAgent(f"the decision at {path} changed the state; decide only, or use a step.")
        return choice


def _retries(flow: Flow) -> int:
    return flow.retries if isinstance(flow, Agent | Step) else 0


def _declared_changes(node: _Writer, output: Json, own: tuple[Change, ...]) -> list[Change]:
    """The state changes that the output causes, in addition to those that the node made itself."""
    changes_state = isinstance(node, Step) and not {"state", "ctx", "context"}.isdisjoint(
        node.wants
    )
    if output is None and changes_state:
        return []
    found: list[Change] = []
    for place, change in _placed(node, output, is_free=changes_state):
        if not any(change.meets(one) for one in own):
            for field in typed_fields(place):
                field.check(change.value)
            found.append(change)
    return found


def _placed(node: _Writer, output: Json, *, is_free: bool) -> Iterator[tuple[str, Change]]:
    """The output at the one declared place, or its parts by name at each of several."""
    if len(node.writes) == 1:
        yield node.writes[0], Change(*split_place(node.writes[0]), "set", output)
        return
    for place in node.writes:
        scope, path = split_place(place)
        if is_object(output) and path[-1] in output:
            yield place, Change(scope, path, "set", output[path[-1]])
        elif not is_free:
            # A node that changes the state itself may leave places alone; any other node forgot them.
            raise TypeError(
                f"{node.name!r} writes {place}, but its output has no part {path[-1]!r}: {output!r}"
            )
