"""The engine all judges share: a question is put to a model until it has a usable answer.

    question   the author's words, the evidence, and the form of the answer
    bench      who is asked, and how: model, samples, re-asks, cache, breaker
    hearing    one metric's asking about one run; it counts what that took

A metric of your own opens a hearing (`bench.open(world, name)`), asks (`await hearing.ask(...)`),
and turns `NoVerdict` into `Unmeasured`.
"""

import asyncio
from collections.abc import Coroutine, Mapping
from dataclasses import field, fields, is_dataclass
from itertools import count
from typing import Any, Generic, Literal, TypeVar, cast
from weakref import ref

from greenroom.errors import Refusal
from greenroom.ledger.messages import Message, Usage
from greenroom.ledger.plain import Json, without_addresses
from greenroom.ledger.records import record
from greenroom.metrics.judges.evidence import LIMIT, fitted, legend
from greenroom.metrics.judges.forms import Form
from greenroom.metrics.judges.parser import NotAnAnswer
from greenroom.metrics.judges.repetition import Shown
from greenroom.metrics.judges.seal import Seal, sealed
from greenroom.models.model import Model, ModelReply, ModelRequest, model_name
from greenroom.models.scripted import Scripted
from greenroom.world.answers import AnswerCache, CachedWorld, answers_of, key_of, uncached
from greenroom.world.replay import trial_of
from greenroom.world.world import World

FAILURES = 5


class Breaker:
    """Counts failures in a row of one judge; at the limit it stays open until the run is over.

    Every event loop is a run of its own, since `rehearse` opens one each time; `reset` begins anew
    within a loop.
    """

    __slots__ = ("_failed", "_loop", "limit")

    def __init__(self, limit: int = FAILURES) -> None:
        self.limit = limit
        self._failed = 0
        self._loop: ref[asyncio.AbstractEventLoop] | None = None

    @property
    def open(self) -> bool:
        """Whether the judge should not be asked any more."""
        self._notice_run()
        return self._failed >= self.limit

    def failed(self) -> None:
        """No reply came."""
        self._notice_run()
        self._failed += 1

    def answered(self) -> None:
        """A reply came, whatever it says."""
        self._notice_run()
        self._failed = 0

    def reset(self) -> None:
        """Forget what failed."""
        self._failed = 0

    def _notice_run(self) -> None:
        loop = asyncio.get_running_loop()
        if self._loop is None or self._loop() is not loop:
            self._loop = ref(loop)
            self._failed = 0


Aggregate = Literal["mean", "majority"]
T = TypeVar("T")

RETRIES = 2
_AT_ONCE = 8


class NoVerdict(Exception):
    """The judge gave no usable answer, or could not be asked; the text says why."""


@record
class Question(Generic[T]):
    """What a judge is asked. `words` are the author's and trusted; the evidence is nobody's."""

    words: str
    evidence: Mapping[str, Json]
    form: Form[T]


@record(kw_only=True)
class Bench:
    """Who is asked, and how."""

    model: Model
    samples: int = 1
    aggregate: Aggregate = "mean"
    early_stop: bool = False
    every_turn: bool = False
    """Whether each turn is judged by itself, as google-adk does, and not the run as a whole."""
    retries: int = RETRIES
    batch: int = 0
    limit: int = LIMIT
    cache: AnswerCache | bool | None = None
    seal: Seal = sealed
    breaker: Breaker = field(default_factory=Breaker, compare=False)

    def open(self, world: World, name: str) -> "Hearing":
        """Begin to ask about one run."""
        return Hearing(self, world, name)

    def cache_for(self, world: World) -> AnswerCache | None:
        """Where answers are kept: here if said so, else where the whole run keeps them."""
        if isinstance(self.cache, AnswerCache):
            return self.cache
        if self.cache is False or isinstance(self.model, Scripted):
            return None
        return answers_of(world)


class Hearing:
    """One metric's asking about one run."""

    def __init__(self, bench: Bench, world: World, name: str) -> None:
        self.bench = bench
        self.name = name
        self.replies: list[ModelReply] = []
        self.left_out: dict[str, int] = {}
        self.cached = 0
        self._world = world
        self._cache = bench.cache_for(world)
        self._given_up = False
        self._numbers = count()
        self._turnstile = asyncio.Semaphore(_AT_ONCE)

    async def ask(self, question: Question[T], sample: int = 0) -> T:
        """The answer to a question; NoVerdict if none of the attempts brings a usable one."""
        problem = ""
        evidence, left_out = fitted(question.evidence, self.bench.limit)
        self.left_out |= left_out
        question = Question(question.words, evidence, question.form)
        request = self._request(question, left_out)
        reading = _Reading(question.form, Shown(evidence))
        world = self._asked_world(request, reading, sample)
        for _ in range(1 + self.bench.retries):
            try:
                return reading.answer((await self._reply(request, world)).text)
            except NotAnAnswer as error:
                problem = str(error)
                request = self._request(question, left_out, problem)
        raise self._gives_up(
            f"the judge gave no usable answer in {1 + self.bench.retries} attempts; "
            f"the last time: {problem}"
        )

    async def _reply(self, request: ModelRequest, world: World) -> ModelReply:
        async with self._turnstile:
            if self.bench.breaker.open and not _knows(world, request):
                raise self._gives_up(
                    f"the judge {request.model!r} failed {self.bench.breaker.limit} times in a row "
                    f"and is not asked any more in this run"
                )
            before = _cached(world)
            reply = await self._called(world, _numbered(request, next(self._numbers)))
        self.replies.append(reply)
        if _cached(world) > before:
            self.cached += 1
        else:
            self.bench.breaker.answered()
        return reply

    async def _called(self, world: World, request: ModelRequest) -> ModelReply:
        try:
            return await world.call_model(request, self.bench.model.respond)
        except Refusal:
            raise
        except Exception as error:
            self.bench.breaker.failed()
            cause = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            raise self._gives_up(f"the judge {request.model!r} did not answer: {cause}") from error
        except asyncio.CancelledError:
            # A judge that hangs is cut from outside, and is as unreachable as one that refuses.
            # When one question is given up, the others are cut too, and nobody is to blame.
            if not self._given_up:
                self.bench.breaker.failed()
            raise

    def _gives_up(self, why: str) -> NoVerdict:
        self._given_up = True
        return NoVerdict(why)

    def _asked_world(self, request: ModelRequest, reading: "_Reading[Any]", sample: int) -> World:
        if self._cache is None:
            return uncached(self._world)
        # An answer that needed a second asking is still the answer to the first.
        # An answer belongs to its trial: copied to another, it would be no evidence about that one.
        key = key_of(request, sample, f"{trial_of(self._world)}\n{options_of(self.bench.model)}")
        return CachedWorld(self._world, self._cache, key=key, accepts=reading.accepts)

    def _request(
        self, question: Question[Any], left_out: Mapping[str, int], problem: str = ""
    ) -> ModelRequest:
        block = self.bench.seal(question.evidence)
        asked = f"{block.text}\n\nJudge it as your instructions say."
        if problem:
            asked += f"\n\nYour last answer could not be used: {problem}. Answer again."
        return ModelRequest(
            agent=f"judge:{self.name}",
            messages=(Message("user", asked),),
            instructions=_instructions(question, block.notice, left_out),
            output_schema=question.form.schema(),
            model=model_name(self.bench.model),
            node=f"judge:{self.name}",
        )

    def spent(self) -> dict[str, Json]:
        """Which model was asked how often, and what that took; None where a reply did not say."""
        usages = [reply.usage for reply in self.replies]
        costs = [reply.cost for reply in self.replies]
        used = None if None in usages else sum(cast("list[Usage]", usages), Usage())
        model = self.replies[-1].model if self.replies else ""
        return {
            "attempts": len(self.replies),
            "cached": self.cached,
            "model": model or model_name(self.bench.model),
            "usage": None if used is None else {"input": used.input, "output": used.output},
            "cost": None if None in costs else sum(cast("list[float]", costs), 0.0),
        } | ({"left_out": dict(self.left_out)} if self.left_out else {})


@record
class _Reading(Generic[T]):
    """How replies to one question are read, be they fresh or kept from before."""

    form: Form[T]
    shown: Shown

    def answer(self, text: str) -> T:
        """The answer in a reply; NotAnAnswer if it has another form, or repeats the record."""
        found = self.form.parse(text)
        self.shown.refuse_repetition(text)
        return found

    def accepts(self, reply: ModelReply) -> bool:
        """Whether a reply can be taken for an answer; only such are kept."""
        try:
            self.answer(reply.text)
        except NotAnAnswer:
            return False
        return True


def _cached(world: World) -> int:
    return world.answered if isinstance(world, CachedWorld) else 0


def _knows(world: World, request: ModelRequest) -> bool:
    return isinstance(world, CachedWorld) and world.knows(request)


def _numbered(request: ModelRequest, n: int) -> ModelRequest:
    # `dataclasses.replace` would do, at ten times the price.
    return ModelRequest(
        request.agent,
        request.messages,
        request.instructions,
        request.tools,
        request.output_schema,
        request.model,
        request.path,
        request.node,
        n,
    )


def _instructions(question: Question[Any], notice: str, left_out: Mapping[str, int]) -> str:
    parts = [question.words, notice, legend(question.evidence) if notice else ""]
    if left_out:
        lost = ", ".join(f"{count} of `{name}`" for name, count in left_out.items())
        parts.append(f"The record was too long: characters were left out, {lost}.")
    parts.append(f"Answer with exactly one JSON object and nothing else:\n{question.form.words()}")
    return "\n\n".join(part for part in parts if part)


def options_of(model: Model) -> str:
    """What besides its name makes a model answer differently, as far as it tells."""
    kind = type(model)
    if is_dataclass(model):
        told = {f.name: getattr(model, f.name) for f in fields(model) if "key" not in f.name}
    else:
        told = getattr(model, "options", None) or getattr(model, "settings", None)
    return without_addresses(f"{kind.__module__}.{kind.__qualname__} {told!r}")


async def together(*asked: Coroutine[Any, Any, T]) -> list[T]:
    """What all of them return; the first that fails ends the others."""
    if len(asked) == 1:
        return [await asked[0]]
    tasks = [asyncio.ensure_future(one) for one in asked]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
