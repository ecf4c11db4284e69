"""Tool and model classes of the author's own are held, however they come by the methods that frameworks call."""

from collections.abc import Awaitable, Callable
from functools import partialmethod
from typing import Any, ClassVar

import pytest

from greenroom import Case, Expect, Scripted, rehearse
from greenroom.results.result import CaseResult

RAN: list[str] = []
MOCKED = Case("c", "Pay!", mocks={"pay": "mocked"}, expect=Expect(response="mocked"))
Desk = Callable[[str], Any]


@pytest.fixture(autouse=True)
def nothing_ran():
    RAN.clear()
    yield
    assert RAN == []


def result_of(desk: Desk, case: Case = MOCKED, **options: Any) -> CaseResult:
    return rehearse(desk, case, store=False, **options).results[0]


class Registry:
    """Keeps its subclasses to itself: it does not call `super().__init_subclass__`."""

    kinds: ClassVar[dict[str, type]] = {}

    def __init_subclass__(cls, **_: object) -> None:
        Registry.kinds[cls.__name__] = cls


# google-adk


class AdkPays:
    async def run_async(self, *, args: Any, tool_context: Any) -> str:
        RAN.append("run_async")
        return "paid"


def adk_desk(kind: Any) -> Desk:
    async def desk(message: str) -> str:
        return await kind(name="pay", description="Pay.").run_async(args={}, tool_context=None)

    return desk


def adk_tool(*bases: type, **held: Any) -> Any:
    tools = pytest.importorskip("google.adk.tools")
    return type("Pay", (*bases, tools.BaseTool), held)


def test_a_body_from_a_mixin_is_mocked_in_google_adk() -> None:
    assert result_of(adk_desk(adk_tool(AdkPays))).passed


def test_a_body_that_is_a_partial_method_is_mocked_in_google_adk() -> None:
    async def pay(self: object, how: str, *, args: Any, tool_context: Any) -> str:
        RAN.append(how)
        return "paid"

    assert result_of(adk_desk(adk_tool(run_async=partialmethod(pay, "now")))).passed


def test_a_class_that_a_mixin_hides_is_held_with_its_first_object() -> None:
    rehearse(lambda message: "Hello", Case("c", "Hi"), store=False)

    async def desk(message: str) -> str:
        late = adk_tool(Registry, run_async=AdkPays.run_async)
        return await adk_desk(late)(message)

    assert result_of(desk).passed


def test_a_method_that_was_replaced_between_two_rehearsals_is_held() -> None:
    tool = adk_tool(AdkPays)
    assert result_of(adk_desk(tool)).passed
    tool.run_async = AdkPays.run_async
    assert result_of(adk_desk(tool)).passed


def test_a_model_from_a_mixin_is_not_asked_in_google_adk() -> None:
    models = pytest.importorskip("google.adk.models")
    from google.adk.agents import LlmAgent
    from google.adk.runners import InMemoryRunner
    from google.genai import types

    class Asks:
        async def generate_content_async(self, *_: object, **__: object) -> Any:
            RAN.append("asked")
            yield models.LlmResponse(content=types.Content(role="model", parts=[]))

    mine: Any = type("Mine", (Asks, models.BaseLlm), {})

    async def desk(message: str) -> str:
        runner = InMemoryRunner(LlmAgent(name="clerk", model=mine(model="mine")), app_name="app")
        session = await runner.session_service.create_session(app_name="app", user_id="u")
        said = types.Content(role="user", parts=[types.Part(text=message)])
        found = ""
        async for event in runner.run_async(user_id="u", session_id=session.id, new_message=said):
            for part in (event.content and event.content.parts) or ():
                found += part.text or ""
        return found

    case = Case("c", "Hi", expect=Expect(response="scripted"))
    assert result_of(desk, case, model=Scripted("scripted")).passed


# LangChain


class LangChainPays:
    def _run(self, x: int = 0) -> str:
        RAN.append("_run")
        return "paid"

    def acts(self, *_: object, **__: object) -> Any:
        RAN.append("acts")
        return "paid"


def langchain_tool(*bases: type, **held: Any) -> Any:
    tools = pytest.importorskip("langchain_core.tools")
    fields = {
        "name": "pay",
        "description": "Pay.",
        "__annotations__": {"name": str, "description": str},
    }
    return type("Pay", (*bases, tools.BaseTool), {**fields, **held, "__module__": __name__})()


@pytest.mark.parametrize("mixins", [(LangChainPays,), (Registry, LangChainPays)])
def test_a_body_from_a_mixin_is_mocked_in_langchain(mixins: tuple[type, ...]) -> None:
    assert result_of(lambda message: langchain_tool(*mixins)._run(x=1)).passed
    assert result_of(lambda message: langchain_tool(*mixins).invoke({"x": 1})).passed


@pytest.mark.parametrize("method", ["invoke", "run", "batch", "stream"])
def test_a_tool_of_langchain_with_its_own_way_to_run_is_refused(method: str) -> None:
    mixin = type("Mixin", (), {method: LangChainPays.acts})

    def inherited(message: str) -> str:
        return str(getattr(langchain_tool(mixin, LangChainPays), method)([{"x": 1}]))

    def own(message: str) -> str:
        tool = langchain_tool(LangChainPays, **{method: LangChainPays.acts})
        return str(getattr(tool, method)([{"x": 1}]))

    for desk in (inherited, own):
        error = result_of(desk).error
        assert error is not None
        assert error.type == "ToolRefused"
        assert f"its own {method}()" in error.message


# pydantic-ai


@pytest.mark.parametrize("bases", [(), (Registry,)])
def test_a_model_from_a_mixin_is_not_asked_in_pydantic_ai(bases: tuple[type, ...]) -> None:
    pydantic_ai = pytest.importorskip("pydantic_ai")
    from pydantic_ai.models.test import TestModel

    class Asks:
        def request(self, *_: object, **__: object) -> Awaitable[Any]:
            RAN.append("asked")
            raise AssertionError("the real model was asked")

    mine: Any = type("Mine", (*bases, Asks, TestModel), {})
    case = Case("c", "Hi", expect=Expect(response="scripted"))
    agent = pydantic_ai.Agent(mine())
    assert result_of(agent, case, model=Scripted("scripted")).passed

    async def desk(message: str) -> str:
        return (await agent.run(message)).output

    assert result_of(desk, case, model=Scripted("scripted")).passed
