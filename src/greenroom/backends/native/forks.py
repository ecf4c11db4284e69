"""Flows that run several branches at once. Every fork is `par` in a path.

So a branch has its own state, which is merged when the fork ends, and does not see its neighbours while
they run.
"""

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any

from msgspec import structs

from greenroom.agents.forks import MapOver
from greenroom.agents.graph import Node
from greenroom.backends.native.failures import is_its_own
from greenroom.backends.native.listeners import branch_names
from greenroom.backends.native.walk import Done, GraphWalk, Paused, Walked
from greenroom.backends.task_group import begin, stop, together
from greenroom.errors import AgentFailed, Refusal
from greenroom.ledger.changes import Change
from greenroom.ledger.events import (
    Answered,
    BranchCancelled,
    Decided,
    NodeEnded,
    NodeFailed,
    StateChanged,
    ToolReturned,
    changes_by,
)
from greenroom.ledger.index import VoiceIndex
from greenroom.ledger.paths import branch_of
from greenroom.ledger.plain import Json, is_array
from greenroom.world.records import describe_error, ours, raised_before, record_conflicts

Work = Coroutine[Any, Any, Walked]


async def run_parallel(walk: GraphWalk, node: Node, path: str, given: Json) -> Walked:
    """All parts on the same input; the first failure stops the others."""
    branches = {f"{path}.{key}": child for key, child in node.children.items()}
    _fail_again(walk, path, branches)
    names = branch_names(node).values()
    walks = [walk] * len(names)
    if walk.outlet is not None:
        walks = [structs.replace(walk, outlet=walk.outlet.of(name)) for name in names]
    work = [
        one.walk(child, branch, given)
        for one, (branch, child) in zip(walks, branches.items(), strict=True)
    ]
    walked = await _all_of(walk, node, path, branches, work)
    if isinstance(walked, Paused):
        return walked
    outputs: Json = dict(zip(names, walked, strict=True))
    return walk.end(node, path, outputs, merged(walk, path, list(branches)))


async def run_map(walk: GraphWalk, node: Node, path: str, given: Json) -> Walked:
    """The body for each item of the list, a limited number at a time; the first failure stops the others."""
    flow, body = node.flow, node.children["body"]
    assert isinstance(flow, MapOver)
    items = items_of(flow, walk.index, path, given)
    branches = {f"{path}.{number}": body for number in range(len(items))}
    _fail_again(walk, path, branches)
    slots = asyncio.Semaphore(flow.at_once)

    async def run_item(branch: str, item: Json) -> Walked:
        await slots.acquire()
        walked = await walk.walk(body, branch, item)
        slots.release()  # not after a failure: then no other may begin
        return walked

    work = [run_item(branch, item) for branch, item in zip(branches, items, strict=True)]
    walked = await _all_of(walk, node, path, branches, work)
    if isinstance(walked, Paused):
        return walked
    return walk.end(node, path, walked, merged(walk, path, list(branches)))


def items_of(flow: MapOver, index: VoiceIndex, path: str, given: Json) -> list[Json]:
    """The list that a map goes over; AgentFailed if it is none."""
    items = index.started[path].items if flow.over else given
    if not is_array(items):
        place = f"at {flow.over} in the state" if flow.over else "as its input"
        raise AgentFailed(
            f"the map at {path} goes over a list, but found {repr(items)[:80]} {place}. Have the "
            f"part before it give a list, or say over=..."
        )
    return items


def _fail_again(walk: GraphWalk, path: str, branches: Mapping[str, Node]) -> None:
    """Raise what stopped the fork before the run was interrupted, if anything did."""
    if failed := walk.index.failed.get(path):
        _cancel_unfinished(walk, branches)
        raise raised_before(failed.error, failed.error_type, failed.ours)


async def _all_of(
    walk: GraphWalk, node: Node, path: str, branches: Mapping[str, Node], work: Sequence[Work]
) -> list[Json] | Paused:
    """The outputs of all branches in their order, or what they wait for."""
    try:
        walked = await together(work)
    except Refusal:
        raise
    except Exception as error:
        # First the reason, then the branches it stopped: a run interrupted in between knows the reason.
        found = describe_error(error)
        walk.world.record(NodeFailed(path=path, node=node.id, attempt=1, **found, ours=ours(error)))
        _cancel_unfinished(walk, branches)
        raise
    waiting = tuple(y for item in walked if isinstance(item, Paused) for y in item.yields)
    return (
        Paused(waiting) if waiting else [item.output for item in walked if isinstance(item, Done)]
    )


def _cancel_unfinished(walk: GraphWalk, branches: Mapping[str, Node]) -> None:
    """Record which branches were stopped because another one failed."""
    index = walk.index
    for branch, child in branches.items():
        path = f"{branch}/{child.segment}"
        over = path in index.ended or path in index.cancelled
        if path in index.started and not over and not _has_failed(walk, branch):
            walk.world.record(BranchCancelled(path=path))


def _has_failed(walk: GraphWalk, branch: str) -> bool:
    """Whether the last event in a branch is a failure, so that no further attempt or part followed."""
    inside = [
        event
        for event in walk.ledger
        if event.voice == walk.world.voice and event.path.startswith(f"{branch}/")
    ]
    happened = (event for event in reversed(inside) if not isinstance(event, BranchCancelled))
    return isinstance(next(happened, None), NodeFailed)


async def run_race(walk: GraphWalk, node: Node, path: str, given: Json) -> Walked:
    """All parts on the same input; the first to end is the outcome, and the others are stopped."""
    tasks: dict[str, asyncio.Task[Walked]] = {}
    winner = _winner(walk, node, path)
    try:
        if not winner:
            for key, child in node.children.items():
                tasks[key] = begin(walk.walk(child, f"{path}.{key}", given))
            winner = await _first_end(walk, node, path, tasks)
        if not winner:
            return _undecided(node, path, tasks)
        # First record the winner, then the stopped branches, and only then cancel them: they may still act.
        if path not in walk.index.decided:
            walk.world.record(Decided(path=path, choice=winner))
        for key, child in node.children.items():
            start = f"{path}.{key}/{child.segment}"
            is_known = start in walk.index.cancelled or start not in walk.index.started
            if key != winner and not is_known:
                walk.world.record(BranchCancelled(path=start))
    finally:
        await stop(tasks.values())
    end = _end_of(walk, node.children[winner], f"{path}.{winner}")
    assert end is not None
    return walk.end(node, path, end.output, merged(walk, path, [f"{path}.{winner}"]))


def _winner(walk: GraphWalk, node: Node, path: str) -> str:
    """The branch that was recorded as the winner, else the one that ended first, if one has."""
    if path in walk.index.decided:
        return walk.index.decided[path]
    ends = {key: _end_of(walk, child, f"{path}.{key}") for key, child in node.children.items()}
    ended = {key: end.seq for key, end in ends.items() if end is not None}
    return min(ended, key=ended.__getitem__, default="")


def _end_of(walk: GraphWalk, child: Node, branch: str) -> NodeEnded | None:
    """The end of a branch, in whichever attempt."""
    path, attempt = f"{branch}/{child.segment}", 1
    here = path
    while here in walk.index.failed:
        attempt += 1
        here = f"{path}~{attempt}"
    return walk.index.ended.get(here)


async def _first_end(
    walk: GraphWalk, node: Node, path: str, tasks: dict[str, "asyncio.Task[Walked]"]
) -> str:
    """The first branch to end; "" if all wait or have failed."""
    running = set(tasks.values())
    while running:
        done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            error = None if task.cancelled() else task.exception()
            has_failed = isinstance(error, Exception) and is_its_own(error)
            if task.cancelled() or not (error is None or has_failed):
                task.result()  # raises an error that is not the branch's own failure
        if winner := _winner(walk, node, path):
            return winner
    return ""


def _undecided(node: Node, path: str, tasks: dict[str, "asyncio.Task[Walked]"]) -> Paused:
    """What the branches that have not failed wait for."""
    reasons: list[str] = []
    waiting: list[Any] = []
    for key, task in tasks.items():
        if error := task.exception():
            found = describe_error(error)
            reasons.append(f"{node.children[key].segment}: {found['error_type']}: {found['error']}")
        elif isinstance(walked := task.result(), Paused):
            waiting += walked.yields
    if not waiting:
        raise AgentFailed(f"every part of the race at {path} failed: {'; '.join(reasons)}")
    return Paused(tuple(waiting))


def merged(walk: GraphWalk, path: str, branches: list[str]) -> tuple[Change, ...]:
    """The state changes of the branches, in declared order; conflicts are recorded."""
    writers: dict[str, list[Change]] = {branch: [] for branch in branches}
    for event in walk.ledger:
        if event.voice != walk.world.voice:
            continue
        if isinstance(event, ToolReturned | NodeEnded | StateChanged) and event.changes:
            if (place := branch_of(event.path)) in writers:
                writers[place] += changes_by(event)
        elif isinstance(event, Answered):
            # A change by the user after a branch had written there must survive the merge.
            for written in writers.values():
                written += [c for c in event.changes if any(c.meets(w) for w in written)]
    record_conflicts(walk.world, path, writers.values())
    return tuple(change for branch in branches for change in writers[branch])
