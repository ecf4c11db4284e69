"""Is what the agent claims grounded in what it could know?

First the claims are extracted from what it said, then each is checked against the user's words, the
tools' answers and the case's context. The agent's own words ground nothing.
"""

from collections.abc import Sequence
from typing import Unpack

from greenroom.cases.case import Case
from greenroom.cases.scores import NotApplicable, Outcome, Score, Unmeasured
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.plain import Json
from greenroom.metrics.judges.bench import Hearing, Question
from greenroom.metrics.judges.evidence import Fields, gathered
from greenroom.metrics.judges.forms import Boolean, Claims, Sheet, Verdict
from greenroom.metrics.judges.judged import Judged, common, concluded, item_details
from greenroom.metrics.judges.options import (
    JUDGE,
    Options,
    bench_from,
    filled_template,
    takes_options,
)
from greenroom.metrics.judges.poll import Item, Poll, Votes, reaches, share

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


class Grounding(Judged, frozen=True, kw_only=True):
    """Extracts the claims from what was said, and checks each."""

    template: str

    async def hear(self, case: Case, ledger: Ledger, hearing: Hearing) -> Outcome:
        """The share of claims that are grounded."""
        last_only = self.bench.every_turn  # as google-adk does
        said = gathered(("response" if last_only else "responses",), case, ledger)
        if isinstance(said, NotApplicable | Unmeasured):
            return said
        known = gathered(_KNOWN, case, ledger)
        if isinstance(known, NotApplicable | Unmeasured):
            return known
        if last_only:
            said = {"responses": [said["response"]]}
        claims = await hearing.ask(Question(_EXTRACT, said, Claims()))
        if not claims:
            return NotApplicable("the agent stated no fact, so there is nothing to ground")
        votes = await self._poll(claims, known).held(hearing)
        return self._score(claims, votes, hearing)

    def _poll(self, claims: Sequence[str], known: Fields) -> Poll:
        def single(item: Item, _: int) -> Question[Verdict]:
            return Question(self.template + _ONE, {**known, **item.evidence}, Boolean("grounded"))

        def sheet(several: Sequence[Item], _: int) -> Question[dict[str, Verdict]]:
            listed: Json = {item.id: item.evidence["claim"] for item in several}
            form = Sheet(tuple(item.id for item in several), Boolean("grounded"))
            return Question(self.template + _SEVERAL, {**known, "claims": listed}, form)

        return Poll(
            # The claims repeat the agent's words, so they are evidence, not instructions.
            items=[Item(f"claim_{n}", evidence={"claim": c}) for n, c in enumerate(claims, 1)],
            question=single,
            decide=lambda values: reaches(share(values), self.threshold),
            sheet=sheet,
        )

    def _score(self, claims: Sequence[str], votes: Votes, hearing: Hearing) -> Score:
        values, claim_of = votes.values(), dict(zip(votes.by_item, claims, strict=True))
        loose = [claim_of[i.id] for i in votes.items if not reaches(values[i.id], i.bar)]
        extra: dict[str, dict[str, Json]] = {key: {"claim": c} for key, c in claim_of.items()}
        count, grounded = len(claims), len(claims) - len(loose)
        reason = f"all {count} claims are grounded" if count > 1 else "the one claim is grounded"
        if loose:
            shown = "; ".join(repr(claim) for claim in loose[:_SHOWN])
            more = f" and {len(loose) - _SHOWN} more" if len(loose) > _SHOWN else ""
            reason = f"{grounded} of {count} claims are grounded; not {shown}{more}"
        return concluded(
            self,
            votes,
            hearing,
            share(values),
            reason=reason,
            evidence=loose,
            details={"claims": list(item_details(votes.items, votes, extra).values())},
            measured=grounded,
        )


@takes_options
def hallucinations_v1(
    *,
    threshold: float | None = None,
    template: str | None = None,
    name: str | None = None,
    **options: Unpack[Options],
) -> Grounding:
    """What share of the agent's claims is grounded in the tools' answers and the context?"""
    where = "hallucinations_v1(...)"
    bench = bench_from(options, where, adk="turns")
    return Grounding(
        template=filled_template(template, _CHECK, where),
        **common("hallucinations_v1", name, bench, threshold, JUDGE),
    )
