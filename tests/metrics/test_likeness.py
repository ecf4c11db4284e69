"""`response_match_score` compares each turn's last response with the turn's reference."""

from typing import Any

import pytest

from greenroom import score
from greenroom.cases import Case, Expect, NotApplicable, Score, Turn, Unmeasured
from greenroom.errors import BadMetric
from greenroom.ledger import Ledger
from greenroom.metrics import reference_recall, response_match_score, rouge
from metrics.runs import agent, run, user

REFERENCE = "The refund was sent to your card"
SAID = "Your refund is being sent"
PAID = run(user("Money back?"), agent("One moment."), agent(SAID))


def asked(**expect: Any) -> Case:
    return Case("c", says="Money back?", expect=Expect(**expect))


async def outcome(metric: Any, ledger: Ledger, case: Case) -> Any:
    return (await score(ledger, [metric], case))[metric.name]


async def test_the_value_is_the_f1_of_the_last_response_and_the_reference():
    found = await outcome(response_match_score(), PAID, asked(reference=REFERENCE))
    figures = rouge(REFERENCE, SAID)
    assert (found.value, found.passed, found.threshold) == (figures.f1, False, 0.8)
    assert found.details == [{"turn": 1, "value": figures.f1, "reached": True, **figures._asdict()}]
    assert found.evidence == [f"turn 1: {SAID}"]
    assert found.reason == (
        "turn 1: rouge1 precision 0.60, recall 0.43, f1 0.50; f1 must reach 0.8"
    )


@pytest.mark.parametrize("mode", ["f1", "recall", "precision"])
@pytest.mark.parametrize("kind", ["rouge1", "rouge2", "rougeL"])
@pytest.mark.parametrize("stem", [True, False])
async def test_kind_mode_and_stem_choose_the_figure(kind, mode, stem):
    metric = response_match_score(0.1, kind=kind, mode=mode, stem=stem)
    found = await outcome(metric, PAID, asked(reference=REFERENCE))
    assert found.value == getattr(rouge(REFERENCE, SAID, kind, stem), mode)


async def test_an_expected_response_is_a_reference_where_none_is_given():
    found = await outcome(response_match_score(), PAID, asked(response=SAID))
    assert found.value == 1.0
    both = asked(response=REFERENCE, reference=SAID)
    assert (await outcome(response_match_score(), PAID, both)).value == 1.0


async def test_the_mean_is_over_the_turns_that_have_a_reference():
    case = Case(
        "c",
        turns=[
            Turn("a", Expect(reference="red blue")),
            Turn("b"),
            Turn("c", Expect(contains="x")),
            Turn("d", Expect(reference="red")),
        ],
    )
    ledger = run(
        *(user("a"), agent("red blue"), user("b"), agent("no")),
        *(user("c"), agent("x"), user("d"), agent("green")),
    )
    found = await outcome(response_match_score(), ledger, case)
    assert (found.value, found.passed) == (0.5, False)
    assert [(part["turn"], part["value"]) for part in found.details] == [(1, 1.0), (4, 0.0)]


async def test_a_turn_that_was_never_reached_is_worth_nothing_and_says_so():
    case = Case("c", turns=[Turn(text, Expect(reference="red")) for text in "ab"])
    found = await outcome(response_match_score(), run(user("a"), agent("red")), case)
    assert (found.value, found.passed) == (0.5, False)
    assert found.details[1] == {"turn": 2, "value": 0.0, "reached": False}
    assert "turn 2: never reached" in found.reason


async def test_three_turns_at_the_threshold_reach_it_in_spite_of_binary_fractions():
    turns = [Turn(text, Expect(reference="a b c d e f g h i j")) for text in "xyz"]
    said = "a b c d e f g k l m"
    ledger = run(*[event for text in "xyz" for event in (user(text), agent(said))])
    found = await outcome(response_match_score(0.7), ledger, Case("c", turns=turns))
    assert found.passed
    assert sum([0.7] * 3) / 3 < 0.7


@pytest.mark.parametrize("expect", [None, Expect(contains="x")])
async def test_without_a_reference_it_does_not_apply(expect):
    case = Case("c", says="Money back?", expect=expect)
    assert isinstance(await outcome(response_match_score(), PAID, case), NotApplicable)


@pytest.mark.parametrize(
    "ledger",
    [
        run(user("Money back?")),
        run(user("Money back?"), agent(" ")),
    ],
)
async def test_without_a_response_nothing_is_measured(ledger):
    case = asked(reference=REFERENCE)
    assert isinstance(await outcome(response_match_score(), ledger, case), Unmeasured)


async def test_a_turn_without_a_response_leaves_the_whole_unmeasured():
    case = Case("c", turns=[Turn("a", Expect(reference="red")), Turn("b")])
    ledger = run(user("a"), user("b"), agent("red"))
    found = await outcome(response_match_score(), ledger, case)
    assert found == Unmeasured("the agent's response is empty in turn 1")


@pytest.mark.parametrize(
    "kind, reference", [("rouge1", "…?!"), ("rougeL", "👍"), ("rouge2", "yes")]
)
async def test_a_reference_that_rouge_cannot_read_is_unmeasured_and_no_zero(kind, reference):
    found = await outcome(response_match_score(kind=kind), PAID, asked(reference=reference))
    assert isinstance(found, Unmeasured)
    assert "signs are not words" in found.why


async def test_a_response_without_words_misses_a_readable_reference_and_says_why():
    ledger = run(user("Money back?"), agent("👍"))
    found = await outcome(response_match_score(), ledger, asked(reference="fine weather"))
    assert (found.value, found.passed) == (0.0, False)
    assert "the response '👍' has no words" in found.reason


async def test_a_response_in_another_script_is_compared_word_by_word():
    ledger = run(user("Вернёте?"), agent("Ваш возврат 120 EUR отклонён"))
    found = await outcome(
        response_match_score(), ledger, asked(reference="Ваш возврат 120 EUR одобрен")
    )
    assert found.value == pytest.approx(0.8)
    ledger = run(user("Вернёте?"), agent("Нет, 120 EUR мы не вернём"))
    found = await outcome(
        response_match_score(), ledger, asked(reference="Ваш возврат 120 EUR одобрен")
    )
    assert found.value < 0.4


async def test_reference_recall_asks_only_how_much_of_the_reference_was_said():
    case = asked(reference="refund sent")
    recalled, resembled = reference_recall(), response_match_score()
    assert (await outcome(recalled, PAID, case)).value == 1.0
    assert (await outcome(recalled, PAID, case)).details[0]["f1"] == pytest.approx(4 / 7)
    assert not (await outcome(resembled, PAID, case)).passed
    assert recalled.name == "reference_recall"


async def test_a_name_tells_two_of_them_apart():
    metrics = [response_match_score(), response_match_score(kind="rougeL", name="in order")]
    found = await score(PAID, metrics, asked(reference=SAID))
    assert {name: isinstance(one, Score) and one.name for name, one in found.items()} == {
        "response_match_score": "response_match_score",
        "in order": "in order",
    }


@pytest.mark.parametrize("make", [response_match_score, reference_recall])
@pytest.mark.parametrize(
    "options, words",
    [
        ({"threshold": 80}, "threshold=80; its scale is 0 to 1: give a number above 0, at most 1"),
        ({"threshold": 0}, "threshold=0; its scale is 0 to 1: give a number above 0, at most 1"),
        (
            {"threshold": "0.8"},
            "threshold='0.8'; its scale is 0 to 1: give a number above 0, at most 1",
        ),
        (
            {"threshold": float("nan")},
            "threshold=nan; its scale is 0 to 1: give a number above 0, at most 1",
        ),
        (
            {"threshold": True},
            "threshold=True; its scale is 0 to 1: give a number above 0, at most 1",
        ),
        ({"kind": "rouge3"}, "kind='rouge3' is not one of 'rouge1', 'rouge2', 'rougeL'"),
        ({"kind": ["rouge1"]}, "kind="),
        ({"mode": "F1"}, "mode='F1' is not one of 'f1', 'recall', 'precision'. Did you mean 'f1'"),
        ({"stem": 1}, "stem=1; give true or false"),
        ({"name": " "}, "the name ' '"),
    ],
)
def test_a_bad_option_is_refused_by_its_name(make, options, words):
    with pytest.raises(BadMetric, match=words):
        make(**options)


async def test_a_figure_just_below_its_threshold_is_not_rounded_up_to_it():
    wanted = Case("c", says="Hi", expect=Expect(reference="one two three"))
    ledger = run(user("Hi"), agent("one two four"))
    [found] = (await score(ledger, [response_match_score(threshold=0.6667)], wanted)).values()
    assert found.passed is False
    assert "f1 0.66667; f1 must reach 0.6667" in found.reason
