"""Classes that would go around the seams: those there are, and those to come."""

import functools
import inspect
import os
import sys
from collections.abc import Callable
from typing import Any
from weakref import WeakSet

from greenroom.backends.langchain.callers import IN_MODEL, MARK, refuse_around

Call = Callable[..., Any]

_FRAMEWORK = ("langchain_core", "langchain", "langgraph")
_seen: WeakSet[type] = WeakSet()


def watch_classes(base: type, names: tuple[str, ...]) -> None:
    """Guard every class below `base` that replaces one of the names, also those made later."""
    kinds = [base]
    for kind in kinds:
        for cls in kind.__subclasses__():
            kinds.append(cls)
            _watch(cls, names)
    real: Any = vars(base).get("__init_subclass__")

    def init_subclass(cls: type, **given: Any) -> None:
        if real is not None:
            real.__get__(None, cls)(**given)
        else:
            super(base, cls).__init_subclass__(**given)
        _watch(cls, names)

    base.__init_subclass__ = classmethod(init_subclass)  # pyright: ignore[reportAttributeAccessIssue]


def guard(real: Call, what: str, is_model: bool) -> Call:
    """Refuse a way around the seams while a rehearsal asks for it."""

    @functools.wraps(real)
    def guarded(self: Any, *args: Any, **given: Any) -> Any:
        # A model may do its own work in its own way once it is asked; a tool never may.
        if MARK not in self.__dict__ and not (is_model and IN_MODEL.get()):
            refuse_around(self, what, is_model)
        return real(self, *args, **given)

    return guarded


def _watch(cls: type, names: tuple[str, ...]) -> None:
    if cls in _seen:
        return
    _seen.add(cls)
    is_model = "_generate_with_cache" in names
    for name in names:
        if name in vars(cls) and not is_own(vars(cls)[name]):
            what = f"{cls.__name__}, with its own {name}()"
            setattr(cls, name, guard(vars(cls)[name], what, is_model))


def is_own(method: Any) -> bool:
    """Whether a method is the framework's: known by its code, which wrappers do not copy."""
    code = getattr(inspect.unwrap(method), "__code__", None) or getattr(method, "__code__", None)
    return code is not None and code.co_filename.startswith(_folders())


def _folders() -> tuple[str, ...]:
    loaded = (sys.modules.get(name) for name in _FRAMEWORK)
    return tuple(f"{path}{os.sep}" for module in loaded if module for path in module.__path__)
