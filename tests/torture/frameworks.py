"""Agents of frameworks whose tool acts for real, as code for the file that `acting` writes.

Each pays three times, one call after the other, and says so. `inner` is the framework's agent,
`around` a plain function that runs it.
"""

CASES = """

cases = EvalSet(
    "acts",
    [
        Case(f"case-{i}", f"case-{i}", allow_tools=["pay"], metrics=[contains("paid")])
        for i in range(COUNT)
    ],
)
agent = CHOSEN
"""

PYDANTIC_AI = """
from pydantic_ai import Agent as Framework
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel


async def respond(messages, info):
    await asyncio.sleep(0.003)
    parts = [part for message in messages for part in message.parts]
    done = sum(isinstance(part, ToolReturnPart) for part in parts)
    said = re.search(r"case-\\d+", str(parts[0].content))[0]
    if done < 3:
        return ModelResponse(parts=[ToolCallPart("pay", {"case": said, "n": done})])
    return ModelResponse(parts=[TextPart("All is paid.")])


inner = Framework(FunctionModel(respond), name="clerk")


@inner.tool_plain(name="pay")
def pay_inside(case: str, n: int) -> str:
    return act(f"pay {case} {n}")


async def around(message):
    return (await inner.run(message)).output


def around_blocking(message):
    return inner.run_sync(message).output
"""

OPENAI_AGENTS = """
import json

from agents import Agent as Framework, Model, ModelResponse, Runner, Usage, function_tool
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)


class Payer(Model):
    async def get_response(self, system_instructions, input, *args, **given):
        await asyncio.sleep(0.003)
        items = [{"role": "user", "content": input}] if isinstance(input, str) else input
        said = re.search(r"case-\\d+", str(items[0]))[0]
        done = sum(item.get("type") == "function_call_output" for item in items)
        if done < 3:
            args = json.dumps({"case": said, "n": done})
            out = ResponseFunctionToolCall(
                type="function_call", name="pay", call_id=f"{said}-{done}", arguments=args
            )
        else:
            text = ResponseOutputText(type="output_text", text="All is paid.", annotations=[])
            out = ResponseOutputMessage(
                id="m", type="message", role="assistant", status="completed", content=[text]
            )
        return ModelResponse(output=[out], usage=Usage(), response_id=None)

    def stream_response(self, *args, **given):
        raise NotImplementedError


@function_tool(name_override="pay")
def pay_inside(case: str, n: int) -> str:
    return act(f"pay {case} {n}")


inner = Framework("clerk", model=Payer(), tools=[pay_inside])


async def around(message):
    return (await Runner.run(inner, message)).final_output
"""

LANGGRAPH = """
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool as lc_tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition


class Payer(BaseChatModel):
    @property
    def _llm_type(self):
        return "payer"

    def _generate(self, messages, *args, **given):
        time.sleep(0.003)
        said = re.search(r"case-\\d+", str(messages[0].content))[0]
        done = sum(isinstance(message, ToolMessage) for message in messages)
        wanted = {"name": "pay", "args": {"case": said, "n": done}, "id": f"{said}-{done}"}
        found = AIMessage("", tool_calls=[wanted]) if done < 3 else AIMessage("All is paid.")
        return ChatResult(generations=[ChatGeneration(message=found)])


@lc_tool("pay")
def pay_inside(case: str, n: int) -> str:
    "Pay for real."
    return act(f"pay {case} {n}")


async def answer(state: MessagesState):
    return {"messages": [await Payer().ainvoke(state["messages"])]}


build = StateGraph(MessagesState)
build.add_node("clerk", answer)
build.add_node("tools", ToolNode([pay_inside]))
build.add_edge(START, "clerk")
build.add_conditional_edges("clerk", tools_condition)
build.add_edge("tools", "clerk")
inner = build.compile()


async def around(message):
    state = await inner.ainvoke({"messages": [("user", message)]})
    return state["messages"][-1].content
"""

GOOGLE_ADK = """
from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmResponse
from google.adk.runners import InMemoryRunner
from google.genai import types


class Payer(BaseLlm):
    async def generate_content_async(self, request, stream=False):
        await asyncio.sleep(0.003)
        parts = [part for content in request.contents for part in content.parts]
        said = re.search(r"case-\\d+", str(parts[0].text))[0]
        done = sum(part.function_response is not None for part in parts)
        if done < 3:
            part = types.Part.from_function_call(name="pay", args={"case": said, "n": done})
        else:
            part = types.Part(text="All is paid.")
        yield LlmResponse(content=types.Content(role="model", parts=[part]))


def pay_for_real(case: str, n: int) -> str:
    "Pay for real."
    return act(f"pay {case} {n}")


pay_for_real.__name__ = "pay"
inner = LlmAgent(name="clerk", model=Payer(model="payer"), tools=[pay_for_real])


async def around(message):
    runner = InMemoryRunner(inner, app_name="shop")
    session = await runner.session_service.create_session(app_name="shop", user_id="u")
    said = types.Content(role="user", parts=[types.Part(text=message)])
    last = ""
    async for event in runner.run_async(user_id="u", session_id=session.id, new_message=said):
        if event.is_final_response():
            last = event.content.parts[0].text
    return last
"""

FRAMEWORKS = {
    "openai-agents": ("agents", OPENAI_AGENTS),
    "langgraph": ("langgraph", LANGGRAPH),
    "google-adk": ("google.adk", GOOGLE_ADK),
}


def written(code: str, agent: str) -> str:
    """The code of a framework with its cases, playing this agent."""
    return code + CASES.replace("CHOSEN", agent)
