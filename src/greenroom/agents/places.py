"""The declared reads and writes of a node: places in the state, as strings."""

from collections.abc import Iterable, Iterator
from typing import Any, Self, TypeGuard

from greenroom.agents.schema import Field, StateSchema, fields_of
from greenroom.errors import BadAgent, BadQuery
from greenroom.ledger.changes import State
from greenroom.ledger.plain import Json
from greenroom.ledger.query import MISSING, place_text, split_place, value_at

Places = Any
"""One place or several, each a string or a field of a schema (which type checkers see as its value)."""


class Place(str):
    """A place in the state, as a string, with the field of a schema that says what is kept there."""

    __slots__ = ("field",)
    field: Field

    def __new__(cls, field: Field) -> Self:
        """The place of a field."""
        place = super().__new__(cls, field.place)
        place.field = field
        return place

    def __reduce__(self) -> tuple[type["Place"], tuple[Field]]:
        return Place, (self.field,)


def declared_places(
    given: Places, what: str, schema: type[StateSchema] | None = None
) -> tuple[str, ...]:
    """The places as strings, each once, in the order given; those of fields say what is kept there."""
    if given is None or given == "":
        return ()
    several: Iterable[object] = given if _are_several(given) else (given,)
    known = {field.place: Place(field) for field in fields_of(schema).values()} if schema else {}
    try:
        found = [as_place(place) for place in several]
    except BadQuery as error:
        raise BadAgent(f"{what}: {error}") from None
    return tuple(known.get(place, place) for place in dict.fromkeys(found))


def as_place(given: Any) -> str:
    """A place as a string; that of a field says what is kept there."""
    if isinstance(given, Place):
        return given
    return Place(given) if isinstance(given, Field) else place_text(given)


def typed_fields(*places: str) -> Iterator[Field]:
    """The fields that say what is kept at these places, where there are any."""
    return (place.field for place in places if isinstance(place, Place))


def value_of(place: str, state: State) -> Json:
    """What the state holds at a place, else the default of its field, else MISSING."""
    scope, path = split_place(place)
    found = value_at(state.get(scope, {}), ".".join(path))
    if found is MISSING:
        return next((f.default for f in typed_fields(place) if f.has_default), MISSING)
    return found


def _are_several(given: object) -> TypeGuard[Iterable[object]]:
    return isinstance(given, Iterable) and not isinstance(given, str)


def written_facts(places: tuple[str, ...]) -> str | list[str]:
    """Declared writes as a snapshot has them: one key of the session by its name, else a list."""
    if not places:
        return ""
    key = places[0].removeprefix("session.")
    return key if len(places) == 1 and "." not in key else list(places)
