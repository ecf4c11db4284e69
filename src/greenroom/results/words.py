"""Words that every text about results uses: counts, names on one line, money and outcomes."""

from collections.abc import Sequence

from greenroom.cases.scores import NotApplicable, Outcome, Score, Unmeasured
from greenroom.results.summary import Summary

_NAMED = 10


def number_of(count: int, noun: str) -> str:
    """A count with its noun: `1 case`, `2 cases`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def shortened(text: str, longest: int) -> str:
    """`text`, or its beginning with a mark that something is missing."""
    return text if len(text) <= longest else f"{text[: longest - 1].rstrip()}…"


def listed(names: Sequence[str]) -> str:
    """The names on one line; if there are many, the first ones and how many more."""
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{', '.join(names[:_NAMED])}{more}"


def dollars(cost: float) -> str:
    """An amount of money with the digits that matter: $12.34, $0.0042; a cost above 0 is never shown as $0."""
    if cost >= 1 or cost == 0:
        return f"${cost:,.2f}"
    return f"${cost:.4f}" if cost >= 0.0001 else "under $0.0001"


def dollars_apart(one: float, other: float) -> tuple[str, str]:
    """Two amounts of money, with as many digits as tell them apart."""
    found = dollars(one), dollars(other)
    if one == other or found[0] != found[1]:
        return found
    digits = next((d for d in range(4, 12) if f"{one:.{d}f}" != f"{other:.{d}f}"), 12)
    return f"${one:.{digits}f}", f"${other:.{digits}f}"


def counted(summary: Summary) -> str:
    """The counts in words; those that are zero are left out, except for passed."""
    counts = summary.by_status.items()
    return ", ".join(f"{n} {status}" for status, n in counts if n or status == "passed")


def outcome_text(outcome: Outcome) -> str:
    """An outcome in one word."""
    match outcome:
        case Score():
            return f"{outcome.value:.2f}"
        case NotApplicable():
            return "n/a"
        case Unmeasured():
            return "unmeasured"
