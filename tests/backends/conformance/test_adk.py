"""google-adk passes the suite that every backend passes: the real framework, a scripted model."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins import BasePlugin
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.tools import AgentTool, FunctionTool, LongRunningFunctionTool
from google.adk.tools.base_tool import BaseTool
from google.genai import types
from pydantic import BaseModel, TypeAdapter

from backends.adk.versions import HAS_GRAPHS, HAS_MODES
from greenroom import call
from greenroom.backends.adk import AdkBackend
from greenroom.ledger import ToolCall
from greenroom.testing import (
    USAGE,
    BackendConformance,
    Blueprint,
    Bypass,
    Desk,
    HandOver,
    Hang,
    Structured,
    ToolPlan,
    pieces,
)


class Script(BaseLlm):
    """Answers by how many replies the request already holds, so it serves many runs at once."""

    model: str = "script"
    lines: list[Any]
    streams: bool = False

    async def generate_content_async(self, llm_request: LlmRequest, stream: bool = False):
        line = self.lines[sum(content.role == "model" for content in llm_request.contents)]
        if isinstance(line, Exception):
            raise line
        if isinstance(line, Hang):
            await asyncio.Event().wait()
        if self.streams and isinstance(line, str):
            for piece in pieces(line):
                yield LlmResponse(content=content(piece), partial=True)
        yield LlmResponse(content=content(line), usage_metadata=USED, model_version="script")


USED = types.GenerateContentResponseUsageMetadata(
    prompt_token_count=USAGE.input, candidates_token_count=USAGE.output
)


def content(line: Any) -> types.Content:
    return types.Content(role="model", parts=parts(line))


def parts(line: Any) -> list[types.Part]:
    match line:
        case str():
            return [types.Part(text=line)]
        case HandOver(to):
            return parts(ToolCall("transfer_to_agent", {"agent_name": to}, f"to-{to}"))
        case Structured(value):
            return parts(TypeAdapter(dict).dump_json(dict(value)).decode())
        case ToolCall():
            return parts([line])
        case _:
            return [
                types.Part(
                    function_call=types.FunctionCall(
                        id=one.id or None, name=one.tool, args=dict(one.args)
                    )
                )
                for one in line
            ]


def made(plan: ToolPlan) -> Any:
    if plan.kind == "question":
        return LongRunningFunctionTool(plan.fn)
    return FunctionTool(plan.fn, require_confirmation=True) if plan.kind == "approval" else plan.fn


def all_fine(*_: Any, **__: Any) -> dict[str, str]:
    return {"result": "all fine"}


def agent(*lines: Any, **options: Any) -> LlmAgent:
    options = {"name": "clerk", **options}
    return LlmAgent(model=Script(lines=list(lines)), **options)


class Answer(BaseModel):
    """The output type for versions that take nothing but models of pydantic."""

    ok: bool


class AdkHarness:
    backend = AdkBackend
    seam = (
        "google.adk.tools.base_tool:BaseTool.run_async",
        "google.adk.models.base_llm:BaseLlm.connect",
        "google.adk.tools.base_toolset:BaseToolset.get_tools_with_prefix",
        "google.adk.flows.llm_flows.functions:_call_tool_in_thread_pool",
    )

    def build(self, plan: Blueprint) -> Any:
        return LlmAgent(
            name=plan.name,
            model=Script(lines=list(plan.lines), streams=plan.streams),
            instruction=plan.instructions,
            tools=[made(given) for given in plan.tools],
            sub_agents=[self.build(helper) for helper in plan.helpers],
            output_schema=plan.output and (plan.output if HAS_GRAPHS else Answer),
            output_key=plan.writes or None,
            on_tool_error_callback=all_fine if plan.swallows else None,
        )

    async def run_bare(self, agent: Any, says: str) -> None:
        service = InMemorySessionService()
        await service.create_session(app_name="bare", user_id="u", session_id="s")
        app = agent if isinstance(agent, App) else App(name="bare", root_agent=agent)
        runner = Runner(app=app, app_name="bare", session_service=service)
        message = types.Content(role="user", parts=[types.Part(text=says)])
        async for _ in runner.run_async(user_id="u", session_id="s", new_message=message):
            pass

    def bypasses(self) -> Mapping[str, Bypass]:
        found = {
            "a plug-in that swallows the refusal": Bypass(swallowing_plugin),
            "an agent used as a tool": Bypass(agent_tool(True)),
            "an agent used as a tool without plug-ins": Bypass(agent_tool(False)),
            "a tool with a body of its own kind": Bypass(own_kind),
            "a tool smuggled into the request": Bypass(smuggled),
        }
        return found | ({"a single-turn helper": Bypass(single_turn)} if HAS_MODES else {})


WEATHER = call("weather", city="Oslo")


def swallowing_plugin(desk: Desk) -> App:
    class Swallow(BasePlugin):
        async def on_tool_error_callback(self, **_: Any) -> dict[str, str]:
            return all_fine()

    clerk = agent(WEATHER, "done", tools=[desk.weather])
    return App(name="bare", root_agent=clerk, plugins=[Swallow("swallow")])


def agent_tool(include_plugins: bool) -> Any:
    def build(desk: Desk) -> LlmAgent:
        helper = agent(WEATHER, "fine", name="helper", tools=[desk.weather])
        delegate = AgentTool(helper, include_plugins=include_plugins)
        return agent(call("helper", request="weather?"), "done", tools=[delegate])

    return build


def single_turn(desk: Desk) -> LlmAgent:
    helper = agent(WEATHER, "fine", name="helper", mode="single_turn", tools=[desk.weather])
    return agent(call("helper", request="weather?"), "done", sub_agents=[helper])


def own_kind(desk: Desk) -> LlmAgent:
    class Thermometer(BaseTool):
        def _get_declaration(self) -> types.FunctionDeclaration:
            return types.FunctionDeclaration(name=self.name)

        async def run_async(self, *, args: Any, tool_context: Any) -> Any:
            return desk.mark("thermometer")

    return agent(WEATHER, "done", tools=[Thermometer(name="weather", description="The weather.")])


def smuggled(desk: Desk) -> LlmAgent:
    def smuggle(callback_context: Any, llm_request: LlmRequest) -> None:
        llm_request.append_tools([FunctionTool(desk.weather)])

    return agent(WEATHER, "done", before_model_callback=smuggle)


@pytest.mark.filterwarnings("ignore:The `plugins` argument is deprecated:DeprecationWarning")
class TestAdk(BackendConformance):
    harness = AdkHarness()

    @pytest.mark.heavy  # a process of its own loads google-adk for it
    def test_a_version_without_the_seam_is_refused(self) -> None:
        super().test_a_version_without_the_seam_is_refused()
