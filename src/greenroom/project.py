"""The settings of a project: `[tool.greenroom]` of the nearest `pyproject.toml`."""

import re
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

from greenroom.errors import BadFile
from greenroom.plugins import suggest

SETTINGS: Final = ("store", "redact_env", "prices", "pytest")
_TABLE: Final = "tool.greenroom"
_HEADER = re.compile(r"\s*\[\s*([^\[\]]+?)\s*\]")
_KEY = re.compile(r"""\s*(?:"([^"]*)"|'([^']*)'|([\w-]+))\s*[.=]""")


class Project(NamedTuple):
    """A `pyproject.toml` that was read."""

    file: Path
    changed: int
    text: str
    settings: dict[str, Any]

    def place(self, key: str, table: str = _TABLE) -> str:
        """Where a setting is written, for a message."""
        line = _line_of(self.text, table, key)
        return f"{self.file}, line {line}" if line else str(self.file)


def nearest_project(folder: Path | None = None) -> Project | None:
    """The project of a folder (default: the current one); None without a `pyproject.toml` there or above."""
    try:
        start = Path.cwd() if folder is None else folder.resolve()
    except OSError:  # the folder is gone, and its project with it
        return None
    for place in (start, *start.parents):
        file = place / "pyproject.toml"
        if file.is_file():
            return project_in(file)
    return None


def project_in(file: Path) -> Project:
    """The Greenroom settings of a `pyproject.toml`; BadFile lists all unknown ones."""
    try:
        return _read(file, file.stat().st_mtime_ns)
    except OSError as error:
        raise BadFile(f"{file} cannot be read: {error}") from error


@lru_cache(maxsize=16)
def _read(file: Path, changed: int) -> Project:
    import tomllib  # slow to load, and many folders have no project

    try:
        text = file.read_text(encoding="utf-8")
        found: Any = tomllib.loads(text)
    except ValueError as error:
        raise BadFile(f"{file} cannot be read as TOML: {error}") from error
    for step in _TABLE.split("."):
        found = cast("dict[str, Any]", found).get(step, {})
        if not isinstance(found, dict):
            raise BadFile(f"{file}: {step!r} is {found!r}; settings belong under [{_TABLE}].")
    project = Project(file, changed, text, cast("dict[str, Any]", found))
    unknown = [
        f"{project.place(name)}: [{_TABLE}] has no setting {name!r}. {suggest(name, SETTINGS)}"
        for name in project.settings
        if name not in SETTINGS
    ]
    if unknown:
        raise BadFile("\n".join(unknown))
    return project


def _line_of(text: str, table: str, key: str) -> int | None:
    """The line of a key in a table, written in the usual way; None if it is written differently."""
    inside = ""
    for number, line in enumerate(text.splitlines(), start=1):
        if header := _HEADER.match(line):
            inside = header[1].replace(" ", "")
            if f"{inside}.".startswith(f"{table}.{key}."):
                return number
        elif inside == table and (found := _KEY.match(line)) and key in found.groups():
            return number
    return None
