"""The world of one turn of a live conversation."""

from greenroom.backends.native.listeners import ToUser
from greenroom.errors import LoopLimit
from greenroom.models.model import ModelBody, ModelReply, ModelRequest, OnDelta
from greenroom.simulation.spoken import Spoken
from greenroom.world.live import LiveWorld

MAX_MODEL_CALLS = 500


class LiveTurnWorld(LiveWorld):
    """A live world that hands on the pieces of replies and counts the questions to models."""

    captures = True
    spoken: Spoken | None = None
    """Takes what is said to the user, if anyone listens."""
    door: ToUser | None = None
    """Takes the pieces of what an agent says itself to its user; else those of every model are heard."""
    calls_left: int = MAX_MODEL_CALLS

    async def call_model(
        self, request: ModelRequest, body: ModelBody, on_delta: OnDelta | None = None
    ) -> ModelReply:
        """Ask the real model, unless it was asked too often in this turn."""
        if self.calls_left < 1:
            raise LoopLimit(
                "the agent asked its models too often in one turn. Raise max_model_calls, or look why "
                "it goes round in circles."
            )
        self.calls_left -= 1
        if on_delta is None and self.spoken is not None and self.door is None:
            on_delta = self.spoken.at(request.path)
        return await super().call_model(request, body, on_delta)
