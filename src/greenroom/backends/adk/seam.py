"""The seams at google-adk's innermost calls: run a tool, ask a model, run a node, list tools.

Each class's own method is wrapped once, including classes defined later. For a tool whose method was
replaced on the object or the class, the framework's own calling function asks instead. An agent under
test also has its own gates further out; calls that passed those pass here too.
"""

import logging
import sys
from functools import cache
from typing import Any
from weakref import WeakKeyDictionary

from google.adk.code_executors.base_code_executor import BaseCodeExecutor
from google.adk.flows.llm_flows import functions
from google.adk.models.base_llm import BaseLlm
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.base_toolset import BaseToolset
from google.adk.tools.function_tool import FunctionTool

from greenroom.backends.adk.gates import ModelGate, NoLine
from greenroom.backends.adk.run import InnerCaller, passed_here, run_passed
from greenroom.backends.adk.tool_seams import (
    agent_of,
    caller_seam,
    function_seam,
    node_seam,
    own_run_seam,
    tool_seam,
)
from greenroom.backends.adk.toolsets import ask_server, is_remote, label_of
from greenroom.backends.adk.versions import HAS_GRAPHS, BaseNode
from greenroom.backends.seams import (
    Call,
    Wrap,
    original,
    stand_in,
    wrap,
    wrap_below,
)
from greenroom.errors import GreenroomError, ToolRefused
from greenroom.world.call_context import Host, model_host, tool_host

# By version: the function through which the framework calls a tool.
_CALLERS = ("_call_tool_async", "__call_tool_async")
_AGENT_LABEL = "adk_agent_name"
# Loggers of the framework that log a traceback for every error they see.
_LOGGERS = (
    "agents.base_agent",
    "agents.llm_agent",
    "evaluation.local_eval_service",
    "flows.llm_flows.tools._error_handler",
    "live._live_llm_flow",
    "plugins.plugin_manager",
    "runners",
    "workflow._node_runner",
    "workflow._node_runner_utils",
)
RUN_AS = "greenroom"
"""The app, the user and the session in which an agent is rehearsed."""
_LISTED: "WeakKeyDictionary[Host, list[tuple[Any, str, list[BaseTool]]]]" = WeakKeyDictionary()
"""The tools that servers listed, cached because the framework asks before every model call."""


@cache
def install() -> None:
    """Install the seam; a version that lacks one of the names is refused."""
    silence_refusals()
    caller = next((name for name in _CALLERS if hasattr(functions, name)), _CALLERS[0])
    calls, pooled = original(functions, caller), original(functions, "_call_tool_in_thread_pool")
    classes: list[tuple[type, dict[str, Wrap]]] = [
        (BaseTool, {"run_async": tool_seam}),
        (FunctionTool, {"_invoke_callable": function_seam}),
        (BaseLlm, {"generate_content_async": _model_seam, "connect": _live_seam}),
        (BaseCodeExecutor, {"execute_code": _code_seam}),
        (BaseToolset, {"get_tools_with_prefix": _listing_seam, "get_tools": _listing_seam}),
    ]
    for base, methods in classes:
        for name in methods:
            original(base, name)
    if HAS_GRAPHS:
        wrap([(BaseNode, "run", node_seam)])
        wrap_below(BaseNode, {"run": own_run_seam})
    for base, methods in classes:
        wrap_below(base, methods)
    _replace_everywhere(calls, caller_seam(calls))
    _replace_everywhere(pooled, caller_seam(pooled, in_pool=True))


def _replace_everywhere(real: Call, seam: Call) -> None:
    """Replace a function in every module of the framework that imported it by name."""
    wrapped = stand_in(real, seam)
    for name, module in list(sys.modules.items()):
        if name.startswith("google.adk."):
            for taken in [key for key, value in vars(module).items() if value is real]:
                setattr(module, taken, wrapped)


def _model_seam(real: Call) -> Call:
    """For a model that is asked."""

    def generate_content_async(self: Any, *given: Any, **named: Any) -> Any:
        host = model_host()
        if host is None:
            return real(self, *given, **named)
        request: Any = named.get("llm_request", given[0] if given else None)
        stream = named.get("stream", given[1] if len(given) > 1 else False)
        agent = _asking_agent(request)
        caller = InnerCaller(host, agent)
        if getattr(self, "use_interactions_api", False):
            raise caller.refuse(
                ToolRefused(
                    f"the model of agent {agent!r} keeps its history at the provider "
                    f"(use_interactions_api); a rehearsal needs to see it. Switch that off."
                )
            )
        return ModelGate(caller, agent, self)(request, stream)

    return generate_content_async


def _live_seam(real: Call) -> Call:
    """For a live connection to a model."""

    def connect(self: Any, *given: Any, **named: Any) -> Any:
        host = model_host()
        if host is None:
            return real(self, *given, **named)
        request: Any = named.get("llm_request", given[0] if given else None)
        return NoLine(InnerCaller(host), _asking_agent(request))(request)

    return connect


def _asking_agent(request: Any) -> str:
    """The agent that asks its model, from the label that the framework adds for billing."""
    labels: Any = getattr(getattr(request, "config", None), "labels", None)
    return str(labels.get(_AGENT_LABEL, "")) if labels else ""


def _code_seam(real: Call) -> Call:
    """For code executors, which run code that a model wrote."""

    def execute_code(self: Any, *given: Any, **named: Any) -> Any:
        kind = type(self).__name__
        host = tool_host(self, kind)
        if host is None:
            return real(self, *given, **named)
        raise host.refuse(
            ToolRefused(
                f"the code executor {kind} tried to run code that the tool gate cannot see. Rehearse the agent "
                f"without it."
            )
        )

    return execute_code


def _listing_seam(real: Call) -> Call:
    """For toolsets that ask a server which tools there are."""

    async def get_tools(self: Any, *given: Any, **named: Any) -> Any:
        if not is_remote(self) or passed_here() is self:
            return await real(self, *given, **named)
        host = tool_host(self, label_of(self))
        if host is None:
            return await real(self, *given, **named)
        context = named.get("readonly_context", given[0] if given else None)
        invocation = getattr(context, "invocation_id", "")
        known = _LISTED.setdefault(host, [])
        for toolset, of, tools in known:
            if toolset is self and of == invocation and of:
                return tools

        async def really() -> Any:
            return await run_passed(self, None, lambda: real(self, *given, **named))

        tools = await ask_server(InnerCaller(host, agent_of(context)), self, really)
        known.append((self, invocation, tools))
        return tools

    return get_tools


class _RefusalFilter(logging.Filter):
    """Drops log records of what the report shows, and advice about the app in which we run agents."""

    def filter(self, record: logging.LogRecord) -> bool:
        if record.args == (RUN_AS,) and "context_cache_config" in str(record.msg):
            return False
        error = record.exc_info[1] if record.exc_info else None
        while error is not None:
            if isinstance(error, GreenroomError):
                return False
            error = error.__cause__
        return True


_REFUSALS = _RefusalFilter()


def silence_refusals() -> None:
    """Keep tracebacks of refusals out of the framework's log; calling this twice is harmless."""
    for name in _LOGGERS:
        logging.getLogger(f"google_adk.google.adk.{name}").addFilter(_REFUSALS)
