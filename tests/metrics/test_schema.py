"""`json_schema` reads the last response as JSON and holds it against a JSON Schema."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import BaseModel, Field

from greenroom import score
from greenroom.cases import Case, Unmeasured
from greenroom.errors import BadMetric
from greenroom.metrics import json_schema
from greenroom.metrics.structured import checked_schema, schema_problems
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


def problems(schema: Any, value: Any) -> list[str]:
    return schema_problems(checked_schema(schema), value)


async def test_a_response_that_fits_passes():
    found = await outcome(REFUND, ' {"order": 7, "items": ["AB-1"], "reason": "late"}\n')
    assert (found.value, found.passed, found.details) == (1.0, True, {"problems": []})


async def test_every_problem_is_named_with_its_place():
    found = await outcome(
        REFUND, '{"order": 0, "reason": "bored", "items": ["AB-1", "x"], "b c": 1}'
    )
    assert (found.value, found.passed) == (0.0, False)
    assert found.details["problems"] == [
        "$.order: 0 is less than the minimum of 1",
        '$.reason: "bored" is not one of "late" or "broken"',
        '$.items[1]: "x" does not match "^[A-Z]{2}-\\d+$"',
        "$: Additional properties are not allowed ('b c' was unexpected)",
    ]


@pytest.mark.parametrize(
    "said, why",
    [
        ("Here you are: {}", "Expecting value"),
        ("```json\n{}\n```", "Expecting value"),
        ('{"order": 7} {}', "Extra data"),
        ('{"order": NaN}', "NaN is not a JSON number"),
        ('{"order": 1e999}', "inf"),
        ('{"order": 1, "order": 2}', "'order' is given twice"),
        ("[" * 200 + "]" * 200, "nested deeper"),
        ('"\\ud800"', "surrogates not allowed"),
        ("[" * 100_000, "recursion"),
    ],
)
async def test_a_response_that_is_no_json_fails_and_says_why(said, why):
    found = await outcome(True, said)
    assert (found.value, found.passed) == (0.0, False)
    assert "is not JSON" in found.reason
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
    assert [line.split(": ")[0] for line in found.details["problems"]] == ["$.number", "$.to"]


def test_a_class_that_is_no_model_is_refused():
    with pytest.raises(BadMetric, match="this class is not a pydantic model"):
        json_schema(dict)


@pytest.mark.parametrize(
    "schema, words",
    [
        ({"typo": 1}, "at #: unknown keyword 'typo'"),
        ({"properties": {"a": {"typo": 1}}}, "at #/properties/a: unknown keyword 'typo'"),
        ({"$defs": {"x": {"minContians": 1}}}, "at #/\\$defs/x: unknown keyword 'minContians'"),
        ({"anyOf": [True, {"items": {"unevaluatedItem": False}}]}, "at #/anyOf/1/items: unknown"),
        ({"dependencies": {"a": ["b"]}}, "at #/dependencies: False schema"),
        ({"$recursiveRef": "#"}, "at #/\\$recursiveRef: False schema"),
        ({"type": "text"}, 'at #/type: "text" is not valid'),
        ({"type": []}, "at #/type: "),
        ({"enum": "ab"}, 'at #/enum: "ab" is not of type "array"'),
        ({"required": "a"}, "at #/required: "),
        ({"pattern": "("}, 'at #/pattern: "\\(" is not a "regex"'),
        ({"patternProperties": {"(": True}}, '"\\(" is not a "regex"'),
        ({"minItems": -1}, "at #/minItems: -1 is less than the minimum of 0"),
        ({"maxLength": 1.5}, "at #/maxLength: 1.5 "),
        ({"minimum": "1"}, 'at #/minimum: "1" is not of type "number"'),
        ({"multipleOf": 0}, "at #/multipleOf: 0 "),
        ({"anyOf": []}, "at #/anyOf: \\[\\] has less than 1 item"),
        ({"items": [True]}, "at #/items: \\[true\\] is not"),
        ({"properties": []}, "at #/properties: \\[\\] is not"),
        ({"$ref": "https://example.com/schema"}, "Retrieval is disabled"),
        ({"$ref": "file:///etc/hosts"}, "Retrieval is disabled"),
        ({"$ref": "#/$defs/none"}, "'/\\$defs/none' does not exist"),
        ({"$ref": "#/enum", "enum": [1]}, "at #/enum: \\[1\\] is not"),
        (
            {"$schema": "http://json-schema.org/draft-04/schema#"},
            "at #/\\$schema: .* is not one of",
        ),
        ({"const": float("nan")}, "the schema"),
        ({"const": object()}, "the schema"),
        ({"const": "\ud800"}, "hex escape"),
        ("string", "'string' is not a schema"),
        (7, "7 is not a schema"),
    ],
)
def test_a_schema_that_could_not_be_checked_is_refused_with_the_place(schema, words):
    with pytest.raises(BadMetric, match=words):
        json_schema(schema)


def test_a_tree_may_refer_to_itself():
    tree = {
        "type": "object",
        "properties": {"kids": {"items": {"$ref": "#"}}},
        "required": ["kids"],
    }
    assert problems(tree, {"kids": [{"kids": []}, {"kids": [{"kids": []}]}]}) == []
    assert problems(tree, {"kids": [{"kids": [{}]}]}) == [
        '$.kids[0].kids[0]: "kids" is a required property'
    ]


def test_names_in_references_are_read_as_json_pointers():
    schema = {"$defs": {"a/b c~": {"type": "null"}}, "items": {"$ref": "#/$defs/a~1b%20c~0"}}
    assert problems(schema, [None]) == []
    assert problems(schema, [1]) == ['$[0]: 1 is not of type "null"']


def test_decimals_are_multiples_as_they_are_written():
    assert problems({"multipleOf": 0.1}, 0.3) == []
    assert problems({"multipleOf": 0.1}, 0.35) != []


def test_a_problem_with_a_part_of_the_value_names_the_place_in_the_schema():
    assert problems({"propertyNames": {"maxLength": 1}}, {"ab": 1}) == [
        '$: "ab" is longer than 1 character (schema: #/propertyNames/maxLength)'
    ]
    assert problems({"items": False}, [1]) == [
        "$[0]: False schema does not allow 1 (schema: #/items)"
    ]


def test_a_long_value_is_shortened_and_the_problem_is_still_said():
    (problem,) = problems({"type": "string"}, list(range(1000)))
    assert len(problem) < 220
    assert problem.startswith("$: [0,1,2")
    assert problem.endswith('is not of type "string"')


def test_formats_and_content_words_are_annotations():
    assert problems({"format": "date", "contentEncoding": "base64"}, "%") == []


def test_a_pattern_that_would_be_searched_for_ages_is_soon_decided():
    assert problems({"pattern": "^(a+)+$"}, "a" * 5000 + "b") != []


async def test_a_pattern_that_is_given_up_measures_nothing():
    found = await outcome({"pattern": "(x+x+)+(?!z)y(?<=q)"}, f'"{"x" * 40}"')
    assert isinstance(found, Unmeasured)
    assert "backtracking" in found.why


def test_a_schema_that_only_leads_back_to_itself_ends():
    assert problems({"$ref": "#"}, 1) == []


# Everything else: no standard schema is refused, and the verdict is the reference implementation's.

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


@given(schemas, values, st.sampled_from([{"type": "string"}, {"minItems": 1}, True]))
def test_the_verdict_is_that_of_the_jsonschema_package(schema, value, shared):
    whole = {
        "$defs": {"s": shared},
        "anyOf": [schema, {"items": {"$ref": "#/$defs/s"}, "maxItems": 1}],
    }
    for one in (schema, whole):
        Draft202012Validator.check_schema(one)
        wanted = Draft202012Validator(one).is_valid(value)
        assert (problems(one, json.loads(json.dumps(value))) == []) is wanted
