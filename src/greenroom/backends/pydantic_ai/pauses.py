"""Agents that can pause: every tool may turn out to be the user's to answer.

The framework lets a run pause only if its output type says so. Saying it in the type has the whole
schema of the output built again for every run; so the agent is run by a twin that shares all it has,
and whose own schema allows the pause.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from copy import copy
from typing import Any

from pydantic_ai import Agent, DeferredToolRequests

from greenroom.backends.pydantic_ai.facts import output_parts


class _Pausing(Agent[Any, Any]):
    """An agent whose runs may pause."""

    # Beside what it shares with the agent.
    __slots__ = ("allowing", "original")

    allowing: tuple[Any, Any]
    """The agent's own schema, and its copy that allows a pause."""
    original: Agent[Any, Any]

    @asynccontextmanager
    async def iter(self, *given: Any, **named: Any) -> AsyncGenerator[Any]:  # pyright: ignore[reportIncompatibleMethodOverride] - as it is called
        """A run in which the author's code meets the author's agent."""
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
    # Other versions of the framework may make the schema of a run elsewhere.
    if not hasattr(Agent, "_prepare_output_schema") or not hasattr(schema, "allows_deferred_tools"):
        return None
    # A method that was put into the object itself is not the twin's.
    if type(agent) is not Agent or any(callable(getattr(Agent, n, None)) for n in vars(agent)):
        return None
    twin = object.__new__(_Pausing)
    # One and the same: what is changed in the agent later is changed in its twin.
    object.__setattr__(twin, "__dict__", vars(agent))
    twin.allowing, twin.original = (None, None), agent
    return twin


def pausing_output(agent: Agent[Any, Any]) -> dict[str, Any]:
    """What a run is given as its output type, so that an agent without a twin can pause."""
    # The framework takes no type together with output validators. Such an agent may run, and says so itself
    # if it comes to a pause.
    if _says_so(agent) or getattr(agent, "_output_validators", ()):
        return {}
    return {"output_type": [agent.output_type, DeferredToolRequests]}


def _says_so(agent: Agent[Any, Any]) -> bool:
    return any(part is DeferredToolRequests for part in output_parts(agent.output_type))
