"""What is attached reaches the models of every framework in its own form, and the ledger by reference."""

import json
from base64 import b64encode, urlsafe_b64encode
from typing import Any, ClassVar

import pytest
from google.adk.agents import LlmAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.genai import types
from hypothesis import given
from hypothesis import strategies as some
from langchain.agents import create_agent
from langchain_core.tools import tool as langchain_tool
from pydantic_ai import Agent as PydanticAgent
from pydantic_ai import BinaryContent
from pydantic_ai.messages import (
    ModelMessagesTypeAdapter,
    ModelResponse,
    TextPart,
    ToolCallPart,
)
from pydantic_ai.models.function import FunctionModel

from agents import Agent as OpenAIAgent
from agents import ToolOutputImage, function_tool
from attached_files import BIG_PNG, PDF, holds
from backends.adk.scripts import parts
from backends.langgraph.scripts import Script as LangChainScript
from backends.openai_agents.scripts import Script as OpenAIScript
from greenroom import Agent, Case, Ledger, Scripted, Turn, attach, call, rehearse, simulate, tool
from greenroom.backends.attached import data_uri, slim, whole
from greenroom.ledger import AgentSaid, ModelCalled, attachments, model_interactions
from greenroom.ledger.messages import ToolCall
from greenroom.results.result import CaseResult

CALL = ToolCall("photo", {"of": "cup"}, "call-1")


class AdkModel(BaseLlm):
    model: str = "script"
    lines: list[Any]
    asked: ClassVar[list[Any]] = []

    async def generate_content_async(self, llm_request: LlmRequest, stream: bool = False):
        contents = llm_request.contents
        self.asked.append([content.model_dump(mode="json") for content in contents])
        said = sum(content.role == "model" for content in contents)
        line = self.lines[said]
        given = parts((line.tool, line.args) if isinstance(line, ToolCall) else line)
        yield LlmResponse(content=types.Content(role="model", parts=given))


class Adk:
    """google-adk, whose model keeps what it was asked."""

    def __init__(self) -> None:
        AdkModel.asked.clear()
        self.asked = AdkModel.asked

    def agent(self, *lines: Any) -> Any:
        def photo(of: str) -> types.Part:
            """A photo."""
            return types.Part(inline_data=types.Blob(data=BIG_PNG, mime_type="image/png"))

        return LlmAgent(name="looker", model=AdkModel(lines=list(lines)), tools=[photo])


class Pydantic:
    """pydantic-ai, whose model keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def agent(self, *lines: Any) -> Any:
        async def answer(messages: Any, _: Any) -> ModelResponse:
            self.asked.append(ModelMessagesTypeAdapter.dump_python(messages, mode="json"))
            line = lines[sum(isinstance(message, ModelResponse) for message in messages)]
            if isinstance(line, ToolCall):
                return ModelResponse([ToolCallPart(line.tool, dict(line.args), line.id)])
            return ModelResponse([TextPart(line)])

        looker = PydanticAgent(FunctionModel(answer), name="looker")

        @looker.tool_plain
        def photo(of: str) -> BinaryContent:
            """A photo."""
            return BinaryContent(BIG_PNG, media_type="image/png")

        return looker


class LangGraph:
    """A graph of LangChain's, whose model keeps what it was asked."""

    def __init__(self) -> None:
        self._model: Any = None

    @property
    def asked(self) -> list[Any]:
        return [[m.model_dump(mode="json") for m in messages] for messages in self._model.asked]

    def agent(self, *lines: Any) -> Any:
        @langchain_tool
        def photo(of: str) -> list[dict[str, str]]:
            """A photo."""
            coded = data_uri(attach(BIG_PNG)).partition(",")[2]
            return [{"type": "image", "base64": coded, "mime_type": "image/png"}]

        self._model = LangChainScript(lines=list(lines))
        return create_agent(self._model, tools=[photo], name="looker")


class OpenAI:
    """An agent of OpenAI's, whose model keeps what it was asked."""

    def __init__(self) -> None:
        self._model: Any = None

    @property
    def asked(self) -> list[Any]:
        return self._model.asked

    def agent(self, *lines: Any) -> Any:
        @function_tool
        def photo(of: str) -> ToolOutputImage:
            """A photo."""
            return ToolOutputImage(image_url=data_uri(attach(BIG_PNG)))

        self._model = OpenAIScript(*lines)
        return OpenAIAgent(name="looker", model=self._model, tools=[photo])


class Native:
    """An agent of ours, whose model keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def agent(self, *lines: Any) -> Any:
        @tool
        def photo(of: str) -> Any:
            """A photo."""
            return attach(BIG_PNG)

        def asked(line: Any) -> Any:
            def answer(request: Any) -> Any:
                given = [one for m in request.messages for one in m.attachments]
                self.asked.append([data_uri(one) for one in given])
                return call("photo", of="cup") if isinstance(line, ToolCall) else line

            return answer

        return Agent("looker", model=Scripted(*map(asked, lines)), tools=[photo])


FRAMEWORKS = [Adk, LangGraph, OpenAI, Pydantic, Native]


@pytest.fixture(params=FRAMEWORKS, ids=lambda kind: kind.__name__)
def desk(request) -> Any:
    return request.param()


def result_of(agent: Any, case: Case, **options: Any) -> CaseResult:
    result = rehearse(agent, [case], store=False, **options).results[0]
    assert result.ledger is not None
    assert result.error is None or "nothing was evaluated" in result.error.message, result.error
    return result


def ledger_of(agent: Any, case: Case, **options: Any) -> Ledger:
    ledger = result_of(agent, case, **options).ledger
    assert ledger is not None
    return ledger


def cup(**more: Any) -> Case:
    return Case("cup", "What is it?", attachments=[attach(BIG_PNG, name="cup.png")], **more)


def test_an_image_of_a_case_reaches_the_model_byte_for_byte(desk):
    ledger = ledger_of(desk.agent("A cup."), cup())
    assert holds(desk.asked[0], BIG_PNG)
    [one] = attachments(ledger)
    assert (one.name, one.size, one.data) == ("cup.png", len(BIG_PNG), BIG_PNG)


def test_without_one_nothing_of_it_is_in_the_question(desk):
    ledger_of(desk.agent("A cup."), Case("cup", "What is it?"))
    assert not holds(desk.asked[0], BIG_PNG)


def test_a_document_reaches_the_model_byte_for_byte(desk):
    ledger_of(desk.agent("Fine."), Case("bill", "Sum.", attachments=[attach(PDF, name="a.pdf")]))
    assert holds(desk.asked[0], PDF)


def test_a_message_may_be_nothing_but_an_image(desk):
    case = Case("cup", attachments=[attach(BIG_PNG, name="cup.png")])
    ledger = ledger_of(desk.agent("A cup."), case)
    assert holds(desk.asked[0], BIG_PNG)
    assert [said.text for said in ledger.of(AgentSaid)] == ["A cup."]


@pytest.mark.parametrize("nested", [False, True], ids=["alone", "among other values"])
def test_an_image_that_a_mock_gives_reaches_the_model_byte_for_byte(desk, nested):
    image = attach(BIG_PNG, name="front.png")
    mocks = {"photo": {"front": image, "of": "cup"} if nested else image}
    ledger_of(desk.agent(CALL, "A cup."), Case("cup", "Show me.", mocks=mocks))
    assert not holds(desk.asked[0], BIG_PNG)
    assert holds(desk.asked[1], BIG_PNG)


def test_an_image_that_a_real_tool_gives_is_in_the_ledger_by_reference(desk):
    case = Case("cup", "Show me.", allow_tools=["photo"])
    ledger = ledger_of(desk.agent(CALL, "A cup."), case)
    assert holds(desk.asked[1], BIG_PNG)
    assert [one.data for one in attachments(ledger)] == [BIG_PNG]
    assert not holds(ledger.dumps(), BIG_PNG)


def test_a_later_turn_still_shows_it_and_the_ledger_never_holds_the_bytes(desk):
    turns = [Turn("What is it?", attachments=[attach(BIG_PNG)]), Turn("Really?")]
    ledger = ledger_of(desk.agent("A cup.", "Yes."), Case("cup", turns=turns))
    assert len(desk.asked) == 2
    assert holds(desk.asked[1], BIG_PNG)
    assert not holds(ledger.dumps(), BIG_PNG)


def test_the_question_in_the_ledger_names_it(desk):
    ledger = ledger_of(desk.agent("A cup."), cup())
    [asked] = model_interactions(ledger)
    assert asked.request is not None
    found = [one for message in asked.request.messages for one in message.attachments]
    assert [one.data for one in found] == [BIG_PNG]


async def test_a_run_that_was_cut_between_turns_goes_on_with_it(desk, tmp_path):
    turns = [Turn("What is it?", attachments=[attach(BIG_PNG)]), Turn("Really?")]
    case, agent = Case("cup", turns=turns), desk.agent("A cup.", "Yes.")
    whole = await simulate(case, agent)
    before = [event.seq for event in whole.of(ModelCalled)][1]
    Ledger(whole[:before]).save(tmp_path / "cut.jsonl")
    count = len(desk.asked)
    again = await simulate(case, agent, ledger=Ledger.load(tmp_path / "cut.jsonl"))
    assert [said.text for said in again.of(AgentSaid)] == ["A cup.", "Yes."]
    assert len(desk.asked) == count + 1
    assert holds(desk.asked[-1], BIG_PNG)


def test_a_ledger_is_json_that_mentions_only_digests(desk):
    ledger = ledger_of(desk.agent("A cup."), cup())
    lines = [json.loads(line) for line in ledger.dumps().splitlines()]
    said = next(line for line in lines if line["kind"] == "user_said")
    assert set(said["attachments"][0]) == {"$attachment", "media_type", "name", "size"}


def test_what_a_history_holds_in_base64_beside_attachments_stays_as_it_is():
    attach(PDF)
    other = b64encode(bytes(range(256)) * 3).decode()
    history: list[Any] = [{"reasoning": other, "image": data_uri(attach(BIG_PNG)), "n": 1}]
    slimmed = slim(history)
    assert other in json.dumps(slimmed)
    assert not holds(slimmed, BIG_PNG)
    assert whole(slimmed) == history


@given(some.binary(min_size=200, max_size=600), some.sampled_from([b64encode, urlsafe_b64encode]))
def test_a_history_comes_back_letter_for_letter(data, encode):
    attach(data, "application/octet-stream")
    coded = encode(data).decode()
    history: list[Any] = [{"data": coded, "bare": coded.rstrip("="), "words": "a" * 300}]
    assert whole(slim(history)) == history
