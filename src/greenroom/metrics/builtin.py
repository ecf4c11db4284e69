"""What the built-in metrics share: a name, a repr that reads like their source, and checked options.

Options may come from a file, so each is checked where the metric is made.
"""

from collections.abc import Collection, Mapping, Sequence
from math import inf
from typing import TypeGuard, cast

from msgspec import Struct

from greenroom.cases.case import Case
from greenroom.errors import BadMetric
from greenroom.ledger.choices import choice_problem

_LONGEST_NAME = 80


class BuiltIn(Struct, frozen=True, kw_only=True):
    """A metric whose repr is the call that made it; unless it has a name, that is its name."""

    name: str
    shown: str

    def __repr__(self) -> str:
        return self.shown

    def tools_named(self) -> dict[str, list[str]]:
        """The tools that it names, each with the arguments that it looks at; no patterns."""
        return {}

    def agents_named(self) -> dict[str, bool]:
        """The agents and nodes that it names, each with whether it passes if there is no such one."""
        return {}

    def idle_patterns(self, offered: Collection[str]) -> list[str]:
        """Its patterns of tools' names that fit none of the offered tools."""
        return []


class QuickMetric(BuiltIn, frozen=True, kw_only=True):
    """A metric that only reads the ledger: it asks no model, and runs no user code."""

    def needs_guard(self, case: Case) -> bool:
        """False: nothing in it can block, so the fence around all metrics of the case is enough."""
        return False


def written(
    factory: str, *args: object, name: str | None = None, **options: object
) -> dict[str, str]:
    """`name` and `shown` of a metric made by `factory(...)`; options that are None are left out."""
    given = [shown_value(arg) for arg in args]
    given += [f"{key}={shown_value(value)}" for key, value in options.items() if value is not None]
    if name is not None:
        checked_name(name, factory)
        return {"name": name, "shown": f"{factory}({', '.join([*given, f'name={name!r}'])})"}
    call = f"{factory}({', '.join(given)})"
    short = call if len(call) <= _LONGEST_NAME else f"{call[: _LONGEST_NAME - 1]}…"
    return {"name": short, "shown": call}


def shown_value(value: object) -> str:
    """A value as it was written, with functions in it by name."""
    if callable(value):
        # A repr with an address would differ in every process.
        return str(getattr(value, "__name__", type(value).__name__))
    if isinstance(value, Mapping):
        items = cast("Mapping[object, object]", value).items()
        return f"{{{', '.join([f'{key!r}: {shown_value(inner)}' for key, inner in items])}}}"
    if type(value) is list:
        return f"[{', '.join(map(shown_value, cast('list[object]', value)))}]"
    return repr(value)


def checked_name(name: object, factory: str) -> str:
    """The name, if it is a string that can be shown."""
    if isinstance(name, str) and name.strip():
        return name
    raise BadMetric(f"{factory}(...) has the name {name!r}; give a string.")


def checked_threshold(threshold: object, where: str, option: str = "threshold") -> float:
    """The threshold, if some score could miss it and some could reach it."""
    if is_number(threshold) and 0 < threshold <= 1:
        return float(threshold)
    raise BadMetric(
        f"{where} has {option}={threshold!r}; its scale is 0 to 1: give a number above 0, at most 1."
    )


def is_number(value: object) -> TypeGuard[int | float]:
    """Whether a value is a number (a bool is not)."""
    return isinstance(value, int | float) and not isinstance(value, bool) and -inf < value < inf


def checked_choice(given: object, choices: Sequence[str], option: str, factory: str) -> None:
    """Refuse a word that is not one of the choices."""
    if problem := choice_problem(given, choices):
        raise BadMetric(f"{factory}(...): {option}={problem}")


def checked_switch(given: object, option: str, factory: str) -> None:
    """Refuse anything but true and false."""
    if not isinstance(given, bool):
        raise BadMetric(f"{factory}(...) has {option}={given!r}; give true or false.")


def checked_predicate(given: object, option: str, factory: str) -> None:
    """Refuse what is neither a function nor left out: it could not be called, or would count as left out."""
    if given is not None and not callable(given):
        raise BadMetric(f"{factory}(...) has {option}={given!r}; give a function, or leave it out.")


def checked_text(given: object, factory: str) -> str:
    """The string, if it is not empty."""
    if isinstance(given, str) and given.strip():
        return given
    raise BadMetric(f"{factory}(...) looks for {given!r}; give a string that is not empty.")


def checked_texts(given: object, option: str, factory: str) -> tuple[str, ...]:
    """A list of strings, none of them empty."""
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise BadMetric(f"{factory}(...) has {option}={given!r}; give a list of strings.")
    return tuple([checked_text(text, factory) for text in cast("Sequence[object]", given)])
