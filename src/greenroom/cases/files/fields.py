"""A mapping of a foreign file, read field by field; what nobody asks for is kept."""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar, cast

from greenroom.cases.case import Case
from greenroom.cases.files.bounds import MAX_CASES
from greenroom.cases.places import at, mapping_at, problems_of, shown, wrong
from greenroom.cases.problems import Problem, listed
from greenroom.errors import BadFile, BadInput
from greenroom.ledger.plain import Json, is_array

T = TypeVar("T")
_ENOUGH = 1000
"""So many problems are told; a file with more is no better known by them."""
_HUMP = re.compile(r"(?<=[a-z0-9])[A-Z]")


class Fields:
    """The fields of a mapping at a place in a file. Null says nothing.

    `known` are the names by which it may be asked; they may also be written in camel case.
    """

    def __init__(self, data: object, place: str, known: Iterable[str] = ()) -> None:
        self.place = place
        self._left: dict[str, Json] = {}
        names = frozenset(known)
        for key, value in mapping_at(place, data).items():
            snake = _snake(key)
            name = snake if snake in names else key
            if name in self._left:
                raise wrong(at(place, key), f"it is given twice, the other time as {name!r}")
            if value is not None:
                self._left[name] = value

    def at(self, *keys: str | int) -> str:
        """The place of something inside."""
        return at(self.place, *keys)

    def take(self, name: str, default: Json = None) -> Json:
        """The value of a field, whatever it is."""
        return self._left.pop(name, default)

    def has(self, name: str) -> bool:
        """Whether the field says anything and was not taken yet."""
        return name in self._left

    def text(self, name: str, default: str = "") -> str:
        """A field that is a text."""
        return self._typed(name, str, "a text", default)

    def maybe_text(self, name: str) -> str | None:
        """A field that is a text, or None."""
        return self._typed(name, str, "a text", None)

    def items(self, name: str) -> list[Json] | None:
        """A field that is a list, or None."""
        return self._typed(name, list, "a list", None)

    def cases(self, name: str) -> list[Json]:
        """The list of cases, which has to be there."""
        if not self.has(name):
            raise wrong(self.place, f"it has no `{name}`")
        return self.items(name) or []

    def texts(self, name: str) -> list[str] | None:
        """A field that is a list of texts, or None."""
        found = self.items(name)
        for i, item in enumerate(found or ()):
            if not isinstance(item, str):
                raise wrong(self.at(name, i), f"{shown(item)} should be a text")
        return found

    def mapping(self, name: str) -> dict[str, Json]:
        """A field that is a mapping; an empty one if it is not given."""
        return self._typed(name, dict, "a mapping", {})

    def whole(self, name: str, default: int) -> int:
        """A field that is a whole number."""
        return self._typed(name, int, "a whole number", default)

    def inner(self, name: str, known: Iterable[str] = ()) -> "Fields":
        """A field that is a mapping, to be read in the same way."""
        return Fields(self.mapping(name), self.at(name), known)

    def rest(self, prefix: str = "") -> dict[str, Json]:
        """What was not asked for, under its path."""
        return {at(prefix, key): value for key, value in self._left.items()}

    def _typed(self, name: str, kind: type, words: str, default: Any) -> Any:
        value = self._left.pop(name, None)
        if value is None:
            return default
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise wrong(self.at(name), f"{shown(value)} should be {words}")
        return value


def _snake(name: str) -> str:
    return _HUMP.sub(lambda hump: f"_{hump[0].lower()}", name)


class Gathering:
    """Reads part by part and remembers all that is wrong, so that it can be told at once."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def each(self, items: Json, place: str, read: Callable[[Json, str], T]) -> list[T]:
        """What `read` makes of each item; those it refuses are remembered and left out."""
        if not is_array(items):
            raise wrong(place, f"{shown(items)} should be a list")
        if len(items) > MAX_CASES:
            raise wrong(
                place, f"{len(items)} are too many; {MAX_CASES} are read at once", "Split it"
            )
        found: list[T] = []
        for i, item in enumerate(items):
            try:
                found.append(read(item, at(place, i)))
            except BadInput as error:
                self.problems += problems_of(error, at(place, i))
                if len(self.problems) >= _ENOUGH:
                    self.settle()
        return found

    def cases(
        self, items: Json, place: str, read: Callable[[Json, str], Case], *id_field: str
    ) -> list[Case]:
        """What `read` makes of each item; an id that an earlier one has is remembered as well.

        `id_field` leads from a case to its id. Cases that cannot be read do not move the others.
        """
        named: list[tuple[str, str]] = []

        def noted(item: Json, where: str) -> Case:
            case = read(item, where)
            named.append((case.id, at(where, *id_field)))
            return case

        found = self.each(items, place, noted)
        self.unique(named)
        return found

    def part(self, place: str, read: Callable[[], T], otherwise: T) -> T:
        """What `read` gives; what it refuses is remembered."""
        try:
            return read()
        except BadInput as error:
            self.problems += problems_of(error, place)
            return otherwise

    def unique(self, named: Iterable[tuple[str, str]]) -> None:
        """Remember every id that is given twice; `named` pairs ids with their places."""
        first: dict[str, str] = {}
        for name, place in named:
            if first.setdefault(name, place) != place:
                told = (
                    f"the id {shown(name)} is also that of {first[name]}: two cases {name[:60]!r}"
                )
                self.problems.append(Problem(place, told, "Rename one"))
                if len(self.problems) >= _ENOUGH:
                    return

    def settle(self) -> None:
        """Raise what was remembered, if anything."""
        if self.problems:
            raise BadFile(listed(self.problems), self.problems)


# What a call was given or gave back: a null in there is a value like any other.
_VALUES = ("args", "response")


def without_nulls(data: Json) -> Json:
    """The data without fields that are null: to most readers they say nothing."""
    if isinstance(data, Mapping):
        return {
            key: value if key in _VALUES else without_nulls(value)
            for key, value in cast("Mapping[str, Json]", data).items()
            if value is not None
        }
    if isinstance(data, list):
        return [without_nulls(item) for item in cast("list[Json]", data)]
    return data
