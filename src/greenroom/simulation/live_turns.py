"""The world of one turn of a live conversation."""

from greenroom.backends.native.listeners import ToUser
from greenroom.errors import LoopLimit
from greenroom.models.model import ModelBody, ModelReply, ModelRequest, OnDelta
from greenroom.simulation.spoken import Spoken
from greenroom.world.live import LiveWorld

MAX_MODEL_CALLS = 500


class LiveTurnWorld(LiveWorld):
    """A live world that passes on the pieces of replies and counts the questions to models."""

    captures = True
    spoken: Spoken | None = None
    """Called with what is said to the user, if the caller listens."""
    door: ToUser | None = None
    """Called with the pieces of what an agent itself says to its user; if unset, every model's pieces count."""
    calls_left: int = MAX_MODEL_CALLS

    async def call_model(
        self, request: ModelRequest, body: ModelBody, on_delta: OnDelta | None = None
    ) -> ModelReply:
        """Ask the real model, unless it was asked too often in this turn."""
        if self.calls_left < 1:
            raise LoopLimit(
                "the agent asked its models too often in one turn. Raise max_model_calls, or find out why "
                "it loops."
            )
        self.calls_left -= 1
        if on_delta is None and self.spoken is not None and self.door is None:
            on_delta = self.spoken.at(request.path)
        return await super().call_model(request, body, on_delta)
