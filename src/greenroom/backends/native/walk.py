"""The native interpreter: it walks the graph from its root, skipping what the ledger knows.

Nothing is kept between two walks but the ledger. A node whose end is recorded gives its recorded
output, a decision that was taken is not asked for again, and an agent node goes on from its last
recorded reply. So a run may be cut at any event and continued anywhere.

Here are the walk itself and the kinds that go one way at a time; `forks` has those that go several
ways at once, `guards` those that watch over a part, and `kinds` says which is run by what.
"""

from collections.abc import Awaitable, Callable, Mapping
from itertools import count
from typing import TYPE_CHECKING, Any

from msgspec import Struct, structs

from greenroom.agents.agent import Agent
from greenroom.agents.deciders import Decider, named_arguments
from greenroom.agents.flow import Flow, Loop, Parallel, Route, Sequence, Step
from greenroom.agents.forks import MapOver
from greenroom.agents.graph import Node
from greenroom.agents.places import value_of
from greenroom.agents.remote import Remote
from greenroom.agents.streams import gives_pieces, hearing_parts
from greenroom.agents.transforms import Transform
from greenroom.backends.backend import Yield
from greenroom.backends.native.agent_node import AgentRun, open_yield
from greenroom.backends.native.failures import describe, failure
from greenroom.backends.native.listeners import AS_THEY_COME, Door, Feed, Listener, Outlet
from greenroom.backends.native.outputs import declared_changes
from greenroom.backends.native.steps import call_step
from greenroom.errors import AgentFailed, BadAgent, GreenroomError, LoopLimit
from greenroom.ledger.changes import Change, check_appends, unwrapped
from greenroom.ledger.events import (
    Decided,
    NodeEnded,
    NodeFailed,
    NodeStarted,
    Noted,
    agent_words,
)
from greenroom.ledger.index import VoiceIndex
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.paths import branch_of
from greenroom.ledger.plain import Json, plain
from greenroom.ledger.query import MISSING, matches_state
from greenroom.world.presence import placed
from greenroom.world.records import RecordedFailure
from greenroom.world.world import AgentTurn, Context, World

if TYPE_CHECKING:
    from greenroom.backends.native.boundaries import FarCode
    from greenroom.world.middleware.run import RunMiddleware


class Done(Struct, frozen=True):
    """A node ended with this output, or handed the conversation over to another agent."""

    output: Json
    to: str = ""


class Paused(Struct, frozen=True):
    """A node waits for these answers."""

    yields: tuple[Yield, ...]


Walked = Done | Paused

Run = Callable[["GraphWalk", Node, str, Json], Awaitable[Walked]]
"""How a kind of flow is run: the walk, the node, its path and its input."""

MAX_ROUNDS = 100
TAP_FAILED = "tap_failed"
"""The note that a function which was only to look raised an error."""


class GraphWalk(Struct, frozen=True, eq=False):
    """One walk over a graph, as far as it can go now."""

    ledger: Ledger
    world: World
    index: VoiceIndex
    root: str
    kinds: Mapping[type[Flow], Run]
    feed: Feed | None = None
    """What gives this part its pieces, if it takes what comes to it in pieces."""
    outlet: Outlet | None = None
    """Where this part puts the pieces of what it says, if someone takes them."""
    far: "FarCode | None" = None
    """What calls the author's functions, if this part stands apart."""

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
                outlet = self.outlet if node.flow.output is None else None
                asking = AgentRun(
                    node.flow, node.id, path, self.world, index, node.team, outlet=outlet
                )
                hooks: RunMiddleware | None = getattr(self.world, "middleware", None)
                if hooks is not None:
                    return await run_hooked(self, node, asking, given, hooks)
                waits = await asking.run()
                if asking.handed_to:
                    return self.hand_over(node, path, asking.handed_to)
                return Paused(waits) if waits else self.end(node, path, asking.output)
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
        """The path of the attempt that is due; recorded failures count."""
        failed, attempt, here = self.index.failed, 1, path
        # A fork and a guard say themselves what became of their parts.
        while here in failed and node.segment not in ("par", "within"):
            if attempt > _retries(node.flow):
                again = RecordedFailure(failed[here].error, failed[here].error_type)
                raise AgentFailed(f"{node.segment!r} failed at {here}: {describe(again)}")
            attempt += 1
            here = f"{path}~{attempt}"
        return here, attempt

    def items(self, flow: MapOver, path: str) -> Json:
        """The list that a map has from the state, as it is now."""
        if not flow.over:
            return None
        found = value_of(flow.over, self.ledger.fold(self.world.voice, branch_of(path)))
        return None if found is MISSING else found

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
        if isinstance(node.flow, Agent | Step | Remote) and node.flow.writes:
            written = (*changes, *declared_changes(node.flow, output, changes))
        if written:
            held = self.ledger.fold(self.world.voice, branch_of(path))
            check_appends(held, written, f"{node.segment!r}")
        event = NodeEnded(path=path, node=node.id, output=output, changes=written, asks=asks)
        return Done(self.world.record(event).output)

    def hand_over(self, node: Node, path: str, to: str) -> Done:
        """Record that an agent leaves the conversation to another; it has written nothing."""
        if path not in self.index.decided:
            self.world.record(Decided(path=path, choice=to))
        self.world.record(NodeEnded(path=path, node=node.id))
        return Done(None, to)

    async def decide(self, on: Decider, wants: tuple[str, ...], path: str, value: Json) -> Any:
        """What a place in the state, a query or a function says to `value`; it may change nothing."""
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


async def run_hooked(
    walk: GraphWalk, node: Node, asking: AgentRun, given: Json, hooks: "RunMiddleware"
) -> Walked:
    """An agent with middleware around it, which may answer in its place."""
    turn = AgentTurn(asking.agent.name, asking.path, given)
    if not walk.index.steps.get(asking.path):
        answer = await hooks.before_agent(turn)
        if answer is not None:
            return walk.end(node, asking.path, answer[0])
    waits = await asking.run()
    if asking.handed_to:
        return walk.hand_over(node, asking.path, asking.handed_to)
    if waits:
        return Paused(waits)
    return walk.end(node, asking.path, await hooks.after_agent(turn, asking.output))


async def run_step(walk: GraphWalk, node: Node, path: str, given: Json) -> Done:
    """Call the function with what it asks for, or take the call of one that has been listening."""
    step = node.flow
    assert isinstance(step, Step)
    if "chunks" in step.wants:
        known = walk.feed.at(path) if walk.feed is not None else None
        listener = known or Listener(walk, step, path, outlet=walk.outlet)
        context, call = listener.call(path, given)
    else:
        # A copy: what the step does to its input must not be done to the ledger.
        context = Context(walk.world, path, input=plain(given))
        call = call_step(step, path, context, walk.outlet, walk.far)
    if step.passes:
        await _look(walk, step, path, context, call)
        return walk.end(node, path, given)
    return walk.end(node, path, await call, context.changes())


async def _look(
    walk: GraphWalk, step: Step, path: str, context: Context, call: Awaitable[Any]
) -> None:
    """Let a function look that is to change nothing; what it raises is a note."""
    try:
        await call
    except GreenroomError:
        raise
    except Exception as error:  # noqa: BLE001 - who looks on does not fail the run
        noted = [one for one in walk.ledger.of(Noted, voice=walk.world.voice) if one.path == path]
        if not noted:
            walk.world.record(Noted(path=path, name=TAP_FAILED, data={**failure(error)}))
    if context.changes():
        raise BadAgent(
            f"the tap {step.name!r} at {path} changed the state; it may only look. Use a step."
        )


async def run_transform(walk: GraphWalk, node: Node, path: str, given: Json) -> Done:
    """Change the state, and pass the input on."""
    transform = node.flow
    assert isinstance(transform, Transform)
    state = walk.ledger.fold(walk.world.voice, branch_of(path))
    context = Context(walk.world, path, input=plain(given))
    changes: tuple[Change, ...]
    with placed(path):
        if walk.far is not None and transform.is_code:
            changes = await walk.far.call(transform.changes, context, path)
        else:
            changes = tuple(transform.changes(state, context))
    if context.changes():
        raise BadAgent(f"a function of the {node.segment} at {path} changed the state; use a step.")
    return walk.end(node, path, given, changes)


async def run_sequence(walk: GraphWalk, node: Node, path: str, given: Json) -> Walked:
    """One part after another, each with the output of the one before."""
    sequence = node.flow
    assert isinstance(sequence, Sequence)
    walks: dict[str, GraphWalk] = {}
    if hearing_parts(sequence) or walk.outlet is not None:
        walks = _linked(walk, node, sequence, path)
    feeds = {k: one.feed for k, one in walks.items() if one.feed and one.feed is not walk.feed}
    try:
        for key, child in node.children.items():
            if key in feeds:
                await feeds[key].finish(given)
            walked = await walks.get(key, walk).walk(child, f"{path}.{key}", given)
            if isinstance(walked, Paused):
                for feed in feeds.values():
                    await feed.settle()
                return walked
            given = walked.output
    finally:
        for feed in feeds.values():
            await feed.stop()
    return walk.end(node, path, given)


def _linked(walk: GraphWalk, node: Node, sequence: Sequence, path: str) -> dict[str, GraphWalk]:
    """The walk of each part of a sequence: what gives it its pieces, and where it puts its own."""
    walks: dict[str, GraphWalk] = {}
    outlet, keys = walk.outlet, list(node.children)
    hearing, cuts = hearing_parts(sequence), sequence.cuts()
    for number in reversed(range(len(keys))):
        key, feed = keys[number], None
        if key in hearing:
            first = number
            while hearing.get(keys[first]):
                first -= 1  # to the one whose words all behind it wait for
            source = f"{path}.{keys[first]}/{node.children[keys[first]].segment}"
            feed = (walk.feed if number == 0 else None) or Feed(
                walk,
                node.children[key],
                f"{path}.{key}",
                cuts.get(key, AS_THEY_COME),
                source if hearing[key] else "",
                number > 0 and isinstance(node.children[keys[number - 1]].flow, Parallel),
                outlet,
            )
        walks[key] = structs.replace(walk, feed=feed, outlet=outlet)
        door = outlet if isinstance(outlet, Door) else None
        outlet = Outlet(feed) if feed is not None and hearing[key] else None
        if door is not None and outlet is not None and not gives_pieces(node.children[key].flow):
            outlet = door.beside(outlet)
    return walks


async def run_loop(walk: GraphWalk, node: Node, path: str, given: Json) -> Walked:
    """Round after round, until one decides that it was the last."""
    loop, body = node.flow, node.children["body"]
    assert isinstance(loop, Loop)
    for number in count(1):
        here = f"{path}#{number}"
        walked = await walk.walk(body, here, given)
        if isinstance(walked, Paused):
            return walked
        given = walked.output
        if await is_last_round(walk, loop, path, number, given):
            return walk.end(node, path, given)
        if loop.awaits_input:
            wanted = await_message(walk, here, given)
            if wanted is not None:
                return Paused((wanted,))
            given = walk.index.answers[walk.world.new_id(here)].value
    raise AssertionError("a loop ends by its own decision")


async def is_last_round(walk: GraphWalk, loop: Loop, path: str, number: int, output: Json) -> bool:
    """Whether a loop ends with this round: its `until` holds, or it has gone its rounds."""
    return await _stops(walk, loop, f"{path}#{number}", output) or _is_last(loop, number, path)


def _is_last(loop: Loop, number: int, path: str) -> bool:
    """Whether a loop without `until` has gone its rounds; one with it has gone too far."""
    limit = loop.max_rounds or (None if loop.awaits_input else MAX_ROUNDS)
    if limit is None or number < limit:
        return False
    if loop.until is None:
        return True
    raise LoopLimit(
        f"the loop at {path} went {limit} rounds without ending. Raise max_rounds, or find out why "
        f"its `until` never holds."
    )


async def _stops(walk: GraphWalk, loop: Loop, here: str, output: Json) -> bool:
    if loop.until is None:
        return False
    if here not in walk.index.decided:
        held = await walk.decide(loop.until, loop.wants, here, output)
        walk.world.record(Decided(path=here, choice="stop" if held else "again"))
    return walk.index.decided[here] == "stop"


def await_message(walk: GraphWalk, here: str, output: Json) -> Yield | None:
    """The wait for the user's next message, or None when it is there."""
    key = walk.world.new_id(here)
    if key in walk.index.answers:
        return None
    said = agent_words(here, output)
    if here not in walk.index.spoken:
        walk.world.record(said)
    wanted = Yield(key, "message", prompt=said.text, invocation=walk.root)
    open_yield(walk.world, wanted, here)
    return wanted


async def run_route(walk: GraphWalk, node: Node, path: str, given: Json) -> Walked:
    """Choose once, and go that way."""
    key = await choose_branch(walk, node, path, given)
    walked = await walk.walk(node.children[key], f"{path}.{key}", given)
    return walked if isinstance(walked, Paused) else walk.end(node, path, walked.output)


async def choose_branch(walk: GraphWalk, node: Node, path: str, given: Json) -> str:
    """The branch of a route that is taken, decided once."""
    route = node.flow
    assert isinstance(route, Route)
    if path not in walk.index.decided:
        choice = await walk.decide(route.on, route.wants, path, given)
        key = str(choice) if str(choice) in node.children else route.otherwise
        if not key:
            raise AgentFailed(
                f"the route at {path} chose {choice!r}, but its branches are "
                f"{sorted(node.children)}. Add that branch, or `otherwise=`."
            )
        walk.world.record(Decided(path=path, choice=key))
    return walk.index.decided[path]


def _retries(flow: Flow) -> int:
    return flow.retries if isinstance(flow, Agent | Step) else 0
