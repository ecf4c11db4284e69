"""`greenroom traces import`: ledgers of what was recorded elsewhere."""

import re
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path

from greenroom.apps.cli.exits import BAD_INPUT, PASSED, Stopped, put_out, put_out_json, telling
from greenroom.apps.cli.score import read_files
from greenroom.ledger.plain import Json
from greenroom.ledger.questions import turns, unseen
from greenroom.results.files import json_text
from greenroom.results.text import number_of
from greenroom.traces.readers import describe_flaws
from greenroom.traces.records import Imported

_UNSAFE = re.compile(r"[^\w.-]+")


def import_traces(
    files: Sequence[str], output: str, reader: str, quiet: bool, as_json: bool, verbose: bool
) -> int:
    """Write a ledger for each conversation in the files."""
    with telling(verbose):
        found, flaws = read_files(files, reader)
        folder = Path(output)
        names = ledger_names(found)
        rows: list[Json] = []
        for one in found:
            path = folder / names[id(one)]
            one.ledger.save(path)
            rows.append(_row(one, path))
            if not quiet and not as_json:
                put_out(_line(one, path))
        if as_json:
            put_out_json(json_text({"conversations": rows, "unread": [str(one) for one in flaws]}))
        elif found:
            put_out(f"wrote {number_of(len(found), 'ledger')} to {folder}")
        if flaws:
            raise Stopped(describe_flaws(flaws), BAD_INPUT)
    return PASSED


def _row(one: Imported, path: Path) -> dict[str, Json]:
    return {
        "conversation": one.conversation,
        "ledger": str(path),
        "format": one.format,
        "turns": turns(one.ledger),
        "unseen": list(unseen(one.ledger)),
        "verdicts": one.verdicts,
    }


def _line(one: Imported, path: Path) -> str:
    lacks = ", ".join(unseen(one.ledger))
    return f"{path}  {one.format}, {number_of(turns(one.ledger), 'turn')}; not recorded: {lacks}"


def ledger_names(found: Sequence[Imported]) -> dict[int, str]:
    """A file name for each conversation, which no other has."""
    names: dict[int, str] = {}
    taken: set[str] = set()
    for one in found:
        stem = _UNSAFE.sub("_", one.conversation).strip(".")[:80]
        if stem != one.conversation or not stem:
            stem = f"{stem}-{blake2b(one.conversation.encode(), digest_size=4).hexdigest()}"
        name, count = f"{stem}.jsonl", 1
        while name.casefold() in taken:
            count += 1
            name = f"{stem}~{count}.jsonl"
        taken.add(name.casefold())
        names[id(one)] = name
    return names
