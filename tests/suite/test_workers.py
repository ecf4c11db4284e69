"""Trials played in worker processes come to the same, and outlive the processes they are played in."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from math import inf
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import warm_python
from greenroom import Agent, Case, EvalSet, Expect, Lines, Scripted, Stop, Turn, evaluate, metric
from greenroom.cases.criteria import Criterion
from greenroom.errors import BadInput, WorkerDied
from greenroom.ledger import Ledger, RunEnded, RunResumed, ended
from greenroom.ledger.blobs import BlobFolder
from greenroom.results.blame import Blame
from greenroom.results.result import CaseResult
from greenroom.simulation.conversation import simulate
from greenroom.suite import load_agent
from greenroom.suite.cancel import Cancel
from greenroom.suite.inputs.references import load_value
from greenroom.suite.measurement import Measurement
from greenroom.suite.options import complete
from greenroom.suite.settings import Settings
from greenroom.suite.trial_state import Trial, TrialState
from greenroom.suite.workers import local
from greenroom.suite.workers.trial import WorkerTrial
from greenroom.suite.workers.wire import Outbox, packed, unpacked
from greenroom.suite.workers.worker import WorkerSetup
from marks import heavy
from store.timeless import timeless

pytestmark = pytest.mark.usefixtures("warm_workers")

SHOP = """
    import os
    import signal
    import socket
    from itertools import repeat
    from pathlib import Path

    from greenroom import Agent, Case, Expect, Score, Scripted, Stop, call, metric, step, tool
    from greenroom.backends.native import NativeBackend
    from greenroom.world import Middleware

    HERE = Path(__file__).parent

    @tool
    def refund(order: int) -> dict:
        "Pay an order back."
        (HERE / "body").touch()

    agent = Agent(
        "clerk", model=Scripted("Which order?", call("refund", order=7), "Done."), tools=[refund]
    )

    mute = Agent("clerk", model=Scripted("..."), tools=[refund])

    def worker():
        return str(os.getpid())

    pids = step(worker)

    def first(name):
        "Whether this is the first time, for all processes together."
        try:
            (HERE / name).touch(exist_ok=False)
        except FileExistsError:
            return False
        return True

    def count(name):
        with (HERE / name).open("a") as file:
            file.write("x")

    count("imports")

    def prepare():
        count("prepared")
        return "ready"

    def dies_once():
        if first("died"):
            os.kill(os.getpid(), signal.SIGKILL)
        return "survived"

    dying_once = step(prepare) >> step(dies_once)

    class Forgetful(NativeBackend):
        resumes = "no"

    forgetful = Forgetful(dying_once)

    def dies():
        os.kill(os.getpid(), signal.SIGSEGV)

    def exits():
        os._exit(3)

    def blocks():
        return sum(repeat(1, 10**13))

    def blocks_on_request(ctx):
        return sum(repeat(1, 10**13)) if "block" in ctx.input else "free"

    def fails_or_blocks(ctx):
        if ctx.input != "fail":
            (HERE / "blocked").touch()
            return sum(repeat(1, 10**13))
        while not (HERE / "blocked").exists():
            pass
        raise RuntimeError("boom")

    failing_or_blocking = step(fails_or_blocks)

    def prints():
        print("a line of the agent's own")
        return "printed"

    def connects():
        socket.create_connection(("127.0.0.1", 9), timeout=1)

    dying, exiting, blocking = step(dies), step(exits), step(blocks)
    blocking_on_request, printing, connecting = step(blocks_on_request), step(prints), step(connects)

    def mocked(order):
        return {"paid": order}

    CASES = [
        Case(
            f"c{n}",
            says="Money!",
            mocks={"refund": mocked},
            expect=Expect(contains=["Which"]),
            tags=["money", str(n)],
        )
        for n in range(3)
    ]

    @metric(threshold=1.0)
    def polite(response: str):
        return 1.0 if "?" in response else 0.0

    def hung(response: str):
        return sum(repeat(1, 10**13))

    class Closes(Middleware):
        async def close(self) -> None:
            if os.getpid() != int(os.environ["PARENT"]):
                refund(7)

    closes = Closes()
"""

TALKS = [
    Case(
        "refunded",
        turns=[
            Turn("Money back!"),
            Turn("Order 7.", Expect(tools=["refund"], response="Done.")),
        ],
        mocks={"refund": {"ok": True}},
        tags=["money"],
    ),
    Case("asked", says="Hello?", expect=Expect(contains=["order"])),
    Case("wrong", says="Hello?", expect=Expect(contains=["sorry"])),
    Case("refused", says="Money back!", user=Lines("Order 7."), expect=Expect(tools=[])),
    Case("expecting nothing", says="Hello?"),
]
SAID = [Case(f"said {n}", says="Go on.", expect=Expect(tools=[])) for n in range(6)]


@pytest.fixture
def shop(tmp_path: Path) -> Callable[[str], str]:
    """References into a module of the author's own."""
    file = tmp_path / "shop.py"
    file.write_text(textwrap.dedent(SHOP))
    return lambda name: f"{file}:{name}"


def one(**options: Any) -> Case:
    given: dict[str, Any] = {"expect": Expect(contains=["s"]), **options}
    return Case("one", says="Go on.", **given)


def events(ledger: Ledger | None) -> list[dict[str, Any]]:
    assert ledger is not None
    told = [json.loads(line) for line in ledger.dumps().splitlines()]
    return [{**event, "at": 0, "seconds": 0} for event in told]


def shown(blame: Blame | None) -> Any:
    return blame and (blame.whom, list(blame.evidence))


@pytest.fixture
def cold_workers(warm_workers: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Worker processes as users have them: children of this process."""
    monkeypatch.setattr(local, "Popen", subprocess.Popen)


def children() -> list[str]:
    """The commands that this process has started and that have not ended."""
    shown = ["ps", "-A", "-ww", "-o", "ppid=,args="]
    listed = subprocess.run(shown, capture_output=True, text=True, check=True).stdout
    return [line for line in listed.splitlines() if line.split()[0] == str(os.getpid())]


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


# The same


@pytest.mark.parametrize("keep_ledgers", [True, False])
async def test_a_report_is_the_same_whoever_plays(
    shop: Callable[[str], str], keep_ledgers: bool
) -> None:
    options: dict[str, Any] = {
        "trials": 2,
        "metrics": [Criterion("turns_within", options={"at_most": 3}), load_value(shop("polite"))],
        "keep_ledgers": keep_ledgers,
    }
    here = await evaluate(shop("agent"), TALKS, **options)
    there = await evaluate(shop("agent"), TALKS, workers=2, **options)
    assert timeless(there) == timeless(here)
    assert {result.status for result in there.results} == {"passed", "failed", "error"}
    for ours, theirs in zip(here.results, there.results, strict=True):
        assert theirs.asked is ours.asked
        assert shown(theirs.blame) == shown(ours.blame)
        assert (theirs.ledger_or_none is None) == (ours.ledger_or_none is None)
        if ours.ledger_or_none is not None:
            assert events(theirs.ledger) == events(ours.ledger)


async def test_every_trial_is_played_in_some_worker_and_reported_in_its_place(
    shop: Callable[[str], str],
) -> None:
    report = await evaluate(shop("pids"), SAID, workers=2, concurrency=2, trials=2)
    assert [r.case_id for r in report.results] == [c.id for c in SAID for _ in range(2)]
    assert [r.trial for r in report.results] == [1, 2] * len(SAID)
    pids = {int(r.responses[-1]) for r in report.results}
    assert len(pids) == 2
    assert os.getpid() not in pids
    assert not any(is_alive(pid) for pid in pids)


async def test_no_more_workers_are_started_than_trials_are_due(
    shop: Callable[[str], str], tmp_path: Path
) -> None:
    assert (await evaluate(shop("pids"), SAID[:2], workers=5)).passed
    assert (await evaluate(shop("pids"), [], workers=5)).summary.total == 0
    assert (tmp_path / "imports").read_text() == "xxx"  # by this process, and by two workers


async def test_what_an_agent_prints_harms_nothing(
    shop: Callable[[str], str], capfd: pytest.CaptureFixture[str]
) -> None:
    report = await evaluate(shop("printing"), SAID, workers=1, concurrency=3)
    assert report.passed
    printed = capfd.readouterr()
    assert "agent's own" not in printed.out
    assert "agent's own" in printed.err


async def test_hooks_hear_the_same_as_without_workers(shop: Callable[[str], str]) -> None:
    async def heard(workers: int | None) -> list[Any]:
        found: list[Any] = []
        await evaluate(
            shop("agent"),
            TALKS[:3],
            workers=workers,
            concurrency=1,
            on_case_start=lambda case: found.append(case.id),
            on_event=lambda case, event: found.append((case.id, type(event), event.seq)),
            on_metric_complete=lambda case, name, outcome: found.append((case.id, name)),
            on_case_complete=lambda result: found.append((result.case_id, result.status)),
        )
        return found

    assert await heard(1) == await heard(None)


async def test_the_fence_and_the_gate_hold_in_workers(
    shop: Callable[[str], str], tmp_path: Path
) -> None:
    [breach] = (await evaluate(shop("connecting"), [one()], workers=1)).results
    assert breach.error is not None
    assert breach.error.type == "FenceBreach"
    [refused] = (await evaluate(shop("agent"), TALKS[3:4], workers=1)).results
    assert refused.error is not None
    assert refused.error.type == "ToolRefused"
    assert not (tmp_path / "body").exists()


async def test_middleware_that_is_closed_in_a_worker_never_acts(
    shop: Callable[[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PARENT", str(os.getpid()))
    report = await evaluate(shop("agent"), [one()], workers=1, middleware=[shop("closes")])
    assert not (tmp_path / "body").exists()
    assert [note for note in report.notes if "fault" in note and "'refund'" in note]


async def test_allowed_tools_run_in_workers(shop: Callable[[str], str], tmp_path: Path) -> None:
    refund = load_value(shop("refund"))
    await evaluate(shop("agent"), TALKS[3:4], workers=1, allow_tools=[refund])
    assert (tmp_path / "body").exists()


# References instead of pickles


async def test_objects_that_stand_in_a_module_are_found_again(shop: Callable[[str], str]) -> None:
    report = await evaluate(
        await load_agent(shop("agent")),
        load_value(shop("CASES")),
        metrics=[load_value(shop("polite"))],
        workers=1,
    )
    assert [result.status for result in report.results] == ["passed"] * 3
    assert "polite" in report.results[0].scores
    assert list(report.results[2].tags) == ["money", "2"]


async def test_cases_with_code_are_played_if_given_as_a_reference(
    shop: Callable[[str], str],
) -> None:
    report = await evaluate(shop("agent"), shop("CASES"), workers=2)
    assert report.passed


async def test_cases_of_a_file_are_read_by_each_worker(
    shop: Callable[[str], str], tmp_path: Path
) -> None:
    EvalSet("talks", TALKS[:2]).save(tmp_path / "talks.yaml")
    report = await evaluate(shop("agent"), tmp_path / "talks.yaml", workers=1)
    assert report.passed


@pytest.mark.parametrize(
    "given, named",
    [
        ({"agent": Agent("nobody", model=Scripted("Hi"))}, "the agent 'nobody'"),
        ({"cases": [one(mocks={"refund": lambda order: 1})]}, "one.mocks.refund"),
        ({"cases": [one(metrics=[metric(lambda response: True, name="own")])]}, "one.metrics.own"),
        ({"metrics": [metric(lambda response: True, name="own")]}, "the metric 'own'"),
        ({"mocks": {"refund": lambda order: 1}}, "the mock of 'refund'"),
        ({"allow_tools": [lambda: 1]}, "the allowed tool"),
    ],
)
async def test_what_a_worker_cannot_find_again_is_refused_by_name(
    shop: Callable[[str], str], given: dict[str, Any], named: str
) -> None:
    options: dict[str, Any] = {"agent": shop("agent"), "cases": TALKS[1:2], **given}
    with pytest.raises(BadInput, match=named):
        await evaluate(**options, workers=1)


async def test_a_case_that_is_no_json_is_refused_by_name(shop: Callable[[str], str]) -> None:
    with pytest.raises(BadInput, match=r"metadata of case 'one' holds .* which is not JSON"):
        await evaluate(shop("agent"), [one(metadata={"a": object()})], workers=1)


@pytest.mark.parametrize("workers", [0, -1, True, 1.5, 10**6])
async def test_a_number_of_workers_that_is_none_is_refused(
    shop: Callable[[str], str], workers: Any
) -> None:
    with pytest.raises(BadInput, match="workers="):
        await evaluate(shop("agent"), TALKS[1:2], workers=workers)


@pytest.mark.parametrize(
    "text, found",
    [
        ("agent = step(lambda: 'x', name=f'p{os.getpid()}')", "another agent"),
        ("CASES = [Case('one', says=str(os.getpid()))]", "another case 'one'"),
        ("CASES = [Case(f'p{os.getpid()}', says='Hi')]", "no case 'p"),
    ],
)
async def test_a_worker_that_finds_something_else_plays_nothing(
    tmp_path: Path, text: str, found: str
) -> None:
    file = tmp_path / "odd.py"
    whole = "import os\nfrom greenroom import Case, step\n"
    whole += "agent = step(lambda: 'x', name='s')\nCASES = [Case('one', says='Hi')]\n"
    file.write_text(f"{whole}{text}\n")
    started: list[Case] = []
    with pytest.raises(BadInput, match=found):
        await evaluate(f"{file}:agent", f"{file}:CASES", workers=2, on_case_start=started.append)
    assert started == []


async def test_a_worker_that_cannot_import_the_agent_says_why(tmp_path: Path) -> None:
    file = tmp_path / "shy.py"
    file.write_text(
        "import os\nfrom greenroom import step\n"
        f"if os.getpid() != {os.getpid()}: raise RuntimeError('not here')\n"
        "agent = step(lambda: 'x', name='s')\n"
    )
    with pytest.raises(BadInput, match="not here"):
        await evaluate(f"{file}:agent", SAID, workers=2)


def commanded(*words: str) -> dict[str, Any]:
    """The report of `greenroom eval run`."""
    command = [sys.executable, "-m", "greenroom.apps.cli", "eval", "run", *words]
    ran = warm_python.run(
        [*command, "--no-store", "--json"], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def test_the_command_line_tells_workers_where_to_find_what_it_found(
    shop: Callable[[str], str], tmp_path: Path
) -> None:
    evals = tmp_path / "evals"
    evals.mkdir()
    for name in ("first", "second"):
        EvalSet(name, TALKS[:2]).save(evals / f"{name}.eval.yaml")
    (tmp_path / "models.py").write_text(
        "from greenroom import Scripted, call\n"
        "model = Scripted('Which order?', call('refund', order=7), 'Done.')\n"
        "mocks = {'refund': lambda order: {'ok': order}}\n"
    )
    gathered = commanded(
        shop("mute"),
        str(evals),
        *("--model", f"{tmp_path / 'models.py'}:model", "--workers", "2", "--limit", "3"),
        *("--mocks", f"{tmp_path / 'models.py'}:mocks"),
    )
    assert [r["status"] for r in gathered["results"]] == ["passed"] * 3
    beside = commanded(str(tmp_path / "shop.py"), "--workers", "1", "--filter", "id:c*")
    assert [r["case_id"] for r in beside["results"]] == ["c0", "c1", "c2"]


# Death


async def test_a_trial_whose_worker_dies_goes_on_in_another(
    shop: Callable[[str], str], tmp_path: Path
) -> None:
    report = await evaluate(shop("dying_once"), [one()], workers=1)
    [result] = report.results
    assert result.responses == ["survived"]
    assert result.passed
    assert any("SIGKILL" in note for note in result.notes)
    assert (tmp_path / "prepared").read_text() == "x"  # what was done is not done again
    assert result.ledger_or_none is not None
    assert len(result.ledger.of(RunResumed)) == 1


@pytest.mark.parametrize("agent, how", [("dying", "SIGSEGV"), ("exiting", "exit code 3")])
async def test_a_trial_whose_workers_die_twice_is_an_error_that_says_how(
    shop: Callable[[str], str], agent: str, how: str
) -> None:
    report = await evaluate(shop(agent), SAID[:2], workers=1, concurrency=2)
    for result in report.results:
        assert result.status == "error"
        assert result.error is not None
        assert result.error.phase == "system"
        assert result.error.type == "WorkerDied"
        assert how in result.error.message
        assert result.ledger_or_none is not None
        end = ended(result.ledger)
        assert end is not None
        assert end.reason == "error"


@pytest.mark.parametrize("often", [False, True])
async def test_a_worker_that_dies_before_it_is_ready_is_replaced_once(
    tmp_path: Path, often: bool
) -> None:
    file = tmp_path / "frail.py"
    file.write_text(
        "import os\nfrom pathlib import Path\nfrom greenroom import step\n"
        "mark = Path(__file__).with_name('mark')\n"
        f"if os.getpid() != {os.getpid()} and ({often} or not mark.exists()):\n"
        "    mark.touch()\n    os._exit(4)\n"
        "agent = step(lambda: 'x', name='s')\n"
    )
    playing = evaluate(f"{file}:agent", SAID[:1], workers=1)
    if often:
        with pytest.raises(WorkerDied, match="exit code 4 before it was ready"):
            await playing
    else:
        assert (await playing).passed


async def test_innocent_trials_of_a_dead_worker_are_finished(shop: Callable[[str], str]) -> None:
    cases = [one(), *SAID[:2]]
    report = await evaluate(shop("dying_once"), cases, workers=1, concurrency=len(cases))
    assert report.passed


@pytest.mark.parametrize("agent", ["dying_once", "forgetful"])
async def test_what_is_played_again_is_written_down_once(
    shop: Callable[[str], str], tmp_path: Path, agent: str
) -> None:
    report = await evaluate(shop(agent), [one()], workers=1, store=tmp_path / "store")
    [result] = report.results
    assert result.passed
    ledger = result.ledger
    assert ledger is not None
    assert [event.seq for event in ledger] == list(range(len(ledger)))
    assert isinstance(ledger.last, RunEnded)
    done_again = (tmp_path / "prepared").read_text()
    assert done_again == ("x" if agent == "dying_once" else "xx")


CROWDED = """
    import os
    import time
    from pathlib import Path

    from greenroom import step

    HERE = Path(__file__).parent

    def wait_for(name):
        until = time.monotonic() + 600
        while not (HERE / name).exists():
            if time.monotonic() > until:
                raise TimeoutError(name)
            time.sleep(0.01)

    with (HERE / "imports").open("a") as file:
        file.write("x")
    # This process, two workers, one for each of three trials alone, and then two in their place.
    if len((HERE / "imports").read_text()) == 8:
        (HERE / "hiring").touch()
        wait_for("back")

    def plays(ctx):
        said = ctx.input
        if said == "wait":
            (HERE / "waiting").touch()
            wait_for("hiring")
        elif (HERE / said).exists():
            (HERE / f"{said} again").touch()
            for each in ("waiting", "die again", "perish again"):
                wait_for(each)
            os._exit(3)
        elif said != "play":
            (HERE / said).touch()
            os._exit(3)
        return "played"

    agent = step(plays)
"""


@pytest.mark.heavy
@pytest.mark.usefixtures("cold_workers")
async def test_a_worker_that_comes_back_while_another_is_hired_is_not_forgotten(
    tmp_path: Path,
) -> None:
    file = tmp_path / "crowded.py"
    file.write_text(textwrap.dedent(CROWDED))
    said = ["die", "perish", "wait", *["play"] * 4]
    left: list[int] = []

    def hear(result: CaseResult) -> None:
        if result.case_id == "case 2":
            (tmp_path / "back").touch()
        left.append(sum("workers.worker import main" in line for line in children()))

    report = await evaluate(
        f"{file}:agent",
        [Case(f"case {n}", says=s, expect=Expect(contains=["played"])) for n, s in enumerate(said)],
        workers=2,
        concurrency=3,
        store=False,
        on_case_complete=hear,
    )
    assert [r.status for r in report.results] == ["error"] * 2 + ["passed"] * 5
    assert left[-1] == 2


# Blocked


async def test_a_trial_that_waits_for_its_turn_is_not_overdue() -> None:
    ledger = await simulate(one(), Agent("clerk", model=Scripted("Yes.")))
    errand = WorkerTrial(
        TrialState(Trial(0, one()), ledger), Settings.of(complete({}), Measurement())
    )
    errand.order()
    assert errand.is_simulated
    assert not errand.is_overdue(inf)
    assert errand.is_stuck(inf)
    errand.begin()
    assert errand.is_overdue(inf)
    assert not errand.is_stuck(inf)


async def test_a_trial_that_a_worker_cannot_even_begin_is_told_as_an_error(tmp_path: Path) -> None:
    inbox, outbox = os.pipe()
    settings = Settings.of(complete({}), Measurement())
    bench = WorkerSetup(None, {"one": one()}, settings, BlobFolder(tmp_path))
    order = {"position": 7, "case_id": "one", "trial": 1, "ledger": "no\nledger\n", "judging": ""}
    with os.fdopen(inbox, "rb") as lines, os.fdopen(outbox, "wb"):
        await bench.run(order, Outbox(outbox))
        begun, done = unpacked(lines.readline()), unpacked(lines.readline())
    assert begun[:2] == ("B", 7)
    assert done[:2] == ("D", 7)
    verdict = json.loads(done[2])["verdict"]
    assert (verdict["status"], verdict["error"]["type"]) == ("error", "BadLedger")


async def test_a_trial_that_blocks_its_worker_in_c_is_ended_at_its_limit(
    shop: Callable[[str], str],
) -> None:
    case = one(stop=Stop(max_seconds=0.3))
    [result] = (await evaluate(shop("blocking"), [case], workers=1)).results
    assert result.status == "terminated"
    assert result.ended == "max_seconds"
    assert list(result.scores) == ["expected_contains"]  # it was measured all the same


async def test_trials_beside_one_that_blocks_are_finished(shop: Callable[[str], str]) -> None:
    cases = [
        Case("bad", says="block", expect=Expect(contains=["free"]), stop=Stop(max_seconds=0.5)),
        *SAID,
    ]
    report = await evaluate(shop("blocking_on_request"), cases, workers=1, concurrency=len(cases))
    assert [result.status for result in report.results] == ["terminated", *["passed"] * len(SAID)]
    assert not any("worker process" in note for r in report.results for note in r.notes)


async def test_a_metric_that_blocks_its_worker_is_a_broken_measurement(
    shop: Callable[[str], str],
) -> None:
    [result] = (
        await evaluate(
            shop("agent"),
            TALKS[1:2],
            metrics=[load_value(shop("hung"))],
            seconds_per_metric=0.1,
            workers=1,
        )
    ).results
    assert result.status == "error"
    assert result.error is not None
    assert (result.error.phase, result.error.type) == ("metric", "MetricsHung")
    assert result.turns == 1


# Stores, budgets, and the end


async def test_a_run_with_workers_is_resumed_with_workers(
    shop: Callable[[str], str], tmp_path: Path
) -> None:
    token = Cancel()
    store = tmp_path / "store"
    first = await evaluate(
        shop("pids"),
        SAID,
        workers=1,
        concurrency=1,
        store=store,
        cancel=token,
        on_event=lambda case, event: token.cancel() if case.id == "said 3" else None,
    )
    before = {r.case_id: r.responses for r in first.results if r.passed}
    assert list(before) == ["said 0", "said 1", "said 2"]
    again = await evaluate(shop("pids"), SAID, workers=2, store=store, resume=True)
    assert again.passed
    after = {r.case_id: r.responses for r in again.results}
    assert {**after, **before} == after
    assert list(after) == [case.id for case in SAID]


async def test_a_run_is_cut_by_its_token_and_its_workers_with_it(
    shop: Callable[[str], str],
) -> None:
    token = Cancel()
    report = await evaluate(
        shop("blocking"),
        SAID,
        workers=2,
        cancel=token,
        on_event=lambda case, event: token.cancel("enough"),
    )
    assert {result.status for result in report.results} == {"skipped"}
    assert any("enough" in note for note in report.results[0].notes)


@pytest.mark.usefixtures("cold_workers")
@pytest.mark.parametrize("options", [{"fail_fast": True}, heavy({"on_error": "stop"})])
async def test_a_case_that_stops_the_run_ends_the_workers_that_play_others(
    shop: Callable[[str], str], options: Any
) -> None:
    cases = [
        Case(says, says=says, expect=Expect(tools=[]), stop=Stop(max_seconds=3000))
        for says in ("fail", "block", "never")
    ]
    report = await evaluate(shop("failing_or_blocking"), cases, workers=2, **options)
    assert [result.status for result in report.results] == ["error", "skipped", "skipped"]
    assert "not finished: case 'fail'" in report["block"].notes[0]
    assert not any("workers.worker import main" in line for line in children())


async def test_a_run_that_was_cancelled_before_starts_no_worker(shop: Callable[[str], str]) -> None:
    token = Cancel()
    token.cancel()
    report = await evaluate(shop("blocking"), SAID, workers=2, cancel=token)
    assert {result.status for result in report.results} == {"skipped"}


@pytest.mark.usefixtures("cold_workers")
async def test_an_evaluation_that_is_cancelled_ends_its_workers(
    shop: Callable[[str], str],
) -> None:
    begun = asyncio.Event()
    running = asyncio.ensure_future(
        evaluate(shop("blocking"), SAID, workers=2, on_event=lambda case, event: begun.set())
    )
    await begun.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert not any("workers.worker import main" in line for line in children())


PRICED = """
    from greenroom import Agent, Case, Expect, Scripted
    from greenroom.ledger.messages import Usage
    from greenroom.models.model import ModelReply

    agent = Agent("dear", model=Scripted(ModelReply("Hi.", (), Usage(1, 1), 1.0, "dear", "dear")))
"""


async def test_a_budget_holds_over_all_workers(tmp_path: Path) -> None:
    file = tmp_path / "priced.py"
    file.write_text(textwrap.dedent(PRICED))
    cases = [Case(f"c{n}", says="Hi", expect=Expect(contains=["Hi"])) for n in range(6)]
    report = await evaluate(f"{file}:agent", cases, workers=2, budget=3.5)
    assert [result.status for result in report.results].count("passed") == 3
    assert report.cost == 3.0


KILLED = """
    import os, signal, sys
    from greenroom import Case, Expect, rehearse

    CASES = [Case(f"said {n}", says="Go on.", expect=Expect(tools=[])) for n in range(6)]
    AGENT, STORE, RESUME = sys.argv[1], sys.argv[2], sys.argv[3:] == ["resume"]

    def hear(case, event):
        if case.id == "said 3" and not RESUME:
            os.kill(os.getpid(), signal.SIGKILL)

    report = rehearse(
        AGENT, CASES, workers=2, concurrency=2, store=STORE, resume=RESUME, on_event=hear
    )
    print(*[result.status for result in report.results])
"""


def test_workers_do_not_outlive_a_parent_that_was_killed_and_the_run_can_go_on(
    shop: Callable[[str], str], tmp_path: Path
) -> None:
    script, store = tmp_path / "killed.py", tmp_path / "store"
    script.write_text(textwrap.dedent(KILLED))
    given = [sys.executable, str(script), shop("pids"), str(store)]
    # Output ends only when nobody holds its other end any more, workers included.
    killed = warm_python.run(given, capture_output=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    resumed = warm_python.run([*given, "resume"], capture_output=True, text=True)
    assert resumed.stdout.split() == ["passed"] * 6, resumed.stderr


# The wire


@given(st.sampled_from("RFBAJD"), st.none() | st.integers(min_value=0), st.text())
def test_a_line_of_a_worker_is_taken_apart(mark: str, position: int | None, text: str) -> None:
    head = mark if position is None else f"{mark}{position}"
    taken = unpacked(f"{head} {text}".encode())
    assert taken == (mark, -1 if position is None else position, text)


@pytest.mark.parametrize("line", [b"", b"\n", b"D7", b" D7 {}", b"X7 {}", b"Dx {}", b"D7 \xff"])
def test_what_is_no_line_of_a_worker_is_refused(line: bytes) -> None:
    with pytest.raises(ValueError, match=r"not a line of a worker|invalid literal|can't decode"):
        unpacked(line)


@given(st.binary())
def test_whatever_a_worker_says_is_taken_apart_or_refused(line: bytes) -> None:
    try:
        taken = unpacked(line)
    except ValueError:
        return
    assert [type(part) for part in taken] == [str, int, str]


@given(st.recursive(st.none() | st.integers() | st.text(), st.lists))
def test_a_message_of_the_parent_is_one_line(message: Any) -> None:
    line = packed(message)
    assert line.count(b"\n") == 1
    assert json.loads(line) == message


def test_a_worker_whose_parent_died_in_the_middle_of_a_word_leaves() -> None:
    inbox, to = os.pipe()
    from_, outbox = os.pipe()
    code = (
        "from greenroom.suite.workers.worker import main; import sys; main(*map(int, sys.argv[1:]))"
    )
    words = [sys.executable, "-c", code, str(inbox), str(outbox)]
    with subprocess.Popen(words, pass_fds=(inbox, outbox), stderr=subprocess.PIPE) as process:
        for end in (inbox, outbox):
            os.close(end)
        os.write(to, b'{"safe": 1')
        os.close(to)
        told = process.communicate()[1].decode()
    os.close(from_)
    assert (process.returncode, told) == (1, "")
