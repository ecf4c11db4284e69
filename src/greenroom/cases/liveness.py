"""Which parts of a case's data represent code: they cannot be restored from a file."""

from collections.abc import Mapping
from typing import Any, TypeGuard

from greenroom.ledger.plain import Json, is_array, is_object
from greenroom.ledger.query import holds_code

LIVE_FIELDS = ("user", "bridge", "agent", "model")
QUERIES = ("tools", "state", "state_after", "state_matches")


def asking_parts(data: Mapping[str, Any]) -> dict[str, dict[str, Json]]:
    """The parts of a case's data that hold queries, by their place."""
    found = {name: data.get(name) for name in ("expect", "stop")}
    turns = data.get("turns")
    for i, turn in enumerate(turns if is_array(turns) else ()):
        if is_object(turn):
            found[f"turns[{i}].expect"] = turn.get("expect")
    return {place: part for place, part in found.items() if is_object(part)}


def queries_with_code(data: Mapping[str, object]) -> list[str]:
    """The places of queries that hold a function."""
    parts = asking_parts(data).items()
    return [f"{at}.{name}" for at, part in parts for name in QUERIES if holds_code(part.get(name))]


def is_code(metric: Json) -> "TypeGuard[dict[str, Json]]":
    """Whether a metric was written as code, not by its name in the registry."""
    return is_object(metric) and "criterion" not in metric


def is_live(mock: Json) -> bool:
    """Whether the data of a mock represents code; its answers may hold anything."""
    match mock:
        case {"live": _}:
            return True
        case {"in_turn": [*answers]}:
            return any(is_live(answer) for answer in answers)
        case {"by_args": [*pairs], **rest}:
            whole = [pair for pair in pairs if is_array(pair) and len(pair) == 2]
            answers = [answer for _, answer in whole]
            is_chosen_by_code = any(holds_code(args) for args, _ in whole)
            return is_chosen_by_code or any(map(is_live, [*answers, *rest.values()]))
        case _:
            return False
