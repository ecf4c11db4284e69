"""The cases of a run as the rows of a list: one for each case, with a short entry for each trial."""

from collections import Counter
from collections.abc import Iterable, Sequence

from greenroom.reports.page.shapes import WORST, CaseStatus, Row, Trial
from greenroom.reports.words import shortened
from greenroom.results.families import family
from greenroom.results.result import CaseResult
from greenroom.results.text import reasons
from greenroom.results.trials import is_fine, status_of

_LONGEST_WHY = 240
_BROKEN = "error"


def case_row(
    results: Sequence[CaseResult],
    place: int = 0,
    *,
    change: str = "",
    packs: Sequence[tuple[int, int] | None] = (),
) -> Row:
    """One case with all its trials; `packs` says where a file has the story of each."""
    first, status = results[0], case_status(results)
    trials = [trial_entry(result) for result in results]
    for trial, pack in zip(trials, packs, strict=False):
        trial.pack = pack
    name = shortened(first.name, _LONGEST_WHY)
    scores = [trial.score for trial in trials if trial.score is not None]
    broke = status == _BROKEN
    return Row(
        id=first.case_id,
        status=status,
        trials=trials,
        place=place,
        name="" if name == first.case_id else name,
        tags=list(dict.fromkeys(str(tag) for result in results for tag in result.tags)),
        missed=list(dict.fromkeys(name for result in results for name in _missed(result))),
        change=change,
        score=None if broke or not scores else round(sum(scores) / len(scores), 4),
        s=_total([trial.s for trial in trials]),
        cost=_total([trial.cost for trial in trials]),
        why=_worst(trials).why,
    )


def case_status(results: Sequence[CaseResult]) -> CaseStatus:
    """How a case ended: as its trials did, or `flaky`."""
    found = status_of(results)
    return next(status for status in WORST if status == found)


def trial_entry(result: CaseResult) -> Trial:
    """One trial as its row shows it."""
    values = [score.value for score in result.measured.values()]
    ran = result.ended is not None
    measured = bool(values) and result.status != _BROKEN
    why = "; ".join(reasons(result))
    return Trial(
        n=result.trial,
        status=result.status,
        score=round(sum(values) / len(values), 4) if measured else None,
        s=round(result.seconds, 4) if ran else None,
        cost=result.spent if ran else None,
        turns=result.turns if ran else None,
        why=shortened(" ".join(why.split()), _LONGEST_WHY),
    )


def status_counts(rows: Iterable[Row]) -> dict[CaseStatus, int]:
    """How many cases ended how; those that none did are left out."""
    counts = Counter(row.status for row in rows)
    return {status: counts[status] for status in reversed(WORST) if counts[status]}


def _missed(result: CaseResult) -> list[str]:
    return [family(name) for name, outcome in result.scores.items() if not is_fine(outcome)]


def _worst(trials: Sequence[Trial]) -> Trial:
    """The first of those that ended worst, which is the first to look at."""
    return min(trials, key=lambda trial: WORST.index(_known(trial.status)))


def _known(status: str) -> CaseStatus:
    return next(one for one in WORST if one == status)


def _total(numbers: Sequence[float | None]) -> float | None:
    """All of it, or nothing if some of it is unknown."""
    known = [number for number in numbers if number is not None]
    return sum(known) if len(known) == len(numbers) else None
