"""Asking a model again after an error."""

import asyncio

from greenroom.errors import BadInput, GreenroomError, ModelBroke
from greenroom.ledger.plain import is_object
from greenroom.models.model import ModelReply, ModelRequest
from greenroom.world.middleware.attempts import Ask
from greenroom.world.middleware.current import current_run
from greenroom.world.middleware.names import is_amount
from greenroom.world.middleware.protocol import Middleware
from greenroom.world.pacer import RETRIED


def retry(
    times: int = 2, *, wait: float = 0.5, on: tuple[type[Exception], ...] = (Exception,)
) -> "Retry":
    """Asks a model up to `times` more times after an error, and waits twice as long each time.

    It replaces the model's own retries. Each retry is noted in the ledger, and a resumed run counts
    those from before the interruption.
    """
    return Retry(times, wait, on)


class Retry(Middleware):
    """Attempts after an error."""

    name = "retry"
    needs = ("around_attempt",)

    def __init__(self, times: int, wait: float, on: tuple[type[Exception], ...]) -> None:
        if type(times) is not int or times < 1:
            raise BadInput(f"retry({times!r}) should be a whole number of 1 or more.")
        if wait != 0 and not is_amount(wait):
            raise BadInput(f"retry(wait={wait!r}) should be 0 or more seconds.")
        self._times = times
        self._wait = wait
        self._on = on

    async def around_attempt(self, request: ModelRequest, ask: Ask) -> ModelReply:
        """Ask until there is a reply, or it was asked often enough."""
        while True:
            try:
                return await ask(request)
            except Exception as error:
                if not self._passes(error):
                    raise
                before = _noted(request)
                if isinstance(error, ModelBroke):
                    error.again = 0  # the retries are made here, not by the pacer
                if before >= self._times:
                    raise
                data = {"model": request.model, "n": request.n, "attempt": before + 1}
                failed = {"error": str(error), "error_type": type(error).__name__}
                current_run().note(RETRIED, {**data, **failed}, request.path)
                await asyncio.sleep(self._wait * 2**before)

    def _passes(self, error: Exception) -> bool:
        """Whether the error may pass: an error of Greenroom is not the model's."""
        is_ours = isinstance(error, GreenroomError) and not isinstance(error, ModelBroke)
        return isinstance(error, self._on) and not is_ours


def _noted(request: ModelRequest) -> int:
    """How often this question was asked again so far, by the ledger."""
    return sum(
        note.name == RETRIED
        and note.path == request.path
        and is_object(note.data)
        and note.data.get("n") == request.n
        for note in current_run().ledger.index_of().noted
    )
