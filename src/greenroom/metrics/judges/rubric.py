"""One rubric, as an author writes it in Python or in a file, and ready-made ones to begin with."""

from collections.abc import Mapping
from math import isfinite
from string import Formatter
from typing import Any, cast

from greenroom.errors import BadMetric
from greenroom.ledger.records import record
from greenroom.metrics.judges.options import checked_text

_KEYS = ("id", "content", "weight", "guide", "dimension", "threshold")
_OTHER_WORDS = {
    "rubric_id": "id",
    "rubricId": "id",
    "rubric_content": "content",
    "rubricContent": "content",
    "text": "content",
    "scoring_guide": "guide",
}


@record
class Rubric:
    """Something a run should meet.

    With a `guide` (what each grade means) it is graded on that scale, else it is yes or no. It is
    met at `threshold`, on the scale from 0 to 1. Rubrics of one `dimension` are also averaged apart.
    """

    id: str
    content: str
    weight: float = 1.0
    guide: Mapping[int, str] | None = None
    dimension: str = ""
    threshold: float = 0.5


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
    """The rubrics: records, mappings or bare texts; each with an id of its own."""
    if not isinstance(given, list | tuple) or not given:
        raise BadMetric(
            f"{where} has rubrics={given!r}; give a list of texts or of "
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


def rubrics_in(extra: Mapping[str, Any] | None, kind: str, where: str) -> tuple[Rubric, ...]:
    """The rubrics of this kind that a file of google-adk gives to a case or a turn."""
    given: Any = (extra or {}).get("rubrics") or []
    if not isinstance(given, list):
        raise BadMetric(f"{where} has rubrics={given!r}; give a list.")
    fit: list[Any] = []
    for one in cast("list[Any]", given):
        if not isinstance(one, Mapping):
            raise BadMetric(f"{where} has the rubric {one!r}; give a mapping.")
        if cast("Mapping[str, Any]", one).get("type") == kind:
            fit.append(one)
    return checked_rubrics(fit, where) if fit else ()


def _rubric(given: object, number: int, where: str) -> Rubric:
    if isinstance(given, Rubric):
        return _checked(given, where)
    if isinstance(given, str):
        return _checked(Rubric(f"rubric_{number}", given), where)
    if not isinstance(given, Mapping):
        raise BadMetric(f"{where}: rubric {number} is {given!r}; give a text or a mapping.")
    data = {_OTHER_WORDS.get(k, k): v for k, v in cast("Mapping[str, Any]", given).items()}
    if "template" in data:
        return _from_template(data, where)
    if isinstance(data.get("content"), Mapping):
        held = cast("Mapping[str, Any]", data["content"])
        data["content"] = held.get("text_property", held.get("textProperty"))
        # google-adk's rubrics may say what they are for, which does not change the question.
        data = {key: value for key, value in data.items() if key not in ("type", "description")}
    if strange := [key for key in data if key not in _KEYS]:
        raise BadMetric(f"{where}: rubric {number} has {strange[0]!r}; known are {list(_KEYS)}.")
    whole: dict[str, Any] = {"id": f"rubric_{number}", "content": "", **data}
    return _checked(Rubric(**whole), where)


def _from_template(data: Mapping[str, Any], where: str) -> Rubric:
    name = data["template"]
    if name not in RUBRICS:
        raise BadMetric(f"{where} has no rubric template {name!r}; known are {list(RUBRICS)}.")
    places = {key: value for key, value in data.items() if key not in (*_KEYS, "template")}
    wanted = [place for _, place, _, _ in Formatter().parse(RUBRICS[name]) if place]
    if set(places) != set(wanted):
        raise BadMetric(
            f"{where}: the rubric template {name!r} takes {wanted}, not {list(places)}."
        )
    for place, text in places.items():
        checked_text(text, place, where)
    own: dict[str, Any] = {k: data[k] for k in _KEYS if k in data and k != "content"}
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
            f"{here} has threshold={rubric.threshold!r}; its scale is 0 to 1, and it is above 0."
        )
    if not isinstance(rubric.dimension, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise BadMetric(f"{here} has dimension={rubric.dimension!r}; give a text.")
    guide = None if rubric.guide is None else _guide(rubric.guide, here)
    return Rubric(
        rubric.id, rubric.content, float(rubric.weight), guide, rubric.dimension, rubric.threshold
    )


def _guide(given: object, where: str) -> dict[int, str]:
    """What each grade means; JSON writes the grades as texts."""
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
