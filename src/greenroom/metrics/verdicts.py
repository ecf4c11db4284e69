"""A judge's answer, parsed strictly: exactly one JSON object of the agreed form, or no answer."""

import json
from typing import Any, Literal, cast

from greenroom.ledger.plain import Json
from greenroom.ledger.records import record

Scale = Literal["boolean", "0-10"]
TOP = 10

_KEYS: dict[Scale, str] = {"boolean": "verdict", "0-10": "score"}
FORMS: dict[Scale, str] = {
    "boolean": '{"reasoning": "<why>", "verdict": true} or {"reasoning": "<why>", "verdict": false}',
    "0-10": '{"reasoning": "<why>", "score": <whole number from 0 to 10>}',
}


class NotAnAnswer(ValueError):
    """What the judge said cannot be taken as a verdict; the text says why, in our words only."""


@record
class Verdict:
    """What a judge concluded: a bool, or a whole number from 0 to 10."""

    reasoning: str
    given: bool | int

    @property
    def value(self) -> float:
        """The verdict on a scale from 0 to 1."""
        return float(self.given) if isinstance(self.given, bool) else self.given / TOP


def schema(scale: Scale) -> dict[str, Json]:
    """The JSON schema of an answer, for models that can be held to one."""
    number: Json = {"type": "integer", "minimum": 0, "maximum": TOP}
    return {
        "type": "object",
        "properties": {
            "reasoning": {"type": "string"},
            _KEYS[scale]: {"type": "boolean"} if scale == "boolean" else number,
        },
        "required": ["reasoning", _KEYS[scale]],
        "additionalProperties": False,
    }


def parse_verdict(text: str, scale: Scale) -> Verdict:
    """The verdict in `text`, which must hold it and nothing else; NotAnAnswer otherwise."""
    answer, key = _object(text), _KEYS[scale]
    if set(answer) != {"reasoning", key}:
        raise NotAnAnswer(f"it must have exactly the keys `reasoning` and `{key}`")
    reasoning, given = answer["reasoning"], answer[key]
    if not isinstance(reasoning, str) or not _is_unicode(reasoning):
        raise NotAnAnswer("`reasoning` must be a text")
    if scale == "boolean" and not isinstance(given, bool):
        raise NotAnAnswer("`verdict` must be true or false")
    if scale == "0-10" and (type(given) is not int or not 0 <= given <= TOP):
        raise NotAnAnswer(f"`score` must be a whole number from 0 to {TOP}")
    return Verdict(reasoning, cast("bool | int", given))


def _object(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text, object_pairs_hook=_unique)
    except NotAnAnswer:
        raise
    except (ValueError, RecursionError) as error:
        raise NotAnAnswer("it must be one JSON object and nothing else") from error
    if not isinstance(found, dict):
        raise NotAnAnswer("it must be a JSON object")
    return cast("dict[str, Any]", found)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise NotAnAnswer("a key is given twice")
    return found


def _is_unicode(text: str) -> bool:
    """Whether a report could be written with it: half a character (a lone surrogate) cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
