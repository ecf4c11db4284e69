"""The reports of a set that was run in parts, put together into one."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from greenroom.errors import BadInput
from greenroom.results.report import PART, Report, new_report_id, shared_measures
from greenroom.results.result import CaseResult
from greenroom.results.words import listed, number_of

_PART = re.compile(rf"{PART}(\d{{1,6}}) of (\d{{1,6}})(?: \((of .{{1,60}})\))?", re.ASCII)
_WHERE = re.compile(r" \(in (\d{1,9}) of [\d,]{1,12} trials?\)", re.ASCII)
"""In how many trials a note holds, if not in all of them."""


def together(reports: Sequence[Report], names: Sequence[str]) -> Report:
    """All results as one report; a trial that is in two of them, or a missing part, is refused.

    `names` say where the reports are from, because those of one set have the same name.
    """
    if not reports:
        raise BadInput("there are no reports to put together; give at least one.")
    seen: dict[tuple[str, int], str] = {}
    for name, report in zip(names, reports, strict=True):
        for result in report.results:
            key = (result.case_id, result.trial)
            if other := seen.get(key):
                raise BadInput(
                    f"case {result.case_id!r}, trial {result.trial}, is in {other!r} and in {name!r}. Give "
                    f"the reports of different parts of a set; `--baseline` may be repeated for several "
                    f"reports of the same one."
                )
            seen[key] = name
    _check_whole(reports)
    _check_finished(reports, names)
    first = reports[0]
    titles = list(dict.fromkeys(report.name for report in reports if report.name))
    sets = list(dict.fromkeys(report.evalset_id for report in reports if report.evalset_id))
    begun = [report.at for report in reports if report.at is not None]
    against = {report.against for report in reports}
    return replace(
        first,
        results=_all(report.results for report in reports),
        name=", ".join(titles),
        # The parts ran in parallel, so the longest one is the time it took.
        seconds=max(report.seconds for report in reports),
        notes=tuple(n for n in joined_notes(reports) if not _PART.fullmatch(n)),
        id=new_report_id(),
        evalset_id=sets[0] if len(sets) == 1 else ", ".join(sets),
        at=min(begun, default=None),
        adaptive=any(report.adaptive for report in reports),
        parts=parts_of(reports),
        confirmed=tuple(_all(report.confirmed for report in reports)),
        against=first.against if len(against) == 1 else None,
        sources={case: place for report in reports for case, place in report.sources.items()},
        measures=shared_measures(reports),
    )


def joined_notes(reports: Sequence[Report]) -> list[str]:
    """The notes of these reports, each once; in how many trials one holds is counted over all of them."""
    trials = [report.summary.total - report.summary.skipped for report in reports]
    held: Counter[str] = Counter()
    shown: dict[str, str] = {}
    partial: set[str] = set()
    for report, count in zip(reports, trials, strict=True):
        for note in report.notes:
            found = _WHERE.search(note)
            bare = _WHERE.sub("", note, count=1)
            if found is None:
                held[bare] += count
                shown.setdefault(bare, bare)
            else:
                held[bare] += int(found[1])
                shown[bare] = note
                partial.add(bare)
    every = number_of(sum(trials), "trial")
    return [
        _WHERE.sub("" if held[bare] == sum(trials) else f" (in {held[bare]} of {every})", note, 1)
        if bare in partial
        else note
        for bare, note in shown.items()
    ]


def parts_of(reports: Iterable[Report]) -> list[Sequence[str]]:
    """The cases of each of these runs that is adaptive; the others have no rounds of their own."""
    found: list[Sequence[str]] = []
    for report in reports:
        if report.adaptive:
            found += report.parts or [list(report.by_case())]
    return found


def _check_finished(reports: Sequence[Report], names: Sequence[str]) -> None:
    """Refuse a part of which some trials did not run, as after Ctrl-C or at the end of a budget."""
    for name, report in zip(names, reports, strict=True):
        left = [r for r in report.results if r.status == "skipped" and r.error is None]
        why = report.unfinished
        if left:
            why = f"{len(left)} of {number_of(len(report), 'trial')} did not run: {listed([r.label for r in left])}"
        if why:
            raise BadInput(
                f"{name!r} is not the report of a whole part: {why}. Resume that run (--resume), and give its "
                f"report then."
            )


def _check_whole(reports: Sequence[Report]) -> None:
    """Refuse to judge a set of which a part is missing: what did not run did not pass."""
    found: dict[tuple[str, int, str], Counter[int]] = {}
    for report in reports:
        for note in report.notes:
            if part := _PART.fullmatch(note):
                whole = (report.evalset_id or report.name, int(part[2]), part[3] or "")
                found.setdefault(whole, Counter())[int(part[1])] += 1
    for (name, parts, selected), given in sorted(found.items()):
        # Sets of several agents may have the same name; then each part is there as often as any other.
        often = max(given.values())
        missing = [n for n in range(1, parts + 1) if given[n] < often]
        if missing:
            raise BadInput(
                f"the set {name!r} was run in {parts} parts, and the report of part {missing[0]} is missing"
                f"{selected and f' ({selected})'}. Give all of them, or run that part of the same cases again: "
                f"--shard {missing[0]}/{parts}."
            )


def _all(parts: Iterable[Sequence[CaseResult]]) -> list[CaseResult]:
    return [result for part in parts for result in part]
