"""Every call that was made counts, whatever ids a model, a framework or a foreign ledger repeats."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from greenroom import Agent, Case, Expect, Ledger, Stop, score, simulate, tool
from greenroom.cases import in_turn
from greenroom.ledger import (
    Answered,
    Event,
    ModelReplied,
    RunEnded,
    RunResumed,
    RunStarted,
    ToolCall,
    ToolCalled,
    ToolFailed,
    ToolReturned,
    UserSaid,
    YieldOpened,
    tool_calls,
)
from greenroom.metrics import called, efficiency, forbidden_calls, tool_trajectory_avg_score
from greenroom.models import ModelReply, ModelRequest, OnDelta
from greenroom.reports.transcript import transcript
from greenroom.world.live import LiveWorld
from greenroom.world.world import ToolRequest


def began(call_id: str, tool: str, n: int = 0, **args: object) -> ToolCalled:
    return ToolCalled(path="@1/a", call_id=call_id, tool=tool, args=args, n=n)  # pyright: ignore[reportArgumentType]


def ended(call_id: str, tool: str, value: object) -> ToolReturned:
    return ToolReturned(path="@1/a", call_id=call_id, tool=tool, value=value, source="live")  # pyright: ignore[reportArgumentType]


def ledger_of(*events: Event) -> Ledger:
    ledger = Ledger()
    for event in (
        RunStarted(run_id="r"),
        UserSaid(text="go"),
        *events,
        RunEnded(reason="completed"),
    ):
        ledger.append(replace(event), at=float(len(ledger)))
    return Ledger.loads(ledger.dumps())


DELETED = (
    began("x", "delete_all"),
    ended("x", "delete_all", "gone"),
    began("x", "look"),
    ended("x", "look", "seen"),
)


async def test_a_forbidden_call_is_seen_though_a_later_one_bears_its_id() -> None:
    ledger = ledger_of(*DELETED)
    found = await score(ledger, [forbidden_calls("delete_*"), called("delete_all"), called("look")])
    assert [one.passed for one in found.values()] == [False, True, True]  # pyright: ignore[reportAttributeAccessIssue]


def test_each_call_of_one_id_has_its_own_end() -> None:
    calls = tool_calls(ledger_of(*DELETED))
    assert [(call.tool, call.result) for call in calls] == [
        ("delete_all", "gone"),
        ("look", "seen"),
    ]


def test_calls_of_one_id_that_end_in_another_order_are_told_apart_by_their_tool() -> None:
    ledger = ledger_of(DELETED[0], DELETED[2], DELETED[3], DELETED[1])
    calls = tool_calls(ledger)
    assert [(call.tool, call.result) for call in calls] == [
        ("delete_all", "gone"),
        ("look", "seen"),
    ]


def test_a_transcript_shows_each_call_of_one_id_with_its_answer() -> None:
    shown = [line.text for line in transcript(ledger_of(*DELETED)) if line.who == "tool"]
    assert shown == ['delete_all() → "gone"', 'look() → "seen"']


def test_the_same_call_twice_under_one_id_counts_twice() -> None:
    again = (began("0", "look"), ended("0", "look", 1), began("0", "look"), ended("0", "look", 2))
    assert [call.result for call in tool_calls(ledger_of(*again))] == [1, 2]
    together = (again[0], again[2], again[1], again[3])
    assert [call.result for call in tool_calls(ledger_of(*together))] == [1, 2]


def test_a_call_issued_again_after_a_cut_counts_once() -> None:
    ledger = ledger_of(began("0", "look"), RunResumed(), began("0", "look"), ended("0", "look", 1))
    assert [call.result for call in tool_calls(ledger)] == [1]


def test_a_call_that_runs_again_once_it_is_approved_counts_once() -> None:
    ledger = ledger_of(
        began("0", "pay"),
        ToolFailed(path="@1/a", call_id="0", tool="pay", error="approve me", source="live"),
        YieldOpened(path="@1", yield_id="y", type="tool", tool="pay", call_id="0"),
        Answered(answers=()),
        began("0", "pay"),
        ended("0", "pay", "paid"),
        began("0", "pay"),
        ended("0", "pay", "paid twice"),
    )
    assert [call.result for call in tool_calls(ledger)] == ["paid", "paid twice"]


CALLS = st.lists(st.tuples(st.sampled_from("xy"), st.sampled_from(["a", "b"]), st.booleans()))


@given(CALLS)
def test_as_many_calls_are_told_as_were_made(made: list[tuple[str, str, bool]]) -> None:
    events: list[Event] = []
    for place, (call_id, name, ends) in enumerate(made):
        events.append(began(call_id, name, at=place))
        if ends:
            events.append(ended(call_id, name, place))
    ledger = ledger_of(*events)
    told = tool_calls(ledger)
    assert [(call.id, call.tool, call.args["at"]) for call in told] == [
        (call_id, name, place) for place, (call_id, name, _) in enumerate(made)
    ]
    given_back = [call.result for call in told if call.result is not None]
    assert sorted(map(str, given_back)) == sorted(
        str(place) for place, (_, _, ends) in enumerate(made) if ends
    )


class Zeroes:
    """A model that counts its calls' ids from zero in every reply, or gives all of them one id."""

    name = "zeroes"

    async def respond(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelReply:
        if request.n < 2:
            calls = [ToolCall("delete_all", {}, "0"), ToolCall("look", {"key": "a"}, "0")]
            return ModelReply("", tuple(calls))
        return ModelReply("done " + " ".join(m.text for m in request.messages if m.role == "tool"))


@tool
def delete_all() -> str:
    """Delete."""
    raise AssertionError("a tool body ran in a rehearsal")


@tool
def look(key: str) -> str:
    """Look."""
    raise AssertionError("a tool body ran in a rehearsal")


async def test_a_model_that_gives_every_call_one_id_gets_every_answer() -> None:
    agent = Agent("clerk", model=Zeroes(), tools=[delete_all, look])
    mocks = {"delete_all": in_turn("d1", "d2"), "look": in_turn("l1", "l2")}
    ledger = await simulate(Case("c", says="go", mocks=mocks, stop=Stop(max_turns=1)), agent)
    told = [(call.tool, call.result) for call in tool_calls(ledger)]
    assert told == [("delete_all", "d1"), ("look", "l1"), ("delete_all", "d2"), ("look", "l2")]
    assert len({call.id for call in tool_calls(ledger)}) == 4
    assert ledger.index_of().spoken["@1"].text == "done d1 l1 d2 l2"


async def test_two_calls_of_one_id_at_once_are_both_written_down() -> None:
    ledger = Ledger()
    world = LiveWorld(ledger)

    async def body(_: object) -> str:
        await asyncio.sleep(0)
        return "seen"

    same = [ToolRequest("x", "look", {"key": "a"}) for _ in range(2)]
    await asyncio.gather(*(world.call_tool(one, body) for one in same))
    assert [call.result for call in tool_calls(ledger)] == ["seen", "seen"]
    assert len(ledger.of(ToolCalled)) == 2


async def test_metrics_of_all_kinds_count_calls_of_one_id() -> None:
    ledger = ledger_of(
        ModelReplied(path="@1/a", calls=(ToolCall("delete_all", {}, "x"),)),
        DELETED[0],
        DELETED[1],
        ModelReplied(path="@1/a", calls=(ToolCall("look", {}, "x"),)),
        *DELETED[2:],
    )
    expected = Case("c", says="go", expect=Expect(tools=["delete_all", "look"]))
    found = await score(ledger, [tool_trajectory_avg_score(), efficiency(calls=2)], case=expected)
    assert all(one.passed for one in found.values()), found  # pyright: ignore[reportAttributeAccessIssue]
