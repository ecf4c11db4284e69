"""Where a trial that was cut off can go on."""

from typing import Protocol

from greenroom.backends.backend import Backend
from greenroom.backends.registry import backend_for
from greenroom.ledger.events import InvocationStarted, ModelCalled, Remembered, ToolCalled
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.questions import ended, started
from greenroom.suite.plays import Take


class Begun(Protocol):
    """A trial that was under way when its process ended, as far as it was written down."""

    ledger: Ledger
    judging: Ledger


def taken_up(take: Take, left: Begun, agent: Backend | None) -> str:
    """Let `take` begin where an earlier process was cut off; why, if work has to be done again."""
    case = take.play.case
    backend = agent if case.agent is None else backend_for(case.agent)
    first = started(left.ledger)
    if first is None or backend is None:
        return ""
    if ended(left.ledger) is not None:
        take.ledger, take.judging = left.ledger, left.judging
        return ""
    if first.digest != backend.digest and not case.target:
        return "played from its beginning, because the agent has changed since it was cut off"
    if backend.resumes == "no":
        return f"played from its beginning: agents played by {backend.name!r} cannot go on"
    take.ledger = left.ledger if backend.resumes != "checkpoint" else _at_pause(left.ledger)
    lost = len(left.ledger) - len(take.ledger)
    return f"taken up at its last pause; {lost} events after it are played again" if lost else ""


def _at_pause(ledger: Ledger) -> Ledger:
    """The ledger up to where the agent last rested: inside its work it keeps its state to itself."""
    resting = 0
    is_at_work = False
    for event in ledger:
        if event.voice != "agent":
            continue
        if isinstance(event, ModelCalled | ToolCalled) and not is_at_work:
            is_at_work, resting = True, event.seq
        elif isinstance(event, InvocationStarted | Remembered):
            is_at_work = False
    return Ledger(ledger.events[:resting]) if is_at_work else ledger
