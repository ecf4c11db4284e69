"""The deciding step of trials whose agents go on between turns only."""

import asyncio
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.models.function import FunctionModel

from greenroom import Case, Ledger, Lines, simulate
from greenroom.ledger import ModelReplied, response
from greenroom.simulation import deciding_step

WAY = Case("way", says="Hello", user=Lines("Which way?", "And then?"))


def guide(first: str) -> Any:
    """An agent that says which way, and comes to where its own words led."""

    def respond(messages: list[Any], _: Any) -> ModelResponse:
        said = [part.content for message in messages for part in message.parts]
        if said[-1] == "And then?":
            return ModelResponse([TextPart("Arrived." if "Left." in said else "Lost.")])
        return ModelResponse([TextPart(first if said[-1] == "Which way?" else "Hi.")])

    return Agent(FunctionModel(respond), name="guide")


def arrived(ledger: Ledger) -> bool:
    return response(ledger) == "Arrived."


@pytest.mark.parametrize("n, is_told", [(6, True), (1, False)])
def test_the_turn_that_decided_is_named_by_its_first_answer(n: int, is_told: bool) -> None:
    failed = asyncio.run(simulate(WAY, guide("Right.")))
    found = asyncio.run(deciding_step(failed, guide("Left."), arrived, case=WAY, n=n))
    assert (found.event is not None) is is_told
    if is_told:
        assert isinstance(found.event, ModelReplied)
        assert found.event.text == "Right."
