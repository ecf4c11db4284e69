"""Flows that guard their parts: fallbacks and timeouts."""

import asyncio

from greenroom.agents.graph import Node
from greenroom.agents.guards import Timeout
from greenroom.backends.native.failures import is_its_own
from greenroom.backends.native.walk import Done, GraphWalk, Paused, Walked
from greenroom.backends.task_group import begin, stop
from greenroom.errors import AgentFailed
from greenroom.ledger.events import Answered, BranchCancelled, Decided, NodeFailed, RunResumed
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.messages import Voice
from greenroom.ledger.plain import Json
from greenroom.world.records import describe_error
from greenroom.world.world import World


async def run_fallback(walk: GraphWalk, node: Node, path: str, given: Json) -> Walked:
    """One part after another on the same input, until one does not fail."""
    last = list(node.children)[-1]
    for key, child in node.children.items():
        here = f"{path}.{key}"
        if here in walk.index.given_up:
            continue
        try:
            walked = await walk.walk(child, here, given)
        except Exception as error:
            if key == last or not is_its_own(error):
                raise
            found = describe_error(error)
            why = f"{found['error_type']}: {found['error']}"
            walk.world.record(Decided(path=here, choice="next", why=why))
        else:
            return walked if isinstance(walked, Paused) else walk.end(node, path, walked.output)
    raise AssertionError("the last part gives an output or raises")


async def run_timeout(walk: GraphWalk, node: Node, path: str, given: Json) -> Walked:
    """The body, which fails when its time is up, whatever it does."""
    flow, body = node.flow, node.children["body"]
    assert isinstance(flow, Timeout)
    if path not in walk.index.failed:
        left = flow.seconds - worked(walk.ledger, walk.world.voice, path)
        task = begin(walk.walk(body, path, given))
        try:
            allowed = flow.seconds + await _wait_for(walk.world, task, max(left, 0.0))
            if task.done() and (walked := _in_time(walk, task, path, allowed)) is not None:
                return walked if isinstance(walked, Paused) else walk.end(node, path, walked.output)
            why = f"it had worked for {flow.seconds:g} s"
            walk.world.record(
                NodeFailed(path=path, node=node.id, attempt=1, error=why, error_type="TimeoutError")
            )
            _cancel_body(walk, body, path)
        finally:
            await stop([task])
    else:
        _cancel_body(walk, body, path)
    failed = walk.index.failed[path]
    raise AgentFailed(f"{body.segment!r} failed at {path}: {failed.error_type}: {failed.error}")


async def _wait_for(world: World, task: "asyncio.Task[Walked]", seconds: float) -> float:
    """Wait at most `seconds` for a task; returns the extra time by which other cases blocked the event loop."""
    now, due = asyncio.get_running_loop().time, world.deadline
    until, left = now() + seconds, seconds
    while True:
        await asyncio.wait({task}, timeout=max(left, 0.0))
        # The watchdog extends the deadline of a case by the time that does not count.
        longer = 0.0 if due is None or world.deadline is None else world.deadline - due
        left = until + longer - now()
        if task.done() or left <= 0:
            return longer


def _in_time(
    walk: GraphWalk, task: "asyncio.Task[Walked]", path: str, seconds: float
) -> Walked | None:
    """The body's outcome; None if it ended too late because it blocked the event loop."""
    walked = task.result()
    if isinstance(walked, Done) and worked(walk.ledger, walk.world.voice, path) > seconds:
        return None
    return walked


def _cancel_body(walk: GraphWalk, body: Node, path: str) -> None:
    start = f"{path}/{body.segment}"
    if start in walk.index.started and start not in walk.index.cancelled:
        walk.world.record(BranchCancelled(path=start))


def worked(ledger: Ledger, voice: Voice, path: str) -> float:
    """The seconds that a node has worked, from one of its events to the next, by the ledger.

    Measured by the machine's clock, which a case cannot set. Time before an answer of the user and time
    before a resumption do not count.
    """
    inside, worked, mark = f"{path}/", 0.0, -1.0
    for event in ledger:
        is_own = event.voice == voice and (event.path == path or event.path.startswith(inside))
        if is_own and mark >= 0:
            worked += max(event.at - mark, 0.0)
        if is_own or (mark >= 0 and isinstance(event, RunResumed | Answered)):
            mark = event.at
    return worked
