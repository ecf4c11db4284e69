"""Reports kept in files."""

import json
from pathlib import Path
from typing import Any

import msgspec

from greenroom.errors import BadFile, BadValue
from greenroom.ledger.codec import json_of
from greenroom.ledger.plain import plain
from greenroom.ledger.start import MAX_KEPT, text_of
from greenroom.results.atomic_files import json_text, write_whole
from greenroom.results.data import report_data, result_data
from greenroom.results.gate import Decision
from greenroom.results.reader import report_from
from greenroom.results.redaction import redacted, redacted_decision
from greenroom.results.report import Report
from greenroom.results.result import CaseResult


def report_text(
    report: Report,
    *,
    failures_only: bool = False,
    indent: int | None = 2,
    redact: bool = True,
    decision: Decision | None = None,
) -> str:
    """The report as JSON text; `indent=None` puts it on one line, `redact=False` keeps secrets."""
    told = redacted(report) if redact else report
    said = redacted_decision(decision) if redact else decision
    data = report_data(told, failures_only=failures_only, decision=said, each=_encoded)
    return f"{json_text(data, indent)}\n"


def _encoded(result: CaseResult) -> Any:
    """A result as JSON, at once: as text a run of many cases takes a tenth of the room."""
    return msgspec.Raw(json_of(result_data(result)))


def write_report(
    report: Report,
    path: str | Path,
    *,
    failures_only: bool = False,
    indent: int | None = 2,
    redact: bool = True,
) -> Path:
    """Write a report as JSON, whole or not at all, and say where it is."""
    text = report_text(report, failures_only=failures_only, indent=indent, redact=redact)
    return write_whole(text, path)


def read_report(path: str | Path) -> Report:
    """The report in a file; BadFile names the place of what is wrong with it."""
    source = Path(path)
    try:
        data = plain(json.loads(text_of(source, MAX_KEPT), object_pairs_hook=_unique), str(source))
    except (BadValue, ValueError, RecursionError) as error:
        raise BadFile(f"Invalid JSON in {source}: {error}.") from error
    return report_from(data, str(source))


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in found if names.count(name) > 1)
        raise ValueError(f"the key {twice!r} is given twice")
    return found
