"""Who asks the World for an agent at work: the run it was handed over for, or whoever hosts it."""

# The framework is half typed, and its seams are its own affair.
# pyright: reportUnknownMemberType=false

from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from greenroom.backends.foreign import Kept, call_tool, visit_tool
from greenroom.backends.openai_agents.run import STAGE, FrameworkRun
from greenroom.errors import AgentFailed, GreenroomError
from greenroom.ledger.plain import Json
from greenroom.models.model import ModelBody, ModelReply, ModelRequest
from greenroom.world.presence import Host, model_host, tool_host
from greenroom.world.world import Pending, Returned, ToolRequest

MakeRequest = Callable[[str, int], ModelRequest]
"""Takes the path and the number of a question."""


class Caller(Protocol):
    """Asks the World for one agent."""

    def refuse(self, error: GreenroomError) -> GreenroomError:
        """Let this error end the trial, whoever swallows it; given back to be raised."""
        ...

    def new_id(self, *parts: object) -> str:
        """An id that is the same whenever the same run comes to the same place."""
        ...

    async def ask_model(self, agent: str, make: MakeRequest, body: ModelBody) -> ModelReply:
        """The model's answer to an agent."""
        ...

    async def ask_tool(
        self, request: ToolRequest, run: Callable[[], Awaitable[Any]]
    ) -> tuple[Returned, Kept]:
        """The tool's answer, and what it gave or raised if it ran; the path names the agent."""
        ...


def model_caller() -> Caller | None:
    """Who asks models for the agent that runs here; None: it asks by itself."""
    stage = STAGE.get()
    if stage is not None:
        return HandedOver(stage)
    host = model_host()
    return None if host is None else Visitor(host)


def tool_caller(origin: object, name: str) -> Caller | None:
    """Who asks for this tool; None: it runs. Raises where nobody may call tools."""
    stage = STAGE.get()
    if stage is not None:
        return HandedOver(stage)
    host = tool_host(origin, name)
    return None if host is None else Visitor(host)


class HandedOver:
    """The run that an agent was handed over for: it knows levels, pauses and its own history."""

    __slots__ = ("stage",)

    def __init__(self, stage: FrameworkRun) -> None:
        self.stage = stage

    def refuse(self, error: GreenroomError) -> GreenroomError:
        """Keep the error: it decides how the invocation ends."""
        return self.stage.invocation.keep(error)

    def new_id(self, *parts: object) -> str:
        """An id of the World."""
        return self.stage.invocation.world.new_id(*parts)

    async def ask_model(self, agent: str, make: MakeRequest, body: ModelBody) -> ModelReply:
        """Ask at the agent's place in the run."""
        stage = self.stage
        request = make(stage.level.enter(agent), stage.replies(agent))
        return await stage.invocation.routed(stage.invocation.world.call_model(request, body))

    async def ask_tool(
        self, request: ToolRequest, run: Callable[[], Awaitable[Any]]
    ) -> tuple[Returned, Kept]:
        """Ask at the place of the agent that is at work."""
        invocation, path = self.stage.invocation, self.stage.level.path
        n = invocation.index.call_number(request.tool, request.id, path)
        args: dict[str, Json] = dict(request.args)
        placed = ToolRequest(request.id, request.tool, args, path, origin=request.origin, n=n)
        outcome, kept = await call_tool(invocation, placed, run)
        if isinstance(outcome, Pending):
            raise self.refuse(
                AgentFailed(
                    f"tool {request.tool!r} waits for its user, which its framework cannot do."
                )
            )
        return outcome, kept


class Visitor:
    """An agent inside a function, a step, a tool or a thread; the host knows where it stands."""

    __slots__ = ("_host",)

    def __init__(self, host: Host) -> None:
        self._host = host

    def refuse(self, error: GreenroomError) -> GreenroomError:
        """Let this error end the trial."""
        return self._host.refuse(error)

    def new_id(self, *parts: object) -> str:
        """An id of the World."""
        return self._host.new_id(*parts)

    async def ask_model(self, agent: str, make: MakeRequest, body: ModelBody) -> ModelReply:  # noqa: ARG002
        """Ask the host, who fills in place and number."""
        return await self._host.call_model(make("", 0), body)

    async def ask_tool(
        self, request: ToolRequest, run: Callable[[], Awaitable[Any]]
    ) -> tuple[Returned, Kept]:
        """Ask the host, who knows where the agent of that name stands."""
        return await visit_tool(self._host, request, run)
