"""The trajectory of a trial: its nodes, tools, messages and decisions in order, as a reader follows them."""

from collections.abc import Callable
from typing import Literal

from msgspec import Struct

from greenroom.ledger.events import (
    AgentSaid,
    Answered,
    Decided,
    Event,
    NodeStarted,
    Noted,
    ToolCalled,
    UserSaid,
)
from greenroom.ledger.index import VoiceIndex
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.messages import Voice
from greenroom.ledger.plain import Json, plain
from greenroom.ledger.questions import span

StepType = Literal["node", "tool", "message", "conditional", "custom"]


class Step(Struct, frozen=True, omit_defaults=True):
    """One step of a trajectory: a node, tool, message, decision, or your own named fact."""

    type: StepType
    name: str
    args: Json = None
    at: float = 0.0
    seconds: float = 0.0
    details: Json = None


def trajectory(
    ledger: Ledger,
    keep: Callable[[Step], bool] | None = None,
    voice: Voice = "agent",
    *,
    brief: bool = False,
) -> list[Step]:
    """Nodes, tools, messages and decisions in order, each with its duration; `brief` without details."""
    index = ledger.index_of(voice)
    found: list[Step] = []
    for event in ledger:
        if event.voice == voice:
            found += _steps(event, index, brief=brief)
    return [step for step in found if keep(step)] if keep else found


def _step_details(event: UserSaid | AgentSaid) -> Json:
    return {"attachments": plain(event.attachments)} if event.attachments else None


def _steps(event: Event, index: VoiceIndex, *, brief: bool) -> list[Step]:
    """The steps that an event adds to a trajectory, most often none or one."""
    details: Json
    match event:
        case ToolCalled():
            end = index.end_of(event)
            took = 0.0 if end is None else end.seconds
            details = None if brief else {"id": event.call_id}
            return [Step("tool", event.tool, {**event.args}, event.at, took, details)]
        case NodeStarted():
            end = index.ended.get(event.path)
            took = 0.0 if end is None else span(event, end)
            details = None if brief else {"path": event.path}
            return [Step("node", event.node, event.input, event.at, took, details)]
        case UserSaid():
            return [Step("message", "user", event.text, event.at, 0.0, _step_details(event))]
        case Answered():
            said = [answer.value for answer in event.answers if not answer.tool]
            return [Step("message", "user", str(value), event.at) for value in said]
        case AgentSaid():
            return [Step("message", "assistant", event.text, event.at, 0.0, _step_details(event))]
        case Decided():
            return [Step("conditional", event.path, event.choice, event.at)]
        case Noted():
            return [Step("custom", event.name, event.data, event.at)]
        case _:
            return []
