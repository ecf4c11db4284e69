"""What is sent to a node: the project's folder, and a briefing whose paths are valid inside it.

References are made relative to the folder in which the run was started; one that leads out of the project is
refused by name, because no node would find it.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

import greenroom
from greenroom.errors import BadInput
from greenroom.ledger.plain import Json
from greenroom.suite.inputs.references import split_reference
from greenroom.world.modules import loaded_from

_RAYS_OWN: Final = ("session_latest", "session_[0-9]*-[0-9]*-[0-9]*_*")
"""The folders of a cluster. Ray packs a project into one of them: with that inside the project, the package would
grow by itself without end."""
EXCLUDED: Final = (".git", ".venv", ".greenroom", ".env*", "__pycache__", *_RAYS_OWN)
"""Patterns of what is never sent: it is large, belongs to one machine, or holds secrets."""
_CASES: Final = ("gathered", "beside", "reference", "value")
_OURS: Final = Path(greenroom.__file__).parent


class Parcel(Struct, frozen=True):
    """What a node needs to run trials as they would run here."""

    briefing: dict[str, Json]
    folder: str
    """Where the run was started, as seen from the project's folder."""
    path: list[str]
    """Those entries of `sys.path` that are in the project's folder."""
    withheld: list[str]
    """The variables of the node that its worker processes do not get."""


def project_root(start: Path) -> Path:
    """The folder of the nearest `pyproject.toml`, else the one to start from."""
    return next((at for at in (start, *start.parents) if (at / "pyproject.toml").is_file()), start)


def pack(briefing: dict[str, Any], root: Path, here: Path, withheld: Sequence[str] = ()) -> Parcel:
    """A briefing for nodes that have `root` at another place; BadInput names what cannot be sent."""
    traveller = _Traveller(root, here)
    options = {name: traveller.option(name, v) for name, v in briefing["options"].items()}
    cases: dict[str, Any] = briefing["cases"]
    packed: dict[str, Any] = {
        **briefing,
        "agent": traveller.part(briefing["agent"], "the agent"),
        "cases": {
            name: traveller.reference(v, "the cases") if name in _CASES else v
            for name, v in cases.items()
        },
        "options": options,
        "modules": [[name, traveller.module(file)] for name, file in briefing["modules"]],
    }
    inside = [p for p in sys.path if p and traveller.is_sent(Path(p))]
    path = [os.path.relpath(p, root) for p in inside]
    return Parcel(packed, os.path.relpath(here, root), path, [*withheld])


class _Traveller(Struct, frozen=True):
    root: Path
    here: Path

    def option(self, name: str, value: Any) -> object:
        """An option of the briefing, with its paths as nodes see them."""
        match name:
            case "cache":
                # Nodes share no folder of the project with this machine, but perhaps one outside of it.
                is_here = value is not None and self._is_inside(self._full(value))
                return None if is_here else value
            case "resources" if not isinstance(value, str) and [*value] != ["reference"]:
                return {
                    key: self.part(part, f"the resource {key!r}") for key, part in value.items()
                }
            case "mocks" if not isinstance(value, str):
                return value
            case _:
                return self.part(value, f"the {name}")

    def part(self, value: Any, what: str) -> Any:
        """A reference, or several, as nodes see them; anything else is returned as is."""
        match value:
            case str():
                return self.reference(value, what)
            case {"reference": str(found)} if len(value) == 1:
                return {"reference": self.reference(found, what)}
            case [*parts]:
                return [self.part(one, what) for one in parts]
            case _:
                return value

    def reference(self, given: str, what: str) -> str:
        """`path[:attr]` relative to where the run was started; names of modules and models stay."""
        where, attr = split_reference(given)
        path = Path(where)
        if not path.is_absolute() and ".." not in path.parts and not path.exists():
            return given
        full = self._full(where)
        ending = f":{attr}" if attr else ""
        if self.is_sent(full):
            return os.path.relpath(full, self.here) + ending
        if name := _installed(full):
            return name + ending
        why = "which is never sent" if self._is_inside(full) else f"outside the project {self.root}"
        raise BadInput(
            f"{what} is {given!r}, {why}, so no node of the cluster would find it. Keep it inside the "
            f"project, or install it as a package in the image of the nodes."
        )

    def module(self, file: str) -> str:
        """The file of a module; those that are installed are found by their names."""
        full = self._full(file)
        return os.path.relpath(full, self.here) if self.is_sent(full) else file

    def is_sent(self, path: Path) -> bool:
        """Whether a file or folder is sent."""
        if not self._is_inside(full := self._full(path)):
            return False
        parts = full.relative_to(self.root).parts
        return not any(Path(part).match(pattern) for part in parts for pattern in EXCLUDED)

    def _is_inside(self, full: Path) -> bool:
        return full.is_relative_to(self.root)

    def _full(self, path: str | Path) -> Path:
        return Path(os.path.normpath(self.here / path))


def _installed(file: Path) -> str:
    """The module in this file, if it belongs to an installed package or to Greenroom; else empty."""
    is_package = {"site-packages", "dist-packages"} & {*file.parts} or file.is_relative_to(_OURS)
    return next(iter(loaded_from(str(file))), "") if is_package else ""


def variables(names: Mapping[str, str] | Any) -> dict[str, str]:
    """The values of these variables here; BadInput names one that is not set."""
    missing = [name for name in names if name not in os.environ]
    if missing:
        raise BadInput(
            f"Ray(env=[…]) names {missing[0]!r}, which is not set here, so it cannot be sent to the nodes."
        )
    return {name: os.environ[name] for name in names}
