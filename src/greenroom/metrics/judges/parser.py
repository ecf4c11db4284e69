"""What a judge said, read strictly: exactly one JSON object, or no answer at all.

Models like to put their JSON into a code fence. One fence around the whole answer is taken off;
nothing else may stand beside the object.
"""

import json
import re
from collections.abc import Collection, Mapping
from typing import Any, NoReturn, cast

from greenroom.ledger.plain import Json

_LONGEST = 1_000_000
_FENCED = re.compile(r"(`{3,}|~{3,})(?:json)?\s*(\{.*\})\s*\1", re.DOTALL | re.IGNORECASE)


class NotAnAnswer(ValueError):
    """What the judge said cannot be taken as a verdict; the text says why, in our words only.

    It is told to the judge when it is asked again, outside the evidence. So it must never quote
    the answer, which may quote the agent under test.
    """


def one_object(text: str) -> dict[str, Json]:
    """The object that `text` is, but for white space and one code fence around it; else NotAnAnswer."""
    if len(text) > _LONGEST:
        raise NotAnAnswer(f"it must not be longer than {_LONGEST} characters")
    fenced = _FENCED.fullmatch(text.strip())
    try:
        found = json.loads(
            fenced[2] if fenced else text, object_pairs_hook=_unique, parse_constant=_no_number
        )
    except NotAnAnswer:
        raise
    except (ValueError, RecursionError) as error:
        raise NotAnAnswer("it must be one JSON object and nothing else") from error
    if not isinstance(found, dict):
        raise NotAnAnswer("it must be a JSON object")
    return cast("dict[str, Json]", found)


def with_keys(answer: Mapping[str, Json], keys: Collection[str]) -> Mapping[str, Json]:
    """The answer, if it has exactly these keys."""
    if set(answer) != set(keys):
        raise NotAnAnswer(f"it must have exactly the keys {_listed(keys)}")
    return answer


def text_at(answer: Mapping[str, Json], key: str) -> str:
    """The text at `key`, if a report could be written with it: half a character cannot."""
    found = answer[key]
    if not isinstance(found, str) or not is_unicode(found):
        raise NotAnAnswer(f"`{key}` must be a text")
    return found


def is_unicode(text: str) -> bool:
    """Whether the text can be written down; a lone surrogate cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise NotAnAnswer("a key is given twice")
    return found


def _no_number(_: str) -> NoReturn:
    raise NotAnAnswer("NaN and Infinity are no JSON")


def _listed(keys: Collection[str]) -> str:
    *head, last = [f"`{key}`" for key in keys]
    return f"{', '.join(head)} and {last}" if head else last
