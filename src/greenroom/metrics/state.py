"""Is the state as it should be, at the end, after a turn, or after a node?"""

from collections.abc import Iterable, Mapping
from copy import deepcopy
from typing import Any

from greenroom.cases.case import Case
from greenroom.cases.scores import Outcome, Score, Unmeasured
from greenroom.errors import BadMetric, BadQuery
from greenroom.ledger.changes import State
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.places import by_scope, is_field
from greenroom.ledger.plain import Json, alike, plain
from greenroom.ledger.query import (
    MISSING,
    Predicate,
    check_places,
    check_query,
    has_operators,
    holds,
    matches,
    matches_state,
    value_at,
)
from greenroom.ledger.questions import is_between_invocations, state_after
from greenroom.metrics.builtin import (
    BuiltIn,
    checked_predicate,
    checked_text,
    shown_value,
    written,
)
from greenroom.metrics.needs import NODES, STATE, Needs
from greenroom.metrics.node_state import state_after_node
from greenroom.metrics.response import cut
from greenroom.metrics.turns import checked_turn, turn_span
from greenroom.world.world import World


def check_lasting(scopes: Iterable[str], ledger: Ledger, end: int | None = None) -> None:
    """Refuse to check `temp` after the invocation ended: it is always empty then."""
    if "temp" in scopes and is_between_invocations(ledger, end):
        raise BadQuery(
            "the scope 'temp' lasts until the agent's invocation ends, so it is always empty "
            "then; check the state after a node, or keep it in another scope."
        )


class StateIs(BuiltIn, frozen=True, kw_only=True):
    """Checks one key, or all, of a scope of the final state."""

    scope: str
    key: str | None
    value: Json
    where: Predicate | None
    query: Mapping[str, Json] | None
    after: str | None

    @property
    def needs(self) -> Needs:
        """The state, and the nodes if it is checked after a node."""
        return STATE if self.after is None else STATE | NODES

    def measure(self, case: Case, ledger: Ledger, world: World) -> Outcome:
        """1 if it holds what it should; `measured` is what it holds."""
        state = ledger.fold()
        if self.after is not None:
            found = state_after_node(ledger, self.after, self.name)
            if isinstance(found, Score | Unmeasured):
                return found
            state = found
        else:
            check_lasting([self.scope], ledger)
        # An empty query still refuses a scope that this trial does not know.
        matches_state(state, {self.scope: {}})
        held = state.get(self.scope, {})
        found = held if self.key is None else value_at(held, self.key)
        passed = self._fits(found)
        place = self.scope if self.key is None else f"{self.scope}.{self.key}"
        reason = f"{place} is not set" if found is MISSING else f"{place} is {found!r}"
        return Score(
            float(passed),
            passed,
            name=self.name,
            reason=reason if passed else f"{reason}; expected {self._wanted()}",
            measured=None if found is MISSING else deepcopy(found),
        )

    def _fits(self, found: Json) -> bool:
        if self.query is not None:
            return matches(found, self.query)
        if found is MISSING:
            return False
        return holds(self.where, deepcopy(found)) if self.where else alike(found, self.value)

    def _wanted(self) -> str:
        if self.query is not None:
            return f"a match of {self.query!r}"
        if self.where is not None:
            return f"a value that passes {getattr(self.where, '__name__', 'the predicate')}"
        return repr(self.value)


def state_is(
    scope: Any,
    key: Any = MISSING,
    value: Any = MISSING,
    *,
    where: Predicate | None = None,
    query: Mapping[str, Any] | None = None,
    after: str | None = None,
    name: str | None = None,
) -> StateIs:
    """The state holds `value` at `scope` and dotted `key`, or passes `where`, or `query`.

    Exactly one of the three; without `key` it is about the whole scope. A field of a schema can
    replace both: `state_is(Billing.ticket, "T-1")`. It is the final state, or with `after` the one when
    the node of that name last ended; a node that never did fails. A key that is not set fails; only
    a query (`{"$exists": False}`) can ask for that. An unknown scope is unmeasured.
    """
    if is_field(scope):
        if key is not MISSING and value is not MISSING:
            raise BadMetric(f"state_is({scope!r}, {key!r}, {value!r}): a field needs no key.")
        scope, key, value = scope.scope, scope.name, value if key is MISSING else key
    key = None if key is MISSING else key
    here = f"state_is({scope!r}, {key!r}, ...)"
    for given in (scope, key) if key is not None else (scope,):
        checked_text(given, "state_is")
    check_places({} if key is None else {key: value}, here)
    if sum((value is not MISSING, where is not None, query is not None)) != 1:
        raise BadMetric(f"{here} needs exactly one of: a value, where=predicate, query={{...}}.")
    checked_predicate(where, "where", "state_is")
    if query is not None:
        if not query:
            raise BadMetric(f"{here} has query={{}}, which checks nothing; say what it should be.")
        check_query(query, here)
    if after is not None:
        checked_text(after, "state_is")
    wanted = None if value is MISSING else plain(value, here)
    if value is MISSING:
        place = [scope] if key is None else [scope, key]
        shown = written("state_is", *place, where=where, query=query, after=after, name=name)
    elif key is None:
        shown = written("state_is", scope, value=wanted, after=after, name=name)
    else:
        shown = written("state_is", scope, key, wanted, after=after, name=name)
    return StateIs(
        scope=scope, key=key, value=wanted, where=where, query=query, after=after, **shown
    )


class StateMatches(BuiltIn, frozen=True, kw_only=True):
    """Matches the state at the end of the trial or of one turn against a query."""

    query: Mapping[str, Mapping[str, Json]]
    turn: int | None
    after: str | None

    @property
    def needs(self) -> Needs:
        """The state, and the nodes if it is checked after a node."""
        return STATE if self.after is None else STATE | NODES

    def measure(self, case: Case, ledger: Ledger, world: World) -> Outcome:
        """1 if every scope matches; the reason names the places that do not."""
        state, span = ledger.fold(), None
        if self.turn is not None:
            span = turn_span(case, ledger, self.turn)
            if span is None:
                return Score(0.0, False, name=self.name, reason=f"turn {self.turn}: never reached")
            state = state_after(ledger, span[1] - 1)
        if self.after is not None:
            found = state_after_node(ledger, self.after, self.name, span)
            if isinstance(found, Score | Unmeasured):
                return found
            state = found
        else:
            check_lasting(self.query, ledger, span[1] if span else None)
        passed = matches_state(state, self.query)
        return Score(
            float(passed),
            passed,
            name=self.name,
            reason="as expected" if passed else "; ".join(mismatches(state, self.query)),
            measured={scope: deepcopy(state.get(scope, {})) for scope in self.query},
        )


def state_matches(
    query: Mapping[Any, Any],
    *,
    turn: int | None = None,
    after: str | None = None,
    name: str | None = None,
) -> StateMatches:
    """The state, at the end, after one turn or `after` a node last ended, matches a query by scope.

    In Python a function may be given instead of a value: `{"session": {"total": lambda v: v > 3}}`,
    and a field of a schema for its place: `{Order.total: 3}`.
    """
    if not isinstance(query, Mapping) or not query:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise BadMetric(
            f'state_matches({query!r}): give a query by scope: {{"session": {{"key": ...}}}}.'
        )
    query = by_scope(query)
    for scope, part in query.items():
        if not isinstance(part, Mapping):
            raise BadMetric(
                f"state_matches(...) has {scope!r}: {part!r}; group by scope: "
                f'{{"session": {{"key": ...}}}}.'
            )
    if not all(query.values()):
        raise BadMetric(
            f"state_matches({dict(query)!r}) has a scope that checks nothing; say what a key "
            f"should hold, or leave it out."
        )
    check_query(query, "state_matches(...)")
    for scope, part in query.items():
        check_places(part, f"state_matches(...).{scope}")
    if after is not None:
        checked_text(after, "state_matches")
    shown = written("state_matches", query, turn=turn, after=after, name=name)
    return StateMatches(query=query, turn=checked_turn(turn, "state_matches"), after=after, **shown)


def mismatches(state: State, query: Mapping[str, Mapping[str, Json]]) -> list[str]:
    """The keys of the state that do not match, each with what it holds and what it should hold."""
    found: list[str] = []
    for scope, part in query.items():
        held = state.get(scope, {})
        if matches(held, part):
            continue
        if not part or has_operators(part):
            found.append(_mismatch(scope, held, part))
            continue
        for key, wanted in part.items():
            value = value_at(held, key)
            if not matches(value, wanted):
                found.append(_mismatch(f"{scope}.{key}", value, wanted))
    return found


def _mismatch(place: str, value: Json, wanted: object) -> str:
    seen = "is not set" if value is MISSING else f"is {cut(repr(value), 300)}"
    return f"{place} {seen}; expected {shown_value(wanted)}"
