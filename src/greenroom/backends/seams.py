"""The seams where frameworks call their tools and models, each installed once per process.

A seam wraps a framework's own innermost call, so it works however an agent is run: passed to Greenroom,
inside a plain function, a tool, a callback or a thread. It is installed when a rehearsal begins and the
framework is loaded, or as soon as the framework is loaded after that. Importing Greenroom installs nothing.
"""

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from importlib import import_module
from importlib.machinery import ModuleSpec
from inspect import signature
from pathlib import Path
from threading import RLock, local
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, Final, cast
from weakref import WeakSet

from msgspec import Struct

from greenroom.errors import FenceNotHeld, GreenroomError

if TYPE_CHECKING:
    from importlib.abc import Loader  # loads importlib.resources, and with that tempfile and shutil


class Seam(Struct, frozen=True):
    """A framework's seam: the module's `install()` is called once a watched module is loaded."""

    module: str
    watched: tuple[str, ...]
    """Modules that the framework loads last: earlier, what the seam wraps may be incomplete."""
    parts: tuple[str, ...] = ()
    """Modules that may be the only part of the framework that is ever loaded; checked when nothing is half
    loaded: when a rehearsal begins, and when an import of the framework has ended."""
    install: Callable[[], None] | None = None
    """Called instead of the module's `install()`, if one module has several seams."""

    def watches(self, module: str) -> bool:
        """Whether this module may be the last one that is loaded before the seam is needed."""
        if module in self.watched or not self.parts:
            return module in self.watched
        package = self.watched[0].rpartition(".")[0]
        return module == package or module.startswith(f"{package}.")

    def is_due(self, loaded: str) -> bool:
        """Whether it must be installed now that this module is loaded."""
        is_half_loaded = _loading.modules[self] > 0
        return loaded in self.watched or (
            not is_half_loaded and any(part in sys.modules for part in self.parts)
        )


# Modules whose names any project might choose, with the package that is meant.
_COMMON_NAMES: Final = {"agents": "openai-agents", "mcp": "mcp"}

SEAMS: Final[list[Seam]] = [
    Seam(
        "greenroom.backends.adk.seam",
        ("google.adk.runners",),
        (
            "google.adk.tools.base_tool",
            "google.adk.models.base_llm",
            "google.adk.code_executors.base_code_executor",
        ),
    ),
    Seam("greenroom.backends.pydantic_ai.seam", ("pydantic_ai",)),
    Seam("greenroom.backends.langchain.tools", ("langchain_core.tools",)),
    Seam("greenroom.backends.langchain.models", ("langchain_core.language_models.chat_models",)),
    Seam("greenroom.backends.langchain.graphs", ("langgraph.pregel",)),
    Seam("greenroom.backends.langgraph.seam", ("langgraph.prebuilt",)),
    Seam("greenroom.backends.openai_agents.seam", ("agents",)),
    Seam("greenroom.backends.openai_agents.servers", ("agents.mcp.server",)),
    Seam("greenroom.backends.mcp", ("mcp",)),
    *(
        Seam("greenroom.simulation.fence.requests", (client,))
        for client in ("http.client", "httpx", "httpx2", "aiohttp")
    ),
]
"""The seams of our own backends; `add_seam` adds those of others."""

_put_in: Final[set[Seam]] = set()
_broken: Final[dict[str, str]] = {}
_installing: Final = RLock()
_held: Final[dict[str, Seam]] = {}
"""The modules in which seams are installed. If one is loaded again, its second copy has none."""
_at_work: Final[list[Seam]] = []
"""The seams that are being installed, one because of another."""
_refusing: Final[list[Callable[[str], None]]] = []
"""Asked before such a module is loaded again; each raises where that is refused."""

Call = Callable[..., Any]
Wrap = Callable[[Call], Call]
Visit = Callable[[type], None]
_reals: Final[dict[Call, Call]] = {}
"""The real function behind each seam."""


def stand() -> None:
    """Install the seams of all loaded frameworks, and watch for frameworks that are loaded later."""
    with _installing:
        if _FINDER not in sys.meta_path:
            sys.meta_path.insert(0, _FINDER)
        for seam in SEAMS:
            if any(name in sys.modules for name in (*seam.watched, *seam.parts)):
                _install(seam)


def add_seam(module: str, *watched: str, install: Callable[[], None] | None = None) -> None:
    """Call `module.install()`, or `install`, once one of the `watched` modules is loaded."""
    SEAMS.append(Seam(module, watched, install=install))
    if _FINDER in sys.meta_path:
        stand()


def hold(module: str, install: Callable[[], None]) -> None:
    """Call `install` whenever this module, which is loaded by now, is loaded again."""
    _held[module] = Seam(module, (module,), install=install)


def refuse_second_copies_by(refuse: Callable[[str], None]) -> None:
    """Ask `refuse` before a framework's module with seams is loaded again."""
    if refuse not in _refusing:
        _refusing.append(refuse)


def missing_seams() -> tuple[str, ...]:
    """Why loaded frameworks cannot be intercepted; empty if all can."""
    return tuple(_broken.values())


def original(owner: Any, name: str) -> Callable[..., Any]:
    """The function that a seam is about to wrap; FenceNotHeld if this version does not have it."""
    try:
        return vars(owner)[name] if isinstance(owner, type) else getattr(owner, name)
    except (KeyError, AttributeError):
        where = getattr(owner, "__qualname__", getattr(owner, "__name__", repr(owner)))
        raise FenceNotHeld(f"it has no {where}.{name}") from None


def is_seam(function: object) -> bool:
    """Whether this function is a seam, by identity: wrappers copy attributes."""
    return isinstance(function, FunctionType) and function in _reals


def real_of(function: Any) -> Any:
    """The real function behind a seam, or the function itself if it is not a seam."""
    return _reals[function] if is_seam(function) else function


def stand_in(real: Call, seam: Call) -> Call:
    """The seam with the metadata of what it replaces, but without a reference to it."""
    wrapped: Any = wraps(real)(seam)
    wrapped.__signature__ = signature(real)
    del wrapped.__wrapped__
    _reals[wrapped] = real
    return wrapped


def wrap(places: Iterable[tuple[Any, str, Wrap]]) -> None:
    """Install a seam at each place, an attribute of a module or a class.

    All are looked up before the first is installed: a version that lacks one is left unchanged.
    """
    found = [(owner, name, make, original(owner, name)) for owner, name, make in places]
    for owner, name, make, real in found:
        _hold(owner)
        if isinstance(real, classmethod):
            function = cast("Call", real.__func__)
            setattr(owner, name, classmethod(stand_in(function, make(function))))
        else:
            setattr(owner, name, stand_in(real, make(real)))


def _hold(owner: Any) -> None:
    """Remember the module of a class, or the module itself, in which the seam at work is installed."""
    if _at_work:
        _held.setdefault(
            owner.__module__ if isinstance(owner, type) else owner.__name__, _at_work[-1]
        )


def wrap_below(base: type, methods: Mapping[str, Wrap]) -> None:
    """Wrap these methods of a class and of all its subclasses, including later ones; abstract methods are left."""

    def visit(kind: type) -> None:
        for name, make in methods.items():
            own = own_method(kind, base, name)
            if own is not None and not is_seam(own):
                setattr(kind, name, stand_in(own, make(own)))

    follow_classes(base, visit)


def own_method(kind: type, base: type, name: str) -> Call | None:
    """The method that a class defines itself or has from a mixin, as a function; None if a class that is visited has it.

    The mixin itself is no subclass of `base`, so it is never visited.
    """
    owner = kind
    for (
        one
    ) in kind.__mro__:  # a loop, for all classes of the frameworks are asked about before a run
        if name in one.__dict__:
            owner = one
            break
    if owner is not kind and (base in owner.__mro__ or owner in base.__mro__):
        return None
    held = vars(owner).get(name)
    if held is None or getattr(held, "__isabstractmethod__", False):
        return None
    return held if isinstance(held, FunctionType) else _as_function(held, name)


def _as_function(held: object, name: str) -> Call:
    """What is held by a class in place of a function, such as a `partialmethod`, as a function of the object."""

    def method(self: Any, *args: Any, **given: Any) -> Any:
        bind: Any = getattr(type(held), "__get__", None)
        call: Any = held if bind is None else bind(held, self, type(self))
        return call(*args, **given)

    method.__name__ = name
    return method


_followed: Final[list[tuple[type, Visit]]] = []


def follow_classes(base: type, visit: Visit) -> None:
    """Visit a class and all its subclasses, including those that are defined later.

    A class is visited when it is defined. If a mixin keeps that from being noticed, it is visited with its first
    object, and all are visited again with `revisit`.
    """
    seen: WeakSet[type] = WeakSet()
    _hold(base)

    def visit_first(kind: type) -> None:
        if kind not in seen:
            seen.add(kind)
            visit(kind)

    _walk(base, visit_first)
    _followed.append((base, visit))
    before: Any = vars(base).get("__init_subclass__")
    make: Any = vars(base).get("__new__")

    def init_subclass(cls: type, **options: Any) -> None:
        if before is None:
            super(base, cls).__init_subclass__(**options)
        else:
            before.__get__(None, cls)(**options)
        visit_first(cls)

    def new(cls: type, *args: Any, **given: Any) -> Any:
        visit_first(cls)
        made: Any = super(base, cls).__new__ if make is None else make.__get__(None, cls)
        return made(cls) if made is object.__new__ else made(cls, *args, **given)

    base.__init_subclass__ = classmethod(init_subclass)  # pyright: ignore[reportAttributeAccessIssue]
    base.__new__ = new  # pyright: ignore[reportAttributeAccessIssue]


def revisit() -> None:
    """Visit every class again, before a run: a method may have been replaced since, as instrumentation does."""
    with _installing:
        for base, visit in _followed:
            _walk(base, visit)


def _walk(base: type, visit: Visit) -> None:
    kinds = {base: None}
    waiting = [base]
    for kind in waiting:
        visit(kind)
        below = [one for one in type.__subclasses__(kind) if one not in kinds]
        kinds |= dict.fromkeys(below)
        waiting += below


def is_really(name: str) -> bool:
    """Whether a module is the known package, not a package of the user's by that name."""
    if name not in _COMMON_NAMES:
        return True
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        meant = distribution(_COMMON_NAMES[name]).locate_file(name)
    except PackageNotFoundError:
        return False
    file = getattr(sys.modules.get(name), "__file__", None)
    return file is not None and Path(file).resolve().parent == Path(str(meant)).resolve()


def _install(seam: Seam) -> None:
    if seam in _put_in or not is_really(seam.watched[0].split(".")[0]):
        return
    _put_in.add(seam)
    _at_work.append(seam)
    try:
        (seam.install or import_module(seam.module).install)()
    except (GreenroomError, ImportError, AttributeError, TypeError, ValueError) as error:
        framework = seam.watched[0].split(".")[0]
        _broken[seam.module] = (
            f"the tools of {framework} cannot be intercepted in this version: {error}. Install a version "
            f"that Greenroom knows"
        )
    finally:
        _at_work.pop()


class _Loading(local):
    """How many modules that a seam watches this thread loads at the moment, one because of another."""

    def __init__(self) -> None:
        self.modules = Counter[Seam]()


_loading: Final = _Loading()


class _Finder:
    """An import finder that installs a seam after a watched module has been loaded."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        held = _held.get(fullname)
        seam = held or next((s for s in SEAMS if s not in _put_in and s.watches(fullname)), None)
        if seam is None:
            return None
        for finder in sys.meta_path:
            spec = None if finder is self else finder.find_spec(fullname, path, target)
            if spec is not None:
                if spec.loader is not None:
                    kind = _Loader if held is None else _SecondLoader
                    spec.loader = cast("Loader", kind(spec.loader, seam))
                return spec
        return None


class _Loader:
    """Loads a module with its own loader, then installs the seam."""

    def __init__(self, real: "Loader", seam: Seam) -> None:
        self._real = real
        self._seam = seam

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._real.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._put_back(module)
        _loading.modules[self._seam] += 1
        try:
            self._real.exec_module(module)
        finally:
            _loading.modules[self._seam] -= 1
        if not self._seam.is_due(module.__name__):
            return
        with _installing:
            _install(self._seam)
        if self._seam.module in _broken:
            raise FenceNotHeld(_broken[self._seam.module])

    def _put_back(self, module: ModuleType) -> None:
        """From here on the module has its own loader again, which resources and reloading use."""
        module.__loader__ = self._real
        if module.__spec__ is not None:
            module.__spec__.loader = self._real


class _SecondLoader(_Loader):
    """Loads a module again in which seams are: they are installed again, or the second copy is not held.

    Seams of a framework are not: the gates know the classes of the first copy.
    """

    def exec_module(self, module: ModuleType) -> None:
        self._put_back(module)
        name, install = module.__name__, self._seam.install
        if install is None:
            for refuse in _refusing:
                refuse(name)
            _broken[self._seam.module] = (
                f"{name} was loaded a second time in this process, and the tools of the second copy cannot "
                f"be intercepted. Load it once, or rehearse in a new process"
            )
        self._real.exec_module(module)
        if install is not None:
            with _installing:
                install()


_FINDER: Final = _Finder()
