"""Conversations that were recorded elsewhere, measured like rehearsals."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from time import time
from typing import TYPE_CHECKING

from greenroom.cases.case import Case
from greenroom.cases.evalset import EvalSet
from greenroom.cases.parts import MetricLike
from greenroom.errors import BadInput
from greenroom.ledger.events import UserSaid
from greenroom.ledger.messages import is_blank
from greenroom.metrics.response import equal_texts
from greenroom.metrics.scores import recorded_case
from greenroom.results.report import Report, new_report_id
from greenroom.results.result import CaseResult
from greenroom.suite.inputs.sources import as_evalset
from greenroom.suite.options import CONCURRENCY, METRIC_ATTEMPTS, Options
from greenroom.suite.recorded.rescores import Rescoring, measurement_of
from greenroom.traces.records import Imported
from greenroom.world.answers import AnswerCache

if TYPE_CHECKING:
    from greenroom.cases.config import EvalConfig


_TOLD = 5
"""How many names a note lists."""


async def score_traces(
    traces: Iterable[Imported],
    *,
    metrics: Iterable[MetricLike] = (),
    config: "EvalConfig | str | Path | None" = None,
    cases: EvalSet | Case | Iterable[Case | EvalSet] | str | Path | None = None,
    cache: AnswerCache | str | Path | None = None,
    concurrency: int = CONCURRENCY,
    seconds_per_metric: float | None = None,
    metric_attempts: int = METRIC_ATTEMPTS,
    name: str = "traces",
) -> Report:
    """Measure recorded conversations by `metrics`, `config` and what `cases` expect.

    A conversation belongs to the case whose id it or its source names, else to the one that begins with
    the same words of the user; several of one case are its trials. One that belongs to none is measured
    by `metrics` and `config` only. What a metric needs and the record does not hold is `Unmeasured`.
    """
    given: Options = {
        "metrics": metrics,
        "config": config,
        "cache": cache,
        "concurrency": concurrency,
        "seconds_per_metric": seconds_per_metric,
        "metric_attempts": metric_attempts,
    }
    known = None if cases is None else as_evalset(cases)
    evalset, measuring = measurement_of(given, name, known)
    if known is None and not measuring.metrics:
        raise BadInput("there is nothing to measure by; give metrics, a config or the cases.")
    results, by_id, notes = _matched(traces, evalset)
    if not results:
        raise BadInput("there is no conversation to measure; give traces that hold one.")
    before = Report(results, name=name, notes=notes)
    done = await Rescoring(before, measuring, by_id).run(concurrency)
    return replace(done.report, notes=notes, id=new_report_id(), rescored_from="", at=time())


def _matched(
    traces: Iterable[Imported], evalset: EvalSet
) -> tuple[list[CaseResult], Mapping[str, Case], list[str]]:
    """The conversations as trials that are not judged yet, their cases, and notes."""
    results: list[CaseResult] = []
    cases: dict[str, Case] = {}
    trials: dict[str, set[int]] = {}
    strangers: list[str] = []
    for found in traces:
        case = case_for(found, evalset)
        notes = list(found.notes)
        if case is None:
            case = replace(recorded_case(found.ledger), metrics=())
            strangers.append(found.conversation)
        if case.id != found.conversation:
            notes.append(f"conversation {found.conversation} of {found.source}")
        cases[case.id] = case
        taken = trials.setdefault(case.id, set())
        trial = next(n for n in (found.trial, *range(1, len(taken) + 2)) if n not in taken)
        taken.add(trial)
        results.append(
            CaseResult(
                case_id=case.id,
                status="skipped",
                trial=trial,
                kept=found.ledger,
                notes=tuple(notes),
            )
        )
    if len(evalset) and len(strangers) == len(results) > 0:
        raise BadInput(
            f"none of the {len(results)} conversations belongs to a case: none names one of "
            f"{', '.join(evalset.ids[:5])}, or begins with the same words. Leave the cases out, or give "
            f"those that these conversations were recorded for."
        )
    unmet = [case_id for case_id in evalset.ids if case_id not in cases]
    said = {
        "measured without a case, since none fits": strangers if len(evalset) else [],
        "not measured, since no conversation fits": unmet,
    }
    return results, cases, [f"{what}: {_few(found)}" for what, found in said.items() if found]


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:_TOLD]) + (" …" if len(names) > _TOLD else "")


def case_for(found: Imported, evalset: EvalSet) -> Case | None:
    """The case of a set that a conversation belongs to, by its id or by the user's first words."""
    by_id = {case.id: case for case in evalset}
    for name in (found.case_id, found.conversation):
        if name in by_id:
            return by_id[name]
    said = found.ledger.of(UserSaid)
    if not said or is_blank(words := said[0].text):
        return None
    alike = [case for case in evalset if case.script and equal_texts(case.script[0].says, words)]
    return alike[0] if len(alike) == 1 else None
