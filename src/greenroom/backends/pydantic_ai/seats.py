"""Where a gate stands in a run: next to the real models, tools and output functions.

What the user put around those runs above it, wherever it stands.
"""

from collections.abc import AsyncIterable, Callable
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

from pydantic_ai import Agent, RunContext
from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering, WrapperCapability
from pydantic_ai.models import Model, ModelRequestContext
from pydantic_ai.output import OutputContext
from pydantic_ai.toolsets import AbstractToolset
from pydantic_ai.usage import RunUsage, UsageLimits

from greenroom.backends.pydantic_ai.gates import Gate
from greenroom.errors import ToolRefused
from greenroom.ledger.records import record


@dataclass(eq=False)
class Innermost(AbstractCapability[Any]):
    """The gate as one more capability of a run, inside all others."""

    gate: Gate

    def get_ordering(self) -> CapabilityOrdering:
        """Innermost: the user's own capabilities run above."""
        return CapabilityOrdering(position="innermost")

    def get_wrapper_model(self, model: Model) -> Model:
        """Whatever model serves an attempt, the World is asked first."""
        return self.gate.model(model)

    def get_wrapper_toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any]:
        """The same tree of toolsets with every leaf gated."""
        return self.gate.toolset(toolset)

    async def wrap_output_process(
        self, ctx: RunContext[Any], *, output_context: OutputContext, output: Any, handler: Any
    ) -> Any:
        """An output function acts like a tool, so it is asked for like one."""
        return await self.gate.output(ctx, output_context, output, handler)


@dataclass(eq=False)
class Around(WrapperCapability[Any]):
    """The gate around the capabilities that every agent has, in their place.

    The framework copies its context for each capability at each of its steps, so one more would
    cost more than all that the gate does.
    """

    gate: Gate

    def apply(self, visitor: Callable[[AbstractCapability[Any]], None]) -> None:
        """Whoever lists the capabilities of a run finds those of the agent."""
        self.wrapped.apply(visitor)

    async def for_run(self, ctx: RunContext[Any]) -> AbstractCapability[Any]:
        """Itself for the run it was made for; a run that a tool begins is that tool's affair."""
        return await (self.wrapped.for_run(ctx) if self.gate.stands else super().for_run(ctx))

    # Events are no affair of the gate, and there are many.
    @property
    def has_on_event(self) -> bool:
        """Whether the agent listens."""
        return self.wrapped.has_on_event

    @property
    def has_wrap_run_event_stream(self) -> bool:
        """Whether the agent has a part in its stream of events."""
        return self.wrapped.has_wrap_run_event_stream

    def wrap_run_event_stream(
        self, ctx: RunContext[Any], *, stream: AsyncIterable[Any]
    ) -> AsyncIterable[Any]:
        """The stream as the agent has it."""
        return self.wrapped.wrap_run_event_stream(ctx, stream=stream)

    def get_wrapper_model(self, model: Model) -> Model | None:
        """Whatever model serves an attempt, the World is asked first."""
        inner = self.gate.model(model)
        return self.wrapped.get_wrapper_model(inner) or (None if inner is model else inner)

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Put the gated model in before the framework asks for a wrapper, which it enters anew."""
        request = await self.wrapped.before_model_request(ctx, request_context)
        request.model = self.gate.model(request.model)
        return request

    def get_wrapper_toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any]:
        """The same tree of toolsets with every leaf gated."""
        inner = self.gate.toolset(toolset)
        return self.wrapped.get_wrapper_toolset(inner) or inner

    async def wrap_output_process(
        self, ctx: RunContext[Any], *, output_context: OutputContext, output: Any, handler: Any
    ) -> Any:
        """An output function acts like a tool, so it is asked for like one."""

        async def inner(output: Any) -> Any:
            return await self.gate.output(ctx, output_context, output, handler)

        return await self.wrapped.wrap_output_process(
            ctx, output_context=output_context, output=output, handler=inner
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


def _kinds(agent: Agent[Any, Any]) -> set[type]:
    found: list[AbstractCapability[Any]] = []
    agent.root_capability.apply(found.append)
    return {type(capability) for capability in found}


@cache
def _usual_kinds() -> set[type]:
    """The capabilities of an agent that was given none."""
    return _kinds(Agent())
