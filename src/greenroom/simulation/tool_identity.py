"""Whether what a case gives, as a mock or by name, is the very tool that is called."""

from collections.abc import Callable
from inspect import unwrap
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any, cast

from greenroom.agents.tools import Tool
from greenroom.cases.mocks import Live
from greenroom.errors import BadCase
from greenroom.world.world import ToolRequest

ABSENT: Any = object()
"""Means that there is no mock, since None can be a mock."""


def names_tool(given: object, name: str, origin: object) -> bool:
    """Whether `given` (a name, a tool, its function, or live(...)) names this tool."""
    if isinstance(given, Live):
        given = given.tool
    if isinstance(given, str):
        return given == name
    return is_the_tool(given, origin) or _is_around(given, origin)


def _is_around(given: object, origin: object) -> bool:
    """Whether `given` is a decorator's function around a tool, and goes by its name.

    It is asked only of what names a tool: a function given as a mock may be around the tool and answer for it.
    """
    if not isinstance(origin, Tool) or getattr(given, "__name__", "") != origin.name:
        return False
    return unwrap(cast("Callable[..., object]", given)) is origin


def is_the_tool(given: object, origin: object) -> bool:
    """Whether `given` is the very tool, or the function or object behind it."""
    if isinstance(given, Live):
        given = given.tool
    if given is ABSENT or origin is None:
        return False
    behind = (origin, getattr(origin, "fn", ABSENT), getattr(origin, "tool", ABSENT))
    if isinstance(given, MethodType):
        # It is another object each time it is looked up; as a tool it is the same.
        return given in behind
    # The function behind a callable object is its `__call__` method.
    function = behind[1]
    is_called = isinstance(function, MethodType) and function.__name__ == "__call__"
    if is_called and function.__self__ is given:
        return True
    return any(given is known for known in behind)


def is_origin(mock: object, request: ToolRequest) -> bool:
    """Whether a mock is the real tool itself; another tool is refused as a mistake."""
    if isinstance(mock, Live) or is_the_tool(mock, request.origin):
        if isinstance(mock, Live) and not names_tool(mock.tool, request.tool, request.origin):
            raise BadCase(
                f"mocks[{request.tool!r}] is live({mock.tool!r}), which is not that tool."
            )
        return True
    tool = getattr(request.origin, "tool", None) or request.origin
    is_function = isinstance(tool, FunctionType | MethodType | BuiltinFunctionType)
    if not is_function and type(mock) is type(tool):
        name = getattr(mock, "name", None)
        is_named = isinstance(name, str)
        if name == request.tool:
            raise BadCase(
                f"mocks[{name!r}] is one of several tools that are called {name!r}, and the agent called "
                f"another one. Rename one of them, or give a function that answers for both."
            )
        raise BadCase(
            f"mocks[{request.tool!r}] is the tool {name if is_named else mock!r}, not "
            f"{request.tool!r}. Pass the tool itself, or a function that answers for it."
        )
    return False
