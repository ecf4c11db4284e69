"""Reads a mapping from a file field by field; all problems are raised at once."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar, cast
from unicodedata import normalize

from greenroom.cases.names import is_heeded, meant_by, near_name, unknown_field
from greenroom.cases.problems import Problem, at, listed, mapping_at, problems_of, shown, wrong
from greenroom.cases.users import never_speaks
from greenroom.errors import BadFile, BadInput
from greenroom.ledger.plain import Json, is_array, is_object

MAX_CASES = 50_000
_ENOUGH = 1000
"""At most this many problems are listed."""


class _Named(Protocol):
    @property
    def id(self) -> str: ...


def refuse_silence(case: object, place: str) -> None:
    """Refuse a case in which the user never speaks: nothing would be asked of the agent."""
    if never_speaks(case):
        raise silence(place)


def silence(place: str) -> BadFile:
    """The error for a case in which the user never speaks."""
    fix = "Give `says`, `turns` or a `user`; a blank first turn lets the agent speak first"
    return wrong(place, "the conversation is empty: the user never speaks", fix)


def blank_words(place: str, text: str) -> BadFile:
    """The error for words of the user that are only blanks."""
    message = f"the user says {shown(text)}, which is blank"
    return wrong(place, message, "Write what they say, or leave it out")


def empty_expectation(place: str) -> BadFile:
    """The error for an expectation that says nothing."""
    return wrong(place, "the expectation is empty", "Say what is expected, or leave it out")


def _within(data: Json, fields: Iterable[str]) -> Json:
    """The value under these nested fields; None if it is missing."""
    for name in fields:
        data = data.get(name) if is_object(data) else None
    return data


T = TypeVar("T")
Named = TypeVar("Named", bound=_Named)


class ProblemList:
    """Collects problems while a file is read part by part, so that all can be raised at once."""

    def __init__(self) -> None:
        self.found: list[Problem] = []

    def each(self, items: Json, place: str, read: Callable[[Json, str], T]) -> list[T]:
        """The results of `read` for each item; refused ones are remembered and left out."""
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
                self.add(error, at(place, i))
        return found

    def cases(
        self, items: Json, place: str, read: Callable[[Json, str], Named], *id_field: str
    ) -> list[Named]:
        """The results of `read` for each item; an id that is used twice is remembered as a problem too.

        `id_field` leads from a case to its id, which counts even if the case cannot be read. Such cases do
        not shift the others.
        """
        named: list[tuple[str, str]] = []

        def noted(item: Json, where: str) -> Named:
            try:
                case = read(item, where)
            except BadInput:
                given = _within(item, id_field)
                if isinstance(given, str) and given.strip():
                    named.append((given, at(where, *id_field)))
                raise
            named.append((case.id, at(where, *id_field)))
            refuse_silence(case, where)
            return case

        found = self.each(items, place, noted)
        self.unique(named)
        return found

    def part(self, place: str, read: Callable[[], T], otherwise: T) -> T:
        """The result of `read`; what it refuses is remembered."""
        try:
            return read()
        except BadInput as error:
            self.add(error, place)
            return otherwise

    def add(self, error: BadInput, place: str) -> None:
        """Remember an error's problem, at `place` unless the error itself names a place."""
        # A wrong value of a misspelt field need not be reported too.
        misspelt = {problem.where for problem in self.found if problem.meant}
        self.found += [one for one in problems_of(error, place) if one.where not in misspelt]
        if len(self.found) >= _ENOUGH:
            self.settle()

    def unique(self, named: Iterable[tuple[str, str]]) -> None:
        """Remember every id that is given twice; `named` pairs ids with their places.

        Two ways to write the same letters, `é` as one character or as two, count as the same id.
        """
        first: dict[str, str] = {}
        for name, place in named:
            read = normalize("NFC", name)
            if first.setdefault(read, place) != place:
                message = f"the id {shown(name)} is already used by {first[read]}: two cases {name[:60]!r}"
                self.found.append(Problem(place, message, "Rename one"))
                if len(self.found) >= _ENOUGH:
                    return

    def settle(self) -> None:
        """Raise what was remembered, if anything."""
        if self.found:
            one = str(self.found[0]) if len(self.found) == 1 else ""
            raise BadFile(one or listed(self.found), self.found)


_HUMP = re.compile(r"(?<=[a-z0-9])[A-Z]")


class Fields:
    """The fields of a mapping at a place in a file. A null counts as missing.

    `known` are all the names it may have; with `camel` they may also be written in camel case. `means`
    says how fields of other shapes are written here. Problems are remembered until `settle` raises
    all of them.
    """

    def __init__(
        self,
        data: object,
        place: str,
        known: Iterable[str],
        means: Mapping[str, str] | None = None,
        problems: ProblemList | None = None,
        *,
        camel: bool = True,
    ) -> None:
        self.place = place
        self.known = tuple(known)
        self.problems = ProblemList() if problems is None else problems
        self._means = means
        self._left: dict[str, Json] = {}
        self._misspelt: dict[str, str] = {}
        for key, value in mapping_at(place, data, self.known).items():
            name = key
            if camel and key not in self.known and (snake := _snake(key)) in self.known:
                name = snake
            if name in self._left:
                self.remember(at(place, key), f"it is given twice, the other time as {name!r}")
            elif value is not None:
                self._left[name] = value
        for key in [key for key in self._left if key not in self.known]:
            self._read_as_meant(key)

    def _read_as_meant(self, key: str) -> None:
        """Refuse a misspelt field, but read it as the field it means: it may hold more problems."""
        meant = near_name(_snake(key), self.known)
        is_meant = bool(meant) and meant_by(key, self.known, self._means or {}) == meant
        if is_meant and meant != "extra" and meant not in self._left:
            self.problems.add(unknown_field(self.place, key, self.known, self._means), self.place)
            self._left[meant] = self._left.pop(key)
            self._misspelt[meant] = key

    def at(self, name: str, *keys: str | int) -> str:
        """The place of a field inside, as the file spells its name."""
        return at(self.place, self._misspelt.get(name, name), *keys)

    def take(self, name: str, default: Json = None) -> Json:
        """The value of a field, whatever it is."""
        return self._left.pop(name, default)

    def has(self, name: str) -> bool:
        """Whether the field is set and was not taken yet."""
        return name in self._left

    def has_any(self) -> bool:
        """Whether any set field is left."""
        return bool(self._left)

    def text(self, name: str, default: str = "") -> str:
        """A field that is a string."""
        return self._typed(name, str, "a string", default)

    def maybe_text(self, name: str) -> str | None:
        """A field that is a string, or None."""
        return self._typed(name, str, "a string", None)

    def named(self, name: str, check: Callable[[str, str], T], otherwise: T) -> T:
        """The result of `check` for a string and its place; anything else is not checked further."""
        before = len(self.problems.found)
        text = self.text(name)
        if len(self.problems.found) > before:
            return otherwise
        return self.problems.part(self.at(name), lambda: check(text, self.at(name)), otherwise)

    def items(self, name: str) -> list[Json] | None:
        """A field that is a list, or None."""
        return self._typed(name, list, "a list", None)

    def cases(self, name: str) -> list[Json]:
        """The required list of cases."""
        if not self.has(name):
            self.remember(self.place, f"it has no `{name}`")
        return self.items(name) or []

    def cases_by(self, name: str, read: Callable[[Json, str], Named], *id_of: str) -> list[Named]:
        """The results of `read` for each of the required cases, whose ids must differ."""
        return self.problems.cases(self.cases(name), self.at(name), read, *id_of)

    def each(self, name: str, read: Callable[[Json, str], T]) -> list[T]:
        """The results of `read` for each item of a list field."""
        items = self.items(name)
        return self.problems.each(items, self.at(name), read) if items else []

    def turns(self, name: str, read: Callable[[Json, str], T]) -> list[T]:
        """The results of `read` for each turn; a conversation without turns is remembered as a problem."""
        if self._left.get(name, []) == []:
            place = self.at(name) if self.has(name) else self.place
            self.remember(place, f"it has no turns in `{name}`: the user never speaks")
        return self.each(name, read)

    def read(self, name: str, read: Callable[[Json, str], T], otherwise: T) -> T:
        """The result of `read` for a field, if it is set; what it refuses is remembered."""
        value = self._left.pop(name, None)
        if value is None:
            return otherwise
        place = self.at(name)
        return self.problems.part(place, lambda: read(value, place), otherwise)

    def part(self, read: Callable[[], T], otherwise: T) -> T:
        """The result of `read` for a part of this mapping; what it refuses is remembered."""
        return self.problems.part(self.place, read, otherwise)

    def texts(self, name: str) -> list[str] | None:
        """A field that is a list of strings, or None."""
        found = self.items(name)
        for i, item in enumerate(found or ()):
            if not isinstance(item, str):
                self.remember(self.at(name, i), f"{shown(item)} should be a string")
        return None if found is None else [item for item in found if isinstance(item, str)]

    def mapping(self, name: str) -> dict[str, Json]:
        """A field that is a mapping; an empty one if it is missing."""
        return self._typed(name, dict, "a mapping", {})

    def whole(self, name: str, default: int) -> int:
        """A field that is a whole number."""
        return self._typed(name, int, "a whole number", default)

    def inner(
        self, name: str, known: Iterable[str], means: Mapping[str, str] | None = None
    ) -> "Fields":
        """A field that is a mapping, to be read in the same way."""
        return Fields(self.mapping(name), self.at(name), known, means, self.problems)

    def rest(self, prefix: str = "") -> dict[str, Json]:
        """The known fields that were not read, by path: they are kept unchanged."""
        left = [key for key in self._left if key in self.known]
        return {at(prefix, key): self._left.pop(key) for key in left}

    def free(self, prefix: str = "") -> dict[str, Json]:
        """The user's own fields, by path, where the tool behind the shape keeps them.

        A field that looks like a known one, or that in another shape says what is expected or how a
        case is run, is not one of those.
        """
        own = [
            key
            for key in self._left
            if key not in self.known
            and not is_heeded(_snake(key))
            and not near_name(_snake(key), self.known)
        ]
        return {at(prefix, key): self._left.pop(key) for key in own}

    def refuse_others(self) -> None:
        """Remember every field that was not read as unknown."""
        for key in self._left:
            self.problems.add(unknown_field(self.place, key, self.known, self._means), self.place)
        self._left = {}

    def settle(self) -> None:
        """Raise all problems, including unknown fields."""
        self.refuse_others()
        self.problems.settle()

    def _typed(self, name: str, kind: type, words: str, default: object) -> Any:
        value = self._left.pop(name, None)
        if value is None:
            return default
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            self.remember(self.at(name), f"{shown(value)} should be {words}")
            return default
        return value

    def remember(self, place: str, message: str, fix: str = "") -> None:
        """Remember a problem at a place."""
        self.problems.add(wrong(place, message, fix), place)


def _snake(name: str) -> str:
    return _HUMP.sub(lambda hump: f"_{hump[0].lower()}", name)


# The arguments and results of calls: a null in there is a value like any other.
_VALUES = ("args", "response")


def without_nulls(data: Json) -> Json:
    """The data without fields that are null, which most readers treat as missing."""
    if isinstance(data, Mapping):
        return {
            key: value if key in _VALUES else without_nulls(value)
            for key, value in cast("Mapping[str, Json]", data).items()
            if value is not None
        }
    if isinstance(data, list):
        return [without_nulls(item) for item in cast("list[Json]", data)]
    return data


def only(data: object, known: Sequence[str], where: str) -> Mapping[str, Json]:
    """Whether a mapping has one of a few forms: an extra field means that it does not."""
    fields = Fields(data, where, known, camel=False)
    fields.rest()
    fields.settle()
    return cast("Mapping[str, Any]", data)
