"""Whether what is written has the type that its place is declared to have."""

import types
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin, get_type_hints

from greenroom.agents.agent import Agent
from greenroom.agents.contracts.issues import Issue
from greenroom.agents.contracts.nearest import nearest_place
from greenroom.agents.contracts.schemas import fields_in, misfits
from greenroom.agents.contracts.walk import Given, data_flow
from greenroom.agents.flow import Flow, Step
from greenroom.agents.graph import Graph, Node
from greenroom.agents.routes import Route
from greenroom.agents.schema import Field
from greenroom.agents.signature import return_annotation
from greenroom.agents.transforms import Transform
from greenroom.errors import BadAgent
from greenroom.ledger.changes import append, replace
from greenroom.ledger.query import MISSING, split_place

Fields = Mapping[str, Field]
_UNKNOWN = Any


def check_types(graph: Graph, schema: object, given: Given) -> Iterator[Issue]:
    """Outputs, starting values and routes that do not fit the schemas; places that are in none."""
    fields: dict[str, Field] = {}
    for field in fields_in(graph, schema):
        yield from _collision(fields.setdefault(field.place, field), field)
    for place, wrong in misfits(fields.values(), given):
        says = f"the run begins with a wrong value at {place}: {wrong}."
        yield Issue("TypeMismatch", "error", "", place, says, "Correct the starting state.")
    for node in graph.nodes():
        yield from _written(node, fields)
        yield from _set(node, fields)
        yield from _routed(node, fields)
    if schema is not None:
        yield from _undeclared(graph, fields, given)


def _collision(known: Field, field: Field) -> Iterator[Issue]:
    if fits(field.type.annotation, known.type.annotation) is False:
        place = field.place
        says = f"{known} says that {place} is {known.type}, but {field} says {field.type}."
        yield Issue("TypeMismatch", "error", "", place, says, "Give both the same type.")


def _written(node: Node, fields: Fields) -> Iterator[Issue]:
    output, writes = _output(node.flow), tuple(getattr(node.flow, "writes", ()))
    parts = parts_of(output) if len(writes) > 1 else None
    for place in writes:
        name = place.rpartition(".")[2]
        if parts is not None and name not in parts and isinstance(node.flow, Agent):
            says = f"writes {place}, but its output type has no part {name!r}: {', '.join(parts)}."
            yield Issue("TypeMismatch", "error", node.id, place, says, f"Add {name} to that type.")
            continue
        kind = output if len(writes) == 1 else (parts or {}).get(name, _UNKNOWN)
        field = fields.get(place)
        if field is not None and fits(kind, field.type.annotation) is False:
            yield Issue(
                "TypeMismatch",
                "error",
                node.id,
                place,
                f"writes {_shown(kind)} to {place}, but {field} is {field.type}.",
                "Change the output type of the node, or the field.",
            )


def _set(node: Node, fields: Fields) -> Iterator[Issue]:
    """Constants that a transform puts into the state."""
    details = cast("Mapping[str, Any]", getattr(node.flow, "details", {}))
    values: Mapping[str, Any] = (
        details.get("values", {}) if isinstance(node.flow, Transform) else {}
    )
    for place in fields.keys() & values.keys():
        value = values[place]
        marks = cast("dict[str, Any]", value if isinstance(value, dict) else {})
        if "$live" in marks:
            continue
        added = marks.get("$append", MISSING)
        try:
            fields[place].check_change(
                replace(marks.get("$replace", value)) if added is MISSING else append(added)
            )
        except TypeError as error:
            says = f"sets {place} to a wrong value: {error}."
            yield Issue("TypeMismatch", "error", node.id, place, says, "Correct the value.")


def _output(flow: Flow) -> object:
    """The output type of a node, if it declares one."""
    if isinstance(flow, Agent):
        return str if flow.output is None else flow.output
    if not isinstance(flow, Step):
        return _UNKNOWN
    try:
        found = return_annotation(flow.fn)
    except (BadAgent, AttributeError):
        return _UNKNOWN
    # A step that returns nothing changes the state itself.
    return _UNKNOWN if found in (None, type(None)) else found


def _routed(node: Node, fields: Fields) -> Iterator[Issue]:
    route = node.flow
    if not isinstance(route, Route) or not isinstance(route.on, str):
        return
    field = fields.get(".".join([split_place(route.on)[0], *split_place(route.on)[1]]))
    words = _words(field.type.annotation) if field is not None else None
    if field is None or words is None:
        return
    ways = set(node.children) - {route.otherwise}
    for way in sorted(ways - words):
        says = f"never goes to {way!r}: {field} is {' or '.join(sorted(words))}."
        yield Issue("TypeMismatch", "warning", node.id, field.place, says, "Rename the branch.")
    missing = sorted(words - ways)
    if missing and not route.otherwise:
        says = f"has no branch for {', '.join(missing)}, which {field} may be."
        yield Issue("TypeMismatch", "error", node.id, field.place, says, "Add it, or otherwise=.")


def _words(annotation: object) -> set[str] | None:
    """All values that a place can have, as a route sees them, if they are few."""
    if annotation is bool:
        return {"True", "False"}
    return {str(one) for one in get_args(annotation)} if get_origin(annotation) is Literal else None


def _undeclared(graph: Graph, fields: Fields, given: Given) -> Iterator[Issue]:
    """Places that nodes mention and the schema does not have."""
    reads = [(visit.node.id, visit.read.place) for visit in data_flow(graph, given).visits]
    writes = [(n.id, place) for n in graph.nodes() for place in getattr(n.flow, "writes", ())]
    keys = {place.partition(".")[2] for place in fields}
    for node, place in dict.fromkeys([*reads, *writes]):
        top = ".".join(place.split(".")[:2])
        if top in fields or place.partition(".")[2] in keys:  # another scope is said elsewhere
            continue
        near = nearest_place(top, frozenset(fields))
        fix = f"Did you mean {near}?" if near else "Add it to the schema."
        says = f"uses {place}, which is not in the schema."
        yield Issue("SchemaViolation", "warning", node, place, says, fix)


def _shown(kind: object) -> str:
    return kind.__name__ if isinstance(kind, type) else str(kind).replace("typing.", "")


_JSON = (str, int, float, bool, list, dict, type(None))


def fits(given: Any, wanted: Any) -> bool | None:
    """True or False; None if it is not known."""
    given, wanted = _bare(given), _bare(wanted)
    if wanted in (Any, object) or given == wanted:
        return True
    if given is Any:
        return None
    if _is_union(given):
        return _all(fits(part, wanted) for part in get_args(given))
    if _is_union(wanted):
        return _any(fits(given, part) for part in get_args(wanted))
    if get_origin(given) is Literal:
        if get_origin(wanted) is Literal:
            return set(get_args(given)) <= set(get_args(wanted))
        return _all(fits(type(value), wanted) for value in get_args(given))
    if get_origin(wanted) is Literal:
        # A string may be one of the words, or may not.
        return None if fits(given, type(get_args(wanted)[0])) is not False else False
    return _classes(given, wanted)


def _classes(given: object, wanted: object) -> bool | None:
    one, other = _kind(given), _kind(wanted)
    if one is None or other is None:
        return None
    if (one, other) == (int, float):
        return True
    if one is not other:
        return False
    inner = list(zip(get_args(given), get_args(wanted), strict=False))
    return _all(fits(a, b) for a, b in inner) if inner else (given is wanted or None)


def _kind(annotation: object) -> type | None:
    """The JSON type of a Python type's values, if that is known."""
    origin = get_origin(annotation) or annotation
    if origin in _JSON:
        return origin
    if origin in (tuple, set, frozenset):
        return list
    if isinstance(origin, type) and (parts_of(origin) is not None or issubclass(origin, Mapping)):
        return dict
    return None


def parts_of(annotation: object) -> dict[str, object] | None:
    """The parts of a structured type by name, or None if its kind is not known here."""
    cls = get_origin(annotation) or annotation
    if not isinstance(cls, type) or cls in _JSON:
        return None
    names = getattr(cls, "model_fields", None) or getattr(cls, "__dataclass_fields__", None)
    names = names or getattr(cls, "__struct_fields__", None)
    if names is None and not hasattr(cls, "__total__"):
        return None
    with suppress(NameError, TypeError):
        hints = get_type_hints(cls, include_extras=True)
        return {name: hints.get(name, Any) for name in (hints if names is None else names)}
    return None


def _bare(annotation: object) -> object:
    if get_origin(annotation) is Annotated:
        return _bare(get_args(annotation)[0])
    return type(None) if annotation is None else annotation


def _is_union(annotation: object) -> bool:
    return get_origin(annotation) in (Union, types.UnionType)


def _all(found: Any) -> bool | None:
    known = list(found)
    return False if False in known else None if None in known else True


def _any(found: Any) -> bool | None:
    known = list(found)
    return True if True in known else None if None in known else False
