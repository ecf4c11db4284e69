"""google-adk agents in a rehearsal: the real framework, with a model written down beforehand.

Every tool body here writes to a file. The first test proves that it does so when the framework runs
the agent by itself, so that a silent file means something in all the others.
"""

from pathlib import Path
from typing import Any, cast

import pytest
from google.adk.agents import (
    BaseAgent,
    LlmAgent,
    LoopAgent,  # pyright: ignore[reportDeprecated]
    SequentialAgent,  # pyright: ignore[reportDeprecated]
)
from google.adk.apps import App
from google.adk.code_executors import UnsafeLocalCodeExecutor
from google.adk.events import Event
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins import BasePlugin
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.tools import (
    AgentTool,
    FunctionTool,
    LongRunningFunctionTool,
    ToolContext,
    exit_loop,
)
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.base_toolset import BaseToolset
from google.adk.tools.google_search_tool import GoogleSearchTool
from google.adk.workflow import Workflow
from google.genai import types
from pydantic import Field

from greenroom import (
    Case,
    Ledger,
    Lines,
    Turn,
    UserAgents,
    evaluate,
    fault,
    simulate,
    with_state_change,
)
from greenroom.backends import Failed, TurnOver, Waiting
from greenroom.backends.adk import AdkBackend
from greenroom.cases import in_turn
from greenroom.errors import BadAgent, BadLedger, ToolRefused
from greenroom.ledger import questions as q
from greenroom.ledger.events import (
    Answer,
    Answered,
    ModelCalled,
    ModelReplied,
    NodeEnded,
    NodeStarted,
    Remembered,
    UserSaid,
    YieldOpened,
)
from greenroom.metrics import called, contains
from greenroom.models import ModelReply
from greenroom.results.result import CaseResult
from greenroom.world import LiveWorld

Line = str | tuple[str, dict[str, Any]] | list[tuple[str, dict[str, Any]]]


class Script(BaseLlm):
    """Answers by how many replies the request already holds, so it serves many runs at once."""

    model: str = "script"
    lines: list[Any]
    asked: list[LlmRequest] = Field(default_factory=list[LlmRequest])

    async def generate_content_async(self, llm_request: LlmRequest, stream: bool = False):
        self.asked.append(llm_request)
        said = sum(content.role == "model" for content in llm_request.contents)
        line: Line | Exception = self.lines[said]
        if isinstance(line, Exception):
            raise line
        yield LlmResponse(content=types.Content(role="model", parts=_parts(line)))


def _parts(line: Line) -> list[types.Part]:
    if isinstance(line, str):
        return [types.Part(text=line)]
    calls = line if isinstance(line, list) else [line]
    return [types.Part(function_call=types.FunctionCall(name=n, args=dict(a))) for n, a in calls]


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

        def pay(amount: int, tool_context: ToolContext) -> dict[str, str]:
            """Pay."""
            tool_context.state["user:paid"] = amount
            return {"paid": self.mark(f"pay {amount}")}

        return {"weather": weather, "pay": pay}


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def clerk(desk: Desk, *lines: Any, **options: Any) -> LlmAgent:
    tools = desk.tools()
    given = [tools["weather"], FunctionTool(tools["pay"], require_confirmation=True)]
    options = {"name": "clerk", "tools": given, "instruction": "Be kind.", **options}
    return LlmAgent(model=Script(lines=list(lines)), **options)


def asked(agent: LlmAgent) -> list[LlmRequest]:
    return cast(Script, agent.model).asked


def last_heard(agent: LlmAgent) -> str:
    """The last thing the model was told."""
    return str(asked(agent)[-1].contents[-1])


def case(id: str = "one", **options: Any) -> Case:
    given: dict[str, Any] = {"says": "hello", "metrics": [contains("done")], **options}
    return Case(id, **given)


async def result_of(agent: Any, one: Case) -> CaseResult:
    return (await evaluate(agent, one)).results[0]


def ledger_of(result: CaseResult) -> Ledger:
    assert result.ledger is not None
    return result.ledger


async def run_by_the_framework(agent: LlmAgent) -> None:
    service = InMemorySessionService()
    await service.create_session(app_name="bare", user_id="u", session_id="s")
    runner = Runner(app=App(name="bare", root_agent=agent), session_service=service)
    async for _ in runner.run_async(
        user_id="u", session_id="s", new_message=types.Content(parts=[types.Part(text="hello")])
    ):
        pass


WEATHER = ("weather", {"city": "Oslo"})
PAY = ("pay", {"amount": 5})


async def test_the_canary_fires_when_the_framework_runs_the_agent_itself(desk: Desk):
    await run_by_the_framework(clerk(desk, WEATHER, "done"))
    await run_by_the_framework(clerk(desk, PAY, "done", tools=[desk.tools()["pay"]]))
    assert desk.marks == ["weather Oslo", "pay 5"]


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


async def test_a_callback_that_swallows_the_refusal_changes_nothing(desk: Desk):
    swallowed: list[str] = []

    def swallow(tool: Any, args: Any, tool_context: Any, error: Exception) -> dict[str, str]:
        swallowed.append(type(error).__name__)
        return {"result": "all fine"}

    agent = clerk(desk, WEATHER, "done", on_tool_error_callback=swallow)
    result = await result_of(agent, case())
    assert (result.status, swallowed, desk.marks) == ("error", ["ToolRefused"], [])


async def test_a_plugin_that_swallows_the_refusal_changes_nothing(desk: Desk):
    class Swallow(BasePlugin):
        async def on_tool_error_callback(self, **_: Any) -> dict[str, str]:
            return {"result": "all fine"}

    app = App(name="shop", root_agent=clerk(desk, WEATHER, "done"), plugins=[Swallow("swallow")])
    result = await result_of(app, case())
    assert (result.status, desk.marks) == ("error", [])


async def test_the_backend_itself_raises_a_swallowed_refusal(desk: Desk):
    class Closed(LiveWorld):
        async def call_tool(self, request: Any, body: Any) -> Any:
            raise ToolRefused("closed")

    agent = clerk(desk, WEATHER, "done", on_tool_error_callback=lambda **_: {"result": "fine"})
    world = Closed(Ledger())
    world.record(UserSaid(text="hello"))
    with pytest.raises(ToolRefused, match="closed"):
        await AdkBackend(agent).advance(world.ledger, world)


async def test_the_tool_itself_as_its_own_mock_really_runs(desk: Desk):
    weather = desk.tools()["weather"]
    agent = clerk(desk, WEATHER, "done", tools=[weather])
    result = await result_of(agent, case(mocks={"weather": weather}))
    assert (result.status, desk.marks) == ("passed", ["weather Oslo"])
    assert q.tool_calls(ledger_of(result))[0].source == "live"


async def test_the_function_inside_a_function_tool_is_known_as_the_tool_itself(desk: Desk):
    pay = desk.tools()["pay"]
    agent = clerk(desk, PAY, "done", tools=[FunctionTool(pay)])
    result = await result_of(agent, case(mocks={"pay": pay}))
    assert (result.status, desk.marks) == ("passed", ["pay 5"])
    assert q.tool_calls(ledger_of(result))[0].source == "live"


async def test_an_allowed_tools_own_exception_is_the_frameworks_to_judge(desk: Desk):
    def weather(city: str) -> str:
        raise ValueError("no signal")

    seen: list[Exception] = []

    def note(tool: Any, args: Any, tool_context: Any, error: Exception) -> dict[str, str]:
        seen.append(error)
        return {"result": "unknown"}

    agent = clerk(desk, WEATHER, "done", tools=[weather], on_tool_error_callback=note)
    result = await result_of(agent, case(allow_tools=["weather"]))
    assert (result.status, [str(e) for e in seen]) == ("passed", ["no signal"])


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
    assert "rejected" in last_heard(agent)


async def test_approval_does_not_replace_a_mock(desk: Desk):
    result = await result_of(
        clerk(desk, PAY, "done"), case(user=UserAgents(tools={"pay": Lines(True)}))
    )
    assert (result.status, desk.marks) == ("error", [])


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
    agent = clerk(desk, WEATHER, "cold", WEATHER, "done")
    result = await result_of(agent, one)
    assert result.status == "passed"
    assert q.responses(ledger_of(result)) == ["cold", "done"]
    assert [event.messages for event in ledger_of(result).of(ModelCalled)] == [1, 3, 5, 7]
    assert [c.result for c in q.tool_calls(ledger_of(result))] == [1, 2]


async def test_state_goes_in_and_comes_out_by_scope(desk: Desk):
    def remember(callback_context: Any) -> None:
        state = callback_context.state
        state["app:seen"] = [state["user:name"], state["order"], state["temp:hint"]]

    agent = clerk(
        desk,
        ("weather", {"city": "Oslo"}),
        PAY,
        "done",
        instruction="Serve {user:name}.",
        output_key="last",
        tools=list(desk.tools().values()),
        before_agent_callback=remember,
    )

    def mocked_weather(city: str, ctx: Any) -> str:
        ctx.state["session"]["weather"] = city
        return "fine"

    one = case(
        state={"user": {"name": "Ada"}, "session": {"order": 7}, "temp": {"hint": "x"}},
        mocks={"weather": mocked_weather},
        allow_tools=["pay"],
    )
    result = await result_of(agent, one)
    assert result.status == "passed", result.error
    assert "Serve Ada." in str(asked(agent)[0].config.system_instruction)
    state = q.state(ledger_of(result))
    assert state["app"] == {"seen": ["Ada", 7, "x"]}
    assert state["user"] == {"name": "Ada", "paid": 5}
    assert state["session"] == {"order": 7, "weather": "Oslo", "last": "done"}


async def test_a_mocks_change_of_state_reaches_the_framework(desk: Desk):
    seen: list[Any] = []

    def look(callback_context: Any, llm_request: Any) -> None:
        seen.append(callback_context.state.get("weather"))

    def mocked_weather(city: str, ctx: Any) -> str:
        ctx.state["session"]["weather"] = city
        return "fine"

    agent = clerk(desk, WEATHER, "done", before_model_callback=look)
    await result_of(agent, case(mocks={"weather": mocked_weather}))
    assert seen == [None, "Oslo"]


async def test_what_an_answer_changes_is_in_the_frameworks_state_when_it_goes_on(desk: Desk):
    seen: list[Any] = []

    def look(callback_context: Any, llm_request: Any) -> None:
        seen.append(callback_context.state.get("user:trusted"))

    def approve() -> Any:
        return with_state_change(True, {"user": {"trusted": True}})

    agent = clerk(desk, PAY, "done", before_model_callback=look)
    one = case(mocks={"pay": "ok"}, user=UserAgents(tools={"pay": approve}))
    result = await result_of(agent, one)
    assert (result.status, seen) == ("passed", [None, True]), result.error


async def test_the_users_agent_is_untouched(desk: Desk):
    helper = clerk(desk, "done", name="helper", tools=[])
    agent = clerk(desk, WEATHER, "done", sub_agents=[helper])
    tools, model, before = list(agent.tools), agent.model, dict(vars(agent.tools[1]))
    await result_of(agent, case(mocks={"weather": "fine"}))
    assert all(now is then for now, then in zip(agent.tools, tools, strict=True))
    assert agent.model is model
    assert "generate_content_async" not in vars(model)
    assert dict(vars(agent.tools[1])) == before
    assert agent.sub_agents[0] is helper
    assert helper.parent_agent is agent


async def test_the_users_callbacks_run_above_the_gate(desk: Desk):
    order: list[str] = []

    def before(tool: Any, args: Any, tool_context: Any) -> None:
        order.append(f"before {tool.name} {isinstance(tool, FunctionTool)}")
        args["city"] = "Rome"

    def after(tool: Any, args: Any, tool_context: Any, tool_response: Any) -> Any:
        order.append(f"after {tool_response}")
        return {"result": "polished"}

    agent = clerk(desk, WEATHER, "done", before_tool_callback=before, after_tool_callback=after)
    result = await result_of(agent, case(mocks={"weather": "fine"}))
    assert order == ["before weather True", "after fine"]
    assert q.tool_calls(ledger_of(result))[0].args == {"city": "Rome"}
    assert "polished" in last_heard(agent)


async def test_arguments_that_do_not_fit_never_reach_the_mock(desk: Desk):
    reached: list[Any] = []
    agent = clerk(desk, ("weather", {"days": 2}), "done")
    result = await result_of(agent, case(mocks={"weather": lambda **a: reached.append(a)}))
    assert (result.status, reached) == ("passed", [])
    assert "mandatory" in last_heard(agent)


async def test_a_declared_fault_is_told_to_the_model(desk: Desk):
    agent = clerk(desk, WEATHER, "done")
    result = await result_of(agent, case(mocks={"weather": fault("station is down")}))
    assert result.status == "passed"
    assert "station is down" in last_heard(agent)


async def test_a_tool_the_model_made_up_is_written_down_as_refused(desk: Desk):
    result = await result_of(clerk(desk, ("fly", {"to": "Oslo"}), "done"), case())
    (made_up,) = q.tool_calls(ledger_of(result))
    assert (result.status, made_up.tool, made_up.source) == ("passed", "fly", "refused")


async def test_a_long_running_tool_waits_for_the_users_answer(desk: Desk):
    def ask_boss(question: str) -> None:
        """Ask the boss."""
        desk.mark("asked the boss")

    agent = clerk(
        desk,
        ("ask_boss", {"question": "may I?"}),
        "done",
        tools=[LongRunningFunctionTool(ask_boss)],
    )
    one = case(user=UserAgents(tools={"ask_boss": Lines("you may")}), metrics=[called("ask_boss")])
    result = await result_of(agent, one)
    assert (result.status, desk.marks) == ("passed", [])
    (boss,) = q.tool_calls(ledger_of(result))
    assert (boss.result, boss.source) == ("you may", "user")
    assert "you may" in last_heard(agent)


async def test_several_approvals_are_answered_at_once(desk: Desk):
    agent = clerk(desk, [("pay", {"amount": 1}), ("pay", {"amount": 2})], "done")
    one = case(mocks={"pay": "ok"}, user=UserAgents(tools={"pay": Lines(True, False)}))
    result = await result_of(agent, one)
    assert result.status == "passed"
    assert [c.args for c in q.tool_calls(ledger_of(result))] == [{"amount": 1}]


async def test_a_model_that_breaks_is_the_agents_error(desk: Desk):
    result = await result_of(clerk(desk, RuntimeError("no tokens left")), case())
    assert result.error is not None
    assert (result.status, result.error.phase) == ("error", "agent")
    assert "no tokens left" in result.error.message


async def test_an_agent_may_speak_first(desk: Desk):
    result = await result_of(clerk(desk, "done"), case(says=""))
    assert (result.status, q.response(ledger_of(result))) == ("passed", "done")


async def test_a_sub_agents_tool_is_gated_too(desk: Desk):
    lines = [WEATHER, "done"]
    helper = clerk(desk, *lines, name="helper", description="knows the weather")
    agent = clerk(
        desk, ("transfer_to_agent", {"agent_name": "helper"}), tools=[], sub_agents=[helper]
    )
    refused = await result_of(agent, case("refused"))
    assert (refused.status, desk.marks) == ("error", [])
    result = await result_of(agent, case(mocks={"weather": "fine"}))
    assert result.status == "passed", result.error
    assert [e.node for e in ledger_of(result).of(NodeStarted)] == ["clerk", "helper"]
    assert {e.node for e in ledger_of(result).of(NodeEnded)} == {"clerk", "helper"}
    assert [e.agent for e in ledger_of(result).of(ModelReplied)] == ["clerk", "helper", "helper"]


@pytest.mark.filterwarnings("ignore:The `plugins` argument is deprecated:DeprecationWarning")
@pytest.mark.parametrize("include_plugins", [True, False])
async def test_the_tools_of_an_agent_used_as_a_tool_are_gated_too(
    desk: Desk, include_plugins: bool
):
    helper = clerk(desk, WEATHER, "fine", name="helper")
    delegate = AgentTool(helper, include_plugins=include_plugins)
    agent = clerk(desk, ("helper", {"request": "weather?"}), "done", tools=[delegate])
    refused = await result_of(agent, case("refused"))
    assert (refused.status, desk.marks) == ("error", [])
    result = await result_of(agent, case(mocks={"weather": "fine"}))
    assert (result.status, desk.marks) == ("passed", [])
    assert [c.tool for c in q.tool_calls(ledger_of(result))] == ["weather"]
    assert delegate.agent is helper


@pytest.mark.filterwarnings("ignore:SequentialAgent is deprecated:DeprecationWarning")
async def test_a_sequence_is_played_agent_by_agent(desk: Desk):
    parts: list[BaseAgent] = [
        clerk(desk, WEATHER, "one", name="one"),
        clerk(desk, "done", name="two"),
    ]
    both = SequentialAgent(name="both", sub_agents=parts)  # pyright: ignore[reportDeprecated]
    result = await result_of(both, case(mocks={"weather": "fine"}))
    assert (result.status, desk.marks) == ("passed", []), result.error
    assert [e.node for e in ledger_of(result).of(NodeStarted)] == ["both", "one", "two"]


@pytest.mark.filterwarnings("ignore:LoopAgent is deprecated:DeprecationWarning")
async def test_a_loop_ends_by_the_frameworks_own_tool_and_each_round_has_its_path(desk: Desk):
    worker = clerk(desk, "working", ("exit_loop", {}), tools=[exit_loop])
    looping = LoopAgent(name="looping", sub_agents=[worker])  # pyright: ignore[reportDeprecated]
    result = await result_of(looping, case(metrics=[contains("working")]))
    assert result.status == "passed", result.error
    paths = [event.path for event in ledger_of(result).of(NodeStarted)]
    assert paths == ["@1/looping", "@1/clerk", "@1/clerk#2"]


async def test_a_single_turn_sub_agents_tool_is_gated_too(desk: Desk):
    helper = clerk(desk, WEATHER, "fine", name="helper", mode="single_turn")
    agent = clerk(desk, ("helper", {"request": "weather?"}), "done", tools=[], sub_agents=[helper])
    refused = await result_of(agent, case("refused"))
    passed = await result_of(agent, case(mocks={"weather": "fine"}))
    assert (refused.status, passed.status, desk.marks) == ("error", "passed", [])


async def test_a_tool_with_a_body_of_its_own_kind_is_gated(desk: Desk):
    class Thermometer(BaseTool):
        def _get_declaration(self) -> types.FunctionDeclaration:
            return types.FunctionDeclaration(name=self.name)

        async def run_async(self, *, args: Any, tool_context: Any) -> Any:
            return desk.mark("thermometer")

    tool = Thermometer(name="weather", description="The weather.")
    await run_by_the_framework(clerk(desk, WEATHER, "done", tools=[tool]))
    assert desk.marks == ["thermometer"]
    agent = clerk(desk, WEATHER, "done", tools=[tool])
    refused = await result_of(agent, case("refused"))
    passed = await result_of(agent, case(mocks={"weather": "fine"}))
    assert (refused.status, passed.status, desk.marks) == ("error", "passed", ["thermometer"])
    named = await result_of(agent, case(allow_tools=["weather"]))
    assert (named.status, len(desk.marks)) == ("passed", 2)


async def test_a_tool_smuggled_in_while_the_agent_runs_trips_the_wire(desk: Desk):
    def smuggle(callback_context: Any, llm_request: LlmRequest) -> None:
        llm_request.append_tools([FunctionTool(desk.tools()["weather"])])

    agent = clerk(desk, WEATHER, "done", tools=[], before_model_callback=smuggle)
    await run_by_the_framework(
        clerk(desk, WEATHER, "done", tools=[], before_model_callback=smuggle)
    )
    assert desk.marks == ["weather Oslo"]
    result = await result_of(agent, case())
    assert (result.status, desk.marks) == ("error", ["weather Oslo"])
    assert result.error is not None
    assert "'weather'" in result.error.message


async def test_a_provider_side_tool_smuggled_into_the_request_is_refused(desk: Desk):
    def smuggle(callback_context: Any, llm_request: LlmRequest) -> None:
        llm_request.config.tools = [types.Tool(google_search=types.GoogleSearch())]

    agent = clerk(desk, "done", tools=[], before_model_callback=smuggle)
    result = await result_of(agent, case())
    assert (result.status, asked(agent)) == ("error", [])


class OwnAgent(BaseAgent):
    """Does its work in its own code."""


class OwnFlow(LlmAgent):
    """Brings its own way to run."""

    async def _run_async_impl(self, ctx: Any):
        yield Event(author=self.name)


class SomeToolset(BaseToolset):
    async def get_tools(self, readonly_context: Any = None) -> list[Any]:
        return []


def _node() -> str:
    return "done"


@pytest.mark.parametrize(
    "build,named",
    [
        (lambda: LlmAgent(name="a", tools=[GoogleSearchTool()]), "google_search"),
        (lambda: LlmAgent(name="a", tools=[SomeToolset()]), "SomeToolset"),
        (
            lambda: LlmAgent(name="a", code_executor=UnsafeLocalCodeExecutor()),
            "UnsafeLocalCodeExecutor",
        ),
        (lambda: OwnAgent(name="a"), "OwnAgent"),
        (lambda: OwnFlow(name="a"), "OwnFlow"),
        (lambda: LlmAgent(name="a", sub_agents=[OwnAgent(name="b")]), "OwnAgent"),
        (lambda: LlmAgent(name="a", tools=[AgentTool(OwnAgent(name="b"))]), "OwnAgent"),
        (lambda: Workflow(name="flow", edges=[("START", _node)]), "Workflow"),
    ],
)
def test_what_cannot_be_led_through_the_gate_is_refused_before_the_run(build: Any, named: str):
    with pytest.raises(BadAgent, match=named):
        AdkBackend(build())


def test_the_snapshot_changes_with_the_agent_and_not_by_itself(desk: Desk):
    plain, again = AdkBackend(clerk(desk, "done")), AdkBackend(clerk(desk, "done"))
    other = AdkBackend(clerk(desk, "done", instruction="Be rude."))
    assert plain.digest == again.digest != other.digest
    assert plain.snapshot["model"] == "script"
    assert set(plain.tools) == {"weather", "pay"}
    assert plain.tools["weather"].parameters == ("city", "days")


async def test_a_world_that_answers_by_itself_never_asks_the_model(desk: Desk):
    class Replayed(LiveWorld):
        async def call_model(self, request: Any, body: Any, on_delta: Any = None) -> ModelReply:
            return ModelReply("from the recording", model="recorded")

    agent = clerk(desk, "never")
    world = Replayed(Ledger())
    world.record(UserSaid(text="hello"))
    assert await AdkBackend(agent).advance(world.ledger, world) == TurnOver("from the recording")
    assert asked(agent) == []


async def test_nonsense_instead_of_an_approval_fails_the_run(desk: Desk):
    backend, world = AdkBackend(clerk(desk, PAY, "done")), LiveWorld(Ledger())
    world.record(UserSaid(text="hello"))
    paused = await backend.advance(world.ledger, world)
    assert isinstance(paused, Waiting)
    answer = Answer(yield_id=paused.yields[0].id, value="perhaps", tool="pay")
    world.record(Answered(answers=(answer,)))
    outcome = await backend.advance(world.ledger, world)
    assert isinstance(outcome, Failed)
    assert "neither approves nor denies" in str(outcome.error)
    assert desk.marks == []


async def test_the_frameworks_history_is_kept_once(desk: Desk):
    one = case(says="", turns=[Turn("a"), Turn("b"), Turn("c")], mocks={"weather": "fine"})
    result = await result_of(clerk(desk, "one", "two", "done"), one)
    kept = [note.data for note in ledger_of(result).of(Remembered)]
    assert [(note["keep"], len(note["items"])) for note in kept] == [(0, 2), (2, 2), (4, 2)]
