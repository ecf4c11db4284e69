"""Who answers the calls of a run: the World it was handed, or the host of what it runs inside."""

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, Protocol

from pydantic_ai import Agent

from greenroom.backends.foreign import Invocation, Kept, call_tool, visit_tool
from greenroom.errors import GreenroomError, ToolRefused
from greenroom.ledger.plain import plain
from greenroom.ledger.records import record
from greenroom.models.model import ModelBody, ModelReply, ModelRequest
from greenroom.world.presence import Host, model_host, tool_host
from greenroom.world.world import Pending, Returned, ToolRequest

Run = Callable[[], Awaitable[Any]]


class Gate(Protocol):
    """Leads what a run would do through a World."""

    @property
    def agent(self) -> str:
        """The name of the agent that runs; "" if none does."""
        ...

    async def call_tool(
        self, request: ToolRequest, run: Run, told: Callable[[Any], Any] | None = None
    ) -> tuple[Returned | Pending, Kept]:
        """The World's answer, and what the real tool gave or raised if it ran."""
        ...

    async def call_model(self, request: ModelRequest, body: ModelBody) -> ModelReply:
        """The World's reply."""
        ...

    def refuse(self, error: GreenroomError) -> GreenroomError:
        """Let an error of ours end the case, whatever the framework makes of it."""
        ...


class HandedOver:
    """The gate of the one run that a backend begins: its calls stand at its own path."""

    __slots__ = ("_is_begun", "_runs", "agent", "invocation", "path")

    def __init__(
        self, invocation: Invocation, runs: Agent[Any, Any], agent: str, path: str
    ) -> None:
        self.invocation = invocation
        self.agent = agent
        self.path = path
        self._runs = runs
        self._is_begun = False

    def takes(self, agent: Agent[Any, Any]) -> bool:
        """Whether this is the run that was begun; what else runs meanwhile runs inside it."""
        if agent is not self._runs or self._is_begun:
            return False
        self._is_begun = True
        return True

    async def call_tool(
        self, request: ToolRequest, run: Run, told: Callable[[Any], Any] | None = None
    ) -> tuple[Returned | Pending, Kept]:
        """The World's answer, and what the real tool gave or raised if it ran."""
        tool, index = request.tool, self.invocation.index
        call_id = request.id
        if not call_id:
            before = sum(called.tool == tool for called in index.issued)
            call_id = self.invocation.world.new_id(self.path, "call", tool, before)
        n = index.call_number(tool, call_id, self.path)
        args = plain(dict(request.args), f"arguments of {tool!r}")
        asked = replace(request, id=call_id, args=args, path=self.path, n=n)
        return await call_tool(self.invocation, asked, run, told)

    async def call_model(self, request: ModelRequest, body: ModelBody) -> ModelReply:
        """The World's reply."""
        n = self.invocation.replies(self.agent)
        asked = replace(request, path=self.path, n=n)
        return await self.invocation.routed(self.invocation.world.call_model(asked, body))

    def refuse(self, error: GreenroomError) -> GreenroomError:
        """Let an error of ours end the case, whatever the framework makes of it."""
        return self.invocation.keep(error)


@record
class Inside:
    """A run inside something else: a function, a tool, a hook of another run."""

    agent: str


@record
class Visiting:
    """The gate of a run inside something else, for one call: the host fills in where it stands."""

    host: Host
    agent: str

    async def call_tool(
        self, request: ToolRequest, run: Run, told: Callable[[Any], Any] | None = None
    ) -> tuple[Returned | Pending, Kept]:
        """The host's answer, and what the real tool gave or raised if it ran."""
        return await visit_tool(self.host, replace(request, path=self.agent), run, told)

    async def call_model(self, request: ModelRequest, body: ModelBody) -> ModelReply:
        """The host's reply."""
        return await self.host.call_model(request, body)

    def refuse(self, error: GreenroomError) -> GreenroomError:
        """Let an error of ours end the case, whatever the framework makes of it."""
        return self.host.refuse(error)


STAGE: ContextVar[HandedOver | Inside | None] = ContextVar("pydantic_ai_stage", default=None)
"""The run that the running code belongs to; none in the body of a tool or a model."""


def tool_gate(origin: object, name: str) -> Gate | None:
    """Who answers a tool call made here; None: no rehearsal has a say, and the tool may run."""
    stage = STAGE.get()
    if type(stage) is HandedOver:
        return stage
    host = tool_host(origin, name)
    return None if host is None else Visiting(host, stage.agent if stage is not None else "")


def model_gate() -> Gate | None:
    """Who answers a model call made here; None: the model is asked as it is."""
    stage = STAGE.get()
    if type(stage) is HandedOver:
        return stage
    host = model_host()
    return None if host is None else Visiting(host, stage.agent if stage is not None else "")


def refused(gate: Gate, what: str) -> GreenroomError:
    """An error that ends the case, whatever the framework makes of it."""
    whose = f"agent {gate.agent!r}" if gate.agent else "the code of this case"
    return gate.refuse(ToolRefused(f"{whose} {what}"))
