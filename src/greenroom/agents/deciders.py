"""Deciders: a place in the state, a query, or a function by which loops and routes decide."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any, cast

from greenroom.agents.places import as_place
from greenroom.agents.schema import state_schema
from greenroom.agents.signature import function_name, wanted_names
from greenroom.errors import BadAgent
from greenroom.ledger.identity import code_identity
from greenroom.ledger.places import by_scope, is_field
from greenroom.ledger.query import check_query, place_text

Decider = str | Mapping[str, Any] | Callable[..., object]

STEP_NAMES = ("ctx", "context", "input", "state")
DECIDER_NAMES = ("ctx", "context", "input", "output", "state")


def hearing_names(fn: Callable[..., object], what: str) -> tuple[str, ...]:
    """The parameters that a step or a tap asks for; BadAgent if it asks for its input both whole and in pieces."""
    wants = wanted_names(fn, (*STEP_NAMES, "chunks"), what)
    if "chunks" in wants and "input" in wants:
        raise BadAgent(
            f"{what} {function_name(fn)!r} asks for `chunks` and for `input`, but `input` is the whole of these "
            f"chunks and not complete when it begins; ask for one of them."
        )
    return wants


def named_arguments(names: tuple[str, ...], context: object, fn: object) -> dict[str, Any]:
    """Values for the parameters that `fn` asks for; the state as the schema it is annotated with."""
    found = {n: context if n in ("ctx", "context") else getattr(context, n) for n in names}
    schema = state_schema(fn) if "state" in found else None
    return {**found, "state": schema.bind(context)} if schema else found


def checked_decider(given: object, what: str) -> tuple[Decider | None, tuple[str, ...]]:
    """A decision, with fields of schemas replaced by their places, and the parameters it asks for."""
    if isinstance(given, Mapping):
        query = by_scope(cast("Mapping[Any, Any]", given))
        check_query(query, what)
        return query, ()
    if given is None:
        return None, ()
    if isinstance(given, str):
        place_text(given)
        return given, ()
    if is_field(given):
        return as_place(given), ()
    if not callable(given):
        raise BadAgent(f"{what} is {given!r}; give a place in the state, a query or a function.")
    if inspect.iscoroutinefunction(given):
        # Its coroutine would always count as true, as every object does.
        raise BadAgent(f"{what} {function_name(given)!r} is async; decide with a plain function.")
    state_schema(given)  # an annotation that cannot be read is refused here
    return given, wanted_names(given, DECIDER_NAMES, what)


def decider_facts(given: Decider | None) -> object:
    """A decision as a snapshot shows it: data as it is, a function by its code."""
    return code_identity(given) if callable(given) else given


def describe_decider(given: Decider | None) -> str:
    """A decision as an expression shows it."""
    if callable(given):
        return function_name(given)
    return repr(dict(given) if isinstance(given, Mapping) else given)
