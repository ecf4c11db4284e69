"""The user's side of a case: who answers, what they hear, and what becomes of their answers."""

import asyncio
import re
from dataclasses import dataclass
from typing import Any, Literal

import pytest

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
    call,
    loop,
    simulate,
    step,
    tool,
    with_state_change,
)
from greenroom.errors import BadCase
from greenroom.ledger import (
    Answered,
    StateConflicted,
    UserSaid,
    append,
    messages,
    state,
    tool_calls,
    turns,
    usage,
    user_view,
)
from greenroom.ledger.messages import Usage
from greenroom.models import ModelRequest
from rehearsals import end_of, results


@tool(yields=True)
def ask(question: str) -> str:
    """Ask the user."""
    raise AssertionError


@dataclass
class Consent:
    granted: bool
    level: int


@tool(yields=True)
def approve(amount: int) -> Consent:
    """Have the user approve."""
    raise AssertionError


def asker(*questions: str, then: str = "Thanks.") -> Agent:
    """An agent that asks one question after the other."""
    asks = [call("ask", question=q) for q in questions]
    return Agent("clerk", model=Scripted(*asks, then), tools=[ask, approve])


APPROVER = Agent("clerk", model=Scripted(call("approve", amount=7), "Thanks."), tools=[approve])
CLERK = Agent("clerk", model=Scripted("Which order?", "Sure?", "Done.", then="Bye."))


def chat(*script: str) -> Any:
    """An agent that holds the conversation in a loop of its own."""
    agent = Agent("clerk", model=Scripted(*script))
    return loop(agent, until=lambda output: output == script[-1], awaits_input=True)


async def played(agent: Any, says: str = "Money back.", **options: Any) -> Ledger:
    options.setdefault("stop", Stop(max_seconds=30, max_turns=8))
    return await simulate(Case("users", says, **options), agent)


def texts(ledger: Ledger) -> list[str]:
    return [message.text for message in messages(ledger)]


class Person:
    """A model for a user that remembers what it was shown."""

    def __init__(self, *answers: Any) -> None:
        self.shown: list[list[tuple[str, str]]] = []
        self._answers = answers

    def __call__(self, request: ModelRequest) -> Any:
        self.shown.append([(m.role, m.text) for m in request.messages])
        return self._answers[request.n]

    def as_agent(self, name: str = "person", **options: Any) -> Agent:
        return Agent(name, model=Scripted(then=self), **options)


# Who speaks


async def test_an_agent_can_be_the_user() -> None:
    user = Agent("ada", model=Scripted("Order 7.", "Yes."))
    ledger = await played(chat("Which order?", "Sure?", "Done."), user=user)
    assert texts(ledger) == [
        "Money back.",
        "Which order?",
        "Order 7.",
        "Sure?",
        "Yes.",
        "Done.",
    ]


async def test_a_function_can_be_the_user() -> None:
    def reply(ctx: Any) -> str:
        return f"You said {ctx.input}"

    ledger = await played(chat("Which order?", "Done."), user=reply)
    assert texts(ledger)[2] == "You said Which order?"


async def test_an_async_step_and_a_flow_can_be_the_user() -> None:
    @step
    async def think(ctx: Any) -> str:
        await asyncio.sleep(0)
        return ctx.input.upper()

    user = think >> Agent("ada", model=Scripted(then=lambda request: f"Hm: {request.last}"))
    ledger = await played(chat("Which order?", "Done."), user=user)
    assert texts(ledger)[2] == "Hm: WHICH ORDER?"


@pytest.mark.parametrize(
    "role, answer",
    [
        (Agent("ada", model=Scripted("From an agent.")), "From an agent."),
        (lambda: "From a function.", "From a function."),
        (Lines("From a script."), "From a script."),
        ("From a constant.", "From a constant."),
        (SimulatedUser("Ada.", model=Scripted("From a person.")), "From a person."),
    ],
)
async def test_a_yielding_tool_is_answered_by_the_one_named_for_it(role: Any, answer: str) -> None:
    ledger = await played(asker("Which?"), user=UserAgents(tools={"ask": role}))
    assert [(c.result, c.source) for c in tool_calls(ledger)] == [(answer, "user")]
    assert end_of(ledger).reason == "completed"


async def test_each_wait_has_its_own_user_agent() -> None:
    both = [call("ask", question="Why?"), call("approve", amount=7)]
    agent = Agent("clerk", model=Scripted(both, "One.", "Two."), tools=[ask, approve])
    user = UserAgents(
        loop=Lines("And then?"),
        tools={"ask": lambda: "Because.", "approve": {"granted": True, "level": 1}},
    )
    ledger = await played(agent, user=user)
    assert results(ledger) == ["Because.", {"granted": True, "level": 1}]
    assert texts(ledger) == ["Money back.", "One.", "And then?", "Two."]


async def test_a_mocked_yielding_tool_needs_no_user() -> None:
    ledger = await played(asker("Which?"), mocks={"ask": "Order 7."})
    assert [(c.result, c.source) for c in tool_calls(ledger)] == [("Order 7.", "mock")]
    assert ledger.of(Answered) == []


async def test_lines_for_a_tool_are_taken_in_turn_and_by_rank() -> None:
    two = [call("ask", question="a"), call("ask", question="b")]
    agent = Agent("clerk", model=Scripted(two, call("ask", question="c"), "Thanks."), tools=[ask])
    ledger = await played(agent, user=UserAgents(tools={"ask": Lines("one", "two", "three")}))
    assert results(ledger) == ["one", "two", "three"]


async def test_a_user_agents_own_tools_run() -> None:
    @tool
    def recall(what: str) -> str:
        """Remember."""
        return f"{what} 7"

    user = Agent("ada", model=Scripted(call("recall", what="order"), "Order 7."), tools=[recall])
    ledger = await played(chat("Which order?", "Done."), user=user)
    assert [(c.tool, c.result) for c in tool_calls(ledger, "user")] == [("recall", "order 7")]
    assert tool_calls(ledger) == []


# What they hear


async def test_the_users_side_is_one_voice_with_its_roles_flipped() -> None:
    person = Person("Order 7.", "Yes.")
    await played(chat("Which order?", "Sure?", "Done."), user=person.as_agent())
    assert person.shown == [
        [("assistant", "Money back."), ("user", "Which order?")],
        [
            ("assistant", "Money back."),
            ("user", "Which order?"),
            ("assistant", "Order 7."),
            ("user", "Sure?"),
        ],
    ]


async def test_user_agents_of_one_case_share_what_was_said() -> None:
    speaker, answerer = Person("Order 7.", "Bye."), Person("Because.")
    agent = Agent(
        "clerk",
        model=Scripted("Which?", call("ask", question="Why?"), "Done.", "Bye."),
        tools=[ask],
    )
    user = UserAgents(loop=speaker.as_agent("speaker"), tools={"ask": answerer.as_agent("ans")})
    await played(agent, user=user, stop=Stop(max_turns=4))
    question = 'Tool: ask\nArgs: {"question": "Why?"}'
    assert answerer.shown == [
        [
            ("assistant", "Money back."),
            ("user", "Which?"),
            ("assistant", "Order 7."),
            ("user", question),
        ]
    ]
    assert speaker.shown[-1] == [
        ("assistant", "Money back."),
        ("user", "Which?"),
        ("assistant", "Order 7."),
        ("user", question),
        ("assistant", "Because."),
        ("user", "Done."),
    ]


async def test_two_user_agents_of_one_name_are_refused() -> None:
    with pytest.raises(BadCase, match="two user agents are named 'ada'"):
        UserAgents(
            loop=Agent("ada", model=Scripted("a")),
            tools={"ask": Agent("ada", model=Scripted("b"))},
        )


async def test_one_user_agent_may_play_several_parts() -> None:
    ada = Agent("ada", model=Scripted("Because.", "Bye."))
    user = UserAgents(loop=ada, tools={"ask": ada})
    ledger = await played(asker("Why?"), user=user, stop=Stop(max_turns=3))
    assert results(ledger) == ["Because."]
    assert texts(ledger)[2] == "Bye."


async def test_the_agent_does_not_hear_what_the_user_agents_say_among_themselves() -> None:
    person = Person("Order 7.")
    ledger = await played(chat("Which order?", "Done."), user=person.as_agent())
    assert {event.voice for event in user_view(ledger)} == {"user"}
    assert texts(ledger) == ["Money back.", "Which order?", "Order 7.", "Done."]


async def test_what_the_users_models_cost_is_counted_apart() -> None:
    user = Agent("ada", model=Scripted("Order 7.", usage=Usage(100, 50)))
    ledger = await played(chat("Which order?", "Done."), user=user)
    assert (usage(ledger), usage(ledger, "user")) == (Usage(0, 0), Usage(100, 50))


async def test_the_users_state_is_its_own() -> None:
    def remember(ctx: Any) -> str:
        ctx.state.session["asked"] = ctx.state.session.get("asked", 0) + 1
        return f"time {ctx.state.session['asked']}"

    ledger = await played(
        asker("a", "b"), user=UserAgents(tools={"ask": remember}), state={"session": {"n": 1}}
    )
    assert results(ledger) == ["time 1", "time 2"]
    assert state(ledger) == {"session": {"n": 1}}
    assert state(ledger, "user") == {"session": {"asked": 2}}


# At once


async def test_several_waits_are_answered_at_the_same_time() -> None:
    meeting = asyncio.Barrier(2)

    async def meet(ctx: Any) -> Any:
        await meeting.wait()
        return "met" if "ask" in ctx.input else {"granted": True, "level": 1}

    both = [call("ask", question="a"), call("approve", amount=1)]
    agent = Agent("clerk", model=Scripted(both, "Thanks."), tools=[ask, approve])
    ledger = await played(agent, user=UserAgents(tools={"ask": meet, "approve": meet}))
    assert end_of(ledger).reason == "completed"
    assert results(ledger) == ["met", {"granted": True, "level": 1}]
    assert len(ledger.of(Answered)) == 1


async def test_those_who_answer_at_once_do_not_hear_each_other() -> None:
    shown: list[list[str]] = []

    def reply(request: ModelRequest) -> str:
        shown.append([m.text for m in request.messages if m.role == "assistant"])
        return "answer"

    two = [call("ask", question="a"), call("ask", question="b")]
    agent = Agent("clerk", model=Scripted(two, "Thanks."), tools=[ask])
    ada = Agent("ada", model=Scripted(then=reply))
    await played(agent, user=UserAgents(tools={"ask": ada}))
    assert shown == [["Money back."], ["Money back."]]


async def test_one_who_fails_stops_the_others() -> None:
    cancelled = asyncio.Event()

    async def hangs() -> str:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        return ""

    async def fails() -> str:
        await asyncio.sleep(0)
        raise RuntimeError("no idea")

    both = [call("ask", question="a"), call("approve", amount=1)]
    agent = Agent("clerk", model=Scripted(both, "Thanks."), tools=[ask, approve])
    end = end_of(await played(agent, user=UserAgents(tools={"ask": hangs, "approve": fails})))
    assert (end.reason, end.phase) == ("error", "user_agent")
    assert "user agent for 'approve' failed" in end.error
    assert cancelled.is_set()


# The bridge


async def test_a_bridge_chooses_what_the_user_hears() -> None:
    def prompt(main: Any, wait: Any) -> str:
        return f"{wait.type} {wait.tool}{wait.args} after {len(main.messages)} messages"

    person = Person("Because.")
    await played(
        asker("Why?"),
        user=UserAgents(tools={"ask": person.as_agent()}),
        bridge=Bridge(format_prompt=prompt),
    )
    assert person.shown[0][-1] == ("user", "tool ask{'question': 'Why?'} after 1 messages")


async def test_a_bridge_may_be_async_and_sees_both_sides() -> None:
    async def prompt(main: Any, wait: Any) -> str:
        await asyncio.sleep(0)
        return f"{main.state['session']['order']}: {main.last_said}"

    async def response(output: Any, user: Any, wait: Any) -> str:
        await asyncio.sleep(0)
        return f"{output} ({user.last_said}, {user.voice}, {len(user.tool_calls)})"

    person = Person("Yes")
    ledger = await played(
        chat("Sure?", "Done."),
        user=person.as_agent(),
        bridge=Bridge(format_prompt=prompt, format_response=response),
        state={"session": {"order": 7}},
    )
    assert person.shown[0][-1] == ("user", "7: Sure?")
    assert texts(ledger)[2] == "Yes (Yes, user, 0)"


async def test_a_wait_tells_a_bridge_what_it_is_about() -> None:
    seen: list[Any] = []

    def prompt(main: Any, wait: Any) -> str:
        seen.append((wait.type, wait.tool, wait.args, wait.awaiting_input, bool(wait.call_id)))
        return "?"

    agent = chat("Sure?", "Done.")
    await played(agent, user=lambda: "Yes.", bridge=Bridge(format_prompt=prompt))
    user = UserAgents(tools={"ask": lambda: "Yes."})
    await played(asker("Why?"), user=user, bridge=Bridge(format_prompt=prompt))
    assert seen == [
        ("message", "", None, True, False),
        ("tool", "ask", {"question": "Why?"}, False, True),
    ]


async def test_a_bridge_is_asked_once_for_each_wait() -> None:
    asked: list[str] = []

    def prompt(main: Any, wait: Any) -> str:
        asked.append(wait.tool or "message")
        return "?"

    agent = Agent("clerk", model=Scripted(call("ask", question="a"), "Hm?", "Bye."), tools=[ask])
    user = UserAgents(loop=lambda: "Yes.", tools={"ask": lambda: "Yes."})
    bridge = Bridge(format_prompt=prompt)
    await played(agent, user=user, bridge=bridge, stop=Stop(max_turns=3))
    assert asked == ["ask", "message"]


async def test_a_bridge_shapes_lines_and_constants_too() -> None:
    bridge = Bridge(format_response=lambda output, user, wait: f"<{output}>")
    ledger = await played(chat("Sure?", "Done."), user=Lines("Yes"), bridge=bridge)
    assert texts(ledger)[2] == "<Yes>"


async def test_a_bridge_may_ask_for_a_change_of_state() -> None:
    def response(output: Any, user: Any, wait: Any) -> Any:
        return with_state_change(output, {"patient": {"told": [output]}})

    bridge = Bridge(format_response=response)
    ledger = await played(
        asker("Why?"), user=UserAgents(tools={"ask": Lines("Because.")}), bridge=bridge
    )
    assert results(ledger) == ["Because."]
    assert state(ledger) == {"patient": {"told": ["Because."]}}


@pytest.mark.parametrize("part", ["format_prompt", "format_response"])
async def test_a_bridge_that_breaks_is_the_users_failure(part: str) -> None:
    def broken(*_: Any) -> str:
        raise LookupError("lost")

    bridge = Bridge(**{part: broken})
    ledger = await played(chat("Sure?", "Done."), user=lambda: "Yes.", bridge=bridge)
    end = end_of(ledger)
    assert (end.reason, end.phase) == ("error", "user_agent")
    assert f"the bridge's {part} raised LookupError: lost" in end.error


async def test_a_bridge_that_answers_what_is_no_json_is_the_users_failure() -> None:
    bridge = Bridge(format_response=lambda output, user, wait: {1, 2})
    user = UserAgents(tools={"ask": "x"})
    end = end_of(await played(asker("Why?"), user=user, bridge=bridge))
    assert (end.reason, end.phase) == ("error", "user_agent")


@pytest.mark.parametrize("given", [None, "", 5])
async def test_a_bridge_that_tells_the_user_nothing_is_named(given: Any) -> None:
    bridge = Bridge(format_prompt=lambda main, wait: given)
    end = end_of(await played(chat("Sure?", "Done."), user=lambda: "Yes.", bridge=bridge))
    assert (end.reason, end.phase) == ("error", "user_agent")
    assert f"the bridge's format_prompt returned {given!r}; return the text" in end.error


@pytest.mark.parametrize(
    "agent, user",
    [(chat("Sure?", "Done."), Lines("Yes")), (asker("Why?"), UserAgents(tools={"ask": "Yes"}))],
)
async def test_a_bridge_that_drops_the_users_answer_is_named(agent: Any, user: Any) -> None:
    bridge = Bridge(format_response=lambda output, user, wait: None)
    end = end_of(await played(agent, user=user, bridge=bridge))
    assert (end.reason, end.phase) == ("error", "user_agent")
    assert "the bridge's format_response returned None for 'Yes'" in end.error


def test_a_bridge_is_made_of_functions() -> None:
    wrong: Any = "Tell me."
    with pytest.raises(BadCase, match=r"Bridge\(format_prompt='Tell me.'\) must be a function"):
        Bridge(format_prompt=wrong)


@pytest.mark.parametrize(
    "answers, words",
    [
        ({"askk": "Yes"}, r"answers tool 'askk', but the agent offers \['approve', 'ask'\]"),
        ({"askk": lambda: "Yes"}, r"answers tool 'askk', but the agent offers"),
        ({"elsewhere": Lines("Yes")}, r"answers tool 'elsewhere', but the agent offers"),
    ],
)
async def test_a_tool_that_nobody_has_cannot_be_answered(answers: Any, words: str) -> None:
    with pytest.raises(BadCase, match=words):
        await played(asker("Why?"), user=UserAgents(tools={"ask": "Yes", **answers}))


async def test_a_tool_that_only_code_could_bring_is_judged_when_the_trial_is_over() -> None:
    user = UserAgents(tools={"ask": lambda: "Yes", "elsewhere": "Yes"})
    end = end_of(await played(asker("Why?"), user=user))
    assert end.reason == "error"
    assert "answers tool 'elsewhere', but the trial showed" in end.error


async def test_only_tools_are_listed_when_one_is_unknown_and_not_waits_for_messages() -> None:
    flow = step(lambda: "Hello.", name="greets") >> chat("Which order?", "Bye.")
    user = UserAgents(loop=Lines("Seven."), tools={"elsewhere": "Yes"})
    end = end_of(await played(flow, user=user, mocks={}))
    assert "but the trial showed []" in end.error


async def test_a_tool_that_never_waits_cannot_be_answered() -> None:
    @tool
    def look() -> str:
        """Look."""
        raise AssertionError

    agent = Agent("clerk", model=Scripted("Hi."), tools=[look])
    with pytest.raises(BadCase, match=r"'look', but it never waits for an answer.*yields=True"):
        await played(agent, user=UserAgents(tools={"look": "Yes"}))


# Changes of state


@tool
def reveal(what: str) -> Any:
    """Tell something that changes the agent's state."""
    return with_state_change(
        {"told": what}, {"patient": {"told": append(what)}, "session": {"facts": {what: True}}}
    )


async def test_a_users_tool_may_ask_for_a_change_of_state_which_is_made_once() -> None:
    ada = Agent(
        "ada",
        model=Scripted(
            call("reveal", what="fever"), "Fever.", call("reveal", what="cough"), "Cough."
        ),
        tools=[reveal],
    )
    ledger = await played(asker("What?", "More?"), user=UserAgents(tools={"ask": ada}))
    assert state(ledger) == {
        "patient": {"told": ["fever", "cough"]},
        "session": {"facts": {"fever": True, "cough": True}},
    }
    assert [c.result for c in tool_calls(ledger, "user")] == [{"told": "fever"}, {"told": "cough"}]


async def test_a_users_step_may_ask_for_a_change_of_state() -> None:
    user = UserAgents(tools={"ask": lambda: with_state_change("Yes.", {"user": {"sure": True}})})
    ledger = await played(asker("Sure?"), user=user)
    assert (results(ledger), state(ledger)) == (["Yes."], {"user": {"sure": True}})


async def test_a_message_may_bring_a_change_of_state() -> None:
    user = step(lambda: with_state_change("Order 7.", {"session": {"order": 7}}), name="says")
    for agent in (chat("Which?", "Done."), CLERK):
        ledger = await played(agent, user=user, stop=Stop(max_turns=2))
        assert state(ledger) == {"session": {"order": 7}}


async def test_all_changes_of_a_round_arrive_with_its_answers_as_one_event() -> None:
    def one() -> Any:
        return with_state_change("one", {"session": {"a": {"x": 1}}})

    def two() -> Any:
        return with_state_change({"granted": True, "level": 1}, {"session": {"a": {"y": 2}}})

    both = [call("ask", question="a"), call("approve", amount=1)]
    agent = Agent("clerk", model=Scripted(both, "Thanks."), tools=[ask, approve])
    ledger = await played(agent, user=UserAgents(tools={"ask": one, "approve": two}))
    (round_,) = ledger.of(Answered)
    assert [answer.tool for answer in round_.answers] == ["ask", "approve"]
    assert len(round_.changes) == 2
    assert state(ledger) == {"session": {"a": {"x": 1, "y": 2}}}


async def test_changes_are_not_made_if_one_of_the_round_fails() -> None:
    def one() -> Any:
        return with_state_change("one", {"session": {"a": 1}})

    def two() -> Any:
        raise RuntimeError("no idea")

    both = [call("ask", question="a"), call("approve", amount=1)]
    agent = Agent("clerk", model=Scripted(both, "Thanks."), tools=[ask, approve])
    ledger = await played(agent, user=UserAgents(tools={"ask": one, "approve": two}))
    assert state(ledger) == {}


def disagreeing(conflicts: Literal["last", "error"]) -> UserAgents:
    def one() -> Any:
        return with_state_change("one", {"session": {"n": 1}})

    def two() -> Any:
        return with_state_change({"granted": True, "level": 1}, {"session": {"n": 2}})

    return UserAgents(tools={"ask": one, "approve": two}, conflicts=conflicts)


BOTH = Agent(
    "clerk",
    model=Scripted([call("ask", question="a"), call("approve", amount=1)], "Thanks."),
    tools=[ask, approve],
)


async def test_answers_that_disagree_are_a_conflict_and_the_last_call_wins() -> None:
    ledger = await played(BOTH, user=disagreeing("last"))
    (conflict,) = ledger.of(StateConflicted)
    assert (conflict.scope, conflict.key, conflict.values) == ("session", "n", [1, 2])
    assert state(ledger) == {"session": {"n": 2}}


async def test_answers_that_disagree_can_be_an_error() -> None:
    ledger = await played(BOTH, user=disagreeing("error"))
    end = end_of(ledger)
    assert (end.reason, end.phase) == ("error", "user_agent")
    assert "disagree about the state at session.n" in end.error
    assert state(ledger) == {}


# Typed answers


@pytest.mark.parametrize(
    "answer", [{"granted": True, "level": 1}, '{"granted": true, "level": 1}', Consent(True, 1)]
)
async def test_an_answer_that_fits_is_taken_as_data(answer: Any) -> None:
    ledger = await played(APPROVER, user=UserAgents(tools={"approve": answer}))
    assert results(ledger) == [{"granted": True, "level": 1}]


@pytest.mark.parametrize(
    "answer",
    ["yes", {"granted": "yes", "level": 1}, {"granted": True}, {"granted": True, "level": "1"}],
)
async def test_an_answer_that_does_not_fit_is_the_users_failure(answer: Any) -> None:
    end = end_of(await played(APPROVER, user=UserAgents(tools={"approve": answer})))
    assert (end.reason, end.phase) == ("error", "user_agent")
    assert "to tool 'approve' does not fit" in end.error


async def test_an_answer_may_be_coerced() -> None:
    user = UserAgents(tools={"approve": {"granted": "yes", "level": "1"}}, validate="coerce")
    assert results(await played(APPROVER, user=user)) == [{"granted": True, "level": 1}]


async def test_an_answer_that_cannot_be_coerced_is_the_users_failure() -> None:
    user = UserAgents(tools={"approve": {"granted": "perhaps"}}, validate="coerce")
    assert end_of(await played(APPROVER, user=user)).phase == "user_agent"


async def test_answers_may_go_unchecked() -> None:
    user = UserAgents(tools={"approve": "whatever"}, validate="off")
    assert results(await played(APPROVER, user=user)) == ["whatever"]


async def test_a_user_agent_is_told_once_why_its_answer_does_not_fit() -> None:
    person = Person("Sure!", {"granted": True, "level": 2})
    ledger = await played(APPROVER, user=UserAgents(tools={"approve": person.as_agent()}))
    assert results(ledger) == [{"granted": True, "level": 2}]
    assert "'Sure!' does not fit" in person.shown[1][-1][1]
    assert person.shown[1][-2] == ("assistant", "Sure!")


async def test_a_user_agent_whose_second_answer_does_not_fit_either_has_failed() -> None:
    person = Person("Sure!", "Really!", {"granted": True, "level": 2})
    end = end_of(await played(APPROVER, user=UserAgents(tools={"approve": person.as_agent()})))
    assert (end.reason, end.phase) == ("error", "user_agent")
    assert "'Really!'" in end.error
    assert len(person.shown) == 2


async def test_a_change_of_state_asked_for_by_an_answer_that_did_not_fit_is_not_made() -> None:
    answers = iter(
        [
            with_state_change("Sure!", {"session": {"first": True}}),
            with_state_change({"granted": True, "level": 1}, {"session": {"second": True}}),
        ]
    )
    user = UserAgents(tools={"approve": lambda: next(answers)})
    assert state(await played(APPROVER, user=user)) == {"session": {"second": True}}


# What goes wrong


async def test_a_tool_nobody_answers_is_an_error_that_says_what_to_add() -> None:
    for user in (None, Lines("x"), UserAgents(tools={"approve": "x"})):
        end = end_of(await played(asker("Which order?"), user=user))
        assert (end.reason, end.phase) == ("error", "user_agent")
        assert "tool 'ask' of case 'users' waits for the user's answer" in end.error
        assert "user=UserAgents(tools={'ask': Agent(...)})" in end.error
        assert "called with: {'question': 'Which order?'}" in end.error


async def test_a_loop_nobody_answers_is_an_error_that_says_what_to_add() -> None:
    end = end_of(await played(chat("Which order?", "Done.")))
    assert (end.reason, end.phase) == ("error", "user_agent")
    assert "waits for the user's next message after 'Which order?'" in end.error
    assert "user=Lines(...)" in end.error


@pytest.mark.parametrize(
    "user",
    [
        Agent("ada", model=Scripted()),
        Agent("ada", model=Scripted(RuntimeError("no idea"))),
        Agent("ada", model=Scripted("")),
        lambda: 1 / 0,
        lambda: {1, 2},
        step(lambda: 5, name="five"),
        step(lambda: "  ", name="blank"),
    ],
)
@pytest.mark.parametrize("agent", [CLERK, chat("Which order?", "Done.")])
async def test_a_user_that_fails_or_talks_nonsense_is_the_users_failure(
    user: Any, agent: Any
) -> None:
    end = end_of(await played(agent, user=user))
    assert (end.reason, end.phase, end.error_type) == ("error", "user_agent", "UserAgentFailed")
    assert "user" in end.error


async def test_a_user_agent_that_waits_for_somebody_itself_has_failed() -> None:
    end = end_of(await played(chat("Which?", "Done."), user=asker("Who?")))
    assert (end.reason, end.phase) == ("error", "user_agent")
    assert "waits for an answer itself" in end.error


@pytest.mark.parametrize("agent", [CLERK, chat("Which order?", "Done."), asker("Which?")])
async def test_a_user_that_hangs_is_the_users_failure(agent: Any) -> None:
    async def hangs() -> str:
        await asyncio.Event().wait()
        return ""

    user = UserAgents(loop=hangs, tools={"ask": hangs})
    end = end_of(await played(agent, user=user, stop=Stop(max_seconds=1)))
    assert (end.reason, end.phase) == ("error", "user_agent")
    who = "(the simulated user|the user agent for 'ask')"
    assert re.fullmatch(rf"{who} did not answer within 1 s\.", end.error)


async def test_a_bridge_that_hangs_is_the_users_failure() -> None:
    async def hangs(main: Any, wait: Any) -> str:
        await asyncio.Event().wait()
        return ""

    ledger = await played(
        asker("Which?"),
        user=UserAgents(tools={"ask": lambda: "x"}),
        bridge=Bridge(format_prompt=hangs),
        stop=Stop(max_seconds=1),
    )
    assert end_of(ledger).phase == "user_agent"


@pytest.mark.parametrize("user", [object(), ("Hello", "Bye"), b"Hello"])
async def test_what_cannot_play_a_user_is_refused(user: Any) -> None:
    with pytest.raises(BadCase, match=r"case 'users' has the user .*; use Lines\(\.\.\.\)"):
        await played(CLERK, user=user)


# Lines and simulated users


async def test_lines_used_up_after_a_finished_turn_end_the_conversation() -> None:
    ledger = await played(CLERK, user=Lines("Order 7.", "Yes."))
    assert (end_of(ledger).reason, turns(ledger)) == ("completed", 3)
    assert texts(ledger)[-1] == "Done."


async def test_lines_used_up_inside_a_waiting_loop_are_the_users_failure() -> None:
    end = end_of(await played(chat("Which?", "Sure?", "Done."), user=Lines("Order 7.")))
    assert (end.reason, end.phase) == ("error", "user_agent")
    assert "Lines('Order 7.') is used up" in end.error


async def test_lines_used_up_while_a_tool_waits_are_the_users_failure() -> None:
    user = UserAgents(tools={"ask": Lines("one")})
    end = end_of(await played(asker("a", "b"), user=user))
    assert (end.reason, end.phase) == ("error", "user_agent")
    assert "answer to tool 'ask', but Lines('one') is used up" in end.error


async def test_lines_can_go_on_with_the_same_words() -> None:
    user = Lines("Order 7.", then="I don't know.")
    ledger = await played(chat("Which?", "Sure?", "Really?", "Done."), user=user)
    said = [answer.value for round_ in ledger.of(Answered) for answer in round_.answers]
    assert said == ["Order 7.", "I don't know.", "I don't know."]


async def test_lines_that_go_on_are_stopped_by_the_limit() -> None:
    ledger = await played(CLERK, user=Lines(then="More."), stop=Stop(max_turns=4))
    assert (end_of(ledger).reason, turns(ledger)) == ("max_turns", 4)


def test_a_line_that_says_nothing_is_refused() -> None:
    with pytest.raises(BadCase, match="a line that is None"):
        Lines("Hi", None)


def test_lines_read_like_their_source() -> None:
    assert repr(Lines("Hi", 7, then="Bye")) == "Lines('Hi', 7, then='Bye')"


async def test_a_simulated_user_talks_until_they_say_goodbye() -> None:
    ada = SimulatedUser(
        "You are Ada.", goal="Money back.", model=Scripted("Order 7.", "</finished>", "never said")
    )
    ledger = await played(CLERK, user=ada)
    assert end_of(ledger).reason == "completed"
    assert texts(ledger) == ["Money back.", "Which order?", "Order 7.", "Sure?"]


async def test_a_simulated_user_may_leave_a_waiting_agent() -> None:
    ada = SimulatedUser("Ada.", model=Scripted("Bye! </finished>"))
    ledger = await played(chat("Which order?", "Done."), user=ada)
    assert end_of(ledger).reason == "completed"
    assert texts(ledger) == ["Money back.", "Which order?"]


async def test_a_simulated_user_knows_who_they_are_what_they_want_and_what_they_said() -> None:
    person = Person("Order 7.", "STOP")
    ada = SimulatedUser(
        "You are Ada.", goal="Get a refund.", model=Scripted(then=person), stop_signal="STOP"
    )
    await played(CLERK, user=ada)
    (role, told), *rest = person.shown[-1]
    assert role == "system"
    for part in ("You are Ada.", "Your goal: Get a refund.", "answer with STOP"):
        assert part in told
    assert rest == [
        ("assistant", "Money back."),
        ("user", "Which order?"),
        ("assistant", "Order 7."),
        ("user", "Sure?"),
    ]


# Who begins, and how turns go on


async def test_without_a_message_the_agent_speaks_first() -> None:
    agent = Agent("clerk", model=Scripted("Hello! Which order?", "Done."))
    ledger = await played(agent, "", user=Lines("Order 7."))
    assert [(m.role, m.text) for m in messages(ledger)] == [
        ("assistant", "Hello! Which order?"),
        ("user", "Order 7."),
        ("assistant", "Done."),
    ]
    assert turns(ledger) == 1


async def test_a_blank_first_turn_lets_the_agent_speak_first() -> None:
    case = Case("open", turns=[Turn(""), Turn("Order 7.")])
    agent = Agent("clerk", model=Scripted("Hello!", "Done."))
    assert texts(await simulate(case, agent)) == ["Hello!", "Order 7.", "Done."]


async def test_scripted_turns_come_before_the_user() -> None:
    agent = Agent("clerk", model=Scripted("1", "2", "3", "4"))
    case = Case("both", turns=[Turn("a"), Turn("b")], user=Lines("c", "d"))
    ledger = await simulate(case, agent)
    assert [event.text for event in ledger.of(UserSaid)] == ["a", "b", "c", "d"]


async def test_scripted_turns_answer_a_waiting_loop() -> None:
    case = Case("loop", turns=[Turn("a"), Turn("b")], user=Lines("c"))
    ledger = await simulate(case, chat("1", "2", "Done."))
    assert texts(ledger) == ["a", "1", "b", "2", "c", "Done."]


async def test_a_tools_answer_takes_no_scripted_turn() -> None:
    asks = call("ask", question="?")
    agent = Agent("clerk", model=Scripted(asks, "One.", asks, "Two."), tools=[ask])
    case = Case("mixed", turns=[Turn("a"), Turn("b")], user=UserAgents(tools={"ask": "yes"}))
    ledger = await simulate(case, agent)
    assert texts(ledger) == ["a", "One.", "b", "Two."]
    assert turns(ledger) == 4


async def test_a_user_who_has_nothing_more_to_say_ends_the_conversation() -> None:
    ledger = await played(CLERK, user=lambda: None)
    assert end_of(ledger).reason == "completed"
    assert texts(ledger) == ["Money back.", "Which order?"]


@pytest.mark.parametrize(
    "options, words",
    [
        ({"validate": "srict"}, r"validate='srict' is not one of .* Did you mean 'strict'\?"),
        ({"conflicts": "eror"}, r"conflicts='eror' is not one of .* Did you mean 'error'\?"),
        ({"tools": ["ask"]}, r"tools=\['ask'\]\) must be a mapping"),
    ],
)
def test_a_user_with_an_option_nobody_knows_is_refused_at_once(options: Any, words: str) -> None:
    with pytest.raises(BadCase, match=words):
        UserAgents(**options)
