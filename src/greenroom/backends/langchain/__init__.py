"""The seams of LangChain's own classes, which work without LangGraph too.

Each seam is its own module and imports only the class it wraps, because it is installed while the framework
may be half loaded. The gates belong to LangGraph's backend and import it, so they are loaded when the first
call needs one: by then the framework is fully loaded.
"""

import functools
import inspect
import os
import sys
from contextvars import ContextVar
from importlib import import_module
from typing import Any
from weakref import WeakSet

from greenroom.backends.foreign import Origin
from greenroom.backends.seams import Call, follow_classes, own_method, real_of
from greenroom.errors import MissingExtra, ToolRefused
from greenroom.installation import how_to_install
from greenroom.ledger.redaction import keep_keys
from greenroom.world.call_context import Host, LetThrough, model_host, tool_host

_BACKEND = "greenroom.backends.langgraph"
_FRAMEWORK = ("langchain_core", "langchain", "langgraph")
_guards: WeakSet[Call] = WeakSet()

MARK = "_greenroom_gated"
"""The attribute that marks gated copies."""
ACTING = LetThrough[Any]("greenroom_langgraph_acting")
"""The tool whose real body is running here, because the World allowed it."""
IN_MODEL: ContextVar[bool] = ContextVar("greenroom_langgraph_in_model", default=False)
"""Whether a model is being asked, which may then work in its own way."""


def gate_tool(tool: Any, given: Any, call_id: str | None) -> Any:
    """The tool as it may be called here: itself outside of rehearsals, else a gated copy."""
    caller = _run_here()
    if caller is None:
        host = tool_host(origin_of(tool), tool.name)
        if host is None:
            return tool
        caller = _inner_caller(host)
    return _part("gates").gated_tool(caller, tool, given, call_id)


def gate_model(model: Any) -> Any:
    """The model as it may be asked here: itself outside of rehearsals, else a gated copy."""
    caller = _run_here()
    if caller is None:
        host = model_host()
        if host is None:
            return model
        caller = _inner_caller(host)
    keep_keys(model)
    return _part("gates").gated_model(caller, model)


def guard(real: Call, what: str, is_model: bool) -> Call:
    """Refuse a call that would bypass the seams during a rehearsal."""

    @functools.wraps(real)
    def guarded(self: Any, *args: Any, **given: Any) -> Any:
        # A model may do its own work in its own way once it is asked; a tool never may.
        if MARK not in self.__dict__ and not (is_model and IN_MODEL.get()):
            caller = _run_here()
            if caller is None:
                name = getattr(self, "name", "") or type(self).__name__
                caller = model_host() if is_model else tool_host(self, name)
            if caller is not None:
                raise caller.refuse(
                    ToolRefused(
                        f"the agent uses {what}, whose work the tool gate cannot see; it was not called. "
                        f"Rehearse with a chat model or tool that leaves these methods to LangChain."
                    )
                )
        return real(self, *args, **given)

    return guarded


def watch_classes(base: type, names: tuple[str, ...]) -> None:
    """Guard every class below `base` that replaces one of the names, including later ones."""
    is_model = "_generate_with_cache" in names

    def visit(cls: type) -> None:
        if cls is base:
            return
        for name in names:
            own, seam = own_method(cls, base, name), vars(base).get(name)
            if own is not None and own is real_of(seam):
                setattr(cls, name, seam)  # copied from the base before the seam was installed
            elif own is not None and own not in _guards and not is_own(own):
                what = f"{cls.__name__}, with its own {name}()"
                guarded = guard(own, what, is_model)
                _guards.add(guarded)
                setattr(cls, name, guarded)

    follow_classes(base, visit)


def is_own(method: Any) -> bool:
    """Whether a method is the framework's: known by its code, which wrappers do not copy."""
    real = real_of(method)
    code = getattr(inspect.unwrap(real), "__code__", None) or getattr(real, "__code__", None)
    loaded = (sys.modules.get(name) for name in _FRAMEWORK)
    folders = tuple(f"{path}{os.sep}" for module in loaded if module for path in module.__path__)
    return code is not None and code.co_filename.startswith(folders)


def origin_of(tool: Any) -> Origin:
    """The author's function behind a tool, or the tool itself."""
    behind = getattr(tool, "func", None) or getattr(tool, "coroutine", None)
    return Origin(behind or tool, tool)


def _run_here() -> Any:
    """The backend's run that the running graph belongs to."""
    run = sys.modules.get(f"{_BACKEND}.run")
    return None if run is None else run.RUN.get()


def _inner_caller(host: Host) -> Any:
    try:
        return _part("run").InnerCaller(host)
    except ImportError as error:
        raise host.refuse(
            MissingExtra(
                f"a tool or model of LangChain was called, which needs LangGraph to be rehearsed: "
                f"{error}. Install it with {how_to_install('langgraph')}."
            )
        ) from error


def _part(name: str) -> Any:
    return import_module(f"{_BACKEND}.{name}")
