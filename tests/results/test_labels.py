"""Trials that people grade: drawn by lot, written line by line, compared beyond luck."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom import Ledger, Score
from greenroom.errors import BadFile, BadInput, NotFound
from greenroom.ledger import AgentSaid, RunEnded, RunStarted, UserSaid
from greenroom.results import CaseResult, LabelSet, agreement_between
from greenroom.results.labels import Drawn, draw_labels
from greenroom.results.statistics.agreement import alpha
from warm_python import WarmPython

QUESTION = "Is the agent polite?"


def said(words: str) -> Ledger:
    ledger = Ledger()
    for event in (
        RunStarted(run_id="r", case={"id": "c"}),
        UserSaid(text="hello"),
        AgentSaid(text=words),
        RunEnded(reason="completed"),
    ):
        ledger.append(event, at=0.0)
    return ledger


def trial(case: str, number: int = 1, *, passed: bool = True, words: str = "hi") -> Drawn:
    scores = {"polite('very')": Score(float(passed)), "length": Score(1.0)}
    status = "passed" if passed else "failed"
    result = CaseResult(
        case_id=case,
        trial=number,
        status=status,
        ended="completed",
        scores=scores,
        kept=said(words),
    )
    return Drawn("run-1", result, {"polite('very')": "d1"})


def drawn(folder: Path, count: int = 30, **given: object) -> LabelSet:
    trials = [trial(f"c{n}", passed=n % 3 > 0) for n in range(count)]
    options = {"question": QUESTION, "metric": "polite", "count": count, **given}
    return draw_labels(folder / "polite", trials, **options)  # type: ignore[arg-type]


# Drawn


def test_a_draw_is_by_lot_and_the_same_again(tmp_path: Path) -> None:
    trials = [trial(f"c{n}") for n in range(40)]
    one, two, other = (
        draw_labels(tmp_path / name, order, question=QUESTION, count=10, seed=seed)
        for name, order, seed in (("a", trials, 0), ("b", trials[::-1], 0), ("c", trials, 1))
    )
    assert list(one.items) == list(two.items) != list(other.items)
    assert len(one.items) == 10


def test_a_second_trial_of_a_case_comes_after_every_case_has_one(tmp_path: Path) -> None:
    trials = [trial(f"c{n}", number) for n in range(5) for number in (1, 2, 3)]
    found = draw_labels(tmp_path / "x", trials, question=QUESTION, count=7)
    assert {item.case for item in [*found.items.values()][:5]} == {f"c{n}" for n in range(5)}
    assert len(found.items) == 7


def test_a_metric_goes_by_its_name_without_arguments_and_with_its_digest(tmp_path: Path) -> None:
    item = next(iter(drawn(tmp_path).items.values()))
    assert (item.metric, item.judge) == ("polite('very')", "d1")


def test_only_what_has_a_verdict_is_drawn(tmp_path: Path) -> None:
    broken = Drawn("r", CaseResult(case_id="x", status="error", kept=said("")), {})
    with pytest.raises(BadInput, match="passed or failed"):
        draw_labels(tmp_path / "x", [broken], question=QUESTION)
    with pytest.raises(BadInput, match="'rude' has measured"):
        draw_labels(tmp_path / "x", [trial("c")], question=QUESTION, metric="rude")
    assert not (tmp_path / "x").exists()


def test_what_is_graded_holds_no_secret_and_is_not_written_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "sk-proj-" + "a1B2c3D4" * 5
    found = draw_labels(tmp_path / "x", [trial("c", words=f"the key is {secret}")], question="?")
    texts = [file.read_text() for file in (tmp_path / "x").rglob("*.json*")]
    assert len(texts) == 3
    assert not any(secret in text for text in texts)
    assert "the key is" in found.ledger(next(iter(found.items))).of(AgentSaid)[0].text
    item = next(iter(found.items))
    assert secret not in found.grade(item, "ana", "yes", f"it says {secret}").note
    with pytest.raises(BadInput, match="already exists"):
        draw_labels(tmp_path / "x", [trial("c")], question="?")
    with pytest.raises(BadFile, match="cannot write"):
        draw_labels(tmp_path / "x" / "items.jsonl" / "y", [trial("c")], question="?")


# Graded


def test_each_person_has_their_own_order_and_goes_on_where_they_left(tmp_path: Path) -> None:
    labels = drawn(tmp_path)
    assert labels.left("ana") == labels.left("ana") != labels.left("ben")
    assert set(labels.left("ana")) == set(labels.left("ben")) == set(labels.items)
    first, second, *rest = labels.left("ana")
    labels.grade(first, "ana", "yes")
    labels.grade(second, "ana", "cannot tell", "noise")
    again = LabelSet(labels.folder)
    assert again.left("ana") == rest
    assert len(again.left("ben")) == len(again.items)


def test_the_last_grade_counts_and_can_be_taken_back(tmp_path: Path) -> None:
    labels = drawn(tmp_path)
    item = labels.left("ana")[0]
    for value in ("yes", "yes", "no"):
        labels.grade(item, " ana ", value)
    assert [(one.rater, one.value) for one in labels.grades()] == [("ana", "no")]
    labels.grade(item, "ana", None)
    assert labels.grades() == []
    assert labels.left("ana")[0] == item


@pytest.mark.parametrize("name", ["", "  ", "a\x00b", "x" * 81, "the judge", "\u202eana"])
def test_a_name_tells_people_apart(tmp_path: Path, name: str) -> None:
    labels = drawn(tmp_path)
    with pytest.raises(BadInput, match="name"):
        labels.grade(next(iter(labels.items)), name, "yes")


def test_only_grades_of_items_that_were_drawn_are_taken(tmp_path: Path) -> None:
    labels = drawn(tmp_path)
    item = next(iter(labels.items))
    with pytest.raises(NotFound):
        labels.grade("../x", "ana", "yes")
    with pytest.raises(BadInput, match="not a grade"):
        labels.grade(item, "ana", "maybe")
    with pytest.raises(BadInput, match="note"):
        labels.grade(item, "ana", "yes", "x" * 2_001)
    assert not (labels.folder / "grades.jsonl").exists()


def test_people_who_grade_at_once_lose_no_line(tmp_path: Path) -> None:
    labels = drawn(tmp_path)

    def grade(rater: str) -> None:
        mine = LabelSet(labels.folder)
        for item in mine.left(rater):
            mine.grade(item, rater, "yes", "\u2028 é \n")

    people = [threading.Thread(target=grade, args=(f"p{n}",)) for n in range(4)]
    for one in people:
        one.start()
    for one in people:
        one.join()
    assert len(labels.grades()) == 4 * len(labels.items)
    assert {one.note for one in labels.grades()} == {"\u2028 é \n"}


def test_a_line_that_was_torn_at_any_byte_harms_no_other(tmp_path: Path) -> None:
    labels = drawn(tmp_path)
    first, second, third = labels.left("ana")[:3]
    labels.grade(first, "ana", "yes")
    file = labels.folder / "grades.jsonl"
    whole = file.read_bytes()
    labels.grade(second, "ana", "no", "é")
    both = file.read_bytes()
    for end in range(len(whole), len(both)):
        file.write_bytes(both[:end])
        is_whole = end == len(both) - 1
        assert [one.item for one in labels.grades()] == [first, second][: 1 + is_whole]
        labels.grade(third, "ben", "no")
        assert len(labels.grades()) == 2 + is_whole
        assert all(json.loads(line) for line in file.read_text().split("\n") if line)


def test_a_line_that_somebody_broke_is_named(tmp_path: Path) -> None:
    labels = drawn(tmp_path)
    item = next(iter(labels.items))
    labels.grade(item, "ana", "yes")
    file = labels.folder / "grades.jsonl"
    file.write_text(f'{{"item": "{item}"}}\n{file.read_text()}')
    with pytest.raises(BadFile, match=r"line 1.*rater"):
        labels.grades()


def test_two_verdicts_on_one_item_are_not_chosen_from(tmp_path: Path) -> None:
    labels = drawn(tmp_path)
    file = labels.folder / "items.jsonl"
    first = file.read_text().splitlines()[0]
    file.write_text(f"{file.read_text()}{first}\n")
    assert LabelSet(labels.folder).items == labels.items
    data = json.loads(first)
    file.write_text(f"{file.read_text()}{json.dumps({**data, 'passed': not data['passed']})}\n")
    with pytest.raises(BadFile, match="differ"):
        LabelSet(labels.folder)


def test_an_item_cannot_name_a_file_elsewhere(tmp_path: Path) -> None:
    labels = drawn(tmp_path)
    file = labels.folder / "items.jsonl"
    file.write_text(file.read_text().replace(next(iter(labels.items)), "../../ledger", 1))
    with pytest.raises(BadFile, match="not an id of an item"):
        LabelSet(labels.folder)


_GRADER = """
import sys
from greenroom.results import LabelSet
labels = LabelSet(sys.argv[1])
for item in labels.left("ana"):
    labels.grade(item, "ana", "yes")
    print(item, flush=True)
"""


def test_what_was_confirmed_outlives_a_killed_process(tmp_path: Path) -> None:
    labels = drawn(tmp_path, 200)
    command = [sys.executable, "-c", _GRADER, str(labels.folder)]
    with WarmPython(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        confirmed = [process.stdout.readline().strip() for _ in range(20)]
        os.kill(process.pid, signal.SIGKILL)
        confirmed += [line.strip() for line in process.stdout if line.endswith("\n")]
    assert set(confirmed) <= {one.item for one in labels.grades()}
    assert len(labels.grades()) < 200


# How far they agree


def graders(table: Sequence[int], words: Sequence[str] = ("yes", "no")) -> list[dict[str, str]]:
    """Two graders whose answers fill this table, row by row."""
    pairs = [(a, b) for a in words for b in words]
    answers = [pair for pair, count in zip(pairs, table, strict=True) for _ in range(count)]
    return [{str(n): pair[side] for n, pair in enumerate(answers)} for side in (0, 1)]


# The first three are those of textbooks; in the last one luck is (7·7 + 6·7 + 7·6) / 20².
@pytest.mark.parametrize(
    "table, words, kappa",
    [
        ([20, 5, 10, 15], ("yes", "no"), 0.4),
        ([45, 15, 25, 15], ("yes", "no"), 0.06 / 0.46),
        ([25, 35, 5, 35], ("yes", "no"), 0.14 / 0.54),
        ([10, 0, 0, 10], ("yes", "no"), 1.0),
        ([0, 10, 10, 0], ("yes", "no"), -1.0),
        ([5, 5, 5, 5], ("yes", "no"), 0.0),
        ([4, 2, 1, 1, 3, 2, 2, 2, 3], ("a", "b", "c"), (0.5 - 0.3325) / (1 - 0.3325)),
    ],
)
def test_kappa_is_as_computed_by_hand(
    table: list[int], words: tuple[str, ...], kappa: float
) -> None:
    found = agreement_between(*graders(table, words))
    assert found.kappa == pytest.approx(kappa)
    assert found.low is not None
    assert found.high is not None
    assert found.low <= kappa + 1e-9
    assert found.high >= kappa - 1e-9


@given(st.lists(st.integers(0, 9), min_size=9, max_size=9))
def test_kappa_is_that_of_its_definition(table: list[int]) -> None:
    one, other = graders(table, ("a", "b", "c"))
    total = len(one)
    found = agreement_between(one, other)
    if not total:
        assert found.items == 0
        return
    share = Fraction(sum(one[n] == other[n] for n in one), total)
    luck = sum(
        Fraction([*one.values()].count(word), total)
        * Fraction([*other.values()].count(word), total)
        for word in "abc"
    )
    if luck == 1 or total < 20:
        assert found.kappa is None
    else:
        assert found.kappa == pytest.approx(float((share - luck) / (1 - luck)))
    mirrored = agreement_between(other, one)
    assert (mirrored.kappa, mirrored.items) == (pytest.approx(found.kappa), found.items)


def test_full_agreement_on_a_few_is_not_certainty() -> None:
    few, many = (agreement_between(*graders([n, 0, 0, n])) for n in (10, 200))
    assert few.kappa == many.kappa == 1.0
    assert few.low is not None
    assert many.low is not None
    assert 0.6 < few.low < 0.9 < many.low < 1


def test_two_who_always_say_the_same_word_show_no_agreement() -> None:
    found = agreement_between(*graders([30, 0, 0, 0]))
    assert found.kappa is None
    assert "chance explains all" in str(found)


def test_under_twenty_nothing_is_claimed() -> None:
    few = agreement_between(*graders([10, 0, 0, 9]))
    assert "it takes 20" in str(few)
    assert (few.kappa, few.low, few.high) == (None, None, None)
    assert alpha([["yes", "yes"], ["no", "no"]]) is None
    assert alpha([["yes", "yes"], ["no", "no"]] * 10) == 1.0
    assert "kappa 1.00" in str(agreement_between(*graders([10, 0, 0, 10])))
    assert agreement_between({"a": "yes"}, {"b": "yes"}).items == 0


def test_alpha_is_that_of_its_inventor() -> None:
    """Twelve units, four observers, as in Krippendorff's own example of nominal data."""
    rows = ("123321412***", "1233224125*3", "*3332342251*", "12332441251*")
    units = [[word for word in unit if word != "*"] for unit in zip(*rows, strict=True)]
    assert alpha(units) is None
    # Twice the units leave all shares as they are, but for the number that they are corrected by: 40 answers, then 80.
    differing = (1 - 0.743) * 40 / 39
    assert alpha([*units, *units]) == pytest.approx(1 - differing * 79 / 80, abs=0.0005)
    assert alpha([["yes", "yes"]] * 20) is None
    assert alpha([*[["yes", "yes"], ["no", "no"]] * 10, ["no"]]) == 1.0


def test_people_are_compared_with_each_other_and_with_the_judge(tmp_path: Path) -> None:
    labels = drawn(tmp_path)
    verdicts = labels.verdicts()
    for item in labels.items:
        labels.grade(item, "ana", verdicts[item])
        labels.grade(item, "ben", "cannot tell" if item == next(iter(labels.items)) else "no")
    found = labels.agreements()
    assert list(found) == [("ana", "ben"), ("ana", "the judge"), ("ben", "the judge")]
    assert found["ana", "the judge"].kappa == 1.0
    assert found["ana", "ben"].items == 29
    assert list(labels.agreements("ben")) == [("ana", "ben"), ("ben", "the judge")]
    assert labels.alpha() is not None
