"""A report for a terminal: the table, each metric, why cases did not pass, and the counts."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from io import StringIO
from typing import ClassVar, Literal

from rich.text import Text

from greenroom.cases.scores import NotApplicable, Outcome, Score, Unmeasured
from greenroom.reports.difference import differences
from greenroom.reports.table import STYLES, metric_summaries, rated, show_table, shown_outcome
from greenroom.reports.terminal import Terminal, plain, styled
from greenroom.reports.transcript import LONGEST, Line, Omitted, abridged, transcript
from greenroom.reports.words import duration, shortened
from greenroom.results.gate import Decision, held_against
from greenroom.results.redaction import redacted, redacted_decision
from greenroom.results.report import FAULT, Report
from greenroom.results.result import CaseResult
from greenroom.results.text import counted, how_many, repeats, run_again

Detail = Literal["little", "usual", "all"]

_PAGE = 160
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

    `rerun` holds the command that plays a case again, by case id.
    """

    terminal: Terminal
    detail: Detail = "usual"
    rerun: Mapping[str, str] = field(default_factory=dict[str, str])

    def show(
        self,
        report: Report,
        *,
        baseline: Report | None = None,
        decision: Decision | None = None,
    ) -> None:
        """Print everything, without secrets; `baseline` adds what changed, `decision` what the gate said."""
        report = redacted(report)
        if self.detail != "little":
            self._table(report)
            for result in report.results:
                if self._is_told(result):
                    self._case(result)
            self._skipped(report)
        self.terminal.say(totals(report))
        for line in run_again(report):
            self.terminal.say(line)
        for note in report.notes:
            is_fault = note.startswith(FAULT)
            self.terminal.say(styled("" if is_fault else "note: ", "yellow"), note)
        if (changes := held_against(report, baseline, decision)) is not None:
            self.terminal.say(str(changes))
        for line in _gate(redacted_decision(decision)):
            self.terminal.say(line)

    def _is_told(self, result: CaseResult) -> bool:
        return self.detail == "all" or result.status in ("failed", "error", "terminated")

    def _table(self, report: Report) -> None:
        metrics = report.metrics
        show_table(report, metrics, self.terminal)
        self.terminal.print()
        for line in metric_summaries(metrics):
            self.terminal.say(line)
        if metrics:
            self.terminal.print()

    def _skipped(self, report: Report) -> None:
        notes = Counter(n for r in report.results if r.status == "skipped" for n in r.notes)
        for note, count in notes.items():
            self.terminal.say(styled(f"{count} skipped: ", STYLES["skipped"]), note)

    # One case

    def _case(self, result: CaseResult) -> None:
        title = f" ({result.name})" if result.name and result.name != result.case_id else ""
        self.terminal.say(
            styled(result.status, STYLES[result.status]),
            "  ",
            styled(result.label, "bold"),
            title,
        )
        self._problem(result)
        self._scores(result)
        self._differences(result)
        self._transcript(result)
        if result.case_id in self.rerun:
            again = plain("  ", styled("again: ", "dim"), self.rerun[result.case_id])
            # The terminal breaks the line, not we: so it can be copied in one piece.
            self.terminal.print(again, soft_wrap=True)
        self.terminal.print()

    def _problem(self, result: CaseResult) -> None:
        if result.error is not None:
            kind = f" ({result.error.type})" if result.error.type else ""
            label = styled(f"error in phase {result.error.phase}{kind}: ", "bold red")
            self.terminal.say(label, result.error.message, indent=2)
        if result.status == "terminated":
            limit = f"cut at its limit ({result.ended}) after {result.turns} turns"
            self.terminal.say(styled(limit, STYLES["terminated"]), indent=2)
        for note in result.notes:
            self.terminal.say(note, indent=2)

    def _scores(self, result: CaseResult) -> None:
        told = {
            name: outcome
            for name, outcome in result.scores.items()
            if self.detail == "all" or not _is_fine(outcome)
        }
        for outcome, names in _together(told):
            label = shown_outcome(outcome, self.terminal)
            reason = plain(styled(", ".join(names), "bold"), ": ", _why(outcome))
            self.terminal.hang(label, reason, indent=2, width=label.cell_len + 2)

    def _differences(self, result: CaseResult) -> None:
        """What was expected beside what came."""
        for one in differences(result):
            self.terminal.say(styled(f"turn {one.turn}, {one.part}", "dim"), indent=2)
            for label, texts in (("expected", one.expected), ("got", one.actual)):
                for text in texts or ["nothing"]:
                    told = text if self.detail == "all" else shortened(text, LONGEST)
                    self.terminal.hang(styled(label, "dim"), plain(told), indent=4, width=13)
                    label = ""

    def _transcript(self, result: CaseResult) -> None:
        ledger = result.ledger
        lines = transcript(ledger) if ledger is not None else ()
        for line in abridged(lines, whole=self.detail == "all"):
            if isinstance(line, Omitted):
                self.terminal.say(styled(f"{line}; -v shows them all", "dim"), indent=4)
            else:
                self._line(line)

    def _line(self, line: Line) -> None:
        source = styled(f"  ({line.source})" if line.source else "", "dim")
        who = Text(line.who, _SPEAKERS[line.who])
        self.terminal.hang(who, plain(line.text, source), indent=4, width=13)


class ConsoleText:
    """The same as plain text, for a file."""

    name: ClassVar[str] = "console"
    file: ClassVar[str] = "eval_report.txt"

    def render(
        self,
        report: Report,
        *,
        baseline: Report | None = None,
        decision: Decision | None = None,
    ) -> str:
        """What a terminal without colours and without an edge would show."""
        page = StringIO()
        shown = ConsoleReport(Terminal(page, width=_PAGE))
        shown.show(report, baseline=baseline, decision=decision)
        return page.getvalue()


def _gate(decision: Decision | None) -> list[str]:
    if decision is None:
        return []
    return [f"gate missed: {one.why}" for one in decision.missed] or ["gate passed"]


def _together(told: Mapping[str, Outcome]) -> Iterator[tuple[Outcome, list[str]]]:
    """The outcomes with their metrics; what one event kept several from measuring is said once."""
    unmeasured: dict[Outcome, list[str]] = {}
    for name, outcome in told.items():
        if isinstance(outcome, Unmeasured):
            unmeasured.setdefault(outcome, []).append(name)
    for name, outcome in told.items():
        if not isinstance(outcome, Unmeasured):
            yield outcome, [name]
        elif names := unmeasured.pop(outcome, []):
            yield outcome, names


def _is_fine(outcome: Outcome) -> bool:
    return isinstance(outcome, NotApplicable) or (isinstance(outcome, Score) and outcome.passed)


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
    parts = [f"{how_many(report)}: {counted(report.summary)}", passing]
    told = [*parts, *repeats(report), duration(report.seconds), *_spent(report)]
    return Text("; ").join(map(plain, told))


def _spent(report: Report) -> list[str]:
    return [
        *_paid("answered by", report.models, report.cost),
        *_paid("users simulated by", report.user_models, report.user_cost),
        *_paid("judged by", report.judge_models, report.judge_cost),
    ]


def _paid(what: str, models: Iterable[str], cost: float | None) -> list[str]:
    if not (names := ", ".join(models)):
        return []
    told = "cost unknown" if cost is None else f"cost ${cost:.4f}"
    return [f"{what} {names}", *([] if cost == 0 else [told])]
