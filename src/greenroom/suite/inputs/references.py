"""The author's code by reference: `path[:attr]`, imported inside the fence; only what is named is used."""

import ast
import asyncio
import importlib
import inspect
import shlex
import sys
import traceback
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from greenroom.backends.makers import per_case
from greenroom.backends.registry import backend_for
from greenroom.cases.suffixes import SUFFIXES
from greenroom.errors import (
    BadFile,
    BadInput,
    FenceBreach,
    ImportFailed,
    ImportRefused,
    NotFound,
    ToolRefused,
)
from greenroom.ledger.text_files import similar_file
from greenroom.plugins import suggest
from greenroom.simulation.fence import Breach, FencedScope, RunScope, opening_for, put_up
from greenroom.simulation.fence.refusal import where
from greenroom.suite.inputs.import_rules import is_import_allowed, is_only_rehearsing
from greenroom.suite.inputs.neighbours import (
    authors_modules,
    other_name,
    own_neighbours,
)
from greenroom.world.call_context import guarded
from greenroom.world.modules import executed, file_of
from greenroom.world.threads import Interruption

AGENT_NAMES = ("root_agent", "agent", "graph", "app")
AGENT_FACTORIES = ("create_graph", "create_agent", "get_agent_async")
FOLDER_FILES = ("agent.py", "__init__.py", "main.py")


async def load_agent(reference: str) -> Any:
    """The agent named by `path[:attr]` or a dotted module; factories are called and awaited.

    `path:make_agent()` is made again for every case.
    """
    found = await _agent_named(reference)
    # Commands look at an agent before they run it: what code of its own does then, it does here first, inside the
    # fence. One that is made for every case is looked at in a sample.
    with fenced_import(reference):
        _ = backend_for(found).snapshot
    return found


async def _agent_named(reference: str) -> Any:
    where, attr = split_reference(reference)
    module = load_module(where)
    if attr.endswith("()"):
        return per_case(_attribute(module, attr.removesuffix("()"), reference))
    if attr:
        return await _made(_attribute(module, attr, reference), reference)
    for name in (*AGENT_NAMES, *AGENT_FACTORIES):
        found = getattr(module, name, None)
        if found is not None:
            return await _made(found, f"{where}:{name}") if name in AGENT_FACTORIES else found
    raise NotFound(
        f"no agent found in {where}: it defines none of "
        f"{', '.join((*AGENT_NAMES, *AGENT_FACTORIES))}. Name it: {where}:your_agent."
    )


async def _made(found: object, reference: str) -> object:
    """The agent that a factory makes; an agent object, or a function that takes a message, is returned as is."""
    if not inspect.isfunction(found):
        return found
    try:
        inspect.signature(found).bind()
    except TypeError as error:
        if found.__name__ not in AGENT_FACTORIES:
            return found
        raise BadFile(
            f"{found.__name__}() cannot be called to make an agent: {error}. Let it need no "
            f"arguments, or name an agent that is made already."
        ) from error
    with fenced_import(f"{reference}()"):
        made = found()
    if not inspect.isawaitable(made):
        return made
    with fenced_import(f"{reference}()", runs_loop=False):
        return await made


def load_value(reference: str) -> Any:
    """What `path:attr` names in the author's code."""
    where, attr = split_reference(reference)
    if not attr:
        raise NotFound(f"{reference!r} names a module; say what in it: {where}:name.")
    return _attribute(load_module(where), attr, reference)


def split_reference(reference: str) -> tuple[str, str]:
    """The path and the name in `path[:attr]`; "" without one."""
    where, colon, attr = reference.rpartition(":")
    return (where, attr) if colon and where and "/" not in attr else (reference, "")


def _attribute(module: ModuleType, dotted: str, reference: str) -> Any:
    with fenced_import(reference):  # a module may make what it is asked for
        return _named(module, dotted, reference)


def _named(module: ModuleType, dotted: str, reference: str) -> Any:
    found: Any = module
    for name in dotted.split("."):
        items = _items(found)
        if name not in items and not hasattr(found, name):
            public = sorted(n for n in vars(module) if not n.startswith("_"))
            raise NotFound(f"{reference!r}: there is no {name!r}. {suggest(name, public)}")
        found = items[name] if name in items else getattr(found, name)
    return found


def _items(found: object) -> dict[str, Any]:
    """The items of a list by their numbers; of anything else, none."""
    if not isinstance(found, list | tuple):
        return {}
    return {str(number): item for number, item in enumerate(cast("Iterable[Any]", found))}


def load_module(where: str) -> ModuleType:
    """A Python file, a folder with an agent, or a dotted module, imported once, inside the fence."""
    with fenced_import(where):
        path = Path(where)
        if path.is_dir():
            files = [path / name for name in FOLDER_FILES if (path / name).is_file()]
            if not files:
                raise NotFound(
                    f"no agent module found in {path}: none of {', '.join(FOLDER_FILES)}. Name the "
                    f"file of the agent."
                )
            path = files[0]
        if path.is_file():
            return _from_file(path.resolve())
        if path.exists():
            raise BadFile(f"cannot read {where}: it is a pipe or a device. Name a regular file.")
        if path.suffix == ".py" or "/" in where:
            what = "folder" if where.endswith("/") else "file"
            raise NotFound(f"there is no {what} {where!r}.{similar_file(path)}")
        if str(Path.cwd()) not in sys.path:
            sys.path.insert(0, str(Path.cwd()))
        try:
            return importlib.import_module(where)
        except ModuleNotFoundError as error:
            raise NotFound(f"there is no file or module {where!r} ({error}).") from error


def _from_file(path: Path) -> ModuleType:
    """The module of a file, loaded once; what it imports is looked for in its folder first, as when it is run."""
    if path.suffix != ".py":
        why = f"{path.name} is not a Python file, which agents and other code are read from."
        if path.suffix in SUFFIXES:
            why += (
                f" If it holds cases, name their agent first: greenroom eval run agent.py "
                f"{shlex.quote(path.name)}"
            )
        raise BadFile(why)
    folder, parts = path.parent, [path.stem]
    if is_in_package := (folder / "__init__.py").is_file():
        # A module of a package, imported by its full name, so that its relative imports work.
        parts = [] if path.stem == "__init__" else [path.stem]
        while (folder / "__init__.py").is_file():
            parts.insert(0, folder.name)
            folder = folder.parent
    with own_neighbours(folder):
        if (loaded := _loaded_from(path, ".".join(parts))) is not None:
            return loaded
        if not is_in_package:
            return executed(path, _module_name(path))
        top = sys.modules.get(parts[0])
        if top is None or str(folder / parts[0]) in map(str, getattr(top, "__path__", ())):
            return importlib.import_module(".".join(parts))
        try:
            return executed(path, _module_name(path))
        except ImportError as error:
            if error.name is not None:
                raise
            raise BadFile(
                f"{path} cannot be imported as part of its package: {error}. An installed library is "
                f"called {parts[0]!r} too; rename the folder {folder / parts[0]}."
            ) from error


def _loaded_from(path: Path, dotted: str) -> ModuleType | None:
    """The module that was made from a file: by the names it may have here, or else by any."""
    file = str(path)
    likely = (sys.modules.get(name) for name in (dotted, path.stem, other_name(path.stem, file)))
    for module in chain(likely, (module for _, module, _ in authors_modules())):
        if module is not None and file_of(module) == file and module.__name__ != "__main__":
            return module
    return None


def _module_name(path: Path) -> str:
    """The name another file would import it by, so that both get the same objects."""
    if path.stem not in sys.modules and path.stem not in sys.stdlib_module_names:
        return path.stem
    return other_name(path.stem, str(path))


# The agent that a file of cases belongs to; nothing is imported to find it


def agent_beside(cases: Path, within: Path) -> str | None:
    """The Python file that holds the agent of `cases`, or None.

    `weather.test.json` belongs to `weather.py` or the folder `weather` next to it; any file of cases
    to an `agent.py` next to it or one folder up. The Python file must be `within` that folder and name an agent.
    """
    folder, stem = cases.parent, cases.stem
    for ending in (".evalset", ".test", ".eval"):
        stem = stem.removesuffix(ending)
    for path in (
        folder / f"{stem}.py",
        folder / stem / "agent.py",
        folder / "agent.py",
        folder.parent / "agent.py",
    ):
        if path.is_relative_to(within) and path.is_file() and _names_agent(path):
            return str(path)
    return None


def _names_agent(path: Path) -> bool:
    """Whether a module defines or imports an agent under one of the names that are looked for."""
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        # It has the name of an agent's file; loading it will raise what is wrong with it.
        return True
    # What a star import or a lazy module brings is not known here. To pass over it could mean that the
    # agent of another folder runs.
    names = (*AGENT_NAMES, *AGENT_FACTORIES, "*", "__getattr__")
    return any(name in names for statement in tree.body for name in _bound(statement))


def _bound(statement: ast.AST) -> Iterator[str]:
    match statement:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            yield name
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            yield from (alias.asname or alias.name for alias in names)
        case ast.Assign(targets=targets):
            nodes = [node for target in targets for node in ast.walk(target)]
            yield from (node.id for node in nodes if isinstance(node, ast.Name))
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr()):
            yield name
        case ast.If() | ast.Try() | ast.ExceptHandler() | ast.With() | ast.For():
            for inner in ast.iter_child_nodes(statement):
                yield from _bound(inner)
        case _:
            return


def anchored(reference: str, *folders: Path) -> str:
    """`path[:attr]` with the path in the first of `folders` that has it, else as it is."""
    where, attr = split_reference(reference)
    for folder in folders:
        if (folder / where).exists():
            return f"{folder / where}:{attr}" if attr else str(folder / where)
    return reference


# Files are imported inside the fence: loading an agent connects to nothing and changes nothing.
# A file that must fetch something when it is imported needs permission: `--allow-import-network`, or a
# program that imports it itself and passes the agent.


@contextmanager
def fenced_import(what: str, *, runs_loop: bool = True) -> Generator[None]:
    """Import a file, or call a factory in it. An attempt to connect, act or call a tool is refused, and named.

    Whatever else the code raises makes it bad input: it is not valid before the first case runs. With `runs_loop` the file may call `asyncio.run`, even though a loop is running here.
    """
    scope, refused = FencedScope(f"import of {what}", around="call"), list[str]()

    def no_tools(_: object, tool: str) -> None:
        refused.append(str(Breach("called the tool", tool, where())))
        raise ToolRefused(f"tool {tool!r} was called while {what} was imported; it was not run.")

    scope.body_guard = no_tools
    put_up()
    try:
        opening = opening_for(processes=True) if is_import_allowed() else nullcontext()
        no_loop = _without_loop() if runs_loop else nullcontext()
        with RunScope(scope), opening, guarded(no_tools), no_loop:
            yield
    except (FenceBreach, ToolRefused) as error:
        raise _refusal(what, scope, refused) from error
    except (Interruption, KeyboardInterrupt, asyncio.CancelledError, GeneratorExit):
        raise  # it was stopped from outside
    except (
        BaseException
    ) as error:  # the author's code may raise what is no `Exception`, as `sys.exit` does
        # The code may have turned the refusal into another exception; the refusal is what has to be fixed.
        if scope.breach is not None or refused:
            raise _refusal(what, scope, refused) from error
        if isinstance(error, BadInput):
            raise
        raise ImportFailed(f"{what} cannot be loaded: {_described(error)}.") from error
    finally:
        # A thread that was started here, or a callback for the exit, comes later, and belongs to no case.
        scope.is_void, scope.is_closed_in = True, is_only_rehearsing()
    if scope.breach is not None or refused:
        raise _refusal(what, scope, refused)


def _refusal(what: str, scope: FencedScope, refused: list[str]) -> ImportRefused:
    if scope.breach is None:
        tried = refused[0] if refused else "reached for the outside"
        return ImportRefused(
            f"importing {what} {tried}, which was not run. Call tools from the agent, not while its "
            f"file is loaded."
        )
    return ImportRefused(
        f"importing {what} tried {scope.breach}; it was refused, because files are imported "
        f"inside the fence. Do it in a function or tool instead, or allow it with "
        f"--allow-import-network (in Python: import the file yourself and pass the agent)."
    )


def _described(error: BaseException) -> str:
    """What the author's code raised, and where."""
    frames = () if isinstance(error, SyntaxError) else traceback.extract_tb(error.__traceback__)
    place = f" (line {frames[-1].lineno} of {frames[-1].filename})" if frames else ""
    return f"{type(error).__name__}: {error}".removesuffix(": ") + place


@contextmanager
def _without_loop() -> Generator[None]:
    """Hide the running event loop from the code inside.

    Imported files may call `asyncio.run`, which refuses to start inside a running loop, and asyncio has
    no public way to hide one.
    """
    running = asyncio._get_running_loop()  # pyright: ignore[reportPrivateUsage]
    asyncio._set_running_loop(None)  # pyright: ignore[reportPrivateUsage]
    try:
        yield
    finally:
        asyncio._set_running_loop(running)  # pyright: ignore[reportPrivateUsage]
