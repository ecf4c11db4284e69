"""Where runs are kept (by option, variable or project setting), and which variables are hidden."""

import os
from collections.abc import Collection, Mapping
from pathlib import Path

from greenroom.errors import BadFile, BadInput
from greenroom.ledger.private_folders import HOME
from greenroom.project import nearest_project

PLACE_VARIABLE = "GREENROOM_STORE"
OFF = "off"
_SERVERS = ("postgresql", "postgres")
"""The part before `://` in the address of a store on a server; a folder has none."""
_CREDENTIALS = (
    *("PGPASSWORD", "PGPASSFILE", "PGSERVICE", "PGSERVICEFILE"),
    *("PGSSLCERT", "PGSSLKEY"),
)
"""The variables with libpq's credentials."""


def is_server(place: str | Path) -> bool:
    """Whether a place is a server's address, not a folder; BadInput for an address of another kind."""
    kind, is_address, _ = str(place).partition("://")
    if is_address and kind not in _SERVERS:
        # The rest of it may hold a password.
        raise BadInput(
            f"there is no store at {kind}://…: name a folder, or a Postgres server by "
            f"postgresql://user@host/database."
        )
    return bool(is_address)


def chosen_place() -> str:
    """The place for runs, from a variable or the nearest pyproject; empty if neither names one."""
    return written_place(os.environ.get(PLACE_VARIABLE, "")) or configured_place()


def written_place(place: str) -> str:
    """A place as a variable or a file names it, where no shell has read it: `OFF` is off, and `~` is home."""
    place = place.strip()
    return OFF if place.lower() == OFF else os.path.expanduser(place)  # noqa: PTH111 - or an address


def place_of(given: object) -> str:
    """The place that `store=` names, or the default one if it names none; empty for `off`."""
    if given is None or given is True or given == "":
        given = chosen_place() or HOME
    if given is False or given == OFF:
        return ""
    return str(getattr(given, "address", given))


def withheld(place: str) -> list[str]:
    """The variables that agents under test do not get, because they open the store at this place.

    Only the process that runs an evaluation writes to its store. An agent's own process could read what
    others have recorded there, or change it, past every fence: libpq is not Python.
    """
    return [PLACE_VARIABLE, *(_CREDENTIALS if is_server(place) else ())]


def without(names: Collection[str], environment: Mapping[str, str]) -> dict[str, str]:
    """An environment for a process that must not store anything, without these variables."""
    kept = {name: value for name, value in environment.items() if name not in names}
    return {**kept, PLACE_VARIABLE: OFF}


def configured_place() -> str:
    """`store` in `[tool.greenroom]` of the nearest pyproject.toml, here or above; empty without one."""
    project = nearest_project()
    place = None if project is None else project.settings.get("store")
    if project is None or place is None:
        return ""
    if not isinstance(place, str) or not place.strip():
        raise BadFile(
            f"{project.place('store')}: store in [tool.greenroom] is {place!r}; name a folder, or the "
            f'address of a server: store = "postgresql://db/evals".'
        )
    place = written_place(place)
    return place if "://" in place or place == OFF else str(project.file.parent / place)
