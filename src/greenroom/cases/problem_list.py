"""All that is wrong with what is read, remembered part by part and raised at once."""

from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar

from greenroom.cases.places import at, problems_of, shown, wrong
from greenroom.cases.problems import Problem, listed
from greenroom.cases.users import never_speaks
from greenroom.errors import BadFile, BadInput
from greenroom.ledger.plain import Json, is_array

MAX_CASES = 50_000
_ENOUGH = 1000
"""So many problems are told; a file with more is no better known by them."""


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


T = TypeVar("T")
Named = TypeVar("Named", bound=_Named)


class ProblemList:
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
                self.add(error, at(place, i))
        return found

    def cases(
        self, items: Json, place: str, read: Callable[[Json, str], Named], *id_field: str
    ) -> list[Named]:
        """What `read` makes of each item; an id that an earlier one has is remembered as well.

        `id_field` leads from a case to its id. Cases that cannot be read do not move the others.
        """
        named: list[tuple[str, str]] = []

        def noted(item: Json, where: str) -> Named:
            case = read(item, where)
            named.append((case.id, at(where, *id_field)))
            refuse_silence(case, where)
            return case

        found = self.each(items, place, noted)
        self.unique(named)
        return found

    def part(self, place: str, read: Callable[[], T], otherwise: T) -> T:
        """What `read` gives; what it refuses is remembered."""
        try:
            return read()
        except BadInput as error:
            self.add(error, place)
            return otherwise

    def add(self, error: BadInput, place: str) -> None:
        """Remember what an error says is wrong; it happened at `place` unless it says better."""
        self.problems += problems_of(error, place)
        if len(self.problems) >= _ENOUGH:
            self.settle()

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
