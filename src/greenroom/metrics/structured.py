"""A last response that is data: JSON of an agreed form."""

import json
from collections.abc import Mapping
from typing import Any

from greenroom.cases.case import Case
from greenroom.cases.scores import Outcome, Score, Unmeasured
from greenroom.errors import BadMetric, BadValue
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.plain import Json, plain
from greenroom.ledger.records import record
from greenroom.metrics.builtin import BuiltIn, written
from greenroom.metrics.facts import spoken
from greenroom.metrics.response import quoted
from greenroom.metrics.schema import Schema, read_schema

_MOST_SHOWN = 5


class NotJson(ValueError):
    """A text that is no JSON document; the words say why."""


@record(kw_only=True, repr=False)
class JsonSchema(BuiltIn):
    """Reads the last response as JSON and holds it against a schema."""

    schema: Schema

    def measure(self, case: Case, ledger: Ledger, world: Any) -> Outcome:  # noqa: ARG002
        """1 if the whole response is JSON and fits."""
        said = spoken(ledger)
        if isinstance(said, Unmeasured):
            return said
        try:
            problems = self.schema.problems(parsed_json(said))
        except NotJson as error:
            problems = [f"the response {quoted(said)} is no JSON: {error}"]
        reason = "; ".join(problems[:_MOST_SHOWN]) or "the response fits the schema"
        if more := problems[_MOST_SHOWN:]:
            reason += f"; and {len(more)} more"
        return Score(
            float(not problems),
            not problems,
            name=self.name,
            reason=reason,
            evidence=[said],
            details={"problems": problems},
        )


def json_schema(
    schema: Mapping[str, Any] | bool | type[Any], *, name: str = "json_schema"
) -> JsonSchema:
    """The last response is JSON that fits a JSON Schema, or the schema of a pydantic model.

    The whole response counts: words or a code fence around the JSON are a failure. The common
    keywords of draft 2020-12 are known; a schema with any other is refused.
    """
    described = getattr(schema, "model_json_schema", None)
    if described is not None:
        schema = described()
    elif isinstance(schema, type):
        raise BadMetric(f"json_schema({schema.__name__}): this class is no pydantic model.")
    shown = written("json_schema", schema, name=name)
    return JsonSchema(schema=read_schema(schema), **shown)


def parsed_json(text: str) -> Json:
    """The JSON document that the whole text is, or NotJson."""
    try:
        found = json.loads(text, object_pairs_hook=_object, parse_constant=_no_constant)
        return plain(found, "the response")
    except (ValueError, RecursionError, BadValue) as error:
        raise NotJson(str(error)) from error


def _object(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise NotJson(f"the name {twice!r} is given twice")
    return found


def _no_constant(word: str) -> Json:
    raise NotJson(f"{word} is no number of JSON")
