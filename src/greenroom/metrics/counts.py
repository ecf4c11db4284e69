"""How often did something happen, and is that often enough?"""

from collections.abc import Callable
from typing import ClassVar, cast, get_args

from msgspec import Struct

from greenroom.cases.case import Case
from greenroom.cases.scores import Score
from greenroom.errors import BadMetric
from greenroom.ledger.choices import near
from greenroom.ledger.events import (
    AgentSaid,
    Answered,
    AnyEvent,
    Decided,
    Event,
    InvocationEnded,
    InvocationStarted,
    ModelCalled,
    ModelFailed,
    ModelReplied,
    NodeEnded,
    NodeFailed,
    NodeStarted,
    RunEnded,
    RunStarted,
    ToolBlocked,
    ToolCalled,
    ToolFailed,
    ToolReturned,
    UserSaid,
    YieldOpened,
)
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.query import Predicate, holds
from greenroom.ledger.questions import turns
from greenroom.metrics.builtin import BuiltIn, QuickMetric, checked_predicate, written
from greenroom.metrics.needs import (
    CALL_NAMES,
    CALLS,
    EVERYTHING,
    MODELS,
    NODES,
    NOTHING,
    WORDS,
    Needs,
)
from greenroom.metrics.turns import messages_in
from greenroom.world.world import World

Kinds = tuple[type[Event], ...]

_ALIASES: dict[str, Kinds] = {
    "message": (UserSaid, AgentSaid, Answered),
    "user_message": (UserSaid, Answered),
    "agent_message": (AgentSaid,),
    "tool_call": (ToolCalled, ToolBlocked),
    "tool_result": (ToolReturned,),
    "model_call": (ModelCalled,),
    "model_reply": (ModelReplied,),
    "yield": (YieldOpened,),
}

_BY_KIND: dict[str, Kinds] = {
    str(event.__struct_config__.tag): (event,) for event in get_args(AnyEvent)
}


class Bounds(Struct, frozen=True):
    """How many of something there should be."""

    at_least: int | None = None
    at_most: int | None = None
    check: Predicate | None = None

    def hold(self, count: int) -> bool:
        """Whether `count` is neither too few nor too many."""
        if self.at_least is not None and count < self.at_least:
            return False
        if self.at_most is not None and count > self.at_most:
            return False
        return self.check is None or holds(self.check, count)

    def __str__(self) -> str:
        if self.check is not None:
            return f"a count that passes {getattr(self.check, '__name__', 'the check')}"
        if self.at_most == 0:
            return "none"
        if self.at_least == self.at_most:
            return f"exactly {self.at_least}"
        least = f"at least {self.at_least}" if self.at_least else ""
        most = "" if self.at_most is None else f"at most {self.at_most}"
        return " and ".join(part for part in (least, most) if part)


def bounds(where: str, at_least: int | None, at_most: int | None) -> Bounds:
    """Bounds that some count meets and some count misses, or BadMetric."""
    for number in (at_least, at_most):
        if number is not None and (type(number) is not int or number < 0):
            raise BadMetric(f"{where} counts with {number!r}; give a whole number, 0 or more.")
    if at_most is None and not at_least:
        raise BadMetric(f"{where} could never fail; give at_least=1 or more, or at_most=.")
    if at_most is not None and (at_least or 0) > at_most:
        raise BadMetric(
            f"{where} asks for at least {at_least} and at most {at_most}: no count is both."
        )
    return Bounds(at_least, at_most)


def times(count: int) -> str:
    """A count as people say it."""
    return "once" if count == 1 else "twice" if count == 2 else f"{count} times"


_NEEDED: dict[type[Event], Needs] = {
    UserSaid: NOTHING,
    Answered: NOTHING,
    AgentSaid: WORDS,
    **dict.fromkeys((ToolCalled, ToolBlocked), CALL_NAMES),
    **dict.fromkeys((ToolReturned, ToolFailed), CALLS),
    **dict.fromkeys((ModelCalled, ModelReplied, ModelFailed), MODELS),
    **dict.fromkeys((NodeStarted, NodeEnded, NodeFailed, Decided), NODES),
    **dict.fromkeys((RunStarted, RunEnded, InvocationStarted, InvocationEnded), NOTHING),
}
"""What must have been recorded for events of a kind to appear; for other kinds, everything."""


class EventCount(BuiltIn, frozen=True, kw_only=True):
    """Counts the events of some kinds on the agent's side."""

    what: str
    kinds: Kinds
    where: Predicate | None
    bounds: Bounds

    @property
    def needs(self) -> Needs:
        """What must have been recorded to count such events; with a predicate, everything about them."""
        if self.where is not None:
            return EVERYTHING
        return NOTHING.union(*(_NEEDED.get(kind, EVERYTHING) for kind in self.kinds))

    def measure(self, case: Case, ledger: Ledger, world: World) -> Score:
        """1 if the number of events is within the bounds; `measured` is the count."""
        count = sum(self._counts(event) for event in ledger.of(*self.kinds))
        passed = self.bounds.hold(count)
        found = f"{count} × {self.what}"
        return Score(
            float(passed),
            passed,
            name=self.name,
            reason=found if passed else f"{found}; expected {self.bounds}",
            measured=count,
        )

    def _counts(self, event: Event) -> bool:
        # An event that only answers tools is not a message.
        if self.what in _ALIASES and isinstance(event, Answered) and not messages_in(event):
            return False
        return self.where is None or holds(self.where, event)


def event_count(
    kind: str | type[Event],
    where: Predicate | None = None,
    *,
    at_least: int | None = None,
    at_most: int | None = None,
    exactly: int | None = None,
    check: Callable[[int], object] | None = None,
    name: str | None = None,
) -> EventCount:
    """How often events of a kind happened, bounded or checked by a predicate on the count.

    `kind` is an event class, its kind ("tool_returned") or a plain word: message, user_message,
    agent_message, tool_call, tool_result, model_call, model_reply, yield. `where` picks events.
    """
    what, kinds = _kinds(kind)
    checked_predicate(where, "where", "event_count")
    checked_predicate(check, "check", "event_count")
    return EventCount(
        what=what,
        kinds=kinds,
        where=where,
        bounds=_limits(f"event_count({what!r}, ...)", at_least, at_most, exactly, check),
        **written(
            "event_count",
            kind,
            where=where,
            at_least=at_least,
            at_most=at_most,
            exactly=exactly,
            check=check,
            name=name,
        ),
    )


class TurnsWithin(QuickMetric, frozen=True, kw_only=True):
    """Counts the user's turns."""

    needs: ClassVar[Needs] = NOTHING
    bounds: Bounds

    def measure(self, case: Case, ledger: Ledger, world: World) -> Score:
        """1 if the number of turns is within the bounds; `measured` is the count."""
        count = turns(ledger)
        passed = self.bounds.hold(count)
        found = "1 turn" if count == 1 else f"{count} turns"
        reason = found if passed else f"{found}; expected {self.bounds}"
        return Score(float(passed), passed, name=self.name, reason=reason, measured=count)


def turns_within(
    at_most: int | None = None, *, at_least: int | None = None, name: str | None = None
) -> TurnsWithin:
    """The conversation took this many turns: messages or rounds of answers from the user."""
    limits = bounds("turns_within(...)", at_least, at_most)
    shown = written("turns_within", at_least=at_least, at_most=at_most, name=name)
    return TurnsWithin(bounds=limits, **shown)


def _limits(
    here: str,
    at_least: int | None,
    at_most: int | None,
    exactly: int | None,
    check: Predicate | None,
) -> Bounds:
    ranged = at_least is not None or at_most is not None
    if sum((ranged, exactly is not None, check is not None)) != 1:
        raise BadMetric(f"{here} needs one of: at_least and/or at_most, exactly, check.")
    if check is not None:
        return Bounds(check=check)
    if exactly is not None:
        return bounds(here, exactly, exactly)
    return bounds(here, at_least, at_most)


def _kinds(kind: object) -> tuple[str, Kinds]:
    if isinstance(kind, type) and issubclass(kind, Event):
        return kind.__name__, (kind,)
    known = {**_BY_KIND, **_ALIASES}
    if isinstance(kind, str) and kind in known:
        return kind, known[kind]
    found = near(str(cast(object, kind)), known, 3)
    rest = sorted(name for name in known if name not in found)
    raise BadMetric(
        f"event_count: there are no events {kind!r}; use one of: {', '.join([*found, *rest])}."
    )
