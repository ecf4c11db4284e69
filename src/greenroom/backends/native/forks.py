"""Flows that go several ways at once. Every fork is `par` in a path.

So a branch has a state of its own, which is merged when the fork ends, and sees nothing of its
neighbours while they run.
"""

from collections.abc import Iterable

from greenroom.agents.graph import Node
from greenroom.backends.native.walk import Done, GraphWalk, Paused, Walked
from greenroom.backends.together import together
from greenroom.errors import Refusal
from greenroom.ledger.changes import Change
from greenroom.ledger.events import (
    Answered,
    BranchCancelled,
    NodeEnded,
    NodeFailed,
    StateChanged,
    ToolReturned,
    changes_by,
)
from greenroom.ledger.paths import branch_of
from greenroom.ledger.plain import Json
from greenroom.world.records import describe_error, raised_before, record_conflicts


async def run_parallel(walk: GraphWalk, node: Node, path: str, given: Json) -> Walked:
    """All parts on the same input; the first failure stops the others."""
    starts = [f"{path}.{key}/{child.segment}" for key, child in node.children.items()]
    if path in walk.index.failed:
        cancel_branches(walk, starts)
        failed = walk.index.failed[path]
        raise raised_before(failed.error, failed.error_type)
    work = [walk.walk(child, f"{path}.{key}", given) for key, child in node.children.items()]
    try:
        walked = await together(work)
    except Refusal:
        raise
    except Exception as error:
        # First why, then whom it stopped: a run cut in between knows the reason.
        walk.world.record(NodeFailed(path=path, node=node.id, attempt=1, **describe_error(error)))
        cancel_branches(walk, starts)
        raise
    waiting = tuple(y for item in walked if isinstance(item, Paused) for y in item.yields)
    if waiting:
        return Paused(waiting)
    changes = merged(walk, path, [f"{path}.{key}" for key in node.children])
    names = [child.segment for child in node.children.values()]
    outputs: dict[str, Json] = {}
    for (key, child), item in zip(node.children.items(), walked, strict=True):
        assert isinstance(item, Done)
        is_only = names.count(child.segment) == 1
        outputs[child.segment if is_only else f"{child.segment}.{key}"] = item.output
    return walk.end(node, path, outputs, changes)


def cancel_branches(walk: GraphWalk, starts: Iterable[str]) -> None:
    """Record of each branch that is still under way, by its first node's path, that it is not needed any more."""
    index = walk.index
    for path in starts:
        over = path in index.ended or path in index.failed or path in index.cancelled
        # A flow's parts go on where its own path ends: `seq.1/...`, `loop#2/...`.
        inside = (f"{path}.", f"{path}#", f"{path}~")
        broke = any(failed.startswith(inside) for failed in index.failed)
        if path in index.started and not over and not broke:
            walk.world.record(BranchCancelled(path=path))


def merged(walk: GraphWalk, path: str, branches: list[str]) -> tuple[Change, ...]:
    """What the branches did to the state, in declared order; conflicts are written down."""
    writers: dict[str, list[Change]] = {branch: [] for branch in branches}
    for event in walk.ledger:
        if event.voice != walk.world.voice:
            continue
        if isinstance(event, ToolReturned | NodeEnded | StateChanged) and event.changes:
            if (place := branch_of(event.path)) in writers:
                writers[place] += changes_by(event)
        elif isinstance(event, Answered):
            # What the user changed after a branch had written there must outlast the merge.
            for written in writers.values():
                written += [c for c in event.changes if any(c.meets(w) for w in written)]
    record_conflicts(walk.world, path, writers.values())
    return tuple(change for branch in branches for change in writers[branch])
