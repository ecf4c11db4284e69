"""Is the state at the end as it should be?"""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any, cast

from greenroom.cases.case import Case
from greenroom.cases.scores import Score
from greenroom.errors import BadMetric
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.plain import Json, plain, same
from greenroom.ledger.query import MISSING, check_query, matches, matches_state
from greenroom.ledger.records import record
from greenroom.metrics.builtin import BuiltIn, written
from greenroom.metrics.matching import Predicate, holds


@record(kw_only=True, repr=False)
class StateIs(BuiltIn):
    """Looks at one place of the final state."""

    scope: str
    key: str | None
    value: Json
    where: Predicate | None
    query: Any

    def measure(self, case: Case, ledger: Ledger, world: Any) -> Score:  # noqa: ARG002
        """1 if the place holds what it should; `measured` is what it holds."""
        state = ledger.fold()
        # Asking for nothing still refuses a scope that this run does not know.
        matches_state(state, {self.scope: {}})
        found = _at(state.get(self.scope, {}), self.key)
        passed = self._fits(found)
        return Score(
            float(passed),
            passed,
            name=self.name,
            reason=self._reason(found, passed),
            measured=None if found is MISSING else deepcopy(found),
        )

    def _fits(self, found: Json) -> bool:
        if self.query is not None:
            return matches(found, self.query)
        if found is MISSING:
            return False
        return holds(self.where, deepcopy(found)) if self.where else same(found, self.value)

    def _reason(self, found: Json, passed: bool) -> str:
        place = self.scope if self.key is None else f"{self.scope}.{self.key}"
        seen = f"{place} is not set" if found is MISSING else f"{place} is {found!r}"
        return seen if passed else f"{seen}; expected {self._wanted}"

    @property
    def _wanted(self) -> str:
        if self.query is not None:
            return f"a match of {self.query!r}"
        if self.where is not None:
            return f"a value that passes {getattr(self.where, '__name__', 'the predicate')}"
        return repr(self.value)


def state_is(
    scope: str,
    key: str | None = None,
    value: Any = MISSING,
    *,
    where: Predicate | None = None,
    query: Mapping[str, Any] | None = None,
    name: str | None = None,
) -> StateIs:
    """The final state holds `value` at `scope` and dotted `key`, or passes `where`, or `query`.

    Exactly one of the three; without `key` it is about the whole scope. A key that is not set
    fails; only a query (`{"$exists": False}`) can ask for that. An unknown scope is unmeasured.
    """
    here = f"state_is({scope!r}, {key!r}, ...)"
    if sum((value is not MISSING, where is not None, query is not None)) != 1:
        raise BadMetric(f"{here} wants exactly one of: a value, where=predicate, query={{...}}.")
    if query is not None:
        check_query(query, here)
    wanted = None if value is MISSING else plain(value, here)
    place = (scope,) if key is None else (scope, key)
    return StateIs(
        scope=scope,
        key=key,
        value=wanted,
        where=where,
        query=query,
        **_written(place, value, wanted, where, query, name),
    )


def _written(
    place: tuple[str, ...], value: Any, wanted: Json, where: Any, query: Any, name: str | None
) -> dict[str, str]:
    if value is MISSING:
        return written("state_is", *place, where=where, query=query, name=name)
    if len(place) == 2:
        return written("state_is", *place, wanted, name=name)
    return written("state_is", *place, value=wanted, name=name)


def _at(scope: Json, key: str | None) -> Json:
    """What lies at a dotted key, or MISSING; list positions are numbers."""
    found = scope
    if key is None or (isinstance(scope, dict) and key in scope):
        return found if key is None else cast("dict[str, Json]", scope)[key]
    for part in key.split("."):
        if isinstance(found, dict):
            found = cast("dict[str, Json]", found).get(part, MISSING)
        elif isinstance(found, list) and part.isdigit() and int(part) < len(found):  # pyright: ignore[reportUnknownArgumentType]
            found = cast("list[Json]", found)[int(part)]
        else:
            return MISSING
    return found
