"""What leading a framework's agent through the gate costs over the framework's own bare run.

    python benchmarks/frameworks.py [rounds]      a part of benchmarks/run.py too

One case: a tool call, its mocked answer, a text. Both are played as an evaluation plays its cases:
one after the other under one watch, with cycles looked for seldom. Figures are CPU time per run, the
best of many short alternating rounds; the machine's other work counts least in the best one. For the
frameworks that are installed. The bound is met where a gated run costs at most a third or 1.5 ms more,
whichever is more.
"""

import asyncio
import json
import logging
import sys
from argparse import ArgumentParser
from collections.abc import Awaitable, Callable, Mapping
from importlib.util import find_spec
from time import process_time
from typing import Any

from goals import Goal, goal_line, row
from plan import FULL, Plan
from turns import Figures, output

from greenroom import Case, simulate
from greenroom.backends import backend_for
from greenroom.simulation.hangs.watchdog import keep_watching
from greenroom.suite.watch import RareCollection

RUNS = 8
WARM_UP = 5
CASE = Case("one", says="hello", mocks={"weather": "3 degrees"})
SHARE, FLOOR = 1 / 3, 1500.0
"""How much more a gated run may cost: this part of the bare one, or so many µs if that is more."""

Run = Callable[[], Awaitable[Any]]


async def weather(city: str, days: int = 1) -> str:
    """The weather."""
    return f"3 degrees in {city} for {days} days"


def langgraph() -> tuple[Run, Any]:
    from langchain.agents import create_agent  # pyright: ignore[reportUnknownVariableType]
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage, HumanMessage
    from langchain_core.outputs import ChatGeneration, ChatResult
    from langchain_core.tools import StructuredTool

    class Script(BaseChatModel):
        @property
        def _llm_type(self) -> str:
            return "script"

        def bind_tools(self, *_: Any, **__: Any) -> Any:
            return self

        def _generate(self, messages: Any, *_: Any, **__: Any) -> Any:
            calls = [{"name": "weather", "args": {"city": "Oslo"}, "id": "call-1"}]
            asked = any(isinstance(message, AIMessage) for message in messages)
            reply = AIMessage("done") if asked else AIMessage("", tool_calls=calls)
            return ChatResult(generations=[ChatGeneration(message=reply)])

        async def _agenerate(self, messages: Any, *_: Any, **__: Any) -> Any:
            return self._generate(messages)

    agent: Any = create_agent(Script(), [StructuredTool.from_function(coroutine=weather)])  # pyright: ignore[reportUnknownVariableType]
    return lambda: agent.ainvoke({"messages": [HumanMessage("hello")]}), agent


def openai_agents() -> tuple[Run, Any]:
    from openai.types.responses import (
        ResponseFunctionToolCall,
        ResponseOutputMessage,
        ResponseOutputText,
    )

    from agents import Agent, Model, ModelResponse, RunConfig, Runner, Usage, function_tool

    call = ResponseFunctionToolCall(
        type="function_call",
        name="weather",
        call_id="call-1",
        arguments=json.dumps({"city": "Oslo"}),
    )
    text = ResponseOutputText(type="output_text", text="done", annotations=[])
    said = ResponseOutputMessage(
        id="msg_1", type="message", role="assistant", status="completed", content=[text]
    )

    class Script(Model):
        async def get_response(self, *_: Any, input: Any = "", **__: Any) -> Any:
            asked = not isinstance(input, str) and len(input) > 1
            return ModelResponse(output=[said if asked else call], usage=Usage(), response_id=None)

        def stream_response(self, *_: Any, **__: Any) -> Any:
            raise NotImplementedError

    agent = Agent("clerk", model=Script(), tools=[function_tool(weather)])
    quiet = RunConfig(tracing_disabled=True)
    return lambda: Runner.run(agent, "hello", run_config=quiet), agent


def pydantic_ai() -> tuple[Run, Any]:
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel

    async def reply(messages: Any, _: Any) -> ModelResponse:
        asked = any(isinstance(message, ModelResponse) for message in messages)
        return ModelResponse(
            [TextPart("done") if asked else ToolCallPart("weather", {"city": "Oslo"})]
        )

    agent = Agent(FunctionModel(reply), tools=[weather])
    return lambda: agent.run("hello"), agent


def adk() -> tuple[Run, Any]:
    from google.adk.agents import LlmAgent
    from google.adk.models.base_llm import BaseLlm
    from google.adk.models.llm_response import LlmResponse
    from google.adk.runners import InMemoryRunner
    from google.genai import types

    class Script(BaseLlm):
        async def generate_content_async(self, llm_request: Any, *_: Any, **__: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
            asked = any(content.role == "model" for content in llm_request.contents)
            call = types.FunctionCall(name="weather", args={"city": "Oslo"})
            part = types.Part(text="done") if asked else types.Part(function_call=call)
            yield LlmResponse(content=types.Content(role="model", parts=[part]))

    agent = LlmAgent(name="clerk", model=Script(model="script"), tools=[weather])

    async def bare() -> None:
        runner = InMemoryRunner(agent, app_name="bench")
        session = await runner.session_service.create_session(app_name="bench", user_id="u")
        message = types.Content(role="user", parts=[types.Part(text="hello")])
        async for _ in runner.run_async(user_id="u", session_id=session.id, new_message=message):
            pass

    return bare, agent


FRAMEWORKS: dict[str, tuple[str, Callable[[], tuple[Run, Any]]]] = {
    "langgraph": ("langchain", langgraph),
    "openai-agents": ("agents", openai_agents),
    "pydantic-ai": ("pydantic_ai", pydantic_ai),
    "google-adk": ("google.adk", adk),
}


async def cost(run: Run) -> float:
    """CPU microseconds of one run, on average."""
    begun = process_time()
    for _ in range(RUNS):
        await run()
    return (process_time() - begun) / RUNS * 1e6


async def measured(make: Callable[[], tuple[Run, Any]], rounds: int) -> tuple[float, float]:
    """The best bare and the best gated figure of alternating rounds."""
    bare, agent = make()
    backend = backend_for(agent)

    async def gated() -> None:
        await simulate(CASE, backend)

    with RareCollection(), keep_watching():
        # The first rounds open what is opened once.
        pairs = [(await cost(bare), await cost(gated)) for _ in range(rounds + WARM_UP)][WARM_UP:]
    return min(pair[0] for pair in pairs), min(pair[1] for pair in pairs)


def is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def all_measured(rounds: int) -> dict[str, dict[str, float]]:
    """The figures of each framework that is installed."""
    return {
        name: dict(zip(("bare", "gated"), asyncio.run(measured(make, rounds)), strict=True))
        for name, (module, make) in FRAMEWORKS.items()
        if is_there(module)
    }


def in_own_process(plan: Plan) -> Figures:
    """The same, measured in a process of its own."""
    # A framework may print something of its own before.
    return json.loads(output([sys.executable, __file__, plan.gated, "--json"]).splitlines()[-1])


def goals(found: Figures) -> list[Goal]:
    """A gated run costs no more than is allowed, in parts of that."""
    return [
        Goal(f"{name}, of the price allowed", _more(it) / _allowed(it), 1.0, "×")
        for name, it in found.items()
    ]


def lines(found: Figures) -> list[str]:
    """A table of what the gate costs."""
    heads = ["bare µs", "gated µs", "more µs", "more", "allowed µs"]
    return [
        row("A framework's agent, bare and gated", heads),
        *(row(name, _cells(it)) for name, it in found.items()),
        *(f"  {name}: not installed" for name in FRAMEWORKS if name not in found),
    ]


def _cells(it: Mapping[str, float]) -> list[str]:
    share = f"{_more(it) / it['bare']:.0%}"
    return [
        f"{it['bare']:.0f}",
        f"{it['gated']:.0f}",
        f"{_more(it):.0f}",
        share,
        f"{_allowed(it):.0f}",
    ]


def _more(it: Mapping[str, float]) -> float:
    return it["gated"] - it["bare"]


def _allowed(it: Mapping[str, float]) -> float:
    return max(it["bare"] * SHARE, FLOOR)


def main() -> None:
    """Measure, and show a table, or the bare figures for whoever asks in another process."""
    options = ArgumentParser(description="What the gate costs over a framework's own run.")
    options.add_argument("rounds", nargs="?", type=int, default=FULL.gated)
    options.add_argument("--json", action="store_true")
    given = options.parse_args()
    logging.disable()
    found = all_measured(given.rounds)
    if given.json:
        print(json.dumps(found))
    else:
        print("\n".join([*lines(found), *(goal_line(goal, True) for goal in goals(found))]))


if __name__ == "__main__":
    main()
