"""What all judges share: a bench, a threshold, and how votes become a score."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import fsum
from typing import ClassVar, TypedDict

from msgspec import Struct, structs

from greenroom.cases.case import Case, Expect, Turn
from greenroom.cases.scores import NotApplicable, Outcome, Score, Unmeasured
from greenroom.ledger import questions
from greenroom.ledger.events import StateChanged
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.messages import is_blank
from greenroom.ledger.plain import Json, is_object
from greenroom.metrics.builtin import BuiltIn, checked_name, written
from greenroom.metrics.facts import Missing, seen_calls
from greenroom.metrics.judges.bench import Bench, Hearing, NoVerdict, together
from greenroom.metrics.judges.evidence import Fields, gathered
from greenroom.metrics.judges.options import checked_threshold
from greenroom.metrics.judges.poll import Item, Votes, deciding, reaches
from greenroom.metrics.needs import NOTHING, WORDS, Needs, lacking
from greenroom.metrics.turns import turn_spans
from greenroom.models.model import model_name
from greenroom.world.world import World

Span = tuple[int, int]


class JudgedTurn(Struct, frozen=True):
    """One turn as if it were a whole trial: what it expects, and what happened in it."""

    number: int
    case: Case
    ledger: Ledger
    reached: bool


def judged_turns(case: Case, ledger: Ledger) -> list[JudgedTurn]:
    """Every scripted turn, and every other that the user began, whether it expects anything or not."""
    spans = turn_spans(case, ledger)
    count = max(len(case.script), *(index + 1 for index in spans), 0)
    found: list[JudgedTurn] = []
    for index in range(count):
        turn = case.script[index] if index < len(case.script) else Turn("")
        turn = replace(turn, expect=turn.expect or Expect())
        alone = replace(case, says="", attachments=(), expect=None, turns=[turn], user=None)
        events = _events(ledger, spans, index) if index in spans else Ledger()
        found.append(JudgedTurn(index + 1, alone, events, index in spans))
    return found


def _events(ledger: Ledger, spans: Mapping[int, Span], index: int) -> Ledger:
    """The events of a turn, preceded by the start of the trial and earlier state changes."""
    first = min(begin for begin, _ in spans.values())
    begin, end = spans[index]
    part = Ledger()
    for event in ledger[:end]:
        if event.seq < first or event.seq >= begin or isinstance(event, StateChanged):
            part.append(structs.replace(event, seq=-1), event.at)
    return part


class Judged(BuiltIn, frozen=True, kw_only=True):
    """A metric that asks a model; without a usable answer it is unmeasured, never a number."""

    needs: ClassVar[Needs] = NOTHING
    """Nothing: evidence that was not observed is left out or marked; required evidence makes it unmeasured."""
    bench: Bench
    threshold: float

    async def measure(self, case: Case, ledger: Ledger, world: World) -> Outcome:
        """The model's conclusion about this trial."""
        return (await self.measure_and_spend(case, ledger, world))[0]

    async def measure_and_spend(
        self, case: Case, ledger: Ledger, world: World
    ) -> tuple[Outcome, dict[str, Json]]:
        """The model's conclusion, and what asking took, whether it came to one or not."""
        hearing = self.bench.open(world, self.name, questions.attachments(ledger))
        if nothing := nothing_done(ledger):
            return nothing, hearing.spent()
        hear = self.hear_turns if self.bench.every_turn else self.hear
        try:
            outcome = await hear(case, ledger, hearing)
        except NoVerdict as none:
            outcome = Unmeasured(str(none))
        return outcome, hearing.spent()

    async def hear(self, case: Case, ledger: Ledger, hearing: Hearing) -> Outcome:
        """Ask the questions, and conclude from the answers."""
        raise NotImplementedError

    async def hear_turns(self, case: Case, ledger: Ledger, hearing: Hearing) -> Outcome:
        """Judge each turn as if it were the whole trial; the value is the mean of the turns."""
        turns = judged_turns(case, ledger)
        heard = [turn for turn in turns if turn.reached]
        if not heard:
            return Unmeasured("the user never spoke, so there is no turn to judge")
        found = await together(*(self.hear(turn.case, turn.ledger, hearing) for turn in heard))
        for turn, outcome in zip(heard, found, strict=True):
            if isinstance(outcome, Unmeasured):
                return Unmeasured(f"turn {turn.number}: {outcome.why}", phase=outcome.phase)
        outcomes = dict(zip((turn.number for turn in heard), found, strict=True))
        return over_turns(self, turns, outcomes, hearing)

    def weight(self, case: Case) -> float:
        """How much a turn counts among the others."""
        return 1.0

    def seen(self, names: Sequence[str], case: Case, ledger: Ledger) -> Fields | Missing:
        """What the judge sees; a single turn without a response is shown with an empty one."""
        if not self.bench.every_turn or "response" not in names:
            return gathered(names, case, ledger)
        if (lacks := lacking(ledger, WORDS)) is not None:
            return lacks
        found = gathered([f"{n}?" if n == "response" else n for n in names], case, ledger)
        return {"response": "", **found} if isinstance(found, dict) else found


def nothing_done(ledger: Ledger) -> Unmeasured | None:
    """Why there is nothing to judge; None if the agent said or did something."""
    said = (m for m in questions.messages(ledger) if m.role == "assistant")
    if any(not is_blank(message.text) or message.attachments for message in said):
        return None
    calls = seen_calls(ledger)
    if isinstance(calls, Unmeasured):
        return Unmeasured(f"the agent never spoke, and {calls.why}: nothing to judge")
    if calls:
        return None
    return Unmeasured("the agent neither spoke nor called a tool: nothing to judge")


class Common(TypedDict):
    """The fields that every criterion has."""

    bench: Bench
    threshold: float
    name: str
    shown: str


def common(
    factory: str, name: str | None, bench: Bench, threshold: float | None, default: float
) -> Common:
    """The fields of a criterion: its name is that of its factory unless another is given."""
    options = {"model": model_name(bench.model), **unusual(bench), "threshold": threshold}
    return {
        "bench": bench,
        "threshold": checked_threshold(threshold, default, f"{factory}(...)"),
        "name": factory if name is None else checked_name(name, factory),
        "shown": written(factory, name=name, **options)["shown"],
    }


def unusual(bench: Bench) -> dict[str, object]:
    """The options of a bench that are not the defaults, for the repr of its metric."""
    return {
        "samples": bench.samples if bench.samples > 1 else None,
        "aggregate": bench.aggregate if bench.aggregate != "mean" else None,
        "early_stop": bench.early_stop or None,
        "counts": "adk" if bench.every_turn else None,
        "batch": bench.batch or None,
    }


def concluded(
    metric: Judged,
    votes: Votes,
    hearing: Hearing,
    value: float,
    *,
    reason: str,
    details: Mapping[str, Json],
    measured: Json,
    passed: bool | None = None,
    evidence: Sequence[str] = (),
) -> Score:
    """The score of a metric that votes; it passes at its threshold unless `passed` is given."""
    if passed is None:
        passed = reaches(value, metric.threshold)
    return Score(
        votes.concluded(value, passed),
        passed,
        threshold=metric.threshold,
        name=metric.name,
        reason=reason,
        evidence=evidence,
        details={**details, **votes.details(), **hearing.spent()},
        measured=measured,
    )


def verdict_score(metric: Judged, item: Item, votes: Votes, hearing: Hearing) -> Score:
    """The score of a metric that votes on one thing."""
    value, verdicts = votes.values()[item.id], votes.by_item[item.id]
    reasoning = deciding(verdicts, item.bar, reaches(value, metric.threshold))
    alone, yes = votes.samples == 1, votes.yes(item)
    return concluded(
        metric,
        votes,
        hearing,
        value,
        reason=reasoning if alone else f"{yes} of {votes.cast} votes pass: {reasoning}",
        details={
            "reasoning": reasoning,
            "given" if votes.early_stop else "votes": [v.given for v in verdicts],
            "reasonings": [v.reasoning for v in verdicts],
        },
        measured=verdicts[0].given if alone else yes,
    )


def item_details(
    items: Sequence[Item], votes: Votes, extra: Mapping[str, Mapping[str, Json]] | None = None
) -> dict[str, Json]:
    """Each item's value, votes and reasoning, by its id."""
    values, found = votes.values(), dict[str, Json]()
    for item in items:
        value, verdicts = values[item.id], votes.by_item[item.id]
        passed = reaches(value, item.bar)
        found[item.id] = {
            "value": value,
            "passed": passed,
            "reasoning": deciding(verdicts, item.bar, passed),
            "votes": [v.given for v in verdicts],
            "agreement": votes.agreement_on(item),
            **(extra or {}).get(item.id, {}),
        }
    return found


def over_turns(
    metric: Judged,
    turns: Sequence[JudgedTurn],
    outcomes: Mapping[int, Outcome],
    hearing: Hearing,
) -> Outcome:
    """The score of turns that were judged one by one; those never reached count as 0."""
    spent = hearing.spent()
    weights: list[float] = []
    values: list[float] = []
    parts: list[Json] = []
    missed: list[str] = []
    for turn in turns:
        outcome = outcomes.get(turn.number)
        if isinstance(outcome, NotApplicable):
            continue
        score = outcome if isinstance(outcome, Score) else None
        value = 0.0 if score is None else score.value
        values.append(value)
        weights.append(metric.weight(turn.case))
        if not reaches(value, metric.threshold):
            missed.append(f"turn {turn.number}: {score.reason if score else 'never reached'}")
        details = score.details if score and is_object(score.details) else {}
        own = {key: held for key, held in details.items() if key not in spent}
        parts.append({"turn": turn.number, "reached": turn.reached, "value": value, **own})
    if not values:
        return next(o for o in outcomes.values() if isinstance(o, NotApplicable))
    whole = fsum(w * v for w, v in zip(weights, values, strict=True)) / fsum(weights)
    return Score(
        whole,
        reaches(whole, metric.threshold),
        threshold=metric.threshold,
        name=metric.name,
        reason=". ".join(missed) or "every turn is as it should be",
        details={"turns": parts, "counts": "adk", **spent},
        measured=len(values) - len(missed),
    )
