"""What a node declares that it reads and writes: places in the state, as text."""

from collections.abc import Iterable
from typing import Any, TypeGuard

from greenroom.errors import BadAgent, BadQuery
from greenroom.ledger.query import place_text

Places = Any
"""One place or several, each a text or a field of a schema (which type checkers take for its value)."""


def declared_places(given: Places, what: str) -> tuple[str, ...]:
    """The places as text, each once, in the order given."""
    if given is None or given == "":
        return ()
    several: Iterable[Any] = given if _are_several(given) else (given,)
    try:
        found = [place_text(place) for place in several]
    except BadQuery as error:
        raise BadAgent(f"{what}: {error}") from None
    return tuple(dict.fromkeys(found))


def _are_several(given: object) -> TypeGuard[Iterable[Any]]:
    return isinstance(given, Iterable) and not isinstance(given, str)


def written_facts(places: tuple[str, ...]) -> str | list[str]:
    """Declared writes as a snapshot has them: one key of the session by its name, else a list."""
    if not places:
        return ""
    key = places[0].removeprefix("session.")
    return key if len(places) == 1 and "." not in key else list(places)
