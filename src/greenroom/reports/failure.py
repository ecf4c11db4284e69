"""A case that did not pass, told in plain text: why, what was expected instead, and what was said."""

from collections.abc import Iterator, Sequence

from greenroom.reports.difference import Difference, differences
from greenroom.reports.transcript import Line, transcript
from greenroom.reports.words import harmless, shortened
from greenroom.results.result import CaseResult
from greenroom.results.text import reasons

_LONGEST_LINE = 240
_FIRST, _LAST = 6, 18


def failure_text(result: CaseResult, *, again: str = "", whole: bool = False) -> str:
    """Why a case did not pass; `again` is the command that plays it again.

    Long conversations are cut in the middle and long lines at their end unless it is to be `whole`.
    Whatever a model said is made harmless.
    """
    lines = [f"case {result.label!r}: {result.status}"]
    lines += [f"  {line}" for line in reasons(result)]
    lines += [f"  {line}" for line in _differences(differences(result), whole)]
    if result.ledger is not None:
        lines += ["  conversation", *_conversation(transcript(result.ledger), whole)]
    if again:
        lines.append(f"  again: {again}")
    return harmless("\n".join(lines))


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
    left_out = len(lines) - _FIRST - _LAST
    for number, line in enumerate(lines):
        if whole or left_out < 2 or number < _FIRST or number >= len(lines) - _LAST:
            source = f"  ({line.source})" if line.source else ""
            yield f"    {line.who:<11}  {_shown(line.text, whole, indent=17)}{source}"
        elif number == _FIRST:
            yield f"    … {left_out} more; -vv shows them all"


def _shown(text: str, whole: bool, indent: int) -> str:
    """A text whose further lines stand below its first."""
    kept = text if whole else shortened(text, _LONGEST_LINE)
    return kept.replace("\n", f"\n{' ' * indent}")
