"""An agent that acts for real, as `perform` and `serve` are asked to run it."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from greenroom.apps.cli.event_loop import loaded
from greenroom.backends.answered import with_model
from greenroom.backends.registry import backend_for
from greenroom.suite.inputs.sources import as_middleware, as_model_given, as_resources


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveAgent:
    """The agent, what it works with, and the limits of each of its turns."""

    agent: str
    model: str
    store: str
    resources: str
    middleware: Sequence[str]
    max_model_calls: int
    seconds: float | None

    def load(self, runner: asyncio.Runner) -> tuple[Any, Any]:
        """The named agent, and the agent to run: the same one, or a copy with the given model."""
        other = as_model_given(self.model)
        found = runner.run(loaded(self.agent))
        return found, found if other is None else with_model(backend_for(found), other)

    def turn_options(self) -> dict[str, Any]:
        """The options of every turn."""
        return {
            "resources": as_resources(self.resources) if self.resources else None,
            "middleware": getattr(as_middleware(self.middleware), "members", ()),
            "max_model_calls": self.max_model_calls,
            "seconds": self.seconds,
        }
