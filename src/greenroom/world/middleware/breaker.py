"""A model that keeps failing is not asked for a while."""

from collections.abc import Callable
from threading import Lock
from time import monotonic

from msgspec import Struct

from greenroom.errors import BadInput, CircuitOpen, GreenroomError, ModelBroke
from greenroom.models.model import ModelReply, ModelRequest
from greenroom.world.middleware.attempts import Ask
from greenroom.world.middleware.names import is_amount
from greenroom.world.middleware.protocol import Middleware


def breaker(
    after: int = 5, rest: float = 60.0, *, clock: Callable[[], float] = monotonic
) -> "Breaker":
    """Refuses to ask a model for `rest` seconds once it has failed `after` times in a row.

    Then one question is let through: its reply closes the circuit, its failure opens it again. The circuit
    is shared by all trials of this process; a refusal is recorded in the trial's ledger.
    """
    return Breaker(after, rest, clock)


class _Circuit(Struct):
    failures: int = 0
    open_until: float = 0.0


class Breaker(Middleware):
    """Failures in a row, by model."""

    name = "breaker"
    needs = ("around_attempt",)

    def __init__(self, after: int, rest: float, clock: Callable[[], float]) -> None:
        if type(after) is not int or after < 1:
            raise BadInput(f"breaker({after!r}) should be a whole number of 1 or more.")
        if not is_amount(rest):
            raise BadInput(f"breaker(rest={rest!r}) should be more than 0 seconds.")
        self._after = after
        self._rest = rest
        self._now = clock
        self._lock = Lock()
        self._circuits: dict[str, _Circuit] = {}

    async def around_attempt(self, request: ModelRequest, ask: Ask) -> ModelReply:
        """Ask, unless the model rests."""
        circuit = self._admit(request.model)
        try:
            reply = await ask(request)
        except Exception as error:
            # An error of Greenroom says nothing about the model.
            if not isinstance(error, GreenroomError) or isinstance(error, ModelBroke):
                with self._lock:
                    circuit.failures += 1
                    if circuit.failures >= self._after:
                        circuit.open_until = self._now() + self._rest
            raise
        with self._lock:
            circuit.failures = 0
        return reply

    def _admit(self, model: str) -> _Circuit:
        with self._lock:
            circuit, now = self._circuits.setdefault(model, _Circuit()), self._now()
            if circuit.failures < self._after:
                return circuit
            if circuit.open_until <= now:
                circuit.open_until = now + self._rest  # one may try; the others keep waiting
                return circuit
            raise CircuitOpen(
                f"the model {model!r} failed {circuit.failures} times in a row and is not asked for "
                f"another {circuit.open_until - now:.1f} s."
            )
