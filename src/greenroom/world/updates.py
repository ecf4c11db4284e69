"""Calls made at the same time that change one place of the state.

Each call reads the state as it was when it was called, changes are applied in the order of the calls
whichever ends first, and where two of them change the same place that is recorded.
"""

from collections.abc import Callable, Iterator

from msgspec import Struct

from greenroom.ledger.changes import Change, Changes, State, apply_changes, value_in
from greenroom.ledger.events import ModelReplied, StateConflicted, ToolCalled, ToolReturned
from greenroom.ledger.index import VoiceIndex
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.paths import branch_of
from greenroom.ledger.plain import Json, same
from greenroom.world.world import Context, World

Place = tuple[str, tuple[str, ...]]


class Update(Struct, frozen=True):
    """What one call of a round changes."""

    called: ToolCalled
    changes: Changes
    ended_at: int


def settle(world: World, called: ToolCalled, context: Context, changes: Changes) -> Changes:
    """The values at places that several calls of one reply changed; nothing if this call is the last."""
    index = world.ledger.index_of(world.voice)
    replies = (r for r in reversed(index.replied) if any(c.id == called.call_id for c in r.calls))
    reply = next(replies, None)  # the one that asked for this call, if any did
    begun = called.seq if reply is None else reply.seq
    if index.changed_at < begun:
        return ()
    mine = Update(called, changes, len(world.ledger))
    others = [other for other in _others(index, called, reply, begun) if _meeting(other, mine)]
    for other in others:
        for place in _meeting(other, mine):
            if _is_lost(place, other, mine, context):
                _record(world, called.path, place, sorted((other, mine), key=_order(reply)), begun)
    return _settled(world, mine, others, reply) if others else ()


def _others(
    index: VoiceIndex, called: ToolCalled, reply: ModelReplied | None, begun: int
) -> Iterator[Update]:
    """The changes of calls in parallel with this one that have ended since then."""
    branch = branch_of(called.path)
    asked = () if reply is None else {call.id for call in reply.calls}
    for other in index.issued:
        end = index.end_of(other)
        if not isinstance(end, ToolReturned) or not end.changes or end.seq < begun:
            continue
        # Changes that were made inside a call belong to that call.
        beside = other.path == called.path or other.call_id in asked
        if other.seq != called.seq and beside and branch_of(other.path) == branch:
            yield Update(other, end.changes, end.seq)


def _meeting(one: Update, other: Update) -> set[Place]:
    """The places that both change: the outer one if one is inside the other."""
    return {
        (mine.scope, min(mine.path, theirs.path, key=len))
        for mine in one.changes
        for theirs in other.changes
        if mine.meets(theirs)
    }


def _is_lost(place: Place, other: Update, mine: Update, context: Context) -> bool:
    """Whether one of two calls overwrote the other's change without having seen it."""
    ops = {change.op for update in (other, mine) for change in _at(update, place)}
    if ops == {"append"}:
        return False
    was_read = context.has_read(place[0], place[1][0])
    if other.ended_at < mine.called.seq and was_read:
        return False  # one after the other, and this one had seen the change
    if was_read:
        return True
    return not same(_wishes(other, place), _wishes(mine, place))


def _wishes(update: Update, place: Place) -> Json:
    return [[change.op, *change.path, change.value] for change in _at(update, place)]


def _at(update: Update, place: Place) -> list[Change]:
    here = Change(place[0], place[1])
    return [change for change in update.changes if change.meets(here)]


def _record(world: World, path: str, place: Place, updates: list[Update], since: int) -> None:
    """Record that calls changed one place; once, even if the last of them is made again."""
    scope, key = place[0], ".".join(place[1])
    if world.ledger.index_of(world.voice).conflicted.get((path, scope, key), -1) > since:
        return
    values: list[Json] = [_at(update, place)[-1].value for update in updates]
    world.record(StateConflicted(path=path, scope=scope, key=key, values=values))


def _order(reply: ModelReplied | None) -> Callable[[Update], tuple[int, int]]:
    """Sort by the order in which the model asked for the calls, else in which they were made."""
    asked = {} if reply is None else {call.id: n for n, call in enumerate(reply.calls)}

    def place(update: Update) -> tuple[int, int]:
        return asked.get(update.called.call_id, len(asked)), update.called.seq

    return place


def _settled(
    world: World, mine: Update, others: list[Update], reply: ModelReplied | None
) -> Changes:
    in_order = sorted((*others, mine), key=_order(reply))
    if in_order[-1] is mine:
        return ()
    branch = branch_of(mine.called.path)
    state = state_at(world, min(other.ended_at for other in others), branch)
    for update in in_order:
        apply_changes(state, update.changes)
    places = {place for other in others for place in _meeting(other, mine)}
    settled: list[Change] = []
    for scope, path in sorted(places):
        holder = value_in(state, scope, path[:-1])
        if isinstance(holder, dict) and path[-1] in holder:
            settled.append(Change(scope, path, "set", holder[path[-1]]))
        else:
            settled.append(Change(scope, path, "delete"))
    return tuple(settled)


def state_at(world: World, seq: int, branch: str) -> State:
    """The state of a branch as it was before event `seq`."""
    return Ledger(world.ledger[:seq]).fold(world.voice, branch)
