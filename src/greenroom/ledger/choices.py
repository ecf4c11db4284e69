"""A value checked against a fixed set of words, with a suggestion for a misspelt one."""

from collections.abc import Iterable


def alike(word: str, known: Iterable[str], most: int = 1, least: float = 0.6) -> list[str]:
    """Up to `most` known words that resemble this one, the nearest first; `least` is how much, from 0 to 1."""
    from difflib import get_close_matches  # slow to load, and only a mistake needs it

    return get_close_matches(word, list(known), most, least)


def choice_problem(given: object, choices: Iterable[str]) -> str:
    """A message saying that a value is not one of the choices; empty if it is one."""
    known = list(choices)
    if isinstance(given, str) and given in known:
        return ""
    folded = {choice.casefold(): choice for choice in known}
    near = alike(given.casefold(), folded, 1, 0.5) if isinstance(given, str) else []
    meant = f" Did you mean {folded[near[0]]!r}?" if near else ""
    return f"{given!r} is not one of {', '.join(map(repr, known))}.{meant}"
