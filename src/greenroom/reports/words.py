"""How values are written for a reader: durations, shares, prices, calls, and text from outside."""

import json
from collections.abc import Mapping
from typing import Protocol

from greenroom.ledger.plain import Json
from greenroom.ledger.questions import Spending
from greenroom.ledger.redaction import without_secrets
from greenroom.ledger.safe_text import harmless
from greenroom.results.statistics.intervals import Interval, percent
from greenroom.results.words import dollars


def printable(text: str) -> str:
    """`text` without secrets and control characters, as it may be printed anywhere."""
    return harmless(without_secrets(text))


def duration(seconds: float) -> str:
    """A time in the unit a person would choose: 12 ms, 3.4 s, 2 m 05 s, 1 h 10 m."""
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} m {rest:02} s"
    return f"{minutes // 60} h {minutes % 60:02} m"


def rate_text(share: float, interval: Interval | None) -> str:
    """A pass rate with its interval, where that is known: 82 % ± 6."""
    return percent(share) if interval is None else str(interval)


def price(cost: float | None) -> str:
    """An amount of money, if it is known."""
    return "unknown" if cost is None else dollars(cost)


class Priced(Protocol):
    """What something cost if that is known, and the known minimum."""

    @property
    def cost(self) -> float | None: ...

    @property
    def known_cost(self) -> float: ...


def at_least(spent: Priced) -> str:
    """What was spent; if that is unknown, the known minimum."""
    if spent.cost is not None:
        return dollars(spent.cost)
    return f"unknown, at least {dollars(spent.known_cost)}" if spent.known_cost else "unknown"


def tokens(spent: Spending) -> tuple[str, str]:
    """Tokens read and written."""
    if spent.usage is None:
        return "unknown", "unknown"
    return f"{spent.usage.input:,}", f"{spent.usage.output:,}"


def as_called(tool: str, args: Mapping[str, Json]) -> str:
    """A call as one would type it."""
    return f"{tool}({', '.join(f'{name}={as_json(value)}' for name, value in args.items())})"


def as_json(value: Json) -> str:
    """A value on one line."""
    return json.dumps(value, ensure_ascii=False, default=str)
