"""Judges by a prompt of one's own: a question about the run, answered in one of five forms."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Unpack, cast

from greenroom.cases.case import Case
from greenroom.cases.scores import NotApplicable, Outcome, Unmeasured
from greenroom.errors import BadMetric
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.records import record
from greenroom.metrics.builtin import checked_name, written
from greenroom.metrics.judges.bench import Bench, Hearing, Question
from greenroom.metrics.judges.evidence import RECORD, checked_fields
from greenroom.metrics.judges.forms import Boolean, Grade, Labels, VerdictForm
from greenroom.metrics.judges.judged import Judged, told, verdict_score
from greenroom.metrics.judges.options import (
    JUDGE,
    Options,
    bench_from,
    checked_grade,
    checked_template,
    checked_text,
    checked_threshold,
    takes_options,
)
from greenroom.metrics.judges.poll import Item, Poll, reaches
from greenroom.models.model import model_name

FormName = Literal["boolean", "0-10", "rubric", "label", "pairwise"]

_FORMS: tuple[FormName, ...] = ("boolean", "0-10", "rubric", "label", "pairwise")
# An option of another form would be ignored, which nobody who wrote it wants.
_BELONGS = {"labels": "label", "passing": "label", "rubrics": "rubric", "baseline": "pairwise"}
_PASSING_GRADE = 7
_TOP = 10
_TEMPLATE = """\
You judge a recorded conversation between a user and an AI agent.

The question to judge by:
{prompt}"""


@record(kw_only=True, repr=False)
class Judge(Judged):
    """Asks a model one question about the run."""

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


@record(kw_only=True)
class Prompt:
    """What an author wants to know, and of what; each form makes a metric of it."""

    name: str
    text: str
    where: str
    bench: Bench
    threshold: float | None
    template: str | None
    evidence: tuple[str, ...] | None

    def words(self, template: str, *places: str) -> str:
        """The author's template, or the usual one, with the places it must have."""
        return checked_template(
            template if self.template is None else self.template, places, self.where
        )

    def shown(self, **options: Any) -> dict[str, str]:
        """The name of the metric, and how it was written."""
        model = model_name(self.bench.model)
        shown = written("judge", self.name, self.text, model=model, **options, **told(self.bench))[
            "shown"
        ]
        return {"name": self.name, "shown": shown}


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
    rubrics: Sequence[Any] | None = None,
    baseline: str | Mapping[str, str] | None = None,
    **options: Unpack[Options],
) -> Judged:
    """A model answers `prompt` about the conversation, the tool calls and the final state.

    `form` is "boolean" (true or false), "0-10" (passes at 7), "label" (one of `labels`: worth a
    number each, or good if among `passing`), "rubric" (yes or no to each of `rubrics`), or
    "pairwise" (the response against `baseline`, else the case's reference). `scale` is another
    word for it. An answer that is not exactly of that form is asked for again, at most twice.
    `samples` asks several times; `aggregate="majority"` counts votes instead of averaging them.
    `evidence` names what the judge sees.
    """
    where = f"judge({name!r}, ...)"
    chosen = _chosen_form(form, scale, where)
    own = {"labels": labels, "passing": passing, "rubrics": rubrics, "baseline": baseline}
    _refuse_strangers(own, chosen, where)
    asked = Prompt(
        name=checked_name(name, "judge"),
        text=checked_text(prompt, "prompt", where),
        where=where,
        bench=bench_from(options, where),
        threshold=threshold,
        template=template,
        evidence=None if evidence is None else checked_fields(evidence, where),
    )
    return _made(asked, chosen, own)


def _made(asked: Prompt, form: FormName, own: Mapping[str, Any]) -> Judged:
    # Most judges say yes, no or a grade; the others are opened when asked for.
    match form:
        case "boolean":
            return yes_or_no(asked)
        case "0-10":
            return graded(asked)
        case "label":
            return labelled(asked, own["labels"], own["passing"])
        case "rubric":
            from greenroom.metrics.judges.rubrics import by_rubrics

            return by_rubrics(asked, own["rubrics"])
        case "pairwise":
            from greenroom.metrics.judges.comparison import compared

            return compared(asked, own["baseline"])


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
    """A model grades the run by a `rubric` from 0 to 10 (passes at 7), or answers a `prompt`."""
    where = "llm_judge(...)"
    if (rubric is None) == (prompt is None):
        raise BadMetric(f"{where} takes a `rubric` or a `prompt`; give one of them.")
    if rubric is not None:
        asked = checked_text(rubric, "rubric", where)
        prompt = f"How well does the agent's work meet this rubric?\n{asked}"
    return judge(
        "llm_judge" if name is None else name,
        cast(str, prompt),
        form=form or ("boolean" if rubric is None else "0-10"),
        threshold=threshold,
        evidence=evidence,
        template=template,
        **options,
    )


def yes_or_no(asked: Prompt) -> Judge:
    """A judge that says true or false."""
    bar = checked_threshold(asked.threshold, JUDGE, asked.where)
    return one_verdict(asked, Boolean(), bar, asked.shown(threshold=asked.threshold))


def graded(asked: Prompt) -> Judge:
    """A judge that gives a grade from 0 to 10."""
    passing = checked_grade(asked.threshold, _PASSING_GRADE, _TOP, asked.where)
    shown = asked.shown(form="0-10", threshold=passing)
    return one_verdict(asked, Grade(0, _TOP), passing / _TOP, shown)


def one_verdict(asked: Prompt, form: VerdictForm, bar: float, shown: dict[str, str]) -> Judge:
    """A judge that answers its prompt in this form."""
    return Judge(
        words=asked.words(_TEMPLATE, "prompt").format(prompt=asked.text),
        form=form,
        evidence=asked.evidence or RECORD,
        bench=asked.bench,
        threshold=bar,
        **shown,
    )


def _chosen_form(form: object, scale: object, where: str) -> FormName:
    if form is not None and scale is not None:
        raise BadMetric(f"{where} has both `form` and `scale`, which are one option.")
    word = "form" if scale is None else "scale"
    given = form if scale is None else scale
    if given is None:
        return "boolean"
    if isinstance(given, str) and given in _FORMS:
        return given
    raise BadMetric(f"{where} has {word}={given!r}; give one of {list(_FORMS)}.")


def _refuse_strangers(own: Mapping[str, object], form: FormName, where: str) -> None:
    for option, value in own.items():
        if value is not None and _BELONGS[option] != form:
            raise BadMetric(
                f"{where} has `{option}`, which belongs to form={_BELONGS[option]!r}, but its form "
                f"is {form!r}."
            )


def labelled(asked: Prompt, labels: object, passing: object) -> Judge:
    """A judge that gives a label: worth a number each, or good if among `passing`."""
    bar = checked_threshold(asked.threshold, JUDGE, asked.where)
    form = Labels(label_values(labels, passing, asked.where))
    return one_verdict(asked, form, bar, asked.shown(form="label", labels=labels, passing=passing))


def label_values(labels: object, passing: object, where: str) -> dict[str, float]:
    """What each label is worth: as given, or 1 for those that pass and 0 for the rest."""
    if isinstance(labels, Mapping):
        worth = cast("Mapping[Any, Any]", labels)
        if passing is not None:
            raise BadMetric(f"{where} has labels with values and `passing`; give one of both.")
        found = {label: _worth(label, value, where) for label, value in worth.items()}
    else:
        good = _listed(passing, "passing", where)
        every = _listed(labels, "labels", where)
        if strange := [label for label in good if label not in every]:
            raise BadMetric(
                f"{where} has {strange[0]!r} in `passing`, which is none of its labels."
            )
        found = {label: float(label in good) for label in every}
    if len(set(found.values())) < 2:
        raise BadMetric(f"{where} has labels={labels!r}; give at least one good and one bad label.")
    return found


def _listed(given: object, option: str, where: str) -> list[str]:
    if isinstance(given, list | tuple):
        return [checked_text(label, option, where) for label in cast("list[object]", given)]
    raise BadMetric(f"{where} has {option}={given!r}; give a list of texts.")


def _worth(label: object, value: object, where: str) -> float:
    checked_text(label, "labels", where)
    if type(value) in (int, float) and 0 <= cast(float, value) <= 1:
        return float(cast(float, value))
    raise BadMetric(f"{where} has the label {label!r} worth {value!r}; the scale is 0 to 1.")
