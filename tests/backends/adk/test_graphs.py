"""Workflow graphs: function nodes are gated like tools, and every node has a path."""

from pathlib import Path
from typing import Any

import pytest
from google.adk.agents import BaseAgent
from google.adk.agents.context import Context
from google.adk.apps import App
from google.adk.code_executors import UnsafeLocalCodeExecutor
from google.adk.events import Event, EventActions
from google.adk.events.request_input import RequestInput
from google.adk.tools import AgentTool, FunctionTool
from google.adk.tools.google_search_tool import GoogleSearchTool
from google.adk.workflow import DEFAULT_ROUTE, JoinNode, Node, Workflow, node

from backends.adk.scripts import WEATHER, agent, case, ledger_of, result_of
from greenroom import Ledger, Lines, Turn, UserAgents, evaluate, fault, simulate
from greenroom.backends.adk import AdkBackend
from greenroom.errors import BadAgent
from greenroom.ledger import questions as q
from greenroom.ledger.events import (
    Answered,
    ModelReplied,
    NodeEnded,
    NodeStarted,
    StateChanged,
    YieldOpened,
)
from greenroom.ledger.plain import as_object
from greenroom.metrics import contains
from greenroom.testing import Desk


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def flow(*edges: Any, **options: Any) -> Workflow:
    return Workflow(name="flow", edges=list(edges), **options)


def shout(node_input: str) -> str:
    return node_input.upper()


def calls(ledger: Ledger) -> list[tuple[str, Any, Any, str]]:
    return [(c.tool, c.args, c.result, c.source) for c in q.tool_calls(ledger)]


async def test_a_mocked_function_node_gives_what_the_case_says(desk: Desk):
    def look_up(node_input: str) -> str:
        return desk.mark("looked up")

    graph = flow(("START", look_up, agent("clerk", "done")))
    result = await result_of(graph, case(mocks={"look_up": "order 7"}))
    ledger = ledger_of(result)
    assert (result.status, desk.marks) == ("passed", []), result.error
    assert calls(ledger) == [("look_up", {"node_input": "hello"}, "order 7", "mock")]
    paths = ["@1/flow", "@1/flow/look_up", "@1/flow/clerk"]
    assert [event.path for event in ledger.of(NodeStarted)] == paths
    assert {event.path for event in ledger.of(NodeEnded)} == set(paths)
    assert [event.path for event in ledger.of(ModelReplied)] == ["@1/flow/clerk"]


@pytest.mark.parametrize("named", ["shout", shout])
async def test_a_function_node_that_is_named_runs(named: Any):
    graph = flow(("START", agent("clerk", "well"), shout))
    result = await result_of(graph, case(allow_tools=[named], metrics=[contains("WELL")]))
    assert result.status == "passed", result.error
    assert calls(ledger_of(result)) == [("shout", {"node_input": "well"}, "WELL", "live")]


async def test_a_function_node_may_be_its_own_mock():
    graph = flow(("START", agent("clerk", "well"), shout))
    result = await result_of(graph, case(mocks={"shout": shout}, metrics=[contains("WELL")]))
    assert result.status == "passed", result.error


async def test_a_node_that_routes_leads_where_it_says():
    def route(node_input: str) -> Event:
        route = "paid" if "paid" in node_input else "other"
        return Event(actions=EventActions(route=route))

    answers = {"paid": agent("thank", "done"), DEFAULT_ROUTE: agent("remind", "pay first")}
    graph = flow(("START", route, answers))
    cases = [case("paid", says="I paid"), case("late", says="no")]
    report = await evaluate(graph, cases, allow_tools=["route"])
    assert [result.status for result in report] == ["passed", "failed"]
    routes = [calls(ledger_of(result))[0][2]["route"] for result in report]
    assert routes == ["paid", "other"]


async def test_a_nodes_change_of_state_is_in_the_ledger():
    def count(ctx: Context, order: int) -> str:
        ctx.state["order"] = order + 1
        return "done"

    result = await result_of(
        flow(("START", count)), case(allow_tools=["count"], state={"session": {"order": 7}})
    )
    ledger = ledger_of(result)
    assert result.status == "passed", result.error
    assert (q.state(ledger)["session"], len(ledger.of(StateChanged))) == ({"order": 8}, 1)
    assert calls(ledger)[0][1] == {"order": 7}


async def test_branches_meet_in_a_join_and_data_is_the_answer():
    graph = flow(("START", (agent("one", "1"), agent("two", "2")), JoinNode(name="both")))
    result = await result_of(graph, case(metrics=[contains("1")]))
    assert result.status == "passed", result.error
    assert q.response(ledger_of(result)) is not None
    assert {"@1/flow/one", "@1/flow/two"} <= {e.path for e in ledger_of(result).of(NodeStarted)}


async def test_parallel_runs_of_one_node_have_paths_of_their_own(desk: Desk):
    def split() -> list[str]:
        return ["a", "b", "c"]

    worker = agent("worker", WEATHER, "fine", tools=[desk.weather])
    graph = flow(("START", split, node(worker, parallel_worker=True)))
    one = case(mocks={"split": ["a", "b", "c"], "weather": "mild"}, metrics=[contains("fine")])
    result = await result_of(graph, one)
    ledger = ledger_of(result)
    assert (result.status, desk.marks) == ("passed", []), result.error
    paths = {e.path for e in ledger.of(ModelReplied)}
    assert paths == {"@1/flow/worker", "@1/flow/worker#2", "@1/flow/worker#3"}


async def test_a_tool_as_a_node_is_mocked_by_its_name(desk: Desk):
    graph = flow(("START", FunctionTool(desk.weather), agent("clerk", "done")))
    result = await result_of(graph, case(says="Oslo", mocks={"weather": "mild"}))
    assert calls(ledger_of(result)) == [("weather", {"city": "Oslo"}, "mild", "mock")]
    assert (result.status, desk.marks) == ("passed", [])


async def test_a_node_as_a_tool_is_mocked_by_its_name(desk: Desk):
    def act(what: str) -> str:
        """Act."""
        return desk.mark(what)

    clerk = agent("clerk", ("act", {"what": "it"}), "done", tools=[node(act)])
    result = await result_of(clerk, case(mocks={"act": "ok"}))
    assert calls(ledger_of(result)) == [("act", {"what": "it"}, "ok", "mock")]
    assert (result.status, desk.marks) == ("passed", []), result.error


async def test_a_declared_fault_breaks_a_node_as_its_own_error_would():
    graph = flow(("START", shout))
    result = await result_of(graph, case(mocks={"shout": fault("no voice")}))
    assert result.error is not None
    assert (result.status, result.error.phase) == ("error", "agent")
    assert "no voice" in result.error.message


async def test_a_node_that_asks_its_user_gets_the_answer(desk: Desk):
    async def ask(node_input: str):
        yield RequestInput(interrupt_id="city", message="Which city?", response_schema=str)

    graph = flow(("START", ask, shout))
    one = case(
        allow_tools=["ask", "shout"],
        user=UserAgents(tools={"adk_request_input": Lines("done in oslo")}),
        metrics=[contains("DONE IN OSLO")],
    )
    result = await result_of(graph, one)
    assert result.status == "passed", result.error
    ledger = ledger_of(result)
    opened = ledger.of(YieldOpened)[0]
    assert (opened.tool, as_object(opened.args)["message"]) == ("adk_request_input", "Which city?")
    begun = Ledger.loads(Ledger(ledger[: ledger.of(Answered)[0].seq + 1]).dumps())
    resumed = await simulate(one, flow(("START", ask, shout)), ledger=begun)
    assert q.response(resumed) == "DONE IN OSLO"


async def test_what_was_done_before_a_pause_is_not_done_again(desk: Desk):
    def first(node_input: str) -> str:
        return desk.mark("first")

    async def ask(node_input: str):
        yield RequestInput(interrupt_id="city", message="Which city?", response_schema=str)

    graph = flow(("START", agent("clerk", "well"), first, ask, shout))
    one = case(
        mocks={"first": "once", "shout": "done"},
        allow_tools=["ask"],
        user=UserAgents(tools={"adk_request_input": Lines("Oslo")}),
    )
    result = await result_of(graph, one)
    ledger = ledger_of(result)
    assert (result.status, desk.marks) == ("passed", []), result.error
    assert [tool for tool, *_ in calls(ledger)] == ["first", "ask", "shout"]
    assert len(ledger.of(ModelReplied)) == 1
    paths = [event.path for event in ledger.of(NodeStarted)]
    assert paths == ["@1/flow", *(f"@1/flow/{n}" for n in ("clerk", "first", "ask", "shout"))]


async def test_a_node_that_comes_round_again_has_a_path_of_its_own():
    def again(ctx: Context, rounds: int) -> Event:
        ctx.state["rounds"] = rounds + 1
        return Event(actions=EventActions(route="on" if rounds < 2 else "out"))

    clerk = agent("clerk", "done")
    graph = flow(("START", again, {"on": again, "out": clerk}))
    one = case(allow_tools=["again"], state={"session": {"rounds": 0}})
    result = await result_of(graph, one)
    paths = [event.path for event in ledger_of(result).of(NodeStarted)]
    rounds = ["@1/flow/again", "@1/flow/again#2", "@1/flow/again#3"]
    assert paths == ["@1/flow", *rounds, "@1/flow/clerk"], result.error


@pytest.mark.parametrize("answer", [True, False])
async def test_a_node_that_wants_approval_waits_for_it(desk: Desk, answer: bool):
    def pay(node_input: str) -> Any:
        return desk.mark("paid")

    graph = flow(("START", node(pay, require_confirmation=True), agent("clerk", "done")))
    one = case(mocks={"pay": "ok"}, user=UserAgents(tools={"pay": Lines(answer)}))
    result = await result_of(graph, one)
    ledger = ledger_of(result)
    assert (result.status, desk.marks) == ("passed", []), result.error
    assert [event.tool for event in ledger.of(YieldOpened)] == ["pay"]
    assert [tool for tool, *_ in calls(ledger)] == (["pay"] if answer else [])


async def test_a_workflow_is_played_again_in_the_next_turn():
    graph = App(name="shop", root_agent=flow(("START", shout)))
    turns = [Turn("well"), Turn("done")]
    one = case(says="", turns=turns, allow_tools=["shout"], metrics=[contains("DONE")])
    result = await result_of(graph, one)
    assert result.status == "passed", result.error
    assert q.responses(ledger_of(result)) == ["WELL", "DONE"]
    assert [e.path for e in ledger_of(result).of(NodeStarted)][-1] == "@2/flow/shout"


async def test_the_same_run_is_written_down_the_same_way_twice(desk: Desk):
    graph = flow(("START", FunctionTool(desk.weather), shout))
    one = case(says="Oslo", mocks={"weather": "mild", "shout": "DONE"})
    first, second = [ledger_of(await result_of(graph, one)) for _ in range(2)]
    ids = [[call.id for call in q.tool_calls(ledger)] for ledger in (first, second)]
    assert ids[0] == ids[1]
    assert len(set(ids[0])) == 2


def test_a_graph_is_known_by_its_nodes_edges_and_code():
    def one(node_input: str) -> str:
        return "one"

    def other(node_input: str) -> str:
        return "other"

    other.__name__ = "one"
    plain, again = (AdkBackend(flow(("START", one, shout))) for _ in range(2))
    changed = AdkBackend(flow(("START", other, shout)))
    turned = AdkBackend(flow(("START", shout, one)))
    assert plain.digest == again.digest
    assert len({plain.digest, changed.digest, turned.digest}) == 3
    assert plain.tools is not None
    assert plain.tools["shout"].parameters == ("node_input",)


class OwnAgent(BaseAgent):
    """Does its work in its own code, as a remote agent does."""


@pytest.mark.parametrize(
    "node_of,named",
    [
        (lambda: OwnAgent(name="own"), "OwnAgent"),
        (GoogleSearchTool, "google_search"),
        (lambda: agent("a", code_executor=UnsafeLocalCodeExecutor()), "UnsafeLocalCodeExecutor"),
        (lambda: agent("a", tools=[AgentTool(OwnAgent(name="own"))]), "OwnAgent"),
        (lambda: agent("a", tools=[GoogleSearchTool()]), "google_search"),
    ],
)
def test_what_no_gate_can_hold_is_found_inside_a_graph_too(node_of: Any, named: str):
    with pytest.raises(BadAgent, match=named):
        AdkBackend(flow(("START", Workflow(name="inner", edges=[("START", node_of())]))))


def test_a_node_with_work_of_its_own_kind_is_refused_before_the_run():
    class Own(Node):
        async def run_node_impl(self, *, ctx: Any, node_input: Any):
            yield "done"

    with pytest.raises(BadAgent, match="'own' is a Own"):
        AdkBackend(flow(("START", Own(name="own"))))
