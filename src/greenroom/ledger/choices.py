"""A value checked against a fixed set of words, with a suggestion for a misspelt one."""

from collections.abc import Iterable


def choice_problem(given: object, choices: Iterable[str]) -> str:
    """A message saying that a value is not one of the choices; empty if it is one."""
    known = list(choices)
    if isinstance(given, str) and given in known:
        return ""
    from difflib import get_close_matches  # slow to load, and only a mistake needs it

    folded = {choice.casefold(): choice for choice in known}
    near = get_close_matches(given.casefold(), folded, 1, 0.5) if isinstance(given, str) else []
    meant = f" Did you mean {folded[near[0]]!r}?" if near else ""
    return f"{given!r} is not one of {', '.join(map(repr, known))}.{meant}"
