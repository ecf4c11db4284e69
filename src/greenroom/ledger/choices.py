"""A value checked against a fixed set of words, with a suggestion for a misspelt one."""

from collections.abc import Iterable


def near(given: str, known: Iterable[str], most: int = 1, alike: float = 0.6) -> list[str]:
    """The known names that `given` probably means, nearest first.

    `alike` is higher only where something is refused because it is near.
    """
    from difflib import get_close_matches  # slow to load, and only a mistake needs it

    return get_close_matches(given, list(known), most, alike)


def choice_problem(given: object, choices: Iterable[str]) -> str:
    """A message saying that a value is not one of the choices; empty if it is one."""
    known = list(choices)
    if isinstance(given, str) and given in known:
        return ""
    folded = {choice.casefold(): choice for choice in known}
    found = near(given.casefold(), folded) if isinstance(given, str) else []
    meant = f" Did you mean {folded[found[0]]!r}?" if found else ""
    return f"{given!r} is not one of {', '.join(map(repr, known))}.{meant}"
