"""Code that reads the framework's stream gets from a stand-in what a provider would send."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from agents import Agent, ModelResponse, Runner, function_tool
from backends.keyed_agents import OwnOpenAI
from greenroom import Case, Expect, Scripted, call, rehearse
from greenroom.backends.openai_agents.streams import events_of
from greenroom.backends.openai_agents.translation import reply_of, response_in, response_of
from greenroom.ledger.messages import ToolCall
from greenroom.metrics import called
from greenroom.models.model import ModelReply

SEEN: list[str] = []


@function_tool
def weather(city: str) -> str:
    """The weather."""
    raise AssertionError("a tool body ran")


async def chat(message: str) -> str:
    agent: Any = Agent("clerk", model=OwnOpenAI(), tools=[weather])
    result = Runner.run_streamed(agent, message)
    said: list[str] = []
    async for event in result.stream_events():
        if event.type == "raw_response_event":
            SEEN.append(event.data.type)
            if event.data.type == "response.output_text.delta":
                said.append(event.data.delta)
        else:
            SEEN.append(getattr(event, "name", event.type))
    return "|".join(said)


def test_an_answer_comes_in_pieces_and_each_call_is_told_once() -> None:
    SEEN.clear()
    case = Case(
        "c",
        "Paris?",
        mocks={"weather": "21"},
        expect=Expect(response="It| is| 21| degrees."),
        metrics=[called("weather", {"city": "Paris"}, at_least=1, at_most=1)],
    )
    model = Scripted(call("weather", city="Paris"), "It is 21 degrees.")
    report = rehearse(chat, [case], model=model, store=False)
    assert report.passed, str(report)
    assert SEEN.count("tool_called") == SEEN.count("tool_output") == 1
    assert SEEN.count("message_output_created") == 1
    assert SEEN.count("response.created") == SEEN.count("response.completed") == 2
    begun = SEEN.index("response.function_call_arguments.delta")
    assert begun < SEEN.index("response.function_call_arguments.done") < SEEN.index("tool_output")


@given(some.text(), some.lists(some.dictionaries(some.text(), some.text()), max_size=2))
def test_the_pieces_make_the_whole(text: str, calls: list[dict[str, str]]) -> None:
    asked = tuple(ToolCall("t", args, f"c{n}") for n, args in enumerate(calls))
    response: ModelResponse = response_of(ModelReply(text=text, calls=asked), "msg_1")
    events = list(events_of(response, "m"))
    assert [event.sequence_number for event in events] == list(range(len(events)))
    deltas = [e.delta for e in events if e.type == "response.output_text.delta"]
    assert "".join(deltas) == text
    for n, item in enumerate(response.output):
        written = [e for e in events if e.type == "response.function_call_arguments.delta"]
        if item.type == "function_call":
            assert "".join(e.delta for e in written if e.output_index == n) == item.arguments
    whole = response_in(events[-1])
    assert whole is not None
    assert reply_of(whole) == reply_of(response)


@pytest.mark.parametrize("text", ["", " ", "\n", "a\n", " a  b "])
def test_a_text_of_spaces_is_a_text(text: str) -> None:
    events = events_of(response_of(ModelReply(text=text), "m"), "m")
    assert "".join(e.delta for e in events if e.type == "response.output_text.delta") == text
