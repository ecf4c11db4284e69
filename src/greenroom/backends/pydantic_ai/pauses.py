"""Agents that can pause: any tool may turn out to need the user's answer.

The framework lets a run pause only if its output type allows that. Changing the type would rebuild the
whole output schema for every run; so the agent is run by a twin that shares everything with it, except that
its schema allows the pause.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from copy import copy
from typing import Any

from pydantic_ai import Agent, DeferredToolRequests

from greenroom.backends.pydantic_ai.facts import output_parts


class _Pausing(Agent[Any, Any]):
    """An agent whose runs may pause."""

    # Its own attributes, in addition to those it shares with the agent.
    __slots__ = ("allowing", "original")

    allowing: tuple[Any, Any]
    """The agent's own schema, and its copy that allows a pause."""
    original: Agent[Any, Any]

    @asynccontextmanager
    async def iter(self, *given: Any, **named: Any) -> AsyncGenerator[Any]:  # pyright: ignore[reportIncompatibleMethodOverride] - as it is called
        """A run in which the author's code sees the author's agent, not the twin."""
        async with super().iter(*given, **named) as run:
            run.ctx.deps.agent = self.original
            yield run

    def _prepare_output_schema(self, output_type: Any) -> Any:
        own = super()._prepare_output_schema(output_type)
        known, schema = self.allowing
        if known is not own:
            schema = copy(own)
            schema.allows_deferred_tools = True
            self.allowing = own, schema
        return schema


def twin_of(agent: Agent[Any, Any]) -> Agent[Any, Any] | None:
    """The twin that runs an agent, or the agent if it can pause by itself; None if neither can."""
    if _says_so(agent):
        return agent
    schema = getattr(agent, "_output_schema", None)
    # Other versions of the framework may build the schema of a run elsewhere.
    if not hasattr(Agent, "_prepare_output_schema") or not hasattr(schema, "allows_deferred_tools"):
        return None
    # The twin would not have a method that was set on the object itself.
    if type(agent) is not Agent or any(callable(getattr(Agent, n, None)) for n in vars(agent)):
        return None
    twin = object.__new__(_Pausing)
    # They share one dict: later changes of the agent apply to its twin.
    object.__setattr__(twin, "__dict__", vars(agent))
    twin.allowing, twin.original = (None, None), agent
    return twin


def pausing_output(agent: Agent[Any, Any]) -> dict[str, Any]:
    """The output type for a run, so that an agent without a twin can pause."""
    # The framework accepts no output type together with output validators. Such an agent may run, and the
    # framework raises an error if it needs to pause.
    if _says_so(agent) or getattr(agent, "_output_validators", ()):
        return {}
    return {"output_type": [agent.output_type, DeferredToolRequests]}


def _says_so(agent: Agent[Any, Any]) -> bool:
    return any(part is DeferredToolRequests for part in output_parts(agent.output_type))
