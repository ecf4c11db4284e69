"""What a function asks for by the names of its parameters, and how it is told apart."""

import inspect
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from msgspec import Struct

from greenroom.agents.signature import function_name, parameters_of
from greenroom.errors import BadAgent
from greenroom.ledger.identity import code_identity
from greenroom.ledger.plain import JSON_TYPES, Json

_NAMES: Mapping[str, str] = {
    "messages": "messages",
    "history": "messages",
    "message": "message",
    "input": "message",
    "text": "message",
    "prompt": "message",
    "question": "message",
    "state": "state",
    "ctx": "context",
    "context": "context",
}
_UNFIT = re.compile(r"[^A-Za-z0-9_-]+")


class WantedParameters(Struct, frozen=True):
    """The parameters of a function, each with what it is given."""

    names: Mapping[str, str]

    def arguments(self, context: Any) -> dict[str, Any]:
        """The arguments for one turn."""
        return {name: _value(context, what) for name, what in self.names.items()}


def _value(context: Any, what: str) -> Any:
    return context if what == "context" else getattr(context, what)


def wants_of(fn: Callable[..., Any]) -> WantedParameters:
    """What the function asks for; BadAgent for a parameter that cannot be filled."""
    needed = parameters_of(fn, "agent")
    for parameter in needed.values():
        if parameter.kind is parameter.POSITIONAL_ONLY:
            raise BadAgent(
                f"function {function_name(fn)!r} takes {parameter.name!r} by position only; remove "
                f"the `/`."
            )
    names = [n for n, p in needed.items() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    unknown = [name for name in names if name not in _NAMES]
    if len(names) == 1 and unknown:
        return WantedParameters({names[0]: "message"})
    if unknown:
        raise BadAgent(
            f"function {function_name(fn)!r} asks for {', '.join(map(repr, unknown))}, but an agent "
            f"can only be given {', '.join(sorted(_NAMES))}. Rename the parameter, or give it a "
            f"default."
        )
    return WantedParameters({name: _NAMES[name] for name in names})


def agent_name(fn: Callable[..., Any]) -> str:
    """What to call the agent: the function's name, fit for a path."""
    inner = fn.func if isinstance(fn, partial) else fn
    return _UNFIT.sub("_", function_name(inner)).strip("_") or "agent"


def described_function(fn: Callable[..., Any]) -> dict[str, Json]:
    """A function by its code and by the plain values it carries along."""
    inner = inspect.unwrap(fn.func if isinstance(fn, partial) else fn)
    return {"code": code_identity(inner), "given": _carried(inner)}


def _carried(fn: Callable[..., Any]) -> dict[str, Json]:
    """Texts and numbers that a function made inside another keeps from there."""
    code, cells = getattr(fn, "__code__", None), getattr(fn, "__closure__", None)
    if code is None or cells is None:
        return {}
    kept: dict[str, Json] = {}
    for name, cell in zip(code.co_freevars, cells, strict=False):
        try:
            value = cell.cell_contents
        except ValueError:  # not filled yet
            continue
        if type(value) in JSON_TYPES and not isinstance(value, list | dict):
            kept[name] = value
    return kept
