"""A case that did not pass, told in plain text: why, what was expected instead, and what was said."""

from collections.abc import Iterator, Sequence

from greenroom.ledger.redaction import redactor
from greenroom.reports.difference import Difference, differences
from greenroom.reports.transcript import LONGEST, Line, retold, transcript
from greenroom.reports.words import printable, shortened
from greenroom.results.redaction import redacted
from greenroom.results.report import Report
from greenroom.results.result import CaseResult
from greenroom.results.text import reasons


def failure_text(result: CaseResult, *, again: str = "", whole: bool = False) -> str:
    """Why a case did not pass; `again` is the command that plays it again.

    Long conversations are cut in the middle and long lines at their end unless it is to be `whole`.
    Whatever a model said is made harmless, and no secret is told.
    """
    # Before anything is cut: half a secret is not known as one. What a case expected is seen only in
    # the case itself, which one with secrets loses.
    unmet = redactor().value(differences(result))
    [result] = redacted(Report([result]))
    lines = [f"case {result.label!r}: {result.status}"]
    lines += [f"  {line}" for line in reasons(result)]
    lines += [f"  {line}" for line in _differences(unmet, whole)]
    if (ledger := result.ledger) is not None:
        lines += ["  conversation", *_conversation(transcript(ledger), whole)]
    if again:
        lines.append(f"  again: {again}")
    return printable("\n".join(lines))


def _differences(found: Sequence[Difference], whole: bool) -> Iterator[str]:
    if found:
        yield "expected (-) and actual (+)"
    width = max((len(one.part) for one in found), default=0)
    for one in found:
        label = f"turn {one.turn} {one.part:<{width}}"
        for mark, said in (("-", one.expected), ("+", one.actual)):
            for text in said:
                yield f"  {label}  {mark} {_shown(text, whole, indent=len(label) + 8)}"
                label = " " * len(label)


def _conversation(lines: Sequence[Line], whole: bool) -> Iterator[str]:
    for line in retold(lines, whole=whole, hint="; -vv shows them all"):
        yield f"    {line}".replace("\n", "\n    ")


def _shown(text: str, whole: bool, indent: int) -> str:
    """A text whose further lines stand below its first."""
    kept = text if whole else shortened(text, LONGEST)
    return kept.replace("\n", f"\n{' ' * indent}")
