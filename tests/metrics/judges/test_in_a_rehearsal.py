"""Judges in a rehearsal: they ask their models through the fence, and nothing else."""

from typing import Any

from greenroom import Agent, Case, Expect, Scripted, rehearse
from greenroom.metrics import judge
from greenroom.metrics.judges import final_response_match_v2, hallucinations_v1, jury
from metrics.judges.asked import Asked, no, yes

CLERK = Agent("clerk", model=Scripted("It is in Lyon."))
CASES = [Case(f"order{n}", says="Where?", expect=Expect(reference="In Lyon.")) for n in range(3)]


def test_every_judge_works_inside_the_fence(tmp_path):
    model = Asked(then=yes())
    metrics = [
        judge("polite", "Polite?", model=model, cache=tmp_path, samples=3),
        final_response_match_v2(model=Scripted(then=yes("is_correct"))),
        hallucinations_v1(model=Scripted({"claims": ["In Lyon.", "There."]}, then=yes("grounded"))),
        jury([Scripted(yes(), name="a"), Scripted(yes(), name="b")], prompt="?"),
    ]
    report = rehearse(CLERK, CASES, metrics=metrics)
    assert [result.status for result in report.results] == ["passed"] * 3
    # The three cases went the same way, so the judge was asked about one of them.
    assert 3 <= model.calls <= 9
    again = rehearse(CLERK, CASES, metrics=metrics[:1])
    found: list[Any] = [result.scores["polite"] for result in again.results]
    assert [score.details["cached"] for score in found] == [3, 3, 3]


def test_a_judge_that_is_down_makes_errors_and_is_asked_five_times():
    model = Asked(then=ConnectionError("no route"))
    cases = [Case(f"c{n}", says="Hi") for n in range(12)]
    report = rehearse(CLERK, cases, metrics=[judge("polite", "?", model=model)], concurrency=1)
    assert {result.status for result in report.results} == {"error"}
    assert model.calls == 5


def test_a_judge_that_says_no_fails_the_case():
    report = rehearse(CLERK, CASES[:1], metrics=[judge("polite", "?", model=Scripted(no()))])
    assert report.results[0].status == "failed"
