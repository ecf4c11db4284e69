"""What is sent and where the answer is: a JSON template, and a path such as `$.reply[0].text`."""

import re
from collections.abc import Mapping
from typing import Any, cast

from greenroom.backends.native.history import as_text
from greenroom.errors import BadAgent
from greenroom.ledger.plain import Json, plain

NAMES = ("message", "messages", "state", "run_id")
_PLACE = re.compile(r"\{\{\s*(\w*)\s*\}\}")
_STEP = re.compile(r"\.([A-Za-z_][\w-]*)|\[(\d+)\]|\[['\"]([^'\"\]]+)['\"]\]")

Path = tuple[str | int, ...]


class Template:
    """JSON with places to fill. A text that is nothing but a place becomes the value itself."""

    __slots__ = ("given",)

    def __init__(self, given: Json) -> None:
        self.given = plain(given, "the template")
        for name in _PLACE.findall(as_text(self.given)):
            if name not in NAMES:
                raise BadAgent(
                    f"the template has a place for {name!r}, but can only be given "
                    f"{', '.join(NAMES)}."
                )

    def filled(self, values: Mapping[str, Json]) -> Json:
        """The template with the values in their places."""
        return _filled(self.given, values)


def _filled(given: Any, values: Mapping[str, Json]) -> Json:
    if isinstance(given, dict):
        told = cast("dict[str, Any]", given)
        return {key: _filled(value, values) for key, value in told.items()}
    if isinstance(given, list):
        return [_filled(value, values) for value in cast("list[Any]", given)]
    if not isinstance(given, str):
        return given
    whole = _PLACE.fullmatch(given)
    if whole:
        return plain(values[whole[1]])
    # One pass: what a user says is never read as a place.
    return _PLACE.sub(lambda found: as_text(values[found[1]]), given)


def answer_path(text: str) -> Path:
    """The steps of a path; "" and "$" mean the whole reply. BadAgent if it is none."""
    rest = text.removeprefix("$")
    if rest and not rest.startswith((".", "[")):
        rest = f".{rest}"
    steps: list[str | int] = []
    at = 0
    while at < len(rest):
        step = _STEP.match(rest, at)
        if step is None:
            raise BadAgent(
                f"answer={text!r} is no path into a reply; write it like '$.choices[0].text'."
            )
        steps.append(int(step[2]) if step[2] is not None else step[1] or step[3])
        at = step.end()
    return tuple(steps)


def found_at(reply: Any, path: Path) -> Json:
    """What lies at the path; LookupError if there is nothing."""
    for step in path:
        kind = list if isinstance(step, int) else dict
        if not isinstance(reply, kind):
            raise KeyError(step)
        reply = cast(Any, reply)[step]
    return reply
