"""The state that files begin with, by the prefixes of ADK's scopes, and what they keep beside a case."""

from collections.abc import Collection, Mapping
from typing import Any

from greenroom.cases.fields import Fields
from greenroom.cases.places import at, keys_of, put, shown, wrong
from greenroom.ledger.plain import Json, plain, same

_PREFIXES = {"user:": "user", "app:": "app", "temp:": "temp"}
_MADE_UP = {"session_input.app_name": "greenroom", "session_input.user_id": "user"}


def session_extra(session: Fields, state: Mapping[str, Json]) -> dict[str, Json]:
    """What a session says beside its state; the names that `session_data` makes up say nothing."""
    rest = session.rest("session_input")
    return {key: value for key, value in rest.items() if not state or value != _MADE_UP.get(key)}


def scopes(state: Mapping[str, Json]) -> dict[str, dict[str, Json]]:
    """State by scope, from keys with the prefixes of ADK's scopes."""
    found: dict[str, dict[str, Json]] = {}
    for name, value in state.items():
        prefix = next((prefix for prefix in _PREFIXES if name.startswith(prefix)), "")
        scope = _PREFIXES.get(prefix, "session")
        found.setdefault(scope, {})[name.removeprefix(prefix)] = value
    return found


def joined_state(
    session: Mapping[str, Mapping[str, Json]], ours: Mapping[str, Mapping[str, Json]], place: str
) -> dict[str, dict[str, Json]]:
    """State from both places where a file can hold it, scope by scope."""
    found = {scope: dict(content) for scope, content in session.items()}
    for scope, content in ours.items():
        held = found.setdefault(scope, {})
        for key, value in content.items():
            if key in held and not same(held[key], value):
                told = f"{shown(value)} stands against {shown(held[key])} in `session_input.state`"
                raise wrong(at(place, scope, key), told, "Keep one of them")
            held[key] = value
    return found


def session_data(state: Mapping[str, Json], extra: dict[str, Json]) -> dict[str, Json]:
    """A session with its state, if the case has any; names ADK insists on are made up if missing."""
    if not state:
        return {}
    data: dict[str, Json] = {"session_input": {"state": plain(state)}}
    put_back(data, {place: name for place, name in _MADE_UP.items() if place not in extra})
    return data


def prefixed(state: Mapping[str, Any]) -> tuple[dict[str, Json], dict[str, Json]]:
    """State as ADK's prefixed keys, and the scopes that it does not know."""
    prefixes = {"session": "", **{scope: prefix for prefix, scope in _PREFIXES.items()}}
    known = {
        f"{prefixes[scope]}{key}": value
        for scope, content in state.items()
        if scope in prefixes
        for key, value in content.items()
    }
    return known, {scope: content for scope, content in state.items() if scope not in prefixes}


def put_back(
    data: dict[str, Json], extra: Mapping[str, Json] | None, known: Collection[str] | None = None
) -> None:
    """Put what a file said beyond a case back where it stood, if such a file may say it."""
    for place, value in (extra or {}).items():
        if known is None or (keys_of(place) or [place])[0] in known:
            put(data, place, value)
