"""OpenAI Agents in a rehearsal: the real framework, with a model written down beforehand.

What every backend owes is in the conformance suite; here is what only this framework has.
"""

import gc
import json
import sys
import weakref
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import pytest
from agents.tracing import TracingProcessor, add_trace_processor, set_trace_processors
from agents.tracing.provider import DefaultTraceProvider

import agents
from agents import (
    Agent,
    AgentHooks,
    CodeInterpreterTool,
    FileSearchTool,
    GuardrailFunctionOutput,
    HostedMCPTool,
    ImageGenerationTool,
    InputGuardrail,
    LocalShellTool,
    ModelSettings,
    RunConfig,
    RunContextWrapper,
    Runner,
    ShellTool,
    WebSearchTool,
    function_tool,
)
from backends.openai_agents.bypasses import Server, clerk
from backends.openai_agents.scripts import Script, swallow
from greenroom import Case, Ledger, Lines, Turn, UserAgents, evaluate, simulate
from greenroom.backends import TurnOver, backend_for
from greenroom.backends.openai_agents import OpenAIAgentsBackend
from greenroom.backends.seams import is_seam
from greenroom.errors import BadAgent, NotFound
from greenroom.ledger import questions as q
from greenroom.ledger.events import (
    Answered,
    ModelCalled,
    ModelReplied,
    NodeEnded,
    NodeStarted,
    Remembered,
    UserSaid,
)
from greenroom.ledger.messages import ToolCall
from greenroom.metrics import contains, state_is
from greenroom.models import ModelReply
from greenroom.results.result import CaseResult
from greenroom.testing import Desk, HandOver
from greenroom.world import LiveWorld

WEATHER = ToolCall("weather", {"city": "Oslo"}, "call-weather")
PAY = ToolCall("pay", {"amount": 5}, "call-pay")
ASK = ToolCall("ask_helper", {"input": "?"}, "call-ask")


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def case(id: str = "one", **options: Any) -> Case:
    given: dict[str, Any] = {"says": "hello", "metrics": [contains("done")], **options}
    return Case(id, **given)


async def result_of(agent: Any, one: Case) -> CaseResult:
    return (await evaluate(agent, one)).results[0]


def ledger_of(result: CaseResult) -> Ledger:
    assert result.ledger is not None
    return result.ledger


def why(result: CaseResult) -> str:
    return result.error.message if result.error else result.status


HOSTED = [
    WebSearchTool(),
    FileSearchTool(vector_store_ids=["v"]),
    CodeInterpreterTool({"type": "code_interpreter", "container": {"type": "auto"}}),
    ImageGenerationTool({"type": "image_generation"}),
    HostedMCPTool({"type": "mcp", "server_label": "s", "server_url": "http://localhost"}),
    LocalShellTool(executor=lambda _: "ran"),
    ShellTool(executor=lambda _: "ran"),
]


@pytest.mark.parametrize("tool", HOSTED, ids=lambda tool: type(tool).__name__)
async def test_a_tool_that_no_gate_can_hold_is_refused_before_the_run(tool: Any):
    with pytest.raises(BadAgent, match=type(tool).__name__):
        OpenAIAgentsBackend(clerk("done", tools=[tool]))


@pytest.mark.parametrize("tool", HOSTED, ids=lambda tool: type(tool).__name__)
async def test_one_added_while_the_agent_runs_is_refused_before_its_model_is_asked(tool: Any):
    class Add(AgentHooks[Any]):
        async def on_start(self, context: Any, agent: Any) -> None:
            agent.tools.append(tool)

    agent = clerk("done", hooks=Add())
    result = await result_of(agent, case())
    assert (result.status, agent.model.asked) == ("error", [])  # pyright: ignore[reportAttributeAccessIssue, reportOptionalMemberAccess]
    assert type(tool).__name__ in why(result)


def switched_off(agent: Any, pay: Any) -> None:
    pay.is_enabled = False


def decided_anew(agent: Any, pay: Any) -> None:
    pay.is_enabled = lambda context, agent: False


def taken_away(agent: Any, pay: Any) -> None:
    agent.tools.remove(pay)


def given_others(agent: Any, pay: Any) -> None:
    agent.tools = [tool for tool in agent.tools if tool is not pay]


@pytest.mark.parametrize("change", [switched_off, decided_anew, taken_away, given_others])
async def test_a_tool_that_is_gone_in_the_next_turn_is_not_offered_there(change: Any, desk: Desk):
    weather, pay = function_tool(desk.weather), function_tool(desk.pay)

    class Change(AgentHooks[Any]):
        async def on_tool_end(self, context: Any, agent: Any, tool: Any, result: Any) -> None:
            change(agent, pay)

    agent = clerk(WEATHER, "done", tools=[weather, pay], hooks=Change())
    backend = OpenAIAgentsBackend(agent)
    for _ in range(2):
        pay.is_enabled, agent.tools = True, [weather, pay]
        ledger = await simulate(case(mocks={"weather": "fine"}), backend)
        assert [event.tools for event in ledger.of(ModelCalled)] == [
            ("weather", "pay"),
            ("weather",),
        ]


async def test_a_tool_that_is_switched_on_after_a_run_is_offered_in_the_next(desk: Desk):
    pay = function_tool(desk.pay, is_enabled=False)
    backend = OpenAIAgentsBackend(clerk("done", tools=[pay]))
    offered: list[Any] = []
    for pay.is_enabled in (False, True, False):
        ledger = await simulate(case(), backend)
        offered += [event.tools for event in ledger.of(ModelCalled)]
    assert offered == [(), ("pay",), ()]


@pytest.mark.parametrize("name", ["extra_body", "extra_args"])
async def test_tools_hidden_in_the_settings_are_refused(name: str):
    given: Any = {name: {"tools": [{"type": "web_search"}]}}
    settings = ModelSettings(**given)
    result = await result_of(clerk("done", model_settings=settings), case())
    assert result.error is not None
    assert (result.error.type, name in result.error.message) == ("ToolRefused", True)


async def test_an_agent_used_as_a_tool_is_entered_and_left_inside_the_other(desk: Desk):
    helper = Agent("helper", model=Script(WEATHER, "told"), tools=[function_tool(desk.weather)])
    agent = clerk(ASK, "done", tools=[helper.as_tool("ask_helper", "Ask.")])
    result = await result_of(agent, case(mocks={"weather": "fine"}))
    assert (result.status, desk.marks) == ("passed", []), why(result)
    ledger = ledger_of(result)
    paths = ["@1/clerk", "@1/clerk/helper"]
    assert [event.path for event in ledger.of(NodeStarted)] == paths
    assert [event.path for event in ledger.of(NodeEnded)] == paths[::-1]
    assert [event.agent for event in ledger.of(ModelReplied)] == [
        "clerk",
        "helper",
        "helper",
        "clerk",
    ]
    assert set(OpenAIAgentsBackend(agent).tools or ()) == {"weather"}


async def test_an_approval_deep_inside_pauses_the_whole_run_and_resumes(desk: Desk):
    def built() -> Agent[Any]:
        pay = function_tool(desk.pay, needs_approval=True)
        helper = Agent("helper", model=Script(PAY, "told"), tools=[pay])
        return clerk(ASK, "done", tools=[helper.as_tool("ask_helper", "Ask.")])

    one = case(mocks={"pay": "ok"}, user=UserAgents(tools={"pay": Lines(True)}))
    result = await result_of(built(), one)
    assert (result.status, desk.marks) == ("passed", []), why(result)
    ledger = ledger_of(result)
    assert [event.path for event in ledger.of(NodeStarted)] == ["@1/clerk", "@1/clerk/helper"]
    cut = Ledger.loads(Ledger(ledger[: ledger.of(Answered)[0].seq]).dumps())
    resumed = await simulate(one, built(), ledger=cut)
    assert q.response(resumed) == "done"
    assert [(c.tool, c.result) for c in q.tool_calls(resumed)] == [
        ("ask_helper", "told"),
        ("pay", "ok"),
    ]


async def test_a_policy_decides_which_calls_need_approval(desk: Desk):
    async def is_large(_: Any, args: dict[str, Any], __: str) -> bool:
        return args["amount"] > 3

    pay = function_tool(desk.pay, needs_approval=is_large)
    for amount, turns in ((5, 2), (1, 1)):
        call = ToolCall("pay", {"amount": amount}, "call-pay")
        one = case(mocks={"pay": "ok"}, user=UserAgents(tools={"pay": True}))
        result = await result_of(clerk(call, "done", tools=[pay]), one)
        assert (result.status, result.turns) == ("passed", turns), why(result)


async def test_the_model_is_told_why_a_call_was_rejected(desk: Desk):
    agent = clerk(PAY, "done", tools=[function_tool(desk.pay, needs_approval=True)])
    answer = {"confirmed": False, "message": "too much"}
    result = await result_of(agent, case(user=UserAgents(tools={"pay": answer}), mocks={"pay": 1}))
    assert result.status == "passed", why(result)
    assert "too much" in json.dumps(agent.model.asked[-1])  # pyright: ignore[reportAttributeAccessIssue, reportOptionalMemberAccess]


async def test_guardrails_run_and_a_tripped_one_is_the_agents_error():
    seen: list[Any] = []

    async def check(_: Any, __: Any, items: Any) -> GuardrailFunctionOutput:
        seen.append(items)
        return GuardrailFunctionOutput(None, tripwire_triggered="bad" in str(items))

    agent = clerk("done", input_guardrails=[InputGuardrail(check)])
    good, bad = await result_of(agent, case()), await result_of(agent, case(says="bad"))
    assert (good.status, bad.status, len(seen)) == ("passed", "error", 2)
    assert bad.error is not None
    assert (bad.error.phase, "the guardrail 'check'" in bad.error.message) == ("agent", True)


async def test_the_users_hooks_still_hear_everything(desk: Desk):
    heard: list[str] = []

    class Watch(AgentHooks[Any]):
        async def on_llm_end(self, context: Any, agent: Any, response: Any) -> None:
            heard.append("model")

        async def on_tool_end(self, context: Any, agent: Any, tool: Any, result: Any) -> None:
            heard.append(f"tool {result}")

    agent = clerk(WEATHER, "done", tools=[function_tool(desk.weather)], hooks=Watch())
    result = await result_of(agent, case(mocks={"weather": "fine"}))
    assert (result.status, heard) == ("passed", ["model", "tool fine", "model"])


async def test_the_next_turn_begins_with_whom_the_conversation_was_handed_to():
    helper = Agent("helper", model=Script("hello", "done"))
    agent = clerk(HandOver("helper"), handoffs=[helper])
    result = await result_of(agent, case(says="", turns=[Turn("hi"), Turn("and?")]))
    assert result.status == "passed", why(result)
    asked = [event.agent for event in ledger_of(result).of(ModelCalled)]
    assert asked == ["clerk", "helper", "helper"]
    first, second = (note.data for note in ledger_of(result).of(Remembered))
    assert second["keep"] == len(first["items"]) - 1


async def test_what_a_guardrail_edits_in_a_later_turn_stays_in_the_ledger_as_it_was():
    async def edit(_: Any, __: Any, said: Any) -> GuardrailFunctionOutput:
        for item in said if isinstance(said, list) else []:
            for part in item["content"] if isinstance(item["content"], list) else []:
                part["text"] = "edited"
        return GuardrailFunctionOutput(None, tripwire_triggered=False)

    agent = clerk("one", "done", input_guardrails=[InputGuardrail(edit)])
    ledger = await simulate(case(says="", turns=[Turn("a"), Turn("b")]), agent)
    first, _ = (note.data["items"] for note in ledger.of(Remembered))
    assert [part["text"] for part in first[1]["content"]] == ["one"]


async def test_half_a_character_is_remembered_as_it_was_said():
    agent = clerk("half \ud83d", "done")
    ledger = await simulate(case(says="", turns=[Turn("a"), Turn("b")]), agent)
    assert q.responses(ledger) == ["half \ud83d", "done"]
    first, _ = (note.data["items"] for note in ledger.of(Remembered))
    assert first[1]["content"][0]["text"] == "half \ud83d"


async def test_the_runs_context_comes_from_the_session_and_goes_back(desk: Desk):
    @dataclass
    class Visit:
        order: int
        paid: int = 0

    @function_tool
    def charge(ctx: RunContextWrapper[Visit], amount: int) -> str:
        """Charge."""
        ctx.context.paid += amount
        return f"order {ctx.context.order}"

    call = ToolCall("charge", {"amount": 5}, "call-1")
    backend = OpenAIAgentsBackend(
        clerk(call, "done", tools=[charge]),
        context=lambda state: Visit(**cast("dict[str, Any]", state)),
    )
    one = case(state={"session": {"order": 7}}, allow_tools=["charge"])
    ledger = ledger_of(await result_of(backend, one))
    (charged,) = q.tool_calls(ledger)
    assert (charged.args, charged.result) == ({"amount": 5}, "order 7")
    assert q.state(ledger)["session"] == {"order": 7, "paid": 5}


@pytest.mark.parametrize("node, value", [("clerk", 5), ("helper", 8)])
async def test_the_state_after_each_agent_is_known(node: str, value: int):
    @function_tool
    def charge(ctx: RunContextWrapper[dict[str, Any]], amount: int) -> str:
        """Charge."""
        ctx.context["paid"] = ctx.context.get("paid", 0) + amount
        return "charged"

    first = ToolCall("charge", {"amount": 5}, "call-1")
    second = ToolCall("charge", {"amount": 3}, "call-2")
    helper = Agent("helper", model=Script(second, "done"), tools=[charge])
    agent = clerk(first, HandOver("helper"), tools=[charge], handoffs=[helper])
    backend = OpenAIAgentsBackend(agent, context=dict)
    metric = state_is("session", "paid", value, after=node)
    result = await result_of(backend, case(metrics=[metric], allow_tools=["charge"]))
    assert result.status == "passed", (result.error, result.scores)


async def test_a_server_that_was_named_lists_its_tools_and_they_are_mocked(desk: Desk):
    server = Server(desk)
    agent = clerk(WEATHER, "done", mcp_servers=[server])
    backend = OpenAIAgentsBackend(agent, live_servers=[server])
    refused = await result_of(backend, case("refused"))
    passed = await result_of(backend, case(mocks={"weather": "fine"}))
    assert (refused.status, passed.status) == ("error", "passed"), why(passed)
    assert set(desk.marks) == {"listed"}
    assert backend.tools is None


class Replayed(LiveWorld):
    """A world that answers models by itself."""

    async def call_model(self, request: Any, body: Any, on_delta: Any = None) -> ModelReply:
        return ModelReply("from the recording", model="recorded")


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_named_model_needs_no_key_where_the_world_answers(
    streamed: bool, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    backend = OpenAIAgentsBackend(Agent("clerk", model="gpt-5"), streamed=streamed)
    world = Replayed(Ledger())
    world.record(UserSaid(text="hello"))
    outcome = await backend.advance(world.ledger, world)
    assert outcome == TurnOver("from the recording")


class Collector(TracingProcessor):
    """Counts traces instead of sending them."""

    def __init__(self) -> None:
        self.traces = 0

    def on_trace_start(self, trace: Any) -> None:
        self.traces += 1

    def on_trace_end(self, trace: Any) -> None: ...

    def on_span_start(self, span: Any) -> None: ...

    def on_span_end(self, span: Any) -> None: ...

    def shutdown(self) -> None: ...

    def force_flush(self) -> None: ...


async def test_nothing_is_traced_in_a_rehearsal_not_even_by_an_agent_within(desk: Desk):
    collector = Collector()
    set_trace_processors([])
    add_trace_processor(collector)
    loud = RunConfig(tracing_disabled=False)
    helper = Agent("helper", model=Script("told"))
    agent = clerk(ASK, "done", tools=[helper.as_tool("ask_helper", "Ask.", run_config=loud)])
    await Runner.run(agent, "hello")
    fired = collector.traces
    result = await result_of(agent, case())
    assert (result.status, fired > 0, collector.traces) == ("passed", True, fired), why(result)
    assert is_seam(DefaultTraceProvider.create_trace)


async def test_outside_of_a_rehearsal_everything_is_as_it_was(desk: Desk):
    agent = clerk(WEATHER, "done", tools=[function_tool(desk.weather)])
    tools = list(agent.tools)
    assert (await result_of(agent, case(mocks={"weather": "fine"}))).status == "passed"
    assert agent.tools == tools
    result = await Runner.run(agent, "hello", run_config=RunConfig(tracing_disabled=True))
    assert (result.final_output, desk.marks) == ("done", ["weather Oslo 1"])


async def test_an_allowed_tools_failure_goes_by_its_own_policy(desk: Desk):
    def weather(city: str) -> str:
        raise RuntimeError("fog")

    agent = clerk(WEATHER, "done", tools=[function_tool(weather, failure_error_function=swallow)])
    result = await result_of(agent, case(allow_tools=["weather"]))
    assert result.status == "passed", why(result)
    (call,) = q.tool_calls(ledger_of(result))
    assert call.error == "RuntimeError: fog"
    assert "all fine" in json.dumps(agent.model.asked[-1])  # pyright: ignore[reportAttributeAccessIssue, reportOptionalMemberAccess]


async def test_a_tools_function_is_let_go_when_its_agent_is():
    def weather(city: str) -> str:
        raise AssertionError

    agent = clerk(WEATHER, "done", tools=[function_tool(weather)])
    assert (await result_of(agent, case(mocks={"weather": "fine"}))).status == "passed"
    known = weakref.ref(weather)
    del agent, weather
    gc.collect()
    assert known() is None


@pytest.mark.parametrize("installed", [True, False])
def test_a_package_of_the_users_own_called_agents_is_not_taken_for_the_sdk(
    installed: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    class Mine:
        __module__ = "agents.mine"

    if installed:
        own = ModuleType("agents")
        own.__file__ = str(tmp_path / "agents" / "__init__.py")
        monkeypatch.setitem(sys.modules, "agents", own)
    with pytest.raises(NotFound if installed else BadAgent, match="Mine"):
        backend_for(Mine())


def test_an_agent_of_the_sdk_is_known_by_its_class():
    assert isinstance(backend_for(agents.Agent("clerk")), OpenAIAgentsBackend)


def test_an_agent_with_a_prompt_at_the_provider_is_refused():
    with pytest.raises(BadAgent, match="prompt"):
        OpenAIAgentsBackend(Agent("clerk", prompt={"id": "pmpt_1"}))
