"""How long the user waited: for the turn, the first answer, the first words, or the model."""

import asyncio
import math
from typing import Any

import pytest

from greenroom import Agent, Case, Expect, NotApplicable, Unmeasured, evaluate, score
from greenroom.errors import BadMetric
from greenroom.ledger import (
    AgentSaid,
    Answer,
    Answered,
    Event,
    Ledger,
    ModelReplied,
    Noted,
    RunEnded,
    RunResumed,
    RunStarted,
    ToolCalled,
    ToolReturned,
    UserSaid,
)
from greenroom.ledger.events import IMPORTED
from greenroom.metrics import (
    completed_within,
    first_answer_within,
    first_words_within,
    metric,
    model_within,
    turn_within,
)
from greenroom.models import ModelReply, ModelRequest, OnDelta, send_piece


def at(*stamped: tuple[float, Event]) -> Ledger:
    ledger = Ledger()
    ledger.append(RunStarted(run_id="r"), at=0.0)
    for seconds, event in stamped:
        ledger.append(event, at=seconds)
    ledger.append(RunEnded(reason="completed"), at=stamped[-1][0] + 50 if stamped else 0.0)
    return ledger


@metric
def quick(seconds: float) -> bool:
    return seconds < 5


async def outcome(metric: Any, ledger: Ledger) -> Any:
    return (await score(ledger, [metric], Case("c")))[metric.name]


TWO_TURNS = [
    (1.0, UserSaid(text="one")),
    (2.0, AgentSaid(text="a moment")),
    (4.0, AgentSaid(text="done")),
    # The simulated user thinks for a long while.
    (9.0, ModelReplied(model="user", voice="user")),
    (9.5, UserSaid(text="two")),
    (11.0, AgentSaid(text="done")),
]


def two_turns() -> Ledger:
    return at(*[(seconds, type(e)(**_fresh(e))) for seconds, e in TWO_TURNS])


def _fresh(event: Event) -> dict[str, Any]:
    named: dict[str, Any] = {"voice": event.voice}
    if isinstance(event, UserSaid | AgentSaid):
        named["text"] = event.text
    return named


async def test_the_longest_turn_counts_without_the_users_time():
    found = await outcome(turn_within(3), two_turns())
    assert (found.passed, found.measured) == (True, 3.0)
    found = await outcome(turn_within(2.9), two_turns())
    assert (found.value, found.passed) == (0.0, False)
    assert found.reason == "the longest, turn 1, took 3 s; the limit is 2.9 s"
    assert found.evidence == ["turn 1: 3 s", "turn 2: 1.5 s"]


async def test_the_first_words_count_and_not_the_last():
    found = await outcome(first_answer_within(1.5), two_turns())
    assert (found.passed, found.measured) == (True, 1.5)


async def test_a_round_of_answers_begins_a_wait_too():
    ledger = at(
        (0.0, UserSaid(text="one")),
        (1.0, AgentSaid(text="which?")),
        (8.0, Answered(answers=(Answer(yield_id="y", value="blue"),))),
        (10.0, AgentSaid(text="done")),
    )
    assert (await outcome(turn_within(5), ledger)).measured == 2.0


async def test_the_time_of_a_cut_does_not_count():
    ledger = at(
        (0.0, UserSaid(text="one")),
        (100.0, RunResumed()),
        (101.0, AgentSaid(text="done")),
    )
    assert (await outcome(turn_within(5), ledger)).measured == 1.0


async def test_the_slowest_live_reply_of_the_agents_models_counts():
    ledger = at(
        (0.0, UserSaid(text="one")),
        (1.0, ModelReplied(model="m", seconds=0.5)),
        (2.0, ModelReplied(model="m", seconds=2.0)),
        (3.0, ModelReplied(model="m", seconds=9.0, source="replayed")),
        (4.0, ModelReplied(model="m", seconds=9.0, voice="user")),
    )
    found = await outcome(model_within(1), ledger)
    assert (found.passed, found.measured) == (False, 2.0)
    assert "reply 2 of m" in found.reason


@pytest.mark.parametrize("metric", [turn_within(1), first_answer_within(1), model_within(1)])
async def test_without_anything_to_time_it_is_unmeasured(metric):
    assert isinstance(await outcome(metric, at()), Unmeasured)


async def test_turns_without_words_have_no_first_answer():
    assert isinstance(
        await outcome(first_answer_within(1), at((0.0, UserSaid(text="x")))), Unmeasured
    )


@pytest.mark.parametrize("make", [turn_within, first_answer_within, model_within])
@pytest.mark.parametrize("number", [0, -1, math.nan, math.inf, "1", True, None])
def test_limits_are_numbers(make, number):
    with pytest.raises(BadMetric, match=r"give seconds, more than 0"):
        make(number)


async def test_the_first_words_of_each_live_reply_are_timed():
    ledger = at(
        (1.0, UserSaid(text="one")),
        (2.0, ModelReplied(model="m", seconds=3.0, first=0.5)),
        (3.0, ModelReplied(model="m", seconds=3.0, first=0.2)),
        (4.0, ModelReplied(model="m", seconds=3.0)),
        (5.0, ModelReplied(model="m", seconds=9.0, first=9.0, source="replayed")),
        (6.0, ModelReplied(model="m", seconds=9.0, first=9.0, voice="user")),
    )
    found = await outcome(first_words_within(0.5), ledger)
    assert (found.passed, found.measured) == (True, 0.5)
    assert found.evidence == ["reply 1 of m: 0.5 s", "reply 2 of m: 0.2 s"]
    assert not (await outcome(first_words_within(0.4), ledger)).passed


async def test_words_that_came_all_at_once_cannot_be_timed():
    found = await outcome(first_words_within(1), at((1.0, ModelReplied(model="m", seconds=3.0))))
    assert found == Unmeasured("no model in this trial streamed its reply")


class Asked:
    """A model that knows whether someone wanted its words as they came."""

    name = "asked"

    def __init__(self) -> None:
        self.streamed: list[bool] = []

    async def respond(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelReply:
        self.streamed.append(on_delta is not None)
        await send_piece(on_delta, "Hel")
        await asyncio.sleep(0.01)
        await send_piece(on_delta, "lo.")
        return ModelReply("Hello.")


@pytest.mark.parametrize("own", [True, False], ids=["of the case", "of the run"])
async def test_a_metric_of_first_words_has_models_stream(own: bool):
    model, metric = Asked(), first_words_within(5)
    case = Case("c", "Hi", metrics=[metric] if own else [], expect=Expect(response="Hello."))
    agent = Agent("a", model=model)
    report = await evaluate(agent, case, metrics=[] if own else [metric], store=False)
    (result,) = report.results
    assert result.passed
    assert result.ledger is not None
    (reply,) = result.ledger.of(ModelReplied)
    assert reply.first is not None
    assert reply.first < reply.seconds
    assert Ledger.loads(result.ledger.dumps()).of(ModelReplied)[0].first == reply.first
    await evaluate(agent, Case("d", "Hi", expect=Expect(response="Hello.")), store=False)
    assert model.streamed == [True, False]


@pytest.mark.parametrize("source, place", [("replayed", "a recording"), ("cached", "a cache")])
@pytest.mark.parametrize(
    "metric",
    [
        completed_within(100),
        turn_within(5),
        first_answer_within(5),
        model_within(5),
        quick,
    ],
)
async def test_answers_that_were_kept_say_nothing_about_time(
    metric: Any, source: Any, place: str
) -> None:
    ledger = at(
        (0.0, UserSaid(text="one")),
        (0.1, ModelReplied(model="m", seconds=9.0, source=source)),
        (0.2, AgentSaid(text="done")),
    )
    found = await outcome(metric, ledger)
    assert isinstance(found, NotApplicable)
    assert found.why.startswith(f"answers in this trial come from {place}, so ")


async def test_a_turn_of_new_answers_counts_beside_one_of_kept_answers() -> None:
    ledger = at(
        (0.0, UserSaid(text="one")),
        (0.1, ModelReplied(model="m", source="replayed")),
        (0.2, AgentSaid(text="done")),
        (1.0, UserSaid(text="two")),
        (2.0, ModelReplied(model="m")),
        (4.0, AgentSaid(text="done")),
    )
    for limit in (turn_within(5), first_answer_within(5)):
        found = await outcome(limit, ledger)
        assert (found.measured, found.evidence) == (3.0, ["turn 2: 3 s"])


async def test_what_took_too_long_with_kept_answers_took_too_long() -> None:
    ledger = at(
        (0.0, UserSaid(text="one")),
        (0.1, ModelReplied(model="m", source="replayed")),
        (9.0, AgentSaid(text="done")),
    )
    assert not (await outcome(completed_within(5), ledger)).passed


@pytest.mark.parametrize(
    "metric",
    [
        completed_within(5),
        turn_within(5),
        first_answer_within(5),
        quick,
    ],
)
async def test_a_clock_that_is_set_back_measures_nothing(metric: Any) -> None:
    ledger = at(
        (100.0, UserSaid(text="one")),
        (40.0, AgentSaid(text="done")),
    )
    found = await outcome(metric, ledger)
    assert isinstance(found, Unmeasured)
    assert found.why == "the clock was set back meanwhile, so how long it took is unknown"


@pytest.mark.parametrize(
    "metric, seconds",
    [
        (completed_within(9), 8.0),
        (turn_within(9), 8.0),
        (first_answer_within(9), 3.0),
    ],
)
async def test_an_imported_call_may_end_after_the_last_words(metric: Any, seconds: float) -> None:
    ledger = Ledger(
        [
            RunStarted(run_id="r"),
            Noted(name=IMPORTED),
            UserSaid(text="one"),
            ToolCalled(call_id="1", tool="log", args={}, at=1.0),
            ToolReturned(call_id="1", tool="log", source="live", value="ok", at=8.0),
            AgentSaid(text="done", at=3.0),
            Noted(name="more", at=8.0),
            RunEnded(reason="completed", at=8.0),
        ]
    )
    found = await outcome(metric, ledger)
    assert (found.passed, found.measured) == (True, seconds)


async def test_a_reply_that_took_less_than_no_time_measures_nothing() -> None:
    ledger = at((0.0, UserSaid(text="one")), (1.0, ModelReplied(model="m", seconds=-2.0)))
    found = await outcome(model_within(5), ledger)
    assert found == Unmeasured("the record has a model reply that took less than no time")
