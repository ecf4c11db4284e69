"""Run by the Python that has google-adk's eval extra: sets played in google-adk's own service.

Prints a JSON object: for each question by its name, what came of it.
"""

import asyncio
import json
import os
import socket
import sys
import tempfile
import time
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

from google.adk.apps import App
from google.adk.code_executors import UnsafeLocalCodeExecutor
from google.adk.evaluation.eval_config import EvalConfig
from google.adk.evaluation.evaluator import EvalStatus, EvaluationResult, PerInvocationResult
from google.adk.plugins import BasePlugin
from google.adk.tools import FunctionTool, LongRunningFunctionTool
from google.adk.tools.tool_context import ToolContext

from backends.adk.bypasses import BYPASSES
from backends.adk.graph_bypasses import GRAPH_BYPASSES
from backends.adk.scripts import WEATHER, agent, case
from greenroom import (
    Case,
    Expect,
    Lines,
    Report,
    Turn,
    UserAgents,
    call,
    metric,
    tool,
    with_state_change,
)
from greenroom.cases.scores import Score
from greenroom.errors import BadAgent
from greenroom.ledger import questions as q
from greenroom.metrics import called
from greenroom.results.result import CaseResult
from greenroom.suite.adk.service import evaluate_in_adk
from greenroom.testing import Desk

OSLO = Turn("weather?", Expect(tools=[call("weather", city="Oslo")], reference="mild in Oslo"))
THANKS = Turn("thanks", Expect(tools=[], reference="welcome"))
LINES = (WEATHER, "mild in Oslo", "welcome")


def weather(city: str) -> str:
    """The weather."""
    raise RuntimeError("never reached")


def told(result: CaseResult) -> dict[str, Any]:
    scores = {
        name: [one.value, one.passed] if isinstance(one, Score) else type(one).__name__
        for name, one in result.scores.items()
    }
    error = f"{result.error.type}: {result.error.message}" if result.error else ""
    calls = [] if result.ledger_or_none is None else q.tool_calls(result.ledger)
    return {
        "status": result.status,
        "scores": scores,
        "error": error,
        "turns": result.turns,
        "said": result.responses,
        "calls": [[one.tool, one.args, one.result, one.source] for one in calls],
        "notes": list(result.notes),
    }


async def one(given: Any, asked: Case, *rest: Any, **options: Any) -> dict[str, Any]:
    report: Report = await evaluate_in_adk(given, asked, *rest, **options)
    return told(report.results[0])


async def passed() -> Any:
    clerk = agent("clerk", *LINES, tools=[weather])
    asked = Case(
        "two", turns=[OSLO, THANKS], mocks={"weather": "mild"}, metrics=[called("weather")]
    )
    return await one(clerk, asked)


async def expecting_more() -> Any:
    clerk = agent("clerk", *LINES, tools=[weather])
    more = Expect(
        tools=[call("weather", city="Oslo")],
        reference="mild in Oslo",
        contains="snow",
        response="mild in Oslo",
        state={"session": {"asked": True}},
    )
    asked = Case("one", turns=[Turn("weather?", more)], mocks={"weather": "mild"})
    return await one(clerk, asked)


async def unwritten() -> Any:
    clerk = agent("clerk", *LINES, tools=[weather])
    query = Turn("weather?", Expect(tools=[call("weather", city={"$in": ["Oslo", "Rome"]})]))
    asked = Case("one", turns=[query], mocks={"weather": "mild"})
    return [
        await one(clerk, asked, {name: 1.0})
        for name in ("tool_trajectory_avg_score", "safe_to_ignore")
    ]


async def clashing() -> Any:
    named = metric(lambda case: True, name="response_match_score")
    cases = [Case("one", turns=[OSLO], metrics=[named]), Case("two", turns=[THANKS])]
    report = await evaluate_in_adk(agent("clerk", "welcome"), cases)
    return [told(result) for result in report]


async def failed() -> Any:
    clerk = agent("clerk", *LINES, tools=[weather])
    return await one(clerk, Case("one", turns=[THANKS], mocks={"weather": "mild"}))


async def unmocked() -> Any:
    return await one(agent("clerk", *LINES, tools=[weather]), Case("one", turns=[OSLO]))


async def broken_metric() -> Any:
    clerk = agent("clerk", *LINES, tools=[weather])
    asked = Case("one", turns=[OSLO], mocks={"weather": "mild"})
    return await one(clerk, asked, {"tool_trajectory_avg_score": 1, "unheard_of": 1.0})


async def judge_without_a_line() -> Any:
    clerk = agent("clerk", *LINES, tools=[weather])
    asked = Case("one", turns=[OSLO], mocks={"weather": "mild"})
    return await one(clerk, asked, {"response_match_score": 0.5, "final_response_match_v2": 0.5})


async def broken_agent() -> Any:
    return await one(agent("clerk"), case())


async def approved() -> Any:
    pay = FunctionTool(weather, require_confirmation=True)
    clerk = agent("clerk", WEATHER, "done", tools=[pay])
    user = UserAgents(tools={"weather": Lines(True)})
    return await one(clerk, case(mocks={"weather": "mild"}, user=user), {})


async def questioned() -> Any:
    seen: list[Any] = []

    def ask_boss(question: str) -> None:
        """Ask the boss."""

    def look(callback_context: Any, **_: Any) -> None:
        seen.append(callback_context.state.get("boss"))

    lines = (("ask_boss", {"question": "?"}), "done")
    asks = LongRunningFunctionTool(ask_boss)
    clerk = agent("clerk", *lines, tools=[asks], before_model_callback=look)
    answer = with_state_change("yes", {"session": {"boss": "in"}})
    user = UserAgents(tools={"ask_boss": Lines(answer)})
    return await one(clerk, case(user=user), {}) | {"seen": seen}


async def improvised() -> Any:
    clerk = agent("clerk", *LINES, tools=[weather])
    asked = Case("one", turns=[OSLO], mocks={"weather": "mild"}, user=Lines("thanks"))
    return await one(clerk, asked, {"tool_trajectory_avg_score": 1.0})


def content(actual: Any) -> EvaluationResult:
    """Full marks."""
    status = EvalStatus.PASSED
    each = [PerInvocationResult(actual_invocation=one, eval_status=status) for one in actual]
    return EvaluationResult(
        overall_score=1.0, overall_eval_status=status, per_invocation_results=each
    )


def phones(metric: Any, actual: Any, expected: Any, scenario: Any) -> EvaluationResult:
    """A metric that asks somebody on the network."""
    socket.create_connection(("127.0.0.1", int(os.environ["FAR_SIDE"])), timeout=5).close()
    return content(actual)


def phones_anyway(metric: Any, actual: Any, expected: Any, scenario: Any) -> EvaluationResult:
    """A metric that does not mind being refused."""
    with suppress(OSError):
        socket.create_connection(("127.0.0.1", 9), timeout=5).close()
    return content(actual)


@tool
def pay(order: int) -> str:
    """Pay."""
    os.environ["PAID"] = str(order)
    return "paid"


def pays_anyway(metric: Any, actual: Any, expected: Any, scenario: Any) -> EvaluationResult:
    """A metric that acts, and does not mind being refused."""
    with suppress(Exception):
        pay(7)
    return content(actual)


def blocks(metric: Any, actual: Any, expected: Any, scenario: Any) -> EvaluationResult:
    """A metric that lets nobody else go on."""
    for _ in range(1200):
        time.sleep(0.1)
    return content(actual)


def custom(name: str) -> EvalConfig:
    code = {"code_config": {"name": f"backends.adk.served_set.{name}"}}
    return EvalConfig.model_validate({"criteria": {name: 1.0}, "custom_metrics": {name: code}})


async def acting_anyway() -> Any:
    clerk = agent("clerk", "done")
    found = [await one(clerk, case(), custom(name)) for name in ("phones_anyway", "pays_anyway")]
    return [*found, os.environ.get("PAID")]


async def blocking() -> Any:
    return await one(agent("clerk", "done"), case(), custom("blocks"), seconds_per_metric=0.2)


async def phoning() -> Any:
    reached: list[int] = []

    async def answer(_: Any, writer: Any) -> None:
        reached.append(1)
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    os.environ["FAR_SIDE"] = str(server.sockets[0].getsockname()[1])
    clerk, found = agent("clerk", "done"), []
    for hosts in ([], ["127.0.0.1"]):
        result = await one(clerk, case(), custom("phones"), judge_hosts=hosts)
        await asyncio.sleep(0.1)
        found.append([result["scores"]["phones"], result["error"], len(reached)])
    server.close()
    return found


async def forbidden_agents() -> Any:
    bad = agent("clerk", "done", code_executor=UnsafeLocalCodeExecutor())
    run_level = ""
    try:
        await evaluate_in_adk(bad, case())
    except BadAgent as error:
        run_level = str(error)
    report = await evaluate_in_adk(None, case(agent=bad))
    return [run_level, told(report.results[0])["error"]]


async def state() -> Any:
    def note(city: str, tool_context: ToolContext) -> str:
        """Note the city."""
        tool_context.state["seen"] = [tool_context.state[key] for key in ("a", "user:b", "temp:c")]
        return "noted"

    clerk = agent("clerk", ("note", {"city": "Oslo"}), "done", tools=[note])
    asked = case(
        state={"session": {"a": 1}, "user": {"b": 2}, "temp": {"c": 3}}, allow_tools=["note"]
    )
    report = await evaluate_in_adk(clerk, asked, {})
    ledger = report.results[0].ledger
    return told(report.results[0]) | {"state": q.state(ledger) if ledger else None}


async def plugged() -> Any:
    seen: list[str] = []

    class Watch(BasePlugin):
        async def before_tool_callback(self, *, tool: Any, **_: Any) -> None:
            seen.append(tool.name)

    clerk = agent("clerk", *LINES, tools=[weather])
    app = App(name="shop", root_agent=clerk, plugins=[Watch("watch")])
    found = await one(app, Case("one", turns=[OSLO], mocks={"weather": "mild"}))
    return found | {"seen": seen}


async def many() -> Any:
    clerk = agent("clerk", *LINES, tools=[weather])
    cases = [Case(f"case {n}", turns=[OSLO], mocks={"weather": f"{n}"}) for n in range(6)]
    report = await evaluate_in_adk(clerk, cases, trials=2, concurrency=6)
    return [
        [result.label, result.status, [c.result for c in q.tool_calls(result.ledger)]]
        for result in report
        if result.ledger_or_none is not None
    ]


async def bypasses() -> Any:
    found: dict[str, Any] = {}
    for name, build in {**BYPASSES, **GRAPH_BYPASSES}.items():
        with tempfile.TemporaryDirectory() as folder:
            desk = Desk(Path(folder))
            result = await one(build(desk), case(), {})
            found[name] = [result["status"], desk.marks]
    return found


QUESTIONS = (
    passed,
    expecting_more,
    unwritten,
    clashing,
    failed,
    unmocked,
    broken_metric,
    judge_without_a_line,
    broken_agent,
    approved,
    questioned,
    improvised,
    phoning,
    acting_anyway,
    blocking,
    forbidden_agents,
    state,
    plugged,
    many,
    bypasses,
)


async def main() -> None:
    warnings.simplefilter("ignore")
    wanted = sys.argv[1:]
    answers = {
        question.__name__: await question()
        for question in QUESTIONS
        if not wanted or question.__name__ in wanted
    }
    json.dump(answers, sys.stdout)


if __name__ == "__main__":
    asyncio.run(main())
