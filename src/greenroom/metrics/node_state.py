"""The state when a node ended, in any framework."""

from collections.abc import Sequence

from greenroom.cases.scores import Score, Unmeasured
from greenroom.ledger.changes import State
from greenroom.ledger.events import (
    Event,
    InvocationEnded,
    NodeEnded,
    NodeFailed,
    NodeStarted,
    StateChanged,
)
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.paths import branch_of, root_of

NO_NODES = "the ledger names no nodes: its backend does not record them"


def is_named(event: NodeStarted | NodeEnded | NodeFailed, node: str) -> bool:
    """Whether an event is about the node of that name, or at that place in the graph."""
    return node in (event.node, event.node.rpartition("/")[2])


def state_after_node(
    ledger: Ledger, node: str, name: str, span: tuple[int, int] | None = None
) -> State | Score | Unmeasured:
    """The state when `node` had last ended, in the whole trial or in a span of its events.

    For a node that never ended, a failed score of the metric called `name`.
    """
    if not ledger.of(NodeStarted):
        return Unmeasured(NO_NODES)
    begin, end = span or (0, len(ledger))
    events = [event for event in ledger[begin:end] if event.voice == "agent"]
    ends = [event for event in events if isinstance(event, NodeEnded) and is_named(event, node)]
    if not ends:
        return Score(0.0, False, name=name, reason=why_not_ended(events, node))
    last = _last_change(events, ends[-1])
    if last is None:
        return Unmeasured(
            f"the state after {node!r} is not known: its backend reports changes only when the "
            f"whole agent has answered"
        )
    return Ledger(ledger[: last + 1]).fold("agent", branch_of(ends[-1].path))


def why_not_ended(events: Sequence[Event], node: str) -> str:
    """Why there is no state after a node, in words."""
    failed = [event for event in events if isinstance(event, NodeFailed) and is_named(event, node)]
    if failed:
        return f"{node!r} failed: {failed[-1].error}"
    started = [event for event in events if isinstance(event, NodeStarted)]
    if any(is_named(event, node) for event in started):
        return f"{node!r} began, but did not end"
    ran = dict.fromkeys(event.node.rpartition("/")[2] for event in started)
    return f"{node!r} never ran; these did: {', '.join(ran)}" if ran else f"{node!r} never ran"


def _last_change(events: Sequence[Event], end: NodeEnded) -> int | None:
    """The last event that still belongs to what a node changed; None if it came too late to tell.

    A framework may report what nodes did to the state when they have ended, several at once. What it
    reports of the whole agent belongs to a node only if nothing else has begun since.
    """
    last, root, is_last = end.seq, root_of(end.path), True
    over = {end.path, root}
    for event in events:
        if event.seq <= end.seq:
            continue
        if isinstance(event, InvocationEnded):
            break
        if isinstance(event, NodeStarted):
            is_last = False
        elif isinstance(event, NodeEnded) and is_last:
            over.add(event.path)
        elif isinstance(event, StateChanged) and event.path in over:
            if is_last or event.path == end.path:
                last = event.seq
            elif event.path == root:
                return None
    return last
