"""Votes: items asked about several times, all of them or until the verdict is certain."""

from collections.abc import Callable, Mapping, Sequence
from math import fsum

from msgspec import Struct, field

from greenroom.ledger.plain import Json
from greenroom.metrics.judges.bench import Aggregate, Hearing, Question, together
from greenroom.metrics.judges.forms import Verdict

Values = Mapping[str, float]
Decide = Callable[[Values], bool]
"""Whether these values pass. It must be monotone: a higher value never makes it fail."""

_HAIR = 1e-9


class Item(Struct, frozen=True):
    """What is voted on: the question about it, and its own evidence."""

    id: str
    words: str = ""
    evidence: Mapping[str, Json] = field(default_factory=dict[str, Json])
    bar: float = 0.5
    """The value at which a single vote is a yes."""
    ties: bool = False
    """Whether a vote of 0.5 is for neither side, so that a majority of them is worth 0.5."""


AskOne = Callable[[Item, int], Question[Verdict]]
AskSeveral = Callable[[Sequence[Item], int], Question[dict[str, Verdict]]]


class Poll(Struct, frozen=True, kw_only=True):
    """The items to vote on, and when they pass; samples are taken in groups of `stride`."""

    items: Sequence[Item]
    question: AskOne
    decide: Decide
    sheet: AskSeveral | None = None
    stride: int = 1

    async def held(self, hearing: Hearing) -> "Votes":
        """Take all samples; with `early_stop`, only until no further vote could change the verdict."""
        bench = hearing.bench
        votes = Votes(self.items, bench.samples, bench.aggregate, bench.early_stop)
        # Even a verdict that is certain in advance gets one vote: no value without a measurement.
        while not votes.cast or not votes.decided(self.decide):
            needed = votes.samples
            if votes.early_stop:
                # As many at once as are certainly needed, whatever they say.
                needed = -(-votes.needed(self.decide) // self.stride) * self.stride
            due = range(votes.cast, min(votes.cast + needed, votes.samples))
            for verdicts in await together(*(self._round(hearing, sample) for sample in due)):
                votes.add(verdicts)
        return votes

    async def _round(self, hearing: Hearing, sample: int) -> dict[str, Verdict]:
        """One vote on every item: asked one by one, or several at once if the bench says so."""
        size = hearing.bench.batch
        if self.sheet is None or size < 2 or len(self.items) < 2:
            asked = [hearing.ask(self.question(item, sample), sample) for item in self.items]
            ids = [item.id for item in self.items]
            return dict(zip(ids, await together(*asked), strict=True))
        parts = [self.items[at : at + size] for at in range(0, len(self.items), size)]
        sheets = [hearing.ask(self.sheet(part, sample), sample) for part in parts]
        return {key: found for sheet in await together(*sheets) for key, found in sheet.items()}


class Votes:
    """The votes cast so far on each item."""

    def __init__(
        self,
        items: Sequence[Item],
        samples: int,
        aggregate: Aggregate,
        early_stop: bool = False,
    ) -> None:
        self.items = items
        self.samples = samples
        self.aggregate: Aggregate = aggregate
        self.early_stop = early_stop
        self.cast = 0
        self.by_item: dict[str, list[Verdict]] = {item.id: [] for item in items}

    def add(self, verdicts: Mapping[str, Verdict]) -> None:
        """Add one vote on every item."""
        self.cast += 1
        for item, verdict in verdicts.items():
            self.by_item[item].append(verdict)

    def concluded(self, value: float, passed: bool) -> float:
        """The value of a metric that votes, given the value of the votes cast.

        Which votes an early stop leaves out depends on their order; the verdict does not. So with
        an early stop the value is the verdict: 1 or 0.
        """
        return float(passed) if self.early_stop else value

    def details(self) -> dict[str, Json]:
        """How far the votes agree, and how many there were."""
        found: dict[str, Json] = {"agreement": self.agreement(), "samples": self.samples}
        if self.early_stop:
            found["votes"] = {"cast": self.cast, "of": self.samples}
        return found

    def values(self) -> dict[str, float]:
        """Each item's value from the votes cast."""
        return {item.id: self._value(item, 0.0, self.cast) for item in self.items}

    def decided(self, decide: Decide, more: int = 0, each: float = 0.0) -> bool:
        """Whether the verdict is certain once `more` votes of the value `each` have come in."""
        left = self.samples - self.cast - more
        return left <= 0 or decide(self._bound(more, each, 0.0, left)) == decide(
            self._bound(more, each, 1.0, left)
        )

    def needed(self, decide: Decide) -> int:
        """The least number of votes after which the verdict may be certain."""
        for more in range(1, self.samples - self.cast):
            if self.decided(decide, more, 0.0) or self.decided(decide, more, 1.0):
                return more
        return self.samples - self.cast

    def _bound(self, more: int, each: float, rest: float, left: int) -> Values:
        """The values after `more` votes of `each` and `left` votes of `rest`."""
        extra = more * each + left * rest
        return {item.id: self._value(item, extra, self.samples) for item in self.items}

    def _value(self, item: Item, extra: float, total: int) -> float:
        """The value of an item, with further votes that add up to `extra`."""
        if self.aggregate == "mean":
            # Summed exactly: the order of the votes must not change the last digit.
            return (fsum(v.value for v in self.by_item[item.id]) + extra) / total
        # Further votes are 0 or 1, so their sum is the number of yes votes among them.
        if not item.ties:
            return float(2 * (self.yes(item) + extra) > total)
        cast = [vote.value for vote in self.by_item[item.id]]
        against = cast.count(0.0) + total - len(cast) - extra
        return (1 + (2 * (cast.count(1.0) + extra) > total) - (2 * against > total)) / 2

    def yes(self, item: Item) -> int:
        """How many of the votes on this item reach its bar."""
        return sum(reaches(v.value, item.bar) for v in self.by_item[item.id])

    def agreement(self) -> float:
        """The share of votes on the stronger side, on average over the items."""
        return fsum(map(self.agreement_on, self.items)) / len(self.items)

    def agreement_on(self, item: Item) -> float:
        """The share of the votes on this item that are on the stronger side."""
        yes = self.yes(item)
        return max(yes, self.cast - yes) / self.cast


def share(values: Values) -> float:
    """The mean of the values."""
    return fsum(values.values()) / len(values)


def reaches(value: float, threshold: float) -> bool:
    """Whether a value is at least the threshold; allows for rounding errors in sums of fractions."""
    return value >= threshold - _HAIR


def deciding(verdicts: Sequence[Verdict], bar: float, passed: bool) -> str:
    """The reasoning of the first vote on the side that won."""
    sided = [v for v in verdicts if reaches(v.value, bar) == passed]
    return (sided or verdicts)[0].reasoning
