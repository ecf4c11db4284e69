"""What a reply says is checked before anything relies on it: the impossible is an error of its trial, no more."""

from decimal import Decimal
from enum import IntEnum
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from greenroom import Agent, Case, Expect, Ledger, Scripted, evaluate, tool
from greenroom.cases import SimulatedUser, simulated
from greenroom.ledger import ModelFailed, ToolCall, Usage, call
from greenroom.metrics import contains, cost_within, judge, tokens_within
from greenroom.models import ModelReply, Price, candidate, choose
from greenroom.store import Store
from greenroom.world.middleware.protocol import Middleware

NAN, INF = float("nan"), float("inf")
ODD: Any = {
    "less than no tokens": ModelReply("Done.", usage=Usage(-500, 3)),
    "half a token": ModelReply("Done.", usage=Usage(1.5, 3)),  # pyright: ignore[reportArgumentType]
    "a yes for a count": ModelReply("Done.", usage=Usage(1, True)),
    "more tokens than there are": ModelReply("Done.", usage=Usage(10**30, 3)),
    "usage as a dict": ModelReply("Done.", usage={"input": 1, "output": 2}),  # pyright: ignore[reportArgumentType]
    "a negative cost": ModelReply("Done.", usage=Usage(1, 2), cost=-1.0),
    "no number": ModelReply("Done.", usage=Usage(1, 2), cost=NAN),
    "endless": ModelReply("Done.", usage=Usage(1, 2), cost=INF),
    "a signal": ModelReply("Done.", cost=Decimal("sNaN")),  # pyright: ignore[reportArgumentType]
    "a cost in words": ModelReply("Done.", cost="0.1"),  # pyright: ignore[reportArgumentType]
    "a number as text": ModelReply(5),  # pyright: ignore[reportArgumentType]
    "bytes as text": ModelReply(b"Done."),  # pyright: ignore[reportArgumentType]
    "words as calls": ModelReply("Done.", calls="look"),  # pyright: ignore[reportArgumentType]
    "a call without a tool": ModelReply("Done.", calls=(ToolCall(None),)),  # pyright: ignore[reportArgumentType]
    "arguments that are no object": ModelReply("Done.", calls=(ToolCall("look", 5),)),  # pyright: ignore[reportArgumentType]
    "arguments that are not JSON": ModelReply("Done.", calls=(call("look", q=NAN),)),
    "a number as its model": ModelReply("Done.", model=7),  # pyright: ignore[reportArgumentType]
    "a path as a file": ModelReply("Done.", attachments=("a.png",)),  # pyright: ignore[reportArgumentType]
}


class Tokens(IntEnum):
    """Counts of a library that has its own numbers."""

    FEW = 3


class Odd:
    """A model that replies by the name of what it is asked."""

    name = "odd"

    async def respond(self, request: Any, on_delta: Any = None) -> ModelReply:
        return ODD.get(request.last, ModelReply("Done.", usage=Usage(1, 2), cost=0.25))


def replying(reply: Any) -> Scripted:
    return Scripted(then=lambda _: reply, name="odd")


def asks(*says: str, **more: Any) -> list[Case]:
    return [Case(said, says=said, metrics=[contains("Done")], **more) for said in says]


class Ill:
    """A model that gives no ModelReply at all."""

    name = "ill"

    async def respond(self, request: Any, on_delta: Any = None) -> Any:
        return "Done."


@pytest.mark.parametrize("odd", ODD)
async def test_an_impossible_reply_is_an_error_of_its_trial_and_no_other(odd: str, tmp_path: Path):
    report = await evaluate(Agent("a", model=Odd()), asks("before", odd, "after"), store=tmp_path)
    broken = report[odd]
    assert [result.status for result in report.results] == ["passed", "error", "passed"]
    assert broken.error is not None
    assert (broken.error.phase, broken.error.type) == ("agent", "GarbledReply")
    assert "the model 'odd' replied" in broken.error.message
    assert broken.ledger.of(ModelFailed)
    assert Ledger.loads(broken.ledger.dumps()) == broken.ledger
    assert str(Store(tmp_path).report(report.id)) == str(report)
    assert report.cost == 0.5


@pytest.mark.usefixtures("warm_workers")
async def test_an_impossible_reply_is_the_same_error_in_a_worker(tmp_path: Path):
    (tmp_path / "odd.py").write_text("""
from greenroom import Agent, Scripted
from greenroom.ledger import Usage
from greenroom.models import ModelReply

def reply(request):
    return ModelReply("Done.", usage=Usage(-500 if request.last == "odd" else 1, 3), cost=0.25)

agent = Agent("a", model=Scripted(then=reply, name="odd"))
""")
    agent = f"{tmp_path / 'odd.py'}:agent"
    cases = [Case(said, says=said, expect=Expect(contains="Done")) for said in ("odd", "fine")]
    here = await evaluate(agent, cases, store=False)
    there = await evaluate(agent, cases, store=False, workers=1)
    assert [r.error for r in there.results] == [r.error for r in here.results]
    assert there.cost == here.cost == 0.25


async def test_what_is_no_reply_is_named_as_such():
    [result] = (await evaluate(Agent("a", model=Ill()), asks("x"), store=False)).results
    assert result.error is not None
    assert result.error.type == "GarbledReply"
    assert "replied 'Done.', which is impossible. Give a ModelReply." in result.error.message


@pytest.mark.parametrize("usage", [Usage(None, 3), Usage(3, None), Usage(None, None), None])  # pyright: ignore[reportArgumentType]
async def test_a_count_that_is_partly_unknown_is_unknown_and_not_0(usage: Any):
    case = Case("c", says="x", metrics=[contains("Done"), tokens_within(10)])
    agent = Agent("a", model=replying(ModelReply("Done.", usage=usage, cost=0.1)))
    [result] = (await evaluate(agent, [case], store=False)).results
    assert (result.usage, result.cost) == (None, 0.1)
    assert "unmeasured" in str(result.scores["tokens_within(total=10)"]).lower()
    assert result.scores["contains('Done')"].passed


async def test_numbers_of_other_kinds_count_as_what_they_are(tmp_path: Path):
    case = Case("c", says="x", metrics=[tokens_within(10), cost_within(1.0)])
    for cost in (Decimal("0.5"), Fraction(1, 2), 0.5):
        reply: Any = ModelReply("Done.", usage=Usage(Tokens.FEW, 2), cost=cost)  # pyright: ignore[reportArgumentType]
        report = await evaluate(Agent("a", model=replying(reply)), [case], store=tmp_path)
        [result] = Store(tmp_path).report(report.id).results
        assert (result.status, result.usage, result.cost) == ("passed", Usage(3, 2), 0.5)


async def test_a_candidate_with_a_price_costs_nothing_known_if_its_tokens_are_unknown():
    reply: Any = ModelReply("Done.", usage=Usage(None, 3))  # pyright: ignore[reportArgumentType]
    model = choose(candidate(replying(reply), price=Price.per_million(1.0, 2.0)))
    [result] = (await evaluate(Agent("a", model=model), asks("x"), store=False)).results
    assert (result.status, result.usage, result.cost) == ("passed", None, None)


async def test_a_negative_cost_raises_no_budget():
    odd = ModelReply("Done.", usage=Usage(1, 2), cost=-9.0)

    def reply(request: Any) -> ModelReply:
        return odd if request.last == "0" else ModelReply("Done.", cost=0.25)

    agent = Agent("a", model=Scripted(then=reply))
    report = await evaluate(
        agent, asks(*map(str, range(9))), store=False, budget=0.5, concurrency=1
    )
    assert report.cost is not None
    assert 0 < report.cost <= 0.75
    assert "skipped" in {result.status for result in report.results}


async def test_a_judge_with_an_impossible_reply_has_not_measured():
    said = '{"reasoning": "It is so.", "verdict": true}'
    for reply in (ModelReply(said, usage=Usage(-1, 3)), ModelReply(said, cost=NAN), ModelReply(7)):  # pyright: ignore[reportArgumentType]
        kind = judge("kind", "Kind?", model=replying(reply))
        case = Case("c", says="x", metrics=[kind, contains("Done")])
        agent = Agent("a", model=Scripted(then="Done."))
        [result] = (await evaluate(agent, [case], store=False)).results
        assert result.error is not None
        assert result.error.phase == "metric"
        assert "GarbledReply" in result.error.message
        assert result.scores["contains('Done')"].passed


async def test_a_simulated_user_with_an_impossible_reply_is_an_error_of_the_user():
    user = SimulatedUser("Ada", goal="help", model=replying(ModelReply("Hi.", cost=NAN)))
    cases = [Case("c", user=user, metrics=[contains("Done")]), *asks("fine")]
    report = await evaluate(Agent("a", model=Scripted(then="Done.")), cases, store=False)
    error = report["c"].error
    assert error is not None
    assert (error.phase, error.type) == ("user_agent", "UserAgentFailed")
    assert "cost=nan" in error.message
    assert report["fine"].status == "passed"


@tool
def look(q: str) -> str:
    """Look something up."""
    raise NotImplementedError


async def test_a_simulated_tool_with_an_impossible_reply_is_a_broken_mock():
    answer = ModelReply('{"result": "x", "state": {}}', usage=Usage(-1, 1))
    world = simulated("A library.", model=replying(answer))
    agent = Agent("a", model=Scripted(call("look", q="x"), then="Done."), tools=[look])
    [result] = (await evaluate(agent, asks("x", mocks={"look": world}), store=False)).results
    assert result.error is not None
    assert result.error.type == "MockBroke"
    assert "usage=Usage(input=-1, output=1)" in result.error.message


class Answering(Middleware):
    """Middleware that answers in the model's place."""

    name = "answering"

    def __init__(self, reply: Any) -> None:
        self._reply = reply

    async def before_model(self, request: Any) -> Any:
        return self._reply


class Changing(Middleware):
    """Middleware that changes every reply."""

    name = "changing"
    seen: Any = None

    async def after_model(self, request: Any, reply: Any) -> Any:
        self.seen = reply
        return ModelReply(5)  # pyright: ignore[reportArgumentType]


async def test_middleware_is_blamed_for_its_own_replies_and_never_sees_an_impossible_one():
    fine = Agent("a", model=Scripted(then="Done."))
    for member in (Answering(ModelReply("Done.", cost=-1.0)), Changing()):
        report = await evaluate(fine, asks("x"), store=False, middleware=[member])
        error = report["x"].error
        assert error is not None
        assert error.type == "MiddlewareFailed"
        assert f"middleware {member.name!r} in " in error.message
    changing = Changing()
    odd = Agent("a", model=replying(ModelReply(5)))  # pyright: ignore[reportArgumentType]
    report = await evaluate(odd, asks("x"), store=False, middleware=[changing])
    error = report["x"].error
    assert error is not None
    assert error.type == "GarbledReply"
    assert changing.seen is None
