"""Who handed the conversation over to whom, in any framework."""

from collections.abc import Iterator

from msgspec import Struct

from greenroom.ledger.events import Decided, ModelCalled, RunStarted, ToolCalled
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.messages import Voice
from greenroom.ledger.plain import is_object


class Handover(Struct, frozen=True):
    """One agent, or node of a graph, handed the conversation to a neighbour."""

    by: str
    to: str
    seq: int
    """The event from which the other one has it."""


def handovers(ledger: Ledger, voice: Voice = "agent") -> list[Handover]:
    """Every handover of a trial, in order.

    A handover is a decision of an agent or node that lets one of its neighbours continue: a transfer, a
    `Command(goto=...)`, a conditional edge, an output function that runs the other. A sequence, an agent
    used as a tool and a route to one of its own parts are not handovers.
    """
    found = [*_decided(ledger, voice), *_by_code(ledger, voice), *_by_output(ledger, voice)]
    return sorted(found, key=lambda one: one.seq)


def _decided(ledger: Ledger, voice: Voice) -> Iterator[Handover]:
    index = ledger.index_of(voice)
    for decided in ledger.of(Decided, voice=voice):
        here = index.started.get(decided.path)
        if here is None:
            continue
        around, wanted = decided.path.rpartition("/")[0], set(decided.choice.split(", "))
        for event in index.started.values():
            is_beside = event.path.rpartition("/")[0] == around
            if is_beside and event.seq > decided.seq and (name := _name(event.node)) in wanted:
                wanted.discard(name)
                yield Handover(_name(here.node), name, event.seq)


def _by_code(ledger: Ledger, voice: Voice) -> Iterator[Handover]:
    """Agents that a plain function runs one after another: its code decides which one continues."""
    first = ledger.first
    facts = first.agent if isinstance(first, RunStarted) else None
    if not is_object(facts) or facts.get("framework") != "function":
        return
    before: dict[str, str] = {}
    for called in ledger.of(ModelCalled, voice=voice):
        around = called.path.rpartition("/")[0]
        if around in before and before[around] != called.agent:
            yield Handover(before[around], called.agent, called.seq)
        before[around] = called.agent


def _by_output(ledger: Ledger, voice: Voice) -> Iterator[Handover]:
    """Agents that answer in place of the one whose last call they are asked in."""
    for call in ledger.of(ToolCalled, voice=voice):
        if not call.ends:
            continue
        inside = f"{call.path}/call:{call.call_id}/"
        asked = (one for one in ledger.of(ModelCalled, voice=voice) if one.path.startswith(inside))
        if first := next(asked, None):
            yield Handover(_name(call.path), first.agent, first.seq)


def _name(node: str) -> str:
    return node.rpartition("/")[2]
