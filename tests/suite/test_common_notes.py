"""What a report says once of its run: metrics that applied nowhere, judges of their own answers."""

from dataclasses import replace
from typing import Any

from greenroom import Agent, Case, Expect, Scripted, call, rehearse, tool
from greenroom.cases import Criterion, simulated
from greenroom.metrics import contains, judge, response_match_score
from greenroom.results import CaseResult, Report
from greenroom.results.shards import together

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


def test_a_note_on_some_trials_says_how_many() -> None:
    verdict = {"reasoning": "It greets.", "verdict": True}
    polite = judge("polite", "Was it polite?", model=Scripted(then=verdict, name="gpt-x"))
    judged, other = Case("b", "Hi", metrics=[polite]), Case("c", "Hi", metrics=[contains("Hello")])
    (note,) = notes([HELLO, judged, other], name="gpt-x")
    assert note.startswith("'gpt-x' judged its own answers (in 1 of 3 trials); models favour")


def test_reports_that_are_joined_count_a_note_over_all_their_trials() -> None:
    def part(prefix: str, noted: int, note: str) -> Report:
        results = [CaseResult(case_id=f"{prefix}{n}", status="passed") for n in range(3)]
        where = "" if noted == 3 else f" (in {noted} of 3 trials)"
        return Report(results, notes=["of the run", note.format(where)])

    def joined(*counts: int, note: str = "seen{}; look") -> list[str]:
        parts = [part(prefix, noted, note) for prefix, noted in zip("abc", counts, strict=False)]
        return list(together(parts, ["a", "b", "c"][: len(parts)]).notes)

    assert joined(1, 2) == ["of the run", "seen (in 3 of 6 trials); look"]
    assert joined(3, 1) == joined(1, 3) == ["of the run", "seen (in 4 of 6 trials); look"]
    assert joined(3, 3, 3) == ["of the run", "seen; look"]


def test_a_note_on_the_tools_of_some_trials_says_how_many() -> None:
    @tool
    def look(order: int) -> str:
        """Look."""
        raise NotImplementedError

    world = simulated("A shop.", model=Scripted(then={"result": "found", "state": {}}, name="shop"))
    looking = Case("b", "Hi", mocks={"look": world}, metrics=[contains("Hello")])
    quiet = Agent("host", model=Scripted(then="Hello."), tools=[look])
    busy = Agent("host", model=Scripted(call("look", order=7), then="Hello."), tools=[look])
    mixed = rehearse(quiet, [HELLO, replace(looking, agent=busy)])
    (note,) = [note for note in mixed.notes if "look" in note]
    assert note.endswith("look (in 1 of 2 trials)")
    (note,) = [note for note in rehearse(busy, looking).notes if "look" in note]
    assert note.endswith(": look")
