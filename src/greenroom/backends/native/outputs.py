"""Where a node's output goes in the state: to the places that the node declares to write."""

from collections.abc import Iterator

from greenroom.agents.agent import Agent
from greenroom.agents.flow import Step
from greenroom.agents.places import typed_fields
from greenroom.agents.remote import Remote
from greenroom.ledger.changes import Change
from greenroom.ledger.plain import Json, is_object
from greenroom.ledger.query import split_place


def declared_changes(
    node: Agent | Step | Remote, output: Json, own: tuple[Change, ...]
) -> list[Change]:
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


def _placed(
    node: Agent | Step | Remote, output: Json, *, is_free: bool
) -> Iterator[tuple[str, Change]]:
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
