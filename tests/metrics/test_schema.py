"""`json_schema` reads the last response as JSON and holds it against a JSON Schema."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import BaseModel, Field

from greenroom import score
from greenroom.cases import Case, Unmeasured
from greenroom.errors import BadMetric
from greenroom.metrics import json_schema
from greenroom.metrics.schema import read_schema
from metrics.runs import agent, run, user

REFUND = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "Refund",
    "type": "object",
    "properties": {
        "order": {"type": "integer", "minimum": 1},
        "reason": {"enum": ["late", "broken"]},
        "items": {"type": "array", "items": {"$ref": "#/$defs/item"}, "minItems": 1},
    },
    "required": ["order", "items"],
    "additionalProperties": False,
    "$defs": {"item": {"type": "string", "pattern": "^[A-Z]{2}-\\d+$"}},
}


async def outcome(schema: Any, said: str) -> Any:
    metric = json_schema(schema)
    return (await score(run(user("Hi"), agent(said)), [metric], Case("c")))[metric.name]


async def test_a_response_that_fits_passes():
    found = await outcome(REFUND, ' {"order": 7, "items": ["AB-1"], "reason": "late"}\n')
    assert (found.value, found.passed, found.details) == (1.0, True, {"problems": []})


async def test_every_problem_is_named_with_its_place():
    found = await outcome(
        REFUND, '{"order": 0, "reason": "bored", "items": ["AB-1", "x"], "b c": 1}'
    )
    assert (found.value, found.passed) == (0.0, False)
    assert found.details["problems"] == [
        "$.order is 0; wanted at least 1",
        "$.reason is 'bored'; wanted one of ['late', 'broken']",
        "$.items[1] is 'x'; wanted a match of '^[A-Z]{2}-\\\\d+$'",
        "$['b c'] should not be there",
    ]


@pytest.mark.parametrize(
    "said, why",
    [
        ("Here you are: {}", "Expecting value"),
        ("```json\n{}\n```", "Expecting value"),
        ('{"order": 7} {}', "Extra data"),
        ('{"order": NaN}', "NaN is no number of JSON"),
        ('{"order": 1e999}', "inf"),
        ('{"order": 1, "order": 2}', "'order' is given twice"),
        ("[" * 200 + "]" * 200, "nested deeper"),
        ("[" * 100_000, "recursion"),
    ],
)
async def test_a_response_that_is_no_json_fails_and_says_why(said, why):
    found = await outcome(True, said)
    assert (found.value, found.passed) == (0.0, False)
    assert "is no JSON" in found.reason
    assert why in found.reason


async def test_without_a_response_nothing_is_measured():
    assert isinstance(await outcome(REFUND, " "), Unmeasured)


class Address(BaseModel):
    city: str = Field(min_length=1)
    lines: tuple[str, int]


class Order(BaseModel):
    """What the agent should answer."""

    number: int = Field(gt=0, multiple_of=2)
    to: Address | None = None
    prices: dict[str, float] = {}


async def test_a_pydantic_model_stands_for_its_schema():
    good = Order(number=4, to=Address(city="Rome", lines=("a", 1)), prices={"a": 1.5})
    assert (await outcome(Order, good.model_dump_json())).passed
    found = await outcome(Order, '{"number": 3, "to": {"city": "", "lines": ["a", "b"]}}')
    assert [line.split(" is ")[0] for line in found.details["problems"]] == ["$.number", "$.to"]


def test_a_class_that_is_no_model_is_refused():
    with pytest.raises(BadMetric, match="this class is no pydantic model"):
        json_schema(dict)


@pytest.mark.parametrize(
    "schema, words",
    [
        ({"if": {"type": "string"}}, "at #: the keyword 'if' is not known here"),
        ({"properties": {"a": {"typo": 1}}}, "at #/properties/a: the keyword 'typo'"),
        ({"$defs": {"x": {"minContains": 1}}}, "at #/\\$defs/x: the keyword 'minContains'"),
        ({"anyOf": [True, {"unevaluatedItems": False}]}, "at #/anyOf/1"),
        ({"type": "text"}, "'type' has 'text'; give one or several of array"),
        ({"type": []}, "'type' has"),
        ({"enum": "ab"}, "'enum' has 'ab'"),
        ({"required": "a"}, "'required' has 'a'"),
        ({"pattern": "("}, "'pattern' has '\\('; give a regular expression"),
        ({"patternProperties": {"(": True}}, "'\\(' is no regular expression"),
        ({"minItems": -1}, "'minItems' has -1; give a whole number from 0"),
        ({"maxLength": 1.5}, "'maxLength' has 1.5"),
        ({"minimum": "1"}, "'minimum' has '1'; give a number"),
        ({"multipleOf": 0}, "'multipleOf' has 0"),
        ({"anyOf": []}, "'anyOf' has \\[\\]"),
        ({"items": [True]}, "\\[True\\] is no schema"),
        ({"properties": []}, "'properties' has \\[\\]; give schemas by name"),
        ({"$ref": "https://example.com/schema"}, "a local reference"),
        ({"$ref": "#/$defs/none"}, "no schema is there"),
        ({"$ref": "#/enum", "enum": [1]}, "no schema is there"),
        ({"$ref": "#/default", "default": {"typo": 1}}, "no schema is there"),
        ({"$ref": "#"}, "leads back to itself"),
        ({"$defs": {"a": {"allOf": [{"$ref": "#/$defs/a"}]}}}, "leads back to itself"),
        ({"$defs": {"a": {"not": {"$ref": "#/$defs/b"}}, "b": {"$ref": "#/$defs/a"}}}, "itself"),
        ({"$schema": "http://json-schema.org/draft-04/schema#"}, "or leave it out"),
        ({"const": float("nan")}, "the schema"),
        ({"const": object()}, "the schema"),
        ("string", "'string' is no schema"),
        (7, "7 is no schema"),
    ],
)
def test_a_schema_that_could_not_be_checked_is_refused_with_the_place(schema, words):
    with pytest.raises(BadMetric, match=words):
        json_schema(schema)


def test_a_tree_may_refer_to_itself():
    tree = read_schema(
        {"type": "object", "properties": {"kids": {"items": {"$ref": "#"}}}, "required": ["kids"]}
    )
    assert tree.problems({"kids": [{"kids": []}, {"kids": [{"kids": []}]}]}) == []
    assert tree.problems({"kids": [{"kids": [{}]}]}) == ["$.kids[0].kids[0] lacks 'kids'"]


def test_names_in_references_are_read_as_json_pointers():
    schema = {"$defs": {"a/b c~": {"type": "null"}}, "items": {"$ref": "#/$defs/a~1b%20c~0"}}
    assert read_schema(schema).problems([None]) == []
    assert read_schema(schema).problems([1]) == ["$[0] is 1; wanted type null"]


def test_decimals_are_multiples_as_they_are_written():
    assert read_schema({"multipleOf": 0.1}).problems(0.3) == []
    assert read_schema({"multipleOf": 0.1}).problems(0.35) != []


# Everything else: the same verdict as the reference implementation.

leaves = (
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from([0.5, 1.0, -2.0, "", "a", "ab", "b1"])
)
values = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["a", "b", "c1"]), inner)
    ),
    max_leaves=8,
)
types = st.sampled_from(["object", "array", "string", "boolean", "null", "number", "integer"])
counts = st.integers(0, 3)
numbers = st.sampled_from([-2, 0, 1, 1.0, 2.5])
names = st.sampled_from(["a", "b", "c1"])
patterns = st.sampled_from(["^a", "b", "\\d", "^$"])


def objects(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    several = st.lists(inner, min_size=1, max_size=3)
    return st.fixed_dictionaries(
        {},
        optional={
            "type": types | st.lists(types, min_size=1, max_size=3, unique=True),
            "enum": st.lists(values, min_size=1, max_size=4),
            "const": values,
            **dict.fromkeys(
                ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), numbers
            ),
            "multipleOf": st.sampled_from([1, 2, 0.5]),
            **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems"), counts),
            **dict.fromkeys(("minProperties", "maxProperties"), counts),
            "uniqueItems": st.booleans(),
            "pattern": patterns,
            "required": st.lists(names, max_size=2, unique=True),
            "properties": st.dictionaries(names, inner, max_size=2),
            "patternProperties": st.dictionaries(patterns, inner, max_size=1),
            "additionalProperties": inner,
            "propertyNames": inner,
            "items": inner,
            "prefixItems": several,
            "anyOf": several,
            "oneOf": several,
            "allOf": several,
            "not": inner,
            "title": st.just("x"),
            "format": st.just("date"),
        },
    )


# A few keywords at a time: with all of them nearly nothing would fit.
few = objects(st.booleans() | st.builds(lambda kind: {"type": kind}, types)).flatmap(
    lambda schema: (
        st.sets(st.sampled_from(sorted(schema)), max_size=3).map(
            lambda kept: {word: schema[word] for word in kept}
        )
        if schema
        else st.just(schema)
    )
)
schemas = st.booleans() | few | objects(few)


@settings(max_examples=400)
@given(schemas, values, st.sampled_from([{"type": "string"}, {"minItems": 1}, True]))
def test_the_verdict_is_that_of_the_jsonschema_package(schema, value, shared):
    whole = {
        "$defs": {"s": shared},
        "anyOf": [schema, {"items": {"$ref": "#/$defs/s"}, "maxItems": 1}],
    }
    for one in (schema, whole):
        Draft202012Validator.check_schema(one)
        wanted = Draft202012Validator(one).is_valid(value)
        assert (read_schema(one).problems(json.loads(json.dumps(value))) == []) is wanted
