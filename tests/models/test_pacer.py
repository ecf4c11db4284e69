"""A model that may answer later is asked again, by everybody at the pace it asks for."""

import asyncio
from dataclasses import dataclass, field
from heapq import heappop, heappush
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.errors import KeyRefused, ModelBroke, ModelUnreachable, RateLimited
from greenroom.ledger import Ledger, Message, ModelFailed, ModelReplied, Noted
from greenroom.models import ModelReply, ModelRequest
from greenroom.world import LiveWorld
from greenroom.world.pacer import Pace, paces
from marks import heavy

SLOW_DOWN = 0.03


def question(n: int = 0, model: str = "openai:x") -> ModelRequest:
    return ModelRequest("clerk", (Message("user", "Hi"),), model=model, path="@1/clerk", n=n)


class Moody:
    """Fails in the ways it was told to, then answers; it keeps how often it was asked."""

    def __init__(self, *errors: ModelBroke) -> None:
        self.errors = list(errors)
        self.asked = 0

    async def respond(self, request, on_delta=None) -> ModelReply:
        self.asked += 1
        if self.errors:
            raise self.errors.pop(0)
        return ModelReply("Hi")


def trouble(again: int = 4) -> ModelUnreachable:
    return ModelUnreachable("out of order", again=again, retry_after=0.001)


def limit(wait: float = 0.001, again: int = 4) -> RateLimited:
    return RateLimited("too often", again=again, retry_after=wait)


async def asked(model: Moody, world: LiveWorld | None = None) -> ModelReply:
    return await (world or LiveWorld(Ledger())).call_model(question(), model.respond)


@pytest.mark.parametrize("errors", [[trouble()], [limit()], [trouble(), limit(), trouble()]])
async def test_a_failure_that_may_pass_is_asked_again(errors):
    model = Moody(*errors)
    assert (await asked(model)).text == "Hi"
    assert model.asked == len(errors) + 1


async def test_every_further_question_is_in_the_ledger():
    world = LiveWorld(Ledger())
    await asked(Moody(trouble(), limit()), world)
    noted = [event.data for event in world.ledger.of(Noted)]
    assert [(n["attempt"], n["error_type"]) for n in noted] == [
        (1, "ModelUnreachable"),
        (2, "RateLimited"),
    ]
    assert [n["error"] for n in noted] == ["out of order", "too often"]
    assert len(world.ledger.of(ModelReplied)) == 1


async def test_the_last_failure_is_raised_when_it_has_been_asked_often_enough():
    world = LiveWorld(Ledger())
    model = Moody(*(trouble(again=2) for _ in range(9)))
    with pytest.raises(ModelUnreachable, match="out of order"):
        await asked(model, world)
    assert model.asked == 3
    [failed] = world.ledger.of(ModelFailed)
    assert failed.error_type == "ModelUnreachable"


async def test_a_failure_that_will_not_pass_is_not_asked_again():
    model = Moody(KeyRefused("no key"))
    with pytest.raises(KeyRefused):
        await asked(model)
    assert model.asked == 1


async def test_without_a_word_how_long_to_wait_it_waits_a_while():
    model = Moody(ModelUnreachable("cut", again=1))
    world = LiveWorld(Ledger())
    await asked(model, world)
    [noted] = world.ledger.of(Noted)
    assert 0.25 <= noted.data["waits"] <= 0.5


async def test_a_wait_beyond_the_deadline_fails_at_once():
    world = LiveWorld(Ledger())
    world.deadline = asyncio.get_running_loop().time() + 5
    model = Moody(limit(wait=60))
    with pytest.raises(RateLimited, match=r"60\.0 s.*too often") as found:
        await asked(model, world)
    assert found.value.retry_after == pytest.approx(60, abs=1)
    assert model.asked == 1


async def test_nobody_waits_for_hours_even_without_a_deadline():
    with pytest.raises(RateLimited, match="3600"):
        await asked(Moody(limit(wait=3600)))


async def test_whoever_comes_later_fails_at_once_too_without_asking():
    with pytest.raises(RateLimited):
        await asked(Moody(limit(wait=3600)))
    late = Moody()
    with pytest.raises(RateLimited, match="must not be asked"):
        await asked(late)
    assert late.asked == 0


async def test_other_models_are_not_held_up():
    with pytest.raises(RateLimited):
        await asked(Moody(limit(wait=3600)))
    other = Moody()
    world = LiveWorld(Ledger())
    reply = await world.call_model(question(model="openai:y"), other.respond)
    assert reply.text == "Hi"


class Bucket:
    """A model that answers so many questions at a time and refuses all others until it is free."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.asked = self.refused = 0
        self._free_at = 0.0
        self._left = size

    async def respond(self, request, on_delta=None) -> ModelReply:
        now = asyncio.get_running_loop().time()
        self.asked += 1
        if now >= self._free_at:
            self._left, self._free_at = self.size, now + SLOW_DOWN
        if not self._left:
            self.refused += 1
            raise limit(wait=SLOW_DOWN)
        self._left -= 1
        await asyncio.sleep(0)
        return ModelReply("Hi")


async def test_one_refusal_slows_everybody_down():
    model, turns = Bucket(4), asyncio.Semaphore(8)

    async def case() -> ModelReply:
        async with turns:
            return await LiveWorld(Ledger()).call_model(question(), model.respond)

    replies = await asyncio.gather(*(case() for _ in range(40)))
    assert [reply.text for reply in replies] == ["Hi"] * 40
    # Each for himself would be refused more than once for every reply.
    assert model.refused <= 20


def test_when_the_model_is_at_ease_again_nobody_is_held():
    now = 1.0
    pace = Pace(clock=lambda: now)
    pace.refused(begun=0.5, wait=1.0)
    assert pace.take() == 1.0
    for _ in range(400):
        now += 0.1
        pace.answered()
    assert [pace.take() for _ in range(50)] == [0.0] * 50


def test_refusals_of_one_storm_widen_the_gap_once():
    alone, storm = Pace(clock=lambda: 9.0), Pace(clock=lambda: 9.0)
    alone.refused(begun=1.0, wait=0.0)
    for _ in range(50):
        storm.refused(begun=1.0, wait=0.0)
    assert alone.take() == storm.take() == 0
    assert storm.take() == alone.take() > 0


@pytest.mark.parametrize("wait", [1.0, 250.0])
def test_an_hour_in_which_nothing_was_asked_says_nothing_of_a_models_pace(wait):
    now = 0.0
    pace = Pace(is_opening=True, clock=lambda: now)
    for now in (0.0, 3600.0):
        assert [pace.take() for _ in range(4)] == [0.0] * 4
        if not now:
            pace.answered()
    for _ in range(8):
        pace.refused(begun=3600.0, wait=wait)
        now += 0.01
    now += wait
    assert pace.take() == 0
    assert 0 < pace.take() <= 1


@pytest.mark.parametrize("model", ["scripted", "function:reply:"])
async def test_a_model_on_this_machine_has_no_pace(model):
    await LiveWorld(Ledger()).call_model(question(model=model), Moody().respond)
    assert paces == {}


async def test_the_waits_of_two_runs_differ_and_those_of_one_run_do_not():
    async def waits(run: str) -> float:
        world = LiveWorld(Ledger())
        world.run_id = run
        await asked(Moody(ModelUnreachable("cut", again=1)), world)
        return world.ledger.of(Noted)[0].data["waits"]

    first, again, other = await asyncio.gather(waits("one"), waits("one"), waits("two"))
    assert first == again != other


async def test_a_model_gets_ready_before_its_first_calls_take_their_turns():
    heard: list[str] = []

    class Cold(Moody):
        async def get_ready(self) -> None:
            heard.append("ready")

        async def respond(self, request, on_delta=None) -> ModelReply:
            heard.append("asked")
            return ModelReply("Hi")

    await asked(Cold())
    assert heard == ["ready", "asked"]


@dataclass
class Simulated:
    """A server with a token bucket, and so many who ask it at once, by a clock of their own."""

    rate: float
    burst: int
    width: int
    latency: float
    told: float
    """The least time it asks refused callers to wait."""
    uneven: float = 0.0
    """How many seconds a way there or back may take longer than the next."""
    now: float = 0.0
    refused: int = 0
    early: int = 0
    chance: Random = field(default_factory=lambda: Random(7))

    def play(self, calls: int) -> float:
        """The seconds until all calls have passed."""
        pace, tokens, filled, free_at = self.pace(), float(self.burst), 0.0, 0.0
        due = [(0.0, n, "ask", 0.0) for n in range(self.width)]
        left, passed = calls - self.width, 0
        while passed < calls:
            self.now, who, what, begun = heappop(due)
            if what == "ask":
                wait = pace.take()
                self.early += not wait and self.now < free_at
                at = self.now + (wait or self.way())
                heappush(due, (at, who, "ask" if wait else "arrive", self.now))
            elif what == "arrive":
                tokens = min(self.burst, tokens + (self.now - filled) * self.rate)
                filled, is_free = self.now, tokens >= 1
                tokens -= is_free
                heappush(due, (self.now + self.way(), who, str(is_free), begun))
            elif what == "True":
                pace.answered()
                passed, left = passed + 1, left - 1
                if left >= 0:
                    heappush(due, (self.now, who, "ask", 0.0))
            else:
                self.refused += 1
                wait = max(self.told, 1 / self.rate)
                pace.refused(begun, wait)
                free_at = max(free_at, self.now + wait)
                heappush(due, (self.now, who, "ask", 0.0))
        return self.now

    def way(self) -> float:
        return self.latency / 2 + self.uneven * self.chance.random()

    def pace(self) -> Pace:
        return Pace(is_opening=True, clock=lambda: self.now)


@pytest.mark.parametrize("told", [0.05, 1.0])
@pytest.mark.parametrize("latency", [0.005, heavy(0.05), 0.2])
@pytest.mark.parametrize(
    "rate, burst", [heavy(20, 20), (5, 5), heavy(100, 50), (20, 1), (300, 300)]
)
def test_the_pace_of_a_server_is_found_with_few_refusals(rate, burst, latency, told):
    server = Simulated(rate, burst, 64, latency, told)
    seconds = server.play(600)
    assert server.refused / 600 <= 0.25
    assert server.early == 0
    assert seconds <= 2.5 * max((600 - burst) / rate, 600 / 64 * latency) + told


@pytest.mark.parametrize("width", [8, 64])
@pytest.mark.parametrize("told", [0.0, 1.0])
@pytest.mark.parametrize("latency", [0.01, heavy(0.05), 0.3])
@pytest.mark.parametrize("burst", [1, heavy(2), heavy(3), 5])
@pytest.mark.parametrize("rate", [5, heavy(10), 20])
def test_a_server_with_small_bursts_is_stormed_for_twice_the_ideal_at_most(
    rate, burst, latency, told, width
):
    calls = 200
    server = Simulated(rate, burst, width, latency, told, uneven=0.005)
    seconds = server.play(calls)
    ideal = max((calls - burst) / rate, calls / width * latency)
    assert server.refused >= 1  # else nothing was tried
    assert seconds <= 2 * ideal
    assert server.refused / calls <= 0.25
    assert server.early == 0


@pytest.mark.parametrize("width", [8, 64])
@pytest.mark.parametrize("told", [0.0, heavy(0.4), 1.0])
@pytest.mark.parametrize("latency", [0.01, heavy(0.05), 0.3])
@pytest.mark.parametrize("burst", [1, heavy(2), heavy(3), 5])
@pytest.mark.parametrize(
    "rate, calls",
    [(5, 300), heavy(20, 300), heavy(40, 300), heavy(80, 320), (200, 2000)],
)
def test_a_fast_server_with_small_bursts_is_stormed_for_twice_the_ideal_too(
    rate, calls, burst, latency, told, width
):
    # On the way to a server that is asked every 5 ms a few milliseconds more are a refusal.
    server = Simulated(rate, burst, width, latency, told, uneven=0.001)
    seconds = server.play(calls)
    assert seconds <= 2 * max((calls - burst) / rate, calls / width * latency)
    assert server.refused / calls <= 0.25
    assert server.early == 0


@given(
    rate=st.floats(1, 500),
    burst=st.integers(1, 200),
    width=st.integers(1, 100),
    latency=st.floats(0.001, 0.5),
    told=st.floats(0, 5),
)
def test_nobody_begins_a_call_while_the_server_asks_for_patience(rate, burst, width, latency, told):
    server = Simulated(rate, burst, width, latency, told)
    server.play(width + 100)
    assert server.early == 0


async def test_a_cancelled_question_holds_nobody_up():
    with pytest.raises(RateLimited):
        await asked(Moody(limit(wait=0.2, again=0)))
    await LiveWorld(Ledger()).call_model(question(), Moody(limit(wait=0.05)).respond)
    waiting = asyncio.ensure_future(asked(Moody()))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert (await asked(Moody())).text == "Hi"
