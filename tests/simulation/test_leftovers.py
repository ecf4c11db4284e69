"""A run that is over is gone: what it was made of is freed at once, not by a later collection."""

import gc
import weakref
from typing import Any

import pytest

from greenroom import Agent, Case, Expect, Ledger, Scripted, evaluate, simulate
from greenroom.backends import Advance
from greenroom.backends.native import NativeBackend
from greenroom.errors import ToolRefused
from greenroom.models import ModelRequest
from greenroom.world import ToolRequest, World
from rehearsals import end_of

AGENT = Agent("clerk", model=Scripted("Hello."))


async def test_a_ledger_is_freed_when_its_last_reader_lets_go():
    class Heard:
        """A listener that only the run holds on to."""

        def __call__(self, event: object) -> None: ...

    gc.collect()
    gc.disable()
    try:
        heard = Heard()
        left = weakref.ref(heard)
        await simulate(Case("hello", says="Hi"), AGENT, on_event=heard)
        del heard
        assert left() is None
    finally:
        gc.enable()


async def test_an_evaluation_leaves_no_garbage_for_each_of_its_cases():
    cases = [Case(f"hello {n}", says="Hi", expect=Expect(contains="Hello")) for n in range(50)]
    await evaluate(AGENT, cases[:1], keep_ledgers=False)
    gc.collect()
    gc.disable()
    try:
        await evaluate(AGENT, cases, keep_ledgers=False)
        assert gc.collect() < len(cases)
    finally:
        gc.enable()


class Remembering(NativeBackend):
    """Keeps the worlds it was played in, as work that was left behind would."""

    def __init__(self) -> None:
        super().__init__(AGENT)
        self.worlds: list[World] = []

    async def advance(self, ledger: Ledger, world: World) -> Advance:
        self.worlds.append(world)
        return await super().advance(ledger, world)


async def test_a_run_that_is_over_calls_nothing_any_more_and_says_whose_it_was():
    async def body(*_: object) -> Any:
        raise AssertionError

    backend = Remembering()
    before = await simulate(Case("hello", says="Hi", mocks={}), backend)
    length = len(before)
    (world,) = backend.worlds
    with pytest.raises(
        ToolRefused, match=r"^the trial of case 'hello' is over; no further call is allowed"
    ):
        await world.call_tool(ToolRequest("1", "refund", {}), body)
    with pytest.raises(
        ToolRefused, match=r"^the trial of case 'hello' is over; no further call is allowed"
    ):
        await world.call_model(ModelRequest("clerk", ()), body)
    assert len(before) == length
    assert end_of(before).reason == "completed"
