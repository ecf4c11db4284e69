"""Two responses side by side: is the agent's better than another?

Judges favour a place. So the agent's response is A on even samples and B on odd ones.
"""

from collections.abc import Mapping
from typing import cast

from greenroom.cases.case import Case
from greenroom.cases.scores import NotApplicable, Outcome, Unmeasured
from greenroom.errors import BadMetric
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.plain import Json
from greenroom.ledger.records import record
from greenroom.metrics.facts import reference, spoken
from greenroom.metrics.judges.bench import Hearing, Question
from greenroom.metrics.judges.evidence import gathered
from greenroom.metrics.judges.forms import Better, Verdict
from greenroom.metrics.judges.judged import Judged, verdict_score
from greenroom.metrics.judges.options import CUSTOM, checked_threshold
from greenroom.metrics.judges.poll import Item, Poll, reaches
from greenroom.metrics.judges.prompted import Prompt

_TEMPLATE = """\
You compare two responses, `A` and `B`, to the same user of an AI agent.

The question to compare by:
{prompt}

Length, order and self-praise count for nothing. Say "tie" if neither is better."""


@record(kw_only=True, repr=False)
class Comparison(Judged):
    """Holds the last response against another one."""

    words: str
    evidence: tuple[str, ...]
    baseline: str | Mapping[str, str] | None

    async def hear(self, case: Case, ledger: Ledger, hearing: Hearing) -> Outcome:
        """1 for better, 0 for worse, 0.5 for a tie; the mean or majority of the samples."""
        ours, theirs = spoken(ledger), self._other(case)
        fields = gathered(self.evidence, case, ledger)
        for found in (theirs, ours, fields):
            if isinstance(found, NotApplicable | Unmeasured):
                return found
        item = Item("better", bar=self.threshold)

        def question(_: Item, sample: int) -> Question[Verdict]:
            pair = (theirs, ours) if sample % 2 else (ours, theirs)
            shown: dict[str, Json] = {**cast("dict[str, Json]", fields), "A": pair[0], "B": pair[1]}
            return Question(self.words, shown, Better("B" if sample % 2 else "A"))

        poll = Poll(
            items=[item],
            question=question,
            decide=lambda values: reaches(values["better"], self.threshold),
            # To stop between the two places would let the place decide.
            stride=2,
        )
        votes = await poll.held(hearing)
        return verdict_score(self, item, votes, hearing)

    def _other(self, case: Case) -> str | NotApplicable:
        if self.baseline is None:
            return reference(case)
        if isinstance(self.baseline, str):
            return self.baseline
        found = self.baseline.get(case.id)
        return found or NotApplicable(f"the baseline has no response for case {case.id!r}")


def compared(asked: Prompt, baseline: object) -> Comparison:
    """A pairwise judge; `baseline` is one text, a text for each case id, or the reference."""
    return Comparison(
        words=asked.words(_TEMPLATE, "prompt").format(prompt=asked.text),
        evidence=asked.evidence or ("user_messages",),
        baseline=_checked_baseline(baseline, asked.where),
        bench=asked.bench,
        threshold=checked_threshold(asked.threshold, CUSTOM, asked.where),
        **asked.shown(form="pairwise", threshold=asked.threshold),
    )


def _checked_baseline(given: object, where: str) -> str | Mapping[str, str] | None:
    if given is None or (isinstance(given, str) and given.strip()):
        return given
    if isinstance(given, Mapping):
        texts = cast("Mapping[object, object]", given)
        if all(isinstance(key, str) and isinstance(text, str) for key, text in texts.items()):
            return cast("Mapping[str, str]", given)
    raise BadMetric(f"{where} has baseline={given!r}; give a text, or a text for each case id.")
