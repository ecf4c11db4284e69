"""Was the agent fast enough, turn by turn and model by model?"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import fsum
from typing import Literal

from msgspec import Struct

from greenroom.cases.case import Case
from greenroom.cases.scores import NotApplicable, Outcome, Score, Unmeasured
from greenroom.errors import BadMetric
from greenroom.ledger.events import AgentSaid, Event, ModelReplied, RunEnded, RunResumed
from greenroom.ledger.ledger import Ledger
from greenroom.metrics.builtin import BuiltIn, is_number, written
from greenroom.metrics.facts import clock_trouble, kept_answers
from greenroom.metrics.needs import MODELS, NOTHING, TIMES, WORDS, Needs
from greenroom.world.world import World

What = Literal["turn", "first answer", "first words", "model reply"]


class Wait(Struct, frozen=True):
    """How long one thing took."""

    what: str
    seconds: float


class Within(BuiltIn, frozen=True, kw_only=True):
    """Compares the longest wait of its kind with a limit."""

    what: What
    seconds: float

    @property
    def needs(self) -> Needs:
        """Times, and whatever is timed."""
        return TIMES | _TIMED[self.what]

    @property
    def listens(self) -> bool:
        """Whether models must stream their replies, because the first words are timed."""
        return self.what == "first words"

    def measure(self, case: Case, ledger: Ledger, world: World) -> Outcome:
        """1 if none took longer than the limit; `measured` is the longest."""
        if (unknown := clock_trouble(ledger)) is not None and not self.needs & MODELS:
            return unknown
        waits = _WAITS[self.what](ledger)
        if any(wait.seconds < 0 for wait in waits):
            return Unmeasured(f"the record has a {self.what} that took less than no time")
        if not waits and (kept := kept_answers(ledger)):
            return NotApplicable(f"{kept}, so there is no {self.what} to time")
        if not waits:
            if self.listens:
                return Unmeasured("no model in this trial streamed its reply")
            return Unmeasured(f"the trial has no {self.what} that could be timed")
        longest = max(waits, key=lambda wait: wait.seconds)
        passed = longest.seconds <= self.seconds
        limit = f"the limit is {self.seconds:g} s"
        return Score(
            float(passed),
            passed,
            name=self.name,
            reason=f"the longest, {longest.what}, took {longest.seconds:.3g} s; {limit}",
            evidence=[f"{wait.what}: {wait.seconds:.3g} s" for wait in waits],
            measured=longest.seconds,
        )


def turn_within(seconds: float, *, name: str | None = None) -> Within:
    """After each message or answer of the user, the agent was done within `seconds`.

    Turns with answers from a recording or a cache do not count.
    """
    return _within("turn_within", "turn", seconds, name)


def first_answer_within(seconds: float, *, name: str | None = None) -> Within:
    """After each message or answer of the user, the agent's first words came within `seconds`.

    Turns in which it said nothing do not count, nor do those with answers from a recording or a cache.
    """
    return _within("first_answer_within", "first answer", seconds, name)


def model_within(seconds: float, *, name: str | None = None) -> Within:
    """Each reply of the agent's models came within `seconds`; those from a recording do not count."""
    return _within("model_within", "model reply", seconds, name)


def first_words_within(seconds: float, *, name: str | None = None) -> Within:
    """The first words of each reply of the agent's models came within `seconds` of the question.

    Models are asked to stream their replies. Replies from a recording do not count, nor do those
    that came in one piece because their framework or provider does not stream.
    """
    return _within("first_words_within", "first words", seconds, name)


def _within(factory: str, what: What, seconds: float, name: str | None) -> Within:
    if not is_number(seconds) or seconds <= 0:
        raise BadMetric(f"{factory}({seconds!r}): give seconds, more than 0.")
    return Within(what=what, seconds=seconds, **written(factory, seconds, name=name))


def _turns(ledger: Ledger) -> list[Wait]:
    rounds = _rounds(ledger)
    return [
        Wait(f"turn {n}", _worked(events))
        for n, events in enumerate(rounds, 1)
        if not kept_answers(events)
    ]


def _first_answers(ledger: Ledger) -> list[Wait]:
    found: list[Wait] = []
    for number, events in enumerate(_rounds(ledger), 1):
        said = [index for index, event in enumerate(events) if isinstance(event, AgentSaid)]
        if said and not kept_answers(events[: said[0]]):
            # In an imported trial, a call that is written before the words may have ended after them.
            until = [one for one in events[: said[0] + 1] if one.at <= events[said[0]].at]
            found.append(Wait(f"turn {number}", _worked(until)))
    return found


def _models(ledger: Ledger) -> list[Wait]:
    replies = [reply for reply in ledger.of(ModelReplied) if reply.is_live]
    return [Wait(f"reply {n} of {r.model}", r.seconds) for n, r in enumerate(replies, 1)]


def _first_words(ledger: Ledger) -> list[Wait]:
    return [
        Wait(f"reply {n} of {reply.model}", reply.first)
        for n, reply in enumerate(ledger.of(ModelReplied), 1)
        if reply.is_live and reply.first is not None
    ]


_TIMED: Mapping[What, Needs] = {
    "turn": NOTHING,
    "first answer": WORDS,
    "first words": MODELS,
    "model reply": MODELS,
}
_WAITS = {
    "turn": _turns,
    "first answer": _first_answers,
    "first words": _first_words,
    "model reply": _models,
}


def _rounds(ledger: Ledger) -> list[Sequence[Event]]:
    """The events of each turn, from the user's message or round of answers on."""
    heard = [event.seq for event in ledger.index_of().rounds]
    spans = pairwise([*heard, len(ledger)])
    rounds = [[e for e in ledger[begin:end] if e.voice == "agent"] for begin, end in spans]
    return [[event for event in events if not isinstance(event, RunEnded)] for events in rounds]


def _worked(events: Sequence[Event]) -> float:
    """Seconds from the first to the latest event, without time between an interruption and its resumption."""
    worked: list[float] = []
    latest = events[0].at if events else 0.0
    for event in events:
        if event.at > latest and not isinstance(event, RunResumed):
            worked.append(event.at - latest)
        latest = event.at if isinstance(event, RunResumed) else max(event.at, latest)
    return fsum(worked)
