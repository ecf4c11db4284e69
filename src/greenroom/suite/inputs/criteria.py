"""What a run adds to its cases (mocks, metrics, a config), and checks of its metrics."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from greenroom.cases.case import Case
from greenroom.cases.checks import metric_problem
from greenroom.cases.criteria import counted_as_adk
from greenroom.cases.evalset import EvalSet
from greenroom.cases.parts import Metric, MetricLike
from greenroom.cases.problems import Problem, at, listed
from greenroom.errors import BadFile, BadInput, BadMetric
from greenroom.ledger.functions import Anything
from greenroom.ledger.plain import Json, is_object
from greenroom.metrics import as_metric
from greenroom.metrics.scores import by_name
from greenroom.simulation.user.users import with_user_model
from greenroom.suite.inputs.judge_models import with_judge_models, with_named_judges
from greenroom.suite.options import Values

if TYPE_CHECKING:
    from greenroom.cases.config import EvalConfig

Placed = Iterable[tuple[str, MetricLike]]
"""Metrics, each with its place."""

_SHOWN = 20
_LIMITS = ("seconds_per_metric", "seconds_per_case")


def with_config(options: Values, config: "EvalConfig | None") -> Values:
    """The options of a run, with the config's values for those that were not given."""
    if config is None:
        return options
    limits = {n: getattr(config, n) for n in _LIMITS if options[n] is None}
    return {**options, **limits, "fail_fast": options["fail_fast"] or config.fail_fast}


def equipped(
    evalset: EvalSet, mocks: Mapping[str, Anything], config: "EvalConfig | None"
) -> EvalSet:
    """The set whose cases have `mocks` for what they do not mock themselves, judged by `config`.

    Its criteria are added to the set's; on equal names they win. Models of judges that are named as
    `judges.py:name` are loaded.
    """
    evalset = with_named_judges(evalset)
    if mocks:
        cases = [replace(case, mocks={**mocks, **case.mocks}) for case in evalset]
        evalset = replace(evalset, cases=cases)
    if config is None:
        return evalset
    criteria = config.criteria
    # Cases of google-adk may come from several files, or by way of a worker's briefing.
    is_from_adk = evalset.shape.startswith("adk") or any(
        criterion.options.get("match_type") == "ADK" for criterion in evalset.usual or ()
    )
    if config.shape == "agentflow" and is_from_adk:
        # Both tools write such a config; next to a file of google-adk it is google-adk's.
        criteria = [counted_as_adk(criterion) for criterion in criteria]
    if evalset.usual is not None:
        # Another tool's config is the whole list of what counts.
        evalset = replace(evalset, usual=())
    criteria = [with_judge_models(criterion, config.folder) for criterion in criteria]
    names = {name for criterion in criteria for name in _names(criterion)}
    kept = [given for given in evalset.metrics if names.isdisjoint(_names(given))]
    cases: list[Case] = list(evalset)
    if (simulator := config.user_simulator) is not None:
        limit = simulator.max_allowed_invocations
        cases = [with_user_model(case, simulator.model or None, limit) for case in cases]
    return replace(evalset, cases=cases, metrics=[*kept, *criteria])


def all_metrics(given: Iterable[MetricLike], evalset: EvalSet) -> list[Metric]:
    """The run's metrics and those of the set; on equal names the run's win."""
    own = [as_metric(metric) for metric in given]
    names = {metric.name for metric in own}
    others = map(as_metric, (*evalset.metrics, *(evalset.usual or ())))
    return [*own, *(metric for metric in others if metric.name not in names)]


def _names(given: MetricLike) -> tuple[str, str]:
    """A metric by the name it was asked for with, and by its own."""
    bare = getattr(given, "name", str(given))
    try:
        return bare, as_metric(given).name
    except BadMetric:
        return bare, bare  # it lacks an option, which the metric of equal name may have


def as_config(given: "EvalConfig | str | Path | None") -> "EvalConfig | None":
    """A config as it is, or from its file; BadFile names every criterion that cannot be measured."""
    if not isinstance(given, str | Path):
        return given
    from greenroom.cases.config import read_config  # loaded only where a config is read

    try:
        config = read_config(given)
    except BadFile as error:
        check_config(given, error)
        raise
    check_config(given)
    return config


# What is wrong with metrics


def check_metrics(given: Iterable[MetricLike], evalset: EvalSet) -> None:
    """Refuse metrics of a run, its set and its cases that cannot be measured or have one name; all are named."""
    bad = [(place, metric) for place, metric in _all(given, evalset) if problem_with(metric)]
    if len(bad) == 1:
        as_metric(bad[0][1])  # raises; a single error needs no place
    if bad:
        raise BadMetric(f"{len(bad)} metrics cannot be measured:\n{_list(_problems(bad))}")
    by_name(given, "the run")
    by_name(evalset.metrics, "the set")
    for case in evalset:
        if case.metrics:
            by_name(case.metrics, f"case {case.id!r}")


def _all(given: Iterable[MetricLike], evalset: EvalSet) -> Iterator[tuple[str, MetricLike]]:
    yield from _placed("metrics", given)
    yield from _placed("metrics of the set", (*evalset.metrics, *(evalset.usual or ())))
    for case in evalset:
        if case.metrics:
            yield from _placed(f"case {case.id!r}, metrics", case.metrics)


def _placed(place: str, metrics: Iterable[MetricLike]) -> Iterator[tuple[str, MetricLike]]:
    return ((f"{place}[{i}]", metric) for i, metric in enumerate(metrics))


def problem_with(
    metric: MetricLike, folder: Path | None = None, *, imports: bool = True
) -> BadInput | None:
    """Why there is no such metric, or not with these options; None if it can be measured.

    `folder` is the folder of the file that asks for it. Without `imports`, code that it names is not run.
    """
    try:
        as_metric(with_judge_models(metric, folder, imports=imports))
    except BadInput as error:
        return error
    return None


def _problems(metrics: Placed, folder: Path | None = None) -> list[Problem]:
    found = ((place, metric, problem_with(metric, folder)) for place, metric in metrics)
    return [metric_problem(place, metric, error) for place, metric, error in found if error]


def check_config(path: str | Path, unread: BadFile | None = None) -> None:
    """Refuse a config whose criteria cannot be measured, each with its line.

    `unread` is the reason why the file cannot be read, if it cannot; the error includes it.
    """
    _check_file(path, unread, _config_criteria)


def check_evalset(path: str | Path, evalset: EvalSet | None, unread: BadFile | None = None) -> None:
    """Refuse an eval-set file whose criteria cannot be measured; `evalset` is what was read from it."""
    if evalset is not None and not any(problem_with(one) for _, one in _all((), evalset)):
        return
    from greenroom.cases.files.criteria import criteria_in

    def asked(data: Json) -> Placed:
        # A criterion of the file may have been replaced by one of a config next to it.
        known = None if evalset is None else [metric for _, metric in _all((), evalset)]
        return [(place, one) for place, one in criteria_in(data) if known is None or one in known]

    _check_file(path, unread, asked)


def _config_criteria(data: Json) -> Placed:
    """The criteria of a config that can be read, whatever may be wrong with others."""
    from greenroom.cases.config import EvalConfig
    from greenroom.cases.files.criteria import criteria_in

    if is_object(data) and is_object(by_name := data.get("criteria")):
        for name, given in by_name.items():
            with suppress(BadInput):
                yield at("criteria", name), EvalConfig(criteria={name: given}).criteria[0]  # pyright: ignore[reportArgumentType]
    else:
        yield from criteria_in(data)


def _check_file(
    path: str | Path, unread: BadFile | None, criteria: Callable[[Json], Placed]
) -> None:
    from greenroom.cases.files.documents import parsed

    earlier: Sequence[Problem] = () if unread is None else unread.problems
    if unread is not None and not any(problem.where for problem in earlier):
        raise unread  # not a file of this kind, or no text at all
    document = parsed(Path(path))
    known = {problem.where for problem in earlier}
    problems = _problems(criteria(document.data), Path(path).parent)
    found = [one for one in problems if one.where not in known]
    if found:
        problems = sorted([*earlier, *document.located(found)], key=_position)
        count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        raise BadFile(f"{path} has {count}:\n{_list(problems)}", problems)
    if unread is not None:
        raise unread


def _position(problem: Problem) -> tuple[int, int]:
    return problem.line or 0, problem.column or 0


def _list(problems: Sequence[Problem]) -> str:
    """The problems, one a line; if there are very many, the first ones and the number of the rest."""
    more = f"\n- and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
    return f"{listed(problems[:_SHOWN])}{more}"
