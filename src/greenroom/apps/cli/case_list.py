"""`greenroom eval-set list`: the cases of a file at a glance."""

import json
from collections.abc import Sequence
from typing import Any

from greenroom.apps.cli import exits
from greenroom.apps.cli.exits import PASSED, aside, put_out, put_out_json, telling
from greenroom.cases import Case
from greenroom.ledger.shown import harmless
from greenroom.reports.words import shortened
from greenroom.results.text import number_of
from greenroom.suite.sources import gather

_WIDEST = 48
_HEADERS = ("id", "name", "turns", "tags")


def list_cases(file: str, filters: Sequence[str], verbose: bool, as_json: bool) -> int:
    """Print a line for each case, and how many there are."""
    with telling(verbose=False):
        found = gather(file, configs=False).evalset
        total = len(found)
        if filters:
            found = found.filter(*filters)
            aside(f"filtered to {len(found)}/{total}")
    if as_json:
        put_out_json(json.dumps([_data(case) for case in found], ensure_ascii=False, indent=2))
        return PASSED
    lines = _table([_row(case) for case in found])
    if verbose:
        lines = [lines[0], *_with_details(lines[1:], found.cases)]
    put_out(exits.harmless("\n".join([*lines, number_of(len(found), "case")])))
    return PASSED


def _row(case: Case) -> tuple[str, ...]:
    # A script that is followed by a user has as many turns as they like.
    turns = f"{len(case.script)}{'+' if case.user is not None else ''}"
    return (case.id, case.name, turns, ", ".join(map(str, case.tags)))


def _table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Columns side by side. Of ten thousand rows a prettier table would take seconds."""
    shown = [_HEADERS, *(tuple(_cell(text) for text in row) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    return [
        "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
        for row in shown
    ]


def _cell(text: str) -> str:
    return shortened(harmless(text).replace("\n", " "), _WIDEST)


def _with_details(lines: Sequence[str], cases: Sequence[Case]) -> list[str]:
    found: list[str] = []
    for line, case in zip(lines, cases, strict=True):
        found.append(line)
        found += [f"    {_indented(case.description)}"] if case.description else []
        found += [f"    user: {_indented(turn.says)}" for turn in case.script if turn.says]
    return found


def _indented(text: str) -> str:
    return harmless(text).replace("\n", "\n    ")


def _data(case: Case) -> dict[str, Any]:
    return {
        "id": case.id,
        "name": case.name,
        "description": case.description,
        "turns": len(case.script),
        "simulated_user": case.user is not None,
        "tags": list(case.tags),
    }
