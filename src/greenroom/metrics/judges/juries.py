"""Several judges on one question, and how far they agree."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, cast

from greenroom.cases.case import Case
from greenroom.cases.scores import NotApplicable, Outcome, Score, Unmeasured
from greenroom.errors import BadMetric
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.plain import Json
from greenroom.ledger.records import record
from greenroom.metrics.builtin import BuiltIn, checked_name, written
from greenroom.metrics.judges.bench import together
from greenroom.metrics.judges.judged import Judged
from greenroom.metrics.judges.options import (
    JUDGE,
    checked_text,
    checked_threshold,
    takes_options_of,
)
from greenroom.metrics.judges.poll import reaches
from greenroom.metrics.judges.prompted import judge
from greenroom.models.model import model_name
from greenroom.world.world import World

Aggregate = Literal["mean", "majority"]


@record(kw_only=True, repr=False)
class Jury(BuiltIn):
    """Asks every judge; the value is their mean, or what most of them say."""

    judges: tuple[Judged, ...]
    aggregate: Aggregate
    threshold: float
    quorum: int | None = None
    """How many verdicts suffice; None asks for one of every judge that applies."""

    @property
    def covers(self) -> tuple[str, ...]:
        """The expectations that one of the judges looks at in its own way."""
        return tuple(field for seat in self.judges for field in getattr(seat, "covers", ()))

    async def measure(self, case: Case, ledger: Ledger, world: World) -> Outcome:
        """What the judges conclude together; with fewer than the quorum it is unmeasured.

        A judge that does not apply to the case sits out; if none does, neither does the jury.
        """
        outcomes = await together(*(seat.measure(case, ledger, world) for seat in self.judges))
        found = dict(zip((seat.name for seat in self.judges), outcomes, strict=True))
        scores = [outcome for outcome in outcomes if isinstance(outcome, Score)]
        sitting = sum(not isinstance(outcome, NotApplicable) for outcome in outcomes)
        if not sitting:
            return NotApplicable(_whys(found))
        quorum = sitting if self.quorum is None else self.quorum
        if len(scores) < quorum:
            return Unmeasured(_missing(found, quorum))
        return self._score(scores, found)

    def _score(self, scores: Sequence[Score], found: Mapping[str, Outcome]) -> Score:
        passing = sum(score.passed for score in scores)
        value = sum(score.value for score in scores) / len(scores)
        if self.aggregate == "majority":
            value = float(2 * passing > len(scores))
        return Score(
            value,
            reaches(value, self.threshold),
            threshold=self.threshold,
            name=self.name,
            reason=f"{passing} of {len(scores)} judges pass it",
            details={
                "judges": {name: _told(outcome) for name, outcome in found.items()},
                "agreement": max(passing, len(scores) - passing) / len(scores),
                **_spent(scores),
            },
            measured=passing,
        )


@takes_options_of(judge)
def jury(
    judges: Sequence[Any],
    *,
    name: str = "jury",
    prompt: str | None = None,
    aggregate: Aggregate = "mean",
    threshold: float | None = None,
    quorum: int | None = None,
    **options: Any,
) -> Jury:
    """Several judges as one: judges as they are, or models that all answer `prompt`.

    `options` are those of `judge(...)` for the models. All judges that apply to a case must come to
    a verdict, unless `quorum` says how many suffice.
    """
    where = f"jury(name={name!r}, ...)"
    if not isinstance(judges, list | tuple) or len(cast("list[Any]", judges)) < 2:
        raise BadMetric(f"{where} has {judges!r}; give a list of at least two judges or models.")
    if aggregate not in ("mean", "majority"):
        raise BadMetric(f"{where} has aggregate={aggregate!r}; give 'mean' or 'majority'.")
    seats = _seats(cast("list[Any]", judges), checked_name(name, "jury"), prompt, options, where)
    if quorum is not None and (type(quorum) is not int or not 1 <= quorum <= len(seats)):
        raise BadMetric(f"{where} has quorum={quorum!r}; give a number from 1 to {len(seats)}.")
    shown = written("jury", [seat.name for seat in seats], name=name, prompt=prompt)["shown"]
    return Jury(
        judges=seats,
        aggregate=aggregate,
        threshold=checked_threshold(threshold, JUDGE, where),
        quorum=quorum,
        name=name,
        shown=shown,
    )


def _seats(
    given: list[Any], name: str, prompt: str | None, options: dict[str, Any], where: str
) -> tuple[Judged, ...]:
    seats: list[Judged] = []
    taken: set[str] = set()
    for number, one in enumerate(given, 1):
        if isinstance(one, Judged):
            seat = one
        else:
            asked = checked_text(prompt, "prompt", where)
            model = one if isinstance(one, str) else model_name(one)
            # The name tells their calls apart, in ledgers and in caches.
            own = (
                f"{name}:{model}" if f"{name}:{model}" not in taken else f"{name}:{model}:{number}"
            )
            seat = judge(own, asked, model=one, **options)
        if seat.name in taken:
            raise BadMetric(f"{where} has two judges named {seat.name!r}; rename one.")
        taken.add(seat.name)
        seats.append(seat)
    return tuple(seats)


def _missing(found: Mapping[str, Outcome], quorum: int) -> str:
    given = sum(isinstance(outcome, Score) for outcome in found.values())
    return f"{given} of {len(found)} judges came to a verdict, {quorum} must: {_whys(found)}"


def _whys(found: Mapping[str, Outcome]) -> str:
    """Why each judge without a verdict has none."""
    silent = {name: o.why for name, o in found.items() if not isinstance(o, Score)}
    return "; ".join(f"{name}: {why}" for name, why in silent.items())


def _told(outcome: Outcome) -> dict[str, Json]:
    if isinstance(outcome, NotApplicable):
        return {"not_applicable": outcome.why}
    if isinstance(outcome, Unmeasured):
        return {"unmeasured": outcome.why}
    return {
        "value": outcome.value,
        "passed": outcome.passed,
        "reason": outcome.reason,
        "details": outcome.details,
    }


def _spent(scores: Sequence[Score]) -> dict[str, Json]:
    """What all judges took together; None where one did not say."""
    details = [cast("dict[str, Any]", score.details) for score in scores]
    usages = [one["usage"] for one in details]
    costs = [one["cost"] for one in details]
    return {
        "attempts": sum(one["attempts"] for one in details),
        "cached": sum(one["cached"] for one in details),
        "model": ", ".join(dict.fromkeys(one["model"] for one in details)),
        "usage": None
        if None in usages
        else {key: sum(used[key] for used in usages) for key in ("input", "output")},
        "cost": None if None in costs else sum(costs, 0.0),
    }
