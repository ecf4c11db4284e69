"""Ways around the gate that the OpenAI Agents SDK offers, each tried with a canary behind it."""

from contextlib import suppress
from typing import Any

from agents.mcp import MCPServer
from mcp.types import CallToolResult, TextContent
from mcp.types import Tool as MCPTool

from agents import (
    Agent,
    CustomTool,
    FunctionTool,
    GuardrailFunctionOutput,
    InputGuardrail,
    RunConfig,
    Runner,
    ToolGuardrailFunctionOutput,
    ToolInputGuardrail,
    function_tool,
    handoff,
)
from backends.openai_agents.scripts import Script, swallow
from greenroom.ledger.messages import ToolCall
from greenroom.testing import Bypass, Desk, HandOver

WEATHER = ToolCall("weather", {"city": "Oslo"}, "call-weather")
QUIET = RunConfig(tracing_disabled=True)


def clerk(*lines: Any, **options: Any) -> Agent[Any]:
    return Agent("clerk", model=Script(*lines), **options)


def inner(desk: Desk) -> Agent[Any]:
    return Agent(
        "helper",
        model=Script(WEATHER, "done"),
        tools=[function_tool(desk.weather, failure_error_function=swallow)],
    )


def raw_tool(desk: Desk) -> Agent[Any]:
    async def invoke(ctx: Any, encoded: str) -> str:
        return desk.mark("raw")

    schema = {"type": "object", "properties": {"city": {"type": "string"}}}
    tool = FunctionTool("weather", "The weather.", schema, invoke, strict_json_schema=False)
    return clerk(WEATHER, "done", tools=[tool])


def own_class(desk: Desk) -> Agent[Any]:
    class Weather(FunctionTool):
        async def act(self, ctx: Any, encoded: str) -> str:
            return desk.mark("method")

        def __post_init__(self) -> None:
            self.on_invoke_tool = self.act
            super().__post_init__()

    schema: dict[str, Any] = {"type": "object", "properties": {}}
    tool = Weather("weather", "", schema, lambda *_: None, strict_json_schema=False)  # pyright: ignore[reportArgumentType]
    return clerk(WEATHER, "done", tools=[tool])


def as_a_tool(desk: Desk) -> Agent[Any]:
    tool = inner(desk).as_tool("ask_helper", "Ask.", failure_error_function=swallow)
    return clerk(ToolCall("ask_helper", {"input": "?"}, "call-ask"), "done", tools=[tool])


def as_a_tool_of_its_own(desk: Desk) -> Agent[Any]:
    tool = inner(desk).as_tool("ask_helper", "Ask.", run_config=RunConfig(tracing_disabled=True))
    return clerk(ToolCall("ask_helper", {"input": "?"}, "call-ask"), "done", tools=[tool])


def handed_over(desk: Desk) -> Agent[Any]:
    return clerk(HandOver("helper"), handoffs=[handoff(inner(desk))])


def in_an_allowed_tool(desk: Desk) -> Agent[Any]:
    helper = inner(desk)

    @function_tool
    async def delegate(question: str) -> str:
        with suppress(BaseException):
            await Runner.run(helper, question, run_config=QUIET)
        return "asked"

    call = ToolCall("delegate", {"question": "?"}, "call-delegate")
    return clerk(call, "done", tools=[delegate])


def in_a_guardrail(desk: Desk) -> Agent[Any]:
    helper = inner(desk)

    async def check(*_: Any) -> GuardrailFunctionOutput:
        with suppress(BaseException):
            await Runner.run(helper, "?", run_config=QUIET)
        return GuardrailFunctionOutput(None, tripwire_triggered=False)

    rail = InputGuardrail(check, run_in_parallel=False)
    return clerk("done", input_guardrails=[rail])


def in_a_tool_guardrail(desk: Desk) -> Agent[Any]:
    helper = inner(desk)

    async def check(_: Any) -> ToolGuardrailFunctionOutput:
        with suppress(BaseException):
            await Runner.run(helper, "?", run_config=QUIET)
        return ToolGuardrailFunctionOutput.allow()

    tool = function_tool(
        desk.pay, tool_input_guardrails=[ToolInputGuardrail(guardrail_function=check)]
    )
    return clerk(ToolCall("pay", {"amount": 5}, "call-pay"), "done", tools=[tool])


def swallowed(desk: Desk) -> Agent[Any]:
    tool = function_tool(desk.weather, failure_error_function=swallow)
    return clerk(WEATHER, "done", tools=[tool], tool_use_behavior="stop_on_first_tool")


def custom(desk: Desk) -> Agent[Any]:
    class Scribble(Script):
        async def _reply(self, input: Any) -> Any:
            from openai.types.responses import ResponseCustomToolCall

            response = await super()._reply(input)
            if response.output[0].type == "function_call":
                response.output[0] = ResponseCustomToolCall(
                    type="custom_tool_call", name="scribble", call_id="call-1", input="x"
                )
            return response

    async def invoke(ctx: Any, text: str) -> str:
        return desk.mark(f"custom {text}")

    tool = CustomTool(name="scribble", description="", on_invoke_tool=invoke)
    model = Scribble(ToolCall("scribble", {}, "call-1"), "done", "done")
    return Agent("clerk", model=model, tools=[tool])


class Server(MCPServer):
    """An MCP server in this very process."""

    def __init__(self, desk: Desk) -> None:
        super().__init__()
        self.desk = desk

    @property
    def name(self) -> str:
        return "station"

    async def connect(self) -> None: ...

    async def cleanup(self) -> None: ...

    async def list_tools(self, *_: Any, **__: Any) -> list[MCPTool]:
        self.desk.mark("listed")
        schema = {"type": "object", "properties": {"city": {"type": "string"}}}
        return [MCPTool(name="weather", input_schema=schema)]

    async def call_tool(self, *_: Any, **__: Any) -> CallToolResult:
        text = self.desk.mark("called")
        return CallToolResult(content=[TextContent(type="text", text=text)])

    async def list_prompts(self) -> Any: ...

    async def get_prompt(self, *_: Any, **__: Any) -> Any: ...


def served(desk: Desk) -> Agent[Any]:
    return clerk(WEATHER, "done", mcp_servers=[Server(desk)])


class OwnAgent(Agent[Any]):
    async def get_all_tools(self, run_context: Any) -> list[Any]:
        return list(self.tools)


def own_agent(desk: Desk) -> Agent[Any]:
    tools: Any = [function_tool(desk.weather)]
    return OwnAgent("clerk", model=Script(WEATHER, "done"), tools=tools)


def made_on_the_way(desk: Desk) -> Agent[Any]:
    """A handoff to an agent that nobody could look at before the run."""
    from agents import Handoff

    tools: Any = [function_tool(desk.weather)]

    async def make(*_: Any) -> Any:
        return OwnAgent("helper", model=Script(WEATHER, "done"), tools=tools)

    given: Any = Handoff(
        tool_name="transfer_to_helper",
        tool_description="",
        input_json_schema={},
        on_invoke_handoff=make,
        agent_name="helper",
    )
    return clerk(HandOver("helper"), handoffs=[given])


BYPASSES = {
    "a raw tool": Bypass(raw_tool),
    "a tool class of one's own": Bypass(own_class),
    "an agent used as a tool, whose failures are swallowed": Bypass(as_a_tool),
    "an agent used as a tool with a configuration of its own": Bypass(as_a_tool_of_its_own),
    "an agent that is handed over to": Bypass(handed_over),
    "an agent inside an allowed tool": Bypass(in_an_allowed_tool, allow_tools=["delegate"]),
    "a guardrail that runs an agent": Bypass(in_a_guardrail),
    "a tool guardrail that runs an agent": Bypass(in_a_tool_guardrail, mocks={"pay": "ok"}),
    "a failure policy that swallows at the very end": Bypass(swallowed),
    "a custom tool": Bypass(custom),
    "an MCP server": Bypass(served),
    "an agent with its own list of tools": Bypass(own_agent),
    "an agent made while it runs": Bypass(made_on_the_way),
}
