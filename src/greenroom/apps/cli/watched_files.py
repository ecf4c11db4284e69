"""Which files matter to an evaluation: those whose change may change its verdict."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from greenroom.apps.cli.request import Order
from greenroom.errors import NotFound
from greenroom.suite.references import split_reference
from greenroom.suite.sources import is_usual

_CODE = (".py", ".md", ".txt", ".j2", ".jinja", ".toml")
"""What an agent may be made of: its code, and the prompts and settings that it reads."""
_DATA = (".json", ".yaml", ".yml", ".jsonl", ".ndjson", ".csv", ".tsv")
_NOT_OURS = ("__pycache__", "node_modules", "venv")


@dataclass(frozen=True, slots=True)
class Places:
    """The folders of agents, and the files and folders that cases, config and mocks are from."""

    homes: frozenset[Path]
    data: frozenset[Path]

    @property
    def folders(self) -> list[Path]:
        """Everything there is to watch."""
        return sorted(self.homes | {path if path.is_dir() else path.parent for path in self.data})

    def matter(self, file: Path) -> bool:
        """Whether a change of this file may change a verdict."""
        if file in self.data or (file.suffix in _DATA and _lies_in(file, self.data)):
            return True
        counts = file.suffix in _CODE or (is_usual(file) and not self.data)
        return counts and _lies_in(file, self.homes)


def _lies_in(file: Path, folders: frozenset[Path]) -> bool:
    return any(_is_ours(file.relative_to(f)) for f in folders if file.is_relative_to(f))


def _is_ours(inside: Path) -> bool:
    return not any(part.startswith(".") or part in _NOT_OURS for part in inside.parts)


def places_of(order: Order) -> Places:
    """What an order is about."""
    homes = frozenset(_home(agent).resolve() for agent in order.agents)
    return Places(homes, frozenset(path.resolve() for path in _data_places(order)))


def _home(agent: str) -> Path:
    """The folder that an agent lives in."""
    where, _ = split_reference(agent)
    module = Path(*where.split("."))
    for path in (Path(where), module, module.with_suffix(".py")):
        if path.exists():
            return path if path.is_dir() else path.parent
    if where.endswith(".py") or "/" in where:
        raise NotFound(f"invalid agent path: there is no file {where!r}.")
    return Path()  # an installed module: its author hardly edits it, but perhaps what is here


def _data_places(order: Order) -> Iterator[Path]:
    for name in (order.cases, order.config, order.mocks):
        path = Path(split_reference(name)[0])
        if name and (path.suffix in _DATA or path.exists()):
            yield path if path.exists() else _beginning(path)


def _beginning(path: Path) -> Path:
    """The folder that a glob starts in."""
    return next(folder for folder in path.parents if folder.exists())
