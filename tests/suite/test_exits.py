"""Code that is played cannot end the process: an exit code of 0 would look like a pass."""

import asyncio
import gc
import sys
from dataclasses import replace
from typing import Any

import pytest

from greenroom import Agent, Case, Expect, Ledger, Scripted, call, evaluate, rehearse, step, tool
from greenroom.errors import RunBroke, ToolRefused
from greenroom.ledger import RunEnded, ToolFailed
from greenroom.world import Middleware

HI = Case("a", says="Hi.", expect=Expect(response="Hello."))


def leaves(message: str) -> str:
    sys.exit(0)


async def leaves_async(message: str) -> str:
    sys.exit(0)


def exits(ctx: object) -> str:
    sys.exit(0)


async def exits_async(ctx: object) -> str:
    sys.exit(0)


@tool
def look() -> str:
    """Look."""
    sys.exit(0)


AGENTS: dict[str, Any] = {
    "a function": leaves,
    "an async function": leaves_async,
    "a step": step(exits),
    "an async step": step(exits_async),
    "a model": Agent("a", model=Scripted(lambda _: sys.exit(0))),  # pyright: ignore[reportUnknownLambdaType]
}


@pytest.mark.parametrize("agent", AGENTS.values(), ids=AGENTS.keys())
def test_an_agent_that_exits_is_an_error_of_its_case(agent: Any) -> None:
    report = rehearse(
        agent,
        [HI, Case("b", says="Hi.", agent=Agent("b", model=Scripted("Hello.")), expect=HI.expect)],
    )
    assert [result.status for result in report] == ["error", "passed"]
    assert report.results[0].error is not None
    assert "SystemExit" in report.results[0].error.message


def test_a_tool_or_mock_that_exits_is_an_error_of_its_case() -> None:
    agent = Agent("a", model=Scripted(call("look"), "Hello."), tools=[look])
    allowed = Case("a", says="Hi.", allow_tools=[look], expect=HI.expect)
    mocked = Case("b", says="Hi.", mocks={"look": lambda: sys.exit(0)}, expect=HI.expect)  # pyright: ignore[reportUnknownLambdaType]
    report = rehearse(agent, [allowed, mocked])
    assert [result.status for result in report] == ["passed", "error"]
    assert report.results[0].ledger is not None
    [failed] = report.results[0].ledger.of(ToolFailed)
    assert "SystemExit" in failed.error, "the agent is told, as of any other failure"


class Outcome(BaseException):
    """No `Exception`, as the failures and skips of test frameworks are none."""


def exit_metric(ledger: Ledger) -> float:
    sys.exit(0)


async def async_exit_metric(ledger: Ledger) -> float:
    sys.exit(0)


def failing_check(ledger: Ledger) -> float:
    pytest.fail("not polite")


async def async_failing_check(ledger: Ledger) -> float:
    await asyncio.sleep(0)
    raise Outcome("not polite")


def closing_metric(ledger: Ledger) -> float:
    raise GeneratorExit


async def async_closing_metric(ledger: Ledger) -> float:
    await asyncio.sleep(0)
    raise GeneratorExit


@pytest.mark.parametrize(
    "metric",
    [
        exit_metric,
        async_exit_metric,
        failing_check,
        async_failing_check,
        closing_metric,
        async_closing_metric,
    ],
)
def test_a_metric_that_exits_measures_nothing_and_ends_nothing_else(metric: Any) -> None:
    agent = Agent("a", model=Scripted("Hello."))
    report = rehearse(agent, [Case("a", says="Hi.", metrics=[metric]), replace(HI, id="b")])
    assert [result.status for result in report] == ["error", "passed"]
    assert report.results[0].error is not None
    assert "test_exits.py" in report.results[0].error.message


def test_what_ends_the_loop_itself_is_no_report_but_an_error() -> None:
    class Exits(Middleware):
        async def close(self) -> None:
            raise SystemExit(0)

    agent = Agent("a", model=Scripted("Hello."))
    with pytest.raises(RunBroke, match=r"tried to end the process \(SystemExit\(0\)\)"):
        rehearse(agent, [HI], middleware=[Exits()])


def test_an_interruption_from_inside_is_raised_and_not_logged_too(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def interrupting(ledger: Ledger) -> float:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rehearse(Agent("a", model=Scripted("Hello.")), [HI], metrics=[interrupting])
    gc.collect()  # a task whose exception nobody saw is logged as it goes
    assert not caplog.records


async def test_no_real_tool_acts_after_the_run_is_over() -> None:
    acted: list[int] = []

    @tool
    async def pay(amount: int) -> str:
        """Pay."""
        acted.append(amount)
        return "paid"

    left: list[asyncio.Task[Any]] = []
    over = asyncio.Event()

    async def clerk(message: str) -> str:
        async def later() -> None:
            await over.wait()
            await pay(7)

        left.append(asyncio.ensure_future(later()))
        return "Hello."

    report = await evaluate(clerk, [HI], allow_tools=[pay], store=False)
    over.set()
    [refused] = await asyncio.gather(*left, return_exceptions=True)
    assert report.passed
    assert acted == []
    assert isinstance(refused, ToolRefused)
    assert report.results[0].ledger is not None
    assert isinstance(report.results[0].ledger.last, RunEnded)


async def cancels_every_task(message: str) -> str:
    for task in asyncio.all_tasks():
        task.cancel()
    await asyncio.sleep(0)
    return "Hello."


async def stops_the_loop(message: str) -> str:
    asyncio.get_running_loop().stop()
    await asyncio.Event().wait()
    return "Hello."


@pytest.mark.parametrize(
    "agent, what",
    [
        (cancels_every_task, "cancelled the run itself"),
        (stops_the_loop, "stopped its event loop"),
    ],
)
def test_an_agent_that_ends_the_run_it_is_in_is_a_broken_run(agent: Any, what: str) -> None:
    with pytest.raises(RunBroke, match=what):
        rehearse(agent, [HI])
