"""Where google-adk asks models, runs code and lists what servers have: the host answers or refuses."""

from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from google.adk.tools.base_tool import BaseTool

from greenroom.backends.adk.gates import ModelGate, NoLine
from greenroom.backends.adk.routed import PASSED, run_passed
from greenroom.backends.adk.run import InnerCaller
from greenroom.backends.adk.tool_seams import agent_of
from greenroom.backends.adk.toolsets import ask_server, is_remote, label_of
from greenroom.errors import ToolRefused
from greenroom.world.presence import Host, model_host, tool_host

_AGENT_LABEL = "adk_agent_name"
_LISTED: "WeakKeyDictionary[Host, list[tuple[Any, str, list[BaseTool]]]]" = WeakKeyDictionary()
"""What servers listed for an invocation: the framework asks before every question to a model."""


def model_seam(real: Callable[..., Any]) -> Callable[..., Any]:
    """For a model that is asked."""

    def generate_content_async(self: Any, *given: Any, **named: Any) -> Any:
        host = model_host()
        if host is None:
            return real(self, *given, **named)
        request: Any = named.get("llm_request", given[0] if given else None)
        stream = named.get("stream", given[1] if len(given) > 1 else False)
        agent = _asks(request)
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


def line_seam(real: Callable[..., Any]) -> Callable[..., Any]:
    """For a model that is talked to live."""

    def connect(self: Any, *given: Any, **named: Any) -> Any:
        host = model_host()
        if host is None:
            return real(self, *given, **named)
        request: Any = named.get("llm_request", given[0] if given else None)
        return NoLine(InnerCaller(host), _asks(request))(request)

    return connect


def _asks(request: Any) -> str:
    """Which agent asks its model, by the label that the framework puts there for billing."""
    labels: Any = getattr(getattr(request, "config", None), "labels", None)
    return str(labels.get(_AGENT_LABEL, "")) if labels else ""


def code_seam(real: Callable[..., Any]) -> Callable[..., Any]:
    """For what runs code that a model wrote."""

    def execute_code(self: Any, *given: Any, **named: Any) -> Any:
        kind = type(self).__name__
        host = tool_host(self, kind)
        if host is None:
            return real(self, *given, **named)
        raise host.refuse(
            ToolRefused(
                f"the code executor {kind} was to run code that no gate can see. Rehearse the agent "
                f"without it."
            )
        )

    return execute_code


def listing_seam(real: Callable[..., Any]) -> Callable[..., Any]:
    """For toolsets that ask a server which tools there are."""

    async def get_tools(self: Any, *given: Any, **named: Any) -> Any:
        if not is_remote(self) or PASSED.get()[0] is self:
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
