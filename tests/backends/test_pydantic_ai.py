"""What is pydantic-ai's own in a rehearsal: the real framework, with a scripted model.

What every backend owes is tested by `conformance/test_pydantic_ai.py`, which also proves that the
canaries fire when the framework runs an agent by itself.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, ModelRetry, RunContext, Tool
from pydantic_ai.capabilities import AbstractCapability, NativeTool, ProcessEventStream
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel
from pydantic_ai.models.instrumented import InstrumentationSettings
from pydantic_ai.native_tools import WebSearchTool
from pydantic_ai.toolsets import (
    FunctionToolset,
)

from greenroom import Case, Ledger, Lines, Turn, UserAgents, evaluate, fault
from greenroom.backends.pydantic_ai import PydanticAIBackend
from greenroom.cases import in_turn
from greenroom.errors import BadAgent
from greenroom.ledger import questions as q
from greenroom.ledger.events import (
    InvocationEnded,
    ModelCalled,
    Remembered,
)
from greenroom.metrics import called, contains
from greenroom.results.result import CaseResult


@dataclass
class Script:
    """Answers by how many replies the history already holds, so it serves many runs at once."""

    lines: tuple[Any, ...]
    asked: list[list[ModelMessage]] = field(default_factory=list)

    async def __call__(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.asked.append(list(messages))
        line = self.lines[sum(isinstance(message, ModelResponse) for message in messages)]
        if isinstance(line, Exception):
            raise line
        if isinstance(line, str):
            return ModelResponse(parts=[TextPart(line)])
        calls = line if isinstance(line, list) else [line]
        return ModelResponse(parts=[ToolCallPart(name, dict(args)) for name, args in calls])

    async def stream(self, messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
        for index, part in enumerate((await self(messages, info)).parts):
            if isinstance(part, ToolCallPart):
                yield {index: DeltaToolCall(part.tool_name, part.args_as_json_str())}
            elif isinstance(part, TextPart):
                yield part.content


class Desk:
    """Tools whose bodies leave a mark in a file."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "canary"

    @property
    def marks(self) -> list[str]:
        return self._file.read_text().splitlines() if self._file.exists() else []

    def mark(self, text: str) -> str:
        with self._file.open("a") as file:
            file.write(f"{text}\n")
        return f"really {text}"

    def tools(self) -> dict[str, Any]:
        def weather(city: str, days: int = 1) -> str:
            """The weather."""
            return self.mark(f"weather {city}")

        def pay(ctx: RunContext[None], amount: int) -> str:
            """Pay."""
            return self.mark(f"pay {amount}")

        return {"weather": weather, "pay": pay}


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def clerk(desk: Desk, *lines: Any, **options: Any) -> Agent[Any, Any]:
    tools = desk.tools()
    given = [tools["weather"], Tool(tools["pay"], requires_approval=True)]
    options = {"name": "clerk", "tools": given, "instructions": "Be kind.", **options}
    script = Script(lines)
    model = FunctionModel(script, stream_function=script.stream, model_name="script")
    return Agent(model, **options)


def asked(agent: Agent[Any, Any]) -> list[list[ModelMessage]]:
    return cast(Any, agent.model).function.asked


def case(id: str = "one", **options: Any) -> Case:
    given: dict[str, Any] = {"says": "hello", "metrics": [contains("done")], **options}
    return Case(id, **given)


async def result_of(agent: Any, one: Case) -> CaseResult:
    return (await evaluate(agent, one)).results[0]


def ledger_of(result: CaseResult) -> Ledger:
    assert result.ledger is not None
    return result.ledger


WEATHER = ("weather", {"city": "Oslo"})
PAY = ("pay", {"amount": 5})


async def test_an_allowed_tools_retry_is_the_frameworks_to_judge(desk: Desk):
    def weather(city: str) -> str:
        raise ModelRetry("which Oslo?")

    agent = clerk(desk, WEATHER, "done", tools=[weather])
    result = await result_of(agent, case(allow_tools=["weather"]))
    assert result.status == "passed"
    assert "which Oslo?" in str(asked(agent)[-1][-1])


async def test_a_denied_tool_does_not_run_and_its_model_is_told(desk: Desk):
    agent = clerk(desk, PAY, "done, not paid")
    one = case(mocks={"pay": {"paid": 5}}, user=UserAgents(tools={"pay": Lines(False)}))
    result = await result_of(agent, one)
    assert (result.status, desk.marks) == ("passed", [])
    assert q.tool_calls(ledger_of(result)) == []
    assert "denied" in str(asked(agent)[-1][-1])


async def test_a_second_turn_knows_the_first(desk: Desk):
    one = case(
        says="", turns=[Turn("hello"), Turn("and tomorrow?")], mocks={"weather": in_turn(1, 2)}
    )
    result = await result_of(clerk(desk, WEATHER, "cold", WEATHER, "done"), one)
    assert result.status == "passed"
    assert q.responses(ledger_of(result)) == ["cold", "done"]
    assert [event.messages for event in ledger_of(result).of(ModelCalled)] == [1, 3, 5, 7]
    assert [c.result for c in q.tool_calls(ledger_of(result))] == [1, 2]
    kept = [note.data for note in ledger_of(result).of(Remembered)]
    assert [(note["keep"], len(note["items"])) for note in kept] == [(0, 4), (4, 4)]


async def test_the_users_agent_is_untouched(desk: Desk):
    agent = clerk(desk, WEATHER, "done", name=None)
    before = dict(vars(agent))
    toolset = cast("FunctionToolset[Any]", agent.toolsets[0])
    tools = dict(toolset.tools)
    await result_of(agent, case(mocks={"weather": "fine"}))
    assert agent.name is None
    assert all(vars(agent)[name] is value for name, value in before.items())
    assert (agent.toolsets[0], toolset.tools) == (toolset, tools)


async def test_an_agent_pauses_in_a_rehearsal_only(desk: Desk):
    agent = clerk(desk, PAY, "done")
    one = case(user=UserAgents(tools={"pay": Lines(False)}))
    assert (await result_of(agent, one)).status == "passed"
    with pytest.raises(UserError, match="DeferredToolRequests"):
        await agent.run("hello")


async def test_an_agent_with_a_method_of_its_own_can_pause(desk: Desk):
    agent: Any = clerk(desk, PAY, "done")
    ran, own = list[str](), agent.run

    async def traced(*given: Any, **named: Any) -> Any:
        ran.append("traced")
        return await own(*given, **named)

    agent.run = traced
    one = case(user=UserAgents(tools={"pay": Lines(False)}))
    assert (await result_of(agent, one)).status == "passed"
    assert ran == ["traced", "traced"]


async def test_the_authors_code_meets_the_authors_agent(desk: Desk):
    agent = clerk(desk, "done")
    met = list[object]()

    @agent.instructions
    def kind(ctx: RunContext[Any]) -> str:
        met.append(ctx.agent)
        return "Be kind."

    @agent.output_validator
    def fine(ctx: RunContext[Any], said: str) -> str:
        met.append(ctx.agent)
        return said

    assert (await result_of(agent, case())).status == "passed"
    assert len(met) == 2
    assert all(one is agent for one in met)


async def test_an_agent_with_output_validators_can_pause_and_its_output_is_validated(desk: Desk):
    agent = clerk(desk, PAY, "well", "well done")

    @agent.output_validator
    def long_enough(said: Any) -> Any:
        if said == "well":
            raise ModelRetry("say more")
        return said

    one = case(mocks={"pay": 1}, user=UserAgents(tools={"pay": Lines(True)}))
    result = await result_of(agent, one)
    assert (result.status, q.responses(ledger_of(result))) == ("passed", ["well done"])


async def test_what_is_changed_in_an_agent_between_two_runs_holds_in_the_next(desk: Desk):
    agent = clerk(desk, "done")
    backend = PydanticAIBackend(agent)
    await result_of(backend, case())
    agent.instructions(lambda: "Be quick.")
    agent.name = "swift"
    ledger = ledger_of(await result_of(backend, case()))
    told = [cast(ModelRequest, messages[0]).instructions for messages in asked(agent)]
    assert told == ["Be kind.", "Be kind.\n\nBe quick."]
    assert [event.agent for event in ledger.of(ModelCalled)] == ["swift"]


async def test_data_is_checked_by_the_agents_own_schema_in_every_run(desk: Desk):
    class Bill(BaseModel):
        amount: int

    lines = ("final_result", {"amount": "much"}), ("final_result", {"amount": 5})
    agent = clerk(desk, *lines, output_type=Bill)
    backend = PydanticAIBackend(agent)
    for _ in range(2):
        result = await result_of(backend, case(metrics=[contains("5")]))
        (end,) = ledger_of(result).of(InvocationEnded)
        assert (result.status, end.output) == ("passed", {"amount": 5})
        assert len(ledger_of(result).of(ModelCalled)) == 2


async def test_the_users_capabilities_and_toolsets_run_above_the_gate(desk: Desk):
    order: list[str] = []

    class Watch(AbstractCapability[Any]):
        async def after_tool_execute(self, ctx: Any, *, result: Any, **_: Any) -> Any:
            order.append(f"after {result}")
            return "polished"

    agent = clerk(desk, WEATHER, "done", capabilities=[Watch()])
    result = await result_of(agent, case(mocks={"weather": "fine"}))
    assert (result.status, order) == ("passed", ["after fine"])
    assert "polished" in str(asked(agent)[-1][-1])


async def test_prefixed_and_renamed_tools_go_by_the_name_the_model_knows(desk: Desk):
    toolset = FunctionToolset([desk.tools()["weather"]]).renamed({"sky": "weather"}).prefixed("my")
    agent = clerk(desk, ("my_sky", {"city": "Oslo"}), "done", tools=[], toolsets=[toolset])
    refused = await result_of(agent, case("refused"))
    assert (refused.status, desk.marks) == ("error", [])
    result = await result_of(agent, case(mocks={"my_sky": "fine"}, metrics=[called("my_sky")]))
    assert (result.status, desk.marks) == ("passed", [])
    assert set(PydanticAIBackend(agent).tools or ()) == {"my_sky"}


@pytest.mark.parametrize("per_run_step", [True, False])
async def test_a_toolset_made_while_the_agent_runs_is_gated(desk: Desk, per_run_step: bool):
    def built() -> Agent[Any, Any]:
        agent = clerk(desk, WEATHER, "done", tools=[])

        @agent.toolset(per_run_step=per_run_step)
        def make(ctx: RunContext[Any]) -> FunctionToolset[Any]:
            return FunctionToolset([desk.tools()["weather"]])

        return agent

    await built().run("hello")
    assert desk.marks == ["weather Oslo"]
    refused = await result_of(built(), case("refused"))
    passed = await result_of(built(), case(mocks={"weather": "fine"}))
    assert (refused.status, passed.status, desk.marks) == ("error", "passed", ["weather Oslo"])
    assert PydanticAIBackend(built()).tools is None


async def test_an_output_function_is_gated_like_a_tool(desk: Desk):
    def send_mail(to: str, text: str) -> str:
        """Send a mail."""
        return desk.mark(f"mail {to}")

    line = ("final_result", {"to": "Ada", "text": "hi"})
    await clerk(desk, line, output_type=send_mail).run("hello")
    assert desk.marks == ["mail Ada"]
    agent = clerk(desk, line, output_type=send_mail)
    refused = await result_of(agent, case("refused"))
    passed = await result_of(agent, case(mocks={"send_mail": "done"}))
    assert (refused.status, passed.status, desk.marks) == ("error", "passed", ["mail Ada"])
    assert q.tool_calls(ledger_of(passed))[0].args == {"to": "Ada", "text": "hi"}


async def test_a_declared_fault_is_told_to_the_model(desk: Desk):
    agent = clerk(desk, WEATHER, "done")
    result = await result_of(agent, case(mocks={"weather": fault("station is down")}))
    assert result.status == "passed"
    assert "station is down" in str(asked(agent)[-1][-1])


async def test_a_listener_to_the_stream_still_hears_it(desk: Desk):
    heard: list[str] = []

    async def listen(ctx: Any, events: Any) -> None:
        async for event in events:
            heard.append(type(event).__name__)

    agent = clerk(desk, WEATHER, "done", capabilities=[ProcessEventStream(listen)])
    result = await result_of(agent, case(mocks={"weather": "fine"}))
    assert (result.status, desk.marks) == ("passed", [])
    assert {"PartStartEvent", "FunctionToolResultEvent"} <= set(heard)


@pytest.mark.parametrize("mocks,status", [({"weather": "fine"}, "passed"), ({}, "error")])
async def test_an_agent_that_is_listened_to_or_traced_is_gated_all_the_same(
    desk: Desk, mocks: dict[str, Any], status: str
):
    heard: list[str] = []
    agent = clerk(desk, WEATHER, "done")
    agent.instrument = InstrumentationSettings()

    @agent.on_event
    async def listen(ctx: Any, event: Any) -> None:
        heard.append(type(event).__name__)

    result = await result_of(agent, case(mocks=mocks))
    assert (result.status, desk.marks) == (status, [])
    assert len(ledger_of(result).of(ModelCalled)) == len(asked(agent))
    assert "FunctionToolCallEvent" in heard


async def test_a_model_put_in_the_agents_place_from_outside_is_asked_through_the_world(desk: Desk):
    agent = clerk(desk, "never asked")
    other = FunctionModel(Script((WEATHER, "done")), model_name="other")
    with agent.override(model=other):
        result = await result_of(agent, case(mocks={"weather": "fine"}))
    assert (result.status, desk.marks, asked(agent)) == ("passed", [], [])
    assert [event.model for event in ledger_of(result).of(ModelCalled)] == ["other", "other"]


async def test_a_run_that_an_allowed_tool_begins_stands_under_its_call(desk: Desk):
    agent = clerk(desk, ("delegate", {}), "done", tools=[])

    @agent.tool_plain
    async def delegate() -> str:
        """Delegate."""
        inner = FunctionModel(Script(("inner",)), model_name="inner")
        return (await agent.run("go on", model=inner)).output

    result = await result_of(agent, case(allow_tools=["delegate"]))
    assert result.status == "passed"
    (call,) = q.tool_calls(ledger_of(result))
    assert call.result == "inner"
    asked_at = [(event.model, event.path) for event in ledger_of(result).of(ModelCalled)]
    inside = f"@1/clerk/call:{call.id}/clerk"
    assert asked_at == [("script", "@1/clerk"), ("inner", inside), ("script", "@1/clerk")]


async def test_dependencies_are_made_for_each_run(desk: Desk):
    agent = clerk(desk, "done", deps_type=str)

    @agent.instructions
    def greet(ctx: RunContext[str]) -> str:
        return f"Serve {ctx.deps}."

    backend = PydanticAIBackend(agent, deps=lambda: "Ada")
    result = await result_of(backend, case())
    assert result.status == "passed"
    assert "Serve Ada." in str(asked(agent)[-1][-1])


class OwnWay(Agent[Any, Any]):
    async def run(self, *args: Any, **options: Any) -> Any:
        return None


@pytest.mark.parametrize(
    "build,named",
    [
        (lambda: Agent(capabilities=[NativeTool(WebSearchTool())]), "web_search"),
        (OwnWay, "OwnWay"),
        (FunctionToolset, "FunctionToolset"),
    ],
)
def test_what_cannot_be_led_through_the_gate_is_refused_before_the_run(build: Any, named: str):
    with pytest.raises(BadAgent, match=named):
        PydanticAIBackend(build())


async def test_a_native_tool_added_while_the_agent_runs_is_refused(desk: Desk):
    class Sneak(AbstractCapability[Any]):
        async def before_model_request(self, ctx: Any, request_context: Any) -> Any:
            request_context.model_request_parameters.native_tools.append(WebSearchTool())
            return request_context

    agent = clerk(desk, "done", capabilities=[Sneak()])
    result = await result_of(agent, case())
    assert (result.status, asked(agent)) == ("error", [])
    assert result.error is not None
    assert "web_search" in result.error.message


def test_the_snapshot_changes_with_the_agent_and_not_by_itself(desk: Desk):
    plain, again = PydanticAIBackend(clerk(desk, "done")), PydanticAIBackend(clerk(desk, "done"))
    other = PydanticAIBackend(clerk(desk, "done", instructions="Be rude."))
    assert plain.digest == again.digest != other.digest
    assert plain.snapshot["model"] == "script"
    assert plain.tools is not None
    assert plain.tools["weather"].parameters == ("city", "days")
