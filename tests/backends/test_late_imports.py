"""A framework that is first loaded inside the function that is rehearsed is held all the same."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import warm_python
from marks import heavy

PYDANTIC_AI = """
    from pydantic_ai import Agent
    from pydantic_ai.models.test import TestModel
    agent = Agent(TestModel(), tools=[pay])
    await agent.run(message)
"""
OPENAI_AGENTS = """
    from agents import Agent, Runner, function_tool
    from agents.testing import ModelStep, ScriptedModel
    from openai.types.responses import ResponseFunctionToolCall
    asks = ResponseFunctionToolCall(type="function_call", name="pay", call_id="1", arguments="{}")
    model = ScriptedModel([ModelStep(output=[asks])])
    await Runner.run(Agent("payer", model=model, tools=[function_tool(pay)]), message)
"""
LANGGRAPH = """
    from langgraph.prebuilt import ToolNode
    from langgraph.graph import START, MessagesState, StateGraph
    from langchain_core.messages import AIMessage
    build = StateGraph(MessagesState)
    build.add_node("tools", ToolNode([pay]))
    build.add_edge(START, "tools")
    asks = AIMessage("", tool_calls=[{"name": "pay", "args": {}, "id": "1"}])
    await build.compile().ainvoke({"messages": [asks]})
"""
GOOGLE_ADK = """
    from google.adk.agents import LlmAgent
    from google.adk.models import BaseLlm, LlmResponse
    from google.adk.runners import InMemoryRunner
    from google.genai import types

    class Model(BaseLlm):
        async def generate_content_async(self, request, stream=False):
            call = types.Part.from_function_call(name="pay", args={})
            yield LlmResponse(content=types.Content(role="model", parts=[call]))

    runner = InMemoryRunner(LlmAgent(name="payer", model=Model(model="m"), tools=[pay]))
    await runner.session_service.create_session(app_name=runner.app_name, user_id="u", session_id="s")
    said = types.Content(role="user", parts=[types.Part(text=message)])
    async for event in runner.run_async(user_id="u", session_id="s", new_message=said):
        if event.get_function_responses():
            break
"""
# What runs agents is not loaded here.
ADK_TOOL_ALONE = """
    from google.adk.tools import FunctionTool

    await FunctionTool(pay).run_async(args={}, tool_context=None)
"""
ADK_CLASS_ALONE = """
    from google.adk.tools.base_tool import BaseTool

    class Pay(BaseTool):
        async def run_async(self, *, args, tool_context):
            return await pay()

    await Pay(name="pay", description="Pay.").run_async(args={}, tool_context=None)
"""
ADK_EXECUTOR_ALONE = """
    from google.adk.code_executors.base_code_executor import BaseCodeExecutor

    class Pays(BaseCodeExecutor):
        def execute_code(self, invocation_context, code_execution_input):
            acted.append("paid")

    Pays().execute_code(None, None)
"""
FRAMEWORKS = {
    "pydantic-ai": PYDANTIC_AI,
    "openai-agents": OPENAI_AGENTS,
    "langgraph": LANGGRAPH,  # langchain alone: langgraph/test_inside.py
    "google-adk": GOOGLE_ADK,
    "a tool of google-adk": ADK_TOOL_ALONE,
    "a tool class of google-adk": ADK_CLASS_ALONE,
    "a code executor of google-adk": ADK_EXECUTOR_ALONE,
}
ALWAYS = ("pydantic-ai", "google-adk")
"""Loaded in `make test`; to load the others takes seconds each."""


SCRIPT = """
import asyncio, warnings
warnings.simplefilter("ignore")
import sys
assert not {"pydantic_ai", "agents", "langchain_core", "google.adk"} & sys.modules.keys()
from greenroom import Case, evaluate
acted = []

async def pay() -> str:
    "Pay."
    acted.append("paid")
    return "paid"

async def work(message):
BODY

async def clerk(message):
    try:
        await work(message)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "done"

async def main():
    case = Case("c", "Hi")
    result = (await evaluate(clerk, case)).results[0]
    print(result.error.type, acted)
    print(await clerk("Hi"), acted)

asyncio.run(main())
"""


TWICE = """
import asyncio, warnings
warnings.simplefilter("ignore")
import sys
from contextlib import suppress
from greenroom import Case, evaluate
from greenroom.errors import FenceNotHeld
acted = []

async def pay() -> str:
    "Pay."
    acted.append("paid")
    return "paid"

async def work(message):
BODY

async def twice(message):
    for name in list(sys.modules):
        if name.split(".")[0] in PACKAGES or name.startswith("google.adk"):
            del sys.modules[name]
    with suppress(Exception):
        await work(message)
    return "done"

async def main():
    with suppress(Exception):
        await work("Hi")
    acted.clear()
    for _ in range(2):
        result = (await evaluate(twice, Case("c", "Hi"))).results[0]
        print(result.error.type, acted)
    await twice("Hi")
    try:
        await evaluate(twice, Case("c", "Hi"))
    except FenceNotHeld as error:
        print("a second time" in str(error))

asyncio.run(main())
"""

EARLY = """
import asyncio, warnings
warnings.simplefilter("ignore")
from langchain_core.tools import BaseTool
acted = []

class Pay(BaseTool):
    name: str = "pay"
    description: str = "Pay."
    run = BaseTool.run
    arun = BaseTool.arun

    def _run(self) -> str:
        acted.append("paid")
        return "paid"

from greenroom import Case, evaluate

async def by_run(message):
    return str(Pay().run({}))

async def by_arun(message):
    return str(await Pay().arun({}))

async def main():
    for clerk in (by_run, by_arun):
        result = (await evaluate(clerk, Case("c", "Hi"))).results[0]
        print(result.error.type, acted)
        print(await clerk("Hi"), acted)
        acted.clear()

asyncio.run(main())
"""


def told_by(text: str, tmp_path: Path, run: Any = warm_python.run) -> list[str]:
    script = tmp_path / "script.py"
    script.write_text(text)
    done = run([sys.executable, script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.slow
def test_a_method_taken_from_the_framework_before_the_rehearsal_is_held(tmp_path: Path) -> None:
    assert told_by(EARLY, tmp_path, subprocess.run) == ["ToolRefused []", "paid ['paid']"] * 2


@pytest.mark.slow
@pytest.mark.parametrize("name", [heavy(n) if n not in ALWAYS else n for n in FRAMEWORKS])
def test_a_framework_loaded_inside_a_function_is_held(name: str, tmp_path: Path) -> None:
    held, free = told_by(SCRIPT.replace("BODY", FRAMEWORKS[name]), tmp_path)
    assert held == "ToolRefused []"
    assert free.endswith("['paid']")


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [heavy("pydantic-ai"), heavy("openai-agents"), heavy("langgraph"), "google-adk"]
)
def test_a_second_copy_of_a_framework_is_refused(name: str, tmp_path: Path) -> None:
    packages = '{"pydantic_ai", "agents", "langchain_core", "langgraph"}'
    text = TWICE.replace("BODY", FRAMEWORKS[name]).replace("PACKAGES", packages)
    assert told_by(text, tmp_path) == ["FenceBreach []", "FenceBreach []", "True"]
