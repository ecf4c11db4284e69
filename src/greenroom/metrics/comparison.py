"""Compares an expected sequence with the actual one: what is missing, extra, misplaced or different."""

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from enum import Enum
from itertools import groupby
from typing import Generic, TypeVar

from msgspec import Struct, field

from greenroom.errors import BadMetric
from greenroom.ledger.choices import choice_problem
from greenroom.ledger.plain import Json, is_array

Fitting = Sequence[Sequence[int]]
"""For each wanted item the positions of the made items that fit it, ascending."""

Pairs = dict[int, int]
"""The position of a wanted item, and that of the made item it is paired with."""


def pairs_in_order(fitting: Fitting, made: int) -> Pairs:
    """As many pairs as possible that do not cross: a longest common subsequence."""
    # best[i][j]: how many pairs the wanted items from i and the made items from j can form.
    best = [[0] * (made + 1) for _ in range(len(fitting) + 1)]
    for i in range(len(fitting) - 1, -1, -1):
        fits, row, below = set(fitting[i]), best[i], best[i + 1]
        for j in range(made - 1, -1, -1):
            row[j] = below[j + 1] + 1 if j in fits else max(below[j], row[j + 1])
    found: Pairs = {}
    i = j = 0
    while i < len(fitting) and j < made:
        if j in fitting[i]:
            found[i], i, j = j, i + 1, j + 1
        elif best[i + 1][j] >= best[i][j + 1]:
            i += 1
        else:
            j += 1
    return found


def most_pairs(fitting: Fitting, begin: Pairs | None = None) -> Pairs:
    """As many pairs as possible in any order, each item in one pair only.

    Items that are paired in `begin` stay paired, though perhaps with another.
    """
    pairs = dict(begin or {})
    taken = {j: i for i, j in pairs.items()}
    for start in range(len(fitting)):
        if start not in pairs:
            _pair(start, fitting, pairs, taken)
    return pairs


def _pair(start: int, fitting: Fitting, pairs: Pairs, taken: dict[int, int]) -> None:
    """Pair `start`, giving others another partner where that helps (an augmenting path)."""
    came_from: dict[int, int] = {}
    waiting = deque([start])
    while waiting:
        i = waiting.popleft()
        for j in fitting[i]:
            if j in came_from:
                continue
            came_from[j] = i
            if j in taken:
                waiting.append(taken[j])
                continue
            free: int | None = j
            while free is not None:
                owner = came_from[free]
                before = pairs.get(owner)
                pairs[owner], taken[free] = free, owner
                free = before
            return


def in_order(pairs: Pairs) -> set[int]:
    """The wanted items of the most pairs that do not cross (a longest increasing sequence)."""
    ends: list[int] = []
    tails: list[int] = []
    previous: dict[int, int | None] = {}
    for i in sorted(pairs):
        place = bisect_left(ends, pairs[i])
        previous[i] = tails[place - 1] if place else None
        ends[place : place + 1] = [pairs[i]]
        tails[place : place + 1] = [i]
    found: set[int] = set()
    last = tails[-1] if tails else None
    while last is not None:
        found.add(last)
        last = previous[last]
    return found


Want = TypeVar("Want")
Made = TypeVar("Made")


class MatchType(Enum):
    """How a sequence of calls is compared with the expected one, and what its value is."""

    EXACT = "the same calls in the same places; the share of places, 0 if there are more or fewer"
    STRICT = "as EXACT, but calls that one model reply asked for may be in any order"
    ADK = "as EXACT, but only 1 or 0 for each turn"
    IN_ORDER = "the expected calls in order; others may come between them"
    ANY_ORDER = "the expected calls in any order; others may come between them"
    UNORDERED = "the expected calls and no others, in any order"
    SUPERSET = "at least the expected calls"
    SUBSET = "only expected calls"


def checked_match(given: object, factory: str) -> MatchType:
    """The match type of this name, in any case."""
    if isinstance(given, MatchType):
        return given
    name = (
        given.strip().upper().replace("-", "_").replace(" ", "_") if isinstance(given, str) else ""
    )
    if name in MatchType.__members__:
        return MatchType[name]
    raise BadMetric(f"{factory}(...): match_type={choice_problem(given, MatchType.__members__)}")


class Sides(Struct, Generic[Want, Made], frozen=True):
    """The two sequences, and how their items are compared and shown."""

    wanted: Sequence[Want]
    made: Sequence[Made]
    fits: Callable[[Want, Made], bool]
    alike: Callable[[Want, Made], bool]
    """Whether a made item is a failed attempt at a wanted one, rather than something else."""
    show_wanted: Callable[[Want], str]
    show_made: Callable[[Made], str]
    groups: Sequence[int] = ()
    """The group of each made item, for those that one reply asked for; empty if there are none."""

    def share(self, match: MatchType) -> float:
        """How well the made sequence matches the wanted one, from 0 to 1. An empty wanted sequence allows none."""
        wanted, made = len(self.wanted), len(self.made)
        if not wanted or not made:
            return float(wanted == made or (wanted > 0 and match is MatchType.SUBSET))
        match match:
            case MatchType.EXACT | MatchType.ADK:
                if wanted != made:
                    return 0.0
                share = sum(map(self.fits, self.wanted, self.made)) / wanted
                return share if match is MatchType.EXACT else float(share == 1)
            case MatchType.STRICT:
                return self._in_groups() / wanted if wanted == made else 0.0
            case MatchType.IN_ORDER:
                return len(pairs_in_order(self.fitting(), made)) / wanted
            case MatchType.ANY_ORDER | MatchType.SUPERSET:
                return len(most_pairs(self.fitting())) / wanted
            case MatchType.SUBSET:
                return len(most_pairs(self.fitting())) / made
            case MatchType.UNORDERED:
                return len(most_pairs(self.fitting())) / max(wanted, made)

    def fitting(self) -> Fitting:
        """For each wanted item the positions of the made items that fit it."""
        return [
            [j for j, made in enumerate(self.made) if self.fits(wanted, made)]
            for wanted in self.wanted
        ]

    def _in_groups(self) -> int:
        """How many fit if those that one reply asked for may change places."""
        fitting, count, begin = self.fitting(), 0, 0
        for _, group in groupby(self.groups or range(len(self.made))):
            end = begin + len(list(group))
            here = [[j for j in row if begin <= j < end] for row in fitting[begin:end]]
            count += len(most_pairs(here))
            begin = end
        return count

    def difference(self) -> "Difference":
        """Every difference, regardless of the match type."""
        fitting = self.fitting()
        # Where nothing fits there is nothing to pair.
        pairs = most_pairs(fitting, pairs_in_order(fitting, len(self.made))) if any(fitting) else {}
        unmet = [i for i in range(len(self.wanted)) if i not in pairs]
        left = sorted(set(range(len(self.made))) - set(pairs.values()))
        alike = [[j for j in left if self.alike(self.wanted[i], self.made[j])] for i in unmet]
        ordered = in_order(pairs) if pairs else ()
        return Difference(
            wanted=[self.show_wanted(want) for want in self.wanted],
            made=[self.show_made(made) for made in self.made],
            ordered={pairs[i]: i for i in ordered},
            moved={j: i for i, j in pairs.items() if i not in ordered},
            tried={j: unmet[row] for row, j in most_pairs(alike).items()},
        )


class Difference(Struct, frozen=True, kw_only=True):
    """Both sequences in words, and for each made position the wanted position that it belongs to."""

    wanted: list[str]
    made: list[str]
    ordered: dict[int, int] = field(default_factory=dict[int, int])
    """In the right order."""
    moved: dict[int, int] = field(default_factory=dict[int, int])
    """Expected, but elsewhere."""
    tried: dict[int, int] = field(default_factory=dict[int, int])
    """Expected with other arguments."""

    @property
    def missing(self) -> list[str]:
        """What was expected and not even attempted."""
        return [self.wanted[i] for i in self._missing()]

    def _missing(self) -> list[int]:
        found = {*self.ordered.values(), *self.moved.values(), *self.tried.values()}
        return [i for i in range(len(self.wanted)) if i not in found]

    @property
    def extra(self) -> list[str]:
        """What was not expected."""
        known = {*self.ordered, *self.moved, *self.tried}
        return [text for j, text in enumerate(self.made) if j not in known]

    @property
    def misplaced(self) -> list[str]:
        """What was expected, but earlier or later."""
        places = sorted(self.moved.items())
        return [f"{self.made[j]} (place {j + 1}, expected in place {i + 1})" for j, i in places]

    @property
    def wrong_arguments(self) -> list[str]:
        """What was called as expected, with other arguments."""
        places = sorted(self.tried.items())
        return [f"{self.made[j]} instead of {self.wanted[i]}" for j, i in places]

    @property
    def details(self) -> dict[str, Json]:
        """Every kind, as JSON."""
        return {
            "missing": [*self.missing],
            "extra": [*self.extra],
            "misplaced": [*self.misplaced],
            "wrong_arguments": [*self.wrong_arguments],
        }

    def problems(self, match: MatchType = MatchType.EXACT) -> list[str]:
        """The differences that count for this match type, by kind."""
        forgiven = _FORGIVEN.get(match, ())
        if not self.wanted:
            forgiven = [kind for kind in forgiven if kind != "extra"]
        return problems_of(self.details, forgiven)

    def lines(self) -> list[str]:
        """The made sequence as a diff: `-` missing, `+` extra, `>` misplaced, `~` other arguments."""
        found: list[str] = []
        missing, last = self._missing(), -1
        for j, text in enumerate(self.made):
            if j in self.ordered:
                found += [f"- {self.wanted[i]}" for i in missing if last < i < self.ordered[j]]
                last = self.ordered[j]
            mark = " " if j in self.ordered else ">" if j in self.moved else "~"
            found.append(f"{mark if mark != '~' or j in self.tried else '+'} {text}")
        return found + [f"- {self.wanted[i]}" for i in missing if i > last]


def problems_of(kinds: Mapping[str, Json], forgiven: Collection[str] = ()) -> list[str]:
    """The differences in words, kind by kind."""
    return [
        f"{kind.replace('_', ' ')} {', '.join(map(str, found))}"
        for kind, found in kinds.items()
        if is_array(found) and found and kind not in forgiven
    ]


_FORGIVEN: dict[MatchType, tuple[str, ...]] = {
    MatchType.IN_ORDER: ("extra",),
    MatchType.ANY_ORDER: ("extra", "misplaced"),
    MatchType.SUPERSET: ("extra", "misplaced"),
    MatchType.UNORDERED: ("misplaced",),
    MatchType.SUBSET: ("missing", "misplaced"),
}
