"""What single nodes read and write: as declared, else as far as their signatures show."""

import functools
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from string import Formatter
from types import CodeType
from typing import Any, cast

from msgspec import Struct

from greenroom.agents.agent import Agent
from greenroom.agents.approvals import Approved
from greenroom.agents.deciders import Decider
from greenroom.agents.flow import Step
from greenroom.agents.places import typed_fields
from greenroom.agents.remote import Remote
from greenroom.agents.schema import Field, fields_of, state_schema
from greenroom.agents.tools import Tool
from greenroom.agents.transforms import Transform
from greenroom.ledger.changes import BUILT_IN_SCOPES
from greenroom.ledger.query import has_operators, place_text

_STATEFUL = {"state", "ctx", "context"}
_CHANGING = {"with_state_change", "WithStateChange"}


class Read(Struct, frozen=True):
    """A place that a node looks at."""

    place: str
    by: str = ""
    """The part of the node that reads, if it is not the node itself: "tool 'refund'"."""
    may_miss: bool = False
    """Whether the node can handle an empty place, as by a route's `otherwise`."""
    has_default: bool = False
    """Whether the field by which it is read has a default."""


class Access(Struct, frozen=True):
    """What a step, a tool or an agent itself does with the state."""

    reads: tuple[Read, ...] = ()
    writes: tuple[str, ...] = ()
    ensures: tuple[str, ...] = ()
    """Places that it fills if they are empty."""
    may_write: tuple[str, ...] = ()
    """Places where it may write, or may not."""
    drops: tuple[str, ...] = ()
    clears: tuple[str, ...] = ()
    """Scopes that it empties, except for what it reads."""
    writes_anything: bool = False
    """Whether it may change the state and does not declare where."""
    reads_anything: bool = False
    """Whether it may look at the state and does not declare where."""


def read_of(place: str, by: str = "", *, may_miss: bool = False, fn: object = None) -> Read:
    """A read of a place; `fn` is the function that reads, whose annotation may be a schema."""
    fields = [*typed_fields(place), *_seen_by(fn)]
    has_default = any(field.has_default for field in fields if field.place == place)
    return Read(place, by, may_miss, has_default)


def _seen_by(fn: object) -> Iterable[Field]:
    schema = None if fn is None else state_schema(fn)
    return fields_of(schema).values() if schema is not None else ()


def step_access(step: Step) -> Access:
    """What a step declares; one that takes the state and declares nothing may do anything.

    One that takes the state by a schema may write what is in the schema.
    """
    is_declared = bool(step.reads or step.writes or step.passes)
    asked = _STATEFUL.intersection(step.wants)
    may_write: tuple[str, ...] = ()
    if asked == {"state"} and not is_declared:
        may_write = tuple(field.place for field in _seen_by(step.fn))
    changes = changes_by_result(step.fn) or (bool(asked) and not may_write)
    return Access(
        tuple(read_of(place, fn=step.fn) for place in step.reads),
        step.writes,
        may_write=may_write,
        writes_anything=not is_declared and changes,
        reads_anything=not step.reads and bool(asked),
    )


def tool_access(tool: Tool) -> Access:
    """What a tool declares; one that takes the context and declares nothing may do anything."""
    if tool.yields:  # its body never runs
        return Access()
    is_declared = bool(tool.reads or tool.writes)
    takes_context = tool._context is not None  # pyright: ignore[reportPrivateUsage]
    seen = tuple(field.place for field in _seen_by(tool.fn))
    return Access(
        tuple(read_of(place, f"tool {tool.name!r}", fn=tool.fn) for place in tool.reads),
        tool.writes,
        may_write=() if is_declared else seen,
        writes_anything=not is_declared and (takes_context or changes_by_result(tool.fn)),
        reads_anything=not tool.reads and (takes_context or bool(seen)),
    )


def agent_access(agent: Agent) -> Access:
    """What an agent itself does with the state; its tools are looked at one by one."""
    foreign = [r for r in agent.context if not type(r).__module__.startswith("greenroom.")]
    reads = tuple(map(read_of, agent.reads))
    return Access(reads, agent.writes, reads_anything=bool(foreign))


def transform_access(transform: Transform) -> Access:
    """What a transform does, all of which it declares."""
    clears = tuple(place[:-2] for place in transform.removes if place.endswith(".*"))
    # `keep` accepts places that are empty.
    reads = tuple(read_of(place, may_miss=bool(clears)) for place in transform.reads)
    drops = tuple(place for place in transform.removes if not place.endswith(".*"))
    is_default = transform.name == "default"
    return Access(
        reads,
        () if is_default else transform.writes,
        transform.writes if is_default else (),
        drops=drops,
        clears=clears,
        reads_anything="$live" in str(transform.details),
    )


def remote_access(remote: Remote) -> Access:
    """What is sent to a remote agent, and where its answer goes."""
    return Access(tuple(map(read_of, remote.reads)), remote.writes)


def decider_places(given: Decider | None) -> tuple[str, ...]:
    """The places that a decision looks at, if it is data."""
    if isinstance(given, str):
        return (place_text(given),)
    if isinstance(given, Mapping):
        query = cast("Mapping[str, Any]", given)
        return tuple(dict.fromkeys(p for scope, part in query.items() for p in _asked(scope, part)))
    return ()


def decider_reads(given: Decider | None, by: str = "", *, may_miss: bool = True) -> Iterator[Read]:
    """The reads of a decision that is data."""
    for place in decider_places(given):
        # A query about an empty custom scope cannot be answered.
        is_known = isinstance(given, str) or place.partition(".")[0] in BUILT_IN_SCOPES
        yield read_of(place, by, may_miss=may_miss and is_known)


def question_places(approved: Approved) -> tuple[str, ...]:
    """The places that the question of an approval mentions: `{state[session][amount]}`."""
    if not isinstance(approved.question, str):
        return ()
    fields = [field for _, field, _, _ in Formatter().parse(approved.question) if field]
    words = [re.findall(r"[^\[\].]+", field) for field in fields]
    return tuple(".".join(word[1:3]) for word in words if word[0] == "state" and len(word) > 2)


def _asked(place: str, query: object) -> Iterator[str]:
    """The places below `place` that a query asks about."""
    if not isinstance(query, Mapping) or not query:
        yield place
        return
    asked = cast("Mapping[str, Any]", query)
    if not has_operators(asked):
        for key, part in asked.items():
            yield from _asked(f"{place}.{key}", part)
        return
    for operator, operand in asked.items():
        parts = operand if operator in ("$and", "$or") else [operand]
        for part in parts:
            yield from _asked(place, part if operator in ("$and", "$or", "$not") else None)


def changes_by_result(fn: Callable[..., object]) -> bool:
    """Whether the code names what makes a result change the state."""
    return not _CHANGING.isdisjoint(_names(_code(fn)))


def _code(fn: Any) -> CodeType | None:
    while isinstance(fn, functools.partial):
        fn = cast("functools.partial[Any]", fn).func
    fn = inspect.unwrap(fn)
    # For a callable object, the code is that of its class's `__call__`.
    found = getattr(fn, "__code__", None) or getattr(type(fn).__call__, "__code__", None)
    # Of this very type: an object that makes up its attributes may claim any.
    return found if type(found) is CodeType else None


def _names(code: CodeType | None) -> set[str]:
    if code is None:
        return set()
    inner = (const for const in code.co_consts if isinstance(const, CodeType))
    return {*code.co_names, *code.co_freevars}.union(*map(_names, inner))
