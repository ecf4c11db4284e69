"""A report for a terminal: the table, each metric, why cases did not pass, and the counts."""

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from io import StringIO
from typing import ClassVar, Literal

from rich.text import Text

from greenroom.cases.scores import NotApplicable, Outcome, Score, Unmeasured
from greenroom.ledger.safe_text import on_one_line
from greenroom.reports.failure import differences
from greenroom.reports.shown import shown_part
from greenroom.reports.table import (
    STYLES,
    metric_summaries,
    rated,
    show_table,
    shown_outcome,
    trials_table,
)
from greenroom.reports.terminal import Terminal, plain, styled
from greenroom.reports.transcript import LONGEST, Omitted, abridged, transcript
from greenroom.reports.words import at_least, duration, tokens
from greenroom.results.comparisons.families import families
from greenroom.results.facts import is_fine
from greenroom.results.gate import Decision, held_against
from greenroom.results.redaction import redacted, redacted_decision
from greenroom.results.report import FAULT, Report
from greenroom.results.result import CaseResult
from greenroom.results.text import how_many, mark, node_spending, repeats, run_again, spending
from greenroom.results.trials import (
    Trials,
    alike,
    has_repeats,
    parting,
    passes,
    status_of,
    varied,
    varied_calls,
)
from greenroom.results.words import counted, dollars, listed, number_of, shortened

Detail = Literal["little", "usual", "all"]

_PAGE = 160
_MOST_NODES = 20
_MOST_WAYS = 3
_SPEAKERS = {
    "user": "cyan",
    "agent": "bold",
    "tool": "magenta",
    "user's tool": "blue",
    "refused": "bold red",
    "end": "dim",
}


@dataclass(frozen=True, slots=True)
class ConsoleReport:
    """Shows a report: the counts only, what a reader usually wants, or all there is to see.

    `rerun` holds the command that runs a case again, by case id. `diff` is the command that compares
    trials of the run, where it is recorded.
    """

    terminal: Terminal
    detail: Detail = "usual"
    rerun: Mapping[str, str] = field(default_factory=dict[str, str])
    diff: str = ""

    def show(
        self,
        report: Report,
        *,
        baseline: Report | None = None,
        decision: Decision | None = None,
    ) -> None:
        """Print everything, without secrets; `baseline` adds what changed, `decision` the quality gate's verdict."""
        report = redacted(report)
        if self.detail != "little":
            part = report if self.detail == "all" else shown_part(report)
            self._table(report, part)
            for trials in part.by_case().values():
                self._trials(trials)
            if len(part) < len(report):
                left = report.totals.cases - part.totals.cases
                self.terminal.say(
                    f"{left:,} of {report.totals.cases:,} cases are not shown; those that are ended "
                    f"worst. -v shows all."
                )
            for note, count in report.totals.left_out.items():
                self.terminal.say(styled(f"{count} skipped: ", STYLES["skipped"]), note)
        self.terminal.say(totals(report))
        for line in run_again(report):
            self.terminal.say(line)
        for note in report.notes:
            is_fault = note.startswith(FAULT)
            self.terminal.say(styled("" if is_fault else "note: ", "yellow"), note)
        if (changes := held_against(report, baseline, decision)) is not None:
            self.terminal.say_lines(str(changes))
        if (said := redacted_decision(decision)) is not None:
            for line in [f"gate missed: {one.why}" for one in said.missed] or ["gate passed"]:
                self.terminal.say(line)

    def _table(self, report: Report, part: Report) -> None:
        if has_repeats(report):
            trials_table(part, self.terminal)
        else:
            show_table(part, self.terminal)
        self.terminal.print()
        lines = list(metric_summaries(families(report.metrics), whole=self.detail == "all"))
        names = [name.cell_len for name, words in lines if words]
        width = min(max(names, default=0), self.terminal.width // 2) + 2
        for name, words in lines:
            # A name that is longer than its column gets its own line.
            if words and name.cell_len + 2 > width:
                self.terminal.say(name)
                name = Text()
            self.terminal.hang(name, words, width=width)
        if lines:
            self.terminal.print()
        self._nodes(report)

    def _nodes(self, report: Report) -> None:
        """Print what each node spent; a single node spent the whole, so it is not listed."""
        nodes = node_spending(report)
        if len(nodes) < 2:
            return
        width = min(self.terminal.width // 2, max(map(len, nodes)))
        for node, spent in [*nodes.items()][:_MOST_NODES]:
            read, written = tokens(spent)
            calls = number_of(spent.calls, "call")
            words = f"{calls}, {read} tokens in, {written} out, {at_least(spent)}"
            label = styled(shortened(node, width), "bold")
            self.terminal.hang(label, plain(words), width=width + 2)
        if len(nodes) > _MOST_NODES:
            self.terminal.say(f"{len(nodes) - _MOST_NODES} more nodes are not shown")
        self.terminal.print()

    # One case

    def _trials(self, trials: Trials) -> None:
        """Print a case's trials: with all details each of them, else one of each kind that fell short."""
        if len(trials) > 1 and (status_of(trials) == "flaky" or self.detail == "all"):
            self._flaky(trials)
        if self.detail == "all":
            groups = [[result] for result in trials]
        else:
            groups = alike([result for result in trials if result.fell_short])
        for group in groups if self.detail == "all" else groups[:_MOST_WAYS]:
            self._case(group, len(trials))
        if self.detail != "all" and (left := groups[_MOST_WAYS:]):
            count = number_of(sum(map(len, left)), "more trial")
            self.terminal.say(styled(f"{count} fell short in other ways; -v shows them", "dim"))
            self.terminal.print()

    def _flaky(self, trials: Trials) -> None:
        """Print what differed between the trials of a case, and the event at which two of them part."""
        status = status_of(trials)
        name, passed = styled(on_one_line(trials[0].case_id), "bold"), f"  {passes(trials)} passed"
        self.terminal.say(styled(status, STYLES[status]), "  ", name, passed)
        calls = varied_calls(trials)
        if found := [*varied(trials), *([calls] if calls else [])]:
            self.terminal.hang(styled("differed", "dim"), plain("; ".join(found)), 2, 10)
        if (two := parting(trials)) is not None:
            self.terminal.hang(styled("parted", "dim"), plain(str(two)), 2, 10)
            if self.diff:
                pair = f"{trials[0].case_id}#{two.passed}", "--with", f"#{two.failed}"
                again = plain("  ", styled("diff      ", "dim"), f"{self.diff} {shlex.join(pair)}")
                self.terminal.print(again, soft_wrap=True)
        self.terminal.print()

    def _case(self, group: Trials, of: int) -> None:
        """Print one trial; the others of its group ended the same way."""
        result, *others = group
        title = f" ({result.name})" if result.name and result.name != result.case_id else ""
        if of > 1:
            numbers = listed([str(other.trial) for other in others])
            title += f" (trial {result.trial}; the same in {numbers})" if others else ""
        name = on_one_line(result.case_id) if others else result.label
        self.terminal.say(
            styled(result.status, STYLES[result.status]), "  ", styled(name, "bold"), title
        )
        self._problem(result)
        self._scores(result)
        # What was expected next to what happened.
        for one in differences(result):
            self.terminal.say(styled(f"turn {one.turn}, {one.part}", "dim"), indent=2)
            for label, texts in (("expected", one.expected), ("got", one.actual)):
                for text in texts or ["nothing"]:
                    shown = text if self.detail == "all" else shortened(text, LONGEST)
                    self.terminal.hang(styled(label, "dim"), plain(shown), indent=4, width=13)
                    label = ""
        self._transcript(result)
        if result.case_id in self.rerun:
            often = f" --trials {of}" if of > 1 else ""
            again = plain("  ", styled("again: ", "dim"), f"{self.rerun[result.case_id]}{often}")
            # Only the terminal wraps the line, so that it can be copied in one piece.
            self.terminal.print(again, soft_wrap=True)
        self.terminal.print()

    def _problem(self, result: CaseResult) -> None:
        if result.error is not None:
            kind = f" ({result.error.type})" if result.error.type else ""
            label = styled(f"error in phase {result.error.phase}{kind}: ", "bold red")
            self.terminal.say(label, result.error.message, indent=2)
        if result.status == "terminated":
            turns = number_of(result.turns, "turn")
            limit = f"stopped at its limit ({result.ended}) after {turns}"
            self.terminal.say(styled(limit, STYLES["terminated"]), indent=2)
        for note in result.notes:
            self.terminal.say(note, indent=2)
        if result.trace_id:
            self.terminal.say(f"trace: {result.trace_link or result.trace_id}", indent=2)

    def _scores(self, result: CaseResult) -> None:
        shown = {
            name: outcome
            for name, outcome in result.scores.items()
            if self.detail == "all" or name in result.replaced or not is_fine(outcome)
        }
        for outcome, names in _grouped(shown):
            label = shown_outcome(outcome, self.terminal)
            why = f"{_why(outcome)}{mark(result, names[0])}"
            if result.broke and isinstance(outcome, Unmeasured):
                why = "the trial broke"  # printed above
            reason = plain(styled(", ".join(names), "bold"), ": ", why)
            self.terminal.hang(label, reason, indent=2, width=label.cell_len + 2)

    def _transcript(self, result: CaseResult) -> None:
        ledger = result.ledger_or_none
        lines = transcript(ledger) if ledger is not None else ()
        for line in abridged(lines, whole=self.detail == "all"):
            if isinstance(line, Omitted):
                self.terminal.say(styled(f"{line}; -v shows them all", "dim"), indent=4)
            else:
                source = styled(f"  ({line.source})" if line.source else "", "dim")
                who = Text(line.who, _SPEAKERS[line.who])
                self.terminal.hang(who, plain(line.text, source), indent=4, width=13)


class ConsoleText:
    """The console report as plain text, for a file."""

    name: ClassVar[str] = "console"
    file: ClassVar[str] = "eval_report.txt"

    def render(
        self,
        report: Report,
        *,
        baseline: Report | None = None,
        decision: Decision | None = None,
    ) -> str:
        """What a wide terminal without colours would show."""
        page = StringIO()
        shown = ConsoleReport(Terminal(page, width=_PAGE))
        shown.show(report, baseline=baseline, decision=decision)
        return page.getvalue()


def _grouped(shown: Mapping[str, Outcome]) -> Iterator[tuple[Outcome, list[str]]]:
    """The outcomes with their metrics; those that could not measure for the same reason together."""
    unmeasured: dict[Outcome, list[str]] = {}
    for name, outcome in shown.items():
        if isinstance(outcome, Unmeasured):
            unmeasured.setdefault(outcome, []).append(name)
    for name, outcome in shown.items():
        if not isinstance(outcome, Unmeasured):
            yield outcome, [name]
        elif names := unmeasured.pop(outcome, []):
            yield outcome, names


def _why(outcome: Outcome) -> str:
    match outcome:
        case Score():
            bar = (
                f"below {outcome.threshold:g}" if outcome.threshold is not None else "did not pass"
            )
            return outcome.reason or ("passed" if outcome.passed else bar)
        case NotApplicable() | Unmeasured():
            return outcome.why


def totals(report: Report) -> Text:
    """The counts, the pass rate, the time, who answered and what they cost, on one line."""
    rate = report.pass_rate
    passing = (
        plain("nothing evaluated")
        if rate is None
        else plain(rated(rate, report.interval), " passing")
    )
    counts = f"{how_many(report)}: {counted(report.summary)}"
    parts = [counts, passing, *repeats(report)]
    # The process of a run that was killed could not say how long it took.
    if report.seconds or not report.unfinished:
        parts.append(duration(report.seconds))
    for spent in spending(report):
        parts.append(f"{spent.did} {', '.join(spent.models)}")
        if spent.cost != 0:
            parts.append("cost unknown" if spent.cost is None else f"cost {dollars(spent.cost)}")
    return Text("; ").join(map(plain, parts))
