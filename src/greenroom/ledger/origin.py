"""Where in the user's own code an error arose, not in Greenroom's or a library's."""

import os
from functools import lru_cache
from pathlib import Path
from types import TracebackType

_NOT_THEIRS = (Path(__file__).parents[1], Path(os.__file__).parent)
_LIBRARIES = ("site-packages", "dist-packages")


def summarize_error(error: BaseException, name: str = "") -> str:
    """An error's type, message and, if it passed through the user's code, the place there."""
    name, words, place = name or type(error).__name__, words_of(error), place_of(error)
    return (f"{name}: {words}" if words else name) + (f" ({place})" if place else "")


def words_of(error: BaseException) -> str:
    """An error's message; "" if it cannot be turned into text."""
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - a foreign error must not become another one
        return ""


def place_of(error: BaseException) -> str:
    """File and line of the user's code nearest to an error; "" if it passed through none."""
    steps: list[TracebackType] = []
    step = error.__traceback__
    while step is not None:
        steps.append(step)
        step = step.tb_next
    for step in reversed(steps):
        if _is_theirs(file := step.tb_frame.f_code.co_filename):
            return f"{_short_path(Path(file))}:{step.tb_lineno}"
    return ""


@lru_cache(maxsize=1024)
def _is_theirs(file: str) -> bool:
    path = Path(file)
    is_library = any(part in _LIBRARIES for part in path.parts)
    return not (file.startswith("<") or is_library or any(map(path.is_relative_to, _NOT_THEIRS)))


def _short_path(path: Path) -> str:
    """A path relative to the working directory if it is below that, else the file name alone."""
    try:
        here = Path.cwd()
    except OSError:  # the working directory was removed
        return path.name
    is_below = path.is_relative_to(here) and here != here.parent  # everything is below the root
    return str(path.relative_to(here)) if is_below else path.name
