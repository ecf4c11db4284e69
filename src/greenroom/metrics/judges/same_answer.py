"""Does a response mean the same as the reference? Judged for each turn that has one."""

from collections.abc import Mapping, Sequence
from math import fsum
from typing import ClassVar, Unpack

from greenroom.cases.case import Case
from greenroom.cases.scores import NotApplicable, Outcome, Score, Unmeasured
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.messages import is_blank
from greenroom.ledger.plain import Json, as_object
from greenroom.ledger.questions import messages
from greenroom.metrics.facts import reference, reference_of
from greenroom.metrics.judges.bench import Hearing, Question
from greenroom.metrics.judges.forms import Boolean, Sheet, Verdict
from greenroom.metrics.judges.judged import Judged, common, concluded, item_details, verdict_score
from greenroom.metrics.judges.options import (
    JUDGE,
    VOTES,
    Options,
    bench_from,
    filled_template,
    takes_options,
)
from greenroom.metrics.judges.poll import Item, Poll, Votes, reaches
from greenroom.metrics.needs import USER, WORDS, Needs
from greenroom.metrics.turns import ScriptedTurn, scripted_turns

_WORDS = """\
You compare the response of an AI agent with a reference that is known to be right.

Say true if the response tells the user the same facts as the reference:
- Only facts count. Wording, order, style and length do not.
- More information than in the reference is fine, as long as it is right.
- Say false if a fact of the reference is missing or different, or if the response contradicts \
itself or the reference anywhere."""
_SEVERAL = "There are several turns, told apart by their ids. Compare each of them by itself."


class Matching(Judged, frozen=True, kw_only=True):
    """Compares the last response of each turn with that turn's reference."""

    words: str
    covers: ClassVar[tuple[str, ...]] = ("reference",)
    needs: ClassVar[Needs] = WORDS | USER

    async def hear(self, case: Case, ledger: Ledger, hearing: Hearing) -> Outcome:
        """The mean over the turns of the share of votes; a turn never reached counts as 0."""
        every = self.bench.every_turn
        turns = [t for t in scripted_turns(case, ledger) if every or reference_of(t.expect)]
        if not turns:
            none = reference(case)
            return none if isinstance(none, NotApplicable) else NotApplicable("no reference given")
        reached = [turn for turn in turns if turn.reached]
        for turn in reached:
            if not every and is_blank(turn.response):
                return Unmeasured(f"the agent's response is empty in turn {turn.number}")
        if not reached:
            return Unmeasured("the run reached none of the turns that have a reference")
        votes = await self._poll(reached, len(turns)).held(hearing)
        if len(turns) == 1:
            return verdict_score(self, votes.items[0], votes, hearing)
        return self._score(turns, votes, hearing)

    async def hear_turns(self, case: Case, ledger: Ledger, hearing: Hearing) -> Outcome:
        """Every turn is judged, as in google-adk, if any of them has a reference."""
        none = reference(case)
        if isinstance(none, NotApplicable):
            return none
        return await Judged.hear_turns(self, case, ledger, hearing)

    def _poll(self, reached: Sequence[ScriptedTurn], expected: int) -> Poll:
        form = Boolean("is_correct")

        def question(item: Item, _: int) -> Question[Verdict]:
            return Question(self.words, item.evidence, form)

        def sheet(items: Sequence[Item], _: int) -> Question[dict[str, Verdict]]:
            shown: dict[str, Json] = {item.id: {**item.evidence} for item in items}
            return Question(f"{self.words}\n\n{_SEVERAL}", shown, Sheet(tuple(shown), form))

        return Poll(
            items=[Item(_id(turn), evidence=_seen(turn), bar=self.threshold) for turn in reached],
            question=question,
            decide=lambda values: reaches(fsum(values.values()) / expected, self.threshold),
            sheet=sheet,
        )

    def _score(self, turns: Sequence[ScriptedTurn], votes: Votes, hearing: Hearing) -> Score:
        values = votes.values()
        judged = {name: as_object(one) for name, one in item_details(votes.items, votes).items()}
        missed: list[str] = []
        for turn in turns:
            if not reaches(values.get(_id(turn), 0.0), self.threshold):
                why = judged[_id(turn)]["reasoning"] if turn.reached else "never reached"
                missed.append(f"turn {turn.number}: {why}")
        parts: list[Json] = [
            {"turn": turn.number, "reached": turn.reached, **judged.get(_id(turn), {})}
            for turn in turns
        ]
        return concluded(
            self,
            votes,
            hearing,
            fsum(values.values()) / len(turns),
            reason=". ".join(missed) or "every turn is as expected",
            details={"turns": parts},
            measured=len(turns) - len(missed),
        )


@takes_options
def final_response_match_v2(
    *,
    threshold: float | None = None,
    template: str | None = None,
    name: str | None = None,
    **options: Unpack[Options],
) -> Matching:
    """Does each turn's last response mean the same as its reference? The value is the share of votes for it.

    The reference is `Expect(reference=...)`, else `Expect(response=...)`.
    """
    where = "final_response_match_v2(...)"
    bench = bench_from(options, where, samples=VOTES, adk="votes")
    return Matching(
        words=filled_template(template, _WORDS, where),
        **common("final_response_match_v2", name, bench, threshold, JUDGE),
    )


def _id(turn: ScriptedTurn) -> str:
    return f"turn_{turn.number}"


def _seen(turn: ScriptedTurn) -> Mapping[str, Json]:
    """What the judge sees of a turn: all that the user had said by then, the response and the reference."""
    so_far = messages(Ledger(turn.ledger[: turn.end]))
    return {
        "user_messages": [message.text for message in so_far if message.role == "user"],
        "response": turn.response,
        "reference": reference_of(turn.expect) or "",
    }
