"""Questions to a ledger are answered from its events alone."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.ledger import (
    AgentSaid,
    Answer,
    Answered,
    Decided,
    Event,
    Message,
    ModelReplied,
    NodeEnded,
    NodeStarted,
    Noted,
    RunEnded,
    RunResumed,
    RunStarted,
    ToolBlocked,
    ToolCalled,
    ToolFailed,
    ToolReturned,
    Usage,
    UserSaid,
    Voice,
    cost,
    ended,
    messages,
    models,
    response,
    responses,
    seconds,
    spending,
    spending_by_node,
    started,
    tool_calls,
    trajectory,
    turns,
    usage,
    user_view,
)
from ledger.values import ledger_of


def called(call_id: str, tool: str = "refund", voice: Any = "agent", **args: Any) -> ToolCalled:
    return ToolCalled(call_id=call_id, tool=tool, args=args, voice=voice)


def returned(call_id: str, value: Any, tool: str = "refund", **more: Any) -> ToolReturned:
    return ToolReturned(call_id=call_id, tool=tool, value=value, source="mock", **more)


def replied(**given: Any) -> ModelReplied:
    return ModelReplied(model="m-1", text="...", **given)


def said(text: str) -> Answered:
    return Answered(answers=(Answer(yield_id="y", value=text),))


def answered(tool: str, value: Any) -> Answered:
    return Answered(answers=(Answer(yield_id="y", value=value, tool=tool),))


REFUND: list[Event] = [
    UserSaid(text="Money back."),
    AgentSaid(text="Which order?"),
    said("Order 7."),
    called("c1", order=7),
    returned("c1", {"ok": True}),
    called("c2", order=8),
    ToolFailed(call_id="c2", tool="refund", error="too late", source="mock"),
    called("c3", "mail"),
    called("u1", "think", voice="user"),
    answered("approve", True),
    AgentSaid(text="Done."),
]


def test_tool_calls_come_in_order_each_with_its_end_and_turn() -> None:
    found = tool_calls(ledger_of(*REFUND))
    assert [(c.name, c.args, c.result, c.error, c.source, c.turn) for c in found] == [
        ("refund", {"order": 7}, {"ok": True}, "", "mock", 2),
        ("refund", {"order": 8}, None, "too late", "mock", 2),
        ("mail", {}, None, "", "", 2),
    ]


def test_the_users_own_tool_calls_are_asked_for_apart() -> None:
    assert [c.tool for c in tool_calls(ledger_of(*REFUND), "user")] == ["think"]


def test_a_refused_call_is_no_tool_call() -> None:
    blocked = ToolBlocked(call_id="c", tool="refund", args={}, why="no mock")
    assert tool_calls(ledger_of(blocked)) == []


def test_calls_that_end_in_another_order_keep_the_order_they_were_made_in() -> None:
    ledger = ledger_of(
        called("c1", n=1), called("c2", n=2), returned("c2", "b"), returned("c1", "a")
    )
    assert [(c.args, c.result) for c in tool_calls(ledger)] == [({"n": 1}, "a"), ({"n": 2}, "b")]


def test_what_is_done_to_a_call_record_is_not_done_to_the_ledger() -> None:
    ledger = ledger_of(called("c1", lines=[1]), returned("c1", {"ok": [True]}))
    record: Any = tool_calls(ledger)[0]
    record.args["lines"].append(2)
    record.result["ok"].append(False)
    again = tool_calls(ledger)[0]
    assert (again.args, again.result) == ({"lines": [1]}, {"ok": [True]})


def test_messages_are_the_conversation_without_tool_answers() -> None:
    assert messages(ledger_of(*REFUND)) == [
        Message("user", "Money back."),
        Message("assistant", "Which order?"),
        Message("user", "Order 7."),
        Message("assistant", "Done."),
    ]


def test_turns_are_rounds_of_the_user() -> None:
    assert turns(ledger_of(*REFUND)) == 3
    assert turns(ledger_of(AgentSaid(text="Hello!"))) == 0


def test_the_response_is_the_last_thing_said_or_none() -> None:
    assert response(ledger_of(*REFUND)) == "Done."
    assert responses(ledger_of(*REFUND)) == ["Which order?", "Done."]
    assert response(ledger_of(UserSaid(text="hi"))) is None


def test_a_trajectory_tells_messages_tools_nodes_and_decisions_in_order() -> None:
    ledger = ledger_of(
        UserSaid(text="hi"),
        NodeStarted(path="@1/clerk", node="clerk", input="hi"),
        called("c1", order=7),
        ToolReturned(call_id="c1", tool="refund", source="mock", seconds=0.5),
        Decided(path="@1/route", choice="billing"),
        NodeEnded(path="@1/clerk", node="clerk"),
        AgentSaid(text="Which order?"),
        said("Order 7."),
        answered("approve", True),
        Noted(name="escalated", data={"level": 2}),
        AgentSaid(text="mine", voice="user"),
    )
    assert [(step.type, step.name, step.args, step.seconds) for step in trajectory(ledger)] == [
        ("message", "user", "hi", 0.0),
        ("node", "clerk", "hi", 4.0),
        ("tool", "refund", {"order": 7}, 0.5),
        ("conditional", "@1/route", "billing", 0.0),
        ("message", "assistant", "Which order?", 0.0),
        ("message", "user", "Order 7.", 0.0),
        ("custom", "escalated", {"level": 2}, 0.0),
    ]


def test_a_trajectory_can_be_filtered_and_asked_of_the_user() -> None:
    ledger = ledger_of(*REFUND)
    tools = trajectory(ledger, keep=lambda step: step.type == "tool")
    assert [step.name for step in tools] == ["refund", "refund", "mail"]
    assert [step.name for step in trajectory(ledger, voice="user")] == ["think"]


def test_usage_is_summed_and_none_when_one_reply_did_not_say() -> None:
    known = [replied(usage=Usage(10, 5)), replied(usage=Usage(1, 2))]
    assert usage(ledger_of(*known)) == Usage(11, 7)
    assert usage(ledger_of(*known, replied())) is None


def test_cost_is_summed_and_none_when_one_price_is_unknown() -> None:
    known = [replied(cost=0.25), replied(cost=0.5)]
    assert cost(ledger_of(*known)) == pytest.approx(0.75)
    assert cost(ledger_of(*known, replied())) is None


def test_a_run_without_a_model_used_and_cost_nothing() -> None:
    assert usage(ledger_of(*REFUND)) == Usage(0, 0)
    assert cost(ledger_of(*REFUND)) == 0.0


def test_the_users_spending_is_asked_for_apart() -> None:
    mine = replied(cost=1.0, usage=Usage(1, 1))
    users = replied(cost=None, usage=Usage(5, 5), voice="user")
    ledger = ledger_of(mine, users)
    assert (usage(ledger), usage(ledger, "user")) == (Usage(1, 1), Usage(5, 5))
    assert (cost(ledger), cost(ledger, "user")) == (1.0, None)


def test_models_are_counted_and_labelled_unless_live() -> None:
    ledger = ledger_of(replied(), replied(), replied(source="cached"))
    assert models(ledger) == {"m-1": 2, "m-1 (cached)": 1}


def test_spending_is_told_by_the_static_node_in_every_round_and_attempt() -> None:
    by_node = spending_by_node(
        ledger_of(
            replied(node="loop#/clerk", path="@1/loop#1/clerk", usage=Usage(10, 5), cost=0.25),
            replied(node="loop#/clerk", path="@1/loop#2/clerk~2", usage=Usage(20, 5), cost=0.5),
            replied(node="loop#/judge", usage=Usage(1, 1), cost=1.0),
            replied(node="loop#/clerk", usage=Usage(99, 99), cost=9.0, voice="user"),
        )
    )
    assert [*by_node] == ["loop#/clerk", "loop#/judge"]
    clerk = by_node["loop#/clerk"]
    assert (clerk.calls, clerk.usage, clerk.cost) == (2, Usage(30, 10), 0.75)
    assert by_node["loop#/judge"].models == {"m-1": 1}


def test_one_unknown_price_leaves_its_node_unknown_with_what_is_known_of_it() -> None:
    by_node = spending_by_node(
        ledger_of(
            replied(node="a", usage=Usage(1, 1), cost=0.25),
            replied(node="a"),
            replied(node="b", usage=Usage(2, 2), cost=0.5),
        )
    )
    assert (by_node["a"].usage, by_node["a"].cost, by_node["a"].known_cost) == (None, None, 0.25)
    assert (by_node["b"].usage, by_node["b"].cost, by_node["b"].known_cost) == (
        Usage(2, 2),
        0.5,
        0.5,
    )


def test_what_no_node_is_known_for_stands_apart_and_unseen_calls_keep_it_unknown() -> None:
    by_node = spending_by_node(ledger_of(replied(usage=Usage(1, 1), cost=0.25)))
    assert by_node[""].cost == 0.25
    opaque = RunStarted(run_id="r", opaque=("models",))
    seen = replied(node="a", usage=Usage(1, 1), cost=0.25)
    by_node = spending_by_node(ledger_of(opaque, seen))
    assert (by_node["a"].cost, by_node[""].cost, by_node[""].calls) == (0.25, None, 0)
    assert spending_by_node(ledger_of()) == {}


REPLIES = st.builds(
    replied,
    node=st.sampled_from(["", "a", "seq.0/b"]),
    usage=st.none() | st.builds(Usage, st.integers(0, 9), st.integers(0, 9)),
    cost=st.none() | st.integers(0, 8).map(lambda eighths: eighths / 8),
    voice=st.sampled_from(["agent", "user"]),
)


@given(st.lists(REPLIES, max_size=8), st.booleans(), st.sampled_from(["agent", "user"]))
def test_the_nodes_together_are_the_whole(
    replies: list[ModelReplied], is_opaque: bool, voice: Voice
) -> None:
    begun = RunStarted(run_id="r", opaque=("models",) if is_opaque else ())
    ledger = ledger_of(begun, *replies)
    whole, parts = spending(ledger, voice), [*spending_by_node(ledger, voice).values()]
    assert whole.calls == sum(part.calls for part in parts)
    assert whole.known_cost == sum(part.known_cost for part in parts)
    costs = [part.cost for part in parts]
    assert whole.cost == (None if None in costs else sum(cost or 0.0 for cost in costs))
    usages = [part.usage for part in parts]
    known = [usage for usage in usages if usage is not None]
    assert whole.usage == (sum(known, Usage()) if len(known) == len(usages) else None)


def timed(*entries: tuple[Event, float]) -> Any:
    ledger = ledger_of()
    for event, at in entries:
        ledger.append(event, at=at)
    return ledger


def test_time_between_a_cut_and_its_resumption_does_not_count() -> None:
    ledger = timed(
        (UserSaid(text="hi"), 100.0),
        (AgentSaid(text="one"), 103.0),
        (RunResumed(), 9000.0),
        (UserSaid(text="more"), 9002.0),
        (RunResumed(), 20000.0),
        (RunEnded(reason="completed"), 20001.0),
    )
    assert seconds(ledger) == 6.0


def test_an_empty_ledger_has_an_answer_to_everything() -> None:
    empty = ledger_of()
    assert (seconds(empty), turns(empty), messages(empty), tool_calls(empty)) == (0.0, 0, [], [])
    assert (started(empty), ended(empty), response(empty)) == (None, None, None)


def test_a_run_is_over_when_its_last_event_says_so() -> None:
    ledger = ledger_of(RunStarted(run_id="r"), UserSaid(text="hi"))
    assert (started(ledger), ended(ledger)) == (ledger[0], None)
    end = ledger.append(RunEnded(reason="completed"), at=2.0)
    assert ended(ledger) == end


def test_the_users_side_is_a_view_of_its_own() -> None:
    assert [type(event) for event in user_view(ledger_of(*REFUND))] == [ToolCalled]
