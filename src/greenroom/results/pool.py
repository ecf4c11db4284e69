"""Several reports of the same cases as one: the last runs of a branch as a baseline of many trials."""

from collections.abc import Sequence
from dataclasses import replace

from greenroom.errors import BadInput
from greenroom.results.changes import first_round, same_case
from greenroom.results.report import Report
from greenroom.results.result import CaseResult


def pooled(reports: Sequence[Report]) -> Report:
    """The trials of all reports, numbered anew; a case counts as the last report has it.

    Trials of a case that asked for something else are left out. A single report is given as it is.
    """
    if not reports:
        raise BadInput("there is no report to pool; give one or more.")
    # The same run given twice is no more evidence than once.
    reports = list({report.id or id(report): report for report in reports}.values())
    if len(reports) == 1:
        return reports[0]
    found: dict[str, list[CaseResult]] = {}
    for report in reversed(reports):
        for case_id, results in report.by_case().items():
            known = found.setdefault(case_id, [])
            # How many trials an adaptive run played depends on how they ended: the first counts.
            taken = first_round(results) if report.adaptive else results
            known += [r for r in taken if not known or same_case(r, known[0]) is not False]
    last = reports[-1]
    return Report(
        [replace(r, trial=n) for trials in found.values() for n, r in enumerate(trials, start=1)],
        name=last.name,
        seconds=sum(report.seconds for report in reports),
        notes=list(dict.fromkeys(note for report in reports for note in report.notes)),
        id="+".join(report.id for report in reports),
        evalset_id=last.evalset_id,
        at=last.at,
    )
