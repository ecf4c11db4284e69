"""After a run: write its files, show all reports together, and apply the quality gate."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from greenroom.apps.cli import report_output
from greenroom.apps.cli.exits import BAD_INPUT, PASSED, Stopped, put_out_json
from greenroom.apps.cli.request import Chosen, Order
from greenroom.cases import EvalSet
from greenroom.cases.files import read_evalset
from greenroom.cases.files.save import evalset_text
from greenroom.cases.suffixes import TABLES
from greenroom.errors import BadFile, BadInput, StoreFailed
from greenroom.ledger.plain import Json
from greenroom.reports.terminal import Terminal
from greenroom.reports.variants import variants_table
from greenroom.results import Report, failed_cases
from greenroom.results.gate import Decision
from greenroom.results.words import number_of
from greenroom.suite.inputs.references import split_reference

Reports = Mapping[str, Report]
"""The report of each agent."""
Decisions = Mapping[str, Decision]
"""The gate's decision on each agent's report; an interrupted run has none."""


def left_behind(
    order: Order,
    cases: Chosen,
    reports: Reports,
    plan: report_output.Plan,
    baseline: Report | None,
    decisions: Decisions,
) -> list[str]:
    """Write every requested file; returns why some could not be written, which must not lose the run."""
    steps: list[Callable[[], object]] = []
    if order.leave_report:
        steps.append(lambda: reports[order.agent].save(order.leave_report))
    for number, (agent, report) in enumerate(reports.items(), start=1):
        own = report_output.for_variant(plan, number) if len(reports) > 1 else plan
        said = decisions.get(agent)
        steps.append(partial(report_output.write_report, report, own, baseline, said, order.aside))
    if order.save_failures:
        steps.append(lambda: _save_failures(order, cases, reports))
    unwritten: list[str] = []
    for step in steps:
        try:
            step()
        except (BadInput, StoreFailed) as error:
            unwritten.append(str(error))
    return unwritten


def check_failures_fit(order: Order, cases: Chosen) -> None:
    """Refuse a file that must not be replaced or could not hold these cases, before any of them runs."""
    target = Path(order.save_failures)
    _check_replaceable(target, cases)
    try:
        evalset_text(_without_origin(replace(cases.evalset, extra=None), target), target)
    except BadFile as error:
        raise BadInput(f"--save-failures: {error}") from error


def _check_replaceable(target: Path, cases: Chosen) -> None:
    """Refuse to replace a file, unless it is empty or holds failures that were saved before."""
    if not report_output.is_there(target):
        return
    sources = [Path(split_reference(one.reference)[0]) for one in cases.gathered.sources]
    if any(report_output.is_there(source) and target.samefile(source) for source in sources):
        raise BadInput(
            f"--save-failures: the cases of this run are read from {target}, and would be lost. "
            f"Name another file."
        )
    with suppress(BadFile):
        if not target.stat().st_size or "created_from_report" in read_evalset(target).metadata:
            return
    raise BadInput(
        f"--save-failures: {target} already exists, and does not hold failures that were saved before. "
        f"Name another file, or delete it."
    )


def _save_failures(order: Order, cases: Chosen, reports: Reports) -> None:
    target = Path(order.save_failures)
    failures = _failures(reports, cases.evalset)
    if target.suffix in TABLES and not failures.cases:
        order.aside(f"every case passed; {target} is not written, since a table needs a row")
        return
    _without_origin(failures, target).save(target)
    count = number_of(len(failures), "case")
    order.aside(f"saved {count} that did not pass to {target}")


def _failures(reports: Reports, evalset: EvalSet) -> EvalSet:
    """The cases that did not pass with one of the agents, each once; of several agents, which failed where."""
    found = {agent: failed_cases(report, evalset) for agent, report in reports.items()}
    first = next(iter(found.values()))
    if len(found) == 1:
        return first
    cases = {case.id: case for failures in found.values() for case in failures}
    metadata: dict[str, Json] = {
        **first.metadata,
        "created_from_report": [report.id for report in reports.values()],
        "failed_with": {agent: list(failures.ids) for agent, failures in found.items()},
    }
    in_order = [cases[case.id] for case in evalset if case.id in cases]
    return replace(first, cases=in_order, metadata=metadata)


def _without_origin(evalset: EvalSet, target: Path) -> EvalSet:
    """The set as the file can hold it: a table has no place for where its rows are from."""
    if target.suffix not in TABLES:
        return evalset
    return replace(evalset, name="", description="", metadata={})


def show_together(
    order: Order, reports: Reports, baseline: Report | None, decisions: Decisions
) -> None:
    """Print what belongs to all reports together."""
    if order.as_json:
        put_out_json(_json(order, reports, decisions))
        return
    terminal = Terminal()
    if len(reports) > 1 and not order.quiet:
        terminal.print()
        terminal.print(variants_table(reports))
    if baseline is not None:
        said = decisions.get(order.agent)
        seen = said.comparison if said is not None else None
        terminal.print()
        terminal.say_lines(str(seen or order.compared(baseline, reports[order.agent])))


def _json(order: Order, reports: Reports, decisions: Decisions) -> str | Iterable[str]:
    """One report as its file has it; those of several agents keyed by agent."""
    from greenroom.ledger.redaction import redactor
    from greenroom.results.data import report_data
    from greenroom.results.files import json_text, report_parts
    from greenroom.results.redaction import redacted, redacted_decision

    if len(reports) == 1:
        return report_parts(reports[order.agent], decision=decisions.get(order.agent))
    data: dict[str, Json] = {
        redactor().text(agent): report_data(
            redacted(report), decision=redacted_decision(decisions.get(agent))
        )
        for agent, report in reports.items()
    }
    return json_text(data) + "\n"


def decided(order: Order, reports: Reports, baseline: Report | None) -> Decisions:
    """The gate's decision on each report; exit code, terminal and files all use this one."""
    gate = order.gate
    found: dict[str, Decision] = {}
    for agent, report in reports.items():
        if baseline is None:
            decision = gate.decide(report)
        elif agent == order.agent:
            decision = gate.decide(report, baseline)
        else:
            # The baseline is the first agent's. With one, no minimum applies unless it was given.
            alone = replace(gate.without_baseline, min_pass_rate=order.min_pass_rate or 0.0)
            decision = alone.decide(report)
        found[agent] = decision
    return found


def end(decisions: Decisions, unwritten: Sequence[str] = ()) -> None:
    """Raise if anything keeps the run from passing, with the highest exit code of all reasons."""
    reasons = list(unwritten)
    code = BAD_INPUT if unwritten else PASSED
    for agent, decision in decisions.items():
        whose = f"{agent}: " if len(decisions) > 1 else ""
        reasons += [f"{whose}{missed.why}" for missed in decision.missed]
        code = max(code, decision.exit_code)
    if reasons:
        raise Stopped("\n".join(reasons), code)
