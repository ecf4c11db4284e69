"""A model written down beforehand, and agents around it."""

from typing import Any

from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.genai import types

from greenroom import Case, Ledger, evaluate
from greenroom.metrics import contains
from greenroom.results.result import CaseResult


class Script(BaseLlm):
    """Answers by how many replies the request already holds, so it serves many runs at once."""

    model: str = "script"
    lines: list[Any]

    async def generate_content_async(self, llm_request: LlmRequest, stream: bool = False):
        said = sum(content.role == "model" for content in llm_request.contents)
        yield LlmResponse(content=types.Content(role="model", parts=parts(self.lines[said])))


def parts(line: Any) -> list[types.Part]:
    if isinstance(line, str):
        return [types.Part(text=line)]
    calls = line if isinstance(line, list) else [line]
    return [types.Part(function_call=types.FunctionCall(name=n, args=dict(a))) for n, a in calls]


def agent(name: str, *lines: Any, **options: Any) -> LlmAgent:
    return LlmAgent(name=name, model=Script(lines=list(lines)), **options)


def case(id: str = "one", **options: Any) -> Case:
    given: dict[str, Any] = {"says": "hello", "metrics": [contains("done")], **options}
    return Case(id, **given)


async def result_of(agent: Any, one: Case) -> CaseResult:
    return (await evaluate(agent, one)).results[0]


def ledger_of(result: CaseResult) -> Ledger:
    assert result.ledger is not None, result.error
    return result.ledger


async def run_bare(root: Any, says: str = "hello") -> None:
    """Let the framework run an agent by itself, with no gate anywhere."""
    service = InMemorySessionService()
    await service.create_session(app_name="bare", user_id="u", session_id="s")
    app = root if isinstance(root, App) else App(name="bare", root_agent=root)
    runner = Runner(app=app, app_name="bare", session_service=service)
    message = types.Content(role="user", parts=[types.Part(text=says)])
    async for _ in runner.run_async(user_id="u", session_id="s", new_message=message):
        pass


WEATHER = ("weather", {"city": "Oslo"})
