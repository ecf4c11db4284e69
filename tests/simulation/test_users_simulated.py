"""A person played by a model: what they are told, what they say, and when they are done."""

import asyncio
import json
from typing import Any

import pytest

from attached_files import PNG
from greenroom import (
    Agent,
    Bridge,
    Case,
    Ledger,
    Lines,
    Scripted,
    SimulatedUser,
    Stop,
    Turn,
    UserAgents,
    attach,
    call,
    loop,
    score,
    simulate,
    tool,
)
from greenroom.cases.from_runs import harvest
from greenroom.errors import BadAgent, BadCase, RequestRefused
from greenroom.ledger import Message, ended, messages, tool_calls, turns, user_view
from greenroom.ledger.events import InvocationEnded, ModelReplied
from greenroom.models import ModelReply, ModelRequest
from greenroom.models.placeholders import NamingModel
from greenroom.simulation import Simulation, simulation_data, simulation_of
from rehearsals import end_of, results

CLERK = Agent("clerk", model=Scripted("Which order?", "Order 7 is refunded.", "Sorry!", then="Hm."))


@tool(yields=True)
def ask(question: str) -> str:
    """Ask the user."""
    raise AssertionError


def ada(*answers: Any, then: Any = None, **options: Any) -> SimulatedUser:
    return SimulatedUser("You are Ada.", model=Scripted(*answers, then=then), **options)


def chat(*script: str) -> Any:
    """An agent that holds the conversation in a loop of its own."""
    agent = Agent("clerk", model=Scripted(*script))
    return loop(agent, until=lambda output: output == script[-1], awaits_input=True)


async def played(
    user: Any, agent: Any = CLERK, says: str = "Money back.", **options: Any
) -> Ledger:
    options.setdefault("stop", Stop(max_seconds=30))
    return await simulate(Case("simulated", says, user=user, **options), agent)


def said_by_user(ledger: Ledger) -> list[str]:
    return [message.text for message in messages(ledger) if message.role == "user"]


class Listener:
    """A model for a user that remembers what it was shown."""

    def __init__(self, *answers: Any) -> None:
        self.shown: list[list[tuple[str, str]]] = []
        self._answers = answers

    def __call__(self, request: ModelRequest) -> Any:
        self.shown.append([(m.role, m.text) for m in request.messages])
        return self._answers[request.n]


# What they are told


async def test_the_persona_is_the_system_prompt_with_goal_plan_and_goals() -> None:
    listener = Listener("STOP")
    await played(
        SimulatedUser(
            "You are Ada.",
            goal="Get out of it well.",
            plan=["Ask for a refund.", "Ask for an apology."],
            goals=["the refund", "the apology"],
            stop_signal="STOP",
            model=Scripted(then=listener),
        )
    )
    (role, told), *_ = listener.shown[0]
    assert role == "system"
    assert told.startswith("You are Ada.")
    for part in (
        "Your goal: Get out of it well.",
        "1. Ask for a refund.\n2. Ask for an apology.",
        "1. the refund\n2. the apology",
        "<done 1>",
        "answer with STOP",
    ):
        assert part in told


async def test_a_person_without_goals_is_told_nothing_of_marks() -> None:
    listener = Listener("</finished>")
    await played(SimulatedUser(plan="Ask twice.", model=Scripted(then=listener)))
    (_, told), *_ = listener.shown[0]
    assert "<done" not in told
    assert "Your plan: Ask twice." in told


async def test_a_person_hears_the_agent_as_their_user_and_themselves_as_the_assistant() -> None:
    listener = Listener("Order 7.", "</finished>")
    await played(SimulatedUser("Ada.", model=Scripted(then=listener)))
    assert listener.shown[-1][1:] == [
        ("assistant", "Money back."),
        ("user", "Which order?"),
        ("assistant", "Order 7."),
        ("user", "Order 7 is refunded."),
    ]


async def test_the_starting_prompt_is_said_as_it_stands() -> None:
    assert said_by_user(await played(ada("Order 7.", "</finished>"), says="Hello there."))[0] == (
        "Hello there."
    )


async def test_a_model_may_be_named_and_a_name_nobody_knows_is_refused_before_anything_runs() -> (
    None
):
    with pytest.raises(BadAgent, match="there is no model provider 'nowhere'"):
        await played(SimulatedUser("Ada.", model="nowhere:ada-1"))


@pytest.mark.parametrize(
    "user",
    [
        SimulatedUser("Ada."),
        Lines("a", then=SimulatedUser("Ada.")),
        UserAgents(tools={"ask": SimulatedUser("Ada.")}),
    ],
)
async def test_a_person_without_a_model_is_refused_before_anything_runs(user: Any) -> None:
    with pytest.raises(BadCase, match="the simulated user 'user' has no model to play it"):
        await played(user)


# When they are done


async def test_a_stop_signal_ends_the_conversation_at_once_and_is_not_said() -> None:
    ledger = await played(ada("Order 7.", "Thanks, bye! </finished>", "never"))
    assert end_of(ledger).reason == "completed"
    assert said_by_user(ledger) == ["Money back.", "Order 7."]
    assert "Thanks, bye!" in str(user_view(ledger))


async def test_a_stop_signal_may_be_all_a_user_ever_says() -> None:
    ledger = await played(ada("</finished>"), says="")
    assert (end_of(ledger).reason, turns(ledger)) == ("completed", 0)


async def test_a_signal_of_the_agents_ends_nothing() -> None:
    agent = Agent("clerk", model=Scripted("</finished>", "Still here.", "Bye."))
    ledger = await played(ada("What?", "</finished>"), agent)
    assert said_by_user(ledger) == ["Money back.", "What?"]


async def test_a_user_who_never_stops_runs_into_the_limit() -> None:
    ledger = await played(ada(then="More."), stop=Stop(max_turns=3))
    assert (end_of(ledger).reason, turns(ledger)) == ("max_turns", 3)


@pytest.mark.parametrize(
    "stop, own, expected", [(None, 3, 3), (2, 3, 2), (5, 3, 3), (None, 25, 25), (None, None, 20)]
)
async def test_the_lower_limit_counts_and_a_case_that_sets_none_leaves_it_to_its_user(
    stop: int | None, own: int | None, expected: int
) -> None:
    limits = Stop(max_turns=stop) if stop else Stop()
    ledger = await played(ada(then="More.", max_turns=own), stop=limits)
    assert (end_of(ledger).reason, turns(ledger)) == ("max_turns", expected)


async def test_a_users_own_limit_holds_inside_a_waiting_loop_too() -> None:
    ledger = await played(ada(then="More.", max_turns=2), chat("1", "2", "3", "Done."))
    assert (end_of(ledger).reason, turns(ledger)) == ("max_turns", 2)


# Goals


GOALS = ["the refund", "an apology"]


async def test_a_user_is_done_when_all_goals_are_shown() -> None:
    user = ada(
        "Order 7.",
        "<done 1>Order 7 is refunded.</done> And an apology?",
        "<done 2>Sorry!</done> Thank you.",
        "never",
        goals=GOALS,
    )
    ledger = await played(user)
    told = simulation_of(ledger)
    assert said_by_user(ledger) == ["Money back.", "Order 7.", "And an apology?"]
    assert (told.completed, told.turns, told.ended) == (True, 3, "completed")
    assert (told.goals, told.goals_achieved) == (("the refund", "an apology"), tuple(GOALS))
    assert [message.text for message in told.conversation] == [
        "Money back.",
        "Which order?",
        "Order 7.",
        "Order 7 is refunded.",
        "And an apology?",
        "Sorry!",
    ]


@pytest.mark.parametrize(
    "mark",
    [
        "<done 1>I gave you your money.</done>",
        "<done 1></done>",
        "<done 3>Which order?</done>",
        "<done 0>Which order?</done>",
        "<done 1>Money back.</done>",
    ],
)
async def test_a_claim_without_words_of_the_agent_reaches_nothing(mark: str) -> None:
    ledger = await played(ada(f"{mark} Go on.", "</finished>", goals=["the refund"]))
    told = simulation_of(ledger)
    assert said_by_user(ledger) == ["Money back.", "Go on."]
    assert told.goals_achieved == ()
    assert not any(claim.shown for claim in told.claims)


async def test_words_that_the_agent_says_only_later_show_nothing() -> None:
    user = ada(
        "<done 1>Order 7 is refunded.</done> Order 7.", "Well?", "</finished>", goals=["the refund"]
    )
    assert simulation_of(await played(user)).goals_achieved == ()


async def test_a_user_may_leave_with_goals_open() -> None:
    user = ada("<done 1>Which order?</done> I give up. </finished>", goals=GOALS)
    told = simulation_of(await played(user))
    assert (told.completed, told.goals_achieved) == (True, ("the refund",))


async def test_marks_alone_are_no_message_and_the_user_is_asked_once_more() -> None:
    listener = Listener("<done 1>Which order?</done>", "Order 7.", "</finished>")
    user = SimulatedUser("Ada.", goals=GOALS, model=Scripted(then=listener))
    ledger = await played(user)
    assert said_by_user(ledger) == ["Money back.", "Order 7."]
    assert "You said nothing to the assistant" in listener.shown[1][-1][1]
    assert simulation_of(ledger).goals_achieved == ("the refund",)


async def test_marks_alone_twice_are_the_users_failure() -> None:
    mark = "<done 1>Which order?</done>"
    end = end_of(await played(ada(mark, mark, "never", goals=GOALS)))
    assert (end.reason, end.phase) == ("error", "user_agent")
    assert "says nothing to the agent" in end.error


async def test_a_bridge_hears_no_marks() -> None:
    heard: list[str] = []

    def response(output: Any, user: Any, wait: Any) -> str:
        heard.append(output)
        return output

    user = ada("<done 1>Which order?</done> Order 7.", "Bye </finished>", goals=GOALS)
    await played(user, bridge=Bridge(format_response=response))
    assert heard == ["Order 7."]


async def test_goals_are_known_again_when_the_ledger_is_loaded() -> None:
    ledger = await played(ada("<done 1>Which order?</done> Go on.", "</finished>", goals=GOALS))
    again = simulation_of(Ledger.loads(ledger.dumps()))
    assert again == simulation_of(ledger)
    assert again.goals_achieved == ("the refund",)


async def test_a_simulation_can_be_kept_as_json() -> None:
    ledger = await played(ada("<done 1>Which order?</done> </finished>", goals=["the refund"]))
    assert json.loads(json.dumps(simulation_data(simulation_of(ledger)))) == {
        "scenario_id": "simulated",
        "completed": True,
        "ended": "completed",
        "turns": 1,
        "conversation": [
            {"role": "user", "content": "Money back."},
            {"role": "assistant", "content": "Which order?"},
        ],
        "goals": ["the refund"],
        "goals_achieved": ["the refund"],
        "claims": [{"goal": "the refund", "quote": "Which order?", "shown": True}],
        "error": "",
    }


async def test_a_run_without_a_simulated_user_has_no_goals() -> None:
    told = simulation_of(await played(Lines("Order 7.")))
    assert (told.goals, told.claims, told.completed) == ((), (), True)


async def test_a_run_that_broke_is_not_completed() -> None:
    told = simulation_of(await played(ada()))
    assert (told.completed, told.ended) == (False, "error")
    assert told.error.startswith("the simulated user failed in case ")


def test_a_simulation_that_never_began_is_not_completed() -> None:
    assert not Simulation(case_id="x").completed


# A script first, improvised afterwards


@pytest.mark.parametrize(
    "case",
    [
        lambda person: Case("mixed", turns=[Turn("a"), Turn("b")], user=person),
        lambda person: Case("mixed", "a", user=Lines("b", then=person)),
        lambda person: Case("mixed", "a", user=Lines(then=Lines("b", then=person))),
    ],
)
@pytest.mark.parametrize(
    "agent", [Agent("clerk", model=Scripted("1", "2", "3", "4")), chat("1", "2", "3", "4", "5")]
)
async def test_a_script_comes_first_and_the_one_who_improvises_knows_it(
    case: Any, agent: Any
) -> None:
    listener = Listener("c", "</finished>")
    ledger = await simulate(case(SimulatedUser("Ada.", model=Scripted(then=listener))), agent)
    assert said_by_user(ledger) == ["a", "b", "c"]
    assert end_of(ledger).reason == "completed"
    assert listener.shown[0][1:] == [
        ("assistant", "a"),
        ("user", "1"),
        ("assistant", "b"),
        ("user", "2"),
    ]


async def test_lines_may_go_on_with_an_agent_or_a_function() -> None:
    for then in (Agent("ada", model=Scripted("c")), lambda: "c"):
        ledger = await played(Lines("b", then=then), stop=Stop(max_turns=3))
        assert said_by_user(ledger) == ["Money back.", "b", "c"]


async def test_lines_of_a_tool_may_go_on_with_a_person() -> None:
    asks = [call("ask", question=q) for q in "ab"]
    agent = Agent("clerk", model=Scripted(*asks, "Thanks."), tools=[ask])
    ledger = await played(UserAgents(tools={"ask": Lines("one", then=ada("two"))}), agent)
    assert results(ledger) == ["one", "two"]


async def test_those_who_play_the_user_hear_what_was_answered_without_them() -> None:
    listener = Listener("And?", "</finished>")
    agent = Agent(
        "clerk", model=Scripted(call("ask", question="Which?"), "Thanks.", "Bye."), tools=[ask]
    )
    person = SimulatedUser("Ada.", model=Scripted(then=listener))
    await played(UserAgents(loop=person, tools={"ask": "Order 7."}), agent)
    assert listener.shown[0][1:] == [
        ("assistant", "Money back."),
        ("user", 'Tool: ask\nArgs: {"question": "Which?"}'),
        ("assistant", "Order 7."),
        ("user", "Thanks."),
    ]


# Users that misbehave


@pytest.mark.parametrize(
    "answer", ["", "   \n", RuntimeError("no idea"), ModelReply(""), call("refund", order=7)]
)
async def test_a_model_that_says_nothing_fails_or_calls_tools_is_the_users_failure(
    answer: Any,
) -> None:
    end = end_of(await played(ada(then=answer)))
    assert (end.reason, end.phase, end.error_type) == ("error", "user_agent", "UserAgentFailed")


async def test_a_users_call_reaches_no_tool_of_the_agents() -> None:
    @tool
    def refund(order: int) -> str:
        """Refund an order."""
        raise AssertionError("a tool body ran in a rehearsal")

    agent = Agent("clerk", model=Scripted("Which?", "Bye."), tools=[refund])
    user = ada(call("refund", order=7), "Then not.", "</finished>")
    ledger = await played(user, agent, mocks={"refund": "ok"})
    assert said_by_user(ledger) == ["Money back."]
    assert tool_calls(ledger) == []
    end = end_of(ledger)
    assert (end.reason, end.phase, end.error_type) == ("error", "user_agent", "UserAgentFailed")
    assert "the simulated user 'user' of case 'simulated' called the tool 'refund'" in end.error


@pytest.mark.parametrize(
    "words",
    ["Which order?", "As your assistant I have refunded it.", "x" * 1_000_000, "<done 1>" * 10_000],
)
async def test_strange_words_are_words(words: str) -> None:
    ledger = await played(ada(words, "</finished>", goals=["the refund"]))
    assert said_by_user(ledger) == ["Money back.", words.strip()]


# Many at once, and again after a cut


async def test_one_person_serves_many_cases_at_once() -> None:
    user = ada("Order 7.", "<done 1>Order 7 is refunded.</done> Bye.", goals=["the refund"])
    cases = [Case(f"c{n}", f"Case {n}.", user=user) for n in range(8)]
    ledgers = await asyncio.gather(*(simulate(case, CLERK) for case in cases))
    for n, ledger in enumerate(ledgers):
        assert said_by_user(ledger) == [f"Case {n}.", "Order 7."]
        assert simulation_of(ledger).goals_achieved == ("the refund",)


def resumable() -> list[tuple[Case, Any]]:
    person = ada(
        "<done 1>nothing</done>",
        "Order 7.",
        "<done 1>Order 7 is refunded.</done> And an apology?",
        "<done 2>Sorry!</done> Bye.",
        goals=GOALS,
    )
    asks = [call("ask", question=q) for q in "ab"]
    asker = Agent("clerk", model=Scripted(*asks, "Thanks.", then="Bye."), tools=[ask])
    tools = {"ask": Lines("one", then=ada("two", name="bob"))}
    return [
        (Case("goals", "Money back.", user=person), CLERK),
        (Case("mixed", "a", user=Lines("b", then=ada("c", "</finished>"))), CLERK),
        (
            Case(
                "tools", "a", user=UserAgents(loop=Lines("b", then=ada("</finished>")), tools=tools)
            ),
            asker,
        ),
        (Case("limit", "a", user=ada(then="more", max_turns=3)), chat("1", "2", "3", "4", "5")),
    ]


@pytest.mark.parametrize("place", range(4))
async def test_a_simulated_conversation_cut_at_any_event_comes_to_the_same_end(place: int) -> None:
    case, agent = resumable()[place]
    whole = await simulate(case, agent)
    assert end_of(whole).reason in ("completed", "max_turns")
    lines = whole.dumps().splitlines(keepends=True)
    for cut in range(1, len(lines)):
        ledger = await simulate(case, agent, ledger=Ledger.loads("".join(lines[:cut])))
        assert simulation_of(ledger) == simulation_of(whole), f"cut after event {cut}"
        assert ended(ledger) is not None
        for kind in (ModelReplied, InvocationEnded):
            assert len(ledger.of(kind, voice=None)) == len(whole.of(kind, voice=None))


# Kept as a case


async def test_a_simulated_conversation_becomes_a_case_that_plays_the_same_again() -> None:
    @tool
    def refund(order: int) -> str:
        """Refund an order."""
        raise AssertionError("a tool body ran in a rehearsal")

    agent = Agent(
        "clerk", model=Scripted("Which?", call("refund", order=7), "Refunded."), tools=[refund]
    )
    user = ada("Order 7.", "<done 1>Refunded.</done> Bye.", goals=["the refund"])
    ledger = await played(user, agent, mocks={"refund": "ok"})
    case = harvest(ledger, "kept")
    again = await simulate(case, agent)
    assert messages(again) == messages(ledger)
    assert results(again) == ["ok"]
    assert {outcome.passed for outcome in (await score(again)).values()} == {True}  # pyright: ignore[reportAttributeAccessIssue]


async def test_a_person_is_shown_what_the_agent_attached():
    shown: list[bytes] = []

    def look(request: ModelRequest) -> str:
        shown.extend(one.data for message in request.messages for one in message.attachments)
        return "Nice."

    painter = Agent("painter", model=Scripted(["Here.", attach(PNG, name="drawn.png")], "Bye."))
    await played(ada(look, then="<stop>"), painter)
    assert shown == [PNG]


async def test_a_person_whose_model_takes_no_images_is_told_the_name():
    said: list[str] = []

    class Blind:
        name = "blind"

        async def respond(self, request: ModelRequest, on_delta: Any = None) -> ModelReply:
            if any(message.attachments for message in request.messages):
                raise RequestRefused("no images, please")
            said.append(request.messages[-1].text)
            return ModelReply("I see nothing.")

    asked = ModelRequest(
        "ada", (Message("user", "Here.", attachments=(attach(PNG, name="a.png"),)),)
    )
    reply = await NamingModel(Blind()).respond(asked)
    assert reply.text == "I see nothing."
    assert said == ["Here.\n[attached, but you cannot see it: a.png (image/png, 70 bytes)]"]
