"""What a judge said, read strictly: exactly one JSON object, or no answer at all."""

import json
from collections.abc import Collection, Mapping
from typing import Any, NoReturn, cast

from greenroom.ledger.plain import Json

_LONGEST = 1_000_000


class NotAnAnswer(ValueError):
    """What the judge said cannot be taken as a verdict; the text says why, in our words only.

    It is told to the judge when it is asked again, outside the evidence. So it must never quote
    the answer, which may quote the agent under test.
    """


def one_object(text: str) -> dict[str, Json]:
    """The object that `text` is, white space around it aside; NotAnAnswer if it is anything else."""
    if len(text) > _LONGEST:
        raise NotAnAnswer(f"it must not be longer than {_LONGEST} characters")
    try:
        found = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_number)
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
