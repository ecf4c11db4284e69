"""Cases are tested by agents that are broken on purpose."""

from typing import Any

from greenroom import Agent, Case, Expect, Scripted, call, tool
from greenroom.metrics import turns_within
from greenroom.models import ModelRequest
from greenroom.suite import mutation


@tool
def find(order: int, deep: bool, words: list[str]) -> dict[str, str]:
    """Find a parcel."""
    raise AssertionError("mocked")


@tool
def refund(order: int) -> str:
    """Pay an order back."""
    raise AssertionError("mocked")


def reply(request: ModelRequest) -> Any:
    if len(request.messages) > 1:
        return "In Lyon." if "kind" in request.instructions else "Lyon, you fool."
    is_able = "find" in [spec.name for spec in request.tools]
    return call("find", order=7, deep=True, words=[]) if is_able else "No idea."


CLERK = Agent(
    "clerk",
    model=Scripted(then=reply),
    tools=[find, refund],
    instructions="Be kind. Never pay twice.",
)
MOCKS = {"find": {"place": "Lyon"}, "refund": "done"}
LOOKS = Case("looks", says="Where?", mocks=MOCKS, expect=Expect(tools=["find"], contains="Lyon"))
KIND = Case("kind", says="Where?", mocks=MOCKS, expect=Expect(response="In Lyon."))


async def test_a_set_is_told_what_it_does_not_notice() -> None:
    found = await mutation(CLERK, [LOOKS, KIND])
    assert found.mutants["says nothing"] == found.mutants["refuses"] == ("looks", "kind")
    assert found.mutants["calls every tool"] == ("looks", "kind")
    assert found.mutants["without the tool find"] == ("looks", "kind")
    assert found.mutants["without the rule 'Be kind.'"] == ("kind",)
    assert found.survivors == ["without the tool refund", "without the rule 'Never pay twice.'"]
    assert found.score == 5 / 7
    assert str(found).startswith("5 of 7 mutants noticed\nnot noticed: without the tool refund")


async def test_cases_that_cannot_pass_or_cannot_fail_are_named() -> None:
    hard = Case("hard", says="Where?", mocks=MOCKS, expect=Expect(response="In Paris."))
    easy = Case("easy", says="Where?", mocks=MOCKS, metrics=[turns_within(5)])
    found = await mutation(CLERK, [hard, easy], trials=2)
    assert (found.impossible, found.trivial) == (("hard",), ("easy",))
    assert found.score == 0.0
    assert "passes whatever is answered: easy" in str(found)
    assert "does not pass with the agent itself: hard" in str(found)


async def test_other_agents_have_the_mutants_that_need_another_model() -> None:
    async def ask(message: str, ctx: Any) -> str:
        return (await ctx.ask(Scripted(then="In Lyon."), message)).text

    found = await mutation(ask, [Case("c", says="Where?", expect=Expect(contains="Lyon"))])
    assert [*found.mutants] == ["says nothing", "refuses", "calls every tool"]
    assert found.score == 1.0
