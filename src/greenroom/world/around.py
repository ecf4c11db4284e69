"""A world around another: what it does not do itself is done by the one inside."""

from typing import TypeVar

from greenroom.ledger.events import Event
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.messages import Voice
from greenroom.models.model import ModelBody, ModelReply, ModelRequest, OnDelta
from greenroom.world.world import Pending, Returned, ToolBody, ToolRequest, World

E = TypeVar("E", bound=Event)


class Around:
    """Hands everything on to the world inside."""

    __slots__ = ("inner",)

    def __init__(self, inner: World) -> None:
        self.inner = inner

    async def call_model(
        self, request: ModelRequest, body: ModelBody, on_delta: OnDelta | None = None
    ) -> ModelReply:
        """Ask in the world inside."""
        return await self.inner.call_model(request, body, on_delta)

    async def call_tool(self, request: ToolRequest, body: ToolBody) -> Returned | Pending:
        """Call in the world inside."""
        return await self.inner.call_tool(request, body)

    def record(self, event: E) -> E:
        """Write an event down in the world inside."""
        return self.inner.record(event)

    def now(self) -> float:
        """The time in the world inside."""
        return self.inner.now()

    def new_id(self, *parts: object) -> str:
        """An id of the world inside."""
        return self.inner.new_id(*parts)

    @property
    def ledger(self) -> Ledger:
        """The ledger of the world inside."""
        return self.inner.ledger

    @property
    def voice(self) -> Voice:
        """The voice of the world inside."""
        return self.inner.voice

    @property
    def run_id(self) -> str:
        """The run of the world inside."""
        return self.inner.run_id

    @property
    def deadline(self) -> float | None:
        """The deadline of the world inside."""
        return self.inner.deadline
