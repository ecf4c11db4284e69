"""A graph, model or tool inside a function, a step, a tool or a thread: its host is asked."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from langchain_core.runnables.config import var_child_runnable_config

from greenroom.backends.foreign import Kept, visit_tool
from greenroom.backends.langgraph.run import Blocking
from greenroom.errors import GreenroomError
from greenroom.ledger.plain import Json
from greenroom.models.model import ModelBody, ModelReply, ModelRequest
from greenroom.world.presence import Host
from greenroom.world.threads import call_blocking
from greenroom.world.world import Returned, ToolRequest

T = TypeVar("T")


class Visitor:
    """Asks the host what a stage would ask the World; the host knows what was answered before."""

    __slots__ = ("_host", "twins")

    def __init__(self, host: Host) -> None:
        self._host = host
        self.twins: dict[int, tuple[Any, Any]] = {}

    @property
    def agent(self) -> str:
        """The agent at work, as far as the framework says."""
        return str(_metadata().get("lc_agent_name") or _metadata().get("langgraph_node") or "model")

    def refuse(self, error: GreenroomError) -> GreenroomError:
        """Let this error end the trial."""
        return self._host.refuse(error)

    def blocking(self, make: Blocking[T]) -> T:
        """What a coroutine gives, for a caller who cannot await; bodies run in the caller's thread."""
        return call_blocking(make)

    def answered(self) -> None:
        """What was answered before is the host's to know."""
        return

    def recorded(self, _: ToolRequest) -> None:
        """What was answered before is the host's to know."""
        return

    async def ask_model(self, make: Callable[..., ModelRequest], body: ModelBody) -> ModelReply:
        """The host's reply."""
        return await self._host.call_model(make(agent=self.agent, node=self.agent), body)

    async def ask_tool(
        self, request: ToolRequest, run: Callable[[], Awaitable[Any]]
    ) -> tuple[Returned, Kept]:
        """The host's answer, and what the real tool gave or raised if it ran."""
        return await visit_tool(self._host, request, run)

    def placed(
        self, call_id: str | None, tool: str, args: dict[str, Json], origin: Any
    ) -> ToolRequest:
        """A call as the host is asked for it."""
        return ToolRequest(call_id or "", tool, args, origin=origin)


def _metadata() -> dict[str, Any]:
    config = var_child_runnable_config.get() or {}
    return dict(config.get("metadata") or {})
