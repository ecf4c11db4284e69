"""A finished run, measured again: other metrics on the same ledgers, without the agent.

Metrics that are code of a case cannot be read from a ledger. Unless the cases are given, their
outcomes stay as they were recorded; all others are measured again or are gone, and the notes of the
report say which. If nothing is given to measure by, the run's own metrics are measured again: those of
its cases; the outcomes of those that were given to the run stay as they were recorded.
"""

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import perf_counter, time
from typing import TYPE_CHECKING, Any, cast

from msgspec import Struct

from greenroom.cases.case import Case
from greenroom.cases.evalset import EvalSet
from greenroom.cases.liveness import is_code
from greenroom.cases.parts import MetricLike
from greenroom.cases.scores import Outcome, Score
from greenroom.errors import BadInput, MetricsHung, Refusal, SecretsLost
from greenroom.ledger.codec import encoded_lines
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.questions import is_complete, started
from greenroom.ledger.redaction import MARK, clean_ids, is_redacted, redactor
from greenroom.metrics.scores import recorded_case
from greenroom.results.endings import NOT_OVER, Status, breakage, label
from greenroom.results.report import Report, new_report_id
from greenroom.results.result import CaseResult
from greenroom.results.trial_verdict import concluded, unmeasured
from greenroom.results.words import listed, outcome_text
from greenroom.simulation.trial_context import check_fence
from greenroom.store.store import Store, store_for_run
from greenroom.suite.inputs.criteria import as_config, check_metrics, equipped, with_config
from greenroom.suite.inputs.sources import as_evalset
from greenroom.suite.measurement import Measurement, reset_breakers
from greenroom.suite.options import CONCURRENCY, METRIC_ATTEMPTS, Options, complete
from greenroom.suite.watch import watched
from greenroom.world.answers import AnswerCache

if TYPE_CHECKING:
    from greenroom.cases.config import EvalConfig


class Flip(Struct, frozen=True):
    """A trial whose verdict has changed, and the metrics that changed it."""

    case_id: str
    trial: int
    before: Status
    now: Status
    why: str = ""

    def __str__(self) -> str:
        why = f"  {self.why}" if self.why else ""
        return f"{label(self.case_id, self.trial)}: {self.before} → {self.now}{why}"


class Rescored(Struct, frozen=True):
    """The report of a run measured again by other metrics. `str(rescored)` lists the flips, one a line."""

    report: Report
    flips: tuple[Flip, ...] = ()

    def __str__(self) -> str:
        return "\n".join(map(str, self.flips)) or "no verdict flips"


async def rescore(
    run: Report | str,
    *,
    metrics: Iterable[MetricLike] = (),
    config: "EvalConfig | str | Path | None" = None,
    cases: EvalSet | Case | Iterable[Case | EvalSet] | str | Path | None = None,
    cache: AnswerCache | str | Path | None = None,
    concurrency: int = CONCURRENCY,
    seconds_per_metric: float | None = None,
    metric_attempts: int = METRIC_ATTEMPTS,
    store: Store | str | Path | None = None,
) -> Rescored:
    """Measure a report's ledgers, or those of the run with this id, by `metrics` and `config`.

    Each case's own metrics and expectations are measured too: as recorded, or as `cases` has them
    now. Without metrics, config and cases, what the run measured is measured again, where its ledgers
    say how. No agent, user or tool runs; judges may be asked, and answer from `cache` what is in it.
    """
    given: Options = {
        "metrics": metrics,
        "config": config,
        "cache": cache,
        "concurrency": concurrency,
        "seconds_per_metric": seconds_per_metric,
        "metric_attempts": metric_attempts,
        "store": store,
    }
    report = store_for_run(store).report(run) if isinstance(run, str) else run
    known = None if cases is None else as_evalset(cases)
    evalset, measuring = measurement_of(given, report.name, known)
    by_id: dict[str, Case] | None = None
    if known is not None:  # also by the ids that the store has for them
        clean = clean_ids(evalset.ids, redactor())
        by_id = {name: case for case in evalset for name in (clean[case.id], case.id)}
    as_ran = by_id is None and not measuring.metrics
    return await Rescoring(report, measuring, by_id, as_ran).run(concurrency)


def measurement_of(given: Options, name: str, cases: EvalSet | None) -> tuple[EvalSet, Measurement]:
    """The cases with what the config adds to them, and the measurement of their recordings."""
    options, settings = complete(given), as_config(given.get("config"))
    check_fence()
    evalset = equipped(cases or EvalSet(name, []), {}, settings)
    check_metrics(list(options["metrics"]), evalset)
    measuring = Measurement.of(with_config(options, settings), evalset)
    reset_breakers(measuring.metrics)
    return evalset, measuring


@dataclass(slots=True)
class Rescoring:
    """One report being measured again."""

    report: Report
    measuring: Measurement
    cases: Mapping[str, Case] | None
    as_ran: bool = False
    """Whether it is measured by what the run measured, and nothing else."""
    done: dict[int, CaseResult] = field(default_factory=dict[int, CaseResult])
    notes: list[str] = field(default_factory=list[str])
    as_recorded: set[str] = field(default_factory=set[str])
    of_the_run: set[str] = field(default_factory=set[str])
    gone: set[str] = field(default_factory=set[str])

    async def run(self, concurrency: int) -> Rescored:
        """The report, and what flipped in it."""
        at, begun = time(), perf_counter()
        before = [*self.report.results, *self.report.confirmed]
        if self.cases is not None and not any(one.case_id in self.cases for one in before):
            known = listed(list(dict.fromkeys(one.case_id for one in before)))
            raise BadInput(f"none of the cases that were given is in this run. It has {known}.")
        waiting = iter(enumerate(before))

        async def measure_in_turn() -> None:
            for place, result in waiting:
                self.done[place] = await self._measure(result)

        async with watched(self.notes.append):
            await asyncio.gather(*(measure_in_turn() for _ in range(concurrency)))
        found = [self.done[place] for place in sorted(self.done)]
        results = found[: len(self.report.results)]
        report = replace(
            self.report,
            results=results,
            confirmed=tuple(found[len(results) :]),
            seconds=perf_counter() - begun,
            notes=[*self.report.notes, *self._describe()],
            id=new_report_id(),
            rescored_from=self.report.rescored_from or self.report.id,
            at=at,
        )
        pairs = zip(self.report.results, results, strict=True)
        return Rescored(report, tuple(_flip(a, b) for a, b in pairs if a.status != b.status))

    def _describe(self) -> Iterator[str]:
        yield f"measured again from report {self.report.id}, without the agent"
        yield from self.notes
        if self.as_recorded:
            names = ", ".join(sorted(self.as_recorded))
            yield f"as recorded, since they are code of a case: {names}; name the cases to measure them"
        if self.of_the_run:
            names = ", ".join(sorted(self.of_the_run))
            yield f"as recorded, since they were given to the run: {names}; give them again to measure them"
        if self.gone:
            names = ", ".join(sorted(self.gone))
            yield f"measured then and not now: {names}"

    async def _measure(self, before: CaseResult) -> CaseResult:
        """A result measured by the new metrics; one of a trial that never ran stays as it is."""
        ledger = before.ledger_or_none
        if ledger is None:
            if before.ended is not None:
                raise BadInput(
                    f"the ledger of case {before.case_id!r} was not kept, so nothing can be measured again. Give the id of a run in the store, or a report that keeps its ledgers."
                )
            return before
        if self.cases is not None and before.case_id not in self.cases:
            self.notes.append(f"case {before.case_id!r} is not among those given: left as it was")
            return before
        now = await self._judge(before, ledger)
        self.gone |= before.scores.keys() - now.scores.keys()
        # A case that was not given is the one that ran; its ledger lacks what is code.
        ran = {} if self.cases is not None else {"asked": before.asked, "asks": before.asks}
        # The ledger stays where it is: a run may be larger than the memory.
        return replace(
            now,
            **ran,
            trial=before.trial,
            notes=tuple(dict.fromkeys((*before.notes, *now.notes))),
            kept=before.kept,
            blamed=now.blame,
        )

    async def _judge(self, before: CaseResult, ledger: Ledger) -> CaseResult:
        case, judging = self._case(before, ledger), Ledger()
        events = list(ledger)
        # A search for the mark in the raw text first: most ledgers then need no closer look.
        has_lost = MARK.encode() in encoded_lines(events) and is_redacted(events)
        if has_lost and breakage(ledger) is None:
            lost = SecretsLost(
                "secrets were removed from its ledger when it was recorded, so metrics would not measure "
                "what was said. Run the case again."
            )
            return unmeasured(case, ledger, lost, self.measuring.names(case))
        if not is_complete(ledger):
            return concluded(case, ledger, dict.fromkeys(self.measuring.names(case), NOT_OVER))
        try:
            scores = await self.measuring.outcomes(case, ledger, judging, trial=before.trial)
        except (Refusal, MetricsHung, BadInput) as error:
            names = self.measuring.names(case)
            return unmeasured(case, ledger, error, names, judging=judging)
        kept = self._kept(before, case, ledger)
        if self.as_ran and before.scores:
            # An expectation that a metric of the run measured in its own way was not measured then.
            scores = {name: one for name, one in scores.items() if name in before.scores}
            others = {n: o for n, o in before.scores.items() if n not in kept and n not in scores}
            self.of_the_run |= others.keys()
            kept |= others
        return concluded(case, ledger, {**kept, **scores}, judging=judging)

    def _case(self, before: CaseResult, ledger: Ledger) -> Case:
        """The case as it is now: as given, else as it ran, if that is still available."""
        if self.cases is not None:
            return self.cases[before.case_id]
        return before.asked if isinstance(before.asked, Case) else recorded_case(ledger)

    def _kept(self, before: CaseResult, case: Case, ledger: Ledger) -> dict[str, Outcome]:
        """The outcomes of metrics that are code of a case which is known from its ledger only."""
        if self.cases is not None or case is before.asked:
            return {}
        first = started(ledger)
        recorded = cast("Mapping[str, Any]", (first and first.case) or {})
        names = {str(one["name"]) for one in recorded.get("metrics", ()) if is_code(one)}
        found = {name: outcome for name, outcome in before.scores.items() if name in names}
        self.as_recorded |= found.keys()
        return found


def _flip(before: CaseResult, now: CaseResult) -> Flip:
    def side(outcome: Outcome | None) -> object:
        return outcome.passed if isinstance(outcome, Score) else type(outcome)

    def word(outcome: Outcome | None) -> str:
        return "–" if outcome is None else outcome_text(outcome)

    names = dict.fromkeys((*before.scores, *now.scores))
    pairs = ((name, before.scores.get(name), now.scores.get(name)) for name in names)
    why = [f"{name} {word(a)} → {word(b)}" for name, a, b in pairs if side(a) != side(b)]
    return Flip(now.case_id, now.trial, before.status, now.status, "; ".join(why))
