"""Parts that run one branch at a time: steps, transforms, sequences, loops and routes."""

from collections.abc import Awaitable
from itertools import count
from typing import Any

from msgspec import structs

from greenroom.agents.flow import Parallel, Sequence, Step
from greenroom.agents.graph import Node
from greenroom.agents.routes import Loop, Route
from greenroom.agents.streams import gives_pieces, hearing_parts
from greenroom.agents.transforms import Transform
from greenroom.backends.backend import Yield
from greenroom.backends.native.agent_node import open_yield
from greenroom.backends.native.failures import failure
from greenroom.backends.native.listeners import AS_THEY_COME, Door, Feed, Listener, Outlet
from greenroom.backends.native.steps import call_step
from greenroom.backends.native.walk import Done, GraphWalk, Paused, Walked
from greenroom.errors import AgentFailed, BadAgent, GreenroomError, LoopLimit
from greenroom.ledger.attachments import text_and_attachments
from greenroom.ledger.changes import Change
from greenroom.ledger.events import (
    Decided,
    Noted,
)
from greenroom.ledger.paths import branch_of
from greenroom.ledger.plain import Json, plain
from greenroom.world.call_context import placed
from greenroom.world.world import Context

MAX_ROUNDS = 100
TAP_FAILED = "tap_failed"
"""The note that a tap's function raised an error."""


async def run_step(walk: GraphWalk, node: Node, path: str, given: Json) -> Done:
    """Call the function with what it asks for, or use the call of a step that has been listening."""
    step = node.flow
    assert isinstance(step, Step)
    if "chunks" in step.wants:
        known = walk.feed.at(path) if walk.feed is not None else None
        listener = known or Listener(walk, step, path, outlet=walk.outlet)
        context, call = listener.call(path, given)
    else:
        # A copy, so that a step that changes its input does not change the ledger.
        context = Context(walk.world, path, input=plain(given))
        call = call_step(step, path, context, walk.outlet, walk.far)
    if step.passes:
        await _look(walk, step, path, context, call)
        return walk.end(node, path, given)
    return walk.end(node, path, await call, context.changes())


async def _look(
    walk: GraphWalk, step: Step, path: str, context: Context, call: Awaitable[Any]
) -> None:
    """Call a tap's function, which may change nothing; an error it raises becomes a note."""
    try:
        await call
    except GreenroomError:
        raise
    except Exception as error:  # noqa: BLE001 - who looks on does not fail the run
        noted = any(one.path == path for one in walk.index.noted)
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
    """The walk of each part of a sequence, with its feed of pieces and its outlet."""
    walks: dict[str, GraphWalk] = {}
    outlet, keys = walk.outlet, list(node.children)
    hearing, cuts = hearing_parts(sequence), sequence.cuts()
    for number in reversed(range(len(keys))):
        key, feed = keys[number], None
        if key in hearing:
            first = number
            while hearing.get(keys[first]):
                first -= 1  # back to the part whose words all parts after it wait for
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
    """Whether a loop ends with this round: its `until` holds, or it has made all its rounds."""
    here = f"{path}#{number}"
    if loop.until is not None:
        if here not in walk.index.decided:
            held = await walk.decide(loop.until, loop.wants, here, output)
            walk.world.record(Decided(path=here, choice="stop" if held else "again"))
        if walk.index.decided[here] == "stop":
            return True
    limit = loop.max_rounds or (None if loop.awaits_input else MAX_ROUNDS)
    if limit is None or number < limit:
        return False
    if loop.until is None:
        return True
    raise LoopLimit(
        f"the loop at {path} made {limit} rounds without ending. Raise max_rounds, or find out why "
        f"its `until` never holds."
    )


def await_message(walk: GraphWalk, here: str, output: Json) -> Yield | None:
    """The wait for the user's next message, or None when it is there."""
    key = walk.world.new_id(here)
    if key in walk.index.answers:
        return None
    text, attached = text_and_attachments(output)
    wanted = Yield(key, "message", prompt=text, attachments=attached, invocation=walk.root)
    open_yield(walk.world, wanted, here)
    return wanted


async def run_route(walk: GraphWalk, node: Node, path: str, given: Json) -> Walked:
    """Choose a branch once, and run it."""
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
