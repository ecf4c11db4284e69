"""The price of tokens: the user's own prices, else the offline list of `genai-prices`.

The user's own prices are in `[tool.greenroom.prices]` of the nearest `pyproject.toml`:

    [tool.greenroom.prices]
    "openai:our-tuned-one" = { input = 0.30, output = 1.20, per = "million" }

USD for that many tokens; `cached_input` is for tokens read from the provider's cache.
"""

import warnings
from collections.abc import Mapping
from datetime import UTC, datetime, time
from functools import lru_cache
from hashlib import blake2b
from math import isfinite
from pathlib import Path
from typing import Any, Final, cast

from msgspec import Struct

from greenroom.errors import BadAgent, BadFile
from greenroom.models.chooser import Chooser
from greenroom.models.model import Model
from greenroom.models.scripted import SCRIPT, Scripted
from greenroom.project import nearest_project, project_in

_UNITS: Final = {"million": 1_000_000, "thousand": 1_000}
_FIELDS: Final = frozenset({"input", "output", "cached_input", "per"})
# Tokens of the question that a listed price is taken from: long ones cost more with some models.
_SAMPLE: Final = 1000

# USD. Hardly any model costs as much for a thousand tokens; many do for a million.
_DEAR_INPUT: Final = 0.1
_DEAR_OUTPUT: Final = 0.5


class Price(Struct, frozen=True):
    """The price of tokens, in USD per token, and the price list it comes from."""

    input: float
    output: float
    cached_input: float
    table: str = ""

    @classmethod
    def per_million(cls, input: float, output: float, cached_input: float | None = None) -> "Price":
        """USD for a million tokens read, written, and read from the provider's cache."""
        cached = input if cached_input is None else cached_input
        for name, usd in (("input", input), ("output", output), ("cached_input", cached)):
            if not _is_amount(usd):
                raise BadAgent(
                    f"Price.per_million(...) has {name}={usd!r}; give USD as a number from 0."
                )
        unit = _UNITS["million"]
        return cls(input / unit, output / unit, cached / unit, "given")

    @property
    def blended(self) -> float:
        """USD for an average token, with three read for each one written, to compare prices."""
        return (3 * self.input + self.output) / 4

    def cost(self, input: int, output: int, cached: int = 0) -> float:
        """USD for this many tokens; `cached` is the part of `input` read from a cache."""
        return (input - cached) * self.input + cached * self.cached_input + output * self.output


def own_prices(folder: Path | None = None) -> Mapping[str, Price]:
    """The prices in the nearest `pyproject.toml`, at `folder` (here) or above; BadFile if wrong."""
    project = nearest_project(folder)
    return {} if project is None else _read(project.file, project.changed)


@lru_cache(maxsize=16)
def _read(path: Path, _changed: int) -> Mapping[str, Price]:
    project = project_in(path)
    given = project.settings.get("prices", {})
    if not isinstance(given, dict):
        raise BadFile(f"{project.place('prices')}: prices is {given!r}, not a table of models.")
    entries = cast("dict[str, Any]", given)
    name = f"pyproject.toml {blake2b(repr(entries).encode(), digest_size=4).hexdigest()}"
    found: dict[str, Price] = {}
    wrong: list[str] = []
    for model, entry in entries.items():
        place = project.place(model, "tool.greenroom.prices")
        try:
            found[model] = _price(place, model, entry, name)
        except BadFile as error:
            wrong.append(str(error))
    if wrong:
        raise BadFile("\n".join(wrong))
    return found


def _price(place: str, model: str, entry: object, table: str) -> Price:
    where = f"{place}: the price of {model!r}"
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
            f"{where} is {million} USD per million tokens, which is implausible. If it is "
            f'meant per million, write per = "million"; if it is right, write it per million too.',
            stacklevel=2,
        )
    unit = _UNITS[given["per"]]
    cached = amounts.get("cached_input", amounts["input"])
    return Price(amounts["input"] / unit, amounts["output"] / unit, cached / unit, table)


def _amount(value: Any, where: str) -> float:
    if not _is_amount(value):
        raise BadFile(f"{where} holds {value!r}; give USD as a number from 0.")
    return float(value)


def _is_amount(value: Any) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and isfinite(value) and value >= 0


def price_of(model: Model, own: Mapping[str, Price] | None = None) -> Price | None:
    """The price of a model before it is asked: the user's own price, else the listed one; None if unknown.

    For a choice of models it is the price of the one that it begins with. If you ask for many, pass
    `own_prices()`, which is otherwise looked for in every folder above each time.
    """
    if isinstance(model, Chooser):
        return model.usual_price
    own = own_prices() if own is None else own
    price = own.get(model.name) or own.get(getattr(model, "priced_as", ""))
    if price is not None:
        return price
    if isinstance(model, Scripted):
        return Price(0.0, 0.0, 0.0, SCRIPT)
    provider, name = getattr(model, "listed_as", ("", ""))
    return _listed(provider, name) if name else None


@lru_cache(maxsize=256)
def _listed(provider: str, name: str) -> Price | None:
    import genai_prices

    def usd(**used: int) -> float:
        found = genai_prices.calc_price(
            genai_prices.Usage(**used), name, provider_id=provider, genai_request_timestamp=noon
        )
        return float(found.total_price) / _SAMPLE

    # Some are cheaper at night: the price, and so the choice of a model, must not depend on the hour.
    noon = datetime.combine(datetime.now(UTC).date(), time(12), UTC)
    try:
        cached = usd(input_tokens=_SAMPLE, cache_read_tokens=_SAMPLE)
        read, written = usd(input_tokens=_SAMPLE), usd(output_tokens=_SAMPLE)
    except (LookupError, ValueError):
        return None
    return Price(read, written, cached, f"genai-prices {genai_prices.__version__}")
