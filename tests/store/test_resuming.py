"""A run that goes on: what is finished stays, and what has changed is named."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from greenroom import (
    Agent,
    Case,
    EvalSet,
    Expect,
    Report,
    Scripted,
    Turn,
    call,
    evaluate,
    tool,
)
from greenroom.errors import BadInput, NotFound, StoreFailed
from greenroom.ledger import Event
from greenroom.metrics import contains
from greenroom.models import ModelReply, ModelRequest
from greenroom.results import CaseResult
from greenroom.store import Store
from greenroom.store.journal import Journal
from greenroom.suite.cancel import Cancel
from greenroom.world import Middleware, retry
from store.asked import Asked
from store.errands import OK, PER_TRIAL, answer, case, cases, clerk, cut_run, ids, resumed, statuses
from store.timeless import timeless
from warm_python import WarmPython


async def test_a_finished_trial_is_not_played_again(tmp_path: Path) -> None:
    before = await cut_run(tmp_path, cases(), at=PER_TRIAL + 1)
    report, model = await resumed(tmp_path, cases())
    assert statuses(report) == ["passed"] * 3
    assert before.count + model.count == 3 * PER_TRIAL + 1
    assert not [asked for asked in model.questions if asked.endswith("found a")]


async def test_a_whole_run_that_is_resumed_by_its_id_asks_nothing(tmp_path: Path) -> None:
    first, _ = await resumed(tmp_path, cases(), resume=False)
    again, model = await resumed(tmp_path, cases(), resume=first.id)
    assert model.count == 0
    assert (again.id, timeless(again)) == (first.id, timeless(first))


async def test_only_the_run_of_this_set_goes_on(tmp_path: Path) -> None:
    await cut_run(tmp_path, cases("a", "b"), at=2)
    with pytest.raises(NotFound, match=r"no run of 'others' .* is unfinished"):
        await resumed(tmp_path, EvalSet("others", [case("a")]))


async def test_a_run_that_nobody_knows_cannot_go_on(tmp_path: Path) -> None:
    await cut_run(tmp_path, cases(), at=2)
    with pytest.raises(NotFound, match="no run 'nonsense'"):
        await resumed(tmp_path, cases(), resume="nonsense")


@pytest.mark.parametrize("store", [False, None])
async def test_without_a_store_nothing_can_go_on(
    monkeypatch: pytest.MonkeyPatch, store: bool | None
) -> None:
    monkeypatch.setenv("GREENROOM_STORE", "off")
    with pytest.raises(BadInput, match=r"no store to resume from.*GREENROOM_STORE=off"):
        await evaluate(clerk(Asked(answer)), cases(), store=store, resume=True)


@pytest.mark.sqlite
async def test_a_failed_attempt_to_go_on_does_not_stand_in_the_way_of_the_next(
    tmp_path: Path,
) -> None:
    await cut_run(tmp_path, cases(), at=PER_TRIAL + 2)
    database = Store(tmp_path).database
    with database.connected() as connection:
        connection.execute(
            "create trigger full before update on runs begin select raise(fail, 'no room'); end"
        )
    with pytest.raises(StoreFailed, match="no room"):
        await resumed(tmp_path, cases())
    with database.connected() as connection:
        connection.execute("drop trigger full")
    report, _ = await resumed(tmp_path, cases())
    assert report.passed


# What has changed


async def test_a_changed_case_is_played_anew_and_the_others_are_not(tmp_path: Path) -> None:
    await cut_run(tmp_path, cases(), at=2 * PER_TRIAL + 1)
    changed = EvalSet("errands", [case("a"), case("b", "Other words"), case("c")])
    report, model = await resumed(tmp_path, changed)
    assert statuses(report) == ["passed"] * 3
    assert [asked for asked in model.questions if "words" in asked] == ["clerk:Other words"]
    assert not [asked for asked in model.questions if asked.endswith("found a")]


async def test_a_changed_mock_makes_it_another_case(tmp_path: Path) -> None:
    await cut_run(tmp_path, cases("a", "b"), at=PER_TRIAL + 1)
    changed = EvalSet("errands", [case("a", mocks={"look": "news"}), case("b")])
    _, model = await resumed(tmp_path, changed)
    assert "clerk:news" in model.questions


async def test_a_changed_case_that_was_cut_begins_anew(tmp_path: Path) -> None:
    await cut_run(tmp_path, cases("a"), at=3)
    changed = EvalSet("errands", [case("a", "Other", "words")])
    report, model = await resumed(tmp_path, changed)
    assert model.count == PER_TRIAL
    assert "Hello" not in (report.results[0].ledger or pytest.fail("no ledger")).dumps()


async def test_a_removed_case_is_dropped(tmp_path: Path) -> None:
    await cut_run(tmp_path, cases("a", "b", "c"), at=2 * PER_TRIAL + 1)
    report, _ = await resumed(tmp_path, cases("b", "c"))
    assert ids(report) == ids(Store(tmp_path).report(report.id)) == ["b", "c"]


async def test_cases_that_a_resumed_run_leaves_out_are_noted(tmp_path: Path) -> None:
    await cut_run(tmp_path, cases(), at=PER_TRIAL + 1)
    fewer, _ = await resumed(tmp_path, cases("a", "b"))
    [note] = [note for note in fewer.notes if "left out" in note]
    assert note.startswith("begun with 3 cases and resumed with 2: 1 case is left out.")
    whole, _ = await resumed(tmp_path, cases(), resume=fewer.id)
    assert statuses(whole) == ["passed"] * 3
    assert not [note for note in whole.notes if "left out" in note]


async def test_results_that_a_run_with_fewer_trials_leaves_out_are_noted(tmp_path: Path) -> None:
    three = replace(cases("a", "b"), trials=3)
    await cut_run(tmp_path, three, at=5 * PER_TRIAL + 1)
    fewer, _ = await resumed(tmp_path, cases("a", "b"), trials=1)
    assert len(fewer.results) == len(Store(tmp_path).report(fewer.id).results) == 2
    [note] = [note for note in fewer.notes if "left out" in note]
    assert note.startswith(
        "begun with 3 trials of each case and resumed with 1: 3 results are left out."
    )
    assert note.endswith(f"resume run {fewer.id!r} with trials=3.")
    whole, model = await resumed(tmp_path, three, resume=fewer.id)
    assert (len(whole.results), model.count) == (6, PER_TRIAL)
    assert not [note for note in whole.notes if "left out" in note]


async def test_what_confirmed_and_is_left_out_is_had_back_with_the_baseline(tmp_path: Path) -> None:
    both = cases("a", "b")
    before = await evaluate(clerk(Asked(answer)), both, metrics=[OK], trials=3, store=False)
    silent = clerk(Asked(lambda request: "No."))
    given: dict[str, Any] = {"agent": silent, "trials": 1}
    again = {"baseline": before, "confirm": 2}
    first, _ = await resumed(tmp_path, both, resume=False, **given, **again)
    ran = len(first.confirmed)
    assert ran
    for _ in range(2):
        less, _ = await resumed(tmp_path, both, resume=first.id, **given)
        [note] = [note for note in less.notes if "left out" in note]
        assert note.endswith(f"resume run {first.id!r} with the baseline again and confirm=2.")
    whole, _ = await resumed(tmp_path, both, resume=first.id, **given, **again)
    assert len(whole.confirmed) == ran
    assert not [note for note in whole.notes if "left out" in note]


async def test_an_adaptive_run_that_left_trials_out_is_had_back_as_one(tmp_path: Path) -> None:
    auto = {"trials": "auto", "min_pass_rate": 0.5}
    first, _ = await resumed(tmp_path, cases("a"), resume=False, **auto)
    assert len(first.results) > 1
    less, _ = await resumed(tmp_path, cases("a"), resume=first.id, trials=1)
    [note] = [note for note in less.notes if "left out" in note]
    assert note.startswith("begun with up to ")
    assert note.endswith(f"""resume run {first.id!r} with trials="auto".""")


class Polite(Middleware):
    """Adds a word to each reply."""

    async def after_model(self, request: ModelRequest, reply: ModelReply) -> str:
        """The reply, and a word more."""
        return f"{reply.text} Please."


class Polished(Polite):
    """The same middleware, edited."""

    name = "Polite"

    async def after_model(self, request: ModelRequest, reply: ModelReply) -> str:
        """The reply, and another word more."""
        return f"{reply.text} Thanks."


class Watching(Middleware):
    """Only looks."""

    async def on_event(self, event: Event) -> None:
        """Nothing is changed."""


class Lenient:
    """A plug-in that may replace what a metric found."""

    def on_metric_complete(self, case: Case, name: str, outcome: object) -> None:
        """Nothing is replaced this time."""


@pytest.mark.parametrize(
    "then, now, what",
    [
        ({"middleware": [Polite()]}, {}, "middleware 'Polite' was removed"),
        ({}, {"middleware": [Polite()]}, "middleware 'Polite' was added"),
        (
            {"middleware": [Polite()]},
            {"middleware": [Polished()]},
            "middleware 'Polite' has changed",
        ),
        (
            {"middleware": [retry(times=2)]},
            {"middleware": [retry(times=3)]},
            "middleware 'retry' has changed",
        ),
        ({"plugins": [Lenient()]}, {}, "hook 'Lenient.on_metric_complete' was removed"),
        ({}, {"on_metric_complete": lambda *_: None}, "hook '<lambda>' was added"),
    ],
)
async def test_another_middleware_or_a_hook_that_may_replace_outcomes_is_named(
    tmp_path: Path, then: Any, now: Any, what: str
) -> None:
    await cut_run(tmp_path, cases("a", "b"), at=PER_TRIAL + 1, **then)
    with pytest.raises(BadInput, match=what):
        await resumed(tmp_path, cases("a", "b"), **now)
    report, _ = await resumed(tmp_path, cases("a", "b"), accept_changes=True, **now)
    assert len(report.results) == 2


class Rule:
    """A hook that is an object; each shows itself with its address."""

    def __call__(self, case: Case, name: str, outcome: object) -> None:
        """Nothing is replaced this time."""


def lenient(by: object, case: Case, name: str, outcome: object) -> None:
    """A hook that is given more than a hook is called with."""


@dataclass(frozen=True)
class Ruled(Middleware):
    """Middleware with options that cannot change."""

    rules: tuple[object, ...] = ()

    async def before_model(self, request: ModelRequest) -> None:
        """Nothing is changed."""


EIGHTS = cycle([(8, 16), (16, 8)])


@pytest.mark.parametrize(
    "build, other",
    [
        (lambda: {"on_metric_complete": Rule()}, {}),
        (
            lambda: {"on_metric_complete": partial(lenient, 1)},
            {"on_metric_complete": partial(lenient, 2)},
        ),
        (
            lambda: {"on_metric_complete": partial(partial(Rule()), name="it")},
            {"on_metric_complete": partial(Rule())},
        ),
        (
            lambda: {"middleware": [Ruled((partial(lenient, Rule()), [Ruled]))]},
            {"middleware": [Ruled((partial(lenient, Ruled()), [Ruled]))]},
        ),
        (
            # These numbers collide in a set, so each set shows them in the order in which they came.
            lambda: {"middleware": [Ruled((set(next(EIGHTS)), {"most": (1,)}, Ruled((1,))))]},
            {"middleware": [Ruled(({8, 16}, {"most": (1,)}, Ruled((2,))))]},
        ),
    ],
)
async def test_a_hook_and_an_option_are_known_by_what_they_are_and_not_where(
    tmp_path: Path, build: Any, other: Any
) -> None:
    await cut_run(tmp_path, cases("a", "b"), at=PER_TRIAL + 1, **build())
    with pytest.raises(BadInput, match=r"has changed|was removed"):
        await resumed(tmp_path, cases("a", "b"), **other)
    report, _ = await resumed(tmp_path, cases("a", "b"), **build())
    assert len(report.results) == 2


async def test_what_only_looks_may_come_and_go(tmp_path: Path) -> None:
    await cut_run(tmp_path, cases("a", "b"), at=PER_TRIAL + 1, middleware=[Watching()])
    report, _ = await resumed(tmp_path, cases("a", "b"), on_case_complete=lambda _: None)
    assert report.passed


async def test_a_run_of_an_earlier_version_does_not_say_what_middleware_it_had(
    tmp_path: Path,
) -> None:
    await cut_run(tmp_path, cases("a", "b"), at=PER_TRIAL + 1, middleware=[Polite()])
    with Store(tmp_path).database.connected() as connection:
        [(plan,)] = connection.execute("select plan from runs").fetchall()
        old = {name: part for name, part in json.loads(plan).items() if name != "around"}
        connection.execute("update runs set plan = ?", (json.dumps(old),))
    report, _ = await resumed(tmp_path, cases("a", "b"))
    assert len(report.results) == 2


async def test_an_added_case_is_played_in_its_place(tmp_path: Path) -> None:
    await cut_run(tmp_path, cases("b", "d"), at=PER_TRIAL + 1)
    report, model = await resumed(tmp_path, cases("a", "b", "c", "d"))
    assert ids(report) == ids(Store(tmp_path).report(report.id)) == ["a", "b", "c", "d"]
    assert model.count == 3 * PER_TRIAL


async def test_fewer_trials_drop_those_that_are_not_wanted_any_more(tmp_path: Path) -> None:
    await cut_run(tmp_path, cases("a", "b"), at=3 * PER_TRIAL + 1, trials=3)
    report, model = await resumed(tmp_path, cases("a", "b"), trials=2)
    wanted = ["a", "a (trial 2)", "b", "b (trial 2)"]
    assert ids(report) == ids(Store(tmp_path).report(report.id)) == wanted
    assert model.count == 2 * PER_TRIAL


async def test_more_trials_add_to_those_that_are_there(tmp_path: Path) -> None:
    await cut_run(tmp_path, cases("a", "b"), at=PER_TRIAL + 1)
    report, model = await resumed(tmp_path, cases("a", "b"), trials=2)
    wanted = ["a", "a (trial 2)", "b", "b (trial 2)"]
    assert ids(report) == ids(Store(tmp_path).report(report.id)) == wanted
    assert model.count == 3 * PER_TRIAL


async def test_a_changed_agent_is_refused(tmp_path: Path) -> None:
    await cut_run(tmp_path, cases(), at=PER_TRIAL + 1)
    model = Asked(answer)
    with pytest.raises(BadInput, match="the agent has changed"):
        await resumed(tmp_path, cases(), agent=clerk(model, "Be long."))
    assert model.count == 0


@pytest.mark.parametrize("name", [None, "nightly"])
async def test_a_changed_agent_goes_on_if_that_is_accepted(
    tmp_path: Path, name: str | None
) -> None:
    await cut_run(tmp_path, cases(), at=PER_TRIAL + 3, resume_or_new=name)
    model = Asked(answer)
    how = {"resume": not name, "resume_or_new": name, "accept_changes": True}
    report, _ = await resumed(tmp_path, cases(), agent=clerk(model, "Be long."), **how)
    assert statuses(report) == ["passed"] * 3
    assert model.count == 2 * PER_TRIAL
    assert [note for note in report.notes if "'b'" in note and "agent has changed" in note]


@pytest.mark.parametrize(
    "now, words",
    [
        ([contains("found", name="ok")], "metric 'ok' has changed"),
        ([OK, contains("found", name="found")], "metric 'found' was added"),
        ([], "metric 'ok' was removed"),
    ],
)
async def test_a_changed_metric_is_refused_by_its_name(
    tmp_path: Path, now: Sequence[Any], words: str
) -> None:
    await cut_run(tmp_path, cases(), at=PER_TRIAL + 1)
    with pytest.raises(BadInput, match=words):
        await resumed(tmp_path, cases(), metrics=now)
    report, _ = await resumed(tmp_path, cases(), metrics=now, accept_changes=True)
    assert len(report) == 3


async def test_a_refused_run_can_go_on_as_it_was(tmp_path: Path) -> None:
    await cut_run(tmp_path, cases(), at=PER_TRIAL + 3)
    with pytest.raises(BadInput):
        await resumed(tmp_path, cases(), metrics=[])
    report, model = await resumed(tmp_path, cases())
    assert statuses(report) == ["passed"] * 3
    assert model.count == 2 * PER_TRIAL - 2


async def test_another_list_of_cases_does_not_sweep_a_run_away(tmp_path: Path) -> None:
    """Lists of cases have no name of their own, so one is easily taken for another."""
    options: dict[str, Any] = {"store": tmp_path, "metrics": [OK], "concurrency": 1}
    model = Asked(answer, cut=PER_TRIAL + 1)
    await evaluate(clerk(model), [case("a"), case("b")], cancel=model.cancel, **options)
    with pytest.raises(BadInput, match="none of its finished cases is among these"):
        await evaluate(clerk(Asked(answer)), [case("x"), case("y")], resume=True, **options)
    again = Asked(answer)
    await evaluate(clerk(again), [case("a"), case("b")], resume=True, **options)
    assert again.count == PER_TRIAL


# Who else is at work

HOLD = """
import sys
from greenroom.store import Store
from greenroom.store.journal import Journal
from greenroom.suite.cancel import Cancel
journal = Store(sys.argv[1]).journal(sys.argv[2])
print("held", flush=True)
sys.stdin.read()
"""


@pytest.mark.sqlite
async def test_a_run_that_is_under_way_in_another_process_is_refused(tmp_path: Path) -> None:
    await cut_run(tmp_path, cases(), at=PER_TRIAL + 1)
    [run] = Store(tmp_path).runs()
    command = [sys.executable, "-c", HOLD, str(tmp_path), run.id]
    with WarmPython(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(StoreFailed, match=f"run '{run.id}' is in use by another process"):
            await resumed(tmp_path, cases(), resume=run.id)
        with pytest.raises(StoreFailed, match="is in use by another process"):
            Store(tmp_path).delete(run.id)
        holder.communicate()
    report, _ = await resumed(tmp_path, cases(), resume=run.id)
    assert report.passed


async def test_a_case_that_was_left_out_for_once_is_not_played_again(tmp_path: Path) -> None:
    first, _ = await resumed(tmp_path, cases("a", "b", "c"), resume=False)
    fewer, _ = await resumed(tmp_path, cases("b"), resume=first.id)
    assert ids(fewer) == ["b"]
    again, model = await resumed(tmp_path, cases("a", "b", "c"), resume=first.id)
    assert ids(again) == ids(Store(tmp_path).report(first.id)) == ["a", "b", "c"]
    assert model.count == 0


async def test_trials_that_ended_in_an_error_are_played_again_if_asked_for(tmp_path: Path) -> None:
    broken = {"on": True}

    def answers(_: object) -> str:
        if broken["on"]:
            raise RuntimeError("the provider is down")
        return "Hello."

    agent = Agent("desk", model=Scripted(answers))
    asked = [Case(name, says="Hi.", expect=Expect(response="Hello.")) for name in ("a", "b")]
    first = await evaluate(agent, asked, store=tmp_path)
    assert statuses(first) == ["error", "error"]
    broken["on"] = False
    kept = await evaluate(agent, asked, store=tmp_path, resume=first.id)
    assert statuses(kept) == ["error", "error"]
    again = await evaluate(agent, asked, store=tmp_path, resume=first.id, retry_errors=True)
    assert statuses(again) == ["passed", "passed"]
    assert statuses(Store(tmp_path).report(first.id)) == ["passed", "passed"]


@pytest.mark.parametrize("on_error", ["stop", "skip"])
async def test_an_error_of_a_run_that_was_cut_is_retried_with_a_fresh_question(
    tmp_path: Path, on_error: Any
) -> None:
    broken = {"on": True}

    def answers(_: object) -> str:
        if broken["on"]:
            raise RuntimeError("the provider is down")
        return "Hello."

    agent = Agent("desk", model=Scripted(answers))
    asked = [Case(name, says="Hi.", expect=Expect(response="Hello.")) for name in ("a", "b")]
    first = await evaluate(agent, asked, store=tmp_path, on_error=on_error, concurrency=1)
    broken["on"] = False
    again = await evaluate(agent, asked, store=tmp_path, resume=first.id, retry_errors=True)
    assert statuses(again) == ["passed", "passed"]


async def failed_run(place: Path, evalset: EvalSet, **options: Any) -> str:
    """A run whose only trial broke at its last question."""

    def breaks(request: ModelRequest) -> Any:
        if model.count == PER_TRIAL:
            raise RuntimeError("the provider is down")
        return answer(request)

    model = Asked(breaks)
    first, _ = await resumed(place, evalset, resume=False, agent=clerk(model), **options)
    assert (statuses(first), model.count) == (["error"], PER_TRIAL)
    return first.id


async def retried(place: Path, run_id: str, cut: int = 0, **options: Any) -> tuple[Report, Asked]:
    model = Asked(answer, cut=cut)
    given: Any = {"accept_changes": True, "retry_errors": True, "cancel": model.cancel, **options}
    agent = clerk(model)
    again = await evaluate(
        agent, cases("a"), store=place, resume=run_id, metrics=[OK], concurrency=1, **given
    )
    return again, model


@pytest.mark.parametrize("cut", range(1, PER_TRIAL + 1))
async def test_a_retry_that_was_cut_goes_on_where_it_was(tmp_path: Path, cut: int) -> None:
    run_id = await failed_run(tmp_path, cases("a"))
    _, before = await retried(tmp_path, run_id, cut=cut)
    again, model = await retried(tmp_path, run_id)
    assert statuses(again) == ["passed"]
    assert before.count + model.count == PER_TRIAL + 1


async def test_a_retry_that_was_cut_goes_on_whether_or_not_it_is_asked_for_again(
    tmp_path: Path,
) -> None:
    run_id = await failed_run(tmp_path, cases("a"))
    _, before = await retried(tmp_path, run_id, cut=3)
    again, model = await retried(tmp_path, run_id, retry_errors=False)
    assert statuses(again) == ["passed"]
    assert before.count + model.count == PER_TRIAL + 1


async def test_a_real_tool_of_a_retry_that_was_cut_does_not_act_twice(tmp_path: Path) -> None:
    acted, token, is_down = list[int](), Cancel(), True

    @tool
    async def pay(amount: int) -> str:
        """Pay."""
        acted.append(amount)
        token.cancel("cut by the test")
        await asyncio.sleep(3600)
        return "paid"

    def answers(request: ModelRequest) -> Any:
        if is_down:
            raise RuntimeError("the provider is down")
        return call("pay", amount=3) if request.n % 2 == 0 else "Paid."

    agent = Agent("payer", model=Scripted(then=answers), tools=[pay])
    evalset = EvalSet("payments", [Case("a", says="Pay 3.", allow_tools=[pay], metrics=[OK])])
    first = await evaluate(agent, evalset, store=tmp_path)
    is_down = False
    going_on: Any = {"store": tmp_path, "resume": first.id}
    await evaluate(agent, evalset, retry_errors=True, cancel=token, **going_on)
    assert acted == [3]
    for again in (False, True):
        report = await evaluate(agent, evalset, retry_errors=again, **going_on)
        assert report.results[0].error is not None
        assert report.results[0].error.type == "InDoubt"
    assert acted == [3]


async def test_a_retry_goes_on_though_the_ledger_of_the_failed_try_is_damaged(
    tmp_path: Path,
) -> None:
    run_id = await failed_run(tmp_path, cases("a"))
    _, before = await retried(tmp_path, run_id, cut=3)
    with Store(tmp_path).database.connected() as connection:
        connection.execute("update trials set ledger = ?", (b"no ledger\n{}\n",))
    again, model = await retried(tmp_path, run_id)
    assert statuses(again) == ["passed"]
    assert before.count + model.count == PER_TRIAL + 1


async def test_what_was_left_of_the_failed_try_itself_is_not_taken_for_a_retry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as killed:  # after the commit, before its place is emptied
        killed.setattr(Journal, "release", lambda *_: None)
        killed.setattr(Journal, "close", lambda own, *, remove: own.freeze())
        run_id = await failed_run(tmp_path, cases("a"))
    for lock in (tmp_path / "journals" / run_id).glob("lock"):
        lock.unlink()
    again, model = await retried(tmp_path, run_id)
    assert statuses(again) == ["passed"]
    assert model.count == PER_TRIAL


def dear(text: str, cost: float) -> Scripted:
    return Scripted(ModelReply(text, cost=cost, prices="a test"))


async def test_what_was_spent_on_trials_that_are_played_again_counts(tmp_path: Path) -> None:
    evalset = EvalSet("dear", [Case("a", turns=[Turn("Hi."), Turn("And?")])])
    going_on: Any = {"store": tmp_path, "budget": 1.0, "metrics": [OK]}
    agent = Agent("desk", model=dear("Hello.", 0.4))  # its script has no second answer
    first = await evaluate(agent, evalset, **going_on)
    second = await evaluate(agent, evalset, resume=first.id, retry_errors=True, **going_on)
    assert statuses(second) == ["error"]
    assert Store(tmp_path).spent(first.id) == pytest.approx((0.8, 0.4))
    assert (second.cost, second.spent) == pytest.approx((0.8, 0.8))
    [result] = Store(tmp_path).report(first.id)
    assert (result.cost, result.spent) == pytest.approx((0.4, 0.8))
    assert Store(tmp_path).run(first.id).cost == pytest.approx(0.8)
    third = await evaluate(agent, evalset, resume=first.id, retry_errors=True, **going_on)
    assert statuses(third) == ["skipped"]
    assert "$0.8 is spent" in third.results[0].notes[0]


@pytest.mark.parametrize("workers", [0, 2])
async def test_if_only_a_metric_broke_only_that_metric_is_repeated(
    tmp_path: Path, workers: int
) -> None:
    """The conversation is not held again, no other metric measures again, and all that was paid counts."""
    (tmp_path / "desk.py").write_text(DESK)
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(tmp_path)
        patched.syspath_prepend(tmp_path)
        given: Any = {"store": tmp_path, "workers": workers or None}
        first = await evaluate("desk.py:agent", "desk.py:cases", **given)
        assert statuses(first) == ["error"]
        (tmp_path / "repaired").touch()
        again = await evaluate(
            "desk.py:agent", "desk.py:cases", resume=first.id, retry_errors=True, **given
        )
    assert statuses(again) == ["passed"]
    said = {name: (tmp_path / name).read_text() for name in ("agent", "length", "mood", "broken")}
    assert said == {"agent": "x", "length": "x", "mood": "x", "broken": "xx"}
    assert (again.cost, again.judge_cost) == pytest.approx((0.4, 0.75))
    assert Store(tmp_path).run(first.id).cost == pytest.approx(1.15)
    assert Store(tmp_path).spent(first.id)[0] == pytest.approx(1.15)
    assert Store(tmp_path).report(first.id).spent == pytest.approx(1.15)


DESK = """
from pathlib import Path
from greenroom import Agent, Case, Scripted
from greenroom.metrics import judge, metric
from greenroom.models import ModelReply

HERE = Path(__file__).parent

def note(name):
    with (HERE / name).open("a") as file:
        file.write("x")

def answer(request):
    note("agent")
    return ModelReply("Hello.", cost=0.4, prices="a test")

def graded(name, answer):
    def grade(request):
        note(name)
        return ModelReply(answer(), cost=0.25, prices="a test")
    return Scripted(then=grade)

GOOD = '{"reasoning": "It is.", "verdict": true}'
mood = judge("mood", "Is it kind?", model=graded("mood", lambda: GOOD), retries=0)
repaired = HERE / "repaired"
broken = judge(
    "broken", "Is it?", model=graded("broken", lambda: GOOD if repaired.exists() else "?"), retries=0
)
agent = Agent("desk", model=Scripted(then=answer))

@metric
def length(response):
    note("length")
    return True

cases = [Case("a", says="Hi.", metrics=[length, mood, broken])]
"""


async def test_a_bar_that_cannot_be_leaves_no_run_behind(tmp_path: Path) -> None:
    agent = Agent("desk", model=Scripted("Hello."))
    with pytest.raises(BadInput):
        await evaluate(agent, cases("a"), store=tmp_path, trials="auto", min_pass_rate=1.5)
    assert Store(tmp_path).runs() == []


async def test_an_adaptive_run_that_is_broken_off_is_not_finished(tmp_path: Path) -> None:
    asked = [Case(f"c{n}", says="Hi.", expect=Expect(response="Hello.")) for n in range(8)]
    agent = Agent("desk", model=Scripted("Hello.", latency=0.01))
    options: Any = {"store": tmp_path, "trials": "auto", "min_pass_rate": 0.8}
    seen: list[str] = []

    def told(result: CaseResult) -> None:
        seen.append(result.case_id)
        if len(seen) == 9:
            running.cancel()

    running = asyncio.ensure_future(evaluate(agent, asked, on_case_complete=told, **options))
    with pytest.raises(asyncio.CancelledError):
        await running
    [run] = Store(tmp_path).runs()
    assert run.status == "interrupted"
    report = await evaluate(agent, asked, resume=True, **options)
    assert "which reaches the minimum of 80 %" in report.notes[0]
