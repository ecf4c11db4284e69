"""Functions that stand where the framework's own stood, and look the same to it.

At every call the framework reads off a function which arguments it wants, and resolves its
annotations anew. A stand-in has both written down.
"""

import inspect
from collections.abc import Callable
from typing import Any, get_type_hints
from weakref import WeakKeyDictionary

Shape = tuple[inspect.Signature, dict[str, Any]]

_SHAPES: "WeakKeyDictionary[Any, Shape]" = WeakKeyDictionary()


def like(real: Callable[..., Any], gate: Callable[..., Any]) -> Callable[..., Any]:
    """A stand-in that is asked with the same arguments as the real one would be."""
    signature, hints = _shape_of(real)
    stand_in = signed(gate, signature)
    # All that the framework looks at, and made for every call: a whole `wraps` costs more.
    stand_in.__annotations__ = hints
    stand_in.__wrapped__ = real  # pyright: ignore[reportFunctionMemberAccess]
    return stand_in


def signed(gate: Callable[..., Any], signature: inspect.Signature) -> Any:
    """The gate with a signature written down, for which the framework asks at every call."""

    def stand_in(*args: Any, **given: Any) -> Any:
        return gate(*args, **given)

    stand_in.__signature__ = signature  # pyright: ignore[reportFunctionMemberAccess]
    return stand_in


def _shape_of(method: Callable[..., Any]) -> Shape:
    """A method's signature and annotations, resolved; worked out once, as that takes long."""
    function = getattr(method, "__func__", None)
    known = None if function is None else _SHAPES.get(function)
    if known is None:
        known = _resolved(method)
        if function is not None:
            _SHAPES[function] = known
    return known


def _resolved(method: Callable[..., Any]) -> Shape:
    signature = inspect.signature(method)
    try:
        hints = get_type_hints(method, include_extras=True)
    except Exception:  # noqa: BLE001 - an annotation may name anything, and fail in its own way
        return signature, getattr(method, "__annotations__", {})
    told = [
        one.replace(annotation=hints.get(name, one.annotation))
        for name, one in signature.parameters.items()
    ]
    return signature.replace(parameters=told), hints
