"""Options of metrics, which may come from a file: each is checked where the metric is made."""

from collections.abc import Sequence
from typing import cast

from greenroom.errors import BadMetric
from greenroom.ledger.choices import choice_problem


def checked_choice(given: object, choices: Sequence[str], option: str, factory: str) -> None:
    """Refuse a word that is not one of the choices."""
    if told := choice_problem(given, choices):
        raise BadMetric(f"{factory}(...): {option}={told}")


def checked_switch(given: object, option: str, factory: str) -> None:
    """Refuse anything but true and false."""
    if not isinstance(given, bool):
        raise BadMetric(f"{factory}(...) has {option}={given!r}; give true or false.")


def checked_text(given: object, factory: str) -> str:
    """The text, if there is something in it to look for."""
    if isinstance(given, str) and given.strip():
        return given
    raise BadMetric(f"{factory}(...) looks for {given!r}; give a text that is not empty.")


def checked_texts(given: object, option: str, factory: str) -> tuple[str, ...]:
    """A list of texts, each with something in it."""
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise BadMetric(f"{factory}(...) has {option}={given!r}; give a list of texts.")
    return tuple([checked_text(text, factory) for text in cast("Sequence[object]", given)])
