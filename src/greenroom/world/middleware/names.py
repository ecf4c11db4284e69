"""The names of middleware in errors and notes, and the errors that its authors see."""

from greenroom.errors import MiddlewareFailed
from greenroom.ledger.origin import summarize_error


def name_of(middleware: object) -> str:
    """Its own name, else that of its class."""
    name = getattr(middleware, "name", "")
    return name if isinstance(name, str) and name else type(middleware).__name__


def failed(middleware: object, hook: str, error: Exception) -> MiddlewareFailed:
    """The error that ends a run in which a hook raised."""
    why = summarize_error(error)
    return MiddlewareFailed(f"middleware {name_of(middleware)!r} raised in {hook}: {why}")


def is_amount(value: object) -> bool:
    """Whether it is a number above 0."""
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0
