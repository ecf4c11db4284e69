"""Retries, and a shared pace: all calls to a model in this process keep to its rate limit.

A model's "too many requests" holds for all calls to it. The next ones wait as long as it asks, and
then go one after another at even gaps:

- After the first refusal the gap is a guess, on the short side: a second refusal costs one more wait,
  but too long a gap costs time with every call. It shrinks quickly.
- After each later refusal the gap is measured from the calls that passed since the one before.
  It shrinks slowly, until the model refuses again or there is no gap left.

The limit of a model that was never asked is unknown, so its first calls do not all come at once; that
costs 0.7 s at most. Where it is known, by `keep_rates`, calls come no faster than that. Models on this
machine, such as scripted ones, have no pace unless they are given a rate.

A worker process asks its parent, which keeps the pace, for every turn: `ask_for_turns`.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from math import exp, inf
from threading import Lock
from time import perf_counter
from typing import Final, Protocol

from greenroom.errors import ModelBroke, RateLimited
from greenroom.ledger.events import Noted, Source
from greenroom.ledger.plain import Json
from greenroom.models.model import ModelBody, ModelReply, ModelRequest, OnDelta
from greenroom.world.rates import Rates
from greenroom.world.world import World

# Seconds. No call waits longer for its turn, deadline or not.
LONGEST_WAIT: Final = 300.0

_FIRST_BACKOFF: Final = 0.5
_LONGEST_BACKOFF: Final = 30.0
# Other processes got the same time to wait; ours may be longer by up to this share, to spread them out.
_SPREAD: Final = 0.1

# A gap is the seconds between the beginnings of two calls; one below the least counts as no gap.
_LEAST_GAP: Final = 0.002
_LONGEST_GAP: Final = 5.0
# The gap after the first refusal: a model that asks for a long wait is a slow one. It is never long, since
# a time without calls says nothing about a model's pace.
_LEAST_GUESS: Final = 0.016
_LONGEST_GUESS: Final = 1.0
_GUESSES_IN_A_WAIT: Final = 60
# The first calls to a model: this many at once, then at a gap that shrinks with each of them.
_AT_ONCE: Final = 8
_OPENING_GAP: Final = 0.02
_OPENING_SHRINK: Final = 0.97
# How much wider the gap becomes with a refusal, at least: more if few calls have passed meanwhile.
_WIDER: Final = 1.2
_WIDER_IF_UNSURE: Final = 2.0
_SURE: Final = 10
# Replies and seconds after which a gap is down to 1/e. With each wait that another refusal would
# cost, a measured gap takes longer.
_REPLIES_IF_GUESSED: Final = 22
_REPLIES: Final = 220
_SECONDS: Final = 1.4
_WAITS: Final = 16
_MOST_CALLS_KEPT: Final = 1000
# Seconds: what a loop that woke up late may catch up on, where the rate is known.
_LATE: Final = 0.1

RETRIED: Final = "model_asked_again"
# pydantic-ai's name for a model that is a function of the user, which runs on this machine.
_FUNCTION: Final = "function:"


TimeLeft = Callable[[], float]
"""How many seconds a call may still wait for its turn."""


class Turns(Protocol):
    """Decides when a model may be asked next."""

    is_opening: bool
    """Whether the model was never asked before."""

    async def turn(self, left: TimeLeft) -> float:
        """Wait for the next turn, and take it; the seconds it would take if there is less time than that."""
        ...

    def answered(self) -> None:
        """Note a reply."""
        ...

    def refused(self, begun: float, wait: float) -> None:
        """Let no call begin for `wait` seconds; `begun` is when the refused one did."""
        ...


class Pace:
    """The gap that calls to one model keep, learned from its refusals."""

    def __init__(
        self, *, is_opening: bool = False, clock: Callable[[], float] = perf_counter
    ) -> None:
        self._now = clock
        self._lock = Lock()
        self.is_opening = is_opening
        self._at_once = _AT_ONCE if is_opening else 0
        self._gap = _OPENING_GAP if is_opening else 0.0
        self._free_at = self._next_at = 0.0
        self._rates: list[float] = []
        self._due_at = -inf
        # The last storm, which is a refusal and those of the calls that were in flight then:
        self._storm_at = -inf
        self._widest = 0.0
        self._shrinks_in = (0.0, 0.0)
        self._begun = deque[float](maxlen=_MOST_CALLS_KEPT)
        self._replies = 0
        # The first storm: the calls that passed before it, in how many seconds, and the others.
        self._storms = 0
        self._passed_first = 0
        self._opening = 0.0
        self._refused_first = 0

    async def turn(self, left: TimeLeft) -> float:
        """Wait for the next turn, and take it; the seconds it would take if there is less time than that."""
        while wait := self.take():
            if wait > left():
                return wait
            await asyncio.sleep(wait)
        return 0.0

    def keep(self, rate: float) -> None:
        """Let no more than this many calls begin in a minute."""
        with self._lock:
            self._rates.append(rate)
            if self.is_opening:  # the rate is known, so it need not be found out
                self._gap, self._at_once, self._next_at, self.is_opening = 0.0, 0, 0.0, False

    def forget(self, rate: float) -> None:
        """Stop keeping a rate."""
        with self._lock:
            self._rates.remove(rate)

    def take(self) -> float:
        """Take the next turn if it has come and return 0, else the seconds until then."""
        with self._lock:
            now = self._now()
            due_at = self._due_at if self._rates else -inf
            wait = max(self._free_at, self._next_at, due_at) - now
            if wait > 0:
                return wait
            self._begun.append(now)
            if self._rates:
                self._due_at = max(due_at, now - _LATE) + 60 / min(self._rates)
            if self._at_once:
                self._at_once -= 1
                return 0.0
            self._next_at = now + self._gap
            if self.is_opening:
                self._shrink(self._gap * _OPENING_SHRINK)
            return 0.0

    def answered(self) -> None:
        """Note a reply: the next calls may come a little sooner."""
        with self._lock:
            self._replies += 1
            if self._gap and not self.is_opening:
                replies, seconds = self._shrinks_in
                since = max(self._now() - self._free_at, 0.0)
                done = min(self._replies / replies, since / seconds)
                self._shrink(self._widest * exp(-(done**2)))

    def refused(self, begun: float, wait: float) -> None:
        """Let no call begin for `wait` seconds; `begun` is when the refused one did."""
        with self._lock:
            now = self._now()
            self._free_at = max(self._free_at, now + wait)
            if begun > self._storm_at:
                self._storms += 1
                gap = self._guess(now, wait) if self._storms == 1 else self._measure(begun, wait)
                self._gap = self._widest = min(max(gap, _LEAST_GAP), _LONGEST_GAP)
                self._storm_at = now
                self._begun.clear()
                self._replies = self._at_once = 0
                self.is_opening = False
            elif self._storms == 1:
                self._count_first()
            self._next_at = max(self._next_at, self._free_at)

    def _guess(self, now: float, wait: float) -> float:
        """The gap after the first refusal: how much the model lets pass at once is unknown."""
        self._shrinks_in = _REPLIES_IF_GUESSED, _SECONDS
        # As if all others in flight would pass; `_count_first` subtracts those that do not.
        self._passed_first = max(len(self._begun) - 1, 0)
        self._refused_first = 1
        self._opening = now - self._begun[0] if self._begun else 0.0
        gap = min(max(_LEAST_GUESS, wait / _GUESSES_IN_A_WAIT), _LONGEST_GUESS)
        return min(gap, 2 * self._opening / self._replies) if self._replies else gap

    def _count_first(self) -> None:
        """Subtract another refused call from the first calls: the rest has passed."""
        self._passed_first = max(self._passed_first - 1, 0)
        self._refused_first += 1
        # The calls that began at once say nothing about the pace, those after them do.
        if self._refused_first >= _AT_ONCE:
            shown = min(self._opening / (self._passed_first + 1), _LONGEST_GUESS)
            self._gap = self._widest = max(self._gap, shown)

    def _measure(self, refused: float, wait: float) -> float:
        """The gap that the calls since the last storm show, of which none was refused."""
        # Whether those in flight will be refused is not known yet.
        begun = [at for at in self._begun if at <= refused][: self._replies]
        is_sure = len(begun) > _SURE
        if is_sure:
            self._shrinks_in = _REPLIES, max(_SECONDS, _WAITS * wait)
        else:
            self._shrinks_in = _REPLIES_IF_GUESSED, _SECONDS
        wider = self._gap * (_WIDER if is_sure else _WIDER_IF_UNSURE)
        if len(begun) < 2:
            return max(wider, _LEAST_GUESS)
        # Two bounds from below. The model had nothing saved up at the last storm, so all of these came
        # at its pace or slower. The first calls used up what it had saved; if it had as much again,
        # only calls beyond their number came at its pace, in the seconds beyond theirs.
        average = len(begun) / max(refused - self._storm_at, _LEAST_GAP)
        last = min(len(begun) - 1, 2 * self._passed_first + _SURE)
        seconds = max(begun[-1] - begun[-1 - last], _LEAST_GAP)
        lasting = last / seconds
        if seconds > self._opening:
            lasting = min(lasting, (last - self._passed_first) / (seconds - self._opening))
        most = max(self._gap * 2, self._widest * 1.5)
        return min(max(1 / max(average, lasting), wider), most)

    def _shrink(self, gap: float) -> None:
        self._gap = gap
        if gap < _LEAST_GAP:
            self._gap, self._next_at, self.is_opening = 0.0, 0.0, False


paces: Final[dict[str, Turns]] = {}
"""The pace of every model that has one, by name."""
_ways: Final[list[Callable[[str], Turns]]] = []


def pace_of(model: str, *, is_opening: bool = True) -> Turns:
    """The pace of a model, from now on if it had none."""
    pace = paces.get(model)
    if pace is None:
        new = _ways[-1](model) if _ways else Pace(is_opening=is_opening)
        pace = paces.setdefault(model, new)
    return pace


def ask_for_turns(way: Callable[[str], Turns]) -> None:
    """From now on take the turns of every model as `way` provides them: from another process."""
    _ways.append(way)
    paces.clear()


@contextmanager
def keep_rates(rates: Rates) -> Generator[None]:
    """Inside, ask these models no more often than their rates."""
    before = set(paces)
    kept = [
        (pace, rate) for model, rate in rates.items() if isinstance(pace := pace_of(model), Pace)
    ]
    for pace, rate in kept:
        pace.keep(rate)
    try:
        yield
    finally:
        for pace, rate in kept:
            pace.forget(rate)
        for model in rates.keys() - before:
            if not _is_provided(model):
                paces.pop(model, None)


def _is_provided(model: str) -> bool:
    return ":" in model and not model.startswith(_FUNCTION)


async def ask_in_turn(
    world: World, request: ModelRequest, body: ModelBody, on_delta: OnDelta | None, source: Source
) -> tuple[ModelReply, float]:
    """Ask at the model's pace, if it has one, and again after a failure that may pass.

    Returns the reply and when the call that got it began, by the performance counter. A failure is raised
    after all its retries, and at once if the wait would outlast the run.
    """
    # Calls to a model take turns if it is a provider's, has a rate, or has refused a call.
    if source == "live" and (request.model in paces or _is_provided(request.model)):
        return await _persist(world, request, body, on_delta)
    begun = perf_counter()
    try:
        return await body(request, on_delta), begun
    except ModelBroke as broke:
        return await _persist(world, request, body, on_delta, begun, broke)


async def _persist(
    world: World,
    request: ModelRequest,
    body: ModelBody,
    on_delta: OnDelta | None,
    begun: float = 0.0,
    broke: ModelBroke | None = None,
) -> tuple[ModelReply, float]:
    """Ask in turn; `broke` is how a first attempt without a turn failed, `begun` when it began."""
    pace = pace_of(request.model, is_opening=broke is None)
    if pace.is_opening:
        # Loading a client in the first call would hold up its calls, and then let them all go at once.
        get_ready = getattr(getattr(body, "__self__", None), "get_ready", None)
        if get_ready is not None:
            await get_ready()
    attempt = 0
    while True:
        if broke is not None:
            attempt += 1
            await _back_off(world, request, pace, broke, attempt, begun)
        while wait := await pace.turn(partial(_time_left, world)):
            _check_time(world, request, wait, broke)
        begun = perf_counter()
        try:
            reply = await body(request, on_delta)
        except ModelBroke as error:
            broke = error
        else:
            pace.answered()
            return reply, begun


async def _back_off(
    world: World, request: ModelRequest, pace: Turns, broke: ModelBroke, attempt: int, begun: float
) -> None:
    """Note the retry and wait as long as this failure asks for; or raise it."""
    # From 0 to 1: different for each call, but the same whenever the same run is repeated.
    share = int(world.new_id(world.run_id, request.path, request.n, attempt), 16) / 16**12
    wait = broke.retry_after
    if wait is None:
        wait = min(_FIRST_BACKOFF * 2 ** (attempt - 1), _LONGEST_BACKOFF) * (0.5 + share / 2)
    is_shared = isinstance(broke, RateLimited) or broke.retry_after is not None
    if is_shared:
        pace.refused(begun, wait * (1 + share * _SPREAD))
    if attempt > broke.again:
        raise broke
    _check_time(world, request, wait, broke)
    data: Json = {
        "model": request.model,
        "n": request.n,
        "attempt": attempt,
        "waits": round(wait, 3),
        "error": str(broke),
        "error_type": type(broke).__name__,
    }
    world.record(Noted(path=request.path, name=RETRIED, data=data))
    if not is_shared:
        await asyncio.sleep(wait)


def _time_left(world: World) -> float:
    """How long a call may wait: until the run ends, but not beyond the longest wait."""
    if world.deadline is None:
        return LONGEST_WAIT
    return min(LONGEST_WAIT, world.deadline - asyncio.get_running_loop().time())


def _check_time(world: World, request: ModelRequest, wait: float, broke: ModelBroke | None) -> None:
    """Give up at once if the wait would outlast the run, or the longest wait."""
    left = _time_left(world)
    if wait <= left:
        return
    why = f": {broke}" if broke is not None else "."
    raise RateLimited(
        f"the model {request.model!r} must not be asked for another {wait:.1f} s, but only "
        f"{max(left, 0):.1f} s are left to wait{why}",
        retry_after=wait,
    ) from broke
