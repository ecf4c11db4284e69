"""The totals of a report, added up case by case: every figure in one reading of its results."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter

from msgspec import Struct, field

from greenroom.cases.scores import Outcome
from greenroom.ledger.messages import Usage
from greenroom.ledger.questions import Spending
from greenroom.results.endings import EVALUATED
from greenroom.results.facts import Facts, OutcomeFacts, applies
from greenroom.results.report import Report
from greenroom.results.statistics.intervals import Tally
from greenroom.results.stored_results import ReadResults
from greenroom.results.summary import MetricSummary, Summary

_TALLIES: dict[Tally, Tally] = {}


class Spent(Struct):
    """What the models of one role used and cost; None once some of it is unknown."""

    cost: float | None = 0.0
    tokens: tuple[int, int] | None = (0, 0)
    models: dict[str, int] = field(default_factory=dict[str, int])
    known_cost: float = 0.0
    """The known cost: all of it, or a lower bound."""

    def add(self, cost: float | None, usage: Usage | None) -> None:
        """Add the usage and cost of one trial that ran."""
        self.add_cost(cost)
        if usage is None:
            self.tokens = None
        elif self.tokens is not None and (usage.input or usage.output):
            read, written = self.tokens
            self.tokens = read + usage.input, written + usage.output

    def add_cost(self, cost: float | None) -> None:
        """Add a cost, such as that of an attempt that ran again."""
        if cost is None:
            self.cost = None
        elif cost and self.cost is not None:
            self.cost += cost

    def count(self, models: Mapping[str, int]) -> None:
        """Add the models that answered in one trial."""
        for name, number in models.items():
            self.models[name] = self.models.get(name, 0) + number

    @property
    def usage(self) -> Usage | None:
        """Tokens read and written."""
        return None if self.tokens is None else Usage(*self.tokens)

    def add_node(self, spent: Spending) -> None:
        """Add the usage and cost of one node in one trial."""
        self.add(spent.cost, spent.usage)
        self.count(spent.models)
        self.known_cost += spent.known_cost

    @property
    def spending(self) -> Spending:
        """The spending of a node, as a report has it."""
        return Spending(self.usage, self.cost, {**self.models}, self.known_cost)


class Paid(Struct):
    """What each role cost in all trials, None if a price is unknown, and how many were replayed.

    A comparison of two reports needs no other total, and counts these in a tenth of the time of all.
    """

    agent: float | None = 0.0
    user: float | None = 0.0
    judge: float | None = 0.0
    replayed: int = 0

    def add(self, trials: Iterable[Facts], *, again: bool = False) -> None:
        """Add some trials; those that ran `again` were paid for, and count in nothing else."""
        for trial in trials:
            if trial.recorded_at is not None and not again:
                self.replayed += 1
            if earlier := trial.earlier_costs:
                self.agent = _plus(self.agent, earlier.get("agent", 0.0))
                self.user = _plus(self.user, earlier.get("user", 0.0))
                self.judge = _plus(self.judge, earlier.get("judge", 0.0))
            if trial.ended is not None:
                self.agent = _plus(self.agent, trial.cost)
                self.user = _plus(self.user, trial.user_cost)
                self.judge = _plus(self.judge, trial.judge_cost)


def _plus(total: float | None, cost: float | None) -> float | None:
    return None if total is None or cost is None else total + cost


class Measured(Struct):
    """What one metric found."""

    sum: float = 0.0
    passed: int = 0
    failed: int = 0
    not_applicable: int = 0
    unmeasured: int = 0
    low: float | None = None
    high: float | None = None

    def add(self, outcome: Outcome | OutcomeFacts) -> None:
        """Add its outcome in one trial."""
        if (value := outcome.value) is None:
            if applies(outcome):
                self.unmeasured += 1
            else:
                self.not_applicable += 1
            return
        self.sum += value
        if outcome.passed:
            self.passed += 1
        else:
            self.failed += 1
        self.low = value if self.low is None or value < self.low else self.low
        self.high = value if self.high is None or value > self.high else self.high

    def summary(self, name: str) -> MetricSummary:
        """The metric's summary, as a report has it."""
        measured = self.passed + self.failed
        mean = self.sum / measured if measured else None
        apart = self.not_applicable, self.unmeasured
        return MetricSummary(name, mean, self.passed, self.failed, *apart, self.low, self.high)


class Counted(Struct):
    """Counts how trials ended, and how many of each case passed."""

    statuses: Counter[str] = field(default_factory=Counter[str])
    tallies: list[Tally] = field(default_factory=list[Tally])
    """The passed and evaluated trials of each evaluated case, in order."""

    def add(self, trials: Iterable[Facts]) -> None:
        """Add the trials of one case."""
        passed = evaluated = 0
        for trial in trials:
            self.statuses[trial.status] += 1
            if trial.status in EVALUATED:
                evaluated += 1
                passed += trial.status == "passed"
        if evaluated:
            # Most cases end in a few ways: one tuple for each of these, not for each case.
            tally = passed, evaluated
            self.tallies.append(_TALLIES.setdefault(tally, tally))

    @property
    def summary(self) -> Summary:
        """The counts."""
        return Summary.of(self.statuses.total(), self.statuses)


class Tagged(Counted):
    """The counts of the cases with one tag, and what the agent's models cost."""

    spent: Spent = field(default_factory=Spent)


class Totals(Counted):
    """Every total of a report's results."""

    cases: int = 0
    has_repeats: bool = False
    """Whether a case ran more than once."""
    seconds: float = 0.0
    replayed: int = 0
    """How many trials were answered from recordings."""
    metrics: dict[str, Measured] = field(default_factory=dict[str, Measured])
    tags: dict[str, Tagged] = field(default_factory=dict[str, Tagged])
    left_out: Counter[str] = field(default_factory=Counter[str])
    """Why trials were skipped."""
    agent: Spent = field(default_factory=Spent)
    user: Spent = field(default_factory=Spent)
    judge: Spent = field(default_factory=Spent)
    nodes: dict[str, Spent] = field(default_factory=dict[str, Spent])

    @classmethod
    def of(cls, report: Report) -> "Totals":
        """The totals of a whole report."""
        made = cls()
        for trials in cases_of(report):
            made.add_case(trials)
        return made.paid_again(report)

    def paid_again(self, report: Report) -> "Totals":
        """Add what ran again: it was paid for, and counts in nothing else."""
        for trial in report.confirmed:
            self._pay(trial)
        return self

    @property
    def paid(self) -> Paid:
        """What each role cost, and how many trials were replayed."""
        return Paid(self.agent.cost, self.user.cost, self.judge.cost, self.replayed)

    def add_case(self, trials: Sequence[Facts]) -> None:
        """Add all trials of one case."""
        self.add(trials)
        self.cases += 1
        tagged: dict[str, list[Facts]] = {}
        for trial in trials:
            self.seconds += trial.seconds
            self.has_repeats = self.has_repeats or trial.trial > 1
            self.replayed += trial.recorded_at is not None
            for name, outcome in trial.scores.items():
                found = self.metrics.get(name)
                if found is None:
                    found = self.metrics[name] = Measured()
                found.add(outcome)
            for tag in trial.tags:
                same = tagged.setdefault(str(tag), [])
                if not same or same[-1] is not trial:
                    same.append(trial)
            if trial.status == "skipped":
                self.left_out.update(trial.notes)
            self._pay(trial)
        for tag, some in tagged.items():
            self._tag(tag, some)

    def _tag(self, tag: str, trials: Sequence[Facts]) -> None:
        found = self.tags.get(tag)
        if found is None:
            found = self.tags[tag] = Tagged()
        found.add(trials)
        for trial in trials:
            if trial.ended is not None:
                found.spent.add(trial.cost, None)

    def _pay(self, trial: Facts) -> None:
        self.agent.count(trial.models)
        # Most trials ask no model for users or judges.
        if trial.user_models:
            self.user.count(trial.user_models)
        if trial.judge_models:
            self.judge.count(trial.judge_models)
        if earlier := trial.earlier_costs:
            self.agent.add_cost(earlier.get("agent", 0.0))
            self.user.add_cost(earlier.get("user", 0.0))
            self.judge.add_cost(earlier.get("judge", 0.0))
        if trial.ended is None:
            return
        self.agent.add(trial.cost, trial.usage)
        self.user.add(trial.user_cost, trial.user_usage)
        self.judge.add(trial.judge_cost, trial.judge_usage)
        nodes = trial.nodes
        if nodes is None:
            known = trial.cost or 0.0
            nodes = {"": Spending(trial.usage, trial.cost, {**trial.models}, known)}
        for node, spent in nodes.items():
            found = self.nodes.get(node)
            if found is None:
                found = self.nodes[node] = Spent()
            found.add_node(spent)


def by_case(report: Report) -> Iterator[Sequence[Facts]]:
    """The trials of each case, with only the facts that figures need.

    Going through all of them counts the report's totals on the way.
    """
    if report.has_totals:
        yield from cases_of(report)
        return
    totals = Totals()
    for trials in cases_of(report):
        totals.add_case(trials)
        yield trials
    report.keep_totals(totals.paid_again(report))


def cases_of(report: Report) -> Iterator[Sequence[Facts]]:
    """The trials of each case, without computing totals."""
    if not isinstance(report.results, ReadResults):
        yield from report.by_case().values()
        return
    for _, trials in groupby(report.results.facts(), attrgetter("case_id")):
        yield list(trials)
