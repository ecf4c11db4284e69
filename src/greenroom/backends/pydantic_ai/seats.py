"""Where a gate stands in a run: next to the real models, tools and output functions.

What the user put around those runs above it, wherever it stands.
"""

from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from types import CoroutineType
from typing import Any, cast

from pydantic_ai import Agent, RunContext
from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering, WrapperCapability
from pydantic_ai.models import Model, ModelRequestContext
from pydantic_ai.output import OutputContext
from pydantic_ai.toolsets import AbstractToolset
from pydantic_ai.usage import RunUsage, UsageLimits

from greenroom.backends.pydantic_ai.gates import Gate, GatedModel, is_inside_a_body
from greenroom.backends.pydantic_ai.handing import hands_on
from greenroom.errors import ToolRefused
from greenroom.ledger.records import record


@dataclass(eq=False)
class Innermost(AbstractCapability[Any]):
    """The gate as one more capability of a run, inside all others."""

    gate: Gate
    model: GatedModel | None = None
    """The model it has put in last."""
    toolset: AbstractToolset[Any] | None = None
    """The tools it has gated."""

    def get_ordering(self) -> CapabilityOrdering:
        """Innermost: the user's own capabilities run above."""
        return CapabilityOrdering(position="innermost")

    def get_wrapper_model(self, model: Model) -> Model:
        """Whatever model serves an attempt, the World is asked first."""
        self.model = self.gate.model(model, self.model)
        return self.model

    def get_wrapper_toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any]:
        """The same tree of toolsets with every leaf gated."""
        self.toolset = self.gate.toolset(toolset)
        return self.toolset

    async def wrap_output_process(
        self, ctx: RunContext[Any], *, output_context: OutputContext, output: Any, handler: Any
    ) -> Any:
        """An output function acts like a tool, so it is asked for like one."""
        return await self.gate.output(ctx, output_context, output, handler)


@dataclass(eq=False)
class Outermost(AbstractCapability[Any]):
    """Looks at what the user's own capabilities have put around the gate."""

    innermost: Innermost

    def get_ordering(self) -> CapabilityOrdering:
        """Outermost: whatever was put around the gate is seen."""
        return CapabilityOrdering(position="outermost")

    async def before_model_request(
        self,
        ctx: RunContext[Any],  # noqa: ARG002 - as the framework has it
        request_context: ModelRequestContext,
    ) -> ModelRequestContext:
        """Put the gated model in before the user's own hooks, which may ask it."""
        request_context.model = self.innermost.get_wrapper_model(request_context.model)
        return request_context

    def get_wrapper_model(self, model: Model) -> None:
        """Refuse a model that does not ask the World."""
        self.innermost.gate.check_model(model)

    def get_wrapper_toolset(self, toolset: AbstractToolset[Any]) -> None:
        """Refuse tools that do not ask the World."""
        if self.innermost.toolset is not None:
            self.innermost.gate.check_tools(toolset, self.innermost.toolset)


def both_ends(gate: Gate) -> list[AbstractCapability[Any]]:
    """The gate as capabilities of one run: inside all others, and a look from outside."""
    innermost = Innermost(gate)
    return [innermost, Outermost(innermost)]


# What is not listed is wrapped as the framework wraps it, which comes to the same.
@hands_on(
    # Whoever lists the capabilities of a run finds those of the agent.
    "apply",
    "get_model",
    "_can_supply_model",
    "_model_is_default",
    "get_model_settings",
    "get_native_tools",
    "get_toolset",
    "get_default_run_id",
    "get_default_conversation_id",
    "get_run_clock",
    "has_resolve_model_id",
    "_has_get_workspace",
    "_prepare_workspace",
    "_prepare_run_context",
    "_prepare_event_dispatch",
    "_validate_runtime_capabilities",
    "before_run",
    "after_run",
    "wrap_run",
    "before_node_run",
    "after_node_run",
    "_has_wrap_node_run",
    "_has_on_node_run_error",
    "has_on_event",
    "listens_to",
    "has_wrap_run_event_stream",
    "wrap_run_event_stream",
    "_has_prepare_model_request",
    "after_model_request",
    "_has_wrap_model_request",
    "_has_on_model_request_error",
    "prepare_tools",
    "prepare_output_tools",
    "before_tool_validate",
    "after_tool_validate",
    "wrap_tool_validate",
    "before_tool_execute",
    "after_tool_execute",
    "wrap_tool_execute",
    "before_output_validate",
    "after_output_validate",
    "wrap_output_validate",
    "before_output_process",
    "after_output_process",
)
@dataclass(eq=False)
class Around(WrapperCapability[Any]):
    """The gate around the capabilities that every agent has, in their place.

    The framework copies its context for each capability at each of its steps, so one more would
    cost more than all that the gate does.
    """

    gate: Gate
    model: GatedModel | None = None
    """The model it has put in last."""

    is_silent: bool = False
    """Whether the agent's capabilities tell its model nothing, which takes them long to find."""

    async def for_run(self, ctx: RunContext[Any]) -> AbstractCapability[Any]:
        """Itself for the run it was made for; a run that a tool begins is that tool's affair."""
        if self.gate.stands:
            if not is_inside_a_body():
                raise self.gate.refused(
                    "is run once more by its own instructions or hooks, where no gate can hold it."
                )
            return await self.wrapped.for_run(ctx)
        bound = await super().for_run(ctx)
        if bound is not self and isinstance(bound, Around):
            bound.is_silent = False
        return bound

    def _collect_instructions(self) -> list[Any]:
        return [] if self.is_silent else super()._collect_instructions()

    def get_wrapper_model(self, model: Model) -> Model | None:
        """Whatever model serves an attempt, the World is asked first."""
        inner = self.model = self.gate.model(model, self.model)
        wrapper = self.wrapped.get_wrapper_model(inner)
        if wrapper is not None:
            self.gate.check_model(wrapper)
            return wrapper
        return None if inner is model else inner

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Put the gated model in before the framework asks for a wrapper, which it enters anew."""
        # Before the user's own hooks, which may ask it, and after them, for they may put in another.
        request_context.model = self.model = self.gate.model(request_context.model, self.model)
        request = await self.wrapped.before_model_request(ctx, request_context)
        request.model = self.model = self.gate.model(request.model, self.model)
        return request

    def get_wrapper_toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any]:
        """The same tree of toolsets with every leaf gated."""
        inner = self.gate.toolset(toolset)
        wrapper = self.wrapped.get_wrapper_toolset(inner)
        if wrapper is not None:
            self.gate.check_tools(wrapper, inner)
        return wrapper or inner

    def wrap_output_process(
        self, ctx: RunContext[Any], *, output_context: OutputContext, output: Any, handler: Any
    ) -> "CoroutineType[Any, Any, Any]":
        """An output function acts like a tool, so it is asked for like one."""

        async def inner(output: Any) -> Any:
            return await self.gate.output(ctx, output_context, output, handler)

        asked = inner if output_context.has_function else handler
        return self.wrapped.wrap_output_process(
            ctx, output_context=output_context, output=output, handler=asked
        )


@dataclass(kw_only=True)
class Witness(UsageLimits):
    """The framework's own limits, which it asks before every request: no gate, no request."""

    gate: Gate

    def check_before_request(self, usage: RunUsage) -> None:
        """Refuse a run that was not built around the gate."""
        if not self.gate.stands:
            raise self.gate.invocation.keep(
                ToolRefused(
                    f"agent {self.gate.agent!r} would run past the gate: its pydantic-ai does not "
                    f"take the capabilities that a run is given. Use another version of it."
                )
            )
        super().check_before_request(usage)


@record
class Taken:
    """What is found in a seat."""

    value: Around


Seat = ContextVar[Taken | None]


def seat_of(agent: Agent[Any, Any]) -> Seat | None:
    """Where this agent's capabilities can be replaced for a run; None if they are the user's own."""
    # The framework has no public name for it; where it is missing, a capability does the same.
    seat: Any = getattr(agent, "_override_root_capability", None)
    usable = isinstance(seat, ContextVar) and _kinds(agent) <= _usual_kinds()
    return cast("Seat", seat) if usable else None


def is_silent(agent: Agent[Any, Any]) -> bool:
    """Whether the capabilities of this agent have no instructions of their own."""
    return agent.root_capability.get_instructions() is None


def _kinds(agent: Agent[Any, Any]) -> set[type]:
    found: list[AbstractCapability[Any]] = []
    agent.root_capability.apply(found.append)
    return {type(capability) for capability in found}


@cache
def _usual_kinds() -> set[type]:
    """The capabilities of an agent that was given none."""
    return _kinds(Agent())
