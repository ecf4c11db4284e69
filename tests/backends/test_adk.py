"""What is google-adk's own in a rehearsal: the real framework, with a model written down beforehand.

What every backend owes is tested by `conformance/test_adk.py`, which also proves that the canaries
fire when the framework runs an agent by itself.
"""

from collections.abc import AsyncGenerator
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
from google.adk.code_executors import BuiltInCodeExecutor, UnsafeLocalCodeExecutor
from google.adk.events import Event
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.tools import (
    AgentTool,
    FunctionTool,
    ToolContext,
    exit_loop,
    url_context,
)
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.google_search_tool import GoogleSearchTool
from google.genai import types
from pydantic import BaseModel, Field

from backends.adk.versions import tells_of_unknown_tools
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
from greenroom.backends import Failed, Waiting
from greenroom.backends.adk import AdkBackend
from greenroom.cases import in_turn
from greenroom.errors import BadAgent
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
)
from greenroom.metrics import contains
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


async def test_a_denied_tool_does_not_run_and_its_model_is_told(desk: Desk):
    agent = clerk(desk, PAY, "done, not paid")
    one = case(mocks={"pay": {"paid": 5}}, user=UserAgents(tools={"pay": Lines(False)}))
    result = await result_of(agent, one)
    assert (result.status, desk.marks) == ("passed", []), result.error
    assert q.tool_calls(ledger_of(result)) == []
    assert "rejected" in last_heard(agent)


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


async def test_the_schema_of_an_agents_answers_is_worked_out_once():
    worked_out: list[str] = []

    class Total(BaseModel):
        total: int

        @classmethod
        def __get_pydantic_json_schema__(cls, core: Any, handler: Any) -> Any:
            worked_out.append(cls.__name__)
            return handler(core)

    agent = LlmAgent(name="till", model=Script(lines=['{"total": 3}']), output_schema=Total)
    backend = AdkBackend(agent)
    await simulate(Case("first", "How much?"), backend)
    before = len(worked_out)
    await simulate(Case("second", "How much?"), backend)
    assert len(worked_out) == before


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


async def test_a_declared_fault_is_told_to_the_model(desk: Desk):
    agent = clerk(desk, WEATHER, "done")
    result = await result_of(agent, case(mocks={"weather": fault("station is down")}))
    assert result.status == "passed"
    assert "station is down" in last_heard(agent)


@tells_of_unknown_tools
async def test_a_tool_the_model_made_up_is_written_down_as_refused(desk: Desk):
    result = await result_of(clerk(desk, ("fly", {"to": "Oslo"}), "done"), case())
    (made_up,) = q.tool_calls(ledger_of(result))
    assert (result.status, made_up.tool, made_up.source) == ("passed", "fly", "refused")


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
    assert (result.status, desk.marks) == ("passed", []), result.error
    assert [c.tool for c in q.tool_calls(ledger_of(result))] == ["helper", "weather"]
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
    assert paths == ["@1/looping", "@1/looping/clerk", "@1/looping/clerk#2"]


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


@pytest.mark.parametrize(
    "build,named",
    [
        (lambda: LlmAgent(name="a", tools=[GoogleSearchTool()]), "google_search"),
        (lambda: LlmAgent(name="a", tools=[url_context]), "url_context"),
        (lambda: LlmAgent(name="a", code_executor=BuiltInCodeExecutor()), "BuiltInCodeExecutor"),
        (
            lambda: LlmAgent(name="a", code_executor=UnsafeLocalCodeExecutor()),
            "UnsafeLocalCodeExecutor",
        ),
        (lambda: OwnAgent(name="a"), "OwnAgent"),
        (lambda: OwnFlow(name="a"), "OwnFlow"),
        (lambda: LlmAgent(name="a", sub_agents=[OwnAgent(name="b")]), "OwnAgent"),
        (lambda: LlmAgent(name="a", tools=[AgentTool(OwnAgent(name="b"))]), "OwnAgent"),
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
    assert plain.tools is not None
    assert set(plain.tools) == {"weather", "pay"}
    assert plain.tools["weather"].parameters == ("city", "days")


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


async def test_a_number_that_json_does_not_know_is_none_in_what_is_remembered():
    class Unsure(BaseLlm):
        async def generate_content_async(self, *_: Any, **__: Any) -> AsyncGenerator[LlmResponse]:
            said = types.Content(role="model", parts=[types.Part(text="done")])
            yield LlmResponse(content=said, avg_logprobs=float("nan"))

    ledger = await simulate(Case("one", says="hi"), LlmAgent(name="clerk", model=Unsure(model="x")))
    (memory,) = ledger.of(Remembered)
    assert memory.data["items"][-1].get("avgLogprobs") is None
    assert Ledger.loads(ledger.dumps()) == ledger
