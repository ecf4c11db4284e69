"""YAML written so that every reader reads the same: what might be taken for something else is quoted."""

from functools import cache
from typing import Any

from greenroom.cases.files.yaml_text import surely_text
from greenroom.ledger.plain import Json


def yaml_text(data: Json) -> str:
    """The data as YAML."""
    import yaml

    return yaml.dump(
        data,
        Dumper=_dumper(),
        sort_keys=False,
        allow_unicode=True,
        default_flow_style=False,
        width=100,
    )


@cache
def _dumper() -> Any:
    import yaml

    base: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    # Values are written out where PyYAML would refer to an equal one before.
    made: Any = type("Plain", (base,), {"ignore_aliases": _never_refer})
    made.add_representer(str, _text)
    return made


def _never_refer(*_: object) -> bool:
    return True


def _text(dumper: Any, text: str) -> Any:
    style = None
    if "\n" in text and text.isascii() and text.replace("\n", "").isprintable():
        style = "|"
    elif not surely_text(text) or not text.isprintable():
        style = '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)
