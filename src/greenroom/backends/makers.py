"""Agents that are created anew for every trial, because the author's object keeps state between runs."""

import inspect
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

from greenroom.backends.backend import Advance, Backend
from greenroom.backends.registry import backend_for
from greenroom.errors import AgentFailed, BadAgent
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.origin import summarize_error
from greenroom.ledger.plain import Json
from greenroom.world.world import World

Make = Callable[[], Any]


class PerCase:
    """A function that makes an agent, or an agent and the mocks that go with it."""

    def __init__(self, make: Make) -> None:
        if not callable(make) or isinstance(make, type):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise BadAgent(f"per_case({make!r}): give a function that makes the agent.")
        if inspect.iscoroutinefunction(make):
            raise BadAgent(f"per_case({make.__name__}): it is async; give a plain function.")
        self._make = make

    @property
    def function(self) -> str:
        """The name of the function."""
        return getattr(self._make, "__name__", type(self._make).__name__)

    def made(self) -> tuple[Backend, Mapping[str, Any]]:
        """A new agent for one trial, and mocks for tools that a case does not mock itself."""
        try:
            found = self._make()
        except Exception as error:
            why = f"{self.function}() could not make the agent: {summarize_error(error)}"
            raise AgentFailed(why) from error
        agent, mocks = found if isinstance(found, tuple) and len(found) == 2 else (found, {})  # pyright: ignore[reportUnknownVariableType,reportUnknownArgumentType]
        if agent is None or not isinstance(mocks, Mapping):
            raise BadAgent(
                f"{self.function}() made {found!r}; let it return the agent, or the agent and a dict of "
                f"mocks."
            )
        return backend_for(agent), mocks  # pyright: ignore[reportUnknownVariableType]

    @cached_property
    def sample(self) -> Backend:
        """An agent that is only inspected: what is known about it holds for all."""
        return self.made()[0]

    @property
    def snapshot(self) -> Json:
        """The agent as JSON."""
        return self.sample.snapshot

    @property
    def digest(self) -> str:
        """Changes whenever the agent does."""
        return self.sample.digest

    async def advance(self, ledger: Ledger, world: World) -> Advance:
        """Run the inspected agent; a trial runs its own."""
        return await self.sample.advance(ledger, world)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.sample, name)


def per_case(make: Make) -> PerCase:
    """An agent that `make` creates anew for every trial, so that trials share no state.

    `make` takes no arguments and returns the agent, or the agent and a dict of mocks, which answer where
    a case has none. On the command line `shop.py:make_agent()` means the same.
    """
    return PerCase(make)
