"""The signatures of tools and steps: names, schemas and checked arguments."""

import inspect
from collections.abc import Callable, Mapping
from copy import deepcopy
from functools import lru_cache, partial
from typing import Any, cast, get_type_hints

from greenroom.agents.schema import StateSchema, is_schema
from greenroom.errors import BadAgent
from greenroom.ledger.plain import Json

CONTEXT_NAMES = ("ctx", "context")


def wanted_names(fn: Callable[..., object], known: tuple[str, ...], what: str) -> tuple[str, ...]:
    """The parameters of `fn`, all of which must be among `known`."""
    names = tuple(parameters_of(fn, what))
    for name in names:
        if name not in known:
            raise BadAgent(
                f"{what} {function_name(fn)!r} asks for {name!r}, but can only be given "
                f"{', '.join(known)}. Rename the parameter."
            )
    return names


def parameters_of(fn: Callable[..., object], what: str) -> Mapping[str, inspect.Parameter]:
    """The parameters of `fn` that have no default."""
    try:
        found = inspect.signature(fn).parameters
    except (TypeError, ValueError) as error:
        raise BadAgent(f"{what} {fn!r} has no readable signature: {error}.") from error
    return {n: p for n, p in found.items() if p.default is inspect.Parameter.empty}


def without_partials(fn: Any) -> Callable[..., object]:
    """The function itself, of which some arguments may be bound already."""
    while isinstance(fn, partial):
        fn = cast("partial[Any]", fn).func
    return fn


def called_of(fn: Any) -> Callable[..., object]:
    """The function that a call of `fn` runs: for a callable object its method, whose parameters are annotated."""
    is_called = inspect.isroutine(fn) or isinstance(fn, type | partial)
    return cast("Callable[..., Any]", fn if is_called else fn.__call__)


def function_name(fn: Callable[..., object]) -> str:
    """The name of a function, or of the class of a callable object."""
    fn = without_partials(fn)
    return str(getattr(fn, "__name__", type(fn).__name__))


def context_parameter(fn: Callable[..., object]) -> str | None:
    """The parameter that takes the context, if there is one."""
    for name in inspect.signature(fn).parameters:
        if name in CONTEXT_NAMES:
            return name
    return None


class _Resource:
    """Marks a parameter that the run provides, not the model."""

    def __repr__(self) -> str:
        return "resource"


resource = _Resource()
"""`db: Annotated[Db, resource]` of a tool is provided by the run that calls it for real; no model sees it."""


@lru_cache(maxsize=512)
def resource_parameters(fn: Callable[..., object]) -> Mapping[str, bool]:
    """The parameters that the run provides, and whether the function requires them."""
    hints = _readable_hints(fn)
    return {
        name: parameter.default is parameter.empty
        for name, parameter in inspect.signature(fn).parameters.items()
        if any(mark is resource for mark in getattr(hints.get(name), "__metadata__", ()))
    }


@lru_cache(maxsize=512)
def view_parameters(fn: Callable[..., object]) -> Mapping[str, type[StateSchema]]:
    """The parameters that take the state by a schema: `state: Billing`; no model sees them."""
    return {
        name: hint
        for name, hint in _readable_hints(fn).items()
        if is_schema(hint) and name != "return"
    }


def _readable_hints(fn: Callable[..., object]) -> dict[str, Any]:
    """The annotations of the parameters, as far as they can be read now."""
    found = inspect.signature(fn).parameters
    hints: dict[str, Any] = {name: parameter.annotation for name, parameter in found.items()}
    # Annotations that are strings must be evaluated first.
    if not any(isinstance(annotation, str) for annotation in hints.values()):
        return hints
    try:
        return _hints(fn)
    except BadAgent:  # raised when the tool is shown to a model, or called
        return {}


def given_by_model(fn: Callable[..., object]) -> dict[str, inspect.Parameter]:
    """The parameters a model may give, in order, without those that a partial has bound."""
    fixed: Mapping[str, object] = getattr(fn, "keywords", {}) if type(fn) is partial else {}
    hidden = (*CONTEXT_NAMES, *resource_parameters(fn), *view_parameters(fn), *fixed)
    return {n: p for n, p in inspect.signature(fn).parameters.items() if n not in hidden}


@lru_cache(maxsize=512)
def signature_text(fn: Callable[..., object]) -> str:
    """The signature of a function as text: "(order: int) -> str"."""
    return str(inspect.signature(fn))


def input_schema(fn: Callable[..., object]) -> Mapping[str, Json]:
    """JSON schema of the arguments a model may give: a copy, because what it is given to may change it."""
    return deepcopy(_input_schema(fn))


@lru_cache(maxsize=512)
def _input_schema(fn: Callable[..., object]) -> Mapping[str, Json]:
    return cast("Mapping[str, Json]", _arguments(fn).model_json_schema())


def checked_arguments(fn: Callable[..., object], args: Mapping[str, Json]) -> dict[str, Any]:
    """The arguments converted to the function's annotations; ValueError says what is wrong."""
    plain = _plain_parameters(fn)
    if plain is not None and _are_as_wanted(args, plain):
        return dict(args)
    model = _arguments(fn)
    given = model.model_validate(dict(args))
    return {model.model_fields[name].alias: getattr(given, name) for name in given.model_fields_set}


Plain = tuple[Mapping[str, type], frozenset[str]]
"""Names and types of parameters, and which of them must be given."""


def _are_as_wanted(args: Mapping[str, Any], plain: Plain) -> bool:
    """Whether these are the right arguments with exactly the right types, so that nothing must be converted."""
    wanted, required = plain
    for name, value in args.items():
        kind = type(value)  # pyright: ignore[reportUnknownVariableType] - a cast is a call
        # A lone surrogate is not valid text, and only a non-ASCII string can hold one.
        if wanted.get(name) is not kind or (kind is str and not value.isascii()):
            return False
    # The same number, and none that is unknown: then none is missing.
    return len(args) == len(wanted) or required <= args.keys()


@lru_cache(maxsize=512)
def _plain_parameters(fn: Callable[..., object]) -> Plain | None:
    """Names and types of the parameters and which of them must be given, if JSON has all the types.

    Most tools take only strings and numbers. These do not need pydantic, which takes longer to load than
    all of Greenroom.
    """
    hints = _hints(fn)
    found = given_by_model(fn)
    for name, parameter in found.items():
        is_named = parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
        if not is_named or hints.get(name) not in _PLAIN:
            return None
    required = frozenset(n for n, p in found.items() if p.default is p.empty)
    return {name: hints[name] for name in found}, required


_PLAIN = (str, int, float, bool)


@lru_cache(maxsize=512)
def _arguments(fn: Callable[..., object]) -> Any:
    """A pydantic model of the parameters; built on first use, since most rehearsals need none."""
    from pydantic import Field, create_model

    hints = _hints(fn)
    fields: dict[str, Any] = {}
    for name, parameter in given_by_model(fn).items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise BadAgent(
                f"tool {function_name(fn)!r} takes {parameter}; name every argument, so that the "
                f"model knows them."
            )
        default = ... if parameter.default is parameter.empty else parameter.default
        # By alias: a parameter may be called `json` or `_id`, which a field of a model may not.
        fields[f"a{len(fields)}"] = (hints.get(name, Any), Field(default, alias=name))
    return create_model(function_name(fn), __config__={"extra": "forbid"}, **fields)


@lru_cache(maxsize=512)
def output_adapter(annotation: Any) -> Any:
    """A validator for a declared output type, or None when nothing was declared."""
    if annotation in (None, inspect.Signature.empty, Any):
        return None
    from pydantic import TypeAdapter

    return TypeAdapter(annotation)


def output_schema(annotation: Any) -> dict[str, Json] | None:
    """JSON schema of a declared output type, or None when nothing was declared: a copy, as of an input."""
    return deepcopy(_output_schema(annotation))


@lru_cache(maxsize=512)
def _output_schema(annotation: Any) -> dict[str, Json] | None:
    # Kept, because every request to a model carries it, and computing it takes longer than the rest of a case.
    adapter = output_adapter(annotation)
    return None if adapter is None else adapter.json_schema()


def return_annotation(fn: Callable[..., object]) -> object:
    """The declared return type of the function, or None."""
    return _hints(fn).get("return")


def _hints(fn: Callable[..., object]) -> dict[str, Any]:
    try:
        return get_type_hints(without_partials(fn), include_extras=True)
    except (NameError, TypeError) as error:
        raise BadAgent(
            f"the annotations of {function_name(fn)!r} cannot be read: {error}. "
            f"Define the types at module level."
        ) from error
