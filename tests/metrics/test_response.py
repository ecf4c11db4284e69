"""`exact`, `contains` and `matches` look at the agent's last words."""

import re
from typing import Any

import pytest

from greenroom import score
from greenroom.cases import Case, Expect, NotApplicable, Score, Turn, Unmeasured
from greenroom.errors import BadMetric
from greenroom.ledger import Ledger
from greenroom.metrics import contains, exact, matches
from metrics.runs import (
    agent,
    run,
    user,
)

FORTY_TWO = run(user("How many?"), agent(" There are 42 of them.\n"))
SILENT = [run(user("Hi")), run(user("Hi"), agent("")), run(user("Hi"), agent(" \n "))]


async def outcome(metric: Any, ledger: Ledger, case: Case | None = None) -> Any:
    return (await score(ledger, [metric], case or Case("c")))[metric.name]


async def test_exact_compares_the_last_response_and_ignores_white_space_around_it():
    assert (await outcome(exact("There are 42 of them."), FORTY_TWO)).passed
    found = await outcome(exact("there are 42 of them."), FORTY_TWO)
    assert (found.value, found.passed) == (0.0, False)
    assert "expected 'there are 42 of them.'" in found.reason


async def test_exact_without_a_text_means_the_cases_reference():
    case = Case("c", says="Hi", expect=Expect(response="There are 42 of them."))
    assert (await outcome(exact(), FORTY_TWO, case)).passed
    assert isinstance(await outcome(exact(), FORTY_TWO), NotApplicable)


TALK = Case(
    "talk", turns=[Turn("Hi", Expect(response="Which order?")), Turn("7", Expect(response="Done."))]
)


def talk(first: str, second: str) -> Ledger:
    return run(user("Hi"), agent(first), user("7"), agent(second))


async def test_exact_without_a_text_compares_every_turn_with_its_own_reference() -> None:
    assert (await outcome(exact(), talk("Which order?", "Done."), TALK)).passed
    found = await outcome(exact(), talk("What?", "Done."), TALK)
    assert (found.value, found.passed) == (0.0, False)
    assert found.reason.startswith("turn 1: the response is 'What?'; expected 'Which order?'")
    assert not (await outcome(exact(), talk("Done.", "Which order?"), TALK)).passed


async def test_exact_never_takes_the_response_of_another_turn() -> None:
    first = Case("c", turns=[Turn("Hi", Expect(response="Done.")), Turn("7")])
    assert not (await outcome(exact(), talk("Which order?", "Done."), first)).passed
    assert (await outcome(exact(), talk("Done.", "Bye."), first)).passed
    second = Case("c", turns=[Turn("Hi"), Turn("7", Expect(response="Done."))])
    found = await outcome(exact(), run(user("Hi"), agent("Done.")), second)
    assert (found.passed, found.reason) == (False, "turn 2: never reached")
    found = await outcome(exact(), talk("", "Done."), first)
    assert found.why == "the agent's response is empty in turn 1"


async def test_contains_gives_the_share_found():
    found = await outcome(contains("42", "them", "forty", "There"), FORTY_TWO)
    assert (found.value, found.passed, found.threshold, found.measured) == (0.75, False, 1.0, 3)
    assert found.reason == "3 of 4 strings found; missing 'forty'"


async def test_contains_may_pass_with_a_part_and_may_ignore_case():
    assert (await outcome(contains("42", "forty", threshold=0.5), FORTY_TWO)).passed
    assert not (await outcome(contains("THERE"), FORTY_TWO)).passed
    assert (await outcome(contains("THERE", ignore_case=True), FORTY_TWO)).passed


async def test_contains_without_texts_means_what_the_last_turn_expects():
    one = Case("c", turns=[Turn("a"), Turn("b", Expect(contains=["42", "43"]))])
    ledger = run(user("a"), agent("Hm."), user("b"), agent("There are 42 of them."))
    found = (await score(ledger, [contains()], one))["contains()"]
    assert isinstance(found, Score)
    assert found.value == 0.5
    found = await outcome(contains(), FORTY_TWO, one)
    assert (found.value, found.reason) == (0.0, "turn 2: never reached")
    earlier = Case("c", turns=[Turn("a", Expect(contains="42")), Turn("b")])
    assert isinstance(await outcome(contains(), FORTY_TWO, earlier), NotApplicable)


async def test_matches_searches_and_shows_what_it_found():
    found = await outcome(matches(r"\d+ of"), FORTY_TWO)
    assert (found.value, found.passed, found.evidence) == (1.0, True, ["42 of"])
    assert (await outcome(matches(re.compile("THERE", re.IGNORECASE)), FORTY_TWO)).passed
    assert not (await outcome(matches("^42"), FORTY_TWO)).passed


@pytest.mark.parametrize("ledger", SILENT)
@pytest.mark.parametrize("metric", [exact("x"), contains("x"), matches("x+")])
async def test_without_a_response_nothing_is_measured(metric, ledger):
    assert isinstance(await outcome(metric, ledger), Unmeasured)


@pytest.mark.parametrize(
    "make",
    [
        lambda: exact(""),
        lambda: contains(""),
        lambda: contains("a", " "),
        lambda: contains(["a", "b"]),  # pyright: ignore[reportArgumentType]
        lambda: contains("a", threshold=0),
        lambda: contains("a", threshold=1.1),
        lambda: matches("("),
        lambda: matches(""),
        lambda: matches(b"x"),  # pyright: ignore[reportArgumentType]
        lambda: matches(7),  # pyright: ignore[reportArgumentType]
    ],
)
def test_texts_and_patterns_that_could_not_fail_or_match_are_refused(make):
    with pytest.raises(BadMetric):
        make()


DECOMPOSED = "Cafe\N{COMBINING ACUTE ACCENT} offen"


@pytest.mark.parametrize("metric", [contains("Café"), exact("Café offen")])
async def test_a_letter_and_its_accent_are_one_letter_however_they_are_written(metric):
    assert (await outcome(metric, run(user("?"), agent(DECOMPOSED)))).value == 1.0


async def test_a_letter_does_not_stand_in_the_same_letter_with_an_accent():
    assert (await outcome(contains("Cafe"), run(user("?"), agent(DECOMPOSED)))).value == 0.0


async def test_a_pattern_finds_letters_however_unicode_writes_them() -> None:
    composed, decomposed = "caf\u00e9", "cafe\u0301"
    for pattern, said in ((composed, decomposed), (decomposed, composed)):
        ledger = run(user("Where?"), agent(f"In the {said}."))
        assert (await outcome(matches(pattern), ledger)).passed
        assert not (await outcome(matches(f"^(?!.*{pattern})In"), ledger)).passed
