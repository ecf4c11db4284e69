"""State as code inside a run sees it: named scopes that read like dicts and remember changes."""

from collections.abc import Callable, Iterator, MutableMapping
from typing import Any, NoReturn, TypeVar

from greenroom.ledger.changes import Change, State
from greenroom.ledger.plain import Json, plain, same
from greenroom.ledger.query import MISSING

T = TypeVar("T")


class Scope(MutableMapping[str, Any]):
    """One scope. Values that are read are copies; changes to them count when the call ends.

    They are JSON of whatever type the author stored; a schema gives them types.
    """

    __slots__ = ("_found", "_held", "_lent", "_name", "_read", "_views", "_written")

    def __init__(self, name: str, held: dict[str, Json]) -> None:
        self._name = name
        self._held = held
        self._lent: dict[str, Json] = {}
        self._found: dict[str, Json] = {}
        self._written: dict[str, Change] = {}
        self._read: set[str] = set()
        self._views: dict[str, tuple[Any, Callable[[Any], Json], Json, Callable[[Any], Json]]] = {}

    @property
    def name(self) -> str:
        """The name of the scope."""
        return self._name

    def __getattr__(self, name: str) -> NoReturn:
        # Python looks these up itself, even before the scope has a name.
        raise AttributeError(name) if name.startswith("_") else _no_attribute(self, name)

    def __setattr__(self, name: str, value: object) -> None:
        if name not in Scope.__slots__:
            raise _no_attribute(self, name)
        super().__setattr__(name, value)

    def __getitem__(self, key: str) -> Any:
        if key in self._lent:
            return self._lent[key]
        if key in self._written:
            raise KeyError(key)  # deleted in this very call
        self._read.add(key)
        # The value as found is kept apart: others may change the state before this call ends.
        self._found[key] = plain(self._held[key])
        value = self._lent[key] = plain(self._held[key])
        return value

    def __setitem__(self, key: str, value: Any) -> None:
        copy = plain(value, f"state {self.name}.{key}")
        self._views.pop(key, None)
        self._lent[key] = copy
        self._written[key] = Change(self.name, (key,), "set", copy)

    def setdefault(self, key: str, default: object = None) -> Any:
        """The value at `key`, put there first if there is none; changes to it count."""
        if key not in self:
            self[key] = default
        return self[key]

    def __delitem__(self, key: str) -> None:
        if key not in self._lent and (key in self._written or key not in self._held):
            raise KeyError(key)
        self._views.pop(key, None)
        self._lent.pop(key, None)
        self._written[key] = Change(self.name, (key,), "delete")

    def __iter__(self) -> Iterator[str]:
        gone = {key for key, change in self._written.items() if change.op == "delete"}
        self._read |= self._held.keys()
        yield from (key for key in {**self._held, **self._written} if key not in gone)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return f"{self.name}{dict(self)!r}"

    def renew(self, held: dict[str, Json]) -> None:
        """Show these values from now on, except where something was read or written already."""
        self._held = held

    def has_read(self, key: str) -> bool:
        """Whether the value at `key` was read."""
        return key in self._read

    def lend(
        self, key: str, value: T, as_json: Callable[[T], Json], checked: Callable[[T], Json]
    ) -> T:
        """Return an object made from the value at `key`; changed in place, it is checked and kept."""
        self._views[key] = (value, as_json, as_json(value), checked)
        return value

    def lent(self, key: str) -> Any:
        """The object that was returned for `key`, or MISSING."""
        found = self._views.get(key)
        return MISSING if found is None else found[0]

    def changes(self) -> list[Change]:
        """What was written, plus what was changed inside values that were read."""
        for key, (value, as_json, before, checked) in self._views.items():
            if not same(before, as_json(value)):
                now = self._lent[key] = checked(value)
                self._written[key] = Change(self.name, (key,), "set", now)
        for key, value in self._lent.items():
            if key in self._written or not same(self._found[key], value):
                copy = plain(value, f"state {self.name}.{key}")
                self._written[key] = Change(self.name, (key,), "set", copy)
        return list(self._written.values())


def _no_attribute(scope: Scope, name: str) -> AttributeError:
    place = f"state.{scope.name}"
    return AttributeError(f'a scope has keys: write {place}["{name}"], not {place}.{name}.')


class Scopes:
    """All scopes: `state["session"]` or `state.session`; any name may be a scope."""

    __slots__ = ("_fold", "_open")

    def __init__(self, fold: State) -> None:
        self._fold = fold
        self._open: dict[str, Scope] = {}

    def renew(self, fold: State) -> None:
        """Let the scopes show this state, except where something was read or written already."""
        self._fold = fold
        for name, scope in self._open.items():
            scope.renew(fold.get(name, {}))

    def __getitem__(self, name: str) -> Scope:
        scope = self._open.get(name)
        if scope is None:
            scope = self._open[name] = Scope(name, self._fold.get(name, {}))
        return scope

    def __getattr__(self, name: str) -> Scope:
        if name.startswith("_"):
            raise AttributeError(name)
        return self[name]

    def __setattr__(self, name: str, value: object) -> None:
        if name not in Scopes.__slots__:
            raise AttributeError(
                f"state.{name} is a scope, which cannot be replaced: write "
                f'state.{name}["key"] = ..., or state.{name}.update(...).'
            )
        super().__setattr__(name, value)

    def get(self, name: str, default: object = None) -> Any:
        """The scope if anything was ever put into it, else `default`."""
        return self[name] if name in self else default

    def __contains__(self, name: object) -> bool:
        return name in self._fold or name in self._open

    def __iter__(self) -> Iterator[str]:
        return iter({**self._fold, **self._open})

    def __repr__(self) -> str:
        return f"Scopes({', '.join(repr(self[name]) for name in self)})"

    def has_read(self, name: str, key: str) -> bool:
        """Whether the value in a scope at `key` was read."""
        return name in self._open and self._open[name].has_read(key)

    def changes(self) -> tuple[Change, ...]:
        """What this call did to the state, scope by scope."""
        return tuple(change for scope in self._open.values() for change in scope.changes())
