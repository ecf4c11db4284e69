"""Where google-adk runs tools, asks models, runs nodes and lists tools: who answers is asked there.

A class's own method is wrapped once, for the classes there are and those to come. Whoever calls
a tool that has no such method, because it was replaced on the object or the class, is asked instead.
An agent that was handed over has gates of its own above; what passes those passes here.
"""

import sys
from collections.abc import Callable
from functools import wraps
from types import FunctionType
from typing import Any, cast
from weakref import WeakKeyDictionary

from google.adk.agents import BaseAgent
from google.adk.code_executors.base_code_executor import BaseCodeExecutor
from google.adk.flows.llm_flows import functions
from google.adk.models.base_llm import BaseLlm
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.base_toolset import BaseToolset
from google.adk.tools.function_tool import FunctionTool

from greenroom.backends.adk.asking import Visitor
from greenroom.backends.adk.facts import is_delegation, is_steering, origin_of
from greenroom.backends.adk.gates import (
    Delegation,
    ModelGate,
    NoLine,
    RunTool,
    ToolGate,
    name_of_tool,
    run_tool,
    twin_of,
)
from greenroom.backends.adk.nodes import (
    Noted,
    function_of,
    gated_function,
    gated_node,
    is_gated_function,
)
from greenroom.backends.adk.passing import (
    PASSED,
    has_passed,
    is_seam,
    run_passed,
    stands_for,
)
from greenroom.backends.adk.quiet import quiet
from greenroom.backends.adk.toolsets import ask_server, is_remote, label_of
from greenroom.backends.adk.versions import (
    HAS_GRAPHS,
    START,
    BaseNode,
    FunctionNode,
    NodeTool,
    ToolNode,
    request_input,
)
from greenroom.backends.foreign import Origin
from greenroom.backends.seams import original
from greenroom.errors import ToolRefused
from greenroom.world.presence import Host, model_host, tool_host

_AGENT_LABEL = "adk_agent_name"
# By version: the function through which the framework calls a tool.
_CALLERS = ("_call_tool_async", "__call_tool_async")

_LISTED: "WeakKeyDictionary[Host, list[tuple[Any, str, list[BaseTool]]]]" = WeakKeyDictionary()
"""What servers listed for an invocation: the framework asks before every question to a model."""

Wrap = Callable[[Callable[..., Any]], Callable[..., Any]]


def install() -> None:
    """Put the seam in; a version that lacks one of the names is refused."""
    quiet()
    caller = next((name for name in _CALLERS if hasattr(functions, name)), _CALLERS[0])
    calls, pooled = original(functions, caller), original(functions, "_call_tool_in_thread_pool")
    for owner, name in ((BaseLlm, "connect"), (BaseToolset, "get_tools_with_prefix")):
        original(owner, name)
    _follow(BaseTool, {"run_async": _tool_seam})
    _follow(BaseLlm, {"generate_content_async": _model_seam, "connect": _line_seam})
    _follow(BaseCodeExecutor, {"execute_code": _code_seam})
    _follow(BaseToolset, {"get_tools_with_prefix": _listing_seam, "get_tools": _listing_seam})
    _replace_everywhere(calls, _caller_seam(calls))
    _replace_everywhere(pooled, _pool_seam(pooled))
    if HAS_GRAPHS:
        _wrap_method(BaseNode, "run", _node_seam, original(BaseNode, "run"))


def _follow(base: type, methods: dict[str, Wrap]) -> None:
    """Wrap these methods of a class, of all classes below it, and of those to come."""
    for name in methods:
        original(base, name)

    def wrap_all(kind: type) -> None:
        for name, seam in methods.items():
            method = vars(kind).get(name)
            if isinstance(method, FunctionType):
                _wrap_method(kind, name, seam, method)

    waiting, known = [base], {base}
    while waiting:
        kind = waiting.pop()
        wrap_all(kind)
        fresh = [below for below in kind.__subclasses__() if below not in known]
        known.update(fresh)
        waiting += fresh
    before: Any = vars(base).get("__init_subclass__")

    def follow(cls: type, **options: Any) -> None:
        if before is None:
            super(base, cls).__init_subclass__(**options)
        else:
            before.__get__(None, cls)(**options)
        wrap_all(cls)

    base.__init_subclass__ = classmethod(follow)  # pyright: ignore[reportAttributeAccessIssue]


def _wrap_method(kind: type, name: str, seam: Wrap, method: Callable[..., Any]) -> None:
    if is_seam(method) or getattr(method, "__isabstractmethod__", False):
        return
    wrapped = wraps(method)(seam(method))
    stands_for(wrapped, method)
    setattr(kind, name, wrapped)


def _replace_everywhere(real: Callable[..., Any], seam: Callable[..., Any]) -> None:
    """Put a module's function into every module of the framework that has taken it by name."""
    wrapped = wraps(real)(seam)
    stands_for(wrapped, real)
    for name, module in list(sys.modules.items()):
        if name.startswith("google.adk."):
            for taken in [key for key, value in vars(module).items() if value is real]:
                setattr(module, taken, wrapped)


def _tool_seam(real: Callable[..., Any]) -> Callable[..., Any]:
    async def run_async(self: Any, *given: Any, **named: Any) -> Any:
        async def run(tool: Any, _args: Any, _context: Any) -> Any:
            return await real(tool, *given, **named)

        args, context = _arguments(given, named)
        return await _answered(self, args, context, run, True)

    return run_async


def _caller_seam(real: Callable[..., Any]) -> Callable[..., Any]:
    async def call_tool(*given: Any, **named: Any) -> Any:
        tool, *rest = given or (named.get("tool"),)
        if is_held(tool):
            return await real(*given, **named)

        async def run(_tool: Any, _args: Any, _context: Any) -> Any:
            return await real(*given, **named)

        return await _answered(tool, *_arguments(tuple(rest), named), run, False)

    return call_tool


def _pool_seam(real: Callable[..., Any]) -> Callable[..., Any]:
    """In a pool some versions call the function behind a tool, and not the tool."""

    async def call_tool(*given: Any, **named: Any) -> Any:
        async def run(_tool: Any, _args: Any, _context: Any) -> Any:
            return await real(*given, **named)

        tool, *rest = given or (named.get("tool"),)
        return await _answered(tool, *_arguments(tuple(rest), named), run, False)

    return call_tool


def _arguments(given: tuple[Any, ...], named: dict[str, Any]) -> tuple[dict[str, Any], Any]:
    """Arguments and context of a call, however they were handed over."""
    args = named.get("args", given[0] if given else None)
    return args or {}, named.get("tool_context", given[1] if len(given) > 1 else None)


def is_held(tool: Any) -> bool:
    """Whether what runs when this tool is called is a seam, or a gate of an agent handed over."""
    kind = cast("type[Any]", type(tool))
    if kind.__getattribute__ is not object.__getattribute__:
        return False
    own = getattr(tool, "__dict__", {}).get("run_async")
    if own is not None:
        return type(own) in (ToolGate, Delegation)
    return is_seam(getattr(kind, "run_async", None))


async def _answered(
    tool: Any, args: dict[str, Any], context: Any, run: RunTool, checks: bool
) -> Any:
    """What a call returns: the host's answer where there is one, else what the tool gives."""
    if has_passed(tool, context) or is_steering(tool):
        return await run(tool, args, context)
    origin = origin_of(tool)
    host = tool_host(origin, name_of_tool(tool))
    if host is None:
        return await run(tool, args, context)
    asker = Visitor(host, _agent_of(context))
    if is_delegation(tool) or tool is request_input:
        # A question of the framework's own comes back to whoever runs the agent.
        if getattr(tool, "_defers_response", False):
            return await run(tool, args, context)
        return await Delegation(asker, tool, run)(args=args, tool_context=context)
    gate = ToolGate(asker, tool, origin, run=run, checks=checks)
    return await gate(args=args, tool_context=context)


def _agent_of(context: Any) -> str:
    try:
        name = context.agent_name
    except AttributeError:
        return ""
    return name if isinstance(name, str) else ""


def _model_seam(real: Callable[..., Any]) -> Callable[..., Any]:
    def generate_content_async(self: Any, *given: Any, **named: Any) -> Any:
        host = model_host()
        if host is None:
            return real(self, *given, **named)
        request: Any = named.get("llm_request", given[0] if given else None)
        stream = named.get("stream", given[1] if len(given) > 1 else False)
        agent = _asks(request)
        asker = Visitor(host, agent)
        if getattr(self, "use_interactions_api", False):
            raise asker.refuse(
                ToolRefused(
                    f"the model of agent {agent!r} keeps its history at the provider "
                    f"(use_interactions_api); a rehearsal needs to see it. Switch that off."
                )
            )
        return ModelGate(asker, agent, self)(request, stream)

    return generate_content_async


def _line_seam(real: Callable[..., Any]) -> Callable[..., Any]:
    def connect(self: Any, *given: Any, **named: Any) -> Any:
        host = model_host()
        if host is None:
            return real(self, *given, **named)
        request: Any = named.get("llm_request", given[0] if given else None)
        return NoLine(Visitor(host), _asks(request))(request)

    return connect


def _asks(request: Any) -> str:
    """Which agent asks its model, by the label that the framework puts there for billing."""
    labels: Any = getattr(getattr(request, "config", None), "labels", None)
    return str(labels.get(_AGENT_LABEL, "")) if labels else ""


def _code_seam(real: Callable[..., Any]) -> Callable[..., Any]:
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


def _listing_seam(real: Callable[..., Any]) -> Callable[..., Any]:
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

        tools = await ask_server(Visitor(host, _agent_of(context)), self, really)
        known.append((self, invocation, tools))
        return tools

    return get_tools


def _node_seam(real: Callable[..., Any]) -> Callable[..., Any]:
    def run(self: Any, *, ctx: Any, node_input: Any) -> Any:
        return real(_held_node(self), ctx=ctx, node_input=node_input)

    return run


def _held_node(node: BaseNode) -> BaseNode:
    """The node, or a copy of it in which the author's work is put to the host."""
    own: Any = vars(node).get("_run_impl")
    if type(own) is Noted or node is START or isinstance(node, BaseAgent):
        return node
    is_plain = own is None and _is_the_frameworks(type(node))
    if is_plain and isinstance(node, ToolNode):
        return node if is_held(node.tool) else _with_held_tool(node)
    if is_plain and not isinstance(node, FunctionNode):
        return node
    if is_gated_function(node) or _is_part_of_passed(node):
        return node
    function = function_of(node) if is_plain and isinstance(node, FunctionNode) else None
    origin = node if function is None else Origin(function, node)
    host = tool_host(origin, node.name)
    if host is None:
        return node
    asker = Visitor(host, node.name)
    if function is None:
        return gated_node(node, asker)
    assert isinstance(node, FunctionNode)
    return gated_function(node, asker)


def _is_the_frameworks(kind: type) -> bool:
    """Whether a class is the framework's own, found where it says that it was made."""
    module = sys.modules.get(kind.__module__)
    found = getattr(module, kind.__qualname__, None)
    return kind.__module__.startswith("google.adk.") and found is kind


def _with_held_tool(node: ToolNode) -> ToolNode:
    """A copy of a node whose tool, run by something of its own, asks first."""
    tool, twin = node.tool, twin_of(node.tool)

    async def run_async(*, args: dict[str, Any], tool_context: Any) -> Any:
        return await _answered(tool, args, tool_context, run_tool, False)

    object.__setattr__(twin, "run_async", run_async)
    return node.model_copy(update={"tool": twin})


def _is_part_of_passed(node: BaseNode) -> bool:
    """Whether a function node is how a tool that was asked about runs its function."""
    passed = PASSED.get()[0]
    if not isinstance(node, FunctionNode):
        return passed is node
    own: list[Any] = [passed]
    if isinstance(passed, NodeTool):
        own.append(passed.node)
    if isinstance(passed, FunctionTool):
        own.append((getattr(passed, "_generator_node_cache", None) or (None, None))[1])
    mine = function_of(node)
    return any(isinstance(one, FunctionNode) and function_of(one) is mine for one in own)
