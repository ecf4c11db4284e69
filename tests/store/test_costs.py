"""What runs cost, added up in the store."""

from greenroom import Agent, Case, Scripted, evaluate
from greenroom.metrics import judge
from greenroom.models import ModelReply
from greenroom.store import Store
from greenroom.suite.cancel import Cancel


def clerk(cost: float | None) -> Agent:
    return Agent("clerk", model=Scripted(ModelReply("Done.", cost=cost, prices="test")))


async def run_id(tmp_path, price: float | None, judge_price: float | None) -> str:
    answer = ModelReply('{"reasoning": "So.", "verdict": true}', cost=judge_price, prices="test")
    tone = judge("tone", "Was it polite?", model=Scripted(answer))
    cases = [Case(name, says="Hi", metrics=[tone]) for name in "ab"]
    return (await evaluate(clerk(price), cases, store=tmp_path)).id


async def test_agents_and_judges_are_added_up(tmp_path):
    run = await run_id(tmp_path, 0.5, 0.25)
    assert Store(tmp_path).run(run).cost == 1.5


async def test_one_unknown_price_makes_the_sum_unknown(tmp_path):
    run = await run_id(tmp_path, 0.5, None)
    other = await run_id(tmp_path, 0.5, 0.0)
    assert [Store(tmp_path).run(name).cost for name in (run, other)] == [None, 1.0]


async def test_a_run_in_which_nothing_was_played_cost_nothing(tmp_path):
    cancel = Cancel()
    cancel.cancel()
    report = await evaluate(clerk(None), [Case("a", says="Hi")], store=tmp_path, cancel=cancel)
    assert Store(tmp_path).run(report.id).cost == 0.0
