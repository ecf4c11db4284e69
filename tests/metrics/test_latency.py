"""`turn_within`, `first_answer_within` and `model_within` measure how long the user waited."""

import math
from typing import Any

import pytest

from greenroom import Case, Unmeasured, score
from greenroom.errors import BadMetric
from greenroom.ledger import (
    AgentSaid,
    Answer,
    Answered,
    Event,
    Ledger,
    ModelReplied,
    RunEnded,
    RunResumed,
    RunStarted,
    UserSaid,
)
from greenroom.metrics import first_answer_within, model_within, turn_within


def at(*stamped: tuple[float, Event]) -> Ledger:
    ledger = Ledger()
    ledger.append(RunStarted(run_id="r"), at=0.0)
    for seconds, event in stamped:
        ledger.append(event, at=seconds)
    ledger.append(RunEnded(reason="completed"), at=stamped[-1][0] + 50 if stamped else 0.0)
    return ledger


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
