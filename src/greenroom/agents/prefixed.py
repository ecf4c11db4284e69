"""The state of a framework that keeps all scopes in one mapping, with prefixes: `user:tier`."""

from collections.abc import Iterable, Iterator
from typing import Any, cast

from greenroom.ledger.query import MISSING


class PrefixedScopes:
    """A mapping with prefixed keys (a google-adk context's state) as scopes."""

    __slots__ = ("_held",)

    def __init__(self, held: object) -> None:
        self._held = held

    def __getitem__(self, name: str) -> "PrefixedScope":
        return PrefixedScope(self._held, "" if name == "session" else f"{name}:")

    def __contains__(self, name: object) -> bool:
        return True


class PrefixedScope:
    """One scope: the keys with its prefix; the session's have none."""

    __slots__ = ("_held", "_prefix")

    def __init__(self, held: Any, prefix: str) -> None:
        self._held = held
        self._prefix = prefix

    def __contains__(self, key: str) -> bool:
        return f"{self._prefix}{key}" in self._held

    def __getitem__(self, key: str) -> Any:
        return self._held[f"{self._prefix}{key}"]

    def __setitem__(self, key: str, value: Any) -> None:
        self._held[f"{self._prefix}{key}"] = value

    def __delitem__(self, key: str) -> None:
        # google-adk has no way to remove a key; there None means that it is gone.
        if hasattr(self._held, "__delitem__"):
            del self._held[f"{self._prefix}{key}"]
        else:
            self._held[f"{self._prefix}{key}"] = None

    def __iter__(self) -> Iterator[str]:
        to_dict = getattr(self._held, "to_dict", None)
        keys: Iterable[Any] = cast("Any", to_dict)() if callable(to_dict) else self._held
        for key in keys:
            prefix, mark, rest = str(key).rpartition(":")
            if f"{prefix}{mark}" == self._prefix:
                yield rest

    def lent(self, _: str) -> Any:
        """Nothing is tracked here: the framework itself notices values that are changed in place."""
        return MISSING

    def lend(self, _: str, value: object, *_how: object) -> Any:
        """The value as it is."""
        return value
