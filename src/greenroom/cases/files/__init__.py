"""Eval sets kept in files: JSON or YAML of our own shape, doubted here and trusted inside."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from greenroom.cases.data import case_from, live_parts, written_data
from greenroom.cases.evalset import EvalSet
from greenroom.errors import BadFile, BadValue
from greenroom.ledger.plain import Json, plain

VERSION = 1
_FIELDS = ("version", "id", "name", "description", "metadata", "cases")
_MAX_BYTES = 64 * 1024 * 1024


def read_evalset(path: str | Path) -> EvalSet:
    """The eval set in a `.json`, `.yaml` or `.yml` file."""
    source = Path(path)
    data = _parsed(source)
    if not isinstance(data, Mapping) or "cases" not in data:
        raise BadFile(
            f"{source} is no eval set: it should be a mapping with `version` and `cases`."
        )
    content = cast("Mapping[str, Any]", data)
    _check_fields(content, source)
    if content.get("version") != VERSION:
        raise BadFile(f"{source} says version {content.get('version')!r}; this reads {VERSION}.")
    cases = content["cases"]
    if not isinstance(cases, list):
        raise BadFile(f"{source}: `cases` should be a list.")
    return EvalSet(
        str(content.get("id") or source.stem),
        [
            case_from(item, f"{source}: cases[{i}]")
            for i, item in enumerate(cast("list[Any]", cases))
        ],
        name=str(content.get("name", "")),
        description=str(content.get("description", "")),
        metadata=content.get("metadata", {}),
    )


def _check_fields(content: Mapping[str, Any], source: Path) -> None:
    for name in content:
        if name not in _FIELDS:
            raise BadFile(f"{source} has the unknown field {name!r}; known are {sorted(_FIELDS)}.")
    if not isinstance(content.get("metadata", {}), Mapping):
        raise BadFile(f"{source}: `metadata` should be a mapping.")


def write_evalset(evalset: EvalSet, path: str | Path, *, lossy: bool = False) -> None:
    """Write an eval set as JSON, whole or not at all.

    What is code (metrics, users, mocks that are functions) cannot be written: that is refused with
    a list, unless `lossy` says to leave it out.
    """
    lost = [place for case in evalset for place in live_parts(case)]
    if lost and not lossy:
        raise BadFile(
            f"{path} would lose what is code: {', '.join(lost)}. Keep these cases in Python, or "
            f"write with lossy=True."
        )
    data = {
        "version": VERSION,
        "id": evalset.id,
        "name": evalset.name,
        "description": evalset.description,
        "metadata": dict(evalset.metadata),
        "cases": [written_data(case) for case in evalset.cases],
    }
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f"{target.name}.part")
    part.write_text(json.dumps(data, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    part.replace(target)


def _parsed(source: Path) -> Json:
    """What the file says, as JSON; what YAML and Python allow beyond it is refused."""
    try:
        return plain(_loaded(source), str(source))
    except BadValue as error:
        raise BadFile(str(error)) from error


def _loaded(source: Path) -> Any:
    text = _text(source)
    if source.suffix == ".json":
        try:
            return json.loads(text, parse_constant=_no_constant, object_pairs_hook=_unique)
        except (ValueError, RecursionError) as error:
            raise BadFile(f"Invalid JSON in {source}: {error}.") from error
    if source.suffix in (".yaml", ".yml"):
        return _yaml(text, source)
    raise BadFile(f"{source} is neither .json, .yaml nor .yml; eval sets are kept in these.")


def _text(source: Path) -> str:
    try:
        if source.stat().st_size > _MAX_BYTES:
            raise BadFile(f"{source} is larger than {_MAX_BYTES} bytes; split the eval set.")
        return source.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise BadFile(f"File not found: {source}.") from error
    except (OSError, UnicodeDecodeError) as error:
        raise BadFile(f"cannot read {source}: {error}.") from error


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON number")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {key!r} is given twice")
        found[key] = value
    return found


def _yaml(text: str, source: Path) -> Any:
    import yaml

    loader: Any = yaml.SafeLoader(text)
    try:
        root = loader.get_single_node()
        _check_node(root, set(), source)
        return None if root is None else loader.construct_document(root)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise BadFile(f"Invalid YAML in {source}: {error}.") from error
    finally:
        loader.dispose()


def _check_node(node: Any, seen: set[int], source: Path) -> None:
    """Refuse what YAML would settle in silence: a key given twice, and aliases.

    Aliases let a small file unfold into gigabytes.
    """
    if id(node) in seen:
        raise BadFile(f"{source} uses YAML aliases (*name); write the value out.")
    seen.add(id(node))
    inside: Any = node.value if node is not None and node.id != "scalar" else ()
    if node is not None and node.id == "mapping":
        _check_keys(node, source)
        inside = [part for pair in inside for part in pair]
    for part in inside:
        _check_node(part, seen, source)


def _check_keys(mapping: Any, source: Path) -> None:
    seen: set[str] = set()
    for key, _ in mapping.value:
        if key.id == "scalar" and key.value in seen:
            line = key.start_mark.line + 1
            raise BadFile(f"{source}, line {line}: the key {key.value!r} is given twice.")
        seen.add(str(key.value))
