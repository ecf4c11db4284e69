"""The gate of a run: its models, tools and output functions ask the World."""

from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, cast

from pydantic_ai import RunContext
from pydantic_ai.exceptions import CallDeferred, ToolFailed
from pydantic_ai.messages import ModelMessage, ModelResponse, ToolCallPart, ToolReturn
from pydantic_ai.models import (
    CompletedStreamedResponse,
    Model,
    ModelRequestParameters,
    StreamedResponse,
)
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.output import OutputContext
from pydantic_ai.settings import ModelSettings
from pydantic_ai.toolsets import (
    AbstractToolset,
    CombinedToolset,
    DynamicToolset,
    FunctionToolset,
    ToolsetTool,
    WrapperToolset,
)

from greenroom.backends.foreign import Invocation, Kept, Origin, call_tool, jsonable
from greenroom.backends.pydantic_ai.facts import native_kinds
from greenroom.backends.pydantic_ai.handing import hands_on
from greenroom.backends.pydantic_ai.translation import reply_of, request_of, response_of
from greenroom.errors import GreenroomError, ToolRefused
from greenroom.ledger.plain import Json, plain
from greenroom.models.model import ModelReply, ModelRequest, OnDelta
from greenroom.world.world import Pending, Returned, ToolRequest

_IN_BODY: ContextVar[bool] = ContextVar("in_body", default=False)


@contextmanager
def inside_a_body() -> Generator[None]:
    """While a tool runs that its author named: what it does inside is its own affair."""
    token = _IN_BODY.set(True)
    try:
        yield
    finally:
        _IN_BODY.reset(token)


def is_inside_a_body() -> bool:
    """Whether a tool is running that its author named."""
    return _IN_BODY.get()


class Gate:
    """Leads everything one run would do through the World of its invocation."""

    __slots__ = ("agent", "invocation", "path", "stands")

    def __init__(self, invocation: Invocation, agent: str, path: str) -> None:
        self.invocation = invocation
        self.agent = agent
        self.path = path
        self.stands = False
        """Whether the framework has built a run around it."""

    def model(self, model: Model, last: "GatedModel | None") -> "GatedModel":
        """A model that asks the World first: itself if it does already, or the last one around it.

        The gate does not keep it, since it keeps the gate: a ring would outlive the run.
        """
        # By type, since the framework's classes take long to tell who belongs to them.
        if type(model) is GatedModel and model.gate is self:
            return model
        return last if last is not None and last.wrapped is model else GatedModel(model, self)

    def toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any]:
        """The same tree of toolsets with every leaf gated."""
        self.stands = True
        return gated(toolset, self)

    def refused(self, what: str) -> GreenroomError:
        """An error that ends the case, whatever the framework makes of it."""
        return self.invocation.keep(ToolRefused(f"agent {self.agent!r} {what}"))

    def check_tools(self, toolset: AbstractToolset[Any], inner: AbstractToolset[Any]) -> None:
        """Refuse tools that somebody put around the gated ones: no gate would hold them."""
        around: list[Any] = [toolset]
        while around:
            outer: Any = around.pop()
            while not self._holds(outer, inner) and _only_wraps(cast("Any", type(outer))):
                outer = outer.wrapped
            if type(outer) is CombinedToolset and outer is not inner:
                around += outer.toolsets
            elif not self._holds(outer, inner):
                raise self.refused(
                    "has a capability whose get_wrapper_toolset brings tools of its own, or lists "
                    "them itself; such tools would run past the gate. Give them to the agent, or let "
                    "get_toolset bring them; to leave some out, use toolset.filtered(...)."
                )

    def _holds(self, toolset: Any, inner: AbstractToolset[Any]) -> bool:
        return toolset is inner or (type(toolset) is GatedToolset and toolset.gate is self)

    def check_model(self, model: Model) -> None:
        """Refuse a model that was put in the place of the gated one."""
        inner: Any = model
        while type(inner) is not GatedModel or inner.gate is not self:
            inner = getattr(inner, "wrapped", None)
            if inner is None:
                raise self.refused(
                    "has a capability whose get_wrapper_model puts another model in place of the one "
                    "it is given, which would be asked past the gate. Let resolve_model_id or "
                    "get_model bring it."
                )

    async def output(
        self, ctx: RunContext[Any], output_context: OutputContext, output: Any, handler: Any
    ) -> Any:
        """An output function acts like a tool, so it is asked for like one."""
        if not output_context.has_function:
            return await handler(output)
        call = output_context.tool_call
        tool = output_context.function_name or (call.tool_name if call else "output")
        told = jsonable(output)
        args = cast("dict[str, Json]", told) if isinstance(told, dict) else {"output": told}
        step = self.invocation.world.new_id(self.path, "output", ctx.run_step)
        request = self.request(call.tool_call_id if call else step, tool, args)

        async def run() -> Any:
            with inside_a_body():
                return await handler(output)

        outcome, kept = await call_tool(self.invocation, request, run)
        return settled(outcome, kept)

    def request(
        self, call_id: str, tool: str, args: dict[str, Json], origin: Any = None
    ) -> ToolRequest:
        """A tool call on its way to the World."""
        n = self.invocation.trail.call_number(tool, call_id, self.path)
        told = plain(args, f"arguments of {tool!r}")
        return ToolRequest(call_id, tool, told, self.path, origin=origin, n=n)


def settled(outcome: Returned | Pending, kept: Kept) -> Any:
    """What the framework is to make of the World's answer."""
    if isinstance(outcome, Pending):
        raise CallDeferred
    if outcome.error:
        # What the real tool raised is the framework's to judge; a mock's failure the model may see.
        raise kept.error or ToolFailed(outcome.error)
    return kept.real if kept.matches(outcome.value) else outcome.value


_LISTING = ("apply", "for_run", "for_run_step", "get_tools", "visit_and_replace")
"""By these the framework finds the tools of a toolset."""


def gated(toolset: AbstractToolset[Any], gate: Gate) -> AbstractToolset[Any]:
    """A toolset whose tools ask the World; the framework's own wrappings stay around the leaves.

    A wrapping of the user's is gated as a whole, since it may do the work itself.
    """
    kind = type(toolset)
    if not kind.__module__.startswith("pydantic_ai."):
        return GatedToolset(toolset, gate)
    return _way_in(kind)(toolset, gate)


@cache
def _only_wraps(kind: Any) -> bool:
    """Whether toolsets of a class have no tools but those of the one they wrap."""
    ways = [(getattr(kind, name, None), getattr(WrapperToolset, name)) for name in _LISTING]
    is_theirs: bool = kind.__module__.startswith("pydantic_ai.")
    return issubclass(kind, WrapperToolset) and (is_theirs or all(a is b for a, b in ways))


@cache
def _way_in(kind: type) -> Callable[[Any, Gate], AbstractToolset[Any]]:
    """How the framework's own kinds are gated, since it takes long to tell who is one."""
    if issubclass(kind, CombinedToolset):
        return _gated_parts
    if issubclass(kind, WrapperToolset):
        return _gated_inside
    return _gated_factory if issubclass(kind, DynamicToolset) else GatedToolset


def _gated_parts(toolset: CombinedToolset[Any], gate: Gate) -> AbstractToolset[Any]:
    return replace(toolset, toolsets=[gated(inner, gate) for inner in toolset.toolsets])


def _gated_inside(toolset: WrapperToolset[Any], gate: Gate) -> AbstractToolset[Any]:
    return replace(toolset, wrapped=gated(toolset.wrapped, gate))


def _gated_factory(toolset: DynamicToolset[Any], gate: Gate) -> DynamicToolset[Any]:
    """What the user's function makes in the run is gated as soon as it is made."""
    made: dict[int, tuple[AbstractToolset[Any], AbstractToolset[Any]]] = {}

    async def factory(ctx: RunContext[Any]) -> AbstractToolset[Any] | None:
        inner: Any = toolset.toolset_func(ctx)
        if hasattr(inner, "__await__"):
            inner = await inner
        if inner is None:
            return None
        # One gated toolset for each made one, or the framework would leave and enter it every step.
        _, twin = made.setdefault(id(inner), (inner, gated(inner, gate)))
        return twin

    return DynamicToolset(factory, per_run_step=toolset.per_run_step, id=toolset.id)


@hands_on("get_tools", "_collect_instruction_contributions", "apply")
@dataclass
class GatedToolset(WrapperToolset[Any]):
    """A toolset whose tools run only if the World says so."""

    gate: Gate

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        """The World's answer to a call whose arguments the framework has checked."""
        call = _call_of_model(ctx)
        request = self.gate.request(
            ctx.tool_call_id or "",
            call.tool_name if call else name,
            _given(tool_args, call),
            self._origin(name, tool),
        )

        async def run() -> Any:
            with inside_a_body():
                return await self.wrapped.call_tool(name, tool_args, ctx, tool)

        outcome, kept = await call_tool(self.gate.invocation, request, run, _told)
        return settled(outcome, kept)

    def _origin(self, name: str, tool: ToolsetTool[Any]) -> Origin | None:
        if not isinstance(self.wrapped, FunctionToolset):
            return None
        known = self.wrapped.tools.get(getattr(tool, "original_name", None) or name)
        return Origin(known.function, known) if known else None


def _told(value: Any) -> Json:
    return jsonable(value.return_value if isinstance(value, ToolReturn) else value)  # pyright: ignore[reportUnknownMemberType]


def _call_of_model(ctx: RunContext[Any]) -> ToolCallPart | None:
    """The call as the model made it: at the leaf, prefixes and renamings are off its name."""
    for message in reversed(ctx.messages):
        if isinstance(message, ModelResponse):
            for call in message.tool_calls:
                if call.tool_call_id == ctx.tool_call_id:
                    return call
    return None


def _given(tool_args: dict[str, Any], call: ToolCallPart | None) -> dict[str, Json]:
    """The checked arguments without the defaults that nobody gave."""
    told = cast("dict[str, Json]", jsonable(tool_args))
    raw = call.args_as_dict() if call else told
    # A tool of one model-typed argument is told its fields: then the names differ, and all is kept.
    if not set(raw) <= set(told):
        return told
    return {name: value for name, value in told.items() if name in raw}


@hands_on(
    "_run_scope",
    "_start_request_deadline",
    "_unified_effort",
    "customize_request_parameters",
    "model_id",
    "model_name",
    "prepare_messages",
    "prepare_request",
    "settings",
    "system",
)
class GatedModel(WrapperModel):
    """A model that is asked only through the World."""

    def __init__(self, wrapped: Model, gate: Gate) -> None:
        super().__init__(wrapped)
        self.gate = gate

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """The World's reply; the real model's own response wherever that is what was replied."""
        invocation, agent, kept = self.gate.invocation, self.gate.agent, Kept()
        if model_request_parameters.native_tools:
            self._refuse_native(model_request_parameters)
        request = request_of(
            messages,
            model_request_parameters,
            agent=agent,
            node=agent,
            path=self.gate.path,
            model=self.wrapped.model_name,
            n=invocation.replies(agent),
        )

        async def body(_request: ModelRequest, _on_delta: OnDelta | None) -> ModelReply:
            response = await self.wrapped.request(
                messages, model_settings, model_request_parameters
            )
            return kept.tell(response, reply_of(response))

        reply = await invocation.routed(invocation.world.call_model(request, body))
        return kept.real if kept.matches(reply) else response_of(reply)

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,  # noqa: ARG002
    ) -> AsyncGenerator[StreamedResponse]:
        """The whole reply, told once more as a stream to whoever listens."""
        response = await self.request(messages, model_settings, model_request_parameters)
        yield CompletedStreamedResponse(
            response, model_request_parameters=model_request_parameters, replay_events=True
        )

    def _refuse_native(self, parameters: ModelRequestParameters) -> None:
        if kinds := native_kinds(parameters.native_tools):
            raise self.gate.refused(
                f"gives its model {', '.join(kinds)}, which would run at the model's provider, where "
                f"no gate can hold it. Rehearse with a function tool."
            )


def _refusing(name: str) -> Any:
    def refused(self: GatedModel, *_: Any, **__: Any) -> Any:
        raise self.gate.refused(
            f"has its model do {name!r}, which goes to the provider past the World. Rehearse without "
            f"the capability that asks for it."
        )

    return refused


# What else goes to a provider. A version that does not know it has no use for it either.
for _name in (
    *("batch_create", "batch_status", "batch_results", "batch_cancel"),
    *("compact_messages", "count_tokens", "cancel_suspended_response"),
):
    setattr(GatedModel, _name, _refusing(_name))
