"""`keywords` wants whole words in the last response; `tone` counts negative ones in all that was said."""

from typing import Any

import pytest

from greenroom import score
from greenroom.cases import Case, Unmeasured
from greenroom.errors import BadMetric
from greenroom.ledger import Event, Ledger, ModelReplied
from greenroom.metrics import contains, keywords, tone
from metrics.runs import agent, beside, run, user

REFUND = run(
    user("Hi"), agent("Your Refund goes to the\n credit card; I prefer C++ and re-fundable.")
)


async def outcome(metric: Any, ledger: Ledger = REFUND) -> Any:
    return (await score(ledger, [metric], Case("c")))[metric.name]


async def test_keywords_gives_the_share_found():
    found = await outcome(keywords("refund", "voucher"))
    assert (found.value, found.passed, found.threshold, found.measured) == (0.5, False, 1.0, 1)
    assert found.reason == "1 of 2 keywords found; missing 'voucher'"
    assert (await outcome(keywords("refund", "voucher", threshold=0.5))).passed


@pytest.mark.parametrize("word", ["refund", "REFUND", "credit card", "c++", "re", "fundable"])
async def test_a_whole_word_is_found_whatever_its_case_and_spacing(word):
    assert (await outcome(keywords(word))).passed


@pytest.mark.parametrize("word", ["fund", "ref", "card credit", "car", "refer"])
async def test_a_part_of_a_word_is_not_found(word):
    assert not (await outcome(keywords(word))).passed


@pytest.mark.parametrize(
    "said, word",
    [
        ("Ваш ВОЗВРАТ одобрен", "возврат"),
        ("您的退款已批准", "退款"),
        ("払い戻しはできます", "払い戻し"),
        ("환불을 승인했습니다", "환불"),
        ("เราคืนเงินแล้ว", "คืนเงิน"),
        ("Die STRASSE ist frei", "straße"),
        ("Cafe\N{COMBINING ACUTE ACCENT} offen", "café"),
        ("सब हिन्दी में", "हिन्दी"),
        ("ＯＲＤＥＲ 7", "order"),
        ("รหัส ABC", "abc"),
        ("✅️ done", "✅"),
        ("xa a a", "a a"),
    ],
)
async def test_a_whole_word_is_found_in_any_script(said, word):
    assert (await outcome(keywords(word), run(user("?"), agent(said)))).value == 1.0


@pytest.mark.parametrize(
    "said, word",
    [
        ("Возвраты закрыты", "возврат"),
        ("सब हिन्दी में", "हिन"),
        ("cafe\N{COMBINING ACUTE ACCENT}", "cafe"),
        ("٣٤", "٣"),
        ("order_id", "order"),
        ("C++x", "C++"),
        ("คืนเงิน", "คื่น"),
    ],
)
async def test_a_part_of_a_word_is_not_found_in_any_script(said, word):
    assert (await outcome(keywords(word), run(user("?"), agent(said)))).value == 0.0


async def test_negative_words_count_in_any_script():
    metric = tone(["к сожалению", "抱歉"], threshold=0.95)
    assert (await outcome(metric, run(user("?"), agent("К  сожалению, нет")))).value == 0.9
    assert (await outcome(metric, run(user("?"), agent("非常抱歉，不行")))).value == 0.9


async def test_case_may_matter():
    assert not (await outcome(keywords("refund", ignore_case=False))).passed
    assert (await outcome(keywords("Refund", ignore_case=False))).passed


async def test_signs_in_a_keyword_are_no_pattern():
    assert not (await outcome(keywords("r.fund"))).passed


async def test_a_curved_apostrophe_is_an_apostrophe():
    ledger = run(user("Hi"), agent("I can’t."))
    assert (await outcome(keywords("can't"), ledger)).passed


def test_lists_and_arguments_say_the_same():
    assert keywords("a", "b") == keywords(words=["a", "b"]) == keywords("a", words=["b", "a"])
    assert contains("a", "b") == contains(texts=["a", "b"])


async def test_the_tone_falls_by_a_tenth_for_every_listed_word_once():
    ledger = run(user("Hi"), agent("Sorry, sorry!"), user("So?"), agent("I can't, unfortunately."))
    found = await outcome(tone(), ledger)
    assert (found.value, found.passed, found.threshold, found.measured) == (0.7, False, 0.8, 3)
    assert found.details == {"found": ["sorry", "unfortunately", "can't"]}
    assert found.evidence == ["Sorry, sorry!", "I can't, unfortunately."]
    mild = await outcome(tone(["unfortunately", "so", "I"], threshold=0.8), ledger)
    assert (mild.value, mild.passed) == (0.8, True)


async def test_a_friendly_agent_has_the_full_tone():
    found = await outcome(tone())
    assert (found.value, found.passed, found.evidence) == (1.0, True, [])


async def test_the_tone_is_that_of_words_beside_tool_calls_too():
    for last in ([], agent(" "), agent("Done.")):
        ledger = run(user("Hi"), beside("Sorry, I look.", "look"), last)
        found = await outcome(tone(["sorry"], threshold=1.0), ledger)
        assert (found.value, found.passed, found.evidence) == (0.9, False, ["Sorry, I look."])


async def test_words_of_models_that_reach_nobody_have_no_tone():
    inner: list[Event] = [ModelReplied(text="Sorry, says the planner.")]
    found = await outcome(tone(), run(user("Hi"), inner, agent("Done.")))
    assert (found.value, found.reason) == (1.0, "said none of the listed words")


async def test_the_tone_never_falls_below_zero():
    words = [f"w{number}" for number in range(15)]
    found = await outcome(tone(words), run(user("Hi"), agent(" ".join(words))))
    assert (found.value, found.measured) == (0.0, 15)


@pytest.mark.parametrize("metric", [keywords("a"), tone()])
@pytest.mark.parametrize("ledger", [run(user("Hi")), run(user("Hi"), agent(" "))])
async def test_without_a_response_nothing_is_measured(metric, ledger):
    assert isinstance(await outcome(metric, ledger), Unmeasured)


@pytest.mark.parametrize(
    "make, words",
    [
        (keywords, "has no words"),
        (lambda: keywords(" "), "looks for ' '"),
        (lambda: keywords(words="refund"), "words='refund'; give a list"),
        (lambda: keywords(words=[7]), "looks for 7"),  # pyright: ignore[reportArgumentType]
        (lambda: keywords("a", ignore_case="no"), "ignore_case='no'"),  # pyright: ignore[reportArgumentType]
        (
            lambda: keywords("a", threshold=70),
            "threshold=70; its scale is 0 to 1: give a number above 0, at most 1",
        ),
        (lambda: contains(texts="a"), "texts='a'; give a list"),
        (lambda: contains(texts=7), "texts=7"),  # pyright: ignore[reportArgumentType]
        (lambda: contains("a", ignore_case=1), "ignore_case=1"),  # pyright: ignore[reportArgumentType]
        (lambda: tone([]), "has no words"),
        (lambda: tone("sorry"), "negative_words='sorry'"),
        (lambda: tone(["sorry"]), "could never fall below its threshold 0.8"),
        (lambda: tone(threshold=0.7), "could never fall below"),
        (
            lambda: tone(threshold=1.5),
            "threshold=1.5; its scale is 0 to 1: give a number above 0, at most 1",
        ),
        (lambda: tone(whole_words=1), "whole_words=1"),  # pyright: ignore[reportArgumentType]
    ],
)
def test_a_bad_option_is_refused_by_its_name(make, words):
    with pytest.raises(BadMetric, match=words):
        make()
