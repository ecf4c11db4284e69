"""The state is what follows from the events, and nothing else."""

from copy import deepcopy
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from greenroom.ledger import (
    Answered,
    Change,
    Event,
    InvocationEnded,
    Ledger,
    NodeEnded,
    RunStarted,
    State,
    StateChanged,
    ToolReturned,
    UserSaid,
    state,
    state_after,
    state_changes,
)
from greenroom.ledger.changes import changes_of
from ledger.values import CHANGES, EVENTS, SEVERAL, ledger_of

WRITERS = (ToolReturned, NodeEnded, StateChanged, Answered, UserSaid)


def naive_write(held: Any, path: tuple[str, ...], change: Change) -> Any:
    """A copy of `held` with one change made; written to be obvious, not fast."""
    key, *rest = path
    copy = deepcopy(held) if isinstance(held, dict) else {}
    if rest:
        if change.op == "delete" and not isinstance(copy.get(key), dict):
            return held
        return {**copy, key: naive_write(copy.get(key), tuple(rest), change)}
    if change.op == "delete":
        return {k: v for k, v in copy.items() if k != key}
    if change.op == "append":
        old = copy.get(key)
        kept = old if isinstance(old, list) else [] if old is None else [old]
        return {**copy, key: [*kept, change.value]}
    return {**copy, key: change.value}


def naive_fold(events: list[Event], voice: str = "agent") -> State:
    found: State = {}
    for event in events:
        if event.voice != voice:
            continue
        if isinstance(event, RunStarted) and event.state:
            found = cast("State", deepcopy(event.state))
        if isinstance(event, InvocationEnded):
            found.pop("temp", None)
        if isinstance(event, WRITERS):
            settled = event.settled if isinstance(event, ToolReturned) else ()
            for change in (*event.changes, *settled):
                scope = found.get(change.scope, {})
                found[change.scope] = naive_write(scope, change.path, change)
    return found


BEGUN = st.builds(
    RunStarted,
    run_id=st.just("r"),
    state=st.fixed_dictionaries(
        {"session": st.dictionaries(st.sampled_from("abc"), st.integers(0, 3), max_size=2)}
    ),
)


@given(BEGUN, st.lists(EVENTS, max_size=12))
def test_the_state_is_the_fold_of_the_events(begun: Event, events: list[Event]) -> None:
    ledger = ledger_of(begun, *(e for e in events if not isinstance(e, RunStarted)))
    assert state(ledger) == naive_fold(list(ledger))
    assert state(ledger, "user") == naive_fold(list(ledger), "user")


@given(BEGUN, st.lists(EVENTS, max_size=8), st.integers(0, 8))
def test_the_state_after_an_event_is_the_fold_of_the_events_so_far(
    begun: Event, events: list[Event], seq: int
) -> None:
    ledger = ledger_of(begun, *(e for e in events if not isinstance(e, RunStarted)))
    assert state_after(ledger, seq) == naive_fold(list(ledger)[: seq + 1])


@given(st.lists(SEVERAL, max_size=6))
def test_every_change_tells_the_old_and_the_new_value(changes: list[Any]) -> None:
    ledger = ledger_of(*(StateChanged(changes=several) for several in changes))
    held: State = {}
    for found, change in zip(
        state_changes(ledger), [c for several in changes for c in several], strict=True
    ):
        before = deepcopy(held)
        held[change.scope] = naive_write(held.get(change.scope, {}), change.path, change)
        assert found.old == leaf(before, change)
        assert found.new == leaf(held, change)


def leaf(held: Any, change: Change) -> Any:
    held = held.get(change.scope, {})
    for key in change.path:
        held = held.get(key) if isinstance(held, dict) else None
    return held


@given(st.lists(st.tuples(st.sampled_from(["0", "1"]), CHANGES), max_size=6), SEVERAL)
def test_a_branch_sees_the_state_at_the_fork_and_its_own_changes(
    written: list[tuple[str, Change]], before: Any
) -> None:
    fork = StateChanged(changes=before)
    inside = [
        ToolReturned(
            path=f"@1/par.{b}/clerk",
            call_id="c",
            tool="t",
            source="mock",
            changes=(change,),
        )
        for b, change in written
    ]
    ledger = ledger_of(fork, *inside)
    for branch in ("0", "1"):
        mine = [StateChanged(changes=(c,)) for b, c in written if b == branch]
        assert ledger.fold(branch=f"@1/par.{branch}") == naive_fold([fork, *mine])
    assert state(ledger) == naive_fold([fork])


def branch_event(branch: str, **session: Any) -> ToolReturned:
    changes = changes_of({"session": session})
    return ToolReturned(
        path=f"{branch}/clerk", call_id="c", tool="t", source="mock", changes=changes
    )


def test_a_branch_inside_a_branch_begins_with_what_its_parent_sees() -> None:
    ledger = ledger_of(
        StateChanged(changes=changes_of({"session": {"a": 1}})),
        branch_event("@1/par.0", b=2),
        branch_event("@1/par.0/seq.1/par.1", c=3),
    )
    assert ledger.fold(branch="@1/par.0/seq.1/par.1") == {"session": {"a": 1, "b": 2, "c": 3}}
    assert ledger.fold(branch="@1/par.0") == {"session": {"a": 1, "b": 2}}
    assert state(ledger) == {"session": {"a": 1}}


def test_what_the_user_changes_is_seen_by_every_open_branch() -> None:
    ledger = ledger_of(
        branch_event("@1/par.0", a=1),
        branch_event("@1/par.1", a=2),
        Answered(answers=(), changes=changes_of({"patient": {"told": True}})),
    )
    assert ledger.fold(branch="@1/par.0") == {"session": {"a": 1}, "patient": {"told": True}}
    assert ledger.fold(branch="@1/par.1") == {"session": {"a": 2}, "patient": {"told": True}}
    assert state(ledger) == {"patient": {"told": True}}


def test_a_merged_fork_brings_its_changes_to_the_run() -> None:
    merged = NodeEnded(path="@1/par", node="par", changes=changes_of({"session": {"a": 1}}))
    ledger = ledger_of(branch_event("@1/par.0", a=1), merged)
    assert state(ledger) == {"session": {"a": 1}}


def test_the_state_handed_out_is_a_copy() -> None:
    ledger = ledger_of(StateChanged(changes=changes_of({"session": {"tags": [1]}})))
    held: Any = state(ledger)
    held["session"]["tags"].append(2)
    assert state(ledger) == {"session": {"tags": [1]}}


def test_the_fixture_a_run_begins_with_is_a_copy() -> None:
    fixture: Any = {"session": {"tags": [1]}}
    ledger = ledger_of(RunStarted(run_id="r", state=fixture))
    fixture["session"]["tags"].append(2)
    assert state(ledger) == {"session": {"tags": [1]}}


def test_a_copy_of_a_ledger_goes_its_own_way() -> None:
    one = ledger_of(UserSaid(text="hi"))
    other = one.copy()
    other.append(StateChanged(changes=changes_of({"session": {"a": 1}})), at=1.0)
    assert len(one) == 1
    assert state(one) == {}
    assert state(other) == {"session": {"a": 1}}


def test_a_fold_rebuilt_from_bytes_is_the_same() -> None:
    ledger = ledger_of(
        RunStarted(run_id="r", state={"session": {"a": 1}}), branch_event("@1/par.0", b=2)
    )
    again = Ledger.loads(ledger.dumps())
    assert again.fold(branch="@1/par.0") == ledger.fold(branch="@1/par.0")
