"""What an agent's model is shown: its own exchanges in full, those of others as they were heard."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given

from greenroom import Agent, Case, Lines, Scripted, Turn, call, loop, route, simulate, step, tool
from greenroom.agents import Flow, Scene, history, persona
from greenroom.agents.graph import recast
from greenroom.errors import BadAgent
from greenroom.ledger import Ledger, Message, ModelCalled, ModelReplied
from greenroom.ledger.plain import as_text
from greenroom.models import ModelRequest
from ledger.values import JSON


@tool
def look(key: str) -> str:
    """Look."""
    raise AssertionError


class Memory:
    """Scripted answers that remember what they were shown."""

    def __init__(self, *answers: Any) -> None:
        self.shown: list[list[tuple[str, str]]] = []
        self._answers = answers

    def __call__(self, request: ModelRequest) -> Any:
        self.shown.append([(m.role, m.text) for m in request.messages])
        return self._answers[request.n]


def remembering(name: str, memory: Memory, **options: Any) -> Agent:
    return Agent(name, model=Scripted(then=memory), tools=[look], **options)


async def talked(flow: Flow, *says: str, **options: Any) -> None:
    turns = [Turn(text) for text in says]
    await simulate(Case("talk", turns=turns, mocks={"look": "found"}, **options), flow)


async def test_an_agent_remembers_its_own_exchanges_in_full() -> None:
    memory = Memory(call("look", key="a"), "One.", "Two.")
    await talked(remembering("a", memory), "First?", "Second?")
    assert memory.shown[-1] == [
        ("user", "First?"),
        ("assistant", ""),
        ("tool", "found"),
        ("assistant", "One."),
        ("user", "Second?"),
    ]


async def test_an_agent_in_a_route_hears_of_exchanges_it_took_no_part_in() -> None:
    billing = Memory(call("look", key="a"), "Paid.", "Paid again.")
    other = Memory("Hello.", "Bye.")

    def choose(ctx: Any) -> str:
        return "billing" if "pay" in ctx.input else "other"

    flow = route(choose, billing=remembering("b", billing), other=remembering("o", other))
    await talked(flow, "hi", "pay", "pay more", "ciao")
    assert billing.shown[0] == [("user", "hi"), ("assistant", "Hello."), ("user", "pay")]
    assert other.shown[-1] == [
        ("user", "hi"),
        ("assistant", "Hello."),
        ("user", "pay"),
        ("assistant", "Paid."),
        ("user", "pay more"),
        ("assistant", "Paid again."),
        ("user", "ciao"),
    ]
    assert ("tool", "found") in billing.shown[-1]
    assert ("tool", "found") not in other.shown[-1]


async def test_an_exchange_an_agent_took_part_in_is_told_once() -> None:
    first, second = Memory("draft 1", "draft 2"), Memory("final 1", "final 2")
    await talked(remembering("f", first) >> remembering("s", second), "one", "two")
    assert first.shown[-1] == [("user", "one"), ("assistant", "draft 1"), ("user", "two")]
    assert second.shown[-1] == [
        ("user", "draft 1"),
        ("assistant", "final 1"),
        ("user", "draft 2"),
    ]


async def test_branches_do_not_hear_each_other() -> None:
    left, right = Memory("L1", "L2"), Memory("R1", "R2")
    await talked(remembering("l", left) | remembering("r", right), "one", "two")
    assert left.shown[-1] == [("user", "one"), ("assistant", "L1"), ("user", "two")]
    assert right.shown[-1] == [("user", "one"), ("assistant", "R1"), ("user", "two")]


async def test_an_agent_in_a_loop_remembers_its_rounds() -> None:
    memory = Memory("One?", "Two?", "Done.")
    flow = loop(remembering("a", memory), until=lambda output: output == "Done.", awaits_input=True)
    await talked(flow, "begin", user=Lines("first", "second"))
    assert memory.shown[-1] == [
        ("user", "begin"),
        ("assistant", "One?"),
        ("user", "first"),
        ("assistant", "Two?"),
        ("user", "second"),
    ]


async def test_a_route_in_a_loop_hears_of_rounds_another_branch_answered() -> None:
    one, two = Memory("from one"), Memory("from two", "Done.")

    def choose(ctx: Any) -> str:
        return "one" if ctx.input == "begin" else "two"

    flow = loop(
        route(choose, one=remembering("a", one), two=remembering("b", two)),
        until=lambda output: output == "Done.",
        awaits_input=True,
    )
    await talked(flow, "begin", user=Lines("next", "last"))
    assert two.shown == [
        [("user", "begin"), ("assistant", "from one"), ("user", "next")],
        [
            ("user", "begin"),
            ("assistant", "from one"),
            ("user", "next"),
            ("assistant", "from two"),
            ("user", "last"),
        ],
    ]


async def test_a_persona_is_a_system_message_before_everything() -> None:
    memory = Memory("One.", "Two.")
    agent = remembering("a", memory, context=[persona(" Be kind. "), history()])
    await talked(agent, "First?", "Second?")
    assert memory.shown[-1] == [
        ("system", "Be kind."),
        ("user", "First?"),
        ("assistant", "One."),
        ("user", "Second?"),
    ]


async def test_history_can_be_cut_to_the_last_exchanges() -> None:
    memory = Memory("One.", "Two.", "Three.", "Four.")
    agent = remembering("a", memory, context=[history(last=2)])
    await talked(agent, "1", "2", "3", "4")
    assert memory.shown[-1] == [
        ("user", "2"),
        ("assistant", "Two."),
        ("user", "3"),
        ("assistant", "Three."),
        ("user", "4"),
    ]


async def test_history_of_none_or_no_rule_at_all_shows_the_present_only() -> None:
    for context in ([history(last=0)], []):
        memory = Memory("One.", "Two.")
        await talked(remembering("a", memory, context=context), "First?", "Second?")
        assert memory.shown[-1] == [("user", "Second?")]


async def test_history_longer_than_what_happened_shows_it_all() -> None:
    memory = Memory("One.", "Two.")
    await talked(remembering("a", memory, context=[history(last=9)]), "First?", "Second?")
    assert len(memory.shown[-1]) == 3


async def test_a_rule_of_ones_own_sees_the_earlier_exchanges_and_the_state() -> None:
    def told(scene: Scene) -> Sequence[Message]:
        name = scene.state["user"]["name"]
        return [Message("system", f"{name} asked {len(scene.earlier)} times before.")]

    memory = Memory("One.", "Two.")
    agent = remembering("a", memory, context=[told])
    await talked(agent, "First?", "Second?", state={"user": {"name": "Ada"}})
    assert memory.shown[-1][0] == ("system", "Ada asked 1 times before.")


async def test_an_attempt_that_failed_is_not_remembered() -> None:
    memory = Memory(call("look", key="a"), RuntimeError("model down"), "One.", "Two.")
    await talked(remembering("a", memory, retries=1), "First?", "Second?")
    assert memory.shown[-1] == [("user", "First?"), ("assistant", "One."), ("user", "Second?")]


async def test_an_agent_that_speaks_first_is_asked_without_a_message() -> None:
    memory = Memory("Hello!", "Fine.")
    await simulate(Case("open", user=Lines("How are you?")), remembering("a", memory))
    assert memory.shown == [[], [("assistant", "Hello!"), ("user", "How are you?")]]


async def test_a_run_taken_up_anywhere_shows_its_model_what_the_run_under_way_did() -> None:
    asked = [call("look", key="a"), call("look", key="b"), call("nothing")]
    memory = Memory(asked, "no number", call("look", key="c"), "7", "8")
    agent = remembering("a", memory, output=int)
    case = Case("talk", turns=[Turn("First?"), Turn("Second?")], mocks={"look": {"found": 1}})
    ledger = await simulate(case, agent)
    whole = list(memory.shown)
    for number, event in enumerate(ledger.of(ModelCalled)):
        memory.shown.clear()
        await simulate(case, agent, ledger=Ledger(ledger[: event.seq]))
        assert memory.shown == whole[number:]
    assert len(whole) == 5


async def test_an_agents_input_that_is_no_text_is_shown_as_json() -> None:
    memory = Memory("Done.")
    await talked(step(lambda: {"order": 7, "né": "é"}, name="s") >> remembering("a", memory), "go")
    assert memory.shown == [[("user", '{"order": 7, "né": "é"}')]]


@given(JSON)
def test_a_model_reads_json_as_json_writes_it(value: Any) -> None:
    assert as_text(value) == (
        value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    )


async def test_older_exchanges_are_summarised_once_and_shown_before_the_rest() -> None:
    memory = Memory(*[f"Answer {n}." for n in range(6)])
    maker = Memory("first", "second")
    rule = history(last=2, summarise=Scripted(then=maker))
    agent = remembering("a", memory, context=[rule])
    await talked(agent, *[f"Question {n}?" for n in range(6)])
    assert len(maker.shown) == 1
    assert maker.shown[0] == [
        (
            "user",
            "user: Question 0?\nassistant: Answer 0.\nuser: Question 1?\nassistant: Answer 1.",
        )
    ]
    assert [len(shown) for shown in memory.shown] == [1, 3, 5, 7, 6, 8]
    summary = ("user", "[A summary of the conversation before this point]\nfirst")
    assert memory.shown[4][:2] == [summary, ("user", "Question 2?")]
    assert "summarise='scripted'" in repr(rule)


async def test_a_summary_is_made_of_the_summary_before_it() -> None:
    maker = Memory("first", "second")
    memory = Memory(*[f"Answer {n}." for n in range(4)])
    agent = remembering(
        "a", memory, context=[history(last=1, summarise=Scripted(then=maker))], retries=1
    )
    await talked(agent, "Zero?", "One?", "Two?", "Three?")
    [_, [(_, again)]] = maker.shown
    assert again.startswith("summary of what came before: first\nuser: One?")
    assert memory.shown[-1][0][1].endswith("second")


async def test_a_conversation_that_was_cut_anywhere_asks_for_no_summary_twice() -> None:
    agent = Agent(
        "a",
        model=Scripted(*[f"Answer {n}." for n in range(5)]),
        context=[history(last=1, summarise=Scripted("first", "second", "third"))],
    )
    case = Case("talk", turns=[Turn(f"{n}?") for n in range(5)])
    whole = await simulate(case, agent)
    for cut in range(1, len(whole)):
        again = await simulate(case, agent, ledger=Ledger(whole[:cut]))
        texts = [event.text for event in again.of(ModelReplied)]
        assert texts == [event.text for event in whole.of(ModelReplied)], cut


def test_a_summary_wants_a_number_and_goes_with_the_model_of_the_agent() -> None:
    with pytest.raises(BadAgent, match="needs last="):
        history(summarise=Scripted("a"))
    with pytest.raises(BadAgent, match="last=0"):
        history(last=0, summarise=Scripted("a"))
    agent = Agent("a", model=Scripted("a"), context=[history(last=1, summarise=Scripted("b"))])
    other = Scripted("c")
    recasted = recast(agent, other)
    assert isinstance(recasted, Agent)
    [rule] = recasted.context
    assert rule == history(last=1, summarise=other)
