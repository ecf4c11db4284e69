"""How reliable a judge's verdicts are, measured by people's grades of some of the same trials.

A judge that passes a tenth of what people would fail makes every pass rate look better than it is. How
often it errs is known only from a few graded trials, so the interval includes that uncertainty too.
"""

from collections.abc import Collection, Iterable, Mapping
from math import sqrt

from msgspec import Struct

from greenroom.errors import BadInput
from greenroom.results.comparisons.families import family
from greenroom.results.facts import Facts
from greenroom.results.labels import Item, LabelSet
from greenroom.results.report import Report
from greenroom.results.statistics.agreement import FEWEST
from greenroom.results.statistics.intervals import Interval, Tally, Z, as_sure_as, of_cases, wilson
from greenroom.results.totals import cases_of


class Calibration(Struct, frozen=True):
    """How often a judge agrees with people.

    `passed` counts the trials that people passed, `failed` those that they failed: in how many of them the
    judge said the same, and how many there are. Trials on which people are divided do not count.
    """

    passed: Tally
    failed: Tally
    divided: int = 0
    metric: str = ""

    @classmethod
    def of(
        cls, labels: LabelSet, judges: Collection[tuple[str, str]] | None = None
    ) -> "Calibration":
        """The calibration of a judge from the grades of a label set.

        `judges` are the names and digests of a run's metrics, as `greenroom.suite.run_judges` finds them.
        Grades of another judge are left out, and BadInput is raised if no others are left: they say nothing
        about this one.
        """
        items = _of_this_judge(labels, judges)
        said = _by_people(labels)
        counts = {True: [0, 0], False: [0, 0]}
        for name, item in items.items():
            if (answer := said.get(name)) is not None:
                counts[answer][0] += item.passed == answer
                counts[answer][1] += 1
        found = cls(
            (counts[True][0], counts[True][1]),
            (counts[False][0], counts[False][1]),
            sum(said[name] is None for name in items if name in said),
            labels.settings.metric,
        )
        found._check()
        return found

    def _check(self) -> None:
        graded = self.passed[1] + self.failed[1]
        if graded < FEWEST:
            raise BadInput(
                f"people agree on {graded} trials of this judge; it takes {FEWEST} to say how often it is "
                f"right. Grade more."
            )
        self._check_sides()

    def _check_sides(self) -> None:
        """Refuse counts that say nothing about one side; BadInput."""
        for tally, which, what in (
            (self.passed, "passed", "fails wrongly"),
            (self.failed, "failed", "passes wrongly"),
        ):
            if not _counted(tally)[1]:
                raise BadInput(
                    f"no trial here was {which} by people, so it is unknown how often the judge {what}. "
                    f"Draw more trials, or draw from another run."
                )

    def rate(self, report: Report) -> Interval | None:
        """The pass rate that people would give the trials of a report; None with fewer than two cases."""
        return self.corrected(judged_tallies(report, self.metric))

    def corrected(self, tallies: Iterable[Tally]) -> Interval | None:
        """The pass rate that people would give, from the judge's verdicts on each case; None with too few.

        The estimate is that of Rogan and Gladen, its 95 % interval that of Lang and Reiczigel: it includes
        the chance in the run and in the grades that the judge was measured by.
        """
        found = [_counted(tally) for tally in tallies if tally[1]]
        self._check_sides()
        if (seen := of_cases(found)) is None:
            return None
        count = as_sure_as(found)
        (right, good), (wrong, bad) = self.passed, self.failed
        skill = right / good + wrong / bad - 1
        # A few more are added on both sides, so that no share is exactly 0 or 1.
        rate = (count * seen.share + Z * Z / 2) / (count + Z * Z)
        hits, holds = (right + 1) / (good + 2), (wrong + 1) / (bad + 2)
        if min(skill, hits + holds - 1) <= 0:
            raise BadInput(
                f"this judge {self}: its verdicts say too little about theirs. Change the judge, or grade more."
            )
        share = min(max((seen.share + wrong / bad - 1) / skill, 0.0), 1.0)
        middle = (rate + holds - 1) / (hits + holds - 1)
        of_hits, of_holds = hits * (1 - hits) / (good + 2), holds * (1 - holds) / (bad + 2)
        spread = rate * (1 - rate) / (count + Z * Z)
        spread += middle**2 * of_hits + (1 - middle) ** 2 * of_holds
        middle += 2 * Z * Z * (middle * of_hits - (1 - middle) * of_holds)
        half = Z * sqrt(spread) / (hits + holds - 1)
        # Verdicts that the grades can hardly explain push the interval to an edge; that does not make it surer.
        alone = wilson(share, count)
        low, high = max(middle - half, 0.0), min(middle + half, 1.0)
        return Interval(share, min(low, alone.low), max(high, alone.high))

    def __str__(self) -> str:
        (right, good), (wrong, bad) = self.passed, self.failed
        apart = f"; they are divided on {self.divided}" if self.divided else ""
        return f"passes {right} of {good} that people pass, and {bad - wrong} of {bad} that they fail{apart}"


def _counted(tally: Tally) -> Tally:
    """The counts of trials; BadInput if they are not valid."""
    some, of = tally
    if not 0 <= some <= of:
        raise BadInput(
            f"{some!r} of {of!r} is not a number of trials. Give how many of them, and of how many."
        )
    return tally


def _of_this_judge(
    labels: LabelSet, judges: Collection[tuple[str, str]] | None
) -> Mapping[str, Item]:
    metric = labels.settings.metric
    if judges is None or not metric:
        return labels.items
    now = {digest for name, digest in judges if metric in (name, family(name))}
    if not now:
        raise BadInput(f"this run has no metric {metric!r}, which these grades are about.")
    found = {name: item for name, item in labels.items.items() if item.judge in now}
    if not found:
        raise BadInput(
            f"the judge {metric!r} has changed since these trials were drawn, in its prompt, its model or its "
            f"options: the grades say nothing about it. Draw again from this run."
        )
    return found


def _by_people(labels: LabelSet) -> dict[str, bool | None]:
    """Whether most people passed a trial; None where they are divided."""
    votes: dict[str, int] = {}
    for answers in labels.said().values():
        for item, answer in answers.items():
            votes[item] = votes.get(item, 0) + (1 if answer == "yes" else -1)
    return {item: None if not vote else vote > 0 for item, vote in votes.items()}


def judged_tallies(report: Report, metric: str) -> list[Tally]:
    """How many trials of each case a judge passed, of how many that it measured; without a metric, by the verdict on the whole trial."""
    found: list[Tally] = []
    for trials in cases_of(report):
        verdicts = [one for trial in trials if (one := _verdict(trial, metric)) is not None]
        if verdicts:
            found.append((sum(verdicts), len(verdicts)))
    return found


def _verdict(trial: Facts, metric: str) -> bool | None:
    if not metric:
        return trial.passed if trial.status in ("passed", "failed") else None
    measured = [
        bool(one.passed)
        for name, one in trial.scores.items()
        if metric in (name, family(name)) and one.value is not None
    ]
    return all(measured) if measured else None
