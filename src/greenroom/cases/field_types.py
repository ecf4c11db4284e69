"""The fields of a case and its parts: values of the wrong type are refused when they are set."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from operator import attrgetter
from types import NoneType, UnionType
from typing import Any, get_args, get_origin

from greenroom.errors import BadCase
from greenroom.ledger.places import by_scope
from greenroom.ledger.query import check_places, check_query

_Kind = tuple[tuple[type, ...], str]
_KINDS: dict[Any, _Kind] = {
    str: ((str,), "a string"),
    bool: ((bool,), "true or false"),
    int: ((int,), "a whole number"),
    float: ((int, float), "a number"),
    Sequence: ((list, tuple, Sequence), "a list"),
    Mapping: ((dict, Mapping), "a mapping"),
    NoneType: ((NoneType,), ""),
}
"""What a field of a declared type may hold, and the words for it."""
_ABSTRACT = (Sequence, Mapping)
BY_SCOPE = 'a query by scope: {"session": {"key": ...}}'


class FieldTypes:
    """The types that a part declares for its fields: a wrong value is refused when it is set.

    `words` describe a field whose type does not say enough.
    """

    def __init__(self, part: type[Any], **words: str) -> None:
        self._fields: list[tuple[str, Any, tuple[type, ...], str]] = []
        self._texts = [one.name for one in fields(part) if one.type == Sequence[str]]
        for one in fields(part):
            if not one.init:
                continue
            hints = get_args(one.type) if isinstance(one.type, UnionType) else (one.type,)
            known = [_kind(get_origin(hint) or hint) for hint in hints]
            if None not in known:
                kinds = [kind for found in known if found for kind in found[0]]
                kinds.sort(key=_ABSTRACT.__contains__)  # isinstance is slow for these
                said = words.get(one.name) or " or ".join(f[1] for f in known if f and f[1])
                self._fields.append((one.name, one.default, tuple(kinds), said))
        self._values = attrgetter(*(name for name, *_ in self._fields))

    def check(self, part: object, where: str) -> None:
        """Refuse a part with a value of the wrong type."""
        values = self._values(part)
        for value, (name, usual, kinds, words) in zip(values, self._fields, strict=True):
            if value is usual or type(value) in kinds:
                continue
            # To Python a string is a sequence and a bool a number.
            is_other = any(isinstance(value, kind) and kind not in kinds for kind in (str, bool))
            if is_other or not isinstance(value, kinds):
                raise BadCase(f"{where}: `{name}` is {value!r}, but should be {words}.")
        for name in self._texts:
            for text in getattr(part, name):
                if not isinstance(text, str):
                    raise BadCase(f"{where}: `{name}` holds {text!r}; write it as a string.")


def _kind(hint: Any) -> _Kind | None:
    """What a field of this type may hold; None for any value."""
    if hint in _KINDS or hint is Any or not isinstance(hint, type):
        return _KINDS.get(hint)
    name = hint.__name__
    return (hint,), f"{'an' if name[0] in 'AEIOU' else 'a'} {name}(...)"


def checked_scopes(given: Mapping[Any, Any], where: str, nothing: str) -> Mapping[str, Any]:
    """The query by scope; refused if it is not one, or if every state matches it."""
    query = by_scope(given)
    for scope, part in query.items():
        if not isinstance(part, Mapping):
            raise BadCase(
                f'{where} has {scope!r}: {part!r}; group by scope: {{"session": {{"key": ...}}}}.'
            )
    check_query(query, where)
    for scope, part in query.items():
        check_places(part, f"{where}.{scope}")
    if not query or not all(query.values()):
        raise BadCase(nothing)
    return query
