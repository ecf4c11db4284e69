"""Streams: parts that take the output of the part before them while it is still being written.

    writer >> by("sentence", hold=16) >> speak

A step that asks for `chunks` takes the pieces of the part before it. `by` says how the stream is split, and
how many pieces may wait before the model has to. Everything else needs its whole input.
"""

from functools import lru_cache
from inspect import isasyncgenfunction
from typing import Any

from msgspec import Struct

from greenroom.agents.agent import Agent
from greenroom.agents.approvals import Approved
from greenroom.agents.boundaries import Apart
from greenroom.agents.cuts import Unit, checked_unit
from greenroom.agents.flow import Fallback, Flow, Parallel, Sequence, Step
from greenroom.agents.forks import Race
from greenroom.agents.guards import Timeout
from greenroom.agents.handoffs import Team
from greenroom.agents.remote import Remote
from greenroom.agents.routes import Loop, Route
from greenroom.errors import BadAgent


class Cut(Flow, Struct, frozen=True, eq=False):
    """A mark between two parts: how the output of the first is split for the second."""

    unit: Unit = "token"
    hold: int | None = None

    @property
    def is_part(self) -> bool:
        """It is not a node of the graph."""
        return False

    def facts(self) -> dict[str, Any]:
        """How it splits."""
        return {"by": self.unit, **({"hold": self.hold} if self.hold else {})}

    def __repr__(self) -> str:
        hold = f", hold={self.hold}" if self.hold else ""
        return f"by({self.unit!r}{hold})"


def by(unit: Unit = "token", *, hold: int | None = None) -> Cut:
    """Say how the output of one part is split for the next: `writer >> by("sentence") >> speak`.

    A unit is "token" (as they come), "word", "sentence", "line", "paragraph" or a number of
    characters. At most `hold` pieces wait to be taken; then the model's stream is not read any further
    until there is room. Without it any number may wait.
    """
    if hold is not None and (type(hold) is not int or hold < 1):
        raise BadAgent(f"by(hold={hold!r}) holds nothing; give a number from 1, or leave it out.")
    return Cut(checked_unit(unit), hold)


def hears_pieces(flow: Flow) -> bool:
    """Whether a part takes its input piece by piece, itself or by the part it begins with."""
    match flow:
        case Step():
            return "chunks" in flow.wants
        case Parallel() | Race():
            return any(map(hears_pieces, flow.parts))
        case Sequence() | Fallback():
            return hears_pieces(next(iter(flow.children().values())))
        case Timeout():
            return hears_pieces(flow.body)
        case _:
            return False


def gives_pieces(flow: Flow, to_user: bool = False) -> bool:
    """Whether a part's output can be taken piece by piece, before it is complete.

    The output of a race is known when it is won, that of a loop after its last round, and an answer by a
    schema when it is whole. `to_user` asks about output to the user: each round of a loop that awaits
    them, and an agent that a step listens to at the end.
    """
    match flow:
        case Agent():
            return flow.output is None
        case Team() | Remote():
            return True
        case Step():
            call: object = getattr(flow.fn, "__call__", None)  # noqa: B004 - an object with an async one
            return not flow.passes and (isasyncgenfunction(flow.fn) or isasyncgenfunction(call))
        case Sequence():
            *before, last = flow.children().values()
            while to_user and before and hears_pieces(last) and not gives_pieces(last):
                last = before.pop()
            return gives_pieces(last, to_user)
        case Loop():
            return to_user and flow.awaits_input and gives_pieces(flow.body, to_user)
        case Parallel() | Fallback() | Route() | Approved() | Timeout() | Apart():
            return any(gives_pieces(part, to_user) for part in flow.children().values())
        case _:
            return False


@lru_cache(maxsize=256)
def hearing_parts(sequence: Sequence) -> dict[str, bool]:
    """The parts of a sequence that take pieces, by their keys, and whether they take them early.

    They do if the part before them gives its output as it comes.
    """
    found: dict[str, bool] = {}
    before: Flow | None = None
    for key, part in sequence.children().items():
        if hears_pieces(part):
            found[key] = before is not None and gives_pieces(before)
        before = part
    return found
