"""The suite for authors of middleware: middleware that passes it can be put around any trial.

    from greenroom.testing import MiddlewareContract

    class TestAudit(MiddlewareContract):
        def middleware(self):
            return Audit()

If the middleware is meant to answer or change something, set `passes_through = False`. The suite's agent may
not contain what it is made for: then give your own `agent` and `case` too.
The tests are plain functions, so no plug-in for async tests is needed.
"""

import asyncio
from collections.abc import Sequence
from typing import Any, cast

import pytest

from greenroom.agents import Agent, tool
from greenroom.cases.case import Case, Turn
from greenroom.ledger.events import AgentSaid, RunEnded, ToolFailed, ToolReturned
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.messages import call
from greenroom.models.scripted import Scripted
from greenroom.simulation.conversation import simulate
from greenroom.testing.ledgers import timeless

_AT_ONCE = 16

_acted: list[int] = []


@tool
def refund(order: int) -> str:
    """Refund an order."""
    _acted.append(order)
    return f"refunded {order}"


@tool
def look_up(order: int) -> str:
    """Look an order up."""
    return f"order {order} is lost"


class MiddlewareContract:
    """Subclass it with a `middleware`, and pytest collects the suite for it."""

    passes_through = True
    """Whether a trial that does not concern it has the same ledger with and without it."""

    def middleware(self) -> Any:
        """A new middleware object; a list, if several belong together."""
        raise NotImplementedError("give the middleware to test")

    def agent(self) -> Any:
        """The agent that it is put around."""
        asks = [call("look_up", order=7), call("look_up", order=8)]
        model = Scripted(asks, call("refund", order=7), "It is refunded.", "You are welcome.")
        return Agent("clerk", model=model, tools=[refund, look_up])

    def case(self) -> Case:
        """The conversation; every tool that acts needs a mock."""
        mocks = {"refund": "ok", "look_up": {"state": "lost"}}
        return Case("contract", turns=[Turn("Refund 7."), Turn("Thanks.")], mocks=mocks)

    def test_a_run_that_does_not_concern_it_is_left_unchanged(self) -> None:
        """The ledger is the same with it as without."""
        if not self.passes_through:
            pytest.skip("it declares that it changes trials: passes_through = False")
        with_it, without = self._run(self._made()), self._run(())
        assert timeless(with_it) == timeless(without)

    def test_a_run_that_is_cut_anywhere_comes_to_the_same_end(self) -> None:
        """Whatever it must remember about a trial, it reads from the ledger."""
        whole = self._run(self._made())
        for cut in range(1, len(whole)):
            resumed = self._run(self._made(), Ledger(whole.events[:cut]))
            assert _said_and_done(resumed) == _said_and_done(whole), (
                f"interrupted after event {cut - 1}"
            )

    def test_sixteen_runs_at_once_do_not_disturb_each_other(self) -> None:
        """One middleware object serves many trials."""
        alone, shared = self._run(self._made()), self._made()

        async def at_once() -> list[Ledger]:
            runs = [simulate(self.case(), self.agent(), middleware=shared) for _ in range(_AT_ONCE)]
            return await asyncio.gather(*runs)

        for ledger in asyncio.run(at_once()):
            assert _said_and_done(ledger) == _said_and_done(alone)

    def test_it_never_runs_the_body_of_a_tool(self) -> None:
        """A tool that is mocked does not act."""
        model = Scripted(call("refund", order=1), "Done.")
        clerk = Agent("clerk", model=model, tools=[refund])
        _acted.clear()
        named = Case("named", says="Refund 1.", allow_tools=["refund"])
        asyncio.run(simulate(named, clerk))
        assert _acted == [1], "the body records that it ran"
        _acted.clear()
        mocked = Case("mocked", says="Refund 1.", mocks={"refund": "ok"})
        asyncio.run(simulate(mocked, clerk, middleware=self._made()))
        assert _acted == []

    def _made(self) -> Sequence[object]:
        made = self.middleware()
        return [*cast("Sequence[Any]", made)] if isinstance(made, list | tuple) else [made]

    def _run(self, middleware: Sequence[object], ledger: Ledger | None = None) -> Ledger:
        """A trial from its beginning, or continued from a ledger."""
        run = simulate(self.case(), self.agent(), ledger=ledger, middleware=middleware)
        return asyncio.run(run)


def _said_and_done(ledger: Ledger) -> list[object]:
    """The outcome of a trial: what was said, what tools returned, the state, and why it ended."""
    found: list[Any] = [ledger.fold()]
    for event in ledger:
        match event:
            case AgentSaid(text=text):
                found.append(("said", text))
            case ToolReturned(tool=tool, value=value, source=source):
                found.append((tool, value, source))
            case ToolFailed(tool=tool, error=error, source=source):
                found.append((tool, error, source))
            case RunEnded(reason=reason, error_type=error_type, phase=phase):
                found.append((reason, error_type, phase))
            case _:
                pass
    return found
