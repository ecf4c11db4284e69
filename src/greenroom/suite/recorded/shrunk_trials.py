"""A failing trial of a recorded run, shrunk by the metrics that it failed."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from greenroom.cases.case import Case
from greenroom.cases.evalset import EvalSet
from greenroom.cases.from_runs import check_secrets
from greenroom.cases.parts import MetricLike
from greenroom.cases.reader import case_from
from greenroom.cases.scores import Outcome, Score, Unmeasured
from greenroom.errors import BadInput
from greenroom.ledger.functions import Anything
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.plain import as_object
from greenroom.ledger.questions import ended, started
from greenroom.results.result import CaseResult
from greenroom.simulation.recorded.allowance import Allowance
from greenroom.simulation.recorded.shrink import ShrinkOptions, Shrunk, shrink_by
from greenroom.simulation.trial_context import check_fence
from greenroom.store.runs import Key
from greenroom.store.store import Store, store_for_run
from greenroom.suite.inputs.criteria import as_config, check_metrics, equipped
from greenroom.suite.inputs.sources import as_evalset, as_model_given
from greenroom.suite.measurement import Measurement
from greenroom.suite.options import Options, complete
from greenroom.suite.watch import watched

if TYPE_CHECKING:
    from greenroom.cases.config import EvalConfig


async def shrink_trial(
    run: str,
    case_id: str,
    agent: Any,
    *,
    trial: int = 1,
    cases: EvalSet | Case | Iterable[Case | EvalSet] | str | Path | None = None,
    config: "EvalConfig | str | Path | None" = None,
    metrics: Iterable[MetricLike] = (),
    mocks: Mapping[str, Anything] | None = None,
    store: Store | str | Path | None = None,
    **options: Unpack[ShrinkOptions],
) -> Shrunk:
    """The shortest case that fails as a trial of a recorded run did, by one of the metrics it failed.

    The case is the one that was recorded, or that of `cases`, which has its code; `config` and `metrics`
    measure in addition to its own, as they did in the run. Answers that the trial received are not asked for
    again. The other options are those of `shrink`.
    """
    place = store_for_run(store)
    run_id = place.run(run).id
    ledger = place.ledger(run_id, Key(case_id, trial))
    result = _result(place, run_id, case_id, trial)
    missed = _missed(result)
    found = _case(ledger, case_id, None if cases is None else as_evalset(cases))
    given: Options = {"metrics": metrics, "config": config}
    evalset = equipped(EvalSet(case_id, [found]), mocks or {}, as_config(config))
    check_metrics(metrics, evalset)
    measuring = Measurement.of(complete(given), evalset)
    case = evalset.cases[0]
    known = missed & {*measuring.names(case), result.ended}
    if not known:
        raise BadInput(
            f"case {case_id!r} failed by {', '.join(sorted(map(str, missed)))}, which cannot be measured "
            f"from the run alone. Name the cases, config or metrics that measure it."
        )
    allowance = options.setdefault("allowance", Allowance())
    fails = _Failing(measuring, known, allowance)
    check_fence()
    async with watched(lambda _: None):
        answered = replace(case, model=as_model_given(case.model))
        shrunk = await shrink_by(answered, agent, fails.has_failed, ledger, options)
    origin = {"shrunk_from": f"{run_id} {case_id}#{trial}"}
    small = replace(
        shrunk.case,
        id=f"{case_id}-shrunk",
        metadata={**shrunk.case.metadata, **origin},
        model=case.model,
    )
    return Shrunk(small, *(getattr(shrunk, name) for name in Shrunk.__struct_fields__[1:]))


class _Failing:
    """Whether a trial fails by one of the metrics by which the recorded one did."""

    def __init__(
        self, measuring: Measurement, missed: set[str | None], allowance: Allowance
    ) -> None:
        self._measuring, self._missed, self._allowance = measuring, missed, allowance

    async def has_failed(self, case: Case, ledger: Ledger) -> bool | None:
        """None if that cannot be measured: a judge broke, or may not be asked again."""
        end = ended(ledger)
        if end is not None and end.reason in self._missed:
            return True
        if self._allowance.refusal and self._asks_judges(case):
            return None
        outcomes = await self._measuring.outcomes(case, ledger, Ledger(), self._allowance.add)
        if not self._missed.isdisjoint(_failed(outcomes)):
            return True
        broke = {name for name, one in outcomes.items() if isinstance(one, Unmeasured)}
        return False if self._missed.isdisjoint(broke) else None

    def _asks_judges(self, case: Case) -> bool:
        metrics = (*self._measuring.metrics, *case.metrics)
        return any(hasattr(metric, "bench") for metric in metrics)


def _result(place: Store, run_id: str, case_id: str, trial: int) -> CaseResult:
    for one in place.results_of(run_id, case_id):
        if one.trial == trial:
            return one
    raise BadInput(
        f"trial {trial} of case {case_id!r} was set aside: the run continued without it."
    )


def _missed(result: CaseResult) -> set[str | None]:
    """The metrics that a trial failed, and the limit at which it was stopped."""
    if result.status not in ("failed", "terminated"):
        raise BadInput(
            f"{result.label} {'passed' if result.passed else f'ended as {result.status}'}, so there is "
            f"no failure to shrink. The error of a trial that broke says what broke."
        )
    limit = {result.ended} if result.status == "terminated" else set[str | None]()
    return limit | _failed(result.scores)


def _failed(outcomes: Mapping[str, Outcome]) -> set[str | None]:
    return {name for name, o in outcomes.items() if isinstance(o, Score) and not o.passed}


def _case(ledger: Ledger, case_id: str, known: EvalSet | None) -> Case:
    """The case of a trial with all its code, if that is available; else as it was recorded."""
    if known is not None:
        return known[case_id]
    first = started(ledger)
    if first is None or not first.case:
        raise BadInput(
            "this trial does not say what its case was. Name the cases: cases= (--cases)."
        )
    try:
        found = case_from(as_object(first.case))
    except BadInput as error:
        raise BadInput(
            f"case {case_id!r} cannot be read from its run, because it contains code: {error} Name the cases of "
            f"the run: cases= (--cases)."
        ) from error
    check_secrets(found)
    return found
