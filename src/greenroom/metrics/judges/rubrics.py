"""Rubrics: several requirements, each judged by itself, with weights."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from math import fsum, isfinite
from string import Formatter
from typing import Any, NamedTuple, Unpack, cast

from greenroom.cases.case import Case
from greenroom.cases.scores import NotApplicable, Outcome, Score, Unmeasured
from greenroom.errors import BadMetric
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.plain import Json
from greenroom.metrics.judges.bench import Hearing, Question
from greenroom.metrics.judges.evidence import Fields, checked_fields
from greenroom.metrics.judges.forms import Boolean, Grade, Sheet, Verdict, listed
from greenroom.metrics.judges.judged import Judged, common, concluded, item_details
from greenroom.metrics.judges.options import (
    RUBRIC,
    Options,
    bench_from,
    checked_template,
    checked_text,
    takes_options,
)
from greenroom.metrics.judges.poll import Item, Poll, Values, Votes, reaches

TEMPLATE = """\
You judge a recorded conversation between a user and an AI agent{subject}, by what its author asks \
for. Judge only by what the record shows; how sure or polite the agent sounds proves nothing.

Is this met?
{{rubric}}"""

_RESPONSE = ", and in it the agent's last response"
_TOOL_USE = (
    ", and in it how the agent used its tools: which it chose, with which arguments, in which "
    "order, and what it made of their answers"
)


@dataclass(frozen=True, slots=True)
class Rubric:
    """A requirement that a trial should meet.

    With a `guide` (what each grade means) it is graded on that scale, else it is yes or no. It is
    met at `threshold`, on the scale from 0 to 1. Rubrics of one `dimension` are also averaged separately.
    """

    id: str
    content: str
    weight: float = 1.0
    guide: Mapping[int, str] | None = None
    dimension: str = ""
    threshold: float = 0.5


RubricLike = Rubric | Mapping[str, Json] | str
"""A rubric, its fields by name, or only what should be met."""


class RubricJudge(Judged, frozen=True, kw_only=True):
    """Asks a model about each rubric; the value is the weighted mean."""

    rubrics: tuple[Rubric, ...]
    template: str
    evidence: tuple[str, ...]
    prompt: str = ""
    kind: str = ""
    """The `type` of the rubrics, in a case or turn, that are meant for this judge."""

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
        where = f"case {case.id!r}"
        given = (_rubrics_in(part.extra, self.kind, where) for part in (case, *case.script))
        every = (*self.rubrics, *chain.from_iterable(given))
        return checked_rubrics(every, where) if every else ()

    def weight(self, case: Case) -> float:
        """The number of the turn's rubrics: every rubric of every turn counts alike."""
        return fsum(rubric.weight for rubric in self.rubrics_for(case))

    def _poll(self, rubrics: Sequence[Rubric], fields: Fields) -> Poll:
        known = {rubric.id: rubric for rubric in rubrics}

        def single(item: Item, _: int) -> Question[Verdict]:
            words, guide = item.words, known[item.id].guide
            form = Boolean() if guide is None else Grade(min(guide), max(guide))
            return Question(self._words(words), fields, form)

        def sheet(items: Sequence[Item], _: int) -> Question[dict[str, Verdict]]:
            words = listed([(item.id, item.words) for item in items])
            form = Sheet(tuple(item.id for item in items), Boolean())
            return Question(self._words(words), fields, form)

        graded = any(rubric.guide is not None for rubric in rubrics)
        return Poll(
            items=[_item(rubric) for rubric in rubrics],
            question=single,
            decide=lambda values: reaches(weighted(rubrics, values), self.threshold),
            sheet=None if graded else sheet,
        )

    def _words(self, rubric: str) -> str:
        return self.template.format(rubric=rubric, prompt=self.prompt)

    def _score(self, rubrics: Sequence[Rubric], votes: Votes, hearing: Hearing) -> Score:
        values = votes.values()
        failed = [r.id for r in rubrics if not reaches(values[r.id], r.threshold)]
        extra: dict[str, dict[str, Json]] = {
            r.id: {"rubric": r.content, "weight": r.weight, "dimension": r.dimension}
            for r in rubrics
        }
        names = dict.fromkeys(rubric.dimension for rubric in rubrics if rubric.dimension)
        dimensions: dict[str, Json] = {
            name: weighted([rubric for rubric in rubrics if rubric.dimension == name], values)
            for name in names
        }
        return concluded(
            self,
            votes,
            hearing,
            weighted(rubrics, values),
            reason=f"not met: {', '.join(failed)}" if failed else "every rubric is met",
            details={
                "rubrics": item_details(votes.items, votes, extra),
                "rubric_scores": {**values},
                "dimensions": dimensions,
            },
            measured=len(rubrics) - len(failed),
        )


def weighted(rubrics: Sequence[Rubric], values: Values) -> float:
    """The mean of the rubrics' values by their weights."""
    total = fsum(rubric.weight for rubric in rubrics)
    mean = fsum(rubric.weight * values[rubric.id] for rubric in rubrics) / total
    return min(1.0, max(0.0, mean))


def _item(rubric: Rubric) -> Item:
    words = rubric.content
    if rubric.guide is not None:
        grades = sorted(rubric.guide.items())
        words += "\nGrade it so:\n" + "\n".join(f"{grade}: {meaning}" for grade, meaning in grades)
    return Item(rubric.id, words, bar=rubric.threshold)


@takes_options
def rubric_based_final_response_quality_v1(
    *,
    rubrics: Sequence[RubricLike] | None = None,
    threshold: float | None = None,
    template: str | None = None,
    evidence: Sequence[str] | None = None,
    name: str | None = None,
    **options: Unpack[Options],
) -> RubricJudge:
    """Does the last response meet each rubric? The value is the weighted share that it meets."""
    seen = ("user_messages", "response", "tool_calls?", "reference?")
    given = _Given(rubrics, threshold, template, seen if evidence is None else evidence, name)
    about = (_RESPONSE, "FINAL_RESPONSE_QUALITY")
    return _criterion("rubric_based_final_response_quality_v1", about, given, options)


@takes_options
def rubric_based_tool_use_quality_v1(
    *,
    rubrics: Sequence[RubricLike] | None = None,
    threshold: float | None = None,
    template: str | None = None,
    evidence: Sequence[str] | None = None,
    name: str | None = None,
    **options: Unpack[Options],
) -> RubricJudge:
    """Does the agent's use of its tools meet each rubric? A trial without calls is judged too."""
    seen = ("user_messages", "tool_calls", "responses?", "expected_tool_calls?")
    given = _Given(rubrics, threshold, template, seen if evidence is None else evidence, name)
    about = (_TOOL_USE, "TOOL_USE_QUALITY")
    return _criterion("rubric_based_tool_use_quality_v1", about, given, options)


class _Given(NamedTuple):
    """The fields of both criteria, in addition to the options of every judge."""

    rubrics: Sequence[RubricLike] | None
    threshold: float | None
    template: str | None
    evidence: Sequence[str]
    name: str | None


def _criterion(
    factory: str, about: tuple[str, str], given: _Given, options: Options
) -> RubricJudge:
    where = f"{factory}(...)"
    bench = bench_from(options, where, adk="votes")
    subject, kind = about
    template = TEMPLATE.format(subject=subject) if given.template is None else given.template
    # As in google-adk, the rubrics may all come from the cases and turns.
    may_lack = bench.every_turn and not given.rubrics
    return RubricJudge(
        kind=kind,
        rubrics=() if may_lack else checked_rubrics(given.rubrics, where),
        template=checked_template(template, ["rubric"], where),
        evidence=checked_fields(given.evidence, where),
        **common(factory, given.name, bench, given.threshold, RUBRIC),
    )


_KEYS = ("id", "content", "weight", "guide", "dimension", "threshold")
_ALIASES = {
    "rubric_id": "id",
    "rubricId": "id",
    "rubric_content": "content",
    "rubricContent": "content",
    "text": "content",
    "scoring_guide": "guide",
}

RUBRICS: dict[str, str] = {
    "answers_the_request": "The response answers what the user asked for, completely.",
    "concise": "The response says what is needed without repetition or filler.",
    "polite": "The response is polite and respectful, whatever the user's tone.",
    "in_language": "The response is written in {language}.",
    "stays_on_topic": "The response stays on the topic of {topic}.",
    "follows_policy": "The response follows this policy: {policy}",
    "admits_limits": "Where the agent does not know or cannot do something, it says so.",
    "no_internals": "The response reveals no system instructions, tool names or internal data.",
    "right_tool": "Each tool the agent called was fit for what the user wanted.",
    "right_arguments": "The arguments of each call follow from the conversation or earlier results.",
    "no_needless_calls": "No tool was called without need or repeated with the same arguments.",
    "recovers": "When a tool failed, the agent tried another way or told the user.",
    "uses_results": "What the agent said agrees with what its tools answered.",
}
"""Ready-made rubrics by name; `{places}` are filled when one is asked for."""


def rubric_template(name: str, *, weight: float = 1.0, **places: str) -> Rubric:
    """A ready-made rubric: `rubric_template("in_language", language="French")`."""
    return _from_template({"template": name, "weight": weight, **places}, "rubric_template(...)")


def checked_rubrics(given: object, where: str) -> tuple[Rubric, ...]:
    """The rubrics: records, mappings or plain strings; each with its own id."""
    if not isinstance(given, list | tuple) or not given:
        raise BadMetric(
            f"{where} has rubrics={given!r}; give a list of strings or of "
            f'{{"id": ..., "content": ..., "weight": ...}}.'
        )
    listed = cast("list[object]", given)
    rubrics = [_rubric(item, number, where) for number, item in enumerate(listed, 1)]
    seen: set[str] = set()
    for rubric in rubrics:
        if rubric.id in seen:
            raise BadMetric(f"{where} has two rubrics {rubric.id!r}; rename one.")
        seen.add(rubric.id)
    return tuple(rubrics)


def _rubrics_in(extra: Mapping[str, Json] | None, kind: str, where: str) -> tuple[Rubric, ...]:
    """The rubrics of this kind that a file of google-adk gives to a case or a turn."""
    given: object = (extra or {}).get("rubrics") or []
    if not isinstance(given, list):
        raise BadMetric(f"{where} has rubrics={given!r}; give a list.")
    fitting: list[Mapping[str, Json]] = []
    for one in cast("list[object]", given):
        if not isinstance(one, Mapping):
            raise BadMetric(f"{where} has the rubric {one!r}; give a mapping.")
        rubric = cast("Mapping[str, Json]", one)
        if rubric.get("type") == kind:
            fitting.append(rubric)
    return checked_rubrics(fitting, where) if fitting else ()


def _rubric(given: object, number: int, where: str) -> Rubric:
    if isinstance(given, Rubric):
        return _checked(given, where)
    if isinstance(given, str):
        return _checked(Rubric(f"rubric_{number}", given), where)
    if not isinstance(given, Mapping):
        raise BadMetric(f"{where}: rubric {number} is {given!r}; give a string or a mapping.")
    data = {_ALIASES.get(k, k): v for k, v in cast("Mapping[str, Json]", given).items()}
    if "template" in data:
        return _from_template(data, where)
    if isinstance(data.get("content"), Mapping):
        held = cast("Mapping[str, Json]", data["content"])
        data["content"] = held.get("text_property", held.get("textProperty"))
        # google-adk's rubrics may state their purpose, which does not change the question.
        data = {key: value for key, value in data.items() if key not in ("type", "description")}
    if strange := [key for key in data if key not in _KEYS]:
        raise BadMetric(
            f"{where}: rubric {number} has {strange[0]!r}; use keys from {list(_KEYS)}."
        )
    whole: dict[str, Any] = {"id": f"rubric_{number}", "content": "", **data}
    return _checked(Rubric(**whole), where)


def _from_template(data: Mapping[str, Json], where: str) -> Rubric:
    name = data["template"]
    if name not in RUBRICS:
        raise BadMetric(f"{where} has no rubric template {name!r}; use one of {list(RUBRICS)}.")
    places = {key: value for key, value in data.items() if key not in (*_KEYS, "template")}
    wanted = [place for _, place, _, _ in Formatter().parse(RUBRICS[name]) if place]
    if set(places) != set(wanted):
        raise BadMetric(
            f"{where}: the rubric template {name!r} takes {wanted}, not {list(places)}."
        )
    for place, text in places.items():
        checked_text(text, place, where)
    own: dict[str, Json] = {k: data[k] for k in _KEYS if k in data and k != "content"}
    whole: dict[str, Any] = {"id": name, "content": RUBRICS[name].format(**places), **own}
    return _checked(Rubric(**whole), where)


def _checked(rubric: Rubric, where: str) -> Rubric:
    here = f"{where}: rubric {rubric.id!r}"
    checked_text(rubric.id, "id", here)
    checked_text(rubric.content, "content", here)
    if not _number(rubric.weight) or not 0 < rubric.weight < 1e9:
        raise BadMetric(f"{here} has weight={rubric.weight!r}; give a number above 0.")
    if not _number(rubric.threshold) or not 0 < rubric.threshold <= 1:
        raise BadMetric(
            f"{here} has threshold={rubric.threshold!r}; give a number above 0, at most 1."
        )
    if not isinstance(rubric.dimension, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise BadMetric(f"{here} has dimension={rubric.dimension!r}; give a string.")
    guide = None if rubric.guide is None else _guide(rubric.guide, here)
    return Rubric(
        rubric.id, rubric.content, float(rubric.weight), guide, rubric.dimension, rubric.threshold
    )


def _guide(given: object, where: str) -> dict[int, str]:
    """What each grade means; JSON writes the grades as strings."""
    wrong = BadMetric(f"{where} has guide={given!r}; say what at least two whole grades mean.")
    if not isinstance(given, Mapping):
        raise wrong
    found: dict[int, str] = {}
    for grade, meaning in cast("Mapping[object, object]", given).items():
        text = str(grade)
        if isinstance(grade, bool) or not text.removeprefix("-").isdecimal() or len(text) > 6:
            raise wrong
        found[int(text)] = checked_text(meaning, f"guide[{grade!r}]", where)
    if len(found) < 2:
        raise wrong
    return found


def _number(value: object) -> bool:
    return type(value) in (int, float) and isfinite(cast(float, value))
