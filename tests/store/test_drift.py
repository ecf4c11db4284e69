"""A function that comes another way after a cut: what was recorded counts up to there."""

import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from greenroom import Case, EvalSet, Expect, evaluate, tool
from greenroom.ledger import Event, ModelCalled, ModelReplied, Noted, ToolCalled
from greenroom.store import Store
from greenroom.suite import Cancel
from greenroom.suite.inputs.references import load_value
from store.asked import Asked
from store.errands import statuses
from store.timeless import timeless

pytestmark = pytest.mark.usefixtures("warm_workers")

WORDS = {"second": "What then?"}
"""What the function reads from elsewhere, so that its own text does not tell that it has changed."""
PAID: list[int] = []


@tool
def pay(amount: int) -> dict[str, Any]:
    """Pay for real."""
    PAID.append(amount)
    return {"paid": amount}


def asking(model: Asked) -> Any:
    async def clerk(message: str, ctx: Any) -> str:
        first = await ctx.ask(model, f"First: {message}")
        second = await ctx.ask(model, WORDS["second"])
        if WORDS.get("pays"):
            pay(int(WORDS["pays"]))
        third = await ctx.ask(model, "And third?")
        return f"{first.text} {second.text} {third.text}"

    return clerk


CASES = EvalSet("drifting", [Case("a", says="Hello.", expect=Expect(contains="first"))])
ANSWER = "first, second, third"


@pytest.fixture(autouse=True)
def words() -> Any:
    before = dict(WORDS)
    PAID.clear()
    yield
    WORDS.clear()
    WORDS.update(before)


async def cut(place: Path, at: int, **options: Any) -> Asked:
    model = Asked(lambda _: ANSWER, cut=at)
    await evaluate(asking(model), CASES, store=place, cancel=model.cancel, **options)
    assert model.count == at
    return model


async def test_a_function_that_comes_the_same_way_is_asked_only_what_was_under_way(
    tmp_path: Path,
) -> None:
    await cut(tmp_path, at=3)
    model = Asked(lambda _: ANSWER)
    report = await evaluate(asking(model), CASES, store=tmp_path, resume=True)
    assert (statuses(report), model.count) == (["passed"], 1)
    assert not [note for note in report.notes if "run again" in note]


async def test_from_the_first_other_question_on_it_is_played_anew_and_says_so(
    tmp_path: Path,
) -> None:
    await cut(tmp_path, at=3)
    WORDS["second"] = "Something else?"
    model = Asked(lambda _: ANSWER)
    report = await evaluate(asking(model), CASES, store=tmp_path, resume=True)
    assert statuses(report) == ["passed"]
    assert model.count == 2, "the first answer stays, the second question and the third are new"
    assert "asked something else as its question 2; from there on" in report.notes[0]
    whole = await evaluate(asking(Asked(lambda _: ANSWER)), CASES, store=tmp_path / "whole")
    assert timeless(report)["results"] == timeless(whole)["results"]
    [result] = Store(tmp_path).report(report.id).results
    assert result.ledger is not None
    assert len(result.ledger.of(ModelReplied)) == 3


async def test_a_real_tool_behind_the_drift_is_not_called_again(tmp_path: Path) -> None:
    WORDS["pays"] = "3"
    await cut(tmp_path, at=3, allow_tools=[pay])
    WORDS["second"] = "Something else?"
    model = Asked(lambda _: ANSWER)
    report = await evaluate(asking(model), CASES, store=tmp_path, resume=True, allow_tools=[pay])
    assert statuses(report) == ["error"]
    assert report.results[0].error is not None
    assert report.results[0].error.type == "InDoubt"
    assert PAID == [3]


async def test_another_call_of_a_mocked_tool_is_a_drift_too(tmp_path: Path) -> None:
    WORDS["pays"] = "3"
    mocks = {"pay": {"paid": True}}
    await cut(tmp_path, at=3, mocks=mocks)
    WORDS["pays"] = "4"
    model = Asked(lambda _: ANSWER)
    report = await evaluate(asking(model), CASES, store=tmp_path, resume=True, mocks=mocks)
    assert (statuses(report), model.count) == (["passed"], 1)
    assert "called 'pay' with {'amount': 4} where it had called 'pay'" in report.notes[0]
    [result] = report.results
    assert result.ledger is not None
    assert [c.args for c in result.ledger.of(ToolCalled)] == [{"amount": 4}]


async def test_the_reason_for_doubt_outlives_another_cut(tmp_path: Path) -> None:
    WORDS["pays"] = "3"
    await cut(tmp_path, at=3, allow_tools=[pay])
    WORDS["second"] = "Something else?"
    token = Cancel()

    def cut_again(_: object, event: Event) -> None:
        if isinstance(event, Noted):
            token.cancel()

    options: Any = {"store": tmp_path, "resume": True, "allow_tools": [pay]}
    again = asking(Asked(lambda _: ANSWER))
    await evaluate(again, CASES, cancel=token, on_event=cut_again, **options)
    report = await evaluate(asking(Asked(lambda _: ANSWER)), CASES, **options)
    assert report.results[0].error is not None
    assert report.results[0].error.type == "InDoubt"
    assert PAID == [3]


# In worker processes

DESK = """
    import os
    import signal
    from pathlib import Path

    from greenroom import Scripted, metric, tool

    HERE = Path(__file__).parent

    def count(name):
        with (HERE / name).open("a") as file:
            file.write("x")

    def answer(request):
        count("asked")
        return "first, second, third"

    model = Scripted(then=answer)

    @tool
    def pay(amount: int) -> dict:
        "Pay for real."
        count("paid")
        return {"paid": amount}

    @metric
    def whole(response: str):
        count("measured")
        return response.count("third") == 3

    async def clerk(message, ctx):
        first = await ctx.ask(model, f"First: {message}")
        second = await ctx.ask(model, (HERE / "second").read_text())
        if (HERE / "pays").exists():
            pay(3)
        if (HERE / "dies").exists():
            (HERE / "dies").unlink()
            (HERE / "second").write_text("Something else?")
            os.kill(os.getpid(), signal.SIGKILL)
        third = await ctx.ask(model, "And third?")
        return f"{first.text} {second.text} {third.text}"
"""


@pytest.fixture
def desk(tmp_path: Path) -> Callable[[str], str]:
    """References into a module that workers can import, and that reads its words from a file."""
    (tmp_path / "desk.py").write_text(textwrap.dedent(DESK))
    (tmp_path / "second").write_text("What then?")
    return lambda name: f"{tmp_path / 'desk.py'}:{name}"


async def cut_in_worker(agent: str, store: Path, **options: Any) -> None:
    """A run of one worker that was stopped at its third question."""
    token = Cancel()

    def hear(_: Case, event: Event) -> None:
        if isinstance(event, ModelCalled) and event.n == 2:
            token.cancel("cut by the test")

    await evaluate(agent, CASES, workers=1, store=store, cancel=token, on_event=hear, **options)


async def test_a_worker_that_goes_on_another_way_plays_anew_from_there(
    tmp_path: Path, desk: Callable[[str], str]
) -> None:
    whole = [load_value(desk("whole"))]
    await cut_in_worker(desk("clerk"), tmp_path / "store", metrics=whole)
    (tmp_path / "second").write_text("Something else?")
    for name in ("asked", "measured"):  # by a worker that was faster than the cut
        (tmp_path / name).unlink(missing_ok=True)
    report = await evaluate(
        desk("clerk"), CASES, workers=1, store=tmp_path / "store", resume=True, metrics=whole
    )
    assert statuses(report) == ["passed"]
    assert (tmp_path / "asked").read_text() == "xx", "the first answer stays"
    assert (tmp_path / "measured").read_text() == "x", "what was left behind is not measured"
    assert "asked something else as its question 2; from there on" in report.notes[0]
    anew = await evaluate(desk("clerk"), CASES, store=tmp_path / "whole", metrics=whole)
    assert timeless(report)["results"] == timeless(anew)["results"]
    [result] = Store(tmp_path / "store").report(report.id).results
    assert result.ledger is not None
    assert len(result.ledger.of(ModelReplied)) == 3


@pytest.mark.parametrize("is_stored", [True, False])
async def test_a_function_that_comes_another_way_after_its_worker_died_is_played_anew_from_there(
    tmp_path: Path, desk: Callable[[str], str], is_stored: bool
) -> None:
    (tmp_path / "dies").touch()
    store = tmp_path / "store" if is_stored else False
    report = await evaluate(desk("clerk"), CASES, workers=1, store=store)
    [result] = report.results
    assert (result.status, result.error) == ("passed", None)
    assert (tmp_path / "asked").read_text() == "xxxx", "two, and after the death the last two"
    assert any("SIGKILL" in note for note in result.notes)
    assert "from there on it was run again" in report.notes[0]
    assert result.ledger is not None
    assert len(result.ledger.of(ModelReplied)) == 3


@pytest.mark.parametrize("is_cut", [True, False])
async def test_a_real_tool_behind_the_drift_of_a_worker_is_not_called_again(
    tmp_path: Path, desk: Callable[[str], str], is_cut: bool
) -> None:
    (tmp_path / "pays").touch()
    store, pays = tmp_path / "store", [load_value(desk("pay"))]
    if is_cut:
        await cut_in_worker(desk("clerk"), store, allow_tools=pays)
        (tmp_path / "second").write_text("Something else?")
    else:
        (tmp_path / "dies").touch()
    report = await evaluate(
        desk("clerk"), CASES, workers=1, store=store, resume=is_cut, allow_tools=pays
    )
    [result] = report.results
    assert result.error is not None
    assert result.error.type == "InDoubt"
    assert (tmp_path / "paid").read_text() == "x"
