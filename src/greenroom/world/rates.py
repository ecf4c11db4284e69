"""How often a model may be asked, where that is known: `openai:gpt-x=8000/min`."""

import re
from collections.abc import Collection, Mapping
from typing import Any, Final, cast

Rates = Mapping[str, float]
"""How often each model may be asked, in calls a minute."""

_PER_MINUTE: Final = {"s": 60.0, "sec": 60.0, "min": 1.0, "h": 1 / 60, "hour": 1 / 60}
_RATE: Final = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)(?:/(\w+))?", re.ASCII)


def read_rate(given: object) -> float | None:
    """Calls a minute, from `8000/min`, `20/s`, `500/h` or a number; None if it is not one of these."""
    if isinstance(given, int | float) and not isinstance(given, bool):
        return float(given) if 0 < given < 10**9 else None
    found = _RATE.fullmatch(given) if isinstance(given, str) else None
    if found is None or (unit := _PER_MINUTE.get(found[2] or "min")) is None:
        return None
    return float(found[1]) * unit or None


def read_rates(given: Mapping[str, object] | Collection[str]) -> Rates | None:
    """The rates by model, from a mapping or from lines like `openai:gpt-x=8000/min`; None if one is not valid."""
    rates: dict[str, float] = {}
    is_named = isinstance(given, Mapping)
    named = cast("Mapping[str, Any]", given) if is_named else dict(map(_split, given))
    for model, written in named.items():
        if not model or (rate := read_rate(written)) is None:
            return None
        rates[model] = rate
    return rates


def _split(written: str) -> tuple[str, str]:
    model, _, rate = written.rpartition("=")
    return model, rate
