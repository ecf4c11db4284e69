"""Did the user reach their goals? A judge decides, and must quote the evidence.

A goal counts as reached only with a quote: exact words of the agent, or of a tool's answer. What
the simulated user says about its own goals proves nothing.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Unpack, cast

from msgspec import Struct

from greenroom.cases.case import Case
from greenroom.cases.goals import quoted
from greenroom.cases.scores import NotApplicable, Outcome, Score, Unmeasured
from greenroom.cases.users import person_of
from greenroom.ledger import questions
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.plain import Json
from greenroom.metrics.judges.bench import Hearing, Question
from greenroom.metrics.judges.evidence import RECORD, Fields, gathered
from greenroom.metrics.judges.forms import (
    NotAnAnswer,
    Sheet,
    Verdict,
    VerdictForm,
    listed,
    text_at,
    with_keys,
)
from greenroom.metrics.judges.judged import Judged, common, concluded, item_details
from greenroom.metrics.judges.options import (
    Options,
    bench_from,
    takes_options,
)
from greenroom.metrics.judges.poll import Item, Poll, Votes, reaches, share

_ALL = 1.0
_TASK = """\
You judge whether an AI agent brought a user to a goal in a recorded conversation.

Say true only if the record shows that the goal was reached: by what the agent said, or by what its \
tools answered. A promise is not enough, and neither is that the user calls the goal reached. For \
true give a quote: exact words from one message of the agent, or from one tool's answer, that show \
it. For false leave the quote empty."""
_ONE = "\n\nThe goal: {goal}"
_SEVERAL = "\n\nThe goals, by their ids:\n{goals}"


class Proof(VerdictForm, Struct, frozen=True):
    """True or false, where true needs a quote from one of these texts."""

    texts: tuple[str, ...]

    def properties(self) -> dict[str, Json]:
        text: Json = {"type": "string"}
        return {"reasoning": text, "reached": {"type": "boolean"}, "quote": text}

    def shown(self) -> str:
        return '"reasoning": "<why>", "reached": <true or false>, "quote": "<exact words, or none>"'

    def read(self, answer: Mapping[str, Json]) -> Verdict:
        """1 with a quote that was found, 0 for false; a quote that is not found is not an answer."""
        reached = with_keys(answer, ("reasoning", "reached", "quote"))["reached"]
        quote = text_at(answer, "quote")
        if reached is not True and reached is not False:
            raise NotAnAnswer("`reached` must be true or false")
        if reached and not quoted(quote, self.texts):
            raise NotAnAnswer(
                "`quote` must be exact words of one of the agent's messages or tools' answers"
            )
        given: Json = {"reached": reached, "quote": quote}
        return Verdict(text_at(answer, "reasoning"), given, float(reached))


class GoalsAchieved(Judged, frozen=True, kw_only=True):
    """Asks about each goal of the case's simulated user."""

    async def hear(self, case: Case, ledger: Ledger, hearing: Hearing) -> Outcome:
        """The share of goals that the record shows to be reached."""
        goals = goals_of(case)
        fields = gathered(RECORD, case, ledger)
        if isinstance(fields, NotApplicable | Unmeasured):
            return fields
        if not goals:
            return NotApplicable(
                "the case's user has no goals: give SimulatedUser(goal=...) or goals=[...]"
            )
        votes = await self._poll(goals, fields, Proof(tuple(_quotable(ledger)))).held(hearing)
        return self._score(votes, hearing)

    def _poll(self, goals: Sequence[str], fields: Fields, form: Proof) -> Poll:
        def single(item: Item, _: int) -> Question[Verdict]:
            return Question(_TASK + _ONE.format(goal=item.words), fields, form)

        def sheet(items: Sequence[Item], _: int) -> Question[dict[str, Verdict]]:
            words = listed([(item.id, item.words) for item in items])
            ids = tuple(item.id for item in items)
            return Question(_TASK + _SEVERAL.format(goals=words), fields, Sheet(ids, form))

        return Poll(
            items=[Item(f"goal_{number}", goal) for number, goal in enumerate(goals, 1)],
            question=single,
            decide=lambda values: reaches(share(values), self.threshold),
            sheet=sheet,
        )

    def _score(self, votes: Votes, hearing: Hearing) -> Score:
        values = votes.values()
        missed = [item.words for item in votes.items if not reaches(values[item.id], item.bar)]
        extra: dict[str, dict[str, Json]] = {i.id: {"goal": i.words} for i in votes.items}
        given = [cast("dict[str, Json]", v.given) for vs in votes.by_item.values() for v in vs]
        quotes = [str(one["quote"]) for one in given if one["reached"]]
        count, reached = len(votes.items), len(votes.items) - len(missed)
        reason = f"all {count} goals were reached" if count > 1 else "the goal was reached"
        if missed:
            shown = "; ".join(repr(goal) for goal in missed)
            reason = f"{reached} of {count} goals were reached; not {shown}"
        return concluded(
            self,
            votes,
            hearing,
            share(values),
            reason=reason,
            evidence=list(dict.fromkeys(quotes)),
            details={"goals": list(item_details(votes.items, votes, extra).values())},
            measured=reached,
        )


@takes_options
def goals_achieved(
    *, threshold: float | None = None, name: str | None = None, **options: Unpack[Options]
) -> GoalsAchieved:
    """Which share of the simulated user's goals was reached, each shown by a quote? All must be."""
    bench = bench_from(options, "goals_achieved(...)")
    return GoalsAchieved(**common("goals_achieved", name, bench, threshold, _ALL))


def goals_of(case: Case) -> list[str]:
    """Everything the case's simulated user wants, as a whole and in parts."""
    person = person_of(case.user)
    wanted = () if person is None else (person.goal, *person.goals)
    return list(dict.fromkeys(goal for goal in wanted if goal.strip()))


def _quotable(ledger: Ledger) -> list[str]:
    """The strings that may be quoted: the agent's words, and its tools' answers."""
    texts = questions.said(ledger)
    for call in questions.tool_calls(ledger):
        # A judge sees indented JSON, and may quote it indented or compact.
        texts += [json.dumps(call.result, ensure_ascii=False, indent=space) for space in (1, None)]
        if isinstance(call.result, str):
            texts.append(call.result)
    return texts
