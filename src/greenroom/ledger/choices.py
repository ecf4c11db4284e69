"""Words to choose from: what is not one of them is refused, with the one that may be meant."""

from collections.abc import Iterable


def choice_problem(given: object, choices: Iterable[str]) -> str:
    """Why something is not one of the choices, in words; nothing if it is one of them."""
    known = list(choices)
    if isinstance(given, str) and given in known:
        return ""
    from difflib import get_close_matches  # slow to load, and only a mistake needs it

    folded = {choice.casefold(): choice for choice in known}
    near = get_close_matches(given.casefold(), folded, 1, 0.5) if isinstance(given, str) else []
    meant = f" Did you mean {folded[near[0]]!r}?" if near else ""
    return f"{given!r} is not one of {', '.join(map(repr, known))}.{meant}"
