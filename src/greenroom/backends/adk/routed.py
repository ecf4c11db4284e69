"""Which calls of the framework were asked about, so that each is asked about once."""

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from types import FunctionType
from typing import Any

from greenroom.backends.foreign import held

_NOTHING: tuple[object, object] = (None, None)

PASSED: ContextVar[tuple[object, object]] = ContextVar("greenroom_adk_passed", default=_NOTHING)
"""The tool or toolset that may run here, and the context of that very call.

What a class hands on to its base, and what checks its arguments first, is asked about once. Another
tool called from inside has another object, and an agent started inside other contexts.
"""


_REAL: dict[Callable[..., Any], Callable[..., Any]] = {}


def stands_for(seam: Callable[..., Any], real: Callable[..., Any]) -> None:
    """Remember what a seam was put in front of."""
    _REAL[seam] = real


def is_seam(function: Any) -> bool:
    """Whether this very function is one of ours; attributes would say so of a wrapper too."""
    return isinstance(function, FunctionType) and function in _REAL


def real_of(function: Any) -> Any:
    """What a seam was put in front of, or the function itself if it is none."""
    return _REAL[function] if is_seam(function) else function


def has_passed(what: object, context: object) -> bool:
    """Whether this very call was asked about."""
    passed, its_context = PASSED.get()
    return passed is what and its_context is context


async def run_passed(what: object, context: object, run: Callable[[], Awaitable[Any]]) -> Any:
    """Run what was asked about; whatever it starts is asked about by itself."""
    with held(PASSED, (what, context)):
        return await run()


def asking() -> held[tuple[object, object]]:
    """What answers in here is no part of the call: an agent in a mock is asked about too."""
    return held(PASSED, _NOTHING)
