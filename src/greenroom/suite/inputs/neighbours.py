"""Modules of one name in several folders: each loaded file gets those of its own folder.

Python knows one module by each name. When a file is loaded, modules from elsewhere that its folder has too get
other names, and those of its folder that had one get their own again. So a name belongs to the folder that
imported it last. An import inside a function would get whichever that is, so it is refused.
"""

import ast
import os
import re
import sys
from collections.abc import Collection, Generator, Iterator
from contextlib import contextmanager
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from types import ModuleType
from weakref import WeakKeyDictionary

from greenroom.errors import BadFile
from greenroom.world.modules import file_of, source_of

_STANDARD = Path(os.__file__).resolve().parent
_MAY_BE_LATE = re.compile(rb"^(?!import\b|from\b).*\bimport\b", re.MULTILINE)
"""A line that may import inside a function. Most files have none, and are not parsed."""

_aside: dict[Path, dict[str, str]] = {}
"""By folder: its modules that were set aside, each with the name it has meanwhile."""
_libraries: set[str] = set()
"""Names of loaded modules that are not the author's. They can be thousands, and a look at all takes milliseconds."""
_late: WeakKeyDictionary[ModuleType, list[tuple[str, int]]] = WeakKeyDictionary()
"""By module: what its functions import, each with its line."""


@contextmanager
def own_neighbours(folder: Path) -> Generator[None]:
    """Let imports find the modules of this folder first, even if others of their names are loaded."""
    moved = _set_aside(folder)
    for name, other in _aside.pop(folder, {}).items():
        _rename(other, name)
    before, was_listed = list(sys.modules), str(folder) in sys.path
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        if was_listed:
            sys.path.remove(str(folder))
        contested = {name: other for name, other in moved.items() if name in sys.modules}
        new = set(sys.modules).difference(before) if contested else ()
        for name, other in contested.items():
            for home in _homes(name, other):
                _aside.setdefault(home, {})[name] = other
        for name in moved.keys() - contested:
            _rename(moved[name], name)  # nothing here imported its like: it stays what it was
    if late := next(_late_imports(contested), None):
        for name in new:
            del sys.modules[name]
        for name, other in contested.items():
            _rename(other, name)
        raise BadFile(
            f"{late}, but several folders have a module of this name, {folder} among them, so it could get the "
            f"wrong one. Import it at the top of the file, or rename one of them."
        )


def other_name(name: str, file: str) -> str:
    """A name for a module that no other file has."""
    return f"greenroom_loaded_{name}_{blake2b(file.encode(), digest_size=4).hexdigest()}"


def authors_modules() -> Iterator[tuple[str, ModuleType, str]]:
    """The loaded modules of the author's own code: their names, and their files."""
    for name in sorted(sys.modules.keys() - _libraries):
        file = source_of(module := sys.modules.get(name))
        if module is not None and file and _is_authors(_top(name), file):
            yield name, module, file
        else:
            _libraries.add(name)


def _set_aside(folder: Path) -> dict[str, str]:
    """Rename modules from elsewhere that this folder has too; their other names by name."""
    moved: dict[str, str] = {}
    for top in {path.stem for path in folder.iterdir()} & sys.modules.keys():
        own = ((_file_in(folder, name), file) for name, file in _files(top))
        strange = next((str(file) for here, file in own if here not in (None, file)), None)
        if strange is not None and _is_authors(top, strange):
            moved[top] = other_name(top, strange)
            _rename(top, moved[top])
    return moved


def _rename(name: str, other: str) -> None:
    """Give a loaded module another name, and those inside it too."""
    for one in _tree(name):
        sys.modules[other + one.removeprefix(name)] = sys.modules.pop(one)


def _tree(top: str) -> list[str]:
    """The names of a loaded module and of those inside it."""
    file = file_of(sys.modules.get(top))
    if file and Path(file).stem != "__init__":
        return [top]
    inside = f"{top}."
    return [name for name in list(sys.modules) if name == top or name.startswith(inside)]


def _files(top: str) -> Iterator[tuple[str, Path]]:
    """A loaded module and those inside it that have a file, by name."""
    for name in _tree(top):
        if file := file_of(sys.modules[name]):
            yield name, Path(file).resolve()


def _homes(name: str, other: str) -> set[Path]:
    """The folders that a module is imported from by this name; now it has the other."""
    found = ((name + one.removeprefix(other), file) for one, file in _files(other))
    return {
        file.parents[one.count(".") + (file.stem == "__init__")]
        for one, file in found
        if len(file.parents) > one.count(".") + 1
    }


def _file_in(folder: Path, name: str) -> Path | None:
    """The file that a module of this name has in a folder."""
    place = folder.joinpath(*name.split("."))
    files = (place / "__init__.py", place.with_name(f"{place.name}.py"))
    return next((file.resolve() for file in files if file.is_file()), None)


# Imports inside functions


def _late_imports(tops: Collection[str]) -> Iterator[str]:
    """Where the author's code imports one of these modules only when a function is called."""
    for name, module, file in authors_modules() if tops else ():
        package = _top(vars(module).get("__name__", name))
        for imported, line in _imported_late(module, file):
            if (imported or package) in tops:
                which = imported or package
                yield f"{file}, line {line}, imports {which!r} inside a function"


def _imported_late(module: ModuleType, file: str) -> list[tuple[str, int]]:
    """The modules that functions of a module import, each with its line; "" for its own package."""
    if module not in _late:
        _late[module] = _imports_in_functions(file)
    return _late[module]


def _imports_in_functions(file: str) -> list[tuple[str, int]]:
    try:
        source = Path(file).read_bytes()
        tree = ast.parse(source if _MAY_BE_LATE.search(source) else b"")
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


@lru_cache(maxsize=16_384)
def _is_authors(name: str, file: str) -> bool:
    """Whether a module is the author's own code, not a library."""
    if name in ("__main__", "greenroom") or name in sys.stdlib_module_names:
        return False
    is_installed = {"site-packages", "dist-packages"}.intersection(Path(file).parts)
    return not is_installed and not Path(file).is_relative_to(_STANDARD)


def _top(name: str) -> str:
    return name.partition(".")[0]
