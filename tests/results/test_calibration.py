"""What a judge's verdicts are worth, by what people said of some of the same trials."""

import random
from pathlib import Path

import pytest

from greenroom import Score
from greenroom.errors import BadInput
from greenroom.results import Calibration, CaseResult, Interval, LabelSet, Report
from greenroom.results.labels import Drawn, draw_labels
from greenroom.results.statistics.intervals import Tally, of_cases
from results.test_labels import said

JUDGE = "polite('very')"


def drawn(folder: Path, good: str, by_judge: str, digests: str = "") -> LabelSet:
    """Trials that people pass or fail (`+`, `-`, `?` where two people differ), and what the judge said."""
    trials = [
        Drawn(
            "run-1",
            CaseResult(
                case_id=f"c{n}",
                status="passed",
                ended="completed",
                scores={JUDGE: Score(float(mark == "+"))},
                kept=said("hi"),
            ),
            {JUDGE: digests[n] if digests else "a"},
        )
        for n, mark in enumerate(by_judge)
    ]
    labels = draw_labels(
        folder / "polite", trials, question="Polite?", metric="polite", count=len(trials)
    )
    for name, item in labels.items.items():
        mark = good[int(item.case[1:])]
        for rater, word in (
            ("ana", "-" if mark == "?" else mark),
            ("ben", "+" if mark == "?" else mark),
        ):
            if mark != "." and labels.left(rater):
                labels.grade(name, rater, {"+": "yes", "-": "no"}[word])
    return labels


def report_of(marks: str) -> Report:
    return Report(
        [
            CaseResult(
                case_id=f"n{n}",
                status="passed",
                ended="completed",
                scores={JUDGE: Score(float(mark == "+")), "length": Score(1.0)},
            )
            for n, mark in enumerate(marks)
        ]
    )


def test_what_the_judge_passes_too_often_is_taken_off(tmp_path: Path) -> None:
    # It passes all that people pass, and two of the ten that they fail.
    labels = drawn(tmp_path, "+" * 20 + "-" * 10, "+" * 22 + "-" * 8)
    known = Calibration.of(labels)
    assert (known.passed, known.failed, known.divided) == ((20, 20), (8, 10), 0)
    assert str(known) == "passes 20 of 20 that people pass, and 2 of 10 that they fail"
    found = known.rate(report_of("+" * 60 + "-" * 40))
    assert found is not None
    assert found.share == pytest.approx((0.6 - 0.2) / 0.8)
    assert found.low < 0.4 < 0.6 < found.high
    assert known.rate(report_of("+")) is None


def test_a_judge_that_is_always_right_leaves_the_rate_as_it_is(tmp_path: Path) -> None:
    labels = drawn(tmp_path, "+" * 20 + "-" * 20, "+" * 20 + "-" * 20)
    found = Calibration.of(labels).rate(report_of("+" * 75 + "-" * 25))
    assert found is not None
    assert found.share == 0.75
    # Forty grades do not prove that it is always right.
    assert found.low < 0.66
    assert found.high > 0.83


def test_where_people_are_divided_nothing_is_counted(tmp_path: Path) -> None:
    known = Calibration.of(drawn(tmp_path, "+" * 12 + "-" * 12 + "???..", "+" * 29))
    assert (known.passed, known.failed, known.divided) == ((12, 12), (0, 12), 3)


@pytest.mark.parametrize(
    "good, by_judge, says",
    [
        (
            "+" * 9 + "-" * 9,
            "+" * 9 + "-" * 9,
            "people agree on 18 trials of this judge; it takes 20",
        ),
        ("+" * 24, "+" * 24, "no trial here was failed by people"),
        ("-" * 24, "-" * 24, "no trial here was passed by people"),
    ],
)
def test_too_few_grades_say_nothing(tmp_path: Path, good: str, by_judge: str, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        Calibration.of(drawn(tmp_path, good, by_judge))


def test_a_judge_that_says_nothing_is_no_judge(tmp_path: Path) -> None:
    known = Calibration.of(drawn(tmp_path, "+" * 12 + "-" * 12, "+" * 24))
    with pytest.raises(
        BadInput, match="passes 12 of 12 that people pass, and 12 of 12 that they fail"
    ):
        known.rate(report_of("++--"))


def test_a_changed_judge_is_another_one(tmp_path: Path) -> None:
    good, by_judge = "+-" * 20, "+-" * 12 + "--" * 8
    labels = drawn(tmp_path, good, by_judge, "a" * 24 + "b" * 16)
    assert Calibration.of(labels, {(JUDGE, "a"), ("length", "x")}).passed == (12, 12)
    assert Calibration.of(labels).passed == (12, 20)
    with pytest.raises(BadInput, match="'polite' has changed since these trials were drawn"):
        Calibration.of(labels, {(JUDGE, "c")})
    with pytest.raises(BadInput, match="no metric 'polite'"):
        Calibration.of(labels, {("length", "x")})


@pytest.mark.parametrize("passed", [0, 50])
def test_no_interval_is_surer_than_the_verdicts_alone(passed: int) -> None:
    # A judge that passes 3 of 10 which people fail would have passed some of 50.
    known, tallies = Calibration((38, 40), (7, 10)), [(int(n < passed), 1) for n in range(50)]
    found, alone = known.corrected(tallies), of_cases(tallies)
    assert found is not None
    assert alone is not None
    assert found.low <= alone.low
    assert found.high >= alone.high


@pytest.mark.parametrize(
    "passed, failed, tally",
    [
        ((0, 0), (9, 10), (1, 1)),
        ((9, 10), (0, 0), (1, 1)),
        ((11, 10), (9, 10), (1, 1)),
        ((9, 10), (-1, 10), (1, 1)),
        ((9, 10), (9, 10), (2, 1)),
    ],
)
def test_counts_that_are_none_are_refused(passed: Tally, failed: Tally, tally: Tally) -> None:
    with pytest.raises(BadInput, match=r"no trial here was|is not a number of trials"):
        Calibration(passed, failed).corrected([tally, (1, 1)])


DESIGNS = [(0.8, 0.9, 0.8, 100, 50), (0.6, 0.95, 0.9, 50, 50), (0.5, 0.8, 0.7, 100, 40)]


@pytest.mark.parametrize("true, hits, holds, cases, grades", DESIGNS)
def test_the_interval_holds_what_people_would_say(
    true: float, hits: float, holds: float, cases: int, grades: int, times: int
) -> None:
    dice, held, told = random.Random(7), 0, 0

    def judged(good: bool) -> bool:
        return dice.random() < (hits if good else 1 - holds)

    def counted(count: int) -> dict[bool, list[int]]:
        found = {True: [0, 0], False: [0, 0]}
        for _ in range(count):
            good = dice.random() < true
            found[good][0] += judged(good) == good
            found[good][1] += 1
        return found

    for _ in range(500 * times):
        by = counted(grades)
        known = Calibration((by[True][0], by[True][1]), (by[False][0], by[False][1]))
        tallies = [(int(judged(dice.random() < true)), 1) for _ in range(cases)]
        try:
            found = known.corrected(tallies)
        except BadInput:
            continue
        assert isinstance(found, Interval)
        told += 1
        held += found.low <= true <= found.high
    assert told > 490 * times
    assert 0.92 <= held / told <= 0.99
