"""Ledgers made comparable: two runs of one case differ in nothing but times and random names."""

import json
from typing import Any, cast

from msgspec import structs

from greenroom.ledger.events import Remembered
from greenroom.ledger.ledger import Ledger

_TIMES = ("at", "seconds")


def timeless(ledger: Ledger) -> list[dict[str, Any]]:
    """The events as JSON, without times and a framework's private memory; ids become numbers.

    Frameworks make up ids of their own. Each is replaced by its order of appearance, so that two
    ledgers agree when they tell the same story.
    """
    ids: dict[str, str] = {}
    kept = Ledger()
    for event in ledger:
        if not isinstance(event, Remembered):
            kept.append(structs.replace(event, seq=-1), at=0.0)
    return [_renamed(json.loads(line), ids) for line in kept.dumps().splitlines()]


def _renamed(value: Any, ids: dict[str, str]) -> Any:
    if isinstance(value, list):
        return [_renamed(item, ids) for item in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    return {
        key: _number(item, ids) if _is_id(key, item) else _renamed(item, ids)
        for key, item in cast("dict[str, Any]", value).items()
        if key not in _TIMES
    }


def _is_id(key: Any, value: Any) -> bool:
    return key in ("id", "call_id", "yield_id") and isinstance(value, str) and bool(value)


def _number(name: str, ids: dict[str, str]) -> str:
    return ids.setdefault(name, f"id-{len(ids) + 1}")
