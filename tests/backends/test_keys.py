"""A key that only a framework's own client was given is nowhere to be read, whoever repeats it."""

import json
import urllib.request
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import httpx2
import pytest
import requests
from pydantic import BaseModel, SecretStr

from apps.terminals import started
from greenroom import Case, Report, evaluate
from greenroom.ledger.redaction import given, given_secrets, keep_keys
from greenroom.metrics import contains
from greenroom.results.reporters import render_report
from greenroom.simulation.fence import enclose, opening_for
from greenroom.store import Store
from models.wire import Answer, Asked, anthropic, gemini, openai, wire

# None looks like a key: they can be known by their value only.
KEYS = [
    "quartz-meadow-lantern-41",
    "Zm9vYmFyIHF1dXggbm90aGluZw",
    "k4nary.of:the/clerk",
    "supersecretkey",
]


@pytest.fixture(autouse=True)
def nothing_known(monkeypatch):
    monkeypatch.setattr(given, "_given", {})
    monkeypatch.setattr(given, "_kept_of", type(given._kept_of)())
    for variable in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.delenv(variable, raising=False)


def known() -> set[str]:
    return {value for _, value in given_secrets()}


# Agents of frameworks

Making = Callable[[str, str], Any]


def with_pydantic_ai(url: str, key: str) -> Any:
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    return Agent(OpenAIChatModel("gpt", provider=OpenAIProvider(base_url=f"{url}/v1", api_key=key)))


def with_anthropic(url: str, key: str) -> Any:
    from anthropic import AsyncAnthropic
    from pydantic_ai import Agent
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    client = AsyncAnthropic(base_url=url, api_key=key)
    return Agent(
        AnthropicModel("claude", provider=AnthropicProvider(anthropic_client=client)),
    )


def with_gemini(url: str, key: str) -> Any:
    from google.genai import Client
    from pydantic_ai import Agent
    from pydantic_ai.models.google import GoogleModel
    from pydantic_ai.providers.google import GoogleProvider

    client = Client(api_key=key, http_options={"base_url": url})
    return Agent(GoogleModel("gemini", provider=GoogleProvider(client=client)))


def with_openai_agents(url: str, key: str) -> Any:
    from openai import AsyncOpenAI

    from agents import Agent, OpenAIChatCompletionsModel

    client = AsyncOpenAI(api_key=key, base_url=f"{url}/v1")
    return Agent("clerk", model=OpenAIChatCompletionsModel("gpt", openai_client=client))


def with_langgraph(url: str, key: str) -> Any:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage, HumanMessage
    from langchain_core.outputs import ChatGeneration, ChatResult
    from langgraph.graph import START, MessagesState, StateGraph
    from openai import OpenAI

    class Chat(BaseChatModel):
        client: Any

        @property
        def _llm_type(self) -> str:
            return "chat"

        def _generate(self, messages: Any, *_: Any, **__: Any) -> ChatResult:
            asked = [{"role": "user", "content": str(messages[-1].content)}]
            found = self.client.chat.completions.create(model="gpt", messages=asked)
            text = found.choices[0].message.content
            return ChatResult(generations=[ChatGeneration(message=AIMessage(text))])

    model = Chat(client=OpenAI(api_key=key, base_url=f"{url}/v1"))

    def answer(state: MessagesState) -> Any:
        return {"messages": [model.invoke([HumanMessage(str(state["messages"][-1].content))])]}

    return StateGraph(MessagesState).add_node("clerk", answer).add_edge(START, "clerk").compile()


def with_google_adk(url: str, key: str) -> Any:
    from google.adk.agents import LlmAgent
    from google.adk.models import Gemini
    from google.genai import Client

    model = Gemini(model="gemini-2.5-flash")
    vars(model)["api_client"] = Client(api_key=key, http_options={"base_url": url})
    return LlmAgent(name="clerk", model=model)


def with_a_plain_function(url: str, key: str) -> Any:
    agent = with_pydantic_ai(url, key)

    async def clerk(message: str) -> str:
        return (await agent.run(message)).output

    return clerk


def echoing(asked: Asked) -> Answer:
    """Whoever is asked says all that it was sent; frameworks' clients are closed by nobody else."""
    return replace(repeating(asked), headers={"connection": "close"})


def repeating(asked: Asked) -> Answer:
    told = f"You sent {json.dumps(asked.headers)} to {asked.path}."
    told += " ".join(asked.headers.get("authorization", "").split()[1:])
    if "x-goog-api-key" in asked.headers or "generateContent" in asked.path:
        return gemini(told + asked.headers.get("x-goog-api-key", ""))
    if "anthropic-version" in asked.headers:
        return anthropic(told + asked.headers.get("x-api-key", ""))
    return openai(told)


def all_told(report: Report, store: Path) -> str:
    texts = [str(report), *(render_report(name, report) for name in ("html", "json", "junit"))]
    texts += [result.ledger.redacted().dumps() for result in report.results if result.ledger]
    [run] = Store(store).runs()
    texts += [Store(store).ledger(run.id, key).dumps() for key in Store(store).keys(run.id)]
    texts += [str(result) for result in Store(store).report(run.id)]
    files = [file for file in store.rglob("*") if file.is_file()]
    return "".join((*texts, *(file.read_bytes().decode("latin-1") for file in files)))


@pytest.mark.parametrize("key", KEYS[:1])
@pytest.mark.parametrize(
    "making",
    [
        with_pydantic_ai,
        with_anthropic,
        with_gemini,
        with_openai_agents,
        with_langgraph,
        with_google_adk,
        with_a_plain_function,
    ],
)
async def test_a_key_of_a_frameworks_client_is_in_no_report(
    making: Making, key: str, tmp_path: Path
) -> None:
    with wire(echoing) as server:
        agent = making(server.url, key)
        said = Case("c", "Hi", metrics=[contains("nothing")])
        [raw] = (await evaluate(agent, said, store=False)).results
        report = await evaluate(agent, said, store=tmp_path / "runs")
    assert raw.ledger is not None
    assert key in raw.ledger.dumps(), raw  # in memory the echo is what it was
    told = all_told(report, tmp_path / "runs")
    assert "[redacted:" in told
    assert key not in told


@pytest.mark.slow
def test_a_key_that_only_a_worker_process_knows_is_in_no_report_either(tmp_path: Path) -> None:
    with wire(echoing) as server:
        (tmp_path / "shop.py").write_text(WRITTEN.replace("URL", server.url), encoding="utf-8")
        words = (
            "eval",
            "run",
            "shop.py",
            "--store",
            "runs",
            "--workers",
            "2",
            "-v",
            "--allow-opaque",
        )
        with started(*words, "-f", "html", "-f", "json", cwd=tmp_path) as process:
            told = process.communicate()[0].decode()
        assert len(server.asked) == 3, told
    files = [file for file in tmp_path.rglob("*") if file.is_file() and file.name != "shop.py"]
    told += "".join(file.read_bytes().decode("latin-1") for file in files if file.suffix != ".pyc")
    store = Store(tmp_path / "runs")
    [run] = store.runs()
    told += "".join(store.ledger(run.id, key).dumps() for key in store.keys(run.id))
    assert "You sent" in told
    assert "[redacted:" in told
    assert KEYS[0] not in told


WRITTEN = f"""
import httpx2
from greenroom import Agent, Case
from greenroom.metrics import contains
from greenroom.models import ModelReply

class Echo:
    name = "echo"

    async def respond(self, request, on_delta=None):
        headers = {{"authorization": "Bearer {KEYS[0]}"}}
        async with httpx2.AsyncClient(headers=headers) as client:
            return ModelReply((await client.post("URL", json={{}})).text)

agent = Agent("clerk", model=Echo())
cases = [Case(f"c{{n}}", "Hi", metrics=[contains("nothing")]) for n in range(3)]
"""


@pytest.mark.parametrize("making", [with_pydantic_ai, with_gemini, with_openai_agents])
def test_a_key_that_the_model_shows_is_known_before_the_first_request(making: Making) -> None:
    keep_keys(making("http://127.0.0.1:9", KEYS[0]).model)
    assert KEYS[0] in known()


def test_a_key_that_is_hidden_in_a_field_is_known_before_the_first_request() -> None:
    class Chat(BaseModel):
        openai_api_key: SecretStr
        default_headers: dict[str, str]
        model_name: str

    headers = {"x-tenant-token": KEYS[1], "x-title": "the-shop-of-bob"}
    chat = Chat(openai_api_key=KEYS[0], default_headers=headers, model_name="gpt-4o-mini")  # pyright: ignore[reportArgumentType]
    keep_keys(chat)
    assert known() == {KEYS[0], KEYS[1]}


@pytest.mark.parametrize("model", [None, 7, "text", object(), type, {"api_key": 7}])
def test_looking_for_keys_fails_for_nobody(model: object) -> None:
    keep_keys(model)
    assert not known()


# Requests of any client


async def by_httpx(url: str, **given: Any) -> None:
    async with httpx.AsyncClient() as client:
        await client.post(url, **given)


async def by_httpx2(url: str, **given: Any) -> None:
    async with httpx2.AsyncClient() as client:
        await client.post(url, **given)


async def by_blocking_httpx(url: str, **given: Any) -> None:
    with httpx.Client() as client:
        client.post(url, **given)  # noqa: ASYNC212


async def by_blocking_httpx2(url: str, **given: Any) -> None:
    with httpx2.Client() as client:
        client.post(url, **given)


async def by_requests(url: str, **given: Any) -> None:
    with requests.Session() as session:
        session.post(url, **given)


async def by_the_standard_library(url: str, headers: Any = None, **_: Any) -> None:
    request = urllib.request.Request(url, b"{}", headers or {}, method="POST")
    urllib.request.urlopen(request).close()  # noqa: ASYNC210


CLIENTS = [
    by_httpx,
    by_httpx2,
    by_blocking_httpx,
    by_blocking_httpx2,
    by_requests,
    by_the_standard_library,
]
Client = Callable[..., Any]


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("key", KEYS)
async def test_what_a_client_sends_under_the_name_of_a_secret_is_known_from_then_on(
    client: Client, key: str
) -> None:
    with wire(lambda _: openai("Hi")) as server, enclose("case"), opening_for():
        for headers in ({"Authorization": f"Bearer {key}1"}, {"X-Api-Key": f"{key}2"}):
            await client(server.url, headers=headers)
        await client(f"{server.url}/ask?api_key={key.replace('/', '%2F')}3&lang=english-gb")
        await client(server.url, headers={"Cookie": f"session={key}4; theme=dark"})
    assert {f"{key}{n}" for n in (1, 2, 3, 4)} <= known()
    assert not {"english-gb", "Bearer", "dark"} & known()


@pytest.mark.parametrize("client", CLIENTS[:5])
async def test_the_password_that_a_client_sends_for_its_user_is_known(client: Client) -> None:
    with wire(lambda _: openai("Hi")) as server, enclose("case"), opening_for():
        await client(server.url, auth=("bob", "quartz-meadow"))
    assert "quartz-meadow" in known()


async def test_what_says_only_how_one_speaks_is_no_secret() -> None:
    headers = {
        "User-Agent": "shop/1.0 (linux)",
        "X-Stainless-Lang": "python",
        "Idempotency-Key": "a1" * 9,
    }
    with wire(lambda _: openai("Hi")) as server, enclose("case"), opening_for():
        await by_httpx2(server.url, headers=headers)
        await by_requests(server.url, headers=headers)
    assert not known()


async def test_what_is_made_anew_for_each_request_does_not_pile_up() -> None:
    with enclose("case"):
        for n in range(1000):
            given.keep_sent(
                [("X-Csrf-Token", f"made-anew-{n}"), ("Authorization", "Bearer kept-for-good")]
            )
    assert "kept-for-good" in known()
    assert len(known()) < 150


@pytest.mark.parametrize("client", CLIENTS)
async def test_while_nobody_rehearses_nothing_is_remembered(client: Client) -> None:
    with wire(lambda _: openai("Hi")) as server:
        with enclose("case"):
            pass  # the seams are in
        await client(server.url, headers={"Authorization": f"Bearer {KEYS[0]}"})
        assert server.asked[-1].headers["authorization"] == f"Bearer {KEYS[0]}"
    assert not known()


@pytest.mark.parametrize(
    "value", ["", " ", "Basic", "Basic \xff!", "Bearer ", "\x00", "Digest a=b"]
)
async def test_no_request_fails_for_being_looked_at(value: str) -> None:
    given.keep_sent([("Authorization", value), ("X-Api-Key", KEYS[0])], "http://[bad?key=")
