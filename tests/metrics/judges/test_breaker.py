"""A judge that cannot be reached is not asked for ever, and never counts as a low score."""

import asyncio

from greenroom.cases import Score, Unmeasured
from greenroom.metrics import judge
from metrics.judges.asked import Asked, measured, order, yes


def down(*then):
    model = Asked(*then, then=ConnectionError("no route"))
    return model, judge("polite", "?", model=model)


async def test_after_five_failures_in_a_row_it_is_left_alone():
    model, metric = down()
    outcomes = [await measured(metric) for _ in range(8)]
    assert model.calls == 5
    assert all(isinstance(outcome, Unmeasured) for outcome in outcomes)
    assert "no route" in outcomes[4].why
    assert "failed 5 times in a row" in outcomes[5].why


async def test_a_reply_in_between_begins_the_count_anew():
    model = Asked(then=ConnectionError("no route"))
    metric = judge("polite", "?", model=model)
    for _ in range(4):
        await measured(metric)
    model._script = Asked(yes())._script
    assert isinstance(await measured(metric), Score)
    model._script = Asked(then=ConnectionError("no route"))._script
    for _ in range(6):
        await measured(metric)
    assert model.calls == 4 + 1 + 5


async def test_nonsense_is_an_answer_and_does_not_count():
    model = Asked(then="nonsense")
    metric = judge("polite", "?", model=model, retries=0)
    for _ in range(8):
        await measured(metric)
    assert model.calls == 8


async def test_a_judge_that_hangs_counts_as_unreachable():
    async def hangs(_):
        await asyncio.sleep(3600)

    model = Asked(then=hangs)
    metric = judge("polite", "?", model=model)
    for _ in range(7):
        await measured(metric, seconds_per_metric=0.01)
    assert model.calls == 5


async def test_questions_cut_because_another_was_given_up_do_not_count():
    async def slow(_):
        await asyncio.sleep(3600)

    model = Asked("nonsense", slow)
    # Both votes are asked for at once.
    metric = judge("polite", "?", model=model, retries=0, samples=2)
    for _ in range(7):
        found = await measured(metric)
        assert "no usable answer" in found.why
    assert model.calls == 14


async def test_other_judges_of_the_same_model_are_still_asked():
    _, metric = down()
    for _ in range(6):
        await measured(metric)
    assert isinstance(await measured(judge("other", "?", model=Asked(yes()))), Score)


async def test_answers_that_are_kept_need_no_judge_to_be_reached(tmp_path):
    model = Asked(yes())
    metric = judge("polite", "?", model=model, cache=tmp_path)
    await measured(metric)
    model._script = Asked(then=ConnectionError("no route"))._script
    for _ in range(6):
        assert isinstance(await measured(metric, order("Another answer.")), Unmeasured)
    assert model.calls == 1 + 5
    assert (await measured(metric)).details["cached"] == 1
    # And a kept answer does not make the judge any easier to reach.
    await measured(metric, order("Another answer."))
    assert model.calls == 1 + 5


async def test_it_can_be_asked_again_after_a_reset():
    model, metric = down()
    for _ in range(6):
        await measured(metric)
    metric.bench.breaker.reset()
    await measured(metric)
    assert model.calls == 6


def test_another_run_asks_anew():
    model, metric = down()

    async def run():
        for _ in range(6):
            await measured(metric)

    asyncio.run(run())
    asyncio.run(run())
    assert model.calls == 10
