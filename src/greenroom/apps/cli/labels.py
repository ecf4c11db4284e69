"""`greenroom labels`: draw trials, grade them in the terminal, say how far people agree."""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace

import click
import msgspec

from greenroom.apps.cli.exits import aside, put_out, put_out_data
from greenroom.apps.cli.report_output import open_store
from greenroom.errors import BadInput
from greenroom.ledger.plain import Json, number_in
from greenroom.reports.transcript import retold, transcript
from greenroom.results.labels import (
    ANSWERS,
    Drawn,
    LabelSet,
    blind,
    draw_labels,
    rater_name,
)
from greenroom.results.statistics.agreement import FEWEST
from greenroom.results.statistics.calibration import Calibration, judged_tallies
from greenroom.results.statistics.intervals import of_cases
from greenroom.results.words import number_of
from greenroom.store import Store
from greenroom.suite.recorded.judges import run_judges, trial_judges


def draw(
    runs: Sequence[str],
    question: str,
    metric: str,
    count: int,
    seed: int,
    output: str,
    store: str,
) -> None:
    """Write a new label set."""
    trials = _trials(open_store(store), runs, metric)
    found = draw_labels(output, trials, question=question, metric=metric, count=count, seed=seed)
    put_out(f"{number_of(len(found.items), 'trial')} in {found.folder}")
    grade = shlex.join(["greenroom", "labels", "grade", str(found.folder), "--rater", "NAME"])
    page = shlex.join(["greenroom", "web", "--labels", str(found.folder.parent)])
    aside(f"grade them: {grade}, or on the page of {page}")


def _trials(store: Store, runs: Sequence[str], metric: str) -> Iterator[Drawn]:
    for given in runs:
        run = store.run(given)
        judges: dict[str, dict[str, str]] = {}
        for _, result in store.results(run.id):
            if metric and result.kept is not None and result.case_id not in judges:
                judges[result.case_id] = trial_judges(result, run.plan)
            yield Drawn(run.id, result, judges.get(result.case_id, {}))


def grade(folder: str, rater: str) -> None:
    """Show conversations and take grades until all are graded, or the person leaves."""
    labels, rater = LabelSet(folder), rater_name(rater)
    words = "  ".join(f"{n} {answer}" for n, answer in enumerate(ANSWERS, 1))
    while left := labels.left(rater):
        done = len(labels.items) - len(left)
        put_out(f"\n── {done + 1} of {len(labels.items)} ──")
        ledger = labels.ledger(left[0])
        lines = [replace(line, source="") for line in transcript(blind(ledger.redacted()))]
        put_out("\n".join(retold(lines, whole=True)))
        aside(f"\n{labels.settings.question}\n{words}  (and a note, if you like)  u undo  q leave")
        if not _take(labels, rater, left[0], click.prompt("", prompt_suffix="> ", err=True)):
            break
    left_over = len(labels.left(rater))
    aside(f"{number_of(left_over, 'trial')} left" if left_over else "all are graded")


def _take(labels: LabelSet, rater: str, item: str, typed: str) -> bool:
    """Do what was typed; False to leave."""
    word, _, note = typed.strip().partition(" ")
    mine = [one.item for one in labels.grades() if one.rater == rater]
    if word == "q":
        return False
    if word == "u" and mine:
        labels.grade(mine[-1], rater, None)
    elif 1 <= (answer := number_in(word) or 0) <= len(ANSWERS):
        labels.grade(item, rater, ANSWERS[answer - 1], note.strip())
    else:
        aside(f"type a number from 1 to {len(ANSWERS)}, u or q")
    return True


def show_agreement(folder: str, as_json: bool) -> None:
    """Print how far each pair of raters agrees."""
    labels = LabelSet(folder)
    found, alpha = labels.agreements(), labels.alpha()
    if as_json:
        put_out_data(_data(labels))
        return
    for (one, other), agreed in found.items():
        put_out(f"{one} and {other} {agreed}")
    if len(labels.said()) > 2:
        why = f"unknown: it takes {FEWEST} items with two answers, and answers that differ"
        put_out(
            f"all people together: Krippendorff's alpha {why if alpha is None else f'{alpha:.2f}'}"
        )
    if not found:
        aside("no one has graded yet")


def calibrate(folder: str, runs: Sequence[str], store: str, as_json: bool) -> None:
    """Print the pass rate of each run by the judge, and the estimate of what people would say."""
    labels, place = LabelSet(folder), open_store(store)
    found: list[Json] = []
    for given in runs:
        run = place.run(given)
        report = place.report(run.id)
        judges = run_judges(report, run.plan) if labels.settings.metric else None
        known = Calibration.of(labels, judges)
        tallies = judged_tallies(report, known.metric)
        left = len(report.results) - sum(measured for _, measured in tallies)
        by_judge, by_people = of_cases(tallies), known.corrected(tallies)
        if by_judge is None or by_people is None:
            raise BadInput(f"run {run.id!r} has fewer than two cases with a verdict.")
        row: dict[str, Json] = {
            "run": run.id,
            "by_judge": msgspec.to_builtins(by_judge),
            "by_people": msgspec.to_builtins(by_people),
            "judge_right_of_passed": list(known.passed),
            "judge_right_of_failed": list(known.failed),
            "people_divided": known.divided,
            "left_out": left,
        }
        found.append(row)
        if not as_json:
            put_out(f"run {run.id}: {by_judge} pass by the judge, {by_people} by people")
            put_out(f"the judge {known}")
            if left:
                put_out(f"{number_of(left, 'trial')} without a verdict left out")
    if as_json:
        put_out_data(found)
    elif not labels.settings.metric:
        aside("it is unknown whether these runs used the metrics that people were compared with")


def _data(labels: LabelSet) -> Json:
    pairs: list[Json] = [
        {
            "between": [one, other],
            "items": found.items,
            "agreed": found.agreed,
            "by_luck": found.luck,
            "kappa": found.kappa,
            "low": found.low,
            "high": found.high,
        }
        for (one, other), found in labels.agreements().items()
    ]
    return {
        "question": labels.settings.question,
        "metric": labels.settings.metric,
        "items": len(labels.items),
        "pairs": pairs,
        "alpha": labels.alpha(),
    }
