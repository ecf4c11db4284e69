"""Keys that a framework's model was given, as its own attributes show them.

What a request sends is remembered when it is sent; this is for what is said before the first one.
"""

from collections.abc import Mapping
from typing import Any, Final, cast

from greenroom.ledger.given import keep_secret, keep_sent
from greenroom.ledger.secrets import announces

_LEADING: Final = ("client", "provider", "wrapped", "bound", "model")
"""Parts of the names under which models keep whatever has their key."""
_DEEP: Final = 4


def keep_keys(model: object) -> None:
    """Redact the keys of this model from now on; whatever it is made of, this does not fail."""
    try:
        _look_into(model, _DEEP)
    except Exception:  # noqa: BLE001 - strangers' objects may do anything when they are looked at
        return


def _look_into(thing: object, deep: int) -> None:
    for name, held in _attributes(thing):
        value = (
            held.get_secret_value()
            if hasattr(cast("type[Any]", type(held)), "get_secret_value")
            else held
        )
        if isinstance(value, str):
            if announces(name):
                keep_secret(name, value)
        elif isinstance(value, Mapping):
            _look_at_headers(name, cast("Mapping[object, object]", value))
        elif deep and any(word in name for word in _LEADING):
            _look_into(value, deep - 1)


def _look_at_headers(name: str, value: Mapping[object, object]) -> None:
    if "headers" in name:
        keep_sent(
            [
                (key, text)
                for key, text in value.items()
                if isinstance(key, str) and isinstance(text, str)
            ]
        )


def _attributes(thing: object) -> list[tuple[str, Any]]:
    """What an object holds itself; properties would do work."""
    own: dict[str, Any] = getattr(thing, "__dict__", None) or {}
    private: dict[str, Any] = getattr(thing, "__pydantic_private__", None) or {}
    return [*own.items(), *private.items()]
