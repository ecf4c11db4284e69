"""The cases of a run as the rows of a list: one for each case, with a short entry for each trial."""

from collections.abc import Mapping, Sequence

from greenroom.reports.page.shapes import WORST, CaseStatus, Row, Trial
from greenroom.results.comparisons.families import family
from greenroom.results.facts import Facts, is_fine
from greenroom.results.text import reasons
from greenroom.results.trials import status_of
from greenroom.results.words import shortened

_LONGEST_WHY = 240
_BROKEN = "error"
_STATUSES: Mapping[str, CaseStatus] = {status: status for status in WORST}
_RANK: Mapping[str, int] = {status: rank for rank, status in enumerate(WORST)}


def case_row(results: Sequence[Facts], place: int = 0, *, change: str = "") -> Row:
    """One case with all its trials."""
    first, status = results[0], _STATUSES[status_of(results)]
    trials = tuple([trial_entry(result) for result in results])
    whole = trials[0] if len(trials) == 1 else _together(trials)
    name = shortened(first.name, _LONGEST_WHY)
    tags: dict[str, None] = {}
    missed: dict[str, None] = {}
    for result in results:
        for tag in result.tags:
            tags[str(tag)] = None
        for metric, outcome in result.scores.items():
            if not is_fine(outcome):
                missed[family(metric)] = None
    return Row(
        id=first.case_id,
        status=status,
        trials=trials,
        place=place,
        name="" if name == first.case_id else name,
        tags=tuple(tags),
        missed=tuple(missed),
        change=change,
        score=None if status == _BROKEN else whole.score,
        s=whole.s,
        cost=whole.cost,
        why=whole.why,
    )


def _together(trials: Sequence[Trial]) -> Trial:
    """All trials of a case as one entry; its reason is that of the first trial that ended worst."""
    worst = min(trials, key=lambda trial: _RANK[trial.status])
    return Trial(
        n=worst.n,
        status=worst.status,
        score=_mean([trial.score for trial in trials if trial.score is not None]),
        s=_total([trial.s for trial in trials]),
        cost=_total([trial.cost for trial in trials]),
        why=worst.why,
    )


def trial_entry(result: Facts) -> Trial:
    """One trial as its row shows it."""
    status, ran = result.status, result.ended is not None
    why = "" if status == "passed" else " ".join("; ".join(reasons(result)).split())
    known = [value for one in result.scores.values() if (value := one.value) is not None]
    return Trial(
        n=result.trial,
        status=status,
        score=None if status == _BROKEN else _mean(known),
        s=round(result.seconds, 4) if ran else None,
        cost=result.spent if ran else None,
        turns=result.turns if ran else None,
        why=shortened(why, _LONGEST_WHY),
    )


def _mean(known: list[float]) -> float | None:
    """The mean of the known scores."""
    return round(sum(known) / len(known), 4) if known else None


def _total(numbers: list[float | None]) -> float | None:
    """The sum, or None if a part of it is unknown."""
    known = [number for number in numbers if number is not None]
    return sum(known) if len(known) == len(numbers) else None
