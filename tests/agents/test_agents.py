"""An agent asks its model until there is an answer, within what it was allowed."""

import asyncio
import json
import re
from copy import deepcopy
from datetime import date
from typing import Any, Literal, cast

import pytest
from pydantic import BaseModel

from greenroom import Agent, Case, Ledger, Scripted, Stop, Turn, call, simulate, step, tool
from greenroom.agents import Flow
from greenroom.errors import BadAgent
from greenroom.ledger import (
    Corrected,
    InvocationEnded,
    Message,
    ModelCalled,
    ModelFailed,
    NodeEnded,
    NodeFailed,
    RunEnded,
    cost,
    models,
    response,
    state,
    tool_calls,
    usage,
)
from greenroom.models import ModelReply, ModelRequest
from rehearsals import end_of, results


class Triage(BaseModel):
    level: Literal["low", "high"]
    minutes: int


GOOD = {"level": "high", "minutes": 5}


async def asked(flow: Flow, **options: Any) -> Ledger:
    return await simulate(Case("asked", "My chest hurts.", **options), flow)


def outputs(ledger: Ledger) -> list[Any]:
    return [event.output for event in ledger.of(InvocationEnded)]


async def test_an_agents_text_is_its_answer() -> None:
    ledger = await asked(Agent("a", model=Scripted("Lie down.")))
    assert (response(ledger), outputs(ledger)) == ("Lie down.", ["Lie down."])


async def test_an_answer_that_fits_the_output_type_becomes_data() -> None:
    ledger = await asked(Agent("a", model=Scripted(GOOD), output=Triage))
    assert outputs(ledger) == [GOOD]
    assert json.loads(response(ledger) or "") == GOOD


async def test_a_model_is_told_what_its_answer_must_look_like() -> None:
    seen: list[ModelRequest] = []

    def answer(request: ModelRequest) -> Any:
        seen.append(request)
        return GOOD

    await asked(Agent("a", model=Scripted(answer), output=Triage, instructions="Triage."))
    assert seen[0].instructions == "Triage."
    assert (seen[0].output_schema or {})["required"] == ["level", "minutes"]


async def test_the_form_of_an_answer_is_worked_out_once_for_all_questions() -> None:
    worked_out: list[str] = []

    class Level(BaseModel):
        level: str

        @classmethod
        def __get_pydantic_json_schema__(cls, core: Any, handler: Any) -> Any:
            worked_out.append(cls.__name__)
            return handler(core)

    agent = Agent("a", model=Scripted({"level": 1}, {"level": "high"}), output=Level)
    await asked(agent)
    await asked(agent)
    assert worked_out == ["Level"]


async def test_a_model_that_changes_a_schema_changes_it_for_no_other_question() -> None:
    @tool
    def book(day: date) -> str:
        """Book."""
        raise AssertionError(day)

    seen: list[tuple[Any, Any]] = []

    def answer(request: ModelRequest) -> Any:
        schemas: tuple[Any, Any] = request.output_schema, request.tools[0].parameters
        seen.append(deepcopy(schemas))
        for schema in schemas:
            schema["properties"].clear()
        return GOOD if len(seen) == 2 else {"level": "huge"}

    await asked(Agent("a", model=Scripted(then=answer), output=Triage, tools=[book]))
    first, second = seen
    assert first == second
    assert all(schema["properties"] for schema in first)


async def test_a_wrong_answer_is_told_why_and_asked_again() -> None:
    seen: list[ModelRequest] = []

    def answer(request: ModelRequest) -> Any:
        seen.append(request)
        return GOOD

    ledger = await asked(Agent("a", model=Scripted({"level": "huge"}, answer), output=Triage))
    (correction,) = ledger.of(Corrected)
    assert "minutes" in correction.text
    assert [m.role for m in seen[0].messages] == ["user", "assistant", "user"]
    assert seen[0].messages[-1].text == correction.text
    assert outputs(ledger) == [GOOD]


async def test_an_answer_may_be_corrected_twice() -> None:
    ledger = await asked(Agent("a", model=Scripted("high", '{"level"', GOOD), output=Triage))
    assert outputs(ledger) == [GOOD]


async def test_an_answer_that_is_wrong_three_times_fails_the_agent() -> None:
    ledger = await asked(Agent("a", model=Scripted("no", "no", "no", GOOD), output=Triage))
    end = end_of(ledger)
    assert (end.reason, end.phase, end.error_type) == ("error", "agent", "AgentFailed")
    assert "did not answer in its output schema after being corrected 2 times" in end.error
    assert len(ledger.of(ModelCalled)) == 3


@pytest.mark.parametrize("text", ["", "   \n", "\u200b", "\x00", "\ufeff \u00ad"])
async def test_an_empty_answer_fails_the_agent(text: str) -> None:
    end = end_of(await asked(Agent("a", model=Scripted(text))))
    assert (end.reason, end.phase) == ("error", "agent")
    assert "answered with nothing" in end.error


async def test_a_script_that_has_run_out_fails_the_agent_and_says_what_it_was_asked() -> None:
    end = end_of(await asked(Agent("a", model=Scripted())))
    assert (end.reason, end.phase, end.error_type) == ("error", "agent", "ScriptExhausted")
    assert "asked for number 1 after 'My chest hurts.'" in end.error


@tool
def look(key: str) -> str:
    """Look."""
    raise AssertionError


LOOK = call("look", key="a")


async def test_an_agent_that_goes_round_in_circles_is_stopped() -> None:
    agent = Agent("a", model=Scripted(then=LOOK), tools=[look], max_steps=3)
    ledger = await asked(agent, mocks={"look": "again"})
    end = end_of(ledger)
    assert (end.reason, end.phase, end.error_type) == ("error", "agent", "LoopLimit")
    assert "agent 'a' asked its model 3 times" in end.error
    assert len(ledger.of(ModelCalled)) == 3


async def test_an_agent_may_use_up_all_its_steps() -> None:
    agent = Agent("a", model=Scripted(LOOK, LOOK, "Found."), tools=[look], max_steps=3)
    assert response(await asked(agent, mocks={"look": "x"})) == "Found."


async def test_steps_are_counted_anew_in_every_turn() -> None:
    agent = Agent("a", model=Scripted(LOOK, "One.", LOOK, "Two."), tools=[look], max_steps=2)
    case = Case("twice", turns=[Turn("Look."), Turn("Again.")], mocks={"look": "x"})
    assert response(await simulate(case, agent)) == "Two."


async def test_tool_results_reach_the_model_in_the_order_of_its_calls() -> None:
    seen: list[ModelRequest] = []

    def answer(request: ModelRequest) -> Any:
        seen.append(request)
        return "Done."

    async def unequal(key: str) -> str:
        await asyncio.sleep(0.02 if key == "slow" else 0)
        return key

    both = ["Looking.", call("look", key="slow"), call("look", key="quick"), call("nowhere")]
    await asked(Agent("a", model=Scripted(both, answer), tools=[look]), mocks={"look": unequal})
    assert [(m.role, m.tool, m.text) for m in seen[0].messages[2:]] == [
        ("tool", "look", "slow"),
        ("tool", "look", "quick"),
        ("tool", "nowhere", "Error: ValueError: there is no tool 'nowhere'; the tools are: look"),
    ]
    assert seen[0].messages[1].text == "Looking."


async def test_an_answer_can_be_written_into_the_state() -> None:
    agent = Agent("a", model=Scripted(GOOD), output=Triage, writes="triage")
    assert state(await asked(agent)) == {"session": {"triage": GOOD}}


@pytest.mark.parametrize("words", ["boom", ""])
async def test_a_model_that_fails_is_told_the_same_after_a_cut(words: str) -> None:
    def breaks(_: object) -> str:
        raise ValueError(words)

    agent, case = Agent("desk", model=Scripted(breaks)), Case("a", says="Hi")
    whole = await simulate(case, agent)
    failed = next(event.seq for event in whole.of(ModelFailed))
    again = await simulate(case, agent, ledger=Ledger(whole[: failed + 1]))
    told = [ledger.of(RunEnded)[0].error for ledger in (whole, again)]
    shown = f"ValueError: {words}" if words else "ValueError"
    assert told == [f"'desk' failed at @1/desk: {shown}"] * 2


async def test_a_failing_step_is_tried_again_as_often_as_it_may() -> None:
    tries: list[int] = []

    def shaky(state: Any) -> str:
        tries.append(1)
        state.session[f"try{len(tries)}"] = True
        if len(tries) < 3:
            raise ConnectionError(f"failure {len(tries)}")
        return "ok"

    ledger = await asked(step(shaky, retries=2))
    failures = [(e.attempt, *e.error.split(" (", 1)) for e in ledger.of(NodeFailed)]
    assert [(attempt, words) for attempt, words, _ in failures] == [
        (1, "failure 1"),
        (2, "failure 2"),
    ]
    assert all(re.fullmatch(r".*test_agents\.py:\d+\)", place) for _, _, place in failures)
    assert response(ledger) == "ok"
    assert state(ledger) == {"session": {"try3": True}}


async def test_a_step_that_fails_once_more_than_it_may_fails_the_agent() -> None:
    def broken() -> str:
        raise ConnectionError("down")

    ledger = await asked(step(broken, retries=1))
    end = end_of(ledger)
    assert (end.reason, end.phase, end.error_type) == ("error", "agent", "AgentFailed")
    assert "'broken' failed" in end.error
    assert "ConnectionError: down" in end.error
    assert len(ledger.of(NodeFailed)) == 2


async def test_an_agent_whose_model_fails_is_tried_again_from_its_input() -> None:
    seen: list[ModelRequest] = []

    def answer(request: ModelRequest) -> Any:
        seen.append(request)
        return "Found."

    model = Scripted(LOOK, TimeoutError("slow model"), answer)
    agent = Agent("a", model=model, tools=[look], retries=1)
    ledger = await asked(agent, mocks={"look": "x"})
    assert response(ledger) == "Found."
    assert seen[0].messages == (Message("user", "My chest hurts."),)
    assert [event.error for event in ledger.of(ModelFailed)] == ["slow model"]
    assert len(tool_calls(ledger)) == 1


async def test_an_agent_without_retries_fails_with_its_model() -> None:
    ledger = await asked(Agent("a", model=Scripted(TimeoutError("slow model"), "Hi.")))
    end = end_of(ledger)
    assert (end.reason, end.phase) == ("error", "agent")
    assert "TimeoutError: slow model" in end.error


async def test_a_script_that_has_run_out_is_not_tried_again() -> None:
    ledger = await asked(Agent("a", model=Scripted(), retries=5))
    assert len(ledger.of(ModelCalled)) == 1


class Parrot:
    """A model of one's own: anything with a name and `respond`."""

    name = "parrot"

    async def respond(self, request: ModelRequest, on_delta: Any = None) -> ModelReply:
        return ModelReply(f"You said: {request.last}", model="parrot-2")


async def test_any_object_that_responds_is_a_model() -> None:
    ledger = await asked(Agent("a", model=Parrot()))
    assert response(ledger) == "You said: My chest hurts."
    assert models(ledger) == {"parrot-2": 1}
    assert (usage(ledger), cost(ledger)) == (None, None)


class Mute:
    """A model of one's own that breaks its promise of a text."""

    name = "mute"

    async def respond(self, request: ModelRequest, on_delta: Any = None) -> ModelReply:
        nothing: Any = None
        return ModelReply(nothing)


async def test_a_model_that_answers_with_none_has_answered_with_nothing() -> None:
    ledger = await asked(Agent("a", model=Mute()))
    end = end_of(ledger)
    assert (end.reason, end.phase) == ("error", "agent")
    assert "answered with nothing" in end.error
    assert Ledger.loads(ledger.dumps()) == ledger


async def test_a_step_sees_its_input_and_what_it_returns_goes_on() -> None:
    def upper(input: str) -> str:
        return input.upper()

    async def exclaim(ctx: Any) -> Any:
        return {"said": f"{ctx.input}!"}

    ledger = await asked(step(upper) >> exclaim)
    assert [(e.node, e.output) for e in ledger.of(NodeEnded)][:2] == [
        ("seq.0/upper", "MY CHEST HURTS."),
        ("seq.1/exclaim", {"said": "MY CHEST HURTS.!"}),
    ]


async def test_a_step_that_returns_what_is_no_json_is_an_error_that_names_it() -> None:
    def odd() -> Any:
        return {1, 2}

    end = end_of(await asked(step(odd)))
    assert (end.reason, end.error_type) == ("error", "BadValue")
    assert "the output of 'odd'" in end.error


async def test_state_that_is_no_json_is_an_error_that_names_its_place() -> None:
    def odd(state: Any) -> None:
        state.session["things"] = []
        state.session["things"].append(object())

    end = end_of(await asked(step(odd)))
    assert (end.reason, end.error_type) == ("error", "BadValue")
    assert "state session.things" in end.error


async def test_an_agent_of_steps_that_says_nothing_says_nothing() -> None:
    ledger = await asked(step(lambda: None))
    assert (response(ledger), end_of(ledger).reason) == (None, "completed")


async def test_one_agent_object_starts_every_run_afresh() -> None:
    agent = Agent("a", model=Scripted(LOOK, "Found."), tools=[look])
    for _ in range(3):
        ledger = await asked(agent, mocks={"look": "x"}, stop=Stop(max_turns=1))
        assert (results(ledger), response(ledger)) == (["x"], "Found.")


def test_instructions_that_are_no_text_are_refused_with_what_to_do() -> None:
    with pytest.raises(BadAgent, match=r"instructions of agent 'clerk' .* give a string.*reads="):
        Agent("clerk", model=Scripted(), instructions=cast(Any, lambda: "Be kind."))
