"""A judge's answer is exactly one JSON object of the agreed form, or it is none."""

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.metrics.verdicts import NotAnAnswer, Scale, Verdict, parse_verdict

YES = {"reasoning": "It was polite.", "verdict": True}
NONSENSE = [
    "",
    "yes",
    "true",
    "null",
    "[]",
    '[{"reasoning": "x", "verdict": true}]',
    '"verdict: true"',
    "{}",
    '{"verdict": true}',
    '{"reasoning": "x"}',
    '{"reasoning": "x", "verdict": "true"}',
    '{"reasoning": "x", "verdict": 1}',
    '{"reasoning": "x", "verdict": null}',
    '{"reasoning": "x", "verdict": NaN}',
    '{"reasoning": null, "verdict": true}',
    '{"reasoning": ["x"], "verdict": true}',
    '{"reasoning": "x", "verdict": true, "confidence": 1}',
    '{"reasoning": "x", "verdict": false, "verdict": true}',
    '{"reasoning": "x", "reasoning": "y", "verdict": true}',
    '{"reasoning": "x", "Verdict": true}',
    '{"reasoning": "x", "verdict": true} Hope this helps!',
    'Sure: {"reasoning": "x", "verdict": true}',
    '```json\n{"reasoning": "x", "verdict": true}\n```',
    '{"reasoning": "x", "verdict": true}{"reasoning": "x", "verdict": true}',
    '{"reasoning": "x", "verdict": true',
    "{'reasoning': 'x', 'verdict': True}",
    '{"reasoning": "\\ud800", "verdict": true}',
    '{"reasoning": "x\n", "verdict": true}',
    "[" * 100_000,
    '{"reasoning": "x", "score": 7}',
]


@pytest.mark.parametrize("answer", NONSENSE)
def test_nonsense_is_not_an_answer(answer):
    with pytest.raises(NotAnAnswer):
        parse_verdict(answer, "boolean")


@pytest.mark.parametrize(
    "given", ["-1", "11", "7.0", "7.5", '"7"', "true", "null", "NaN", "Infinity", "1e1", "[7]", "7" * 5000]
)  # fmt: skip
def test_a_grade_is_a_whole_number_from_0_to_10(given):
    with pytest.raises(NotAnAnswer):
        parse_verdict(f'{{"reasoning": "x", "score": {given}}}', "0-10")


SCALES: st.SearchStrategy[Scale] = st.sampled_from(["boolean", "0-10"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)
ANSWERS = st.fixed_dictionaries(
    {}, optional={"reasoning": JSON, "verdict": JSON, "score": JSON, "more": JSON}
)


@given(st.text(), SCALES)
def test_any_text_is_a_verdict_or_not_an_answer(text, scale):
    with suppress(NotAnAnswer):
        assert isinstance(parse_verdict(text, scale), Verdict)


@given(ANSWERS, SCALES)
def test_only_an_answer_of_the_agreed_form_is_a_verdict(answer, scale):
    key = "verdict" if scale == "boolean" else "score"
    given_ = answer.get(key)
    fits = type(given_) is bool if scale == "boolean" else type(given_) is int and 0 <= given_ <= 10
    agreed = set(answer) == {"reasoning", key} and isinstance(answer["reasoning"], str) and fits
    try:
        verdict = parse_verdict(json.dumps(answer), scale)
    except NotAnAnswer:
        assert not agreed
    else:
        assert agreed
        assert (verdict.reasoning, verdict.given) == (answer["reasoning"], given_)


@given(st.text(), st.integers(0, 10))
def test_a_good_answer_survives_the_journey(reasoning, grade):
    text = json.dumps({"reasoning": reasoning, "score": grade})
    assert parse_verdict(text, "0-10") == Verdict(reasoning, grade)
    assert 0 <= parse_verdict(text, "0-10").value <= 1


@given(st.text(min_size=1).filter(lambda text: text.strip(" \t\n\r")), st.booleans())
def test_text_around_an_answer_spoils_it(extra, before):
    answer = json.dumps(YES)
    with pytest.raises(NotAnAnswer):
        parse_verdict(extra + answer if before else answer + extra, "boolean")
