"""What the agent said in a turn before its last response."""

from collections.abc import Sequence
from typing import ClassVar

from greenroom.cases.case import Case
from greenroom.cases.scores import NotApplicable, Outcome, Unmeasured
from greenroom.ledger.events import AgentSaid, ModelReplied
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.messages import is_blank
from greenroom.ledger.plain import Json
from greenroom.metrics.builtin import BuiltIn, checked_switch, checked_threshold, written
from greenroom.metrics.facts import spoken
from greenroom.metrics.likeness import USUAL_THRESHOLD
from greenroom.metrics.needs import MODELS, WORDS, Needs
from greenroom.metrics.response import folded, quoted
from greenroom.metrics.rouge import rouge
from greenroom.metrics.turns import (
    MeasuredTurn,
    ScriptedTurn,
    mean_score,
    never_reached,
    scripted_turns,
)
from greenroom.world.world import World


class IntermediateResponses(BuiltIn, frozen=True, kw_only=True):
    """Looks for the expected strings, in order, in what was said before the last response."""

    covers: ClassVar[tuple[str, ...]] = ("intermediate",)
    needs: ClassVar[Needs] = WORDS | MODELS

    likeness: float
    stem: bool
    threshold: float

    def measure(self, case: Case, ledger: Ledger, world: World) -> Outcome:
        """The mean share found, over the turns that expect intermediate responses."""
        turns = [turn for turn in scripted_turns(case, ledger) if turn.expect.intermediate]
        if not turns:
            return NotApplicable("no turn of the case has Expect(intermediate=...)")
        said = spoken(ledger)
        if isinstance(said, Unmeasured):
            return said
        found = [self._measured(turn) if turn.reached else never_reached(turn) for turn in turns]
        return mean_score(found, self.name, self.threshold)

    def _measured(self, turn: ScriptedTurn) -> MeasuredTurn:
        wanted, said = turn.expect.intermediate or (), said_on_the_way(turn)
        met = self._met_in_order(wanted, said)
        missing = [text for index, text in enumerate(wanted) if index not in met]
        reason = f"{len(met)} of {len(wanted)} strings found in order"
        if missing:
            reason += f"; missing {', '.join(map(quoted, missing))}"
        seen = " / ".join(said) or "nothing before the last words"
        details: dict[str, Json] = {"reached": True, "missing": [*missing], "said": [*said]}
        return MeasuredTurn(turn.number, len(met) / len(wanted), reason, seen, details)

    def _met_in_order(self, wanted: Sequence[str], said: Sequence[str]) -> frozenset[int]:
        """Which of the wanted strings match, as many as possible, each in a later message."""
        # best[j]: the wanted strings so far that the first j messages can match.
        best: list[frozenset[int]] = [frozenset()] * (len(said) + 1)
        for index, text in enumerate(wanted):
            row = [best[0]]
            for place, message in enumerate(said):
                choices = [best[place + 1], row[place]]
                if self._is_like(text, message):
                    choices.append(best[place] | {index})
                row.append(max(choices, key=len))
            best = row
        return best[-1]

    def _is_like(self, wanted: str, message: str) -> bool:
        if _spaced(wanted) in _spaced(message):
            return True
        return rouge(wanted, message, "rouge1", self.stem).f1 >= self.likeness


def intermediate_responses(
    threshold: float = 1.0,
    *,
    likeness: float = USUAL_THRESHOLD,
    stem: bool = True,
    name: str = "intermediate_responses",
) -> IntermediateResponses:
    """Before the last response of a turn the agent said what `Expect(intermediate=[...])` lists.

    Other messages may come between. A string counts as said when a message contains it, ignoring
    case and spacing, or when the ROUGE-1 F1 of both reaches `likeness`.
    """
    checked_threshold(threshold, "intermediate_responses(...)")
    checked_threshold(likeness, "intermediate_responses(...)", "likeness")
    checked_switch(stem, "stem", "intermediate_responses")
    shown = written(
        "intermediate_responses", threshold=threshold, likeness=likeness, stem=stem, name=name
    )
    return IntermediateResponses(likeness=likeness, stem=stem, threshold=threshold, **shown)


def said_on_the_way(turn: ScriptedTurn) -> list[str]:
    """What models and messages said in this turn, in order, without the last response."""
    texts: list[str] = []
    for event in turn.ledger[turn.begin : turn.end]:
        if not isinstance(event, AgentSaid | ModelReplied) or event.voice != "agent":
            continue
        # A model's reply often goes to the user unchanged: one message, two events.
        if not is_blank(event.text) and texts[-1:] != [event.text]:
            texts.append(event.text)
    return texts[:-1] if texts[-1:] == [turn.response] else texts


def _spaced(text: str) -> str:
    return " ".join(folded(text).split())
