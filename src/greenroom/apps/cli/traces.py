"""`greenroom traces import` and `to-case`: conversations recorded elsewhere, as ledgers and as cases."""

import re
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path

from greenroom.apps.cli.exits import BAD_INPUT, Stopped, aside, put_out, put_out_data
from greenroom.cases.case import Case
from greenroom.cases.data import written_data
from greenroom.cases.files.additions import add_cases, evalset_at
from greenroom.cases.files.changes import changing
from greenroom.errors import BadInput, NotFound
from greenroom.ledger.plain import Json
from greenroom.ledger.questions import turns, unseen
from greenroom.ledger.text_files import text_of
from greenroom.results.words import number_of
from greenroom.suite.recorded.trace_cases import case_of
from greenroom.traces.personal import StandIns
from greenroom.traces.readers import conversations, describe_flaws
from greenroom.traces.records import Flaw, Imported

_UNSAFE = re.compile(r"[^\w.-]+")


def import_traces(
    files: Sequence[str], output: str, reader: str, quiet: bool, as_json: bool
) -> None:
    """Write a ledger for each conversation in the files."""
    found, flaws = read_files(files, reader)
    folder = Path(output)
    names = ledger_names(found)
    rows: list[Json] = []
    for one in found:
        path = folder / names[id(one)]
        one.ledger.save(path)
        row: dict[str, Json] = {
            "conversation": one.conversation,
            "ledger": str(path),
            "format": one.format,
            "turns": turns(one.ledger),
            "unseen": list(unseen(one.ledger)),
            "verdicts": one.verdicts,
        }
        rows.append(row)
        if not quiet and not as_json:
            lacks, count = ", ".join(unseen(one.ledger)), number_of(turns(one.ledger), "turn")
            put_out(f"{path}  {one.format}, {count}; not recorded: {lacks}")
    if as_json:
        put_out_data({"conversations": rows, "unread": [str(one) for one in flaws]})
    elif found:
        put_out(f"wrote {number_of(len(found), 'ledger')} to {folder}")
    if flaws:
        raise Stopped(describe_flaws(flaws), BAD_INPUT)


def ledger_names(found: Sequence[Imported]) -> dict[int, str]:
    """A unique file name for each conversation."""
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


def write_cases(
    files: Sequence[str],
    into: str,
    chosen: Sequence[str],
    kind: str,
    no_expect: bool,
    names: str,
    keep_pii: bool,
    reader: str,
) -> None:
    """Add a case for each conversation to an eval set."""
    found, flaws = read_files(files, reader)
    for name in chosen:
        if not any(one.conversation == name for one in found):
            known = ", ".join(repr(one.conversation) for one in found[:5]) or "none"
            more = f" and {len(found) - 5} more" if len(found) > 5 else ""
            raise NotFound(
                f"there is no conversation {name!r} in the files; they have {known}{more}."
            )
    wanted = [one for one in found if not chosen or one.conversation in chosen]
    if not wanted:
        raise Stopped(describe_flaws(flaws), BAD_INPUT)
    stand_ins = None if keep_pii else StandIns(names_in(names))
    place = Path(into)
    made, known = list[Case](), 0
    with changing(place):
        before = evalset_at(place)
        taken, there = list(before.ids), [_without_id(case) for case in before]
        for one in wanted:
            try:
                case = case_of(one, taken, stand_ins, kind=kind, expect=not no_expect)
            except BadInput as error:  # the other conversations still become cases
                flaws.append(Flaw(place=one.conversation, why=str(error), source=one.source))
                continue
            if _without_id(case) in there:
                known += 1
                continue
            made.append(case)
            taken.append(case.id)
        if made:
            add_cases(place, *made)
    if made:
        aside(f"added {number_of(len(made), 'case')} to {place}")
        if stand_ins is not None:
            aside(f"replaced: {stand_ins}; names in free text only if --redact lists them")
    if known:
        aside(f"already in {place}: {number_of(known, 'case')}")
    if flaws:
        raise Stopped(describe_flaws(flaws), BAD_INPUT)


def _without_id(case: Case) -> object:
    return {**written_data(case), "id": ""}


def read_files(files: Sequence[str], reader: str) -> tuple[list[Imported], list[Flaw]]:
    """The conversations in files and folders, and what could not be read."""
    found: list[Imported] = []
    flaws: list[Flaw] = []
    for one in conversations(files, reader):
        if isinstance(one, Flaw):
            flaws.append(one)
        else:
            found.append(one)
    return found, flaws


def names_in(file: str) -> list[str]:
    """The names that a file lists, one on each line."""
    return text_of(Path(file)).splitlines() if file else []
