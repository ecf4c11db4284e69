"""Where another process finds an object of this one: a module, and a name in it."""

import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from greenroom.errors import BadFile

MAIN = "__main__"
_SHARED = (tuple, frozenset, str, bytes, int, float, type(None))
"""Types whose equal values may be one object, so that a name in a module does not identify it."""


def reference_to(thing: object) -> str:
    """`path:attr` of this very object in a module; "" if it is in none that can be imported."""
    if isinstance(thing, _SHARED):
        return ""
    named = named_in(thing) or _named_by_others(thing)
    return "" if named is None else f"{source_of(named[0]) or named[0].__name__}:{named[1]}"


def named_in(thing: object) -> tuple[ModuleType, str] | None:
    """The module that made an object, and its name there; None if it is not found that way."""
    home, name = getattr(thing, "__module__", None), getattr(thing, "__qualname__", None)
    module = sys.modules.get(home) if isinstance(home, str) else None
    if module is None or home == MAIN or not isinstance(name, str):
        return None
    found: object = module
    for part in name.split("."):
        found = getattr(found, part, None)
    return (module, name) if found is thing else None


def _named_by_others(thing: object) -> tuple[ModuleType, str] | None:
    for module in _modules():
        namespace = vars(module).copy()
        # With large frameworks there are half a million names: comparing ids takes a third of the time.
        if id(thing) in map(id, namespace.values()):
            return module, next(attr for attr, value in namespace.items() if value is thing)
    return None


def values_in_modules() -> Iterator[tuple[ModuleType, str, object]]:
    """Everything at the top of modules that another process could import."""
    for module in _modules():
        for attr, value in list(vars(module).items()):
            yield module, attr, value


def _modules() -> Iterator[ModuleType]:
    for name, module in list(sys.modules.items()):
        # Objects that replace modules may load something when an attribute is read.
        if name != MAIN and type(module) is ModuleType:
            yield module


def file_of(module: object) -> str:
    """The file that a module was made from; "" if it has none, or is nothing but a mark that it is missing."""
    if not issubclass(type(module), ModuleType):
        return ""
    # Asked in the usual way, a lazy module would be loaded.
    file = object.__getattribute__(module, "__dict__").get("__file__")
    return file if isinstance(file, str) else ""


def source_of(module: object) -> str:
    """The Python file of a module; "" if it has none."""
    file = file_of(module)
    return file if file.endswith(".py") else ""


def loaded_from(file: str) -> list[str]:
    """Name and file of the module that this process loaded from a Python file; empty if from none."""
    for name, module in list(sys.modules.items()):
        if name != MAIN and file_of(module) == file:
            return [name, file]
    return []


def load_as(name: str, file: str) -> ModuleType:
    """Load a file as the module name it has in another process, since digests contain module names.

    If there is no such file, as in a container, the module is imported by its name.
    """
    if name in sys.modules:
        return sys.modules[name]
    try:
        spec = find_spec(name)
    except (ImportError, ValueError):
        spec = None
    if spec is not None and (spec.origin == file or not Path(file).is_file()):
        return import_module(name)
    return executed(Path(file), name)


def executed(path: Path, name: str) -> ModuleType:
    """Run a file as a module of this name; one that fails is removed again."""
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise BadFile(f"{path.name} cannot be imported.")
    module = module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
