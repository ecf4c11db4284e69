"""The report of a run: its results and the totals computed from them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import fsum
from os import urandom
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from greenroom.errors import NotFound
from greenroom.ledger.messages import Usage
from greenroom.ledger.questions import Spending
from greenroom.results.result import CaseResult
from greenroom.results.summary import MetricSummary, Summary
from greenroom.results.words import number_of

if TYPE_CHECKING:
    from greenroom.results.breakdown import CaseSummary, TagSummary
    from greenroom.results.comparisons.comparison import Comparison
    from greenroom.results.frame import Library
    from greenroom.results.statistics.intervals import Interval
    from greenroom.results.totals import Paid, Totals

REPORT_FILE = "eval_report.json"
UNFINISHED = "the run is not finished"
"""The first words of the note that a run in the store has trials left to run."""
PART = "part of a set: "
"""The first words of the note that only one shard of the cases was run, such as 2 of 4."""
FAULT = "fault of the run: "
"""The first words of the note on a refusal that belongs to no trial."""


MAX_TRIALS = 20
"""The most trials of one case, where an adaptive run finds out how many it needs."""


def new_report_id() -> str:
    """An id that no other report has."""
    return urandom(6).hex()


class CasePlace(Struct, frozen=True):
    """Where a case is from: its eval set, and the file and line on which it begins, if it has one."""

    evalset: str = ""
    file: str = ""
    line: int | None = None


class _Counted(Struct):
    """Totals computed while results were read, so that a large run is read only once."""

    totals: "Totals | None" = None
    paid: "Paid | None" = None


@dataclass(frozen=True, slots=True, repr=False)
class Report:
    """The results of an evaluation, in the order of its cases. `str(report)` is plain text."""

    results: Sequence[CaseResult]
    name: str = ""
    seconds: float = 0.0
    notes: Sequence[str] = field(default=())
    id: str = ""
    evalset_id: str = ""
    at: float | None = None
    """When the run began, in seconds since the epoch."""
    adaptive: bool = False
    """Whether the run was adaptive (as many trials as needed), so that only the first round compares."""
    parts: Sequence[Sequence[str]] = ()
    """The ids of the cases of each adaptive run, if several were put together: each had its own rounds."""
    confirmed: Sequence[CaseResult] = ()
    """Extra trials of cases that failed after passing in the baseline; they count in no rate or mean."""
    against: str | None = None
    """The id of the baseline against which such cases were run again; None if that was not asked for."""
    sources: Mapping[str, CasePlace] = field(default_factory=dict[str, CasePlace], compare=False)
    """Where each case is from, by its id, if it is known."""
    measures: Mapping[str, str] = field(default_factory=dict[str, str], compare=False)
    """A digest of what each metric of the run is made of, by its name, if it is known."""
    rescored_from: str = ""
    """The id of the run whose trials it measures again; empty if it is a run of its own."""
    _counted: _Counted = field(default_factory=_Counted, init=False, repr=False, compare=False)

    @property
    def passed(self) -> bool:
        """Whether every case ran and passed, there was at least one, and nothing was refused outside them."""
        counts = self.summary
        return 0 < counts.total == counts.passed and not (self.faults or self.unfinished)

    @property
    def faults(self) -> list[str]:
        """Refusals that belong to no trial: with one, the run proves nothing."""
        return [note for note in self.notes if note.startswith(FAULT)]

    @property
    def summary(self) -> Summary:
        """The counts."""
        return self.totals.summary

    @property
    def unfinished(self) -> str:
        """The note that some of it has not run yet; empty if nothing is known to be left."""
        return next((note for note in self.notes if note.startswith(UNFINISHED)), "")

    @property
    def failures(self) -> list[CaseResult]:
        """The results of cases that ran and did not pass."""
        return [result for result in self.results if result.fell_short]

    @property
    def errors(self) -> list[CaseResult]:
        """The results in which something broke; each says what in `error`."""
        return [result for result in self.results if result.error is not None]

    @property
    def cost(self) -> float | None:
        """What the agents' models cost in USD; None when a price is unknown."""
        return self.paid.agent

    @property
    def user_cost(self) -> float | None:
        """What the users' models cost in USD; None when a price is unknown."""
        return self.paid.user

    @property
    def judge_cost(self) -> float | None:
        """What the judges' models cost in USD; None when a price is unknown."""
        return self.paid.judge

    @property
    def spent(self) -> float | None:
        """What agents, users and judges cost in USD together; None when a price is unknown."""
        costs = self.cost, self.user_cost, self.judge_cost
        known = [cost for cost in costs if cost is not None]
        return fsum(known) if len(known) == len(costs) else None

    @property
    def usage(self) -> Usage | None:
        """Tokens of the agents' models; None when a reply did not say."""
        return self.totals.agent.usage

    @property
    def user_usage(self) -> Usage | None:
        """Tokens of the users' models; None when a reply did not say."""
        return self.totals.user.usage

    @property
    def judge_usage(self) -> Usage | None:
        """Tokens of the judges' models; None when a reply did not say."""
        return self.totals.judge.usage

    @property
    def models(self) -> dict[str, int]:
        """Which models answered in these trials, and how often."""
        return {**self.totals.agent.models}

    @property
    def user_models(self) -> dict[str, int]:
        """Which models simulated the users in these trials, and how often."""
        return {**self.totals.user.models}

    @property
    def judge_models(self) -> dict[str, int]:
        """Which models judged these trials, and how often they were asked."""
        return {**self.totals.judge.models}

    @property
    def nodes(self) -> dict[str, Spending]:
        """What the agents' models used and cost by the node that asked them.

        What belongs to no known node, as in results of earlier versions, is under "".
        """
        return {node: spent.spending for node, spent in self.totals.nodes.items()}

    @property
    def metrics(self) -> Mapping[str, MetricSummary]:
        """Each metric over all cases."""
        return {name: found.summary(name) for name, found in self.totals.metrics.items()}

    @property
    def totals(self) -> "Totals":
        """Every total of the results, which are read once for it."""
        from greenroom.results.totals import Totals

        if (found := self._counted.totals) is None:
            found = Totals.of(self)
            self.keep_totals(found)
        return found

    @property
    def has_totals(self) -> bool:
        """Whether the totals were already computed."""
        return self._counted.totals is not None

    def keep_totals(self, totals: "Totals") -> None:
        """Keep totals that were computed while the results were read for something else."""
        self._counted.totals = totals

    @property
    def paid(self) -> "Paid":
        """What each role cost, and how many trials were replayed."""
        return self._counted.paid or self.totals.paid

    def keep_paid(self, paid: "Paid") -> None:
        """Keep costs that were added up while the results were read for a comparison."""
        self._counted.paid = paid

    def by_case(self) -> dict[str, list[CaseResult]]:
        """The results of each case, one for each of its trials."""
        found: dict[str, list[CaseResult]] = {}
        for result in self.results:
            found.setdefault(result.case_id, []).append(result)
        return found

    @property
    def per_tag(self) -> "Mapping[str, TagSummary]":
        """The results by tag, with their pass rate and cost."""
        from greenroom.results.breakdown import per_tag

        return per_tag(self)

    @property
    def per_case(self) -> "Mapping[str, CaseSummary]":
        """The trials of each case, with their pass rate and cost."""
        from greenroom.results.breakdown import per_case

        return per_case(self)

    @property
    def pass_rate(self) -> float | None:
        """The mean of the cases' own pass rates, so each case counts once; None if nothing was evaluated."""
        from greenroom.results.statistics.intervals import mean_rate

        return mean_rate(self.totals.tallies)

    @property
    def interval(self) -> "Interval | None":
        """The pass rate with its 95 % interval, `82 % ± 6`; None with fewer than two evaluated cases."""
        from greenroom.results.statistics.intervals import of_cases

        return of_cases(self.totals.tallies)

    def any_of(self, k: int) -> float | None:
        """pass@k: the chance that at least one of `k` trials of a case passes, over all cases.

        None if a case has fewer than `k` evaluated trials; one that has none at all is left out.
        """
        from greenroom.results.breakdown import mean_over

        return mean_over(self, lambda case: case.any_of(k))

    def all_of(self, k: int) -> float | None:
        """pass^k: the chance that `k` trials of a case all pass, over all cases.

        None if a case has fewer than `k` evaluated trials; one that has none at all is left out.
        """
        from greenroom.results.breakdown import mean_over

        return mean_over(self, lambda case: case.all_of(k))

    def compare(
        self, baseline: "Report | Sequence[Report]", threshold: float = 0.05
    ) -> "Comparison":
        """How the baseline's cases changed; see `Comparison`."""
        from greenroom.results.comparisons.comparison import compare

        return compare(baseline, self, threshold)

    @classmethod
    def pooled(cls, reports: "Sequence[Report]") -> "Report":
        """Several reports of the same cases as one baseline: their trials count together."""
        from greenroom.results.comparisons.changes import pooled

        return pooled(reports)

    def __getitem__(self, case_id: str) -> CaseResult:
        for result in self.results:
            if result.case_id == case_id:
                return result
        known = [result.case_id for result in self.results]
        raise NotFound(f"the report has no case {case_id!r}; it has {known}.")

    def __iter__(self) -> Iterator[CaseResult]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    def __repr__(self) -> str:
        count = number_of(len(self.results), "result")
        return f"<Report of {count}: {self.summary.passed} passed>"

    def __str__(self) -> str:
        from greenroom.results.text import plain_text

        return plain_text(self)

    def render(self, format: str, *, baseline: "Report | None" = None) -> str:
        """The report in one of the formats that are installed: "markdown", "html", "junit", or a plug-in's."""
        from greenroom.results.reporters import render_report

        return render_report(format, self, baseline=baseline)

    def to_json(self) -> str:
        """The report as JSON text, without secrets."""
        return self.render("json")

    def to_markdown(self, *, baseline: "Report | None" = None) -> str:
        """The report as Markdown that fits into a comment, without secrets."""
        return self.render("markdown", baseline=baseline)

    def to_frame(self, library: "Library | None" = None) -> Any:
        """A data frame with a row for each trial, of pandas or polars, whichever is installed."""
        from greenroom.results.frame import frame_of

        return frame_of(self, library)

    def _repr_html_(self) -> str:
        """The report as a notebook shows it."""
        return self.render("notebook")

    def save(
        self,
        path: str | Path = REPORT_FILE,
        *,
        failures_only: bool = False,
        indent: int | None = 2,
        redact: bool = True,
    ) -> Path:
        """Write the report as JSON, atomically, and return its path.

        `failures_only` leaves out the results of cases that passed or were skipped. Secrets are
        replaced unless `redact=False`.
        """
        from greenroom.results.files import write_report

        options = {"failures_only": failures_only, "redact": redact}
        return write_report(self, path, indent=indent, **options)

    @classmethod
    def load(cls, path: str | Path = REPORT_FILE) -> "Report":
        """The report saved in a file; everything but the ledgers, which are kept elsewhere."""
        from greenroom.results.files import read_report

        return read_report(path)


def shared_measures(reports: Iterable[Report]) -> dict[str, str]:
    """What the metrics of several reports are made of; empty for one that is not the same in all."""
    found: dict[str, str] = {}
    for report in reports:
        for name, digest in report.measures.items():
            found[name] = digest if found.setdefault(name, digest) == digest else ""
    return found
