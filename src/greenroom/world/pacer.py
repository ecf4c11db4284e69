"""Patience with models: a question asked again, and all askers of a model held to its pace.

A model that answers "too often" says so to everybody: whoever asks it next in this process waits
its time too, and then they go one after the other, at even gaps:

- After the first refusal the gap is a guess, rather too short than too long: a second refusal costs
  one more wait, questions that come too seldom cost time with each of them. It shrinks quickly. If
  many of the first questions were refused, it is no shorter than the others show.
- After the next one the model itself has shown its pace: what it had saved up it spent before its
  first refusal, so of the last questions before this one all but so many came at its pace. They
  begin a little below that. Where only a few have shown anything, the gap is doubled instead.
- Then the gap shrinks slowly, with every reply and with the time since, until the model refuses
  again or nobody is held any more. A model that asks for long waits is tried the less often.

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
# The gap after the first refusal is between these. It is longer for a model that asks for a long wait,
# which is a slow one, and so long that not more than some are on their way if it is wrong.
_GUESSED_GAPS: Final = (0.016, 1.0)
_GAPS_IN_A_WAIT: Final = 60
_ON_THEIR_WAY: Final = 20
# The first questions to a model: so many at once, then at a gap that shrinks with each of them.
_AT_ONCE: Final = 8
_OPENING_GAP: Final = 0.02
_OPENING_SHRINK: Final = 0.97
# How much slower than before a model is asked after a refusal, at the least.
_MARGIN: Final = 1.2
_MARGIN_IF_UNSURE: Final = 2.0
# How soon faster again: twice as fast after 19 replies if its pace was guessed, after 132 once it is
# known, and the later the more refusals have told the same; but not within 1.2 s, and once it is known
# a tenth faster only after five times the wait that another refusal would cost.
_FASTER: Final = 0.00004
_SURE: Final = 8
_FASTER_IF_GUESSED: Final = 0.002
_FASTER_BY_TIME: Final = 0.5
_FASTER_BY_WAIT: Final = 0.004
# The last questions before a refusal that show the pace: so many, and twice what may be saved up.
_SHOWING: Final = 10
_MOST_SHOWING: Final = 1000
_ROUNDS: Final = 4
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
        "_opening",
        "_refusals",
        "_replies",
        "_saved",
        "_storms",
        "_wait",
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
        self._opening = 0.0
        self._refusals = 1
        self._wait = 0.0
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
                self._wait = wait
                self._gap = self._known = self._learned(begun) or self._guessed(begun, wait)
                self._learned_at = self._began = now
                self._replies = self._at_once = 0
                self._asked_at.clear()
                self.is_opening = False
            elif self._storms == 1:
                self._count_in()
            self._next_at = max(self._next_at, self._free_at)

    def _count_in(self) -> None:
        """Another question of the opening came too often: what is left of it has passed."""
        self._saved = max(self._saved - 1, 0)
        self._refusals += 1
        # Those that came at once say nothing of a pace, those after them do.
        if self._refusals >= _AT_ONCE:
            shown = min(self._opening / (self._saved + 1), _GUESSED_GAPS[1])
            self._gap = self._known = max(self._gap, shown)

    def _guessed(self, begun: float, wait: float) -> float:
        """The gap after the first refusal: nobody knows what the model had saved up for this."""
        now = self._now()
        self._faster = _FASTER_IF_GUESSED
        # All that did not come too often; those that did are taken off as they are refused.
        self._saved = max(self._asked - 1, 0)
        self._opening = now - self._began if self._asked else 0.0
        shown = (now - self._began) / self._replies if self._replies else _LONGEST_GAP
        least, most = _GUESSED_GAPS
        # If it is wrong, all that are on their way are refused.
        guess = max(least, wait / _GAPS_IN_A_WAIT, (now - begun) / _ON_THEIR_WAY)
        return max(min(shown * 2, guess, most), _LEAST_GAP)

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
        seconds = max(asked[-1] - asked[-1 - last], _LEAST_GAP)
        # Of what passed in the opening a part came at its pace too, and only the rest was saved up: each
        # round knows the pace better, and that part with it.
        for _ in range(_ROUNDS):
            saved = max(self._saved - max(rates) * self._opening, 0.0)
            rates.append((last - saved) / seconds)
        most = max(self._gap * 2, self._known * 1.5)
        margin = _MARGIN if is_sure else _MARGIN_IF_UNSURE
        return min(max(1 / max(rates), self._gap * margin), most, _LONGEST_GAP)

    def answered(self) -> None:
        """Note a reply: the next questions may come a little sooner."""
        with self._lock:
            self._replies += 1
            if self._gap and not self.is_opening:
                since = max(self._now() - self._free_at, 0.0)
                by_replies, by_time = self._faster * self._replies**2, _FASTER_BY_TIME * since**2
                if self._faster < _FASTER_IF_GUESSED and self._wait:
                    by_time = min(by_time, _FASTER_BY_WAIT * (since / self._wait) ** 2)
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
