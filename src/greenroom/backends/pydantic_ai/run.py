"""The run that the running code belongs to, and its caller to the World."""

from contextvars import ContextVar
from typing import Any

from msgspec import Struct
from pydantic_ai import Agent

from greenroom.backends.callers import (
    Caller,
    HostCaller,
    RunCaller,
    inner_model_caller,
    inner_tool_caller,
)
from greenroom.backends.invocation import Invocation
from greenroom.errors import GreenroomError, ToolRefused
from greenroom.world.call_context import is_asked


class FrameworkRun(RunCaller):
    """The run that a backend begins: its calls are placed at its own path."""

    __slots__ = ("_is_begun", "_runs")

    def __init__(
        self, invocation: Invocation, runs: Agent[Any, Any], agent: str, path: str
    ) -> None:
        super().__init__(invocation, agent, path)
        self._runs = runs
        self._is_begun = False

    @property
    def is_answered(self) -> bool:
        """Whether one model answers in place of all of the agent's."""
        return getattr(self.invocation.world, "model", None) is not None

    def begins(self, agent: Agent[Any, Any]) -> bool:
        """Whether this is the backend's own run; other runs meanwhile are inside it."""
        if agent is not self._runs or self._is_begun:
            return False
        self._is_begun = True
        return True


class InnerRun(Struct, frozen=True):
    """A run inside something else: a function, a tool, a hook of another run."""

    agent: str


RUN: ContextVar[FrameworkRun | InnerRun | None] = ContextVar("pydantic_ai_run", default=None)
"""The run that the running code belongs to; none in the body of a tool or a model."""


def tool_caller(origin: object, name: str) -> FrameworkRun | HostCaller | None:
    """The caller for a tool that is called here; None if there is no rehearsal and the tool simply runs."""
    run = RUN.get()
    if type(run) is FrameworkRun:
        return run
    return inner_tool_caller(origin, name, run.agent if run is not None else "")


def model_caller() -> FrameworkRun | HostCaller | None:
    """The caller for a model that is asked here; None if the model is asked directly."""
    run = RUN.get()
    # The substitute model may be one of the framework's models itself.
    if type(run) is FrameworkRun and not is_asked():
        return run
    return inner_model_caller(run.agent if run is not None else "")


def refused(caller: Caller, what: str) -> GreenroomError:
    """An error that ends the case, whatever the framework makes of it."""
    whose = f"agent {caller.agent!r}" if caller.agent else "the code of this case"
    return caller.refuse(ToolRefused(f"{whose} {what}"))
