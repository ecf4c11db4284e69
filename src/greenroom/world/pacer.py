"""Patience with models: a question asked again, and all askers of a model held to its pace.

A model that answers "too often" says so to everybody: whoever asks it next in this process waits
its time too, and then they go one after the other. How fast, the model itself has shown: what it
had saved up it spent before its first refusal, so of the last questions before another one all but so
many came at its pace. They begin a little below that and go faster with every reply, slowly at first,
until it refuses again or nobody is held any more.

Nobody knows the pace of a model that was never asked, so its first questions do not come all at
once: that costs 0.7 s at the very most. Models on this machine, such as scripted ones, have no pace.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from math import exp
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
# A gap is the seconds between the beginnings of two calls; one below the least is none.
_LEAST_GAP: Final = 0.002
_LONGEST_GAP: Final = 5.0
_GUESSED_GAPS: Final = (0.05, 1.0)
# The first questions to a model: so many at once, then at a gap that shrinks with each of them.
_AT_ONCE: Final = 8
_OPENING_GAP: Final = 0.02
_OPENING_SHRINK: Final = 0.97
# How much slower than it could a model is asked after a refusal, and how soon faster again: twice as
# fast after 19 replies if its pace was guessed, after 186 once it is known, and the later the more
# refusals have told the same, but not within 2 s.
_MARGIN: Final = 1.1
_FASTER: Final = 0.00004
_SURE: Final = 8
_FASTER_IF_GUESSED: Final = 0.002
_FASTER_BY_TIME: Final = 0.2
# The last questions before a refusal that show the pace: so many, and twice what may be saved up.
_SHOWING: Final = 10
_MOST_SHOWING: Final = 1000
# How much longer than it was asked to somebody may wait.
_SPREAD: Final = 0.1

RETRIED: Final = "model_asked_again"
# So pydantic-ai calls models that are functions of the user's: they run on this machine.
_FUNCTION: Final = "function:"


class Pace:
    """How often one model lets itself be asked, as far as its refusals have told."""

    __slots__ = (
        "_asked",
        "_asked_at",
        "_at_once",
        "_began",
        "_faster",
        "_free_at",
        "_gap",
        "_known",
        "_learned_at",
        "_lock",
        "_next_at",
        "_now",
        "_replies",
        "_saved",
        "_storms",
        "is_opening",
    )

    def __init__(
        self, *, is_opening: bool = False, clock: Callable[[], float] = perf_counter
    ) -> None:
        self._now = clock
        self.is_opening = is_opening
        self._at_once = _AT_ONCE if is_opening else 0
        self._gap = _OPENING_GAP if is_opening else 0.0
        self._known = 0.0
        self._faster = _FASTER
        self._free_at = 0.0
        self._next_at = 0.0
        self._learned_at = -1.0
        self._began = 0.0
        self._replies = 0
        self._asked = 0
        self._asked_at = deque[float](maxlen=_MOST_SHOWING)
        self._storms = 0
        self._saved = 0
        self._lock = Lock()

    @property
    def is_easy(self) -> bool:
        """Whether nobody is held to anything."""
        return not self._gap and self._free_at <= self._now()

    def refused(self, begun: float, wait: float) -> None:
        """Nobody asks for `wait` seconds. Refusals of questions on their way count once."""
        with self._lock:
            now = self._now()
            self._free_at = max(self._free_at, now + wait)
            if begun > self._learned_at:
                self._storms += 1
                self._gap = self._known = self._learned(begun) or self._guessed(now, wait)
                self._learned_at = self._began = now
                self._replies = self._at_once = 0
                self._asked_at.clear()
                self.is_opening = False
            elif self._storms == 1:
                self._saved = max(self._saved - 1, 0)
            self._next_at = max(self._next_at, self._free_at)

    def _guessed(self, now: float, wait: float) -> float:
        """The gap after the first refusal: nobody knows what the model had saved up for this."""
        self._faster = _FASTER_IF_GUESSED
        # All that did not come too often; those that did are taken off as they are refused.
        self._saved = max(self._asked - 1, 0)
        shown = (now - self._began) / self._replies if self._replies else _LONGEST_GAP
        least, most = _GUESSED_GAPS
        return max(min(shown * 2, max(least, min(wait / 10, most))), _LEAST_GAP)

    def _learned(self, refused: float) -> float:
        """The gap that the questions since the last refusal show, none of which came too often; or 0."""
        if not self._known:
            return 0.0
        # Of those on their way nobody knows yet whether they came too often.
        asked = [at for at in self._asked_at if at <= refused][: self._replies]
        is_sure = len(asked) > _SHOWING
        self._faster = _FASTER / min(self._storms, _SURE) if is_sure else _FASTER_IF_GUESSED
        if len(asked) < 2:
            return min(max(self._gap * 2, _GUESSED_GAPS[0]), _LONGEST_GAP)
        # Either it saves up all the time, also while nobody asks, or it has had all that it can save.
        rates = [len(asked) / max(refused - self._began, _LEAST_GAP)]
        last = min(len(asked) - 1, 2 * self._saved + _SHOWING)
        if last > self._saved:
            rates.append((last - self._saved) / max(asked[-1] - asked[-1 - last], _LEAST_GAP))
        most = max(self._gap * 2, self._known * 1.5)
        return min(max(1 / max(rates), self._gap * _MARGIN), most, _LONGEST_GAP)

    def answered(self) -> None:
        """Note a reply: the next questions may come a little sooner."""
        with self._lock:
            self._replies += 1
            if self._gap and not self.is_opening:
                since = max(self._now() - self._free_at, 0.0)
                by_replies, by_time = self._faster * self._replies**2, _FASTER_BY_TIME * since**2
                self._narrow(self._known * exp(-min(by_replies, by_time)))

    def take(self) -> float:
        """Take the next turn if it has come and return 0, else the seconds until then."""
        with self._lock:
            now = self._now()
            wait = max(self._free_at, self._next_at) - now
            if wait <= 0:
                self._begin(now)
            return max(wait, 0.0)

    def _begin(self, now: float) -> None:
        if not self._asked and not self._known:
            self._began = now
        self._asked += 1
        self._asked_at.append(now)
        if self._at_once:
            self._at_once -= 1
            return
        self._next_at = now + self._gap
        if self.is_opening:
            self._narrow(self._gap * _OPENING_SHRINK)

    def _narrow(self, gap: float) -> None:
        self._gap = gap
        if gap < _LEAST_GAP:
            # Turns that were given out at the gap before are nobody's any more.
            self._gap, self._next_at, self.is_opening = 0.0, 0.0, False


paces: Final[dict[str, Pace]] = {}
"""The pace of every model that has one, by name."""


def is_paced(model: str) -> bool:
    """Whether askers of a model take turns: it is a provider's, or has refused somebody."""
    return model in paces or (":" in model and not model.startswith(_FUNCTION))


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
    pace = paces.get(request.model)
    if pace is None:
        pace = paces.setdefault(request.model, Pace(is_opening=broke is None))
    if pace.is_opening:
        await _get_ready(body)
    while True:
        if broke is not None:
            attempt += 1
            await _get_over(world, request, pace, broke, attempt, begun)
        await _turn(world, request, pace, broke)
        begun = perf_counter()
        try:
            reply = await body(request, on_delta)
        except ModelBroke as error:
            broke = error
        else:
            pace.answered()
            return reply, begun


async def _get_ready(body: ModelBody) -> None:
    """Let a model prepare itself before its first calls set out, else they would meet on the way."""
    ready = getattr(getattr(body, "__self__", None), "get_ready", None)
    if ready is not None:
        await ready()


async def _get_over(
    world: World, request: ModelRequest, pace: Pace, broke: ModelBroke, attempt: int, begun: float
) -> None:
    """Wait as long as this failure asks for, or raise it."""
    share = _share(world, request, attempt)
    wait = broke.retry_after
    if wait is None:
        wait = min(_FIRST_BACKOFF * 2 ** (attempt - 1), _LONGEST_BACKOFF) * (0.5 + share / 2)
    shared = isinstance(broke, RateLimited) or broke.retry_after is not None
    if shared:
        # Other processes were told the same time; they need not all come back at once.
        pace.refused(begun, wait * (1 + share * _SPREAD))
    if attempt > broke.again:
        raise broke
    _check_time(world, request, wait, broke)
    _note(world, request, broke, attempt, wait)
    if not shared:
        await asyncio.sleep(wait)


async def _turn(world: World, request: ModelRequest, pace: Pace, broke: ModelBroke | None) -> None:
    """Wait for this question's turn."""
    while wait := pace.take():
        _check_time(world, request, wait, broke)
        await asyncio.sleep(wait)


def _share(world: World, request: ModelRequest, attempt: int) -> float:
    """From 0 to 1, not for all askers alike, but the same for the same run."""
    return int(world.new_id(world.run_id, request.path, request.n, attempt), 16) / 16**12


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
