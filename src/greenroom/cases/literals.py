"""Literal arguments: recorded calls and other tools' files have no operators.

To us a key such as `$gt` is an operator, there it is a key like any other; `{"$eq": ...}` marks it as one.
"""

from collections.abc import Mapping

from greenroom.ledger.plain import Json, as_object, is_array, is_object, plain

_LETTER = "$eq"


def literal(args: Mapping[str, Json]) -> dict[str, Json]:
    """Arguments as an expectation that compares them literally, even if they look like operators."""
    return {
        name: {_LETTER: value} if has_operators(value) else value
        for name, value in as_object(plain(args)).items()
    }


def unquoted(args: Mapping[str, object]) -> dict[str, Json]:
    """The arguments that `literal` was given; real operators stay unchanged."""
    return {name: _letter(value) for name, value in as_object(plain(args)).items()}


def _letter(value: Json) -> Json:
    if is_object(value) and value.keys() == {_LETTER} and has_operators(value[_LETTER]):
        return value[_LETTER]
    return value


def has_operators(value: Json) -> bool:
    """Whether a value holds an operator, however deep."""
    if is_object(value):
        return any(key.startswith("$") or has_operators(inner) for key, inner in value.items())
    return is_array(value) and any(map(has_operators, value))
