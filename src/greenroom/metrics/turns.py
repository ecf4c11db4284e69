"""Which events belong to which turn of a case's script, and the score of turns measured one by one."""

from collections.abc import Mapping, Sequence
from math import fsum

from msgspec import Struct

from greenroom.cases.case import Case, Expect
from greenroom.cases.scores import Score
from greenroom.errors import BadMetric
from greenroom.ledger.events import AgentSaid, Answered, Event, ToolCalled, UserSaid
from greenroom.ledger.index import VoiceIndex
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.plain import Json


class ScriptedTurn(Struct, frozen=True):
    """A scripted turn that expects something, and its part of the ledger."""

    number: int
    expect: Expect
    ledger: Ledger
    begin: int
    end: int
    """From the user's message up to the next one; the same as `begin` if it was never reached."""
    index: VoiceIndex

    @property
    def reached(self) -> bool:
        """Whether the trial reached this turn."""
        return self.begin < self.end

    @property
    def response(self) -> str:
        """The agent's last words in this turn, or ""."""
        place, text = self.begin, ""
        # There are few paths, each with its last words, but there may be many events.
        for said in self.index.spoken.values():
            if said.seq >= self.end:
                break
            if said.seq >= place:
                place, text = said.seq, said.text
        else:
            return text
        # The agent spoke again after this turn: its earlier words are not in the index.
        for event in reversed(self.ledger[self.begin : self.end]):
            if type(event) is AgentSaid and event.voice == "agent":
                return event.text
        return ""

    @property
    def calls(self) -> list[ToolCalled]:
        """The agent's tool calls in this turn."""
        return [call for call in self.index.asked if self.begin <= call.seq < self.end]


def scripted_turns(case: Case, ledger: Ledger) -> Sequence[ScriptedTurn]:
    """The scripted turns that expect something, each with its events."""
    script, index = case.script, ledger.indexes["agent"]
    rounds = index.rounds
    if len(script) == len(rounds) == 1 and not script[0].is_blank and type(rounds[0]) is UserSaid:
        # The common case: one message and everything after it.
        expect, begin = script[0].expect, rounds[0].seq
        return (
            () if expect is None else (ScriptedTurn(1, expect, ledger, begin, len(ledger), index),)
        )
    spans = turn_spans(case, ledger)
    found: list[ScriptedTurn] = []
    for n, turn in enumerate(script):
        if turn.expect is not None:
            begin, end = spans.get(n, (0, 0))
            found.append(ScriptedTurn(n + 1, turn.expect, ledger, begin, end, index))
    return found


def turn_spans(case: Case, ledger: Ledger) -> dict[int, tuple[int, int]]:
    """Each turn's position in the script, and where its events begin and end.

    Turn k begins with the user's k-th message, said by itself or in an answer to a waiting agent; a
    round of answers that only answers tools begins no turn.
    """
    heard = 1 if _agent_speaks_first(case, ledger) else 0
    index, begin = 0, 0
    spans: dict[int, tuple[int, int]] = {}
    for event in ledger.index_of().rounds:
        if said := messages_in(event):
            if heard:
                spans[index] = (begin, event.seq)
            index, begin = heard, event.seq
            heard += said
    if heard:
        spans[index] = (begin, len(ledger))
    return spans


def turn_span(case: Case, ledger: Ledger, number: int) -> tuple[int, int] | None:
    """Where in the ledger a turn begins and ends, scripted or not; None if it was never reached."""
    return turn_spans(case, ledger).get(number - 1)


def checked_turn(number: object, factory: str) -> int | None:
    """The number of a turn, or None for the whole trial."""
    if number is None or (type(number) is int and number > 0):
        return number
    raise BadMetric(f"{factory}(...) has turn={number!r}; the first turn is 1.")


def messages_in(event: Event) -> int:
    """How many messages of the user are in this event; answers to tools do not count."""
    if isinstance(event, UserSaid):
        return 1
    return sum(not a.tool for a in event.answers) if isinstance(event, Answered) else 0


def _agent_speaks_first(case: Case, ledger: Ledger) -> bool:
    """Whether the first turn is the agent's opening, before any message of the user."""
    if not case.script or not case.script[0].is_blank:
        return False
    said = ledger.index_of().said
    return not (said and said[0].text == "")


# In binary fractions the mean of 0.7, 0.7 and 0.7 is a little below 0.7.
_TOLERANCE = 1e-9
_NOTHING: Mapping[str, Json] = {}


class MeasuredTurn(Struct, frozen=True):
    """How one turn did, in a number and in words."""

    number: int
    value: float
    reason: str
    evidence: str = ""
    details: Mapping[str, Json] = _NOTHING


def never_reached(turn: ScriptedTurn) -> MeasuredTurn:
    """The result for a turn that was not reached: nothing that it expects was met."""
    return MeasuredTurn(turn.number, 0.0, "never reached", details={"reached": False})


def mean_score(turns: Sequence[MeasuredTurn], name: str, threshold: float) -> Score:
    """The mean over at least one turn, with the findings of each."""
    return _score(fsum([turn.value for turn in turns]) / len(turns), turns, name, threshold)


def lowest_score(turns: Sequence[MeasuredTurn], name: str, threshold: float) -> Score:
    """The lowest of the turns, where each of them has to reach the threshold."""
    return _score(min(turn.value for turn in turns), turns, name, threshold)


def _score(value: float, turns: Sequence[MeasuredTurn], name: str, threshold: float) -> Score:
    reasons: list[str] = []
    evidence: list[str] = []
    details: list[Json] = []
    for turn in turns:
        reasons.append(f"turn {turn.number}: {turn.reason}")
        details.append({"turn": turn.number, "value": turn.value, **turn.details})
        if turn.evidence:
            evidence.append(f"turn {turn.number}: {turn.evidence}")
    return Score(
        value,
        value >= threshold - _TOLERANCE,
        threshold=threshold,
        name=name,
        reason=". ".join(reasons),
        evidence=evidence,
        details=details,
    )
