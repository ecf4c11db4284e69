"""Rubrics: several things a run should meet, each judged by itself, with weights."""

from collections.abc import Sequence
from itertools import chain
from math import fsum
from typing import Any, Unpack

from greenroom.cases.case import Case
from greenroom.cases.scores import NotApplicable, Outcome, Score, Unmeasured
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.plain import Json
from greenroom.ledger.records import record
from greenroom.metrics.judges.bench import Hearing, Question
from greenroom.metrics.judges.evidence import RECORD, Fields, checked_fields
from greenroom.metrics.judges.forms import (
    Boolean,
    Grade,
    Sheet,
    Verdict,
    VerdictForm,
    listed,
)
from greenroom.metrics.judges.judged import Judged, item_details, titled
from greenroom.metrics.judges.options import (
    RUBRIC,
    Options,
    bench_from,
    checked_template,
    checked_threshold,
    takes_options,
)
from greenroom.metrics.judges.poll import Item, Poll, Values, Votes, reaches
from greenroom.metrics.judges.prompted import Prompt
from greenroom.metrics.judges.rubric import Rubric, checked_rubrics, rubrics_in

_TEMPLATE = """\
You judge a recorded conversation between a user and an AI agent{subject}, by what its author asks \
for. Judge only by what the record shows; how sure or polite the agent sounds proves nothing.

Is this met?
{{rubric}}"""

_OWN_TEMPLATE = _TEMPLATE.format(subject="") + "\n\nWhat it is about:\n{prompt}"
_RESPONSE = ", and in it the agent's last response"
_TOOL_USE = (
    ", and in it how the agent used its tools: which it chose, with which arguments, in which "
    "order, and what it made of their answers"
)


@record(kw_only=True, repr=False)
class RubricJudge(Judged):
    """Asks a model about each rubric; the value is the weighted mean."""

    rubrics: tuple[Rubric, ...]
    template: str
    evidence: tuple[str, ...]
    prompt: str = ""
    kind: str = ""
    """The `type` of those rubrics of a case or turn that are meant for this judge."""

    async def hear(self, case: Case, ledger: Ledger, hearing: Hearing) -> Outcome:
        """Yes or no, or a grade, for each rubric."""
        rubrics = self.rubrics_for(case)
        if not rubrics:
            return NotApplicable("no rubric is given, neither to the judge nor to the case or turn")
        fields = self.seen(self.evidence, case, ledger)
        if isinstance(fields, NotApplicable | Unmeasured):
            return fields
        votes = await self._poll(rubrics, fields).held(hearing)
        return self._score(rubrics, votes, hearing)

    def rubrics_for(self, case: Case) -> tuple[Rubric, ...]:
        """The judge's rubrics; where single turns are judged, also those of the case and its turn."""
        if not self.bench.every_turn:
            return self.rubrics
        of_case = rubrics_in(case.extra, self.kind, f"case {case.id!r}")
        of_turns = [rubrics_in(turn.extra, self.kind, f"case {case.id!r}") for turn in case.script]
        every = (*self.rubrics, *of_case, *chain.from_iterable(of_turns))
        return checked_rubrics(every, f"case {case.id!r}") if every else ()

    def weight(self, case: Case) -> float:
        """Each rubric of each turn counts alike, so a turn counts by its rubrics."""
        return fsum(rubric.weight for rubric in self.rubrics_for(case))

    def _poll(self, rubrics: Sequence[Rubric], fields: Fields) -> Poll:
        known = {rubric.id: rubric for rubric in rubrics}

        def single(item: Item, _: int) -> Question[Verdict]:
            rubric = known[item.id]
            return Question(self._words(item.words), fields, form_of(rubric))

        def sheet(items: Sequence[Item], _: int) -> Question[dict[str, Verdict]]:
            words = listed([(item.id, item.words) for item in items])
            form = Sheet(tuple(item.id for item in items), Boolean())
            return Question(self._words(words), fields, form)

        plain = all(rubric.guide is None for rubric in rubrics)
        return Poll(
            items=[_item(rubric) for rubric in rubrics],
            question=single,
            decide=lambda values: reaches(weighted(rubrics, values), self.threshold),
            sheet=sheet if plain else None,
        )

    def _words(self, rubric: str) -> str:
        return self.template.format(rubric=rubric, prompt=self.prompt)

    def _score(self, rubrics: Sequence[Rubric], votes: Votes, hearing: Hearing) -> Score:
        values = votes.values()
        value = weighted(rubrics, values)
        failed = [r.id for r in rubrics if not reaches(values[r.id], r.threshold)]
        extra: dict[str, dict[str, Json]] = {
            r.id: {"rubric": r.content, "weight": r.weight, "dimension": r.dimension}
            for r in rubrics
        }
        passed = reaches(value, self.threshold)
        return Score(
            votes.concluded(value, passed),
            passed,
            threshold=self.threshold,
            name=self.name,
            reason=f"not met: {', '.join(failed)}" if failed else "every rubric is met",
            details={
                "rubrics": item_details(votes.items, votes, extra),
                "rubric_scores": values,
                "dimensions": dimensions(rubrics, values),
                **votes.details(),
                **hearing.spent(),
            },
            measured=len(rubrics) - len(failed),
        )


@takes_options
def rubric_based_final_response_quality_v1(
    *,
    rubrics: Sequence[Any] | None = None,
    threshold: float | None = None,
    template: str | None = None,
    evidence: Sequence[str] | None = None,
    name: str | None = None,
    **options: Unpack[Options],
) -> RubricJudge:
    """Does the last response meet each rubric? The value is the weighted share that it meets."""
    seen = ("user_messages", "response", "tool_calls?", "reference?")
    given = (rubrics, threshold, template, evidence or seen, name)
    about = (_RESPONSE, "FINAL_RESPONSE_QUALITY")
    return _criterion("rubric_based_final_response_quality_v1", about, given, options)


@takes_options
def rubric_based_tool_use_quality_v1(
    *,
    rubrics: Sequence[Any] | None = None,
    threshold: float | None = None,
    template: str | None = None,
    evidence: Sequence[str] | None = None,
    name: str | None = None,
    **options: Unpack[Options],
) -> RubricJudge:
    """Does the agent's use of its tools meet each rubric? No call at all is judged as well."""
    seen = ("user_messages", "tool_calls", "responses?", "expected_tool_calls?")
    given = (rubrics, threshold, template, evidence or seen, name)
    about = (_TOOL_USE, "TOOL_USE_QUALITY")
    return _criterion("rubric_based_tool_use_quality_v1", about, given, options)


def _criterion(
    factory: str, about: tuple[str, str], given: tuple[Any, ...], options: Options
) -> RubricJudge:
    rubrics, threshold, template, evidence, name = given
    where = f"{factory}(...)"
    bench = bench_from(options, where, adk="votes")
    subject, kind = about
    usual = _TEMPLATE.format(subject=subject)
    # As google-adk counts, cases and turns may bring all the rubrics there are.
    may_lack = bench.every_turn and not rubrics
    return RubricJudge(
        kind=kind,
        rubrics=() if may_lack else checked_rubrics(rubrics, where),
        template=checked_template(usual if template is None else template, ["rubric"], where),
        evidence=checked_fields(evidence, where),
        bench=bench,
        threshold=checked_threshold(threshold, RUBRIC, where),
        **titled(factory, name, bench, threshold=threshold),
    )


def by_rubrics(asked: Prompt, rubrics: object) -> RubricJudge:
    """A judge of one's own by rubrics; its prompt tells what they are about."""
    return RubricJudge(
        rubrics=checked_rubrics(rubrics, asked.where),
        template=asked.words(_OWN_TEMPLATE, "rubric", "prompt"),
        prompt=asked.text,
        evidence=asked.evidence or RECORD,
        bench=asked.bench,
        threshold=checked_threshold(asked.threshold, RUBRIC, asked.where),
        **asked.shown(form="rubric", threshold=asked.threshold),
    )


def form_of(rubric: Rubric) -> VerdictForm:
    """Yes or no, or a grade on the scale of the rubric's scoring guide."""
    if rubric.guide is None:
        return Boolean()
    return Grade(min(rubric.guide), max(rubric.guide))


def weighted(rubrics: Sequence[Rubric], values: Values) -> float:
    """The mean of the rubrics' values by their weights."""
    total = sum(rubric.weight for rubric in rubrics)
    mean = sum(rubric.weight * values[rubric.id] for rubric in rubrics) / total
    return min(1.0, max(0.0, mean))


def dimensions(rubrics: Sequence[Rubric], values: Values) -> dict[str, float]:
    """The weighted mean of each dimension that is named."""
    names = dict.fromkeys(rubric.dimension for rubric in rubrics if rubric.dimension)
    return {
        name: weighted([rubric for rubric in rubrics if rubric.dimension == name], values)
        for name in names
    }


def _item(rubric: Rubric) -> Item:
    words = rubric.content
    if rubric.guide is not None:
        grades = sorted(rubric.guide.items())
        words += "\nGrade it so:\n" + "\n".join(f"{grade}: {meaning}" for grade, meaning in grades)
    return Item(rubric.id, words, bar=rubric.threshold)
