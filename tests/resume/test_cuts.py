"""A run may be cut at any event and continued from its bytes; it comes to the same end."""

import asyncio
import json
import random
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

sys.path.insert(0, str(Path(__file__).parent))

import graphs
from graphs import Spec

import warm_python
from greenroom import Ledger, simulate
from greenroom.ledger import (
    BranchCancelled,
    Decided,
    Event,
    ModelCalled,
    ModelFailed,
    RunResumed,
    ToolCalled,
    ended,
    messages,
    state,
    tool_calls,
)
from greenroom.ledger.paths import branches_of
from greenroom.world.live import LiveWorld

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]
FAILURES = {"down", "broken"}
MOST_CUTS = settings().max_examples
FEW = settings(max_examples=MOST_CUTS // 5, suppress_health_check=SLOW)
"""Each example is cut many times; more of both are tried in `make test-all`."""


def far(replies: set[str]) -> st.SearchStrategy[Spec]:
    """Parts that may stand apart: another process finds all of their code."""
    plans = st.lists(st.sampled_from(sorted(replies)), max_size=2)
    leaf = st.one_of(
        st.builds(lambda plan: {"agent": plan}, plans),
        st.builds(lambda number: {"far": number}, st.integers(0, len(graphs.FAR) - 1)),
        st.builds(lambda number: {"far": number}, st.integers(0, len(graphs.FAR) - 1)),
    )

    def around(inner: st.SearchStrategy[Spec]) -> st.SearchStrategy[Spec]:
        parts = st.lists(inner, min_size=2, max_size=2)
        return st.one_of(
            st.builds(lambda p: {"seq": p}, parts),
            st.builds(lambda body: {"within": body}, inner),
            st.builds(lambda body: {"apart": body}, inner),
            st.builds(
                lambda body, when: {"approval": {"body": body, "when": when, "otherwise": False}},
                inner,
                st.sampled_from([0, 2]),
            ),
        )

    return st.recursive(leaf, around, max_leaves=3)


def leaves(replies: set[str]) -> st.SearchStrategy[Spec]:
    plans = st.lists(st.sampled_from(sorted(replies)), max_size=2)
    with_handoffs = st.lists(
        st.sampled_from([*sorted(replies), "over", "over", "both"]), max_size=2
    )
    return st.one_of(
        st.builds(lambda plan: {"agent": plan}, plans),
        st.builds(
            lambda members: {"team": members}, st.lists(with_handoffs, min_size=2, max_size=3)
        ),
        st.builds(lambda failures: {"step": failures}, st.integers(0, 2)),
        st.builds(lambda change: {"change": change}, st.integers(0, len(graphs.CHANGES) - 1)),
        st.builds(lambda breaks: {"tap": breaks}, st.booleans()),
        st.just({"typed": 0}),
        st.builds(lambda body: {"apart": body}, far(replies)),
        st.builds(lambda name: {"remote": name}, st.sampled_from(["wonders", "tells"])),
        st.builds(lambda by: {"choice": by}, st.sampled_from(["cost", "quality", "adaptive"])),
    )


def nested(inner: st.SearchStrategy[Spec]) -> st.SearchStrategy[Spec]:
    parts = st.lists(inner, min_size=2, max_size=3)
    return st.one_of(
        st.builds(lambda p: {"par": p}, parts),
        st.builds(lambda p: {"race": p}, parts),
        st.builds(lambda a, b: {"race": [failing(a), b]}, inner, inner),
        st.builds(
            lambda body, items, over: {"map": {"body": body, "items": items, "over": over}},
            inner,
            st.integers(0, 3),
            st.booleans(),
        ),
        in_order(inner),
    )


def failing(spec: Spec) -> Spec:
    """What fails at last, whatever it did before."""
    return {"seq": [spec, {"step": 3}]}


def in_order(inner: st.SearchStrategy[Spec]) -> st.SearchStrategy[Spec]:
    """Without branches: which of two that fail is the first is an accident of time."""
    parts = st.lists(inner, min_size=2, max_size=3)
    return st.one_of(
        st.builds(lambda p: {"seq": p}, parts),
        st.builds(lambda p: {"route": p}, parts),
        st.builds(lambda a, b: {"try": [failing(a), b]}, inner, inner),
        st.builds(lambda body: {"within": body}, inner),
        st.builds(
            lambda body, unit, loud: {"heard": {"body": body, "by": unit, "loud": loud}},
            inner,
            st.sampled_from(["token", "word", 3]),
            st.booleans(),
        ),
        st.builds(
            lambda body, rounds, awaits: {
                "loop": {"body": body, "rounds": rounds, "awaits": awaits}
            },
            inner,
            st.integers(1, 2),
            st.booleans(),
        ),
        st.builds(
            lambda body, when, otherwise: {
                "approval": {"body": body, "when": when, "otherwise": otherwise}
            },
            inner,
            st.integers(0, 2),
            st.booleans(),
        ),
    )


SPECS = st.recursive(leaves(set(graphs.REPLIES) - FAILURES), nested, max_leaves=5)
FAILING_SPECS = st.recursive(leaves(set(graphs.REPLIES)), in_order, max_leaves=4)

DEEP: Spec = {
    "seq": [
        {"agent": ["note", "two"]},
        {
            "par": [
                {"loop": {"body": {"agent": ["look", "ask"]}, "rounds": 2, "awaits": False}},
                {"seq": [{"step": 2}, {"agent": ["mixed", "shaky"]}]},
                {"agent": ["note", "unknown"]},
            ]
        },
        {"route": [{"agent": ["shaky"]}, {"agent": ["wrong"]}]},
        {"loop": {"body": {"agent": ["two"]}, "rounds": 2, "awaits": True}},
    ]
}


GUARDED: Spec = {
    "seq": [
        {"change": 0},
        {"approval": {"body": {"agent": ["note", "ask"]}, "when": 0, "otherwise": True}},
        {
            "par": [
                {"approval": {"body": {"agent": ["two"]}, "when": 2, "otherwise": True}},
                {"approval": {"body": {"step": 1}, "when": 0, "otherwise": True}},
                {"change": 2},
            ]
        },
        {
            "loop": {
                "body": {"approval": {"body": {"agent": []}, "when": 0, "otherwise": True}},
                "rounds": 3,
                "awaits": True,
            }
        },
        {"approval": {"body": {"agent": []}, "when": 0, "otherwise": False}},
    ]
}


APART: Spec = {
    "seq": [
        {"apart": {"seq": [{"agent": ["note", "ask"]}, {"far": 0}, {"far": 6}]}},
        {
            "par": [
                {"apart": {"seq": [{"far": 4}, {"agent": ["two"]}, {"far": 1}]}},
                {"apart": {"apart": {"far": 5}}},
                {"agent": ["look"]},
            ]
        },
        {"try": [failing({"apart": {"far": 7}}), {"apart": {"far": 9}}]},
        {
            "loop": {
                "body": {
                    "apart": {"approval": {"body": {"far": 0}, "when": 2, "otherwise": False}}
                },
                "rounds": 2,
                "awaits": True,
            }
        },
    ]
}


EVERY_KIND: Spec = {
    "seq": [
        {"try": [failing({"agent": ["note", "ask"]}), {"within": {"agent": ["look"]}}]},
        {"map": {"body": {"agent": ["ask"]}, "items": 3, "over": True}},
        {"tap": True},
        {"remote": "tells"},
        {"race": [failing({"agent": ["note"]}), {"seq": [{"agent": ["two"]}, {"step": 1}]}]},
        {"approval": {"body": {"change": 0}, "when": 0, "otherwise": True}},
        {
            "loop": {
                "body": {
                    "try": [failing({"race": [{"step": 1}, {"agent": ["ask"]}]}), {"step": 0}]
                },
                "rounds": 2,
                "awaits": True,
            }
        },
    ]
}


ELSEWHERE: Spec = {
    "seq": [
        {"remote": "wonders"},
        {"par": [{"remote": "tells"}, {"within": {"remote": "wonders"}}, {"agent": ["note"]}]},
        {"race": [failing({"remote": "tells"}), {"remote": "wonders"}]},
    ]
}


def played(spec: Spec, ledger: Ledger | None = None) -> Ledger:
    return asyncio.run(simulate(graphs.case(spec), graphs.build(spec), ledger=ledger))


def facts(event: Event | None) -> tuple[Any, ...]:
    """An event without its times and its place among other branches' events."""
    assert event is not None
    times = [name for name in event.__struct_fields__ if name in ("at", "seq", "seconds", "first")]
    return type(event).__name__, repr(replace(event, **dict.fromkeys(times)))


def winners(ledger: Ledger) -> dict[str, str]:
    """Which branch won each race; each has one winner."""
    decided = [e for e in ledger.of(Decided, voice=None) if e.path.endswith("/par")]
    assert len({(e.voice, e.path) for e in decided}) == len(decided)
    return {f"{e.voice} {e.path}": e.choice for e in decided}


def has_lost(ledger: Ledger, event: Event) -> bool:
    """Whether an event lies in a branch of a race that another one won: an accident of time."""
    decided = ledger.index_of(event.voice).decided
    return any(
        decided.get(branch.rpartition(".")[0], branch.rpartition(".")[2])
        != branch.rpartition(".")[2]
        for branch in branches_of(event.path)
    )


def cancelled(ledger: Ledger) -> set[str]:
    """The branches that were stopped because another one failed: how far they came is an accident of time."""
    return {event.path.rpartition("/")[0] for event in ledger.of(BranchCancelled, voice=None)}


def told(ledger: Ledger, stopped: set[str]) -> dict[Any, list[Any]]:
    """What happened at each place, in order. A model asked again after a cut was asked once."""
    found: dict[Any, list[Any]] = {}
    for event in ledger:
        if has_lost(ledger, event) or not stopped.isdisjoint(branches_of(event.path)):
            continue
        line = found.setdefault((event.voice, event.path), [])
        if isinstance(event, RunResumed) or (
            isinstance(event, ModelCalled) and facts(event) in line
        ):
            continue
        line.append(facts(event))
    return {place: line for place, line in found.items() if line}


def assert_same_end(cut: Ledger, whole: Ledger, k: int = 0) -> None:
    """The same end; if a race that was not decided before the cut was won by another, a whole one."""
    decided = winners(Ledger(whole[:k]))
    assert decided.items() <= winners(cut).items()
    if winners(cut) != winners(whole):
        assert ended(cut) is not None
        return
    stopped = cancelled(cut) | cancelled(whole)
    assert told(cut, stopped) == told(whole, stopped)
    assert state(cut) == state(whole)
    assert state(cut, "user") == state(whole, "user")
    assert messages(cut) == messages(whole)
    assert results(cut) == results(whole)
    assert facts(ended(cut)) == facts(ended(whole))


def results(ledger: Ledger) -> dict[str, Any]:
    calls = ledger.of(ToolCalled)
    kept = {call.call_id for call in calls if not has_lost(ledger, call)}
    return {call.id: call.result for call in tool_calls(ledger) if call.id in kept}


def cut_at(whole: Ledger, k: int) -> Ledger:
    """What another process would find: the bytes of the first k events."""
    lines = whole.dumps().splitlines(keepends=True)[:k]
    return Ledger.loads("".join(lines))


def cuts_of(whole: Ledger) -> list[int]:
    """Where a run is cut: at every event if there are not too many.

    There are not in `make test-all`, for the tests that are marked `deep`.
    """
    count = len(whole)
    return random.Random(count).sample(range(count), min(count, MOST_CUTS))


@FEW
@given(SPECS)
def test_a_run_cut_at_any_event_comes_to_the_same_end(spec: Spec) -> None:
    whole = played(spec)
    assert ended(whole) is not None
    for k in cuts_of(whole):
        assert_same_end(played(spec, cut_at(whole, k)), whole, k)


def test_a_deep_run_goes_through_every_kind_of_event_it_can() -> None:
    whole = played(DEEP)
    end = ended(whole)
    assert end is not None
    assert end.reason in ("finished", "max_turns")
    kinds = {type(event).__name__ for event in whole}
    assert {"YieldOpened", "Answered", "NodeFailed", "ToolFailed", "Decided"} <= kinds


@pytest.mark.deep
def test_a_deep_run_cut_at_any_event_comes_to_the_same_end() -> None:
    whole = played(DEEP)
    for k in cuts_of(whole):
        assert_same_end(played(DEEP, cut_at(whole, k)), whole)


HANDED: Spec = {
    "seq": [
        {"team": [["over", "ask"], ["note", "both"], ["over"]]},
        {"par": [{"team": [["look", "over"], ["two"]]}, {"race": [{"team": [["over"], []]}]}]},
        {"loop": {"body": {"team": [["over"], ["over"]]}, "rounds": 3, "awaits": True}},
    ]
}


@pytest.mark.deep
def test_a_team_cut_at_any_event_goes_on_with_who_had_the_conversation() -> None:
    whole = played(HANDED)
    handed = [event for event in whole.of(Decided) if event.choice.endswith(("t0", "t1", "t2"))]
    assert len(handed) > 10
    assert any("#2" in event.path for event in handed)
    for k in cuts_of(whole):
        assert_same_end(played(HANDED, cut_at(whole, k)), whole)
    for k in random.Random(3).sample(range(len(whole)), 2):
        assert_same_end(continued_elsewhere(HANDED, whole, k), whole)


@pytest.mark.deep
def test_approvals_cut_at_any_event_are_asked_for_once() -> None:
    whole = played(GUARDED)
    choices = [event.choice for event in whole.of(Decided)]
    assert {"asked", "approved", "denied"} <= set(choices)
    for k in cuts_of(whole):
        assert_same_end(played(GUARDED, cut_at(whole, k)), whole)
    for k in random.Random(3).sample(range(len(whole)), 2):
        assert_same_end(continued_elsewhere(GUARDED, whole, k), whole)


HEARD: Spec = {
    "seq": [
        {"heard": {"body": {"agent": ["note", "mixed"]}, "by": "token", "loud": True}},
        {
            "heard": {
                "body": {"par": [{"agent": ["look"]}, {"agent": ["ask"]}, {"step": 1}]},
                "by": "token",
                "loud": False,
            }
        },
        {
            "heard": {
                "body": {"try": [failing({"agent": []}), {"team": [["over"], ["two"]]}]},
                "by": "word",
                "loud": True,
            }
        },
        {
            "loop": {
                "body": {"heard": {"body": {"agent": ["ask"]}, "by": "token", "loud": False}},
                "rounds": 2,
                "awaits": True,
            }
        },
    ]
}


@pytest.mark.deep
def test_who_listens_hears_the_same_wherever_the_run_was_cut() -> None:
    whole = played(HEARD)
    assert any(key.endswith("_heard") for key in state(whole)["session"])
    for k in cuts_of(whole):
        assert_same_end(played(HEARD, cut_at(whole, k)), whole)
    for k in random.Random(3).sample(range(len(whole)), 5):
        assert_same_end(continued_elsewhere(HEARD, whole, k), whole)


FAILING: Spec = {
    "seq": [{"agent": ["note"]}, {"loop": {"body": {"step": 3}, "rounds": 2, "awaits": False}}]
}
FAILING_BESIDE: Spec = {"par": [{"seq": [{"step": 0}, {"step": 3}]}, {"agent": ["look", "ask"]}]}


@pytest.mark.deep
def test_a_run_that_fails_cut_at_any_event_fails_alike() -> None:
    whole = played(FAILING)
    assert facts(ended(whole))[0] == "RunEnded"
    for k in cuts_of(whole):
        assert_same_end(played(FAILING, cut_at(whole, k)), whole)


MODELS_FAIL: dict[str, Spec] = {
    "once, and is asked again": {"seq": [{"agent": ["down"]}, {"agent": ["look", "down", "two"]}]},
    "as often as it is asked": {"seq": [{"agent": ["note"]}, {"agent": ["down", "down"]}]},
    "as ours do": {"seq": [{"agent": ["look", "broken"]}, {"agent": []}]},
    "next to another": {"par": [{"agent": ["note", "broken"]}, {"agent": ["look", "ask"]}]},
    "in the end, next to another": {"par": [{"agent": ["down", "down"]}, {"agent": ["two"]}]},
    "in a loop": {"loop": {"body": {"agent": ["down", "shaky"]}, "rounds": 2, "awaits": True}},
    "on the user's side": {"agent_side": {"agent": ["ask"]}, "user_fails": "down"},
    "on the user's side, as ours do": {"agent_side": {"agent": ["ask"]}, "user_fails": "broken"},
}


@pytest.mark.deep
@pytest.mark.parametrize("spec", MODELS_FAIL.values(), ids=MODELS_FAIL)
def test_a_run_whose_model_fails_cut_at_any_event_comes_to_the_same_end(spec: Spec) -> None:
    whole = played(spec)
    assert whole.of(ModelFailed, voice=None)
    for k in cuts_of(whole):
        again = played(spec, cut_at(whole, k))
        # What a branch still did when its neighbour failed is an accident of time.
        if "par" in spec:
            assert facts(ended(again)) == facts(ended(whole)), k
        else:
            assert_same_end(again, whole)


@FEW
@given(FAILING_SPECS)
def test_whatever_fails_a_run_cut_at_any_event_comes_to_the_same_end(spec: Spec) -> None:
    whole = played(spec)
    for k in cuts_of(whole):
        assert_same_end(played(spec, cut_at(whole, k)), whole, k)


def test_a_failure_of_a_model_is_the_same_in_a_fresh_interpreter() -> None:
    spec = MODELS_FAIL["as ours do"]
    whole = played(spec)
    (failed,) = whole.of(ModelFailed)
    assert_same_end(continued_elsewhere(spec, whole, failed.seq + 1), whole)


@pytest.mark.deep
def test_a_branch_that_was_cancelled_is_not_taken_up_again() -> None:
    whole = played(FAILING_BESIDE)
    for k in cuts_of(whole):
        again = played(FAILING_BESIDE, cut_at(whole, k))
        assert facts(ended(again)) == facts(ended(whole))
        gone = [e for e in again if isinstance(e, BranchCancelled)]
        assert len({e.path for e in gone}) == len(gone)
        for event in gone:
            assert not [e for e in again if e.path == event.path and e.seq > event.seq]


FAILING_FORKS: dict[str, Spec] = {
    "a parallel": {"par": [{"step": 3}, {"agent": ["note", "ask"]}]},
    "a map": {"map": {"body": failing({"agent": ["note"]}), "items": 2, "over": False}},
    "a race": {"race": [failing({"agent": ["look"]}), failing({"step": 0})]},
}


@pytest.mark.deep
@pytest.mark.parametrize("fork", FAILING_FORKS.values(), ids=FAILING_FORKS)
def test_a_fork_that_fails_in_every_round_and_is_followed_by_another_part(fork: Spec) -> None:
    followed = {"try": [fork, {"agent": ["look", "ask"]}]}
    spec = {"loop": {"body": followed, "rounds": 2, "awaits": True}}
    whole = played(spec)
    assert [e.choice for e in whole.of(Decided) if "/try." in e.path] == ["next", "next"]
    for k in cuts_of(whole):
        again = played(spec, cut_at(whole, k))
        # How far the others came when one failed is an accident of time, and shows nowhere else.
        assert messages(again) == messages(whole), k
        assert state(again) == state(whole), k
        assert facts(ended(again)) == facts(ended(whole)), k


def test_a_run_cut_twice_comes_to_the_same_end() -> None:
    whole = played(DEEP)
    choose = random.Random(7)
    for _ in range(20):
        first = played(DEEP, cut_at(whole, choose.randrange(len(whole))))
        again = cut_at(first, choose.randrange(len(first)))
        assert_same_end(played(DEEP, again), whole)


def continued_elsewhere(spec: Spec, whole: Ledger, k: int) -> Ledger:
    given = json.dumps({"spec": spec, "ledger": cut_at(whole, k).dumps()})
    script = [sys.executable, Path(__file__).with_name("continued.py")]
    run = warm_python.run(script, input=given, capture_output=True, text=True, check=True)
    return Ledger.loads(run.stdout)


def test_an_id_is_the_same_in_every_version() -> None:
    # Frameworks' calls in ledgers that exist are found by such ids.
    assert LiveWorld(Ledger()).new_id("run/1", "refund", 0) == "30b90c457736"


def test_ids_tell_apart_what_python_holds_to_be_equal() -> None:
    world = LiveWorld(Ledger())
    parts: list[object] = [0, False, 0.0, -0.0, Decimal("0"), Decimal("0.00"), "0", "", None, [0]]
    ids = [[world.new_id("run/1", part) for part in parts] for _ in range(2)]
    assert ids[0] == ids[1]
    texts = [str(part) for part in parts]
    assert [ids[0].index(one) for one in ids[0]] == [texts.index(text) for text in texts]
    assert LiveWorld(Ledger(), voice="user").new_id("run/1", 0) != ids[0][0]


@pytest.mark.deep
def test_a_run_through_every_kind_of_node_cut_at_any_event_comes_to_the_same_end() -> None:
    whole = played(EVERY_KIND)
    assert ended(whole) is not None
    assert len(winners(whole)) == 3
    for k in cuts_of(whole):
        assert_same_end(played(EVERY_KIND, cut_at(whole, k)), whole, k)


@pytest.mark.deep
def test_parts_that_stand_apart_come_to_the_same_end_from_every_cut() -> None:
    whole = played(APART)
    assert ended(whole) is not None
    assert facts(ended(whole))[0] == "RunEnded"
    counted, mapped = "@1/seq.0/apart/seq.1/far_count", "@1/seq.2/try.1/apart/seq.1/par"
    assert {counted, mapped} <= {e.path for e in whole}
    for k in cuts_of(whole):
        assert_same_end(played(APART, cut_at(whole, k)), whole, k)


@pytest.mark.deep
def test_questions_of_agents_elsewhere_cut_at_any_event_are_asked_once() -> None:
    whole = played(ELSEWHERE)
    calls = [record.tool for record in tool_calls(whole)]
    assert calls.count("wonders") > 6  # each of the three asks back, and begins the next turn
    assert "tells" in calls
    for k in cuts_of(whole):
        assert_same_end(played(ELSEWHERE, cut_at(whole, k)), whole, k)


@pytest.mark.parametrize("spec", [DEEP, EVERY_KIND])
def test_sampled_cuts_continue_in_a_fresh_interpreter(spec: Spec) -> None:
    whole = played(spec)
    for k in random.Random(11).sample(range(len(whole)), 6):
        assert_same_end(continued_elsewhere(spec, whole, k), whole, k)


@pytest.mark.torture
@pytest.mark.parametrize("spec", [DEEP, EVERY_KIND])
def test_every_cut_continues_in_a_fresh_interpreter(spec: Spec) -> None:
    whole = played(spec)
    for k in range(len(whole)):
        assert_same_end(continued_elsewhere(spec, whole, k), whole, k)


@pytest.mark.torture
@pytest.mark.parametrize("_again", range(5))  # each within the time of one test
@settings(max_examples=40, deadline=None, derandomize=False, suppress_health_check=SLOW)
@given(SPECS)
def test_many_more_runs_cut_at_any_event_come_to_the_same_end(_again: int, spec: Spec) -> None:
    whole = played(spec)
    for k in range(len(whole)):
        assert_same_end(played(spec, cut_at(whole, k)), whole, k)
