"""What a report says once of its run: metrics that applied nowhere, judges of their own answers."""

from typing import Any

from greenroom import Agent, Case, Expect, Scripted, rehearse
from greenroom.cases import Criterion
from greenroom.metrics import contains, judge, response_match_score

HELLO = Case("a", "Hi", metrics=[contains("Hello")])


def notes(cases: Any, *metrics: Any, name: str = "scripted") -> list[str]:
    agent = Agent("host", model=Scripted(then="Hello.", name=name))
    return list(rehearse(agent, cases, metrics=metrics).notes)


def test_a_metric_that_was_asked_for_and_applied_nowhere_is_named() -> None:
    (note,) = notes([HELLO], "response_match_score")
    assert note.startswith("response_match_score was asked for, but applied to no case: no turn")


def test_one_case_to_which_it_applies_is_enough() -> None:
    other = Case("b", "Hi", expect=Expect(reference="Hello."))
    assert notes([HELLO, other], response_match_score()) == []


def test_what_a_critical_metric_left_out_is_not_named() -> None:
    critical = Criterion("contains", options={"texts": ["Bye"]}, critical=True)
    assert notes([Case("a", "Hi", metrics=[contains("Hello")])], critical, contains("Hello")) == []


def test_a_model_that_judges_its_own_answers_is_named() -> None:
    verdict = {"reasoning": "It greets.", "verdict": True}

    def polite(name: str) -> Any:
        return judge("polite", "Was it polite?", model=Scripted(then=verdict, name=name))

    (note,) = notes([HELLO], polite("gpt-x"), name="gpt-x")
    assert note.startswith("'gpt-x' judged its own answers")
    assert notes([HELLO], polite("gpt-y"), name="gpt-x") == []
    assert notes([HELLO], polite("scripted")) == []
