"""A run that is over is gone: what it was made of is freed at once, not by a later collection."""

import gc
import weakref

from greenroom import Agent, Case, Expect, Scripted, evaluate, simulate

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
