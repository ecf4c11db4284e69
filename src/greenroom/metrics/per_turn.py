"""Turns measured one by one, and the mean over them."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from greenroom.cases.scores import Score
from greenroom.ledger.plain import Json
from greenroom.metrics.turns import PlayedTurn

# Binary fractions: the mean of 0.7, 0.7 and 0.7 is a hair below 0.7.
_HAIR = 1e-9


_NOTHING: Mapping[str, Json] = {}


class MeasuredTurn(NamedTuple):
    """How one turn did, in a number and in words."""

    number: int
    value: float
    reason: str
    evidence: str = ""
    details: Mapping[str, Json] = _NOTHING


def never_reached(turn: PlayedTurn) -> MeasuredTurn:
    """A turn that the run did not come to: nothing of what it expects was met."""
    return MeasuredTurn(turn.number, 0.0, "never reached", details={"reached": False})


def mean_score(turns: Sequence[MeasuredTurn], name: str, threshold: float) -> Score:
    """The mean over the turns, of which there is at least one, with what was found in each."""
    return _score(sum([turn.value for turn in turns]) / len(turns), turns, name, threshold)


def lowest_score(turns: Sequence[MeasuredTurn], name: str, threshold: float) -> Score:
    """The lowest of the turns, for what each of them is to reach."""
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
        value >= threshold - _HAIR,
        threshold=threshold,
        name=name,
        reason=". ".join(reasons),
        evidence=evidence,
        details=details,
    )
