"""What a metric needs and a record does not hold: no metric takes it for nothing.

For every registered metric facts are removed from whole ledgers. The outcome is then the same as before,
or there is none.
"""

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from typing import Any, get_args

import pytest

from greenroom.cases import Case, Expect, Score, SimulatedUser, Turn, Unmeasured, case_data
from greenroom.cases.criteria import Criterion
from greenroom.cases.scores import NotApplicable, Outcome
from greenroom.errors import BadMetric
from greenroom.ledger import (
    AgentSaid,
    Change,
    Decided,
    InvocationEnded,
    InvocationStarted,
    Ledger,
    ModelCalled,
    ModelReplied,
    NodeEnded,
    NodeStarted,
    RunEnded,
    RunStarted,
    ToolCall,
    ToolCalled,
    ToolFailed,
    ToolReturned,
    Usage,
    UserSaid,
    call,
)
from greenroom.ledger.events import Unseen
from greenroom.metrics import metric
from greenroom.metrics.definition import as_metric
from greenroom.metrics.expectations import expectations
from greenroom.metrics.needs import needs_of
from greenroom.metrics.registry import METRICS
from greenroom.metrics.scores import await_unguarded, measure_trial
from greenroom.suite import score
from greenroom.testing.unseen import unseen_in
from greenroom.world import LiveWorld
from metrics.judges.asked import Asked, evidence_in

KINDS: tuple[Unseen, ...] = get_args(Unseen)
SUBSETS: list[tuple[Unseen, ...]] = [
    *((one,) for one in KINDS),
    *combinations(KINDS, 2),
    KINDS,
    ("args", "results", "words", "user"),  # spans without content
    ("times", "state", "nodes"),  # messages of a log
]
CASE = Case(
    "order",
    turns=[
        Turn(
            "Where is order 7?",
            Expect(
                tools=[call("track", order=7), "mail"],
                response="It is in Lyon.",
                contains="Lyon",
                reference="It is in Lyon.",
                state={"session": {"place": "Lyon"}},
                intermediate=["Let me look."],
            ),
        ),
        Turn("Thanks!", Expect(tools=[], contains="welcome")),
    ],
    metadata={"shop": "north"},
)


def reply(n: int, text: str, *calls: ToolCall) -> list[Any]:
    place: dict[str, Any] = {"path": f"@{n // 2 + 1}/desk", "node": "desk", "agent": "desk", "n": n}
    usage = Usage(100, 20)
    return [
        ModelCalled(**place, model="m"),
        ModelReplied(
            **place,
            model="m",
            text=text,
            calls=calls,
            usage=usage,
            cost=0.01,
            seconds=1.0,
            first=0.2,
        ),
    ]


def whole(case: Case = CASE) -> Ledger:
    at: dict[str, Any] = {"path": "@1/desk"}
    events: list[Any] = [
        RunStarted(run_id="r", case=case_data(case), state={"session": {"place": ""}}),
        UserSaid(text="Where is order 7?"),
        InvocationStarted(path="@1", input="Where is order 7?"),
        NodeStarted(path="@1/desk", node="desk"),
        *reply(0, "Let me look.", ToolCall("track", {"order": 7}, "a"), ToolCall("mail", {}, "b")),
        ToolCalled(**at, call_id="a", tool="track", args={"order": 7}),
        ToolReturned(
            **at,
            call_id="a",
            tool="track",
            source="live",
            value={"place": "Lyon"},
            changes=(Change("session", ("place",), "set", "Lyon"),),
            seconds=2.0,
        ),
        ToolCalled(**at, call_id="b", tool="mail", args={"to": "ann@example.com"}),
        ToolFailed(**at, call_id="b", tool="mail", source="live", error="no mail"),
        *reply(1, "It is in Lyon."),
        Decided(path="@1/desk", choice="done"),
        NodeEnded(path="@1/desk", node="desk", output="It is in Lyon."),
        AgentSaid(path="@1", text="It is in Lyon."),
        InvocationEnded(path="@1", outcome="turn_over", output="It is in Lyon."),
        UserSaid(text="Thanks!"),
        InvocationStarted(path="@2", input="Thanks!"),
        NodeStarted(path="@2/desk", node="desk"),
        *reply(2, "You are welcome, sadly."),
        NodeEnded(path="@2/desk", node="desk", output="You are welcome, sadly."),
        AgentSaid(path="@2", text="You are welcome, sadly."),
        InvocationEnded(path="@2", outcome="turn_over"),
        RunEnded(reason="completed"),
    ]
    ledger = Ledger()
    for number, event in enumerate(events):
        ledger.append(event, 1000.0 + number)
    return ledger


def plainly(*given: dict[str, Any]) -> list[Callable[[str], Any]]:
    return [lambda name, o=options: as_metric(Criterion(name, options=o)) for options in given]


MADE: dict[str, list[Callable[[str], Any]]] = {
    **dict.fromkeys(
        ("called", "tool_use"),
        plainly(
            {"tool": "track"},
            {"tool": "track", "args": {"order": 7}},
            {"tool": "track", "args": {"order": 8}, "never": True},
            {"tool": "mail", "never": True},
            {"tool": "refund", "never": True},
        ),
    ),
    "forbidden_calls": plainly({"tools": ["mail"]}, {"tools": ["refund"]}),
    "handed_over": plainly({"to": "clerk"}, {"to": "clerk", "never": True}),
    **dict.fromkeys(
        ("tool_trajectory_avg_score", "trajectory_match"),
        plainly({}, {"match_type": "STRICT"}, {"match_type": "ANY_ORDER"}),
    ),
    "tool_name_match": plainly({}),
    "node_sequence": plainly({"nodes": ["desk", "desk"]}, {"nodes": ["clerk"]}),
    "efficiency": plainly({}, {"calls": 1}, {"calls": 0}),
    "tokens_within": plainly({"total": 400}, {"total": 10}),
    "turns_within": plainly({"at_most": 2}, {"at_most": 1}),
    **dict.fromkeys(
        ("turn_within", "first_answer_within", "first_words_within", "model_within"),
        plainly({"seconds": 100.0}, {"seconds": 0.001}),
    ),
    "state_matches": plainly(
        {"query": {"session": {"place": "Lyon"}}}, {"query": {"session": {"place": ""}}}
    ),
    "completed_within": plainly({"seconds": 100.0}, {"seconds": 1.0}),
    "contains": plainly({"given": ["welcome"]}, {"given": ["sorry"]}),
    "cost_within": plainly({"usd": 1.0}, {"usd": 0.001}),
    "event_count": plainly(
        *(
            {"kind": kind, bound: 1}
            for kind in ("message", "user_message", "agent_message", "tool_call", "tool_result")
            for bound in ("at_least", "at_most")
        ),
        *(
            {"kind": kind, bound: 1}
            for kind in (
                "model_call",
                "model_reply",
                "yield",
                "tool_failed",
                "node_started",
                "decided",
            )
            for bound in ("at_least", "at_most")
        ),
    ),
    "exact": plainly({"text": "You are welcome, sadly."}, {"text": "No."}),
    "matches": plainly({"pattern": "welcome"}, {"pattern": "sorry"}),
    "state_is": plainly(
        {"scope": "session", "key": "place", "value": "Lyon"},
        {"scope": "session", "key": "place", "value": "Rome"},
    ),
    "kept_contract": plainly({}),
    "recorded_verdict": plainly({}),
    "response_match_score": plainly({}, {"kind": "rougeL"}),
    "reference_recall": plainly({}),
    "intermediate_responses": plainly({}),
    "keywords": plainly({"words": ["welcome"]}, {"words": ["sorry"]}),
    "tone": plainly({}, {"negative_words": ["sadly", "no", "never", "sorry"]}),
    "json_schema": plainly({"schema": {"type": "object"}}),
}
RUBRICS = {"rubrics": ["It is short."]}
JUDGES: dict[str, dict[str, Any]] = {
    "factual_accuracy": {},
    "final_response_match_v2": {},
    "hallucinations_v1": {},
    "judge": {"name": "it", "question": "Is it kind?"},
    "jury": {"judges": [{"name": "it", "question": "Is it kind?"}]},
    "llm_judge": {"prompt": "Is it kind?"},
    "response_evaluation_score": {},
    "rubric_based_final_response_quality_v1": RUBRICS,
    "rubric_based_tool_use_quality_v1": RUBRICS,
    "safety_v1": {},
    "goals_achieved": {},
    "simulator_quality": {},
    "per_turn_user_simulator_quality_v1": {},
}
ASKS = [name for name in JUDGES if "simulator" not in name and name not in ("jury", "judge")]
READS: dict[str, set[str]] = {
    "messages": {"words", "user"},
    "user_messages": {"user"},
    "response": {"words"},
    "responses": {"words"},
    "tool_calls": {"tools", "args", "results"},
    "final_state": {"state"},
}
"""What each field of the evidence is made of."""


async def outcome(one: Any, ledger: Ledger, case: Case = CASE) -> Outcome:
    found = await measure_trial(
        ledger, case, {"it": one}, LiveWorld(Ledger()), await_unguarded, 60, attempts=1
    )
    return found["it"]


def told(found: Outcome) -> tuple[Any, ...]:
    return (found.value, found.passed) if isinstance(found, Score) else (type(found),)


async def check(one: Any, case: Case = CASE) -> int:
    """Remove facts in every way; how many outcomes went away is returned."""
    before = await outcome(one, whole(case), case)
    gone = 0
    for subset in SUBSETS:
        after = await outcome(one, unseen_in(whole(case), subset), case)
        if isinstance(after, Unmeasured):
            gone += not isinstance(before, Unmeasured)
            continue
        assert told(after) == told(before), f"{one!r} without {subset}: {before} became {after}"
    return gone


def test_every_registered_metric_is_tried_here():
    assert set(METRICS.names()) == {*MADE, *JUDGES}


@pytest.mark.parametrize("name", MADE)
async def test_facts_that_are_removed_change_no_outcome_but_take_it_away(name):
    for make in MADE[name]:
        await check(make(name))


@pytest.mark.parametrize("name", ASKS)
async def test_no_judge_is_shown_that_nothing_happened_where_nothing_was_recorded(name):
    goal = replace(CASE, turns=(), says="Hi", user=SimulatedUser(goal="find the order"))
    case = goal if name == "goals_achieved" else CASE
    shown = 0
    for subset in ((), *SUBSETS):
        model = Asked(then={"reasoning": "", "verdict": True})
        made = as_metric(Criterion(name, options={"model": model, **JUDGES[name]}))
        await outcome(made, unseen_in(whole(case), subset), case)
        for request in model.requests:
            shown += 1
            for field, value in evidence_in(request).items():
                if READS.get(field, set()) & set(subset) or (
                    field == "tool_calls" and "tools" in subset
                ):
                    assert value is None, f"{name} without {subset} is shown {field}: {value!r}"
    assert shown, "the judge is asked at all"


async def test_expectations_of_a_case_are_no_exception():
    for one in expectations(CASE).values():
        assert await check(one)


@pytest.mark.parametrize("name", MADE)
def test_every_registered_metric_says_what_it_needs(name):
    for make in MADE[name]:
        made = make(name)
        assert hasattr(made, "needs") or hasattr(made, "needs_for"), name


async def test_a_metric_that_needs_more_than_it_says_is_found():
    class Greedy:
        name = "greedy"
        needs = frozenset[str]()

        def measure(self, case: Any, ledger: Any, world: Any) -> Score:
            return Score(not ledger.of(ToolCalled))

    with pytest.raises(AssertionError, match="without"):
        await check(Greedy())


def never_says_sorry(responses: list[str]) -> bool:
    return not any("sorry" in text for text in responses)


def used_results(tool_calls: Any) -> bool:
    return all(call.result or call.error for call in tool_calls)


def quick(seconds: float) -> bool:
    return seconds < 100


def asked_politely(messages: Any) -> bool:
    return any("Thanks" in one.text for one in messages if one.role == "user")


def cheap(cost: float) -> bool:
    return cost < 1


def quiet(ledger: Ledger) -> bool:
    return not ledger.of(ToolCalled)


def calm(events: Any) -> bool:
    return len(events) > 3


def knows(state: Any) -> bool:
    return state["session"]["place"] == "Lyon"


def around(result: Any) -> bool:
    return bool(result.responses)


@pytest.mark.parametrize(
    "function",
    [never_says_sorry, used_results, quick, asked_politely, cheap, quiet, calm, knows, around],
)
async def test_functions_need_what_their_parameters_are_made_of(function):
    assert await check(as_metric(function))


async def test_a_function_that_says_what_it_reads_of_the_ledger_is_measured_on_the_rest():
    @metric(needs=["tools"])
    def tracked(ledger: Ledger) -> bool:
        return any(one.tool == "track" for one in ledger.of(ToolCalled))

    content = unseen_in(whole(), ["words", "user", "args", "results", "times", "state"])
    assert told(await outcome(tracked, content)) == (1.0, True)
    assert isinstance(await outcome(tracked, unseen_in(whole(), ["tools"])), Unmeasured)
    assert isinstance(await outcome(as_metric(quiet), content), Unmeasured)


async def test_a_parameter_that_may_be_none_is_none_where_it_was_not_recorded():
    def if_known(response: str | None) -> bool:
        return response is None

    found = await outcome(as_metric(if_known), unseen_in(whole(), ["words"]))
    assert told(found) == (1.0, True)


def test_what_no_record_holds_cannot_be_needed():
    with pytest.raises(BadMetric, match=r"needs 'thoughts'.*use names from models, tools"):
        metric(quiet, needs=["thoughts"])  # pyright: ignore[reportArgumentType]


def test_a_metric_that_says_nothing_needs_everything():
    class Silent:
        name = "silent"

    assert needs_of(Silent(), CASE) == frozenset(KINDS)


async def test_expected_names_of_tools_need_no_arguments():
    by_name = Case("names", turns=[Turn("Hi", Expect(tools=["track", "mail"]))])
    content_off = unseen_in(whole(by_name), ["args", "results", "words", "user"])
    found = await score(content_off, ["tool_trajectory_avg_score"], by_name)
    assert told(found["tool_trajectory_avg_score"]) == (1.0, True)


async def test_a_metric_that_does_not_apply_still_does_not_apply():
    found = await score(unseen_in(whole(), ["tools"]), ["efficiency"], Case("free", says="Hi"))
    assert isinstance(found["efficiency"], NotApplicable)


class Calm:
    """A metric of one's own that only says in an attribute what it needs."""

    name = "calm"

    def __init__(self, needs: object) -> None:
        self.needs = needs

    def measure(self, case: Case, ledger: Ledger, world: Any) -> Score:
        return Score(not ledger.of(ToolCalled))


@pytest.mark.parametrize("needs", ["tools", ["tools"], {"tools"}, frozenset({"tools"})])
async def test_an_object_is_unmeasured_where_what_its_attribute_names_was_not_recorded(
    needs: object,
):
    assert isinstance(await outcome(Calm(needs), unseen_in(whole(), ["tools"])), Unmeasured)


@pytest.mark.parametrize("needs", ["tool", ["tols"], [None], 5])
def test_an_attribute_that_names_what_no_record_holds_is_refused(needs: object):
    with pytest.raises(BadMetric, match=r"metric 'calm'.*needs"):
        as_metric(Calm(needs))  # pyright: ignore[reportArgumentType]
