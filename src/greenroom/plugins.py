"""The one place that finds plug-ins: what packages, ours included, offer by entry points.

Entry points are read when a name is first asked for, and a plug-in is imported when it is used.
"""

from collections.abc import Callable, Iterable
from functools import cache
from typing import TYPE_CHECKING, Generic, TypeVar

from greenroom.errors import BadInput, BadPlugin, GreenroomError, MissingExtra, NotFound
from greenroom.installation import how_to_install

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")
_FEW = 12


class Plugins(Generic[T]):
    """The plug-ins of one entry-point group, by name.

    `noun` is what messages call one of them. `accept` is given a name and the object its entry point
    leads to, and returns what callers use; None refuses it, and `wanted` says what it should be.
    `unknown` is the error for a name that no package offers.
    """

    def __init__(
        self,
        group: str,
        noun: str,
        *,
        accept: Callable[[object, str], T | None],
        wanted: str,
        unknown: type[BadInput] = NotFound,
    ) -> None:
        self.group = group
        self.noun = noun
        self._accept = accept
        self._wanted = wanted
        self._unknown = unknown

    def names(self) -> list[str]:
        """Every name that an installed package offers."""
        return sorted(_installed(self.group))

    def load(self, name: str) -> T:
        """Import and return the plug-in of this name."""
        points = _installed(self.group).get(name)
        if points is None:
            raise self._unknown(f"there is no {self.noun} {name!r}. {suggest(name, self.names())}")
        if len(points) > 1:
            offers = " and ".join(sorted(map(_offer, points)))
            raise BadPlugin(
                f"the {self.noun} {name!r} is offered by {offers}. Uninstall all but one, or rename "
                f"one in the entry points of its package."
            )
        try:
            found: object = points[0].load()
            accepted = self._accept(found, name)
        except GreenroomError:
            raise
        except ImportError as error:
            raise MissingExtra(
                f"the {self.noun} {name!r} of {_offer(points[0])} cannot be loaded: {error}. "
                f"{_how_to_install(points[0])}"
            ) from error
        except Exception as error:
            # Importing runs the package's own code, which may raise anything.
            raise BadPlugin(
                f"the {self.noun} {name!r} of {_offer(points[0])} cannot be loaded: "
                f"{type(error).__name__}: {error}. Correct that package, or uninstall it."
            ) from error
        if accepted is None:
            raise BadPlugin(
                f"the {self.noun} {name!r} of {_offer(points[0])} is {found!r}, but should be "
                f"{self._wanted}. Correct the entry point, or uninstall that package."
            )
        return accepted


def forget() -> None:
    """Look again at what is installed when the next name is asked for."""
    _installed.cache_clear()


def suggest(name: str, known: Iterable[str]) -> str:
    """A hint for an unknown name: the similar names; all names if they are few or none is similar."""
    from difflib import get_close_matches  # slow to load, and only a mistake needs it

    names = list(known)
    folded = {one.casefold(): one for one in names}
    near = [repr(folded[one]) for one in get_close_matches(name.casefold(), folded, 3, 0.5)]
    meant = f"Did you mean {' or '.join(near)}?" if near else ""
    listed = f"Known: {', '.join(names)}." if len(names) <= _FEW or not near else ""
    return f"{meant} {listed}".strip()


@cache
def _installed(group: str) -> "dict[str, list[EntryPoint]]":
    """The entry points of each name; more than one if packages offer the same name."""
    from importlib.metadata import entry_points  # slow to load, and only names need it

    found: dict[str, dict[str, EntryPoint]] = {}
    for point in entry_points(group=group):
        found.setdefault(point.name, {}).setdefault(point.value, point)
    return {name: list(by_value.values()) for name, by_value in found.items()}


def _offer(point: "EntryPoint") -> str:
    """The package and what it offers. Slow, so for errors only: the package's name is read from its files."""
    return f"{_package(point)} ({point.value})"


def _package(point: "EntryPoint") -> str:
    return point.dist.name if point.dist else "a package"


def _how_to_install(point: "EntryPoint") -> str:
    """Advice on a missing module: a package may have an extra named after the part that needs it."""
    extras = point.dist.metadata.get_all("Provides-Extra") or [] if point.dist else []
    for part in reversed(point.module.replace("_", "-").split(".")):
        if part in extras and _package(point) == "greenroom":
            return f"Install it with {how_to_install(part)}."
        if part in extras:
            return f"Install it with pip install '{_package(point)}[{part}]'."
    return f"Install what {_package(point)} needs, or uninstall it."
