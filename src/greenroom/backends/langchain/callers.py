"""Who asks for a model or tool of LangChain that is at work here.

The gates live with LangGraph's backend and load it, so they are loaded when the first call needs one:
by then the framework is whole.
"""

import sys
from contextvars import ContextVar
from importlib import import_module
from typing import Any

from greenroom.backends.foreign import Origin
from greenroom.errors import GreenroomError, MissingExtra, ToolRefused
from greenroom.ledger.redaction import keep_keys
from greenroom.world.presence import Host, model_host, tool_host

_BACKEND = "greenroom.backends.langgraph"

MARK = "_greenroom_gated"
"""By which gated copies know themselves."""
IN_MODEL: ContextVar[bool] = ContextVar("greenroom_langgraph_in_model", default=False)
"""Whether a model is being asked, which may do its work in its own way."""


def gate_tool(tool: Any, given: Any, call_id: str | None) -> Any:
    """The tool as it may be called here: itself outside of rehearsals, else a gated copy."""
    caller = _stage()
    if caller is None:
        host = tool_host(origin_of(tool), tool.name)
        if host is None:
            return tool
        caller = _visitor(host)
    return _part("gates").gated_tool(caller, tool, given, call_id)


def gate_model(model: Any) -> Any:
    """The model as it may be asked here: itself outside of rehearsals, else a gated copy."""
    caller = _stage()
    if caller is None:
        host = model_host()
        if host is None:
            return model
        caller = _visitor(host)
    keep_keys(model)
    return _part("gates").gated_model(caller, model)


def refuse_around(thing: Any, what: str, is_model: bool) -> None:
    """Refuse a way around the seams, inside a rehearsal."""
    caller = _stage()
    if caller is None:
        name = getattr(thing, "name", "") or type(thing).__name__
        caller = model_host() if is_model else tool_host(thing, name)
    if caller is not None:
        raise caller.refuse(_around(what))


def origin_of(tool: Any) -> Origin:
    """The author's function behind a tool, or the tool itself."""
    behind = getattr(tool, "func", None) or getattr(tool, "coroutine", None)
    return Origin(behind or tool, tool)


def _stage() -> Any:
    """The run that the graph at work here was handed over for."""
    stage = sys.modules.get(f"{_BACKEND}.run")
    return None if stage is None else stage.STAGE.get()


def _visitor(host: Host) -> Any:
    try:
        return _part("run").InnerCaller(host)
    except ImportError as error:
        raise host.refuse(
            MissingExtra(
                f"a tool or model of LangChain was called, which needs LangGraph to be rehearsed: "
                f"{error}. Install it with pip install 'greenroom[langgraph]'."
            )
        ) from error


def _part(name: str) -> Any:
    return import_module(f"{_BACKEND}.{name}")


def _around(what: str) -> GreenroomError:
    return ToolRefused(
        f"the agent uses {what}, whose work no gate can see; it was not asked. Rehearse with a "
        f"chat model or tool that leaves these methods to LangChain."
    )
