"""Several judges on one question, and how far they agree."""

from collections.abc import Mapping, Sequence
from math import fsum
from typing import Any, ClassVar, get_args

from greenroom.cases.case import Case
from greenroom.cases.scores import NotApplicable, Outcome, Score, Unmeasured
from greenroom.errors import BadMetric
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.plain import Json
from greenroom.metrics.builtin import BuiltIn, checked_name, written
from greenroom.metrics.judges.bench import Aggregate, together
from greenroom.metrics.judges.judged import Judged
from greenroom.metrics.judges.options import (
    JUDGE,
    checked_text,
    checked_threshold,
    takes_options_of,
)
from greenroom.metrics.judges.poll import reaches
from greenroom.metrics.judges.prompted import judge
from greenroom.metrics.needs import NOTHING, Needs
from greenroom.models.model import Model, model_name
from greenroom.world.world import World


class Jury(BuiltIn, frozen=True, kw_only=True):
    """Asks every judge; the value is their mean, or the majority's verdict."""

    needs: ClassVar[Needs] = NOTHING
    judges: tuple[Judged, ...]
    aggregate: Aggregate
    threshold: float
    quorum: int | None = None
    """How many verdicts suffice; None requires one from every judge that applies."""

    @property
    def covers(self) -> tuple[str, ...]:
        """The expectations that one of the judges measures in its own way."""
        return tuple(field for judge in self.judges for field in getattr(judge, "covers", ()))

    async def measure(self, case: Case, ledger: Ledger, world: World) -> Outcome:
        """The judges' joint conclusion; with fewer verdicts than the quorum it is unmeasured.

        A judge that does not apply to the case is not counted; if none applies, neither does the
        jury.
        """
        heard = await together(
            *(judge.measure_and_spend(case, ledger, world) for judge in self.judges)
        )
        outcomes = [outcome for outcome, _ in heard]
        found = dict(zip((judge.name for judge in self.judges), outcomes, strict=True))
        scores = [outcome for outcome in outcomes if isinstance(outcome, Score)]
        applying = sum(not isinstance(outcome, NotApplicable) for outcome in outcomes)
        quorum = applying if self.quorum is None else self.quorum
        missing = {name: o.why for name, o in found.items() if not isinstance(o, Score)}
        whys = "; ".join(f"{name}: {why}" for name, why in missing.items())
        if not applying:
            return NotApplicable(whys)
        if len(scores) < quorum:
            return Unmeasured(
                f"{len(scores)} of {len(found)} judges came to a verdict, {quorum} must: {whys}"
            )
        return self._score(scores, found, [spent for _, spent in heard])

    def _score(
        self,
        scores: Sequence[Score],
        found: Mapping[str, Outcome],
        spent: Sequence[Mapping[str, Any]],
    ) -> Score:
        passing = sum(score.passed for score in scores)
        value = fsum(score.value for score in scores) / len(scores)
        if self.aggregate == "majority":
            value = float(2 * passing > len(scores))
        return Score(
            value,
            reaches(value, self.threshold),
            threshold=self.threshold,
            name=self.name,
            reason=f"{passing} of {len(scores)} judges pass it",
            details={
                "judges": {name: _to_json(outcome) for name, outcome in found.items()},
                "agreement": max(passing, len(scores) - passing) / len(scores),
                **_total(spent),
            },
            measured=passing,
        )


@takes_options_of(judge)
def jury(
    judges: Sequence[Judged | Model | str],
    *,
    name: str = "jury",
    prompt: str | None = None,
    aggregate: Aggregate = "mean",
    threshold: float | None = None,
    quorum: int | None = None,
    **options: object,
) -> Jury:
    """Several judges as one: a list of judges, or of models that all answer `prompt`.

    `options` are those of `judge(...)`, for the models. All judges that apply to a case must reach
    a verdict, unless `quorum` says how many suffice.
    """
    where = f"jury(name={name!r}, ...)"
    if not isinstance(judges, list | tuple) or len(judges) < 2:
        raise BadMetric(f"{where} has {judges!r}; give a list of at least two judges or models.")
    if aggregate not in get_args(Aggregate):
        raise BadMetric(f"{where} has aggregate={aggregate!r}; give 'mean' or 'majority'.")
    members = _judges(judges, checked_name(name, "jury"), prompt, options, where)
    if quorum is not None and (type(quorum) is not int or not 1 <= quorum <= len(members)):
        raise BadMetric(f"{where} has quorum={quorum!r}; give a number from 1 to {len(members)}.")
    shown = written("jury", [judge.name for judge in members], name=name, prompt=prompt)["shown"]
    return Jury(
        judges=members,
        aggregate=aggregate,
        threshold=checked_threshold(threshold, JUDGE, where),
        quorum=quorum,
        name=name,
        shown=shown,
    )


def _judges(
    given: Sequence[Judged | Model | str],
    name: str,
    prompt: str | None,
    options: dict[str, Any],
    where: str,
) -> tuple[Judged, ...]:
    """The judges given, and one made for each model."""
    found: dict[str, Judged] = {}
    for number, one in enumerate(given, 1):
        member = one
        if not isinstance(member, Judged):
            asked = checked_text(prompt, "prompt", where)
            # The name distinguishes their calls in ledgers and caches.
            own = f"{name}:{member if isinstance(member, str) else model_name(member)}"
            own = f"{own}:{number}" if own in found else own
            member = judge(own, asked, model=member, **options)
        if member.name in found:
            raise BadMetric(f"{where} has two judges named {member.name!r}; rename one.")
        found[member.name] = member
    return tuple(found.values())


def _to_json(outcome: Outcome) -> dict[str, Json]:
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


def _total(spent: Sequence[Mapping[str, Any]]) -> dict[str, Json]:
    """What all judges took, also those without a verdict; None if one did not say."""
    details = [one for one in spent if one["attempts"]]
    usages = [one["usage"] for one in details]
    costs = [one["cost"] for one in details]
    return {
        "attempts": sum(one["attempts"] for one in details),
        "cached": sum(one["cached"] for one in details),
        "model": ", ".join(dict.fromkeys(one["model"] for one in details)),
        "usage": None
        if None in usages
        else {key: sum(used[key] for used in usages) for key in ("input", "output")},
        "cost": None if None in costs else fsum(costs),
    }
