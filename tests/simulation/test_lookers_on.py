"""Functions of the author's that look at finished trials: they call no tool and reach nothing, wherever they are given."""

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from langchain_core.tools import tool as langchain_tool

from greenroom import Agent, Case, Ledger, Scripted, call, score, simulate, tool
from greenroom.errors import FenceBreach
from greenroom.ledger import responses
from greenroom.metrics import judge
from greenroom.models import ModelReply, ModelRequest
from greenroom.simulation import deciding_step, shrink
from greenroom.suite import mutation_score

ACTED: list[str] = []
CASE = Case("c", says="Hello", mocks={"pay": "ok"})


@tool
def pay() -> str:
    """Pay."""
    ACTED.append("paid")
    return "paid"


@langchain_tool
def mail() -> str:
    """Mail."""
    ACTED.append("mailed")
    return "mailed"


def clerk() -> Agent:
    return Agent("clerk", model=Scripted(call("pay"), "Done.", then="Done."), tools=[pay])


def in_a_thread() -> None:
    thread = threading.Thread(target=lambda: swallowed(pay)(None))
    thread.start()
    thread.join()


def connect() -> None:
    socket.create_connection(("127.0.0.1", 9), timeout=1).close()


ACTS: list[Callable[[], object]] = [pay, lambda: mail.invoke({}), in_a_thread, connect]
NAMES = ["a tool", "a framework's tool", "a tool in a thread", "a connection"]


@pytest.fixture(autouse=True)
def nothing_acted() -> Iterator[None]:
    ACTED.clear()
    yield
    assert ACTED == []


def swallowed(act: Callable[[], object], value: object = True) -> Any:
    """A function of one argument that acts, and hides what came of it."""

    def look(_: object) -> object:
        try:
            act()
        except Exception:
            return value
        return value

    return look


async def failing_async(act: Callable[[], object]) -> Any:
    async def look(ledger: Ledger) -> bool:
        return swallowed(act)(ledger)

    recorded = await simulate(CASE, clerk())
    return await shrink(CASE, clerk(), look, ledger=recorded)


async def failing(act: Callable[[], object]) -> Any:
    return await shrink(CASE, clerk(), swallowed(act))


async def telling(act: Callable[[], object]) -> Any:
    return await shrink(CASE, clerk(), lambda _: True, on_step=swallowed(act))


async def deciding(act: Callable[[], object]) -> Any:
    return await deciding_step(await simulate(CASE, clerk()), clerk(), swallowed(act), n=1)


async def estimating(act: Callable[[], object]) -> Any:
    return await mutation_score(clerk(), [CASE], on_estimate=swallowed(act), store=False)


PLACES = [failing, failing_async, telling, deciding, estimating]


@pytest.mark.parametrize("act", ACTS, ids=NAMES)
@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__)
def test_who_looks_at_a_trial_does_not_act(place: Any, act: Any) -> None:
    with pytest.raises(FenceBreach):
        asyncio.run(place(act))


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__)
def test_who_only_looks_is_heard(place: Any) -> None:
    assert asyncio.run(place(lambda: None)) is not None


class Asked:
    """A judge's model, which says yes."""

    name = "asked"

    def __init__(self) -> None:
        self.times = 0

    async def respond(self, request: ModelRequest, on_delta: Any = None) -> ModelReply:
        self.times += 1
        return ModelReply('{"reasoning": "It is.", "score": 10, "verdict": "yes"}')


def test_a_judge_may_say_whether_a_smaller_case_still_fails() -> None:
    model = Asked()

    async def fails(ledger: Ledger) -> bool:
        await score(ledger, [judge("done", "Is it done?", model=model)])
        return "Done." in responses(ledger)

    assert asyncio.run(shrink(CASE, clerk(), fails)).is_minimal
    assert model.times > 0
