"""Whether an adaptive run reached its minimum, computed from its results alone.

Every case runs once; after that another round is due as long as it is unclear whether the set's pass rate
reaches the bar. The run asks here what is due, and every quality gate asks here what came of it.
"""

from collections.abc import Callable, Iterable, Sequence
from math import fsum
from typing import Literal

from msgspec import Struct

from greenroom.errors import BadInput
from greenroom.results.facts import Facts
from greenroom.results.report import MAX_TRIALS, Report
from greenroom.results.statistics.exact import ALPHA
from greenroom.results.statistics.intervals import Interval, percent
from greenroom.results.statistics.sequential import Sequential, show_together
from greenroom.results.totals import cases_of
from greenroom.results.words import number_of

PATIENCE = 3
"""After this many broken trials in a row, a case is left out of the verdict."""

_NAMED = 10

Verdict = Literal["passes", "misses", "unclear"]


class Conclusion(Struct, frozen=True, kw_only=True):
    """The verdict of an adaptive run, and how many trials it needed. `str(conclusion)` is a note for the report."""

    verdict: Verdict
    bar: float
    interval: Interval | None
    rounds: int
    played: int
    most: int
    """How many trials there would have been if every case had run `max_trials` times."""
    left_out: Sequence[str] = ()
    """Cases that could not be measured; the verdict is that of the others."""

    @property
    def saved(self) -> int:
        """How many trials were not needed. Where nothing was decided, none were saved."""
        return 0 if self.verdict == "unclear" else self.most - self.played

    def __str__(self) -> str:
        rounds = number_of(self.rounds, "round")
        saved = f", {self.saved} saved ({percent(self.saved / self.most, 0)})" if self.saved else ""
        more = len(self.left_out) - _NAMED
        names = ", ".join(self.left_out[:_NAMED]) + (f" and {more} more" if more > 0 else "")
        without = f"; without {names}, which kept breaking" if names else ""
        counts = f"{rounds}, {self.played} of {self.most} trials run{saved}"
        return f"{self._verdict_text}: {counts}{without}"

    @property
    def _verdict_text(self) -> str:
        bar = percent(self.bar, _digits(self.bar))
        if self.interval is None:
            return f"no round was finished, so a minimum of {bar} is open"
        rate = f"the pass rate of these cases is {self.interval}"
        match self.verdict:
            case "passes":
                return f"{rate}, which reaches the minimum of {bar}"
            case "misses":
                return f"{rate}, which misses the minimum of {bar}"
            case "unclear":
                why = ", as any number of trials would" if self.bar == 1 else ""
                return f"{rate}, which leaves open whether it reaches the minimum of {bar}{why}"


def _digits(bar: float) -> int:
    """How many digits a minimum is shown with."""
    return 0 if round(100.0 * bar, 9).is_integer() else 1


def open_minimum(report: Report, bar: float) -> str:
    """Why the trials of an adaptive report do not show that the pass rate reaches `bar`; empty if they do.

    A report of several runs is judged as a whole, although each of them stopped at a round of its own. Cases
    that were in no adaptive run count with the pass rate that they had.
    """
    known = {(trial.case_id, trial.trial): trial for trials in cases_of(report) for trial in trials}
    ids = list(dict.fromkeys(case_id for case_id, _ in known))
    if not report.parts or [set(part) for part in report.parts] == [set(ids)]:
        whole = _replayed(ids, bar, known.get).conclusion
        if whole.verdict == "passes":
            return ""
        if whole.verdict == "misses":
            return str(whole)
        return f"adaptive trials did not show that the minimum is reached: {whole}"
    runs = [_replayed(part, bar, known.get) for part in report.parts]
    needed = _needed(report, bar)
    is_each_shown = needed <= bar and all(run.conclusion.verdict == "passes" for run in runs)
    if is_each_shown or show_together([run.test for run in runs if not run.is_left_out], needed):
        return ""
    rate = "unknown" if report.pass_rate is None else percent(report.pass_rate)
    return (
        f"adaptive trials did not show that the minimum is reached: the pass rate of all "
        f"{number_of(len(ids), 'case')} together is {rate}, which leaves open whether it reaches the minimum "
        f"of {percent(bar, _digits(bar))}"
    )


def _needed(report: Report, bar: float) -> float:
    """What the adaptive runs have to reach for the whole to reach `bar`, with the others as they are."""
    adaptive = {case_id for part in report.parts for case_id in part}
    rates = [
        (name, rate) for name, one in report.per_case.items() if (rate := one.pass_rate) is not None
    ]
    fixed = [rate for name, rate in rates if name not in adaptive]
    return bar + (bar * len(fixed) - fsum(fixed)) / max(1, len(rates) - len(fixed))


def conclusion(case_ids: Sequence[str], bar: float, results: Iterable[Facts]) -> Conclusion:
    """The verdict and the number of trials of an adaptive run, computed from its results alone."""
    return _replayed(
        case_ids, bar, {(one.case_id, one.trial): one for one in results}.get
    ).conclusion


def _replayed(
    case_ids: Sequence[str], bar: float, find: Callable[[tuple[str, int]], Facts | None]
) -> "Rounds":
    rounds = Rounds(case_ids, bar)
    while due := rounds.due():
        found = [find(trial) for trial in due]
        for result in found:
            if result is not None:
                rounds.add(result)
        if None in found:
            break  # the run ended before this round
    return rounds


class Rounds:
    """Which trials are due, round by round, until it is decided whether these cases reach `bar`.

    Ask `due()`, run all of it, pass every result to `add()`, and ask again until nothing is due. The order in
    which trials end does not matter, so a resumed run asks for the same trials again.
    A case runs at most `max_trials` times.
    """

    def __init__(
        self, case_ids: Sequence[str], bar: float, *, max_trials: int = MAX_TRIALS
    ) -> None:
        if max_trials < 1:
            raise BadInput(f"max_trials={max_trials!r} is not a number of trials; give 1 or more.")
        self.max_trials = max_trials
        self.test = Sequential(bar, case_ids, ALPHA)
        self._runs = dict.fromkeys(case_ids, 0)
        self._broke = dict.fromkeys(case_ids, 0)
        """How many of its latest trials in a row broke, of each case."""
        self._left_out: list[str] = []
        self._cut = False

    def due(self) -> list[tuple[str, int]]:
        """The cases to run next, each with the number of its trial; none when the run is over."""
        wanted = [] if self._cut else self.test.wanted()
        # A round that one of its cases cannot finish would decide nothing.
        if any(self._runs[case_id] >= self.max_trials for case_id in wanted):
            return []
        return [(case_id, self._runs[case_id] + 1) for case_id in wanted]

    def add(self, result: Facts) -> None:
        """Learn how a trial that was due has ended.

        One that broke is not an observation: its case is due again, unless it broke `PATIENCE` times in a
        row; then the verdict is about the others. One that did not run at all ends the run.
        """
        case_id = result.case_id
        if result.status == "skipped" and result.error is None:
            self._cut = True
            return
        self._runs[case_id] += 1
        if result.status in ("error", "skipped"):
            self._broke[case_id] += 1
            if self._broke[case_id] == min(PATIENCE, self.max_trials):
                self._left_out.append(case_id)
                self.test.leave_out(case_id)
        else:
            self._broke[case_id] = 0
            self.test.add(case_id, result.status == "passed")

    @property
    def is_left_out(self) -> bool:
        """Whether none of the cases could be measured."""
        return len(self._left_out) == len(self._runs)

    @property
    def conclusion(self) -> Conclusion:
        """The verdict and the number of trials so far."""
        verdict = self.test.verdict
        return Conclusion(
            verdict="unclear" if verdict == "open" else verdict,
            bar=self.test.bar,
            interval=self.test.interval,
            rounds=self.test.rounds,
            played=sum(self._runs.values()),
            most=self.max_trials * len(self._runs),
            left_out=tuple(self._left_out),
        )
