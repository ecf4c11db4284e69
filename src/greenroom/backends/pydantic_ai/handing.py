"""Wrappers that hand on what they do not change, without a call of their own in between."""

from collections.abc import Callable
from operator import attrgetter
from typing import Any, TypeVar

T = TypeVar("T", bound=type[Any])


def hands_on(*names: str) -> Callable[[T], T]:
    """Let these attributes of a wrapper be those of what it wraps at the moment.

    The framework asks for some dozens in every run, most of them coroutines that await another. What
    a version of it does not have is left out.
    """

    def decorated(wrapper: T) -> T:
        for name in names:
            if hasattr(wrapper, name):
                setattr(wrapper, name, property(attrgetter(f"wrapped.{name}")))
        return wrapper

    return decorated
