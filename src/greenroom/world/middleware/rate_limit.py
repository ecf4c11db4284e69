"""A limit on how often a model is asked in a minute."""

import asyncio
from collections import defaultdict
from threading import Lock
from time import monotonic

from greenroom.errors import BadInput
from greenroom.models.model import ModelReply, ModelRequest
from greenroom.world.middleware.attempts import Ask
from greenroom.world.middleware.names import is_amount
from greenroom.world.middleware.protocol import Middleware


def rate_limit(per_minute: float) -> "RateLimit":
    """Lets each model be asked this often a minute, at even intervals, by all trials of this process."""
    return RateLimit(per_minute)


class RateLimit(Middleware):
    """The interval between two questions to one model."""

    name = "rate_limit"
    needs = ("around_attempt",)

    def __init__(self, per_minute: float) -> None:
        if not is_amount(per_minute):
            raise BadInput(f"rate_limit({per_minute!r}) should be more than 0 a minute.")
        self._gap = 60.0 / per_minute
        self._lock = Lock()
        self._free_at: defaultdict[str, float] = defaultdict(float)

    async def around_attempt(self, request: ModelRequest, ask: Ask) -> ModelReply:
        """Wait for the next turn, then ask."""
        with self._lock:
            now = monotonic()
            turn = max(now, self._free_at[request.model])
            self._free_at[request.model] = turn + self._gap
        if turn > now:
            await asyncio.sleep(turn - now)
        return await ask(request)
