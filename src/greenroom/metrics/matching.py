"""When a count suffices."""

from msgspec import Struct

from greenroom.errors import BadMetric
from greenroom.ledger.query import Predicate, holds


class Bounds(Struct, frozen=True):
    """How many there should be."""

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
            raise BadMetric(f"{where} counts with {number!r}; give a whole number from 0.")
    if at_most is None and not at_least:
        raise BadMetric(f"{where} could never fail; give at_least=1 or more, or at_most=.")
    if at_most is not None and (at_least or 0) > at_most:
        raise BadMetric(
            f"{where} wants at least {at_least} and at most {at_most}: no count is both."
        )
    return Bounds(at_least, at_most)


def times(count: int) -> str:
    """A count as people say it."""
    return "once" if count == 1 else "twice" if count == 2 else f"{count} times"
