"""The gates around the framework's innermost calls: instead of a model or a tool, the World is asked."""

# The framework is only partly typed, and the seams use its private names.
# pyright: reportPrivateUsage=false

import functools
import inspect
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import replace
from types import CodeType
from typing import Any, cast
from weakref import WeakKeyDictionary

from agents.mcp.util import MCPUtil
from agents.tool import (
    _FailureHandlingFunctionToolInvoker,  # pyright: ignore[reportPrivateUsage]
    maybe_invoke_function_tool_failure_error_function,
)
from agents.tool_context import ToolContext

from agents import (
    Agent,
    FunctionTool,
    Model,
    ModelResponse,
    ModelSettings,
    OpenAIChatCompletionsModel,
    function_tool,
)
from greenroom.backends.callers import Caller, listener, refuse_to_wait
from greenroom.backends.foreign import Origin, jsonable, result_as_json
from greenroom.backends.openai_agents.run import LEVEL, RUN, FrameworkRun
from greenroom.backends.openai_agents.streams import events_of
from greenroom.backends.openai_agents.translation import (
    args_of,
    as_returned,
    identified,
    reply_of,
    request_of,
    response_in,
    response_of,
)
from greenroom.errors import AgentFailed, GreenroomError, ToolRefused
from greenroom.ledger.plain import Json
from greenroom.ledger.redaction import keep_keys
from greenroom.models.model import ModelRequest, send_piece
from greenroom.world.call_context import ContextSetting, LetThrough, decided
from greenroom.world.records import ToolError
from greenroom.world.world import CallPaused, ToolRequest

Args = dict[str, Any]
Ask = Callable[[Args], Any]
Check = Callable[[ToolContext[Any], str], Any]

_ORDER = (
    "system_instructions",
    "input",
    "model_settings",
    "tools",
    "output_schema",
    "handoffs",
    "tracing",
)
# The functions inside the framework's own `as_tool`, which run an agent that is used as a tool.
_DELEGATING = tuple(part for part in Agent.as_tool.__code__.co_consts if isinstance(part, CodeType))
_passed = LetThrough[tuple[object, str]]("greenroom_openai_agents_passed")
"""The context of the call that the World allowed here, and the name of its tool."""
_asking: ContextVar[Ask | None] = ContextVar("greenroom_openai_agents_asking", default=None)
_checkers: "WeakKeyDictionary[Any, Check]" = WeakKeyDictionary()


class GatedModel(Model):
    """A model that is asked only through the World; the real one is created when it must answer."""

    def __init__(self, caller: Caller, agent: str, name: str, make: Callable[[], Model]) -> None:
        self._caller = caller
        self._agent = agent
        self._name = name
        self._make = make
        self._real: Model | None = None

    @property
    def real(self) -> Model:
        """The author's own model."""
        if self._real is None:
            self._real = self._make()
            keep_keys(self._real)
        return self._real

    async def get_response(self, *args: Any, **given: Any) -> ModelResponse:
        """The World's reply; the real model's own response object if that is what it replied."""

        async def run(seeded: Args | None) -> ModelResponse:
            asked, named = (args, given) if seeded is None else ((), seeded)
            if listener() is not None:
                # A model that cannot stream says so before its first word.
                with suppress(NotImplementedError):
                    return _last_response(await _read(self.real.stream_response(*asked, **named)))
            return await self.real.get_response(*asked, **named)

        response, _ = await self._ask(_named(args, given), run, lambda found: found)
        return response

    async def stream_response(self, *args: Any, **given: Any) -> AsyncIterator[Any]:
        """The whole reply as a stream."""

        async def run(seeded: Args | None) -> list[Any]:
            asked, named = (args, given) if seeded is None else ((), seeded)
            return await _read(self.real.stream_response(*asked, **named))

        response, events = await self._ask(_named(args, given), run, _last_response)
        for event in events or events_of(response, self._name):
            yield event

    def get_retry_advice(self, request: Any) -> Any:
        """What the real model advises."""
        return None if self._real is None else self._real.get_retry_advice(request)

    async def close(self) -> None:
        """Close the real model, if it was ever made."""
        if self._real is not None:
            await self._real.close()

    async def _cleanup_on_run_end(self, owner: object) -> None:
        if self._real is not None:
            await self._real._cleanup_on_run_end(owner)

    async def _ask(
        self,
        given: dict[str, Any],
        run: Callable[[Args | None], Any],
        response_in: Callable[[Any], ModelResponse],
    ) -> tuple[ModelResponse, Any]:
        """The framework's response, and what the real model gave if that is what was replied."""
        caller = self._caller
        if why := _unheld(given):
            raise caller.refuse(ToolRefused(f"agent {self._agent!r} {why}"))
        request = caller.place_model(
            request_of(
                given["system_instructions"],
                given["input"],
                given["tools"],
                given["output_schema"],
                given["handoffs"],
                agent=self._agent,
                node=self._agent,
                model=self._name,
            )
        )

        async def ask(asked: ModelRequest) -> Any:
            # Only one of OpenAI's two interfaces takes a seed.
            if asked.seed is None or not isinstance(self.real, OpenAIChatCompletionsModel):
                return await run(None)
            settings: ModelSettings = given["model_settings"]
            extra = {"seed": asked.seed, **(settings.extra_args or {})}
            return await run({**given, "model_settings": replace(settings, extra_args=extra)})

        reply, kept = await caller.ask_model(request, ask, lambda real: reply_of(response_in(real)))
        if kept.matches(reply):
            return response_in(kept.real), kept.real
        if kept.real is not None and (own := identified(response_in(kept.real), reply)) is not None:
            return own, None
        path, n = request.path, request.n
        where = (path, n) if path else (self._agent, len(given["input"]))
        return response_of(reply, f"msg_{caller.new_id(*where)}"), None


def gated_tool(caller: Caller, tool: FunctionTool) -> FunctionTool:
    """A copy of a tool whose body asks the World; for an agent used as a tool, each of its calls does too."""
    gate = ToolGate
    if is_delegation(tool):
        gate = Delegation if isinstance(caller, FrameworkRun) else InnerDelegation
    twin: FunctionTool = object.__new__(type(tool))
    twin.__dict__.update(tool.__dict__)
    twin.__dict__["on_invoke_tool"] = gate(caller, tool, twin)
    return twin


class ToolGate(_FailureHandlingFunctionToolInvoker):
    """Replaces a tool's `on_invoke_tool`."""

    def __init__(self, caller: Caller, tool: FunctionTool, twin: FunctionTool) -> None:
        self._caller = caller
        self._tool = tool
        self._twin = twin

    def __agents_bind_function_tool__(self, function_tool: FunctionTool) -> Any:
        return self

    def prepare_arguments(self, input: str, tool_name: str) -> Any:
        """What the framework needs to know before it asks for approval."""
        prepare = getattr(self._tool.on_invoke_tool, "prepare_arguments", None)
        return prepare(input, tool_name) if prepare else None

    async def __call__(self, ctx: ToolContext[Any], input: str) -> Any:
        """The World's answer. The tool's own policy handles a failure, but not a refusal."""
        try:
            return await self._checked(ctx, input)
        except GreenroomError:
            raise
        except Exception as error:
            result = await maybe_invoke_function_tool_failure_error_function(
                function_tool=self._twin, context=ctx, error=error
            )
            if result is None:
                raise
            return result

    async def _checked(self, ctx: ToolContext[Any], input: str) -> Any:
        """Let the framework check the arguments, if it is the one that checks them."""
        ctx._function_tool_arguments = None
        tool, origin = self._tool, origin_of(self._tool)
        if origin.fn is tool:
            return await self._ask(ctx, input, args_of(input), origin)

        async def ask(checked: dict[str, Any]) -> Any:
            given = args_of(input)
            if given.keys() <= checked.keys():
                checked = {name: value for name, value in checked.items() if name in given}
            return await self._ask(ctx, input, checked, origin)

        with ContextSetting(_asking, ask):
            return await _checker(origin.fn, tool)(ctx, input)

    async def _ask(self, ctx: ToolContext[Any], input: str, checked: Args, origin: Origin) -> Any:
        args = cast("dict[str, Json]", jsonable(checked))
        request = ToolRequest(ctx.tool_call_id, self._tool.name, args, agent_of(ctx), origin=origin)
        body = _body_of(self._tool)

        async def run() -> Any:
            # An agent that the body starts is not part of this run: its calls are asked about separately.
            with (
                ContextSetting(RUN, None),
                ContextSetting(LEVEL, None),
                _passed.during((ctx, request.tool)),
                decided(_server_tool(body) or request.tool),
            ):
                return await body(ctx, input)

        return await self._answered(request, run)

    async def _answered(self, request: ToolRequest, run: Callable[[], Any]) -> Any:
        """What the framework gets: the real result, or the World's answer instead."""
        caller = self._caller
        outcome, kept = await caller.ask_tool(caller.place_tool(request), run, result_as_json)
        outcome = refuse_to_wait(caller, request.tool, outcome)
        if outcome.error:
            raise kept.error or ToolError(outcome.error)
        return kept.real if kept.matches(outcome.value) else as_returned(outcome.value)


class Delegation(ToolGate):
    """Replaces the run of an agent that is used as a tool: a call with its own level inside."""

    async def _checked(self, ctx: ToolContext[Any], input: str) -> Any:
        """What the agent answered, or what a mock answers instead; a pause inside leaves the call open."""
        run, body = cast(FrameworkRun, self._caller), _body_of(self._tool)
        call_id, args = ctx.tool_call_id, args_of(input)
        level = run.level.inside(args["input"] if args.keys() == {"input"} else jsonable(args))
        path = run.places.pop(call_id, None)
        if path is not None:
            level.go_on(path)

        async def work() -> Any:
            with ContextSetting(LEVEL, level):
                try:
                    result = await body(ctx, input)
                except Exception as error:
                    level.fail(error)
                    raise
            if _paused(ctx):
                run.places[call_id] = level.path
                raise CallPaused(RuntimeError(result))
            level.leave()
            return result

        request = ToolRequest(call_id, self._tool.name, args, delegates=True, again=bool(path))
        try:
            return await self._answered(request, work)
        except CallPaused as paused:
            return paused.pause.args[0]


class InnerDelegation(ToolGate):
    """Replaces the run of an agent that is used as a tool inside something else, where it has no level of its own."""

    async def _checked(self, ctx: ToolContext[Any], input: str) -> Any:
        """What the agent answered, or what a mock answers instead."""
        name, args = self._tool.name, args_of(input)

        async def run() -> Any:
            with _passed.during((ctx, name)):
                return await _body_of(self._tool)(ctx, input)

        return await self._answered(
            ToolRequest(ctx.tool_call_id, name, args, agent_of(ctx), delegates=True), run
        )


def is_delegation(tool: FunctionTool) -> bool:
    """Whether a tool is another agent, run as the framework runs one."""
    # Compared by code object: wrappers copy a function's attributes, but not its code.
    invoker = tool.on_invoke_tool
    if type(invoker) is not _FailureHandlingFunctionToolInvoker:
        return False
    code = getattr(_body_of(tool), "__code__", None)
    return any(code is own for own in _DELEGATING) and hasattr(tool, "_agent_instance")


def agent_of(ctx: Any) -> str:
    """The agent whose call this is; "" if the framework does not say."""
    return getattr(getattr(ctx, "agent", None), "name", "")


def is_passed(ctx: object, name: str) -> bool:
    """Whether the World allowed this tool's call of this context, and its body is running.

    A body may hand its own context on: to the tool that it wraps, which has its name, or to another one.
    """
    of, tool = _passed.here() or (None, "")
    return of is ctx and tool == name


def _server_tool(body: object) -> str:
    """The tool of an MCP server that a body calls, under the server's name for it; "" if it does not."""
    if isinstance(body, functools.partial) and body.func == MCPUtil.invoke_mcp_tool:
        return body.args[1].name
    return ""


def _body_of(tool: FunctionTool) -> Check:
    """A tool's body, without its policy for failures."""
    return getattr(tool.on_invoke_tool, "_invoke_tool_impl", tool.on_invoke_tool)


def origin_of(tool: FunctionTool) -> Origin:
    """The author's function behind a tool, or the tool itself."""
    return Origin(getattr(tool, "__wrapped__", None) or tool, tool)


def _checker(function: Any, tool: FunctionTool) -> Check:
    """The framework's own check of a function's arguments, followed only by asking the World."""
    known = _checkers.get(function)
    if known is None:
        signature = inspect.signature(function)

        @functools.wraps(function)
        async def stand_in(*args: Any, **given: Any) -> Any:
            ask = _asking.get()
            assert ask is not None
            found: Args = {}
            for name, value in signature.bind(*args, **given).arguments.items():
                if signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD:
                    found |= value
                elif not isinstance(value, ToolContext):  # the framework injects the context
                    found[name] = value
            return await ask(found)

        checker = function_tool(
            stand_in,
            name_override=tool.name,
            strict_mode=tool.strict_json_schema,
            failure_error_function=None,
        )
        # The signature is read by now; a value that refers to its weak key would never be freed.
        del stand_in.__wrapped__
        known = _checkers[function] = _body_of(checker)
    return known


def _paused(ctx: ToolContext[Any]) -> bool:
    """Whether the agent inside waits for an approval."""
    from agents.agent_tool_state import peek_agent_tool_run_result

    if ctx.tool_call is None:
        return False
    scope = getattr(ctx, "_agent_tool_state_scope_id", None)
    result: Any = peek_agent_tool_run_result(ctx.tool_call, scope_id=scope)
    return bool(getattr(result, "interruptions", None))


def _named(args: tuple[Any, ...], given: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a question by name, however they were passed."""
    return dict(zip(_ORDER, args, strict=False)) | given


async def _read(stream: AsyncIterator[Any]) -> list[Any]:
    """All events of a streamed reply, each passed on to the listener."""
    events: list[Any] = []
    async for event in stream:
        if event.type == "response.output_text.delta":
            await send_piece(listener(), event.delta)
        events.append(event)
    return events


def _last_response(events: list[Any]) -> ModelResponse:
    for event in reversed(events):
        if (found := response_in(event)) is not None:
            return found
    raise AgentFailed("the model's stream ended without a completed response.")


def _unheld(given: dict[str, Any]) -> str:
    """What in a request would let the provider act or remember without the tool gate; "" if nothing."""
    for tool in given["tools"]:
        if not isinstance(tool, FunctionTool):
            return (
                f"gives its model a {type(tool).__name__}, which runs where the tool gate cannot intercept it. "
                f"Rehearse with a function tool instead."
            )
    for name in ("prompt", "conversation_id", "previous_response_id"):
        if given.get(name) is not None:
            return f"uses {name}, which lives at the model's provider, where it cannot be seen."
    settings = given["model_settings"]
    for name in ("extra_body", "extra_args"):
        extra: Any = getattr(settings, name, None)
        if isinstance(extra, dict) and "tools" in extra:
            return f"gives its model tools by {name}, which run where the tool gate cannot intercept them."
    return ""
