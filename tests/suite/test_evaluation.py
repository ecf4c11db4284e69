"""An evaluation: what may be given to it, when it stops, and what its hooks may do."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from greenroom import (
    Agent,
    Case,
    EvalSet,
    Report,
    Scripted,
    SimulatedUser,
    Stop,
    call,
    evaluate,
    rehearse,
    step,
    tool,
)
from greenroom.cases import Criterion, write_evalset
from greenroom.cases.config import EvalConfig, UserSimulator
from greenroom.errors import BadCase, BadFile, BadInput, BadMetric, NotFound
from greenroom.ledger import tool_calls
from greenroom.metrics import contains
from greenroom.simulation.user.user_side import user_messages
from greenroom.store import Store

ECHO = step(lambda ctx: f"You said {ctx.input}", name="echo")
OK = contains("You said")


def case(name: str, says: str = "Hi", **options: Any) -> Case:
    return Case(name, says, **options)


def crash(ctx: Any) -> str:
    if ctx.input == "crash":
        raise RuntimeError("boom")
    return "fail" if ctx.input == "fail" else f"You said {ctx.input}"


FRAGILE = step(crash)
MIXED = [case("one"), case("two", "fail"), case("three", "crash"), case("four")]


def statuses(report: Report) -> list[str]:
    return [result.status for result in report]


@pytest.mark.parametrize(
    "given",
    [
        case("a"),
        [case("a")],
        (case("a"),),
        EvalSet("s", [case("a")]),
        {"a": case("a")}.values(),
    ],
)
async def test_cases_may_be_given_in_many_ways(given: Any) -> None:
    report = await evaluate(ECHO, given, metrics=[OK])
    assert (statuses(report), report.passed) == (["passed"], True)


async def test_cases_may_be_given_as_a_file(tmp_path: Path) -> None:
    write_evalset(EvalSet("s", [case("a"), case("b")], name="Smoke"), tmp_path / "s.json")
    for given in (tmp_path / "s.json", str(tmp_path / "s.json")):
        report = await evaluate(ECHO, given, metrics=[OK])
        assert (report.name, statuses(report)) == ("Smoke", ["passed", "passed"])


async def test_an_agent_and_its_cases_may_be_given_as_a_path(tmp_path: Path) -> None:
    (tmp_path / "my_agent.py").write_text(
        "from greenroom import Case, step\n"
        "agent = step(lambda ctx: f'You said {ctx.input}', name='echo')\n"
        "hello = Case('hello', 'Hello')\n"
    )
    path = str(tmp_path / "my_agent.py")
    report = await evaluate(path, path, metrics=[OK])
    assert [(r.case_id, r.status) for r in report] == [("hello", "passed")]


@pytest.mark.parametrize("given, error", [(5, BadFile), ([5], BadCase), ("nowhere.json", BadFile)])
async def test_what_is_no_case_is_refused(given: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        await evaluate(ECHO, given)


async def test_two_cases_of_one_id_are_refused() -> None:
    with pytest.raises(BadCase, match="two cases 'a'"):
        await evaluate(ECHO, [case("a"), case("a")])


async def test_what_no_backend_can_play_is_refused() -> None:
    with pytest.raises(NotFound, match="no backend can run"):
        await evaluate(object(), [case("a")])


async def test_no_cases_at_all_do_not_pass() -> None:
    report = await evaluate(ECHO, [])
    assert (len(report), report.passed, report.summary.pass_rate) == (0, False, None)


async def test_a_metric_that_cannot_be_bound_is_refused_before_anything_runs() -> None:
    ran: list[str] = []

    def wrong(nonsense: Any) -> bool:
        return True

    agent = step(lambda: ran.append("ran"), name="s")
    with pytest.raises(BadMetric, match="nonsense"):
        await evaluate(agent, [case("a")], metrics=[wrong])
    with pytest.raises(BadMetric, match="nonsense"):
        await evaluate(agent, [case("a"), case("b", metrics=[wrong])])
    assert ran == []


async def test_errors_are_collected_unless_said_otherwise() -> None:
    report = await evaluate(FRAGILE, MIXED, metrics=[OK], concurrency=1)
    assert statuses(report) == ["passed", "failed", "error", "passed"]
    assert not report.passed


async def test_an_error_may_stop_the_run() -> None:
    report = await evaluate(FRAGILE, MIXED, metrics=[OK], concurrency=1, on_error="stop")
    assert statuses(report) == ["passed", "failed", "error", "skipped"]
    assert report["four"].notes == ("not run: case 'three' had an error before",)


async def test_cases_with_errors_may_be_left_out_of_the_gate_but_are_shown() -> None:
    report = await evaluate(FRAGILE, MIXED, metrics=[OK], concurrency=1, on_error="skip")
    assert statuses(report) == ["passed", "failed", "skipped", "passed"]
    assert report["three"].error is not None
    assert "boom" in str(report)
    assert not report.passed


async def test_the_first_case_that_does_not_pass_may_stop_the_run() -> None:
    report = await evaluate(FRAGILE, MIXED, metrics=[OK], concurrency=1, fail_fast=True)
    assert statuses(report) == ["passed", "failed", "skipped", "skipped"]
    assert "case 'two' did not pass" in report["four"].notes[0]


@pytest.mark.parametrize(
    "options, first, why",
    [
        ({"on_error": "stop"}, "error", "had an error before"),
        ({"fail_fast": True}, "error", "did not pass"),
    ],
)
async def test_cases_under_way_when_the_run_stops_are_cut_and_those_finished_are_kept(
    tmp_path: Path, options: Any, first: str, why: str
) -> None:
    begun: list[str] = []
    cut: list[str] = []
    waiting = asyncio.Event()

    async def play(ctx: Any) -> str:
        begun.append(ctx.input)
        if ctx.input == "quick":
            return "You said quick"
        if ctx.input == "crash":
            await waiting.wait()
            raise RuntimeError("boom")
        try:
            waiting.set()
            return await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            cut.append(ctx.input)
            raise

    said = ["quick", "crash", "slow", "never"]
    everyone = [case(name, name) for name in said]
    report = await evaluate(
        step(play, name="play"), everyone, metrics=[OK], concurrency=2, store=tmp_path, **options
    )
    assert statuses(report) == ["passed", first, "skipped", "skipped"]
    assert (begun, cut) == (["quick", "crash", "slow"], ["slow"])
    assert report["slow"].notes == (f"not finished: case 'crash' {why}",)
    assert report["never"].notes == (f"not run: case 'crash' {why}",)
    assert [run.status for run in Store(tmp_path).runs()] == ["interrupted"]


async def test_a_run_that_stopped_early_goes_on_where_it_was_cut(tmp_path: Path) -> None:
    begun: list[str] = []
    waiting = asyncio.Event()
    mended: list[bool] = []

    async def play(ctx: Any) -> str:
        begun.append(ctx.input)
        if not mended and ctx.input == "bad":
            await waiting.wait()
            return "No."
        if not mended and ctx.input == "slow":
            waiting.set()
            return await asyncio.get_running_loop().create_future()
        return f"You said {ctx.input}"

    player, everyone = step(play, name="play"), [case(name, name) for name in ("bad", "slow")]
    options: Any = {"metrics": [OK], "store": tmp_path, "fail_fast": True}
    first = await evaluate(player, everyone, concurrency=2, **options)
    assert statuses(first) == ["failed", "skipped"]
    mended.append(True)
    second = await evaluate(player, everyone, resume=True, accept_changes=True, **options)
    assert statuses(second) == ["failed", "passed"]
    assert begun == ["bad", "slow", "slow"]


async def test_hooks_hear_of_every_case() -> None:
    heard: list[str] = []
    await evaluate(
        FRAGILE,
        MIXED,
        metrics=[OK],
        concurrency=1,
        fail_fast=True,
        on_case_start=lambda case: heard.append(f"{case.id} begins"),
        on_case_complete=lambda result: heard.append(f"{result.case_id} {result.status}"),
    )
    assert heard == [
        "one begins",
        "one passed",
        "two begins",
        "two failed",
        "three skipped",
        "four skipped",
    ]


async def test_a_hook_that_raises_harms_nothing_and_is_reported() -> None:
    def broken(_: Any) -> None:
        raise LookupError("no terminal")

    report = await evaluate(
        ECHO, [case("a"), case("b")], metrics=[OK], on_case_start=broken, on_case_complete=broken
    )
    assert statuses(report) == ["passed", "passed"]
    assert report.notes == ["the hook 'broken' raised LookupError('no terminal')"]
    assert "no terminal" in str(report)


async def test_metrics_of_a_run_are_added_and_the_cases_own_win() -> None:
    mine = contains("nowhere", name="words")
    report = await evaluate(
        ECHO, [case("a", metrics=[mine]), case("b")], metrics=[contains("You", name="words")]
    )
    assert statuses(report) == ["failed", "passed"]


async def test_ledgers_are_kept_unless_said_otherwise() -> None:
    kept = await evaluate(ECHO, [case("a")], metrics=[OK])
    dropped = await evaluate(ECHO, [case("a")], metrics=[OK], keep_ledgers=False)
    assert (kept["a"].ledger_or_none is None, dropped["a"].ledger_or_none is None) == (False, True)
    assert kept["a"].scores == dropped["a"].scores


async def test_a_cases_own_agent_needs_no_other() -> None:
    report = await evaluate(None, [case("a", agent=ECHO), case("b")], metrics=[OK])
    assert statuses(report) == ["passed", "error"]
    assert "has no agent" in str(report["b"].error)


async def test_a_report_says_in_short_what_it_holds() -> None:
    one = await evaluate(ECHO, [case("one")], metrics=[OK])
    two = await evaluate(ECHO, [case("one"), case("two")], metrics=[OK])
    assert [repr(one), repr(two)] == [
        "<Report of 1 result: 1 passed>",
        "<Report of 2 results: 2 passed>",
    ]


def test_rehearse_is_the_same_without_async() -> None:
    assert rehearse(ECHO, [case("a")], metrics=[OK]).passed


async def test_rehearse_works_inside_a_running_loop() -> None:
    def inside() -> Report:
        return rehearse(ECHO, [case("a"), case("b")], metrics=[OK])

    assert inside().passed


async def test_rehearse_raises_in_a_running_loop_what_it_raises_outside() -> None:
    with pytest.raises(BadCase, match="two cases 'a'"):
        rehearse(ECHO, [case("a"), case("a")])


def test_rehearse_leaves_no_event_loop_behind() -> None:
    rehearse(ECHO, [case("a")], metrics=[OK])
    with pytest.raises(RuntimeError, match="no running event loop"):
        asyncio.get_running_loop()


async def test_an_evaluation_that_is_cancelled_cancels_its_cases() -> None:
    started, cancelled = asyncio.Event(), asyncio.Event()

    async def hangs() -> str:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        return ""

    run = asyncio.ensure_future(evaluate(step(hangs), [case("a")], metrics=[OK]))
    await started.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert cancelled.is_set()


async def test_one_agent_object_may_be_evaluated_again_and_again() -> None:
    agent = Agent("a", model=Scripted("You said one.", "You said two."))
    for _ in range(3):
        report = await evaluate(agent, [case("a"), case("b")], metrics=[contains("one")])
        assert report.passed


def test_an_async_hook_is_reported_and_not_awaited() -> None:
    async def hook(result: Any) -> None:
        raise AssertionError("nobody awaits a hook")

    report = rehearse(Agent("a", model=Scripted("hi")), [Case("c", "x")], on_case_complete=hook)  # pyright: ignore[reportArgumentType]
    assert any("was not awaited" in note for note in report.notes)


def test_an_unknown_way_with_errors_is_refused() -> None:
    with pytest.raises(BadInput, match="explode"):
        rehearse(Agent("a", model=Scripted("hi")), [Case("c", "x")], on_error="explode")  # pyright: ignore[reportArgumentType]


async def test_trials_play_every_case_again_in_the_order_of_the_cases() -> None:
    report = await evaluate(ECHO, [case("a"), case("b")], metrics=[OK], trials=2)
    assert [(r.case_id, r.trial) for r in report] == [("a", 1), ("a", 2), ("b", 1), ("b", 2)]
    assert "passed      a  2 of 2" in str(report).splitlines()
    assert "4 trials of 2 cases: 4 passed" in str(report)
    assert [len(found) for found in report.by_case().values()] == [2, 2]


async def test_a_set_says_how_often_its_cases_are_played_unless_told_otherwise() -> None:
    thrice = EvalSet("s", [case("a")], trials=3)
    assert len(await evaluate(ECHO, thrice, metrics=[OK])) == 3
    assert len(await evaluate(ECHO, thrice, metrics=[OK], trials=1)) == 1


@pytest.mark.parametrize("trials", [0, -1, 1.5, True, "2"])
async def test_trials_that_are_no_count_are_refused(trials: Any) -> None:
    with pytest.raises(BadInput, match="trials"):
        await evaluate(ECHO, [case("a")], metrics=[OK], trials=trials)


async def test_trials_that_differ_are_told_apart() -> None:
    answers = iter(["You said so", "Something else", "You said so"])
    agent = step(lambda: next(answers), name="fickle")
    report = await evaluate(agent, case("a"), metrics=[OK], trials=3, concurrency=1)
    assert [(r.trial, r.status) for r in report] == [(1, "passed"), (2, "failed"), (3, "passed")]
    assert (report.passed, report.summary.pass_rate) == (False, pytest.approx(2 / 3))


async def test_trials_that_were_not_played_are_skipped_and_numbered() -> None:
    report = await evaluate(FRAGILE, case("a", "crash"), trials=3, concurrency=1, fail_fast=True)
    assert [(r.trial, r.status) for r in report] == [(1, "error"), (2, "skipped"), (3, "skipped")]


async def test_mocks_of_a_run_answer_where_a_case_has_none() -> None:
    @tool
    def stock(item: str) -> int:
        raise RuntimeError("the warehouse was asked")

    agent = Agent("clerk", model=Scripted(call("stock", item="cup"), "Fine."), tools=[stock])
    cases = [case("a"), case("b", mocks={"stock": 9})]
    report = await evaluate(agent, cases, metrics=[contains("Fine")], mocks={"stock": 3})
    assert report.passed, report
    ledgers = [result.ledger for result in report]
    assert [tool_calls(ledger)[0].result for ledger in ledgers if ledger] == [3, 9]


async def test_a_config_judges_beside_the_set_and_wins_over_it(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(
        "version: 1\nmetrics: [{criterion: contains, texts: [nowhere]}]\n"
    )
    said = Criterion("contains", options={"texts": ["You said"]})
    evalset = EvalSet("s", [case("a")], metrics=[said, "exact"])
    own = await evaluate(ECHO, evalset)
    told = await evaluate(ECHO, evalset, config=tmp_path / "config.yaml")
    assert list(own["a"].scores) == ["contains('You said')", "exact()"]
    assert list(told["a"].scores) == ["exact()", "contains('nowhere')"]


async def test_a_config_may_end_the_run_at_the_first_failure() -> None:
    config = EvalConfig(criteria=[Criterion("contains", options={"texts": ["no"]})], fail_fast=True)
    report = await evaluate(ECHO, [case("a"), case("b")], config=config, concurrency=1)
    assert statuses(report) == ["failed", "skipped"]


async def test_a_config_names_the_model_of_users_who_have_none() -> None:
    config = EvalConfig(user_simulator=UserSimulator(model="nobody:knows-it"))
    simulated = case("a", user=SimulatedUser("A guest"))
    report = await evaluate(ECHO, [simulated], metrics=[OK], config=config)
    assert "nobody" in str(report)


@pytest.mark.parametrize(
    "limit, own, case_stop, messages",
    [(3, None, None, 3), (3, 2, None, 2), (2, 5, None, 2), (30, None, None, 30), (9, None, 4, 4)],
)
async def test_a_config_limits_how_often_a_simulated_user_speaks(
    limit: int, own: int | None, case_stop: int | None, messages: int
) -> None:
    config = EvalConfig(user_simulator=UserSimulator(max_allowed_invocations=limit))
    guest = SimulatedUser("A guest", model=Scripted(then="More?"), max_turns=own)
    options: Any = {"stop": Stop(max_turns=case_stop)} if case_stop else {}
    report = await evaluate(ECHO, [case("a", user=guest, **options)], metrics=[OK], config=config)
    ledger = report["a"].ledger
    assert ledger is not None
    assert len(user_messages(ledger)) == messages
    assert report["a"].status == "terminated"


@pytest.mark.parametrize("config", [{"criteria": {}}, 5, [Criterion("exact")]])
async def test_a_config_that_is_none_is_refused(config: Any) -> None:
    with pytest.raises(BadInput, match="config="):
        await evaluate(ECHO, [case("a")], metrics=[OK], config=config)


@pytest.mark.parametrize(
    "options, words",
    [
        ({"on_error": "colect"}, r"on_error='colect' should be one of .* Did you mean 'collect'\?"),
        ({"budget": 1, "unknown_prices": "alow"}, r"unknown_prices=.* Did you mean 'allow'\?"),
        ({"fail_fast": "yes"}, "fail_fast='yes' should be True or False"),
        ({"keep_ledgers": 0}, "keep_ledgers=0 should be True or False"),
        ({"allow_tools": "refund"}, "allow_tools='refund' should be a list"),
        ({"mocks": 5}, "mocks=5 should be a mapping"),
        ({"cache": 5}, "cache=5 should be a folder"),
        ({"seconds_per_metric": "two"}, "seconds_per_metric='two' should be a number"),
    ],
)
async def test_an_option_that_says_something_else_is_refused(options: Any, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        await evaluate(ECHO, [case("a")], metrics=[OK], **options)
