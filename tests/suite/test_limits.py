"""A metric, judge or hook that does not end is cut at its limit, and the run goes on."""

import asyncio
import inspect
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import warm_python
from greenroom import (
    Agent,
    Case,
    Expect,
    Score,
    Scripted,
    Unmeasured,
    call,
    evaluate,
    rehearse,
    tool,
)
from greenroom import score as score_run
from greenroom.metrics import judge
from greenroom.suite.cancel import Cancel
from greenroom.suite.hooks import Hooks
from greenroom.suite.recorded.rescores import rescore
from suite import hangs

GREETER = Agent("greeter", model=Scripted("Hello."))
CASES = [Case("a", says="Hi"), Case("b", says="Hi")]
SOON = 0.2
CUT = Unmeasured("the metric did not finish within 0.2 s")


@pytest.fixture(autouse=True)
def nothing_hangs_on() -> Iterator[None]:
    yield
    hangs.let_go()


def fine(response):
    return True


def last(response):
    return True


def assert_only_the_hanging_one_is_unmeasured(report, name):
    assert [result.case_id for result in report.results] == ["a", "b"]
    for result in report.results:
        assert result.scores[name] == CUT
        for other in ("fine", "last"):
            assert isinstance(result.scores[other], Score)
            assert result.scores[other].passed
        assert result.status == "error"


@pytest.mark.parametrize("hanging", hangs.EVERY, ids=lambda f: f.__name__)
async def test_a_metric_that_does_not_end_is_unmeasured_and_all_others_are_not(hanging):
    metrics = [fine, hanging, last]
    report = await evaluate(GREETER, CASES, metrics=metrics, seconds_per_metric=SOON, store=False)
    assert_only_the_hanging_one_is_unmeasured(report, hanging.__name__)


@pytest.mark.parametrize(
    "hanging", [hangs.sleeps, hangs.swallows_everything], ids=lambda f: f.__name__
)
async def test_it_is_cut_alike_when_a_run_is_measured_anew(hanging):
    report = await evaluate(GREETER, CASES, store=False)
    again = await rescore(report, metrics=[fine, hanging, last], seconds_per_metric=SOON)
    assert_only_the_hanging_one_is_unmeasured(again.report, hanging.__name__)


@pytest.mark.parametrize("hanging", hangs.EVERY, ids=lambda f: f.__name__)
async def test_it_is_cut_alike_when_a_single_run_is_scored(hanging):
    report = await evaluate(GREETER, CASES[:1], store=False)
    ledger = report["a"].ledger
    assert ledger is not None
    found = await score_run(ledger, [fine, hanging, last], seconds_per_metric=SOON)
    assert found[hanging.__name__] == CUT
    assert [type(found[name]) for name in ("fine", "last")] == [Score, Score]
    await asyncio.sleep(0)  # a cancellation left behind would come now


UNHEARD_THERE = {hangs.searches, hangs.blocks_in_a_coroutine, hangs.blocks_when_cancelled}
"""What no other thread can break: see docs/why/safety.md."""


@pytest.mark.parametrize(
    "hanging", [f for f in hangs.EVERY if f not in UNHEARD_THERE], ids=lambda f: f.__name__
)
async def test_it_is_cut_alike_beside_a_running_loop_as_in_a_notebook(hanging):
    report = rehearse(
        GREETER, CASES, metrics=[fine, hanging, last], seconds_per_metric=SOON, store=False
    )
    assert_only_the_hanging_one_is_unmeasured(report, hanging.__name__)


@tool
def refund(order: int) -> str:
    """Refund an order."""
    return "ok"


def never(value: object) -> bool:
    hangs.block()
    return True


async def test_a_function_that_a_case_expects_something_of_is_cut_too():
    wait = Expect(tools=[call("refund", order=never)], contains="Hello")
    agent = Agent("clerk", model=Scripted(call("refund", order=7), "Hello."), tools=[refund])
    case = Case("a", says="Hi", expect=wait, mocks={"refund": "ok"})
    report = await evaluate(agent, [case], seconds_per_metric=SOON, store=False)
    assert report["a"].scores["expected_tools"] == CUT
    assert isinstance(report["a"].scores["expected_contains"], Score)


class Stuck:
    """A judge's model that blocks, or swallows its cancellation."""

    def __init__(self, hang):
        self.name = f"stuck that {hang.__name__}"
        self._hang = hang

    async def respond(self, request, on_delta=None):
        if inspect.iscoroutinefunction(self._hang):
            await self._hang("")
        return self._hang("")


@pytest.mark.parametrize(
    "hang", [hangs.sleeps, hangs.spins, hangs.swallows_cancellation], ids=lambda f: f.__name__
)
async def test_a_judge_whose_model_does_not_answer_is_cut(hang):
    kind = judge("kind", "Was it kind?", model=Stuck(hang))
    report = await evaluate(
        GREETER, CASES, metrics=[fine, kind, last], seconds_per_metric=SOON, store=False
    )
    assert_only_the_hanging_one_is_unmeasured(report, "kind")


@pytest.mark.parametrize("hang", hangs.BLOCKING, ids=lambda f: f.__name__)
async def test_a_hook_that_does_not_return_is_cut_and_noted(hang):
    hooks = Hooks(on_case_start=hang, seconds=SOON)
    hooks.case_started(CASES[0])
    await asyncio.sleep(0)
    words = f"the hook {hang.__name__!r} did not return within 0.2 s, and was stopped"
    assert hooks.notes == [words]


@pytest.mark.parametrize(
    "hang", [f for f in hangs.BLOCKING if f is not hangs.searches], ids=lambda f: f.__name__
)
def test_a_hook_is_cut_on_another_thread_with_a_loop_or_without(hang):
    notes: list[str] = []

    def told() -> None:
        hooks = Hooks(on_case_start=hang, seconds=SOON)
        hooks.case_started(CASES[0])
        asyncio.run(asyncio.to_thread(hooks.case_started, CASES[0]))
        notes.extend(hooks.notes)

    thread = threading.Thread(target=told, daemon=True)
    thread.start()
    thread.join(60)
    assert notes == [f"the hook {hang.__name__!r} did not return within 0.2 s, and was stopped"]


async def test_a_hook_that_is_cut_again_and_again_is_not_called_any_more():
    called: list[str] = []

    def slow(case: Case) -> None:
        called.append(case.id)
        hangs.block()

    hooks = Hooks(on_case_start=slow, seconds=SOON)
    for _ in range(5):
        hooks.case_started(CASES[0])
    assert len(called) == 3
    assert hooks.notes[1:] == ["the hook 'slow' was stopped 3 times, and not called after that"]


@pytest.mark.parametrize(
    "hanging", [hangs.awaits, hangs.swallows_everything], ids=lambda f: f.__name__
)
async def test_a_run_that_is_stopped_does_not_go_on_to_the_next_metric(hanging):
    token, asked = Cancel(), list[str]()

    async def first(response):
        asyncio.get_running_loop().call_later(0.1, token.cancel, "enough")
        await hanging(response)

    def second(response):
        asked.append("second")
        return True

    report = await evaluate(GREETER, CASES[:1], metrics=[first, second], store=False, cancel=token)
    assert (report["a"].status, asked) == ("skipped", [])


PROGRAM = """
import asyncio, sys
sys.path.insert(0, {tests!r})
from greenroom import Agent, Case, Scripted, evaluate, rehearse
from suite import hangs

def fine(response):
    return True

asked = dict(metrics=[getattr(hangs, {name!r}), fine], seconds_per_metric=0.5, store=False)
agent, cases = Agent("greeter", model=Scripted("Hello.")), [Case("a", says="Hi")]
if {own!r}:
    report = rehearse(agent, cases, **asked)
else:
    report = asyncio.run(evaluate(agent, cases, **asked))
print(*(type(score).__name__ for score in report["a"].scores.values()))
"""


@pytest.mark.parametrize("own", [True, False], ids=["own loop", "caller's loop"])
@pytest.mark.parametrize(
    "hanging",
    [
        hangs.swallows_everything,
        hangs.waits_for_a_stubborn_task,
        hangs.waits_for_an_async_generator,
        hangs.waits_for_the_loops_thread,
        hangs.sleeps,
    ],
    ids=lambda f: f.__name__,
)
def test_nothing_that_was_cut_keeps_the_interpreter_from_ending(hanging, own):
    tests = str(Path(__file__).parents[1])
    text = PROGRAM.format(tests=tests, name=hanging.__name__, own=own)
    ran = warm_python.run([sys.executable, "-c", text], capture_output=True, text=True)
    assert (ran.returncode, ran.stdout.split()) == (0, ["Unmeasured", "Score"]), ran.stderr


TRACED = """
import asyncio, sys, threading
from threading import Event

def trace(frame, event, arg):
    return trace

threading.settrace(trace)
sys.settrace(trace)
from greenroom import Agent, Case, Scripted, metric, rehearse

@metric
def hangs(response: str) -> bool:
    Event().wait()
    return True

async def cell():
    agent = Agent("a", model=Scripted("Hello."))
    return rehearse(agent, [Case("c", "Hi")], metrics=[hangs], seconds_per_metric=0.2, store=False)

print(asyncio.run(cell()).results[0].scores["hangs"].why)
"""


def test_it_is_cut_alike_while_a_debugger_or_coverage_traces_every_line(tmp_path):
    script = tmp_path / "traced.py"
    script.write_text(TRACED)
    command = [sys.executable, str(script)]
    # No fork: tracing begins before anything is imported.
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout == "the metric did not finish within 0.2 s\n", done.stderr
