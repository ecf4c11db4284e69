"""State between a ledger's scopes and the framework's prefixed keys."""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from google.adk.sessions import InMemorySessionService, Session

from greenroom.backends.foreign import jsonable
from greenroom.ledger.changes import Change, State
from greenroom.ledger.plain import plain

_PREFIXES = {"session": "", "user": "user:", "app": "app:", "temp": "temp:"}


def prefixed(state: State) -> dict[str, Any]:
    """A copy of the scopes the framework knows, as one mapping; other scopes stay with us."""
    if not state:
        return {}
    return {
        f"{prefix}{key}": deepcopy(value)
        for scope, prefix in _PREFIXES.items()
        for key, value in state.get(scope, {}).items()
    }


def pour(state: Mapping[str, Any], session: Session, service: InMemorySessionService) -> None:
    """Let a session that is kept in memory have this state, as if it had come there by itself."""
    scopes: dict[str, dict[str, Any]] = {
        "user": service.user_state.setdefault(session.app_name, {}).setdefault(session.user_id, {}),
        "app": service.app_state.setdefault(session.app_name, {}),
    }
    for name, value in state.items():
        scope, key = place_of(name)
        if scope in scopes:
            scopes[scope][key] = value
        else:
            session.state[name] = value


def state_changes(delta: Mapping[str, Any], held: State) -> tuple[Change, ...]:
    """What a delta of the framework changes in the state as it is held."""
    found: list[Change] = []
    for name, value in delta.items():
        scope, key = place_of(name)
        told = plain(jsonable(value), f"state {name!r}")
        known = held.get(scope, {})
        if key not in known or known[key] != told:
            found.append(Change(scope, (key,), "set", told))
    return tuple(found)


def place_of(name: str) -> tuple[str, str]:
    """Scope and key of a prefixed name."""
    for scope, prefix in _PREFIXES.items():
        if prefix and name.startswith(prefix):
            return scope, name.removeprefix(prefix)
    return "session", name


def name_of(scope: str, key: str) -> str | None:
    """The prefixed name of a place, or None where the framework has no such scope."""
    return f"{_PREFIXES[scope]}{key}" if scope in _PREFIXES else None
