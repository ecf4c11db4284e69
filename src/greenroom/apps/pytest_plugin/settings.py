"""What a project wants of the plug-in: `[tool.greenroom.pytest]`, and the command line above it."""

from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, cast

import pytest

_SECTION = "[tool.greenroom.pytest]"
BASELINE_INI = "greenroom_baseline"
"""The same as `baseline` there, for those who keep it beside pytest's own options."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How eval-set files are found, played and judged."""

    agent: str = ""
    files: tuple[str, ...] = ()
    config: str = ""
    trials: int | None = None
    allow_tools: tuple[str, ...] = ()
    min_pass_rate: float | None = None
    max_errors: int = 0
    max_cost: float | None = None
    baseline: str = ""
    """An earlier report, as `report` writes it: nothing may be significantly worse than there."""
    report: str = ""
    store: str = ""
    """Where runs are written down; nowhere unless it is named, for tests leave nothing behind."""

    @property
    def has_gate(self) -> bool:
        """Whether the cases of eval-set files are judged together, not one by one."""
        return self.min_pass_rate is not None or bool(self.baseline)


KEY = pytest.StashKey[Settings]()
_LISTED = pytest.StashKey[frozenset[Path]]()
_ENDINGS = (".evalset", ".test", ".eval")
_SUFFIXES = (".json", ".yaml", ".yml")


def is_usual(path: Path) -> bool:
    """Whether a file is called as eval sets are that pytest plays unasked: `refund.eval.yaml`.

    These are fewer than a command finds in a folder it is given. Here a name alone sets off a run:
    tables called `.test` are mostly somebody's data, and scenarios need a model for their users.
    """
    return path.suffix in _SUFFIXES and Path(path.stem).suffix in _ENDINGS


def is_listed(path: Path, config: pytest.Config) -> bool:
    """Whether the project names the file among those to be played."""
    if _LISTED not in config.stash:
        patterns, root = config.stash[KEY].files, config.rootpath
        config.stash[_LISTED] = frozenset(f for pattern in patterns for f in root.glob(pattern))
    return path in config.stash[_LISTED]


def add_options(group: pytest.OptionGroup) -> None:
    """What may be said on the command line; it wins over the project's file."""
    group.addoption(
        "--greenroom-agent",
        metavar="PATH[:NAME]",
        help="The agent that plays the cases of eval-set files.",
    )
    group.addoption(
        "--greenroom-config", metavar="FILE", help="The criteria by which they are judged."
    )
    group.addoption(
        "--greenroom-trials", type=int, metavar="N", help="How often each of them is played."
    )
    group.addoption(
        "--greenroom-allow-tool",
        dest="greenroom_allow_tools",
        action="append",
        metavar="NAME",
        help="Let the real body of this tool run, inside the fence; may be repeated.",
    )
    group.addoption(
        "--greenroom-min-pass-rate",
        type=float,
        metavar="FLOAT",
        help="The share of their cases that must pass, from 0 to 1, in place of all of them.",
    )
    group.addoption(
        "--greenroom-max-errors",
        type=int,
        metavar="N",
        help="How many of their cases may end in an error where a pass rate is asked for.",
    )
    group.addoption(
        "--greenroom-max-cost", type=float, metavar="USD", help="What they may cost together."
    )
    group.addoption(
        "--greenroom-baseline",
        metavar="FILE",
        help="Compare them with this earlier report of --greenroom-report, in place of asking that "
        "all pass.",
    )
    group.addoption(
        "--greenroom-report", metavar="FILE", help="Write what came of them to this JSON file."
    )
    group.addoption(
        "--greenroom-store",
        metavar="DIR",
        help="Write every rehearsal down as a run in this folder.",
    )


def place_of_runs(config: pytest.Config) -> Path | bool:
    """Where rehearsals are written down: the `store` that `evaluate` is told."""
    store = config.stash[KEY].store
    return config.rootpath / store if store else False


def read_settings(config: pytest.Config) -> Settings:
    """The settings of this run, remembered in its config; what cannot be meant is a usage error."""
    given = _section(config.rootpath / "pyproject.toml")
    if (baseline := config.getini(BASELINE_INI)) and "baseline" not in given:
        given["baseline"] = baseline
    for name in _NAMES:
        option = config.getoption(f"greenroom_{name}", None)
        if option is not None:
            given[name] = option
    for name, value in given.items():
        given[name] = _checked(name, value)
    settings = replace(Settings(), **given)
    config.stash[KEY] = settings
    return settings


def _section(file: Path) -> dict[str, Any]:
    try:
        raw = file.read_bytes()
    except OSError:
        return {}
    if b"greenroom" not in raw:
        return {}
    import tomllib

    match tomllib.loads(raw.decode()):
        case {"tool": {"greenroom": {"pytest": {**given}}}}:
            return cast("dict[str, Any]", given)
        case _:
            return {}


_NAMES = tuple(field.name for field in fields(Settings))
_TEXTS = ("agent", "config", "baseline", "report", "store")
_LISTS = ("files", "allow_tools")
_RANGES = {"trials": 1, "max_errors": 0}


def _checked(name: str, value: Any) -> Any:
    """A value that can be meant, or a usage error that says what could."""
    if name not in _NAMES:
        from difflib import get_close_matches  # loaded for those who mistype only

        near = get_close_matches(name, _NAMES, 1)
        meant = f"Did you mean {near[0]!r}?" if near else f"Known: {', '.join(_NAMES)}."
        raise pytest.UsageError(f"{_SECTION} has no option {name!r}. {meant}")
    if name in _TEXTS:
        return _fitting(name, value, isinstance(value, str), "a text")
    if name in _LISTS:
        fits = isinstance(value, list) and all(isinstance(o, str) for o in cast("list[Any]", value))
        given: list[str] = _fitting(name, value, fits, "a list of texts")
        if name == "files":
            fits = not any(not one or Path(one).is_absolute() for one in given)
            _fitting(name, given, fits, "a list of patterns as seen from the project's folder")
        return tuple(given)
    if name in _RANGES:
        fits = type(value) is int and value >= _RANGES[name]
        return _fitting(name, value, fits, f"a whole number from {_RANGES[name]} up")
    is_number = type(value) in (int, float)
    if name == "min_pass_rate":
        return _fitting(name, value, is_number and 0 <= value <= 1, "a share from 0 to 1")
    return _fitting(name, value, is_number and value >= 0, "an amount in USD")


def _fitting(name: str, value: Any, fits: bool, wanted: str) -> Any:
    if not fits:
        raise pytest.UsageError(f"greenroom: `{name}` is {value!r}, but should be {wanted}.")
    return value
