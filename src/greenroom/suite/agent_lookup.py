"""Which agent a file of cases belongs to, told from where it lies; nothing is imported for that."""

import ast
from collections.abc import Iterator
from pathlib import Path

from greenroom.suite.references import AGENT_FACTORIES, AGENT_NAMES, split_reference

_AGENTS = frozenset((*AGENT_NAMES, *AGENT_FACTORIES))
_ENDINGS = (".evalset", ".test", ".eval")


def agent_beside(cases: Path, within: Path) -> str | None:
    """The Python file that holds the agent of `cases`, or None.

    `weather.test.json` belongs to `weather.py` or the folder `weather` beside it; any file of cases
    to an `agent.py` beside it or one folder up. It must lie `within` that folder and name an agent.
    """
    for path in _candidates(cases):
        if path.is_relative_to(within) and path.is_file() and _names_agent(path):
            return str(path)
    return None


def _candidates(cases: Path) -> Iterator[Path]:
    folder, stem = cases.parent, cases.stem
    for ending in _ENDINGS:
        stem = stem.removesuffix(ending)
    yield folder / f"{stem}.py"
    yield folder / stem / "agent.py"
    yield folder / "agent.py"
    yield folder.parent / "agent.py"


def _names_agent(path: Path) -> bool:
    """Whether a module defines or imports an agent under one of the names that are looked for."""
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        # Its author should hear of it when it is loaded, if by its name it is the agent's file.
        return True
    return any(name in _AGENTS for statement in tree.body for name in _bound(statement))


def _bound(statement: ast.stmt) -> Iterator[str]:
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
        case ast.If() | ast.Try() | ast.With():
            for inner in ast.iter_child_nodes(statement):
                if isinstance(inner, ast.stmt):
                    yield from _bound(inner)
        case _:
            return


def anchored(reference: str, *folders: Path) -> str:
    """`path[:attr]` with a path that stands in the first of `folders` that has it, else as it is."""
    where, attr = split_reference(reference)
    for folder in folders:
        if (folder / where).exists():
            return f"{folder / where}:{attr}" if attr else str(folder / where)
    return reference
