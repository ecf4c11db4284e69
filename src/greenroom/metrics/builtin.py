"""What the built-in metrics share: a name, and a repr that reads like their source."""

import re
from collections.abc import Mapping
from typing import Any, cast

from msgspec import Struct

from greenroom.errors import BadMetric

_LONGEST_NAME = 80


class BuiltIn(Struct, frozen=True, kw_only=True):
    """A metric that shows itself as it was written; without a name of its own, that is its name."""

    name: str
    shown: str

    def __repr__(self) -> str:
        return self.shown


def written(factory: str, *args: Any, name: str | None = None, **options: Any) -> dict[str, str]:
    """`name` and `shown` of a metric made by `factory(...)`; options that are None are left out."""
    given = [_text(arg) for arg in args]
    given += [f"{key}={_text(value)}" for key, value in options.items() if value is not None]
    unnamed = f"{factory}({', '.join(given)})"
    if name is None:
        return {"name": _short(unnamed), "shown": unnamed}
    return {
        "name": checked_name(name, factory),
        "shown": f"{factory}({', '.join([*given, f'name={name!r}'])})",
    }


def checked_name(name: object, factory: str) -> str:
    """The name, if it is a text that can be shown."""
    if isinstance(name, str) and name.strip():
        return name
    raise BadMetric(f"{factory}(...) has the name {name!r}; give a text.")


def _text(value: Any) -> str:
    if isinstance(value, re.Pattern):
        return repr(cast("re.Pattern[str]", value).pattern)
    return shown_value(value)


def shown_value(value: Any) -> str:
    """A value as it was written, functions inside it by name."""
    if callable(value):
        # A repr with an address would be another one in every process.
        return str(getattr(value, "__name__", type(value).__name__))
    if isinstance(value, Mapping):
        items = cast("Mapping[Any, Any]", value).items()
        return f"{{{', '.join([f'{key!r}: {shown_value(inner)}' for key, inner in items])}}}"
    if type(value) is list:
        return f"[{', '.join(map(shown_value, cast('list[Any]', value)))}]"
    return repr(value)


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_NAME else f"{text[: _LONGEST_NAME - 1]}…"
