"""Is what the agent claims grounded in what it could know?

First the claims are taken out of what it said, then each is held against the user's words, the
tools' answers and the case's context. The agent's own words ground nothing.
"""

from collections.abc import Sequence
from typing import Unpack

from greenroom.cases.case import Case
from greenroom.cases.scores import NotApplicable, Outcome, Score, Unmeasured
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.plain import Json
from greenroom.ledger.records import record
from greenroom.metrics.facts import Missing
from greenroom.metrics.judges.bench import Hearing, Question
from greenroom.metrics.judges.evidence import Fields, gathered
from greenroom.metrics.judges.forms import Boolean, Claims, Sheet, Verdict
from greenroom.metrics.judges.judged import Judged, item_details, titled
from greenroom.metrics.judges.options import (
    JUDGE,
    Options,
    bench_from,
    checked_template,
    checked_threshold,
    takes_options,
)
from greenroom.metrics.judges.poll import Item, Poll, Values, Votes, reaches

_EXTRACT = """\
You take statements of fact out of what an AI agent said.

List every statement in `responses` that could be true or false: numbers, names, dates, events, \
causes, and what the agent says it did or found. Write each as a sentence that can be understood by \
itself, in the language it was said in. Leave out greetings, questions, offers and opinions."""

_CHECK = """\
You check whether what an AI agent claimed is grounded in what it could know.

Say true for a claim only if the record supports it: what the user said, what the tools answered, \
the context or the state at the start. The arguments of a tool call are the agent's own words and \
prove nothing by themselves. A claim the record contradicts or does not mention is not grounded, \
even if you believe it."""

_ONE = "\n\nThe claim stands in the field `claim`."
_SEVERAL = "\n\nThe claims stand in the field `claims`, by their ids."
_KNOWN = ("user_messages", "tool_calls", "context?", "initial_state?")
_SHOWN = 3


@record(kw_only=True, repr=False)
class Grounding(Judged):
    """Takes claims out of what was said, and checks each."""

    template: str

    async def hear(self, case: Case, ledger: Ledger, hearing: Hearing) -> Outcome:
        """The share of claims that are grounded."""
        said = self._said(case, ledger)
        if isinstance(said, NotApplicable | Unmeasured):
            return said
        known = gathered(_KNOWN, case, ledger)
        if isinstance(known, NotApplicable | Unmeasured):
            return known
        claims = await hearing.ask(Question(_EXTRACT, said, Claims()))
        if not claims:
            return NotApplicable("the agent stated no fact, so there is nothing to ground")
        votes = await self._poll(claims, known).held(hearing)
        return self._score(claims, votes, hearing)

    def _said(self, case: Case, ledger: Ledger) -> Fields | Missing:
        """All that the agent said; of a single turn its last words only."""
        if not self.bench.every_turn:
            return gathered(("responses",), case, ledger)
        last = gathered(("response",), case, ledger)
        return {"responses": [last["response"]]} if isinstance(last, dict) else last

    def _poll(self, claims: Sequence[str], known: Fields) -> Poll:
        items = [
            # The claims repeat the agent's words, so they are evidence and no instruction.
            Item(f"claim_{number}", evidence={"claim": claim})
            for number, claim in enumerate(claims, 1)
        ]

        def single(item: Item, _: int) -> Question[Verdict]:
            return Question(self.template + _ONE, {**known, **item.evidence}, Boolean("grounded"))

        def sheet(several: Sequence[Item], _: int) -> Question[dict[str, Verdict]]:
            listed: Json = {item.id: item.evidence["claim"] for item in several}
            form = Sheet(tuple(item.id for item in several), Boolean("grounded"))
            return Question(self.template + _SEVERAL, {**known, "claims": listed}, form)

        return Poll(
            items=items,
            question=single,
            decide=lambda values: reaches(_share(values), self.threshold),
            sheet=sheet,
        )

    def _score(self, claims: Sequence[str], votes: Votes, hearing: Hearing) -> Score:
        values = votes.values()
        value = _share(values)
        loose = [
            claim
            for item, claim in zip(votes.items, claims, strict=True)
            if not reaches(values[item.id], item.bar)
        ]
        said: dict[str, dict[str, Json]] = {
            item.id: {"claim": claim} for item, claim in zip(votes.items, claims, strict=True)
        }
        passed = reaches(value, self.threshold)
        return Score(
            votes.concluded(value, passed),
            passed,
            threshold=self.threshold,
            name=self.name,
            reason=_reason(len(claims), loose),
            evidence=loose,
            details={
                "claims": list(item_details(votes.items, votes, said).values()),
                **votes.details(),
                **hearing.spent(),
            },
            measured=len(claims) - len(loose),
        )


@takes_options
def hallucinations_v1(
    *,
    threshold: float | None = None,
    template: str | None = None,
    name: str | None = None,
    **options: Unpack[Options],
) -> Grounding:
    """Which share of the agent's claims is grounded in the tools' answers and the context?"""
    where = "hallucinations_v1(...)"
    bench = bench_from(options, where, adk="turns")
    words = _CHECK if template is None else checked_template(template, (), where).format()
    return Grounding(
        template=words,
        bench=bench,
        threshold=checked_threshold(threshold, JUDGE, where),
        **titled("hallucinations_v1", name, bench, threshold=threshold),
    )


def _share(values: Values) -> float:
    return sum(values.values()) / len(values)


def _reason(count: int, loose: Sequence[str]) -> str:
    if not loose:
        return f"all {count} claims are grounded" if count > 1 else "the one claim is grounded"
    shown = "; ".join(repr(claim) for claim in loose[:_SHOWN])
    more = f" and {len(loose) - _SHOWN} more" if len(loose) > _SHOWN else ""
    return f"{count - len(loose)} of {count} claims are grounded; not {shown}{more}"
