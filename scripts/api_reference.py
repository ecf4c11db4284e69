"""Writes docs/reference/api.md from the public names themselves.

    python scripts/api_reference.py

Signatures are taken from the source as it is written, so the page is the same on every version of
Python. A test fails while the page says something else than this would write.
"""

import ast
import inspect
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "api.md"
WIDTH = 96

ROOMS = (
    "greenroom.agents",
    "greenroom.agents.costs",
    "greenroom.cases",
    "greenroom.simulation",
    "greenroom.suite",
    "greenroom.metrics",
    "greenroom.results",
    "greenroom.reports.reporters",
    "greenroom.ledger",
    "greenroom.models",
    "greenroom.world",
    "greenroom.backends",
    "greenroom.backends.a2a",
    "greenroom.store",
    "greenroom.telemetry",
    "greenroom.traces",
    "greenroom.testing",
    "greenroom.plugins",
    "greenroom.errors",
)

_TOP = """\
# Public names

<!-- Written by scripts/api_reference.py from the source; change that, and run it again. -->

Everything that may be imported from Greenroom, room by room. The names in the first table are what
most code needs: `from greenroom import Agent, Case, rehearse`. What is not listed here may change
without notice. `…` stands for a default that is made when it is needed.
"""

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Assign | ast.AnnAssign
Function = ast.FunctionDef | ast.AsyncFunctionDef


def page() -> str:
    """The whole page."""
    return "\n".join([_TOP, _first_names(), *(_section(room) for room in ROOMS)])


def _first_names() -> str:
    rows = [_first_name(name) for name in _names("greenroom")]
    return "\n".join(["| name | from | |", "|---|---|---|", *rows, ""])


def _first_name(name: str) -> str:
    meant = getattr(import_module("greenroom"), name)
    rooms = [room for room in ROOMS if name in _names(room)]
    home = next(room for room in rooms if getattr(import_module(room), name) is meant)
    module, found = _definition(home, name)
    text = _cell(_first_paragraph(module, found))
    return f"| `{name}` | [`{home}`](#{home.replace('.', '')}) | {text} |"


def _section(room: str) -> str:
    told = _paragraphs(ast.get_docstring(_tree(room)) or "")[:1]
    if room == "greenroom.errors":
        entries = ["| | |", "|---|---|", *(_row(room, name) for name in _names(room)), ""]
    else:
        entries = [_entry(room, name) for name in _names(room)]
    return "\n".join([f"## `{room}`\n", *(f"{text}\n" for text in told), *entries])


def _row(room: str, name: str) -> str:
    module, found = _definition(room, name)
    return f"| `{name}` | {_cell(_first_paragraph(module, found))} |"


def _entry(room: str, name: str) -> str:
    module, found = _definition(room, name)
    parts = [f"### `{name}`\n", f"```text\n{_signature(module, name, found)}\n```\n"]
    if text := _first_paragraph(module, found):
        parts.append(f"{text}\n")
    if methods := _methods(room, module, found):
        parts.append("\n".join(["| | |", "|---|---|", *methods.values(), ""]))
    return "\n".join(parts)


def _names(room: str) -> list[str]:
    """What the room offers, as written in its `__all__`, or else every class it defines."""
    offered: list[str] | None = getattr(import_module(room), "__all__", None)
    if offered is not None:
        return sorted(offered, key=str.casefold)
    defined = [n for n in _tree(room).body if isinstance(n, ast.ClassDef | ast.FunctionDef)]
    return sorted((n.name for n in defined if not n.name.startswith("_")), key=str.casefold)


@cache
def _tree(module: str) -> ast.Module:
    spec = find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    return ast.parse(Path(spec.origin).read_text(encoding="utf-8"))


def _definition(module: str, name: str) -> tuple[str, Definition]:
    """Where the name is defined, and how: imports are followed to their end."""
    # The last one counts: overloads come before the function itself.
    for node in reversed(_statements(_tree(module).body)):
        if _defines(node, name):
            assert isinstance(node, Definition)
            return module, node
    for node in ast.walk(_tree(module)):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    return _definition(node.module, alias.name)
    raise LookupError(f"{module} offers {name!r}, but nothing there defines or imports it.")


def _statements(body: list[ast.stmt]) -> list[ast.stmt]:
    """The statements of a module, those under `if TYPE_CHECKING` among them."""
    inside = [[*node.body, *node.orelse] for node in body if isinstance(node, ast.If)]
    return [*body, *(node for nodes in inside for node in nodes)]


def _defines(node: ast.stmt, name: str) -> bool:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return node.name == name
        case ast.Assign(targets=[ast.Name(id=target)]):
            return target == name
        case ast.AnnAssign(target=ast.Name(id=target)):
            return target == name
        case _:
            return False


def _signature(module: str, name: str, found: Definition) -> str:
    match found:
        case ast.ClassDef():
            return _call(f"class {name}", _made_with(module, found))
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            word = "async " if isinstance(found, ast.AsyncFunctionDef) else ""
            returns = f" -> {_type(found.returns)}" if found.returns else ""
            return _call(f"{word}{name}", _arguments(module, found.args), returns)
        case ast.Assign() | ast.AnnAssign():
            return f"{name} = {ast.unparse(found.value)}" if found.value else name


def _call(name: str, arguments: list[str], returns: str = "") -> str:
    line = f"{name}({', '.join(arguments)}){returns}"
    if name.startswith("class ") and not arguments:
        return name
    if len(line) <= WIDTH:
        return line
    return "\n".join([f"{name}(", *(f"    {argument}," for argument in arguments), f"){returns}"])


def _made_with(module: str, found: ast.ClassDef) -> list[str]:
    """What the class is called with: the arguments of its `__init__`, or the fields of a record."""
    if init := next((f for f in _functions(found) if f.name == "__init__"), None):
        return _arguments(module, init.args)[1:]
    return list(_fields(module, found).values())


def _fields(module: str, found: ast.ClassDef) -> dict[str, str]:
    fields: dict[str, str] = {}
    for base in found.bases:
        if isinstance(base, ast.Name) and _is_ours(module, base.id):
            home, parent = _definition(module, base.id)
            if isinstance(parent, ast.ClassDef):
                fields |= _fields(home, parent)
    for node in found.body:
        match node:
            case ast.AnnAssign(target=ast.Name(id=name)) if _is_field(name, node):
                fields[name] = _given(module, name, node.annotation, node.value)
            case _:
                pass
    return fields


def _is_field(name: str, node: ast.AnnAssign) -> bool:
    computed = node.value is not None and "init=False" in ast.unparse(node.value)
    return not (name.startswith("_") or computed or "ClassVar" in ast.unparse(node.annotation))


def _is_ours(module: str, name: str) -> bool:
    """Whether a base class is one of ours, rather than `Protocol` or `Exception`."""
    ours = [node for node in ast.walk(_tree(module)) if isinstance(node, ast.ImportFrom)]
    imported = {a.asname or a.name: node.module or "" for node in ours for a in node.names}
    here = any(_defines(node, name) for node in _statements(_tree(module).body))
    return here or imported.get(name, "").startswith("greenroom")


def _arguments(module: str, given: ast.arguments) -> list[str]:
    plain = [*given.posonlyargs, *given.args]
    defaults = [None] * (len(plain) - len(given.defaults)) + list[ast.expr | None](given.defaults)
    shown = [
        _given(module, a.arg, a.annotation, default)
        for a, default in zip(plain, defaults, strict=True)
    ]
    if given.posonlyargs:
        shown.insert(len(given.posonlyargs), "/")
    if given.vararg:
        shown.append("*" + _given(module, given.vararg.arg, given.vararg.annotation))
    elif given.kwonlyargs:
        shown.append("*")
    for a, default in zip(given.kwonlyargs, given.kw_defaults, strict=True):
        shown.append(_given(module, a.arg, a.annotation, default))
    if given.kwarg:
        shown.append("**" + _given(module, given.kwarg.arg, given.kwarg.annotation))
    return shown


def _given(
    module: str, name: str, annotation: ast.expr | None, default: ast.expr | None = None
) -> str:
    typed = f"{name}: {_type(annotation)}" if annotation else name
    return typed if default is None else f"{typed} = {_default(module, default)}"


def _default(module: str, node: ast.expr) -> str:
    """The value a reader would get: a named number or text is looked up, the rest left open."""
    if isinstance(node, ast.Name) and node.id.isupper() and not node.id.startswith("_"):
        home, found = _definition(module, node.id)
        if isinstance(found, ast.Assign | ast.AnnAssign) and found.value is not None:
            return _default(home, found.value)
    open_ended = isinstance(node, ast.Call | ast.Name)
    return "…" if open_ended else ast.unparse(node)


def _type(node: ast.expr) -> str:
    """An annotation without the quotes that put off its evaluation, and without notes next to a type."""
    match node:
        case ast.Subscript(value=ast.Name(id="Annotated"), slice=ast.Tuple(elts=[first, *_])):
            return _type(first)
        case _:
            pass
    return (
        node.value
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        else ast.unparse(node)
    )


def _functions(found: ast.ClassDef) -> Iterator[Function]:
    return (f for f in found.body if isinstance(f, ast.FunctionDef | ast.AsyncFunctionDef))


def _methods(room: str, module: str, found: Definition) -> dict[str, str]:
    """The methods of a class by name, with those of bases that have no entry of their own."""
    methods: dict[str, str] = {}
    if not isinstance(found, ast.ClassDef):
        return methods
    for function in _functions(found):
        if not function.name.startswith(("_", "test_")) and not _is_overload(function):
            shown = f"| `.{_called(function)}` | {_cell(_first_paragraph('', function))} |"
            methods[function.name] = shown
    for base in found.bases:
        if isinstance(base, ast.Name) and _is_ours(module, base.id) and base.id not in _names(room):
            methods = {**_methods(room, *_definition(module, base.id)), **methods}
    return methods


def _is_overload(function: Function) -> bool:
    names = {ast.unparse(decorator) for decorator in function.decorator_list}
    return "overload" in names or any(name.endswith(".setter") for name in names)


def _called(function: Function) -> str:
    """The method as one would call it: names only, and none for what is read like a field."""
    decorators = {ast.unparse(decorator) for decorator in function.decorator_list}
    if decorators & {"property", "cached_property"}:
        return function.name
    given = function.args
    names = [a.arg for a in [*given.posonlyargs, *given.args] if a.arg not in {"self", "cls"}]
    if given.vararg:
        names.append(f"*{given.vararg.arg}")
    names += [f"{a.arg}=" for a in given.kwonlyargs]
    return f"{function.name}({', '.join(names)})"


def _first_paragraph(module: str, found: Definition) -> str:
    if isinstance(found, ast.Assign | ast.AnnAssign):
        text = _text_below(module, found)
    else:
        text = ast.get_docstring(found) or ""
    return next(iter(_paragraphs(text)), "")


def _text_below(module: str, found: ast.stmt) -> str:
    """The text that stands below an assignment, as a docstring does in a function."""
    for before, node in pairwise(_statements(_tree(module).body)):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text))) if before is found:
                return text
            case _:
                continue
    return ""


def _paragraphs(text: str) -> list[str]:
    return [" ".join(part.split()) for part in inspect.cleandoc(text).split("\n\n") if part.strip()]


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
