"""LangGraph graphs and LangChain agents in a rehearsal: the real framework, a scripted model.

What every backend owes is in the conformance suite; here is what only this framework has.
"""

import operator
from pathlib import Path
from typing import Annotated, Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware, wrap_tool_call
from langchain.tools import ToolRuntime
from langchain_core.caches import InMemoryCache
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.globals import set_llm_cache
from langchain_core.language_models.fake import FakeListLLM
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, ToolException, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import InjectedState, ToolNode, tools_condition
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command, interrupt

from backends.langgraph.bypasses import Acting, node, shell, weather_of
from backends.langgraph.scripts import Script, Streamed, agent_of, awaiting
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
from greenroom.backends import backend_for
from greenroom.backends.langgraph import LangGraphBackend
from greenroom.backends.langgraph.memory import Memory
from greenroom.cases import in_turn
from greenroom.errors import BadAgent
from greenroom.ledger import questions as q
from greenroom.ledger.events import (
    Answered,
    ModelReplied,
    NodeEnded,
    NodeStarted,
    Remembered,
    ToolCalled,
    YieldOpened,
)
from greenroom.ledger.messages import ToolCall
from greenroom.ledger.plain import as_object
from greenroom.metrics import contains
from greenroom.results.result import CaseResult
from greenroom.testing import Blueprint, Desk, ToolPlan
from greenroom.world import ToolError

WEATHER = ToolCall("weather", {"city": "Oslo"}, "call-weather")
PAY = ToolCall("pay", {"amount": 5}, "call-pay")


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


def clerk(*lines: Any, tools: Any = (), **options: Any) -> Any:
    return create_agent(Script(lines=list(lines)), list(tools), name="clerk", **options)


async def by_astream(model: Any, messages: Any) -> None:
    async for _ in model.astream(messages):
        pass


async def by_events(model: Any, messages: Any) -> None:
    async for _ in model.astream_events(messages, version="v2"):
        pass


async def by_typed_events(model: Any, messages: Any) -> None:
    stream = await model.astream_events(messages, version="v3")
    await stream


async def by_invoke(model: Any, messages: Any) -> None:
    model.invoke(messages)


async def by_stream(model: Any, messages: Any) -> None:
    for _ in model.stream(messages):
        pass


async def by_batch(model: Any, messages: Any) -> None:
    await model.abatch([messages])


async def by_generate(model: Any, messages: Any) -> None:
    await model.agenerate([messages])


@pytest.mark.filterwarnings("ignore:.*beta.*")
@pytest.mark.parametrize(
    "ask",
    [by_astream, by_events, by_typed_events, by_invoke, by_stream, by_batch, by_generate],
)
@pytest.mark.parametrize("kind", [Script, Streamed])
async def test_a_model_is_recorded_however_it_is_asked(ask: Any, kind: Any):
    model = kind(lines=["all done"])

    async def act(state: MessagesState) -> Any:
        await ask(model, state["messages"])
        return {"messages": [AIMessage("done")]}

    result = await result_of(node(act), case())
    assert result.status == "passed", why(result)
    (reply,) = ledger_of(result).of(ModelReplied)
    assert (reply.text, reply.node, reply.agent, reply.path) == (
        "all done",
        "act",
        "acting",
        "@1/act",
    )


async def test_a_sync_node_is_led_through_the_gate_from_its_thread(desk: Desk):
    weather = weather_of(desk)
    model = Script(lines=["all done"])

    def act(state: MessagesState) -> Any:
        told = weather.invoke({"city": "Oslo"})
        return {"messages": [HumanMessage(told), model.invoke(state["messages"])]}

    result = await result_of(node(act), case(mocks={"weather": "fine"}))
    assert (result.status, desk.marks) == ("passed", []), why(result)
    assert [(c.args, c.result) for c in q.tool_calls(ledger_of(result))] == [
        ({"city": "Oslo"}, "fine")
    ]


async def test_a_graph_with_a_tool_node_goes_round_and_tells_its_nodes(desk: Desk):
    tools = [weather_of(desk)]
    model = Script(lines=[WEATHER, "done"]).bind_tools(tools)

    async def assistant(state: MessagesState) -> Any:
        return {"messages": [await model.ainvoke(state["messages"])]}

    graph = StateGraph(MessagesState)
    graph.add_node("assistant", assistant)
    graph.add_node("tools", ToolNode(tools))
    graph.add_edge(START, "assistant")
    graph.add_conditional_edges("assistant", tools_condition)
    graph.add_edge("tools", "assistant")
    result = await result_of(graph.compile(), case(mocks={"weather": "fine"}))
    assert (result.status, desk.marks) == ("passed", []), why(result)
    paths = [event.path for event in ledger_of(result).of(NodeStarted)]
    assert paths == ["@1/assistant", "@1/tools", "@1/assistant#2"]


async def test_a_subgraph_is_entered_and_left_inside_its_node(desk: Desk):
    inner = agent_of(Blueprint(name="helper", lines=["done"]))
    graph = StateGraph(MessagesState)
    graph.add_node("helper", inner)
    graph.add_edge(START, "helper")
    result = await result_of(graph.compile(name="office"), case())
    ledger = ledger_of(result)
    assert [event.path for event in ledger.of(NodeStarted)] == ["@1/helper", "@1/helper/model"]
    assert [event.path for event in ledger.of(NodeEnded)] == ["@1/helper/model", "@1/helper"]
    assert ledger.of(ModelReplied)[0].agent == "helper"


async def test_a_node_that_pauses_twice_asks_its_models_once():
    model = Script(lines=["name?", "age?", "done"])

    async def act(state: MessagesState) -> Any:
        messages: list[Any] = list(state["messages"])
        for _ in range(2):
            asked = await model.ainvoke(messages)
            messages += [asked, HumanMessage(interrupt(str(asked.text)))]
        return {"messages": [*messages[1:], await model.ainvoke(messages)]}

    one = case(user=UserAgents(loop=Lines("Ada", "36")))
    ledger = ledger_of(await result_of(node(act), one))
    assert q.responses(ledger) == ["name?", "age?", "done"]
    assert (len(model.asked), len(ledger.of(ModelReplied))) == (3, 3)
    assert [event.node for event in ledger.of(NodeStarted)] == ["act"]
    pause = ledger.of(Answered)[1].seq
    resumed = await simulate(one, node(act), ledger=Ledger.loads(Ledger(ledger[:pause]).dumps()))
    assert q.responses(resumed) == ["name?", "age?", "done"]
    assert len(resumed.of(ModelReplied)) == 3


async def test_a_tool_called_before_a_pause_is_not_called_again(desk: Desk):
    weather = weather_of(desk)

    async def act(_: MessagesState) -> Any:
        told = await weather.ainvoke({"city": "Oslo"})
        return {"messages": [AIMessage(f"{told}, {interrupt('sure?')}, done")]}

    one = case(mocks={"weather": "fine"}, user=Lines("yes"))
    result = await result_of(node(act), one)
    assert q.response(ledger_of(result)) == "fine, yes, done"
    assert len(ledger_of(result).of(ToolCalled)) == 1


async def test_calls_that_a_graph_gives_one_id_are_all_made_before_and_after_a_pause(desk: Desk):
    weather = weather_of(desk)

    async def asked(city: str) -> str:
        said = await weather.ainvoke(
            {"name": "weather", "args": {"city": city}, "id": "x", "type": "tool_call"}
        )
        return str(said.content)

    async def first(state: MessagesState) -> Any:
        told = [await asked("Oslo"), await asked("Oslo")]
        return {"messages": [AIMessage(f"{told}, {interrupt('sure?')}")]}

    async def second(state: MessagesState) -> Any:
        return {"messages": [AIMessage(f"{[await asked('Oslo'), await asked('Rome')]}, done")]}

    graph = StateGraph(MessagesState)
    graph.add_node("first", first)
    graph.add_node("second", second)
    graph.add_edge(START, "first")
    graph.add_edge("first", "second")
    answers = [f"answer {n}" for n in range(4)]
    one = case(mocks={"weather": in_turn(*answers)}, user=Lines("yes"))
    result = await result_of(graph.compile(), one)
    assert result.status == "passed", why(result)
    assert q.response(ledger_of(result)) == "['answer 2', 'answer 3'], done"
    assert [call.result for call in q.tool_calls(ledger_of(result))] == answers


def breaking(error: Exception) -> Any:
    @tool
    def look(city: str) -> str:
        """Look."""
        raise error

    return look


@pytest.mark.parametrize(
    "error,options",
    [
        (KeyError("gone"), {"allow_tools": ["look"]}),
        (ToolException("gone"), {"allow_tools": ["look"]}),
        (AssertionError("never"), {"mocks": {"look": fault("gone")}}),
    ],
    ids=["allowed", "allowed, of LangChain's own kind", "mocked"],
)
async def test_a_tools_failure_before_a_pause_is_the_same_after_it(error: Any, options: Any):
    look, heard = breaking(error), list[str]()

    async def act(_: MessagesState) -> Any:
        try:
            await look.ainvoke({"city": "Oslo"})
        except Exception as error:
            heard.append(repr(error))
        return {"messages": [AIMessage(f"{interrupt('sure?')}, done")]}

    result = await result_of(node(act), case(user=Lines("yes"), **options))
    assert result.status == "passed", why(result)
    assert len(heard) == 2
    assert heard[0] == heard[1]
    assert "gone" in heard[0]


class Missing(ToolException):
    """A tool's own kind of error."""


class CityMissing(Missing):
    """One that is narrower still."""


@pytest.mark.parametrize(
    "error,told",
    [
        (ToolException("gone"), "handled gone, done"),
        (Missing("gone"), "handled gone, done"),
        (CityMissing("gone"), "handled gone, done"),
        (KeyError("gone"), "raised"),
    ],
)
async def test_a_tool_hears_of_its_own_kind_of_error_before_and_after_a_pause(
    error: Exception, told: str
):
    look = breaking(error)
    look.handle_tool_error = lambda error: f"handled {error}"

    async def act(_: MessagesState) -> Any:
        try:
            said = await look.ainvoke({"city": "Oslo"})
        except ToolError:
            said = "raised"
        interrupt("sure?")
        return {"messages": [AIMessage(f"{said}, done")]}

    result = await result_of(node(act), case(allow_tools=["look"], user=Lines("yes")))
    assert told in (q.response(ledger_of(result)) or why(result))


@pytest.mark.parametrize("handled,status", [((KeyError,), "passed"), ((ValueError,), "error")])
async def test_a_tool_node_judges_what_an_allowed_tool_raised(handled: Any, status: str):
    model = Script(lines=[ToolCall("look", {"city": "Oslo"}, "call-1"), "done"])

    async def ask(state: MessagesState) -> Any:
        return {"messages": [await model.ainvoke(state["messages"])]}

    graph = StateGraph(MessagesState)
    graph.add_node("model", ask)
    graph.add_node("tools", ToolNode([breaking(KeyError("gone"))], handle_tool_errors=handled))
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", tools_condition)
    graph.add_edge("tools", "model")
    result = await result_of(graph.compile(name="clerk"), case(allow_tools=["look"]))
    assert result.status == status, why(result)


async def test_a_model_inside_a_tool_that_a_model_called_is_seen():
    inner = Script(lines=["fine"])

    @tool
    async def look(city: str) -> str:
        """Look."""
        return str((await inner.ainvoke(city)).text)

    agent = create_agent(Acting(lines=["done"], tool=look), [], name="clerk")
    result = await result_of(agent, case(allow_tools=["look"]))
    assert result.status == "passed", why(result)
    assert [reply.text for reply in ledger_of(result).of(ModelReplied)] == ["fine", "done"]


async def test_an_interrupt_with_data_is_answered_by_the_name_of_its_node():
    async def review(_: MessagesState) -> Any:
        answer = interrupt({"draft": "Dear Ada"})
        return {"messages": [AIMessage(f"done: {answer['text']}")]}

    one = case(user=UserAgents(tools={"review": {"text": "Dear Bo"}}))
    result = await result_of(node(review), one)
    # The node of this graph is called `act`, whatever its function is called.
    assert result.error is not None
    assert "'act'" in result.error.message
    result = await result_of(node(review), case(user=UserAgents(tools={"act": {"text": "Bo"}})))
    assert q.response(ledger_of(result)) == "done: Bo"
    (opened,) = ledger_of(result).of(YieldOpened)
    assert (opened.tool, opened.args) == ("act", {"draft": "Dear Ada"})


@pytest.mark.parametrize("mode", ["batched", "per_call"])
@pytest.mark.parametrize(
    "answer,paid,heard",
    [
        (True, [{"amount": 5}], "ok"),
        ({"type": "approve"}, [{"amount": 5}], "ok"),
        (
            {"type": "edit", "edited_action": {"name": "pay", "args": {"amount": 3}}},
            [{"amount": 3}],
            "ok",
        ),
        ({"confirmed": False, "message": "too much"}, [], "too much"),
        ({"type": "respond", "message": "paid by card"}, [], "paid by card"),
    ],
)
async def test_a_reviewer_may_approve_edit_reject_or_respond(
    desk: Desk, mode: Any, answer: Any, paid: Any, heard: str
):
    review = HumanInTheLoopMiddleware({"pay": True}, interrupt_mode=mode)
    model = Script(lines=[PAY, "done"], asked=[])
    agent = create_agent(model, [desk.pay], middleware=[review], name="clerk")
    one = case(mocks={"pay": "ok"}, user=UserAgents(tools={"pay": answer}))
    result = await result_of(agent, one)
    assert (result.status, desk.marks) == ("passed", []), why(result)
    assert [call.args for call in q.tool_calls(ledger_of(result))] == paid
    assert heard in str(model.asked[-1][-1].content) or mode == "batched"
    assert any(heard in str(message.content) for message in model.asked[-1])


async def test_the_users_own_saver_and_store_are_left_alone():
    saver, store = InMemorySaver(), InMemoryStore()
    store.put(("names",), "user", {"name": "Ada"})
    seen: list[Any] = []

    async def act(state: MessagesState, *, store: BaseStore) -> Any:
        seen.append(await store.aget(("names",), "user"))
        await store.aput(("names",), "user", {"name": "Bo"})
        return {"messages": [AIMessage("done")]}

    graph = StateGraph(MessagesState)
    graph.add_node("act", act)
    graph.add_edge(START, "act")
    compiled = graph.compile(checkpointer=saver, store=store)
    report = await evaluate(compiled, [case("a"), case("b")], concurrency=2)
    assert [result.status for result in report] == ["passed", "passed"]
    assert (seen, list(saver.storage)) == ([None, None], [])
    kept = store.get(("names",), "user")
    assert kept is not None
    assert kept.value == {"name": "Ada"}


async def test_state_is_kept_between_turns_and_told_to_the_ledger():
    class Counted(MessagesState):
        count: Annotated[int, operator.add]

    async def act(state: Counted) -> Any:
        return {"messages": [AIMessage(f"done {state['count']}")], "count": 1}

    graph = StateGraph(Counted)
    graph.add_node("act", act)
    graph.add_edge(START, "act")
    one = case(says="", turns=[Turn("a"), Turn("b"), Turn("c")])
    ledger = ledger_of(await result_of(graph.compile(), one))
    assert q.responses(ledger) == ["done 0", "done 1", "done 2"]
    assert q.state(ledger)["session"] == {"count": 3}
    kept = [note.data["keep"] for note in ledger.of(Remembered)]
    assert kept == [0, 2, 4]


async def test_what_a_node_edits_in_a_later_turn_stays_in_the_ledger_as_it_was():
    called: Any = {"name": "weather", "args": {"days": [1]}, "id": "c"}

    async def act(state: MessagesState) -> Any:
        for call in [call for m in state["messages"] for call in getattr(m, "tool_calls", ())]:
            call["args"]["days"].append(2)
        return {"messages": [AIMessage("done", tool_calls=[called])]}

    ledger = await simulate(case(says="", turns=[Turn("one"), Turn("two")]), node(act))
    first, _ = (note.data["items"] for note in ledger.of(Remembered))
    assert first[1]["message"]["data"]["tool_calls"][0]["args"] == {"days": [1]}


async def test_messages_are_the_same_in_the_next_turn_whatever_they_carry():
    used: Any = {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}
    called: Any = {"name": "weather", "args": {"city": "Oslo", "days": [1, 2.5]}, "id": "c"}
    told = [
        AIMessage("", name="", tool_calls=[called], usage_metadata=used),
        ToolMessage("fine", tool_call_id="c", artifact={"rows": [1, 2]}, status="error"),
        ToolMessage([{"type": "text", "text": "fine"}], tool_call_id="d"),
        SystemMessage("be kind", mood="extra"),
        HumanMessage("hi", additional_kwargs={"shoes": 2}),
        AIMessage("all done", response_metadata={"model_name": "script"}),
    ]
    seen: list[Any] = []

    async def act(state: MessagesState) -> Any:
        seen.append(state["messages"])
        return {"messages": told if len(seen) == 1 else [AIMessage("done")]}

    result = await result_of(node(act), case(says="", turns=[Turn("one"), Turn("two")]))
    assert result.status == "passed", why(result)
    before, (first, *kept, _) = seen
    assert [first, *kept] == [*before, *told]
    assert [type(message) for message in kept] == [type(message) for message in told]


def test_a_memory_goes_on_with_the_kind_of_versions_it_finds():
    memory = Memory()
    assert [memory.get_next_version(found, None) for found in (None, 1, f"{7:032}.0")] == [
        1,
        2,
        f"{8:032}.0",
    ]


async def test_what_two_nodes_ask_at_once_is_all_answered():
    async def one(state: MessagesState) -> Any:
        return {"messages": [AIMessage(str(interrupt({"n": 1})))]}

    async def two(state: MessagesState) -> Any:
        return {"messages": [AIMessage(str(interrupt({"n": 2})))]}

    graph = StateGraph(MessagesState)
    graph.add_node("one", one)
    graph.add_node("two", two)
    graph.add_edge(START, "one")
    graph.add_edge(START, "two")
    answers = UserAgents(tools={"one": "done", "two": "done too"})
    result = await result_of(graph.compile(), case(user=answers))
    assert result.status == "passed", why(result)
    asked = [as_object(opened.args)["n"] for opened in ledger_of(result).of(YieldOpened)]
    assert sorted(asked, key=str) == [1, 2]


async def test_a_users_answer_may_change_the_graphs_state():
    class Named(MessagesState):
        name: str

    async def act(state: Named) -> Any:
        interrupt("who?")
        return {"messages": []}

    async def greet(state: Named) -> Any:
        return {"messages": [AIMessage(f"done, {state['name']}")]}

    graph = StateGraph(Named)
    graph.add_node("act", act)
    graph.add_node("greet", greet)
    graph.add_edge(START, "act")
    graph.add_edge("act", "greet")

    def say() -> Any:
        return with_state_change("me", {"session": {"name": "Ada"}})

    user = UserAgents(loop=say)
    result = await result_of(graph.compile(), case(user=user))
    assert q.response(ledger_of(result)) == "done, Ada", why(result)


async def test_what_the_framework_puts_into_a_call_is_not_among_its_arguments():
    @tool
    async def look(
        city: str, runtime: ToolRuntime, state: Annotated[dict, InjectedState], days: int = 1
    ) -> str:
        """Look."""
        raise AssertionError

    agent = clerk(ToolCall("look", {"city": "Oslo"}, "call-1"), "done", tools=[look])
    result = await result_of(agent, case(mocks={"look": "fine"}))
    assert result.status == "passed", why(result)
    assert q.tool_calls(ledger_of(result))[0].args == {"city": "Oslo"}
    facts = LangGraphBackend(agent).tools
    assert facts is not None
    assert facts["look"].parameters == ("city", "days")


class Configured(BaseTool):
    """Wants its run's config, and says so in text only."""

    name: str = "weather"
    description: str = "The weather."
    told: list[Any]

    def _run(self, city: "str", config: "RunnableConfig") -> str:
        self.told.append((city, config.get("metadata", {})["shoes"]))
        return "fine"

    async def _arun(self, city: "str", config: "RunnableConfig") -> str:
        return self._run(city, config)


class Odd(Configured):
    """Has an annotation that means nothing."""

    async def _arun(self, city: "str", **more: "Nothing") -> str:  # pyright: ignore[reportUndefinedVariable, reportIncompatibleMethodOverride]  # noqa: F821
        self.told.append((city, 2))
        return "fine"


@pytest.mark.parametrize("kind", [Configured, Odd])
async def test_a_tool_that_is_let_run_is_given_what_it_asks_for(kind: Any):
    tool = kind(told=[])
    backend = LangGraphBackend(
        clerk(WEATHER, "done", tools=[tool]), config={"metadata": {"shoes": 2}}
    )
    for _ in range(2):
        result = await result_of(backend, case(allow_tools=["weather"]))
        assert result.status == "passed", why(result)
        (call,) = ledger_of(result).of(ToolCalled)
        assert call.args == {"city": "Oslo"}
    assert tool.told == [("Oslo", 2)] * 2


async def test_a_tool_with_an_artifact_is_mocked_by_its_content():
    @tool(response_format="content_and_artifact")
    def find(what: str) -> Any:
        """Find."""
        return f"found {what}", object()

    call = ToolCall("find", {"what": "keys"}, "call-1")
    mocked = await result_of(clerk(call, "done", tools=[find]), case(mocks={"find": "nothing"}))
    real = await result_of(clerk(call, "done", tools=[find]), case(allow_tools=["find"]))
    assert (mocked.status, real.status) == ("passed", "passed"), why(mocked)
    assert q.tool_calls(ledger_of(mocked))[0].result == "nothing"


async def test_an_allowed_tool_may_steer_the_graph():
    @tool
    def finish(how: str, runtime: ToolRuntime) -> Command[Any]:
        """Finish."""
        from langchain_core.messages import ToolMessage

        told = ToolMessage(f"all done {how}", tool_call_id=runtime.tool_call_id)
        return Command(update={"messages": [told]})

    agent = clerk(ToolCall("finish", {"how": "well"}, "call-1"), "done", tools=[finish])
    result = await result_of(agent, case(allow_tools=["finish"]))
    assert result.status == "passed", why(result)


async def test_a_tools_own_error_handler_hears_of_a_mocks_failure():
    @tool
    def look(city: str) -> str:
        """Look."""
        raise AssertionError

    look.handle_tool_error = lambda error: f"handled {error}"
    model = Script(lines=[ToolCall("look", {"city": "Oslo"}, "call-1"), "done"], asked=[])
    result = await result_of(create_agent(model, [look]), case(mocks={"look": fault("fog")}))
    assert result.status == "passed", why(result)
    assert model.asked[-1][-1].content == "handled fog"


async def test_a_tool_let_run_that_asks_in_words_hears_the_users_next_message():
    @tool
    def ask(question: str) -> str:
        """Ask."""
        return str(interrupt(question))

    agent = clerk(ToolCall("ask", {"question": "?"}, "call-1"), "done", tools=[ask])
    turns = [Turn("Hi"), Turn("blue")]
    ledger = await simulate(Case("c", turns=turns, allow_tools=["ask"]), agent)
    assert [one.result for one in q.tool_calls(ledger)] == ["blue"]


async def test_a_tool_of_the_provider_is_refused_before_its_model_is_asked():
    model = Script(lines=["done"], asked=[])
    agent = create_agent(model, [{"type": "web_search"}], name="clerk")
    result = await result_of(agent, case())
    assert (result.status, model.asked) == ("error", [])
    assert result.error is not None
    assert (result.error.type, "web_search" in result.error.message) == ("ToolRefused", True)


async def test_a_text_completion_model_is_refused():
    model = FakeListLLM(responses=["done"])

    async def act(_: MessagesState) -> Any:
        return {"messages": [AIMessage(await model.ainvoke("hello"))]}

    result = await result_of(node(act), case())
    assert result.error is not None
    assert "a text completion model" in result.error.message


class Watch(BaseCallbackHandler):
    """Counts what the framework tells its listeners."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def on_llm_end(self, *_: Any, **__: Any) -> None:
        self.heard.append("model")

    def on_llm_new_token(self, token: Any, **_: Any) -> None:
        self.heard.append(f"token {token}")

    def on_tool_end(self, output: Any, **_: Any) -> None:
        self.heard.append(f"tool {output.content}")


async def test_the_users_callbacks_still_hear_everything(desk: Desk):
    watch = Watch()
    agent = clerk(WEATHER, "done", tools=[weather_of(desk)]).with_config(callbacks=[watch])
    result = await result_of(agent, case(mocks={"weather": "fine"}))
    assert (result.status, watch.heard) == ("passed", ["model", "tool fine", "model"])


async def test_the_pieces_of_a_stream_still_reach_its_listeners():
    watch = Watch()
    model = Streamed(lines=["all is done"], streaming=True)
    agent = create_agent(model).with_config(callbacks=[watch])
    result = await result_of(agent, case())
    assert result.status == "passed", why(result)
    assert [word for word in watch.heard if word.strip() != "token"] == [
        "token all ",
        "token is ",
        "token done",
        "model",
    ]


async def test_a_cache_never_answers_past_the_world():
    model = Script(lines=["all done"], asked=[])
    set_llm_cache(InMemoryCache())
    try:
        for n in range(2):
            result = await result_of(create_agent(model, name="clerk"), case(f"case {n}"))
            assert [event.source for event in ledger_of(result).of(ModelReplied)] == ["live"]
    finally:
        set_llm_cache(None)
    assert len(model.asked) == 2


async def test_nothing_is_traced_in_a_rehearsal(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("LANGSMITH_TRACING", "true")
    monkeypatch.setenv("LANGSMITH_API_KEY", "none")
    result = await result_of(clerk("done"), case())
    assert result.status == "passed", why(result)


async def test_outside_of_a_rehearsal_everything_is_as_it_was(desk: Desk):
    agent = clerk(WEATHER, "done", tools=[weather_of(desk)])
    assert (await result_of(agent, case(mocks={"weather": "fine"}))).status == "passed"
    state = await agent.ainvoke({"messages": [HumanMessage("hello")]})
    assert state["messages"][-1].content == "done"
    assert desk.marks == ["weather Oslo 1"]


async def test_a_graph_of_other_state_says_what_goes_in_and_out():
    from typing import TypedDict

    class Order(TypedDict, total=False):
        question: str
        answer: str

    async def act(state: Order) -> Any:
        return {"answer": f"done: {state.get('question')}"}

    graph = StateGraph(Order)
    graph.add_node("act", act)
    graph.add_edge(START, "act")
    with pytest.raises(BadAgent, match="question, answer"):
        LangGraphBackend(graph.compile())
    backend = LangGraphBackend(
        graph.compile(),
        input=lambda text: {"question": text},
        output=lambda state: state["answer"],
    )
    result = await result_of(backend, case())
    assert q.response(ledger_of(result)) == "done: hello"
    without = LangGraphBackend(graph.compile(), input=lambda text: {"question": text})
    assert "cannot extract a response" in why(await result_of(without, case()))


@pytest.mark.parametrize(
    "wrap", [lambda text: ("ai", text), lambda text: {"role": "assistant", "content": text}]
)
async def test_messages_that_a_graph_adds_by_hand_are_answers_and_not_state(wrap: Any):
    from typing import TypedDict

    class Talk(TypedDict):
        messages: Annotated[list[Any], operator.add]

    def answer(state: Talk) -> Any:
        return {"messages": [wrap(f"that makes {len(state['messages'])}")]}

    graph = StateGraph(Talk).add_node("answer", answer).add_edge(START, "answer").compile()
    result = await result_of(graph, Case("talk", says="one", user=Lines("two")))
    assert q.responses(ledger_of(result)) == ["that makes 1", "that makes 3"]
    assert "messages" not in q.state(ledger_of(result)).get("session", {})


async def test_a_function_with_an_entry_point_is_played_too():
    model = Script(lines=["all done"])

    @entrypoint()
    async def answer(question: str) -> str:
        return str((await model.ainvoke(question)).text)

    backend = LangGraphBackend(answer, input=str)
    result = await result_of(backend, case())
    assert (result.status, q.response(ledger_of(result))) == ("passed", "all done"), why(result)


@pytest.mark.parametrize(
    "build",
    [
        lambda model: model,
        lambda model: ChatPromptTemplate.from_messages([("placeholder", "{messages}")]) | model,
        lambda model: ChatPromptTemplate.from_template("{q}") | model | StrOutputParser(),
    ],
    ids=["a model", "a chain of messages", "a chain of one text"],
)
async def test_a_model_or_chain_is_played_by_itself(build: Any):
    model = Script(lines=["cold", "done"], asked=[])
    chain = build(model)
    result = await result_of(chain, case(says="", turns=[Turn("a")], metrics=[contains("cold")]))
    assert result.status == "passed", why(result)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
async def test_a_middleware_that_starts_a_shell_is_refused_before_the_run(desk: Desk):
    await shell(desk).ainvoke({"messages": [HumanMessage("hello")]})
    assert desk.marks == ["started"]
    with pytest.raises(BadAgent, match="ShellToolMiddleware"):
        backend_for(shell(desk))


async def test_middleware_that_is_sync_only_is_rehearsed_by_a_function(desk: Desk):
    wrapped: list[str] = []

    @wrap_tool_call
    def passes_on(request: Any, handler: Any) -> Any:
        wrapped.append(request.tool_call["name"])
        return handler(request)

    def graph() -> Any:
        model = Script(lines=[WEATHER, "done"])
        return create_agent(model, [weather_of(desk)], middleware=[passes_on])

    async def act(message: str) -> str:
        return graph().invoke({"messages": [("user", message)]})["messages"][-1].text

    refused = await result_of(graph(), case(mocks={"weather": "dry"}))
    assert refused.error is not None
    assert "def agent(message)" in refused.error.message
    by_function = await result_of(act, case(mocks={"weather": "dry"}))
    assert by_function.status == "passed", why(by_function)
    assert wrapped == ["weather"]
    assert desk.marks == []


async def test_an_object_in_the_state_cannot_be_taken_into_the_next_turn():
    class Held(MessagesState):
        client: Any

    async def act(state: Held) -> Any:
        return {"messages": [AIMessage("done")], "client": Script.__init__.__code__}

    graph = StateGraph(Held)
    graph.add_node("act", act)
    graph.add_edge(START, "act")
    first = await result_of(graph.compile(), case())
    second = await result_of(graph.compile(), case(says="", turns=[Turn("a"), Turn("b")]))
    assert first.status == "passed", why(first)
    assert second.error is not None
    assert "cannot be kept from one turn to the next" in second.error.message


@pytest.mark.parametrize(
    "build,named",
    [
        (lambda: StateGraph(MessagesState), "not compiled"),
        (lambda: ToolNode([]), "ToolNode"),
        (lambda: tool(print), "not an agent"),
    ],
)
def test_what_is_no_agent_is_refused(build: Any, named: str):
    with pytest.raises(BadAgent, match=named):
        LangGraphBackend(build())


def test_a_graph_that_stops_without_a_question_is_refused():
    graph = StateGraph(MessagesState)
    graph.add_node("act", lambda state: state)
    graph.add_edge(START, "act")
    with pytest.raises(BadAgent, match="interrupt_before"):
        LangGraphBackend(graph.compile(checkpointer=InMemorySaver(), interrupt_before=["act"]))


def test_the_tools_are_unknown_where_the_authors_code_may_call_others(desk: Desk):
    plan = Blueprint(lines=["done"], tools=[ToolPlan(desk.weather)])
    assert LangGraphBackend(awaiting(plan)).tools is None
    assert set(LangGraphBackend(agent_of(plan)).tools or ()) == {"weather"}


async def test_what_an_answer_changed_outlasts_a_graph_that_left_it_alone(desk: Desk):
    class Counted(MessagesState):
        n: int
        seen: list[int]

    weather = weather_of(desk)

    async def act(state: Counted) -> Any:
        await weather.ainvoke({"city": "Oslo"})
        return {"messages": [AIMessage("done")], "seen": [*state.get("seen", []), state["n"]]}

    graph = StateGraph(Counted)
    graph.add_node("act", act)
    graph.add_edge(START, "act")
    mocks = {"weather": with_state_change("fine", {"session": {"n": 5}})}
    turns = [Turn("one"), Turn("two")]
    one = case(says="", turns=turns, mocks=mocks, state={"session": {"n": 1}})
    result = await result_of(graph.compile(), one)
    assert result.status == "passed", why(result)
    assert q.state(ledger_of(result))["session"] == {"n": 5, "seen": [1, 5]}
