"""What a user may answer when asked for an approval."""

import json

from greenroom.ledger.plain import Json, is_object

_SHAPE = 'answer true or false, or {"approved": false, "reason": "..."}'
_WORDS = {"true": True, "yes": True, "false": False, "no": False}


def check_approved(value: Json, strict: bool) -> Json:
    """An approval as Greenroom's own agents take it: a bool, or `approved` and a `reason`; else ValueError."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _read(value, strict)
    if not is_object(value):
        raise ValueError(_SHAPE)
    # Users of other frameworks say `confirmed` and `message`.
    said = {{"confirmed": "approved", "message": "reason"}.get(k, k): v for k, v in value.items()}
    is_clear = isinstance(said.get("approved"), bool) and isinstance(said.get("reason", ""), str)
    if not is_clear or not said.keys() <= {"approved", "reason"}:
        raise ValueError(_SHAPE)
    return said


def _read(text: str, strict: bool) -> Json:
    """Parse an answer given as text: JSON, or yes or no unless `strict`."""
    if not strict and text.strip().rstrip(".!").lower() in _WORDS:
        return _WORDS[text.strip().rstrip(".!").lower()]
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if isinstance(found, bool | dict):
        return check_approved(found, strict)  # pyright: ignore[reportUnknownArgumentType]
    raise ValueError(_SHAPE)
