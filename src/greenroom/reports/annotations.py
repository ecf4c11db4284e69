"""Annotations for GitHub: a line for each case that did not pass, pointing at where the case is defined.

GitHub treats these lines as commands if a step prints them. No text from outside can end its line.
"""

from typing import ClassVar

from greenroom.ledger.safe_text import harmless
from greenroom.results.gate import Decision
from greenroom.results.redaction import redacted, redacted_decision
from greenroom.results.report import CasePlace, Report
from greenroom.results.result import CaseResult
from greenroom.results.text import reasons
from greenroom.results.words import shortened

_LONGEST = 800


class AnnotationsReport:
    """Renders what did not pass as the commands that GitHub turns into annotations."""

    name: ClassVar[str] = "annotations"
    file: ClassVar[str] = "annotations.txt"

    def render(
        self,
        report: Report,
        *,
        baseline: Report | None = None,  # noqa: ARG002
        decision: Decision | None = None,
    ) -> str:
        """An error for each result that fell short, a warning for each that was skipped, then the gate."""
        clean, said = redacted(report), redacted_decision(decision)
        lines = [
            _line(result, clean.sources.get(result.case_id))
            for result in clean.results
            if result.fell_short or result.status == "skipped"
        ]
        lines += [f"::error title=gate::{_text(one.why)}" for one in (said.missed if said else ())]
        return "".join(f"{line}\n" for line in lines)


def _line(result: CaseResult, place: CasePlace | None) -> str:
    kind = "warning" if result.status == "skipped" else "error"
    facts = {"title": f"{result.label}: {result.status}"}
    if place is not None and place.file:
        facts = {"file": place.file, "line": str(place.line or 1), **facts}
    texts = {
        name: _text(fact).replace(":", "%3A").replace(",", "%2C") for name, fact in facts.items()
    }
    given = ",".join(f"{name}={text}" for name, text in texts.items())
    return f"::{kind} {given}::{_text('; '.join(reasons(result)) or result.status)}"


def _text(text: str) -> str:
    """Text escaped so that it stays on its line."""
    short = shortened(harmless(text), _LONGEST)
    return short.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
