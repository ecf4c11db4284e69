"""The user's own prices, from `[tool.greenroom.prices]` in the nearest `pyproject.toml`.

    [tool.greenroom.prices]
    "openai:our-tuned-one" = { input = 0.30, output = 1.20, per = "million" }

USD for so many tokens; `cached_input` is for tokens read from the provider's cache.
"""

import warnings
from collections.abc import Mapping
from functools import lru_cache
from hashlib import blake2b
from math import isfinite
from pathlib import Path
from typing import Any, Final, cast

from msgspec import Struct

from greenroom.errors import BadFile

_UNITS: Final = {"million": 1_000_000, "thousand": 1_000}
_FIELDS: Final = frozenset({"input", "output", "cached_input", "per"})

# USD. Hardly a model costs as much for a thousand tokens; many do for a million.
_DEAR_INPUT: Final = 0.1
_DEAR_OUTPUT: Final = 0.5


class Price(Struct, frozen=True):
    """What tokens cost, in USD per token, and the table that says so."""

    input: float
    output: float
    cached_input: float
    table: str = ""

    def cost(self, input: int, output: int, cached: int = 0) -> float:
        """USD for so many tokens; `cached` is the part of `input` read from a cache."""
        return (input - cached) * self.input + cached * self.cached_input + output * self.output


def own_prices(folder: Path | None = None) -> Mapping[str, Price]:
    """The prices in the nearest `pyproject.toml`, at `folder` (here) or above; BadFile if wrong."""
    start = (folder or Path.cwd()).resolve()
    for place in (start, *start.parents):
        path = place / "pyproject.toml"
        if path.is_file():
            return _read(path, path.stat().st_mtime_ns)
    return {}


@lru_cache(maxsize=16)
def _read(path: Path, _changed: int) -> Mapping[str, Price]:
    import tomllib

    try:
        text = path.read_text(encoding="utf-8")
        data: Any = tomllib.loads(text)
    except ValueError as error:
        raise BadFile(f"{path} cannot be read as TOML: {error}") from error
    given = cast("dict[str, Any]", data)
    for step in ("tool", "greenroom", "prices"):
        found: Any = given.get(step, {})
        if not isinstance(found, dict):
            raise BadFile(
                f"{path}: {step!r} is {found!r}, not [tool.greenroom.prices] or above it."
            )
        given = cast("dict[str, Any]", found)
    name = f"pyproject.toml {blake2b(repr(given).encode(), digest_size=4).hexdigest()}"
    return {model: _price(path, model, entry, name) for model, entry in given.items()}


def _price(path: Path, model: str, entry: Any, table: str) -> Price:
    where = f"{path}: the price of {model!r}"
    usual = '{ input = 0.15, output = 0.60, per = "million" }'
    if not isinstance(entry, dict):
        raise BadFile(f"{where} is {entry!r}; write {usual}.")
    given = cast("dict[str, Any]", entry)
    if given.keys() - _FIELDS or not {"input", "output"} <= given.keys():
        raise BadFile(f"{where} has {sorted(given)}; write {usual}, perhaps with cached_input.")
    if given.get("per") not in tuple(_UNITS):
        raise BadFile(
            f"{where} has per={given.get('per')!r}; say for how many tokens it is: "
            f'per = "million" or per = "thousand".'
        )
    amounts = {name: _amount(value, where) for name, value in given.items() if name != "per"}
    is_dear = amounts["input"] >= _DEAR_INPUT or amounts["output"] >= _DEAR_OUTPUT
    if given["per"] == "thousand" and is_dear:
        million = {name: amount * 1000 for name, amount in amounts.items()}
        warnings.warn(
            f"{where} comes to {million} USD per million tokens, which is implausible. If it is "
            f'meant per million, write per = "million"; if it is right, write it per million too.',
            stacklevel=2,
        )
    unit = _UNITS[given["per"]]
    cached = amounts.get("cached_input", amounts["input"])
    return Price(amounts["input"] / unit, amounts["output"] / unit, cached / unit, table)


def _amount(value: Any, where: str) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not isfinite(value) or value < 0:
        raise BadFile(f"{where} holds {value!r}; give USD as a number from 0.")
    return float(value)
