"""The fields of schemas that a graph's nodes mention, by their places."""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

from greenroom.agents.contracts.access import decider_places
from greenroom.agents.contracts.walk import Given
from greenroom.agents.flow import Flow, Step
from greenroom.agents.graph import Graph
from greenroom.agents.places import typed_fields
from greenroom.agents.schema import Field, StateSchema, fields_of, state_schema
from greenroom.errors import BadInput
from greenroom.ledger.changes import value_in
from greenroom.ledger.query import split_place

Schema = type[StateSchema]


def checked_schema(given: object) -> Schema | None:
    """The schema that was given; BadInput if it is not one."""
    if given is None or (isinstance(given, type) and issubclass(given, StateSchema)):
        return given
    raise BadInput(
        f"schema={given!r} is not a schema; give a class that inherits from StateSchema."
    )


@lru_cache(maxsize=64)
def fields_in(graph: Graph, schema: Schema | None = None) -> tuple[Field, ...]:
    """The fields of the whole state's schema, and those by which nodes and tools see the state."""
    found: dict[Field, None] = {}
    if schema is not None:
        found |= dict.fromkeys(fields_of(schema).values())
    for node in graph.nodes():
        found |= dict.fromkeys(_fields_of(node.flow))
    return tuple(found)


def _fields_of(flow: Flow) -> Iterator[Field]:
    functions: list[Any] = [flow.fn] if isinstance(flow, Step) else []
    functions += [tool.fn for tool in getattr(flow, "tools", ())]
    for schema in (getattr(flow, "schema", None), *map(state_schema, functions)):
        if schema is not None:
            yield from fields_of(schema).values()
    for decider in (getattr(flow, "on", None), getattr(flow, "until", None)):
        yield from typed_fields(*decider_places(decider))
    for holder in (flow, *getattr(flow, "tools", ())):
        yield from typed_fields(*getattr(holder, "reads", ()), *getattr(holder, "writes", ()))


def misfits(fields: Iterable[Field], given: Given) -> Iterator[tuple[str, str]]:
    """The places where a run begins with a value of the wrong type, and what is wrong with it."""
    state: Any = given.state
    for field in fields:
        if field.place in given.places:
            try:
                field.check(value_in(state, *split_place(field.place)))
            except TypeError as error:
                yield field.place, str(error)
