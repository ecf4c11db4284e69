"""What the user of a live conversation hears is the answer, whatever came out before it."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

import pytest
from pydantic_ai import Agent as PydanticAgent
from pydantic_ai.models.function import FunctionModel

from greenroom import Agent, call, perform, step, tool
from greenroom.agents import timeout
from greenroom.errors import AgentFailed, GarbledReply
from greenroom.ledger import Ledger, responses
from greenroom.models import ModelReply, send_piece
from greenroom.simulation import Restarted


class Breaking:
    """A model that says these pieces and then raises, as often as it is told to."""

    name = "breaking"

    def __init__(self, *pieces: str, error: Exception | None = None, times: int = 99) -> None:
        self.pieces = pieces
        self.error = error
        self.left = times if error else 0

    async def respond(self, request: Any, on_delta: Any = None) -> ModelReply:
        for piece in self.pieces:
            await send_piece(on_delta, piece)
        if self.left:
            self.left -= 1
            assert self.error is not None
            raise self.error
        return ModelReply("".join(self.pieces))


class Hanging(Breaking):
    async def respond(self, request: Any, on_delta: Any = None) -> ModelReply:
        await send_piece(on_delta, self.pieces[0])
        return await asyncio.Event().wait()  # type: ignore[return-value]


def broken(name: str = "first", **options: Any) -> Agent:
    return Agent(name, model=Breaking("On", "ce", error=RuntimeError("no")), **options)


def whole() -> Agent:
    return Agent("second", model=Breaking("All ", "is well."))


@step
async def loud(chunks: AsyncIterator[str]) -> AsyncIterator[str]:
    async for chunk in chunks:
        yield chunk.upper()


@step
async def count(chunks: AsyncIterator[str]) -> str:
    return f"{len([chunk async for chunk in chunks])} pieces"


async def heard(agent: Any, *middleware: Any) -> tuple[list[str], Ledger]:
    performance = perform(agent, "Hi", store=False, middleware=middleware)
    return [piece async for piece in performance.deltas()], await performance


NEW = Restarted()
ANEW: dict[str, tuple[Any, list[str]]] = {
    "another agent takes over": (broken() // whole(), ["On", "ce", NEW, "All ", "is well."]),
    "an agent that took too long": (
        timeout(Agent("slow", model=Hanging("Well")), 0.1) // whole(),
        ["Well", NEW, "All ", "is well."],
    ),
    "the agent is tried again": (
        Agent("first", model=Breaking("On", "ce", error=RuntimeError("no"), times=1), retries=1),
        ["On", "ce", NEW, "On", "ce"],
    ),
    "the model is asked again": (
        Agent("first", model=Breaking("On", error=GarbledReply("no", again=1), times=1)),
        ["On", NEW, "On"],
    ),
    "one that a step listens to": (
        (broken() // whole()) >> count,
        ["On", "ce", NEW, "All ", "is well."],
    ),
    "a step that yields": ((broken() // whole()) >> loud, ["ON", "CE", NEW, "ALL ", "IS WELL."]),
}


@pytest.mark.parametrize("agent, pieces", ANEW.values(), ids=ANEW)
async def test_words_that_do_not_count_are_followed_by_a_mark(agent: Any, pieces: list[str]):
    found, _ = await heard(agent)
    assert found == [*map(str, pieces)]
    assert [type(piece) for piece in found] == [type(piece) for piece in pieces]


async def test_on_delta_gets_the_mark_too():
    found: list[str] = []
    await perform(broken() // whole(), "Hi", store=False, on_delta=found.append)
    assert [piece for piece in found if isinstance(piece, Restarted)] == [""]


async def test_a_turn_that_fails_ends_with_its_error_and_no_mark():
    found: list[str] = []
    with pytest.raises(AgentFailed):
        await perform(broken(), "Hi", store=False, on_delta=found.append)
    assert found == ["On", "ce"]


class Hook:
    """Puts another answer in the place of what was heard."""


class AfterModel(Hook):
    def after_model(self, request: Any, reply: Any) -> str:
        return "Never mind."


class AfterAgent(Hook):
    def after_agent(self, agent: Any, output: Any) -> str:
        return "Never mind."


class OnError(Hook):
    def on_model_error(self, request: Any, error: Any) -> str:
        return "Never mind."


@pytest.mark.parametrize(
    "agent, hook", [(whole(), AfterModel()), (whole(), AfterAgent()), (broken(), OnError())]
)
async def test_an_answer_of_middleware_is_heard_in_place_of_the_models(agent: Agent, hook: Hook):
    found, ledger = await heard(agent, hook)
    assert len(found) == 4
    assert isinstance(found[2], Restarted)
    assert found[3] == "Never mind."
    assert responses(ledger) == ["Never mind."]


async def test_what_is_said_before_a_tool_is_called_stands():
    @tool
    def look() -> str:
        """Look."""
        return "seen"

    class Looking:
        name = "looking"

        async def respond(self, request: Any, on_delta: Any = None) -> ModelReply:
            text = "Found." if request.n else "Let me see. "
            await send_piece(on_delta, text)
            return ModelReply(text, () if request.n else (call("look"),))

    found, _ = await heard(Agent("looker", model=Looking(), tools=[look]))
    assert found == ["Let me see. ", "Found."]
    assert not any(isinstance(piece, Restarted) for piece in found)


# What gives no pieces


@step
def answer(input: str) -> str:
    return f"You said {input}."


def say(message: str) -> str:
    return f"You said {message}."


async def say_by_and_by(message: str) -> AsyncIterator[str]:
    yield "You said "
    yield f"{message}."


def say_in_pieces(message: str) -> Iterator[str]:
    yield "You said "
    yield f"{message}."


@pytest.mark.parametrize(
    "agent, pieces",
    [
        (answer, ["You said Hi."]),
        (say, ["You said Hi."]),
        (say_by_and_by, ["You said ", "Hi."]),
        (say_in_pieces, ["You said ", "Hi."]),
    ],
)
async def test_what_is_no_agent_is_heard_as_it_yields_or_when_it_has_answered(
    agent: Any, pieces: Sequence[str]
):
    found, ledger = await heard(agent)
    assert found == pieces
    assert responses(ledger) == ["You said Hi."]


async def test_a_function_that_asks_a_model_says_only_its_own_words():
    async def clerk(message: str, ctx: Any) -> str:
        said = await ctx.ask(Breaking("inner ", "words"), message)
        return f"({said.text})"

    found, _ = await heard(clerk)
    assert found == ["(inner words)"]


async def test_a_model_of_a_framework_that_cannot_stream_is_heard_when_it_has_answered():
    async def respond(messages: Any, info: Any) -> Any:
        from pydantic_ai.messages import ModelResponse, TextPart

        return ModelResponse([TextPart("Whole.")])

    found, _ = await heard(PydanticAgent(FunctionModel(respond), name="clerk"))
    assert found == ["Whole."]
