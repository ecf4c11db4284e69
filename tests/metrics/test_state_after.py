"""The state after a named node, asked by metrics and by expectations."""

from typing import Annotated, Any, cast

import pytest

from greenroom import Case, Expect, StateSchema, Stop, Turn, rehearse, route, step
from greenroom.agents import Flow, UserScoped
from greenroom.cases.data import case_data
from greenroom.cases.reader import case_from
from greenroom.cases.scores import Score
from greenroom.errors import BadCase, BadInput, BadMetric
from greenroom.metrics import state_is, state_matches
from greenroom.results import CaseResult


class Billing(StateSchema):
    stage: str
    ticket: str | None = None
    tier: Annotated[str, UserScoped] = "basic"


def stage(name: str, value: str) -> Flow:
    return step(lambda: value, name=name, writes=Billing.stage)


FLOW = stage("first", "one") >> stage("second", "two") >> stage("third", "three")


def result_of(flow: Any, **options: Any) -> CaseResult:
    turns = options.pop("turns", ())
    says = "" if turns else "hi"
    (result,) = rehearse(flow, [Case("c", says=says, turns=turns, **options)]).results
    return result


def measured(flow: Any, metric: Any, **options: Any) -> Any:
    result = result_of(flow, metrics=[metric], **options)
    return next(iter(result.scores.values()))


@pytest.mark.parametrize("node", ["first", "seq.0/first"])
def test_the_state_after_a_node_is_not_that_of_the_end(node: str) -> None:
    assert measured(FLOW, state_is(Billing.stage, "one", after=node)).passed
    assert not measured(FLOW, state_is(Billing.stage, "three", after=node)).passed
    assert measured(FLOW, state_is(Billing.stage, "three")).passed
    assert measured(FLOW, state_is("session", "stage", "two", after="second")).passed
    assert measured(FLOW, state_matches({Billing.stage: "two"}, after="second")).passed


def test_a_node_that_never_ran_is_no_success() -> None:
    flow = stage("first", "one") >> route(
        "session.stage", one=stage("a", "x"), otherwise=stage("b", "y")
    )
    for metric in (
        state_is(Billing.stage, query={"$exists": False}, after="b"),
        state_matches({"session": {"stage": {"$exists": False}}}, after="b"),
    ):
        found = measured(flow, metric)
        assert isinstance(found, Score)
        assert not found.passed
        assert "'b' never ran; these did: seq, first, route, a" in found.reason


def test_a_node_that_failed_is_no_success() -> None:
    def broken() -> None:
        raise RuntimeError("no")

    flow = stage("first", "one") >> step(broken)
    found = result_of(flow, metrics=[state_is(Billing.stage, "one", after="broken")])
    assert found.status in ("error", "failed")
    (only,) = found.scores.values()
    assert not (isinstance(only, Score) and only.passed)


def test_in_a_branch_it_is_the_branch_s_own_state() -> None:
    flow = stage("left", "one") | stage("right", "two")
    assert measured(flow, state_is(Billing.stage, "one", after="left")).passed
    assert measured(flow, state_is(Billing.stage, "two", after="right")).passed


def test_a_node_that_ran_several_times_counts_as_it_last_ended() -> None:
    @step
    def count(state: Any) -> int:
        state.session["n"] = state.session.get("n", 0) + 1
        return state.session["n"]

    turns = [Turn("hi"), Turn("again")]
    assert measured(count, state_is("session", "n", 2, after="count"), turns=turns).passed
    by_turn = state_matches({"session": {"n": 1}}, turn=1, after="count")
    assert measured(count, by_turn, turns=turns).passed


def test_expectations_ask_for_the_state_after_nodes() -> None:
    expect = Expect(state_after={"first": {Billing.stage: "one"}, "second": {Billing.stage: "two"}})
    result = result_of(FLOW, turns=[Turn("hi", expect)])
    assert result.status == "passed", result.scores
    wrong = Expect(
        state_after={
            "first": {Billing.stage: "one"},
            "second": {Billing.stage: "three"},
            "nowhere": {Billing.stage: {"$exists": False}},
        }
    )
    result = result_of(FLOW, turns=[Turn("hi", wrong)])
    found = result.scores["expected_state_after"]
    assert isinstance(found, Score)
    assert (result.status, found.value) == ("failed", pytest.approx(1 / 3))
    assert "after 'second' session.stage is 'two'; expected 'three'" in found.reason
    assert "'nowhere' never ran" in found.reason


def test_each_turn_is_asked_by_itself() -> None:
    @step
    def count(state: Any) -> int:
        state.session["n"] = state.session.get("n", 0) + 1
        return state.session["n"]

    turns = [
        Turn("hi", Expect(state_after={"count": {"session": {"n": 1}}})),
        Turn("again", Expect(state_after={"count": {"session": {"n": 2}}})),
    ]
    assert result_of(count, turns=turns).status == "passed"


def test_fields_become_text_places_in_the_data_of_a_case() -> None:
    case = Case(
        "c",
        says="hi",
        state={Billing.tier: "gold", "session": {"x": 1}},
        expect=Expect(
            state={Billing.ticket: None},
            state_after={"first": {Billing.stage: {"$in": ["one"]}}},
        ),
        stop=Stop(state_matches={Billing.ticket: "T-1", Billing.tier: "gold"}),
    )
    data = case_data(case)
    assert data["state"] == {"session": {"x": 1}, "user": {"tier": "gold"}}
    assert data["expect"] == {
        "state": {"session": {"ticket": None}},
        "state_after": {"first": {"session": {"stage": {"$in": ["one"]}}}},
    }
    found: Any = data["stop"]
    assert found["state_matches"] == {"session": {"ticket": "T-1"}, "user": {"tier": "gold"}}
    assert case_from(data) == case


def test_a_case_begins_with_the_state_that_its_fields_say() -> None:
    found = measured(FLOW, state_is(Billing.tier, "gold"), state={Billing.tier: "gold"})
    assert found.passed


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"a": {}},
        {"a": {"session": {}}},
        {"": {"session": {"x": 1}}},
        {"a": 7},
        {7: {"s": {"x": 1}}},
    ],
)
def test_an_expectation_that_asks_for_nothing_is_refused(given: Any) -> None:
    with pytest.raises(BadCase):
        Expect(state_after=given)


def test_what_is_said_twice_is_refused() -> None:
    with pytest.raises(BadInput, match="gives twice"):
        Expect(state={Billing.stage: 1, "session": {"stage": 2}})


@pytest.mark.parametrize(
    "options",
    [{"after": ""}, {"after": 7}, {"key": "x", "value": "y"}, {"where": bool, "key": "x"}],
)
def test_a_metric_that_cannot_be_is_refused(options: Any) -> None:
    with pytest.raises(BadMetric):
        state_is(Billing.stage, **cast("Any", {"key": "one", **options}))


def test_a_field_and_its_text_place_make_the_same_metric() -> None:
    assert repr(state_is(Billing.tier, "gold", after="a")) == (
        "state_is('user', 'tier', 'gold', after='a')"
    )
    assert repr(state_is(Billing.ticket, None)) == "state_is('session', 'ticket', None)"
    assert repr(state_matches({Billing.tier: "gold"})) == (
        "state_matches({'user': {'tier': 'gold'}})"
    )
