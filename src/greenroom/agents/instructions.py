"""Instructions with places for what the agent declares to read: "Resolve the {intent}."."""

import json
import re
from collections.abc import Mapping

from greenroom.agents.places import value_of
from greenroom.agents.schema import missing_key
from greenroom.errors import BadAgent
from greenroom.ledger.changes import State
from greenroom.ledger.plain import Json
from greenroom.ledger.query import MISSING, split_place

_PLACEHOLDER = re.compile(r"\{([A-Za-z_][\w.-]*)\}")


def placeholders(instructions: str, reads: tuple[str, ...]) -> Mapping[str, str]:
    """The declared places that the instructions name in braces, by the name used."""
    if "{" not in instructions:
        return {}
    known = _names(reads)
    used = dict.fromkeys(_PLACEHOLDER.findall(instructions))
    return {name: known[name][0] for name in used if name in known}


def check_placeholders(instructions: str, reads: tuple[str, ...], what: str) -> None:
    """Refuse a name in braces that may mean several of the declared places."""
    if not isinstance(instructions, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise BadAgent(
            f"the instructions of {what} are {instructions!r}; give a string. What changes from turn to "
            f"turn belongs in the state: reads=, and {{name}} in the string."
        )
    known = _names(reads)
    for name in placeholders(instructions, reads):
        if len(known[name]) > 1:
            raise BadAgent(
                f"the instructions of {what} name {{{name}}}, which may be any of "
                f"{', '.join(known[name])}. Name one by its place: {{{known[name][0]}}}."
            )


def filled(instructions: str, reads: tuple[str, ...], state: State, what: str) -> str:
    """The instructions with the state's values at the declared places; StateKeyError if one is missing."""
    values = {
        name: _text(_value(place, state, f"{what} reads {{{name}}} for its instructions"))
        for name, place in placeholders(instructions, reads).items()
    }
    # In one pass: braces in the inserted values are not replaced.
    return _PLACEHOLDER.sub(lambda found: values.get(found[1], found[0]), instructions)


def _names(reads: tuple[str, ...]) -> dict[str, list[str]]:
    """The names of a place in braces: in full, without its scope, or by its last key."""
    known: dict[str, list[str]] = {}
    for place in reads:
        _, path = split_place(place)
        for name in dict.fromkeys((place, ".".join(path), path[-1])):
            known.setdefault(name, []).append(place)
    return {name: [name] if name in reads else places for name, places in known.items()}


def _value(place: str, state: State, what: str) -> Json:
    found = value_of(place, state)
    if found is MISSING:
        raise missing_key(place, state, what)
    return found


def _text(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
