"""Types for the functions that authors write."""

from collections.abc import Callable
from typing import Any

ByName = (
    Callable[[], object]
    | Callable[[Any], object]
    | Callable[[Any, Any], object]
    | Callable[[Any, Any, Any], object]
    | Callable[[Any, Any, Any, Any], object]
)
"""A function whose parameters are filled by their names.

Not `Callable[..., Any]`: with that a type checker knows nothing of the parameters of a lambda, and
complains in strict mode.
"""

Anything = ByName | object
"""Any value; if it is a lambda, it may have any parameters."""
