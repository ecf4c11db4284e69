"""A last response that is data: JSON that fits a JSON Schema (draft 2020-12)."""

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar

from greenroom.cases.case import Case
from greenroom.cases.scores import Outcome, Score, Unmeasured
from greenroom.errors import BadMetric, BadValue
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.plain import Json, is_object, plain
from greenroom.metrics.builtin import BuiltIn, written
from greenroom.metrics.facts import spoken
from greenroom.metrics.needs import WORDS, Needs
from greenroom.metrics.response import quoted
from greenroom.world.world import World

if TYPE_CHECKING:
    from jsonschema_rs import Validator

_MOST_SHOWN = 5
_DRAFT = "https://json-schema.org/draft/2020-12/schema"

# The standard ignores unknown keywords. Here they are refused, because a misspelt check that is
# skipped looks like a check that passed; so are the words of older drafts. `discriminator` is an
# annotation that pydantic writes.
_STRICT_SCHEMA = {
    "$schema": _DRAFT,
    "$id": "urn:greenroom:strict-schema",
    "$dynamicAnchor": "meta",
    "$ref": _DRAFT,
    "properties": {
        "$schema": {"enum": [_DRAFT, f"{_DRAFT}#"]},
        "discriminator": True,
        **dict.fromkeys(("dependencies", "$recursiveRef", "$recursiveAnchor"), False),
    },
    "unevaluatedProperties": False,
}


class NotJson(ValueError):
    """A string that is not a JSON document; the message says why."""


class JsonSchema(BuiltIn, frozen=True, kw_only=True):
    """Reads the last response as JSON and checks it against a schema."""

    needs: ClassVar[Needs] = WORDS
    schema: Json

    def measure(self, case: Case, ledger: Ledger, world: World) -> Outcome:
        """1 if the whole response is JSON and fits."""
        said = spoken(ledger)
        if isinstance(said, Unmeasured):
            return said
        try:
            problems = schema_problems(self.schema, parsed_json(said))
        except NotJson as error:
            problems = [f"the response {quoted(said)} is not JSON: {error}"]
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
    schema: Mapping[str, Json] | bool | type[object], *, name: str = "json_schema"
) -> JsonSchema:
    """The last response is JSON that fits a JSON Schema, or the schema of a pydantic model.

    The whole response counts: words or a code fence around the JSON are a failure. The schema is
    one of draft 2020-12; unknown keywords and references to other documents are refused.
    """
    described = getattr(schema, "model_json_schema", None)
    if described is not None:
        schema = described()
    elif isinstance(schema, type):
        raise BadMetric(f"json_schema({schema.__name__}): this class is not a pydantic model.")
    shown = written("json_schema", schema, name=name)
    return JsonSchema(schema=checked_schema(schema), **shown)


def checked_schema(schema: object) -> Json:
    """A copy of a JSON Schema, or BadMetric with the path of what is wrong in it."""
    from jsonschema_rs import Draft202012Validator, ValidationError, ValidationErrorKind

    try:
        copy = plain(schema, "the schema")
        if not isinstance(copy, bool) and not is_object(copy):
            raise BadMetric(
                f"json_schema(...): {copy!r} is not a schema; give an object or a bool."
            )
        strict = Draft202012Validator(_STRICT_SCHEMA, offline=True)
        # A schema inside a schema makes the outer one wrong as well: the innermost says why.
        if wrong := sorted(strict.iter_errors(copy), key=lambda error: -len(error.instance_path)):
            raise wrong[0]
        _validator(json.dumps(copy))
    except ValidationError as error:
        where = "/".join(("#", *map(str, error.instance_path)))
        problem = _shortened(error.message)
        if isinstance(error.kind, ValidationErrorKind.UnevaluatedProperties):
            problem = f"unknown keyword {', '.join(map(repr, error.kind.unexpected))}"
        raise BadMetric(f"json_schema(...), at {where}: {problem}.") from error
    except (BadValue, ValueError) as error:
        raise BadMetric(f"json_schema(...): {error}") from error
    return copy


def schema_problems(schema: Json, value: Json) -> list[str]:
    """What is wrong with a JSON value, each problem with its path; nothing if the value fits."""
    from jsonschema_rs import ValidationErrorKind as Kind

    found: list[str] = []
    for error in _validator(json.dumps(schema)).iter_errors(value):
        if isinstance(error.kind, Kind.BacktrackLimitExceeded | Kind.RegexEngineFailure):
            raise error  # the pattern was given up: neither a match nor a mismatch was found
        steps = (f".{s}" if str(s).isidentifier() else f"[{s!r}]" for s in error.instance_path)
        problem = f"${''.join(steps)}: {_shortened(error.message)}"
        if error.kind.name not in error.schema_path[-1:]:
            # The message is about a part, such as a name of `propertyNames`, as if it were the value.
            problem += f" (schema: {'/'.join(('#', *map(str, error.schema_path)))})"
        found.append(problem)
    return found


@lru_cache(maxsize=64)
def _validator(schema: str) -> "Validator":
    from jsonschema_rs import Draft202012Validator

    return Draft202012Validator(schema, offline=True, validate_formats=False)


def _shortened(message: str) -> str:
    # The value comes first in most messages, and what is wrong with it last.
    return message if len(message) <= 200 else f"{message[:80]} … {message[-119:]}"


def parsed_json(text: str) -> Json:
    """The JSON document in the text, which must hold nothing else; else NotJson."""
    try:
        found = json.loads(text, object_pairs_hook=_object, parse_constant=_no_constant)
        json.dumps(found, ensure_ascii=False).encode()  # refuses half a surrogate pair
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
    raise NotJson(f"{word} is not a JSON number")
