"""Makes ledgers comparable: two trials of one case differ only in times and random names."""

import json
from typing import Any, cast

from msgspec import structs

from greenroom.ledger.events import ModelReplied, Remembered
from greenroom.ledger.ledger import Ledger

_TIMES = ("at", "seconds")
_IDS = ("id", "call_id", "yield_id")


def timeless(ledger: Ledger) -> list[dict[str, Any]]:
    """The events as JSON, without times and a framework's private memory; ids become numbers.

    Frameworks make up their own ids. Each is replaced by its order of appearance, so that two ledgers of the
    same events are equal.
    """
    ids: dict[str, str] = {}
    kept = Ledger()
    for event in ledger:
        if not isinstance(event, Remembered):
            timed = {"first": None} if isinstance(event, ModelReplied) else {}
            kept.append(structs.replace(event, seq=-1, **timed), at=0.0)
    return [_renamed(json.loads(line), ids) for line in kept.dumps().splitlines()]


def _renamed(value: object, ids: dict[str, str]) -> Any:
    if isinstance(value, list):
        return [_renamed(item, ids) for item in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    renamed: dict[str, Any] = {}
    for key, item in cast("dict[str, Any]", value).items():
        if key in _TIMES:
            continue
        if key in _IDS and isinstance(item, str) and item:
            renamed[key] = ids.setdefault(item, f"id-{len(ids) + 1}")
        else:
            renamed[key] = _renamed(item, ids)
    return renamed
