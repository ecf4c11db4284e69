"""A trial is called deterministic only if nothing in it can have been left to chance."""

import random
from typing import Annotated, Any

import pytest
from pydantic import AfterValidator

from greenroom import Agent, Case, Expect, Lines, Scripted, call, evaluate, tool
from greenroom.agents import StateSchema
from greenroom.cases import in_turn
from greenroom.models import candidate, choose
from greenroom.world import Middleware


@tool
def look(order: int) -> str:
    """Look an order up."""
    raise AssertionError("mocked")


class Moody(Middleware):
    """Answers in place of the model, if it feels like it."""

    async def after_model(self, request: Any, reply: Any) -> Any:
        """Now and then another answer."""
        return "No!" if random.random() < 2 else None


class Watching(Middleware):
    """Only looks."""

    async def on_event(self, event: Any) -> None:
        """Nothing is changed."""


def lucky(text: str) -> str:
    return text if random.random() < 2 else "yes"


def by_chance(*_: object) -> bool:
    return random.random() < 2


class Orders(StateSchema):
    """What the agent keeps."""

    answer: Annotated[str, AfterValidator(lucky)] = ""


def clerk(**options: Any) -> Agent:
    given: dict[str, Any] = {"model": Scripted(call("look", order=1), "No."), **options}
    return Agent("clerk", tools=[look], **given)


CASE: dict[str, Any] = {"says": "Hi", "mocks": {"look": "it"}, "expect": Expect(contains="yes")}


async def is_fixed(agent: Agent, case: dict[str, Any], **options: Any) -> bool:
    report = await evaluate(agent, [Case("a", **{**CASE, **case})], store=False, **options)
    assert report.results[0].status == "failed"
    return report.results[0].fixed


async def test_a_script_with_constant_mocks_is_deterministic() -> None:
    assert await is_fixed(clerk(), {})
    assert await is_fixed(clerk(), {"user": Lines("And?")}, model=Scripted(then="No."))
    assert await is_fixed(clerk(), {"mocks": {"look": in_turn("it")}})
    assert await is_fixed(clerk(), {}, middleware=[Watching()])


@pytest.mark.parametrize(
    "agent",
    [
        clerk(
            model=choose(
                candidate(Scripted("No.", name="one"), when=by_chance),
                otherwise=Scripted("No.", name="two"),
            )
        ),
        clerk(model=Scripted('"No."'), output=Annotated[str, AfterValidator(lucky)]),
        clerk(schema=Orders, writes="answer"),
        clerk(context=[lambda *_: []]),
    ],
    ids=["choose", "output", "schema", "context"],
)
async def test_code_that_decides_for_the_agent_may_decide_otherwise(agent: Agent) -> None:
    assert not await is_fixed(agent, {})


@pytest.mark.parametrize(
    "case",
    [
        {"mocks": {"look": lambda order: "it"}},
        {"mocks": {"look": in_turn(lambda order: "it")}},
        {"user": Lines("And?", then=lambda: None)},
    ],
    ids=["mock", "mock in turn", "line"],
)
async def test_code_of_the_case_may_answer_otherwise(case: dict[str, Any]) -> None:
    assert not await is_fixed(clerk(model=Scripted(call("look", order=1), then="No.")), case)


async def test_middleware_that_acts_may_decide_otherwise() -> None:
    assert not await is_fixed(clerk(), {}, middleware=[Moody()])
