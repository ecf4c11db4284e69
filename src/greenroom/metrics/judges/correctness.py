"""Is the last response right, and is it good? Two criteria, one question each."""

from collections.abc import Sequence
from typing import Unpack, cast

from greenroom.errors import BadMetric
from greenroom.metrics.judges.evidence import checked_fields
from greenroom.metrics.judges.forms import Boolean, Grade, VerdictForm
from greenroom.metrics.judges.judged import common
from greenroom.metrics.judges.options import (
    JUDGE,
    VOTES,
    Adk,
    Options,
    bench_from,
    filled_template,
    takes_options,
)
from greenroom.metrics.judges.prompted import Judge

_FACTS = """\
You check the facts in the response of an AI agent.

Say true if every statement of fact in it is right, measured by what the record gives (a reference, \
what the tools answered, the context), and by well-established knowledge where the record is silent. \
Say false if one of them is wrong. Missing facts, opinions and questions do not count against it."""

_QUALITY = """\
You grade the response of an AI agent to its user, by how much it helps and how right it is.

5: right, complete and helpful
4: right, with a small gap
3: partly right, or half of what was asked for
2: mostly wrong or of little help
1: wrong, harmful or beside the point

Where there is a reference, it is known to be right."""

_SCALE = Grade(1, 5)
_SEEN = ("user_messages", "response", "reference?", "tool_calls?", "context?")


@takes_options
def factual_accuracy(
    *,
    threshold: float | None = None,
    template: str | None = None,
    evidence: Sequence[str] | None = None,
    name: str | None = None,
    **options: Unpack[Options],
) -> Judge:
    """Is every fact in the last response right? The share of votes that say so."""
    given = (threshold, template, _SEEN if evidence is None else evidence, name)
    return _criterion("factual_accuracy", _FACTS, Boolean("is_correct"), given, options)


@takes_options
def response_evaluation_score(
    *,
    threshold: float | None = None,
    template: str | None = None,
    evidence: Sequence[str] | None = None,
    name: str | None = None,
    **options: Unpack[Options],
) -> Judge:
    """How good is the last response? Graded from 1 to 5; the value is the grade on the scale 0 to 1."""
    if type(threshold) in (int, float) and 1 < cast(float, threshold) <= _SCALE.high:
        raise BadMetric(
            f"response_evaluation_score(...) has threshold={threshold!r}; its scale is 0 to 1. "
            f"A grade of {threshold} out of 1 to 5 is {_SCALE.value(cast(float, threshold)):g} there."
        )
    given = (threshold, template, _SEEN if evidence is None else evidence, name)
    return _criterion("response_evaluation_score", _QUALITY, _SCALE, given, options, adk="turns")


def _criterion(
    factory: str,
    words: str,
    form: VerdictForm,
    given: tuple[float | None, str | None, Sequence[str], str | None],
    options: Options,
    adk: Adk | None = None,
) -> Judge:
    threshold, template, evidence, name = given
    where = f"{factory}(...)"
    bench = bench_from(options, where, samples=VOTES, adk=adk)
    return Judge(
        words=filled_template(template, words, where),
        form=form,
        evidence=checked_fields(evidence, where),
        **common(factory, name, bench, threshold, JUDGE),
    )
