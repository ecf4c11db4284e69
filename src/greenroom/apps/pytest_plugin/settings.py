"""The settings of a project, `[tool.greenroom.pytest]`; the command line overrides them."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, cast

import pytest

from greenroom.suite.option_types import Flag, Option, as_number, is_amount, is_number, nearest
from greenroom.suite.options import OPTIONS, lacking

_SECTION = "[tool.greenroom.pytest]"
BASELINE_INI = "greenroom_baseline"
"""Pytest's ini option for `baseline`, for projects that keep it with pytest's own options."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How eval-set files are found, run and judged."""

    agent: str = ""
    files: tuple[str, ...] = ()
    config: str = ""
    min_pass_rate: float | None = None
    max_errors: int = 0
    max_cost: float | None = None
    baseline: str = ""
    """An earlier report, as `report` writes it: nothing may be significantly worse than there."""
    report: str = ""
    store: str = ""
    """Where runs are recorded; nowhere unless it is named, because tests should leave nothing behind."""
    passed_on: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The other options of every rehearsal, by their names in `evaluate`."""

    @property
    def has_gate(self) -> bool:
        """Whether the cases of eval-set files are judged together, not one by one."""
        return self.min_pass_rate is not None or bool(self.baseline)

    @property
    def is_adaptive(self) -> bool:
        """Whether each case runs until its pass rate is clear."""
        return self.passed_on.get("trials") == "auto"


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(map(_is_text, cast("list[object]", value)))


def _are_patterns(value: Any) -> bool:
    return _is_texts(value) and not any(not one or Path(one).is_absolute() for one in value)


def _flag(name: str, metavar: str, kind: Any = "value") -> Flag:
    return Flag(names=(name,), help="", metavar=metavar, kind=kind)


_KNOWN: Mapping[str, Option] = {
    "agent": Option(
        _is_text,
        "a path",
        flag=_flag("--agent", "PATH[:NAME]", "file"),
        setting="The agent that runs the cases of eval-set files.",
    ),
    "files": Option(_are_patterns, "a list of patterns as seen from the project's folder"),
    **{name: option for name, option in OPTIONS.items() if option.setting},
    "max_errors": Option(
        lambda value: type(value) is int and value >= 0,
        "a whole number of 0 or more",
        flag=_flag("--max-errors", "N"),
        setting="How many eval-set cases may end in an error if a pass rate is required.",
    ),
    "max_cost": Option(
        lambda value: is_amount(value) or (is_number(value) and value == 0),
        "an amount in USD",
        flag=_flag("--max-cost", "USD"),
        setting="What all eval-set cases may cost together.",
    ),
    "baseline": Option(
        _is_text,
        "a path",
        flag=_flag("--baseline", "FILE", "file"),
        setting="Compare eval-set cases with this earlier report of --greenroom-report, instead of "
        "asking that all pass.",
    ),
    "report": Option(
        _is_text,
        "a path",
        flag=_flag("--report", "FILE", "file"),
        setting="Write the report of eval-set cases to this JSON file.",
    ),
}
"""The plug-in's own settings, and those options of an evaluation that it offers."""


KEY = pytest.StashKey[Settings]()
_LISTED = pytest.StashKey[frozenset[Path]]()
_ENDINGS = (".evalset", ".test", ".eval")
_SUFFIXES = (".json", ".yaml", ".yml")


def is_usual(path: Path) -> bool:
    """Whether a file has the name of an eval set that pytest runs unasked: `refund.eval.yaml`.

    These are fewer than a command finds in a folder it is given. Here a name alone starts a run:
    tables called `.test` are mostly other data, and scenarios need a model for their users.
    """
    return path.suffix in _SUFFIXES and Path(path.stem).suffix in _ENDINGS


def is_listed(path: Path, config: pytest.Config) -> bool:
    """Whether the project lists the file among those to run."""
    if _LISTED not in config.stash:
        patterns, root = config.stash[KEY].files, config.rootpath
        config.stash[_LISTED] = frozenset(f for pattern in patterns for f in root.glob(pattern))
    return path in config.stash[_LISTED]


def add_options(group: pytest.OptionGroup) -> None:
    """Offer the settings on the command line, where they win over the project's file."""
    for name, option in _KNOWN.items():
        if (flag := option.flag) is None:
            continue
        given: dict[str, object] = {"dest": f"greenroom_{name}", "help": option.setting}
        if flag.kind == "switch":
            given |= {"action": "store_true", "default": None}
        else:
            given["action"] = "append" if flag.kind in ("list", "files") else "store"
            given["metavar"] = (flag.metavar or "").partition("|")[0]
        group.addoption(f"--greenroom{flag.names[0][1:]}", **given)


def place_of_runs(config: pytest.Config) -> Path | str | bool:
    """Where rehearsals are recorded: the `store` of `evaluate`."""
    from greenroom.store.configuration import written_place  # most runs of pytest have no rehearsal

    store = written_place(config.stash[KEY].store)
    if "://" in store:
        return store
    return config.rootpath / store if store else False


def read_settings(config: pytest.Config) -> Settings:
    """The settings of this run, cached in its config; a wrong one is a usage error."""
    given, places = _section(config.rootpath / "pyproject.toml")
    if (baseline := config.getini(BASELINE_INI)) and "baseline" not in given:
        given["baseline"] = baseline
    for name, option in _KNOWN.items():
        typed = config.getoption(f"greenroom_{name}", None)
        if typed is not None:
            places.pop(name, None)
            is_value = option.flag is not None and option.flag.kind == "value"
            given[name] = as_number(typed) if is_value else typed
    wrong = [
        f"greenroom: {places.get(name, '')}{problem}"
        for name, value in given.items()
        if (problem := _problem(name, value))
    ]
    if wrong:
        raise pytest.UsageError("\n".join(wrong))
    for name, value in given.items():
        if isinstance(value, list):
            given[name] = tuple(cast("list[Any]", value))
    own = {one.name for one in fields(Settings)}
    passed_on = {
        name: _anchored(name, value, config.rootpath)
        for name, value in given.items()
        if name not in own
    }
    known: Any = {name: value for name, value in given.items() if name in own}
    settings = Settings(**known, passed_on=passed_on)
    if settings.is_adaptive and not (settings.min_pass_rate or 0) < 1:
        raise pytest.UsageError(
            "greenroom: trials='auto' runs each case until it is clear whether its pass rate reaches the "
            "minimum, and no number of trials can show 1.0. Give --greenroom-min-pass-rate 0.9, say."
        )
    if settings.is_adaptive and settings.min_pass_rate is None:
        raise pytest.UsageError(
            "greenroom: trials='auto' runs each case until it is clear whether its pass rate reaches a "
            "minimum. Give one: --greenroom-min-pass-rate 0.9, say."
        )
    for name, needs in lacking(passed_on):
        raise pytest.UsageError(
            f"greenroom: {name}={passed_on[name]!r} is for {' or '.join(needs)}; give that too, or leave it out."
        )
    if settings.max_errors and not settings.has_gate:
        raise pytest.UsageError(
            f"greenroom: max_errors={settings.max_errors!r} is for min_pass_rate or baseline: without them every "
            f"case has to pass. Give one of them too, or leave it out."
        )
    config.stash[KEY] = settings
    return settings


def _anchored(name: str, value: Any, root: Path) -> object:
    """A setting that names a file as seen from the project's folder, wherever pytest was started."""
    flag = _KNOWN[name].flag
    if flag is not None and flag.kind == "folder":
        # A recording may be a run in the store.
        return value if name == "replay" and not (root / value).exists() else str(root / value)
    if flag is None or flag.kind not in ("file", "files"):
        return value
    from greenroom.suite.inputs.references import anchored

    return anchored(value, root) if flag.kind == "file" else [anchored(v, root) for v in value]


def _section(file: Path) -> tuple[dict[str, object], dict[str, str]]:
    """The plug-in's own settings in a project's file, and where each is written."""
    if not file.is_file() or b"greenroom" not in file.read_bytes():
        return {}, {}
    from greenroom.errors import BadFile  # here: projects that do not rehearse load nothing
    from greenroom.project import project_in

    try:
        project = project_in(file)
    except BadFile as error:
        raise pytest.UsageError(f"greenroom: {error}") from error
    given = project.settings.get("pytest", {})
    if not isinstance(given, dict):
        raise pytest.UsageError(f"greenroom: {file}: pytest is {given!r}; write {_SECTION}.")
    settings = {**cast("dict[str, Any]", given)}
    return settings, {name: f"{project.place(name, _SECTION[1:-1])}: " for name in settings}


def _problem(name: str, value: object) -> str:
    """Why a setting cannot be used; empty if it can."""
    if name not in _KNOWN:
        near = nearest(name, _KNOWN)
        meant = f"Did you mean {near!r}?" if near else f"Known: {', '.join(_KNOWN)}."
        return f"{_SECTION} has no option {name!r}. {meant}"
    option = _KNOWN[name]
    kind = option.flag.kind if option.flag is not None else "value"
    if kind in ("file", "folder") and not isinstance(value, str):
        return f"{name}={value!r} should be a path."
    if kind in ("list", "files") and not _is_texts(value):
        return f"{name}={value!r} should be a list of strings."
    problem = option.problem(value)
    return f"{name}={problem}" if problem else ""
