"""Parts that cannot run in a separate process: it would not find their code, or their values are not JSON."""

from collections.abc import AsyncIterable, Iterator, Mapping
from datetime import date, time
from enum import Enum
from pathlib import PurePath
from typing import Any, cast, get_args, get_origin, is_typeddict
from uuid import UUID

from greenroom.agents.boundaries import Apart, code_place
from greenroom.agents.contracts.issues import Issue
from greenroom.agents.contracts.walk import Given
from greenroom.agents.flow import Step
from greenroom.agents.graph import Graph, Node
from greenroom.agents.signature import function_name, return_annotation
from greenroom.errors import BadAgent, BadValue
from greenroom.ledger.changes import WithStateChange
from greenroom.ledger.plain import plain

_JSON = (str, int, float, type(None), list, tuple, Mapping, Enum, date, time, UUID, PurePath)
_STREAMS = (AsyncIterable, WithStateChange)


def check_boundaries(graph: Graph, schema: object, given: Given) -> Iterator[Issue]:  # noqa: ARG001
    """Parts that should run in a separate process and could not."""
    boundaries = [n for n in graph.nodes() if isinstance(n.flow, Apart) and n.flow.is_elsewhere]
    for boundary in boundaries:
        for node in Graph(boundary).nodes():
            yield from _lost_code(node)
            if isinstance(node.flow, Step) and not node.flow.passes:
                yield from _lost_output(node, node.flow)
    if boundaries:
        yield from _lost_state(boundaries[0], given)


def _lost_code(node: Node) -> Iterator[Issue]:
    for fn in node.flow.code().values():
        try:
            code_place(fn)
        except LookupError as error:
            yield Issue(
                "CodeNotFound",
                "error",
                node.id,
                "",
                f"runs apart, but {error}.",
                "Put the function, or the flow that it is part of, at the top of a module.",
            )


def _lost_output(node: Node, step: Step) -> Iterator[Issue]:
    try:
        found = _no_json(return_annotation(step.fn))
    except BadAgent:
        return
    if found:
        yield Issue(
            "CannotTravel",
            "error",
            node.id,
            "",
            f"runs apart, but {function_name(step.fn)!r} returns {found}, which is not JSON.",
            "Let it return a dict, list, string, number, bool or None.",
        )


def _lost_state(boundary: Node, given: Given) -> Iterator[Issue]:
    for scope, held in given.state.items():
        for key, value in held.items():
            try:
                plain(value, f"{scope}.{key}")
            except BadValue as error:
                place = f"{scope}.{key}"
                yield Issue(
                    "CannotTravel", "error", boundary.id, place, f"is given the state, but {error}"
                )


def _no_json(annotation: object) -> str:
    """The first type in an annotation whose values have no JSON form; "" if there is none."""
    kind: Any = get_origin(annotation) or annotation
    if isinstance(kind, type) and not _has_form(cast("type[Any]", kind)):
        return str(cast("type[Any]", kind).__name__)
    inner = (one for one in get_args(annotation) if isinstance(one, type) or get_origin(one))
    return next((found for one in inner if (found := _no_json(one))), "")


def _has_form(kind: "type[Any]") -> bool:
    """Whether values of a type can be recorded as JSON."""
    marks = ("model_dump", "__dataclass_fields__", "__struct_fields__")
    is_data = is_typeddict(kind) or any(hasattr(kind, mark) for mark in marks)
    return is_data or kind is object or issubclass(kind, (*_JSON, *_STREAMS))
