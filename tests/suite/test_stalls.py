"""A case that blocks the event loop is named and cut; those alongside it do not pay for it."""

import asyncio
import importlib
import logging
import sys
import time
from pathlib import Path

import pytest

from greenroom import Case, Expect, Stop, evaluate, rehearse
from greenroom.simulation.hangs.watchdog import Deadline, finish, keep_watching
from greenroom.suite.batch import simulate_all
from greenroom.suite.recorded.rescores import rescore
from greenroom.world.threads import Expired

pytestmark = pytest.mark.usefixtures("warm_workers")

GREETED = Expect(contains="Hello")
BLOCKS, LIMIT = 2.5, 2.0
"""Seconds: a case blocks for longer than its neighbours may take, who need far less."""


def sleep_on(seconds: float) -> None:
    time.sleep(seconds)


def compute(seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        pass


async def clerk(message: str) -> str:
    match message.split():
        case ["sleep", seconds]:
            sleep_on(float(seconds))
        case ["compute", seconds]:
            compute(float(seconds))
        case ["wait", seconds]:
            await asyncio.sleep(float(seconds))
        case _:
            for _ in range(3):
                await asyncio.sleep(0.05)
    return "Hello."


def blocker(name: str, says: str, limit: float = 60.0) -> Case:
    return Case(name, says=says, expect=GREETED, stop=Stop(max_seconds=limit))


NEIGHBOURS = [
    Case(f"n{n}", says="Hi", expect=GREETED, stop=Stop(max_seconds=LIMIT)) for n in range(3)
]
EVERYBODY = [
    blocker("sleeper", f"sleep {BLOCKS}"),
    *NEIGHBOURS,
    blocker("stuck", "sleep 600", LIMIT),
]


def statuses(report) -> dict[str, str]:
    return {result.case_id: result.status for result in report.results}


def blamed(notes) -> list[str]:
    return [note.split(". ")[0] for note in notes if "blocked the event loop" in note]


def words(who: str, function: str) -> str:
    lines = Path(__file__).read_text("utf-8").splitlines()
    body = lines.index(f"def {function}(seconds: float) -> None:") + 2
    return (
        f"{who} blocked the event loop for more than a second, at "
        f"{Path(__file__).name}:{body} in {function}"
    )


async def played(*cases: Case, **options):
    return await evaluate(clerk, cases, concurrency=8, store=False, **options)


async def test_neighbours_of_a_case_that_blocks_keep_their_time_and_it_is_named():
    report = await played(*EVERYBODY)
    assert statuses(report) == {
        "sleeper": "passed",
        **{case.id: "passed" for case in NEIGHBOURS},
        "stuck": "terminated",
    }
    assert blamed(report.notes) == [
        words("case 'sleeper'", "sleep_on"),
        words("case 'stuck'", "sleep_on"),
    ]


async def test_a_case_that_awaits_for_too_long_is_cut_and_nobody_is_blamed():
    """What shows that the limits above are real."""
    report = await played(blocker("slow", "wait 600", LIMIT), *NEIGHBOURS)
    assert statuses(report)["slow"] == "terminated"
    assert blamed(report.notes) == []


async def test_a_case_that_waited_beside_a_blocker_is_still_cut_at_its_own_limit():
    cases = blocker("slow", "wait 600", LIMIT), blocker("sleeper", f"sleep {BLOCKS}")
    report = await played(*cases)
    assert statuses(report) == {"slow": "terminated", "sleeper": "passed"}


async def test_two_that_block_one_after_the_other_pay_for_themselves_only():
    cases = [blocker(name, "sleep 1.5", 1.5 * LIMIT) for name in ("a", "b", "c")]
    report = await played(*cases, *NEIGHBOURS)
    assert set(statuses(report).values()) == {"passed"}
    assert blamed(report.notes) == [words(f"case {name!r}", "sleep_on") for name in ("a", "b", "c")]


async def test_it_is_told_at_once_while_the_loop_is_blocked():
    heard: list[str] = []

    class Ear(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            heard.append(record.getMessage().split(" for more")[0])

    async def agent(message: str) -> str:
        sleep_on(BLOCKS)
        heard.append("the case went on")
        return "Hello."

    ear = Ear()
    logging.getLogger("greenroom").addHandler(ear)
    try:
        await evaluate(agent, [blocker("sleeper", "Hi")], store=False)
    finally:
        logging.getLogger("greenroom").removeHandler(ear)
    assert heard == ["case 'sleeper' blocked the event loop", "the case went on"]


async def test_a_metric_that_blocks_is_named_with_its_case():
    def pondering(response: str) -> bool:
        sleep_on(BLOCKS)
        return True

    report = await played(Case("a", says="Hi"), blocker("b", "wait 1", LIMIT), metrics=[pondering])
    assert set(statuses(report).values()) == {"passed"}
    assert words("the metric 'pondering' of case 'a'", "sleep_on") in blamed(report.notes)
    again = await rescore(report, metrics=[pondering])
    assert words("the metric 'pondering' of case 'b'", "sleep_on") in blamed(again.report.notes)


async def test_a_hook_that_blocks_costs_its_case_no_time_and_is_named():
    waited: list[str] = []

    def pondering(case: Case, event: object) -> None:
        if not waited:
            waited.append(case.id)
            sleep_on(BLOCKS)

    report = await played(*NEIGHBOURS, on_event=pondering)
    assert set(statuses(report).values()) == {"passed"}
    assert blamed(report.notes) == [words("the hook 'pondering'", "sleep_on")]


@pytest.mark.parametrize(
    "folder, blamed_at", [("site-packages", []), ("mine", ["slow_module.py:2 in <module>"])]
)
async def test_a_library_that_loads_parts_of_itself_is_not_blamed(
    folder, blamed_at, tmp_path, monkeypatch
):
    (tmp_path / folder).mkdir()
    (tmp_path / folder / "slow_module.py").write_text("import time\ntime.sleep(1.5)\n")
    monkeypatch.syspath_prepend(tmp_path / folder)
    monkeypatch.delitem(sys.modules, "slow_module", raising=False)

    async def agent(message: str) -> str:
        importlib.import_module("slow_module")
        return "Hello."

    report = await evaluate(agent, [blocker("first", "Hi")], store=False)
    assert [note.rpartition(", at ")[2] for note in blamed(report.notes)] == blamed_at


async def test_on_another_thread_it_is_the_same():
    cases = [blocker("busy", f"compute {BLOCKS}"), *NEIGHBOURS]
    report = rehearse(clerk, cases, concurrency=8, store=False)
    assert set(statuses(report).values()) == {"passed"}
    [note] = blamed(report.notes)
    assert note.startswith("case 'busy' blocked the event loop")
    assert note.endswith("in compute")


async def test_conversations_that_are_only_simulated_are_told_apart_too():
    batch = await simulate_all(clerk, EVERYBODY, concurrency=8)
    assert [one.ended for one in batch.simulations] == [*["completed"] * 4, "max_seconds"]
    assert len(blamed(batch.notes)) == 2


@pytest.mark.parametrize("workers", [1, 2])
async def test_in_a_worker_process_it_is_the_same(workers):
    here = Path(__file__)
    report = await evaluate(
        f"{here}:clerk", f"{here}:EVERYBODY", workers=workers, concurrency=8, store=False
    )
    found = statuses(report)
    assert found.pop("stuck") == "terminated"
    assert set(found.values()) == {"passed"}
    assert words("case 'sleeper'", "sleep_on") in blamed(report.notes)


async def test_a_deadline_stands_still_while_others_block_and_counts_what_is_its_own():
    async def block() -> None:
        await asyncio.sleep(0)
        sleep_on(BLOCKS)

    with keep_watching():
        late, early, own = Deadline(60), Deadline(LIMIT), Deadline(LIMIT)
        blocked, waited, cut = await asyncio.gather(
            finish(block(), late), finish(asyncio.sleep(0.1, "fine"), early), finish(block(), own)
        )
    assert blocked.exception() is None
    assert (waited.result(), early.expired) == ("fine", False)
    assert isinstance(cut.exception(), Expired)
    assert (late.expired, own.expired) == (False, True)
