"""A trial that was cut goes on where it was, and asks nothing that was answered."""

import asyncio
import os
import resource
import shutil
from pathlib import Path
from typing import Any

import pytest

from greenroom import (
    Agent,
    Case,
    EvalSet,
    Scripted,
    Stop,
    Turn,
    UserAgents,
    call,
    evaluate,
    step,
    tool,
)
from greenroom.ledger import RunResumed
from greenroom.metrics.judges import judge
from greenroom.store import Store
from greenroom.store.journal import Entry, Journal
from greenroom.suite.cancel import Cancel
from store.asked import Asked
from store.errands import (
    OK,
    PER_TRIAL,
    answer,
    case,
    cases,
    clerk,
    cut_run,
    left_files,
    look,
    resumed,
    statuses,
)
from store.timeless import timeless


@pytest.mark.parametrize("at", range(1, PER_TRIAL + 1))
async def test_a_cut_trial_goes_on_at_the_question_it_was_cut_at(tmp_path: Path, at: int) -> None:
    before = await cut_run(tmp_path, cases("a"), at=at)
    report, model = await resumed(tmp_path, cases("a"))
    whole, unbroken = await resumed(tmp_path / "whole", cases("a"), resume=False)
    assert before.questions[:-1] + model.questions == unbroken.questions
    assert timeless(report) == timeless(whole)
    assert report.results[0].ledger is not None
    assert len(report.results[0].ledger.of(RunResumed)) == min(at - 1, 1)


async def test_a_trial_that_is_cut_again_and_again_comes_to_the_same_end(tmp_path: Path) -> None:
    evalset, asked = cases("a", "b"), 0
    asked += (await cut_run(tmp_path, evalset, at=1)).count
    while True:
        model = Asked(answer, cut=2)
        report = await evaluate(
            clerk(model),
            evalset,
            store=tmp_path,
            resume=True,
            metrics=[OK],
            concurrency=1,
            cancel=model.cancel,
        )
        asked += model.count
        if not model.cancel.reason:
            break
    whole, unbroken = await resumed(tmp_path / "whole", evalset, resume=False)
    assert timeless(report) == timeless(whole)
    # Each cut took one question along; each process but the last was cut once.
    assert asked == unbroken.count + 2 * PER_TRIAL


async def test_a_run_whose_task_is_cancelled_can_go_on(tmp_path: Path) -> None:
    model = Asked(answer, cut=PER_TRIAL + 2)
    running = asyncio.ensure_future(
        evaluate(clerk(model), cases(), store=tmp_path, metrics=[OK], concurrency=1)
    )
    await model.is_cut.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    report, again = await resumed(tmp_path, cases())
    whole, _ = await resumed(tmp_path / "whole", cases(), resume=False)
    assert timeless(report) == timeless(whole)
    assert again.count == 2 * PER_TRIAL - 1


async def test_branches_that_were_cancelled_with_their_run_go_on(tmp_path: Path) -> None:
    def flow(model: Asked) -> Any:
        one = Agent("one", model=model, tools=[look])
        two = Agent("two", model=model)
        return one | two

    evalset = EvalSet("beside", [case("a", "Hello")])
    model = Asked(lambda r: answer(r) if r.agent == "one" else "Answer", cut=3)
    running = asyncio.ensure_future(evaluate(flow(model), evalset, store=tmp_path, metrics=[OK]))
    await model.is_cut.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    again = Asked(lambda r: answer(r) if r.agent == "one" else "Answer")
    report = await evaluate(flow(again), evalset, store=tmp_path, metrics=[OK], resume=True)
    assert statuses(report) == ["passed"]
    assert again.count == 1


async def test_answers_of_judges_are_not_asked_for_again(tmp_path: Path) -> None:
    def run_with(bench: Asked, model: Asked, **options: Any) -> Any:
        judges = [
            judge(name, f"Is it {name}?", model=bench, samples=2) for name in ("kind", "short")
        ]
        return evaluate(clerk(model), cases("a"), store=tmp_path, metrics=judges, **options)

    bench, model = Asked(lambda _: '{"reasoning": "so", "verdict": true}', cut=4), Asked(answer)
    await run_with(bench, model, cancel=bench.cancel)
    assert (bench.count, model.count) == (4, PER_TRIAL)
    again, player = Asked(lambda _: '{"reasoning": "so", "verdict": true}'), Asked(answer)
    report = await run_with(again, player, resume=True)
    assert statuses(report) == ["passed"]
    assert player.count == 0
    assert again.count == 1
    assert report.results[0].judge_models == {"scripted": 4}


async def test_a_user_agent_is_not_asked_again_for_what_it_said(tmp_path: Path) -> None:
    def played(person: Asked, **options: Any) -> Any:
        user = UserAgents(loop=Agent("patient", model=person))
        one = Case("a", "Hello", user=user, mocks={"look": "found"}, stop=stop)
        return evaluate(clerk(Asked(answer)), one, store=tmp_path, metrics=[OK], **options)

    stop = Stop(max_turns=4)
    person = Asked(lambda r: f"Next {r.n}", cut=3)
    await played(person, cancel=person.cancel)
    again = Asked(lambda r: f"Next {r.n}")
    report = await played(again, resume=True)
    ledger = report.results[0].ledger
    assert ledger is not None
    assert "Next 0" in ledger.dumps()
    assert "Next 2" in ledger.dumps()
    assert person.count - 1 + again.count == 3


async def test_a_checkpoint_backend_goes_on_at_its_last_pause(tmp_path: Path) -> None:
    pytest.importorskip("pydantic_ai")
    from pydantic_ai import Agent as PydanticAgent
    from pydantic_ai.messages import ModelResponse, TextPart
    from pydantic_ai.models.function import AgentInfo, FunctionModel

    def agent(asked: list[int], cut: int, cancel: Cancel) -> Any:
        async def respond(messages: list[Any], info: AgentInfo) -> ModelResponse:
            asked.append(len(messages))
            if len(asked) == cut:
                cancel.cancel()
                await asyncio.sleep(3600)
            return ModelResponse(parts=[TextPart(f"Answer to {len(messages)}")])

        return PydanticAgent(FunctionModel(respond), name="clerk")

    evalset = EvalSet("far", [Case("a", turns=[Turn("one"), Turn("two"), Turn("three")])])
    before: list[int] = []
    token = Cancel()
    options: dict[str, Any] = {"metrics": [OK], "store": tmp_path}
    await evaluate(agent(before, 3, token), evalset, cancel=token, **options)
    after: list[int] = []
    report = await evaluate(agent(after, 0, token), evalset, resume=True, **options)
    assert statuses(report) == ["passed"]
    assert before == [1, 3, 5]
    assert after == [5]


async def test_a_function_is_begun_anew_and_hears_its_answers_again(tmp_path: Path) -> None:
    def agent(model: Asked) -> Any:
        async def clerk(message: str, ctx: Any) -> str:
            first = await ctx.ask(model, f"first of {message}")
            return await ctx.ask(model, f"then {first}")

        return clerk

    evalset = EvalSet("plain", [Case("a", turns=[Turn("one"), Turn("two")])])
    options: dict[str, Any] = {"metrics": [OK], "store": tmp_path, "allow_opaque": True}
    model = Asked(lambda r: f"Answer {r.last}", cut=4)
    await evaluate(agent(model), evalset, cancel=model.cancel, **options)
    again = Asked(lambda r: f"Answer {r.last}")
    report = await evaluate(agent(again), evalset, resume=True, **options)
    assert statuses(report) == ["passed"]
    assert again.count == 1


async def test_a_step_before_an_answer_is_not_run_again(tmp_path: Path) -> None:
    ran: list[str] = []

    def flow(model: Asked) -> Any:
        @step(name="prepare")
        def prepare(input: str) -> str:
            ran.append(input)
            return f"prepared {input}"

        return prepare >> Agent("one", model=model) >> Agent("two", model=model)

    evalset = EvalSet("steps", [Case("a", "Hello")])
    model = Asked(lambda r: f"Answer of {r.agent}", cut=2)
    await evaluate(flow(model), evalset, store=tmp_path, cancel=model.cancel, metrics=[OK])
    again = Asked(lambda r: f"Answer of {r.agent}")
    report = await evaluate(flow(again), evalset, store=tmp_path, resume=True, metrics=[OK])
    assert statuses(report) == ["passed"]
    assert again.questions == ["two:Answer of one"]
    assert ran == ["Hello"]


@pytest.mark.sqlite
@pytest.mark.parametrize("name", ["-1.jsonl", "9.jsonl"])
async def test_the_longer_of_two_entries_of_a_trial_counts(tmp_path: Path, name: str) -> None:
    """A process that dies while it takes a trial up leaves two of them behind."""
    await cut_run(tmp_path, cases("a"), at=4)
    [path] = left_files(tmp_path)
    lines = path.read_bytes().splitlines(keepends=True)
    for shorter in (1, len(lines) // 2, len(lines) - 1):
        path.with_name(name).write_bytes(b"".join(lines[:shorter]))
        path.write_bytes(b"".join(lines))
        model = Asked(answer, cut=1)
        await evaluate(
            clerk(model),
            cases("a"),
            store=tmp_path,
            metrics=[OK],
            resume=True,
            cancel=model.cancel,
        )
        assert model.questions == ["clerk:found a"]
        for left in left_files(tmp_path):
            left.unlink()


@pytest.mark.sqlite
async def test_of_two_entries_of_a_trial_only_one_is_left_when_it_goes_on(tmp_path: Path) -> None:
    """The other would be longer than what is played again, should the run be cut again."""
    await cut_run(tmp_path, cases("a"), at=4)
    [path] = left_files(tmp_path)
    path.with_name("9.jsonl").write_bytes(path.read_bytes())
    model = Asked(answer, cut=1)
    await evaluate(
        clerk(model), cases("a"), store=tmp_path, metrics=[OK], resume=True, cancel=model.cancel
    )
    assert len(left_files(tmp_path)) == 1


@pytest.mark.sqlite
@pytest.mark.parametrize("name", ["-1.jsonl", "9.jsonl"])
async def test_the_entry_with_more_answers_of_judges_counts(tmp_path: Path, name: str) -> None:
    def run_with(bench: Asked, **options: Any) -> Any:
        kind = judge("kind", "Is it kind?", model=bench, samples=3)
        return evaluate(clerk(Asked(answer)), cases("a"), store=tmp_path, metrics=[kind], **options)

    bench = Asked(lambda _: '{"reasoning": "so", "verdict": true}', cut=3)
    await run_with(bench, cancel=bench.cancel)
    [path] = left_files(tmp_path)
    lines = path.read_bytes().splitlines(keepends=True)
    assert lines[-1].startswith(b"J")
    path.with_name(name).write_bytes(b"".join(line for line in lines if line[:1] != b"J"))
    again = Asked(lambda _: '{"reasoning": "so", "verdict": true}')
    assert (await run_with(again, resume=True)).passed
    assert again.count == 1


@pytest.mark.sqlite
async def test_a_journal_that_was_torn_anywhere_leads_to_the_same_end(tmp_path: Path) -> None:
    """A machine that lost its power may have lost any tail of the file."""
    await cut_run(tmp_path / "cut", cases("a"), at=PER_TRIAL)
    whole, unbroken = await resumed(tmp_path / "whole", cases("a"), resume=False)
    [path] = left_files(tmp_path / "cut")
    size = path.stat().st_size
    asked: list[int] = []
    for length in (*range(0, size, size // 25), size):
        place = tmp_path / str(length)
        shutil.copytree(tmp_path / "cut", place)
        os.truncate(left_files(place)[0], length)
        report, model = await resumed(place, cases("a"))
        assert timeless(report) == timeless(whole)
        asked.append(model.count)
    # The more is left, the less is asked again.
    assert asked == sorted(asked, reverse=True)
    assert (asked[0], asked[-1]) == (unbroken.count, 1)


@pytest.mark.sqlite
async def test_where_files_are_scarce_trials_are_kept_all_the_same(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = len(os.listdir("/dev/fd"))  # noqa: PTH208 - a short look, in an async test
    resource.setrlimit(resource.RLIMIT_NOFILE, (used + 20, hard))
    try:
        model = Scripted(then="Answer", latency=0.05)
        report = await evaluate(
            Agent("a", model=model),
            [Case(f"case {i}", "Hi") for i in range(120)],
            store=tmp_path,
            metrics=[OK],
            concurrency=60,
        )
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert statuses(report) == ["passed"] * 120
    assert report.notes == []
    assert Store(tmp_path).run(report.id).done == 120


@tool
def pay(amount: int) -> dict[str, Any]:
    """Pay for real."""
    PAID.append(amount)
    return {"paid": amount}


PAID: list[int] = []


async def cut_after_paying(place: Path) -> EvalSet:
    """A run in which a real tool has acted, and which was cut off then."""
    PAID.clear()
    evalset = EvalSet("payments", [Case("a", says="Pay 3.", allow_tools=[pay], metrics=[OK])])
    model = Asked(lambda _: call("pay", amount=3), cut=2)
    payer = Agent("payer", model=model, tools=[pay], instructions="Pay.")
    await evaluate(payer, evalset, store=place, cancel=model.cancel)
    assert PAID == [3]
    return evalset


def another_payer() -> Agent:
    replies = Scripted(call("pay", amount=3), "Paid.")
    return Agent("payer", model=replies, tools=[pay], instructions="Pay at once.")


async def test_a_real_tool_does_not_act_twice_however_often_the_run_is_cut(tmp_path: Path) -> None:
    evalset = await cut_after_paying(tmp_path)
    going_on: Any = {"store": tmp_path, "resume": True, "accept_changes": True}
    token = Cancel()
    await evaluate(
        another_payer(), evalset, cancel=token, on_case_start=lambda _: token.cancel(), **going_on
    )
    report = await evaluate(another_payer(), evalset, **going_on)
    assert report.results[0].error is not None
    assert report.results[0].error.type == "InDoubt"
    assert PAID == [3]


async def test_a_trial_in_doubt_is_not_retried(tmp_path: Path) -> None:
    evalset = await cut_after_paying(tmp_path)
    going_on: Any = {"store": tmp_path, "accept_changes": True}
    first = await evaluate(another_payer(), evalset, resume=True, **going_on)
    again = await evaluate(another_payer(), evalset, resume=first.id, retry_errors=True, **going_on)
    assert statuses(again) == ["error"]
    assert PAID == [3]


async def test_what_a_trial_without_a_file_had_paid_for_stays_in_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = await cut_run(tmp_path, cases("a"), at=PER_TRIAL)
    with monkeypatch.context() as scarce:
        scarce.setattr(Journal, "_new", lambda own: Entry(None, own))
        second = Asked(answer, cut=1)
        await evaluate(
            clerk(second),
            cases("a"),
            store=tmp_path,
            resume=True,
            metrics=[OK],
            cancel=second.cancel,
        )
    report, model = await resumed(tmp_path, cases("a"))
    assert statuses(report) == ["passed"]
    assert before.count + second.count + model.count == PER_TRIAL + 2
