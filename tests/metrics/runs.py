"""Ledgers written by hand, for metrics to measure."""

from itertools import count
from typing import Any

from greenroom.cases import Case, case_data
from greenroom.ledger import (
    AgentSaid,
    Answer,
    Answered,
    Event,
    Ledger,
    ModelReplied,
    RunEnded,
    RunStarted,
    StateChanged,
    ToolCall,
    ToolCalled,
    ToolReturned,
    Usage,
    UserSaid,
)
from greenroom.ledger.changes import changes_of
from greenroom.world.live import LiveWorld

TOKENS = Usage(10, 5)

_ids = count()


def world() -> LiveWorld:
    return LiveWorld(Ledger())


def user(text: str) -> list[Event]:
    return [UserSaid(text=text)]


def agent(text: str) -> list[Event]:
    return [AgentSaid(text=text)]


def tool(name: str, /, result: Any = "ok", **args: Any) -> list[Event]:
    call_id = f"c{next(_ids)}"
    return [
        ToolCalled(call_id=call_id, tool=name, args=args),
        ToolReturned(call_id=call_id, tool=name, value=result, source="mock"),
    ]


def beside(text: str, name: str, /, result: Any = "ok", **args: Any) -> list[Event]:
    """A model's words beside a call, and the call."""
    called, returned = tool(name, result, **args)
    return [ModelReplied(text=text, calls=(ToolCall(name, args),)), called, returned]


def replied(cost: float | None = 0.0, usage: Usage | None = TOKENS) -> list[Event]:
    return [ModelReplied(model="m-1", text="...", cost=cost, usage=usage)]


def changed(**scopes: dict[str, Any]) -> list[Event]:
    return [StateChanged(changes=changes_of(scopes))]


def answered(message: str) -> list[Event]:
    """The user's message to an agent that waits for one."""
    return [Answered(answers=(Answer(yield_id=f"y{next(_ids)}", value=message),))]


def answered_tool(name: str, value: Any) -> list[Event]:
    """The user's answer to a tool, which is not a message."""
    return [Answered(answers=(Answer(yield_id=f"y{next(_ids)}", value=value, tool=name),))]


def run(
    *events: list[Event], case: Case | None = None, seconds: float = 1.0, reason: Any = "completed"
) -> Ledger:
    """A finished run of these events, spread over so many seconds."""
    inner = [event for group in events for event in group]
    state: Any = None if case is None else case.state
    begun = RunStarted(
        run_id="r",
        case=None if case is None else case_data(case),
        state=state,
    )
    return timed([begun, *inner, RunEnded(reason=reason)], seconds)


def timed(events: list[Event], seconds: float) -> Ledger:
    ledger = Ledger()
    for index, event in enumerate(events):
        ledger.append(event, at=1000.0 + seconds * index / max(1, len(events) - 1))
    return ledger


WEATHER = Case("weather", says="Weather in Paris?")


def weather() -> Ledger:
    """A run with one tool call and one answer."""
    return run(
        user("Weather in Paris?"),
        replied(),
        tool("get_weather", city="Paris", result={"celsius": 21}),
        replied(),
        agent("It is 21 degrees in Paris."),
        case=WEATHER,
    )
