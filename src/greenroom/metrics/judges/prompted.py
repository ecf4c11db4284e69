"""Judges with your own prompt: a question about the trial, answered in one of five forms."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal, Unpack, cast

from msgspec import Struct

from greenroom.cases.case import Case
from greenroom.cases.scores import NotApplicable, Outcome, Unmeasured
from greenroom.errors import BadMetric
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.messages import is_blank
from greenroom.ledger.plain import Json, as_object
from greenroom.metrics.builtin import checked_name, written
from greenroom.metrics.facts import Missing, last_pair, spoken
from greenroom.metrics.judges.bench import Bench, Hearing, Question
from greenroom.metrics.judges.evidence import RECORD, checked_fields, gathered
from greenroom.metrics.judges.forms import Better, Boolean, Grade, Labels, Verdict, VerdictForm
from greenroom.metrics.judges.judged import Judged, unusual, verdict_score
from greenroom.metrics.judges.options import (
    CUSTOM,
    JUDGE,
    RUBRIC,
    Options,
    bench_from,
    checked_grade,
    checked_template,
    checked_text,
    checked_threshold,
    takes_options,
)
from greenroom.metrics.judges.poll import Item, Poll, Votes, reaches
from greenroom.metrics.judges.rubrics import TEMPLATE as RUBRIC_TEMPLATE
from greenroom.metrics.judges.rubrics import RubricJudge, RubricLike, checked_rubrics
from greenroom.models.model import model_name

FormName = Literal["boolean", "0-10", "rubric", "label", "pairwise"]

_FORMS: tuple[FormName, ...] = ("boolean", "0-10", "rubric", "label", "pairwise")
# An option of another form would be silently ignored, so it is refused.
_BELONGS = {"labels": "label", "passing": "label", "rubrics": "rubric", "baseline": "pairwise"}
_PASSING_GRADE = 7
_TOP = 10
_TEMPLATE = """\
You judge a recorded conversation between a user and an AI agent.

The question to judge by:
{prompt}"""
_PAIRWISE = """\
You compare two responses, `A` and `B`, to the same user of an AI agent.

The question to compare by:
{prompt}

Length, order and self-praise count for nothing. Say "tie" if neither is better."""
_BY_RUBRICS = RUBRIC_TEMPLATE.format(subject="") + "\n\nWhat it is about:\n{prompt}"


class Judge(Judged, frozen=True, kw_only=True):
    """Asks a model one question about the trial."""

    words: str
    form: VerdictForm
    evidence: tuple[str, ...]

    async def hear(self, case: Case, ledger: Ledger, hearing: Hearing) -> Outcome:
        """The model's verdict, or that of several samples."""
        fields = self.seen(self.evidence, case, ledger)
        if isinstance(fields, NotApplicable | Unmeasured):
            return fields
        asked = Question(self.words, fields, self.form)
        item = Item("verdict", bar=self.threshold)
        poll = Poll(
            items=[item],
            question=lambda _item, _sample: asked,
            decide=lambda values: reaches(values["verdict"], self.threshold),
        )
        votes = await poll.held(hearing)
        return verdict_score(self, item, votes, hearing)


class Comparison(Judged, frozen=True, kw_only=True):
    """Compares the last response with another one.

    Judges favour a position. So the agent's response is A in even samples and B in odd ones. Two verdicts that
    contradict each other when the places are swapped are worth a tie; if all do, the judge only favours a place.
    """

    words: str
    evidence: tuple[str, ...]
    baseline: str | Mapping[str, str] | None

    async def hear(self, case: Case, ledger: Ledger, hearing: Hearing) -> Outcome:
        """1 for better, 0 for worse, 0.5 for a tie; the mean or majority of the samples.

        Unmeasured if every verdict is the opposite when the places are swapped.
        """
        pair = self._pair(case, ledger)
        if isinstance(pair, Missing):
            return pair
        ours, theirs, shown_ledger = pair
        fields = gathered(self.evidence, case, shown_ledger)
        if isinstance(fields, NotApplicable | Unmeasured):
            return fields
        item = Item("better", bar=self.threshold, ties=True)

        def question(_: Item, sample: int) -> Question[Verdict]:
            first, second = (theirs, ours) if sample % 2 else (ours, theirs)
            shown: dict[str, Json] = {**fields, "A": first, "B": second}
            return Question(self.words, shown, Better("B" if sample % 2 else "A"))

        poll = Poll(
            items=[item],
            question=question,
            decide=lambda values: reaches(values["better"], self.threshold),
            # Stopping between the two positions would let the position decide.
            stride=2,
        )
        votes = await poll.held(hearing)
        return self._concluded(item, votes, hearing)

    def _concluded(self, item: Item, votes: Votes, hearing: Hearing) -> Outcome:
        """The score of the votes, unless all of them are for a place."""
        given = [verdict.given for verdict in votes.by_item[item.id]]
        swapped = list(zip(given[::2], given[1::2], strict=True))
        opposite = [pair for pair in swapped if set(pair) == {"ours", "theirs"}]
        if len(opposite) == len(swapped):
            places = {"first" if pair[0] == "ours" else "second" for pair in opposite}
            return Unmeasured(
                f"the judge gave the opposite verdict each time the two responses changed places: it "
                f"preferred the {' or the '.join(sorted(places))} one, whichever it was"
            )
        score = verdict_score(self, item, votes, hearing)
        counts = [given.count(meant) for meant in ("ours", "tie", "theirs")]
        reasoning = as_object(score.details)["reasoning"]
        return replace(
            score,
            reason="{} better, {} as good, {} worse: {}".format(*counts, reasoning),
            details={
                **as_object(score.details),
                "agreement": max(counts) / len(given),
                "contradicted": len(opposite),
            },
            measured=counts[0],
        )

    def _pair(self, case: Case, ledger: Ledger) -> tuple[str, str, Ledger] | Missing:
        """The agent's response, the other one, and what happened up to there."""
        said = spoken(ledger)
        if self.baseline is None:
            found = last_pair(case, ledger)
            if isinstance(found, Missing):
                return found
            if isinstance(said, Unmeasured):
                return said
            turn, wanted = found
            if is_blank(turn.response):
                return Unmeasured(f"the agent's response is empty in turn {turn.number}")
            return turn.response, wanted, Ledger(ledger[: turn.end])
        other = self.baseline if isinstance(self.baseline, str) else self.baseline.get(case.id)
        if not other:
            return NotApplicable(f"the baseline has no response for case {case.id!r}")
        return said if isinstance(said, Unmeasured) else (said, other, ledger)


class Prompt(Struct, frozen=True, kw_only=True):
    """A question and its evidence; each form makes a metric of it."""

    name: str
    text: str
    where: str
    bench: Bench
    threshold: float | None
    template: str | None
    evidence: tuple[str, ...] | None

    def words(self, template: str, *places: str) -> str:
        """The given template, or the default one, with the places it must have."""
        return checked_template(
            template if self.template is None else self.template, places, self.where
        )

    def shown(self, **options: object) -> dict[str, str]:
        """The name of the metric, and its repr."""
        options = {"model": model_name(self.bench.model), **options, **unusual(self.bench)}
        shown = written("judge", self.name, self.text, name=None, **options)
        return {**shown, "name": self.name}


@takes_options
def judge(
    name: str,
    prompt: str,
    *,
    form: FormName | None = None,
    scale: Literal["boolean", "0-10"] | None = None,
    threshold: float | None = None,
    evidence: Sequence[str] | None = None,
    template: str | None = None,
    labels: Mapping[str, float] | Sequence[str] | None = None,
    passing: Sequence[str] | None = None,
    rubrics: Sequence[RubricLike] | None = None,
    baseline: str | Mapping[str, str] | None = None,
    **options: Unpack[Options],
) -> Judged:
    """A model answers `prompt` about the conversation, the tool calls and the final state.

    `form` is "boolean" (true or false), "0-10" (passes at 7), "label" (one of `labels`: worth a
    number each, or good if among `passing`), "rubric" (yes or no to each of `rubrics`), or
    "pairwise" (the response against `baseline`, else the case's reference). `scale` is another
    name for it. An answer that is not exactly of that form is asked for again, at most twice.
    `samples` asks several times; `aggregate="majority"` counts votes instead of averaging them.
    `evidence` names what the judge sees.
    """
    where = f"judge({name!r}, ...)"
    own = {"labels": labels, "passing": passing, "rubrics": rubrics, "baseline": baseline}
    chosen = _chosen_form(form, scale, own, where)
    asked = Prompt(
        name=checked_name(name, "judge"),
        text=checked_text(prompt, "prompt", where),
        where=where,
        bench=bench_from(options, where, samples=2 if chosen == "pairwise" else 1),
        threshold=threshold,
        template=template,
        evidence=None if evidence is None else checked_fields(evidence, where),
    )
    return _made(asked, chosen, own)


def _chosen_form(form: object, scale: object, own: Mapping[str, object], where: str) -> FormName:
    if form is not None and scale is not None:
        raise BadMetric(f"{where} has both `form` and `scale`, which are the same option.")
    word, given = ("form", form) if scale is None else ("scale", scale)
    given = "boolean" if given is None else given
    if not isinstance(given, str) or given not in _FORMS:
        raise BadMetric(f"{where} has {word}={given!r}; give one of {list(_FORMS)}.")
    for option, value in own.items():
        if value is not None and _BELONGS[option] != given:
            raise BadMetric(
                f"{where} has `{option}`, which belongs to form={_BELONGS[option]!r}, but its form "
                f"is {given!r}."
            )
    return given


def _made(asked: Prompt, form: FormName, own: Mapping[str, object]) -> Judged:
    """The metric that asks this prompt in this form, with the form's own options."""
    where, threshold = asked.where, asked.threshold
    match form:
        case "boolean":
            bar = checked_threshold(threshold, JUDGE, where)
            return _one_verdict(asked, Boolean(), bar, asked.shown(threshold=threshold))
        case "0-10":
            grade = checked_grade(threshold, _PASSING_GRADE, _TOP, where)
            shown = asked.shown(form=form, threshold=grade)
            return _one_verdict(asked, Grade(0, _TOP), grade / _TOP, shown)
        case "label":
            bar = checked_threshold(threshold, JUDGE, where)
            labels = Labels(label_values(own["labels"], own["passing"], where))
            shown = asked.shown(form=form, labels=own["labels"], passing=own["passing"])
            return _one_verdict(asked, labels, bar, shown)
        case "rubric":
            return RubricJudge(
                rubrics=checked_rubrics(own["rubrics"], where),
                template=asked.words(_BY_RUBRICS, "rubric", "prompt"),
                prompt=asked.text,
                evidence=asked.evidence or RECORD,
                bench=asked.bench,
                threshold=checked_threshold(threshold, RUBRIC, where),
                **asked.shown(form=form, threshold=threshold),
            )
        case "pairwise":
            if asked.bench.samples % 2:
                raise BadMetric(
                    f"{where} has samples={asked.bench.samples}, but a comparison is asked in both orders; "
                    f"give an even number."
                )
            return Comparison(
                words=asked.words(_PAIRWISE, "prompt").format(prompt=asked.text),
                evidence=asked.evidence or ("user_messages",),
                baseline=_checked_baseline(own["baseline"], where),
                bench=asked.bench,
                threshold=checked_threshold(threshold, CUSTOM, where),
                **asked.shown(form=form, threshold=threshold),
            )


def _one_verdict(asked: Prompt, form: VerdictForm, bar: float, shown: dict[str, str]) -> Judge:
    return Judge(
        words=asked.words(_TEMPLATE, "prompt").format(prompt=asked.text),
        form=form,
        evidence=asked.evidence or RECORD,
        bench=asked.bench,
        threshold=bar,
        **shown,
    )


def label_values(labels: object, passing: object, where: str) -> dict[str, float]:
    """The value of each label: as given, or 1 for those that pass and 0 for the rest."""
    found: dict[str, float] = {}
    if isinstance(labels, Mapping):
        if passing is not None:
            raise BadMetric(f"{where} has labels with values and `passing`; give one of the two.")
        for label, worth in cast("Mapping[object, object]", labels).items():
            if type(worth) not in (int, float) or not 0 <= cast(float, worth) <= 1:
                raise BadMetric(
                    f"{where} has the label {label!r} worth {worth!r}; the scale is 0 to 1."
                )
            found[checked_text(label, "labels", where)] = float(cast(float, worth))
    else:
        good = _listed(passing, "passing", where)
        every = _listed(labels, "labels", where)
        if strange := [label for label in good if label not in every]:
            raise BadMetric(
                f"{where} has {strange[0]!r} in `passing`, which is not one of its labels."
            )
        found = {label: float(label in good) for label in every}
    if len(set(found.values())) < 2:
        raise BadMetric(f"{where} has labels={labels!r}; give at least one good and one bad label.")
    return found


def _listed(given: object, option: str, where: str) -> list[str]:
    if isinstance(given, list | tuple):
        return [checked_text(label, option, where) for label in cast("list[object]", given)]
    raise BadMetric(f"{where} has {option}={given!r}; give a list of strings.")


def _checked_baseline(given: object, where: str) -> str | Mapping[str, str] | None:
    """One string, a string for each case id, or None for the case's reference."""
    if given is None or (isinstance(given, str) and given.strip()):
        return given
    if isinstance(given, Mapping):
        texts = cast("Mapping[object, object]", given)
        if all(isinstance(key, str) and isinstance(text, str) for key, text in texts.items()):
            return cast("Mapping[str, str]", given)
    raise BadMetric(f"{where} has baseline={given!r}; give a string, or a string for each case id.")


@takes_options
def llm_judge(
    *,
    rubric: str | None = None,
    prompt: str | None = None,
    name: str | None = None,
    form: FormName | None = None,
    threshold: float | None = None,
    evidence: Sequence[str] | None = None,
    template: str | None = None,
    **options: Unpack[Options],
) -> Judged:
    """A model grades the trial by a `rubric` from 0 to 10 (passes at 7), or answers a `prompt`."""
    where, usual = "llm_judge(...)", "boolean" if rubric is None else "0-10"
    if (rubric is None) == (prompt is None):
        raise BadMetric(f"{where} takes a `rubric` or a `prompt`; give one of them.")
    if rubric is not None:
        asked = checked_text(rubric, "rubric", where)
        prompt = f"How well does the agent's work meet this rubric?\n{asked}"
    return judge(
        "llm_judge" if name is None else name,
        cast(str, prompt),
        form=usual if form is None else form,
        threshold=threshold,
        evidence=evidence,
        template=template,
        **options,
    )
