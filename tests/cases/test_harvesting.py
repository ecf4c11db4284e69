"""A recorded session becomes a case that plays it again."""

import asyncio
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom import (
    Agent,
    Case,
    EvalSet,
    Expect,
    Ledger,
    Lines,
    Scripted,
    Stop,
    Turn,
    UserAgents,
    call,
    fault,
    loop,
    rehearse,
    simulate,
    step,
    tool,
    with_state_change,
)
from greenroom.agents import race
from greenroom.cases import by_args, case_data, case_from, harvest, in_turn
from greenroom.errors import BadCase
from greenroom.ledger import (
    AgentSaid,
    Answer,
    Answered,
    Event,
    ToolCalled,
    ToolReturned,
    UserSaid,
    state,
    tool_calls,
)
from greenroom.metrics import contains
from rehearsals import end_of


@tool
def stock(item: str) -> int:
    """How many are left."""
    raise RuntimeError("never reached in a rehearsal")


@tool(yields=True)
def ask(question: str) -> str:
    """Ask the user."""
    raise RuntimeError("never reached")


def shop(*lines: Any) -> Agent:
    return Agent("shop", model=Scripted(*lines), tools=[stock])


def is_replayed(agent: Any, ledger: Ledger, **options: Any) -> bool:
    """Whether the harvested case passes with the agent it was harvested from."""
    report = rehearse(agent, harvest(ledger, "again", **options))
    assert report.passed, str(report)
    return report.passed


async def test_a_session_becomes_turns_mocks_and_expectations() -> None:
    agent = shop(call("stock", item="cup"), "3 cups.", "Bye.")
    played = Case(
        "shop-1",
        turns=[Turn("Cups?"), Turn("Thanks")],
        mocks={"stock": lambda item: {"left": 3}},
        state={"session": {"vip": True}},
    )
    ledger = await simulate(played, agent, run_id="run-7")
    case = harvest(ledger, "cups", name="Asks for cups", tags=["golden"])
    assert case == Case(
        "cups",
        turns=[
            Turn("Cups?", Expect(tools=[call("stock", item="cup")], reference="3 cups.")),
            Turn("Thanks", Expect(tools=[], reference="Bye.")),
        ],
        mocks={"stock": by_args(({"item": "cup"}, {"left": 3}))},
        state={"session": {"vip": True}},
        name="Asks for cups",
        tags=("golden",),
        metadata={
            "harvested_from": "run-7",
            "original_case_id": "shop-1",
            "agent_digest": case.metadata["agent_digest"],
        },
    )
    assert is_replayed(agent, ledger)


KEY = "sk-ant-0123456789abcdefghij"


@pytest.mark.parametrize(
    "says, lines",
    [
        (f"Pay with {KEY}", ["Paid."]),
        ("Cups?", [call("stock", item=KEY), "Paid."]),
        ("Cups?", [f"Your key is {KEY}."]),
    ],
    ids=["the user's words", "arguments", "what is expected"],
)
async def test_a_record_that_lost_a_secret_makes_no_case(tmp_path: Path, says, lines) -> None:
    ledger = await simulate(Case("pay", says, mocks={"stock": 3}), shop(*lines))
    ledger.save(tmp_path / "kept.jsonl", redact=True)
    kept = Ledger.load(tmp_path / "kept.jsonl")
    with pytest.raises(
        BadCase, match="case 'x' cannot be made from this record: secrets were removed"
    ):
        harvest(kept, "x")
    with pytest.raises(BadCase, match="secrets were removed"):
        Case.from_ledger(kept, turn=0, id="x")
    assert harvest(ledger, "x")


async def test_secrets_that_no_case_needs_are_no_hindrance(tmp_path: Path) -> None:
    agent = Agent("shop", model=Scripted("3 cups."), instructions=f"The key is {KEY}.")
    played = Case("pay", turns=[Turn("Cups?"), Turn("Thanks")])
    (await simulate(played, agent)).save(tmp_path / "kept.jsonl", redact=True)
    kept = Ledger.load(tmp_path / "kept.jsonl")
    assert harvest(kept, "x", expect=False)
    assert Case.from_ledger(kept, turn=1)


async def test_a_session_from_disk_is_harvested_like_a_fresh_one(tmp_path: Path) -> None:
    agent = shop(call("stock", item="cup"), "3 cups.")
    ledger = await simulate(Case("c", says="Cups?", mocks={"stock": 3}), agent)
    ledger.save(tmp_path / "run.jsonl")
    loaded = Ledger.load(tmp_path / "run.jsonl")
    assert harvest(loaded, "x") == harvest(ledger, "x")


async def test_a_harvested_case_comes_back_from_a_file(tmp_path: Path) -> None:
    def counted(item: str) -> Any:
        return with_state_change(3, {"session": {"asked": [item], "left": {item: 3}}})

    agent = shop(call("stock", item="cup"), call("stock", item="mug"), "Done.")
    ledger = await simulate(Case("c", says="Hi", mocks={"stock": counted}), agent)
    case = harvest(ledger, "cups")
    EvalSet("golden", [case]).save(tmp_path / "golden.json")
    again = EvalSet.load(tmp_path / "golden.json")["cups"]
    assert case_data(again) == case_data(case)
    assert state(await simulate(again, agent)) == state(ledger)
    assert rehearse(agent, again).passed


async def test_answers_to_the_same_arguments_are_given_in_turn() -> None:
    calls = [call("stock", item=item) for item in ("cup", "mug", "cup", "mug")]
    agent = shop(*calls, "Done.")
    mock = in_turn(1, 9, 2, fault("the shelf is gone"))
    ledger = await simulate(Case("c", says="Hi", mocks={"stock": mock}), agent)
    again = await simulate(harvest(ledger, "again"), agent)
    assert [(c.result, c.error) for c in tool_calls(again)] == [
        (1, ""),
        (9, ""),
        (2, ""),
        (None, "the shelf is gone"),
    ]


async def test_other_arguments_than_the_recorded_ones_get_no_answer() -> None:
    ledger = await simulate(
        Case("c", says="Hi", mocks={"stock": 3}), shop(call("stock", item="cup"), "3.")
    )
    changed = shop(call("stock", item="mug"), "3.")
    [result] = rehearse(changed, harvest(ledger, "again"))
    assert result.error is not None
    assert result.error.type == "MockBroke"


async def test_a_tool_without_arguments_keeps_its_plain_answer() -> None:
    @tool
    def ping() -> str:
        """Ping."""
        return "never"

    agent = Agent("p", model=Scripted(call("ping"), "Done."), tools=[ping])
    ledger = await simulate(Case("c", says="Hi", mocks={"ping": "pong"}), agent)
    assert harvest(ledger, "again").mocks == {"ping": "pong"}


async def test_arguments_that_look_like_a_query_are_taken_by_the_letter() -> None:
    @tool
    def find(query: dict[str, Any]) -> int:
        """Find orders."""
        return 0

    def finder(wanted: dict[str, Any]) -> Agent:
        return Agent("f", model=Scripted(call("find", query=wanted), "One."), tools=[find])

    agent = finder({"total": {"$gt": 5}})
    ledger = await simulate(Case("c", says="Hi", mocks={"find": 1}), agent)
    assert is_replayed(agent, ledger)
    other = replace(harvest(ledger, "again"), mocks={"find": 1})
    assert not rehearse(finder({"total": 6}), other).passed


async def test_an_agent_that_speaks_first_does_so_again() -> None:
    agent = Agent("host", model=Scripted("Welcome!", "Good choice."))
    ledger = await simulate(Case("c", turns=[Turn(""), Turn("Tea")]), agent)
    case = harvest(ledger, "again")
    assert [turn.says for turn in case.turns] == ["", "Tea"]
    assert is_replayed(agent, ledger)


async def test_a_simulated_users_words_become_the_script() -> None:
    agent = Agent("host", model=Scripted("A?", "B?", "C."))
    ledger = await simulate(Case("c", says="Hi", user=Lines("yes", "no")), agent)
    case = harvest(ledger, "again")
    assert ([turn.says for turn in case.turns], case.user) == (["Hi", "yes", "no"], None)
    assert is_replayed(agent, ledger)


async def test_messages_to_a_waiting_loop_become_turns() -> None:
    talk = Agent("talk", model=Scripted("More?", "More?", "Enough."))
    agent = loop(talk, until=lambda output: output == "Enough.", awaits_input=True)
    ledger = await simulate(Case("c", says="Hi", user=Lines("one", "two")), agent)
    assert end_of(ledger).reason == "finished"
    assert [turn.says for turn in harvest(ledger, "again").turns] == ["Hi", "one", "two"]
    assert is_replayed(agent, ledger)


async def test_a_goal_ends_the_harvested_run_too() -> None:
    def sold(item: str) -> Any:
        return with_state_change(1, {"session": {"sold": item}})

    agent = shop(call("stock", item="cup"), "Sold.", "Anything else?")
    stop = Stop(state_matches={"session": {"sold": "cup"}})
    played = Case("c", says="Hi", user=Lines("No"), mocks={"stock": sold}, stop=stop)
    ledger = await simulate(played, agent)
    assert end_of(await simulate(harvest(ledger, "again"), agent)).reason == "state_matches"
    assert is_replayed(agent, ledger)


async def test_the_answer_to_more_arguments_is_not_taken_for_fewer() -> None:
    @tool
    def price(item: str, size: str = "") -> int:
        """What it costs."""
        return 0

    calls = call("price", item="cup"), call("price", item="cup", size="L")
    agent = Agent("p", model=Scripted(*calls, "Done."), tools=[price])
    ledger = await simulate(Case("c", says="Hi", mocks={"price": in_turn(1, 2)}), agent)
    again = await simulate(harvest(ledger, "again"), agent)
    assert [made.result for made in tool_calls(again)] == [1, 2]


async def test_a_call_that_was_refused_for_its_arguments_needs_no_mock() -> None:
    agent = shop(call("stock", thing=1), call("stock", item="cup"), "3.")
    ledger = await simulate(Case("c", says="Hi", mocks={"stock": 3}), agent)
    assert [made.source for made in tool_calls(ledger)] == ["refused", "mock"]
    assert harvest(ledger, "again").mocks == {"stock": by_args(({"item": "cup"}, 3))}
    assert is_replayed(agent, ledger)


def trace(*events: Event) -> Ledger:
    """A session from elsewhere: no case, no end, and nobody counted its calls."""
    ledger = Ledger()
    for event in events:
        ledger.append(event, at=1.0)
    return ledger


def test_calls_that_nobody_counted_are_counted() -> None:
    called: list[Event] = []
    for key, value in (("1", 3), ("2", 2)):
        called.append(ToolCalled(call_id=key, tool="stock", args={"item": "cup"}))
        called.append(ToolReturned(call_id=key, tool="stock", value=value, source="live"))
    case = harvest(trace(UserSaid(text="Hi"), *called, AgentSaid(text="Done.")), "again")
    assert case.mocks == {"stock": by_args(({"item": "cup"}, in_turn(3, 2)))}
    assert case.metadata == {"harvested_from": "", "original_case_id": "", "agent_digest": ""}


def test_a_long_session_is_not_cut_by_the_usual_limit() -> None:
    talk = [UserSaid(text="More"), AgentSaid(text="Sure.")] * 25
    ledger = trace(*(copy(event) for event in talk))
    assert harvest(ledger, "again").stop.max_turns == 25


def test_of_messages_given_at_once_the_first_says_what_came_of_them() -> None:
    both = Answered(answers=(Answer(yield_id="1", value="A"), Answer(yield_id="2", value="B")))
    case = harvest(trace(UserSaid(text="Hi"), both, AgentSaid(text="Both.")), "again")
    assert list(case.turns) == [
        Turn("Hi", Expect(tools=[])),
        Turn("A", Expect(tools=[], reference="Both.")),
        Turn("B"),
    ]


def branch(name: str, item: str) -> Agent:
    return Agent(name, model=Scripted(call("stock", item=item), "Done."), tools=[stock])


async def test_calls_in_branches_are_told_apart_by_their_arguments() -> None:
    agent = branch("left", "cup") | branch("right", "mug")
    mock = by_args(({"item": "cup"}, 3), ({"item": "mug"}, 9))
    ledger = await simulate(Case("c", says="Hi", mocks={"stock": mock}), agent)
    assert is_replayed(agent, ledger)


async def test_branches_that_got_different_answers_to_one_question_are_refused() -> None:
    answers = iter([3, 9])
    agent = branch("left", "cup") | branch("right", "cup")
    played = Case("c", says="Hi", mocks={"stock": lambda item: next(answers)})
    with pytest.raises(BadCase, match="in two branches at once and answered differently"):
        harvest(await simulate(played, agent), "again")


# Users who answer tools


async def test_answers_to_waiting_tools_become_lines_of_user_agents() -> None:
    calls = [call("ask", question=q) for q in ("Size?", "Colour?")]
    agent = Agent("a", model=Scripted(*calls, "Done."), tools=[ask])
    user = UserAgents(tools={"ask": Lines("M", "red")})
    ledger = await simulate(Case("c", says="Hi", user=user), agent)
    case = harvest(ledger, "again")
    assert case.user == UserAgents(tools={"ask": Lines("M", "red")})
    assert case.mocks == {}
    assert is_replayed(agent, ledger)


async def test_a_user_who_changes_the_state_is_refused() -> None:
    agent = Agent("a", model=Scripted(call("ask", question="Size?"), "Done."), tools=[ask])
    answer = Lines(with_state_change("M", {"session": {"size": "M"}}))
    ledger = await simulate(Case("c", says="Hi", user=UserAgents(tools={"ask": answer})), agent)
    assert state(ledger) == {"session": {"size": "M"}}
    with pytest.raises(BadCase, match="answers changed the agent's state"):
        harvest(ledger, "again")


async def test_a_user_who_leaves_a_waiting_agent_is_refused() -> None:
    agent = loop(Agent("talk", model=Scripted("More?")), awaits_input=True)
    ledger = await simulate(Case("c", says="Hi", user=lambda: None), agent)
    assert end_of(ledger).reason == "completed"
    with pytest.raises(BadCase, match="the user left while the agent waited"):
        harvest(ledger, "again")


# Sessions that are nothing to expect


async def test_a_broken_session_gives_its_script_but_no_expectations() -> None:
    agent = shop(call("stock", item="cup"), "3.")
    ledger = await simulate(
        Case("c", turns=[Turn("Hi"), Turn("Ho")], mocks={"stock": 3}),
        agent,
    )
    assert end_of(ledger).reason == "error"
    with pytest.raises(BadCase, match=r"did not end by itself \(error\).*expect=False"):
        harvest(ledger, "again")
    case = harvest(ledger, "again", expect=False)
    assert list(case.turns) == [Turn("Hi"), Turn("Ho")]
    assert case.mocks == {"stock": by_args(({"item": "cup"}, 3))}


async def test_a_session_that_was_cut_in_the_middle_is_refused() -> None:
    agent = shop(call("stock", item="cup"), "3.")
    whole = await simulate(Case("c", says="Hi", mocks={"stock": 3}), agent)
    called = tool_calls(whole)[0]
    cut = next(e.seq for e in whole if getattr(e, "call_id", "") == called.id)
    with pytest.raises(BadCase, match=r"did not end by itself \(no end\)"):
        harvest(Ledger(whole[: cut + 1]), "again")


def test_an_empty_ledger_is_refused() -> None:
    with pytest.raises(BadCase, match="neither user nor agent says anything"):
        harvest(Ledger(), "again")


# Any conversation

ITEMS = st.sampled_from(["cup", "mug"])
REPLIES = st.lists(st.builds(lambda item: call("stock", item=item), ITEMS), max_size=3)
VALUES = st.none() | st.booleans() | st.integers(0, 3) | st.dictionaries(ITEMS, st.integers(0, 2))
ANSWERS = VALUES | st.builds(fault, st.sampled_from(["sold out", "closed"]))
STATE = st.dictionaries(st.sampled_from(["a", "b"]), st.integers(0, 2), max_size=2)


@given(turns=st.lists(REPLIES, min_size=1, max_size=4), data=st.data(), before=STATE)
def test_a_harvested_case_passes_with_the_agent_it_came_from(
    turns: list[list[Any]], data: st.DataObject, before: dict[str, int]
) -> None:
    script = [line for number, calls in enumerate(turns) for line in [*calls, f"Turn {number}."]]
    count = max(1, sum(map(len, turns)))
    answers = data.draw(st.lists(ANSWERS, min_size=count, max_size=count))
    played = Case(
        "c",
        turns=[Turn(f"Say {number}") for number in range(len(turns))],
        mocks={"stock": in_turn(*answers)},
        state={"session": before},
        metrics=[contains("Turn")],
    )
    [first] = rehearse(shop(*script), played)
    assert first.ledger is not None
    case = case_from(case_data(harvest(first.ledger, "again")))
    [second] = rehearse(shop(*script), case)
    assert second.passed, second
    assert second.ledger is not None
    assert facts(second.ledger) == facts(first.ledger)


def facts(ledger: Ledger) -> Any:
    calls = [(c.tool, c.args, c.result, c.error, c.turn) for c in tool_calls(ledger)]
    return calls, state(ledger), end_of(ledger).reason


async def test_what_a_part_that_was_stopped_had_called_is_not_expected() -> None:
    @tool
    def look(key: str) -> str:
        """Look something up."""
        raise AssertionError("a tool body ran in a rehearsal")

    async def slow(key: str) -> str:
        await asyncio.sleep(30 if key == "b" else 0)
        return "found"

    def seeker(*keys: str) -> Agent:
        lines = [call("look", key=key) for key in keys]
        return Agent("seeker", model=Scripted(*lines, "Late."), tools=[look])

    @step
    async def fast() -> str:
        await asyncio.sleep(0.02)
        return "Fast."

    async def hang() -> None:
        await asyncio.sleep(30)

    case = Case("race", "Go", mocks={"look": slow})
    ended = harvest(await simulate(case, race(seeker("a") >> hang, fast)), "again")
    assert ended.script[0].expect is not None
    assert ended.script[0].expect.tools is None
    assert ended.script[0].expect.reference == "Fast."
    with pytest.raises(BadCase, match="stopped before it answered"):
        harvest(await simulate(case, race(seeker("a", "b"), fast)), "again")
