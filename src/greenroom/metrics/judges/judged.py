"""What every judging metric shares: a bench, a threshold, and how votes become a score."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import fsum
from typing import Any

from greenroom.cases.case import Case, Expect, Turn
from greenroom.cases.scores import NotApplicable, Outcome, Score, Unmeasured
from greenroom.ledger import questions
from greenroom.ledger.events import StateChanged
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.plain import Json, is_object
from greenroom.ledger.records import record
from greenroom.metrics.builtin import BuiltIn, checked_name, written
from greenroom.metrics.facts import Missing, seen_calls
from greenroom.metrics.judges.bench import Bench, Hearing, NoVerdict, together
from greenroom.metrics.judges.evidence import Fields, gathered
from greenroom.metrics.judges.poll import Item, Votes, deciding, reaches
from greenroom.metrics.turns import turn_spans
from greenroom.models.model import model_name
from greenroom.world.world import World

Span = tuple[int, int]


@record
class JudgedTurn:
    """One turn as if it were a whole run: what it expects, and what happened in it."""

    number: int
    case: Case
    ledger: Ledger
    reached: bool


def judged_turns(case: Case, ledger: Ledger) -> list[JudgedTurn]:
    """Every turn of the script and every other that the user began, whatever it expects."""
    spans = turn_spans(case, ledger)
    count = max(len(case.script), *(index + 1 for index in spans), 0)
    return [_turn(case, ledger, spans, index) for index in range(count)]


def _turn(case: Case, ledger: Ledger, spans: Mapping[int, Span], index: int) -> JudgedTurn:
    script = case.script
    turn = script[index] if index < len(script) else Turn("")
    alone = replace(turn, expect=turn.expect or Expect())
    single = replace(case, says="", expect=None, turns=[alone], user=None)
    reached = index in spans
    events = _events(ledger, spans, index) if reached else Ledger()
    return JudgedTurn(index + 1, single, events, reached)


def _events(ledger: Ledger, spans: Mapping[int, Span], index: int) -> Ledger:
    """What happened in a turn, after how the run began and what earlier turns made of the state."""
    first = min(begin for begin, _ in spans.values())
    begin, end = spans[index]
    part = Ledger()
    for event in ledger[:end]:
        if event.seq < first or event.seq >= begin or isinstance(event, StateChanged):
            part.append(replace(event, seq=-1), event.at)
    return part


@record(kw_only=True, repr=False)
class Judged(BuiltIn):
    """A metric that asks a model; without a usable answer it is unmeasured, never a number."""

    bench: Bench
    threshold: float

    async def measure(self, case: Case, ledger: Ledger, world: World) -> Outcome:
        """What the model concludes of this run."""
        if nothing := nothing_done(ledger):
            return nothing
        try:
            hearing = self.bench.open(world, self.name)
            if self.bench.every_turn:
                return await self.hear_turns(case, ledger, hearing)
            return await self.hear(case, ledger, hearing)
        except NoVerdict as none:
            return Unmeasured(str(none))

    async def hear(self, case: Case, ledger: Ledger, hearing: Hearing) -> Outcome:
        """Put the questions, and draw the conclusion."""
        raise NotImplementedError

    async def hear_turns(self, case: Case, ledger: Ledger, hearing: Hearing) -> Outcome:
        """Judge each turn as if it were the whole run; the value is the mean of the turns."""
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

    def weight(self, case: Case) -> float:  # noqa: ARG002
        """How much a turn counts among the others."""
        return 1.0

    def seen(self, names: Sequence[str], case: Case, ledger: Ledger) -> Fields | Missing:
        """What the judge gets to see; of a single turn also that nothing was said in it."""
        if not self.bench.every_turn or "response" not in names:
            return gathered(names, case, ledger)
        found = gathered([f"{n}?" if n == "response" else n for n in names], case, ledger)
        return {"response": "", **found} if isinstance(found, dict) else found


def nothing_done(ledger: Ledger) -> Unmeasured | None:
    """Why there is nothing to judge; None if the agent said or did anything that shows."""
    if any(text.strip() for text in questions.responses(ledger)):
        return None
    calls = seen_calls(ledger)
    if isinstance(calls, Unmeasured):
        return Unmeasured(f"the agent never spoke, and {calls.why}: nothing to judge")
    if calls:
        return None
    return Unmeasured("the agent neither spoke nor called a tool: nothing to judge")


def titled(factory: str, name: str | None, bench: Bench, **options: Any) -> dict[str, str]:
    """The name of a criterion (its own unless another is given), and how it was written."""
    shown = written(factory, name=name, model=model_name(bench.model), **told(bench), **options)
    return {
        "name": factory if name is None else checked_name(name, factory),
        "shown": shown["shown"],
    }


def told(bench: Bench) -> dict[str, Any]:
    """How a bench differs from the usual one, for whoever reads the metric."""
    return {
        "samples": bench.samples if bench.samples > 1 else None,
        "aggregate": bench.aggregate if bench.aggregate != "mean" else None,
        "early_stop": bench.early_stop or None,
        "counts": "adk" if bench.every_turn else None,
        "batch": bench.batch or None,
    }


def verdict_score(metric: Judged, item: Item, votes: Votes, hearing: Hearing) -> Score:
    """The score of a metric that votes on one thing."""
    value = votes.values()[item.id]
    verdicts = votes.by_item[item.id]
    passed = reaches(value, metric.threshold)
    reasoning = deciding(verdicts, item.bar, passed)
    return Score(
        votes.concluded(value, passed),
        passed,
        threshold=metric.threshold,
        name=metric.name,
        reason=_tally(item, votes) + reasoning,
        details={
            "reasoning": reasoning,
            "given" if votes.early_stop else "votes": [v.given for v in verdicts],
            "reasonings": [v.reasoning for v in verdicts],
            **votes.details(),
            **hearing.spent(),
        },
        measured=verdicts[0].given if votes.samples == 1 else _yes(item, votes),
    )


def _tally(item: Item, votes: Votes) -> str:
    return "" if votes.samples == 1 else f"{_yes(item, votes)} of {votes.cast} votes pass: "


def _yes(item: Item, votes: Votes) -> int:
    return sum(reaches(v.value, item.bar) for v in votes.by_item[item.id])


def item_details(
    items: Sequence[Item], votes: Votes, extra: Mapping[str, Mapping[str, Json]] | None = None
) -> dict[str, Json]:
    """Each item's value, votes and reasoning, by its id."""
    values = votes.values()
    return {
        item.id: {
            "value": values[item.id],
            "passed": reaches(values[item.id], item.bar),
            "reasoning": deciding(
                votes.by_item[item.id], item.bar, reaches(values[item.id], item.bar)
            ),
            "votes": [v.given for v in votes.by_item[item.id]],
            "agreement": votes.agreement_on(item),
            **(extra or {}).get(item.id, {}),
        }
        for item in items
    }


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
    told: list[dict[str, Json]] = []
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
        own = {key: value for key, value in details.items() if key not in spent}
        told.append({"turn": turn.number, "reached": turn.reached, "value": value, **own})
    if not values:
        return next(o for o in outcomes.values() if isinstance(o, NotApplicable))
    whole = fsum(w * v for w, v in zip(weights, values, strict=True)) / fsum(weights)
    return Score(
        whole,
        reaches(whole, metric.threshold),
        threshold=metric.threshold,
        name=metric.name,
        reason=". ".join(missed) or "every turn is as it should be",
        details={"turns": told, "counts": "adk", **spent},
        measured=len(values) - len(missed),
    )
