"""Flow: how agents and steps are put together. Every expression is immutable."""

import functools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, overload

from msgspec import Struct, structs

from greenroom.agents.deciders import (
    hearing_names,
    named_arguments,
)
from greenroom.agents.places import Places, declared_places, typed_fields, written_facts
from greenroom.agents.schema import fields_of, schema_facts, state_schema
from greenroom.agents.signature import function_name
from greenroom.errors import BadAgent
from greenroom.ledger.functions import Anything, ByName
from greenroom.ledger.identity import code_identity

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*\Z")
RESERVED = ("seq", "par", "race", "try", "loop", "route", "within", "approval", "apart")
"""Words that paths use for kinds of flow, so no part may have them as its name."""


def checked_name(name: object, what: str, reserved: tuple[str, ...] = RESERVED) -> str:
    """A name, checked that it can be part of a path."""
    if not isinstance(name, str) or not _NAME.match(name):
        raise BadAgent(
            f"{what} is named {name!r}; use letters, digits, _ and -, beginning with a letter."
        )
    if name in reserved:
        raise BadAgent(
            f"{what} is named {name!r}, which is a reserved word in paths; choose another."
        )
    return name


class Flow:
    """Anything that can be put in sequence (`a >> b`), side by side (`a | b`) or behind one that fails (`a // b`).

    A kind of flow describes itself: by what it adds to a path, by its parts and by its facts. The
    graph, its snapshot and its digest, and everything that walks over them, need only that.
    """

    __slots__ = ()

    @property
    def kind(self) -> str:
        """Its kind in a snapshot: `sequence` for `Sequence`."""
        return type(self).__name__.lower()

    @property
    def is_part(self) -> bool:
        """Whether it is a node of the graph; a mark between two parts is not."""
        return True

    @property
    def segment(self) -> str:
        """What it adds to a path: its name, or a word of its kind."""
        raise BadAgent(f"{self!r} is not part of a flow that can be run.")

    def children(self) -> Mapping[str, "Flow"]:
        """Its parts, by their keys."""
        return {}

    def with_children(self, children: Mapping[str, "Flow"]) -> "Flow":  # noqa: ARG002 - it has none
        """A copy of this flow with these parts in place of its own, under the same keys."""
        return self

    def joint(self, key: str) -> str:
        """The text between it and the part of that key in static ids: `seq.1/clerk`."""
        return f".{key}"

    def facts(self) -> dict[str, Any]:
        """Its facts in a snapshot, in addition to its place, its kind and its parts."""
        return {}

    def code(self) -> Mapping[str, Callable[..., Any]]:
        """The author's functions that are called to run it, by their role in it."""
        return {}

    def __rshift__(self, other: Anything) -> "Sequence":
        return Sequence((*_parts(self, Sequence), *_parts(as_flow(other), Sequence)))

    def __rrshift__(self, other: Anything) -> "Sequence":
        return as_flow(other) >> self

    def __or__(self, other: Anything) -> "Parallel":
        return Parallel((*_parts(self, Parallel), *_parts(as_flow(other), Parallel)))

    def __ror__(self, other: Anything) -> "Parallel":
        return as_flow(other) | self

    def __floordiv__(self, other: Anything) -> "Fallback":
        return Fallback((*_parts(self, Fallback), *_parts(as_flow(other), Fallback)))

    def __rfloordiv__(self, other: Anything) -> "Fallback":
        return as_flow(other) // self


def _parts(flow: Flow, kind: "type[Parts]") -> tuple[Flow, ...]:
    return flow.parts if isinstance(flow, kind) else (flow,)


def as_flow(given: object) -> Flow:
    """A flow from a flow or a plain function, which becomes a step."""
    if isinstance(given, Flow):
        return given
    if callable(given):
        return step(given)
    raise BadAgent(f"{given!r} cannot be part of a flow; use an Agent, a step or a function.")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Step(Flow):
    """Plain code as a node; it may read and change the state, and cannot pause."""

    name: str
    fn: Callable[..., Any]
    retries: int = 0
    writes: Places = ()
    wants: tuple[str, ...] = ()
    reads: Places = ()
    passes: bool = False
    """Whether its output is its input, whatever the function returns; see `tap`."""

    def __post_init__(self) -> None:
        for name in ("reads", "writes"):
            what, schema = f"{name}= of step {self.name!r}", state_schema(self.fn)
            places = declared_places(getattr(self, name), what, schema)
            object.__setattr__(self, name, places)

    def __repr__(self) -> str:
        return self.name

    @property
    def segment(self) -> str:
        """Its name."""
        return self.name

    def facts(self) -> dict[str, Any]:
        """Its name, its code and its declared reads and writes."""
        schema = state_schema(self.fn)
        typed = fields_of(schema).values() if schema else typed_fields(*self.reads, *self.writes)
        return {
            "name": self.name,
            "code": code_identity(self.fn),
            "retries": self.retries,
            "writes": written_facts(self.writes),
            **({"reads": list(self.reads)} if self.reads else {}),
            **schema_facts(typed),
            **({"passes": True} if self.passes else {}),
        }

    def code(self) -> dict[str, Callable[..., Any]]:
        """Its function."""
        return {"fn": self.fn}

    def arguments(self, context: object) -> dict[str, Any]:
        """The parameters that the function asks for by name."""
        return named_arguments(self.wants, context, self.fn)


@overload
def step(fn: ByName, /) -> Step: ...
@overload
def step(
    fn: ByName,
    /,
    *,
    name: str = "",
    retries: int = 0,
    reads: Places = (),
    writes: Places = (),
) -> Step: ...
@overload
def step(
    *, name: str = "", retries: int = 0, reads: Places = (), writes: Places = ()
) -> Callable[[Callable[..., Any]], Step]: ...
def step(
    fn: Callable[..., object] | None = None,
    /,
    *,
    name: str = "",
    retries: int = 0,
    reads: Places = (),
    writes: Places = (),
) -> Step | Callable[[Callable[..., Any]], Step]:
    """Make a function a step. It may ask for `ctx`, `input` and `state`; its return value is its output.

    A step that asks for `chunks` in place of `input` takes the output of the part before it piece by piece,
    by `async for`; one that yields strings passes them on in pieces.
    `retries` is how often a failing step is tried again. `writes` puts its output into the state: whole at
    one place, or each part of a mapping at the place that ends in its name. A place that the step has
    changed itself is left as it is, and so are all places if a step with `state` or `ctx` returns nothing.
    `reads` are the places that it looks at. With a schema as its annotation, `state` is typed.
    """
    if fn is None:
        return functools.partial(step, name=name, retries=retries, reads=reads, writes=writes)
    called = name or function_name(fn).strip("<>")
    wants = hearing_names(fn, "step")
    return Step(checked_name(called, "a step"), fn, retries, writes, wants, reads)


class Parts(Flow, Struct, frozen=True, eq=False):
    """Several parts, counted from 0."""

    parts: tuple[Flow, ...]

    def children(self) -> dict[str, Flow]:
        """The parts by their numbers."""
        return {str(number): part for number, part in enumerate(self.parts)}

    def with_children(self, children: Mapping[str, Flow]) -> "Parts":
        """A copy with other parts."""
        return type(self)(tuple(children.values()))


class OnePart(Flow, Struct, frozen=True, eq=False):
    """One part, which is run in some way."""

    body: Flow

    def children(self) -> dict[str, Flow]:
        """The part."""
        return {"body": self.body}

    def with_children(self, children: Mapping[str, Flow]) -> "OnePart":
        """The same with another part."""
        return structs.replace(self, body=children["body"])

    def joint(self, key: str) -> str:  # noqa: ARG002 - it has one part
        """Empty: there is one part, run once."""
        return ""


class Sequence(Parts, frozen=True, eq=False):
    """One after another; each part's output is the next one's input."""

    @property
    def segment(self) -> str:
        """`seq.0`, `seq.1` and so on."""
        return "seq"

    def children(self) -> dict[str, Flow]:
        """The parts by their numbers; marks between them do not count."""
        self.cuts()
        nodes = (part for part in self.parts if part.is_part)
        return {str(number): part for number, part in enumerate(nodes)}

    def with_children(self, children: Mapping[str, Flow]) -> "Sequence":
        """A copy with other parts, and the same marks between them."""
        others = iter(children.values())
        return Sequence(tuple(next(others) if part.is_part else part for part in self.parts))

    def cuts(self) -> dict[str, Any]:
        """The marks that say how the stream is split, by the part that takes the pieces."""
        found: dict[str, Any] = {}
        number = 0
        for part, after in zip(self.parts, (*self.parts[1:], None), strict=True):
            if part.is_part:
                number += 1
                continue
            if after is None or not after.is_part:
                raise BadAgent(f"{part!r} must be followed by the part that takes the pieces.")
            found[str(number)] = part
        return found

    def facts(self) -> dict[str, Any]:
        """How streams are split between its parts."""
        cuts = {key: mark.facts() for key, mark in self.cuts().items()}
        return {"cuts": cuts} if cuts else {}

    def __repr__(self) -> str:
        return " >> ".join(_inside(part, (Parallel,)) for part in self.parts)


class Parallel(Parts, frozen=True, eq=False):
    """Side by side on the same input; the state merges in this order when all are done."""

    @property
    def segment(self) -> str:
        """Every fork is `par` in a path: each part below it has its own state."""
        return "par"

    def __repr__(self) -> str:
        return " | ".join(_inside(part, (Sequence,)) for part in self.parts)


class Fallback(Parts, frozen=True, eq=False):
    """The first that does not fail; each gets the same input. An error that is not their failure ends the case."""

    @property
    def segment(self) -> str:
        """`try.0`, then `try.1`."""
        return "try"

    def __repr__(self) -> str:
        return " // ".join(_inside(part, (Sequence, Parallel)) for part in self.parts)


def _inside(part: Flow, kinds: tuple[type[Flow], ...]) -> str:
    return f"({part!r})" if isinstance(part, kinds) else repr(part)
