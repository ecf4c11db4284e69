"""Where in its author's own code an error arose: neither in ours nor in that of a library."""

import os
from functools import lru_cache
from pathlib import Path

_NOT_THEIRS = (Path(__file__).parents[1], Path(os.__file__).parent)
_LIBRARIES = ("site-packages", "dist-packages")


def told(error: BaseException) -> str:
    """An error by its type, its words, and the place in its author's code, if it passed any."""
    # One that is raised again after a cut bears the name of the first.
    name: str = getattr(error, "error_type", "") or type(error).__name__
    words, place = str(error), place_of(error)
    return (f"{name}: {words}" if words else name) + (f" ({place})" if place else "")


def place_of(error: BaseException) -> str:
    """File and line of the author's code that was nearest to an error; empty if none was near."""
    here, found, step = _folder(), "", error.__traceback__
    while step is not None:
        if file := _shown(step.tb_frame.f_code.co_filename, here):
            found = f"{file}:{step.tb_lineno}"
        step = step.tb_next
    return found


def _folder() -> Path:
    try:
        return Path.cwd()
    except OSError:  # it is gone
        return Path()


@lru_cache(maxsize=1024)
def _shown(file: str, here: Path) -> str:
    """A file of an author's as they call it; the folders of one machine tell others nothing."""
    path = Path(file)
    is_library = any(part in _LIBRARIES for part in path.parts)
    if file.startswith("<") or is_library or any(map(path.is_relative_to, _NOT_THEIRS)):
        return ""
    return str(path.relative_to(here)) if path.is_relative_to(here) else path.name
