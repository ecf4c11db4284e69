"""The seed and the clock of a case reach the models, functions and steps that know them."""

import asyncio
import random
from typing import Any

import pytest

from greenroom import Agent, Case, Expect, Scripted, SimulatedUser, Stop, rehearse, simulate, step
from greenroom.cases.data import case_data
from greenroom.cases.reader import case_from
from greenroom.errors import BadCase
from greenroom.ledger import response
from greenroom.ledger.redaction import keep_secret
from greenroom.models.model import ModelReply, ModelRequest

asked: list[tuple[int | None, float | None]] = []


class Listening:
    """A model that says which seed and time it was given."""

    name = "listening"

    async def respond(self, request: ModelRequest, on_delta: Any = None) -> ModelReply:
        asked.append((request.seed, request.now))
        return ModelReply(f"{request.seed} {request.now}")


def said(case: Case, agent: Any) -> str | None:
    return response(asyncio.run(simulate(case, agent)))


def test_a_model_gets_the_seed_and_the_clock_of_its_case() -> None:
    agent = Agent("clerk", model=Listening())
    assert said(Case("c", says="Hi", seed=7, now=5.0), agent) == "7 5.0"
    assert said(Case("c", says="Hi"), agent) == "None None"
    assert said(Case("c", says="Hi", seed=0), agent) == "0 None"
    scripted = Agent("clerk", model=Scripted(lambda request: str(request.seed)))
    assert said(Case("c", says="Hi", seed=7), scripted) == "7"


def test_users_functions_and_steps_get_it_too() -> None:
    asked.clear()
    person = SimulatedUser(goals=["talk"], model=Listening())
    case = Case("c", says="Hi", user=person, seed=3, stop=Stop(max_turns=2))
    asyncio.run(simulate(case, Agent("clerk", model=Scripted(then="Yes."))))
    assert asked[0][0] == 3

    def desk(message: str, ctx: Any) -> str:
        return str(random.Random(ctx.seed).random())

    assert said(Case("c", says="Hi", seed=4), desk) == str(random.Random(4).random())
    throw = step(lambda input, ctx: str(ctx.seed), name="throw")  # noqa: A006
    assert said(Case("c", says="Hi", seed=4), throw) == "4"


def test_each_trial_has_a_seed_of_its_own() -> None:
    agent = Agent("clerk", model=Listening())
    case = Case("c", says="Hi", seed=7, expect=Expect(contains="None"))
    report = rehearse(agent, case, trials=3, store=False)
    assert [result.responses for result in report] == [["7 None"], ["8 None"], ["9 None"]]


def test_a_seed_is_data_and_is_left_out_where_there_is_none() -> None:
    case = Case("c", says="Hi", seed=7)
    assert case_from(case_data(case)) == case
    assert "seed" not in case_data(Case("c", says="Hi"))
    with pytest.raises(BadCase, match="`seed` is '7', but should be a whole number"):
        Case("c", seed="7")  # pyright: ignore[reportArgumentType]


# Models of providers and frameworks


def test_pydantic_ai_gets_it_as_a_setting() -> None:
    pydantic_ai = pytest.importorskip("pydantic_ai")
    from pydantic_ai.messages import ModelResponse, TextPart
    from pydantic_ai.models.function import FunctionModel

    def answer(_: Any, info: Any) -> Any:
        return ModelResponse(parts=[TextPart(str(dict(info.model_settings or {})))])

    agent = pydantic_ai.Agent(FunctionModel(answer))
    assert said(Case("c", says="Hi", seed=7), agent) == "{'seed': 7}"
    assert said(Case("c", says="Hi"), agent) == "{}"
    own = pydantic_ai.Agent(FunctionModel(answer), model_settings={"seed": 1})
    assert said(Case("c", says="Hi", seed=7), own) == "{'seed': 1}"


def test_google_adk_gets_it_in_the_config() -> None:
    pytest.importorskip("google.adk")
    from google.adk.agents import LlmAgent
    from google.adk.models import BaseLlm
    from google.adk.models.llm_response import LlmResponse
    from google.genai import types

    class Echo(BaseLlm):
        async def generate_content_async(  # pyright: ignore[reportIncompatibleMethodOverride]
            self, llm_request: Any, stream: bool = False
        ) -> Any:
            text = str(llm_request.config.seed)
            yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text=text)]))

    agent = LlmAgent(name="clerk", model=Echo(model="echo"))
    assert said(Case("c", says="Hi", seed=7), agent) == "7"
    assert said(Case("c", says="Hi"), agent) == "None"


def test_langchain_models_that_have_a_seed_get_it() -> None:
    pytest.importorskip("langgraph")
    from langchain_core.language_models.chat_models import BaseChatModel
    from langchain_core.messages import AIMessage
    from langchain_core.outputs import ChatGeneration, ChatResult
    from langgraph.graph import START, MessagesState, StateGraph

    class Echo(BaseChatModel):
        seed: int | None = None

        @property
        def _llm_type(self) -> str:
            return "echo"

        def _generate(
            self, messages: Any, stop: Any = None, run_manager: Any = None, **more: Any
        ) -> Any:
            message = AIMessage(str(more.get("seed", self.seed)))
            return ChatResult(generations=[ChatGeneration(message=message)])

    def graph(model: Any) -> Any:
        def ask(state: Any) -> Any:
            return {"messages": [model.invoke(state["messages"])]}

        made: Any = StateGraph(MessagesState)
        made.add_node("ask", ask)
        made.add_edge(START, "ask")
        return made.compile()

    assert said(Case("c", says="Hi", seed=7), graph(Echo())) == "7"
    assert said(Case("c", says="Hi", seed=7), graph(Echo(seed=1))) == "1"
    assert said(Case("c", says="Hi"), graph(Echo())) == "None"


def test_openai_agents_gets_it_where_the_interface_takes_one() -> None:
    agents = pytest.importorskip("agents")
    seen: list[Any] = []

    class Echo(agents.OpenAIChatCompletionsModel):
        async def get_response(self, *args: Any, **given: Any) -> Any:
            seen.append(given["model_settings"].extra_args)
            raise RuntimeError("enough")

    from openai import AsyncOpenAI

    keep_secret("api_key", "sk-none-of-any-use")
    model = Echo("gpt-4o", AsyncOpenAI(api_key="sk-none-of-any-use"))
    asyncio.run(simulate(Case("c", says="Hi", seed=7), agents.Agent("clerk", model=model)))
    assert seen == [{"seed": 7}]
