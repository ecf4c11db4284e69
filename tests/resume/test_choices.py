"""A run whose agents choose their models chooses alike when it was cut, wherever that was."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from test_cuts import assert_same_end, cut_at, cuts_of

from greenroom import Agent, Case, Ledger, Lines, Scripted, loop, route, simulate, step
from greenroom.ledger import ModelCalled, Usage
from greenroom.models import ModelReply, ModelRequest, candidate, choose


def paid(name: str, usd: float) -> Scripted:
    def answer(request: ModelRequest) -> ModelReply:
        text = f"{name} {request.n} {len(request.messages)}"
        return ModelReply(text, usage=Usage(10, 10), cost=usd, prices="test")

    return Scripted(then=answer, name=name)


def brain(by: Any = "budget", budget: float | None = 0.15) -> Any:
    def is_even(request: ModelRequest) -> bool:
        return request.n % 2 == 0

    return choose(
        candidate(paid("odd", 0.03), quality=1),
        candidate(paid("even", 0.07), quality=2, when=is_even),
        by=by,
        budget=budget,
        otherwise=paid("other", 0.0),
        promote={"session": {"upset": True}} if by == "adaptive" else None,
    )


def talk(**options: Any) -> Any:
    return loop(Agent("clerk", model=brain(**options)), awaits_input=True)


def nested() -> Any:
    def branch(name: str) -> Any:
        return loop(Agent(name, model=brain("quality", 0.5)), max_rounds=2)

    def pick(input: Any) -> str:
        return "one" if "odd" in str(input) else "otherwise"

    forked = branch("a") | (branch("b") >> (branch("c") | branch("d")))
    return loop(
        branch("e") >> forked >> route(pick, one=branch("f"), otherwise=branch("g")), max_rounds=2
    )


def promoted() -> Any:
    failing = Scripted(ConnectionError("down"), then=ModelReply("low", cost=0.01, prices="test"))
    failing.name = "low"
    adaptive = choose(
        candidate(failing, quality=1),
        candidate(paid("middle", 0.01), quality=2),
        candidate(paid("high", 0.01), quality=3),
        by="adaptive",
        promote={"session": {"upset": True}},
    )

    @step
    def hear(state: Any, input: Any) -> Any:
        state.session["upset"] = "1" in str(input)
        return input

    return loop(hear >> Agent("clerk", model=adaptive, retries=2), awaits_input=True)


FLOWS: dict[str, tuple[Any, set[str]]] = {
    "until the budget is spent": (talk, {"odd", "other"}),
    "by quality, until the budget is spent": (lambda: talk(by="quality"), {"odd", "even", "other"}),
    "in branches that share a budget": (nested, {"odd", "even", "other"}),
    "promoted by a failure and by the state": (promoted, {"low", "middle", "high"}),
}


def played(make: Any, ledger: Ledger | None = None) -> Ledger:
    user = None if make is nested else Lines(*[f"line {n}" for n in range(7)])
    case = Case("cut", says="begin", user=user, state={"session": {}}, now=1_700_000_000.0)
    return asyncio.run(simulate(case, make(), ledger=ledger))


@pytest.mark.deep
@pytest.mark.parametrize("make, models", FLOWS.values(), ids=FLOWS)
def test_a_run_cut_at_any_event_asks_the_same_models(make: Any, models: set[str]) -> None:
    whole = played(make)
    assert {event.model for event in whole.of(ModelCalled)} == models
    for k in cuts_of(whole):
        assert_same_end(played(make, cut_at(whole, k)), whole)


@pytest.mark.deep
def test_a_function_that_is_begun_anew_hears_the_models_it_asked() -> None:
    def make() -> Any:
        choice = brain("quality", 0.2)

        async def clerk(message: str, ctx: Any) -> str:
            replies = [await ctx.ask(choice, message) for _ in range(5)]
            return " ".join(reply.text for reply in replies)

        return clerk

    whole = played(make)
    assert {event.model for event in whole.of(ModelCalled)} == {"odd", "even", "other"}
    for k in cuts_of(whole):
        assert_same_end(played(make, cut_at(whole, k)), whole)
