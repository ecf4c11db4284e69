"""The seams where pydantic-ai calls tools, output functions and models, installed once per process.

A call is passed from toolset to toolset. The framework's toolsets that only pass it on are known, by their
functions. For any other toolset, such as the author's or one of a newer version, the World is asked about
the whole call before it runs, also where code calls the toolset itself.
"""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from contextvars import ContextVar
from copy import copy
from functools import cache, partial
from importlib import import_module
from inspect import Parameter, signature
from types import MethodType
from typing import Any, Final, cast

from msgspec import Struct
from pydantic_ai import Agent, RunContext
from pydantic_ai._function_schema import FunctionSchema
from pydantic_ai.exceptions import ApprovalRequired, CallDeferred, ModelRetry, ToolFailed
from pydantic_ai.messages import ToolCallPart, ToolReturn
from pydantic_ai.toolsets import (
    AbstractToolset,
    ApprovalRequiredToolset,
    CombinedToolset,
    ExternalToolset,
    FunctionToolset,
    PrefixedToolset,
    RenamedToolset,
    WrapperToolset,
)

from greenroom.backends.callers import Kept, Run
from greenroom.backends.foreign import Origin, jsonable
from greenroom.backends.pydantic_ai.facts import action_name, name_of
from greenroom.backends.pydantic_ai.models import with_stand_in, wrap_models
from greenroom.backends.pydantic_ai.run import RUN, FrameworkRun, InnerRun, tool_caller
from greenroom.backends.pydantic_ai.translation import as_returned, result_as_json
from greenroom.backends.seams import (
    Call,
    Wrap,
    follow_classes,
    is_seam,
    original,
    own_method,
    stand_in,
    wrap,
)
from greenroom.errors import FenceNotHeld
from greenroom.ledger.plain import Json
from greenroom.world.call_context import ContextSetting, LetThrough, carried, decided, model_host
from greenroom.world.world import Pending, Returned, ToolRequest

_HANDING_ON: Final[set[object]] = set()
"""The functions with which the framework's toolsets call a tool: each passes the call on, or asks itself."""


_WANTED = carried(ContextVar[Any]("pydantic_ai_wanted", default=None))
"""The validated tool call that is on its way to its body."""
_OFFERED = carried(ContextVar[Any]("pydantic_ai_offered", default=None))
"""The tools of the agent that made this call, by name."""


class _Passed(Struct, frozen=True):
    """The call whose body runs here: inner seams let it pass."""

    call: object
    leaf: object

    def leads_to(self, schema: FunctionSchema) -> bool:
        """Whether the call runs this function, through a toolset of the framework's or the author's."""
        wanted: Any = getattr(self.call, "call", None)
        is_leaf = self.leaf is schema or self.leaf is schema.json_schema
        return is_leaf or getattr(wanted, "tool_name", "") == schema.name


_PASSED = LetThrough[_Passed]("pydantic_ai_passed")


@cache
def install() -> None:
    """Install the seams, once; FenceNotHeld if this version lacks a name that a seam needs."""
    output = _module("pydantic_ai._output")
    delegates: dict[Any, Callable[[Any, Any], Any]] = {
        WrapperToolset: lambda toolset, _: toolset.wrapped,
        CombinedToolset: lambda _, tool: tool.source_toolset,
        _part("pydantic_ai.toolsets._dynamic", "DynamicToolset"): lambda made, _: made._toolset,
        _part("pydantic_ai.toolsets._tool_search", "ToolSearchToolset"): _below,
        _part(
            "pydantic_ai.toolsets._deferred_capability_loader", "DeferredCapabilityLoaderToolset"
        ): _below,
    }
    # These call the inner toolset by a function that has a seam, or have no body to call.
    handing_on = (ApprovalRequiredToolset, PrefixedToolset, RenamedToolset, ExternalToolset)
    known = {original(kind, "call_tool") for kind in handing_on}
    places: list[tuple[Any, str, Wrap]] = [
        *((kind, "call_tool", partial(_handing_seam, below)) for kind, below in delegates.items()),
        (FunctionToolset, "call_tool", _function_seam),
        (FunctionSchema, "call", _schema_seam),
        (_part("pydantic_ai.tool_manager", "ToolManager"), "_raw_execute", _execute_seam),
        (output, "execute_output_function", _output_seam),
        (Agent, "iter", _begin_seam),
    ]
    if hasattr(import_module("pydantic_ai.output"), "Choices"):  # only newer versions have it
        places.append((output, "execute_choice_action", _choice_seam))
    wrap(places)
    wrap_models()
    _HANDING_ON.update(known, [vars(kind)["call_tool"] for kind in (*delegates, FunctionToolset)])
    follow_classes(AbstractToolset, _hold_own_call)


def _module(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise FenceNotHeld(f"it has no {name}") from None


def _part(module: str, name: str) -> Any:
    return original(_module(module), name)


def _below(toolset: Any, tool: Any) -> Any:
    """Where a toolset with one tool of its own passes on calls of others."""
    return None if tool.toolset is toolset else toolset.wrapped


def _hands_on(toolset: object) -> bool:
    """Whether a toolset calls its tools by a function of the framework that is known to ask.

    Compared by the class's function itself, because names and attributes can be copied.
    """
    kind = type(toolset)
    if kind.__getattribute__ is not object.__getattribute__ or "call_tool" in vars(toolset):
        return False
    found = next((vars(cls)["call_tool"] for cls in kind.__mro__ if "call_tool" in vars(cls)), None)
    return found in _HANDING_ON


def _execute_seam(real: Call) -> Call:
    async def _raw_execute(self: Any, validated: Any, **options: Any) -> Any:
        manager = self
        if not _hands_on(self.toolset):
            manager = copy(self)
            manager.toolset = _Held(self.toolset)
        with ContextSetting(_WANTED, validated), ContextSetting(_OFFERED, self.tools):
            return await real(manager, validated, **options)

    return _raw_execute


class _Held:
    """Replaces an unknown toolset where it would be called."""

    def __init__(self, toolset: Any) -> None:
        self._toolset = toolset

    def call_tool(self, name: str, tool_args: Any, ctx: RunContext[Any], tool: Any) -> Any:
        async def run() -> Any:
            return await self._toolset.call_tool(name, tool_args, ctx, tool)

        return _ask(_Call(name, tool_args, ctx, tool), run)


def _handing_seam(below: Callable[[Any, Any], Any], real: Call) -> Call:
    async def call_tool(
        self: Any, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: Any
    ) -> Any:
        inner = below(self, tool)
        # From here on it is not the wanted call.
        with ContextSetting(_WANTED, None) if _is_other(name) else nullcontext():
            if inner is None or _hands_on(inner):
                return await real(self, name, tool_args, ctx, tool)
            return await _ask(
                _Call(name, tool_args, ctx, tool), lambda: real(self, name, tool_args, ctx, tool)
            )

    return call_tool


def _is_other(name: str) -> bool:
    """Whether this is another tool of the agent than the wanted one, with the same schema object.

    Tools of a toolset of the author's may share one, so that they cannot be told apart further in.
    """
    wanted, offered = _WANTED.get(), _OFFERED.get()
    if wanted is None or not offered or name not in offered or name == wanted.call.tool_name:
        return False
    return _leaf(offered[name]) is _leaf(wanted.tool)


def _hold_own_call(kind: type) -> None:
    """Let a toolset that calls tools in its own way ask first, whoever calls it."""
    own = own_method(kind, AbstractToolset, "call_tool")
    if own is not None and own not in _HANDING_ON and not is_seam(own):
        kind.call_tool = stand_in(own, _own_seam(own))  # pyright: ignore[reportAttributeAccessIssue]


def _own_seam(real: Call) -> Call:
    # An author's class may name its parameters as it likes, but takes them in the framework's order.
    own = signature(real).parameters.values()
    names = [one.name for one in own if one.kind is Parameter.POSITIONAL_OR_KEYWORD][1:]
    names = names if len(names) == len(_CALLED_WITH) else _CALLED_WITH

    async def call_tool(self: Any, *args: Any, **given: Any) -> Any:
        by_name: dict[str, Any] = dict(zip(names, args, strict=False)) | given
        name, tool_args, ctx, tool = [cast(Any, by_name.get(name)) for name in names]
        with ContextSetting(_WANTED, None) if _is_other(name) else nullcontext():
            return await _ask(
                _Call(name, tool_args or {}, ctx, tool), lambda: real(self, *args, **given)
            )

    return call_tool


_CALLED_WITH = ["name", "tool_args", "ctx", "tool"]


def _function_seam(real: Call) -> Call:
    async def call_tool(
        self: Any, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: Any
    ) -> Any:
        call = _Call(name, tool_args, ctx, tool, _origin(self, tool))
        return await _ask(call, lambda: real(self, name, tool_args, ctx, tool))

    return call_tool


def _schema_seam(real: Call) -> Call:
    """For the call of the author's function itself: code may get here without any toolset."""

    async def call(self: FunctionSchema, args_dict: dict[str, Any], ctx: RunContext[Any]) -> Any:
        passed = _PASSED.here()
        if passed is not None and passed.leads_to(self):
            return await real(self, args_dict, ctx)

        async def run() -> Any:
            with _PASSED.during(_Passed(ctx, self)):
                return await real(self, args_dict, ctx)

        return await _ask_function(self.function, self.name, run, "", args_dict, ends=False)

    return call


class _Call(Struct, frozen=True):
    """A tool call of the framework's, on its way to the body."""

    name: str
    args: dict[str, Any]
    ctx: RunContext[Any]
    tool: Any
    origin: Origin | None = None

    def passing(self) -> _Passed:
        """What identifies this call in inner seams, where its context and tool may be copies."""
        wanted = _WANTED.get()
        # Code that calls a toolset itself may leave the tool out; then its name says which one it is.
        leaf = self.name if self.tool is None else _leaf(self.tool)
        return _Passed(self.ctx if wanted is None else wanted, leaf)

    def has_passed(self) -> bool:
        """Whether an outer seam already asked about this call."""
        passed = _PASSED.here()
        if passed is None:
            return False
        mine = self.passing()
        is_name = type(mine.leaf) is str and mine.leaf == passed.leaf
        return passed.call is mine.call and (passed.leaf is mine.leaf or is_name)

    def request(self, agent: str) -> ToolRequest:
        """The call as the World is asked about it.

        Under the name that the model knows, even though the innermost toolset sees it without prefixes and
        renamings; unless code on the way has replaced the tool with another one.
        """
        wanted = _WANTED.get()
        if wanted is None or self.tool is None or _leaf(wanted.tool) is not _leaf(self.tool):
            return ToolRequest("", self.name, _args_as_json(self.args), agent, origin=self.origin)
        call: ToolCallPart = wanted.call
        args, given = _args_as_json(self.args), call.args_as_dict()
        # Defaults that were not given are left out. A tool of one model-typed argument is given its
        # fields: then the names differ, and all is kept.
        if set(given) <= set(args):
            args = {name: value for name, value in args.items() if name in given}
        return ToolRequest(call.tool_call_id, call.tool_name, args, agent, origin=self.origin)


def _leaf(tool: Any) -> object:
    """The part of a tool that stays the same, however often the framework copies or renames it."""
    while (inner := getattr(tool, "source_tool", None)) is not None:
        tool = inner
    call = getattr(tool, "call_func", None)
    if type(call) is MethodType:
        return call.__self__
    # Code that calls a toolset itself may give any object.
    described = getattr(tool, "tool_def", None)
    return tool if described is None else described.parameters_json_schema


def _origin(toolset: FunctionToolset[Any], tool: Any) -> Origin | None:
    """The author's function behind a tool, if the framework's own function calls it."""
    call: Any = getattr(tool, "call_func", None)
    if type(call) is not MethodType or call.__func__ is not vars(FunctionSchema)["call"]:
        return None
    schema: Any = call.__self__
    known = toolset.tools.get(tool.original_name or tool.tool_def.name)
    is_known = known is not None and known.function_schema is schema
    return Origin(schema.function, known if is_known else None)


async def _ask(call: _Call, run: Run) -> Any:
    """The World's answer, or the real tool's outside of rehearsals."""
    if call.has_passed():
        with decided(call.name):  # a wrapper may know the tool by another name
            return await run()
    caller = tool_caller(call.origin, call.name)
    if caller is None:
        return await run()
    passing = call.passing()

    async def body() -> Any:
        with ContextSetting(RUN, None), _PASSED.during(passing), decided(call.name):
            return await run()

    request = caller.place_tool(call.request(caller.agent))
    return _settled(*await caller.ask_tool(request, body, _result_as_json))


def _settled(outcome: Returned | Pending, kept: Kept) -> Any:
    """The World's answer as the framework's result or error."""
    if isinstance(outcome, Pending):
        raise CallDeferred
    if outcome.error:
        # The framework handles what the real tool raised; a mock's failure goes to the model.
        if kept.error is None and outcome.source == "live":
            # The run started again, and gets again what a real tool raised to control it.
            kind, _, text = outcome.error.partition(": ")
            if kind == "ModelRetry":
                raise ModelRetry(text)
            if kind in ("ApprovalRequired", "CallDeferred"):
                raise ApprovalRequired if kind == "ApprovalRequired" else CallDeferred
        raise kept.error or ToolFailed(outcome.error)
    return kept.real if kept.matches(outcome.value) else as_returned(outcome.value)


def _result_as_json(value: Any) -> Json:
    return result_as_json(value.return_value if isinstance(value, ToolReturn) else value)  # pyright: ignore[reportUnknownMemberType]


def _args_as_json(args: dict[str, Any]) -> dict[str, Json]:
    return cast("dict[str, Json]", jsonable(args))


def _output_seam(real: Call) -> Call:
    async def execute_output_function(function_schema: Any, **given: Any) -> Any:
        return await real(_HeldFunction(function_schema), **given)

    return execute_output_function


class _HeldFunction:
    """Replaces an output function where it is called: it can act like a tool, so the World is asked."""

    def __init__(self, schema: Any) -> None:
        self._schema = schema

    def call(self, args: dict[str, Any], ctx: RunContext[Any]) -> Any:
        function, call_id = self._schema.function, ctx.tool_call_id or ""
        name = getattr(function, "__name__", None) or "output"

        async def run() -> Any:
            with _PASSED.during(_Passed(ctx, self._schema)):
                return await self._schema.call(args, ctx)

        return _ask_function(function, name, run, call_id, args)


def _choice_seam(real: Call) -> Call:
    async def execute_choice_action(action: Callable[[], Any]) -> Any:
        """The action of a choice, treated like an output function without parameters."""
        return await _ask_function(action, action_name(action), lambda: real(action))

    return execute_choice_action


async def _ask_function(
    function: Any,
    name: str,
    run: Run,
    call_id: str = "",
    args: dict[str, Any] | None = None,
    *,
    ends: bool = True,
) -> Any:
    origin = Origin(function)
    caller = tool_caller(origin, name)
    if caller is None:
        return await run()

    async def body() -> Any:
        with ContextSetting(RUN, None):
            return await run()

    given = _args_as_json(args or {})
    request = ToolRequest(call_id, name, given, caller.agent, origin=origin, ends=ends)
    return _settled(*await caller.ask_tool(caller.place_tool(request), body))


def _begin_seam(real: Callable[..., AbstractAsyncContextManager[Any]]) -> Call:
    def begin(self: Agent[Any, Any], *given: Any, **named: Any) -> Any:
        run, host = RUN.get(), model_host()
        is_outermost = type(run) is FrameworkRun
        if run.is_answered if is_outermost else host is not None and host.is_answered:
            named = with_stand_in(self, named)
        begun = real(self, *given, **named)
        if is_outermost:
            return begun if run.begins(self) else _RunInside(begun, name_of(self))
        return begun if host is None else _RunInside(begun, name_of(self))

    return begin


class _RunInside:
    """Marks a run inside other code, so that its model calls are placed under its agent's name."""

    __slots__ = ("_current", "_run")

    def __init__(self, run: AbstractAsyncContextManager[Any], name: str) -> None:
        self._run = run
        self._current = ContextSetting(RUN, InnerRun(name))

    async def __aenter__(self) -> Any:
        self._current.__enter__()
        try:
            return await self._run.__aenter__()
        except BaseException:
            self._current.__exit__()
            raise

    async def __aexit__(self, *how: Any) -> bool | None:  # noqa: PYI036 - handed on as they are
        try:
            return await self._run.__aexit__(*how)
        finally:
            self._current.__exit__()
