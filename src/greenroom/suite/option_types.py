"""The type of an evaluation's options: the values each accepts, and how each entry point offers it.

Nothing heavy is imported: `greenroom --help` loads this too.
"""

import os
import re
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any, Literal, TypeGuard, cast

MOST_WORKERS = 4096
MOST_HERE = 256
"""The most workers on one machine; more need a cluster."""
_HOST = re.compile(r"(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(:\d{1,5})?", re.ASCII)


# Nobody compares or prints these two, and without such methods they load faster.
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Flag:
    """How an option is given on the command line of `greenroom eval`."""

    names: tuple[str, ...]
    """The first is the one that printed commands use."""
    help: str
    metavar: str | None = None
    kind: Literal["value", "switch", "file", "folder", "list", "files"] = "value"
    words: Mapping[str, object] | None = None
    """Words that mean a value: {"off": 0}."""
    in_watch: bool = False
    """Whether `eval watch` has it too, not only `eval run`."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Option:
    """What the value of an option must be, and how each entry point offers it."""

    accepts: Callable[[Any], bool]
    wanted: str
    """Completes "should be", in every refusal of a value."""
    default: Any = None
    choices: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    """Other options; without any of them this one means nothing."""
    per_trial: bool = False
    """Whether it changes how a single trial runs: workers get it, and the command to run one case again has it."""
    flag: Flag | None = None
    setting: str = ""
    """Its help as `--greenroom-NAME` and in `[tool.greenroom.pytest]`; empty: not offered there."""

    def problem(self, value: Any, typed: str | None = None) -> str:
        """Why a value cannot be used, as in "0 should be a whole number"; empty if it can.

        The message shows `typed` in place of the value.
        """
        if self.accepts(value):
            return ""
        near = nearest(value, self.choices)
        meant = f" Did you mean {near!r}?" if near else ""
        return f"{value if typed is None else typed!r} should be {self.wanted}.{meant}"


# What the values of options must be


def is_number(value: object) -> TypeGuard[float]:
    # A whole number that is too large to be a float could not be reckoned with.
    return type(value) is float or (type(value) is int and abs(value) <= sys.float_info.max)


def is_seconds(value: object) -> bool:
    return value is None or (is_number(value) and 0 < value < inf)


def is_amount(value: object) -> TypeGuard[float]:
    """Whether it is an amount of USD above 0. What is larger than any number would be no limit at all."""
    return is_number(value) and 0 < value < inf


def is_word(value: object, word: str) -> bool:
    """Whether it is this very word; what a value of another type is equal to is its own affair."""
    return isinstance(value, str) and value == word


def is_whole(value: object) -> bool:
    return type(value) is int and value >= 1


def _is_path(value: object) -> bool:
    if not isinstance(value, str | Path) or not str(value).strip():
        return False
    try:
        return b"\0" not in os.fsencode(value)
    except UnicodeEncodeError:
        return False


def is_folder(value: object) -> bool:
    return value is None or _is_path(value)


def is_list(value: object) -> TypeGuard[Iterable[object]]:
    """Whether it can be a list of things; a single string is not meant as a list of its letters."""
    return isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)


def is_tools(value: object) -> bool:
    return (
        is_list(value)
        and isinstance(value, Collection)
        and all(tool if isinstance(tool, str) else _is_tool(tool) for tool in value)
    )


def _is_tool(value: object) -> bool:
    if callable(value) or hasattr(value, "name"):
        return True
    from greenroom.cases.mocks import Live

    return isinstance(value, Live)


def is_mocks(value: object) -> bool:
    return isinstance(value, Mapping) and all(
        isinstance(tool, str) for tool in cast("Mapping[object, object]", value)
    )


def is_model(value: object) -> bool:
    if value is None or isinstance(value, str):
        return value is None or bool(value.strip())
    return hasattr(value, "respond") and not isinstance(value, type)


def is_resources(value: Any) -> bool:
    if isinstance(value, str):
        return bool(value.rpartition(":")[0])
    return is_mocks(value) and all(map(callable, cast("Mapping[str, object]", value).values()))


def is_middleware(value: object) -> bool:
    if not is_list(value) or not isinstance(value, Collection):
        return False
    return all(bool(one.rpartition(":")[0]) if isinstance(one, str) else True for one in value)


def is_hook(value: object) -> bool:
    return value is None or callable(value)


def is_fence(value: object) -> bool:
    if not isinstance(value, str):
        return False
    kind, colon, hosts = value.partition(":")
    named = [host.strip() for host in hosts.split(",")] if colon else ["any"]
    is_named = all(_HOST.fullmatch(host) for host in named)
    return value == "process" or (kind == "kernel" and is_named)


def is_config(value: object) -> bool:
    if value is None or isinstance(value, str | Path):
        return value is None or _is_path(value)
    from greenroom.cases.config import EvalConfig

    return isinstance(value, EvalConfig)


def is_store(value: object) -> bool:
    if value is None or isinstance(value, bool | str | Path):
        return value is None or isinstance(value, bool) or _is_path(value)
    from greenroom.store.store import Store

    return isinstance(value, Store)


def is_shard(value: object) -> bool:
    from greenroom.ledger.plain import number_in

    match [number_in(part) for part in str(value).split("/")]:
        case [int(part), int(parts)]:
            return 1 <= part <= parts
        case _:
            return is_word(value, "")


def is_baseline(value: object) -> bool:
    from greenroom.results.report import Report

    if value is None or isinstance(value, Report):
        return True
    several = cast("Sequence[object]", value) if isinstance(value, list | tuple) else ()
    return bool(several) and all(isinstance(one, Report) for one in several)


def is_cache(value: object) -> bool:
    from greenroom.world.answers import AnswerCache

    return value is None or isinstance(value, AnswerCache) or _is_path(value)


def is_budget(value: object) -> bool:
    if value is None or is_amount(value):
        return True
    from greenroom.suite.budget import Budget

    return isinstance(value, Budget)


def is_worker_count(value: object) -> bool:
    return type(value) is int and 1 <= value <= MOST_WORKERS


def is_workers(value: object) -> bool:
    if value is None or is_worker_count(value):
        return True
    from greenroom.suite.workers.references import Workers

    return isinstance(value, Workers)


def is_on(value: object) -> bool:
    if value is None or isinstance(value, str):
        return value is None or value.partition("?")[0] == "ray" or value.startswith("ray://")
    from greenroom.suite.workers.ray.settings import Ray

    return isinstance(value, Ray)


def is_rates(value: object) -> bool:
    if not is_mocks(value) and not (is_list(value) and all(isinstance(v, str) for v in value)):
        return False
    from greenroom.world.rates import read_rates

    return isinstance(value, Collection) and read_rates(cast("Collection[str]", value)) is not None


def is_cancel(value: object) -> bool:
    from greenroom.suite.cancel import Cancel

    return value is None or isinstance(value, Cancel)


def switch(
    flag: Flag | None = None,
    *,
    default: bool = False,
    needs: tuple[str, ...] = (),
    per_trial: bool = False,
    setting: str = "",
) -> Option:
    return Option(
        lambda value: isinstance(value, bool),
        "True or False",
        default,
        needs=needs,
        per_trial=per_trial,
        flag=flag,
        setting=setting,
    )


def choice(
    *choices: str,
    needs: tuple[str, ...] = (),
    per_trial: bool = False,
    flag: Flag | None = None,
    setting: str = "",
) -> Option:
    """One of these words; the first is the default."""
    return Option(
        lambda value: isinstance(value, str) and value in choices,
        f"one of {', '.join(map(repr, choices))}",
        choices[0],
        choices,
        needs,
        per_trial=per_trial,
        flag=flag,
        setting=setting,
    )


# What was typed


def nearest(given: object, known: Iterable[str]) -> str:
    """The one of these words that was probably meant; empty if none is close."""
    from greenroom.ledger.choices import near

    return next(iter(near(given, known)), "") if isinstance(given, str) else ""


_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?", re.ASCII | re.IGNORECASE)
_WHOLE = re.compile(r"[-+]?\d{1,18}", re.ASCII)


def as_number(text: str) -> int | float | str:
    """The number that was typed, or the string if it is not a number."""
    if _WHOLE.fullmatch(text):
        return int(text)
    return float(text) if _NUMBER.fullmatch(text) else text
