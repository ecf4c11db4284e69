"""The ledger holds everything that happened, once and in order."""

import asyncio
from itertools import pairwise

from greenroom.cases.case import Turn
from greenroom.cases.mocks import in_turn
from greenroom.ledger import questions as q
from greenroom.ledger.changes import WithStateChange, append, with_state_change
from greenroom.ledger.events import (
    AgentSaid,
    InvocationEnded,
    InvocationStarted,
    ModelCalled,
    ModelReplied,
    NodeEnded,
    NodeStarted,
    StateConflicted,
    ToolCalled,
    ToolReturned,
    UserSaid,
)
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.messages import ToolCall
from greenroom.metrics.node_state import state_after_node
from greenroom.testing.blueprints import USAGE, Blueprint, Desk, HandOver, ToolPlan
from greenroom.testing.conformance.base import (
    FEATURES,
    PAY,
    WEATHER,
    Conformance,
    RecordingWorld,
    case,
    describe,
    ledger_of,
    needs,
)

# The kinds whose order is checked; nodes nest freely and are checked separately.
_ORDERED = (
    "user_said",
    "invocation_started",
    "model_called",
    "model_replied",
    "tool_called",
    "tool_returned",
    "agent_said",
    "invocation_ended",
)


def kinds(ledger: Ledger) -> list[str]:
    """The kinds of the events that have one right order."""
    found = [event.kind for event in ledger]
    return [kind for kind in found if kind in _ORDERED]


def _fine_in(city: str) -> str:
    return f"fine in {city}"


class Events(Conformance):
    """Messages, calls and results, models, nodes: complete and in order."""

    def test_what_the_backend_declares_is_known(self) -> None:
        backend = self.harness.backend
        assert backend.name
        assert backend.models in ("routed", "observed", "opaque")
        assert backend.tool_calls in ("routed", "observed", "opaque")
        assert backend.resumes in ("exact", "checkpoint", "by_replay", "no")
        assert backend.supports <= set(FEATURES)

    def test_a_message_and_its_answer_are_recorded(self) -> None:
        result = self.result(self.agent("all done"), case())
        ledger = ledger_of(result)
        assert result.status == "passed", describe(result)
        assert [event.text for event in ledger.of(UserSaid)] == ["hello"]
        assert [event.text for event in ledger.of(AgentSaid)] == ["all done"]
        assert [event.input for event in ledger.of(InvocationStarted)] == ["hello"]
        (end,) = ledger.of(InvocationEnded)
        assert (end.outcome, end.output) == ("turn_over", "all done")

    @needs(tools=True, models=True)
    def test_the_events_of_a_turn_with_a_tool_are_complete_and_in_order(self, desk: Desk) -> None:
        agent = self.agent(WEATHER, "done", tools=[desk.weather])
        result = self.result(agent, case(mocks={"weather": "fine"}))
        assert kinds(ledger_of(result)) == [
            "user_said",
            "invocation_started",
            "model_called",
            "model_replied",
            "tool_called",
            "tool_returned",
            "model_called",
            "model_replied",
            "agent_said",
            "invocation_ended",
        ]

    @needs(tools=True, models=True)
    def test_a_call_keeps_its_id_from_the_reply_to_the_result(self, desk: Desk) -> None:
        agent = self.agent(WEATHER, "done", tools=[desk.weather])
        ledger = ledger_of(self.result(agent, case(mocks={"weather": "fine"})))
        (wanted,) = ledger.of(ModelReplied)[0].calls
        assert (wanted.tool, wanted.args) == ("weather", {"city": "Oslo"})
        assert wanted.id
        assert [event.call_id for event in ledger.of(ToolCalled)] == [wanted.id]
        assert [event.call_id for event in ledger.of(ToolReturned)] == [wanted.id]

    @needs("parallel_calls", tools=True, models=True)
    def test_calls_made_at_once_are_kept_apart(self, desk: Desk) -> None:
        rome = ToolCall("weather", {"city": "Rome"}, "call-rome")
        agent = self.agent([WEATHER, rome, PAY], "done", tools=[desk.weather, desk.pay])
        mocks = {"weather": _fine_in, "pay": "paid"}
        result = self.result(agent, case(mocks=mocks))
        assert result.status == "passed", describe(result)
        ledger = ledger_of(result)
        wanted = {call.id: call.args for call in ledger.of(ModelReplied)[0].calls}
        assert len(wanted) == 3
        calls = q.tool_calls(ledger)
        assert {call.id: call.args for call in calls} == wanted
        results = {str(call.args.get("city") or call.tool): call.result for call in calls}
        assert results == {"Oslo": "fine in Oslo", "Rome": "fine in Rome", "pay": "paid"}
        assert desk.marks == []

    @needs("parallel_calls", tools=True, models=True)
    def test_calls_that_a_model_gives_one_id_are_all_made(self, desk: Desk) -> None:
        zero = [ToolCall("weather", {"city": "Oslo"}, "0"), ToolCall("pay", PAY.args, "0")]
        agent = self.agent(zero, zero, "done", tools=[desk.weather, desk.pay])
        mocks = {"weather": in_turn("cold", "colder"), "pay": in_turn("paid", "paid again")}
        result = self.result(agent, case(mocks=mocks))
        assert result.status == "passed", describe(result)
        calls = q.tool_calls(ledger_of(result))
        answers = sorted((call.tool, str(call.result)) for call in calls)
        assert answers == [
            ("pay", "paid"),
            ("pay", "paid again"),
            ("weather", "cold"),
            ("weather", "colder"),
        ]
        assert desk.marks == []

    @needs("parallel_calls", tools=True, models=True)
    def test_calls_made_at_once_change_the_state_in_their_order(self, desk: Desk) -> None:
        cities = [
            ToolCall("weather", {"city": city}, f"call-{city}") for city in ("Oslo", "Rome", "Ulm")
        ]
        agent = self.agent(cities, "done", tools=[desk.weather])
        mocks = {"weather": _noted_late}
        given = {"session": {"seen": ["Bonn"], "last": ""}}
        result = self.result(agent, case(mocks=mocks, state=given))
        assert result.status == "passed", describe(result)
        ledger = ledger_of(result)
        held = q.state(ledger)["session"]
        assert (held["seen"], held["last"]) == (["Bonn", "Oslo", "Rome", "Ulm"], "Ulm")
        assert {event.key for event in ledger.of(StateConflicted)} == {"last"}
        assert desk.marks == []

    @needs("state", "turns", tools=True)
    def test_what_an_answer_changed_stays_over_the_turns(self, desk: Desk) -> None:
        agent = self.agent(WEATHER, "fine", "done", tools=[desk.weather])
        mocks = {"weather": with_state_change("fine", {"session": {"topic": "rain", "n": 5}})}
        given = {"session": {"topic": "sun", "n": 1}}
        turns = [Turn("hello"), Turn("and then?")]
        result = self.result(agent, case(says="", turns=turns, mocks=mocks, state=given))
        assert result.status == "passed", describe(result)
        held = q.state(ledger_of(result))["session"]
        assert (held["topic"], held["n"]) == ("rain", 5)

    @needs("parallel_calls", tools=True, models=True)
    def test_the_model_hears_every_result(self, desk: Desk) -> None:
        backend = self.backend([WEATHER, PAY], "done", tools=[desk.weather, desk.pay])
        world = RecordingWorld({"weather": "sunny", "pay": "paid in full"})
        asyncio.run(backend.advance(world.ledger, world))
        results = {m.call_id: m.text for m in world.asked[-1].messages if m.role == "tool"}
        called = {event.tool: event.call_id for event in world.ledger.of(ToolCalled)}
        assert "sunny" in results[called["weather"]]
        assert "paid in full" in results[called["pay"]]

    @needs(models=True)
    def test_a_model_call_names_its_agent_its_model_and_its_number(self, desk: Desk) -> None:
        agent = self.agent(WEATHER, "done", tools=[desk.weather])
        ledger = ledger_of(self.result(agent, case(mocks={"weather": "fine"})))
        called, replied = ledger.of(ModelCalled), ledger.of(ModelReplied)
        assert [event.n for event in called] == [event.n for event in replied] == [0, 1]
        assert {event.agent for event in (*called, *replied)} == {"clerk"}
        assert all(event.model for event in replied)
        assert called[0].tools == ("weather",)
        assert [event.source for event in replied] == ["live", "live"]

    @needs("usage", models=True)
    def test_a_model_call_says_what_it_used(self, desk: Desk) -> None:
        agent = self.agent(WEATHER, "done", tools=[desk.weather])
        result = self.result(agent, case(mocks={"weather": "fine"}))
        ledger = ledger_of(result)
        assert [event.usage for event in ledger.of(ModelReplied)] == [USAGE, USAGE]
        assert result.usage == USAGE + USAGE
        by_node = q.spending_by_node(ledger)
        assert "" not in by_node, "which node asked is known"
        assert [spent.usage for spent in by_node.values()] == [USAGE + USAGE]

    def test_what_is_entered_is_left(self) -> None:
        ledger = ledger_of(self.result(self.agent("done"), case()))
        begun = {event.path: event.seq for event in ledger.of(NodeStarted)}
        ended = {event.path: event.seq for event in ledger.of(NodeEnded)}
        assert begun
        assert begun.keys() == ended.keys()
        assert all(seq < ended[path] for path, seq in begun.items())

    @needs(models=True, tools=True)
    def test_models_and_tools_are_called_inside_a_node(self, desk: Desk) -> None:
        agent = self.agent(WEATHER, "done", tools=[desk.weather])
        ledger = ledger_of(self.result(agent, case(mocks={"weather": "fine"})))
        begun = {event.path: event.seq for event in ledger.of(NodeStarted)}
        for event in ledger.of(ModelCalled, ToolCalled):
            assert any(
                event.path == path or event.path.startswith(f"{path}/")
                for path, seq in begun.items()
                if seq < event.seq
            ), event

    @needs("handoffs", models=True)
    def test_a_handover_enters_the_helper_after_the_agent(self, desk: Desk) -> None:
        helper = Blueprint(name="helper", lines=[WEATHER, "done"], tools=[ToolPlan(desk.weather)])
        agent = self.agent(HandOver("helper"), helpers=[helper])
        result = self.result(agent, case(mocks={"weather": "fine"}))
        assert result.status == "passed", describe(result)
        ledger = ledger_of(result)
        entered = [event.node.rpartition("/")[2] for event in ledger.of(NodeStarted)]
        assert entered.index("clerk") < entered.index("helper")
        left = {event.node.rpartition("/")[2] for event in ledger.of(NodeEnded)}
        assert {"clerk", "helper"} <= left
        asked = [event.agent for event in ledger.of(ModelReplied)]
        assert asked == ["clerk", "helper", "helper"]

    @needs("state")
    def test_state_goes_in_and_comes_out(self) -> None:
        result = self.result(
            self.agent("all done", writes="answer"),
            case(state={"session": {"order": 7}}),
        )
        assert result.status == "passed", describe(result)
        assert q.state(ledger_of(result))["session"] == {"order": 7, "answer": "all done"}

    @needs("state")
    def test_the_state_after_a_node_holds_what_the_node_changed(self) -> None:
        result = self.result(self.agent("all done", writes="answer"), case())
        ledger = ledger_of(result)
        last = ledger.of(NodeEnded)[-1].node
        found = state_after_node(ledger, last, "state")
        assert isinstance(found, dict), found
        assert found["session"]["answer"] == "all done"

    def test_time_only_goes_forward(self) -> None:
        ledger = ledger_of(self.result(self.agent("done"), case()))
        assert all(a.at <= b.at for a, b in pairwise(ledger))
        assert [event.seq for event in ledger] == list(range(len(ledger)))

    def test_the_snapshot_changes_with_the_agent_and_not_by_itself(self, desk: Desk) -> None:
        one, same = (self.backend("done", tools=[desk.weather]) for _ in range(2))
        other = self.backend("done", tools=[desk.weather], instructions="Be rude.")
        assert one.digest == same.digest != other.digest
        assert Ledger.loads(ledger_of(self.result(one, case())).dumps())

    @needs(tools=True)
    def test_the_tools_are_known_before_the_run(self, desk: Desk) -> None:
        known = self.backend("done", tools=[desk.weather, desk.pay]).tools
        assert known is None or {name: known[name].parameters for name in known} == {
            "weather": ("city", "days"),
            "pay": ("amount",),
        }


async def _noted_late(city: str) -> WithStateChange[str]:
    """Answer sooner the later it is asked."""
    for _ in range({"Oslo": 12, "Rome": 6}.get(city, 0)):
        await asyncio.sleep(0)
    return with_state_change("noted", {"session": {"seen": append(city), "last": city}})
