"""Eval sets kept in files: JSON or YAML of our own shape, doubted here and trusted inside."""

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, cast

from greenroom.cases.case import EvalSet
from greenroom.cases.data import case_data, case_from
from greenroom.errors import BadFile

VERSION = 1
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


def write_evalset(evalset: EvalSet, path: str | Path) -> None:
    """Write the data of an eval set as JSON, whole or not at all."""
    data = {
        "version": VERSION,
        "id": evalset.id,
        "name": evalset.name,
        "description": evalset.description,
        "metadata": dict(evalset.metadata),
        "cases": [case_data(case) for case in evalset.cases],
    }
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f"{target.name}.part")
    part.write_text(json.dumps(data, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    part.replace(target)


def _parsed(source: Path) -> Any:
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

    try:
        # Aliases let a small file unfold into gigabytes, so none are taken.
        scan: Callable[..., Iterable[object]] = yaml.scan  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        tokens = scan(text, Loader=yaml.SafeLoader)
        if any(isinstance(token, yaml.AliasToken) for token in tokens):
            raise BadFile(f"{source} uses YAML aliases (*name); write the value out.")
        return yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError) as error:
        raise BadFile(f"Invalid YAML in {source}: {error}.") from error
