"""Where a trial that was cut off can go on."""

from collections import Counter
from collections.abc import Collection
from typing import Any, Protocol

from greenroom.backends.backend import DRIFTED, Backend
from greenroom.backends.registry import backend_for
from greenroom.cases.case import Case
from greenroom.cases.mocks import Live
from greenroom.ledger.events import (
    InvocationStarted,
    ModelCalled,
    Noted,
    Remembered,
    RunResumed,
    ToolCalled,
)
from greenroom.ledger.index import VoiceIndex
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.messages import Voice
from greenroom.ledger.plain import is_object
from greenroom.ledger.questions import ended, started
from greenroom.simulation.gate import CALLED_DIRECTLY
from greenroom.suite.trial_state import TrialState

_ABSENT = object()


class Begun(Protocol):
    """A trial that was under way when its process ended, as far as it was written down."""

    ledger: Ledger
    judging: Ledger


def taken_up(
    take: TrialState, left: Begun, agent: Backend | None, unbegun: Collection[str] = ()
) -> str:
    """Let `take` begin where an earlier process was cut off; why, if work has to be done again.

    `unbegun` are calls of real tools that were written down, but were not allowed to act any more.
    """
    case = take.play.case
    backend = agent if case.agent is None else backend_for(case.agent)
    first = started(left.ledger)
    if first is None or backend is None:
        return ""
    if ended(left.ledger) is not None:
        take.ledger, take.judged = left.ledger, left.judging
        return ""
    if first.digest != backend.digest and not case.target:
        take.doubt = _doubt(case, left.ledger, 0, unbegun)
        return "played from its beginning, because the agent has changed since it was cut off"
    if backend.resumes == "no":
        take.doubt = _doubt(case, left.ledger, 0, unbegun)
        return f"played from its beginning: agents played by {backend.name!r} cannot go on"
    known = _before(left.ledger, unbegun)
    take.ledger = known if backend.resumes != "checkpoint" else _at_pause(known)
    take.doubt = _doubt(case, left.ledger, len(take.ledger), unbegun)
    lost = len(known) - len(take.ledger)
    return f"taken up at its last pause; {lost} events after it are played again" if lost else ""


def went_back(take: TrialState, ledger: Ledger) -> bool:
    """Whether the run came another way than the recorded one, and `take` begins where they part."""
    if take.ledger is None or take.on_restart is None:
        return False
    last = next((e for e in reversed(ledger.events) if isinstance(e, Noted | RunResumed)), None)
    if not isinstance(last, Noted) or last.name != DRIFTED:
        return False
    seq = last.data.get("seq") if is_object(last.data) else None
    # Each time further back, or somebody else's note could lead round in circles.
    if type(seq) is not int or not 0 < seq < take.goes_back_to:
        return False
    take.goes_back_to = seq
    take.doubt = _doubt(take.play.case, ledger, seq)
    take.ledger = Ledger(ledger.events[:seq])
    if not take.doubt:  # else whoever resumes after another cut must find the same reason for it
        take.on_restart(take.ledger, take.judging)
    take.notes.append(f"{last.data.get('told')}; from there on it was played anew")
    return True


def _before(ledger: Ledger, calls: Collection[str]) -> Ledger:
    """The ledger up to the first of these calls."""
    first = min((event.seq for event in _open_calls(ledger, calls)), default=None)
    return ledger if first is None else Ledger(ledger.events[:first])


def _open_calls(ledger: Ledger, ids: Collection[str]) -> list[ToolCalled]:
    """The calls of these ids that have not ended, as far as an id means one of them only."""
    found = [e for index, e in _calls(ledger) if e.call_id in ids and index.end_of(e) is None]
    counts = Counter(event.call_id for event in found)
    return [event for event in found if counts[event.call_id] == 1]


def _calls(ledger: Ledger) -> list[tuple[VoiceIndex, ToolCalled]]:
    """Every call of either side."""
    voices: tuple[Voice, ...] = ("agent", "user")
    return [(index, event) for index in map(ledger.index_of, voices) for event in index.issued]


def _doubt(case: Case, ledger: Ledger, kept: int, unbegun: Collection[str] = ()) -> str:
    """Which real tool acted, or may have, in what would be played a second time."""
    for note in ledger.of(Noted, voice=None):
        if note.name == CALLED_DIRECTLY and is_object(note.data):
            return (
                f"code of the case called the tool {note.data.get('tool')!r} itself before the cut, "
                f"past the gate, so nobody knows whether it would do so again. Look at the real "
                f"system, then start a new run."
            )
    harmless = {event.seq for event in _open_calls(ledger, unbegun)}
    for index, event in _calls(ledger):
        # The tools of user agents belong to the play: they may run again.
        if event.seq < kept or event.seq in harmless or event.voice == "user":
            continue
        end = index.end_of(event)
        if end.source == "live" if end is not None else not _is_mocked(case, event.tool):
            return (
                f"tool {event.tool!r} was called for real before the cut with {event.args!r}, in a "
                f"part of the run that would have to be played again, so it would act twice. Look "
                f"at the real system, then start a new run."
            )
    return ""


def may_act(case: Case, allowed: Collection[Any]) -> bool:
    """Whether any tool of the agent may run for real."""
    is_mocked = all(_is_mocked(case, tool) for tool in case.mocks)
    return bool(allowed or case.allow_tools) or not is_mocked


def _is_mocked(case: Case, tool: str) -> bool:
    """Whether something else than the tool itself answers."""
    mock = case.mocks.get(tool, _ABSENT)
    named = getattr(mock, "fn", mock)
    is_itself = callable(named) and getattr(named, "__name__", "") == tool
    return mock is not _ABSENT and not isinstance(mock, Live) and not is_itself


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
