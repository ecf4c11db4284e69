"""A model answers for tools and keeps what they change: nobody writes their mocks by hand."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from greenroom import (
    Agent,
    Case,
    EvalSet,
    Expect,
    Ledger,
    Scripted,
    Stop,
    call,
    rehearse,
    step,
    tool,
)
from greenroom.agents import race
from greenroom.cases import by_args, case_data, case_from, fault, in_turn, read_evalset, simulated
from greenroom.cases import write_evalset as write
from greenroom.errors import BadCase, BadFile, NotFound
from greenroom.ledger import ModelCalled, ModelReplied, Usage, simulated_state, tool_calls
from greenroom.ledger.simulated import unanswered
from greenroom.models.model import ModelReply, ModelRequest
from greenroom.results.blame import blame
from greenroom.simulation import replay, simulate
from rehearsals import end_of, results

STOCK = {"cups": 3}


@tool
def take(item: str, count: int = 1) -> dict[str, int]:
    """Take something out of stock."""
    raise RuntimeError("the body of a simulated tool runs")


@tool
def left(item: str) -> int:
    """How many are left."""
    raise RuntimeError("the body of a simulated tool runs")


class Keeper:
    """A model that keeps the stock as a good one would, counts, and can be held up."""

    name = "keeper"

    def __init__(
        self, *spoiled: str, seconds: float = 0.0, on_asked: Callable[[], None] | None = None
    ) -> None:
        self.asked: list[ModelRequest] = []
        self.spoiled, self.seconds, self.open = spoiled, seconds, 0
        self.most_at_once, self.on_asked = 0, on_asked

    async def respond(self, request: ModelRequest, on_delta: Any = None) -> ModelReply:
        self.asked.append(request)
        self.open += 1
        self.most_at_once = max(self.open, self.most_at_once)
        if self.on_asked is not None:
            self.on_asked()
        await asyncio.sleep(self.seconds)
        self.open -= 1
        n = len(self.asked) - 1
        text = self.spoiled[n] if n < len(self.spoiled) else self._answer(request)
        return ModelReply(text, usage=Usage(10, 5), cost=0.25, prices="test", model=self.name)

    def _answer(self, request: ModelRequest) -> str:
        questions = [json.loads(m.text) for m in request.messages if m.text.startswith("{")]
        asked = [one for one in questions if "tool" in one][-1]
        state, args = asked["state"], asked["arguments"]
        if args["item"] not in state:
            return json.dumps({"error": f"no {args['item']}", "state": state})
        if asked["tool"] == "take":
            state = {**state, args["item"]: state[args["item"]] - args.get("count", 1)}
            return json.dumps({"result": state, "state": state})
        return json.dumps({"result": state[args["item"]], "state": state})


def clerk(*lines: Any) -> Agent:
    return Agent("clerk", model=Scripted(*lines, "Done."), tools=[take, left])


def stocked(keeper: Any, **more: Any) -> Case:
    world = simulated("A warehouse.", model=keeper, state=STOCK)
    return Case("c", says="Hi", mocks={"take": world, "left": world}, **more)


TWO = (call("take", item="cups", count=2), call("left", item="cups"))


async def test_tools_of_one_world_share_a_state_that_the_ledger_shows() -> None:
    ledger = await simulate(stocked(Keeper()), clerk(*TWO))
    assert results(ledger) == [{"cups": 1}, 1]
    made = tool_calls(ledger)
    assert [one.source for one in made] == ["simulated", "simulated"]
    assert simulated_state(ledger) == {"cups": 1}
    assert [simulated_state(ledger, after=one.id)["cups"] for one in made] == [1, 1]


async def test_every_trial_begins_with_the_same_state() -> None:
    case = stocked(Keeper())
    for _ in range(2):
        assert results(await simulate(case, clerk(*TWO))) == [{"cups": 1}, 1]


async def test_the_model_is_told_the_world_the_tool_the_state_and_what_was_answered() -> None:
    keeper = Keeper()
    await simulate(stocked(keeper), clerk(*TWO))
    first, second = keeper.asked
    assert "A warehouse." in first.instructions
    told = json.loads(first.last)
    assert (told["tool"], told["arguments"]) == ("take", {"item": "cups", "count": 2})
    assert told["state"] == STOCK
    assert told["about"]["description"] == "Take something out of stock."
    assert {*told["about"]["parameters"]["properties"]} == {"item", "count"}
    assert told["about"]["returns"]["additionalProperties"] == {"type": "integer"}
    assert [message.role for message in second.messages] == ["user", "assistant", "user"]
    assert json.loads(second.last)["state"] == {"cups": 1}


async def test_a_tool_may_fail_and_the_agent_sees_why() -> None:
    ledger = await simulate(stocked(Keeper()), clerk(call("left", item="jugs")))
    [made] = tool_calls(ledger)
    assert (made.error, made.source) == ("no jugs", "simulated")
    assert end_of(ledger).reason != "error"


UNUSABLE = {
    "prose": "There are three.",
    "no state": '{"result": {"cups": 1}}',
    "a state that is none": '{"result": {"cups": 1}, "state": [1]}',
    "neither": '{"state": {}}',
    "both": '{"result": {"cups": 1}, "error": "no", "state": {}}',
    "another type": '{"result": "one", "state": {}}',
    "not a number": '{"result": {"cups": NaN}, "state": {}}',
    "an empty error": '{"error": "", "state": {}}',
}


@pytest.mark.parametrize("text", UNUSABLE.values(), ids=[*UNUSABLE])
async def test_an_unusable_answer_is_asked_for_once_more(text: str) -> None:
    keeper = Keeper(text)
    ledger = await simulate(stocked(keeper), clerk(*TWO))
    assert results(ledger) == [{"cups": 1}, 1]
    assert keeper.asked[1].last.startswith("This answer cannot be used")
    assert len(keeper.asked) == 3


@pytest.mark.parametrize("text", UNUSABLE.values(), ids=[*UNUSABLE])
def test_two_unusable_answers_are_an_error_and_no_verdict_on_the_agent(text: str) -> None:
    case = stocked(Keeper(text, text), expect=Expect(contains="Done"))
    [result] = rehearse(clerk(*TWO), [case]).results
    assert result.status == "error"
    assert result.error is not None
    assert (result.error.type, result.error.phase) == ("MockBroke", "system")
    assert "simulates tool 'take'" in result.error.message
    whose = blame(case, result.ledger, result.scores)
    assert whose is not None
    assert whose.whom == "tool_mock"


def test_a_model_that_cannot_be_asked_is_an_error_of_the_simulation() -> None:
    case = stocked(Scripted(OSError("no line")), expect=Expect(contains="Done"))
    [result] = rehearse(clerk(*TWO), [case]).results
    assert result.error is not None
    assert result.error.type == "MockBroke"
    assert "no line" in result.error.message


async def test_a_model_that_hangs_is_an_error_of_the_simulation() -> None:
    keeper = Keeper(seconds=3600)
    for seconds in (0.2, 1, 5, 25):  # until the machine gets as far as asking
        ledger = await simulate(stocked(keeper, stop=Stop(max_seconds=seconds)), clerk(*TWO))
        if keeper.asked:
            break
    end = end_of(ledger)
    assert (end.reason, end.error_type) == ("error", "MockBroke")
    assert "simulates take did not answer" in end.error


async def test_a_call_that_lost_a_race_is_not_waited_for() -> None:
    asked = asyncio.Event()
    keeper = Keeper(seconds=3600, on_asked=asked.set)

    async def wait() -> str:
        await asked.wait()
        return "Early."

    ledger = await simulate(stocked(keeper), race(clerk(*TWO), step(wait)))
    assert len(ledger.of(ModelCalled, voice="user")) == 1
    assert unanswered(ledger) == []
    question = ledger.of(ModelCalled, voice="user")[0]
    assert unanswered(Ledger(ledger.events[: question.seq + 1])) == ["take"]


async def test_json_in_a_fence_is_an_answer() -> None:
    fenced = '```json\n{"result": {"cups": 0}, "state": {"cups": 0}}\n```'
    ledger = await simulate(stocked(Keeper(fenced)), clerk(*TWO))
    assert results(ledger) == [{"cups": 0}, 0]


async def test_calls_side_by_side_are_answered_one_after_the_other() -> None:
    keeper = Keeper(seconds=0.01)
    many = [call("take", item="cups") for _ in range(3)]
    ledger = await simulate(stocked(keeper), clerk(many, call("left", item="cups")))
    assert results(ledger) == [{"cups": 2}, {"cups": 1}, {"cups": 0}, 0]
    assert keeper.most_at_once == 1


async def test_a_simulated_world_may_stand_inside_other_mocks() -> None:
    world = simulated("A warehouse.", model=Keeper(), state=STOCK)
    mocks = {
        "take": in_turn(fault(lost=world), fault("closed")),
        "left": by_args(({"item": "cups"}, world), otherwise=0),
    }
    lines = [TWO[0], TWO[1], call("left", item="jugs"), TWO[0]]
    ledger = await simulate(Case("c", says="Hi", mocks=mocks), clerk(*lines))
    lost, *others = results(ledger)
    assert "connection was lost" in lost
    assert others == [1, 0, "closed"]
    sources = [one.source for one in tool_calls(ledger)]
    assert sources == ["simulated", "simulated", "mock", "mock"]


def test_usage_cost_and_models_count_on_the_side_of_the_simulation() -> None:
    report = rehearse(clerk(*TWO), [stocked(Keeper(), expect=Expect(contains="Done"))])
    [result] = report.results
    assert result.status == "passed", str(report)
    assert result.user_models == {"keeper": 2}
    assert result.user_usage == Usage(20, 10)
    assert (result.user_cost, result.cost) == (0.5, 0.0)
    assert report.user_cost == 0.5
    assert "note: tools simulated by keeper: left, take" in str(report)


def test_a_budget_counts_what_the_simulation_costs() -> None:
    cases = [
        Case(f"c{i}", says="Hi", mocks=stocked(Keeper()).mocks, expect=Expect(contains="Done"))
        for i in range(4)
    ]
    report = rehearse(clerk(*TWO), cases, budget=0.6, concurrency=1)
    # Another one would cost as much as the first, which is more than is left.
    assert [result.status for result in report] == ["passed", "skipped", "skipped", "skipped"]


def test_a_failure_beside_simulated_tools_is_not_blamed_on_the_agent() -> None:
    case = stocked(Keeper(), expect=Expect(contains="Sorry"))
    [result] = rehearse(clerk(*TWO), [case]).results
    assert result.status == "failed"
    whose = blame(case, result.ledger, result.scores)
    assert whose is not None
    assert whose.whom == "undecided"


# Cut, replayed, in another process


def cut_at(whole: Ledger, k: int) -> Ledger:
    return Ledger.loads("".join(whole.dumps().splitlines(keepends=True)[:k]))


@pytest.mark.parametrize(
    "lines",
    [TWO, (list(TWO), call("left", item="cups"))],
    ids=["in turn", "side by side"],
)
async def test_what_was_answered_before_a_cut_is_not_asked_again(lines: Any) -> None:
    whole = await simulate(stocked(Keeper("spoiled")), clerk(*lines))
    total = len(whole.of(ModelReplied, voice="user"))
    for k in range(1, len(whole)):
        keeper, cut = Keeper(), cut_at(whole, k)
        answered = len(cut.of(ModelReplied, voice="user"))
        again = await simulate(stocked(keeper), clerk(*lines), ledger=cut)
        assert results(again) == results(whole), k
        assert simulated_state(again) == simulated_state(whole), k
        # The first answer was spoiled; this keeper gives a good one at once.
        assert len(keeper.asked) == total - max(answered, 1), k


async def test_a_replay_asks_nobody_and_keeps_the_state() -> None:
    keeper = Keeper()
    recorded = await simulate(stocked(keeper), clerk(*TWO))
    again = await replay(recorded, clerk(*TWO), case=stocked(keeper))
    assert len(keeper.asked) == 2
    assert [(one.result, one.source) for one in tool_calls(again)] == [
        ({"cups": 1}, "replayed"),
        (1, "replayed"),
    ]
    assert simulated_state(again) == {"cups": 1}


async def test_where_a_replay_drifts_the_world_goes_on_from_the_recorded_state() -> None:
    recorded = await simulate(stocked(Keeper()), clerk(*TWO))
    keeper = Keeper()
    lines = Scripted(TWO[0], call("take", item="cups"), "Done.")
    other = Agent("clerk", model=lines, instructions="Be quick.", tools=[take, left])
    again = await replay(recorded, other, case=stocked(keeper), on_drift="live")
    assert results(again) == [{"cups": 1}, {"cups": 0}]
    assert [one.source for one in tool_calls(again)] == ["replayed", "simulated"]
    assert len(keeper.asked) == 1


def test_a_recorded_run_is_repeated_without_asking_or_paying(tmp_path: Path) -> None:
    keeper, place = Keeper(), tmp_path / "recordings"
    case = stocked(keeper, expect=Expect(contains="Done"))
    first = rehearse(clerk(*TWO), [case], store=False, record=place)
    again = rehearse(clerk(*TWO), [case], store=False, replay=place)
    assert len(keeper.asked) == 2
    assert (first.user_cost, again.user_cost) == (0.5, 0.0)
    assert [result.status for result in again] == ["passed"]
    assert again["c"].user_models == {"keeper (replayed)": 2}


SHOP = """
from greenroom import Agent, Case, Expect, Scripted, call, tool
from greenroom.cases import simulated

@tool
def take(item: str) -> int:
    "Take one."
    raise RuntimeError("the body of a simulated tool runs")

agent = Agent("clerk", model=Scripted(call("take", item="cup"), "Done."), tools=[take])
answers = Scripted({"result": 2, "state": {"cups": 2}}, name="keeper")
world = simulated("A warehouse.", model=answers, state={"cups": 3})
cases = [Case("c", says="Hi", mocks={"take": world}, expect=Expect(contains="Done"))]
"""


@pytest.mark.usefixtures("warm_workers")
def test_a_worker_process_simulates_tools_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shop.py").write_text(SHOP, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    report = rehearse("shop.py:agent", "shop.py:cases", workers=1, store=False)
    [result] = report.results
    assert result.status == "passed", str(report)
    assert result.user_models == {"keeper": 1}
    assert simulated_state(result.ledger) == {"cups": 2}


# As data


def named(state: Any = None, **more: Any) -> Any:
    return simulated("A warehouse.", model="openai:gpt-5-mini", state=state or STOCK, **more)


@pytest.mark.parametrize("name", ["set.yaml", "set.json"])
def test_a_simulated_world_comes_back_from_a_file(tmp_path: Path, name: str) -> None:
    world, bank = named(), named(name="bank")
    mocks = {"take": world, "left": world, "pay": bank, "look": in_turn(1, bank)}
    whole = EvalSet("set", [Case("c", says="Hi", mocks=mocks)])
    write(whole, tmp_path / name)
    assert read_evalset(tmp_path / name) == whole
    assert case_data(whole.cases[0])["mocks"]["left"] == {"simulated": "take"}  # pyright: ignore[reportIndexIssue,reportCallIssue,reportArgumentType,reportOptionalSubscript]


def test_a_change_of_the_world_is_a_change_of_the_case() -> None:
    one, other = (Case("c", says="Hi", mocks={"take": named({"cups": n})}) for n in (1, 2))
    assert case_data(one) != case_data(other)


WRONG: dict[str, tuple[Any, str]] = {
    "no model": ({"world": "A shop."}, "no model answers"),
    "no world": ({"model": "openai:gpt-5-mini"}, r"simulated\.world"),
    "a field too many": ({"world": "A", "model": "m", "states": {}}, "states"),
    "a state that is none": ({"world": "A", "model": "m", "state": 3}, "state"),
    "another tool": ("pay", "not a tool of this case"),
}


@pytest.mark.parametrize("data, words", WRONG.values(), ids=[*WRONG])
def test_what_is_wrong_with_a_world_in_a_file_is_said_with_its_place(data: Any, words: str) -> None:
    with pytest.raises((BadFile, BadCase), match=words) as caught:
        case_from({"id": "c", "says": "Hi", "mocks": {"take": {"simulated": data}}})
    assert "mocks.take" in str(caught.value)


BAD: list[Callable[[], Any]] = [
    lambda: simulated("", model="openai:gpt-5-mini"),
    lambda: simulated("A shop.", model=3),
    lambda: simulated("A shop.", model="openai:gpt-5-mini", state=[1]),  # pyright: ignore[reportArgumentType]
    lambda: simulated("A shop.", model="openai:gpt-5-mini", name=" "),
]


@pytest.mark.parametrize("make", BAD)
def test_a_world_that_is_none_is_refused_where_it_is_written(make: Callable[[], Any]) -> None:
    with pytest.raises(BadCase, match="simulated"):
        make()


async def test_two_worlds_of_one_name_are_refused_before_anything_runs() -> None:
    mocks = {
        "take": simulated("A", model=Keeper(), state=STOCK),
        "left": simulated("B", model=Keeper(), state=STOCK),
    }
    with pytest.raises(BadCase, match="two simulated worlds"):
        await simulate(Case("c", says="Hi", mocks=mocks), clerk())


async def test_worlds_with_names_keep_their_states_apart() -> None:
    keeper = Keeper()
    mocks = {
        "take": simulated("A", model=keeper, state=STOCK, name="near"),
        "left": simulated("B", model=keeper, state={"cups": 9}, name="far"),
    }
    ledger = await simulate(Case("c", says="Hi", mocks=mocks), clerk(*TWO))
    assert results(ledger) == [{"cups": 1}, 9]
    assert simulated_state(ledger, name="near") == {"cups": 1}
    assert simulated_state(ledger, name="far") == {"cups": 9}
    with pytest.raises(NotFound, match="far"):
        simulated_state(ledger)


async def test_the_questions_to_the_model_are_in_the_ledger() -> None:
    ledger = await simulate(stocked(Keeper()), clerk(*TWO))
    assert [event.node for event in ledger.of(ModelCalled, voice="user")] == ["simulated:world"] * 2
