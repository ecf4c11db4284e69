"""Patience with models: a question asked again, and all askers of a model held to its pace.

A model that answers "too often" says so to everybody: whoever asks it next in this process waits
its time too, and then they go one after the other, at a gap that grows with every new refusal and
shrinks with every reply. A model that never refused costs one look into an empty dict.
"""

import asyncio
from threading import Lock
from time import perf_counter
from typing import Final

from greenroom.errors import ModelBroke, RateLimited
from greenroom.ledger.events import Noted
from greenroom.models.model import ModelBody, ModelReply, ModelRequest, OnDelta
from greenroom.world.world import World

# Seconds. Nobody waits longer for one turn, deadline or not.
LONGEST_WAIT: Final = 300.0

_FIRST_BACKOFF: Final = 0.5
_LONGEST_BACKOFF: Final = 30.0
_LEAST_GAP: Final = 0.01
_FIRST_GAP: Final = 0.05
_LONGEST_GAP: Final = 5.0
_SHRINK: Final = 0.8

RETRIED: Final = "model_asked_again"


class Pace:
    """How often one model lets itself be asked, as far as its refusals have told."""

    __slots__ = ("_free_at", "_gap", "_learned_at", "_lock", "_next_at")

    def __init__(self) -> None:
        self._free_at = 0.0
        self._next_at = 0.0
        self._gap = 0.0
        self._learned_at = 0.0
        self._lock = Lock()

    def refused(self, begun: float, wait: float) -> None:
        """Nobody asks for `wait` seconds. Refusals of questions on their way count once."""
        with self._lock:
            now = perf_counter()
            self._free_at = max(self._free_at, now + wait)
            if begun >= self._learned_at:
                self._learned_at = now
                first = min(max(wait / 10, _FIRST_GAP), 1.0)
                self._gap = min(self._gap * 2 or first, _LONGEST_GAP)
            self._next_at = max(self._next_at, self._free_at)

    def answered(self) -> bool:
        """Note a reply; True when there is nothing left to hold anybody to."""
        with self._lock:
            self._gap *= _SHRINK
            return self._gap < _LEAST_GAP and self._free_at <= perf_counter()

    def take(self) -> float:
        """Take the next turn if it has come and return 0, else the seconds until then."""
        with self._lock:
            now = perf_counter()
            wait = max(self._free_at, self._next_at) - now
            if wait <= 0:
                self._next_at = now + self._gap
            return max(wait, 0.0)


paces: Final[dict[str, Pace]] = {}
"""The models that have refused somebody lately, by name; empty in most processes."""


async def persist(
    world: World,
    request: ModelRequest,
    body: ModelBody,
    on_delta: OnDelta | None,
    begun: float = 0.0,
    broke: ModelBroke | None = None,
) -> tuple[ModelReply, float]:
    """Ask in turn, and again after a failure that may pass.

    `broke` is how asking failed already, `begun` when that was asked. Gives the reply and when the
    question that got it was asked, both by the performance counter. A failure is raised once it has
    been asked as often as it is worth, and at once when the wait would outlast the run.
    """
    attempt = 0
    while True:
        if broke is not None:
            attempt += 1
            await _get_over(world, request, broke, attempt, begun)
        await _turn(world, request, broke)
        begun = perf_counter()
        try:
            reply = await body(request, on_delta)
        except ModelBroke as error:
            broke = error
        else:
            _relax(request.model)
            return reply, begun


async def _get_over(
    world: World, request: ModelRequest, broke: ModelBroke, attempt: int, begun: float
) -> None:
    """Wait as long as this failure asks for, or raise it."""
    if attempt > broke.again:
        raise broke
    wait = broke.retry_after
    if wait is None:
        wait = _backoff(world, request, attempt)
    shared = isinstance(broke, RateLimited) or broke.retry_after is not None
    if shared:
        paces.setdefault(request.model, Pace()).refused(begun, wait)
    _check_time(world, request, wait, broke)
    _note(world, request, broke, attempt, wait)
    if not shared:
        await asyncio.sleep(wait)


async def _turn(world: World, request: ModelRequest, broke: ModelBroke | None) -> None:
    """Wait for this question's turn, if its model has a pace."""
    while (pace := paces.get(request.model)) is not None and (wait := pace.take()):
        _check_time(world, request, wait, broke)
        await asyncio.sleep(wait)


def _relax(model: str) -> None:
    pace = paces.get(model)
    if pace is not None and pace.answered():
        paces.pop(model, None)


def _backoff(world: World, request: ModelRequest, attempt: int) -> float:
    """Twice as long each time, and not for all askers alike."""
    share = int(world.new_id(world.run_id, request.path, request.n, attempt), 16) / 16**12
    return min(_FIRST_BACKOFF * 2 ** (attempt - 1), _LONGEST_BACKOFF) * (0.5 + share / 2)


def _check_time(world: World, request: ModelRequest, wait: float, broke: ModelBroke | None) -> None:
    """Give up at once when the wait would outlast the run, or anybody's patience."""
    left = LONGEST_WAIT
    if world.deadline is not None:
        left = min(left, world.deadline - asyncio.get_running_loop().time())
    if wait <= left:
        return
    why = f": {broke}" if broke is not None else "."
    raise RateLimited(
        f"the model {request.model!r} is not to be asked for another {wait:.1f} s, but only "
        f"{max(left, 0):.1f} s are left to wait{why}",
        retry_after=wait,
    ) from broke


def _note(
    world: World, request: ModelRequest, broke: ModelBroke, attempt: int, wait: float
) -> None:
    data = {
        "model": request.model,
        "n": request.n,
        "attempt": attempt,
        "waits": round(wait, 3),
        "error": str(broke),
        "error_type": type(broke).__name__,
    }
    world.record(Noted(path=request.path, name=RETRIED, data=data))
