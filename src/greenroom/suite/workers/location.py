"""Where another process finds an object of this one again: a module, and a name in it."""

import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from greenroom.suite.imports import fenced_import
from greenroom.suite.references import executed

_MAIN = "__main__"
_SHARED = (tuple, frozenset, str, bytes, int, float, type(None))
"""Equal values of these may be one object, whose names in other modules say nothing."""


def reference_to(thing: Any) -> str:
    """`path:attr` of this very object in a module; "" if it lives in none that can be imported."""
    if isinstance(thing, _SHARED):
        return ""
    return _by_its_own_name(thing) or next(_by_names_of_others(thing), "")


def _by_its_own_name(thing: Any) -> str:
    home, name = getattr(thing, "__module__", None), getattr(thing, "__qualname__", None)
    module = sys.modules.get(home) if isinstance(home, str) else None
    if module is None or home == _MAIN or not isinstance(name, str):
        return ""
    found: Any = module
    for part in name.split("."):
        found = getattr(found, part, None)
    return _reference(module, name) if found is thing else ""


def _by_names_of_others(thing: Any) -> Iterator[str]:
    for name, module in list(sys.modules.items()):
        # Things that stand in for modules may load something when they are asked.
        if name == _MAIN or type(module) is not ModuleType:
            continue
        for attr, value in list(vars(module).items()):
            if value is thing:
                yield _reference(module, attr)


def _reference(module: ModuleType, attr: str) -> str:
    return f"{_file_of(module) or module.__name__}:{attr}"


def _file_of(module: ModuleType) -> str:
    file = vars(module).get("__file__")
    return file if isinstance(file, str) and file.endswith(".py") else ""


def loaded_from(file: str) -> list[str]:
    """Name and file of the module that this process made of a Python file; empty if of none."""
    for name, module in list(sys.modules.items()):
        if name != _MAIN and type(module) is ModuleType and _file_of(module) == file:
            return [name, file]
    return []


def load_as(name: str, file: str) -> None:
    """Load a file by the name it has in another process: digests know modules by name."""
    if name in sys.modules:
        return
    try:
        spec = find_spec(name)
    except (ImportError, ValueError):
        spec = None
    with fenced_import(Path(file).name):
        if spec is not None and spec.origin == file:
            import_module(name)
        else:
            executed(Path(file), name)
