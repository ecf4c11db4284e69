"""Any function, or object with `evaluate`, becomes a metric; only a number or verdict is one."""

import math
from decimal import Decimal
from typing import Any

import pytest

from greenroom import score
from greenroom.cases import NotApplicable, Score, Unmeasured
from greenroom.errors import BadMetric
from greenroom.metrics import as_metric, called, metric
from metrics.runs import weather


async def outcome(given: Any) -> Any:
    return (await score(weather(), [given]))[as_metric(given).name]


async def test_a_function_that_returns_a_bool_is_a_metric():
    @metric
    def mentions_paris(response):
        return "Paris" in response

    assert await outcome(mentions_paris) == Score(1.0, True, name="mentions_paris")


async def test_an_async_function_is_a_metric():
    @metric
    async def warm(tool_calls):
        return tool_calls[0].result["celsius"] > 20

    assert (await outcome(warm)).passed


async def test_a_plain_function_need_not_be_decorated():
    def half(response):
        return 0.5

    assert await outcome(half) == Score(0.5, True, name="half")


async def test_a_threshold_and_a_name_can_be_given():
    @metric(name="tone", threshold=0.8)
    def anything(response):
        return 0.7

    found = await outcome(anything)
    assert (found.name, found.threshold, found.passed) == ("tone", 0.8, False)


async def test_a_score_says_itself_whether_it_passed():
    @metric(threshold=0.9)
    def strict(response):
        return Score(0.6, True, reason="good enough")

    assert await outcome(strict) == Score(0.6, True, reason="good enough", name="strict")


async def test_a_metric_may_say_that_it_does_not_apply():
    def picky(response):
        return NotApplicable("not about weather")

    assert await outcome(picky) == NotApplicable("not about weather")


def test_a_decorated_function_can_still_be_called():
    @metric
    def short(response, words=5):
        return len(response.split()) <= words

    assert short("one two")
    assert not short("one two", words=1)
    assert repr(short) == "metric(short)"


@pytest.mark.parametrize(
    "returned", [math.nan, math.inf, -0.1, 1.01, 7, None, "good", [1], {"score": 1}, object(), 1j]
)
async def test_what_is_no_score_is_unmeasured(returned):
    @metric(name="odd")
    def odd(response):
        return returned

    found = await outcome(odd)
    assert isinstance(found, Unmeasured)
    assert "the metric returned" in found.why


class Scalar:
    """A single value of numpy or torch."""

    shape = ()

    def __init__(self, value: Any) -> None:
        self.value = value

    def item(self) -> Any:
        return self.value


@pytest.mark.parametrize("value", [True, False, 0.7, 0.2])
def test_a_score_may_be_made_of_single_values_of_an_array_library(value):
    made: Any = Scalar(value)
    assert Score(made) == Score(value)
    assert Score(0.5, made) == Score(0.5, value)


@pytest.mark.parametrize("value", [True, False, 0.7, math.nan, "good"])
async def test_a_single_value_of_an_array_library_is_the_value_it_holds(value):
    @metric(name="odd")
    def odd(response):
        return Scalar(value)

    @metric(name="odd")
    def even(response):
        return value

    assert await outcome(odd) == await outcome(even)


async def test_what_is_no_score_is_unmeasured_when_awaited_too():
    async def odd(response):
        return math.nan

    assert isinstance(await outcome(odd), Unmeasured)


@pytest.mark.parametrize(
    "made",
    [
        lambda: Score(2.0),
        lambda: Score(math.nan),
        lambda: Score(0.5, measured=math.nan),
        lambda: Score(0.5, details={"at": object()}),
        lambda: Score(0.5, passed="no"),  # pyright: ignore[reportArgumentType]
        lambda: Score(0.5, True, threshold="high"),  # pyright: ignore[reportArgumentType]
        lambda: Score(0.5, True, threshold=Decimal("0.5")),  # pyright: ignore[reportArgumentType]
        lambda: Score(0.5, True, threshold=True),
        lambda: Score(0.5, True, threshold=math.nan),
        lambda: Score(0.5, measured=10**5000),
    ],
)
async def test_a_score_no_report_could_hold_is_unmeasured(made):
    assert isinstance(await outcome(metric(lambda response: made(), name="odd")), Unmeasured)


async def test_an_object_with_evaluate_is_a_metric():
    class ToneEvaluator:
        def evaluate(self, response: str, context: dict) -> float:
            return 0.9 if "sorry" not in response else 0.1

    assert await outcome(ToneEvaluator()) == Score(0.9, True, name="ToneEvaluator")


async def test_an_object_with_evaluate_may_name_itself_and_its_threshold():
    class Tone:
        name = "tone"
        threshold = 0.95

        async def evaluate(self, response):
            return 0.9

    found = await outcome(Tone())
    assert (found.name, found.passed, found.threshold) == ("tone", False, 0.95)


async def test_a_class_is_made_if_it_needs_no_arguments():
    class Fine:
        def evaluate(self, response):
            return True

    class Needy:
        def __init__(self, words):
            self.words = words

        def evaluate(self, response):
            return True

    assert (await score(weather(), [Fine]))["Fine"] == Score(1.0, True, name="Fine")
    with pytest.raises(BadMetric, match=r"Needy.*give an instance"):
        as_metric(Needy)


async def test_a_callable_object_is_a_metric():
    class Loud:
        __hash__ = None  # pyright: ignore[reportAssignmentType]

        def __call__(self, response):
            return response.isupper()

    assert not (await outcome(Loud())).passed


def test_a_metric_is_taken_as_it_is():
    refund = called("refund")
    assert as_metric(refund) is refund


@pytest.mark.parametrize("given", [7, "called", None, [called("x")]])
def test_what_is_no_metric_is_refused(given):
    with pytest.raises(BadMetric):
        as_metric(given)


def test_a_lambda_needs_a_name():
    with pytest.raises(BadMetric, match="name="):
        as_metric(lambda response: True)
    assert metric(lambda response: True, name="yes").name == "yes"


@pytest.mark.parametrize("threshold", [0, -1, 1.5, math.nan, True, "high"])
def test_a_threshold_that_nobody_or_everybody_reaches_is_refused(threshold):
    with pytest.raises(BadMetric, match="threshold"):
        metric(name="t", threshold=threshold)


class Words(str):
    """As libraries return them."""

    __slots__ = ()


class Rated(Score):
    """A score with more than reports have a place for."""


@pytest.mark.parametrize(
    "make",
    [
        lambda: Score(0.7, reason=None),  # type: ignore[arg-type]
        lambda: Score(0.7, reason=ValueError("no")),  # type: ignore[arg-type]
        lambda: Score(0.7, reason=["a"]),  # type: ignore[arg-type]
        lambda: Score(0.7, name=5),  # type: ignore[arg-type]
        lambda: Score(0.7, evidence=None),  # type: ignore[arg-type]
        lambda: Score(0.7, evidence="all of it"),
        lambda: Score(0.7, evidence=[1]),  # type: ignore[list-item]
        lambda: Score(0.7, True, evidence=5),  # type: ignore[arg-type]
        lambda: NotApplicable(None),  # type: ignore[arg-type]
        lambda: NotApplicable(ValueError("no")),  # type: ignore[arg-type]
        lambda: Unmeasured(None),  # type: ignore[arg-type]
        lambda: Unmeasured("so", "nowhere"),  # type: ignore[arg-type]
    ],
)
async def test_words_that_no_report_could_show_leave_it_unmeasured(make: Any):
    with pytest.raises(BadMetric):
        make()

    def odd(response):
        return make()

    found = await outcome(odd)
    assert isinstance(found, Unmeasured)
    assert "should be" in found.why or "use one of" in found.why


async def test_a_string_of_a_library_is_kept_as_a_plain_one():
    def wordy(response):
        return Score(1, reason=Words("so"), evidence=[Words("a"), "b"], name=Words("w"))

    found = await outcome(wordy)
    assert [type(text) for text in (found.reason, found.name, *found.evidence)] == [str] * 4
    assert type(NotApplicable(Words("so")).why) is str


async def test_a_score_of_a_subclass_is_a_score():
    def rated(response):
        return Rated(0.7, reason="so")

    found = await outcome(rated)
    assert type(found) is Score
    assert found == Score(0.7, reason="so", name="rated")
