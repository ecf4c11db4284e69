"""Reports in files, each written atomically."""

import json
from collections.abc import Iterable, Iterator
from os import urandom
from pathlib import Path
from typing import Any

import msgspec

from greenroom.errors import BadFile, BadValue
from greenroom.ledger.codec import json_of
from greenroom.ledger.plain import Json, plain
from greenroom.ledger.text_files import MAX_KEPT, text_of
from greenroom.ledger.whole_files import put_whole
from greenroom.results.data import report_from, report_wire, result_wire
from greenroom.results.gate import Decision
from greenroom.results.redaction import redacted, redacted_decision
from greenroom.results.report import Report
from greenroom.results.result import CaseResult
from greenroom.results.wire import to_json_types


def report_parts(
    report: Report,
    *,
    failures_only: bool = False,
    indent: int | None = 2,
    redact: bool = True,
    decision: Decision | None = None,
) -> Iterator[str]:
    """The JSON text of a report in parts, one per result, so that the whole text is never held in memory.

    `indent=None` puts it on one line, `redact=False` keeps secrets.
    """
    if redact:
        report, decision = redacted(report), redacted_decision(decision)
    # Everything but the results is small; they replace this mark, which occurs nowhere else.
    mark = urandom(16).hex()
    whole = json_text(report_wire(report, mark, _encoded, failures_only, decision), indent)
    head, tail = whole.split(f'"{mark}"')
    yield f"{head}["
    inside, outside, between = ("\n    ", "\n  ", ",") if indent else ("", "", ", ")
    before = ""
    for result in report.results:
        if result.fell_short or not failures_only:
            text = json_text(_encoded(result), indent)
            yield f"{before}{inside}{text.replace(chr(10), inside)}"
            before = between
    yield f"{outside if before else ''}]{tail}\n"


def _encoded(result: CaseResult) -> msgspec.Raw:
    """A result encoded directly as JSON text: a tenth of the memory of its dicts and lists."""
    return msgspec.Raw(json_of(result_wire(result), to_json_types))


def write_report(
    report: Report,
    path: str | Path,
    *,
    failures_only: bool = False,
    indent: int | None = 2,
    redact: bool = True,
) -> Path:
    """Write a report as JSON, atomically, and return its path."""
    options: dict[str, Any] = {"failures_only": failures_only, "indent": indent, "redact": redact}
    return write_whole(report_parts(report, **options), path)


def read_report(path: str | Path) -> Report:
    """The report in a file; BadFile names the place of what is wrong with it."""
    source = Path(path)
    text = text_of(source, MAX_KEPT)
    if not text.strip():
        raise BadFile(f"{source} is empty: it has no report.")
    try:
        data = plain(json.loads(text, object_pairs_hook=unique_keys), str(source))
    except (BadValue, ValueError, RecursionError) as error:
        raise BadFile(f"Invalid JSON in {source}: {error}.") from error
    return report_from(data, str(source))


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Json]:
    """A JSON object whose keys are each given once, for `json.loads(..., object_pairs_hook=...)`."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in found if names.count(name) > 1)
        raise ValueError(f"the key {twice!r} is given twice")
    return found


# Any file


def json_text(data: object, indent: int | None = 2) -> str:
    """JSON for people to read, or on one line with `indent=None`."""
    encoded = json_of(data, to_json_types)
    try:
        return msgspec.json.format(encoded, indent=indent or 0).decode()
    except msgspec.DecodeError:
        # Half a surrogate pair, which an interrupted stream leaves, is not valid UTF-8 but can be escaped.
        return json.dumps(json.loads(encoded), indent=indent)


def write_whole(text: str | Iterable[str], path: str | Path, what: str = "the report") -> Path:
    """Write a file atomically, create its folder if needed, and return its path.

    The text may come in parts.
    """
    target = Path(path)
    parts = [text] if isinstance(text, str) else text
    try:
        # Half a surrogate pair, which an interrupted stream leaves, is not valid UTF-8 but can be escaped.
        put_whole((part.encode(errors="backslashreplace") for part in parts), target)
    except OSError as error:
        raise BadFile(f"cannot write {what} to {str(target)!r}: {error}.") from error
    return target
