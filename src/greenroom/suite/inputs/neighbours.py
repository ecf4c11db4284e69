"""Modules of one name in several folders: each loaded file gets those of its own folder.

Python knows one module by each name. When a file is loaded, modules from elsewhere that its folder has too get
other names, and those of its folder that had one get their own again. So a name belongs to the folder that
imported it last. An import inside a function would get whichever that is, so it is refused.
"""

import ast
import os
import sys
from collections.abc import Collection, Generator, Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path

from greenroom.errors import BadFile

_PREFIX = "greenroom_loaded_"
_STANDARD = Path(os.__file__).resolve().parent


@contextmanager
def own_neighbours(folder: Path) -> Generator[None]:
    """Let imports find the modules of this folder first, even if others of their names are loaded."""
    before, moved = set(sys.modules), _set_aside(folder)
    _bring_back(folder)
    was_listed = str(folder) in sys.path
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        if was_listed:
            sys.path.remove(str(folder))
        taken = {_top(name) for name in sys.modules}
        # What nothing here imported stays what it was.
        _rename({other: name for name, other in moved.items() if _top(name) not in taken})
    contested = {_top(name) for name in moved} & taken
    if late := next(_late_imports(contested), None):
        for name in set(sys.modules) - before - {*moved.values()}:
            del sys.modules[name]
        _rename({other: name for name, other in moved.items() if _top(name) in contested})
        raise BadFile(
            f"{late}, but several folders have a module of this name, {folder} among them, so it could get the "
            f"wrong one. Import it at the top of the file, or rename one of them."
        )


def other_name(name: str, file: str) -> str:
    """A name for a module that no other file has."""
    return f"{_PREFIX}{name}_{blake2b(file.encode(), digest_size=4).hexdigest()}"


def _set_aside(folder: Path) -> dict[str, str]:
    """Rename modules from elsewhere that this folder has too, with all of their packages; their other names by name."""
    moved: dict[str, str] = {}
    for top in {path.stem for path in folder.iterdir()}:
        tree = _tree(top) if top in sys.modules else []
        strange = [file for name, file in tree if _is_elsewhere(name, file, folder)]
        if strange and _is_authors(top, strange[0]):
            other = other_name(top, strange[0])
            moved |= {name: other + name.removeprefix(top) for name, _ in tree}
    _rename(moved)
    return moved


def _bring_back(folder: Path) -> None:
    """Give the modules of this folder that were set aside their names again."""
    for other in {_top(name) for name in sys.modules if name.startswith(_PREFIX)}:
        tree = _tree(other)
        # The file of an agent may have been loaded by such a name: it keeps it.
        top = getattr(sys.modules[other], "__name__", other) if other in sys.modules else other
        named = {name: top + name.removeprefix(other) for name, _ in tree}
        files = [(named[name], file) for name, file in tree if file]
        if top != other and any(_file_in(folder, name) == Path(file) for name, file in files):
            _rename(named)


def _late_imports(tops: Collection[str]) -> Iterator[str]:
    """Where the author's code imports one of these modules only when a function is called."""
    for name, module in list(sys.modules.items()) if tops else ():
        file = vars(module).get("__file__")
        if isinstance(file, str) and file.endswith(".py") and _is_authors(_top(name), file):
            package = _top(getattr(module, "__name__", name))
            for imported, line in _imported_late(file):
                if (imported or package) in tops:
                    which = imported or package
                    yield f"{file}, line {line}, imports {which!r} inside a function"


@lru_cache(maxsize=4096)
def _imported_late(file: str) -> list[tuple[str, int]]:
    """The modules that functions of a file import, each with its line; "" for the file's own package."""
    try:
        tree = ast.parse(Path(file).read_bytes())
    except (OSError, SyntaxError, ValueError):
        return []  # it has changed since it was loaded
    found: list[tuple[str, int]] = []
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for node in ast.walk(function):
                if isinstance(node, ast.Import):
                    found += [(_top(alias.name), node.lineno) for alias in node.names]
                elif isinstance(node, ast.ImportFrom):
                    found.append(("" if node.level else _top(node.module or ""), node.lineno))
    return found


def _tree(top: str) -> list[tuple[str, str]]:
    """The names and files of a loaded module and of those inside it; "" for one without a file."""
    found = [name for name in list(sys.modules) if name == top or name.startswith(f"{top}.")]
    files = [vars(sys.modules[name]).get("__file__") for name in found]
    return [
        (name, str(Path(file).resolve()) if isinstance(file, str) else "")
        for name, file in zip(found, files, strict=True)
    ]


def _rename(names: dict[str, str]) -> None:
    for name, other in names.items():
        sys.modules[other] = sys.modules.pop(name)


def _is_elsewhere(name: str, file: str, folder: Path) -> bool:
    """Whether a loaded module is not the one that this folder has by its name."""
    own = _file_in(folder, name) if file else None
    return own is not None and own != Path(file)


def _file_in(folder: Path, name: str) -> Path | None:
    """The file that a module of this name has in a folder."""
    place = folder.joinpath(*name.split("."))
    files: Iterable[Path] = (place / "__init__.py", place.with_name(f"{place.name}.py"))
    return next((file.resolve() for file in files if file.is_file()), None)


def _is_authors(name: str, file: str) -> bool:
    """Whether a module is the author's own code, not a library."""
    if name in ("__main__", "greenroom") or name in sys.stdlib_module_names:
        return False
    is_installed = {"site-packages", "dist-packages"}.intersection(Path(file).parts)
    return not is_installed and not Path(file).is_relative_to(_STANDARD)


def _top(name: str) -> str:
    return name.partition(".")[0]
