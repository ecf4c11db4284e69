"""Whether values of one type can stand where another is wanted, as far as annotations tell."""

import types
from collections.abc import Mapping
from contextlib import suppress
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

_JSON = (str, int, float, bool, list, dict, type(None))


def fits(given: Any, wanted: Any) -> bool | None:
    """True or False; None if it is not known."""
    given, wanted = _bare(given), _bare(wanted)
    if wanted in (Any, object) or given == wanted:
        return True
    if given is Any:
        return None
    if _is_union(given):
        return _all(fits(part, wanted) for part in get_args(given))
    if _is_union(wanted):
        return _any(fits(given, part) for part in get_args(wanted))
    if get_origin(given) is Literal:
        if get_origin(wanted) is Literal:
            return set(get_args(given)) <= set(get_args(wanted))
        return _all(fits(type(value), wanted) for value in get_args(given))
    if get_origin(wanted) is Literal:
        # A text may be one of the words, or may not.
        return None if fits(given, type(get_args(wanted)[0])) is not False else False
    return _classes(given, wanted)


def _classes(given: object, wanted: object) -> bool | None:
    one, other = _kind(given), _kind(wanted)
    if one is None or other is None:
        return None
    if (one, other) == (int, float):
        return True
    if one is not other:
        return False
    inner = list(zip(get_args(given), get_args(wanted), strict=False))
    return _all(fits(a, b) for a, b in inner) if inner else (given is wanted or None)


def _kind(annotation: object) -> type | None:
    """What JSON makes of values of a type: one of its own types, if that can be told."""
    origin = get_origin(annotation) or annotation
    if origin in _JSON:
        return origin
    if origin in (tuple, set, frozenset):
        return list
    if isinstance(origin, type) and (parts_of(origin) is not None or issubclass(origin, Mapping)):
        return dict
    return None


def parts_of(annotation: object) -> dict[str, Any] | None:
    """The parts of a structured type by name, or None if it is none that is known here."""
    cls = get_origin(annotation) or annotation
    if not isinstance(cls, type) or cls in _JSON:
        return None
    names = getattr(cls, "model_fields", None) or getattr(cls, "__dataclass_fields__", None)
    names = names or getattr(cls, "__struct_fields__", None)
    if names is None and not hasattr(cls, "__total__"):
        return None
    with suppress(NameError, TypeError):
        hints = get_type_hints(cls, include_extras=True)
        return {name: hints.get(name, Any) for name in (hints if names is None else names)}
    return None


def _bare(annotation: object) -> Any:
    if get_origin(annotation) is Annotated:
        return _bare(get_args(annotation)[0])
    return type(None) if annotation is None else annotation


def _is_union(annotation: object) -> bool:
    return get_origin(annotation) in (Union, types.UnionType)


def _all(found: Any) -> bool | None:
    known = list(found)
    return False if False in known else None if None in known else True


def _any(found: Any) -> bool | None:
    known = list(found)
    return True if True in known else None if None in known else False
