"""pydantic-ai agents in a rehearsal: the real framework, with a model written down beforehand.

Every tool body here writes to a file. The first test proves that it does so when the framework runs
the agent by itself, so that a silent file means something in all the others.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest
from pydantic_ai import Agent, ModelRetry, RunContext, Tool
from pydantic_ai.capabilities import AbstractCapability, Capability, NativeTool, ProcessEventStream
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.native_tools import WebSearchTool
from pydantic_ai.output import TextOutput
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import (
    ExternalToolset,
    FunctionToolset,
    WrapperToolset,
)

from greenroom import Case, Ledger, Lines, Turn, UserAgents, evaluate, fault, simulate
from greenroom.backends import TurnOver
from greenroom.backends.pydantic_ai import PydanticAIBackend
from greenroom.cases import in_turn
from greenroom.errors import BadAgent, BadLedger, ToolRefused
from greenroom.ledger import questions as q
from greenroom.ledger.events import (
    Answered,
    ModelCalled,
    ModelReplied,
    Remembered,
    UserSaid,
    YieldOpened,
)
from greenroom.metrics import called, contains
from greenroom.models import ModelReply
from greenroom.results.result import CaseResult
from greenroom.world import LiveWorld


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
    return Agent(FunctionModel(Script(lines), model_name="script"), **options)


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


async def test_the_canary_fires_when_the_framework_runs_the_agent_itself(desk: Desk):
    await clerk(desk, [WEATHER, PAY], "done", tools=list(desk.tools().values())).run("hello")
    assert sorted(desk.marks) == ["pay 5", "weather Oslo"]


async def test_a_mocked_tool_answers_and_its_body_never_runs(desk: Desk):
    one = case(mocks={"weather": "3 degrees"}, metrics=[contains("done"), called("weather")])
    result = await result_of(clerk(desk, WEATHER, "done"), one)
    assert result.status == "passed"
    assert [(c.args, c.result) for c in q.tool_calls(ledger_of(result))] == [
        ({"city": "Oslo"}, "3 degrees")
    ]
    assert desk.marks == []


async def test_a_tool_without_a_mock_is_refused_and_ends_the_case(desk: Desk):
    result = await result_of(clerk(desk, WEATHER, "done"), case())
    assert result.status == "error"
    assert result.error is not None
    assert result.error.type == "ToolRefused"
    assert "'weather': ...,  # weather(city, days)" in result.error.message
    assert desk.marks == []


class Swallow(AbstractCapability[Any]):
    """A user's capability that makes the best of every failure."""

    async def on_tool_execute_error(self, ctx: Any, *, error: Exception, **_: Any) -> Any:
        return "all fine"


async def test_a_capability_that_swallows_the_refusal_changes_nothing(desk: Desk):
    agent = clerk(desk, WEATHER, "done", capabilities=[Swallow()])
    result = await result_of(agent, case())
    assert (result.status, desk.marks) == ("error", [])


async def test_the_backend_itself_raises_a_swallowed_refusal(desk: Desk):
    class Closed(LiveWorld):
        async def call_tool(self, request: Any, body: Any) -> Any:
            raise ToolRefused("closed")

    agent = clerk(desk, WEATHER, "done", capabilities=[Swallow()])
    world = Closed(Ledger())
    world.record(UserSaid(text="hello"))
    with pytest.raises(ToolRefused, match="closed"):
        await PydanticAIBackend(agent).advance(world.ledger, world)


async def test_the_tool_itself_as_its_own_mock_really_runs(desk: Desk):
    weather = desk.tools()["weather"]
    agent = clerk(desk, WEATHER, "done", tools=[weather])
    result = await result_of(agent, case(mocks={"weather": weather}))
    assert (result.status, desk.marks) == ("passed", ["weather Oslo"])
    assert q.tool_calls(ledger_of(result))[0].source == "live"


async def test_an_allowed_tools_retry_is_the_frameworks_to_judge(desk: Desk):
    def weather(city: str) -> str:
        raise ModelRetry("which Oslo?")

    agent = clerk(desk, WEATHER, "done", tools=[weather])
    result = await result_of(agent, case(allow_tools=["weather"]))
    assert result.status == "passed"
    assert "which Oslo?" in str(asked(agent)[-1][-1])


@pytest.mark.parametrize("answer", [True, "yes", {"confirmed": True}])
async def test_an_approved_tool_runs_its_mock(desk: Desk, answer: Any):
    one = case(
        mocks={"pay": {"paid": 5}},
        user=UserAgents(tools={"pay": Lines(answer)}, validate="coerce"),
        metrics=[contains("done"), called("pay")],
    )
    result = await result_of(clerk(desk, PAY, "done"), one)
    assert (result.status, result.turns, desk.marks) == ("passed", 2, [])
    opened = ledger_of(result).of(YieldOpened)[0]
    assert (opened.tool, opened.args) == ("pay", {"amount": 5})


async def test_a_denied_tool_does_not_run_and_its_model_is_told(desk: Desk):
    agent = clerk(desk, PAY, "done, not paid")
    one = case(mocks={"pay": {"paid": 5}}, user=UserAgents(tools={"pay": Lines(False)}))
    result = await result_of(agent, one)
    assert (result.status, desk.marks) == ("passed", [])
    assert q.tool_calls(ledger_of(result)) == []
    assert "denied" in str(asked(agent)[-1][-1])


async def test_approval_does_not_replace_a_mock(desk: Desk):
    result = await result_of(
        clerk(desk, PAY, "done"), case(user=UserAgents(tools={"pay": Lines(True)}))
    )
    assert (result.status, desk.marks) == ("error", [])


async def test_several_approvals_are_answered_at_once(desk: Desk):
    agent = clerk(desk, [("pay", {"amount": 1}), WEATHER, ("pay", {"amount": 2})], "done")
    mocks = {"pay": "ok", "weather": "fine"}
    one = case(mocks=mocks, user=UserAgents(tools={"pay": Lines(True, False)}))
    result = await result_of(agent, one)
    assert result.status == "passed"
    assert [(c.tool, c.args) for c in q.tool_calls(ledger_of(result))] == [
        ("weather", {"city": "Oslo"}),
        ("pay", {"amount": 1}),
    ]


async def test_a_paused_run_continues_from_its_saved_ledger(desk: Desk):
    one = case(mocks={"pay": {"paid": 5}}, user=UserAgents(tools={"pay": Lines(True)}))
    ledger = ledger_of(await result_of(clerk(desk, PAY, "done"), one))
    pause = next(event.seq for event in ledger.of(Answered))
    for cut in (pause, pause + 1):
        begun = Ledger.loads(Ledger(ledger[:cut]).dumps())
        resumed = await simulate(one, clerk(desk, PAY, "done"), ledger=begun)
        assert q.response(resumed) == "done"
        assert len(resumed.of(ModelReplied)) == 2


async def test_a_run_cut_after_its_answer_is_over_without_asking_again(desk: Desk):
    ledger = ledger_of(await result_of(clerk(desk, "done"), case()))
    memory = ledger.of(Remembered)[0].seq
    for cut in (memory + 1, memory + 2):
        resumed = await simulate(case(), clerk(desk, "never"), ledger=Ledger(ledger[:cut]))
        assert (q.responses(resumed), len(resumed.of(ModelReplied))) == (["done"], 1)


async def test_a_run_cut_while_the_framework_works_is_refused(desk: Desk):
    one = case(mocks={"weather": "3 degrees"})
    ledger = ledger_of(await result_of(clerk(desk, WEATHER, "done"), one))
    cut = Ledger(ledger[: ledger.of(ModelReplied)[0].seq + 1])
    resumed = await simulate(one, clerk(desk, WEATHER, "done"), ledger=cut)
    end = q.ended(resumed)
    assert end is not None
    assert (end.reason, end.error_type) == ("error", BadLedger.__name__)


async def test_sixteen_cases_share_one_agent_object(desk: Desk):
    agent = clerk(desk, [WEATHER, PAY], "done")
    cases = [
        case(
            f"case {n}",
            says=f"hello {n}",
            mocks={"weather": f"{n} degrees", "pay": n},
            user=UserAgents(tools={"pay": Lines(True)}),
        )
        for n in range(16)
    ]
    report = await evaluate(agent, cases, concurrency=16)
    assert [result.status for result in report] == ["passed"] * 16
    for n, result in enumerate(report):
        results = {c.tool: c.result for c in q.tool_calls(ledger_of(result))}
        assert results == {"weather": f"{n} degrees", "pay": n}
    assert desk.marks == []


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


async def test_a_wrapping_toolset_of_the_users_is_gated_as_a_whole(desk: Desk):
    class Helpful(WrapperToolset[Any]):
        async def call_tool(self, name: str, tool_args: Any, ctx: Any, tool: Any) -> Any:
            return desk.mark(f"helpful {name}")

    toolset = Helpful(FunctionToolset([desk.tools()["weather"]]))
    await clerk(desk, WEATHER, "done", tools=[], toolsets=[toolset]).run("hello")
    assert desk.marks == ["helpful weather"]
    agent = clerk(desk, WEATHER, "done", tools=[], toolsets=[toolset])
    refused = await result_of(agent, case("refused"))
    passed = await result_of(agent, case(mocks={"weather": "fine"}))
    assert (refused.status, passed.status, desk.marks) == ("error", "passed", ["helpful weather"])


async def test_the_tools_of_a_capability_are_gated(desk: Desk):
    tools = Capability(id="sky", tools=[desk.tools()["weather"]])
    agent = clerk(desk, WEATHER, "done", tools=[], capabilities=[tools])
    refused = await result_of(agent, case("refused"))
    passed = await result_of(agent, case(mocks={"weather": "fine"}))
    assert (refused.status, passed.status, desk.marks) == ("error", "passed", [])


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


async def test_a_function_of_the_text_output_is_gated_too(desk: Desk):
    def publish(text: str) -> str:
        return desk.mark(f"published {text}")

    await clerk(desk, "news", output_type=TextOutput(publish)).run("hello")
    assert desk.marks == ["published news"]
    agent = clerk(desk, "news", output_type=TextOutput(publish))
    refused = await result_of(agent, case("refused"))
    passed = await result_of(agent, case(mocks={"publish": "done"}))
    assert (refused.status, passed.status, desk.marks) == ("error", "passed", ["published news"])


async def test_an_external_tool_waits_for_the_users_answer(desk: Desk):
    toolset = ExternalToolset([ToolDefinition(name="ask_boss")])
    agent = clerk(desk, ("ask_boss", {"question": "may I?"}), "done", tools=[], toolsets=[toolset])
    one = case(user=UserAgents(tools={"ask_boss": Lines("you may")}), metrics=[called("ask_boss")])
    result = await result_of(agent, one)
    assert result.status == "passed"
    (boss,) = q.tool_calls(ledger_of(result))
    assert (boss.args, boss.result, boss.source) == ({"question": "may I?"}, "you may", "user")
    assert "you may" in str(asked(agent)[-1][-1])


async def test_arguments_that_do_not_fit_never_reach_the_mock(desk: Desk):
    reached: list[Any] = []
    agent = clerk(desk, ("weather", {"days": "many"}), "done")
    result = await result_of(agent, case(mocks={"weather": lambda **a: reached.append(a)}))
    assert (result.status, reached) == ("passed", [])


async def test_a_declared_fault_is_told_to_the_model(desk: Desk):
    agent = clerk(desk, WEATHER, "done")
    result = await result_of(agent, case(mocks={"weather": fault("station is down")}))
    assert result.status == "passed"
    assert "station is down" in str(asked(agent)[-1][-1])


async def test_a_structured_output_is_the_turns_output(desk: Desk):
    @dataclass
    class Verdict:
        ok: bool

    agent = clerk(desk, ("final_result", {"ok": True}), output_type=Verdict)
    result = await result_of(agent, case(metrics=[contains("true")]))
    assert (result.status, q.response(ledger_of(result))) == ("passed", '{"ok": true}')


async def test_a_model_that_breaks_is_the_agents_error(desk: Desk):
    result = await result_of(clerk(desk, RuntimeError("no tokens left")), case())
    assert result.error is not None
    assert (result.status, result.error.phase) == ("error", "agent")
    assert "no tokens left" in result.error.message


async def test_an_agent_may_speak_first(desk: Desk):
    result = await result_of(clerk(desk, "done"), case(says=""))
    assert (result.status, q.response(ledger_of(result))) == ("passed", "done")


async def test_a_listener_to_the_stream_still_hears_it(desk: Desk):
    heard: list[str] = []

    async def listen(ctx: Any, events: Any) -> None:
        async for event in events:
            heard.append(type(event).__name__)

    agent = clerk(desk, WEATHER, "done", capabilities=[ProcessEventStream(listen)])
    result = await result_of(agent, case(mocks={"weather": "fine"}))
    assert (result.status, desk.marks) == ("passed", [])
    assert {"PartStartEvent", "FunctionToolResultEvent"} <= set(heard)


async def test_a_world_that_answers_by_itself_never_asks_the_model(desk: Desk):
    class Replayed(LiveWorld):
        async def call_model(self, request: Any, body: Any, on_delta: Any = None) -> ModelReply:
            return ModelReply("from the recording", model="recorded")

    agent = clerk(desk, "never")
    world = Replayed(Ledger())
    world.record(UserSaid(text="hello"))
    outcome = await PydanticAIBackend(agent).advance(world.ledger, world)
    assert (outcome, asked(agent)) == (TurnOver("from the recording"), [])


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
