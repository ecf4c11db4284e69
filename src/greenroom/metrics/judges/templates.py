"""Instructions with named places, so that an author can put the judge's task in other words.

The notice about the evidence and the form of the answer are not part of a template: they are added
to whatever it says, so that no template can lose them.
"""

from collections.abc import Collection
from string import Formatter

from greenroom.errors import BadMetric
from greenroom.metrics.judges.evidence import FIELDS


def checked_template(template: object, fields: Collection[str], where: str) -> str:
    """The template, if it has each of these places, and no other."""
    if not isinstance(template, str) or not template.strip():
        raise BadMetric(f"{where} has template={template!r}; give a text.")
    places = _places(template, where)
    for place in places:
        if place in FIELDS:
            raise BadMetric(
                f"{where} has {{{place}}} in its template. Evidence never stands among the "
                f"instructions; write `{place}` without braces, the judge finds it in the record."
            )
        if place not in fields:
            known = ", ".join(f"{{{field}}}" for field in fields) or "none"
            raise BadMetric(
                f"{where} has the unknown place {{{place}}} in its template; known: {known}. "
                f"Write {{{{ and }}}} for braces that are meant."
            )
    if missing := [field for field in fields if field not in places]:
        raise BadMetric(f"{where} has a template without {{{missing[0]}}}; say where it goes.")
    return template


def _places(template: str, where: str) -> set[str]:
    try:
        parts = list(Formatter().parse(template))
    except ValueError as error:
        raise BadMetric(
            f"{where} has a template that cannot be read: {error}. Write {{{{ and }}}} for braces."
        ) from error
    for _, place, spec, conversion in parts:
        if place is not None and (spec or conversion or not place.isidentifier()):
            raise BadMetric(
                f"{where} has the place {{{place}}} in its template; a place is a bare name."
            )
    return {place for _, place, _, _ in parts if place is not None}
