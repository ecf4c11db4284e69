"""A rehearsal that was recorded once is repeated without asking a model, and every result says so."""

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from greenroom import Agent, Case, Expect, Report, SimulatedUser, Stop, call, rehearse, tool
from greenroom.errors import BadInput, NotFound
from greenroom.ledger import ModelReplied, ToolReturned, Usage
from greenroom.ledger.redaction import keep_secret
from greenroom.metrics import cost_within, judge
from greenroom.models.model import ModelReply, ModelRequest
from greenroom.store import Store
from greenroom.suite import evaluate
from greenroom.suite.cancel import Cancel
from greenroom.world import Middleware

ran: list[str] = []


@tool
def refund(order: int) -> str:
    """Refund an order."""
    ran.append("refund")
    return "really refunded"


class Counting:
    """A model that says something else each time it is asked, and counts how often that was."""

    name = "counting"

    def __init__(self, *lines: Any) -> None:
        self.lines, self.asked = lines, 0

    async def respond(self, request: ModelRequest, on_delta: Any = None) -> ModelReply:
        line = self.lines[min(self.asked, len(self.lines) - 1)]
        self.asked += 1
        if not isinstance(line, str):
            return ModelReply(calls=(line,), usage=Usage(1, 1), cost=0.5)
        return ModelReply(f"{line} ({self.asked})", usage=Usage(10, 2), cost=0.5)


def clerk(model: Any, name: str = "clerk", **more: Any) -> Agent:
    options: Any = {"instructions": "Be kind.", **more}
    return Agent(name, model=model, **options)


HELLO = Case("hello", says="Hi", expect=Expect(contains="Hello"))


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "recordings"


def recorded(place: Path, agent: Any, *cases: Case, **more: Any) -> Report:
    report = rehearse(agent, list(cases) or [HELLO], store=False, record=place, **more)
    assert f"recorded in {place}" in " ".join(report.notes)
    return report


def replayed(place: Path | str, agent: Any, *cases: Case, **more: Any) -> Report:
    options: Any = {"store": False, "replay": place, **more}
    return rehearse(agent, list(cases) or [HELLO], **options)


def test_a_replay_asks_nobody_and_comes_to_the_same_verdict(place: Path) -> None:
    model = Counting("Hello", "Bye")
    first = recorded(place, clerk(model), HELLO, trials=2)
    assert [r.status for r in first] == ["passed", "failed"]
    assert model.asked == 2
    again = replayed(place, clerk(model), HELLO, trials=2)
    assert [r.status for r in again] == ["passed", "failed"]
    assert [r.responses for r in again] == [r.responses for r in first]
    assert model.asked == 2
    assert len({path.name for path in place.iterdir()}) == 2


def test_every_result_report_and_row_says_that_it_was_replayed(place: Path, tmp_path: Path) -> None:
    recorded(place, clerk(Counting("Hello")))
    store = Store(tmp_path / "runs")
    report = replayed(place, clerk(Counting("No")), store=store)
    (result,) = report
    assert result.recorded_at is not None
    assert result.models == {"counting (replayed)": 1}
    words = "replayed: what models answered was recorded on 20"
    for shown in (result, store.report(report.id)["hello"]):
        assert any(note.startswith(words) for note in shown.notes)
        assert shown.recorded_at == result.recorded_at
    data = json.loads(report.to_json())
    assert data["results"][0]["recorded_at"] == result.recorded_at
    shown = [str(report), report.to_markdown(), report.render("junit"), report.render("html")]
    assert [text for text in shown if "replayed from " not in text] == []
    path = report.save(tmp_path / "report.json")
    assert Report.load(path)["hello"].recorded_at == result.recorded_at
    live = rehearse(clerk(Counting("Hello")), HELLO, store=False)
    assert live["hello"].recorded_at is None
    assert "replayed" not in str(live)
    assert "recorded_at" not in live.to_json()


def test_a_replay_is_free_and_is_measured_by_what_it_cost(place: Path) -> None:
    cheap = replace(HELLO, metrics=[cost_within(0.4)])
    first = recorded(place, clerk(Counting("Hello")), cheap)
    assert (first.cost, first["hello"].status) == (0.5, "failed")
    again = replayed(place, clerk(Counting("Hello")), cheap, budget=0.1)
    assert (again.cost, again["hello"].status) == (0.0, "failed")


def test_an_agent_that_changed_is_an_error_that_says_what_differs(place: Path) -> None:
    recorded(place, clerk(Counting("Hello")))
    brief, model = clerk(Counting("Hello"), instructions="Be brief."), Counting("Hello")
    result = replayed(place, brief)["hello"]
    assert (result.status, result.error.type) == ("error", "ReplayDrifted")  # pyright: ignore[reportOptionalMemberAccess]
    assert "'Be kind.' when recorded, 'Be brief.' now" in result.error.message  # pyright: ignore[reportOptionalMemberAccess]
    changed = clerk(model, instructions="Be brief.")
    live = replayed(place, changed, on_drift="live")["hello"]
    assert (live.status, model.asked) == ("passed", 1)
    assert live.models == {"counting": 1}
    assert any("replayed in part: 1 of 1 answers of models are live" in n for n in live.notes)


def test_an_agent_that_asks_less_than_was_recorded_is_drift_too(place: Path) -> None:
    recorded(place, clerk(Counting("Hello")) >> clerk(Counting("Hello"), name="two"))
    result = replayed(place, clerk(Counting("Hello")) >> (lambda input: input))["hello"]  # noqa: A006
    assert result.status == "error"
    assert "is not asked now" in result.error.message  # pyright: ignore[reportOptionalMemberAccess]


def test_what_was_not_recorded_is_an_error_by_name(place: Path) -> None:
    recorded(place, clerk(Counting("Hello")))
    other = replace(HELLO, id="other")
    report = replayed(place, clerk(Counting("Hello")), HELLO, other)
    assert [r.status for r in report] == ["passed", "error"]
    said = report["other"].error
    assert said is not None
    assert said.type == "NotFound"
    assert f"trial 1 of case 'other' is not in {place}. Record it" in said.message
    model = Counting("Hello")
    assert replayed(place, clerk(model), other, on_drift="live").passed
    assert model.asked == 1


def test_users_and_judges_are_replayed_too(place: Path) -> None:
    class Verdicts(Counting):
        async def respond(self, request: ModelRequest, on_delta: Any = None) -> ModelReply:
            self.asked += 1
            text = json.dumps({"reasoning": f"Look {self.asked}", "verdict": True})
            return ModelReply(text, cost=0.1)

    verdicts, person = Verdicts(), Counting("I want my money", "<stop>")
    case = Case(
        "talk",
        says="Hello",
        user=SimulatedUser(goals=["money back"], model=person, stop_signal="<stop>"),
        metrics=[judge("kind", "Was it kind?", model=verdicts)],
        stop=Stop(max_turns=4),
    )
    model = Counting("Of course")
    first = recorded(place, clerk(model), case)
    asked = (model.asked, person.asked, verdicts.asked)
    assert all(asked), asked
    again = replayed(place, clerk(model), case)
    assert (model.asked, person.asked, verdicts.asked) == asked
    assert again["talk"].status == first["talk"].status == "passed"
    assert set(again["talk"].judge_models) == {"counting (replayed)"}
    assert set(again["talk"].user_models) == {"counting (replayed)"}
    assert again["talk"].scores == first["talk"].scores
    other = replace(case, metrics=[judge("kind", "Was it brief?", model=verdicts)])
    drifted = replayed(place, clerk(model), other)["talk"]
    assert drifted.status == "error"
    assert "judge:kind asks 'counting' something that is not recorded" in str(drifted.scores)
    assert replayed(place, clerk(model), other, on_drift="live")["talk"].status == "passed"


def test_a_tool_that_really_ran_does_not_run_again(place: Path) -> None:
    ran.clear()
    agent = clerk(Counting(call("refund", order=7), "Hello"), tools=[refund])
    recorded(place, agent, allow_tools=["refund"])
    assert ran == ["refund"]
    again = replayed(place, agent, allow_tools=["refund"])
    assert (again.passed, ran) == (True, ["refund"])
    ledger = again["hello"].ledger
    assert ledger is not None
    assert [e.source for e in ledger.of(ToolReturned)] == ["replayed"]


def test_another_mock_shows_as_drift(place: Path) -> None:
    agent = clerk(Counting(call("refund", order=7), "Hello"), tools=[refund])
    recorded(place, agent, mocks={"refund": "ok"})
    assert replayed(place, agent, mocks={"refund": "ok"}).passed
    (result,) = replayed(place, agent, mocks={"refund": "no"})
    assert "'ok' when recorded, 'no' now" in str(result.error)


def test_the_clock_of_a_replay_shows_what_it_showed(place: Path, tmp_path: Path) -> None:
    def desk(message: str, ctx: Any) -> str:
        return ctx.ask(model, f"{message} It is {ctx.now()}.").text

    model = Counting("Hello")
    recorded(place, desk)
    assert replayed(place, desk).passed
    # A run that was not recorded for it had a clock that ran on.
    report = rehearse(desk, HELLO, store=tmp_path / "runs")
    (result,) = replayed(report.id, desk, store=tmp_path / "runs")
    assert result.error is not None
    assert result.error.type == "ReplayDrifted"


def test_a_run_in_the_store_is_a_recording(tmp_path: Path) -> None:
    model = Counting("Hello")
    report = rehearse(clerk(model), HELLO, store=tmp_path / "runs")
    again = replayed(report.id[:-2], clerk(model), store=tmp_path / "runs")
    assert (again.passed, model.asked) == (True, 1)
    # A replay of a replay is as old as what it repeats.
    twice = replayed(again.id, clerk(model), store=tmp_path / "runs")
    assert twice["hello"].recorded_at == again["hello"].recorded_at


def test_what_broke_is_not_recorded(place: Path) -> None:
    agent = clerk(Counting(call("refund", order=7), "Hello"), tools=[refund])
    (result,) = recorded(place, agent)
    assert result.status == "error"
    assert "not recorded: it broke" in result.notes
    assert list(place.iterdir()) == []


def test_secrets_are_not_recorded_and_do_not_count_as_drift(place: Path) -> None:
    keep_secret("api_key", "sk-determined-0123456789")
    agent = clerk(Counting("Hello"), instructions="The key is sk-determined-0123456789.")
    recorded(place, agent)
    assert "sk-determined" not in "".join(path.read_text() for path in place.iterdir())
    assert replayed(place, agent).passed


def test_ids_that_are_alike_keep_recordings_of_their_own(place: Path) -> None:
    ids = ["a", "A", "a/b", "a_b", "../a", "é", "a" * 200, "a.1"]
    cases = [Case(name, says=f"Hi {name}", expect=Expect(contains="Hello")) for name in ids]
    model = Counting("Hello")
    recorded(place, clerk(model), *cases)
    assert len(list(place.iterdir())) == len(ids)
    assert {path.parent for path in place.rglob("*")} == {place}
    assert len({path.name.casefold() for path in place.iterdir()}) == len(ids)
    assert replayed(place, clerk(model), *cases).passed


def test_middleware_has_its_say_once(place: Path) -> None:
    class Loud(Middleware):
        async def after_model(self, request: ModelRequest, reply: ModelReply) -> str:
            return f"{reply.text}!"

    model = Counting("Hello")
    first = recorded(place, clerk(model), middleware=[Loud()])
    again = replayed(place, clerk(model), middleware=[Loud()])
    assert first["hello"].responses == again["hello"].responses == ["Hello (1)!"]


def test_a_recording_takes_the_place_of_the_one_before(place: Path) -> None:
    recorded(place, clerk(Counting("Hello", "again")))
    recorded(place, clerk(Counting("Goodbye")))
    assert replayed(place, clerk(Counting("x")))["hello"].responses == ["Goodbye (1)"]


def test_a_replay_that_was_cut_goes_on(place: Path, tmp_path: Path) -> None:
    cases = [Case(name, says="Hi", expect=Expect(contains="Hello")) for name in "abc"]
    model = Counting("Hello")
    recorded(place, clerk(model), *cases)
    store = Store(tmp_path / "runs")

    def cut_in_b(case: Case, event: Any, cancel: Cancel) -> None:
        if case.id == "b" and isinstance(event, ModelReplied):
            cancel.cancel("enough")

    async def cut() -> None:
        cancel = Cancel()
        await evaluate(
            clerk(model),
            cases,
            store=store,
            replay=place,
            concurrency=1,
            cancel=cancel,
            on_event=lambda case, event: cut_in_b(case, event, cancel),
        )

    asyncio.run(cut())
    assert store.runs()[0].status == "interrupted"
    report = replayed(place, clerk(model), *cases, store=store, resume=True)
    assert report.passed
    assert model.asked == 3
    assert all(result.recorded_at for result in report)


@pytest.mark.parametrize(
    "given, words",
    [
        ({"record": "a", "replay": "b"}, "record= and replay= contradict each other"),
        ({"record": "a", "omit_questions": True}, "record= needs what models are asked"),
        ({"on_drift": "live"}, "on_drift='live' is for replay="),
        ({"replay": ""}, "should be a folder with a recording, or the id of a run"),
        ({"record": 7}, "record=7 should be a folder"),
        ({"replay": "a", "on_drift": "skip"}, "should be one of 'error', 'live'"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    given: dict[str, Any], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadInput, match=words):
        rehearse(clerk(Counting("Hello")), HELLO, store=False, **given)


def test_a_recording_that_is_nowhere_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        NotFound, match="replay='nowhere' is not a folder, and there is no run 'nowhere'"
    ):
        replayed("nowhere", clerk(Counting("Hello")), store=tmp_path / "runs")
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match="cannot be a folder"):
        rehearse(clerk(Counting("Hello")), HELLO, store=False, record=tmp_path / "file")


def test_a_case_that_fails_in_a_replay_is_not_run_again(place: Path) -> None:
    good = rehearse(clerk(Counting("Hello")), HELLO, store=False, trials=3)
    recorded(place, clerk(Counting("Bye")))
    report = replayed(place, clerk(Counting("Bye")), baseline=good)
    assert (report["hello"].status, list(report.confirmed)) == ("failed", [])


def test_a_replay_of_another_version_of_the_agent_says_so(place: Path) -> None:
    class Other(Counting):
        name = "other"

    agent = clerk(Counting("Hello"))
    recorded(place, agent)
    same, other = replayed(place, agent), replayed(place, clerk(Other("Hello")))
    assert not [note for note in same.notes if "has changed" in note]
    assert len([note for note in other.notes if "the agent has changed" in note]) == 1
    assert "the agent has changed" in " ".join(other["hello"].notes)
    assert other["hello"].models == {"counting (replayed)": 1}


def test_a_recording_that_was_cut_says_that_it_may_have_been(place: Path) -> None:
    agent = clerk(Counting("Hello"))
    recorded(place, agent)
    file = place / "hello.1.jsonl"
    file.write_text("".join(file.read_text().splitlines(keepends=True)[:4]))
    error = replayed(place, agent)["hello"].error
    assert error is not None
    assert "it may have been interrupted" in error.message


def test_many_may_save_the_same_trial_at_once(place: Path) -> None:
    agent = clerk(Counting("Hello"))
    ledger = rehearse(agent, HELLO, store=False)["hello"].ledger
    with ThreadPoolExecutor(16) as pool:
        for _ in range(20):
            done = [pool.submit(ledger.save, place / "hello.1.jsonl") for _ in range(16)]
            assert [one.result() for one in done] == [None] * 16
    assert [path.name for path in place.iterdir()] == ["hello.1.jsonl"]
