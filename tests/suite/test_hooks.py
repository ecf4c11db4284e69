"""Hooks and plug-ins hear what happens, when it has happened, and cannot do any harm."""

import asyncio
import socket
import time
from typing import Any

import pytest

from greenroom import Agent, Case, EvalSet, Report, Scripted, call, evaluate, step, tool
from greenroom.cases import Criterion
from greenroom.cases.scores import NotApplicable, Score
from greenroom.errors import BadInput
from greenroom.ledger import ModelReplied, RunEnded, RunStarted, ToolReturned
from greenroom.metrics import contains
from greenroom.results import CaseResult
from greenroom.simulation.fence import enclose
from greenroom.store import Store
from greenroom.store.runs import Key, Plan
from greenroom.suite.hooks import Hooks

OK = contains("Done")


@tool
def look(key: str) -> str:
    """Look."""
    raise AssertionError("a tool body ran in a rehearsal")


CLERK = Agent("clerk", model=Scripted(call("look", key="a"), "Done."), tools=[look])


def cases(count: int = 3) -> list[Case]:
    return [Case(f"c{n}", "Hi", mocks={"look": n}) for n in range(count)]


def connect(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=5):
        pass


@pytest.fixture
def listener():
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


async def test_every_event_is_heard_with_its_case_and_in_order():
    heard: dict[str, list[Any]] = {}
    report = await evaluate(
        CLERK,
        cases(),
        metrics=[OK],
        on_event=lambda case, event: heard.setdefault(case.id, []).append(event),
    )
    assert report.passed
    for result in report:
        assert heard[result.case_id] == list(result.ledger or ())
        kinds = [type(event) for event in heard[result.case_id]]
        assert kinds[0] is RunStarted
        assert kinds[-1] is RunEnded
        assert {ModelReplied, ToolReturned} <= set(kinds)


async def test_every_outcome_is_heard_by_the_name_of_its_metric():
    heard: list[tuple[str, str, Any]] = []
    report = await evaluate(
        CLERK,
        cases(2),
        metrics=[OK, contains("nowhere", name="elsewhere")],
        concurrency=1,
        on_metric_complete=lambda case, name, outcome: heard.append((case.id, name, outcome)),
    )
    assert heard == [(r.case_id, name, score) for r in report for name, score in r.scores.items()]
    assert [isinstance(outcome, Score) for _, _, outcome in heard] == [True] * 4


async def test_a_case_is_complete_only_when_the_store_has_it(tmp_path):
    store = Store(tmp_path)
    found: list[bool] = []

    def look_up(result: CaseResult) -> None:
        [run] = store.runs()
        found.append(Key(result.case_id, result.trial) in store.keys(run.id))

    await evaluate(
        CLERK,
        EvalSet("s", cases(6), trials=2),
        metrics=[OK],
        store=store,
        concurrency=3,
        on_case_complete=look_up,
    )
    assert found == [True] * 12


async def test_a_case_completes_after_its_events_and_metrics():
    heard: list[str] = []
    await evaluate(
        CLERK,
        cases(1),
        metrics=[OK],
        on_case_start=lambda case: heard.append("start"),
        on_event=lambda case, event: heard.append(type(event).__name__),
        on_metric_complete=lambda case, name, outcome: heard.append(name),
        on_case_complete=lambda result: heard.append("complete"),
    )
    assert (heard[0], heard[1]) == ("start", "RunStarted")
    assert heard[-3:] == ["RunEnded", OK.name, "complete"]


@pytest.mark.parametrize("recorded", [True, False])
async def test_hooks_reach_the_outside_while_the_agent_does_not(listener, tmp_path, recorded):
    def agent(ctx: Any) -> str:
        if ctx.input == "Sneak":
            connect(listener)
        return "Done."

    reached: list[str] = []

    def reach(moment: str) -> Any:
        return lambda *_: (connect(listener), reached.append(moment))

    moments = ["on_case_start", "on_event", "on_metric_complete", "on_case_complete"]
    report = await evaluate(
        step(agent),
        [Case("sneak", "Sneak"), Case("honest", "Hi")],
        metrics=[OK],
        store=tmp_path if recorded else False,
        **{moment: reach(moment) for moment in moments},
    )
    assert [result.status for result in report] == ["error", "passed"]
    assert "tried to reach the outside" in str(report["sneak"].error)
    assert set(reached) == set(moments)
    assert list(report.notes) == []


async def test_a_hook_reaches_the_outside_even_from_the_midst_of_a_case(listener):
    hooks = Hooks(on_event=lambda case, event: connect(listener))
    with enclose("c") as scope:
        hooks.happened(Case("c", "Hi"), RunStarted(run_id="r"))
    assert hooks.notes == []
    assert scope.breach is None


async def awaiting(*_: Any) -> None:
    await asyncio.sleep(0)


def raising(*_: Any) -> None:
    raise LookupError("no terminal")


def cancelling(*_: Any) -> None:
    raise asyncio.CancelledError


def closing(*_: Any) -> None:
    raise GeneratorExit


@pytest.mark.parametrize(
    "hook, note",
    [
        (awaiting, "the hook 'awaiting' is async and was not awaited; make it a function"),
        (raising, "the hook 'raising' raised LookupError('no terminal')"),
        (cancelling, "the hook 'cancelling' raised CancelledError()"),
        (closing, "the hook 'closing' raised GeneratorExit()"),
    ],
)
@pytest.mark.parametrize(
    "moment", ["on_case_start", "on_case_complete", "on_metric_complete", "on_event"]
)
async def test_a_broken_hook_is_noted_once_and_harms_nothing(moment, hook, note, tmp_path):
    for store in (False, tmp_path):
        report = await evaluate(CLERK, cases(), metrics=[OK], store=store, **{moment: hook})
        assert report.passed
        assert list(report.notes) == [note]


def spinning(*_: Any) -> None:
    while True:
        pass


def sleeping(*_: Any) -> None:
    time.sleep(60)


@pytest.mark.parametrize("hook", [spinning, sleeping])
async def test_a_hook_that_hangs_is_cut_and_its_task_goes_on(hook):
    hooks = Hooks(on_case_start=hook, seconds=0.1)
    hooks.case_started(Case("c", "Hi"))
    await asyncio.sleep(0)  # a cancellation left behind would come now
    assert hooks.notes == [
        f"the hook {hook.__name__!r} did not return within 0.1 s, and was stopped"
    ]
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


class Diary:
    """A plug-in that writes down whatever it hears."""

    def __init__(self) -> None:
        self.heard: list[Any] = []

    def on_run_start(self, plan: Plan) -> None:
        self.heard.append(plan)

    def on_case_start(self, case: Case) -> None:
        self.heard.append(case.id)

    def on_event(self, case: Case, event: Any) -> None:
        self.heard.append(type(event).__name__)

    def on_metric_complete(self, case: Case, name: str, outcome: Any) -> None:
        self.heard.append(name)

    def on_case_complete(self, result: CaseResult) -> None:
        self.heard.append(result.status)

    def on_run_complete(self, report: Report) -> None:
        self.heard.append(report)


def told(hooks: Hooks) -> Report:
    """Tell the hooks of a whole run, and give its report."""
    case, report = Case("c", "Hi"), Report([], "run", notes=["before"])
    hooks.run_started(Plan(name="run"))
    hooks.case_started(case)
    hooks.happened(case, RunStarted(run_id="r"))
    result = CaseResult(case_id="c", status="passed", scores={"m": Score(1.0)})
    hooks.case_completed(hooks.metrics_completed(case, result))
    return hooks.run_completed(report)


async def test_a_plug_in_hears_of_everything_it_has_a_method_for():
    diary = Diary()
    report = told(Hooks(plugins=[diary]))
    assert diary.heard == [Plan(name="run"), "c", "RunStarted", "m", "passed", report]
    assert list(report.notes) == ["before"]


async def test_hooks_and_several_plug_ins_hear_side_by_side():
    class Starts:
        def on_case_start(self, case: Case) -> None:
            raise LookupError("no terminal")

    heard: list[str] = []
    diary = Diary()
    hooks = Hooks(on_case_start=lambda case: heard.append(case.id), plugins=[Starts(), diary])
    told(hooks)
    assert heard == ["c"]
    assert diary.heard[1] == "c"
    assert hooks.notes == ["the hook 'Starts.on_case_start' raised LookupError('no terminal')"]
    assert "on_event" in hooks.listeners
    assert "on_event" not in Hooks(plugins=[Starts()]).listeners


async def test_what_goes_wrong_at_the_end_is_in_the_report():
    class Late:
        def on_run_complete(self, report: Report) -> None:
            raise OSError("disk full")

    report = told(Hooks(plugins=[Late()]))
    assert list(report.notes) == [
        "before",
        "the hook 'Late.on_run_complete' raised OSError('disk full')",
    ]


@pytest.mark.parametrize("plugin", [Diary, object(), "diary", None])
def test_what_is_no_plug_in_is_told_at_once(plugin):
    with pytest.raises(BadInput, match="on_run_start, on_case_start"):
        Hooks(plugins=[plugin])


def leave(*_: Any) -> None:
    raise SystemExit(1)


def skip(*_: Any) -> None:
    pytest.skip("later")


def fail(*_: Any) -> None:
    pytest.fail("no")


@pytest.mark.parametrize("recorded", [True, False])
@pytest.mark.parametrize("hook", [leave, skip, fail])
async def test_a_hook_that_would_end_the_process_or_the_test_is_noted(hook, recorded, tmp_path):
    class Everywhere:
        on_run_start = on_case_start = on_event = on_metric_complete = staticmethod(hook)
        on_case_complete = on_run_complete = staticmethod(hook)

    report = await evaluate(
        CLERK, cases(), metrics=[OK], plugins=[Everywhere()], store=tmp_path if recorded else False
    )
    assert [result.status for result in report] == ["passed"] * 3
    assert sum("raised" in note for note in report.notes) == 6


async def test_what_a_hook_changes_is_a_copy(tmp_path):
    class Clears:
        def on_metric_complete(self, case, name, outcome):
            case.mocks.clear()

        def on_case_complete(self, result):
            result.scores.clear()
            result.models["x"] = 1
            result.asked.mocks.clear()

        def on_run_complete(self, report):
            report.results[0].scores.clear()
            report.results.clear()

    report = await evaluate(
        CLERK, cases(), metrics=[contains("nope")], plugins=[Clears()], store=tmp_path, trials=2
    )
    assert [[*result.scores] for result in report] == [["contains('nope')"]] * 6
    assert all("x" not in result.models for result in report)
    assert str(Store(tmp_path).report(report.id).summary) == str(report.summary)


async def test_a_critical_failure_that_a_hook_replaces_leaves_the_rest_unmeasured():
    critical = Criterion("contains", options={"texts": ["gone"]}, critical=True)

    def lenient(case, name, outcome):
        return Score(1, reason="by hand") if "gone" in name else None

    report = await evaluate(CLERK, cases(1), metrics=[critical, OK], on_metric_complete=lenient)
    (result,) = report
    assert result.status == "error"
    assert "a hook replaced that" in str(result.scores["contains('Done')"].reason)


async def test_what_several_hooks_replaced_is_what_was_measured():
    class Stricter:
        def on_metric_complete(self, case, name, outcome):
            return Score(0.25, reason="again")

    report = await evaluate(
        CLERK,
        cases(1),
        metrics=[OK],
        on_metric_complete=lambda case, name, outcome: Score(0.5, reason="first"),
        plugins=[Stricter()],
    )
    (why,) = report.results[0].replaced.values()
    assert "Stricter" in why
    assert "it was 1.00" in why


@pytest.mark.parametrize("recorded", [True, False])
async def test_no_result_is_lost_to_an_odd_outcome_of_a_hook(recorded, tmp_path):
    def odd(case, name, outcome):
        return NotApplicable(case.metadata.get("why")) if case.id == "c0" else None

    report = await evaluate(
        CLERK,
        cases(6),
        metrics=[OK],
        on_metric_complete=odd,
        store=tmp_path if recorded else False,
        concurrency=8,
    )
    assert [result.status for result in report] == ["passed"] * 6
    assert any("should be a string" in note for note in report.notes)
