"""Where trials run is one seam: what is lost there, and what all workers share."""

import asyncio
import json
import os
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from greenroom import Case, Expect, evaluate
from greenroom.errors import BadInput
from greenroom.suite.options import complete
from greenroom.suite.plan import prepare
from greenroom.suite.workers.local import LocalProcess, ThisMachine
from greenroom.suite.workers.turns import TurnGiver
from greenroom.world.pacer import Pace, keep_rates, paces
from greenroom.world.rates import read_rate, read_rates

pytestmark = pytest.mark.usefixtures("warm_workers")

SHOP = """
    import os
    from pathlib import Path
    from time import monotonic

    from greenroom import Agent, Scripted, step

    HERE = Path(__file__).parent

    def survives():
        count = len(list(HERE.glob("lost-*")))
        if count < LOSSES:
            (HERE / f"lost-{count}").touch()
            os._exit(9)
        return "survived"

    LOSSES = int((HERE / "losses").read_text()) if (HERE / "losses").exists() else 0
    agent = step(survives)

    class Timed:
        name = "acme:timed"

        async def respond(self, request, on_delta=None):
            from greenroom.models import ModelReply

            with (HERE / "asked").open("a") as file:
                file.write(f"{os.getpid()} {monotonic()}\\n")
            return ModelReply("Hi.")

    timed = Agent("timed", model=Timed())
"""


@pytest.fixture
def shop(tmp_path: Path) -> Callable[[str], str]:
    (tmp_path / "shop.py").write_text(textwrap.dedent(SHOP))
    return lambda name: f"{tmp_path / 'shop.py'}:{name}"


class LostProcess(LocalProcess):
    """A process whose machine is gone with it."""

    async def ended(self) -> tuple[str, bool]:
        await super().ended()
        return "was lost with its node", True


class Shaky(ThisMachine):
    """A machine that takes its processes with it."""

    def hire(self) -> LocalProcess:
        return LostProcess(os.environ)


@pytest.mark.parametrize("losses, status", [(0, "passed"), (5, "passed"), (6, "error")])
async def test_a_trial_is_not_blamed_for_a_lost_machine_up_to_five_times(
    shop: Callable[[str], str], tmp_path: Path, losses: int, status: str
) -> None:
    (tmp_path / "losses").write_text(str(losses))
    case = Case("one", says="Go on.", expect=Expect(contains=["survived"]))
    run = await prepare(shop("agent"), [case], {"workers": 1, "store": False})
    run.executor._place = Shaky()  # pyright: ignore[reportAttributeAccessIssue]
    [result] = (await run.report()).results
    assert result.status == status
    assert sum("lost with its node" in note for note in result.notes) == min(losses, 5)
    if status == "error":
        assert result.error is not None
        assert result.error.type == "WorkerDied"


# A shared pace


def asked(place: Path) -> list[tuple[str, float]]:
    lines = (place / "asked").read_text().splitlines()
    return sorted(((pid, float(at)) for pid, at in map(str.split, lines)), key=lambda one: one[1])


@pytest.mark.parametrize("workers", [None, 2])
async def test_a_rate_holds_for_all_workers_together(
    shop: Callable[[str], str], tmp_path: Path, workers: int | None
) -> None:
    cases = [Case(f"c{n}", "Hi", expect=Expect(contains="Hi")) for n in range(8)]
    options: Any = {"workers": workers, "concurrency": 8, "store": False}
    report = await evaluate(shop("timed"), cases, rate={"acme:timed": "10/s"}, **options)
    assert report.pass_rate == 1
    calls = asked(tmp_path)
    assert len({pid for pid, _ in calls}) == (workers or 1)
    # Eight turns at 10 a second: whoever was late may catch up on a tenth of a second.
    assert calls[-1][1] - calls[0][1] >= 0.55
    # Without the rate the same calls take no time; else the line above would prove nothing.
    paces.clear()
    (tmp_path / "asked").unlink()
    await evaluate(shop("timed"), cases, **options)
    free = asked(tmp_path)
    assert free[-1][1] - free[0][1] < calls[-1][1] - calls[0][1]


def test_no_more_calls_begin_than_the_rate_allows() -> None:
    now = 0.0
    pace = Pace(is_opening=True, clock=lambda: now)
    pace.keep(600)  # 10 a second
    begun: list[float] = []
    while now < 10:
        if wait := pace.take():
            now += wait * 1.2  # a loop that wakes up late
        else:
            begun.append(now)
    assert 95 <= len(begun) <= 102
    pace.forget(600)
    assert [pace.take() for _ in range(50)] == [0.0] * 50


def test_the_lowest_of_several_rates_holds_and_what_is_over_is_forgotten() -> None:
    with keep_rates({"several": 60.0}), keep_rates({"several": 600.0}):
        assert paces["several"].take() == 0  # pyright: ignore[reportAttributeAccessIssue]
        assert 0.8 < paces["several"].take() <= 1  # pyright: ignore[reportAttributeAccessIssue]
    assert "several" not in paces


async def test_turns_are_given_in_order_and_refused_to_those_who_have_no_time() -> None:
    pace, given, done = Pace(), list[tuple[int, float]](), asyncio.Event()
    turns = TurnGiver(lambda model, is_opening: pace)

    def answer(message: dict[str, Any]) -> None:
        given.append((message["turn"], message["wait"]))
        if len(given) == 5:
            done.set()

    pace.keep(1200)  # 20 a second
    for number in range(4):
        turns.receive({"ask": number, "model": "m", "left": 60}, answer)
    turns.receive({"ask": 9, "model": "m", "left": 0.01}, answer)
    async with asyncio.timeout(5):
        await done.wait()
    assert [number for number, wait in given if not wait] == [0, 1, 2, 3]
    assert [number for number, wait in given if wait] == [9]


async def test_who_asks_while_a_long_wait_is_under_way_is_told_at_once_that_it_is_too_long() -> (
    None
):
    pace, given = Pace(), list[int]()
    turns = TurnGiver(lambda model, is_opening: pace)
    pace.keep(1 / 60)  # one an hour

    def ask(number: int, left: float) -> None:
        message = {"ask": number, "model": "m", "left": left}
        turns.receive(message, lambda answer: given.append(answer["turn"]))

    ask(0, 300)
    ask(1, 10_000)  # waits
    ask(2, 300)
    await asyncio.sleep(0)
    ask(3, 300)
    assert given == [0, 2, 3]
    turns.close()


async def test_a_rate_of_a_model_that_never_answers_is_noted(shop: Callable[[str], str]) -> None:
    rates = {"acme:tmied": "10/s", "acme:timed": "600/s"}
    cases = [Case("c", "Hi", expect=Expect(contains="Hi"))]
    report = await evaluate(shop("timed"), cases, rate=rates, store=False)
    assert [note for note in report.notes if "rate" in note] == [
        "the rate of 'acme:tmied' had no effect: no model of that name answered, only acme:timed"
    ]


async def test_a_refusal_that_one_worker_met_holds_for_the_others() -> None:
    pace, given = Pace(), asyncio.Event()
    turns = TurnGiver(lambda model, is_opening: pace)
    turns.receive({"refused": "m", "ago": 0.01, "wait": 1}, lambda _: None)
    turns.receive({"ask": 1, "model": "m", "left": 60}, lambda _: given.set())
    await asyncio.sleep(0.05)
    assert not given.is_set()
    async with asyncio.timeout(600):
        await given.wait()
    turns.close()


@pytest.mark.parametrize("message", [{}, {"ask": "1", "model": "m", "left": 1}, {"turn": 1}])
async def test_what_is_no_message_about_a_turn_is_refused(message: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="turn"):
        TurnGiver(lambda model, is_opening: Pace()).receive(message, lambda _: None)


@pytest.mark.parametrize(
    "written, rate",
    [("8000/min", 8000), ("20/s", 1200), ("1.5/sec", 90), ("120/h", 2), ("60", 60), (7, 7)],
)
def test_a_rate_is_read(written: Any, rate: float) -> None:
    assert read_rate(written) == rate
    assert read_rates({"openai:gpt-x": written}) == {"openai:gpt-x": rate}
    assert read_rates([f"openai:gpt=x={written}"]) == {"openai:gpt=x": rate}


@pytest.mark.parametrize("written", ["", "0", "-1/s", "5/day", "many", "1/s/s", True, 0, -1, None])
def test_what_is_no_rate_is_refused_by_name(written: Any) -> None:
    with pytest.raises(BadInput, match="rate="):
        complete({"rate": {"openai:gpt-x": written}})


@pytest.mark.parametrize("given", ["openai:gpt-x=5/s", ["=5/s"], ["5/s"], 5, [5]])
def test_rates_are_a_mapping_or_a_list(given: Any) -> None:
    with pytest.raises(BadInput, match="rate="):
        complete({"rate": given})
    assert json.dumps(complete({"rate": ["m=5/s"]})["rate"])
