"""`greenroom explain`: what an error means and what to do about it."""

import inspect

import click

from greenroom import errors
from greenroom.errors import GreenroomError, NotFound
from greenroom.ledger.choices import near

ERRORS: dict[str, type[GreenroomError]] = {
    name: kind
    for name, kind in vars(errors).items()
    if isinstance(kind, type) and issubclass(kind, GreenroomError)
}
"""Every named error, in the order of their list."""


_LEAST = 3
_NEAR = 0.75  # names of errors have many letters in common


def explained_name(error: BaseException) -> str:
    """The name to ask `explain` about: the error's own, or that of the nearest it descends from."""
    return next((kind.__name__ for kind in type(error).__mro__ if kind.__name__ in ERRORS), "")


def explain(name: str) -> None:
    """Print what an error means, or without a name the first sentence about each."""
    if not name:
        wide = max(map(len, ERRORS))
        for known, kind in ERRORS.items():
            click.echo(f"{known:<{wide}}  {inspect.cleandoc(kind.__doc__ or '').splitlines()[0]}")
        return
    by_small_letters = {known.lower(): known for known in ERRORS}
    known = by_small_letters.get(name.lower())
    if known is None:
        meant = name.lower()
        found = [small for small in by_small_letters if len(meant) >= _LEAST and meant in small]
        found = found or near(meant, by_small_letters, alike=_NEAR)
        listed = " or ".join(by_small_letters[small] for small in found)
        hint = f"Did you mean {listed}? " if found else ""
        raise NotFound(f"no error is called {name!r}. {hint}`greenroom explain` lists them all.")
    click.echo(f"{known}\n\n{inspect.cleandoc(ERRORS[known].__doc__ or '')}")
