"""State in named scopes: cloned from fixtures, changed through events, kept from other cases."""

import asyncio
import time
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom import (
    Agent,
    Case,
    EvalSet,
    Ledger,
    Scripted,
    Stop,
    Turn,
    evaluate,
    fault,
    simulate,
    step,
    tool,
)
from greenroom.ledger import NodeEnded, StateConflicted, messages, state, state_after, state_changes
from greenroom.ledger.changes import apply_changes
from greenroom.metrics import contains
from greenroom.world import Scopes
from rehearsals import caller, end_of, results


@tool
def note(what: str) -> Any:
    """Write something down."""
    raise AssertionError


def noting(what: str, ctx: Any) -> Any:
    ctx.state.session.setdefault("notes", []).append(what)
    ctx.state["patient"]["last"] = what
    return ctx.state.session["notes"]


FIXTURE: dict[str, Any] = {"session": {"notes": ["old"]}, "patient": {"name": "Ada"}}


async def noted(*what: str, fixture: Any = None, **options: Any) -> Ledger:
    case = Case(
        "noted", "Note.", mocks={"note": noting}, state=FIXTURE if fixture is None else fixture
    )
    return await simulate(case, caller(note, *({"what": w} for w in what)), **options)


async def test_a_run_begins_with_its_fixture_and_keeps_what_was_changed() -> None:
    ledger = await noted("fever", "cough")
    assert results(ledger) == [["old", "fever"], ["old", "fever", "cough"]]
    assert state(ledger) == {
        "session": {"notes": ["old", "fever", "cough"]},
        "patient": {"name": "Ada", "last": "cough"},
    }


async def test_a_fixture_is_cloned() -> None:
    fixture = deepcopy(FIXTURE)
    await noted("fever", fixture=fixture)
    assert fixture == FIXTURE


async def test_two_runs_of_one_case_do_not_share_state() -> None:
    one, other = await asyncio.gather(noted("fever"), noted("cough"))
    assert state(one)["session"]["notes"] == ["old", "fever"]
    assert state(other)["session"]["notes"] == ["old", "cough"]


async def test_cases_that_share_a_fixture_do_not_share_state() -> None:
    cases = [
        Case(
            f"c{i}",
            "Note.",
            mocks={"note": noting},
            state=FIXTURE,
            agent=caller(note, {"what": "x"}),
        )
        for i in range(6)
    ]
    report = await evaluate(None, EvalSet("s", cases), metrics=[contains("Done")], concurrency=6)
    for result in report:
        assert result.ledger is not None
        assert state(result.ledger)["session"]["notes"] == ["old", "x"]


async def test_a_fixture_changed_by_a_step_through_a_reference_is_not_changed() -> None:
    fixture: Any = {"session": {"deep": {"list": [1]}}}

    def spoil(state: Any) -> None:
        state.session["deep"]["list"].append(2)
        state.session["deep"]["new"] = fixture["session"]["deep"]

    ledger = await simulate(Case("c", "Go.", state=fixture), step(spoil))
    assert fixture == {"session": {"deep": {"list": [1]}}}
    assert state(ledger) == {"session": {"deep": {"list": [1, 2], "new": {"list": [1]}}}}


async def test_state_is_kept_over_turns() -> None:
    def count(ctx: Any) -> str:
        ctx.state.session["n"] = ctx.state.session.get("n", 0) + 1
        return f"turn {ctx.state.session['n']}"

    case = Case("turns", turns=[Turn("a"), Turn("b"), Turn("c")])
    ledger = await simulate(case, step(count))
    assert [event.output for event in ledger.of(NodeEnded)] == ["turn 1", "turn 2", "turn 3"]


async def test_the_state_after_every_turn_can_be_asked_for() -> None:
    def count(state: Any) -> str:
        state.session["n"] = state.session.get("n", 0) + 1
        return "ok"

    ledger = await simulate(Case("turns", turns=[Turn("a"), Turn("b")]), step(count))
    ends = [event.seq for event in ledger.of(NodeEnded)]
    assert [state_after(ledger, seq) for seq in ends] == [
        {"session": {"n": 1}},
        {"session": {"n": 2}},
    ]
    assert [(change.old, change.new) for change in state_changes(ledger)] == [(None, 1), (1, 2)]


async def test_any_name_may_be_a_scope() -> None:
    def write(state: Any) -> None:
        state.practice["open"] = True
        state["weird scope!"]["n"] = 1

    ledger = await simulate(Case("c", "Go."), step(write))
    assert state(ledger) == {"practice": {"open": True}, "weird scope!": {"n": 1}}


async def test_reading_a_scope_does_not_make_it() -> None:
    def read(state: Any) -> Any:
        return [state.practice.get("open"), "open" in state["practice"], list(state.other)]

    ledger = await simulate(Case("c", "Go."), step(read))
    assert state(ledger) == {}


async def test_a_key_that_is_not_there_is_an_error_of_the_agent() -> None:
    end = end_of(await simulate(Case("c", "Go."), step(lambda state: state.session["n"], name="s")))
    assert (end.reason, end.phase) == ("error", "agent")
    assert "KeyError: 'n'" in end.error


async def test_a_tool_that_fails_changes_nothing() -> None:
    def failing(what: str, ctx: Any) -> Any:
        ctx.state.session["notes"].append(what)
        raise fault("full")

    case = Case("c", "Note.", mocks={"note": failing}, state=FIXTURE)
    ledger = await simulate(case, caller(note, {"what": "x"}))
    assert state(ledger) == FIXTURE


async def test_one_side_of_a_run_sees_the_true_and_the_other_the_one() -> None:
    def flip(state: Any) -> None:
        state.session["flags"]["a"] = True

    ledger = await simulate(Case("c", "Go.", state={"session": {"flags": {"a": 1}}}), step(flip))
    held: Any = state(ledger)
    assert held["session"]["flags"]["a"] is True


@pytest.mark.parametrize("value", [float("nan"), object(), {1: 2}])
async def test_a_value_that_is_no_json_cannot_be_put_into_the_state(value: Any) -> None:
    def write(state: Any) -> None:
        state.session["x"] = value

    ledger = await simulate(Case("c", "Go."), step(write))
    assert end_of(ledger).reason == "error"
    assert "state session.x" in end_of(ledger).error
    assert state(ledger) == {}


async def test_a_fixture_that_is_no_json_is_an_error_that_names_the_case() -> None:
    case = Case("odd", "Go.", state={"session": {"x": object()}})
    report = await evaluate(step(lambda: "x", name="s"), [case])
    (result,) = report
    assert (result.status, result.error is not None) == ("error", True)
    assert "state of case 'odd'" in str(result.error)


async def test_a_conflict_is_recorded_once_over_turns() -> None:
    def write(value: int) -> Any:
        def work(state: Any) -> None:
            state.session["n"] = value

        return step(work, name=f"w{value}")

    case = Case("c", turns=[Turn("a"), Turn("b")])
    ledger = await simulate(case, write(1) | write(2))
    assert [event.path for event in ledger.of(StateConflicted)] == ["@1/par", "@2/par"]


async def test_the_clock_of_a_run_can_be_set() -> None:
    def tell(ctx: Any) -> float:
        return ctx.now()

    def told(what: str, ctx: Any) -> float:
        return ctx.now()

    ledger = await simulate(Case("c", "Go.", now=1_700_000_000.5), step(tell))
    assert ledger.of(NodeEnded)[0].output == 1_700_000_000.5
    case = Case("c", "Go.", now=0.0, mocks={"note": told}, user=None)
    assert results(await simulate(case, caller(note, {"what": "x"}))) == [0.0]


async def test_the_users_clock_is_the_runs_clock() -> None:
    def tell(ctx: Any) -> str:
        return f"It is {ctx.now()}"

    agent = Agent("a", model=Scripted("Hello.", "Bye."))
    case = Case("c", "Hi.", user=step(tell), now=60.0, stop=Stop(max_turns=2))
    assert messages(await simulate(case, agent))[2].text == "It is 60.0"


async def test_without_a_set_clock_time_is_the_machines() -> None:
    before = time.time()
    ledger = await simulate(Case("c", "Go."), step(lambda ctx: ctx.now(), name="tell"))
    told: Any = ledger.of(NodeEnded)[0].output
    assert before <= told <= time.time()


KEYS = st.sampled_from(["a", "b", "c"])
VALUES = st.one_of(st.integers(0, 2), st.booleans(), st.lists(st.integers(0, 2), max_size=2))
ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("set"), KEYS, VALUES),
        st.tuples(st.just("delete"), KEYS, st.none()),
        st.tuples(st.just("read"), KEYS, st.none()),
        st.tuples(st.just("append"), KEYS, VALUES),
        st.tuples(st.just("setdefault"), KEYS, VALUES),
    ),
    max_size=8,
)


def do(held: Any, action: str, key: str, value: Any) -> None:
    """One thing code does to a mapping of state."""
    if action == "set":
        held[key] = value
    elif action == "setdefault":
        held.setdefault(key, value)
    elif action == "delete" and key in held:
        del held[key]
    elif action == "append" and isinstance(held.get(key), list):
        held[key].append(value)
    else:
        held.get(key)


@given(st.dictionaries(KEYS, VALUES), ACTIONS)
def test_a_scope_behaves_like_a_dict_and_its_changes_say_what_was_done(
    begin: dict[str, Any], actions: list[Any]
) -> None:
    fold = {"session": deepcopy(begin)}
    scopes, model = Scopes(fold), deepcopy(begin)
    for action in deepcopy(actions):
        do(scopes.session, *action)
    for action in deepcopy(actions):
        do(model, *action)
    assert dict(scopes.session) == model
    assert len(scopes.session) == len(model)
    assert fold == {"session": begin}
    apply_changes(fold, scopes.changes())
    assert repr(sorted(fold["session"].items())) == repr(sorted(model.items()))


@given(st.dictionaries(KEYS, VALUES), st.dictionaries(KEYS, VALUES))
def test_reading_a_scope_changes_nothing_even_if_the_state_moves_on(
    begin: dict[str, Any], later: dict[str, Any]
) -> None:
    fold = {"session": begin}
    scopes = Scopes(fold)
    for key in begin:
        _ = scopes.session[key]
    fold["session"].update(deepcopy(later))
    assert scopes.changes() == ()


def set_key(state: Any) -> None:
    state.session.order = 7


def set_name(state: Any) -> None:
    state.session.name = "Ada"


def set_scope(state: Any) -> None:
    state.session = {"order": 7}


def read_key(state: Any) -> Any:
    return state.session.notes


ATTRIBUTES = [
    (set_key, 'state.session["order"]'),
    (set_name, 'state.session["name"]'),
    (set_scope, 'state.session["key"] = ...'),
    (read_key, 'state.session["notes"]'),
]


@pytest.mark.parametrize("wrong, instead", ATTRIBUTES)
async def test_an_attribute_that_would_be_lost_is_an_error_that_says_what_to_write(
    wrong: Any, instead: str
) -> None:
    def touch(state: Any) -> str:
        wrong(state)
        return "done"

    ledger = await simulate(Case("lost", "Go.", state=FIXTURE), step(touch))
    assert end_of(ledger).reason == "error"
    assert instead in end_of(ledger).error
    assert state(ledger) == FIXTURE


def test_scopes_can_be_copied() -> None:
    scopes = Scopes({"session": {"notes": ["old"]}})
    assert dict(deepcopy(scopes).session) == {"notes": ["old"]}
